"""A bit that flips is found, wherever it is; and a repair leaves out exactly what it has spoilt."""

from __future__ import annotations

import shutil
from contextlib import closing

import pytest

from tamis.service.errors import DamagedLogError, FolderInUseError, LogError
from tamis.service.log.base import Block, Gap
from tamis.service.log.blocks import block_of
from tamis.service.log.repair import repair
from tamis.service.log.segments import content_of, facts_of, firsts_in, path_of, reading, rows_of, side_files
from tamis.service.log.sqlite import SqliteLog
from tests.lengths import SHARE
from tests.service.log.drawn import block

SIZES = (3, 1, 2, 3, 1, 4)
"""Events of the blocks of each segment; the fourth block is larger than a page."""


def written(folder, segments=3, is_killed=False):
    """Write a log of some segments; return its blocks. Killed is: as a process leaves it that ends without a word."""
    log = SqliteLog(folder, segment_s=60, segment_bytes=150_000)
    blocks = []
    for number in range(segments):
        for index, count in enumerate(SIZES):
            size = 3000 if index == 3 else 20
            blocks.append(block(log.last + 1, count, number * 100_000_000, size))
            log.append(blocks[-1:])
    if is_killed:
        killed = folder.with_name(folder.name + "-killed")
        shutil.copytree(folder, killed)
        log.close()
        shutil.rmtree(folder)
        killed.rename(folder)
    else:
        log.close()
    return blocks


def opened(folder):
    """Return what a log says after it is opened: its name and its blocks."""
    log = SqliteLog(folder)
    try:
        return log.epoch, list(log.read(0, log.last)), log.gaps(), log.last_time_us
    finally:
        log.close()


def looked_at(path, following):
    """Return what a segment says of itself, as the log looks at it when it is opened."""
    facts, content = facts_of(path), content_of(path, following, is_thorough=True)
    with closing(reading(path)) as connection:
        return facts, content, [block_of(row) for row in rows_of(connection, 0, 1 << 62)]


def flip(path, place, bit):
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))


def places_of(path, thoroughly):
    """Yield places and bits: in the quick suite one bit of some bytes, else every bit or a share of all."""
    step = round(1 / SHARE)
    for place, byte in enumerate(path.read_bytes()):
        if thoroughly:
            yield from ((place, bit) for bit in range(8) if (8 * place + bit) % step == 0)
        elif (byte and place % 3 == 0) or place < 110 or place % 61 == 0:
            yield place, place % 8


