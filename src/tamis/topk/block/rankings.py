"""How are the rankings of a family's subscriptions kept in arrays? As columns: sliding-window top-k, lazily maintained.

A ranking is a slice of a common pool, sorted by rank: keys, numbers, when they leave, whether they have been among the
best. Beside it stand the two numbers by which most arrivals are dismissed: the measure of the k-th best, and when the
next of the best leaves. What a subscription has not looked at yet is in the log of all (from its cursor on), or, where
a filter stands before it, in its short list of places in the log.

Source: the candidates are those of relaxed pruning, Pripužić 2010, section 3.3.3 (docs/bibliography.md).
Departs: events that are not among the best on arrival are not inserted one by one. They wait, and of those that waited
together only the ones enter that fewer than k younger ones beat. That is exact for every order of the stream.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.ragged import Ragged, places_of, starts_of
from tamis.topk.block import kernels, tables
from tamis.topk.block.kernels import LACKING, WRITTEN
from tamis.topk.index import kernels as searching
from tamis.topk.index.choice import FEW_SLOTS, INDEXES, fastest
from tamis.topk.index.columns import SlotColumns
from tamis.topk.kernels import LINEAR, PLAIN, Floats, Integers
from tamis.topk.scoring import Group
from tamis.topk.windows import TimeWindow

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.relations.families import Family, Number
    from tamis.topk.index.base import Index
    from tamis.topk.ranked import Ranked

WAITING = 32
"""So many events may wait for a subscription with a filter."""
_NOBODY: Integers = np.zeros(0, np.int64)
_NO_EVENTS: Ragged[np.int64] = Ragged(np.zeros(1, np.int64), _NOBODY)
_CHOSEN_FIRST, _CHOSEN_EVERY = 256, 8192
"""After so many single events an index is chosen for the first time, and again."""
_SAMPLE = 512


class Entrants(NamedTuple):
    """Who entered the best k, a row each.

    steps    int64[:]    the place of the log with whose arrival it happened
    ats      float64[:]  when
    handles  int64[:]    whose ranking it is
    numbers  int64[:]    the event
    """

    steps: Integers
    ats: Floats
    handles: Integers
    numbers: Integers


class Log(NamedTuple):
    """The events that came since all rankings were last brought up to date, in order of arrival.

    numbers  int64[:]    which event it is; they rise
    times    float64[:]  when it came; they do not fall
    """

    numbers: Integers
    times: Floats


class Rankings:
    """The rankings of a group. `is_open` says that no filters stand before them, so that they see every event."""

    def __init__(
        self, family: Family, *, is_open: bool, log_length: int, schema: Schema | None, index: str = "auto"
    ) -> None:
        self.group = Group(family, schema)
        self.is_open = is_open
        self.coordinates: Floats = np.full((self.group.coordinate_rows, log_length), math.nan)
        self.next_due = math.inf
        """No ranking with a time window loses one of its best before."""
        self._log_length = log_length
        self._slots = tables.slot_table(0, 0 if is_open else WAITING)
        self._pool = tables.candidates()
        self._pool_end = 0
        self._most_k, self._most_room = 1, 0
        self._work = tables.workspace(0, 0, 0)
        self._reports = tables.reports()
        self._found = _NOBODY
        self._settled = 0
        """How many slots have settled what waits in the first half of the log."""
        self._index_name = index
        self._index: Index | None = None
        self.index_times_us: dict[str, float] = {}
        """How long each index took when they were last compared."""
        self._asked = 0
        self._stamps = _NOBODY
        self._stamp = 0

    def __len__(self) -> int:
        return len(self.group)

    # -- Subscriptions

    def add(self, handle: int, ranked: Ranked, numbers: tuple[Number, ...], cursor: int) -> int:
        """Start a ranking that sees what comes from `cursor` on, and return its slot."""
        slot = self.group.add(ranked, numbers)
        self._index = None  # of other subscriptions
        if slot >= len(self._slots.ks):
            self._slots = tables.grown(self._slots, self.group.numbers.shape[1])
        table = self._slots
        first_room = 4 * ranked.k + 8
        table.handles[slot], table.ks[slot], table.spans[slot] = handle, ranked.k, ranked.window.span
        table.positions[slot], table.cursors[slot], table.checked[slot] = 0, cursor, 0
        table.sizes[slot], table.limits[slot], table.counts[slot] = 0, first_room, 0
        table.edges.bounds[slot], table.edges.dues[slot] = math.inf, math.inf
        table.edges.is_timed[slot] = isinstance(ranked.window, TimeWindow)
        if table.rooms[slot] < first_room:
            self._make_room(slot, first_room)
        self._most_k = max(self._most_k, ranked.k)
        return slot

    def remove(self, slot: int) -> None:
        """End a ranking. Its slot, and its slice of the pool, wait for the next."""
        self.group.remove(slot)
        table = self._slots
        table.handles[slot], table.sizes[slot], table.counts[slot] = -1, 0, 0
        table.edges.bounds[slot], table.edges.dues[slot] = -math.inf, math.inf

    def _make_room(self, slot: int, room: int) -> None:
        """Move a ranking to a larger slice of the pool; the pool is laid out anew where much of it is unused."""
        table = self._slots
        if self._pool_end + room > len(self._pool.keys):
            in_use = int(table.rooms.sum()) - int(table.rooms[slot]) + room
            self._pool = tables.laid_out(table, self._pool, max(1024, in_use + in_use // 2))
            self._pool_end = int(table.rooms.sum())
        begin, size = int(table.offsets[slot]), int(table.sizes[slot])
        for column in self._pool:
            column[self._pool_end : self._pool_end + size] = column[begin : begin + size]
        table.offsets[slot], table.rooms[slot] = self._pool_end, room
        self._pool_end += room
        self._most_room = max(self._most_room, room)

    # -- Events

    def interested(self, place: int, time: float, number: int) -> Integers:
        """Return the slots that the event at this place of the log may interest, or that something leaves by now."""
        index = self._chosen(place)
        if index is None or isinstance(index, SlotColumns) or not self._is_plain(place):
            return self._interesting(place, time, float(number))
        concerned = self._concerned(index, place)
        due = self.due(time, float(number))
        return np.union1d(concerned, due) if len(due) else concerned

    def _interesting(self, place: int, time: float, position: float) -> Integers:
        """Return the slots that an event may interest, or that something leaves, by asking all of them."""
        slots = self._slot_buffer()
        count = searching.interesting_slots(
            self.group.scores, self.coordinates, place, self._slots.edges, self.group.slots, time, position, slots
        )
        return slots[:count]

    def _is_plain(self, place: int) -> bool:
        group = self.group
        return group.kind != LINEAR or self.coordinates[2 * group.width + 1, place] == PLAIN

    def _concerned(self, index: Index, place: int) -> Integers:
        """Return the slots that an event may interest, by an index."""
        bounds = self._slots.edges.bounds
        self._stamp += 1
        if len(self._stamps) < self.group.slots:
            self._stamps = np.zeros(len(bounds), np.int64)
        near = index.near(self.coordinates, place, bounds)
        numbers = np.empty(len(near), np.int64)
        count = searching.concerned_slots(
            near, self.group.scores, self.coordinates, place, bounds, self._stamps, self._stamp, numbers
        )
        return np.sort(numbers[:count])

    def _chosen(self, place: int) -> Index | None:
        """Return the index in use. It is chosen anew from time to time; None stands for columns."""
        if self._index_name == "columns":
            return None
        self._asked += 1
        is_stale = self._index is not None and self._index.is_stale
        if self._asked % (_CHOSEN_EVERY if self._index is not None and not is_stale else _CHOSEN_FIRST):
            return self._index
        group, bounds = self.group, self._slots.edges.bounds
        sample = self.coordinates[:, max(0, place - _SAMPLE) : place + 1]
        if self._index_name == "auto":
            if len(group) < FEW_SLOTS:
                return None
            self._index, self.index_times_us = fastest(group, bounds, sample, self._asked_by_index, place + 1)
        elif INDEXES[self._index_name].takes(group):
            self._index = INDEXES[self._index_name](group, bounds, sample)
        return self._index

    def _asked_by_index(self, index: Index, place: int) -> None:
        if isinstance(index, SlotColumns):
            self._interesting(place, -math.inf, -math.inf)
        else:
            self._concerned(index, place)
            self.due(-math.inf, -1.0)

    def note(self, slots: Integers, place: int) -> tuple[Integers, Integers]:
        """Let an event wait for the slots whose filter it passes; return those that should look at it now.

        Apart from them come those for which no more events can wait.
        """
        table = self._slots
        numbers = np.empty(len(slots), np.int64)
        count = kernels.note_arrival(slots, place, self.group.scores, self.coordinates, table, numbers)
        is_full = table.counts[numbers[:count]] == WAITING
        return numbers[:count][~is_full], numbers[:count][is_full]

    def due(self, time: float, position: float = -math.inf) -> Integers:
        """Return the slots that something leaves before a time, or by a position."""
        if time <= self.next_due and position == -math.inf:
            return _NOBODY
        slots = self._slot_buffer()
        count, self.next_due = kernels.due_slots(self._slots.edges, self.group.slots, time, position, slots)
        return slots[:count]

    def _slot_buffer(self) -> Integers:
        """Room for slots, used again and again: as much memory as this is costly to get."""
        if len(self._found) < self.group.slots:
            self._found = np.empty(self.group.numbers.shape[1], np.int64)
        return self._found

    def waiting(self) -> Integers:
        """Return the slots with a filter for which something waits."""
        return np.flatnonzero(self._slots.counts[: self.group.slots])

    def in_use(self) -> Integers:
        """Return all slots in use."""
        return np.flatnonzero(self._slots.handles[: self.group.slots] >= 0)

    def run_open(
        self, slots: Integers, log: Log, until: float = -math.inf, *, inclusive: bool = False, settle_to: int = -1
    ) -> Entrants:
        """Bring rankings without filters up to date with the log, and with the time `until`.

        What waits before the place `settle_to` of the log takes its place in the rankings.
        """
        return self._run(
            kernels.RankingTask(slots, _NO_EVENTS, True, kernels.UpdateGoal(until, inclusive, settle_to)), log
        )

    def run_waiting(
        self, slots: Integers, log: Log, until: float = -math.inf, *, inclusive: bool = False, settle_to: int = -1
    ) -> Entrants:
        """Bring rankings with filters up to date with what waits for them, and with the time `until`.

        With any `settle_to` but -1, nothing waits afterwards.
        """
        counts = self._slots.counts[slots]
        starts = starts_of(counts)
        rows = np.repeat(slots, counts)
        places = self._slots.waiting[rows, places_of(np.zeros(len(slots), np.int64), counts)].astype(np.int64)
        goal = kernels.UpdateGoal(until, inclusive, settle_to)
        entrants = self._run(kernels.RankingTask(slots, Ragged(starts, places), False, goal), log)
        kernels.forget_waiting(slots, self._slots)
        return entrants

    def run_passing(self, slots: Integers, passing: Ragged[np.int64], log: Log, until: float) -> Entrants:
        """Bring rankings with filters up to date with the events that pass them: places in the log, a list a slot.

        Nothing waits before, and nothing afterwards.
        """
        self._slots.positions[slots] += passing.counts
        return self._run(
            kernels.RankingTask(slots, passing, False, kernels.UpdateGoal(until, is_inclusive=False, settle_to=0)), log
        )

    def settle(self, share: float, log: Log, settle_to: int) -> None:
        """Let what waits before a place of the log take its place in the first `share` of the rankings.

        Those that have settled since the log last moved are left alone.
        """
        last = math.ceil(share * self.group.slots)
        slots = np.arange(self._settled, last)
        slots = slots[self._slots.handles[slots] >= 0]
        self._settled = max(last, self._settled)
        run = self.run_open if self.is_open else self.run_waiting
        if len(slots):
            entrants = run(slots, log, settle_to=settle_to)
            assert not len(entrants.steps), "what enters the best k enters on arrival, or when something leaves"

    def slide(self, count: int) -> None:
        """Follow the log as it drops its first events, for which nobody waits any more."""
        self._settled = 0
        self.coordinates[:, : self._log_length - count] = self.coordinates[:, count:].copy()
        if self.is_open:
            self._slots.cursors[:] -= count
        self._slots.waiting[:] -= count

    def _run(self, task: kernels.RankingTask, log: Log) -> Entrants:
        slots, scores = task.slots, self.group.scores
        events = kernels.ArrivalLog(log.numbers, log.times, self.coordinates)
        self._reports.state[WRITTEN] = 0
        done = 0
        while done < len(slots):
            work = self._workspace()
            done = kernels.run_tables(task, done, scores, events, self._slots, self._pool, work, self._reports)
            if done < len(slots):
                if lacking := int(self._reports.state[LACKING]):
                    self._make_room(int(slots[done]), 2 * lacking)
                else:
                    self._reports = tables.with_more_room(self._reports)
        edges = self._slots.edges
        if self._index is not None:
            self._index.grown(slots, edges.bounds)
        dues = edges.dues[slots][edges.is_timed[slots]]
        if len(dues):
            self.next_due = min(self.next_due, float(dues.min()))
        reports = self._reports
        count = int(reports.state[WRITTEN])
        return Entrants(
            reports.steps[:count].copy(),
            reports.ats[:count].copy(),
            self._slots.handles[reports.owners[:count]],
            reports.numbers[:count].copy(),
        )

    def _workspace(self) -> kernels.RankingWorkspace:
        """Room to work in, used again and again, as long as it is large enough for every ranking."""
        room = self._most_room + self._log_length + 1
        if len(self._work.ranking.keys) < room or len(self._work.best) < self._most_k:
            self._work = tables.workspace(self._log_length, self._most_room, self._most_k)
        return self._work

    # -- Files

    def saved(self, slot: int) -> list[Any]:
        """Return a ranking for which nothing waits: its clock, limit and edges, and its candidates by rank."""
        table = self._slots
        places = slice(int(table.offsets[slot]), int(table.offsets[slot] + table.sizes[slot]))
        numbers = [int(table.positions[slot]), int(table.limits[slot])]
        edges = [float(table.edges.bounds[slot]), float(table.edges.dues[slot])]
        return [*numbers, *edges, *(column[places].tolist() for column in self._pool)]

    def restore(self, slot: int, state: list[Any]) -> list[int]:
        """Let a ranking that has just begun hold what was saved of another; return the numbers of its events."""
        position, limit, bound, due, keys, numbers, leaves, entered = state
        ranks = [(float(key), -int(number)) for key, number in zip(keys, numbers, strict=True)]
        if ranks != sorted(ranks) or not len(ranks) == len(leaves) == len(entered):
            raise ValueError("the candidates of a window are not in order of rank")
        table = self._slots
        if table.rooms[slot] < len(keys):
            self._make_room(slot, 2 * len(keys))
        places = slice(int(table.offsets[slot]), int(table.offsets[slot]) + len(keys))
        for column, values in zip(self._pool, (keys, numbers, leaves, entered), strict=True):
            column[places] = values
        table.sizes[slot], table.positions[slot], table.limits[slot] = len(keys), int(position), int(limit)
        table.edges.bounds[slot], table.edges.dues[slot] = float(bound), float(due)
        if table.edges.is_timed[slot]:
            self.next_due = min(self.next_due, float(due))
        return [-age for _, age in ranks]

    # -- Looking inside

    def size(self, slot: int) -> int:
        """Return how many events a ranking keeps."""
        return int(self._slots.sizes[slot])

    def kept(self, slot: int) -> list[int]:
        """Return the numbers of the events that a ranking keeps, by rank."""
        begin, size = int(self._slots.offsets[slot]), int(self._slots.sizes[slot])
        kept: list[int] = self._pool.numbers[begin : begin + size].tolist()
        return kept

    def sizes(self) -> Integers:
        """Return how many events each ranking in use keeps."""
        in_use_sizes: Integers = self._slots.sizes[self.in_use()]
        return in_use_sizes

    def held(self) -> Integers:
        """Return the numbers of the events in the pool."""
        held: Integers = np.unique(self._pool.numbers[tables.held_places(self._slots)])
        return held

    def memory(self) -> int:
        """Return how many bytes its arrays take."""
        table = (*self._slots[:-1], *self._slots.edges)
        arrays = (*table, *self._pool, self.group.numbers, self.coordinates)
        return sum(array.nbytes for array in arrays)
