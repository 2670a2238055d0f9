"""How often is a predicate true, if all that is kept of the events is a page of numbers for each attribute?

Of each attribute are kept: how often it is absent, the values that occur most often with their counts, and a histogram
of the others with equally full buckets. It is what databases keep, it is small, one job counts it in a long
history, and it is written to a file that other processes read.

    value       frequent 'New' 0.61, 'Used' 0.31     others: 12 distinct, from 'A..' to 'W..', in buckets
    absent 0.02
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import (
    Attribute,
    Expression,
    IsNull,
    Not,
    postorder,
)
from tamis.language.meaning import truth
from tamis.language.ranges.simple import BETWEEN, IN, PREFIX, SimplePredicate, simple
from tamis.language.requirements import required_kinds
from tamis.language.values import is_number, kind_of, value_of
from tamis.selectivity.lines import standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


FREQUENT_COUNT = 256
BUCKET_COUNT = 64
GUESS = 0.1
"""What is said of a predicate of which nothing is known: a comparison of two attributes, a pattern never met."""


@dataclass(frozen=True, slots=True)
class AttributeStatistics:
    """What is known of one attribute. Counts are of events."""

    absent: int
    frequent: Mapping[Any, int]
    """The values that occur most often."""
    bounds: Sequence[Any] = ()
    """Where the buckets of the other values begin, and where the last one ends, which it includes."""
    counts: Sequence[int] = ()
    """How many events each bucket has."""
    distinct: int = 0
    """How many different values there are besides the frequent ones."""

    @property
    def present(self) -> int:
        """How many events have the attribute."""
        return sum(self.frequent.values()) + sum(self.counts)

    def equal(self, operand: Any) -> float:
        """Return how many events have just this value."""
        for value, count in self.frequent.items():
            if type(value) is type(operand) and value == operand:
                return count
        if any(is_number(operand) and is_number(value) and value == operand for value in self.frequent):
            return next(count for value, count in self.frequent.items() if value == operand)
        if not self.distinct or not _comparable(self.bounds[0], operand):
            return 0.0
        is_inside = _place(self.bounds[0]) <= _place(operand) <= _place(self.bounds[-1])
        return sum(self.counts) / self.distinct if is_inside else 0.0

    def below(self, operand: Any, is_included: bool) -> float:
        """Return how many events have a smaller value, or this one."""
        value_count = 0.0
        at = _place(operand)
        for value, count in self.frequent.items():
            if _comparable(value, operand) and (_place(value) < at or (is_included and _place(value) == at)):
                value_count += count
        for number, count in enumerate(self.counts):
            low, high = self.bounds[number], self.bounds[number + 1]
            if _comparable(low, operand):
                value_count += count * _position(_place(low), _place(high), at)
        return value_count

    def comparable(self, operand: Any) -> float:
        """Return how many events have a value that compares with this one."""
        frequent_count = sum(count for value, count in self.frequent.items() if _comparable(value, operand))
        return frequent_count + (sum(self.counts) if self.counts and _comparable(self.bounds[0], operand) else 0)


class Statistics:
    """Attributes, and how often predicates about them are true.

    >>> import tamis
    >>> statistics = Statistics.of([{"price": price, "new": price > 50} for price in range(100)])
    >>> statistics.share(tamis.parse("price < 20")), statistics.share(tamis.parse("new = TRUE"))
    (0.2, 0.49)
    """

    def __init__(self, event_count: int, attributes: Mapping[str, AttributeStatistics]) -> None:
        self.event_count = event_count
        self.attributes = dict(attributes)
        self._shares: dict[Expression, float] = {}

    @classmethod
    def of(
        cls,
        events: Iterable[Mapping[str, Any]],
        *,
        frequent_count: int = FREQUENT_COUNT,
        bucket_count: int = BUCKET_COUNT,
    ) -> Statistics:
        """Count some events."""
        counters: dict[str, Counter[Any]] = {}
        event_count = 0
        for event in events:
            event_count += 1
            for name, value in _flat(event):
                counters.setdefault(name, Counter())[counted_as(value)] += 1
        return cls(
            event_count,
            {
                name: summarised(counter, event_count, frequent_count, bucket_count)
                for name, counter in counters.items()
            },
        )

    def share(self, predicate: Expression) -> float:
        """Return the estimated share of the events that make a predicate true."""
        known = self._shares.get(predicate)
        if known is None:
            estimate = self._count(predicate) / self.event_count if self.event_count else 0.0
            known = self._shares[predicate] = min(1.0, max(0.0, estimate))
        return known

    def _count(self, predicate: Expression) -> float:
        match predicate:
            case Not(inner):
                return self._negated(inner)
            case Attribute(path):
                return self._about(path).equal(True)
            case IsNull(Attribute(path)):
                return self._about(path).absent
        match simple(predicate):
            case SimplePredicate(operator, Attribute(path), operands):
                return _asked(self._about(path), operator, operands)
        return self._extrapolated(predicate)

    def _negated(self, inner: Expression) -> float:
        if isinstance(inner, IsNull) and isinstance(inner.value, Attribute):
            return self._about(inner.value.path).present
        required = {attribute.path for attribute, _ in required_kinds(inner)}
        known = min((self._about(path).present for path in required), default=self.event_count)
        return known - self._count(inner)

    def _extrapolated(self, predicate: Expression) -> float:
        """Try the frequent values of the only attribute, and take them for all others."""
        paths = {node.path for node in postorder(predicate) if isinstance(node, Attribute)}
        if len(paths) != 1:
            return GUESS * self.event_count
        path = paths.pop()
        about = self._about(path)
        tried = sum(about.frequent.values())
        if not tried:
            return GUESS * about.present
        absent = about.absent if truth(predicate, {}) is True else 0
        true = sum(count for value, count in about.frequent.items() if truth(predicate, _event(path, value)) is True)
        return true / tried * about.present + absent

    def _about(self, path: tuple[str, ...]) -> AttributeStatistics:
        statistics = self.attributes.get(".".join(path))
        return statistics if statistics is not None else AttributeStatistics(self.event_count, {})

    # -- Files

    def to_json(self) -> str:
        """Return a text that `from_json` reads back.

        >>> Statistics.from_json(Statistics.of([{"a": 1}]).to_json()).attributes["a"].frequent
        {1: 1}
        """
        document = {
            name: {
                "absent": about.absent,
                "frequent": [[_as_json(value), count] for value, count in about.frequent.items()],
                "bounds": [_as_json(value) for value in about.bounds],
                "counts": list(about.counts),
                "distinct": about.distinct,
            }
            for name, about in self.attributes.items()
        }
        return json.dumps({"events": self.event_count, "attributes": document})

    @classmethod
    def from_json(cls, text: str) -> Statistics:
        """Read what `to_json` wrote."""
        read = json.loads(text)
        return cls(
            read["events"],
            {
                name: AttributeStatistics(
                    about["absent"],
                    {_read(value): count for value, count in about["frequent"]},
                    [_read(value) for value in about["bounds"]],
                    about["counts"],
                    about["distinct"],
                )
                for name, about in read["attributes"].items()
            },
        )


def _asked(about: AttributeStatistics, operator: str, operands: tuple[Any, ...]) -> float:
    """Return how many values a simple predicate asks for."""
    if operator == BETWEEN:
        low, high = operands
        if low is None or high is None or not _comparable(low, high):
            return 0.0
        return max(0.0, about.below(high, True) - about.below(low, False))
    if operator == IN:
        return sum(about.equal(member) for member in set(operands) if member is not None)
    if operator == PREFIX:
        prefix = operands[0]
        return about.below(prefix + "\U0010ffff", True) - about.below(prefix, False)
    return _compared(about, operator, value_of(operands[0]))


def _compared(about: AttributeStatistics, operator: str, operand: Any) -> float:
    if operand is None:
        return about.absent if operator == "<=>" else 0.0
    match operator:
        case "=" | "<=>":
            return about.equal(operand)
        case "<>":
            return about.comparable(operand) - about.equal(operand)
        case "<":
            return about.below(operand, False)
        case "<=":
            return about.below(operand, True)
        case ">":
            return about.comparable(operand) - about.below(operand, True)
        case _:
            return about.comparable(operand) - about.below(operand, False)


# -- Counting


def _flat(event: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, raw in event.items():
        value = value_of(raw)
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, value


def counted_as(value: Any) -> Any:
    """Return what a value is counted under: 1 and TRUE are two values, 1 and 1.0 are one."""
    if isinstance(value, list):
        return ("array", repr(value))
    return ("boolean", value) if isinstance(value, bool) else value


def summarised(
    counter: Mapping[Any, int],
    event_count: int,
    frequent_count: int = FREQUENT_COUNT,
    bucket_count: int = BUCKET_COUNT,
) -> AttributeStatistics:
    """Return what is kept of the counts of an attribute's values, which are counted under their `counted_as`."""
    counts = {
        (key[1] if isinstance(key, tuple) and key[0] == "boolean" else key): count for key, count in counter.items()
    }
    kinds = Counter(kind_of(value) for value in counts if not isinstance(value, tuple))
    kind = kinds.most_common(1)[0][0] if kinds else ""
    in_order = sorted(counts.items(), key=lambda each: -each[1])
    frequent = dict(in_order[:frequent_count])
    # One line of buckets: what is of another kind than most, and not frequent, is forgotten.
    rest = sorted(
        ((value, count) for value, count in in_order[frequent_count:] if _is_orderly(value, kind)),
        key=lambda each: _place(each[0]),
    )
    bounds, fills = _buckets(rest, bucket_count)
    return AttributeStatistics(event_count - sum(counts.values()), frequent, bounds, fills, len(rest))


