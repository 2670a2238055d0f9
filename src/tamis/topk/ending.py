"""What need not be kept for a subscription whose end is known?

An event that k better ones outrank, all of which stay in the window until the subscription ends, is never among the
best again. So the k-th best of those that stay to the end is a threshold that only falls: what is beyond it is
forgotten, and what comes beyond it is not looked at. It begins to work one window before the end.

Source: Pripužić 2010, section 3.2, theorem 3.2 (docs/bibliography.md).
Departs: for time windows alone; when an event leaves a count window is not known beforehand.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING

from tamis.topk.base import Ranking

if TYPE_CHECKING:
    from tamis.topk.base import Candidate


class Ending(Ranking):
    """An exact ranking over a time window that ends at a known time.

    >>> from tamis.topk.base import Candidate
    >>> from tamis.topk.strict import Strict
    >>> ranking = Ending(Strict(1), until=10.0)
    >>> [ranking.insert(Candidate(key, -number, leaves=11.0 + number)) for number, key in enumerate([5.0, 7.0, 4.0])]
    [[0], [], [2]]
    >>> len(ranking), ranking.threshold
    (1, 4.0)
    """

    def __init__(self, inner: Ranking, until: float) -> None:
        super().__init__(inner.k)
        self._inner = inner
        self._until = until
        self._staying: list[float] = []
        """The k best keys of the events that stay to the end."""
        self.threshold = inner.threshold

    def insert(self, candidate: Candidate) -> list[int]:
        if candidate.key > self.threshold:
            return []
        entering = self._inner.insert(candidate)
        if candidate.leaves > self._until:
            insort(self._staying, candidate.key)
            del self._staying[self.k :]
            if len(self._staying) == self.k:
                self.threshold = self._staying[-1]
                # Of equal keys the younger is better, so they may still be among the best.
                self._inner.drop_from(bisect_right(self._inner.items, self.threshold, key=lambda item: item.key))
        self._show()
        return entering

    def leave(self, clock: float) -> list[int]:
        entering = self._inner.leave(clock)
        self._show()
        return entering

    def _show(self) -> None:
        inner = self._inner
        self.items, self.entered, self.due = inner.items, inner.entered, inner.due

    def __len__(self) -> int:
        return len(self._inner)
