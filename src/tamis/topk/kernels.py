"""The compiled loops of ranked subscriptions: arrays in, arrays out.

A score has a *measure*, cheap to compute and in the same order as the keys: of two events, the one with the smaller
measure has the smaller or an equal key. Measures are compared first, and a key is computed for what passes.

    kind         numbers of a subscription (rows)              coordinates of an event (rows)             measure
    LINEAR       weights, scaled weights, scale                values, scaled values, scale, mode         the key itself
    EUCLIDEAN    centre, weights                               coordinates                                square of the
    key
    GEOGRAPHIC   unit vector, latitude, its cosine, longitude  unit vector, latitude, its cosine, longitude  squared
    chord

For GEOGRAPHIC the two are computed in different ways, so measures are compared with a little room (`_ROOM`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LINEAR, EUCLIDEAN, GEOGRAPHIC = 0, 1, 2
PLAIN, MIXED, GIVEN = 0.0, 1.0, 2.0
"""How to add up a linear score: in doubles; partly in decimals; not here, the keys are given."""
DIAMETER_KM = 2 * 6371.0088
_ROOM = 1e-13
"""By so much two ways to compute a chord of the unit sphere may differ, and a hundred times more."""
_TO_RADIANS = math.pi / 180.0
_INFINITY = np.inf
_BLOCK = 1024
_TOGETHER = 32
_MANY = 1024
"""So many waiting events are settled rather than looked through, roughly."""


@njit(nogil=True, cache=True, inline="always")
def _linear_key(numbers, width, s, coordinates, i):
    """Add up a linear score as the language does: exactly as long as all is exact, then in doubles."""
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


@njit(nogil=True, cache=True, inline="always")
def _key(kind, sign, two, numbers, width, s, coordinates, i, measure):
    """Return the key of an event for a subscription, given its measure."""
    if kind == LINEAR:
        return measure
    if kind == EUCLIDEAN:
        return sign * math.sqrt(sign * measure)
    # To the letter as the language computes it: the power is a call, because a product rounds differently.
    latitude, longitude = numbers[3, s], numbers[5, s]
    half_chord = math.pow(math.sin((latitude - coordinates[3, i]) / 2), two) + coordinates[4, i] * numbers[
        4, s
    ] * math.pow(math.sin((longitude - coordinates[5, i]) * _TO_RADIANS / 2), two)
    return sign * (DIAMETER_KM * math.asin(math.sqrt(min(1.0, half_chord))))


@njit(nogil=True, cache=True, inline="always")
def _measure_bound(kind, sign, key):
    """Return a measure such that no event with a greater one has a key as small as this."""
    if kind == LINEAR or key == _INFINITY:
        return key
    score = sign * key  # a distance, not negative
    if kind == EUCLIDEAN:
        if sign > 0:
            return score * score * (1 + 1e-15) + 5e-324
        return -(score * score) * (1 - 1e-15) if score < 1e154 else -1e308
    angle = score / DIAMETER_KM
    chord = 2.0 if angle >= math.pi / 2 else 2 * math.sin(angle)
    if sign > 0:
        return _INFINITY if angle >= math.pi / 2 else (chord + _ROOM) * (chord + _ROOM)
    return -(max(0.0, chord - _ROOM) ** 2)


@njit(nogil=True, cache=True)
def measures_of_subscriptions(kind, sign, numbers, width, coordinates, i, given, first, last, measures):
    """Write the measures of event `i` for the subscriptions from `first` to `last` into the front of `measures`.

    numbers      float64[:, :]  of subscriptions: one row a number, one column a subscription
    coordinates  float64[:, :]  of events: one row a coordinate, one column an event
    given        float64[:]     the keys of the event, where they are given
    """
    count = last - first
    if kind == LINEAR:
        mode = coordinates[2 * width + 1, i]
        if mode == GIVEN:
            for place in range(count):
                measures[place] = given[first + place]
        elif mode == MIXED:
            for place in range(count):
                measures[place] = _linear_key(numbers, width, first + place, coordinates, i)
        else:
            value = coordinates[0, i]
            for place in range(count):
                measures[place] = numbers[0, first + place] * value
            for row in range(1, width):
                value = coordinates[row, i]
                for place in range(count):
                    measures[place] += numbers[row, first + place] * value
    elif kind == EUCLIDEAN:
        for place in range(count):
            measures[place] = 0.0
        for row in range(width):
            value = coordinates[row, i]
            for place in range(count):
                gap = value - numbers[row, first + place]
                measures[place] += numbers[width + row, first + place] * (gap * gap)
    else:
        for place in range(count):
            measures[place] = 0.0
        for row in range(3):
            value = coordinates[row, i]
            for place in range(count):
                gap = value - numbers[row, first + place]
                measures[place] += gap * gap
    if sign < 0:
        for place in range(count):
            measures[place] = -measures[place]


@njit(nogil=True, cache=True)
def keys_of_event(kind, sign, two, numbers, width, coordinates, i, given, keys):
    """Write the keys of event `i` for all subscriptions."""
    measures_of_subscriptions(kind, sign, numbers, width, coordinates, i, given, 0, keys.size, keys)
    if kind != LINEAR:
        for s in range(keys.size):
            measure = keys[s]
            keys[s] = (
                measure if measure != measure else _key(kind, sign, two, numbers, width, s, coordinates, i, measure)
            )


@njit(nogil=True, cache=True)
def measure_bounds(kind, sign, keys, bounds):
    """Write the measure beyond which no event has a key as small as each of these."""
    for place in range(keys.size):
        bounds[place] = _measure_bound(kind, sign, keys[place])


# -- Many rankings in arrays. A ranking is a slice of the pool, sorted by rank; its first k events are the best.


@njit(nogil=True, cache=True)
def interesting_slots(kind, sign, numbers, width, coordinates, i, given, bounds, dues, is_timed, time, position, found):
    """Find the subscriptions for which event `i` may be among the best k, or which something leaves.

    bounds    float64[:]  the measure of the k-th best event of each subscription; -inf: not in use
    dues      float64[:]  when the next of the best k leaves
    is_timed  bool[:]     whether that is a time, or a position
    found     int64[:]    written: the slots; the number of them is returned
    """
    measures = np.empty(_BLOCK)
    count = 0
    for first in range(0, bounds.size, _BLOCK):
        last = min(first + _BLOCK, bounds.size)
        measures_of_subscriptions(kind, sign, numbers, width, coordinates, i, given, first, last, measures)
        for s in range(first, last):
            if measures[s - first] <= bounds[s] or dues[s] < (time if is_timed[s] else position + 0.5):
                found[count] = s
                count += 1
    return count


@njit(nogil=True, cache=True)
def concerned_slots(slots, kind, sign, numbers, width, coordinates, i, given, bounds, stamps, stamp, found):
    """Find those of some subscriptions for which event `i` may be among the best k, each once.

    stamps  int64[:]  by slot: the last search that has seen it; `stamp` is the number of this one
    """
    count = 0
    measure = np.empty(1)
    for s in slots:
        if stamps[s] != stamp:
            stamps[s] = stamp
            measures_of_subscriptions(kind, sign, numbers, width, coordinates, i, given, s, s + 1, measure)
            if measure[0] <= bounds[s]:
                found[count] = s
                count += 1
    return count


@njit(nogil=True, cache=True)
def due_slots(dues, is_timed, time, position, found):
    """Find the subscriptions that something leaves before `time`, or at `position`; return how many, and the next."""
    count = 0
    soonest = _INFINITY
    for s in range(dues.size):
        if dues[s] < (time if is_timed[s] else position + 0.5):
            found[count] = s
            count += 1
        elif is_timed[s] and dues[s] < soonest:
            soonest = dues[s]
    return count, soonest


@njit(nogil=True, cache=True)
def note_arrival(
    slots, i, kind, sign, numbers, width, coordinates, given, bounds, dues, is_timed, positions, waiting, counts, found
):
    """Note an arrival for those whose filter it passes; find those that it may interest, or that have no room to wait.

    slots      int64[:]     whose filter the event passes
    positions  int64[:]     how many events have passed the filter of each subscription
    waiting    int32[:, :]  the events that passed since the ranking was last looked at, a row a subscription
    counts     int64[:]     how many those are
    """
    found_count = 0
    measure = np.empty(1)
    for s in slots:
        waiting[s, counts[s]] = i
        counts[s] += 1
        positions[s] += 1
        measures_of_subscriptions(kind, sign, numbers, width, coordinates, i, given, s, s + 1, measure)
        is_leaving = not is_timed[s] and dues[s] <= positions[s]
        if measure[0] <= bounds[s] or is_leaving or counts[s] == waiting.shape[1]:
            found[found_count] = s
            found_count += 1
    return found_count


@njit(nogil=True, cache=True)
def forget_waiting(slots, done, waiting, counts):
    """Remove from the waiting lists of `slots` the first `done[s]` events each."""
    for s in slots:
        count = counts[s] - done[s]
        for place in range(count):
            waiting[s, place] = waiting[s, place + done[s]]
        counts[s] = count


@njit(nogil=True, cache=True)
def run(
    slots, begin, end, starts, events, settle_to,
    kind, sign, two, numbers, width, coordinates, given,
    event_numbers, event_times, until, is_inclusive,
    ks, spans, is_timed, positions, cursors, checked,
    offsets, sizes, rooms, limits, bounds, dues,
    keys, members, leaves, entered,
    measures, s_keys, s_members, s_leaves, s_entered, best, heap, kept_keys, kept_places,
    steps, ats, owners, reported, state,
):  # fmt: skip
    """Bring rankings up to date: take the events that each has not seen yet, and let leave what leaves meanwhile.

    slots, begin, end     whom: slots[begin:end]
    starts, events        the events of slots[j] are events[starts[j]:starts[j + 1]], places in the log; where `starts`
    is
                          empty, they are all from cursors[s] on, and `events` is their end
    settle_to             up to this place of the log, whatever waits has to take its place afterwards; -1: nothing has
    to
    checked               how many of its events a ranking has seen: they are not among the best k, but wait
    until, is_inclusive   afterwards let leave what leaves before this time, or then too
    offsets, sizes, rooms, limits   a ranking's slice of the pool, its size, its room, and when it is to be pruned
    keys, members, leaves, entered  the pool
    measures to kept_places         room to work in; s_* is the ranking at hand
    steps, ats, owners, reported    written: who entered where and when
    state                 state[0]: how many reports there are; state[1]: the room that a ranking lacks

    All that waits ranks below the k-th best. So an arrival concerns the best k alone; and when one of them leaves, what
    waits is compared with the one that would follow it.

    Returns the j up to which all is done. If that is not `end`, slots[j] lacks room (in the pool, if state[1] > 0, or
    for reports), is as it was before, and wants to be run again.
    """
    is_open = starts.size == 0
    is_plain = True
    if kind == LINEAR:
        for i in range(event_times.size):
            is_plain = is_plain and coordinates[2 * width + 1, i] == PLAIN
    for j in range(begin, end):
        s = slots[j]
        k, span, timed = ks[s], spans[s], is_timed[s]
        size = sizes[s]
        # Its events have the places first + e of the log, or events[first + e].
        if is_open:
            first = cursors[s]
            count = events[0] - first
            position = np.float64(event_numbers[first]) if count > 0 else 0.0
        else:
            first = starts[j]
            count = starts[j + 1] - first
            position = np.float64(positions[s] - count + 1)
        seen = checked[s]
        # To look through what waits at each departure, or to settle it: what is cheaper depends on how often something
        # leaves.
        many = _MANY if timed else min(4 * _MANY, max(_MANY >> 2, np.int64(28 * math.sqrt(span))))
        report = state[0]
        state[1] = 0
        if report + count + size > steps.size:
            return j
        offset = offsets[s]
        for r in range(size):
            s_keys[r] = keys[offset + r]
            s_members[r] = members[offset + r]
            s_leaves[r] = leaves[offset + r]
            s_entered[r] = entered[offset + r]
        worst = s_keys[k - 1] if size >= k else _INFINITY
        bound = bounds[s]
        due = dues[s]
        _measure(
            kind, sign, numbers, width, s, coordinates, given, is_plain, is_open, events, first, seen, count, measures
        )
        is_measured = seen == 0  # the events that wait are measured only if somebody asks for them
        merged = 0
        e = seen
        while True:
            # How many events come before the next departure?
            stop = count
            if due < _INFINITY:
                if timed:
                    low, high = e, count
                    while low < high:
                        middle = (low + high) >> 1
                        if event_times[first + middle if is_open else events[first + middle]] > due:
                            high = middle
                        else:
                            low = middle + 1
                    stop = low
                else:
                    stop = min(count, np.int64(due - position) + 1)

            # Who of them is one of the best k at once? Mostly nobody, so many are looked at together.
            while e + _TOGETHER <= stop:
                is_any = False
                for w in range(e, e + _TOGETHER):
                    is_any |= measures[w] <= bound
                if is_any:
                    break
                e += _TOGETHER
            while e < stop and not measures[e] <= bound:
                e += 1
            if e < stop:
                i = first + e if is_open else events[first + e]
                key = _key(kind, sign, two, numbers, width, s, coordinates, i, measures[e])
                if key <= worst:
                    leaving = event_times[i] + span if timed else position + e + span
                    size = _inserted(key, event_numbers[i], leaving, True, s_keys, s_members, s_leaves, s_entered, size)
                    measures[e] = np.nan  # it does not wait
                    steps[report], ats[report], owners[report], reported[report] = (
                        i, event_times[i], s, event_numbers[i],
                    )  # fmt: skip
                    report += 1
                    if size >= k:
                        worst = s_keys[k - 1]
                        bound = _measure_bound(kind, sign, worst)
                    due = _INFINITY
                    for r in range(min(k, size)):
                        due = min(due, s_leaves[r])
                e += 1
                continue

            # Does something leave here?
            step = 0
            if timed:
                clock = at = due
                if e < count:
                    is_leaving = due < event_times[first + e if is_open else events[first + e]]
                else:
                    is_leaving = due < until or (is_inclusive and due <= until)
            else:
                is_leaving = False
                clock = at = 0.0
                if e > 0:
                    clock = position + (e - 1)
                    step = first + e - 1 if is_open else events[first + e - 1]
                    at = event_times[step]
                    is_leaving = due <= clock
            if not is_leaving and settle_to < 0:
                break

            if not is_measured:
                is_measured = True
                _measure(
                    kind, sign, numbers, width, s, coordinates, given, is_plain, is_open, events, first, 0, seen,
                    measures,
                )  # fmt: skip
                for r in range(size):  # what was among the best on arrival does not wait
                    if s_members[r] >= event_numbers[first if is_open else events[first]]:
                        low, high = 0, count
                        while low < high:
                            middle = (low + high) >> 1
                            if event_numbers[first + middle if is_open else events[first + middle]] < s_members[r]:
                                low = middle + 1
                            else:
                                high = middle
                        measures[low] = np.nan

            if is_leaving:
                p = 0
                for r in range(size):
                    if s_leaves[r] > clock:
                        s_keys[p], s_members[p], s_leaves[p], s_entered[p] = (
                            s_keys[r], s_members[r], s_leaves[r], s_entered[r],
                        )  # fmt: skip
                        p += 1
                size = p
                while merged < e:  # nor does what has left the window
                    i = first + merged if is_open else events[first + merged]
                    if (event_times[i] + span if timed else position + merged + span) > clock:
                        break
                    merged += 1
                if size >= k:
                    worst = s_keys[k - 1]
                    bound = _measure_bound(kind, sign, worst)
                    for w in range(merged, e):
                        if measures[w] <= bound:
                            i = first + w if is_open else events[first + w]
                            key = _key(kind, sign, two, numbers, width, s, coordinates, i, measures[w])
                            if key <= worst:
                                leaving = event_times[i] + span if timed else position + w + span
                                size = _inserted(
                                    key, event_numbers[i], leaving, False,
                                    s_keys, s_members, s_leaves, s_entered, size,
                                )  # fmt: skip
                                measures[w] = np.nan
                                worst = s_keys[k - 1]
                                bound = _measure_bound(kind, sign, worst)

            # What waits takes its place: all that has to, or if something leaves, all that is needed, or half of it, if
            # there is much to look through. From the youngest back, an event waits in vain if k younger ones are
            # better.
            if not is_leaving:
                settled = min(e, settle_to - first) if is_open else e
            elif size < k:
                settled = e
            else:
                settled = merged + ((e - merged) >> 1) if e - merged >= many else merged
            if settled > merged:
                kept = 0
                best_count = 0
                edge = _INFINITY
                w = e - 1
                looked = w + 1  # down to here something was found when many were looked at together
                while w >= merged:
                    if best_count == k and w < looked:
                        is_any = False
                        while w - (_TOGETHER - 1) >= merged:
                            for v in range(w - (_TOGETHER - 1), w + 1):
                                is_any |= measures[v] < edge
                            if is_any:
                                break
                            w -= _TOGETHER
                        looked = w - (_TOGETHER - 1) if is_any else merged
                        if w < merged:
                            break
                    measure = measures[w]
                    if measure < edge or (best_count < k and measure == measure):
                        if w < settled:
                            i = first + w if is_open else events[first + w]
                            kept_keys[kept] = _key(kind, sign, two, numbers, width, s, coordinates, i, measure)
                            kept_places[kept] = w
                            kept += 1
                        if best_count < k or measure < best[k - 1]:
                            r = min(best_count, k - 1)
                            best_count = min(best_count + 1, k)
                            while r > 0 and best[r - 1] > measure:
                                best[r] = best[r - 1]
                                r -= 1
                            best[r] = measure
                            if best_count == k:
                                edge = best[k - 1]
                                if kind == GEOGRAPHIC:
                                    edge += 2 * math.sqrt(abs(edge)) * _ROOM + _ROOM * _ROOM
                    w -= 1
                merged = settled
                _sort(kept_keys, kept_places, kept)
                r, q = size - 1, kept - 1
                size += kept
                p = size - 1
                while q >= 0:
                    place = kept_places[q]
                    i = first + place if is_open else events[first + place]
                    if r >= 0 and (
                        s_keys[r] > kept_keys[q] or (s_keys[r] == kept_keys[q] and s_members[r] < event_numbers[i])
                    ):
                        s_keys[p], s_members[p], s_leaves[p], s_entered[p] = (
                            s_keys[r], s_members[r], s_leaves[r], s_entered[r],
                        )  # fmt: skip
                        r -= 1
                    else:
                        s_keys[p] = kept_keys[q]
                        s_members[p] = event_numbers[i]
                        s_leaves[p] = event_times[i] + span if timed else position + place + span
                        s_entered[p] = False
                        q -= 1
                    p -= 1
            if not is_leaving:
                break

            if timed:  # the first event after it, whether the subscription sees that or not
                low, high = 0, event_times.size
                while low < high:
                    middle = (low + high) >> 1
                    if event_times[middle] > clock:
                        high = middle
                    else:
                        low = middle + 1
                step = low
            for r in range(min(k, size)):
                if not s_entered[r]:
                    s_entered[r] = True
                    steps[report], ats[report], owners[report], reported[report] = step, at, s, s_members[r]
                    report += 1
            worst = s_keys[k - 1] if size >= k else _INFINITY
            bound = _measure_bound(kind, sign, worst)
            due = _INFINITY
            for r in range(min(k, size)):
                due = min(due, s_leaves[r])

        if size > limits[s] or size > rooms[s]:
            size = _pruned(k, s_keys, s_members, s_leaves, s_entered, size, heap)
            if size > rooms[s]:
                state[1] = size
                return j
            limits[s] = size + max(8, (size - k) >> 1)
        for r in range(size):
            keys[offset + r] = s_keys[r]
            members[offset + r] = s_members[r]
            leaves[offset + r] = s_leaves[r]
            entered[offset + r] = s_entered[r]
        sizes[s] = size
        bounds[s] = bound
        dues[s] = due
        checked[s] = count - merged
        cursors[s] = first + merged if is_open else merged
        state[0] = report
    return end


@njit(nogil=True, cache=True)
def _inserted(key, member, leaving, is_entered, s_keys, s_members, s_leaves, s_entered, size):
    """Insert an event at its rank: by key, and of equal keys the younger first. Return the new size."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if s_keys[middle] < key or (s_keys[middle] == key and s_members[middle] > member):
            low = middle + 1
        else:
            high = middle
    for r in range(size, low, -1):
        s_keys[r] = s_keys[r - 1]
        s_members[r] = s_members[r - 1]
        s_leaves[r] = s_leaves[r - 1]
        s_entered[r] = s_entered[r - 1]
    s_keys[low] = key
    s_members[low] = member
    s_leaves[low] = leaving
    s_entered[low] = is_entered
    return size + 1


