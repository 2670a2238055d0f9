"""Ranked subscriptions, sequences and changes of a node are what their definitions tell of its log."""

from __future__ import annotations

import pytest

from tamis.service import standing
from tamis.service.errors import StorageFullError
from tamis.service.filters import wanted_of
from tamis.service.log.base import Block
from tamis.service.messages import Acknowledge, Attach, Delivery, Subscribe
from tamis.service.node import Node
from tamis.service.positions import Position
from tamis.service.standing import TIME, NeededEvent, Resume, StandingHost
from tamis.service.subscribers import Subscriber, Version, looked_of
from tamis.service.windows import WindowLimits
from tamis.standing import parse_subscription
from tests.lengths import so_many
from tests.service.drive import Drive, incoming
from tests.service.remembering import Remembering
from tests.service.remembering_together import Together

QUICK = 24
EACH = 6
SLOW = so_many(5_000)
PART = 100


@pytest.mark.parametrize("first", range(0, QUICK, EACH))
def test_what_is_told_is_a_function_of_the_log_whatever_happens(first):
    for seed in range(first, first + EACH):
        Remembering(seed).run()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, QUICK + SLOW, PART))
def test_what_is_told_is_a_function_of_the_log_whatever_happens_often(first):
    for seed in range(first, min(first + PART, QUICK + SLOW)):
        Remembering(seed).run()


