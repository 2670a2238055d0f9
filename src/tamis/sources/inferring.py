"""Which types do the columns of a text file have? Schema inference.

Those that Spark sees in it. In CSV a column is the first of these that all of its values are: integers of 32 or 64 bits
or of any length, doubles, dates, instants, Booleans, texts. In JSON a value has its type, and where values of several
meet in one place they become what holds them all: doubles, or texts. Names of JSON columns come in alphabetical order.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_INTEGER = r"^[+-]?[0-9]+$"
_DOUBLE = r"^([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|[+-]?Infinity)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$"
_BOOLEAN = r"(?i)^(true|false)$"
_UTC = pa.timestamp("us", "UTC")


def typed_column(texts: pa.Array) -> pa.Array:
    """Return a column of texts as what all of them are.

    >>> [typed_column(pa.array(each)).type for each in (["1", None], ["1", "2.5"], ["a", "1"], ["2024-01-31"])]
    [DataType(int32), DataType(double), DataType(string), DataType(date32[day])]
    """
    if texts.null_count == len(texts):
        return texts
    for pattern, kinds in (
        (_INTEGER, (pa.int32(), pa.int64(), *_decimals(texts), pa.float64())),
        (_DOUBLE, (pa.float64(),)),
        (_DATE, (pa.date32(),)),
        (_INSTANT, (_UTC,)),
        (_BOOLEAN, (pa.bool_(),)),
    ):
        if not pc.all(pc.match_substring_regex(texts, pattern)).as_py():
            continue
        plain = pc.replace_substring_regex(texts, r"^\+", "")
        for kind in kinds:
            try:
                return instants(texts) if kind == _UTC else plain.cast(kind)
            except pa.ArrowInvalid:
                continue
    return texts


def _decimals(texts: pa.Array) -> list[pa.DataType]:
    """Return the type of integers with so many digits, as far as there is one."""
    digits = pc.max(pc.utf8_length(pc.replace_substring_regex(texts, "^[+-]?0*", ""))).as_py()
    return [pa.decimal128(max(20, digits), 0)] if digits <= 38 else []


def plain_number(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read numbers of a type; raise if one is none of it."""
    pattern = _DOUBLE if pa.types.is_floating(kind) else _INTEGER
    if pc.all(pc.match_substring_regex(texts, pattern)).as_py() is False:
        raise pa.ArrowInvalid("not all of these are numbers")
    return pc.replace_substring_regex(texts, r"^\+", "").cast(kind)


def instants(texts: pa.Array) -> pa.Array:
    """Read instants; those without a zone are UTC's, as the session of Spark's is. Raise if one is none."""
    if pc.all(pc.match_substring_regex(texts, _INSTANT)).as_py() is False:
        raise pa.ArrowInvalid("not all of these are instants")
    whole = pc.replace_substring_regex(pc.replace_substring(texts, "T", " "), "Z$", "+00:00")
    whole = pc.replace_substring_regex(whole, f"({_DATE[1:-1]})$", r"\1 00:00")
    has_zone = pc.match_substring_regex(whole, r"[0-9][+-][0-9]{2}:[0-9]{2}$")
    return pc.if_else(has_zone, whole, pc.binary_join_element_wise(whole, "+00:00", "")).cast(_UTC)


# -- JSON


def json_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Return JSON objects as a table.

    >>> json_table([{"b": 1, "a": "x"}, {"b": 2.5}]).schema.types
    [DataType(string), DataType(double)]
    """
    columns = Columns()
    columns.note(rows)
    return columns.table(rows)


class Columns:
    """The columns of JSON objects that come one after the other."""

    def __init__(self) -> None:
        self._kind: Kind = None

    def note(self, rows: list[dict[str, Any]]) -> None:
        """Take note of the types of some of them."""
        self._kind = _common(self._kind, _together(rows))

    def table(self, rows: list[dict[str, Any]]) -> pa.Table:
        """Return objects, all of which were noted, with the columns of all that were."""
        if not isinstance(self._kind, dict) or not self._kind:
            return pa.table({})
        columns = {}
        for name, kind in sorted(self._kind.items()):
            arrow = _arrow(kind)
            if arrow is not None:
                columns[name] = pa.array([_fitted(row.get(name), kind) for row in rows], arrow)
        return pa.table(columns)


Kind = Any
"""None (nothing but NULL), a name of a simple type, a list of one kind, or a dictionary of kinds by name."""


def _kind(value: Any) -> Kind:
    match value:
        case None:
            return None
        case bool():
            return "boolean"
        case int():
            return "long" if -(2**63) <= value < 2**63 else "decimal" if abs(value) < 10**38 else "double"
        case float():
            return "double"
        case str():
            return "string"
        case list():
            return [_together(value)]
    return {name: _kind(each) for name, each in value.items()}


def _together(values: list[Any]) -> Kind:
    kind: Kind = None
    for value in values:
        kind = _common(kind, _kind(value))
    return kind


def _common(one: Kind, other: Kind) -> Kind:
    """Return what holds values of both kinds."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _common(one.get(name), other.get(name)) for name in one | other}
    if isinstance(one, list) and isinstance(other, list):
        return [_common(one[0], other[0])]
    numbers = {"long", "decimal", "double"}
    if isinstance(one, str) and isinstance(other, str) and {one, other} <= numbers:
        return "double" if "double" in (one, other) else "decimal"
    return "string"


def _arrow(kind: Kind) -> pa.DataType | None:
    """Return Arrow's type; None for a record without fields, which no table has a column for."""
    if isinstance(kind, dict):
        fields = [(name, _arrow(each)) for name, each in sorted(kind.items())]
        present = [(name, each) for name, each in fields if each is not None]
        return pa.struct(present) if present else None
    if isinstance(kind, list):
        inner = _arrow(kind[0])
        return None if inner is None else pa.list_(inner)
    simple = {"boolean": pa.bool_(), "long": pa.int64(), "double": pa.float64(), "decimal": pa.decimal128(38, 0)}
    return simple.get(kind, pa.string())


def _fitted(value: Any, kind: Kind) -> Any:
    """Return a value as one of a kind that holds it."""
    if value is None:
        return None
    if isinstance(kind, dict):
        return {name: _fitted(value.get(name), each) for name, each in kind.items()}
    if isinstance(kind, list):
        return [_fitted(each, kind[0]) for each in value]
    if kind == "double":
        return float(value)
    if kind == "string" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value
