"""What do the array functions give for a column of arrays?

All arrays of a column lie one behind the other. An element is compared with all of them at once, and each array counts
its hits, and the elements of which nobody knows whether they are hits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tamis.matching.columnwise.comparison import among, compared
from tamis.matching.columnwise.series import NULL, Series, both, exact, from_values
from tamis.matching.columnwise.truths import truth_of


def size(array: Series) -> Series | None:
    """Return how many elements arrays have."""
    if array.kind != "array":
        return None if array.kind == "object" else NULL
    return exact("int", np.diff(array.values, prepend=0), array.valid)


def array(elements: list[Series]) -> Series | None:
    """Return arrays of some elements: one for all rows, or one for each, where all elements are of one kind."""
    if all(element.is_constant for element in elements):
        return from_values([[element.tolist()[0] for element in elements]])
    (kind, scale), *others = {(element.kind, element.scale) for element in elements if element.kind != "null"}
    if others or kind not in ("int", "double", "decimal", "time", "boolean"):
        return None
    dtype = next(element.values.dtype for element in elements if element.kind != "null")
    nothing = Series(kind, np.zeros(1, dtype), np.zeros(1, np.bool_), scale)
    columns = [nothing if element.kind == "null" else element for element in elements]
    count = max(len(column.values) for column in columns)
    values = np.stack([np.broadcast_to(column.values, count) for column in columns], axis=1).ravel()
    valid = None
    if any(column.valid is not None for column in columns):
        flags = [np.ones(1, np.bool_) if column.valid is None else column.valid for column in columns]
        valid = np.stack([np.broadcast_to(each, count) for each in flags], axis=1).ravel()
    flat = exact(kind, values, valid, scale) if kind in ("int", "decimal") else Series(kind, values, valid)
    return Series("array", len(columns) * np.arange(1, count + 1), elements=flat)


def array_contains(arrays: Series, element: Series) -> Series | None:
    """Return where an element is in an array: unknown where it was not found, and one does not compare."""
    if arrays.kind == "object" or element.kind == "object":
        return None
    if arrays.kind != "array" or element.kind == "null":
        return NULL
    beside = element
    if not element.is_constant:
        if arrays.is_constant:
            return _is_in_one(arrays, element)
        counts = np.diff(arrays.values, prepend=0)
        beside = taken(element, np.repeat(np.arange(len(counts)), counts))
    is_equal, is_unequal = truth_of(compared("=", arrays.elements, beside))
    return _counted(arrays, is_equal, is_unequal, element.known())


def arrays_overlap(one: Series, two: Series) -> Series | None:
    """Return where two arrays share an element, one of them being the same for all rows.

    They overlap if two elements are equal, and perhaps if two do not compare; it does not matter whose they are.
    """
    if one.kind == "object" or two.kind == "object":
        return None
    if one.kind != "array" or two.kind != "array":
        return NULL
    if not (one.is_constant or two.is_constant):
        return None
    arrays, constant = (two, one) if one.is_constant else (one, two)
    members = constant.tolist()[0]
    if members is None:
        return NULL
    is_equal, is_unequal = truth_of(among(arrays.elements, members))
    return _counted(arrays, is_equal, is_unequal, None)


def _is_in_one(arrays: Series, element: Series) -> Series:
    """Return where an element is in an array that is the same for all rows."""
    members = arrays.tolist()[0]
    if members is None:
        return NULL
    is_member = among(element, members)
    return NULL if is_member is NULL else replace(is_member, valid=both(is_member.valid, element.known()))


def _counted(arrays: Series, is_equal: Any, is_unequal: Any, known: Any) -> Series:
    """Return true for arrays with an equal element, and false for those of which all elements are unequal."""
    ends = arrays.values
    hits = _sums(is_equal, ends) > 0
    is_sure = _sums(~(is_equal | is_unequal), ends) == 0
    return Series("boolean", hits, both(both(arrays.valid, known), hits | is_sure))


def _sums(flags: Any, ends: Any) -> Any:
    """Count the flags of each array."""
    total = int(ends[-1]) if len(ends) else 0
    sums = np.concatenate([[0], np.cumsum(np.broadcast_to(flags, total))])
    return np.diff(sums[ends], prepend=0)


def taken(series: Series, places: Any) -> Series:
    """Return the values at some places."""
    valid = None if series.valid is None else series.valid[places]
    return replace(series, values=series.values[places], valid=valid)
