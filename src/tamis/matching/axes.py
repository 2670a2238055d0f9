"""How does an event's value become a small integer? Dictionary encoding that keeps order.

An *axis* is a term (an attribute, or a function of attributes) and a kind of value, with the operands that the
registered predicates compare it with, in order. An event's value is replaced by its *code*: 0 for NULL and for
values of another kind, else one plus its rank, which is twice the number of smaller operands, plus one if an
operand is equal. Every comparison with an operand is then an interval of codes, whatever the type of the value
was.

Numbers have two axes. Beside an integer or decimal operand an event's integers and decimals compare exactly;
beside a double operand every number is a double first. An exact operand that is not told from others as a double
(an integer beyond 2**53, a decimal of more than 15 digits) takes part as a *truth* axis instead.

A truth axis stands for a predicate that is not an interval: a pattern, an array function, a comparison of two
attributes. It has the codes 0 unknown, 1 false, 2 true. What a predicate, or a function of attributes, gives for a
batch is computed column by column (`columnwise`), and for a single event by functions made for it (`closures`).
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
from tamis.language.meaning import attribute_value
from tamis.language.values import instant, is_number
from tamis.matching import kernels
from tamis.matching.closures import Closure, compiled
from tamis.matching.columns import Column, Events, Path, Texts, as_doubles, micros
from tamis.matching.columnwise import term_column, truth_codes
from tamis.matching.distances import Distances

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tamis.language.schema import Schema

Codes = npt.NDArray[np.uint32]

NUMBER, DOUBLE, STRING, TIME, BOOLEAN, TRUTH = "number", "double", "string", "time", "boolean", "truth"
_LARGEST_TABLE = 1 << 20
_BYTES_PER_OPERAND = 64
REMEMBERED_TYPES: dict[str, type] = {NUMBER: int, STRING: str}
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


def is_distinguishable(operand: Any) -> bool:
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
    _remembered: dict[Any, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.paths = paths_of(self.key.term)

    @property
    def remembered(self) -> dict[Any, int]:
        """The codes of some values that came before, of the type in `REMEMBERED_TYPES`."""
        return self._remembered

    @property
    def is_of_numbers(self) -> bool:
        """Are its operands numbers?"""
        return self.key.kind in (NUMBER, DOUBLE)

    @property
    def code_count(self) -> int:
        """How many codes there are, 0 included."""
        return 3 if self.key.kind == TRUTH else 2 * len(self.operands) + 2

    # -- A batch

    def codes(self, events: Events, schema: Schema | None) -> Codes:
        """Return the code of every event."""
        if self.key.kind == TRUTH:
            return truth_codes(self.key.term, events, schema)
        if not isinstance(self.key.term, Attribute):
            distances: list[Distances] = self._cached("distances", lambda: Distances.among([self]))
            if distances:
                codes = np.empty((1, events.count), np.uint32)
                distances[0].write_codes(events, schema, codes)
                return np.asarray(codes[0])
            return self._column_codes(term_column(self.key.term, events, schema))
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
            codes = self._double_codes(as_doubles(column))
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
        operands, nan_code = self._cached("doubles", self._padded_doubles)
        codes = np.empty(len(values), np.uint32)
        kernels.codes_of_doubles(values, operands, nan_code, codes)
        return codes

    def _padded_doubles(self) -> tuple[npt.NDArray[np.float64], int]:
        """Return the operands for `codes_of_doubles`, and the code of NaN."""
        operands = [float(operand) + 0.0 for operand in self.operands]
        count = self._number_count(operands)
        padded = np.full(1 << (count.bit_length()), np.nan)
        padded[:count] = operands[:count]
        return padded, 2 * count + 1 + (count < len(operands))

    def _integer_codes(self, values: npt.NDArray[np.int64], domain: tuple[str, int]) -> Codes:
        base, table, thresholds = self._cached(domain, lambda: _integer_lookup(self._thresholds(domain)))
        codes = np.empty(len(values), np.uint32)
        if table is not None:
            kernels.codes_by_table(values, base, table, codes)
        else:
            codes[:] = np.searchsorted(thresholds, values, "right") + 1
        return codes

    def integer_bounds(self) -> npt.NDArray[np.int64]:
        """Return, of each of its numbers, the least integer that is not below it and the least that is above it."""
        return self._thresholds(("exact", 0))

    def doubles(self) -> npt.NDArray[np.float64]:
        """Return its numbers as doubles, in order, without NaN."""
        operands = [float(operand) + 0.0 for operand in self.operands]
        return np.array(operands[: self._number_count(operands)], np.float64)

    def _thresholds(self, domain: tuple[str, int]) -> npt.NDArray[np.int64]:
        """Return, for each operand, the least integer that is not below it and the least that is above it.

        Those beyond 64 bits no value reaches.
        """
        kind, scale = domain
        operands = self.operands
        if kind != "exact":
            keys = sorting_keys(kind, operands)
        elif scale == 0 and set(map(type, operands)) == {int} and -(2**62) <= operands[0] <= operands[-1] <= 2**62:
            keys = np.fromiter(operands, np.int64, len(operands))
        else:
            lowest, highest = -(2**63), 2**63 - 1
            bounds = (bound for operand in operands for bound in _around(operand, scale))
            return np.array([max(lowest, bound) for bound in bounds if bound <= highest], np.int64)
        return np.stack([keys, keys + 1], axis=1).ravel()

    # -- A single event

    def event_code(self, event: Mapping[str, Any], schema: Schema | None) -> int:
        """Return the code of one event."""
        key = self.key
        if key.kind == TRUTH:
            value = self._closure(schema)(event)
            return 2 if value is True else 1 if value is False else 0
        if type(key.term) is Attribute:
            return self.code(attribute_value(event, key.term.path))
        return self.code(self._closure(schema)(event))

    def _closure(self, schema: Schema | None) -> Closure:
        known = self._cache.get("closure")
        if known is None or known[0] is not schema:
            known = self._cache["closure"] = schema, compiled(self.key.term, schema)
        return known[1]

    def table_of_integers(self) -> tuple[int, memoryview] | None:
        """Return the codes of integers: entry i is that of base + i, and the ends stand for all beyond.

        None where that would take more than some bytes for each operand.
        """
        if self.key.kind != NUMBER or not self.operands:
            return None
        if not self.operands[-1] - self.operands[0] <= _BYTES_PER_OPERAND // 4 * len(self.operands):
            return None
        base, table, _ = self._cached(("exact", 0), lambda: _integer_lookup(self._thresholds(("exact", 0))))
        return None if table is None else (base, memoryview(table))

    def code(self, value: Any) -> int:
        """Return the code of a value. Those of texts and integers are remembered: values come again."""
        if value is None:
            return 0
        kind = self.key.kind
        if type(value) is REMEMBERED_TYPES.get(kind):
            code = self._remembered.get(value)
            if code is None:
                if len(self._remembered) >= _MOST_REMEMBERED:
                    self._remembered.clear()
                code = self._remembered[value] = self._code(value, kind)
            return code
        return self._code(value, kind)

    def _code(self, value: Any, kind: str) -> int:
        if kind == STRING:
            if not isinstance(value, str):
                return 0
        elif kind == DOUBLE or (kind == NUMBER and isinstance(value, float)):
            if not is_number(value):
                return 0
            value = float(value) + 0.0
            doubles = self._cached("double list", lambda: [float(operand) + 0.0 for operand in self.operands])
            if value != value:  # NaN is the greatest
                numbers = bisect_left(doubles, True, key=math.isnan)
                return 2 * numbers + 1 + (numbers < len(doubles))
            return (
                1
                + bisect_left(doubles, value, hi=self._number_count(doubles))
                + bisect_right(doubles, value, hi=self._number_count(doubles))
            )
        elif kind == NUMBER:
            if not is_number(value):
                return 0
        elif kind == TIME:
            if not isinstance(value, dt.date):
                return 0
            value = instant(value)
            instants = self._cached("instants", lambda: [instant(operand) for operand in self.operands])
            return 1 + bisect_left(instants, value) + bisect_right(instants, value)
        elif not isinstance(value, bool):
            return 0
        return 1 + bisect_left(self.operands, value) + bisect_right(self.operands, value)

    def _number_count(self, doubles: list[float]) -> int:
        return len(doubles) - (1 if doubles and doubles[-1] != doubles[-1] else 0)

    def _cached(self, name: Any, make: Callable[[], Any]) -> Any:
        derived = self._cache.get(name)
        if derived is None:
            derived = self._cache[name] = make()
        return derived


def _around(operand: Any, scale: int) -> tuple[int, int]:
    """Return the least integer that is not below the operand in units of 10**-scale, and the least above it."""
    if isinstance(operand, int) and scale == 0:
        return operand, operand + 1
    units = Decimal(operand).scaleb(scale)
    return int(units.to_integral_value(ROUND_CEILING)), int(units.to_integral_value(ROUND_FLOOR)) + 1


def _integer_lookup(thresholds: npt.NDArray[np.int64]) -> tuple[int, Codes | None, npt.NDArray[np.int64]]:
    """Return a table of codes by value where the operands lie close together, and the thresholds themselves.

    A value's rank is the number of thresholds that are not above it.
    """
    if not len(thresholds) or int(thresholds[-1]) - int(thresholds[0]) > _LARGEST_TABLE:
        return 0, None, thresholds
    base = int(thresholds[0]) - 1
    if base < -(2**63):
        return 0, None, thresholds
    table = np.searchsorted(thresholds, np.arange(base, int(thresholds[-1]) + 1), "right") + 1
    return base, table.astype(np.uint32), thresholds


def axis_kind(operand: Any) -> str:
    """Return the kind of axis that an operand of a comparison belongs to, TRUTH where it fits on none."""
    kind = _AXIS_KINDS.get(type(operand), TRUTH)
    return TRUTH if kind == NUMBER and not is_distinguishable(operand) else kind


_AXIS_KINDS = {
    int: NUMBER,
    Decimal: NUMBER,
    float: DOUBLE,
    str: STRING,
    bool: BOOLEAN,
    dt.date: TIME,
    dt.datetime: TIME,
}
