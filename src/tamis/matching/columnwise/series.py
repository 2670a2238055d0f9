"""What are the values of an expression for all events of a batch?

A `Series` is a column of values, one for each event, or a single one that stands for all of them (a literal). Like a
`Column` it is of one kind; unlike a column it knows arrays, and between which bounds its integers lie, so that most
sums and products need no look at the rows to be sure that none of them overflows.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.language.values import EXACT, GREATEST_INTEGER, LEAST_INTEGER
from tamis.matching.columns import EPOCH, Column, Texts, as_doubles, from_arrow, from_python, micros

Flags: TypeAlias = npt.NDArray[np.bool_]
MIXED = "mixed"
NUMBERS = ("int", "decimal", "double")
"""The kinds that are numbers, the widest last."""


class Words:
    """The distinct texts of a series, in the forms that functions of texts want; each is made when it is asked for."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts

    @classmethod
    def of(cls, strings: list[str]) -> Words:
        """Take Python strings."""
        words = cls(Texts.of(strings))
        words.strings = strings
        return words

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def strings(self) -> list[str]:
        """The texts as Python sees them."""
        return self.texts.tolist()

    @cached_property
    def arrow(self) -> Any:
        """The texts as Arrow sees them, not copied."""
        offsets, data = pa.py_buffer(self.texts.offsets), pa.py_buffer(self.texts.data)
        return pa.LargeStringArray.from_buffers(len(self), offsets, data)


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one kind.

    kind       what `values` holds
    null       nothing: all are NULL
    int        int64
    double     float64
    decimal    int64, in units of 10**-scale
    time       int64, microseconds since 1970 in UTC
    boolean    bool
    string     int32 positions among `words`; -1 is NULL
    array      int64, where each array ends among the values of `elements`; it starts where the one before ends
    object     a list of Python values, of any kind
    mixed      uint8, which of the series in `elements` a row is of; one more than there are is NULL (`choices.py`)
    """

    kind: str
    values: Any = None
    valid: Flags | None = None
    """Which values are not NULL; None: all. Texts and objects say it themselves."""
    scale: int = 0
    bounds: tuple[int, int] = (0, 0)
    """No integer, and no decimal in its units, lies outside."""
    words: Any = None
    elements: Any = None

    def __post_init__(self) -> None:
        if self.valid is not None and len(self.valid) != len(self.values):
            values, valid = np.broadcast_arrays(self.values, self.valid)
            object.__setattr__(self, "values", values)
            object.__setattr__(self, "valid", valid)

    @property
    def is_constant(self) -> bool:
        """Does one value stand for all events?"""
        return self.kind == "null" or len(self.values) == 1

    def constant_text(self) -> str | None:
        """Return the one text that stands for all events, None for NULL.

        It need not be the first of the words: a block of one event shares the dictionary of its table.
        """
        position = int(self.values[0])
        return None if position < 0 else self.words.strings[position]

    def known(self) -> Flags | None:
        """Return which values are not NULL; None: all."""
        match self.kind:
            case "null":
                return np.zeros(1, np.bool_)
            case "string":
                return np.asarray(self.values >= 0)
            case "object":
                return np.fromiter((value is not None for value in self.values), np.bool_, len(self.values))
            case "mixed":
                known = np.zeros(len(self.values), np.bool_)
                for index, part in enumerate(self.elements):
                    flags = part.known()
                    known |= (self.values == index) if flags is None else (self.values == index) & flags
                return known
            case _:
                return self.valid

    def doubles(self) -> npt.NDArray[np.float64]:
        """Return numbers as doubles, each as `float` would make it."""
        if self.kind == "double":
            numbers: npt.NDArray[np.float64] = self.values
            return numbers
        if len(self.values) == 1:
            return np.array([float(Decimal(int(self.values[0])).scaleb(-self.scale, EXACT))])
        return as_doubles(Column(self.kind, self.values, self.valid, scale=self.scale))

    def tolist(self) -> list[Any]:
        """Return the values as the reference meaning sees them."""
        match self.kind:
            case "null":
                return [None]
            case "object":
                return list(self.values)
            case "mixed":
                parts = [[*part.tolist() * (len(self.values) if part.is_constant else 1)] for part in self.elements]
                parts.append([None] * len(self.values))
                return [parts[index][row] for row, index in enumerate(self.values.tolist())]
            case "string":
                strings = [*self.words.strings, None]  # -1 finds the last one
                return [strings[position] for position in self.values.tolist()]
            case "array":
                ends = self.values.tolist()
                flat = [None] * (ends or [0])[-1] if self.elements.kind == "null" else self.elements.tolist()
                arrays: list[Any] = [flat[begin:end] for begin, end in zip([0, *ends][:-1], ends, strict=True)]
            case "decimal":
                arrays = [Decimal(units).scaleb(-self.scale, EXACT) for units in self.values.tolist()]
            case "time":
                sane = self.values if self.valid is None else np.where(self.valid, self.values, 0)
                arrays = [EPOCH + dt.timedelta(microseconds=value) for value in sane.tolist()]
            case _:
                arrays = self.values.tolist()
        if self.valid is None:
            return arrays
        return [value if is_valid else None for value, is_valid in zip(arrays, self.valid.tolist(), strict=True)]

    def column(self, count: int) -> Column:
        """Return the series as a column of so many events."""
        if self.kind == MIXED:
            numbers = self._as_numbers()
            return Column("object", self._spread(count)) if numbers is None else numbers.column(count)
        if self.kind == "object":
            return Column("object", self.values * count if len(self.values) < count else self.values[:count])
        if self.kind in ("null", "array"):  # arrays have no place on any axis
            return Column("int", np.zeros(count, np.int64), np.zeros(count, np.bool_))
        values = np.ascontiguousarray(np.broadcast_to(self.values, count))
        if self.kind == "string":
            return Column("string", values, texts=self.words.texts)
        valid = None if self.valid is None else np.ascontiguousarray(np.broadcast_to(self.valid, count))
        return Column(self.kind, values.astype(np.int64) if self.kind == "boolean" else values, valid, scale=self.scale)

    def _spread(self, count: int) -> list[Any]:
        values = self.tolist()
        return values * count if len(values) < count else values

    def _as_numbers(self) -> Series | None:
        """Return mixed numbers as doubles, if none of them is told from its double by an operand of an axis.

        Integers up to 2**53 and decimals of up to 15 digits are not: the operands that are compared exactly are as
        short (`axes.is_told_apart`), and between such numbers doubles have the same order.
        """
        values: Any = np.zeros(len(self.values))
        valid = np.zeros(len(self.values), np.bool_)
        for index, part in enumerate(self.elements):
            most = {"int": 2**53, "decimal": 10**15 - 1, "double": 0}.get(part.kind)
            if most is None or max(map(abs, part.bounds)) > most:
                return None
            rows = self.values == index
            values = np.where(rows, part.doubles(), values)
            valid |= rows if part.valid is None else rows & part.valid
        return Series("double", values, valid)


NULL = Series("null")


def exact(kind: str, values: Any, valid: Flags | None = None, scale: int = 0) -> Series:
    """Return integers or decimals with the bounds that are seen."""
    seen = values
    if valid is not None:
        each, known = np.broadcast_arrays(values, valid)
        seen = each[known]
    return Series(kind, values, valid, scale, (int(seen.min()), int(seen.max())) if len(seen) else (0, 0))


def both(one: Flags | None, two: Flags | None) -> Flags | None:
    """Return where both are valid."""
    if one is None or two is None:
        return two if one is None else one
    return one & two


def texts_of(strings: list[str], positions: Any) -> Series:
    """Return texts by their positions among some strings."""
    return Series("string", positions, words=Words.of(strings))


def by_text(of_texts: Any, texts: Series) -> Any:
    """Spread what was found for each distinct text over the rows; a NULL gets what nobody will look at."""
    return of_texts[np.maximum(texts.values, 0)] if len(of_texts) else np.zeros(len(texts.values), of_texts.dtype)


def from_column(column: Column | None) -> Series:
    """Return the series of an attribute."""
    if column is None:
        return NULL
    match column.kind:
        case "int" | "decimal":
            return exact(column.kind, column.values, column.valid, column.scale)
        case "string":
            return Series("string", column.values, words=Words(column.texts or Texts.of([])))
        case "boolean":
            return Series("boolean", column.values.astype(np.bool_), column.valid)
        case "object":
            return _arrays(column.values) or Series("object", column.values)
        case _:
            return Series(column.kind, column.values, column.valid)


def from_values(values: list[Any]) -> Series:
    """Return values of the language as a series of the narrowest kind that holds them."""
    try:
        return from_column(from_python(values))
    except OverflowError:  # an integer that was written by hand, and has more than 64 bits
        return Series("object", values)


def _arrays(values: list[Any]) -> Series | None:
    """Return Python lists as arrays; None where some are not lists."""
    if not {type(value) for value in values} <= {list, type(None)}:
        return None
    ends = np.cumsum([0 if value is None else len(value) for value in values])
    elements = from_values([element for value in values if value is not None for element in value])
    valid = np.array([value is not None for value in values], np.bool_)
    return Series("array", ends, None if valid.all() else valid, elements=elements)


def from_arrow_arrays(array: Any) -> Series | None:
    """Return an Arrow column of lists; None for a column of another type."""
    if not (
        pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type)
    ):
        return None
    wide = array.cast(pa.large_list(array.type.value_type))
    offsets = wide.offsets.to_numpy()
    elements = from_column(from_arrow(wide.values.slice(offsets[0], offsets[-1] - offsets[0])))
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    return Series("array", offsets[1:] - offsets[0], valid, elements=elements)


def literal(value: Any) -> Series:
    """Return the series of a constant."""
    kind = type(value)
    if value is None:
        return NULL
    if kind is bool:
        return Series("boolean", np.array([value]))
    if kind is int and LEAST_INTEGER <= value <= GREATEST_INTEGER:
        return exact("int", np.array([value], np.int64))
    if kind is float:
        return Series("double", np.array([value]))
    if kind is str and _is_text(value):
        return texts_of([value], np.zeros(1, np.int32))
    if kind is Decimal and value.is_finite():
        scale = max(0, -int(value.as_tuple().exponent))
        units = int(value.scaleb(scale, EXACT)) if value.adjusted() < 20 else 2**64
        if LEAST_INTEGER <= units <= GREATEST_INTEGER:
            return exact("decimal", np.array([units], np.int64), scale=scale)
    if kind is dt.date or (kind is dt.datetime and value.tzinfo is None):
        return Series("time", np.array([micros(value)], np.int64))
    return Series("object", [value])


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
