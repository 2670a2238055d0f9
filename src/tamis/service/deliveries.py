"""What has a subscriber been sent, and what of it is done? Acknowledgements of at-least-once delivery.

Deliveries of a subscriber are in one order, that of their positions:

    done ≤ floor < … islands of done … sent, not done … waiting to come again … ≤ found in the queue, not sent

The *floor* is the position up to which everything is done; *islands* are done positions above it. Both are all that
must survive: whatever is above the floor and no island is found again in the log. Nothing here knows of connections
but their numbers, or of time but as an argument.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import msgspec

from tamis.service.messages import DeliveryFacts
from tamis.service.positions import START, Position

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.service.messages import Delivery


@dataclass(frozen=True, slots=True)
class Sent:
    """A delivery that is on its way: to whom, how often it was sent, and when it comes again."""

    delivery: Delivery
    session: int
    """Who has it; 0 if nobody has, below 0 if a long poll has taken it, whose session is over."""
    attempts: int
    due_s: float
    after: Position = START
    """The highest position that the session had been sent before."""


class InFlight:
    """What is on its way to one subscriber.

    Invariant: the positions in the queue ascend, and all of them are behind those that were sent.
    """

    def __init__(
        self, floor: Position = START, islands: Iterable[Position] = (), sent_through: Position = START
    ) -> None:
        self._floor = floor
        self._islands = set(islands)
        self._sent_through = sent_through
        """The last position that was sent; what comes up to here may have come before."""
        self._queue: deque[Delivery] = deque()
        self._queue_bytes = 0
        self._sent: dict[Position, Sent] = {}
        self._open: list[Position] = []
        """A heap of what was sent and may not be done; what is done leaves it when it comes up."""
        self._again: dict[Position, Sent] = {}
        self._again_order: list[tuple[float, Position]] = []
        self._attempts: dict[Position, int] = {}
        """Of what was sent to somebody who is gone: how often."""
        self._revived: set[Position] = set()
        """Dead letters among what is on its way."""
        self._blocked_until_s = float("-inf")

    # -- What is found

    @property
    def queue_count(self) -> int:
        """How many deliveries were found and not yet sent."""
        return len(self._queue)

    @property
    def queue_bytes(self) -> int:
        """How many bytes they have."""
        return self._queue_bytes

    @property
    def first_waiting(self) -> Position | None:
        """The first position that was found and not yet sent."""
        return self._queue[0].position if self._queue else None

    def is_ready(self, logged: int) -> bool:
        """Is there something that was found, not yet sent, and is on disk?"""
        return bool(self._queue) and self._queue[0].decided_at <= logged

    @property
    def has_nothing_to_send(self) -> bool:
        """Is nothing waiting, neither what was found nor what is to come again some time?"""
        return not self._queue and not self._again_order

    @property
    def last_on_way(self) -> Position:
        """The highest position that was sent and is not done; the beginning of all if there is none."""
        return max((*self._sent, *self._again), default=START)

    @property
    def unacknowledged_count(self) -> int:
        """How many were sent and are not done."""
        return len(self._sent) + len(self._again)

    def offer(self, delivery: Delivery) -> bool:
        """Take a delivery that was found, behind all others; return whether it is to be sent."""
        if delivery.position <= self._floor or delivery.position in self._islands:
            return False
        assert not self._queue or self._queue[-1].position < delivery.position
        self._queue.append(delivery)
        self._queue_bytes += len(delivery.body)
        return True

    def revive(self, delivery: Delivery) -> None:
        """Take a dead letter that is to be delivered once more, unless it is to come anyway."""
        if delivery.position <= self._floor or delivery.position in self._islands:
            self._revived.add(delivery.position)
            self._wait(Sent(delivery, 0, 0, 0.0), 0.0)

    def drop_between(self, first: int, last: int) -> None:
        """Forget what was found of events from `first` to `last`: they were not written."""
        kept = [
            each
            for each in self._queue
            if not (first <= each.position.event <= last or first <= each.decided_at <= last)
        ]
        self._queue, self._queue_bytes = deque(kept), sum(len(each.body) for each in kept)

    def drop_key(self, key: str) -> list[Sent]:
        """Forget what was found for a subscription alone that has ended; return what was on its way for it."""
        kept = [_without(each, key) for each in self._queue]
        self._queue = deque(each for each in kept if each.keys)
        self._queue_bytes = sum(len(each.body) for each in self._queue)
        ended = []
        for group in (self._sent, self._again):
            for position, sent in list(group.items()):
                if key in sent.delivery.keys and position not in self._revived:
                    group[position] = replace(sent, delivery=_without(sent.delivery, key))
                    if not group[position].delivery.keys:
                        ended.append(sent)
        for sent in ended:
            self.done(sent.delivery.position)
        return ended

    def drop_queue(self) -> tuple[int, int] | None:
        """Forget what was found and not sent; return the first and last event of it, if there was any."""
        if not self._queue:
            return None
        events = [each.position.event for each in self._queue]
        self._queue.clear()
        self._queue_bytes = 0
        return min(events), max(events)

    # -- What is sent

    def next(self, logged: int, now: float) -> Sent | None:
        """Return what is to be sent now: what is due again, or what was found and is on disk. None if nothing is."""
        while self._again_order and not self._is_waiting(*self._again_order[0]):
            heappop(self._again_order)
        if self._again_order and self._again_order[0][0] <= now:
            return self._again[self._again_order[0][1]]
        if not self._queue or self._queue[0].decided_at > logged or now < self._blocked_until_s:
            return None
        return Sent(self._queue[0], 0, self._attempts.get(self._queue[0].position, 0), 0.0)

    def _is_waiting(self, due_s: float, position: Position) -> bool:
        """Does an entry of the order still count, and not a later one of the same position?"""
        return position in self._again and self._again[position].due_s == due_s

    def send(self, chosen: Sent, session: int, due_s: float, after: Position = START) -> Delivery:
        """Take what `next` returned as sent to a session; it comes again when it is due and not done."""
        position = chosen.delivery.position
        if position not in self._again:
            heappush(self._open, position)
        delivery = self._taken(chosen)
        self._sent[position] = Sent(delivery, session, chosen.attempts + 1, due_s, after)
        return self._marked(delivery)

    def stream(self, chosen: Sent) -> Delivery:
        """Take what `next` returned as sent to somebody who does not acknowledge."""
        return self._marked(self._taken(chosen))

    def _taken(self, chosen: Sent) -> Delivery:
        delivery = chosen.delivery
        if delivery.position in self._again:
            del self._again[delivery.position]
        else:
            self._queue.popleft()
            self._queue_bytes -= len(delivery.body)
            self._attempts.pop(delivery.position, None)
        return delivery

    def _marked(self, delivery: Delivery) -> Delivery:
        if delivery.position <= self._sent_through:
            return _as_repetition(delivery)
        self._sent_through = delivery.position
        return delivery

    # -- What is said of it

    def done(self, position: Position) -> Sent | None:
        """Take a delivery as done; return it, if it was on its way: with a session, or waiting to come again."""
        sent = self._sent.pop(position, None) or self._again.pop(position, None)
        if position in self._revived:
            self._revived.discard(position)
            return sent
        if position > self._floor:
            self._islands.add(position)
            if sent is None:
                self._unqueue(position)
        while self._open and self._open[0] in self._islands:
            self._islands.discard(self._open[0])
            self._floor = max(self._floor, heappop(self._open))
        return sent

    def _unqueue(self, position: Position) -> None:
        """Take out of the queue what somebody says is done who had it before."""
        for index, each in enumerate(self._queue):
            if each.position >= position:
                if each.position == position:
                    del self._queue[index]
                    self._queue_bytes -= len(each.body)
                return

    def done_through(self, position: Position) -> list[Sent]:
        """Take everything up to a position as done, found or not; return what was on its way."""
        ended = [
            each
            for each in (*self._sent.values(), *self._again.values())
            if each.delivery.position <= position and each.delivery.position not in self._revived
        ]
        for each in ended:
            self._sent.pop(each.delivery.position, None)
            self._again.pop(each.delivery.position, None)
        while self._queue and self._queue[0].position <= position:
            self._queue_bytes -= len(self._queue.popleft().body)
        self._floor = max(self._floor, position)
        self._open = [each for each in self._open if each > self._floor]
        heapify(self._open)
        self._islands = {each for each in self._islands if each > self._floor}
        return ended

    def session_of(self, position: Position) -> int:
        """Return who has a delivery; 0 if nobody has."""
        sent = self._sent.get(position)
        return 0 if sent is None else sent.session

    def sent_to(self, session: int, through: Position) -> list[Position]:
        """Return what a session was sent up to a position, before or when it was sent that position.

        What comes again later, because somebody else who had it is gone, it has perhaps not seen when it says that
        everything up to a position is done.
        """
        positions = []
        for position, sent in self._sent.items():  # in the order in which they were sent
            if sent.session != session or position > through or position in self._revived:
                continue
            positions.append(position)
            if position == through:
                return positions
        return [position for position in positions if self._sent[position].after < through]

    def again(self, position: Position, due_s: float, is_ordered: bool) -> list[Sent]:
        """Let a delivery come again at a time; return what is no longer with a consumer therefore.

        If the subscriber is ordered, everything behind it comes again too, and nothing else before it.
        """
        if position not in self._sent:
            return []
        moved = [self._sent.pop(position)]
        if is_ordered:
            behind = sorted(each for each in self._sent if each > position)
            moved += [self._sent.pop(each) for each in behind]
            self._blocked_until_s = max(self._blocked_until_s, due_s)
        for each in moved:
            self._wait(each, due_s)
        return moved

    def overdue(self, now: float) -> list[Position]:
        """Return what was sent, is not done, and is to come again now."""
        late = []
        for position, sent in self._sent.items():  # in the order in which they were sent, so of their ends
            if sent.due_s > now:
                break
            late.append(position)
        return late

    def is_due(self, now: float) -> bool:
        """May something that was sent be due to come again? It looks at the first only, as `overdue` does."""
        if self._again_order and self._again_order[0][0] <= now:
            return True
        first = next(iter(self._sent.values()), None)
        return first is not None and first.due_s <= now

    def attempts_of(self, position: Position) -> int:
        """Return how often a delivery was sent that is on its way; 0 if it is not."""
        sent = self._sent.get(position) or self._again.get(position)
        return 0 if sent is None else sent.attempts

    def facts(self, position: Position) -> DeliveryFacts:
        """Return what became of a delivery, if there is one at a position."""
        for state, group in (("sent", self._sent), ("again", self._again)):
            if position in group:
                return DeliveryFacts(state, group[position].attempts)
        if any(each.position == position for each in self._queue):
            return DeliveryFacts("waiting", self._attempts.get(position, 0))
        if position <= self._floor or position in self._islands:
            return DeliveryFacts("done")
        return DeliveryFacts("ahead", self._attempts.get(position, 0))

    def is_revived(self, position: Position) -> bool:
        """Is this a dead letter that is delivered once more?"""
        return position in self._revived

    def bury(self, position: Position) -> Sent | None:
        """Give up a delivery that is on its way, or is the next: for the order it counts as done. Return it.

        Another one is left alone: without its body it could not become a dead letter, and it comes again.
        """
        if position in self._sent or position in self._again:
            return self.done(position)
        if not self._queue or self._queue[0].position != position:
            return None
        following = Sent(self._queue[0], 0, self._attempts.pop(position, 0), 0.0)
        self.done(position)
        return following

    def give_back(self, session: int) -> None:
        """Let everything that a session was sent come again at once: it is gone."""
        for position in [each for each, sent in self._sent.items() if sent.session == session]:
            self._wait(self._sent.pop(position), 0.0)

    def _wait(self, sent: Sent, due_s: float) -> None:
        self._again[sent.delivery.position] = Sent(sent.delivery, 0, sent.attempts, due_s)
        heappush(self._again_order, (due_s, sent.delivery.position))

    # -- Floors

    def floor(self, frontier: Position) -> Position:
        """Return up to where everything is done, if everything up to `frontier` has been looked at."""
        waiting = [self._open[0]] if self._open else []
        if self._queue:
            waiting.append(self._queue[0].position)
        if not waiting:
            return max(self._floor, frontier)
        first = min(waiting)
        return max(self._floor, Position(first.head, first.event - 1))

    def pass_over(self, position: Position) -> None:
        """Never use a position again, although nothing is delivered there."""
        if position > self._floor:
            self._islands.add(position)

    @property
    def least_floor(self) -> Position:
        """The floor as far as acknowledgements tell, whatever has been looked at."""
        return self._floor

    def islands(self, floor: Position) -> tuple[Position, ...]:
        """Return what is done above a floor, in order; forget the rest."""
        self._floor = max(self._floor, floor)
        self._islands = {each for each in self._islands if each > self._floor}
        return tuple(sorted(self._islands))

    @property
    def island_count(self) -> int:
        """How many positions above the floor are done, about."""
        return len(self._islands)

    def rewind(self, floor: Position) -> None:
        """Forget everything that is on its way: it is found again from the floor on."""
        self.islands(floor)
        self._attempts = {position: count for position, count in self._attempts.items() if position > self._floor}
        for each in (*self._sent.values(), *self._again.values()):
            if each.delivery.position not in self._revived:
                self._attempts[each.delivery.position] = each.attempts
        self._queue.clear()
        self._queue_bytes = 0
        self._sent, self._again, self._again_order, self._open = {}, {}, [], []
        self._revived, self._blocked_until_s = set(), float("-inf")


def _as_repetition(delivery: Delivery) -> Delivery:
    return msgspec.structs.replace(delivery, is_again=True)


def _without(delivery: Delivery, key: str) -> Delivery:
    keys = tuple(other for other in delivery.keys if other != key)
    return msgspec.structs.replace(delivery, keys=keys, told=tuple(each for each in delivery.told if each.key != key))
