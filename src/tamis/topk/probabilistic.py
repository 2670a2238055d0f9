"""Which events may still become one of the best k, in all likelihood?

Probabilistic candidate pruning (PA) keeps the best k and a fixed number of candidates behind them (`candidate_limits`),
whatever their age. What ranks lower on arrival is forgotten at once: one comparison with a threshold, which is the key
of the last candidate. When something leaves, the threshold is relaxed by the gap between the last two candidates, so
that others may follow; when the list is full again, it is the last candidate's key again.

That is right for streams in random order, with an error of at most σ for an event. `guard` watches the order.

Source: Pripužić 2010, section 3.4.2, algorithms 6 and 7 (docs/bibliography.md).
Departs: the last candidate is dropped when there are more than the limit, and gives the threshold when there are as
many; an event is known to be among the best k by its place, not by comparison with the tail; with fewer than two
candidates the threshold is reset, which the thesis leaves open. Where k is no less than the window, one more is kept,
so that an arrival can wait for the departure that it causes. For time windows the number of events in the window is
estimated (`expect`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tamis.topk.base import Ranking
from tamis.topk.candidate_limits import candidate_limit

if TYPE_CHECKING:
    from tamis.topk.base import Candidate


class Probabilistic(Ranking):
    """The best k, and a limited number of candidates."""

    is_exact = False

    def __init__(self, k: int, n: int, sigma: float = 1e-3) -> None:
        super().__init__(k)
        self._sigma = sigma
        self._n = 0
        self.limit = 0
        self.expect(n)

    def expect(self, n: int) -> None:
        """Be prepared for `n` events in the window. More than before need more candidates."""
        if n <= self._n:
            return
        self._n = n
        limit = candidate_limit(self.k, n, self._sigma) + (self.k >= n)
        if limit != self.limit:
            self.limit = limit
            self.threshold = math.inf
            self._bound()

    def insert(self, candidate: Candidate) -> list[int]:
        if candidate.key > self.threshold:
            return []
        _, entering = self._place(candidate)
        self._bound()
        return entering

    def leave(self, clock: float) -> list[int]:
        before = len(self.items)
        entering = super().leave(clock)
        if len(self.items) < before:
            candidates = self.items[self.k :]
            gap = candidates[-1].key - candidates[-2].key if len(candidates) > 1 else math.inf
            self.threshold += (before - len(self.items)) * gap
            if math.isnan(self.threshold):  # of infinite keys
                self.threshold = math.inf
        return entering

    def _bound(self) -> None:
        most = self.k + self.limit
        if len(self.items) > most:
            self.entered.difference_update(item.number for item in self.items[most:])
            del self.items[most:]
        if len(self.items) == most:
            self.threshold = self.items[-1].key
        self._schedule()

    def _schedule(self) -> None:
        # Candidates may be dominated ones, so they leave from anywhere in the list.
        self.due = min((item.leaves for item in self.items), default=math.inf)