def _is_orderly(value: Any, kind: str) -> bool:
    return not isinstance(value, tuple) and kind_of(value) == kind and value == value


def _buckets(rest: list[tuple[Any, int]], bucket_count: int) -> tuple[list[Any], list[int]]:
    if not rest:
        return [], []
    total = sum(count for _, count in rest)
    bounds, fills, filled = [rest[0][0]], [0], 0
    for value, count in rest:
        if filled >= total * len(fills) / bucket_count and fills[-1]:
            bounds.append(value)
            fills.append(0)
        fills[-1] += count
        filled += count
    return [*bounds, rest[-1][0]], fills


# -- Lines


def _comparable(one: Any, two: Any) -> bool:
    return kind_of(one) == kind_of(two)


def _place(value: Any) -> Any:
    """Return where a value stands among those of its kind; NaN is the greatest number."""
    stands = standing(value)
    return inf if stands is None else stands.place


def _position(low: Any, high: Any, at: Any) -> float:
    """Return which share of a bucket lies below a place."""
    if at <= low:
        return 0.0
    if at > high:
        return 1.0
    # Texts have no distance, and neither has infinity.
    return (at - low) / (high - low) if isinstance(at, float) and isfinite(high - low) else 0.5


def _event(path: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    event: Any = value
    for name in reversed(path):
        event = {name: event}
    typed: Mapping[str, Any] = event
    return typed


def _as_json(value: Any) -> Any:
    """Return a value as JSON can say it."""
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, dt.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    return {"other": value[1]} if isinstance(value, tuple) else value


def _read(written: Any) -> Any:
    match written:
        case {"decimal": text}:
            return Decimal(text)
        case {"timestamp": text}:
            return dt.datetime.fromisoformat(text)
        case {"date": text}:
            return dt.date.fromisoformat(text)
        case {"other": text}:
            return ("array", text)
    return written