@pytest.mark.parametrize("thoroughly", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("index", [0, -1], ids=["closed", "last"])
def test_a_flipped_bit_in_a_segment_is_found_or_changes_nothing(tmp_path, index, thoroughly):
    written(tmp_path / "log", segments=2)
    firsts = firsts_in(tmp_path / "log")
    path = path_of(tmp_path / "log", firsts[index])
    following = firsts[1] if index == 0 else None
    expected = looked_at(path, following)
    outcomes = set()
    for place, bit in places_of(path, thoroughly):
        flip(path, place, bit)
        try:
            assert looked_at(path, following) == expected, f"bit {bit} of byte {place}"
            outcomes.add("harmless")
        except DamagedLogError:
            outcomes.add("found")
        flip(path, place, bit)
    assert looked_at(path, following) == expected
    assert outcomes == {"harmless", "found"}


@pytest.mark.parametrize("thoroughly", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_flipped_bit_in_a_write_ahead_log_is_found_or_costs_what_looks_torn(tmp_path, thoroughly):
    source, folder = tmp_path / "source", tmp_path / "log"
    blocks = written(source, segments=1, is_killed=True)
    ahead = side_files(path_of(source, 1))[0].name
    size = len((source / ahead).read_bytes().rstrip(b"\0"))  # what is reserved behind it is empty
    epoch, expected, _, _ = opened_copy(source, folder)
    assert expected == blocks
    outcomes = set()
    places = (
        range(0, size, round(5 / SHARE))
        if thoroughly
        else [*range(32), *range(32, size, 211), *(p for f in range(32, size, 4120) for p in range(f, f + 24))]
    )
    for place in places:
        shutil.rmtree(folder)
        shutil.copytree(source, folder)
        flip(folder / ahead, place, place % 8)
        try:
            name, kept, _, _ = opened(folder)
            assert name == epoch
            # Nothing tells damage in the last transaction from one that was being written (nor, where the mark of its
            # end is what flipped, in the last but one).
            assert kept in (blocks, blocks[:-1], blocks[:-2]), place
            outcomes.add(len(kept))
        except DamagedLogError:
            outcomes.add("found")
    assert "found" in outcomes


def opened_copy(source, folder):
    shutil.copytree(source, folder)
    return opened(folder)


def test_damage_names_the_file_and_the_positions(tmp_path):
    blocks = written(tmp_path)
    path = path_of(tmp_path, firsts_in(tmp_path)[1])
    victim = blocks[len(SIZES) + 3]
    spoil(path, victim.events[1])
    with pytest.raises(DamagedLogError) as caught:
        SqliteLog(tmp_path)
    assert (caught.value.where, caught.value.first, caught.value.last) == (str(path), victim.first, victim.last)
    assert "tamis repair" in str(caught.value)


def test_only_the_last_segment_is_looked_at_if_that_is_asked(tmp_path):
    blocks = written(tmp_path)
    spoil(path_of(tmp_path, 1), blocks[0].events[0])
    log = SqliteLog(tmp_path, check="last")
    with pytest.raises(DamagedLogError, match="events 1 to 3 cannot be trusted"):
        list(log.read(1, 5))
    assert list(log.read(blocks[6].first, log.last)) == blocks[6:]
    log.close()


def spoil(path, body):
    """Flip a bit of a body."""
    flip(path, path.read_bytes().index(body[:50]) + 10, 3)


def test_a_missing_segment_is_damage_and_becomes_a_gap(tmp_path):
    blocks = written(tmp_path)
    firsts = firsts_in(tmp_path)
    path_of(tmp_path, firsts[1]).unlink()
    with pytest.raises(DamagedLogError, match=f"events {firsts[1]} to {firsts[2] - 1} cannot"):
        SqliteLog(tmp_path)
    (mended,) = repair(tmp_path)
    assert mended.gaps == (Gap(firsts[1], firsts[2] - 1),)
    _, kept, gaps, _ = opened(tmp_path)
    assert (kept, gaps) == ([*blocks[:6], *blocks[12:]], mended.gaps)


def test_a_segment_of_another_log_is_damage(tmp_path):
    written(tmp_path / "one")
    blocks = written(tmp_path / "two")
    name = path_of(tmp_path, firsts_in(tmp_path / "one")[1]).name
    shutil.copy(tmp_path / "one" / name, tmp_path / "two" / name)
    with pytest.raises(DamagedLogError, match="it belongs to another log"):
        SqliteLog(tmp_path / "two")
    (mended,) = repair(tmp_path / "two")
    assert mended.gaps == (Gap(blocks[6].first, blocks[11].last),)
    assert opened(tmp_path / "two")[1] == [*blocks[:6], *blocks[12:]]


@pytest.mark.parametrize("segment", [0, 1, 2])
@pytest.mark.parametrize("index", range(len(SIZES)))
def test_a_repair_leaves_out_exactly_the_damaged_block(tmp_path, segment, index):
    blocks = written(tmp_path)
    path = path_of(tmp_path, firsts_in(tmp_path)[segment])
    victim = blocks[segment * len(SIZES) + index]
    before = path.read_bytes()
    spoil(path, victim.events[0])
    spoilt = path.read_bytes()
    epoch = facts_of(path).epoch
    looked = repair(tmp_path, only_look=True)
    assert path.read_bytes() == spoilt != before
    (mended,) = repair(tmp_path)
    assert looked == (mended,)
    assert mended.gaps == (Gap(victim.first, victim.last),)
    assert mended.kept == sum(SIZES) - len(victim.events)
    assert mended.copy.read_bytes() == spoilt
    assert f"Events {victim.first}" in str(mended)
    name, kept, gaps, time_us = opened(tmp_path)
    assert (name, gaps) == (epoch, mended.gaps)
    assert kept == [other for other in blocks if other != victim]
    log = SqliteLog(tmp_path)  # and it goes on, behind everything that there was
    log.append([block(blocks[-1].last + 1, 2, time_us)])
    assert log.last == blocks[-1].last + 2
    log.close()
    assert repair(tmp_path) == ()


@pytest.mark.parametrize("page", range(12))
@pytest.mark.parametrize("segment", [0, -1], ids=["closed", "last"])
def test_a_repair_recovers_what_is_readable_of_a_broken_tree(tmp_path, page, segment):
    folder = tmp_path / "log"
    log = SqliteLog(folder, segment_s=60)
    blocks = []
    for number in range(120):  # so many that the tree has several leaves
        blocks.append(block(log.last + 1, 1 + number % 3, number // 60 * 100_000_000, 200))
        log.append(blocks[-1:])
    log.close()
    path = path_of(folder, firsts_in(folder)[segment])
    assert path.stat().st_size > page * 4096
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(bytes(range(256)) * 16)
    epoch = facts_of(path_of(folder, firsts_in(folder)[0 if segment else 1])).epoch
    try:
        SqliteLog(folder).close()
    except DamagedLogError:
        (mended,) = repair(folder)
        name, kept, gaps, _ = opened(folder)
        assert name == epoch
        assert gaps == mended.gaps
        lost = [other for other in blocks if other not in kept]
        assert kept == [other for other in blocks if other in kept]
        assert len(lost) <= 19, "a page holds no more"
        for other in lost:
            assert any(gap.first <= other.first and other.last <= gap.last for gap in gaps)
        for other in kept:
            assert not any(gap.first <= other.last and other.first <= gap.last for gap in gaps)
    else:
        assert opened(folder)[1] == blocks


def test_a_repair_goes_through_a_damaged_write_ahead_log(tmp_path):
    blocks = written(tmp_path, segments=1, is_killed=True)
    ahead = side_files(path_of(tmp_path, 1))[0]
    spoil(ahead, blocks[1].events[0])
    with pytest.raises(DamagedLogError, match="a page in it is not what was written"):
        SqliteLog(tmp_path)
    with pytest.raises(DamagedLogError):  # a start in vain changes nothing
        SqliteLog(tmp_path)
    (mended,) = repair(tmp_path)
    _, kept, gaps, _ = opened(tmp_path)
    assert (kept, gaps) == (blocks, ())  # the page was written again later, whole
    assert mended.kept == sum(SIZES)


def test_a_segment_that_is_nothing_any_more_is_lost_as_a_whole(tmp_path):
    blocks = written(tmp_path)
    for first in (firsts_in(tmp_path)[0], firsts_in(tmp_path)[2]):
        path_of(tmp_path, first).write_bytes(b"\xa5" * 30_000)
    mended = repair(tmp_path)
    _, kept, gaps, _ = opened(tmp_path)
    assert kept == blocks[6:12]
    assert gaps[0] == Gap(1, blocks[5].last)
    assert gaps[1].first == blocks[12].first
    assert gaps[1].last >= blocks[-1].last, "no position is given twice"
    assert [found.gaps for found in mended] == [(gaps[0],), (gaps[1],)]


def test_a_repair_keeps_the_gaps_of_an_earlier_one(tmp_path):
    blocks = written(tmp_path)
    path = path_of(tmp_path, 1)
    for victim in (blocks[1], blocks[4], blocks[0]):
        spoil(path, victim.events[0])
        (mended,) = repair(tmp_path)
        assert mended.gaps == (Gap(victim.first, victim.last),)
    _, kept, gaps, _ = opened(tmp_path)
    assert kept == [blocks[2], blocks[3], *blocks[5:]]
    covered = {position for gap in gaps for position in range(gap.first, gap.last + 1)}
    assert covered == {position for lost in (0, 1, 4) for position in range(blocks[lost].first, blocks[lost].last + 1)}


def test_the_name_of_a_log_that_no_segment_knows_is_told_to_the_repair(tmp_path):
    written(tmp_path, segments=1)
    path_of(tmp_path, 1).write_bytes(b"nothing")
    repair(tmp_path, epoch="k3f9")
    assert opened(tmp_path)[0] == "k3f9"


def test_a_whole_log_is_not_touched(tmp_path):
    blocks = written(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.db*")}
    assert repair(tmp_path) == ()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.db*")} == before
    assert opened(tmp_path)[1] == blocks


def test_a_repair_waits_for_no_broker(tmp_path):
    log = SqliteLog(tmp_path)
    with pytest.raises(FolderInUseError, match="is in use by the process"):
        repair(tmp_path)
    log.close()
    with pytest.raises(LogError, match="there is no log in"):
        repair(tmp_path / "elsewhere")


def test_a_repair_that_was_interrupted_is_finished_by_the_next(tmp_path, monkeypatch):
    blocks = written(tmp_path)
    spoil(path_of(tmp_path, 1), blocks[0].events[0])
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", interrupted(2))
        with pytest.raises(KeyboardInterrupt):
            repair(tmp_path)
    with pytest.raises(LogError, match=r"a repair of .* was interrupted"):
        SqliteLog(tmp_path)
    assert repair(tmp_path) == ()
    assert opened(tmp_path)[1:3] == (blocks[1:], (Gap(1, 3),))


def interrupted(at):
    """Return `os.replace` that is interrupted when it is called for the nth time."""
    from os import replace

    calls = []

    def replaced(source, target):
        calls.append(source)
        if len(calls) == at:
            raise KeyboardInterrupt
        replace(source, target)

    return replaced


def test_events_of_every_size_are_carved_as_they_were_written(tmp_path):
    log = SqliteLog(tmp_path)
    sizes = (0, 1, 3900, 4000, 4027, 4028, 4061, 4062, 4096, 8100, 8200, 20_000, 300_000)
    blocks = []
    for size in sizes:
        blocks.append(Block(log.last + 1, 5, (b"e" * size, b""), b"\1\0"))
        log.append(blocks[-1:])
    log.close()
    path = path_of(tmp_path, 1)
    content = bytearray(path.read_bytes())
    content[:100] = b"x" * 100  # no SQLite would open this
    path.write_bytes(content)
    repair(tmp_path)
    assert opened(tmp_path)[1] == blocks
