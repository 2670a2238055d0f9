"""Who wants what of the past? One pass over the log for everybody who is behind (a shared scan).

A pass looks at some hundred events at a time, from the lowest position that anybody who is behind needs, and matches
them with all subscriptions at once: for all subscribers that costs hardly more than for one. Each takes what concerns
it from where its own cursor is, until its queue is full; then it sits out until its consumers have taken enough.

What retention or a repair has taken from the log is told as a gap, once, when the cursor comes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.service.log.base import Gap
from tamis.service.messages import Delivery, Lost
from tamis.service.positions import Position
from tamis.service.subscribers import Loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from tamis.routing.wanted import Wanted
    from tamis.service.interest import Hits, Interest, PastVersions
    from tamis.service.log.base import Block
    from tamis.service.subscribers import Replay, Subscriber

WINDOW = 256
"""So many events, or a block more, are looked at in one step."""


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
        past: PastVersions,
        subscribers: Sequence[Subscriber],
        repetitions: Set[int] = frozenset(),
        onward: Callable[[Wanted, bytes, Set[str]], Hits] | None = None,
    ) -> None:
        self._first = first  # whoever turns to a replay that begins before comes back in another window
        self._positions = [position for block in blocks for position in range(block.first, block.last + 1)]
        self._bodies = [body for block in blocks for body in block.events]
        flags = b"".join(block.flags for block in blocks)
        fitting = [read_record(body, flag) for body, flag in zip(self._bodies, flags, strict=True)]
        records = [{} if record is None else record for record in fitting]
        misfits = {position for position, record in zip(self._positions, fitting, strict=True) if record is None}
        names = {subscriber.name for subscriber in subscribers}
        self._left_out = repetitions | misfits if misfits else repetitions
        self._hits, _, wanted = interest.hits(records, names)
        if onward is not None:
            self._hits |= onward(wanted, flags, names)
        self._past_hits: Hits = past.hits(records, self._positions, names)

    def look(self, subscriber: Subscriber, through: int, head: int, is_full: Callable[[Subscriber], bool]) -> None:
        """Give a subscriber what it wants of the window, up to a position, as far as it can take it."""
        while self._first <= subscriber.next_event <= through and not subscriber.is_held and not is_full(subscriber):
            first, until = subscriber.next_event, min(through, subscriber.reads_until(head))
            replay = subscriber.replay
            for index, keys in self._of(subscriber, replay, first, until):
                event = self._positions[index]
                if event in self._left_out:
                    continue
                position = Position.of(event) if replay is None else replay.position(event)
                subscriber.deliveries.offer(Delivery(position, keys, self._bodies[index]))
                if is_full(subscriber):
                    until = event
                    break
            subscriber.advance(max(until, first - 1))
            if replay is None and until < first:
                return

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
