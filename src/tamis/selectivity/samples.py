"""Which share of a sample of events makes a predicate true? Empirical frequencies.

The answer is what the reference meaning counts. Most predicates compare an attribute with a constant, and there may be
a hundred thousand of them: so the sample's values of each attribute are sorted once, along the line of all values
(`language.ranges`), and a comparison is a search in them. Whatever is not so simple is evaluated on each distinct value
of its attribute, or on each event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.expressions import COMPLEMENTS, Attribute, Compare, Expression, Literal, Not, postorder
from tamis.language.meaning import attribute_value, truth
from tamis.language.ranges.predicates import subject, values_of
from tamis.language.ranges.sorted_values import SortedValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.language.schema import Schema


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
        self._columns: dict[tuple[str, ...], _SampledColumn] = {}
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
        asked, is_true = (predicate.value, False) if type(predicate) is Not else (predicate, True)
        term = subject(asked)
        if type(term) is Attribute:
            values = (self._columns.get(term.path) or self._column(term.path)).values
            if type(asked) is Compare and type(asked.right) is Literal:
                operator = asked.operator if is_true else COMPLEMENTS.get(asked.operator, "")
                count = values.compared(operator, asked.right.value)
                if count is not None:
                    return count
            return values.among(values_of(asked, is_true, values.line, self._schema))
        attributes = {node.path for node in postorder(predicate) if isinstance(node, Attribute)}
        if len(attributes) == 1:
            path = attributes.pop()
            return sum(
                count for event, count in self._column(path).distinct if truth(predicate, event, self._schema) is True
            )
        return sum(truth(predicate, event, self._schema) is True for event in self._events)

    def _column(self, path: tuple[str, ...]) -> _SampledColumn:
        known = self._columns.get(path)
        if known is None:
            known = self._columns[path] = _SampledColumn(path, self._events)
        return known


class _SampledColumn:
    """The values of one attribute in a sample."""

    def __init__(self, path: tuple[str, ...], events: list[Mapping[str, Any]]) -> None:
        values = [attribute_value(event, path) for event in events]
        self.values = SortedValues(values)
        self.distinct = _distinct(path, values)


def _distinct(path: tuple[str, ...], values: list[Any]) -> list[tuple[Mapping[str, Any], int]]:
    """Return an event for each distinct value, and how many events have it."""
    counts: dict[Any, list[Any]] = {}
    for value in values:
        key = (type(value), repr(value)) if not isinstance(value, str) else value
        counts.setdefault(key, [value, 0])[1] += 1
    events: list[tuple[Mapping[str, Any], int]] = []
    for value, count in counts.values():
        event: Any = value
        for name in reversed(path):
            event = {name: event}
        events.append((event, count))
    return events
