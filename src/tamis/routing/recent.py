"""Which events are asked about twice? A publisher's recent buffer.

Behind a filter over the recent buffer, a ranked subscription is not sent what the latest events dominate. An event that
was not sent may still be needed when some of those have left, so whoever published it keeps it for so long, and then it
is matched again: the second attempt. How long that is, is one setting of the whole network, because a broker on the way
does not know whose second attempt is when.

Source: Pripužić 2010, sections 3.5, 5.2.2 and 6.3.3 (docs/bibliography.md).
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.routing.messages import Passed


class RecentEvents:
    """The events of a broker's clients of the latest so many seconds, first in, first out.

    >>> from tamis.routing.messages import Passed
    >>> recent = RecentEvents(5.0)
    >>> recent.push(Passed("e", {"x": 1}, at=1.0)), recent.due, recent.expired(5.9)
    (None, 6.0, [])
    >>> [passed.attempt for passed in recent.expired(6.0)], recent.due
    ([2], inf)
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._events: deque[Passed] = deque()

    def push(self, passed: Passed) -> None:
        """Keep an event, unless nothing is asked about twice."""
        if self._seconds is not None:
            self._events.append(passed)

    @property
    def due(self) -> float:
        """When the oldest leaves; infinite if nothing is kept."""
        return inf if self._seconds is None or not self._events else self._events[0].at + self._seconds

    def expired(self, now: float) -> list[Passed]:
        """Return what leaves up to now, as it comes for the second time."""
        expired = []
        while self.due <= now:
            passed = self._events.popleft()
            expired.append(type(passed).of(passed, passed.at, passed.origin, passed.number, attempt=2))
        return expired