@njit(nogil=True, cache=True)
def _sort(keys, places, count):
    """Sort by key, and of equal keys the later place first. Shell's sort: few enough, and in place."""
    for gap in (701, 301, 132, 57, 23, 10, 4, 1):
        for r in range(gap, count):
            key, place = keys[r], places[r]
            p = r
            while p >= gap and (keys[p - gap] > key or (keys[p - gap] == key and places[p - gap] < place)):
                keys[p] = keys[p - gap]
                places[p] = places[p - gap]
                p -= gap
            keys[p] = key
            places[p] = place


@njit(nogil=True, cache=True)
def _pruned(k, s_keys, s_members, s_leaves, s_entered, size, youngest):
    """Remove the dominated: who is older than the k youngest of those above. Return the new size."""
    if size <= k:
        return size
    # A heap of the k youngest of those above, the oldest of them on top.
    for r in range(k):
        q = r
        while q > 0 and youngest[(q - 1) >> 1] > s_members[r]:
            youngest[q] = youngest[(q - 1) >> 1]
            q = (q - 1) >> 1
        youngest[q] = s_members[r]
    p = k
    for r in range(k, size):
        member = s_members[r]
        if member < youngest[0]:
            continue
        q = 0
        while 2 * q + 1 < k:
            below = 2 * q + 1
            if below + 1 < k and youngest[below + 1] < youngest[below]:
                below += 1
            if youngest[below] >= member:
                break
            youngest[q] = youngest[below]
            q = below
        youngest[q] = member
        s_keys[p], s_members[p], s_leaves[p], s_entered[p] = s_keys[r], member, s_leaves[r], s_entered[r]
        p += 1
    return p


