"""Ranked subscriptions, sequences and changes of a node are what their definitions tell of its log."""

from __future__ import annotations

import pytest

from tamis.service import standing
from tamis.service.filters import wanted_of
from tamis.service.messages import Acknowledge, Attach, Delivery, Subscribe
from tamis.service.node import Node
from tamis.service.standing import TIME, Resume, StandingHost
from tamis.service.subscribers import Subscriber
from tamis.service.windows import WindowLimits
from tests.lengths import so_many
from tests.service.drive import Drive, incoming
from tests.service.remembering import Remembering

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


# -- Nodes that are broken on purpose


def begins_with_too_little_of_the_log(patch):
    patch.setattr(standing, "span_of", lambda subscription: 0.0)
    patch.setattr(standing, "events_of", lambda subscription: 0)


def keeps_what_was_not_written(patch):
    patch.setattr(Node, "_begin_anew", lambda self, subscriber: None)


def delivers_before_the_block_is_on_disk(patch):
    patch.setattr(Delivery, "decided_at", property(lambda self: self.position.event))


def lets_go_of_what_is_still_needed_of_the_log(patch):
    patch.setattr(Subscriber, "stateful_from", property(lambda self: self.looked))


def goes_on_with_what_was_replaced(patch):
    patch.setattr(StandingHost, "_drop", lambda self, number: None)


MUTANTS = {
    begins_with_too_little_of_the_log: 29,
    keeps_what_was_not_written: 7,
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
