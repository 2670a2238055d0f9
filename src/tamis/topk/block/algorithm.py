"""How do many rankings take an event?

Three steps, of which the first is the whole of it for nearly every subscription: compare the event with the k-th best
of each; let those that it interests, or that something leaves, look at it; and let it wait in the log for all others.
What waits has to take its place before the log is full, so with every event some subscriptions settle what waits for
them, in turn.

A batch of events skips the comparison: it fills the log, and every subscription looks at all of it, one after the
other, which is faster, because a subscription's ranking and the log are then in the processor's cache.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language.expressions import TRUE
from tamis.ragged import Ragged
from tamis.topk.ageing import family_of
from tamis.topk.base import RankingAlgorithm
from tamis.topk.block.rankings import Entrants, Log, Rankings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.schema import Schema
    from tamis.relations.families import Family
    from tamis.topk.base import Arrival, Report
    from tamis.topk.kernels import Integers
    from tamis.topk.ranked import Ranked

LOG_LENGTH = 4096
_TAKEN_SINGLY = 4
"""So few arrivals are taken one by one."""


class BlockRankings(RankingAlgorithm):
    """All rankings in arrays, a group for each family of scores, with and without filters."""

    def __init__(self, schema: Schema | None = None, log_length: int = LOG_LENGTH, index: str = "auto") -> None:
        self._schema = schema
        self._index = index
        self._groups: dict[tuple[Family, bool], Rankings] = {}
        self._places: dict[int, tuple[Rankings, int]] = {}
        # The same as columns by handle, for the matches of many events at once.
        self._owners = np.zeros(0, np.int64)
        self._slots = np.zeros(0, np.int64)
        self._numbers = np.zeros(log_length, np.int64)
        self._times = np.zeros(log_length)
        self._count = 0

    # -- Subscriptions

    def add(self, handle: int, ranked: Ranked, number: int, until: float = math.inf) -> None:
        family, numbers = family_of(ranked)
        is_open = ranked.where == TRUE
        group = self._groups.get((family, is_open))
        if group is None:
            group = Rankings(
                family, is_open=is_open, log_length=len(self._times), schema=self._schema, index=self._index
            )
            self._groups[family, is_open] = group
        slot = group.add(handle, ranked, numbers, self._count)
        self._places[handle] = group, slot
        if handle >= len(self._slots):
            room = np.zeros(max(1024, 2 * handle) - len(self._slots), np.int64)
            self._owners, self._slots = np.append(self._owners, room), np.append(self._slots, room)
        self._owners[handle], self._slots[handle] = id(group), slot

    def remove(self, handle: int) -> None:
        group, slot = self._places.pop(handle)
        group.remove(slot)
        if not len(group):
            del self._groups[group.group.family, group.is_open]

    # -- Events

    def arrive(self, arrivals: Sequence[Arrival]) -> list[Report]:
        entrants: list[Entrants] = []
        if len(arrivals) <= _TAKEN_SINGLY:
            for step, arrival in enumerate(arrivals):
                entrants += self._take(arrival, step)
            return _reports(entrants)
        most = max(1, 3 * len(self._times) // 4)
        for start in range(0, len(arrivals), most):
            for each in self._take_many(arrivals[start : start + most]):
                entrants.append(each._replace(steps=each.steps + start))
        return _reports(entrants)

    def _take(self, arrival: Arrival, step: int) -> list[Entrants]:
        """Take one event."""
        place = self._note(arrival)
        log = self._log()
        entrants = []
        is_given = False
        passing = self._passing(arrival.guarded, np.full(len(arrival.guarded), place))
        for group in self._groups.values():
            if group.is_open:
                is_given |= group.group.read(arrival.event, group.coordinates, place)
                slots = group.interested(place, arrival.at, arrival.number)
                if len(slots):
                    entrants.append(group.run_open(slots, log, arrival.at))
                continue
            slots = group.due(arrival.at)
            if id(group) in passing:
                is_given |= group.group.read(arrival.event, group.coordinates, place)
                interested, full = group.note(passing[id(group)][0], place)
                slots = np.setdiff1d(np.union1d(slots, interested), full)
                if len(full):
                    entrants.append(group.run_waiting(full, log, arrival.at, settle_to=self._count))
            if len(slots):
                entrants.append(group.run_waiting(slots, log, arrival.at))
        self._settle_some()
        if is_given:  # keys that are given are there for one event only
            self._catch_up()
        return [each._replace(steps=np.full(len(each.steps), step)) for each in entrants]

    def _take_many(self, arrivals: Sequence[Arrival]) -> list[Entrants]:
        """Take as many events as there is room for in the log once it has been shortened to a quarter."""
        self._shorten()
        base = self._count
        for arrival in arrivals:
            place = self._note(arrival)
            if any(group.group.read(arrival.event, group.coordinates, place) for group in self._groups.values()):
                # Keys that are given are there for one event only.
                self._count = base
                return [each for step, arrival in enumerate(arrivals) for each in self._take(arrival, step)]
        log = self._log()
        last = arrivals[-1].at
        kept = len(self._times) // 4
        counts = [len(arrival.guarded) for arrival in arrivals]
        passing = self._passing(
            np.concatenate([arrival.guarded for arrival in arrivals]),
            base + np.repeat(np.arange(len(arrivals)), counts),
        )
        entrants = []
        for group in self._groups.values():
            if group.is_open:
                entrants.append(group.run_open(group.in_use(), log, last, settle_to=max(0, self._count - kept)))
                continue
            if id(group) in passing:
                entrants.append(group.run_passing(*passing[id(group)], log, last))
            if len(others := group.due(last)):
                entrants.append(group.run_waiting(others, log, last))
        self._slide(max(0, self._count - kept))
        return [each._replace(steps=each.steps - base) for each in entrants]

    def _note(self, arrival: Arrival) -> int:
        place = self._count
        self._numbers[place], self._times[place] = arrival.number, arrival.at
        self._count += 1
        return place

    def _log(self) -> Log:
        return Log(self._numbers[: self._count], self._times[: self._count])

    def _passing(self, handles: Integers, places: Integers) -> dict[int, tuple[Integers, Ragged[np.int64]]]:
        """Return, by group, the slots of handles, and the places of each slot's events."""
        by_group = {}
        owners, slots = self._owners[handles], self._slots[handles]
        for owner in np.unique(owners).tolist():
            is_here = owners == owner
            order = np.argsort(slots[is_here], kind="stable")
            distinct, counts = np.unique(slots[is_here], return_counts=True)
            by_group[owner] = distinct, Ragged.of_counts(counts, places[is_here][order])
        return by_group

    def _settle_some(self) -> None:
        """Let some subscriptions settle the first half of the log; when it is full, drop that half.

        The second half goes on waiting, and what it has that is better spares most of the first half the trouble.
        """
        length = len(self._times)
        half, begin = length // 2, 3 * length // 4
        if self._count <= begin:
            return
        log = self._log()
        for group in self._groups.values():
            group.settle((self._count - begin) / (length - begin), log, half)
        if self._count == length:
            self._slide(half)

    def _shorten(self) -> None:
        """Leave a quarter of the log at most, and nothing that waits for subscriptions with filters."""
        log = self._log()
        surplus = max(0, self._count - len(self._times) // 4)
        for group in self._groups.values():
            if group.is_open and surplus:
                group.run_open(group.in_use(), log, settle_to=surplus)
            elif not group.is_open:
                group.run_waiting(group.waiting(), log, settle_to=surplus)
        self._slide(surplus)

    def _slide(self, count: int) -> None:
        """Drop the first events of the log."""
        if count:
            for group in self._groups.values():
                group.slide(count)
            self._numbers[: len(self._numbers) - count] = self._numbers[count:].copy()
            self._times[: len(self._times) - count] = self._times[count:].copy()
            self._count -= count

    def _catch_up(self) -> None:
        """Let everything that waits take its place, and empty the log. Nobody enters: that was seen on arrival."""
        log = self._log()
        for group in self._groups.values():
            run, slots = (group.run_open, group.in_use()) if group.is_open else (group.run_waiting, group.waiting())
            entrants = run(slots, log, settle_to=self._count)
            assert not len(entrants.steps), "what enters the best k enters on arrival, or when something leaves"
        self._slide(self._count)

    def advance(self, now: float, *, inclusive: bool) -> list[Report]:
        log = self._log()
        entrants = []
        for group in self._groups.values():
            slots = group.due(math.nextafter(now, math.inf) if inclusive else now)
            if len(slots):
                run = group.run_open if group.is_open else group.run_waiting
                entrants.append(run(slots, log, now, inclusive=inclusive))
        return _reports([each._replace(steps=np.zeros(len(each.steps), np.int64)) for each in entrants])

    # -- Files

    def saved(self, handle: int) -> list[Any]:
        self._catch_up()
        group, slot = self._places[handle]
        return group.saved(slot)

    def restore(self, handle: int, state: list[Any]) -> list[int]:
        group, slot = self._places[handle]
        return group.restore(slot, state)

    # -- Looking inside

    @property
    def due(self) -> float:
        return min((group.next_due for group in self._groups.values()), default=math.inf)

    def held(self) -> set[int]:
        held = set(self._numbers[: self._count].tolist())
        for group in self._groups.values():
            held.update(group.held().tolist())
        return held

    def candidates(self, handle: int) -> int:
        self._catch_up()
        group, slot = self._places[handle]
        return group.size(slot)

    def kept(self, handle: int) -> list[int]:
        self._catch_up()
        group, slot = self._places[handle]
        return group.kept(slot)

    def statistics(self) -> dict[str, Any]:
        self._catch_up()
        sizes = [group.sizes() for group in self._groups.values()]
        return {
            "groups": {f"{family.kind}{'' if is_open else ', filtered'}": len(group)
                       for (family, is_open), group in self._groups.items()},
            "candidates": int(sum(each.sum() for each in sizes)),
            "memory": sum(group.memory() for group in self._groups.values()),
        }  # fmt: skip


def _reports(entrants: list[Entrants]) -> list[Report]:
    """Join what was found, in order of the step, the time and the handle."""
    if not entrants:
        return []
    steps, ats, handles, numbers = (np.concatenate(columns) for columns in zip(*entrants, strict=True))
    order = np.lexsort((handles, ats, steps))  # stable: who enters together stays in order of rank
    columns = (steps[order].tolist(), ats[order].tolist(), handles[order].tolist(), numbers[order].tolist())
    return list(zip(*columns, strict=True))
