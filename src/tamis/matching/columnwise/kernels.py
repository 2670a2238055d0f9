"""The compiled loops over columns: arrays in, arrays out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

FEW_LIMITS = 8
"""Up to so many limits of a centre are passed one after the other, more are searched by halving."""


class TextColumn(NamedTuple):
    """A column of texts.

    data     uint8[:]      distinct texts in UTF-8, one behind the other
    offsets  int64[:]      where each begins, and at last where they end
    places   int32[rows]   which of them each row has; negative for none
    """

    data: Any
    offsets: Any
    places: Any


class CentreTable(NamedTuple):
    """Places, and the distances from them that matter. Invariant: the limits of a centre are in order.

    points  float64[3, centres]  the centres, on the unit sphere
    starts  int64[centres + 1]   the limits of centre c are starts[c]:starts[c + 1]
    lows    float64[limits]      the squares of chords that are surely shorter than the limit are below this,
    highs   float64[limits]      and those that are surely longer are above this
    """

    points: Any
    starts: Any
    lows: Any
    highs: Any


@njit(nogil=True, cache=True)
def orders_of_texts(one_column, two_column, orders):
    """Compare UTF-8 texts pair by pair, byte by byte: -1 less, 0 equal, 1 greater; 0 where there is none.

    orders  int8[:]  written
    """
    # The order of the bytes of UTF-8 is that of the characters: nothing has to be decoded.
    one, one_offsets, one_places = one_column
    two, two_offsets, two_places = two_column
    for index in range(orders.size):
        mine, theirs = one_places[index], two_places[index]
        order = 0
        if mine >= 0 and theirs >= 0:
            begin, other = one_offsets[mine], two_offsets[theirs]
            length, other_length = one_offsets[mine + 1] - begin, two_offsets[theirs + 1] - other
            for place in range(min(length, other_length)):
                if one[begin + place] != two[other + place]:
                    order = 1 if one[begin + place] > two[other + place] else -1
                    break
            if order == 0 and length != other_length:
                order = 1 if length > other_length else -1
        orders[index] = order


@njit(nogil=True, cache=True)
def codes_of_events(points, table, rows, codes, near):
    """Rank many events by their distances from many centres.

    points  float64[3, :]  where the events are on the unit sphere; what is nowhere lies far outside of it
    table   CentreTable
    rows    int64[:]       the row of each centre among the codes
    codes   uint[:, :]     written: one plus twice the limits that are surely passed
    near    uint32[:]      written: of each centre, how often an event is too close to a limit to say
    """
    centres, starts, lows, highs = table
    for centre in range(rows.size):
        place = (centres[0, centre], centres[1, centre], centres[2, centre])
        first, last = starts[centre], starts[centre + 1]
        out = codes[rows[centre]]
        if last - first <= FEW_LIMITS:
            out[:] = 1
            near[centre] = 0
            for limit in range(first, last):
                near[centre] += pass_limit(points, place, lows[limit], highs[limit], out)
        else:
            near[centre] = search_limits(points, place, lows[first:last], highs[first:last], out)


@njit(nogil=True, cache=True)
def pass_limit(points, place, low, high, codes):
    """Add 2 to the codes of the events that surely pass a limit; returns how many are too close to it to say.

    A loop of its own, of numbers of 32 bits and without a branch, so that many events run abreast.
    """
    xs, ys, zs = points[0], points[1], points[2]
    x, y, z = place
    close = np.uint32(0)
    for event in range(codes.size):
        # The square of the chord grows with the distance, and needs neither a root nor a cosine.
        dx, dy, dz = xs[event] - x, ys[event] - y, zs[event] - z
        square = dx * dx + dy * dy + dz * dz
        codes[event] += np.uint32(square > high) << np.uint32(1)
        close += np.uint32((square >= low) & (square <= high))
    return close


@njit(nogil=True, cache=True)
def search_limits(points, place, lows, highs, codes):
    """Write the codes of events among many limits; returns how many are too close to one to say."""
    xs, ys, zs = points[0], points[1], points[2]
    x, y, z = place
    close = np.uint32(0)
    for event in range(codes.size):
        dx, dy, dz = xs[event] - x, ys[event] - y, zs[event] - z
        square = dx * dx + dy * dy + dz * dz
        begin, end = 0, highs.size
        while begin < end:
            middle = (begin + end) >> 1
            if square > highs[middle]:
                begin = middle + 1
            else:
                end = middle
        # The first limit that is not surely passed; between its low and its high, rounding decides, and nobody knows.
        codes[event] = 1 + 2 * begin
        close += np.uint32(begin < highs.size and square >= lows[begin])
    return close


@njit(nogil=True, cache=True)
def codes_of_centres(place, table, codes, near):
    """Rank one event by its distance from many centres; returns how many are too close to a limit to say, and which.

    place  three numbers  where the event is on the unit sphere
    table  CentreTable
    codes  uint32[:]      written: one plus twice the limits that are surely passed
    near   int64[:]       written: the centres of which one cannot say
    """
    x, y, z = place
    centres, starts, lows, highs = table
    xs, ys, zs = centres[0], centres[1], centres[2]
    count = 0
    for centre in range(codes.size):
        dx, dy, dz = xs[centre] - x, ys[centre] - y, zs[centre] - z
        square = dx * dx + dy * dy + dz * dz
        first, begin, end = starts[centre], starts[centre], starts[centre + 1]
        last = end
        while begin < end:
            middle = (begin + end) >> 1
            if square > highs[middle]:
                begin = middle + 1
            else:
                end = middle
        # Codes of an axis: the even ones are for who is exactly at a limit, which only measuring can tell.
        codes[centre] = 1 + 2 * (begin - first)
        if begin < last and square >= lows[begin]:
            near[count] = centre
            count += 1
    return count
