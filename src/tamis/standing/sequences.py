"""How do many sequences take the same events? States by group, alarms, and a heap of when to look again.

A group of a sequence has a state from the first event that matters until everything in it is too old. Sequences that
end with an absence have *alarms*: runs of all steps but the last that wait for an event which would call them off.
Each state stands once in a heap, at the time at which its oldest part expires or its first alarm is due.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.standing.groups import group_of
from tamis.standing.runs import Machine, Plan, Run, Stacks, machine, restored_run, saved_run
from tamis.standing.storage import decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.standing.groups import Group, Paths

_DEAD_KEPT_ANYWAY = 1024
"""So many entries of removed sequences may stay in the heap anyway."""


class Arrived(NamedTuple):
    """An event as the states take it."""

    at: float
    order: int
    id: Any
    event: Mapping[str, Any]
    groups: dict[Paths, Group]
    """Its groups, as far as somebody has asked."""

    def group(self, per: Paths) -> Group:
        """Return its group by some attributes."""
        group = self.groups.get(per)
        if group is None:
            group = self.groups[per] = group_of(self.event, per)
        return group


class EndedRun(NamedTuple):
    """A run that is to be told."""

    at: float
    number: int
    """Whose it is."""
    run: Run


class _State:
    __slots__ = ("alarms", "machine", "scheduled")

    def __init__(self, plan: Plan) -> None:
        self.machine: Machine = machine(plan)
        self.alarms: list[tuple[float, Run]] = []
        """When each is due, and what has come until then."""
        self.scheduled = math.inf


class _Hosted:
    __slots__ = ("groups", "plan", "shed")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.groups: dict[Group, _State] = {}
        self.shed = 0


class Sequences:
    """The states of all sequences, by the number of the sequence."""

    def __init__(self, most_open: int) -> None:
        self.most_open = most_open
        """So many events, and so many alarms, are kept for a group of a sequence."""
        self._hosted: dict[int, _Hosted] = {}
        self._heap: list[tuple[float, int, int, Group]] = []
        self._pushed = 0
        self._dead = 0

    def __len__(self) -> int:
        return len(self._hosted)

    def add(self, number: int, plan: Plan) -> None:
        """Let a sequence take events from now on."""
        self._hosted[number] = _Hosted(plan)

    def remove(self, number: int) -> None:
        """Forget a sequence and all its states."""
        self._dead += len(self._hosted.pop(number).groups)
        if self._dead > max(_DEAD_KEPT_ANYWAY, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry[2] in self._hosted]
            heapify(self._heap)
            self._dead = 0

    def take(self, number: int, step: int, arrived: Arrived) -> list[EndedRun]:
        """Take an event that fulfils a step, as far as that can be told without earlier ones; return what it ends."""
        hosted = self._hosted[number]
        plan = hosted.plan
        group = arrived.group(plan.sequence.per)
        state = hosted.groups.get(group)
        if step == plan.length:  # the step that is not to come
            if state is not None and state.alarms:
                self._call_off(plan, state, arrived)
            return []
        if state is None:
            if step > 0:
                return []
            state = hosted.groups[group] = _State(plan)
        event = plan.instance(step, arrived.at, arrived.order, arrived.id, arrived.event)
        runs = state.machine.take(plan, step, event, arrived.event)
        if plan.is_absence:
            state.alarms += [(run[0].at + plan.within, run) for run in runs]
            runs = []
        if state.alarms or type(state.machine) is Stacks:
            self._bound(hosted, state)
        self._schedule(number, group, plan, state)
        return [EndedRun(arrived.at, number, run) for run in runs]

    def _call_off(self, plan: Plan, state: _State, arrived: Arrived) -> None:
        index = plan.length
        if plan.after is None and index not in plan.checks:
            state.alarms = []
            return
        state.alarms = [
            (due, run)
            for due, run in state.alarms
            if (plan.after is not None and arrived.at < run[0].at + plan.after)
            or (index in plan.checks and not plan.fits(index, arrived.event, dict(enumerate(run))))
        ]

    def _bound(self, hosted: _Hosted, state: _State) -> None:
        while state.machine.size() > self.most_open:
            hosted.shed += state.machine.shed()
        if len(state.alarms) > self.most_open:
            hosted.shed += len(state.alarms) - self.most_open
            state.alarms = sorted(state.alarms, key=lambda alarm: alarm[0])[-self.most_open :]

    # -- Time

    def _schedule(self, number: int, group: Group, plan: Plan, state: _State) -> None:
        if state.scheduled < math.inf:
            return  # then it is looked at, and scheduled again
        due = min((due for due, _ in state.alarms), default=math.inf)
        state.scheduled = min(due, state.machine.first() + plan.within)
        if state.scheduled < math.inf:
            self._pushed += 1
            heappush(self._heap, (state.scheduled, self._pushed, number, group))

    def advance(self, now: float, *, inclusive: bool) -> list[EndedRun]:
        """Let the time pass up to `now`, including it or not; return the alarms that were due, in order of time."""
        due_now: list[tuple[int, Group]] = []
        while self._heap and (self._heap[0][0] < now or (inclusive and self._heap[0][0] == now)):
            _, _, number, group = heappop(self._heap)
            due_now.append((number, group))
        ended: list[EndedRun] = []
        # What is scheduled again waits until all have been looked at: an event that comes at the very end of the time
        # is still in time, so a state may be due at `now` and still be due at `now` afterwards.
        for number, group in due_now:
            hosted = self._hosted.get(number)
            if hosted is None:
                self._dead -= 1
                continue
            state = hosted.groups[group]
            is_due = [due < now or (inclusive and due == now) for due, _ in state.alarms]
            ended += [
                EndedRun(due, number, run) for (due, run), is_now in zip(state.alarms, is_due, strict=True) if is_now
            ]
            state.alarms = [alarm for alarm, is_now in zip(state.alarms, is_due, strict=True) if not is_now]
            state.machine.prune(hosted.plan, now)
            state.scheduled = math.inf
            self._schedule(number, group, hosted.plan, state)
            if state.scheduled == math.inf and not state.machine.size() and not state.alarms:
                del hosted.groups[group]
        ended.sort(key=lambda each: (each.at, each.number, each.run[-1].order))
        return ended

    @property
    def due(self) -> float:
        """When something expires or is to be told although nothing comes; infinite if nothing does."""
        return self._heap[0][0] if self._heap else math.inf

    def held(self) -> set[Any]:
        """Return the ids of the events that a run or an alarm may still tell of."""
        held: set[Any] = set()
        for hosted in self._hosted.values():
            for state in hosted.groups.values():
                held.update(each.id for each in state.machine.events())
                held.update(each.id for _, run in state.alarms for each in run)
        return held

    # -- Saving

    def saved(self, number: int) -> list[Any]:
        """Return the states of a sequence, as data: of each group the runs, and the alarms."""
        return [
            [encoded(group), state.machine.saved(), [[due, saved_run(run)] for due, run in state.alarms]]
            for group, state in self._hosted[number].groups.items()
        ]

    def restore(self, number: int, data: list[Any]) -> None:
        """Take up the states of a sequence."""
        hosted = self._hosted[number]
        for group, runs, alarms in data:
            state = hosted.groups[decoded(group)] = _State(hosted.plan)
            state.machine.restore(runs)
            state.alarms = [(float(due), restored_run(run)) for due, run in alarms]
            self._schedule(number, decoded(group), hosted.plan, state)

    # -- Looking inside

    def statistics(self) -> dict[str, int]:
        """Return how many states there are, with how many events and alarms, and how much did not fit."""
        states = [state for hosted in self._hosted.values() for state in hosted.groups.values()]
        return {
            "sequence_states": len(states),
            "open_events": sum(state.machine.size() for state in states),
            "alarms": sum(len(state.alarms) for state in states),
            "shed_events": sum(hosted.shed for hosted in self._hosted.values()),
        }

    def shed(self) -> dict[int, int]:
        """Return of which sequences something did not fit, and how many events."""
        return {number: hosted.shed for number, hosted in self._hosted.items() if hosted.shed}
