"""What does a function of the host give for whole columns?

Its own form over columns is asked if it has one: it takes Arrow arrays and gives one. Where it has none, or that form
fails, the function is called for each distinct row of arguments, so that what fails for one event is NULL for that one
only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.language.functions.deadlines import called
from tamis.language.values import kind_of
from tamis.matching.columns import from_arrow
from tamis.matching.columnwise.series import NULL, NUMBERS, Series, from_column, from_values

if TYPE_CHECKING:
    from tamis.language.functions import UserFunction

_KINDS = {
    **dict.fromkeys(NUMBERS, "number"),
    "string": "string",
    "boolean": "boolean",
    "time": "time",
    "array": "array",
}


def applied(function: UserFunction, below: list[Series]) -> Series:
    """Return what a function gives for the rows of its arguments."""
    count = max((len(each.values) for each in below if each.kind != "null"), default=1)
    if function.columns is not None:
        series = _over_columns(function, below, count)
        if series is not None:
            return series
    lists = [each.tolist() for each in below]
    columns = [values if len(values) == count else values * count for values in lists]
    rows = list(zip(*columns, strict=True)) if columns else [()]
    return from_values(function.meanings(rows))


def _over_columns(function: UserFunction, below: list[Series], count: int) -> Series | None:
    """Return what the form over columns gives; None where it fails, and the rows have to be asked."""
    for kind, each in zip(function.row.takes, below, strict=True):
        if each.kind == "object" or (kind != "any" and _KINDS.get(each.kind, kind) != kind):
            return None  # what is of another kind is NULL, and the rows know which
    assert function.columns is not None
    (outcome,) = called(function.columns, [tuple(_arrow(each, count) for each in below)], function.limit_s)
    if outcome.failure:
        function.failures["columns"] += 1
        return None
    result = outcome.value
    array = result if isinstance(result, pa.Array) else pa.array(np.asarray(result))
    if len(array) != count:
        function.failures["columns"] += 1
        return None
    column = from_arrow(array)
    if column is None:
        return NULL
    series = from_column(column)
    if series.kind == "object":
        kinds = {kind_of(value) for value in series.values} - {"null"}
    else:
        kinds = {_KINDS[series.kind]}
    if kinds != {function.row.gives}:
        function.failures["columns"] += 1
        return None
    known = None if function.row.takes_nulls else _known(below)
    return series if known is None or known.all() else _masked(series, known)


def _arrow(series: Series, count: int) -> Any:
    """Return a series as an Arrow array of so many rows."""
    if series.kind in ("int", "double"):
        values = np.ascontiguousarray(np.broadcast_to(series.values, count))
        return pa.array(values, mask=None if series.valid is None else ~np.broadcast_to(series.valid, count))
    listed = series.tolist()
    return pa.array(listed if len(listed) == count else listed * count)


def _known(below: list[Series]) -> Any:
    known: Any = np.ones(1, np.bool_)
    for each in below:
        flags = each.known()
        known = known if flags is None else known & flags
    return known


def _masked(series: Series, known: Any) -> Series:
    values = series.tolist()
    flags = np.broadcast_to(known, len(values)).tolist()
    return from_values([value if is_known else None for value, is_known in zip(values, flags, strict=True)])
