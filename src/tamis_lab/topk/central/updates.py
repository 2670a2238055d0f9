"""When does the owner of a ranked subscription tell others that its threshold has moved?

Others may never know a threshold that is tighter than it is, so what loosens is told at once. What tightens may wait. A
*policy* turns the present threshold into what others know: `EveryChange` tells all; `Hysteresis` tells a looser
threshold than needed, and then nothing until it is exceeded or has become much too loose; the cells of a grid move only
when the region passes an edge.

Source: Pripužić 2010, section 5.3.1 (docs/bibliography.md). Hysteresis, and the box instead of the ball's own cells,
are ours.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.relations.regions import Ball, Everywhere, region_of
from tamis.topk.errors import SettingError
from tamis.topk.scores import reader

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.language.meaning import Event
    from tamis.topk.ranked import Ranked


class Policy(ABC):
    """What others know of one subscription's threshold."""

    def __init__(self, ranked: Ranked) -> None:
        self._ranked = ranked
        self._sign = 1 if ranked.is_ascending else -1

    @abstractmethod
    def moved(self, key: float) -> bool:
        """Take the present threshold, as a key. Return whether others have to be told."""

    @abstractmethod
    def wants(self, event: Event, key: float) -> bool:
        """Would others, by what they know, send this event, which has this key?"""


class EveryChange(Policy):
    """Others know the threshold."""

    def __init__(self, ranked: Ranked) -> None:
        super().__init__(ranked)
        self._known = math.inf

    def moved(self, key: float) -> bool:
        is_new = key != self._known
        self._known = key
        return is_new

    def wants(self, event: Event, key: float) -> bool:
        return key <= self._known


class Hysteresis(Policy):
    """Others know a threshold that is looser by some share, until it is too tight, or looser by several shares."""

    def __init__(self, ranked: Ranked, share: float = 0.1) -> None:
        super().__init__(ranked)
        if not share > 0:
            raise SettingError(f"the share of a hysteresis is more than 0, not {share!r}")
        self._share = share
        self._known = math.inf

    def moved(self, key: float) -> bool:
        room = self._share * abs(key)
        if key <= self._known <= key + 3 * room or (key == math.inf and self._known == math.inf):
            return False
        self._known = key + room
        return True

    def wants(self, event: Event, key: float) -> bool:
        return key <= self._known


class ExactCells(Policy):
    """Others know which cells of a regular grid the region of interest reaches into."""

    is_exact = True

    def __init__(self, ranked: Ranked, resolution: int = 10, low: float = 0.0, high: float = 1.0) -> None:
        super().__init__(ranked)
        ball = region_of(ranked.score, 1.0, is_ascending=ranked.is_ascending)
        if not isinstance(ball, Ball):
            raise SettingError("cells are for Euclidean distances, the nearest first")
        self._resolution, self._low, self._step = resolution, low, (high - low) / resolution
        self._readers = [reader(term) for term in ball.inputs]
        self._reached: tuple[tuple[int, ...], npt.NDArray[np.bool_]] | None = None
        """The first cell in each dimension, and which cells from there on are reached. None: all of the grid."""

    def moved(self, key: float) -> bool:
        region = region_of(self._ranked.score, self._sign * key, is_ascending=self._ranked.is_ascending)
        reached = None
        if isinstance(region, Ball):
            reached = self._cells_of(region)
        elif not isinstance(region, Everywhere):
            reached = (0,) * len(self._readers), np.zeros((0,) * len(self._readers), np.bool_)
        before, self._reached = self._reached, reached
        if reached is None or before is None:
            return reached is not before
        return reached[0] != before[0] or not np.array_equal(reached[1], before[1])

    def _cells_of(self, ball: Ball) -> tuple[tuple[int, ...], npt.NDArray[np.bool_]]:
        firsts, squares = [], []
        for centre, weight in zip(ball.centre, ball.weights, strict=True):
            reach = ball.radius / math.sqrt(weight) * (1 + 1e-12) if weight else math.inf
            first, last = self._cell(centre - reach), self._cell(centre + reach)
            firsts.append(first)
            squares.append([weight * self._gap(centre, place) ** 2 for place in range(first, last + 1)])
        least = reduce(np.add.outer, map(np.array, squares))
        reached = np.sqrt(least) * (1 - 1e-12) <= ball.radius if self.is_exact else np.ones(least.shape, np.bool_)
        return tuple(firsts), reached

    def _cell(self, coordinate: float) -> int:
        """The cell of a coordinate; those at the rim have no outer edge."""
        if math.isinf(coordinate):
            return 0 if coordinate < 0 else self._resolution - 1
        return min(max(math.floor((coordinate - self._low) / self._step), 0), self._resolution - 1)

    def _gap(self, centre: float, place: int) -> float:
        """How near the cells at a place of one dimension come to a centre."""
        begin = -math.inf if place == 0 else self._low + place * self._step
        end = math.inf if place == self._resolution - 1 else self._low + (place + 1) * self._step
        return max(begin - centre, centre - end, 0.0)

    def wants(self, event: Event, key: float) -> bool:
        if key != key:
            return False
        if self._reached is None:
            return True
        firsts, reached = self._reached
        values: list[Any] = [read(event) for read in self._readers]
        point = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        places = [self._cell(float(each)) - first for each, first in zip(point, firsts, strict=True)]
        is_inside = all(0 <= place < length for place, length in zip(places, reached.shape, strict=True))
        return is_inside and bool(reached[tuple(places)])


class BoxCells(ExactCells):
    """Others know the smallest box of cells around the region of interest: it moves less often."""

    is_exact = False
