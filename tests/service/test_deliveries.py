"""Deliveries against a plain model: sets of what was found, is with somebody, waits, and is done."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tamis.service.deliveries import InFlight
from tamis.service.messages import Delivery
from tamis.service.positions import START, Position


def delivery(number: int, *keys: str) -> Delivery:
    return Delivery(Position.of(number), keys or ("x",), b"body")


class Model(RuleBasedStateMachine):
    """Every position is in one place: found, with a session, waiting, or done."""

    def __init__(self) -> None:
        super().__init__()
        self.whole = InFlight()
        self.found: list[int] = []
        self.held: dict[int, int] = {}
        self.waiting: dict[int, float] = {}
        self.done: set[int] = set()
        self.sent: set[int] = set()
        self.last = 0
        self.now = 0.0

    @rule(step=st.integers(1, 3))
    def find(self, step):
        self.last += step
        is_new = self.whole.offer(delivery(self.last))
        assert is_new == (self.last not in self.done)
        if is_new:
            self.found.append(self.last)

    @rule(session=st.sampled_from([1, 2]))
    def send(self, session):
        chosen = self.whole.next(self.last, self.now)
        due = sorted((due_s, number) for number, due_s in self.waiting.items() if due_s <= self.now)
        expected = due[0][1] if due else self.found[0] if self.found else None
        assert (None if chosen is None else chosen.delivery.position.event) == expected
        if chosen is None or expected is None:
            return
        sent = self.whole.send(chosen, session, self.now + 10)
        assert sent.is_again == (expected in self.sent)
        self.waiting.pop(expected, None)
        self.found = [number for number in self.found if number != expected]
        self.held[expected] = session
        self.sent.add(expected)

    @rule(number=st.integers(1, 40))
    def acknowledge(self, number):
        if number > self.last:
            return
        sent = self.whole.done(Position.of(number))
        assert (0 if sent is None else sent.session) == self.held.pop(number, 0)
        self.waiting.pop(number, None)
        self.found = [each for each in self.found if each != number]
        self.done.add(number)

    @rule(number=st.integers(1, 40), delay_s=st.sampled_from([0.0, 5.0]))
    def come_again(self, number, delay_s):
        moved = self.whole.again(Position.of(number), self.now + delay_s, is_ordered=False)
        assert bool(moved) == (number in self.held)
        if moved:
            del self.held[number]
            self.waiting[number] = self.now + delay_s

    @rule(session=st.sampled_from([1, 2]))
    def give_back(self, session):
        self.whole.give_back(session)
        for number in [number for number, holder in self.held.items() if holder == session]:
            del self.held[number]
            self.waiting[number] = 0.0

    @rule(seconds=st.sampled_from([1.0, 6.0, 20.0]))
    def wait(self, seconds):
        self.now += seconds

    @precondition(lambda self: not self.held)
    @rule()
    def rewind(self):
        floor = self.whole.floor(Position.of(self.last))
        self.whole.rewind(floor)
        kept = InFlight(floor, self.whole.islands(floor))
        for number in range(1, self.last + 1):  # what is not done is found again, by this one and after a restart
            is_left = number in self.found or number in self.waiting
            assert kept.offer(delivery(number)) or not is_left
            if self.whole.offer(delivery(number)) and not is_left:
                self.whole.done(Position.of(number))
                self.done.add(number)
        self.found = sorted({*self.found, *self.waiting})
        self.waiting = {}

    @invariant()
    def what_is_due_is_noticed(self):
        is_due = bool(self.whole.overdue(self.now)) or any(due_s <= self.now for due_s in self.waiting.values())
        assert self.whole.is_due(self.now) or not is_due

    @invariant()
    def counts_agree(self):
        assert self.whole.queue_count == len(self.found)
        assert self.whole.queue_bytes == 4 * len(self.found)
        assert self.whole.unacknowledged_count == len(self.held) + len(self.waiting)

    @invariant()
    def the_floor_is_below_everything_that_is_not_done(self):
        floor = self.whole.floor(Position.of(self.last))
        left = {*self.found, *self.held, *self.waiting}
        assert all(Position.of(number) > floor for number in left)
        if not left:
            assert floor == Position.of(self.last)


TestDeliveries = Model.TestCase
TestDeliveries.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def sent(deliveries: InFlight, session: int, now: float = 0.0, after: Position = START) -> int:
    chosen = deliveries.next(1_000, now)
    assert chosen is not None
    return deliveries.send(chosen, session, now + 30, after).position.event


def test_a_later_time_to_come_again_counts_and_not_an_earlier_one():
    deliveries = InFlight()
    deliveries.offer(delivery(1))
    sent(deliveries, 1)
    deliveries.again(Position.of(1), 5.0, False)
    assert deliveries.next(10, 4.0) is None
    sent(deliveries, 1, 6.0)
    deliveries.again(Position.of(1), 100.0, False)
    assert deliveries.next(10, 50.0) is None
    assert deliveries.next(10, 100.0) is not None


def test_of_an_ordered_subscriber_everything_behind_comes_again_and_nothing_new_before_it():
    deliveries = InFlight()
    for number in (1, 2, 3, 4):
        deliveries.offer(delivery(number))
    assert [sent(deliveries, 1) for _ in range(3)] == [1, 2, 3]
    deliveries.again(Position.of(2), 5.0, True)
    assert deliveries.next(10, 4.0) is None
    assert [sent(deliveries, 1, 5.0) for _ in range(3)] == [2, 3, 4]


def test_up_to_a_position_speaks_of_what_the_session_was_sent_before_it():
    deliveries = InFlight()
    for number in (1, 2, 3):
        deliveries.offer(delivery(number))
    sent(deliveries, 1)  # 1, to the first, who goes
    sent(deliveries, 2)
    sent(deliveries, 2, after=Position.of(2))
    deliveries.give_back(1)
    sent(deliveries, 2, after=Position.of(3))  # 1 again, which the second had not seen when it says:
    assert deliveries.sent_to(2, Position.of(3)) == [Position.of(2), Position.of(3)]
    assert deliveries.sent_to(2, Position.of(1)) == [Position.of(1)]
    assert deliveries.sent_to(1, Position.of(3)) == []


def test_what_is_found_for_a_subscription_that_ends_is_dropped_and_its_floor_goes_on():
    deliveries = InFlight()
    deliveries.offer(delivery(1, "x"))
    deliveries.offer(delivery(2, "x", "y"))
    deliveries.offer(delivery(3, "x"))
    sent(deliveries, 7)
    sent(deliveries, 7)
    ended = deliveries.drop_key("x")
    assert [(each.session, each.delivery.position.event) for each in ended] == [(7, 1)]
    assert deliveries.queue_count == 0
    deliveries.give_back(7)
    again = deliveries.next(10, 0.0)
    assert again is not None
    assert again.delivery.keys == ("y",)
    deliveries.done(Position.of(2))
    assert deliveries.floor(Position.of(3)) == Position.of(3)


def test_a_dead_letter_that_is_to_come_anyway_is_not_revived_beside():
    deliveries = InFlight()
    deliveries.offer(delivery(1))
    deliveries.revive(delivery(1))
    assert not deliveries.is_revived(Position.of(1))
    sent(deliveries, 1)
    deliveries.bury(Position.of(1))
    deliveries.revive(delivery(1))
    assert deliveries.is_revived(Position.of(1))
    sent(deliveries, 1)
    assert deliveries.done(Position.of(1)) is not None
    assert deliveries.unacknowledged_count == 0


def test_what_is_not_on_its_way_is_not_buried():
    deliveries = InFlight()
    assert deliveries.bury(Position.of(1)) is None
    assert deliveries.offer(delivery(1))


@pytest.mark.parametrize("positions", [[(1, 1), (2, 2)], [(5, 2), (5, 9), (6, 1)]])
def test_what_a_passing_subscriber_loses_is_named_from_its_lowest_to_its_highest_event(positions):
    deliveries = InFlight()
    for position in positions:
        deliveries.offer(Delivery(Position(*position), ("x",), b""))
    events = [event for _, event in positions]
    assert deliveries.drop_queue() == (min(events), max(events))
    assert deliveries.drop_queue() is None