def test_what_several_nodes_on_one_log_tell_is_a_function_of_it():
    worlds = [Together(seed, steps=150).run() for seed in (1, 3, 4, 5)]
    nodes = [node for world in worlds for node in world.nodes]
    assert sum(node.crashes for node in nodes) >= 2
    assert sum(len(node.said) for node in nodes) > 100
    assert all(any(is_time(block) for block in world.nodes[0].blocks.values()) for world in worlds)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(8, 8 + SLOW // 4, PART))
def test_what_several_nodes_on_one_log_tell_is_a_function_of_it_often(first):
    for seed in range(first, min(first + PART, 8 + SLOW // 4)):
        Together(seed, count=2 + seed % 2).run()


def test_a_node_does_not_begin_behind_a_block_that_is_not_done():
    # Positions of a shared log; what the block tells is decided at 127, where its positions end.
    host = StandingHost(Resume(0), None, None, 0.0, block_positions=64)
    version = Version("it", 1, "", *[parse_subscription("CHANGE TO a > 5")] * 2, since=0)
    block = Block(64, 1_000_000, (b"{}",), bytes(1))
    (due,) = host.take(block, [NeededEvent(64, {"a": 7}, b"{}", ["it"])], {1: version}, 1)
    assert due.event == 64
    assert host.resume_behind(looked_of(Position(127, 64)), {1: version}) is None
    assert host.resume_behind(looked_of(Position.of(127)), {1: version}).at == 127


def test_the_worlds_have_what_they_are_for():
    worlds = [Remembering(seed).run() for seed in range(12)]
    rows = [rows for world in worlds for _, told in world.said for rows in told.values()]
    assert sum(world.crashes for world in worlds) >= 2
    assert any(row is not None and row[2] is True for each in rows for row in each)
    assert any(row is not None and row[2] is False for each in rows for row in each)
    assert any(row is not None and len(row[0]) == 2 for each in rows for row in each)
    assert any(position.event < position.head for world in worlds for position, _ in world.said)
    assert any(is_time(block) for world in worlds for block in world.blocks.values())
    assert any(world.state.rows.resumes for world in worlds)
    assert any(world.log.first > 1 for world in worlds)


def is_time(block) -> bool:
    return block.flags[0] == TIME


def forgets_what_must_be_kept(patch):
    whole = StandingHost.__init__
    patch.setattr(StandingHost, "__init__", lambda self, resume, *rest: whole(self, Resume(resume.at), *rest))


KEPT = {
    "CHANGE TO a > 5": ([{"a": 7}], {"a": 8}, 0),
    "CHANGE OF a > 5 PER b": ([{"a": 7, "b": "x"}, {"a": 7, "b": "y"}], {"a": 2, "b": "y"}, 1),
    "SEQUENCE a = 1 THEN a = 2 WITHIN 1 HOUR TAKING EACH ONCE": ([{"a": 1}, {"a": 2}, {"a": 1}], {"a": 2}, 1),
}


def told_after_a_crash(text: str) -> list:
    """What is told of a last event, when the node has crashed and the log has only what it said that it needs."""
    drive = Drive(windows=WindowLimits(mark_every_s=0.5), recent_bytes=1)
    drive.hear(Subscribe(1, "ann", {"it": wanted_of(text)}))
    drive.hear(Attach(2, "ann"), session=5)
    before, last, _ = KEPT[text]
    for number, data in enumerate([*before, *({"c": noise} for noise in range(10))]):
        drive.tick()
        drive.publish(incoming(number, **data))
        positions = tuple(item.position for item in drive.deliveries(5))
        drive.hear(Acknowledge(0, "ann", positions), session=5)
    drive.tick(31.0)  # so often the floors of those are kept who had nothing to acknowledge
    drive.log.drop(drive.node.needed)
    assert drive.log.first > len(before), "nothing of the log was let go of that the state was found in"
    drive.crash()
    drive.hear(Attach(2, "ann"), session=6)
    drive.work()
    assert drive.deliveries(6) == []
    drive.publish(incoming(99, **last))
    return drive.deliveries(6)


@pytest.mark.parametrize("text", KEPT)
def test_a_state_that_no_window_bounds_is_kept_when_the_log_is_let_go(text):
    assert len(told_after_a_crash(text)) == KEPT[text][2]


@pytest.mark.parametrize("text", KEPT)
def test_a_node_that_forgets_such_a_state_is_found(text, monkeypatch):
    forgets_what_must_be_kept(monkeypatch)
    assert len(told_after_a_crash(text)) != KEPT[text][2]


def told_behind_a_time_that_is_not_written() -> list:
    """What is told where the block that says what time it is finds no room, and events after it do."""
    drive = Drive(windows=WindowLimits(mark_every_s=0.5))
    drive.hear(
        Subscribe(
            1, "ann", {"it": wanted_of("SEQUENCE a = 1 THEN NOT a = 2 WITHIN 3 SECONDS"), "every": wanted_of("a > 0")}
        )
    )
    drive.hear(Attach(2, "ann"), session=5)
    drive.publish(incoming(1, a=1))
    drive.is_log_slow = True
    drive.tick(4.0)
    (time,) = drive.log.writing
    assert is_time(time)
    drive.publish(incoming(2, a=3), incoming(3, a=4))
    drive.log.writing.popleft()
    drive.do(drive.node.not_written(time, StorageFullError("no room"), drive.now))
    drive.is_log_slow = False
    drive.sync()
    drive.work()
    return drive.deliveries(5)


def test_what_is_due_comes_with_the_next_block_if_that_which_says_the_time_is_not_written():
    told = told_behind_a_time_that_is_not_written()
    assert [(item.position, item.keys, item.is_again) for item in told] == [
        (Position(1, 1), ("every",), False),
        (Position(3, 3), ("every",), False),
        (Position(4, 1), ("it",), False),
        (Position(4, 4), ("every",), False),
    ]


# -- Nodes that are broken on purpose


def begins_with_too_little_of_the_log(patch):
    patch.setattr(standing, "span_of", lambda subscription: 0.0)
    patch.setattr(standing, "events_of", lambda subscription: 0)


def keeps_what_was_not_written(patch):
    patch.setattr(Node, "_begin_anew", lambda self, subscriber, position: None)


def decides_later_blocks_only_once(patch):
    def begin_anew(self, subscriber, position):
        self._leave_live(subscriber)
        subscriber.host = None
        subscriber.looked = min(subscriber.looked, subscriber.stateful_from)

    patch.setattr(Node, "_begin_anew", begin_anew)


def delivers_before_the_block_is_on_disk(patch):
    patch.setattr(Delivery, "decided_at", property(lambda self: self.position.event))


def lets_go_of_what_is_still_needed_of_the_log(patch):
    patch.setattr(Subscriber, "stateful_from", property(lambda self: self.looked))


def goes_on_with_what_was_replaced(patch):
    patch.setattr(StandingHost, "_drop", lambda self, number: None)


def lets_time_pass_before_others_know_of_it(patch):
    whole = Node._ask_for_time

    def eagerly(self, now_us):
        for subscriber in self._remembering.values():
            subscriber.host.pass_time(now_us)
        return whole(self, now_us)

    patch.setattr(Node, "_ask_for_time", eagerly)


def takes_what_came_twice(patch):
    patch.setattr(Node, "remember", lambda self, blocks: None)


@pytest.mark.parametrize("mutant", [lets_time_pass_before_others_know_of_it, takes_what_came_twice])
def test_a_node_of_several_that_is_broken_on_purpose_is_found(mutant, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        Together(1, steps=100).run()


MUTANTS = {
    begins_with_too_little_of_the_log: 29,
    keeps_what_was_not_written: 7,
    decides_later_blocks_only_once: 1253,
    delivers_before_the_block_is_on_disk: 5,
    lets_go_of_what_is_still_needed_of_the_log: 0,
    goes_on_with_what_was_replaced: 0,
}
"""With a seed by which each is known to be found."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_node_that_is_broken_on_purpose_is_found(mutant, monkeypatch):
    mutant(monkeypatch)
    for seed in range(MUTANTS[mutant], MUTANTS[mutant] + 20):
        try:
            Remembering(seed).run()
        except AssertionError:
            return
    pytest.fail("nobody noticed")
