"""Which events may still become one of the best k? Keep a few more, and sort them out from time to time.

Relaxed candidate pruning (RA) counts nothing while events arrive. When its list has grown by a share γ since the last
time, one walk over it, best first, finds all dominated events at once: an event is dominated if the k youngest of those
above it are all younger than itself.

Source: Pripužić 2010, section 3.3.3, algorithms 3 to 5 (docs/bibliography.md).
Departs: the size is looked at after every insertion, not only where the newcomer is a mere candidate; the first limit,
which the thesis leaves open, is 4k; it grows by at least one.
"""

from __future__ import annotations

from heapq import heapify, heappushpop
from typing import TYPE_CHECKING

from tamis.topk.base import Ranking

if TYPE_CHECKING:
    from tamis.topk.base import Candidate

FIRST_LIMIT = 4


class Relaxed(Ranking):
    """A superset of the k-skyband, at most 1 + γ times as large as it was when last pruned."""

    def __init__(self, k: int, gamma: float = 0.2) -> None:
        super().__init__(k)
        self._gamma = gamma
        self._limit = (1 + FIRST_LIMIT) * k

    def insert(self, candidate: Candidate) -> list[int]:
        _, entering = self._place(candidate)
        if len(self.items) >= self._limit:
            self.items = undominated(self.items, self.k)
            self.entered.intersection_update(item.number for item in self.items)
            candidates = len(self.items) - self.k
            self._limit = self.k + max(int((1 + self._gamma) * candidates), candidates + 1, 1)
        return entering


def undominated(items: list[Candidate], k: int) -> list[Candidate]:
    """Return the k-skyband of candidates that are sorted by rank.

    >>> from tamis.topk.base import Candidate
    >>> found = undominated([Candidate(1.0, -3, 9), Candidate(2.0, -5, 9), Candidate(3.0, -4, 9)], k=1)
    >>> [item.number for item in found]
    [3, 5]
    """
    kept = items[:k]
    youngest = [-item.age for item in kept]  # of those above, the k youngest; the oldest of them first
    heapify(youngest)
    for item in items[k:]:
        if heappushpop(youngest, item.number) != item.number:
            kept.append(item)
    return kept
