"""Which events may still become one of the best k? Keep exactly those.

An event is *dominated* by those that rank higher and are younger: they leave after it, so with k of them above it, it
can never be one of the best k again. Strict candidate pruning (SA) counts the dominators of every event it keeps, and
drops an event with its k-th; what is left is the k-skyband of the window in time and rank.

Source: Pripužić 2010, section 3.3.2, algorithms 1 and 2; theorems 3.1 and 3.4 (docs/bibliography.md).
Departs: one list sorted by rank instead of a top and a candidate list. An event is dropped with k dominators, where the
prose says "more than k"; the tail that leaves the best k is counted once, where the print counts it twice.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from tamis.topk.base import Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.topk.base import Candidate


class Strict(Ranking):
    """The k-skyband, with a count of dominators for each of its events."""

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self._dominators: dict[int, int] = {}

    @classmethod
    def resumed(cls, k: int, items: Iterable[Candidate], entered: Iterable[int]) -> Strict:
        """Return a ranking that goes on from the items and entered numbers of another.

        The dominators of an item are among the items: one that was dropped had k of its own, which dominate it too.
        """
        ranking = cls(k)
        ranking.items = sorted(items)
        ranking.entered = set(entered)
        ages: list[int] = []
        for item in ranking.items:
            ranking._dominators[item.age] = bisect_left(ages, item.age)
            insort(ages, item.age)
        ranking._schedule()
        return ranking

    def insert(self, candidate: Candidate) -> list[int]:
        place, entering = self._place(candidate)
        # Only what was held back in a recent buffer has younger ones above it.
        above = sum(item.age < candidate.age for item in self.items[:place])
        if above >= self.k:
            del self.items[place]
            return []
        self._dominators[candidate.age] = above
        kept = self.items[: place + 1]
        for item in self.items[place + 1 :]:
            if item.age > candidate.age:
                self._dominators[item.age] += 1
                if self._dominators[item.age] >= self.k:
                    del self._dominators[item.age]
                    self.entered.discard(item.number)
                    continue
            kept.append(item)
        self.items = kept
        return entering

    def drop_from(self, place: int) -> None:
        for item in self.items[place:]:
            del self._dominators[item.age]
        super().drop_from(place)

    def leave(self, clock: float) -> list[int]:
        for item in self.items:
            if item.leaves <= clock:
                del self._dominators[item.age]
        return super().leave(clock)
