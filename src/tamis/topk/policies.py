"""When does the owner of a ranked subscription tell others that its threshold has moved, and what do they know then?

Others may never know a threshold that is tighter than it is, so what loosens is told at once. What tightens may wait. A
*policy* turns the present threshold into what others know: `EveryChange` tells all; `Hysteresis` tells a looser
threshold than needed, and then nothing until it is exceeded or has become much too loose; the cells of a grid move only
when the region passes an edge.

What others know is a condition like any other (`Policy.filter`), so a broker that has never heard of rankings can
forward, cover and merge it. To everybody but its owner, a ranked subscription is a Boolean filter that moves.

Source: Pripužić 2010, section 5.3.1 (docs/bibliography.md). Hysteresis, the box instead of the ball's own cells, and
the filters are ours.
"""

from __future__ import annotations

import datetime as dt
import math
from abc import ABC, abstractmethod
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import LanguageError
from tamis.language.checking import check
from tamis.language.expressions import FALSE, TRUE, And, Between, Compare, Expression, Literal, Or
from tamis.relations.families import recognised
from tamis.relations.regions import Ball, Everywhere, region_of
from tamis.topk.errors import SettingError
from tamis.topk.scores import reader

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.language.meaning import Event
    from tamis.language.schema import Schema
    from tamis.topk.ranked import Ranked

_EPOCH = dt.datetime(1970, 1, 1)
_LAST_TIME = dt.datetime.max
_FIRST_TIME = dt.datetime.min
_OUTWARDS = 1e-9
"""The edges of cells are moved outwards by this share of a cell, so that rounding shuts nothing out."""


class Policy(ABC):
    """What others know of one subscription's threshold."""

    def __init__(self, ranked: Ranked, schema: Schema | None = None) -> None:
        if ranked.half_life_s is not None:
            raise SettingError(
                f"{ranked} has a half life, and others would need the times of events to know its threshold; choose "
                "no policy"
            )
        self._ranked = ranked
        self._sign = 1 if ranked.is_ascending else -1
        self._known = math.inf
        is_number, is_time = (_is_comparable(ranked.score, each, schema) for each in (0, _EPOCH))
        self._reads_numbers = is_number
        self.reads_times = is_time and not is_number
        """Whether the score may be a time. What the schema leaves open is taken for a number; whoever sees that a score
        is a time, while others still know no threshold, sets this."""

    @abstractmethod
    def moved(self, key: float) -> bool:
        """Take the present threshold, as a key. Return whether others have to be told."""

    @property
    def known(self) -> float:
        """The threshold that others know, as a key, never tighter than the one `moved` took last; infinite: none."""
        return self._known

    def wants(self, event: Event, key: float) -> bool:
        """Would others, by what they know, send this event, which passes the filter and has this key?"""
        return key <= self._known

    def filter(self) -> Expression:
        """Return what others know, as a condition: what passes `where` and has a score within the threshold.

        >>> from tamis.topk.ranked import Ranked
        >>> policy = EveryChange(Ranked("distance(lat, lon, 45.8, 15.97)", 5, "1 HOUR", "rent < 900"))
        >>> print(policy.filter())
        rent < 900
        >>> policy.moved(2.5)
        True
        >>> print(policy.filter())
        rent < 900 AND distance(lat, lon, 45.8, 15.97) <= 2.5D
        """
        return _all_of([self._ranked.where, *self._within()])

    def _within(self) -> list[Expression]:
        """The conditions that make the known threshold."""
        return [] if self._known == math.inf else [self._score_within(self._known)]

    def _score_within(self, key: float) -> Expression:
        """Say that the score is within a key."""
        operator = "<=" if self._ranked.is_ascending else ">="
        if key == -math.inf or math.isnan(key):
            bounds: list[Literal] = [Literal(self._sign * -math.inf)] if key == -math.inf else []
        else:
            bounds = []
            if self._reads_numbers:
                # A score that is not a double was rounded to make the key, so go as far as it may have been.
                is_double = recognised(self._ranked.score)[0].kind in ("euclidean", "geographic")
                bounds.append(Literal(self._sign * (key if is_double else math.nextafter(key, math.inf))))
            if self.reads_times:
                bounds.append(Literal(_time_of(self._sign * key, is_up=self._ranked.is_ascending)))
        conditions = [Compare(operator, self._ranked.score, bound) for bound in bounds]
        if not conditions:
            return FALSE
        return conditions[0] if len(conditions) == 1 else Or(tuple(conditions))


def _is_comparable(score: Expression, constant: Any, schema: Schema | None) -> bool:
    try:
        check(Compare("<", score, Literal(constant)), schema)
    except LanguageError:
        return False
    return True


def _time_of(microseconds: float, *, is_up: bool) -> dt.datetime:
    """Return a time that is so many microseconds after 1970, or a little further up or down; at the ends, the end."""
    if math.isinf(microseconds):
        return _LAST_TIME if microseconds > 0 else _FIRST_TIME
    outwards = math.nextafter(microseconds, math.inf if is_up else -math.inf)
    try:
        return _EPOCH + dt.timedelta(microseconds=math.ceil(outwards) if is_up else math.floor(outwards))
    except OverflowError:
        return _LAST_TIME if microseconds > 0 else _FIRST_TIME


