"""A log in a stream of a real NATS server, alone and shared."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from itertools import accumulate, count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.service.errors import DamagedLogError, LogError, SettingsError, StorageFullError, TooLargeError
from tamis.service.log.base import Block, EventLog
from tamis.service.log.blocks import message_of, record_of
from tests.service.log.drawn import CONTENTS, block, blocks_behind
from tests.spark.nats_server import NatsServer

pytest.importorskip("nats")
from tamis.service.log.jetstream import BLOCK_EVENTS, JetStreamLog

NUMBERS = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    yield server
    server.stop()


@pytest.fixture
def log(server):
    log = JetStreamLog(f"nats://127.0.0.1:{server.port}", f"LOG{next(NUMBERS)}")
    yield log
    log.close()


def again(server, log):
    """Open the stream of a log once more, as another process would."""
    return JetStreamLog(f"nats://127.0.0.1:{server.port}", log._address.stream, timeout_s=5)


def contents(blocks):
    return [(block.time_us, block.events, block.flags) for block in blocks]


def all_of(log):
    return list(log.read(0, 1 << 60))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), CONTENTS), st.tuples(st.just("drop"), st.integers(0, 6)),
        st.tuples(st.just("open"), st.none()),
    ),
    max_size=6,
)  # fmt: skip


@settings(max_examples=25)
@given(steps=STEPS, data=st.data())
def test_a_stream_holds_what_was_appended_in_order_until_it_is_dropped(server, steps, data):
    log = JetStreamLog(f"nats://127.0.0.1:{server.port}", f"LOG{next(NUMBERS)}")
    try:
        assert isinstance(log, EventLog)
        epoch, expected, time_us, last = log.epoch, [], 0, 0
        for step, argument in steps:
            if step == "append":
                blocks = blocks_behind(argument, 0, time_us)
                stored = log.append(blocks)
                assert contents(stored) == contents(blocks)
                assert all(block.first % BLOCK_EVENTS == 0 for block in stored)
                expected += stored
                if blocks:
                    time_us, last = blocks[-1].time_us, stored[-1].last
            elif step == "drop" and expected:
                before = expected[min(argument, len(expected) - 1)].first
                first = log.drop(before)
                assert not any(extent.last < before for extent in log.extents())
                assert all(block.last < before for block in expected if block.first < first)
                expected = [block for block in expected if block.first >= first]
            elif step == "open":
                other = again(server, log)
                log.close()
                log = other
            firsts = [block.first for block in expected]
            assert firsts == sorted(set(firsts))
            assert all_of(log) == expected
            assert (log.epoch, log.last) == (epoch, last)
            assert log.first == (expected[0].first if expected else 1)
        for moment in range(time_us + 2):
            later = [block.first for block in expected if block.time_us >= moment]
            assert log.position_at(moment) == min(later, default=last + 1)
        if expected:
            chosen = st.sampled_from(expected)
            begin, end = data.draw(chosen), data.draw(chosen)
            assert list(log.read(begin.last, end.last)) == [
                block for block in expected if begin.first <= block.first <= end.first
            ]
    finally:
        log.close()


def test_everything_that_is_dropped_leaves_an_empty_log_that_goes_on(server, log):
    (stored,) = log.append([block(1, 3)])
    assert log.drop(stored.last + 1) == stored.first + BLOCK_EVENTS
    assert (all_of(log), log.extents()) == ([], ())
    assert log.first > stored.last
    assert log.last >= stored.last
    other = again(server, log)
    assert (other.first, other.last) == (log.first, log.first - 1)
    (behind,) = other.append([block(1)])
    assert behind.first == log.first
    assert all_of(log) == [behind]
    other.close()


def test_many_slices_cover_the_stream_and_are_dropped_one_by_one(log):
    blocks = [stored for number in range(100) for stored in log.append([block(1, 2, number)])]
    extents = log.extents()
    assert len(extents) <= 32
    assert (extents[0].first, extents[-1].last) == (blocks[0].first, blocks[-1].last)
    assert [extent.time_us for extent in extents] == sorted(extent.time_us for extent in extents)
    assert log.drop(extents[5].first) == extents[5].first
    assert all_of(log) == [stored for stored in blocks if stored.first >= extents[5].first]


def test_several_brokers_append_to_one_stream_and_all_read_the_same_order(server, log):
    others = [again(server, log) for _ in range(3)]
    followers = [other.follow(0) for other in others]
    assert {other.epoch for other in others} == {log.epoch}
    own = {}

    def append(index):
        own[index] = [
            stored
            for number in range(20)
            for stored in others[index].append(
                [Block(1, number, (f"{index}-{number}".encode(),), b"\0"), Block(2, number, (b"more", b""), b"\0\1")]
            )
        ]

    writers = [threading.Thread(target=append, args=(index,)) for index in range(3)]
    for writer in writers:
        writer.start()
    seen = [[], [], []]
    for follower, blocks in zip(followers, seen, strict=True):
        while len(blocks) < 120:
            blocks += follower.next_blocks(5)
    for writer in writers:
        writer.join()
    assert seen[0] == seen[1] == seen[2] == all_of(log)
    assert sorted(stored.first for stored in seen[0]) == [stored.first for stored in seen[0]]
    assert sorted(stored.time_us for stored in seen[0]) == [stored.time_us for stored in seen[0]]
    for index in range(3):
        firsts = {stored.first: stored.events for stored in own[index]}
        assert {stored.first: stored.events for stored in seen[0] if stored.first in firsts} == firsts
    log.refresh()
    assert log.last == seen[0][-1].last
    for part in (*others, *followers):
        part.close()


@settings(max_examples=15)
@given(
    written=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=8),
    begin=st.integers(0, 7),
    moment=st.integers(0, 10),
)
def test_time_never_goes_back_and_is_the_same_wherever_a_reader_begins(server, written, begin, moment):
    """Brokers write their own time, having read all but the last few blocks; none is before what they had read."""
    log = JetStreamLog(f"nats://127.0.0.1:{server.port}", f"LOG{next(NUMBERS)}")
    times: list[int] = []
    for number, (time_us, unread) in enumerate(written):
        had_read = max(0, number - unread)
        told = max([time_us, *times[:had_read]])
        log.append([Block((had_read + 1) * BLOCK_EVENTS, told, (b"x",), b"\0")])
        times.append(told)
    latest = list(accumulate(times, max))
    begin = min(begin, len(written) - 1)
    first = (begin + 1) * BLOCK_EVENTS
    assert [block.time_us for block in log.read(first, 1 << 60)] == latest[begin:]
    other = again(server, log)
    assert other.last_time_us == latest[-1]
    assert other.position_at(moment) == min(
        ((number + 1) * BLOCK_EVENTS for number, at in enumerate(latest) if at >= moment), default=other.last + 1
    )
    follower, followed = other.follow(first), []
    while len(followed) < len(latest) - begin:
        followed += follower.next_blocks(5)
    assert [block.time_us for block in followed] == latest[begin:]
    for part in (follower, other, log):
        part.close()


def test_a_stream_that_was_written_before_blocks_said_how_far_their_writers_had_read_is_read(server, log):
    old = message_of(block(1, 2, 7))[:-8]
    numbers = struct.unpack_from("<IqII", old)
    whole = block(1, 2, 7)
    record = record_of(Block(0, whole.time_us, whole.events, whole.flags))
    before = struct.pack("<IqII", record.crc32, *numbers[1:]) + old[20:]
    server.publish(log._address.stream, [before], subject=f"tamis.log.{log._address.stream}")
    assert contents(all_of(log)) == contents([whole])


def test_who_follows_begins_where_it_says_and_waits_no_longer_than_asked(log):
    stored = [one for number in range(600) for one in log.append([block(1, 1, number)])]
    follower = log.follow(stored[300].first)
    seen = []
    while len(seen) < 300:
        seen += follower.next_blocks(5)
    assert seen == stored[300:]
    assert follower.next_blocks(0.05) == []
    late = log.append([block(1, 2, 700)])
    assert follower.next_blocks(5) == list(late)
    follower.close()


def test_who_follows_goes_on_when_the_server_was_started_anew(tmp_path):
    server = NatsServer(tmp_path)
    log = JetStreamLog(f"nats://127.0.0.1:{server.port}", "EVENTS", timeout_s=20)
    follower = log.follow(0)
    expected = list(log.append([block(1)]))
    assert follower.next_blocks(5) == expected
    for number in range(2):
        server.stop()
        server.start()
        later = list(log.append([block(1, 2, number)]))
        seen = []
        while not seen:
            seen = follower.next_blocks(5)
        assert seen == later
    follower.close()
    log.close()
    server.stop()


def test_a_block_that_is_sent_again_is_stored_once(log, monkeypatch):
    published, calls = JetStreamLog._published, []

    async def lost_once(self, client, messages):
        sequences = await published(self, client, messages)
        calls.append(sequences)
        if len(calls) == 1:
            raise ConnectionError("the answer got lost")
        return sequences

    monkeypatch.setattr(JetStreamLog, "_published", lost_once)
    stored = log.append([block(1, 2), block(3, 1)])
    assert calls == [[1, 2], [1, 2]]
    assert all_of(log) == list(stored)


def test_a_large_block_comes_back_as_several(log):
    large = Block(1, 7, tuple(b"%d" % number for number in range(2 * BLOCK_EVENTS + 5)), bytes(2 * BLOCK_EVENTS + 5))
    heavy = Block(1, 8, (b"x" * 700_000, b"y" * 700_000, b"z"), b"\1\2\3")
    stored = log.append([large, heavy])
    assert [len(part.events) for part in stored] == [BLOCK_EVENTS, BLOCK_EVENTS, 5, 1, 2]
    assert sum((part.events for part in stored), ()) == large.events + heavy.events
    assert b"".join(part.flags for part in stored) == large.flags + heavy.flags
    assert all_of(log) == list(stored)
    with pytest.raises(TooLargeError, match="an event of 2,000,000 bytes"):
        log.append([Block(1, 9, (b"x" * 2_000_000,), b"\0")])
    assert log.append([block(1, 1, 9)])  # nothing was written, and the log goes on


def test_a_full_stream_takes_nothing_and_takes_events_again_when_there_is_room(server):
    url = server.make(f"LOG{next(NUMBERS)}", max_bytes=6000, discard="new")
    log = JetStreamLog(url)
    stored = []
    while len(stored) < 10:
        stored += log.append([block(1, 1, len(stored), size=300)])
    with pytest.raises(StorageFullError, match="maximum bytes exceeded"):
        log.append([block(1, 1, 20, size=3000)])
    assert all_of(log) == stored
    log.drop(stored[5].first)
    (more,) = log.append([block(1, 1, 100, size=300)])
    assert all_of(log) == [*stored[5:], more]
    log.close()


def test_a_message_that_is_no_block_is_damage(server, log):
    (before,) = log.append([block(1, 2)])
    server.publish(log._address.stream, [b"no block"], subject=f"tamis.log.{log._address.stream}")
    (behind,) = log.append([block(1, 2)])
    with pytest.raises(DamagedLogError, match="message 2 of the stream is not what was written"):
        all_of(log)
    assert list(log.read(0, before.last)) == [before]
    assert list(log.read(behind.first, behind.first)) == [behind]


def test_a_stream_of_somebody_else_is_not_taken(server):
    url = server.make(f"LOG{next(NUMBERS)}")
    JetStreamLog(url).close()  # empty: made by an operator for the log
    JetStreamLog(url).close()
    other = f"LOG{next(NUMBERS)}"
    server.make(other)
    server.publish(other, [b"hello"])
    with pytest.raises(LogError, match="holds messages of another program"):
        JetStreamLog(server.url(other))
    wide = server.make(f"LOG{next(NUMBERS)}", subjects=["wide.>"])
    with pytest.raises(LogError, match="a stream with one subject"):
        JetStreamLog(wide)


def test_a_server_that_stays_away_is_an_error_and_final(tmp_path):
    server = NatsServer(tmp_path)
    log = JetStreamLog(f"nats://127.0.0.1:{server.port}/EVENTS", timeout_s=1)
    follower = log.follow(0)
    log.append([block(1)])
    server.stop()
    with pytest.raises(LogError, match="no NATS server answers") as caught:
        log.append([block(1)])
    with pytest.raises(LogError) as second:
        log.append([block(1)])
    assert second.value is caught.value
    with pytest.raises(LogError, match="no NATS server answers"):
        follower.next_blocks(0.1)
    with pytest.raises(LogError, match="no NATS server answers"):
        list(log.read(0, 1 << 40))
    log.close()
    follower.close()
    with pytest.raises(LogError, match="no NATS server answers"):
        JetStreamLog(f"nats://127.0.0.1:{server.port}/EVENTS", timeout_s=0.5)


@pytest.mark.parametrize("url", ["http://localhost/EVENTS", "nats://localhost", "nats://localhost/a.b"])
def test_an_address_that_is_none_is_a_wrong_setting(url):
    with pytest.raises(SettingsError, match="such as nats://localhost:4222/EVENTS"):
        JetStreamLog(url)


def test_without_the_library_the_error_says_what_to_install():
    program = (
        "import sys; sys.modules['nats'] = None; import importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name: None if name == 'nats' else find(name)\n"
        "from tamis.service.log.jetstream import JetStreamLog\n"
        "from tamis.service.errors import LogError\n"
        "try: JetStreamLog('nats://127.0.0.1:1/EVENTS')\n"
        "except LogError as error: print(error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'tamis[nats]'" in answer.stdout
