"""Which of many moving filters does an event pass? A table of proxies.

To everybody but its home, a ranked subscription is a filter that moves: `where AND score <= threshold`. To a matcher,
every move is another filter, which is registered anew. Here scores stand in columns, as many as have one form (a
family) together, and a threshold is one number in a column beside them. What moves changes that number.

A *seat* is the place of a filter apart from its threshold. Filters that differ in their thresholds alone share one, and
a seat whose last filter goes is kept until the next event: mostly the same filter comes again, with another threshold.

An event's scores say who may want it; near a threshold, where rounding decides, the filter itself is asked.

Source: the lightweight processor of Pripužić 2010, section 4.2 (docs/bibliography.md).
Departs: filters are recognised by their form, so whoever keeps them need not know of rankings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.expressions import TRUE, And, Attribute, Compare, Literal
from tamis.language.meaning import holds
from tamis.language.values import is_number
from tamis.relations.families import ONE, Number, recognised
from tamis.topk.interest import ThresholdIndex
from tamis.topk.ranked import Ranked
from tamis.topk.scores import reader
from tamis.topk.scoring import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from tamis.language.expressions import Expression
    from tamis.language.meaning import Event
    from tamis.language.schema import Schema
    from tamis.relations.families import Family

_HUGE = 1e150
"""Sums and products of numbers below it are numbers, and not NaN."""


class MovingFilter(NamedTuple):
    """A filter on a computed score, in parts.

    >>> import tamis
    >>> print(MovingFilter.of(tamis.parse("rent < 900 AND euclidean(array(x, y), array(1, 2)) <= 2.5")).where)
    rent < 900
    >>> MovingFilter.of(tamis.parse("rent < 900 AND x <= 2.5")) is None
    True
    """

    where: Expression
    compare: Compare
    threshold: float
    """As a key: the smaller the tighter."""

    @staticmethod
    def of(expression: Expression) -> MovingFilter | None:
        """Return the parts of a filter of this form; None if it is another.

        Attributes alone are left to matchers, to whom they are intervals.
        """
        *wheres, last = expression.operands if isinstance(expression, And) else (expression,)
        match last:
            case Compare("<=" | ">=", score, Literal(int() | float() | Decimal() as bound)) if is_number(
                bound
            ) and not isinstance(score, Attribute):
                threshold = _double(bound)
                if not math.isfinite(threshold):
                    return None
                where = TRUE if not wheres else wheres[0] if len(wheres) == 1 else And(tuple(wheres))
                return MovingFilter(where, last, threshold if last.operator == "<=" else -threshold)
        return None


def _double(number: Number) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


@dataclass(slots=True, eq=False)
class _Seat:
    """Filters that are alike but for their thresholds."""

    place: tuple[Any, ...]
    column: _FamilyColumn
    slot: int
    handle: int
    filters: dict[Hashable, MovingFilter] = field(default_factory=dict)


class _FamilyColumn:
    """The seats of one family of scores."""

    def __init__(self, family: Family, schema: Schema | None, index: str) -> None:
        self.family = family
        self.group = Group(family, schema)
        self.index = ThresholdIndex(self.group, index)
        self.is_ascending = True
        self._readers = [reader(each, schema) for each in family.inputs if each is not ONE]

    def may_score_nan(self, event: Event) -> bool:
        """May the score be NaN, which is more than any threshold, though nothing ranks by it?"""
        values = [read(event) for read in self._readers]
        flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
        return any(is_number(each) and not abs(_double(each)) < _HUGE for each in flat)


class ProxyTable:
    """Moving filters, and whom of their owners an event interests.

    >>> import tamis
    >>> table = ProxyTable()
    >>> near = "euclidean(array(x, y), array({}, 0)) <= {}"
    >>> [table.add(x, tamis.parse(near.format(x, 2))) for x in (0, 1, 5)]
    [True, True, True]
    >>> list(table.wanted({"x": 1, "y": 0}))
    [0, 1]
    >>> table.remove(5), table.add(5, tamis.parse(near.format(5, 4))), sorted(table.wanted({"x": 1, "y": 0}))
    (None, True, [0, 1, 5])
    """

    def __init__(self, schema: Schema | None = None, *, index: str = "columns") -> None:
        self._schema = schema
        self._index = index
        self._columns: dict[tuple[Family, bool], _FamilyColumn] = {}
        self._seats: dict[tuple[Any, ...], _Seat] = {}
        self._by_id: dict[Hashable, _Seat] = {}
        self._by_handle: dict[int, _Seat] = {}
        self._handles = 0
        self._empty: dict[tuple[Any, ...], _Seat] = {}
        """Seats without a filter, which the next event finds no more."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._by_id

    @property
    def seat_count(self) -> int:
        """How many filters there are, apart from their thresholds, and how many of them have gone just now."""
        return len(self._seats)

    def add(self, id: Hashable, expression: Expression) -> bool:
        """Take a filter under a new id, if it is one that moves; return whether it is."""
        moving = MovingFilter.of(expression)
        if moving is None:
            return False
        assert id not in self._by_id
        place = (moving.where, moving.compare.left, moving.compare.operator)
        seat = self._seats.get(place)
        if seat is None:
            seat = self._seats[place] = self._seated(place, moving)
        self._empty.pop(place, None)
        seat.filters[id] = moving
        self._by_id[id] = seat
        self._set(seat)
        return True

    def remove(self, id: Hashable) -> None:
        """Forget a filter."""
        seat = self._by_id.pop(id)
        del seat.filters[id]
        if seat.filters:
            self._set(seat)
        else:
            self._empty[seat.place] = seat

    def wanted(self, event: Event, skips: Callable[[Any], bool] | None = None) -> Iterator[Any]:
        """Yield the ids of the filters that an event passes; those are not looked at that are skipped then."""
        self._clear()
        passes: dict[Expression, bool] = {}
        for column in self._columns.values():
            for seat, key in self._near(column, event):
                for id, moving in list(seat.filters.items()):
                    if skips is not None and skips(id):
                        continue
                    where = moving.where
                    if where not in passes:
                        passes[where] = holds(where, event, self._schema)
                    if not passes[where]:
                        break
                    # Within by more than rounding is certain, unless what ranks as a number is a time.
                    is_certain = column.family.kind != "shared" and key < math.nextafter(moving.threshold, -math.inf)
                    if is_certain or (
                        not key > moving.threshold and holds(moving.compare, event, self._schema)  # or NaN
                    ):
                        yield id

    def _near(self, column: _FamilyColumn, event: Event) -> list[tuple[_Seat, float]]:
        """Return the seats whose filters an event may pass, with its keys."""
        if not column.is_ascending and column.may_score_nan(event):
            return [(seat, math.nan) for seat in self._seats.values() if seat.column is column]
        column.index.read(event, is_sampled=True)
        return [(self._by_handle[handle], key) for handle, key in column.index.interested().items()]

    # -- Seats

    def _seated(self, place: tuple[Any, ...], moving: MovingFilter) -> _Seat:
        is_ascending = moving.compare.operator == "<="
        ranked = Ranked(moving.compare.left, 1, "1 HOUR", order="ASC" if is_ascending else "DESC")
        family, numbers = recognised(ranked.score, is_ascending)
        column = self._columns.get((family, is_ascending))
        if column is None:
            column = self._columns[family, is_ascending] = _FamilyColumn(family, self._schema, self._index)
            column.is_ascending = is_ascending
        seat = self._by_handle[self._handles] = _Seat(place, column, column.group.add(ranked, numbers), self._handles)
        column.index.add(seat.slot, seat.handle, is_sought=True)
        self._handles += 1
        return seat

    def _set(self, seat: _Seat) -> None:
        """Let the threshold of a seat be the loosest of its filters: one number in a column."""
        seat.column.index.moved(seat.slot, max(each.threshold for each in seat.filters.values()))

    def _clear(self) -> None:
        """Let seats go that nobody has taken since they became empty."""
        if not self._empty:
            return
        for place, seat in self._empty.items():
            del self._seats[place], self._by_handle[seat.handle]
            seat.column.index.remove(seat.slot)
            seat.column.group.remove(seat.slot)
        self._empty.clear()
        for kind in [kind for kind, column in self._columns.items() if not len(column.group)]:
            del self._columns[kind]
