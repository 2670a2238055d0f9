"""What do CASE, `if`, `coalesce` and `nullif` give for whole columns?

For every row the first true condition names the branch that is taken. The branches are then laid over one another, kind
by kind: numbers in the widest type that the row has among its branches, as the reference meaning wants it.

So one row may give an integer and the next a double: `coalesce(price, 0)` gives the integer where there is no price.
Such a series is *mixed*: it has a part for every kind, and each row is of one part. What is computed of a mixed series
is computed of each of its parts and laid over one another again (`of_parts`), and is never done row by row.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.matching.columns import Texts
from tamis.matching.columnwise.comparison import compared
from tamis.matching.columnwise.numbers import aligned_units, widened
from tamis.matching.columnwise.series import (
    MIXED,
    NULL,
    NUMBERS,
    Flags,
    Series,
    Words,
    exact,
    from_values,
)
from tamis.matching.columnwise.truths import truth_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST_PARTS = 9
"""Of so many combinations of parts, each is computed by itself."""


def case(arguments: Sequence[Series]) -> Series | None:
    """Return the value behind the first condition that is true."""
    pairs = len(arguments) // 2 * 2
    branches = [*arguments[1:pairs:2], *arguments[pairs:]]
    return chosen([truth_of(condition).true for condition in arguments[:pairs:2]], branches)


def coalesce(arguments: Sequence[Series]) -> Series | None:
    """Return the first value that is not NULL."""
    return chosen([_all(argument.known()) for argument in arguments[:-1]], arguments)


def nullif(value: Series, other: Series) -> Series | None:
    """Return the first where the two are not equal, each as it is."""
    if "object" in (value.kind, other.kind):
        return None
    is_equal = truth_of(of_parts(lambda parts: compared("=", *parts), [value, other])).true
    return _laid([(value, ~is_equal)])


def chosen(conditions: Sequence[Any], branches: Sequence[Series]) -> Series | None:
    """Return the branch of the first true condition, or the last one if there is one more branch than conditions."""
    free = np.ones(1, np.bool_)
    takes: list[Any] = []
    for condition in conditions:
        takes.append(free & condition)
        free = free & ~condition
    takes += [free] * (len(branches) - len(conditions))
    layers = [
        (part, taken & rows) for branch, taken in zip(branches, takes, strict=True) for part, rows in _parts(branch)
    ]
    if any(series.kind == "object" for series, _ in layers):
        return None
    kinds = {series.kind for series, _ in layers if series.kind in NUMBERS}
    if len(kinds) < 2:
        return _laid(layers)
    # A row's numbers are of the widest type among those of its branches that are not NULL.
    is_of = {kind: _any([_all(each.known()) for each, _ in layers if each.kind == kind]) for kind in kinds}
    wide: list[tuple[Series, Any]] = []
    for series, rows in layers:
        left = rows
        if series.kind in NUMBERS:
            for kind in reversed(NUMBERS[NUMBERS.index(series.kind) + 1 :]):
                if kind in kinds:
                    wide.append((widened(series, kind), left & is_of[kind]))
                    left = left & ~is_of[kind]
        wide.append((series, left))
    return _laid(wide)


# -- Layers: a series and the rows that are taken from it


def _laid(layers: list[tuple[Series, Any]]) -> Series | None:
    """Lay series over one another, each row from the one layer that takes it; what no layer takes is NULL."""
    by_kind: dict[str, list[tuple[Series, Any]]] = {}
    for whole, takes in layers:
        for series, rows in _parts(whole):
            if series.kind != "null" and (takes & rows).any():
                by_kind.setdefault(series.kind, []).append((series, takes & rows))
    if not by_kind:
        return NULL
    parts: list[Series] = []
    flags: list[Any] = []
    for kind, of_kind in by_kind.items():
        part = _of_one_kind(kind, of_kind)
        if part is None:
            return None
        parts.append(part)
        flags.append(_any([takes for _, takes in of_kind]))
    if len(parts) == 1:
        return parts[0]
    count = max(map(len, flags))
    indexes = np.full(count, len(parts), np.uint8)  # of no part at all: NULL
    for index, each in enumerate(flags):
        indexes[np.broadcast_to(each, count)] = index
    return Series(MIXED, indexes, elements=tuple(parts))


def _of_one_kind(kind: str, layers: list[tuple[Series, Any]]) -> Series | None:
    """Return series of one kind laid over one another, NULL where none of them is taken."""
    if kind in ("array", "object"):
        return layers[0][0] if len(layers) == 1 and layers[0][1].all() else None
    if kind == "string":
        return _texts(layers)
    series = [each for each, _ in layers]
    scale = max(each.scale for each in series)
    values = [each.values for each in series]
    if kind == "decimal":
        units = [aligned_units(each, scale) for each in series]
        if any(each is None for each in units):
            return None
        values = [each for each in units if each is not None]
    takes = [takes_it for _, takes_it in layers]
    result = values[0]
    for more, takes_it in zip(values[1:], takes[1:], strict=True):
        result = np.where(takes_it, more, result)
    known = [takes_it if each.valid is None else takes_it & each.valid for each, takes_it in layers]
    valid = _any(known)
    result, valid = np.broadcast_arrays(result, valid)
    is_known = None if valid.all() else valid
    return exact(kind, result, is_known, scale) if kind in ("int", "decimal") else Series(kind, result, is_known)


def _texts(layers: list[tuple[Series, Any]]) -> Series:
    """Return texts laid over one another, with the words of all of them one behind the other."""
    words = {id(each.words): each.words for each, _ in layers}
    starts, start = {}, 0
    for key, each in words.items():
        starts[key] = start
        start += len(each)
    positions: Any = np.full(1, -1, np.int32)
    for each, takes in layers:
        moved = np.where(each.values < 0, -1, each.values + starts[id(each.words)]).astype(np.int32)
        positions = np.where(takes, moved, positions)
    if len(words) == 1:
        return Series("string", positions, words=layers[0][0].words)
    return Series("string", positions, words=Words(_joined([each.texts for each in words.values()])))


def _joined(texts: list[Texts]) -> Texts:
    sizes = [each.offsets[-1] - each.offsets[0] for each in texts]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    offsets = [each.offsets[:-1] - each.offsets[0] + start for each, start in zip(texts, starts, strict=True)]
    data = [each.data[int(each.offsets[0]) : int(each.offsets[-1])] for each in texts]
    ends = np.concatenate([*offsets, [sum(sizes)]]).astype(texts[0].offsets.dtype)
    return Texts(data=np.concatenate(data), offsets=ends)


# -- Mixed series


def of_parts(function: Callable[[list[Series]], Series], arguments: list[Series]) -> Series:
    """Return what a function gives for arguments of which some are mixed: what it gives for their parts, laid together.

    Rows that are not of a part are NULL in it, so that they have no say in how the others are computed.
    """
    combinations = list(product(*(_parts(argument) for argument in arguments)))
    layers: list[tuple[Series, Any]] = []
    if len(combinations) <= _MOST_PARTS:
        for chosen_parts in combinations:
            rows = np.ones(1, np.bool_)
            for _, takes in chosen_parts:
                rows = rows & takes
            if rows.any():
                layers.append((function([series for series, _ in chosen_parts]), rows))
        laid = _laid(layers) if all(series.kind != "object" for series, _ in layers) else None
        if laid is not None:
            return laid
    return function(list(map(of_one_kind, arguments)))


def of_one_kind(series: Series) -> Series:
    """Return a series that is not mixed: of several kinds, as Python values."""
    return from_values(series.tolist()) if series.kind == MIXED else series


def _parts(series: Series) -> list[tuple[Series, Any]]:
    if series.kind != MIXED:
        return [(series, np.ones(1, np.bool_))]
    parts = []
    for index, part in enumerate(series.elements):
        rows = series.values == index
        parts.append((_masked(part, rows), rows))
    return [*parts, (NULL, series.values == len(parts))]


def _masked(part: Series, rows: Flags) -> Series:
    if part.kind == "string":
        return replace(part, values=np.where(rows, part.values, -1).astype(np.int32))
    if part.kind in ("null", "array", "object"):
        return part
    return replace(part, valid=rows if part.valid is None else rows & part.valid)


def _all(valid: Flags | None) -> Any:
    return np.ones(1, np.bool_) if valid is None else valid


def _any(flags: Sequence[Any]) -> Any:
    any_flag = flags[0]
    for each in flags[1:]:
        any_flag = any_flag | each
    return any_flag
