"""The compiled loops of rankings in arrays.

A ranking is a slice of the pool, sorted by rank; its first k events are the best. A subscription has seen the events of
the log up to some place. Those of them that are not among its best wait there, all below its k-th best: so an arrival
concerns the best k alone, and when one of these leaves, what waits is compared with the one that would follow it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from tamis.topk.kernels import (
    GEOGRAPHIC,
    LINEAR,
    PLAIN,
    ROOM,
    key_of,
    measure_bound,
    measures_of_events,
    measures_of_subscriptions,
)

_INFINITY = np.inf
_TOGETHER = 32
_MANY = 1024
"""So many waiting events are settled rather than looked through, roughly."""


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
    starts, events        the events of slots[j] are events[starts[j]:starts[j + 1]], places in the log;
                          where `starts` is empty, they are all from cursors[s] on, and `events` is their end
    settle_to             whatever waits before this place of the log takes its place in the ranking; -1: nothing has to
    checked               how many of its events a ranking has seen: they are not among the best k, but wait
    until, is_inclusive   afterwards let leave what leaves before this time, or then too
    offsets to limits     a ranking's slice of the pool, its size, its room, and when it is to be pruned
    keys to entered       the pool
    measures to kept_places         room to work in; s_* is the ranking at hand
    steps, ats, owners, reported    written: who entered where and when
    state                 state[0]: how many reports there are; state[1]: the room that a ranking lacks

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
        # To look through what waits at each departure, or to settle it: that depends on how often something leaves.
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
                    stop = _first_after(event_times, events, first, is_open, e, count, due)
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
                key = key_of(kind, sign, two, numbers, width, s, coordinates, i, measures[e])
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
                        bound = measure_bound(kind, sign, worst)
                    due = _soonest(s_leaves, min(k, size))
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
                _strike_out(event_numbers, events, first, is_open, count, s_members, size, measures)

            if is_leaving:
                size = _without_departed(clock, s_keys, s_members, s_leaves, s_entered, size)
                while merged < e:  # what has left the window does not wait any more
                    i = first + merged if is_open else events[first + merged]
                    if (event_times[i] + span if timed else position + merged + span) > clock:
                        break
                    merged += 1
                if size >= k:
                    worst = s_keys[k - 1]
                    bound = measure_bound(kind, sign, worst)
                    for w in range(merged, e):
                        if measures[w] <= bound:
                            i = first + w if is_open else events[first + w]
                            key = key_of(kind, sign, two, numbers, width, s, coordinates, i, measures[w])
                            if key <= worst:
                                leaving = event_times[i] + span if timed else position + w + span
                                size = _inserted(
                                    key, event_numbers[i], leaving, False,
                                    s_keys, s_members, s_leaves, s_entered, size,
                                )  # fmt: skip
                                measures[w] = np.nan
                                worst = s_keys[k - 1]
                                bound = measure_bound(kind, sign, worst)

            # What waits takes its place: all that has to; or, if something leaves, all that is needed, or half of it
            # where there is much to look through.
            if not is_leaving:
                settled = min(e, settle_to - first) if is_open else e
            elif size < k:
                settled = e
            else:
                settled = merged + ((e - merged) >> 1) if e - merged >= many else merged
            if settled > merged:
                kept = _undominated(kind, k, measures, merged, settled, e, best, kept_places)
                for q in range(kept):
                    w = kept_places[q]
                    i = first + w if is_open else events[first + w]
                    kept_keys[q] = key_of(kind, sign, two, numbers, width, s, coordinates, i, measures[w])
                merged = settled
                _sort(kept_keys, kept_places, kept)
                size = _joined(
                    kept_keys, kept_places, kept, event_numbers, event_times, events, first, is_open, span, timed,
                    position, s_keys, s_members, s_leaves, s_entered, size,
                )  # fmt: skip
            if not is_leaving:
                break

            if timed:  # with the first event after it, whether the subscription sees that or not
                step = _first_after(event_times, events, 0, True, 0, event_times.size, clock)
            for r in range(min(k, size)):
                if not s_entered[r]:
                    s_entered[r] = True
                    steps[report], ats[report], owners[report], reported[report] = step, at, s, s_members[r]
                    report += 1
            worst = s_keys[k - 1] if size >= k else _INFINITY
            bound = measure_bound(kind, sign, worst)
            due = _soonest(s_leaves, min(k, size))

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


# -- The steps of it


@njit(nogil=True, cache=True)
def _first_after(event_times, events, first, is_open, low, high, time):
    """Return which is the first of a subscription's events from `low` to `high` that comes after a time."""
    while low < high:
        middle = (low + high) >> 1
        if event_times[first + middle if is_open else events[first + middle]] > time:
            high = middle
        else:
            low = middle + 1
    return low


