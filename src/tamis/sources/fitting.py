"""What is a value of a file, where its type was said before?

What Spark makes of it in its permissive mode: a value that is none of its type is NULL, and the rest of the row stays.
Texts come from CSV; what comes from JSON has a type of its own, and is a text's only where it is asked for as one.
"""

from __future__ import annotations

import json
from base64 import b64decode
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.sources.inferring import instants, plain_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EXACT = Context(prec=76)


# -- Texts


def texts_as(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column of texts as a type; what is not a value of it is NULL.

    >>> texts_as(pa.array(["1", "2.5", "x", None]), pa.int32()).to_pylist()
    [1, None, None, None]
    """
    if pa.types.is_string(kind):
        return texts
    if pa.types.is_binary(kind):
        return texts.cast(kind)
    try:
        return _column(texts, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # At least one value is none of its type: each is asked by itself.
        return pa.chunked_array(
            [_single(text, kind) for text in texts.to_pylist()] or [pa.array([], kind)], kind
        ).combine_chunks()


def _single(text: str | None, kind: pa.DataType) -> pa.Array:
    try:
        return _column(pa.array([text], pa.string()), kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(1, kind)


def _column(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        # A column without zones drops those that are written, as Spark does.
        column = instants(texts)
        return column if kind.tz else column.cast(pa.timestamp("us"))
    if pa.types.is_decimal(kind):
        return pa.array([_decimal(text, kind) for text in texts.to_pylist()], kind)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return plain_number(texts, kind)
    return texts.cast(kind)


def _decimal(written: Any, kind: Any) -> Decimal | None:
    """Return a number with the digits of a type, rounded half up; None if it has more of them."""
    if written is None:
        return None
    try:
        number = Decimal(written)
        if not number.is_finite():
            return None
        rounded = number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _EXACT)
    except (InvalidOperation, ValueError):
        return None
    return rounded if abs(rounded) < Decimal(10) ** (kind.precision - kind.scale) else None


# -- JSON


def json_as(rows: Sequence[dict[str, Any] | None], columns: pa.Schema) -> pa.Table:
    """Return JSON objects as a table of columns that were said; what is not an object (None) is a row of NULL.

    >>> json_as([{"a": 1, "b": 5}, {"a": "x"}, None], pa.schema({"b": pa.string(), "a": pa.int64()})).to_pylist()
    [{'b': '5', 'a': 1}, {'b': None, 'a': None}, {'b': None, 'a': None}]
    """
    made = {}
    for field in columns:
        values = [None if row is None else _value(row.get(field.name), field.type) for row in rows]
        made[field.name] = pa.array([None if value is _NONE else value for value in values], field.type)
    return pa.table(made, schema=columns)


_NONE = object()
"""What is not a value of its type; within a list it spoils the whole list."""


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    types = pa.types
    if types.is_list(kind):
        if not isinstance(value, list):
            return _NONE
        elements = [_value(each, kind.value_type) for each in value]
        return _NONE if any(each is _NONE for each in elements) else elements
    if types.is_struct(kind):
        if not isinstance(value, dict):
            return _NONE
        members = {field.name: _value(value.get(field.name), field.type) for field in kind}
        return {name: None if member is _NONE else member for name, member in members.items()}
    if types.is_map(kind):
        if not isinstance(value, dict):
            return _NONE
        pairs = [(name, _value(each, kind.item_type)) for name, each in value.items()]
        return _NONE if any(each is _NONE for _, each in pairs) else pairs
    return _scalar(value, kind)


def _scalar(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for is_it, read in _READERS:
        if is_it(kind):
            try:
                return read(value, kind)
            except (ValueError, OverflowError, pa.ArrowInvalid):
                return _NONE
    return _NONE


def _integer(value: Any, kind: pa.DataType) -> Any:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1) else _NONE


def _double(value: Any, _: pa.DataType) -> Any:
    if isinstance(value, str):
        special = {
            "NaN": "nan",
            "Infinity": "inf",
            "+Infinity": "inf",
            "-Infinity": "-inf",
            "INF": "inf",
            "+INF": "inf",
        }
        return float(special[value]) if value in special else float("-inf") if value == "-INF" else _NONE
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _NONE


def _exact(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return _NONE
    decimal = _decimal(repr(value) if isinstance(value, float) else value, kind)
    return _NONE if decimal is None else decimal


def _time(value: Any, kind: pa.DataType) -> Any:
    if not isinstance(value, str):
        return _NONE
    return _column(pa.array([value], pa.string()), kind)[0].as_py()


_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]], ...] = (
    (pa.types.is_boolean, lambda value, _: value if isinstance(value, bool) else _NONE),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _double),
    (pa.types.is_decimal, _exact),
    (pa.types.is_temporal, _time),
    (pa.types.is_binary, lambda value, _: b64decode(value, validate=True) if isinstance(value, str) else _NONE),
)
