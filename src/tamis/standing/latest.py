"""How do very many sequences take events, where the latest run is wanted? One run per step, in a table of integers.

A sequence of two or more steps without AFTER, references and absence, TAKING LATEST, needs in each group the latest run
that ends at each step but the last (`runs` says why), and nothing else. So the states of all of them are the rows of
one table per length, found by sequence and group, and the matches of a whole batch go through one compiled loop. What
is too old stays in the table until it is half full; then a new one is made of the others.

Source: one event per node is Jewel 2004, section 4.3 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.standing.kernels import StateTable, StepMatches, follow, place_of, placed, rehash, survey
from tamis.standing.storage import decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tamis.standing.arrivals import StandingBatch
    from tamis.standing.groups import Group, Paths
    from tamis.standing.kernels import Numbers
    from tamis.standing.runs import Plan

MOST_STEPS = 8
"""The table has a row of so many events squared for a state; longer sequences are sooner kept by `runs`."""
_KEPT_ANYWAY = 65_536
"""Below so many events, or groups, it does not pay to look which of them are still needed."""
_LEAST_ROOM = 1024
_MOST_PERS = 1 << 10
"""So many different PERs have a number; sequences with others are kept by `runs`."""


def fits(plan: Plan) -> bool:
    """Is a sequence one of these?"""
    return plan.is_simple and 2 <= plan.length <= MOST_STEPS and not plan.is_absence


class _StateTable:
    """The states of all sequences of one length."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.count = 0
        self._allot(_LEAST_ROOM)

    def _allot(self, room: int) -> None:
        steps = self.length - 1
        # What belongs to a state lies together: looking at it is one access to memory.
        columns = [("keys", np.int64, (2,)), ("firsts", np.float64, (steps,)), ("orders", np.int64, (steps, steps))]
        rows = np.zeros(room, np.dtype(columns))
        self.keys, self.firsts, self.orders = rows["keys"], rows["firsts"], rows["orders"]
        self.keys[:] = -1
        self.firsts[:] = -math.inf

    def is_open(self, within: npt.NDArray[np.float64], now: float) -> npt.NDArray[np.bool_]:
        """Return by state and step whether there is a run that is not too old."""
        is_open: npt.NDArray[np.bool_] = self.firsts + within[self.keys[:, :1]] >= now
        return is_open & (self.keys[:, :1] >= 0) & (self.firsts > -math.inf)

    def make_room(self, new: int, within: npt.NDArray[np.float64], now: float) -> None:
        """Have room for new states, so that at most half of the table is full; drop what is too old if it is not so."""
        if 2 * (self.count + new) > len(self.keys):
            self.renew(new, within, now)

    def renew(self, new: int, within: npt.NDArray[np.float64], now: float) -> None:
        """Drop what is too old."""
        is_kept = np.asarray(self.is_open(within, now).any(axis=1))
        before = self.keys, self.firsts, self.orders
        self.count = int(is_kept.sum())
        self._allot(1 << max(_LEAST_ROOM, 4 * (self.count + new)).bit_length())
        rehash(*before, is_kept, self.keys, self.firsts, self.orders)


