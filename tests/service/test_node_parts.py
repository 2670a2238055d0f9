"""The small parts of a node, each against its plain definition."""

from __future__ import annotations

import sys
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.service.catching_up import lowest_event, skipped
from tamis.service.deliveries import InFlight
from tamis.service.event_keys import EventKeys
from tamis.service.gate import Gate
from tamis.service.log.base import Block, Gap
from tamis.service.messages import SubscriberSettings
from tamis.service.positions import Position
from tamis.service.recent import Recent
from tamis.service.subscribers import Consumer, Replay, Subscriber


def subscriber(looked: int = 0, *replays: Replay) -> Subscriber:
    floor = Position.of(looked)
    made = Subscriber("ann", "ann", True, SubscriberSettings(), looked, InFlight(floor), passed=floor)
    made.replays = list(replays)
    return made


# -- The gate


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))), st.lists(st.tuples(st.booleans(), st.integers(0, 5))))
def test_a_gate_lets_out_what_both_disks_have_and_nothing_else(held, steps):
    gate: Gate = Gate()
    out = [each for number, (logged, kept) in enumerate(held) for each in gate.hold(number, logged, kept)]
    log = state = 0
    for is_log, through in steps:
        if is_log:
            log = max(log, through)
            out += gate.on_disk(through)
        else:
            state = max(state, through)
            out += gate.on_kept(through)
        expected = {number for number, (logged, kept) in enumerate(held) if logged <= log and kept <= state}
        assert set(out) == expected
        assert len(out) == len(expected)
        assert len(gate) == len(held) - len(expected)


def test_answers_that_wait_for_the_same_come_out_in_order():
    gate: Gate = Gate()
    for number in range(20):
        gate.hold(number, logged=3)
    assert gate.on_disk(3) == list(range(20))


def test_what_is_withdrawn_does_not_come_out():
    gate: Gate = Gate()
    for number in range(6):
        gate.hold(number, logged=number + 1)
    assert gate.withdraw(lambda number: number % 2 == 0) == [0, 2, 4]
    assert gate.on_disk(9) == [1, 3, 5]


# -- Recent blocks


def block(first: int, count: int = 1) -> Block:
    return Block(first, 0, (b"event",) * count, bytes(count))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 30))), st.integers(1, 400))
def test_recent_blocks_are_the_newest_and_those_that_are_not_on_disk(steps, most_bytes):
    recent, blocks, first, on_disk = Recent(most_bytes), [], 1, 0
    for count, gap, through in steps:
        blocks.append(block(first, count))
        recent.add(blocks[-1])
        first += count + gap
        on_disk = max(on_disk, min(through, blocks[-1].last))
        recent.let_go(on_disk)
        assert recent.last == blocks[-1].last
        kept = [each for each in blocks if each.last >= recent.first]
        assert recent.read(1, first) == kept
        assert all(each in kept for each in blocks if each.last > on_disk)
        assert recent.read(blocks[-1].first, first) == [blocks[-1]]
        gone = [each for each in kept[:-1] if each.last <= on_disk]
        memory = sum(sys.getsizeof(event) for each in kept for event in each.events)
        assert not gone or memory <= most_bytes


def test_a_block_that_is_let_go_is_no_longer_in_memory():
    recent, first = Recent(1), block(1)
    references = sys.getrefcount(first)
    recent.add(first)
    recent.add(block(2))
    assert sys.getrefcount(first) > references
    recent.let_go(1)
    assert sys.getrefcount(first) == references


def test_a_block_that_was_not_written_is_no_longer_recent():
    recent = Recent(1_000)
    for first in (1, 2, 3):
        recent.add(block(first))
    recent.remove(3)
    assert recent.last == 2
    recent.add(block(4))
    assert [each.first for each in recent.read(1, 9)] == [1, 2, 4]


# -- Keys


class PlainKeys:
    """What is promised of keys: at least the latest `most`, and those of the last seconds, up to a ceiling."""

    def __init__(self, most, least_s, ceiling):
        self.most, self.least_us, self.ceiling = most, least_s * 1_000_000, ceiling
        self.known = {}  # in the order in which they came: the position of a key, and when it came

    def must_know(self, now):
        latest = dict(list(self.known.items())[-self.most :])
        young = {key: (position, came) for key, (position, came) in self.known.items() if came >= now - self.least_us}
        return {key: position for key, (position, _) in (latest | young).items()}


@given(
    st.lists(st.tuples(st.sampled_from(["come", "come", "come", "fail"]), st.lists(st.integers(0, 30), max_size=6))),
    st.integers(1, 10) | st.sampled_from([200, 300]),
    st.integers(0, 5),
    st.integers(10, 40),
    st.sampled_from([0, 1_000_000]),
)
def test_the_latest_keys_are_remembered_and_not_many_more(steps, most, least_s, ceiling, pause_us):
    keys, plain, now, position = EventKeys(most, least_s, ceiling), PlainKeys(most, least_s, ceiling), 0, 0
    for kind, group in steps:
        names = [f"{number}\ud800" if number % 7 == 0 else str(number) for number in dict.fromkeys(group)]
        if kind == "fail":
            keys.forget(names)
            for name in names:
                plain.known.pop(name, None)
        else:
            now += pause_us
            new = []
            for name in names:
                if keys.get(name) is None:
                    position += 2
                    new.append((name, position))
                    plain.known.pop(name, None)
                    plain.known[name] = (position, now)
            keys.remember(new, now)
        known = {name: at for name in plain.known if (at := keys.get(name)) is not None}
        assert all(plain.known[name][0] == at for name, at in known.items())
        assert len(keys) == len(known) <= ceiling
        if position // 2 <= ceiling:
            assert plain.must_know(now).items() <= known.items()
        assert sum(group.count for group in keys._groups) == len(keys)
        assert len(known) <= max(most, len(plain.must_know(now))) + most // 128 + 1 + len(group)


