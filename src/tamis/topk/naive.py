"""Which events are among the best k? Keep the whole window, and sort it whenever something happens.

This is the definition that all other algorithms are tested against.

Source: Pripužić 2010, section 3.2, equations 3.4 to 3.7 and 3.14 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tamis.topk.base import Ranking

if TYPE_CHECKING:
    from tamis.topk.base import Candidate


class NaiveRankings(Ranking):
    """The window itself.

    >>> from tamis.topk.base import Candidate
    >>> ranking = NaiveRankings(k=1)
    >>> [ranking.insert(Candidate(key, -number, leaves=number + 2)) for number, key in enumerate([5.0, 7.0])]
    [[0], []]
    >>> ranking.leave(clock=2)
    [1]
    """

    def insert(self, candidate: Candidate) -> list[int]:
        self.items.append(candidate)
        return self._entering()

    def leave(self, clock: float) -> list[int]:
        self.items = [item for item in self.items if item.leaves > clock]
        return self._entering()

    def _entering(self) -> list[int]:
        self.items.sort()
        best = [item.number for item in self.items[: self.k]]
        entering = [number for number in best if number not in self.entered]
        self.entered.update(entering)
        self.entered.intersection_update(item.number for item in self.items)
        self._schedule()
        return entering

    def _schedule(self) -> None:
        # Whatever leaves, leaves in time, also where nobody follows it.
        self.due = min((item.leaves for item in self.items), default=math.inf)