def _all_of(conditions: list[Expression]) -> Expression:
    parts = [each for each in conditions if each != TRUE]
    if not parts:
        return TRUE
    flat = [part for each in parts for part in (each.operands if isinstance(each, And) else (each,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


class EveryChange(Policy):
    """Others know the threshold."""

    def moved(self, key: float) -> bool:
        is_new = key != self._known
        self._known = key
        return is_new


class Hysteresis(Policy):
    """Others know a threshold that is looser by some share, until it is too tight, or looser by several shares."""

    def __init__(self, ranked: Ranked, share: float = 0.1, schema: Schema | None = None) -> None:
        super().__init__(ranked, schema)
        if not share > 0:
            raise SettingError(f"the share of a hysteresis is more than 0, not {share!r}")
        self._share = share

    def moved(self, key: float) -> bool:
        room = self._share * abs(key)
        if key <= self._known <= key + 3 * room or (key == math.inf and self._known == math.inf):
            return False
        self._known = key + room
        return True


class ExactCells(Policy):
    """Others know which cells of a regular grid the region of interest reaches into."""

    is_exact = True

    def __init__(
        self,
        ranked: Ranked,
        resolution: int = 10,
        low: float = 0.0,
        high: float = 1.0,
        schema: Schema | None = None,
    ) -> None:
        super().__init__(ranked, schema)
        ball = region_of(ranked.score, 1.0, is_ascending=ranked.is_ascending)
        if not isinstance(ball, Ball):
            raise SettingError("cells are for Euclidean distances, the nearest first")
        self._resolution, self._low, self._step = resolution, low, (high - low) / resolution
        self._inputs, self._width = ball.inputs, len(ball.centre)
        self._readers = [reader(term) for term in ball.inputs]
        self._reached: tuple[tuple[int, ...], npt.NDArray[np.bool_]] | None = None
        """The first cell in each dimension, and which cells from there on are reached. None: all of the grid."""

    def moved(self, key: float) -> bool:
        region = region_of(self._ranked.score, self._sign * key, is_ascending=self._ranked.is_ascending)
        reached, known = None, math.inf
        if isinstance(region, Ball):
            reached, known = self._cells_of(region)
        elif not isinstance(region, Everywhere):
            reached, known = ((0,) * self._width, np.zeros((0,) * self._width, np.bool_)), -math.inf
        before, self._reached = self._reached, reached
        self._known = max(known, key)
        if reached is None or before is None:
            return reached is not before
        return reached[0] != before[0] or not np.array_equal(reached[1], before[1])

    def _cells_of(self, ball: Ball) -> tuple[tuple[tuple[int, ...], npt.NDArray[np.bool_]], float]:
        """Return which cells a ball reaches, and how far it may grow before it reaches another."""
        firsts, squares, outside = [], [], []
        for centre, weight in zip(ball.centre, ball.weights, strict=True):
            reach = ball.radius / math.sqrt(weight) * (1 + 1e-12) if weight else math.inf
            first, last = self._cell(centre - reach), self._cell(centre + reach)
            firsts.append(first)
            squares.append([weight * self._gap(centre, place) ** 2 for place in range(first, last + 1)])
            outside += [
                weight * self._gap(centre, place) ** 2
                for place in (first - 1, last + 1)
                if 0 <= place < self._resolution
            ]
        least = reduce(np.add.outer, map(np.array, squares))
        reached = np.sqrt(least) * (1 - 1e-12) <= ball.radius if self.is_exact else np.ones(least.shape, np.bool_)
        unreached = [*outside, *least[~reached].tolist()]
        known = math.sqrt(min(unreached)) * (1 + 1e-12) if unreached else math.inf
        return (tuple(firsts), reached), known

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

    def _within(self) -> list[Expression]:
        # A point that is one attribute has no coordinates that a condition could name.
        can_name = len(self._inputs) == self._width
        sides = self._sides() if can_name else []
        return [*sides, *super()._within()] if self.is_exact or not can_name else sides

    def _sides(self) -> list[Expression]:
        """Say that a point is in the box of the cells."""
        if self._reached is None:
            return []
        firsts, reached = self._reached
        if not reached.size:
            return [FALSE]
        sides: list[Expression] = []
        for term, first, count in zip(self._inputs, firsts, reached.shape, strict=True):
            last = first + count - 1
            low = Literal(self._low + (first - _OUTWARDS) * self._step)
            high = Literal(self._low + (last + 1 + _OUTWARDS) * self._step)
            if first > 0 and last < self._resolution - 1:
                sides.append(Between(term, low, high))
            elif first > 0:
                sides.append(Compare(">=", term, low))
            elif last < self._resolution - 1:
                sides.append(Compare("<=", term, high))
        return sides


class BoxCells(ExactCells):
    """Others know the smallest box of cells around the region of interest: it moves less often.

    >>> from tamis.topk.ranked import Ranked
    >>> policy = BoxCells(Ranked("euclidean(array(x, y), array(0.22D, 0.95D))", 5, "1 HOUR"), resolution=4)
    >>> policy.moved(0.1), policy.moved(0.11)
    (True, False)
    >>> print(policy.filter())
    x <= 0.50000000025D AND y >= 0.74999999975D
    """

    is_exact = False
