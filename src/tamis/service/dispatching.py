"""Who gets which delivery, and when again? Consumers, credit and acknowledgements.

A delivery goes to a consumer that has credit; it comes again when it was not done in time, when its consumer asks for
it, or when its consumer is gone. What was delivered too often, or is never to come, becomes a dead letter. A
subscriber whom nobody consumes is rewound to its floor and takes no memory.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tamis.service.changes import Buried, Change, Exhumed, FloorKept
from tamis.service.errors import BadRequestError, ConflictError, TooLargeError
from tamis.service.log.base import Gap
from tamis.service.messages import (
    Acknowledge,
    Answer,
    Attach,
    Deliveries,
    Delivery,
    Ended,
    Lost,
    Output,
    Revive,
    Say,
    Session,
    Take,
    Taken,
    Wrote,
)
from tamis.service.positions import START, Position
from tamis.service.subscribers import Consumer, Poll, Subscriber

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.service.deliveries import Sent
    from tamis.service.gate import Gate

POLL_CREDIT = 1_000
POLL_CREDIT_BYTES = 8_000_000
LONGEST_BACKOFF_S = 3_600.0
MOST_ISLANDS = 100_000
"""So many acknowledgements out of order are kept for a subscriber."""


class Dispatcher:
    """Sends what is found to whoever takes it."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.dirty: dict[str, Subscriber] = {}
        """Whose floor may have moved since it was kept."""
        self._buried: list[Change] = []
        """Dead letters that are to be kept: what was due to be sent once too often."""
        self.told: Counter[str] = Counter()
        """What was told by subscriptions that remember earlier events, by their kind."""
        self.counts = {"sent": 0, "again": 0, "done": 0, "dead": 0, "lost": 0}

    # -- Consumers

    def attach(self, subscriber: Subscriber, request: Attach, session: Session, head: int) -> list[Output]:
        """Let a session consume; return what others are told of that."""
        outputs: list[Output] = []
        if request.done_through is not None:
            self._check(request.done_through, head)
        if not request.acknowledges:
            if subscriber.polls or any(each.acknowledges for each in subscriber.consumers.values()):
                raise ConflictError(
                    f"the subscriber {subscriber.name!r} has consumers that acknowledge",
                    "the same, or another subscriber",
                )
            for number in [number for number in subscriber.consumers if number != session.number]:
                outputs.append(Say(number, Ended(subscriber.name, "another connection has taken its place")))
                self.detach(subscriber, number)
        elif not subscriber.acknowledges:
            raise ConflictError(
                f"the subscriber {subscriber.name!r} has a consumer that does not acknowledge", "another subscriber"
            )
        if request.done_through is not None and not subscriber.is_attended:  # of what others have it does not speak
            self.done_through(subscriber, request.done_through)
        consumer = subscriber.consumers.setdefault(session.number, Consumer(session.number, request.acknowledges, 1, 1))
        consumer.credit, consumer.credit_bytes = max(1, request.credit), max(1, request.credit_bytes)
        consumer.principal, consumer.ends_when_slow = session.principal, request.ends_when_slow
        return outputs

    def poll(self, subscriber: Subscriber, request: Take, session: Session, now: float) -> None:
        """Let a long poll wait for events."""
        if not subscriber.acknowledges:
            raise ConflictError(
                f"the subscriber {subscriber.name!r} has a consumer that does not acknowledge", "another subscriber"
            )
        if request.most < 1 or not request.wait_s >= 0:
            raise BadRequestError(
                f"a poll for {request.most} events within {request.wait_s} s", "at least 1 event, and 0 seconds or more"
            )
        if subscriber.polled is None:
            subscriber.polled = Consumer(0, True, POLL_CREDIT, POLL_CREDIT_BYTES)
        subscriber.polls.append(Poll(session.number, request, now + request.wait_s))

    def detach(self, subscriber: Subscriber, session: int) -> None:
        """A session is gone: what it had not done goes to others, or is found again when somebody comes."""
        floor = subscriber.floor(self._gate.logged)  # while it is known whether the consumer acknowledges
        subscriber.polls = [poll for poll in subscriber.polls if poll.session != session]
        consumer = subscriber.consumers.pop(session, None)
        if consumer is not None:
            subscriber.deliveries.give_back(session)
        if not subscriber.is_attended and subscriber.is_durable:
            self.rewind(subscriber, floor)

    def rewind(self, subscriber: Subscriber, floor: Position) -> None:
        """Forget what is on its way to a subscriber that nobody consumes."""
        subscriber.deliveries.rewind(floor)
        subscriber.settle(floor)
        self.dirty[subscriber.name] = subscriber

    # -- Sending

    def pump(self, subscriber: Subscriber, now: float) -> list[Output]:
        """Return what goes out to a subscriber's consumers now."""
        sent: dict[int, list[Delivery]] = {}
        deliveries = subscriber.deliveries
        while (
            subscriber.consumers
            and not deliveries.has_nothing_to_send
            and (chosen := self._next(subscriber, now)) is not None
        ):
            consumer = subscriber.consumer_with_credit()
            if consumer is None:
                break
            sent.setdefault(consumer.session, []).append(self._sent(subscriber, chosen, consumer, now))
        outputs: list[Output] = [
            Say(session, Deliveries(subscriber.name, tuple(items))) for session, items in sent.items()
        ]
        while subscriber.polls and (chosen := self._next(subscriber, now)) is not None:
            poll, polled = subscriber.polls[0], subscriber.polled
            assert polled is not None
            items: list[Delivery] = []
            while chosen is not None and len(items) < poll.take.most and polled.has_credit:
                items.append(self._sent(subscriber, chosen, polled, now, -poll.session))
                chosen = self._next(subscriber, now)
            if not items:
                break
            outputs.append(Say(poll.session, _taken(subscriber, poll, items)))
            subscriber.polls.pop(0)
        return outputs

    def _next(self, subscriber: Subscriber, now: float) -> Sent | None:
        """Return what is to be sent now; what was sent often enough becomes a dead letter instead."""
        while (chosen := subscriber.deliveries.next(self._gate.logged, now)) is not None:
            if not 0 < subscriber.settings.attempts <= chosen.attempts:
                return chosen
            position, attempts = chosen.delivery.position, chosen.attempts
            self._buried += self._bury(subscriber, position, f"delivered {attempts} times and not done", now)
            self.dirty[subscriber.name] = subscriber
        return None

    def take_buried(self) -> list[Change]:
        """Return the dead letters that sending has made and that are to be kept."""
        buried, self._buried = self._buried, []
        return buried

    def _sent(self, subscriber: Subscriber, chosen: Sent, consumer: Consumer, now: float, session: int = 0) -> Delivery:
        position, after = chosen.delivery.position, consumer.sent_through
        consumer.sent_through = max(position, after)
        consumer.use(len(chosen.delivery.body))
        self.counts["sent"] += 1
        if chosen.delivery.told:
            self.told.update(each.kind for each in chosen.delivery.told)
        if not consumer.acknowledges:
            return subscriber.deliveries.stream(chosen)
        due_s = now + subscriber.settings.wait_s
        return subscriber.deliveries.send(chosen, session or consumer.session, due_s, after)

    # -- What consumers say

    def wrote(self, subscriber: Subscriber, request: Wrote, session: int) -> None:
        """Count what was written to a consumer that does not acknowledge."""
        consumer = subscriber.consumers.get(session)
        if consumer is not None and not consumer.acknowledges:
            consumer.free(request.count, request.size_bytes)

    def acknowledge(
        self, subscriber: Subscriber, request: Acknowledge, session: int, head: int, now: float
    ) -> list[Change]:
        """Take what a consumer says of deliveries; return what is to be kept."""
        named = (*request.done, *request.again, *request.never, request.done_through or START, request.floor or START)
        for position in named:
            self._check(position, head)
        if request.floor is not None and subscriber.is_attended:
            raise ConflictError(
                f"deliveries of {subscriber.name!r} are under way, so it has no floor that somebody else could set",
                "done or done_through, or a subscriber that nobody takes deliveries of",
            )
        if subscriber.deliveries.island_count + len(request.done) > MOST_ISLANDS:
            raise TooLargeError(
                f"more than {MOST_ISLANDS:,} deliveries of {subscriber.name!r} are done out of order",
                "older ones first",
            )
        changes: list[Change] = []
        if request.floor is not None:
            self.done_through(subscriber, request.floor)
        if request.done_through is not None:
            if not subscriber.acknowledges:  # then there is one consumer, which speaks of all
                self.done_through(subscriber, request.done_through)
            else:  # of what went to others, or in another answer to a long poll, it does not speak
                deliveries = subscriber.deliveries
                owner = session if session in subscriber.consumers else deliveries.session_of(request.done_through)
                for position in deliveries.sent_to(owner, request.done_through):
                    changes += self._done(subscriber, position)
        for position in request.done:
            changes += self._done(subscriber, position)
        for position in request.never:
            changes += self._bury(subscriber, position, request.reason or "refused by its consumer", now)
        for position in request.again:
            changes += self._again(subscriber, position, max(0.0, request.in_s), now)
        self.dirty[subscriber.name] = subscriber
        return changes

    def _check(self, position: Position, head: int) -> None:
        """Raise an error for a position that cannot have been delivered: a replay may be ahead of the disk by one."""
        if position.event > self._gate.logged or position.head > head + 1:
            raise BadRequestError(
                f"the position {position.head}.{position.event} is not in the log yet", "one that was delivered"
            )

    def _done(self, subscriber: Subscriber, position: Position) -> list[Change]:
        is_revived = subscriber.deliveries.is_revived(position)
        sent = subscriber.deliveries.done(position)
        subscriber.free(sent)
        if sent is not None and not is_revived:
            subscriber.confirm_losses(position)
        self.counts["done"] += 1
        if not is_revived:
            return []
        subscriber.dead_count = max(0, subscriber.dead_count - 1)
        return [Exhumed(subscriber.name, position)]

    def done_through(self, subscriber: Subscriber, position: Position) -> None:
        """Take everything up to a position as done, of whomever it was sent to."""
        ended = subscriber.deliveries.done_through(position)
        self.counts["done"] += len(ended)
        for sent in ended:
            subscriber.free(sent)
        subscriber.confirm_losses(position)
        if not subscriber.is_live and position > subscriber.passed:
            subscriber.settle(position)
        self.dirty[subscriber.name] = subscriber

    def _again(self, subscriber: Subscriber, position: Position, in_s: float, now: float) -> list[Change]:
        """Let a delivery come again after a pause: what its consumer asked for, or the subscriber's backoff."""
        attempts = subscriber.deliveries.attempts_of(position)
        if not attempts:
            return []
        if 0 < subscriber.settings.attempts <= attempts:
            return self._bury(subscriber, position, f"delivered {attempts} times and not done", now)
        doubled = min(attempts - 1, 30)  # beyond that, any pause is the longest
        due_s = now + (in_s or min(subscriber.settings.backoff_s * 2**doubled, LONGEST_BACKOFF_S))
        for sent in subscriber.deliveries.again(position, due_s, subscriber.settings.is_ordered):
            subscriber.free(sent)
            self.counts["again"] += 1
        return []

    def _bury(self, subscriber: Subscriber, position: Position, reason: str, now: float) -> list[Change]:
        is_revived = subscriber.deliveries.is_revived(position)
        sent = subscriber.deliveries.bury(position)
        if sent is None:
            return []
        subscriber.free(sent)
        self.counts["dead"] += 1
        if not subscriber.is_durable:  # nobody could ask for it
            return []
        subscriber.dead_count += not is_revived
        delivery = sent.delivery
        return [
            Buried(
                subscriber.name, position, delivery.keys, delivery.body, reason, sent.attempts, int(now * 1e6),
                delivery.told,
            )
        ]  # fmt: skip

    def revive(self, subscriber: Subscriber, request: Revive) -> None:
        """Deliver dead letters once more; they stay dead letters until they are done."""
        if not subscriber.is_attended:
            raise ConflictError(
                f"nobody consumes {subscriber.name!r}", "a consumer that is connected, who gets them at once"
            )
        for letter in request.letters:
            if not subscriber.deliveries.is_revived(letter.position):
                subscriber.deliveries.revive(letter)

    # -- Time

    def tick(self, subscriber: Subscriber, now: float) -> tuple[list[Output], list[Change]]:
        """Do what is due for a subscriber: polls end, deliveries come again."""
        outputs: list[Output] = []
        changes: list[Change] = []
        for position in subscriber.deliveries.overdue(now):
            changes += self._again(subscriber, position, 0.0, now)
        outputs += self.pump(subscriber, now)
        for poll in [poll for poll in subscriber.polls if poll.ends_s <= now]:
            subscriber.polls.remove(poll)
            outputs.append(Say(poll.session, _taken(subscriber, poll, ())))
        if changes:
            self.dirty[subscriber.name] = subscriber
        return outputs, changes

    def floors(self) -> list[Change]:
        """Return the floors that have moved, and forget that they have."""
        changes: list[Change] = []
        for name, subscriber in self.dirty.items():
            if not subscriber.is_durable:
                continue
            floor = subscriber.kept_floor(self._gate.logged)
            islands = subscriber.deliveries.islands(floor)
            facts = floor, len(islands), subscriber.seen_us
            if facts != subscriber.saved:
                subscriber.saved = facts
                changes.append(FloorKept(name, floor, islands, subscriber.seen_us))
        self.dirty.clear()
        return changes

    def lose(self, subscriber: Subscriber) -> list[Output]:
        """Drop what a passing subscriber was too slow for, and tell it; whoever asked for that is closed."""
        events = subscriber.deliveries.drop_queue()
        if events is None:
            return []
        self.counts["lost"] += 1
        ended = Ended(subscriber.name, "it was too slow, and asked to be closed if so")
        closed = [Say(each.session, ended) for each in subscriber.consumers.values() if each.ends_when_slow]
        return [*self.tell(subscriber, Lost(subscriber.name, Gap(*events), "slow")), *closed]

    @staticmethod
    def tell(subscriber: Subscriber, answer: Answer) -> list[Output]:
        """Tell all consumers of a subscriber something."""
        return [Say(session, answer) for session in subscriber.consumers]


def _taken(subscriber: Subscriber, poll: Poll, items: Sequence[Delivery]) -> Taken:
    """Return the answer to a long poll, with what the subscriber will not get."""
    return Taken(poll.take.request, tuple(items), tuple(loss.lost for loss in subscriber.losses))
