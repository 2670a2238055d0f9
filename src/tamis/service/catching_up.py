"""Who wants what of the past? One pass over the log for everybody who is behind (a shared scan).

A pass looks at some hundred events at a time, from the lowest position that anybody who is behind needs, and matches
them with all subscriptions at once, or with those of the few that are behind. Each takes what concerns it from where
its own cursor is, until its queue is full; then it sits out until its consumers have taken enough. While nothing else
comes and little is found, it looks at more at a time, which costs less for each (`Stride`).

What retention or a repair has taken from the log is told as a gap, once, when the cursor comes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tamis.service.log.base import LATE, PASSED_ON, Gap, is_rerouted, rerouted_part
from tamis.service.messages import Delivery, Lost
from tamis.service.positions import Position
from tamis.service.standing import TIME, NeededEvent
from tamis.service.subscribers import Loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from tamis.routing.wanted import GroupMatches
    from tamis.service.interest import CloseInterest, Hits, Interest, PastVersions
    from tamis.service.log.base import Block
    from tamis.service.standing import DueDelivery, StandingHost
    from tamis.service.subscribers import Replay, Subscriber

WINDOW = 256
"""So many events, or a block more, are looked at in one step while others come in,"""
WIDEST = 2_048
"""and so many while none do."""
_SHRINKS_ABOVE, _GROWS_BELOW = 2_048, 512
"""Deliveries of a step that make the next one shorter, or let it be longer."""


class Stride:
    """How many events a step of the pass looks at.

    >>> stride = Stride()
    >>> for taken, found in ((0, 3), (0, 3), (5, 3), (5, 3), (5, 9_999)):
    ...     stride.adapt(taken, found)
    ...     print(stride.events, end=" ")
    512 1024 256 512 256
    """

    def __init__(self) -> None:
        self.events = WINDOW
        self._taken = 0

    def adapt(self, taken: int, delivery_count: int) -> None:
        """Take note of how many events have come in so far, and of how many deliveries the last step has found."""
        if taken != self._taken:
            self.events = WINDOW
        elif delivery_count > _SHRINKS_ABOVE:
            self.events = max(WINDOW, self.events // 2)
        elif delivery_count < _GROWS_BELOW:
            self.events = min(WIDEST, self.events * 2)
        self._taken = taken


def lowest_event(behind: Iterable[Subscriber]) -> int | None:
    """Return the event that a pass must begin with; None if nobody needs one."""
    return min((subscriber.next_event for subscriber in behind), default=None)


def skipped(subscriber: Subscriber, first: int, gaps: Sequence[Gap]) -> list[Lost]:
    """Move a cursor over what the log no longer has; return what the subscriber is to be told of that."""
    losses: list[Loss] = []
    while not subscriber.is_held:
        event = subscriber.next_event
        gap, reason = Gap(event, first - 1), "retention"
        if event >= first:
            damaged = [each for each in gaps if each.first <= event <= each.last]
            if not damaged:
                break
            gap, reason = Gap(event, damaged[0].last), "damage"
        after, last = subscriber.passed, min(gap.last, subscriber.reads_until(gap.last))
        subscriber.advance(last)
        losses.append(Loss(after, subscriber.passed, Lost(subscriber.name, Gap(event, last), reason)))
    subscriber.losses += losses
    return [loss.lost for loss in losses]


class Window:
    """Some blocks of the log, and who wants which of their events."""

    def __init__(
        self,
        blocks: Sequence[Block],
        first: int,
        read_record: Callable[[bytes, int], Mapping[str, Any] | None],
        interest: Interest,
        close: CloseInterest,
        past: PastVersions,
        subscribers: Sequence[Subscriber],
        repetitions: Set[int] = frozenset(),
        new_host: Callable[[Subscriber], StandingHost] | None = None,
        end_of: Callable[[int], int] = lambda last: last,
        onward: Callable[[GroupMatches, bytes, Set[str], Sequence[Mapping[str, Any]]], Hits] | None = None,
    ) -> None:
        self._blocks, self._new_host, self._end_of = blocks, new_host, end_of
        self._first = first  # whoever turns to a replay that begins before comes back in another window
        self._positions = [position for block in blocks for position in range(block.first, block.last + 1)]
        self._bodies = [body for block in blocks for body in block.events]
        self._flags = flags = b"".join(block.flags for block in blocks)
        fitting = [read_record(body, flag) for body, flag in zip(self._bodies, flags, strict=True)]
        self._records = records = [{} if record is None else record for record in fitting]
        misfits = {position for position, record in zip(self._positions, fitting, strict=True) if record is None}
        names = {subscriber.name for subscriber in subscribers}
        self._left_out = repetitions | misfits if misfits else repetitions
        if onward is not None:
            self._hits: Hits = interest.hits(records, names)
            self._hits |= onward(interest.wanted, flags, names, records)
        else:
            is_close = close.suits(subscribers, interest.subscription_count)
            self._hits = close.hits(records, subscribers) if is_close else interest.hits(records, names)
        self._past_hits, self._past_needed = past.hits(records, self._positions, names)

    @property
    def delivery_count(self) -> int:
        """How many deliveries it has, at most."""
        return sum(map(len, self._hits.values()))

    def look(self, subscriber: Subscriber, through: int, head: int, is_full: Callable[[Subscriber], bool]) -> None:
        """Give a subscriber what it wants of the window, up to a position, as far as it can take it."""
        while self._first <= subscriber.next_event <= through and not subscriber.is_held and not is_full(subscriber):
            first, until = subscriber.next_event, min(through, subscriber.reads_until(head))
            replay = subscriber.replay
            if replay is None and subscriber.stateful:
                subscriber.advance(self._look_with_memory(subscriber, first, until, is_full))
                continue
            for index, keys in self._of(subscriber, replay, first, until):
                event = self._positions[index]
                if not self._is_for(subscriber, index):
                    continue
                position = Position.of(event) if replay is None else replay.position(event)
                flags = self._flags[index] & PASSED_ON | rerouted_part(self._flags[index])
                subscriber.deliveries.offer(Delivery(position, keys, self._bodies[index], bool(flags & LATE), flags))
                if is_full(subscriber):
                    until = event
                    break
            subscriber.advance(max(until, first - 1))
            if replay is None and until < first:
                return

    def _is_for(self, subscriber: Subscriber, index: int) -> bool:
        """Is an event for a subscriber at all, whatever it wants? No neighbour is told what time it is."""
        flag = self._flags[index]
        if self._positions[index] in self._left_out or flag == TIME:
            return False
        return subscriber.is_neighbour or not is_rerouted(flag)

    def _look_with_memory(
        self, subscriber: Subscriber, first: int, until: int, is_full: Callable[[Subscriber], bool]
    ) -> int:
        """Give a subscriber that remembers earlier events what it wants; return up to where it took it.

        Its host takes a block when everything before the block's last event has been offered: what it tells has the
        position of that event, or of the end of what the block takes of a shared log.
        """
        if subscriber.host is None:
            assert self._new_host is not None
            subscriber.host = self._new_host(subscriber)
        plain, needed = self._needs(subscriber)
        start = 0
        for block in self._blocks:
            indices = range(start, start + len(block.events))
            start = indices.stop
            if block.last < first or block.first > until:
                continue
            for index in indices[:-1]:
                if index in plain and first <= self._positions[index] <= until:
                    self._offer(subscriber, self._delivery(index, plain[index]))
                    if is_full(subscriber):
                        return self._positions[index]
            if block.last > until:
                continue
            candidates = [
                NeededEvent(self._positions[index], self._records[index], self._bodies[index], needed[index])
                for index in indices
                if index in needed
            ]
            due = subscriber.host.take(block, candidates, subscriber.stateful, subscriber.stateful_changes)
            last = self._delivery(indices[-1], plain[indices[-1]]) if indices[-1] in plain else None
            end = self._end_of(block.last)
            for delivery in together(due, last, end):
                self._offer(subscriber, delivery)
            if is_full(subscriber):
                return end
        return until

    def _offer(self, subscriber: Subscriber, delivery: Delivery) -> None:
        """Offer what was found, unless it was found before and a new host only comes by once more."""
        if delivery.position > subscriber.passed:
            subscriber.deliveries.offer(delivery)

    def _delivery(self, index: int, keys: Sequence[str]) -> Delivery:
        flags = self._flags[index] & PASSED_ON
        position = Position.of(self._positions[index])
        return Delivery(position, tuple(keys), self._bodies[index], bool(flags & LATE), flags)

    def _needs(self, subscriber: Subscriber) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
        """Return by index the keys of conditions that want an event, and of what remembers earlier events."""
        plain: dict[int, list[str]] = {}
        needed: dict[int, list[str]] = {}
        current = subscriber.subscriptions
        for index, keys in self._hits.get(subscriber.name, ()):
            for key in keys:
                if current[key].since < self._positions[index] and self._is_for(subscriber, index):
                    (needed if current[key].is_stateful else plain).setdefault(index, []).append(key)
        for hits, by_index in ((self._past_hits, plain), (self._past_needed, needed)):
            for index, keys in hits.get(subscriber.name, ()):
                if self._is_for(subscriber, index):
                    by_index.setdefault(index, []).extend(keys)
        return plain, needed

    def _of(
        self, subscriber: Subscriber, replay: Replay | None, first: int, until: int
    ) -> Iterable[tuple[int, tuple[str, ...]]]:
        """Yield what a subscriber wants of the events from `first` to `until`: index, and keys."""
        if subscriber.is_neighbour:
            hits = self._hits.get(subscriber.name, ())
            return [(index, ()) for index, _ in hits if first <= self._positions[index] <= until]
        by_index: dict[int, list[str]] = {}
        current = subscriber.subscriptions
        for index, keys in self._hits.get(subscriber.name, ()):
            event = self._positions[index]
            if not first <= event <= until:
                continue
            if replay is None:
                counting = [key for key in keys if current[key].since < event]
            else:
                counting = [key for key in keys if replay.versions.get(key) == current[key].number]
            if counting:
                by_index[index] = counting
        if replay is None:
            for index, keys in self._past_hits.get(subscriber.name, ()):
                if first <= self._positions[index] <= until:
                    by_index.setdefault(index, []).extend(keys)
        return [(index, tuple(by_index[index])) for index in sorted(by_index)]


def together(due: Sequence[DueDelivery], plain: Delivery | None, head: int) -> list[Delivery]:
    """Return the deliveries of a block's end in order: what was told with it, and its last event if that is wanted."""
    deliveries = []
    if plain is not None and plain.position.event < head:
        deliveries, plain = [plain], None
    for event, body, tellings in due:
        keys = tuple(dict.fromkeys(each.key for each in tellings))
        if plain is not None and event == head:
            deliveries.append(msgspec.structs.replace(plain, keys=(*plain.keys, *keys), told=tellings))
            plain = None
        else:
            deliveries.append(Delivery(Position(head, event), keys, body, told=tellings))
    return deliveries if plain is None else [*deliveries, plain]
