"""How does a running system learn how often its predicates are true?

It counts: a table says of each registered predicate how many of the filtered events fulfilled it. Counters of several
brokers, or of several partitions of a history, are added. A predicate that is new has no counter yet; where others
are known that ask about the same attribute, its share lies between theirs, and is interpolated.

Source: Bittner 2008, sections 6.4.2 and 6.6.1, the selectivity table and example 6.1 (docs/bibliography.md).
Departs: interpolation is linear between the nearest known limits of either direction, `<` and `>` alike; an equality
  takes an even part of what is left between them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Attribute, Compare, Expression, Literal, Not
from tamis.language.meaning import truth
from tamis.selectivity.statistics import GUESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.language.schema import Schema

_Limit = tuple[float, float]
"""An operand, and the share of events whose value is less."""


class Counters:
    """The selectivity table: predicates, how often each was true, and of how many events.

    >>> import tamis
    >>> counters = Counters()
    >>> counters.observe([{"price": price} for price in range(100)], map(tamis.parse, ["price > 20", "price > 60"]))
    >>> counters.share(tamis.parse("price > 20")), counters.share(tamis.parse("price > 40"))
    (0.79, 0.59...)
    """

    def __init__(self, schema: Schema | None = None) -> None:
        self._schema = schema
        self.event_count = 0
        self._counts: Counter[Expression] = Counter()
        self._limits: dict[tuple[str, ...], list[_Limit]] | None = None

    def __len__(self) -> int:
        return len(self._counts)

    def observe(self, events: Iterable[Mapping[str, Any]], predicates: Iterable[Expression]) -> None:
        """Count which of some predicates some events fulfil: the plain way, for those who have no matcher."""
        asked = list(dict.fromkeys(predicates))
        for event in events:
            self.add(1, [each for each in asked if truth(each, event, self._schema) is True])
        self.know(asked)

    def add(self, event_count: int, fulfilled: Iterable[Expression] | Mapping[Expression, int]) -> None:
        """Count some events, and the predicates that they fulfilled."""
        self.event_count += event_count
        self._counts.update(fulfilled)
        self._limits = None

    def know(self, predicates: Iterable[Expression]) -> None:
        """Keep counters for predicates although they were never fulfilled yet."""
        for predicate in predicates:
            self._counts.setdefault(predicate, 0)
        self._limits = None

    def merge(self, others: Counters) -> None:
        """Add what was counted elsewhere, on other events."""
        self.add(others.event_count, others._counts)

    def forget(self, predicate: Expression) -> None:
        """Drop the counter of a predicate that nobody asks any more."""
        self._counts.pop(predicate, None)
        self._limits = None

    def count(self, predicate: Expression) -> int:
        """Return how many events fulfilled a predicate."""
        return self._counts.get(predicate, 0)

    def share(self, predicate: Expression) -> float:
        """Return how often a predicate is true: counted, interpolated, or guessed."""
        if not self.event_count:
            return GUESS
        if predicate in self._counts:
            return self._counts[predicate] / self.event_count
        match predicate:
            case Compare(operator, Attribute(path), Literal(int() | float() as operand)) if operand == operand:
                found = self._interpolated(operator, path, float(operand))
                return GUESS if found is None else min(1.0, max(0.0, found))
            case Not(inner) if inner in self._counts:
                return 1.0 - self._counts[inner] / self.event_count
        return GUESS

    # -- Interpolation

    def _interpolated(self, operator: str, path: tuple[str, ...], operand: float) -> float | None:
        limits = self._known_limits().get(path)
        if not limits:
            return None
        match operator:
            case "<" | "<=":
                return _below(limits, operand)
            case ">" | ">=":
                return 1.0 - _below(limits, operand)
            case "=":
                return self._equal(limits, path, operand)
            case "<>":
                return 1.0 - self._equal(limits, path, operand)
        return None

    def _equal(self, limits: list[_Limit], path: tuple[str, ...], operand: float) -> float:
        """Spread what lies between the limits around a value evenly, the values that are counted left out."""
        at = bisect_left(limits, (operand, -1.0))
        low, below = limits[at - 1] if at else (limits[0][0], 0.0)
        high, above = limits[at] if at < len(limits) else (limits[-1][0], 1.0)
        mass, width = max(0.0, above - below), max(1.0, high - low)
        for known, count in self._counts.items():
            match known:
                case Compare("=", Attribute(other), Literal(int() | float() as value)) if other == path:
                    if low <= value < high:
                        mass, width = max(0.0, mass - count / self.event_count), max(1.0, width - 1)
        return mass / width

    def _known_limits(self) -> dict[tuple[str, ...], list[_Limit]]:
        if self._limits is None:
            self._limits = {}
            for predicate, count in self._counts.items():
                match predicate:
                    case Compare("<" | "<=", Attribute(path), Literal(int() | float() as operand)):
                        below = count / self.event_count
                    case Compare(">" | ">=", Attribute(path), Literal(int() | float() as operand)):
                        below = 1.0 - count / self.event_count
                    case _:
                        continue
                insort(self._limits.setdefault(path, []), (float(operand), below))
        return self._limits


def _below(limits: list[_Limit], operand: float) -> float:
    """Return the share of values less than an operand, between those less than its neighbours."""
    at = bisect_left(limits, (operand, -1.0))
    if at == 0:
        return limits[0][1] / 2
    if at == len(limits):
        return (1.0 + limits[-1][1]) / 2
    (low, below), (high, above) = limits[at - 1], limits[at]
    return below if high == low else below + (above - below) * (operand - low) / (high - low)
