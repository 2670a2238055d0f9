"""How are the rankings of a family's subscriptions kept in arrays?

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
import numpy.typing as npt

from tamis.topk.block import kernels
from tamis.topk.index import kernels as searching
from tamis.topk.index.choice import FEW_SLOTS, INDEXES, fastest
from tamis.topk.index.columns import Columns
from tamis.topk.kernels import LINEAR, PLAIN
from tamis.topk.scoring import TWO, Floats, Group
from tamis.topk.windows import TimeWindow

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.topk.families import Family, Number
    from tamis.topk.index.base import Index
    from tamis.topk.ranked import Ranked

Integers = npt.NDArray[np.int64]

WAITING = 32
"""So many events may wait for a subscription with a filter."""
_NOBODY: Integers = np.zeros(0, np.int64)
_CHOSEN_FIRST, _CHOSEN_EVERY = 256, 8192
"""After so many single events an index is chosen for the first time, and again."""
_SAMPLE = 512


class Found(NamedTuple):
    """Who entered: the step, the time, the handle and the number of the event, a column each."""

    steps: Integers
    ats: Floats
    handles: Integers
    numbers: Integers


class Log(NamedTuple):
    """The events that came since all rankings were last brought up to date."""

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
        self._columns: dict[str, npt.NDArray[Any]] = {
            "handles": np.full(0, -1, np.int64),
            "ks": np.ones(0, np.int64),
            "spans": np.zeros(0),
            "is_timed": np.zeros(0, np.bool_),
            "positions": np.zeros(0, np.int64),
            "cursors": np.zeros(0, np.int64),
            "checked": np.zeros(0, np.int64),
            "offsets": np.zeros(0, np.int64),
            "sizes": np.zeros(0, np.int64),
            "rooms": np.zeros(0, np.int64),
            "limits": np.zeros(0, np.int64),
            "bounds": np.full(0, -math.inf),
            "dues": np.full(0, math.inf),
            "counts": np.zeros(0, np.int64),
        }
        self._waiting = np.zeros((0, WAITING if not is_open else 0), np.int32)
        self._pool: dict[str, npt.NDArray[Any]] = {
            "keys": np.zeros(1024),
            "numbers": np.zeros(1024, np.int64),
            "leaves": np.zeros(1024),
            "entered": np.zeros(1024, np.bool_),
        }
        self._pool_end = 0
        self._work: dict[str, npt.NDArray[Any]] = {}
        self._reports: dict[str, npt.NDArray[Any]] = {}
        self._most_k = 1
        self._state = np.zeros(2, np.int64)
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
        if slot >= len(self._columns["ks"]):
            self._grow(self.group.numbers.shape[1])
        first_room = 4 * ranked.k + 8
        for name, value in {
            "handles": handle,
            "ks": ranked.k,
            "spans": ranked.window.span,
            "is_timed": isinstance(ranked.window, TimeWindow),
            "positions": 0,
            "cursors": cursor,
            "checked": 0,
            "sizes": 0,
            "limits": first_room,
            "bounds": math.inf,
            "dues": math.inf,
            "counts": 0,
        }.items():
            self._columns[name][slot] = value
        if self._columns["rooms"][slot] < first_room:
            self._make_room(slot, first_room)
        self._most_k = max(self._most_k, ranked.k)
        return slot

    def remove(self, slot: int) -> None:
        """End a ranking. Its slot, and its slice of the pool, wait for the next."""
        self.group.remove(slot)
        for name, value in {"handles": -1, "sizes": 0, "bounds": -math.inf, "dues": math.inf, "counts": 0}.items():
            self._columns[name][slot] = value

    def _grow(self, capacity: int) -> None:
        for name, column in self._columns.items():
            unused = {"handles": -1, "ks": 1, "bounds": -math.inf, "dues": math.inf}.get(name, 0)
            grown = np.full(capacity, unused, column.dtype)
            grown[: len(column)] = column
            self._columns[name] = grown
        waiting = np.zeros((capacity, self._waiting.shape[1]), np.int32)
        waiting[: len(self._waiting)] = self._waiting
        self._waiting = waiting

    def _make_room(self, slot: int, room: int) -> None:
        """Move a ranking to a larger slice of the pool; the pool is laid out anew where much of it is unused."""
        columns = self._columns
        needed = self._pool_end + room
        if needed > len(self._pool["keys"]):
            in_use = int(columns["rooms"].sum()) - int(columns["rooms"][slot]) + room
            self._lay_out(max(1024, in_use + in_use // 2))
        begin, size = int(columns["offsets"][slot]), int(columns["sizes"][slot])
        for column in self._pool.values():
            column[self._pool_end : self._pool_end + size] = column[begin : begin + size]
        columns["offsets"][slot], columns["rooms"][slot] = self._pool_end, room
        self._pool_end += room

    def _lay_out(self, capacity: int) -> None:
        rooms = self._columns["rooms"]
        offsets = np.cumsum(rooms) - rooms
        sizes = self._columns["sizes"]
        # Every entry keeps its place in its slice; only the slices move.
        places = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        old = places + np.repeat(self._columns["offsets"], sizes)
        new = places + np.repeat(offsets, sizes)
        for name, column in self._pool.items():
            laid_out = np.zeros(capacity, column.dtype)
            laid_out[new] = column[old]
            self._pool[name] = laid_out
        self._columns["offsets"] = offsets
        self._pool_end = int(rooms.sum())

    # -- Events

    def interested(self, place: int, time: float, number: int) -> Integers:
        """Return the slots that the event at this place of the log may interest, or that something leaves by now."""
        index = self._chosen(place)
        group, columns = self.group, self._columns
        if index is None or isinstance(index, Columns) or not self._is_plain(place):
            found = self._slots_found()
            count = searching.interesting_slots(
                group.kind, group.sign, group.numbers, group.width, self.coordinates, place, group.given,
                columns["bounds"][: group.slots], columns["dues"], columns["is_timed"], time, float(number), found,
            )  # fmt: skip
            return found[:count]
        concerned = self._concerned(index, place)
        due = self.due(time, float(number))
        return np.union1d(concerned, due) if len(due) else concerned

    def _is_plain(self, place: int) -> bool:
        group = self.group
        return group.kind != LINEAR or self.coordinates[2 * group.width + 1, place] == PLAIN

    def _concerned(self, index: Index, place: int) -> Integers:
        """Return the slots that an event may interest, by an index."""
        group, bounds = self.group, self._columns["bounds"]
        self._stamp += 1
        if len(self._stamps) < group.slots:
            self._stamps = np.zeros(len(bounds), np.int64)
        near = index.near(self.coordinates, place, bounds)
        found = np.empty(len(near), np.int64)
        count = searching.concerned_slots(
            near, group.kind, group.sign, group.numbers, group.width, self.coordinates, place, group.given, bounds,
            self._stamps, self._stamp, found,
        )  # fmt: skip
        return np.sort(found[:count])

    def _chosen(self, place: int) -> Index | None:
        """Return the index in use. It is chosen anew from time to time; None stands for columns."""
        if self._index_name == "columns":
            return None
        self._asked += 1
        is_stale = self._index is not None and self._index.is_stale
        if self._asked % (_CHOSEN_EVERY if self._index is not None and not is_stale else _CHOSEN_FIRST):
            return self._index
        group, bounds = self.group, self._columns["bounds"]
        sample = self.coordinates[:, max(0, place - _SAMPLE) : place + 1]
        if self._index_name == "auto":
            if len(group) < FEW_SLOTS:
                return None
            self._index, self.index_times_us = fastest(group, bounds, sample, self._asked_by_index, place + 1)
        elif INDEXES[self._index_name].takes(group):
            self._index = INDEXES[self._index_name](group, bounds, sample)
        return self._index

    def _asked_by_index(self, index: Index, place: int) -> None:
        if isinstance(index, Columns):
            group, columns = self.group, self._columns
            searching.interesting_slots(
                group.kind, group.sign, group.numbers, group.width, self.coordinates, place, group.given,
                columns["bounds"][: group.slots], columns["dues"], columns["is_timed"], -math.inf, -math.inf,
                self._slots_found(),
            )  # fmt: skip
        else:
            self._concerned(index, place)
            self.due(-math.inf, -1.0)

    def note(self, slots: Integers, place: int) -> tuple[Integers, Integers]:
        """Let an event wait for the slots whose filter it passes; return those that should look at it now.

        Apart from them come those for which no more events can wait.
        """
        group, columns = self.group, self._columns
        found = np.empty(len(slots), np.int64)
        count = kernels.note_arrival(
            slots, place, group.kind, group.sign, group.numbers, group.width, self.coordinates, group.given,
            columns["bounds"], columns["dues"], columns["is_timed"], columns["positions"], self._waiting,
            columns["counts"], found,
        )  # fmt: skip
        is_full = columns["counts"][found[:count]] == WAITING
        return found[:count][~is_full], found[:count][is_full]

    def due(self, time: float, position: float = -math.inf) -> Integers:
        """Return the slots that something leaves before a time, or by a position."""
        if time <= self.next_due and position == -math.inf:
            return _NOBODY
        found = self._slots_found()
        columns = self._columns
        count, self.next_due = kernels.due_slots(
            columns["dues"][: self.group.slots], columns["is_timed"], time, position, found
        )
        return found[:count]

    def _slots_found(self) -> Integers:
        """Room for slots, used again and again: as much memory as this is costly to get."""
        if len(self._found) < self.group.slots:
            self._found = np.empty(self.group.numbers.shape[1], np.int64)
        return self._found

    def waiting(self) -> Integers:
        """Return the slots with a filter for which something waits."""
        return np.flatnonzero(self._columns["counts"][: self.group.slots])

    def in_use(self) -> Integers:
        """Return all slots in use."""
        return np.flatnonzero(self._columns["handles"][: self.group.slots] >= 0)

    def run_open(
        self, slots: Integers, log: Log, until: float = -math.inf, *, inclusive: bool = False, settle_to: int = -1
    ) -> Found:
        """Bring rankings without filters up to date with the log, and with the time `until`.

        What waits before the place `settle_to` of the log takes its place in the rankings.
        """
        return self._run(slots, _NOBODY, np.array([len(log.times)]), log, until, inclusive, settle_to)

    def run_waiting(
        self, slots: Integers, log: Log, until: float = -math.inf, *, inclusive: bool = False, settle_to: int = -1
    ) -> Found:
        """Bring rankings with filters up to date with what waits for them, and with the time `until`.

        With any `settle_to` but -1, nothing waits afterwards.
        """
        columns = self._columns
        counts = columns["counts"][slots]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        events = self._waiting[np.repeat(slots, counts), places].astype(np.int64)
        found = self._run(slots, starts, events, log, until, inclusive, settle_to)
        kernels.forget_waiting(slots, columns["cursors"], self._waiting, columns["counts"])
        return found

    def run_passing(self, slots: Integers, starts: Integers, events: Integers, log: Log, until: float) -> Found:
        """Bring rankings with filters up to date with the places `events[starts[j]:starts[j + 1]]` of the log.

        Nothing waits before, and nothing afterwards.
        """
        self._columns["positions"][slots] += np.diff(starts)
        return self._run(slots, starts, events, log, until, inclusive=False, settle_to=0)

    def settle(self, share: float, log: Log, settle_to: int) -> None:
        """Let what waits before a place of the log take its place in the first `share` of the rankings.

        Those that have settled since the log last moved are left alone.
        """
        last = math.ceil(share * self.group.slots)
        slots = np.arange(self._settled, last)
        slots = slots[self._columns["handles"][slots] >= 0]
        self._settled = max(last, self._settled)
        run = self.run_open if self.is_open else self.run_waiting
        if len(slots):
            found = run(slots, log, settle_to=settle_to)
            assert not len(found.steps), "what enters the best k enters on arrival, or when something leaves"

    def slide(self, count: int) -> None:
        """Follow the log as it drops its first events, for which nobody waits any more."""
        self._settled = 0
        self.coordinates[:, : self._log_length - count] = self.coordinates[:, count:].copy()
        if self.is_open:
            self._columns["cursors"] -= count
        self._waiting -= count

    def _run(
        self,
        slots: Integers,
        starts: Integers,
        events: Integers,
        log: Log,
        until: float,
        inclusive: bool,
        settle_to: int,
    ) -> Found:
        group, columns = self.group, self._columns
        self._state[0] = 0
        begin = 0
        while begin < len(slots):
            work, reports, pool = self._worked_in(), self._reported_in(), self._pool
            begin = kernels.run(
                slots, begin, len(slots), starts, events, settle_to,
                group.kind, group.sign, TWO, group.numbers, group.width, self.coordinates, group.given,
                log.numbers, log.times, until, inclusive,
                columns["ks"], columns["spans"], columns["is_timed"], columns["positions"], columns["cursors"],
                columns["checked"], columns["offsets"], columns["sizes"], columns["rooms"], columns["limits"],
                columns["bounds"], columns["dues"],
                pool["keys"], pool["numbers"], pool["leaves"], pool["entered"],
                *work.values(), *reports.values(), self._state,
            )  # fmt: skip
            if begin < len(slots):
                if self._state[1]:
                    self._make_room(int(slots[begin]), 2 * int(self._state[1]))
                else:
                    self._reports = {name: np.resize(each, 2 * len(each)) for name, each in reports.items()}
        if self._index is not None:
            self._index.grown(slots, columns["bounds"])
        dues = columns["dues"][slots][columns["is_timed"][slots]]
        if len(dues):
            self.next_due = min(self.next_due, float(dues.min()))
        count = int(self._state[0])
        reports = self._reported_in()
        owners = reports["owners"][:count]
        return Found(
            reports["steps"][:count].copy(),
            reports["ats"][:count].copy(),
            columns["handles"][owners],
            reports["reported"][:count].copy(),
        )

    def _worked_in(self) -> dict[str, npt.NDArray[Any]]:
        length = int(self._columns["rooms"].max(initial=0)) + self._log_length + 1
        if not self._work or len(self._work["keys"]) < length or len(self._work["best"]) < self._most_k:
            self._work = {
                "measures": np.zeros(self._log_length),
                "keys": np.zeros(length),
                "members": np.zeros(length, np.int64),
                "leaves": np.zeros(length),
                "entered": np.zeros(length, np.bool_),
                "best": np.zeros(self._most_k),
                "heap": np.zeros(self._most_k, np.int64),
                "kept_keys": np.zeros(self._log_length),
                "kept_places": np.zeros(self._log_length, np.int64),
            }
        return self._work

    def _reported_in(self) -> dict[str, npt.NDArray[Any]]:
        if not self._reports:
            self._reports = {
                "steps": np.zeros(4096, np.int64),
                "ats": np.zeros(4096),
                "owners": np.zeros(4096, np.int64),
                "reported": np.zeros(4096, np.int64),
            }
        return self._reports

    # -- Looking inside

    def size(self, slot: int) -> int:
        """Return how many events a ranking keeps."""
        return int(self._columns["sizes"][slot])

    def sizes(self) -> Integers:
        """Return how many events each ranking in use keeps."""
        found: Integers = self._columns["sizes"][self.in_use()]
        return found

    def held(self) -> Integers:
        """Return the numbers of the events in the pool."""
        sizes = self._columns["sizes"]
        places = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        held: Integers = np.unique(self._pool["numbers"][places + np.repeat(self._columns["offsets"], sizes)])
        return held

    def memory(self) -> int:
        """Return how many bytes its arrays take."""
        arrays = (*self._columns.values(), *self._pool.values(), self._waiting, self.group.numbers, self.coordinates)
        return sum(array.nbytes for array in arrays)
