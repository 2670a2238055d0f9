"""How does an event's value become a small integer?

An *axis* is a term (an attribute, or a function of attributes) and a kind of value, with the operands that the
registered predicates compare it with, in order. An event's value is replaced by its *code*: 0 for NULL and for
values of another kind, else one plus its rank, which is twice the number of smaller operands, plus one if an
operand is equal. Every comparison with an operand is then an interval of codes, whatever the type of the value
was.

Numbers have two axes. Beside an integer or decimal operand an event's integers and decimals compare exactly;
beside a double operand every number is a double first. An exact operand that is not told from others as a double
(an integer beyond 2**53, a decimal of more than 15 digits) takes part as a *truth* axis instead.

A truth axis stands for a predicate that is no interval: a pattern, an array function, a comparison of two
attributes. It has the codes 0 unknown, 1 false, 2 true, and is computed once per distinct value, or once per row.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import Attribute, Expression, postorder
from tamis.language.meaning import as_truth, value
from tamis.language.values import instant, is_number
from tamis.matching import kernels
from tamis.matching.columns import Column, Events, Path, Texts, micros

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tamis.language.schema import Schema

Codes = npt.NDArray[np.uint32]

NUMBER, DOUBLE, STRING, TIME, BOOLEAN, TRUTH = "number", "double", "string", "time", "boolean", "truth"
_TRUTH_CODES = {None: 0, False: 1, True: 2}
_LARGEST_TABLE = 1 << 20
_REMEMBERED_TYPES = {NUMBER: int, STRING: str}
_MOST_REMEMBERED = 1 << 14


@dataclass(frozen=True, slots=True)
class AxisKey:
    """What an axis measures: a term and the kind of its values, or a predicate and its truth."""

    term: Expression
    kind: str


def paths_of(term: Expression) -> tuple[Path, ...]:
    """Return the attributes that a term mentions."""
    return tuple(dict.fromkeys(node.path for node in postorder(term) if isinstance(node, Attribute)))


def sorting_keys(kind: str, operands: list[Any]) -> npt.NDArray[Any]:
    """Return what operands are sorted by: numbers as doubles, times as microseconds, Booleans as 0 and 1."""
    if kind in (NUMBER, DOUBLE):
        return np.array(operands, np.float64) + 0.0  # the two zeros are one operand
    if kind == TIME:
        return np.array([micros(operand) for operand in operands], np.int64)
    return np.array(operands, np.int64)


def is_told_apart(operand: Any) -> bool:
    """Is an exact number so short that its double tells it from every other such number?"""
    if isinstance(operand, int):
        return abs(operand) <= 2**53
    return len(operand.as_tuple().digits) <= 15


@dataclass(slots=True)
class Axis:
    """One axis of a segment: its key, and its operands in order, each once."""

    key: AxisKey
    operands: list[Any]
    """Python values in order; NaN last."""
    paths: tuple[Path, ...] = field(init=False)
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    _known: dict[Any, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.paths = paths_of(self.key.term)

    @property
    def code_count(self) -> int:
        """How many codes there are, 0 included."""
        return 3 if self.key.kind == TRUTH else 2 * len(self.operands) + 2

    # -- A batch

    def codes(self, events: Events, schema: Schema | None) -> Codes:
        """Return the code of every event."""
        if self.key.kind == TRUTH:
            return self._by_distinct_value(events, lambda event: _truth_code(self.key.term, event, schema))
        if not isinstance(self.key.term, Attribute):
            return self._by_distinct_value(events, lambda event: self.code(value(self.key.term, event, schema)))
        column = events.column(self.key.term.path)
        if column is None:
            return np.zeros(events.count, np.uint32)
        return self._column_codes(column)

    def _column_codes(self, column: Column) -> Codes:
        kind = self.key.kind
        if column.kind == "object":
            return np.fromiter(map(self.code, column.values), np.uint32, len(column.values))
        if column.kind == "string":
            return self._text_codes(column) if kind == STRING else np.zeros(len(column.values), np.uint32)
        if kind == NUMBER and column.kind in ("int", "decimal"):
            codes = self._integer_codes(column.values, ("exact", column.scale))
        elif kind in (NUMBER, DOUBLE) and column.kind in ("int", "double", "decimal"):
            codes = self._double_codes(_as_doubles(column))
        elif (kind, column.kind) in ((TIME, "time"), (BOOLEAN, "boolean")):
            codes = self._integer_codes(column.values, (kind, 0))
        else:
            return np.zeros(len(column.values), np.uint32)
        if column.valid is not None:
            codes[~column.valid] = 0
        return codes

    def _text_codes(self, column: Column) -> Codes:
        assert column.texts is not None
        operands = self._cached("texts", lambda: Texts.of(self.operands))
        table = np.zeros(len(column.texts) + 1, np.uint32)  # its last entry is NULL's
        ranks = np.empty(len(column.texts), np.uint32)
        kernels.ranks_of_texts(column.texts.data, column.texts.offsets, operands.data, operands.offsets, ranks)
        table[:-1] = ranks + 1
        codes: Codes = table[column.values]
        return codes

    def _double_codes(self, values: npt.NDArray[np.float64]) -> Codes:
        operands = self._cached("doubles", lambda: np.array([float(operand) + 0.0 for operand in self.operands]))
        ranks = np.searchsorted(operands, values, "left") + np.searchsorted(operands, values, "right")
        return (ranks + 1).astype(np.uint32)

    def _integer_codes(self, values: npt.NDArray[np.int64], domain: tuple[str, int]) -> Codes:
        base, table, thresholds = self._cached(domain, lambda: _integer_lookup(self._thresholds(domain)))
        codes = np.empty(len(values), np.uint32)
        if table is not None:
            kernels.codes_by_table(values, base, table, codes)
        else:
            codes[:] = np.searchsorted(thresholds, values, "right") + 1
        return codes

    def _thresholds(self, domain: tuple[str, int]) -> list[int]:
        """Return, for each operand, the least integer that is not below it and the least that is above it."""
        kind, scale = domain
        if kind != "exact":
            return [bound for key in sorting_keys(kind, self.operands).tolist() for bound in (key, key + 1)]
        return [bound for operand in self.operands for bound in _around(operand, scale)]

    def _by_distinct_value(self, events: Events, code: Callable[[Mapping[str, Any]], int]) -> Codes:
        """Compute codes with the reference meaning: once per distinct value of one attribute, or once per row."""
        if not self.paths:
            return np.full(events.count, code({}), np.uint32)
        if len(self.paths) == 1:
            column = events.column(self.paths[0])
            if column is None:
                return np.full(events.count, code({}), np.uint32)
            if column.kind == "string":
                assert column.texts is not None
                table = [code(_nested(self.paths, [text])) for text in column.texts.tolist()]
                by_text: Codes = np.array([*table, code({})], np.uint32)
                by_row: Codes = by_text[column.values]
                return by_row
        rows = zip(*(events.values(path) for path in self.paths), strict=True)
        known: dict[Any, int] = {}
        codes = np.empty(events.count, np.uint32)
        for index, row in enumerate(rows):
            try:
                found = known.get(tuple(map(_typed, row)))
                if found is None:
                    found = known[tuple(map(_typed, row))] = code(_nested(self.paths, list(row)))
            except TypeError:  # arrays and records are not hashable
                found = code(_nested(self.paths, list(row)))
            codes[index] = found
        return codes

    # -- A single event

    def event_code(self, event: Mapping[str, Any], values_of: Mapping[Path, Any], schema: Schema | None) -> int:
        """Return the code of one event, given the values of its attributes."""
        key = self.key
        if type(key.term) is Attribute and key.kind != TRUTH:
            return self.code(values_of[key.term.path])
        if key.kind == TRUTH:
            return _truth_code(key.term, event, schema)
        return self.code(value(key.term, event, schema))

    def code(self, found: Any) -> int:
        """Return the code of a value. Those of texts and integers are remembered: values come again."""
        if found is None:
            return 0
        kind = self.key.kind
        if type(found) is _REMEMBERED_TYPES.get(kind):
            code = self._known.get(found)
            if code is None:
                if len(self._known) >= _MOST_REMEMBERED:
                    self._known.clear()
                code = self._known[found] = self._code(found, kind)
            return code
        return self._code(found, kind)

    def _code(self, found: Any, kind: str) -> int:
        if kind == STRING:
            if not isinstance(found, str):
                return 0
        elif kind == DOUBLE or (kind == NUMBER and isinstance(found, float)):
            if not is_number(found):
                return 0
            found = float(found) + 0.0
            doubles = self._cached("double list", lambda: [float(operand) + 0.0 for operand in self.operands])
            if found != found:  # NaN is the greatest
                numbers = bisect_left(doubles, True, key=math.isnan)
                return 2 * numbers + 1 + (numbers < len(doubles))
            return (
                1
                + bisect_left(doubles, found, hi=self._number_count(doubles))
                + bisect_right(doubles, found, hi=self._number_count(doubles))
            )
        elif kind == NUMBER:
            if not is_number(found):
                return 0
        elif kind == TIME:
            if not isinstance(found, dt.date):
                return 0
            found = instant(found)
            instants = self._cached("instants", lambda: [instant(operand) for operand in self.operands])
            return 1 + bisect_left(instants, found) + bisect_right(instants, found)
        elif not isinstance(found, bool):
            return 0
        return 1 + bisect_left(self.operands, found) + bisect_right(self.operands, found)

    def _number_count(self, doubles: list[float]) -> int:
        return len(doubles) - (1 if doubles and doubles[-1] != doubles[-1] else 0)

    def _cached(self, name: Any, make: Callable[[], Any]) -> Any:
        found = self._cache.get(name)
        if found is None:
            found = self._cache[name] = make()
        return found


def _typed(found: Any) -> Any:
    return (type(found), found)


def _truth_code(predicate: Expression, event: Mapping[str, Any], schema: Schema | None) -> int:
    return _TRUTH_CODES[as_truth(value(predicate, event, schema))]


def _nested(paths: tuple[Path, ...], found: list[Any]) -> dict[str, Any]:
    """Build an event that has just these values."""
    event: dict[str, Any] = {}
    for path, one in zip(paths, found, strict=True):
        inner = event
        for name in path[:-1]:
            below = inner.setdefault(name, {})
            inner = below if isinstance(below, dict) else inner
        if isinstance(inner.get(path[-1]), dict) and not isinstance(one, dict):
            continue
        inner[path[-1]] = one
    return event


def _as_doubles(column: Column) -> npt.NDArray[np.float64]:
    if column.kind == "decimal":
        if column.scale <= 22:  # both are exact doubles up to 2**53, and so their quotient is rounded once
            small = np.abs(column.values) <= 2**53
            if small.all():
                return np.asarray(column.values / 10.0**column.scale, np.float64)
        unit = Decimal(1).scaleb(-column.scale)
        return np.array([float(int(units) * unit) for units in column.values], np.float64)
    return np.asarray(column.values, np.float64) + 0.0


def _around(operand: Any, scale: int) -> tuple[int, int]:
    """Return the least integer that is not below the operand in units of 10**-scale, and the least above it."""
    if isinstance(operand, int) and scale == 0:
        return operand, operand + 1
    units = Decimal(operand).scaleb(scale)
    return int(units.to_integral_value(ROUND_CEILING)), int(units.to_integral_value(ROUND_FLOOR)) + 1


def _integer_lookup(thresholds: list[int]) -> tuple[int, Codes | None, npt.NDArray[np.int64]]:
    """Return a table of codes by value where the operands lie close together, and the thresholds themselves.

    A value's rank is the number of thresholds that are not above it. Those beyond 64 bits no value reaches.
    """
    lowest, highest = -(2**63), 2**63 - 1
    reached = np.array([max(lowest, bound) for bound in thresholds if bound <= highest], np.int64)
    if not len(reached) or int(reached[-1]) - int(reached[0]) > _LARGEST_TABLE:
        return 0, None, reached
    base = int(reached[0]) - 1
    table = np.searchsorted(reached, np.arange(base, int(reached[-1]) + 1), "right") + 1
    return base, table.astype(np.uint32), reached


def axis_kind(operand: Any) -> str:
    """Return the kind of axis that an operand of a comparison belongs to, TRUTH where it fits on none."""
    kind = _AXIS_KINDS.get(type(operand), TRUTH)
    return TRUTH if kind == NUMBER and not is_told_apart(operand) else kind


_AXIS_KINDS = {
    int: NUMBER,
    Decimal: NUMBER,
    float: DOUBLE,
    str: STRING,
    bool: BOOLEAN,
    dt.date: TIME,
    dt.datetime: TIME,
}