@njit(nogil=True, cache=True)
def _soonest(s_leaves, count):
    """Return when the first of the best leaves."""
    due = _INFINITY
    for r in range(count):
        due = min(due, s_leaves[r])
    return due


@njit(nogil=True, cache=True)
def _strike_out(event_numbers, events, first, is_open, count, s_members, size, measures):
    """Let what is in the ranking already not wait: its measure becomes NaN."""
    oldest = event_numbers[first if is_open else events[first]]
    for r in range(size):
        if s_members[r] >= oldest:
            low, high = 0, count
            while low < high:
                middle = (low + high) >> 1
                if event_numbers[first + middle if is_open else events[first + middle]] < s_members[r]:
                    low = middle + 1
                else:
                    high = middle
            measures[low] = np.nan


@njit(nogil=True, cache=True)
def _without_departed(clock, s_keys, s_members, s_leaves, s_entered, size):
    """Remove what leaves by now. Return the new size."""
    p = 0
    for r in range(size):
        if s_leaves[r] > clock:
            s_keys[p], s_members[p], s_leaves[p], s_entered[p] = s_keys[r], s_members[r], s_leaves[r], s_entered[r]
            p += 1
    return p


@njit(nogil=True, cache=True)
def _undominated(kind, k, measures, low, settled, high, best, kept_places):
    """Find who of the waiting events from `low` to `settled` is not beaten by k younger ones, up to `high`.

    From the youngest back; `best` has the k smallest measures so far. Returns how many, their places in `kept_places`.
    """
    kept = 0
    best_count = 0
    edge = _INFINITY
    w = high - 1
    looked = w + 1  # down to here something was found when many were looked at together
    while w >= low:
        if best_count == k and w < looked:
            is_any = False
            while w - (_TOGETHER - 1) >= low:
                for v in range(w - (_TOGETHER - 1), w + 1):
                    is_any |= measures[v] < edge
                if is_any:
                    break
                w -= _TOGETHER
            looked = w - (_TOGETHER - 1) if is_any else low
            if w < low:
                break
        measure = measures[w]
        if measure < edge or (best_count < k and measure == measure):
            if w < settled:
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
                        edge += 2 * math.sqrt(abs(edge)) * ROOM + ROOM * ROOM
        w -= 1
    return kept


@njit(nogil=True, cache=True)
def _joined(
    kept_keys, kept_places, kept, event_numbers, event_times, events, first, is_open, span, timed, position,
    s_keys, s_members, s_leaves, s_entered, size,
):  # fmt: skip
    """Merge what was kept, sorted by rank, into the ranking, from behind. Return the new size."""
    r, q = size - 1, kept - 1
    p = size + kept - 1
    while q >= 0:
        place = kept_places[q]
        i = first + place if is_open else events[first + place]
        if r >= 0 and (s_keys[r] > kept_keys[q] or (s_keys[r] == kept_keys[q] and s_members[r] < event_numbers[i])):
            s_keys[p], s_members[p], s_leaves[p], s_entered[p] = s_keys[r], s_members[r], s_leaves[r], s_entered[r]
            r -= 1
        else:
            s_keys[p] = kept_keys[q]
            s_members[p] = event_numbers[i]
            s_leaves[p] = event_times[i] + span if timed else position + place + span
            s_entered[p] = False
            q -= 1
        p -= 1
    return size + kept


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
        measures_of_events(
            kind, sign, numbers, width, s, coordinates, first + low, high - low, given, is_plain, measures[low:]
        )
    else:
        for e in range(low, high):
            measures_of_events(
                kind, sign, numbers, width, s, coordinates, events[first + e], 1, given, is_plain, measures[e:]
            )