@njit(nogil=True, cache=True)
def _measure(
    kind, sign, numbers, width, s, coordinates, given, is_plain, is_open, events, first, low, high, measures
):  # fmt: skip
    """Write the measures of the events from `low` to `high` of one subscription, each into its own place."""
    if is_open:
        _measures_of_events(
            kind, sign, numbers, width, s, coordinates, first + low, high - low, given, is_plain, measures[low:]
        )
    else:
        for e in range(low, high):
            _measures_of_events(
                kind, sign, numbers, width, s, coordinates, events[first + e], 1, given, is_plain, measures[e:]
            )


@njit(nogil=True, cache=True)
def _measures_of_events(kind, sign, numbers, width, s, coordinates, first, count, given, is_plain, measures):
    """Write the measures of the events from `first` on for one subscription."""
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
                    measures[e] = _linear_key(numbers, width, s, coordinates, first + e)
                elif mode == GIVEN:
                    measures[e] = given[s]
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
    if sign < 0:
        for e in range(count):
            measures[e] = -measures[e]


# -- A finite stream at once


@njit(nogil=True, cache=True)
def entries(keys, times, k, span, is_timed, until, lefts, rights, ats, causes):
    """Find when each event of a finite stream enters the best k of one subscription, if it ever does.

    keys    float64[:]  NaN: no score
    times   float64[:]  not falling
    until   float64     what leaves later than this does not leave any more
    lefts, rights       int64[k]: room for the nearest better events before and after
    ats     float64[:]  written: when; NaN: never
    causes  int64[:]    written: the arrival with which it enters, the event itself or the one that made another leave
    """
    total = keys.size
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