class LatestStates:
    """The latest runs of all such sequences, by the number of the sequence."""

    def __init__(self) -> None:
        self._plans: dict[int, Plan] = {}
        self._tables: dict[int, _StateTable] = {}
        """By the number of steps."""
        self._pers: dict[Paths, int] = {}
        self._codes: list[dict[Group, int]] = []
        """By PER: the codes of groups that may have a state."""
        self._next_code = 0
        self._places = np.zeros(0, np.int64)
        """By the matcher's handle: whose it is, and which step."""
        self._within = np.zeros(0)
        """By number; so negative that nothing is in time where it was removed."""
        self._has_states = np.zeros(0, np.bool_)
        """By number: may it have a state?"""
        self._ids: dict[int, Any] = {}
        """Ids of events, by their order."""
        self._moments: dict[int, float] = {}
        """Their times. Two tables: a pair for each event would be an object that the garbage collector looks at."""
        self._most_events = _KEPT_ANYWAY

    def __len__(self) -> int:
        return len(self._plans)

    def has_place_for(self, plan: Plan) -> bool:
        """Can a sequence be one of these?"""
        is_known = plan.sequence.per in self._pers
        return fits(plan) and (is_known or len(self._pers) < _MOST_PERS)

    def add(self, number: int, plan: Plan) -> None:
        """Let a sequence take events from now on; its handles are its number and those that follow."""
        self._plans[number] = plan
        per = plan.sequence.per
        assert self.has_place_for(plan)
        if per not in self._pers:
            self._pers[per] = len(self._codes)
            self._codes.append({})
        if plan.length not in self._tables:
            self._tables[plan.length] = _StateTable(plan.length)
        if number + plan.length > len(self._places):
            room = number + plan.length
            self._places = np.append(self._places, np.zeros(room, np.int64))
            self._within = np.append(self._within, np.full(room, -math.inf))
            self._has_states = np.append(self._has_states, np.zeros(room, np.bool_))
        for turn, step in enumerate(plan.turns):
            self._places[number + turn] = placed(number, step, turn, plan.length, self._pers[per])
        self._within[number] = plan.within

    def remove(self, number: int) -> None:
        """Forget a sequence. Numbers do not come again, so its states may stay until the table is renewed."""
        del self._plans[number]
        self._within[number] = -math.inf

    # -- Events

    def take(
        self, rows: Numbers, handles: Numbers, batch: StandingBatch
    ) -> Iterator[tuple[Numbers, Numbers, list[tuple[Any, ...]]]]:
        """Take the matches of a batch, by row; yield of many runs that end the rows, whose they are, and the ids."""
        if not len(rows):
            return
        is_first, is_kept = np.zeros(len(batch), np.bool_), np.zeros(len(batch), np.bool_)
        counts = np.zeros((MOST_STEPS + 1, 3), np.int64)
        packs = self._places[handles]
        survey(rows, packs, is_first, is_kept, counts)
        groups = self._groups_of(batch, np.flatnonzero(is_first).tolist())
        order = batch.order
        kept_rows = np.flatnonzero(is_kept).tolist()
        kept_orders = [order + row for row in kept_rows]
        self._ids.update(zip(kept_orders, map(batch.ids.__getitem__, kept_rows), strict=True))
        self._moments.update(zip(kept_orders, map(batch.times.__getitem__, kept_rows), strict=True))
        for length, table in self._tables.items():
            total, firsts, lasts = counts[length].tolist()
            if not total:
                continue
            own = slice(None) if total == len(rows) else (packs >> 8) & 15 == length
            if not any(self._pers):  # then each has one state at most
                firsts = min(firsts, max(0, len(self._plans) - table.count))
            table.make_room(firsts, self._within, batch.times[0])
            ended_runs = np.empty((lasts, length + 1), np.int64)
            matches = StepMatches(batch.bounds(rows[own]), packs[own], groups, batch.moments, order)
            states = StateTable(table.keys, table.firsts, table.orders)
            created, count, _ = follow(matches, self._within, self._has_states, states, ended_runs)
            table.count += created
            if count:
                ended, numbers, *earlier = ended_runs[:count].T
                ids = [map(self._ids.__getitem__, column.tolist()) for column in earlier]
                yield ended, numbers, list(zip(*ids, map(batch.ids.__getitem__, ended.tolist()), strict=True))
        if len(self._ids) > self._most_events:
            self._forget_events(batch.times[-1])

    def _groups_of(self, batch: StandingBatch, first_rows: list[int]) -> npt.NDArray[np.int64]:
        """Return by PER and row the code of the group; -1 where it has none, and needs none."""
        groups = np.zeros((len(self._codes), len(batch)), np.int64)
        for per, index in self._pers.items():
            if not per:
                continue
            codes = self._codes[index]
            names = batch.groups(per)
            for row in first_rows:
                if names[row] not in codes:
                    codes[names[row]] = self._next_code
                    self._next_code += 1
            groups[index] = [codes.get(name, -1) for name in names]
        return groups

    def _forget_events(self, now: float) -> None:
        """Forget the events and groups that no state has any more."""
        kept: set[int] = set()
        codes: set[int] = set()
        for table in self._tables.values():
            table.renew(0, self._within, now)
            is_open = table.is_open(self._within, now)
            for step in range(table.length - 1):
                kept.update(table.orders[is_open[:, step], step, : step + 1].ravel().tolist())
            codes.update(table.keys[is_open.any(axis=1), 1].tolist())
        self._has_states[:] = False
        for table in self._tables.values():
            self._has_states[table.keys[table.keys[:, 0] >= 0, 0]] = True
        self._ids = {order: self._ids[order] for order in kept}
        self._moments = {order: self._moments[order] for order in kept}
        self._most_events = max(_KEPT_ANYWAY, 2 * len(kept))
        self._codes = [
            {name: code for name, code in known.items() if code in codes} if per else known
            for per, known in zip(self._pers, self._codes, strict=True)
        ]

    def held(self) -> set[Any]:
        """Return the ids of the events that a run may still tell of, and perhaps of some others."""
        return set(self._ids.values())

    # -- Saving

    def saved(self) -> dict[int, list[Any]]:
        """Return the states by number, as `Sequences` writes them."""
        states: dict[int, list[Any]] = {}
        names = {code: name for known in self._codes for name, code in known.items()}
        for table in self._tables.values():
            living = (table.keys[:, 0] >= 0) & (self._within[table.keys[:, 0]] > -math.inf)
            for place in np.flatnonzero(living).tolist():
                number, code = table.keys[place].tolist()
                runs: list[Any] = [None] * (table.length - 1)
                for step in range(table.length - 1):
                    orders = table.orders[place, step, : step + 1].tolist()
                    if table.firsts[place, step] > -math.inf and all(order in self._ids for order in orders):
                        runs[step] = [
                            [self._moments[order], order, encoded(self._ids[order]), None] for order in orders
                        ]
                group = names[code] if self._plans[number].sequence.per else ()
                if any(run is not None for run in runs):
                    states.setdefault(number, []).append([encoded(group), runs, []])
        return states

    def restore(self, number: int, data: list[Any]) -> None:
        """Take up the states of a sequence."""
        plan = self._plans[number]
        table = self._tables[plan.length]
        codes = self._codes[self._pers[plan.sequence.per]]
        for group, runs, _ in data:
            code = 0
            if plan.sequence.per:
                name = decoded(group)
                if name not in codes:
                    codes[name] = self._next_code
                    self._next_code += 1
                code = codes[name]
            table.make_room(1, self._within, -math.inf)
            place = place_of(table.keys, number, code)
            table.keys[place] = number, code
            self._has_states[number] = True
            table.count += 1
            for step, run in enumerate(runs):
                for position, (at, order, id, _) in enumerate(run or ()):
                    if position == 0:
                        table.firsts[place, step] = float(at)
                    table.orders[place, step, position] = int(order)
                    self._ids[int(order)], self._moments[int(order)] = decoded(id), float(at)

    # -- Looking inside

    def open_counts(self, now: float) -> tuple[int, int]:
        """Return how many states have a run that is not too old, and how many events are in such runs."""
        states = events = 0
        for table in self._tables.values():
            is_open = table.is_open(self._within, now)
            states += int(is_open.any(axis=1).sum())
            events += int((is_open.sum(axis=0) * np.arange(1, table.length)).sum())
        return states, events
