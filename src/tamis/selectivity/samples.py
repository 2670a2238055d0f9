"""Which share of a sample of events makes a predicate true?

The answer is what the reference meaning counts. Most predicates compare an attribute with a constant, and there may be
a hundred thousand of them: so the sample's values of each attribute are sorted once, and a comparison is a search
in them. Whatever is not so simple is evaluated on each distinct value of its attribute, or on each event.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Attribute, Between, Compare, Expression, In, Literal, Not, postorder
from tamis.language.meaning import attribute_value, truth
from tamis.language.rewrites.canonical import MIRRORED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.language.schema import Schema

_EXACT = 2**53
"""Integers up to here are doubles too, so that all numbers of a column stand on one line."""


class Sample:
    """Events, and how many of them make a predicate true.

    >>> import tamis
    >>> sample = Sample([{"price": 5}, {"price": 15}, {"price": None}, {"price": 25, "bids": 1}])
    >>> sample.share(tamis.parse("price < 20")), sample.share(tamis.parse("bids IS NULL"))
    (0.5, 0.75)
    """

    def __init__(self, events: Iterable[Mapping[str, Any]], schema: Schema | None = None) -> None:
        self._events = list(events)
        self._schema = schema
        self._columns: dict[tuple[str, ...], _Column] = {}
        self._counts: dict[Expression, int] = {}

    def __len__(self) -> int:
        return len(self._events)

    def share(self, predicate: Expression) -> float:
        """Return the share of the events that make a predicate true; of no events, none do."""
        return self.count(predicate) / len(self._events) if self._events else 0.0

    def count(self, predicate: Expression) -> int:
        """Return how many events make a predicate true."""
        known = self._counts.get(predicate)
        if known is None:
            known = self._counts[predicate] = self._count(predicate)
        return known

    def _count(self, predicate: Expression) -> int:
        found = self._searched(predicate)
        if found is not None:
            return found
        attributes = {node.path for node in postorder(predicate) if isinstance(node, Attribute)}
        if len(attributes) == 1:
            path = attributes.pop()
            return sum(
                count for event, count in self._column(path).distinct if truth(predicate, event, self._schema) is True
            )
        return sum(truth(predicate, event, self._schema) is True for event in self._events)

    def _column(self, path: tuple[str, ...]) -> _Column:
        known = self._columns.get(path)
        if known is None:
            known = self._columns[path] = _Column(path, self._events)
        return known

    def _searched(self, predicate: Expression) -> int | None:
        """Count by searching, None where that cannot be done."""
        match predicate:
            case Compare(operator, Attribute(path), Literal(operand)):
                return self._column(path).compared(operator, operand)
            case Compare(operator, Literal(operand), Attribute(path)):
                return self._column(path).compared(MIRRORED[operator], operand)
            case Between(Attribute(path), Literal(low), Literal(high)):
                return self._column(path).between(low, high)
            case In(Attribute(path), members):
                counts = [self._column(path).compared("=", member) for member in dict.fromkeys(members)]
                if None in counts or len({type(member) for member in members}) > 1:
                    return None
                return sum(count for count in counts if count is not None)
            case Not(In(Attribute(path), members)) if len({type(member) for member in members}) == 1:
                inside = self._searched(predicate.value)
                of_kind = self._column(path).of_kind(members[0])
                return None if inside is None or of_kind is None else of_kind - inside
        return None


class _Column:
    """The values of one attribute in a sample."""

    def __init__(self, path: tuple[str, ...], events: list[Mapping[str, Any]]) -> None:
        values = [attribute_value(event, path) for event in events]
        numbers = [value for value in values if type(value) in (int, float) and _is_plain(value)]
        self._texts = sorted(value for value in values if type(value) is str)
        self._types = {type(value) for value in numbers}
        self._numbers: list[float] | None = sorted(map(float, numbers))
        if any(type(value) not in (int, float, str, bool, type(None)) or not _is_plain(value) for value in values):
            self._numbers = None  # decimals, dates, NaN and their like compare by rules of their own
        self.distinct = _distinct(path, values)

    def _line(self, operand: Any) -> tuple[list[Any], Any] | None:
        """Return the values that an operand is compared with, in order, and the operand as it is compared with them."""
        if type(operand) is str:
            return self._texts, operand
        if self._numbers is None:
            return None
        if type(operand) in (int, float) and _is_plain(operand):
            return self._numbers, operand
        if type(operand) is Decimal and len(self._types) < 2:  # a double beside it, but no integer, makes it a double
            return self._numbers, float(operand) if float in self._types else operand
        return None

    def of_kind(self, operand: Any) -> int | None:
        """Return how many values compare with an operand."""
        found = self._line(operand)
        return None if found is None else len(found[0])

    def compared(self, operator: str, operand: Any) -> int | None:
        """Return how many values compare so with an operand; None if searching does not tell."""
        found = self._line(operand)
        if found is None:
            return None
        line, operand = found
        match operator:
            case "=" | "<=>":
                return bisect_right(line, operand) - bisect_left(line, operand)
            case "<>":
                return len(line) - bisect_right(line, operand) + bisect_left(line, operand)
            case "<":
                return bisect_left(line, operand)
            case "<=":
                return bisect_right(line, operand)
            case ">":
                return len(line) - bisect_right(line, operand)
            case _:
                return len(line) - bisect_left(line, operand)

    def between(self, low: Any, high: Any) -> int | None:
        """Return how many values lie from one operand to another; None if searching does not tell."""
        below, above = self._line(low), self._line(high)
        if below is None or above is None or below[0] is not above[0]:
            return None
        return max(0, bisect_right(above[0], above[1]) - bisect_left(below[0], below[1]))


def _is_plain(value: Any) -> bool:
    """Is this no number, or one whose order among doubles is that of all numbers?"""
    if type(value) is float:
        return value == value
    return type(value) is not int or -_EXACT <= value <= _EXACT


def _distinct(path: tuple[str, ...], values: list[Any]) -> list[tuple[Mapping[str, Any], int]]:
    """Return an event for each distinct value, and how many events have it."""
    counts: dict[Any, list[Any]] = {}
    for value in values:
        key = (type(value), repr(value)) if not isinstance(value, str) else value
        counts.setdefault(key, [value, 0])[1] += 1
    found: list[tuple[Mapping[str, Any], int]] = []
    for value, count in counts.values():
        event: Any = value
        for name in reversed(path):
            event = {name: event}
        found.append((event, count))
    return found