def test_keys_of_what_was_not_written_are_forgotten_and_the_ceiling_is_kept():
    keys = EventKeys(most=100, least_s=1e9, ceiling=3)
    keys.remember([("a", 1), ("b", 2)], 0)
    keys.forget(["a", "c"])
    assert (keys.get("a"), keys.get("b"), len(keys)) == (None, 2, 1)
    for number in range(10):
        keys.remember([(str(number), 3 + number)], 1)
        assert len(keys) <= 3


def test_keys_that_are_never_written_leave_nothing_behind_however_often_they_come():
    keys = EventKeys(most=100, least_s=1e9, ceiling=1_000)
    keys.remember([("kept", 1)], 0)
    for attempt in range(100):
        group = [(f"{attempt}-{number}", 2 + number) for number in range(100)]
        keys.remember(group, attempt)
        keys.forget([key for key, _ in group])
    assert (keys.get("kept"), len(keys), len(keys._pages)) == (1, 1, 1)


def test_a_key_takes_some_fifty_bytes_however_many_groups_they_come_in():
    tracemalloc.start()
    keys = EventKeys()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(100_000):
        keys.remember([(f"/shop/of/a/long/name\n{number}-{number}", number)], number)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < 50 * len(keys)


# -- The cursor


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), max_size=4, unique_by=lambda each: each[1]),
    st.integers(0, 12),
    st.integers(1, 5),
)
def test_a_cursor_visits_events_and_replays_in_the_order_of_their_positions(asked, start, step):
    head = 12
    replays = [
        Replay({"x": 1}, min(first, since or 1), since, 0) for first, since in sorted(asked, key=lambda each: each[1])
    ]
    replays = [replay for replay in replays if replay.since >= start]
    for replay in replays:
        replay.looked = replay.first - 1
    expected = [Position.of(event) for event in range(start + 1, head + 1)]
    expected += [Position(each.since + 1, event) for each in replays for event in range(each.first, each.since + 1)]
    cursor, visited = subscriber(start, *replays), []
    while cursor.replays or cursor.looked < head:
        first, until = cursor.next_event, cursor.reads_until(head)
        replay = cursor.replay
        until = min(until, first + step - 1)
        visited += [
            Position.of(event) if replay is None else replay.position(event) for event in range(first, until + 1)
        ]
        cursor.advance(max(until, first - 1))
    assert visited == sorted(expected)


def test_a_cursor_that_is_set_behind_a_floor_goes_on_in_the_midst_of_a_replay():
    cursor = subscriber(10, Replay({"x": 1}, 3, 10, 2))
    cursor.settle(Position(11, 6))
    assert (cursor.looked, cursor.next_event) == (10, 7)
    cursor.settle(Position(11, 10))
    assert (cursor.replays, len(cursor.ending), cursor.next_event) == ([], 1, 11)
    cursor.settle(Position.of(4))
    assert (cursor.next_event, len(cursor.replays)) == (5, 1)


# -- What the log no longer has


def test_what_retention_took_is_told_and_passed_over():
    cursor = subscriber(2)
    (loss,) = skipped(cursor, 6, ())
    assert (loss.gap, loss.reason) == (Gap(3, 5), "retention")
    assert cursor.next_event == 6
    assert skipped(cursor, 6, ()) == []
    assert lowest_event([cursor, subscriber(9)]) == 6


def test_what_a_repair_left_out_is_told_when_the_cursor_comes_there():
    cursor = subscriber(4)
    gaps = (Gap(2, 3), Gap(5, 7), Gap(8, 8))
    assert [(loss.gap, loss.reason) for loss in skipped(cursor, 1, gaps)] == [
        (Gap(5, 7), "damage"),
        (Gap(8, 8), "damage"),
    ]
    assert cursor.next_event == 9


def test_a_replay_is_told_separately_of_what_is_lost_for_it():
    cursor = subscriber(4, Replay({"x": 1}, 2, 6, 1))
    losses = skipped(cursor, 6, ())
    assert [loss.gap for loss in losses] == [Gap(5, 5)]
    cursor.advance(6)
    assert [loss.gap for loss in skipped(cursor, 6, ())] == [Gap(2, 5)]
    assert cursor.next_event == 6
    assert cursor.replay is not None


def test_a_loss_is_kept_from_the_floor_until_something_behind_it_is_done():
    cursor = subscriber(2)
    skipped(cursor, 6, ())
    assert cursor.floor(9) == Position.of(5)
    assert cursor.kept_floor(9) == Position.of(2)
    cursor.confirm_losses(Position.of(4))
    assert cursor.kept_floor(9) == Position.of(2)
    cursor.confirm_losses(Position.of(6))
    assert cursor.kept_floor(9) == Position.of(5)


def test_a_large_delivery_goes_out_if_nothing_else_is_on_its_way():
    consumer = Consumer(1, True, 2, 10)
    consumer.use(1_000)
    assert not consumer.has_credit
    consumer.free(1, 1_000)
    assert consumer.has_credit
