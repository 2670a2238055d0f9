"""In how many ways does Arrow write the same values?

A text may lie in a plain, a large or a view column, in a dictionary (with NULL among its words, with words that nobody
uses, with one word twice) or in runs; a number has widths, a time has units and zones, an array has offsets, views or
one size for all; and every column may come whole, in chunks, or as a part of a larger one. None of it changes what a
condition means.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Encoding = Callable[[list[Any]], pa.Array]
SHAPES = ("whole", "chunks", "part", "batch", "single chunks")


def plain(kind: pa.DataType) -> Encoding:
    return lambda values: pa.array(values, kind)


def in_dictionary(index: pa.DataType, kind: pa.DataType) -> Encoding:
    return lambda values: pa.array(values, kind).dictionary_encode().cast(pa.dictionary(index, kind))


def in_crowded_dictionary(kind: pa.DataType) -> Encoding:
    """A dictionary with NULL among its words, each word twice, and words that nobody uses."""

    def encoded(values: list[Any]) -> pa.Array:
        words = [*dict.fromkeys(values), None]
        positions = [words.index(value) + (len(words) if row % 2 else 0) for row, value in enumerate(values)]
        return pa.DictionaryArray.from_arrays(pa.array(positions, pa.int16()), pa.array([*words, *words], kind))

    return encoded


def in_runs(ends: pa.DataType, kind: pa.DataType) -> Encoding:
    return lambda values: pc.run_end_encode(pa.array(values, kind), run_end_type=ends)


def half(values: list[Any]) -> pa.Array:
    with np.errstate(over="ignore"):  # what does not fit is found out later
        return pa.array([None if value is None else np.float16(value) for value in values], pa.float16())


def as_instants(kind: pa.DataType) -> Encoding:
    """Dates as the first moments of days, which they equal."""

    def encoded(values: list[Any]) -> pa.Array:
        return pa.array([value and dt.datetime(value.year, value.month, value.day) for value in values], kind)

    return encoded


def over_hidden_values(kind: pa.DataType) -> Encoding:
    """Lists whose NULLs have elements nobody may see, in a part of a longer array of elements."""

    def encoded(values: list[Any]) -> pa.Array:
        hidden = next((value for value in values if value), [])
        flat = [element for value in values for element in (hidden if value is None else value)]
        ends = np.cumsum([len(hidden if value is None else value) for value in values])
        elements = pa.array([*hidden, *flat, *hidden], kind)
        offsets = pa.array([len(hidden), *(len(hidden) + ends).tolist()], pa.int32())
        return pa.ListArray.from_arrays(
            offsets, elements, mask=pa.array([value is None for value in values], pa.bool_())
        )

    return encoded


def of_one_size(kind: pa.DataType) -> Encoding:
    """Lists that all have the size of the first; others do not fit."""

    def encoded(values: list[Any]) -> pa.Array:
        size = next((len(value) for value in values if value is not None), 1)
        return pa.array(values, pa.list_(kind, size))

    return encoded


def lists_of(kind: pa.DataType) -> dict[str, Encoding]:
    return {
        f"list<{kind}>": plain(pa.list_(kind)),
        f"large list<{kind}>": plain(pa.large_list(kind)),
        f"list view<{kind}>": plain(pa.list_view(kind)),
        f"large list view<{kind}>": plain(pa.large_list_view(kind)),
        f"list<{kind}> of one size": of_one_size(kind),
        f"list<{kind}> over hidden values": over_hidden_values(kind),
    }


def instants() -> dict[str, Encoding]:
    found = {
        f"timestamp {unit} {zone}": plain(pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "+02:00", "Europe/Zagreb")
    }
    return found | {
        "timestamps in a dictionary": in_dictionary(pa.int8(), pa.timestamp("us")),
        "timestamps in runs": in_runs(pa.int16(), pa.timestamp("ms")),
    }


ENCODINGS: dict[str, dict[str, Encoding]] = {
    "int": {
        **{str(kind): plain(kind) for kind in (pa.int64(), pa.int8(), pa.int16(), pa.int32())},
        **{str(kind): plain(kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
        "in a dictionary": in_dictionary(pa.int8(), pa.int64()),
        "in a crowded dictionary": in_crowded_dictionary(pa.int32()),
        "in runs": in_runs(pa.int64(), pa.int32()),
    },
    "double": {
        **{str(kind): plain(kind) for kind in (pa.float64(), pa.float32())},
        "half float": half,
        "in a dictionary": in_dictionary(pa.uint8(), pa.float64()),
        "in runs": in_runs(pa.int32(), pa.float64()),
    },
    "decimal": {
        **{str(kind): plain(kind) for kind in (pa.decimal128(10, 2), pa.decimal32(9, 2), pa.decimal64(18, 2))},
        **{str(kind): plain(kind) for kind in (pa.decimal128(18, 6), pa.decimal128(38, 10), pa.decimal256(76, 12))},
        "in a dictionary": in_dictionary(pa.int8(), pa.decimal128(10, 2)),
        "in runs": in_runs(pa.int32(), pa.decimal128(10, 2)),
    },
    "string": {
        **{str(kind): plain(kind) for kind in (pa.string(), pa.large_string(), pa.string_view())},
        "in a dictionary": in_dictionary(pa.int8(), pa.string()),
        "large ones in a dictionary": in_dictionary(pa.uint32(), pa.large_string()),
        "views in a dictionary": in_dictionary(pa.int32(), pa.string_view()),
        "in a crowded dictionary": in_crowded_dictionary(pa.string()),
        "in runs": in_runs(pa.int32(), pa.string()),
        "large ones in runs": in_runs(pa.int16(), pa.large_string()),
    },
    "boolean": {
        "bool": plain(pa.bool_()),
        "in a dictionary": in_dictionary(pa.int8(), pa.bool_()),
        "in runs": in_runs(pa.int32(), pa.bool_()),
        "bool8": lambda values: pa.ExtensionArray.from_storage(
            pa.bool8(), pa.array(values, pa.bool_()).cast(pa.int8())
        ),
    },
    "date": {
        "date32": plain(pa.date32()),
        "date64": plain(pa.date64()),
        "in a dictionary": in_dictionary(pa.int8(), pa.date32()),
        "in runs": in_runs(pa.int32(), pa.date32()),
        "as timestamps": as_instants(pa.timestamp("us")),
        "as timestamps of seconds": as_instants(pa.timestamp("s", "UTC")),
    },
    "timestamp": instants(),
    "array<string>": {
        **lists_of(pa.string()),
        **lists_of(pa.string_view()),
        **lists_of(pa.large_string()),
        "of words in a dictionary": lambda values: pa.array(values, pa.list_(pa.string())).cast(
            pa.list_(pa.dictionary(pa.int32(), pa.string()))
        ),
    },
    "array<int>": {**lists_of(pa.int64()), **lists_of(pa.int16()), **lists_of(pa.uint64())},
    "array<double>": {**lists_of(pa.float64()), **lists_of(pa.float32())},
}
"""By the type of the values: ways to write them. Not every value fits every one."""


def fits(encoding: Encoding, values: list[Any]) -> pa.Array | None:
    """Return values in an encoding; None where they do not fit: too large, or cut."""
    try:
        array = encoding(values)
    except (pa.ArrowInvalid, OverflowError):
        return None
    return array if all(map(_is_same, array.to_pylist(), values)) else None


def _is_same(written: Any, value: Any) -> bool:
    if isinstance(value, list) and isinstance(written, list):
        return len(written) == len(value) and all(map(_is_same, written, value))
    if isinstance(written, dt.datetime) and isinstance(value, dt.date):
        midnight = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
        return (written.astimezone(dt.UTC).replace(tzinfo=None) if written.tzinfo else written) == midnight
    return bool(written == value) or (written != written and value != value)


def encoded(kind: str, values: list[Any], number: int) -> tuple[str, pa.Array]:
    """Return values in the encoding of some number, or the next one that they fit; and its name."""
    ways = list(ENCODINGS[kind].items())
    for offset in range(len(ways)):
        name, encoding = ways[(number + offset) % len(ways)]
        array = fits(encoding, values)
        if array is not None:
            return f"{kind}: {name}", array
    raise AssertionError(f"no column of {kind} takes {values}")


def shaped(arrays: dict[str, pa.Array], shape: str) -> pa.Table | pa.RecordBatch:
    """Return columns as a table of some shape."""
    count = len(next(iter(arrays.values())))
    match shape:
        case "whole":
            return pa.table(arrays)
        case "chunks":
            cut = count // 3
            return pa.table(
                {
                    name: pa.chunked_array([array.slice(0, cut), array.slice(cut, 0), array.slice(cut)], array.type)
                    for name, array in arrays.items()
                }
            )
        case "single chunks":
            return pa.table(
                {
                    name: pa.chunked_array([array.slice(row, 1) for row in range(count)], array.type)
                    for name, array in arrays.items()
                }
            )
        case "part":
            longer = {
                name: pa.concat_arrays([array.slice(0, 2), array, array.slice(1, 1)]) for name, array in arrays.items()
            }
            return pa.table(longer).slice(min(2, count), count)
    return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
