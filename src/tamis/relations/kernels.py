"""The compiled loops of the covering index: which of some rows pass a test on every axis?

A row is what is known of a filter: axes, and for each of them how far its values reach, from `lows` to `highs`.
Row r is the entries starts[r] to starts[r] + counts[r]. Where an entry is a single text, `prints` is its fingerprint,
and 0 where it is not: two fingerprints that differ are two texts.
"""

from numba import njit


@njit(nogil=True, cache=True)
def reaching_around(candidates, starts, counts, axes, lows, highs, prints, point, point_prints, found):
    """Keep the candidates whose rows reach around a point on all of the row's axes.

    candidates    int64[:]  the rows to look at
    starts        int64[:]  where each row's entries begin
    counts        int32[:]  how many there are
    axes          int32[:]  the axis of each entry
    lows, highs   int64[:]  how far the row reaches on it
    prints        int64[:]  its fingerprint, or 0
    point         int64[:]  for each axis, what must be reached around
    point_prints  int64[:]  for each axis, the fingerprint of that, or 0
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
            if prints[entry] != point_prints[axis] and prints[entry] != 0 and point_prints[axis] != 0:
                is_kept = False
                break
        if is_kept:
            found[kept] = candidate
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def staying_within(
    candidates, starts, counts, axes, lows, highs, prints, outer_lows, outer_highs, outer_prints, needed, count, found
):
    """Keep the candidates whose rows stay within limits, and have an entry on all axes that are needed.

    candidates    int64[:]  the rows to look at
    starts        int64[:]  where each row's entries begin
    counts        int32[:]  how many there are
    axes          int32[:]  the axis of each entry
    lows, highs   int64[:]  how far the row reaches on it
    prints        int64[:]  its fingerprint, or 0
    outer_lows    int64[:]  for each axis, what must not be left
    outer_highs   int64[:]
    outer_prints  int64[:]  for each axis, the fingerprint of the only text there, or 0
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
            if prints[entry] != outer_prints[axis] and prints[entry] != 0 and outer_prints[axis] != 0:
                met = -1
                break
            if needed[axis]:
                met += 1
        if met == count:
            found[kept] = candidate
            kept += 1
    return kept
