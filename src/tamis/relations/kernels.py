"""The compiled loops of the covering index: which of some rows pass a test on every axis?

A row is what is known of a filter: axes, and for each of them how far its values reach, from `lows` to `highs`.
Row r is the entries starts[r] to starts[r] + counts[r]. `marks` are bits: a value is in a set only if all of its bits
are among the set's.
"""

from numba import njit


@njit(nogil=True, cache=True)
def reaching_around(candidates, starts, counts, axes, lows, highs, marks, point, point_marks, found):
    """Keep the candidates whose rows reach around a point on all of the row's axes.

    candidates    int64[:]  the rows to look at
    starts        int64[:]  where each row's entries begin
    counts        int32[:]  how many there are
    axes          int32[:]  the axis of each entry
    lows, highs   int64[:]  how far the row reaches on it
    marks         int64[:]  its marks
    point         int64[:]  for each axis, what must be reached around
    point_marks   int64[:]  for each axis, the marks of that
    found         int64[:]  written to
    """
    kept = 0
    for candidate in candidates:
        is_kept = True
        for entry in range(starts[candidate], starts[candidate] + counts[candidate]):
            axis = axes[entry]
            at = point[axis]
            if lows[entry] > at or highs[entry] < at:
                is_kept = False
                break
            if point_marks[axis] & ~marks[entry]:
                is_kept = False
                break
        if is_kept:
            found[kept] = candidate
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def staying_within(
    candidates, starts, counts, axes, lows, highs, marks, outer_lows, outer_highs, outer_marks, needed, count, found
):
    """Keep the candidates whose rows stay within limits, and have an entry on all axes that are needed.

    candidates    int64[:]  the rows to look at
    starts        int64[:]  where each row's entries begin
    counts        int32[:]  how many there are
    axes          int32[:]  the axis of each entry
    lows, highs   int64[:]  how far the row reaches on it
    marks         int64[:]  its marks
    outer_lows    int64[:]  for each axis, what must not be left
    outer_highs   int64[:]
    outer_marks   int64[:]  for each axis, among which marks to stay
    needed        bool[:]   for each axis, whether a row without it is out
    count         int       how many axes are needed
    found         int64[:]  written to
    """
    kept = 0
    for candidate in candidates:
        met = 0
        for entry in range(starts[candidate], starts[candidate] + counts[candidate]):
            axis = axes[entry]
            if lows[entry] < outer_lows[axis] or highs[entry] > outer_highs[axis]:
                met = -1
                break
            if marks[entry] & ~outer_marks[axis]:
                met = -1
                break
            if needed[axis]:
                met += 1
        if met == count:
            found[kept] = candidate
            kept += 1
    return kept
