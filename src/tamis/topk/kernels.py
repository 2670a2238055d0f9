"""How are many scores computed at once? The compiled loops of scores, and of finite streams: arrays in, arrays out.

A score has a *measure*, cheap to compute and in the same order as the keys: of two events, the one with the smaller
measure has the smaller or an equal key. Measures are compared first, and a key is computed for what passes.

    kind         numbers of a subscription (rows)                coordinates of an event (rows)         measure
    LINEAR       weights, scaled weights, scale                  values, scaled values, scale, mode     key itself
    EUCLIDEAN    centre, weights                                 coordinates                            squared key
    GEOGRAPHIC   unit vector, latitude, its cosine, longitude    the same                               squared chord
    BOX, CITY    centre, weights                                 coordinates, mode                      key itself
    COSINE       axis, its length, unit vector                   the same                               key itself

For GEOGRAPHIC the two are computed in different ways, so measures are compared with a little room (`ROOM`).

The loops of `block` and `index` have these compiled into them: after a change here their caches are stale.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.compilation import inlined, kernel

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

LINEAR, EUCLIDEAN, GEOGRAPHIC, BOX, CITY, COSINE = 0, 1, 2, 3, 4, 5
PLAIN, MIXED, GIVEN = 0.0, 1.0, 2.0
"""How to add up a linear score: in doubles; partly in decimals; not here, the keys are given."""
DIAMETER_KM = 2 * 6371.0088
ROOM = 1e-13
"""By so much two ways to compute a chord of the unit sphere may differ, and a hundred times more."""
_TO_RADIANS = math.pi / 180.0
_INFINITY = np.inf


class ScoreTable(NamedTuple):
    """The scores of a family's subscriptions: what they have in common, and a column of numbers for each slot.

    kind     int            LINEAR, EUCLIDEAN, GEOGRAPHIC, BOX (the greatest weighted gap), CITY (their sum) or COSINE
    sign     float          1.0 where the lowest score is best, -1.0 where the highest is
    width    int            how many coordinates of an event count
    two      float          2.0. It is a variable, so that the power of `key_of` stays a call: a compiler that knows the
                            exponent multiplies instead, which rounds differently
    numbers  float64[:, :]  of subscriptions: one row a number, one column a slot; NaN for a slot that is free
    given    float64[:]     by slot: the key of the latest event whose mode is GIVEN

    `numbers` and `given` have room for the same slots. Made by `scoring.Group`, which replaces it when they grow.
    """

    kind: int
    sign: float
    width: int
    two: float
    numbers: Floats
    given: Floats


class Edges(NamedTuple):
    """By what most arrivals are dismissed at a glance: the k-th best of each ranking, and its next departure.

    bounds    float64[:]  by slot: no event with a greater measure is among the best k; inf while there are fewer
                          than k, -inf for a slot that is free
    dues      float64[:]  by slot: when the next of the best k leaves; inf for never
    is_timed  bool[:]     by slot: whether that is a time; otherwise it is a position in the stream

    All have room for the same slots. Made and grown by `block.tables`, as a part of a `SlotTable`.
    """

    bounds: Floats
    dues: Floats
    is_timed: Flags


@inlined
def linear_key(scores: ScoreTable, s, coordinates, i):
    """Add up a linear score as the language does: exactly as long as all is exact, then in doubles."""
    numbers, width = scores.numbers, scores.width
    scale = numbers[2 * width, s] * coordinates[2 * width, i]
    exact = 0.0
    total = 0.0
    is_double = False
    for row in range(width):
        weight, value = numbers[width + row, s], coordinates[width + row, i]
        if weight == weight and value == value:
            if is_double:
                total += weight * value / scale
            else:
                exact += weight * value
        else:
            if not is_double:
                total = exact / scale
                is_double = True
            total += numbers[row, s] * coordinates[row, i]
    return total if is_double else exact / scale


@inlined
def key_of(scores: ScoreTable, s, coordinates, i, measure):
    """Return the key of an event for a subscription, given its measure."""
    if scores.kind != EUCLIDEAN and scores.kind != GEOGRAPHIC:
        return measure
    if scores.kind == EUCLIDEAN:
        return scores.sign * math.sqrt(scores.sign * measure)
    numbers, two = scores.numbers, scores.two
    # To the letter as the language computes it: the power is a call, because a product rounds differently.
    latitude, longitude = numbers[3, s], numbers[5, s]
    half_chord = math.pow(math.sin((latitude - coordinates[3, i]) / 2), two) + coordinates[4, i] * numbers[
        4, s
    ] * math.pow(math.sin((longitude - coordinates[5, i]) * _TO_RADIANS / 2), two)
    return scores.sign * (DIAMETER_KM * math.asin(math.sqrt(min(1.0, half_chord))))


@inlined
def measure_bound(scores: ScoreTable, key):
    """Return a measure such that no event with a greater one has a key as small as this."""
    kind, sign = scores.kind, scores.sign
    if (kind != EUCLIDEAN and kind != GEOGRAPHIC) or key == _INFINITY:
        return key
    score = sign * key  # a distance, not negative
    if kind == EUCLIDEAN:
        # The root was rounded, so its square is a little off: go further by more than that, on the safe side.
        if sign > 0:
            return score * score * (1 + 1e-15) + 5e-324
        return -(score * score) * (1 - 1e-15) if score < 1e154 else -1e308
    angle = score / DIAMETER_KM
    chord = 2.0 if angle >= math.pi / 2 else 2 * math.sin(angle)
    if sign > 0:
        return _INFINITY if angle >= math.pi / 2 else (chord + ROOM) * (chord + ROOM)
    return -(max(0.0, chord - ROOM) ** 2)


@kernel
def measures_of_subscriptions(scores: ScoreTable, coordinates: Floats, i, first, last, measures: Floats) -> None:
    """Write the measures of event `i` for the subscriptions from `first` to `last` into the front of `measures`.

    coordinates  float64[:, :]  of events: one row a coordinate, one column an event
    """
    kind, width, numbers, given = scores.kind, scores.width, scores.numbers, scores.given
    count = last - first
    if kind == LINEAR:
        mode = coordinates[2 * width + 1, i]
        if mode == GIVEN:
            for place in range(count):
                measures[place] = given[first + place]
        elif mode == MIXED:
            for place in range(count):
                measures[place] = linear_key(scores, first + place, coordinates, i)
        else:
            # Row by row, not subscription by subscription: the inner loop is over neighbours, several at once.
            value = coordinates[0, i]
            for place in range(count):
                measures[place] = numbers[0, first + place] * value
            for row in range(1, width):
                value = coordinates[row, i]
                for place in range(count):
                    measures[place] += numbers[row, first + place] * value
    elif kind == EUCLIDEAN:
        # Squares, without the root: the order is the same, and only the order matters here.
        for place in range(count):
            measures[place] = 0.0
        for row in range(width):
            value = coordinates[row, i]
            for place in range(count):
                gap = value - numbers[row, first + place]
                measures[place] += numbers[width + row, first + place] * (gap * gap)
    elif kind in (BOX, CITY):
        if coordinates[width, i] == GIVEN:
            for place in range(count):
                measures[place] = scores.sign * given[first + place]
        else:
            value = coordinates[0, i]
            for place in range(count):
                measures[place] = numbers[width, first + place] * abs(value - numbers[0, first + place])
            for row in range(1, width):
                value = coordinates[row, i]
                for place in range(count):
                    gap = numbers[width + row, first + place] * abs(value - numbers[row, first + place])
                    if kind == CITY:
                        measures[place] += gap
                    else:
                        measures[place] = max(measures[place], gap)
    elif kind == COSINE:
        for place in range(count):
            measures[place] = 0.0
        for row in range(width):
            value = coordinates[row, i]
            for place in range(count):
                measures[place] += value * numbers[row, first + place]
        for place in range(count):
            length = coordinates[width, i] * numbers[width, first + place]
            measures[place] = np.nan if length == 0 else measures[place] / length
    else:
        for place in range(count):
            measures[place] = 0.0
        for row in range(3):
            value = coordinates[row, i]
            for place in range(count):
                gap = value - numbers[row, first + place]
                measures[place] += gap * gap
    if scores.sign < 0:
        for place in range(count):
            measures[place] = -measures[place]


@kernel
def measures_of_events(scores: ScoreTable, s, coordinates: Floats, first, count, is_plain, measures: Floats) -> None:
    """Write the measures of the events from `first` on for one subscription; `is_plain` if the mode of all is PLAIN."""
    kind, width, numbers = scores.kind, scores.width, scores.numbers
    if kind == LINEAR:
        weight = numbers[0, s]
        for e in range(count):
            measures[e] = weight * coordinates[0, first + e]
        for row in range(1, width):
            weight = numbers[row, s]
            for e in range(count):
                measures[e] += weight * coordinates[row, first + e]
        if not is_plain:
            for e in range(count):
                mode = coordinates[2 * width + 1, first + e]
                if mode == MIXED:
                    measures[e] = linear_key(scores, s, coordinates, first + e)
                elif mode == GIVEN:
                    measures[e] = scores.given[s]
    elif kind in (BOX, CITY):
        for row in range(width):
            centre, weight = numbers[row, s], numbers[width + row, s]
            for e in range(count):
                gap = weight * abs(coordinates[row, first + e] - centre)
                if row == 0:
                    measures[e] = gap
                elif kind == CITY:
                    measures[e] += gap
                else:
                    measures[e] = max(measures[e], gap)
        if not is_plain:
            for e in range(count):
                if coordinates[width, first + e] == GIVEN:
                    measures[e] = scores.sign * scores.given[s]
    elif kind == COSINE:
        for e in range(count):
            measures[e] = 0.0
        for row in range(width):
            axis = numbers[row, s]
            for e in range(count):
                measures[e] += coordinates[row, first + e] * axis
        for e in range(count):
            length = coordinates[width, first + e] * numbers[width, s]
            measures[e] = np.nan if length == 0 else measures[e] / length
    else:
        rows = width if kind == EUCLIDEAN else 3
        for e in range(count):
            measures[e] = 0.0
        for row in range(rows):
            centre = numbers[row, s]
            weight = numbers[width + row, s] if kind == EUCLIDEAN else 1.0
            for e in range(count):
                gap = coordinates[row, first + e] - centre
                measures[e] += weight * (gap * gap)
    if scores.sign < 0:
        for e in range(count):
            measures[e] = -measures[e]


@kernel
def keys_of_event(scores: ScoreTable, coordinates: Floats, i: int, keys: Floats) -> None:
    """Write the keys of event `i` for all subscriptions."""
    measures_of_subscriptions(scores, coordinates, i, 0, keys.size, keys)
    if scores.kind == EUCLIDEAN or scores.kind == GEOGRAPHIC:
        for s in range(keys.size):
            measure = keys[s]
            keys[s] = measure if measure != measure else key_of(scores, s, coordinates, i, measure)


@kernel
def keys_of_slots(scores: ScoreTable, slots: Integers, coordinates: Floats, i: int, keys: Floats) -> None:
    """Write the keys of event `i` for some subscriptions."""
    measure = np.empty(1)
    for place in range(slots.size):
        s = slots[place]
        measures_of_subscriptions(scores, coordinates, i, s, s + 1, measure)
        keys[place] = measure[0] if measure[0] != measure[0] else key_of(scores, s, coordinates, i, measure[0])


@kernel
def measure_bounds(scores: ScoreTable, keys: Floats, bounds: Floats) -> None:
    """Write the measure beyond which no event has a key as small as each of these."""
    for place in range(keys.size):
        bounds[place] = measure_bound(scores, keys[place])


# -- A finite stream at once


@kernel
def entries(
    keys: Floats, times: Floats, k: int, span: float, is_timed: bool, until: float, ats: Floats, causes: Integers
) -> None:
    """Find when each event of a finite stream enters the best k of one subscription, if it ever does.

    keys    float64[:]  NaN: no score
    times   float64[:]  not falling
    until   float64     what leaves later than this does not leave any more
    ats     float64[:]  written: when; NaN: never
    causes  int64[:]    written: the arrival with which it enters, the event itself or the one that made another leave
    """
    total = keys.size
    lefts, rights = np.empty(k, np.int64), np.empty(k, np.int64)  # the nearest better events before and after
    for i in range(total):
        ats[i] = np.nan
        causes[i] = -1
        key = keys[i]
        if key != key:
            continue
        # The nearest better ones on either side, as far as they can be in one window with it.
        left = 0
        j = i - 1
        while j >= 0 and left < k:
            if (times[j] + span < times[i]) if is_timed else (i - j >= span):
                break
            if keys[j] < key:
                lefts[left] = j
                left += 1
            j -= 1
        right = 0
        j = i + 1
        while j < total and right < k:
            if (times[j] > times[i] + span) if is_timed else (j - i >= span):
                break
            if keys[j] <= key:
                rights[right] = j
                right += 1
            j += 1
        # With `a` better ones left before it, the next must have gone, and fewer than k - a better ones have come.
        for a in range(k):
            if a >= left:
                ats[i] = times[i]
                causes[i] = i
                break
            gone = lefts[a]
            if is_timed:
                at = times[gone] + span
                is_there = times[i] + span > at and at <= until
                is_beaten = right >= k - a and times[rights[k - a - 1]] <= at
                cause = -1
            else:
                cause = gone + np.int64(span)
                is_there = cause < total
                at = times[cause] if is_there else 0.0
                is_beaten = right >= k - a and rights[k - a - 1] <= cause
            if is_there and not is_beaten and not at >= ats[i]:
                ats[i] = at
                causes[i] = cause
