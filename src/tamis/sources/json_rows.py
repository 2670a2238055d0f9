"""How is a row written as JSON?

As Spark's `to_json` writes it, so that `from_json` with the same schema reads the same row again: what is NULL is
left out, instants are ISO texts in UTC, bytes are base64, NaN and the infinities are texts, decimals are numbers with
all their digits.

>>> import pyarrow as pa
>>> for row in json_rows(pa.RecordBatch.from_pylist([{"price": 1.5, "title": "Ü"}, {"price": None, "title": ""}])):
...     print(row)
{"price":1.5,"title":"Ü"}
{"title":""}
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.sources.errors import ColumnError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Writing = Callable[[Any], str]


def json_rows(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield every row as an object."""
    names = [_text(field.name) + ":" for field in batch.schema]
    writing = [json_writer(field.type) for field in batch.schema]
    columns = [column.to_pylist() for column in batch.columns]
    for values in zip(*columns, strict=True) if columns else ((),) * batch.num_rows:
        parts = (
            name + write(value) for name, write, value in zip(names, writing, values, strict=True) if value is not None
        )
        yield "{" + ",".join(parts) + "}"


_text = partial(json.dumps, ensure_ascii=False)


def json_writer(kind: pa.DataType) -> Writing:
    """Return how a value of a type is written; none is NULL."""
    types = pa.types
    if types.is_boolean(kind):
        return lambda value: "true" if value else "false"
    if types.is_floating(kind):
        return _double
    if types.is_integer(kind) or types.is_decimal(kind):
        return lambda value: format(value, "f") if types.is_decimal(kind) else str(value)
    if types.is_string(kind) or types.is_large_string(kind):
        return _text
    if types.is_binary(kind) or types.is_large_binary(kind):
        return lambda value: f'"{b64encode(value).decode()}"'
    if types.is_timestamp(kind):
        return _instant if kind.tz else lambda value: f'"{value.isoformat(timespec="microseconds")}"'
    if types.is_date(kind):
        return lambda value: f'"{value.isoformat()}"'
    if types.is_list(kind) or types.is_large_list(kind):
        return partial(_list, json_writer(kind.value_type))
    if types.is_struct(kind):
        return partial(_record, {field.name: json_writer(field.type) for field in kind})
    if types.is_map(kind):
        return partial(_map, json_writer(kind.item_type))
    if types.is_null(kind):
        return lambda value: "null"
    raise ColumnError(f"a column of type {kind} cannot be written as JSON; cast it to STRING")


def _double(value: float) -> str:
    if isfinite(value):
        return repr(value)
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'


def _instant(value: Any) -> str:
    from datetime import UTC

    return f'"{value.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")}Z"'


def _list(write: Writing, values: list[Any]) -> str:
    return "[" + ",".join("null" if value is None else write(value) for value in values) + "]"


def _record(writing: dict[str, Writing], record: dict[str, Any]) -> str:
    parts = (f"{_text(name)}:{write(record[name])}" for name, write in writing.items() if record[name] is not None)
    return "{" + ",".join(parts) + "}"


def _map(write: Writing, pairs: list[tuple[Any, Any]]) -> str:
    parts = (f"{_text(str(key))}:{'null' if value is None else write(value)}" for key, value in pairs)
    return "{" + ",".join(parts) + "}"
