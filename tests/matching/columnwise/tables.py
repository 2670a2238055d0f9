"""Generated Arrow tables of every type that a column can have, with the ugly values of each."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from tests.strategies import texts

NAMES = ("a", "b", "c", "odd name", "für")

small_integers = st.sampled_from([0, 1, 2, 3, -1, 5, 10])
small_doubles = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.5, -1.5])
doubles = st.one_of(
    small_doubles,
    st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e308, 5e-324, float(2**53), 45.8, -90.0, 360.0]),
    st.floats(),
)
instants = st.one_of(
    st.sampled_from([dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 0, 0, 1), dt.datetime(1970, 1, 1)]),
    st.datetimes(dt.datetime(1680, 1, 1), dt.datetime(2260, 1, 1)),
)
dates = st.one_of(st.sampled_from([dt.date(2024, 2, 29), dt.date.min, dt.date.max]), st.dates())
words = st.one_of(texts, st.sampled_from(["Quote", "StockQuote", "10.1.2.3", "::1", "The Hobbit", " a "]))


def integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    least, greatest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    fitting = small_integers.filter(lambda value: least <= value <= greatest)
    return st.one_of(fitting, st.sampled_from([least, greatest]), st.integers(least, greatest))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    units = st.one_of(
        st.integers(-3, 3).map(lambda whole: whole * 10**scale).filter(lambda unit: abs(unit) <= most),
        st.sampled_from([0, 1, -1, most, -most]),
        st.integers(-most, most),
    )
    return units.map(lambda unit: Decimal(unit).scaleb(-scale))


def lists(element: st.SearchStrategy[Any], **sizes: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.one_of(st.none(), element, element, element), **({"max_size": 3} | sizes))


NUMBERS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): integers(8),
    pa.int16(): integers(16),
    pa.int32(): integers(32),
    pa.int64(): integers(64),
    pa.uint8(): integers(8, signed=False),
    pa.uint16(): integers(16, signed=False),
    pa.uint32(): integers(32, signed=False),
    pa.uint64(): integers(64, signed=False),
    pa.float16(): small_doubles,
    pa.float32(): st.one_of(small_doubles, st.floats(width=32)),
    pa.float64(): doubles,
    pa.decimal128(5, 0): decimals(5, 0),
    pa.decimal128(10, 2): decimals(10, 2),
    pa.decimal128(18, 6): decimals(18, 6),
    pa.decimal128(18, 18): decimals(18, 18),
    pa.decimal128(38, 4): decimals(30, 4),
    pa.decimal256(50, 1): decimals(30, 1),
    pa.decimal32(9, 2): decimals(9, 2),
    pa.decimal64(18, 4): decimals(18, 4),
    pa.dictionary(pa.int8(), pa.int64()): small_integers,
    pa.run_end_encoded(pa.int32(), pa.float64()): small_doubles,
}
TEXTS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): words,
    pa.large_string(): words,
    pa.string_view(): words,
    pa.dictionary(pa.int8(), pa.string()): words,
    pa.dictionary(pa.int32(), pa.large_string()): words,
    pa.dictionary(pa.int16(), pa.string_view()): words,
    pa.run_end_encoded(pa.int16(), pa.string()): words,
}
TIMES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.date32(): dates,
    pa.date64(): dates,
    pa.timestamp("s"): instants.map(lambda instant: instant.replace(microsecond=0)),
    pa.timestamp("ms"): instants.map(lambda instant: instant.replace(microsecond=0)),
    pa.timestamp("us"): instants,
    pa.timestamp("ns", "UTC"): instants,
    pa.timestamp("us", "Europe/Zagreb"): instants,
}
ARRAYS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.list_(pa.string()): lists(words),
    pa.list_(pa.int64()): lists(integers(64)),
    pa.large_list(pa.float64()): lists(doubles),
    pa.list_(pa.decimal128(10, 2)): lists(decimals(10, 2)),
    pa.list_(pa.bool_()): lists(st.booleans()),
    pa.list_(pa.timestamp("us")): lists(instants),
    pa.list_(pa.binary()): lists(st.binary(max_size=2)),
    pa.list_(pa.int64(), 2): lists(small_integers, min_size=2, max_size=2),
    pa.list_view(pa.int64()): lists(small_integers),
    pa.large_list_view(pa.string()): lists(words),
    pa.large_list(pa.string_view()): lists(words),
    pa.list_(pa.list_(pa.int64())): lists(lists(small_integers)),
}
OTHERS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.binary(): st.binary(max_size=2),
    pa.null(): st.none(),
    pa.struct([("x", pa.int64())]): st.fixed_dictionaries({"x": small_integers}),
}


@st.composite
def columns(draw: st.DrawFn, kind: pa.DataType, values: st.SearchStrategy[Any], count: int) -> pa.Array:
    """A column of one type, of which some values are NULL, or none."""
    optional = draw(st.sampled_from([values, st.one_of(st.none(), values, values)]))
    found = draw(st.lists(optional, min_size=count, max_size=count))
    if pa.types.is_float16(kind):
        return pa.array(np.array([0 if value is None else value for value in found], np.float16))
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(pa.array(found, kind.value_type), run_end_type=kind.run_end_type)
    if pa.types.is_dictionary(kind):
        return pa.array(found, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(found, kind)


@st.composite
def tables(draw: st.DrawFn, *kinds: dict[pa.DataType, Any], least: int = 0) -> Any:
    """A table over some of the attributes of the generated expressions, whole, in chunks, or a part of a larger one."""
    count = draw(st.integers(least, 6))
    groups = kinds or (NUMBERS, TEXTS, TIMES, ARRAYS, OTHERS)
    one_of_kinds = st.sampled_from(groups).flatmap(lambda types: st.sampled_from(list(types.items())))
    chosen = {name: draw(one_of_kinds) for name in NAMES if draw(st.integers(0, 9))}
    arrays = {name: draw(columns(*kind, count)) for name, kind in chosen.items()}
    if draw(st.integers(0, 3)):
        field = draw(columns(*draw(one_of_kinds), count))
        arrays["pos"] = pa.StructArray.from_arrays(
            [field], ["x"], mask=pa.array([index == 1 for index in range(count)], pa.bool_())
        )
    if not arrays:
        return pa.table({"unasked": pa.nulls(count)})
    table = pa.table(arrays)
    match draw(st.sampled_from(["whole", "chunks", "part", "batch"])):
        case "chunks":
            return pa.concat_tables([table.slice(0, count // 2), table.slice(count // 2)])
        case "part":
            return table.slice(1) if count > least else table
        case "batch":
            return table.combine_chunks().to_batches()[0] if count else table
    return table
