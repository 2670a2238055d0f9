"""How do events come in as columns? Arrow arrays as typed columns.

A batch is a table (of whatever library, see `tables`) or a list of mappings; to the matchers it is a set of columns,
each of one kind. Arrow's columns are taken as they are, without a Python loop over their values; texts stay dictionary-
encoded.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import EventError
from tamis.language.meaning import attribute_value
from tamis.language.values import DIGITS, GREATEST_INTEGER, LEAST_INTEGER, value_of
from tamis.matching.tables import event_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.matching.tables import Batch

Path: TypeAlias = tuple[str, ...]

EPOCH = dt.datetime(1970, 1, 1)
_DAY_US = 86_400_000_000
_UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
_ALWAYS_VALUES = frozenset({float, bool, type(None)})
"""Types all of whose values are values of the language, as they are."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Distinct texts, as UTF-8 bytes one behind the other."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, values: Sequence[str]) -> Texts:
        """Lay out Python strings."""
        encoded = [value.encode() for value in values]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(text) for text in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def are_valid(self) -> bool:
        """Are they UTF-8? Who writes Arrow should have seen to it, but not everybody does."""
        begin, end = self.offsets[0], self.offsets[-1]
        data = self.data[begin:end]
        if not len(data) or data.max() < 0x80:
            return True
        try:
            data.tobytes().decode()
        except UnicodeDecodeError:
            return False
        starts = self.offsets[:-1][self.offsets[:-1] < end]
        return not ((self.data[starts] & 0xC0) == 0x80).any()  # none begins inside of a character

    def tolist(self) -> list[str]:
        """Return them as Python strings."""
        data = self.data.tobytes()
        return [data[begin:end].decode() for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one attribute.

    kind       what `values` holds
    int        int64, exact integers
    double     float64
    decimal    int64, in units of 10**-scale
    time       int64, microseconds since 1970 in UTC
    boolean    int64, 0 or 1
    string     int32 positions in `texts`; -1 is NULL
    object     a list of Python values, of any kind
    """

    kind: str
    values: Any
    valid: npt.NDArray[np.bool_] | None = None
    """Which values are not NULL; None: all."""
    texts: Texts | None = None
    scale: int = 0


class Events:
    """A batch of events, read column by column, as far as somebody asks."""

    def __init__(self, batch: Batch) -> None:
        self._columns: dict[Path, Column | None] = {}
        self._values: dict[Path, list[Any]] = {}
        """Of events that came as mappings, what was read; matching asks for columns, and others for the values."""
        self.derived: Any = None
        """What was computed from the columns, kept by whom it was computed (`columnwise`)."""
        self._table: Any = None
        self._rows: Sequence[Mapping[str, Any]] | None = None
        rows = event_rows(batch)
        if isinstance(rows, pa.Table | pa.RecordBatch):
            self._table = rows
            self.count: int = rows.num_rows
        else:
            self._rows = rows
            self.count = len(rows)

    @classmethod
    def _of(cls, rows: Sequence[Mapping[str, Any]]) -> Events:
        """Return events that were looked at before."""
        events = cls(())
        events._rows, events.count = rows, len(rows)
        return events

    def slice(self, start: int, count: int) -> Events:
        """Return some of the events."""
        if self._table is not None:
            return Events(self._table.slice(start, count))
        assert self._rows is not None
        return Events._of(self._rows[start : start + count])

    def take(self, rows: npt.NDArray[np.int64]) -> Events:
        """Return the events of these numbers."""
        if self._table is not None:
            return Events(_taken(self._table, pa.array(rows)))
        assert self._rows is not None
        return Events._of([self._rows[row] for row in rows.tolist()])

    @property
    def table(self) -> Any:
        """The table that the events are the rows of; None if they came as mappings."""
        return self._table

    def column(self, path: Path) -> Column | None:
        """Return the values of an attribute, or None where no event has it."""
        if path not in self._columns:
            self._columns[path] = self._read(path)
        return self._columns[path]

    def arrow(self, path: Path) -> Any:
        """Return the values of an attribute as an Arrow array; None where there are none, or they came from Python."""
        return None if self._table is None else self._array(path)

    def values(self, path: Path) -> list[Any]:
        """Return the values of an attribute as Python objects. The list is not to be changed."""
        if self._rows is not None:
            if path not in self._values:
                self._values[path] = _attribute_values(self._rows, path)
            return self._values[path]
        array = self._array(path)
        return [None] * self.count if array is None else _python_values(array)

    def mappings(self) -> Sequence[Mapping[str, Any]]:
        """Return the events as mappings."""
        if self._rows is not None:
            return self._rows
        names = list(dict.fromkeys(self._table.schema.names))
        columns = [self.values((name,)) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * self.count

    def _read(self, path: Path) -> Column | None:
        if self._rows is not None:
            return from_python(self.values(path))
        array = self._array(path)
        return None if array is None else from_arrow(array)

    def _array(self, path: Path) -> Any:
        names = self._table.schema.names
        if path[0] not in names:
            return None
        array = self._table.column(names.index(path[0]))  # the first of two columns of one name
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
            if isinstance(array, pa.ChunkedArray):  # combine_chunks of no chunks at all
                array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        for name in path[1:]:
            if not pa.types.is_struct(array.type):
                return None
            index = array.type.get_field_index(name)
            if index < 0:
                return None
            array = _attribute(array, index)
        return array


def _attribute_values(rows: Sequence[Mapping[str, Any]], path: Path) -> list[Any]:
    """Return `attribute_value` of every event. Of values that are usual it is enough to look at all of them at once."""
    if len(path) != 1:
        return [attribute_value(event, path) for event in rows]
    name = path[0]
    raw: list[Any] = [event.get(name) for event in rows]
    kinds = set(map(type, raw))
    if kinds <= _ALWAYS_VALUES:
        return raw
    present = raw if type(None) not in kinds else [value for value in raw if value is not None]
    kinds.discard(type(None))
    if kinds == {int}:
        is_usual = min(present) >= LEAST_INTEGER and max(present) <= GREATEST_INTEGER
    else:
        is_usual = kinds == {str} and "".join(present).isascii()
    return raw if is_usual else list(map(value_of, raw))


def _attribute(records: Any, index: int) -> Any:
    """Return an attribute of records; a NULL record makes its attributes NULL."""
    values = records.field(index)
    if records.null_count == 0:
        return values
    if pa.types.is_union(values.type):  # Arrow would end the process
        name = records.type.field(index).name
        raise EventError(f"{name!r} is a union inside of records that may be NULL; make it an attribute of one type")
    if pa.types.is_run_end_encoded(values.type):  # runs have no NULLs to add to
        values = pc.run_end_decode(values)
    return pa.StructArray.from_arrays([values], [""], mask=pc.is_null(records)).flatten()[0]


def _taken(table: Any, rows: Any) -> Any:
    """Return some rows, those of views and runs too, which Arrow itself does not take."""
    try:
        return table.take(rows)
    except pa.ArrowNotImplementedError:
        whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        return pa.concat_tables([whole.slice(row, 1) for row in rows.to_pylist()] or [whole.slice(0, 0)])


def _python_values(array: Any) -> list[Any]:
    if pa.types.is_interval(array.type):  # which Python has as a tuple, and which is not an array
        return [None] * len(array)
    if pa.types.is_timestamp(array.type):  # without a zone it is UTC; Python knows no nanoseconds
        array = array.cast(pa.timestamp("us" if array.type.unit == "ns" else array.type.unit), safe=False)
    try:
        values = array.to_pylist()
    except (ValueError, ArithmeticError):
        values = list(map(_python_value, array))
    return [attribute_value({"": value}, ("",)) for value in values]


def _python_value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, ArithmeticError):  # a time beyond Python's years, a decimal of too many digits
        return None


def from_arrow(array: Any) -> Column | None:
    """Read an Arrow array; None for a type of which the language has no values."""
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    kind = array.type
    if pa.types.is_dictionary(kind):
        if _is_text(kind.value_type):
            return _texts(array)
        array = array.dictionary_decode()
        kind = array.type
    if _is_text(kind):
        return _texts(pc.dictionary_encode(array))
    if pa.types.is_integer(kind):
        if pa.types.is_uint64(kind) and (pc.max(array).as_py() or 0) > 2**63 - 1:
            return Column("object", _python_values(array))
        return Column("int", _filled(array.cast(pa.int64()), 0), _valid(array))
    if pa.types.is_floating(kind):
        return Column("double", _filled(array.cast(pa.float64()), 0.0), _valid(array))
    if pa.types.is_boolean(kind):
        return Column("boolean", _filled(array.cast(pa.int8()), 0).astype(np.int64), _valid(array))
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            array = array.cast(pa.timestamp("us"), safe=False)
        return _times(array, 1, _UNITS_US.get(kind.unit, 1))
    if pa.types.is_date32(kind):
        return _times(array.cast(pa.int32()), 1, _DAY_US)
    if pa.types.is_date64(kind):
        return _times(array, _DAY_US // 1000, _DAY_US)
    if pa.types.is_decimal128(kind) and kind.precision <= 18 and 0 <= kind.scale <= DIGITS:
        # Little-endian: the low word of a 128-bit integer of so few digits is the integer itself.
        words = np.frombuffer(array.buffers()[1], np.int64) if len(array) else np.zeros(0, np.int64)
        values = words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
        return Column("decimal", values, _valid(array), scale=kind.scale)
    if pa.types.is_null(kind):
        return None
    values_list = _python_values(array)
    return None if all(value is None for value in values_list) else Column("object", values_list)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _valid(array: Any) -> npt.NDArray[np.bool_] | None:
    return None if array.null_count == 0 else pc.is_valid(array).to_numpy(zero_copy_only=False)


def _filled(array: Any, value: Any) -> Any:
    if array.null_count:
        array = pc.fill_null(array, value)
    return array.to_numpy(zero_copy_only=False)


def _times(array: Any, divisor: int, unit_us: int) -> Column:
    """Read times in units of so many microseconds; those beyond Python's years are not values of the language."""
    units, valid = _filled(array.cast(pa.int64()), 0) // divisor, _valid(array)
    first, last = -(-micros(dt.datetime.min) // unit_us), micros(dt.datetime.max) // unit_us
    if len(units) and (units.min() < first or units.max() > last):
        is_time = (units >= first) & (units <= last)
        units, valid = np.where(is_time, units, 0), is_time if valid is None else valid & is_time
    return Column("time", units * unit_us, valid)


def _texts(array: Any) -> Column:
    positions = _filled(array.indices.cast(pa.int32()), -1)
    dictionary = array.dictionary
    if pa.types.is_string_view(dictionary.type):  # of which Arrow takes no parts
        dictionary = dictionary.cast(pa.large_string())
    if dictionary.null_count:  # a NULL may also hide in the dictionary
        is_null = pc.is_null(dictionary).to_numpy(zero_copy_only=False)
        positions = np.where(is_null[positions] & (positions >= 0), -1, positions).astype(np.int32)
        dictionary = pc.fill_null(dictionary, "")
    if len(dictionary) > 2 * len(positions):  # that of a large table, shared by all its parts: take what is used
        used, places = np.unique(positions, return_inverse=True)
        used = used[used >= 0]
        positions = (places - (len(positions) > 0 and positions.min() < 0)).astype(np.int32)
        dictionary = dictionary.take(pa.array(used))
    texts = _laid_out(dictionary.cast(pa.large_string()))
    if not texts.are_valid():  # what is not Unicode is not a text, and counts as NULL
        words = [_decoded(scalar) for scalar in dictionary.cast(pa.large_binary())]
        is_word = np.array([word is not None for word in words])
        positions = np.where(is_word[positions] & (positions >= 0), positions, -1).astype(np.int32)
        texts = Texts.of([word or "" for word in words])
    return Column("string", positions, texts=texts)


def _laid_out(dictionary: Any) -> Texts:
    """Return the texts of an Arrow array, not copied."""
    _, offsets, data = dictionary.buffers()
    begin = dictionary.offset
    count = len(dictionary)
    ends = np.frombuffer(offsets, np.int64)[begin : begin + count + 1] if count else np.zeros(1, np.int64)
    characters = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return Texts(characters, ends)


def _decoded(scalar: Any) -> str | None:
    try:
        return str(scalar.as_py(), "utf-8")
    except UnicodeDecodeError:
        return None


def from_python(values: list[Any]) -> Column | None:
    """Find the kind of values of the language; what is of several kinds stays as it is."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return None
    if kinds == {str}:
        distinct = dict.fromkeys(values)
        distinct.pop(None, None)
        places: dict[str | None, int] = {text: place for place, text in enumerate(distinct)}
        places[None] = -1
        positions = np.fromiter(map(places.__getitem__, values), np.int32, len(values))
        return Column("string", positions, texts=Texts.of(list(distinct)))
    valid = None if None not in values else np.array([value is not None for value in values])
    if kinds == {int}:
        return Column("int", np.array(values if valid is None else [value or 0 for value in values], np.int64), valid)
    if kinds == {float}:
        present = values if valid is None else [0.0 if value is None else value for value in values]
        return Column("double", np.array(present), valid)
    if kinds == {bool}:
        return Column("boolean", np.array([bool(value) for value in values], np.int64), valid)
    if kinds <= {dt.date, dt.datetime}:
        return Column("time", np.array([0 if value is None else micros(value) for value in values], np.int64), valid)
    if kinds == {Decimal}:
        return _decimals(values, valid) or Column("object", values)
    return Column("object", values)


def _decimals(values: list[Any], valid: npt.NDArray[np.bool_] | None) -> Column | None:
    """Write decimals in units of the last digit that one of them has; None where these need more than 18 digits."""
    scale = max(0, *(-value.as_tuple().exponent for value in values if value is not None))
    most = Decimal(10).scaleb(17 - scale)
    if any(value is not None and value.copy_abs() >= most for value in values):
        return None
    units = [0 if value is None else int(value.scaleb(scale)) for value in values]
    return Column("decimal", np.array(units, np.int64), valid, scale=scale)


def as_doubles(column: Column) -> npt.NDArray[np.float64]:
    """Return a column of numbers as doubles, each as `float` would make it."""
    if column.kind == "decimal":
        if column.scale <= 22:  # both are exact doubles up to 2**53, and so their quotient is rounded once
            small = np.abs(column.values) <= 2**53
            if small.all():
                return np.asarray(column.values / 10.0**column.scale, np.float64)
        unit = Decimal(1).scaleb(-column.scale)
        return np.array([float(int(units) * unit) for units in column.values], np.float64)
    return np.asarray(column.values, np.float64) + 0.0


def micros(value: dt.date) -> int:
    """Return a date or timestamp as microseconds since 1970."""
    instant = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    return (instant - EPOCH) // dt.timedelta(microseconds=1)
