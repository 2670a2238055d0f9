"""Which share of a sample of events makes a predicate true? Empirical frequencies.

The answer is what the reference meaning counts. Most predicates compare an attribute with a constant, and there may be
a hundred thousand of them: so the sample's values of each attribute are sorted once, along the line of all values
(`language.ranges`), and a comparison is a search in them. Whatever is not so simple is evaluated on each distinct value
of its attribute, or on each event.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Attribute, Expression, Not, postorder
from tamis.language.meaning import attribute_value, truth
from tamis.language.ranges.lines import DOUBLE, NULL, NUMBER, TEXT, cut_at
from tamis.language.ranges.predicates import subject, values_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.language.ranges.value_sets import Values
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
        asked, is_true = (predicate.value, False) if isinstance(predicate, Not) else (predicate, True)
        term = subject(asked)
        if isinstance(term, Attribute):
            column = self._column(term.path)
            return column.among(values_of(asked, is_true, column.line, self._schema))
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


_OF_ONE_RANK = (("double", {NULL, DOUBLE}), ("decimal", {NULL, NUMBER}), ("string", {NULL, TEXT}))


class _Column:
    """The values of one attribute in a sample."""

    def __init__(self, path: tuple[str, ...], events: list[Mapping[str, Any]]) -> None:
        values = [attribute_value(event, path) for event in events]
        self._cuts = sorted(map(cut_at, values))
        ranks = {cut[0] for cut in self._cuts}
        self.line = next((line for line, only in _OF_ONE_RANK if ranks <= only), "any")
        """The type of the values, where they are all of one: operands then have to be placed on one rank only."""
        self.distinct = _distinct(path, values)

    def among(self, wanted: Values) -> int:
        """Return how many of the values are in a set: of each of its stretches, what lies before the end of it."""
        count, sign = 0, -1
        for cut in wanted:  # starts and ends take turns
            count += sign * bisect_left(self._cuts, cut)
            sign = -sign
        return count


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
