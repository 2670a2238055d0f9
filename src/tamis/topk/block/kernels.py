"""How are many rankings brought up to date at once? The compiled loops of sliding-window top-k over columns.

A ranking is a slice of the pool, sorted by rank; its first k events are the best. A subscription has seen the events of
the log up to some place. Those of them that are not among its best wait there, all below its k-th best: so an arrival
concerns the best k alone, and when one of these leaves, what waits is compared with the one that would follow it.

    log       . . . . . . . . . . . . . . . . . . . . . . .
              |merged           |seen             |count
              '- in the ranking '- waits: compared '- is compared now
                 or gone           with the best k
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.compilation import borrowed, inlined, kernel
from tamis.ragged import Ragged
from tamis.topk.kernels import (
    BOX,
    CITY,
    GEOGRAPHIC,
    LINEAR,
    PLAIN,
    ROOM,
    Edges,
    Flags,
    Floats,
    Integers,
    ScoreTable,
    key_of,
    measure_bound,
    measures_of_events,
    measures_of_subscriptions,
)

_INFINITY = np.inf
_TOGETHER = 32
"""So many measures are compared at once; a branch for each would cost more than looking at a few too many."""
_SETTLED_AT_ONCE = 1024
"""So many waiting events are settled rather than looked through, roughly."""
WRITTEN, LACKING = 0, 1
"""The places of `Reports.state`."""


# -- Tables


class SlotTable(NamedTuple):
    """What is known of every ranking, a row a slot. Made and grown by `block.tables`.

    handles    int64[:]     whose ranking it is, -1 for a slot that is free
    ks         int64[:]     how many are the best
    spans      float64[:]   how long an event stays in the window: seconds, or a number of events
    positions  int64[:]     with a filter: how many events have passed it
    cursors    int64[:]     without a filter: the first place of the log that waits or has not been seen; with one: how
                            many of the events of the last run wait no longer
    checked    int64[:]     how many of its waiting events it has compared with its best k
    offsets    int64[:]     where its slice of the pool begins
    sizes      int64[:]     how many candidates are there
    rooms      int64[:]     how many there is room for
    limits     int64[:]     with more candidates than this it is pruned
    counts     int64[:]     with a filter: how many events wait
    waiting    int32[:, :]  with a filter: their places in the log, a row a slot
    edges      Edges        its k-th best, and its next departure

    Slices of the pool do not overlap; `sizes` is at most `rooms`; the first `counts` of a row of `waiting` rise. All
    have room for the same slots.
    """

    handles: Integers
    ks: Integers
    spans: Floats
    positions: Integers
    cursors: Integers
    checked: Integers
    offsets: Integers
    sizes: Integers
    rooms: Integers
    limits: Integers
    counts: Integers
    waiting: npt.NDArray[np.int32]
    edges: Edges


class Candidates(NamedTuple):
    """Events in order of rank: the pool, where each ranking has a slice; or one ranking that is being worked on.

    keys     float64[:]  within a ranking they never fall, and of equal keys the younger event is first
    numbers  int64[:]    which event it is; younger events have greater numbers
    leaves   float64[:]  when it leaves the window: at this time, or with the arrival at this position
    entered  bool[:]     whether it has been among the best k

    All have the same length. Made by `block.tables.candidates`.
    """

    keys: Floats
    numbers: Integers
    leaves: Floats
    entered: Flags


class ArrivalLog(NamedTuple):
    """The log: the events that came since all rankings were last brought up to date, in order of arrival.

    numbers      int64[:]       which event it is; they rise
    times        float64[:]     when it came; they do not fall
    coordinates  float64[:, :]  what the scores of the family read of it, a column an event; there may be more columns
    """

    numbers: Integers
    times: Floats
    coordinates: Floats


class UpdateGoal(NamedTuple):
    """How far rankings are brought up to date, beyond the end of the log.

    until         float  let leave what leaves before this time,
    is_inclusive  bool   or then too
    settle_to     int    whatever waits before this place of the log takes its place in the ranking; -1: nothing does
    """

    until: float
    is_inclusive: bool
    settle_to: int


class RankingTask(NamedTuple):
    """Which rankings are brought up to date, with what, and how far.

    slots    int64[:]  whose
    passing  Ragged    with filters: the places in the log of the events of each of `slots`; without: no lists
    is_open  bool      whether there are no filters, so that each ranking sees the whole log from its cursor on
    goal     Goal      how far
    """

    slots: Integers
    passing: Ragged[np.int64]
    is_open: bool
    goal: UpdateGoal


class RankingWorkspace(NamedTuple):
    """Room to work in, for one ranking at a time. Made by `block.tables.workspace`.

    ranking      Candidates  the ranking at hand; room for the largest slice of the pool and the whole log
    measures     float64[:]  by event: its measure; NaN: it does not wait, it is in the ranking or has no score
    best         float64[:]  room for the k smallest measures
    youngest     int64[:]    room for the k greatest numbers
    kept_keys    float64[:]  room for the keys of a log, and `kept_places` for their places
    kept_places  int64[:]
    """

    ranking: Candidates
    measures: Floats
    best: Floats
    youngest: Integers
    kept_keys: Floats
    kept_places: Integers


class Reports(NamedTuple):
    """Who entered the best k, where and when, a row each. Made by `block.tables.reports`.

    steps    int64[:]    the place of the log with whose arrival it happened
    ats      float64[:]  when
    owners   int64[:]    the slot
    numbers  int64[:]    the event
    state    int64[2]    WRITTEN: how many rows are; LACKING: the room that a ranking lacks in the pool
    """

    steps: Integers
    ats: Floats
    owners: Integers
    numbers: Integers
    state: Integers


class View(NamedTuple):
    """One ranking before a run, and what it sees of the log: events 0 to `count`, those of the log that are its own.

    s         int      its slot; k, span and is_timed are those of the slot
    size      int      how many candidates it has; bound and due are its edges
    seen      int      how many of its events it has compared with its best k before: they wait
    is_open   bool     whether event e is at the place `first + e` of the log, or at `places[first + e]`
    is_plain  bool     whether all events of the log are added up in doubles
    position  float    where event 0 stands in its stream
    """

    s: int
    k: int
    span: float
    is_timed: bool
    size: int
    bound: float
    due: float
    seen: int
    is_open: bool
    is_plain: bool
    first: int
    count: int
    position: float
    places: Integers


# -- An arrival


@kernel
def due_slots(edges: Edges, slot_count: int, time: float, position: float, due: Integers) -> tuple[int, float]:
    """Find the subscriptions that something leaves before `time`, or at `position`; return how many, and the next."""
    dues, is_timed = edges.dues, edges.is_timed
    count = 0
    soonest = _INFINITY
    for s in range(slot_count):
        if dues[s] < (time if is_timed[s] else position + 0.5):
            due[count] = s
            count += 1
        elif is_timed[s] and dues[s] < soonest:
            soonest = dues[s]
    return count, soonest


@kernel
def note_arrival(
    slots: Integers, i: int, scores: ScoreTable, coordinates: Floats, table: SlotTable, looking: Integers
) -> int:
    """Note an arrival for those whose filter it passes; find those that it may interest, or that have no room to wait.

    slots  int64[:]  whose filter the event passes
    looking  int64[:]  written: those of them that have to look at it now; the number of them is returned
    """
    waiting, counts, positions = table.waiting, table.counts, table.positions
    bounds, dues, is_timed = table.edges.bounds, table.edges.dues, table.edges.is_timed
    found_count = 0
    measure = np.empty(1)
    for s in slots:
        waiting[s, counts[s]] = i
        counts[s] += 1
        positions[s] += 1
        measures_of_subscriptions(scores, coordinates, i, s, s + 1, measure)
        is_leaving = not is_timed[s] and dues[s] <= positions[s]
        if measure[0] <= bounds[s] or is_leaving or counts[s] == waiting.shape[1]:
            looking[found_count] = s
            found_count += 1
    return found_count


@kernel
def forget_waiting(slots: Integers, table: SlotTable) -> None:
    """Remove from the waiting lists of `slots` what waits no longer: as many events as their cursors say."""
    waiting, counts, cursors = table.waiting, table.counts, table.cursors
    for s in slots:
        done = cursors[s]
        count = counts[s] - done
        for place in range(count):
            waiting[s, place] = waiting[s, place + done]
        counts[s] = count


# -- Rankings up to date


@inlined
def run(
    task: RankingTask,
    begin: int,
    scores: ScoreTable,
    events: ArrivalLog,
    table: SlotTable,
    pool: Candidates,
    work: RankingWorkspace,
    reports: Reports,
) -> int:
    """Bring rankings up to date: take the events that each has not seen yet, and let leave what leaves meanwhile.

    Returns the place among `task.slots`, from `begin` on, up to which all is done. If that is not the end, the slot
    there lacks room (in the pool, if `reports.state[LACKING]` is not 0, or for reports), is as it was before, and wants
    to be run again.
    """
    is_plain = _is_plain(scores, events)
    state = reports.state
    for j in range(begin, task.slots.size):
        view = _seen_by(j, task, events, table, is_plain)
        s, k = view.s, view.k
        state[LACKING] = 0
        # Each event it sees may enter on arrival, and each it has may enter when another leaves.
        if state[WRITTEN] + view.count + table.sizes[s] > reports.steps.size:
            return j
        _copy(pool, table.offsets[s], work.ranking, 0, table.sizes[s])
        size, merged, written, bound, due = _caught_up(view, task.goal, scores, events, work, reports)
        if size > table.limits[s] or size > table.rooms[s]:
            size = _pruned(work.ranking, size, k, work.youngest)
            if size > table.rooms[s]:
                state[LACKING] = size  # nothing is written yet, so all of it can be done again
                return j
            table.limits[s] = size + max(8, (size - k) >> 1)
        _copy(work.ranking, 0, pool, table.offsets[s], size)
        table.sizes[s] = size
        table.edges.bounds[s] = bound
        table.edges.dues[s] = due
        table.checked[s] = view.count - merged
        table.cursors[s] = view.first + merged if view.is_open else merged
        state[WRITTEN] = written
    return task.slots.size


def run_tables(
    task: RankingTask,
    begin: int,
    scores: ScoreTable,
    events: ArrivalLog,
    table: SlotTable,
    pool: Candidates,
    work: RankingWorkspace,
    reports: Reports,
) -> int:
    """Do what `run` does; called from Python, this is faster.

    A call with tuples of some 40 arrays takes 10 microseconds until the types of all are recognised, one with the same
    arrays side by side takes 3; and a single event that concerns few subscriptions takes 40 in all.
    """
    return _run_columns(
        *task[:1], *task.passing, task.is_open, *task.goal, begin, *scores, *events, *table[:-1], *table.edges,
        *pool, *work.ranking, *work[1:], *reports,
    )  # fmt: skip


@kernel
def _run_columns(
    slots, starts, places, is_open, until, is_inclusive, settle_to, begin,
    kind, sign, width, two, numbers, given, event_numbers, times, coordinates,
    handles, ks, spans, positions, cursors, checked, offsets, sizes, rooms, limits, counts, waiting,
    bounds, dues, is_timed,
    pool_keys, pool_numbers, pool_leaves, pool_entered, own_keys, own_numbers, own_leaves, own_entered,
    measures, best, youngest, kept_keys, kept_places, steps, ats, owners, reported, state,
):  # fmt: skip
    """Put the columns of tables together again, and run: see `run_tables` for why there are so many."""
    slot_table = SlotTable(
        handles, ks, spans, positions, cursors, checked, offsets, sizes, rooms, limits, counts, waiting,
        Edges(bounds, dues, is_timed),
    )  # fmt: skip
    own = Candidates(own_keys, own_numbers, own_leaves, own_entered)
    return run(
        borrowed(RankingTask(slots, Ragged(starts, places), is_open, UpdateGoal(until, is_inclusive, settle_to))),
        begin,
        borrowed(ScoreTable(kind, sign, width, two, numbers, given)),
        borrowed(ArrivalLog(event_numbers, times, coordinates)),
        borrowed(slot_table),
        borrowed(Candidates(pool_keys, pool_numbers, pool_leaves, pool_entered)),
        borrowed(RankingWorkspace(own, measures, best, youngest, kept_keys, kept_places)),
        borrowed(Reports(steps, ats, owners, reported, state)),
    )


@kernel
def _is_plain(scores: ScoreTable, events: ArrivalLog):
    """Are the scores of all events added up in doubles, so that no mode has to be looked at?"""
    is_plain = True
    if scores.kind == LINEAR or scores.kind == BOX or scores.kind == CITY:
        modes = events.coordinates[2 * scores.width + 1 if scores.kind == LINEAR else scores.width]
        for i in range(events.times.size):
            is_plain = is_plain and modes[i] == PLAIN
    return is_plain


@inlined
def _seen_by(j, task: RankingTask, events: ArrivalLog, table: SlotTable, is_plain):
    """Return what the j-th slot of a task sees of the log."""
    s = task.slots[j]
    if task.is_open:
        first = table.cursors[s]
        count = events.times.size - first
        position = np.float64(events.numbers[first]) if count > 0 else 0.0
    else:
        first = task.passing.starts[j]
        count = task.passing.starts[j + 1] - first
        position = np.float64(table.positions[s] - count + 1)
    edges = table.edges
    return View(
        s, table.ks[s], table.spans[s], edges.is_timed[s], table.sizes[s], edges.bounds[s], edges.dues[s],
        table.checked[s], task.is_open, is_plain, first, count, position, task.passing.values,
    )  # fmt: skip


@inlined
def _caught_up(
    view: View, goal: UpdateGoal, scores: ScoreTable, events: ArrivalLog, work: RankingWorkspace, reports: Reports
) -> tuple[int, int, int, float, float]:
    """Let one ranking, which is in the workspace, see its events up to the end of the log, departures included.

    Returns its size, how many of its events wait no longer, how many reports are written, its bound and its next due.
    """
    s, k = view.s, view.k
    ranking, measures = work.ranking, work.measures
    size, bound, due, seen = view.size, view.bound, view.due, view.seen
    # With fewer than k candidates everything enters.
    worst = ranking.keys[k - 1] if size >= k else _INFINITY
    written = reports.state[WRITTEN]
    _measure(view, scores, events, seen, view.count, measures)
    is_measured = seen == 0  # the events that wait are measured only if somebody asks for them
    merged = 0
    e = seen
    while True:
        # Arrivals up to the next departure. Mostly none of them is among the best k, and all of them just wait.
        stop = _first_after_departure(view, events, e, due)
        e = _next_within(measures, bound, e, stop)
        if e < stop:
            i = _place(view, e)
            key = key_of(scores, s, events.coordinates, i, measures[e])
            if key <= worst:  # the measure alone does not decide: its bound has a little room
                number = events.numbers[i]
                size = _inserted(ranking, size, key, number, _leaving(view, events, e), True)
                measures[e] = np.nan  # it does not wait
                written = _report(reports, written, i, events.times[i], s, number)
                worst = ranking.keys[k - 1] if size >= k else _INFINITY
                bound = measure_bound(scores, worst)
                due = _soonest(ranking, min(k, size))
            e += 1
            continue

        is_leaving, clock, at, step = _departure(view, goal, events, e, due)
        if not is_leaving and goal.settle_to < 0:
            break
        if not is_measured:
            is_measured = True
            _measure(view, scores, events, 0, seen, measures)
            _strike_out(view, events, ranking, size, measures)
        if is_leaving:
            size = _without_departed(ranking, size, clock)
            merged = _first_staying(view, events, merged, e, clock)
            if size >= k:
                size = _with_promoted(view, scores, events, work, merged, e, size)

        # What waits takes its place: all that has to; or, if something leaves, all that is needed, or half of it where
        # there is much to look through.
        if not is_leaving:
            settled = min(e, goal.settle_to - view.first) if view.is_open else e
        elif size < k:
            settled = e
        else:
            settled = merged + ((e - merged) >> 1) if e - merged >= _too_many(view) else merged
        if settled > merged:
            size = _with_settled(view, scores, events, work, merged, settled, e, size)
            merged = settled
        if not is_leaving:
            break

        if view.is_timed:  # with the first event after it, whether the subscription sees that or not
            step = _first_after(events.times, clock)
        written = _report_entered(ranking, min(k, size), step, at, s, reports, written)
        worst = ranking.keys[k - 1] if size >= k else _INFINITY
        bound = measure_bound(scores, worst)
        due = _soonest(ranking, min(k, size))
    return size, merged, written, bound, due


# -- The steps of it


@inlined
def _place(view: View, e):
    """Return where its event `e` is in the log."""
    return view.first + e if view.is_open else view.places[view.first + e]


@inlined
def _leaving(view: View, events: ArrivalLog, e):
    """Return when its event `e` leaves the window: a time, or the position of the arrival that makes it leave."""
    return events.times[_place(view, e)] + view.span if view.is_timed else view.position + e + view.span


@inlined
def _copy(source: Candidates, source_begin, target: Candidates, target_begin, size):
    """Copy so many candidates from one table into another."""
    for r in range(size):
        target.keys[target_begin + r] = source.keys[source_begin + r]
        target.numbers[target_begin + r] = source.numbers[source_begin + r]
        target.leaves[target_begin + r] = source.leaves[source_begin + r]
        target.entered[target_begin + r] = source.entered[source_begin + r]


@inlined
def _report(reports: Reports, written, step, at, owner, number):
    """Write a report; return how many there are now."""
    reports.steps[written] = step
    reports.ats[written] = at
    reports.owners[written] = owner
    reports.numbers[written] = number
    return written + 1


@inlined
def _report_entered(ranking: Candidates, count, step, at, owner, reports: Reports, written):
    """Report those of the best that have not been among them before; return how many reports there are now."""
    for r in range(count):
        if not ranking.entered[r]:
            ranking.entered[r] = True
            written = _report(reports, written, step, at, owner, ranking.numbers[r])
    return written


@inlined
def _too_many(view: View):
    """Return how many waiting events are settled rather than looked through.

    To look through what waits at each departure, or to settle it: that depends on how often something leaves, which for
    a window of n events is about every n / k arrivals.
    """
    if view.is_timed:
        return _SETTLED_AT_ONCE
    return min(4 * _SETTLED_AT_ONCE, max(_SETTLED_AT_ONCE >> 2, np.int64(28 * math.sqrt(view.span))))


@inlined
def _first_after_departure(view: View, events: ArrivalLog, e, due):
    """Return the first of its events from `e` on that comes after the next departure."""
    if not due < _INFINITY:
        return view.count
    if not view.is_timed:
        return min(view.count, np.int64(due - view.position) + 1)
    low, high = e, view.count
    while low < high:
        middle = (low + high) >> 1
        if events.times[_place(view, middle)] > due:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _first_after(times, time):
    """Return the first place of the log that comes after a time."""
    low, high = 0, times.size
    while low < high:
        middle = (low + high) >> 1
        if times[middle] > time:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _next_within(measures, bound, e, stop):
    """Return the first event from `e` to `stop` whose measure is within the bound; `stop` if there is none."""
    # Many at a time and without a branch, so that the compiler uses vector instructions: hardly any block has a hit.
    while e + _TOGETHER <= stop:
        is_any = False
        for w in range(e, e + _TOGETHER):
            is_any |= measures[w] <= bound
        if is_any:
            break
        e += _TOGETHER
    # Not `measures[e] > bound`: a NaN is an event that waits no more, and must not stop the search.
    while e < stop and not measures[e] <= bound:
        e += 1
    return e


@inlined
def _departure(view: View, goal: UpdateGoal, events: ArrivalLog, e, due):
    """Return whether something leaves before event `e`; by which clock, at which time, and at which place of the log.

    The clock is a time or a position, as the window is. With a window of events they leave with the arrival of one.
    """
    step = np.int64(0)
    if view.is_timed:
        if e < view.count:
            is_leaving = due < events.times[_place(view, e)]
        else:
            is_leaving = due < goal.until or (goal.is_inclusive and due <= goal.until)
        return is_leaving, due, due, step
    if e == 0:
        return False, 0.0, 0.0, step
    clock = view.position + (e - 1)
    step = _place(view, e - 1)
    return due <= clock, clock, events.times[step], step


@inlined
def _first_staying(view: View, events: ArrivalLog, merged, e, clock):
    """Return the first of what waits that is still in the window: what has left it does not wait any more."""
    while merged < e and not _leaving(view, events, merged) > clock:
        merged += 1
    return merged


@inlined
def _soonest(ranking: Candidates, count):
    """Return when the first of the best leaves."""
    due = _INFINITY
    for r in range(count):
        # Ranked by key, not by age: the soonest may stand anywhere. Only the best k matter, whoever else leaves is not
        # missed.
        due = min(due, ranking.leaves[r])
    return due


@inlined
def _measure(view: View, scores: ScoreTable, events: ArrivalLog, low, high, measures):
    """Write the measures of its events from `low` to `high`, each into its own place."""
    if view.is_open:
        measures_of_events(
            scores, view.s, events.coordinates, view.first + low, high - low, view.is_plain, measures[low:]
        )
    else:
        for e in range(low, high):
            measures_of_events(
                scores, view.s, events.coordinates, view.places[view.first + e], 1, view.is_plain, measures[e:]
            )


@kernel
def _strike_out(view: View, events: ArrivalLog, ranking: Candidates, size, measures):
    """Let what is in the ranking already not wait: its measure becomes NaN."""
    oldest = events.numbers[_place(view, 0)]
    for r in range(size):
        if ranking.numbers[r] >= oldest:  # younger than the oldest that waits, so it is one of its events
            low, high = 0, view.count
            while low < high:
                middle = (low + high) >> 1
                if events.numbers[_place(view, middle)] < ranking.numbers[r]:
                    low = middle + 1
                else:
                    high = middle
            measures[low] = np.nan


@inlined
def _move(ranking: Candidates, source, target):
    """Write one candidate over another."""
    ranking.keys[target] = ranking.keys[source]
    ranking.numbers[target] = ranking.numbers[source]
    ranking.leaves[target] = ranking.leaves[source]
    ranking.entered[target] = ranking.entered[source]


@inlined
def _without_departed(ranking: Candidates, size, clock):
    """Remove what leaves by now. Return the new size."""
    p = 0
    for r in range(size):
        # In place, and in order: what stays moves up, so the ranking need not be sorted again.
        if ranking.leaves[r] > clock:
            _move(ranking, r, p)
            p += 1
    return p


@inlined
def _with_promoted(view: View, scores: ScoreTable, events: ArrivalLog, work: RankingWorkspace, merged, e, size):
    """Insert the waiting events that beat the one that is the k-th best now. Return the new size."""
    k, ranking, measures = view.k, work.ranking, work.measures
    # Each that enters moves the k-th best up, and the bound with it: fewer and fewer of those that follow have a
    # chance.
    worst = ranking.keys[k - 1]
    bound = measure_bound(scores, worst)
    for w in range(merged, e):
        if measures[w] <= bound:
            i = _place(view, w)
            key = key_of(scores, view.s, events.coordinates, i, measures[w])
            if key <= worst:
                size = _inserted(ranking, size, key, events.numbers[i], _leaving(view, events, w), False)
                measures[w] = np.nan  # it does not wait any more
                worst = ranking.keys[k - 1]
                bound = measure_bound(scores, worst)
    return size


@inlined
def _with_settled(view: View, scores: ScoreTable, events: ArrivalLog, work: RankingWorkspace, merged, settled, e, size):
    """Let what waits from `merged` to `settled` take its place in the ranking. Return the new size.

    Only those enter that fewer than k younger ones beat, of all that wait up to `e`: the others leave before they could
    be among the best.
    """
    kept = _undominated(scores, view.k, work, merged, settled, e)
    for q in range(kept):
        w = work.kept_places[q]
        work.kept_keys[q] = key_of(scores, view.s, events.coordinates, _place(view, w), work.measures[w])
    _sort(work.kept_keys, work.kept_places, kept)
    return _joined(view, events, work, kept, size)


@kernel
def _undominated(scores: ScoreTable, k, work: RankingWorkspace, low, settled, high):
    """Find who of the waiting events from `low` to `settled` is not beaten by k younger ones, up to `high`.

    From the youngest back; `work.best` has the k smallest measures so far. Returns how many, and writes their places
    into `work.kept_places`.
    """
    measures, best, kept_places = work.measures, work.best, work.kept_places
    kept = 0
    best_count = 0
    edge = _INFINITY
    w = high - 1
    looked = w + 1  # down to here something was found when many were looked at together, so each is looked at alone
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
                # Insertion into the k smallest; the greatest of them falls out once there are k.
                r = min(best_count, k - 1)
                best_count = min(best_count + 1, k)
                while r > 0 and best[r - 1] > measure:
                    best[r] = best[r - 1]
                    r -= 1
                best[r] = measure
                if best_count == k:
                    edge = best[k - 1]
                    if scores.kind == GEOGRAPHIC:  # a greater measure may have an equal key: leave some room
                        edge += 2 * math.sqrt(abs(edge)) * ROOM + ROOM * ROOM
        w -= 1
    return kept


@inlined
def _joined(view: View, events: ArrivalLog, work: RankingWorkspace, kept, size):
    """Merge what was kept, sorted by rank, into the ranking, from behind. Return the new size."""
    ranking, kept_keys, kept_places = work.ranking, work.kept_keys, work.kept_places
    r, q = size - 1, kept - 1
    # From behind, so that nothing is written over before it is read, and no second table is needed.
    p = size + kept - 1
    while q >= 0:
        number = events.numbers[_place(view, kept_places[q])]
        if r >= 0 and (
            ranking.keys[r] > kept_keys[q] or (ranking.keys[r] == kept_keys[q] and ranking.numbers[r] < number)
        ):
            _move(ranking, r, p)
            r -= 1
        else:
            ranking.keys[p] = kept_keys[q]
            ranking.numbers[p] = number
            ranking.leaves[p] = _leaving(view, events, kept_places[q])
            ranking.entered[p] = False
            q -= 1
        p -= 1
    return size + kept


@kernel
def _inserted(ranking: Candidates, size, key, number, leaving, is_entered):
    """Insert an event at its rank: by key, and of equal keys the younger first. Return the new size."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if ranking.keys[middle] < key or (ranking.keys[middle] == key and ranking.numbers[middle] > number):
            low = middle + 1
        else:
            high = middle
    for r in range(size, low, -1):
        _move(ranking, r - 1, r)
    ranking.keys[low] = key
    ranking.numbers[low] = number
    ranking.leaves[low] = leaving
    ranking.entered[low] = is_entered
    return size + 1


@kernel
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


@kernel
def _pruned(ranking: Candidates, size, k, youngest):
    """Remove the dominated: who is older than the k youngest of those above. Return the new size."""
    if size <= k:
        return size
    numbers = ranking.numbers
    # A binary heap of the k youngest of those above, the oldest of them on top: first of the best k, who stay.
    for r in range(k):
        q = r
        while q > 0 and youngest[(q - 1) >> 1] > numbers[r]:
            youngest[q] = youngest[(q - 1) >> 1]
            q = (q - 1) >> 1
        youngest[q] = numbers[r]
    p = k
    for r in range(k, size):
        number = numbers[r]
        if number < youngest[0]:
            continue  # k better ones outlive it
        # It takes the place of the oldest of the k youngest, and sinks to where it belongs in the heap.
        q = 0
        while 2 * q + 1 < k:
            below = 2 * q + 1
            if below + 1 < k and youngest[below + 1] < youngest[below]:
                below += 1
            if youngest[below] >= number:
                break
            youngest[q] = youngest[below]
            q = below
        youngest[q] = number
        _move(ranking, r, p)
        p += 1
    return p
