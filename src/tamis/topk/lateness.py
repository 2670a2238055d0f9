"""When may a change be made, if times come out of order? Watermarks.

What is published or withdrawn waits until nothing earlier can come: until the latest time seen is as much later as the
lateness that is allowed. Then it is let through, in order of time, and of two at the same time in the order they came.
Without lateness nothing waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice
from operator import le
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.topk.errors import LateEventError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(slots=True)
class Publication:
    """An event is published."""

    at: float
    event: Mapping[str, Any]
    id: Any
    expires: float


@dataclass(slots=True)
class Withdrawal:
    """An event is withdrawn."""

    at: float
    event_id: Any


Change: TypeAlias = Publication | Withdrawal


class Lateness:
    """Puts changes in order of time.

    >>> lateness = Lateness(seconds=5)
    >>> [change.at for change in lateness.take([Withdrawal(at, "e") for at in (3.0, 1.0, 7.0)])]
    [1.0]
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.settled = -math.inf
        """Nothing earlier than this can come any more."""
        self._waiting: list[tuple[float, int, Change]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waiting_since(self) -> float:
        """The time of the earliest change that waits; infinite if none does."""
        return self._waiting[0][0] if self._waiting else math.inf

    def waiting(self) -> list[Change]:
        """Return what waits, in the order in which it will be let through."""
        return [change for *_, change in sorted(self._waiting, key=lambda each: each[:2])]

    def restore(self, changes: Iterable[Change]) -> None:
        """Let changes wait again that waited elsewhere, in that order."""
        for change in changes:
            heappush(self._waiting, (change.at, self._count, change))
            self._count += 1

    def take(self, changes: Iterable[Change]) -> list[Change]:
        """Take changes as they come; return those that are in order by now. If one is late, none is taken."""
        new = list(changes)
        settled = self.settled
        for change in new:
            if change.at < settled:
                raise LateEventError(change.at, settled, self.seconds)
            settled = max(settled, change.at - self.seconds)
        if not self.seconds:
            self.settled = settled
            return new
        for change in new:
            heappush(self._waiting, (change.at, self._count, change))
            self._count += 1
        return self._let_through(settled)

    def are_in_order(self, times: list[float]) -> bool:
        """Is none of many changes late, and none to wait? Then they need not be taken, but for `settled`."""
        return not self.seconds and times[0] >= self.settled and all(map(le, times, islice(times, 1, None)))

    def advance(self, now: float) -> list[Change]:
        """Let the time pass; return the changes that are in order by now."""
        if now < self.settled:
            raise LateEventError(now, self.settled, self.seconds)
        return self._let_through(max(self.settled, now - self.seconds))

    def _let_through(self, settled: float) -> list[Change]:
        self.settled = settled
        through = []
        while self._waiting and self._waiting[0][0] <= settled:
            through.append(heappop(self._waiting)[2])
        return through
