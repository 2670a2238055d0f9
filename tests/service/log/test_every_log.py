"""What every log promises, stated once: it holds what was appended, in order, until it is dropped."""

from __future__ import annotations

import shutil
import tempfile
import threading
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.service.errors import LogError
from tamis.service.log.base import EventLog
from tamis.service.log.memory import MemoryLog
from tamis.service.log.sqlite import SqliteLog
from tests.service.log.drawn import CONTENTS, block, blocks_behind


class Memory:
    """A log in memory; it cannot be opened again."""

    def __init__(self):
        self.log = MemoryLog(extent_bytes=30)

    def reopened(self):
        return self.log

    def end(self):
        self.log.close()


class Sqlite:
    """A log of files, with segments so small that most blocks begin one."""

    def __init__(self, **settings):
        self.folder = Path(tempfile.mkdtemp())
        self.settings = {"segment_bytes": 300, "segment_s": 4e-6, **settings}
        self.log = SqliteLog(self.folder, **self.settings)

    def reopened(self):
        self.log.close()
        self.log = SqliteLog(self.folder, **self.settings)
        return self.log

    def end(self):
        self.log.close()
        shutil.rmtree(self.folder)


HOMES = {
    "memory": Memory,
    "sqlite": Sqlite,
    "sqlite, checked at its end": lambda: Sqlite(check="last"),
    "sqlite, unforced": lambda: Sqlite(sync_s=0.05),
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), CONTENTS),
        st.tuples(st.just("drop"), st.integers(-2, 12)),
        st.tuples(st.just("open"), st.none()),
    ),
    max_size=8,
)


@pytest.mark.parametrize("home", HOMES.values(), ids=HOMES.keys())
@settings(max_examples=60)
@given(steps=STEPS, ranges=st.lists(st.tuples(st.integers(-1, 30), st.integers(-1, 30)), max_size=4))
def test_a_log_holds_what_was_appended_in_order_until_it_is_dropped(home, steps, ranges):
    place = home()
    log = place.log
    expected, last, time_us = [], 0, 0  # the plainest log: a list
    try:
        assert isinstance(log, EventLog)
        epoch = log.epoch
        for step, argument in steps:
            if step == "append":
                blocks = blocks_behind(argument, last, time_us)
                assert log.append(blocks) == tuple(blocks)
                expected += blocks
                if blocks:
                    last, time_us = blocks[-1].last, blocks[-1].time_us
            elif step == "drop":
                before = log.first + argument
                first = log.drop(before)
                assert first == log.first
                assert all(gone.last < before for gone in expected if gone.last < first)
                assert not any(extent.last < before for extent in log.extents())
                expected = [kept for kept in expected if kept.first >= first]
            else:
                log = place.reopened()
            assert (log.epoch, log.last, log.last_time_us, log.gaps()) == (epoch, last, time_us, ())
            assert log.first == (expected[0].first if expected else last + 1)
            assert list(log.read(0, 1 << 40)) == expected
            extents = log.extents()
            assert [(extent.first, extent.last) for extent in extents] == tilings(extents, log.first, last)
            assert all(
                extent.time_us == max(kept.time_us for kept in expected if extent.first <= kept.first <= extent.last)
                for extent in extents
            )
        for first, end in ranges:
            assert list(log.read(first, end)) == [
                kept for kept in expected if kept.first <= end and kept.last >= first and first <= end
            ]
        for moment in range(time_us + 2):
            later = [kept.first for kept in expected if kept.time_us >= moment]
            assert log.position_at(moment) == min(later, default=last + 1)
    finally:
        place.end()


def tilings(extents, first, last):
    """Return the bounds of extents as they must be: one behind the other, without a hole."""
    bounds = [first - 1, *(extent.last for extent in extents)]
    if extents:
        assert bounds[-1] == last
    return [(before + 1, end) for before, end in pairwise(bounds)]


@pytest.mark.parametrize("home", HOMES.values(), ids=HOMES.keys())
def test_a_closed_log_takes_nothing(home):
    place = home()
    place.log.close()
    with pytest.raises(LogError, match="the log is closed"):
        place.log.append([block(1)])
    place.end()


@pytest.mark.parametrize("home", HOMES.values(), ids=HOMES.keys())
def test_threads_read_whole_ranges_while_another_appends_and_drops(home):
    place = home()
    log = place.log
    has_ended = threading.Event()
    wrong = []

    def read():
        for _ in count():
            is_last = has_ended.is_set()
            first, last = log.first, log.last
            positions = [number for kept in log.read(first, last) for number in range(kept.first, kept.last + 1)]
            missing = set(range(first, last + 1)).difference(positions)
            if positions != sorted(positions) or any(position >= log.first for position in missing):
                wrong.append((first, last, positions))  # what is missing was dropped while it was read
            log.position_at(last // 2)
            if is_last:
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    position = 0
    for number in range(80):
        log.append([block(position + 1, 1 + number % 3, time_us=number)])
        position = log.last
        if number % 20 == 19:
            log.drop(position - 15)
    has_ended.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    place.end()
