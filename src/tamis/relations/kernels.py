"""Which of some rows pass a test on every axis? The compiled loops of the covering index: containment of boxes.

A row is what is known of a filter: axes, and for each of them how far its values reach. Marks are bits, those of a
Bloom filter: a value is in a set only if all of its bits are among the set's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.compilation import kernel

Integers = npt.NDArray[np.int64]


class ReachTable(NamedTuple):
    """Rows of reaches: row r is the entries starts[r] to starts[r] + counts[r]. Made and grown by `rows.Rows`.

    starts  int64[:]  by row: where its entries begin
    counts  int32[:]  by row: how many there are, each on another axis; 0 for a row that is not there
    axes    int32[:]  by entry: its axis
    lows    int64[:]  by entry: the least place that the row reaches on that axis
    highs   int64[:]  by entry: the greatest, not less than that
    marks   int64[:]  by entry: the marks of what is there

    Rows do not share entries. They are in no order, and entries may be free: rows come and go, so this is not `Ragged`.
    """

    starts: Integers
    counts: npt.NDArray[np.int32]
    axes: npt.NDArray[np.int32]
    lows: Integers
    highs: Integers
    marks: Integers


class RowLimits(NamedTuple):
    """What rows have to stay within, by axis. Made by `rows.Rows.staying_within`.

    lows          int64[:]  the least place that is allowed
    highs         int64[:]  the greatest
    marks         int64[:]  the marks that are allowed
    needed        bool[:]   whether a row without this axis is out
    needed_count  int       how many axes are needed
    """

    lows: Integers
    highs: Integers
    marks: Integers
    needed: npt.NDArray[np.bool_]
    needed_count: int


@kernel
def reaching_around(
    candidates: Integers, rows: ReachTable, point: Integers, point_marks: Integers, passing: Integers
) -> int:
    """Keep the candidates whose rows reach around a point on all of the row's axes; return how many.

    candidates    int64[:]  the rows to look at
    point         int64[:]  by axis: what must be reached around, and `point_marks` its marks
    passing         int64[:]  written to
    """
    starts, counts, axes = rows.starts, rows.counts, rows.axes
    lows, highs, marks = rows.lows, rows.highs, rows.marks
    kept = 0
    for candidate in candidates:
        is_kept = True
        for entry in range(starts[candidate], starts[candidate] + counts[candidate]):
            # The first axis that fails is enough.
            axis = axes[entry]
            at = point[axis]
            if lows[entry] > at or highs[entry] < at:
                is_kept = False
                break
            if point_marks[axis] & ~marks[entry]:  # a bit that the set has not, so the value is not in it
                is_kept = False
                break
        if is_kept:
            passing[kept] = candidate
            kept += 1
    return kept


@kernel
def staying_within(candidates: Integers, rows: ReachTable, limits: RowLimits, passing: Integers) -> int:
    """Keep the candidates whose rows stay within limits, and have an entry on all axes needed; return how many.

    candidates    int64[:]  the rows to look at
    passing         int64[:]  written to
    """
    starts, counts, axes = rows.starts, rows.counts, rows.axes
    lows, highs, marks = rows.lows, rows.highs, rows.marks
    outer_lows, outer_highs, outer_marks, needed = limits.lows, limits.highs, limits.marks, limits.needed
    kept = 0
    for candidate in candidates:
        met = 0  # needed axes that the row has; a row has an axis once, so to count them is enough
        for entry in range(starts[candidate], starts[candidate] + counts[candidate]):
            axis = axes[entry]
            if lows[entry] < outer_lows[axis] or highs[entry] > outer_highs[axis]:
                met = -1
                break
            # A bit that is not allowed belongs to a value that is not in the outer set. Bits alone never prove that a
            # row stays within: whoever is kept is compared exactly.
            if marks[entry] & ~outer_marks[axis]:
                met = -1
                break
            if needed[axis]:
                met += 1
        if met == limits.needed_count:
            passing[kept] = candidate
            kept += 1
    return kept
