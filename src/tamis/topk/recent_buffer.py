"""How can most arrivals be kept from the rankings, and none be lost? A buffer that filters the dominated.

The latest events stand in a buffer, which all subscriptions share, before most of them are inserted anywhere. Each
subscription keeps a *filter*: a small ranking of the same kind over the buffer instead of the window. An arrival that
is among the best k of the buffer goes to the subscription's ranking at once. Any other gets a second try when it leaves
the buffer: if k events of the buffer beat it then, they are all younger, and it is dominated for ever.

That is exact, whatever the filter has forgotten, because any k events of the buffer will do. But the buffer may be at
most half as long as the window (b ≤ (n + 1) / 2), else something could be due while it is held back.

Source: Pripužić 2010, section 3.5, algorithm 8, theorems 3.9 and 3.10 (docs/bibliography.md).
Departs: what leaves the buffer is looked at before what arrives is inserted; the other way round loses events where b
is (n + 1) / 2. What came before a subscription is refused at its second try too. For a time window the buffer is half
as long as the window, in time.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from tamis.topk.base import Ranking
from tamis.topk.errors import BufferSizeError
from tamis.topk.windows import CountWindow, TimeWindow, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.topk.base import Arrival, Candidate


class BufferSize(NamedTuple):
    """How long a buffer is: so many events, and no longer than so many seconds."""

    events: int
    seconds: float


def buffer_size(window: Window, most: int, seconds: float | None = None) -> BufferSize:
    """Return the longest buffer of at most `most` events that a window allows; of a time window, `seconds` if given.

    >>> buffer_size(CountWindow(40_000), 2_000), buffer_size(CountWindow(5), 2_000), buffer_size(TimeWindow(60), 2_000)
    (BufferSize(events=2000, seconds=inf), BufferSize(events=3, seconds=inf), BufferSize(events=2000, seconds=30.0))
    """
    if isinstance(window, CountWindow):
        return BufferSize(min(most, (window.events + 1) // 2), math.inf)
    if seconds is None:
        return BufferSize(most, window.seconds / 2)
    if 2 * seconds > window.seconds:
        raise BufferSizeError(seconds, window.seconds)
    return BufferSize(most, seconds)


class Filtered(Ranking):
    """A ranking with a filter before it. `insert` is the first try of an event, `expel` the second."""

    def __init__(self, ranking: Ranking, filter_: Ranking, window: Window, size: BufferSize) -> None:
        super().__init__(ranking.k)
        if isinstance(window, CountWindow) and 2 * size.events > window.events + 1:
            raise BufferSizeError(size.events, window.events)
        if isinstance(window, TimeWindow) and 2 * size.seconds > window.seconds:
            raise BufferSizeError(size.seconds, window.seconds)
        self.size = size
        self.ranking = ranking
        """The ranking behind the filter."""
        self.filter = filter_
        """The ranking of the recent buffer."""
        self._tried: set[int] = set()
        """Which of the buffer's events were inserted at once."""

    def insert(self, candidate: Candidate) -> list[int]:
        # The filter's clock is the buffer: an event leaves it when it is expelled, whenever that is.
        if not self.filter.insert(candidate._replace(leaves=candidate.number)):
            return []
        self._tried.add(candidate.number)
        return self._passed_on(self.ranking.insert(candidate))

    def expel(self, number: int) -> None:
        """Make the filter forget what leaves the buffer: this event and all before it."""
        if self.filter.due <= number:
            self.filter.leave(number)

    def try_again(self, candidate: Candidate) -> list[int]:
        """Insert an event that has left the buffer, unless it is in the ranking, or k events of the buffer beat it."""
        if candidate.number in self._tried:
            self._tried.remove(candidate.number)
            return []
        if not self.filter.beats_the_best(candidate):
            return []
        return self._passed_on(self.ranking.insert(candidate))

    def leave(self, clock: float) -> list[int]:
        return self._passed_on(self.ranking.leave(clock))

    def _passed_on(self, entering: list[int]) -> list[int]:
        self.items, self.entered, self.due = self.ranking.items, self.ranking.entered, self.ranking.due
        return entering

    @property
    def threshold(self) -> float:  # type: ignore[override]
        """The filter's own threshold, or where it has none, the key of its k-th best."""
        if self.filter.threshold < math.inf or not self.filter.is_exact:
            return self.filter.threshold
        return self.filter.items[self.k - 1].key if len(self.filter.items) >= self.k else math.inf

    def __len__(self) -> int:
        return len(self.ranking) + len(self.filter)


class RecentBuffer:
    """The latest events, first in, first out."""

    def __init__(self, size: BufferSize) -> None:
        self.size = size
        self.members: dict[int, None] = {}
        """The handles of the subscriptions that it serves, in order."""
        self._arrivals: deque[Arrival] = deque()

    def __len__(self) -> int:
        return len(self._arrivals)

    def __iter__(self) -> Iterator[Arrival]:
        return iter(self._arrivals)

    def push(self, arrival: Arrival) -> None:
        """Take an arrival in, after `expelled` has made room."""
        self._arrivals.append(arrival)

    def next_expulsion(self) -> float:
        """When the oldest leaves because of its age."""
        return self._arrivals[0].at + self.size.seconds if self._arrivals else math.inf

    def expelled(self, until: float, *, makes_room: bool) -> list[Arrival]:
        """Remove what is too old at `until`, and the oldest if another is about to come and the buffer is full."""
        entrants = []
        while self._arrivals and self._arrivals[0].at + self.size.seconds <= until:
            entrants.append(self._arrivals.popleft())
        if makes_room and len(self._arrivals) >= self.size.events:
            entrants.append(self._arrivals.popleft())
        return entrants
