"""Which events are asked about twice? Those that a publisher's node keeps for a while: its recent buffer.

Behind a filter over the recent buffer, what did not interest a subscription at first may do so when it has left the
buffer. Whoever published it is asked again then, by what it knows of thresholds at that time, and sends it to those
who were not sent it at first.

Source: Pripužić 2010, sections 5.2.2 and 6.3.2 (docs/bibliography.md).
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tamis.routing.messages import Passed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.routing.distributed.residents import RankingSettings

Event = TypeVar("Event")


def put_in_order(events: deque[Event], event: Event, order: Callable[[Event], Any]) -> None:
    """Append an event to those that are in some order, or put it before the few that it comes after.

    >>> ages = deque([1, 4, 9])
    >>> put_in_order(ages, 5, int), ages
    (None, deque([1, 4, 5, 9]))
    """
    place = len(events)
    while place and order(events[place - 1]) > order(event):
        place -= 1
    events.insert(place, event)


class KeptEvent(NamedTuple):
    """An event in the buffer, and who was sent it at first."""

    passed: Passed
    served: frozenset[str]

    @property
    def again(self) -> Passed:
        """The event at its second attempt."""
        passed = self.passed
        return Passed.of(passed, passed.at, passed.origin, passed.number, 2)


class ServedEvents:
    """A recent buffer, first in, first out; by time, or by the number of publications.

    >>> from tamis.routing.distributed.residents import RankingSettings
    >>> recent = ServedEvents(RankingSettings(buffer=2.0))
    >>> recent.push(Passed("e", {}, at=1.0, origin="A", number=1), {"B"})
    >>> recent.due, [kept.again.attempt for kept in recent.leaving(3.0)], recent.due
    (3.0, [2], inf)
    """

    def __init__(self, settings: RankingSettings) -> None:
        self._length = settings.buffer
        self._is_numbered = settings.is_numbered
        self._events: deque[KeptEvent] = deque()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def events(self) -> list[Passed]:
        """What it holds, the oldest first."""
        return [kept.passed for kept in self._events]

    def push(self, passed: Passed, served: set[str]) -> None:
        """Keep an event, if there is a buffer."""
        if self._length is not None:
            put_in_order(self._events, KeptEvent(passed, frozenset(served)), lambda kept: self._leaves(kept.passed))

    def leaving(self, now: float) -> list[KeptEvent]:
        """Remove and return what has left by now: a time, or the number of the publication that is about to be made."""
        left = []
        while self._events and self._leaves(self._events[0].passed) <= now:
            left.append(self._events.popleft())
        return left

    def take_out(self, is_meant: Callable[[Passed], bool]) -> tuple[tuple[Passed, tuple[str, ...]], ...]:
        """Remove some events; return them, and who was sent each at first."""
        moving = [kept for kept in self._events if is_meant(kept.passed)]
        self._events = deque(kept for kept in self._events if kept not in moving)
        return tuple((kept.passed, tuple(sorted(kept.served))) for kept in moving)

    def put_in(self, events: Iterable[tuple[Passed, tuple[str, ...]]]) -> None:
        """Keep events that another buffer held, each in its place."""
        if self._length is not None:
            moved = [KeptEvent(passed, frozenset(served)) for passed, served in events]
            self._events = deque(sorted((*self._events, *moved), key=lambda kept: self._leaves(kept.passed)))

    @property
    def due(self) -> float:
        """When the oldest leaves, if that goes by time."""
        return inf if self._is_numbered or not self._events else self._leaves(self._events[0].passed)

    def _leaves(self, passed: Passed) -> float:
        assert self._length is not None
        return (passed.number if self._is_numbered else passed.at) + self._length
