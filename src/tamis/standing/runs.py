"""How are the runs of a sequence found while events come? Instance stacks, and one run per step.

In general every step has a *stack*: the events that fulfil it, in order, as long as they can be in time. An event for
the last step ends runs, which are found by going back through the stacks. An event enters a stack only if the stack
before has one for it to follow, so most events of most sequences enter none.

Where the latest run is wanted, and neither AFTER nor a reference can refuse it, one run per step is enough: of all runs
that end at a step, the one whose events are latest also starts latest, so it is the last to run out of time, and
whatever could be added to another could be added to it. That is the one event per node of the text.

Source: instance stacks are Wu, Diao and Rizvi's (SIGMOD 2006); one event per node is Jewel 2004, section 4.3.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tamis.matching.closures import holding
from tamis.standing.references import bound, paths_of, projected, without_references
from tamis.standing.storage import decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tamis.language.schema import Schema
    from tamis.standing.sequence import Sequence


class Instance(NamedTuple):
    """An event that stands for a step."""

    at: float
    order: int
    """Its place among all events."""
    id: Any
    kept: Mapping[str, Any]
    """What steps ask of it."""


Run: TypeAlias = tuple[Instance, ...]
_ORDER = attrgetter("order")


class Plan:
    """What is to be known of a sequence before the first event.

    >>> from tamis.standing import Sequence
    >>> plan = Plan(Sequence.parse("SEQUENCE a AS x THEN b = x.b AND c WITHIN 1 HOUR"), retention=1.0)
    >>> [str(condition) for condition in plan.conditions], plan.turns, plan.is_simple
    (['a', 'c = TRUE'], [1, 0], False)
    """

    def __init__(self, sequence: Sequence, retention: float, schema: Schema | None = None) -> None:
        steps = sequence.steps
        self.sequence = sequence
        self.within = retention if sequence.within is None else sequence.within
        self.after = sequence.after
        self.is_absence = sequence.is_absence
        self.length = len(steps) - sequence.is_absence
        """How many events a run has."""
        self.names = [step.name for step in steps]
        self.may_be_same = [step.is_same for step in steps]
        self.conditions = [without_references(step.condition, sequence.names) for step in steps]
        """What can be asked of an event alone, for each step."""
        self.turns = _turns(self.may_be_same)
        """In which order the steps take an event: the later ones first, so that it cannot follow itself."""
        self.checks: dict[int, Callable[[Mapping[str, Any]], bool]] = {}
        """The whole condition of each step that has references."""
        self.checked_at: dict[int, list[int]] = {}
        """The steps that can be checked once this step is known, going back."""
        self.paths: list[set[tuple[str, ...]]] = [set() for _ in steps]
        """What of a step's event is asked for later."""
        for index, step in enumerate(steps):
            asked = paths_of(step.condition)
            earlier = {path for path in asked if path[0] in self.names[:index]}
            if not earlier:
                continue
            self.checks[index] = holding(step.condition, schema)
            self.paths[index] |= asked - earlier
            places = [self.names.index(path[0]) for path in earlier]
            for path, place in zip(earlier, places, strict=True):
                self.paths[place].add(path[1:])
            self.checked_at.setdefault(min(places), []).append(index)
        has_checks = any(index < self.length for index in self.checks)
        self.is_simple = sequence.taking == "LATEST" and not has_checks and (self.after is None or self.is_absence)

    def instance(self, step: int, at: float, order: int, id: Any, event: Mapping[str, Any]) -> Instance:
        """Return an event as it is kept for a step."""
        return Instance(at, order, id, projected(event, self.paths[step]) if self.paths[step] else _NOTHING)

    def fits(self, step: int, event: Mapping[str, Any], earlier: Mapping[int, Instance]) -> bool:
        """Does an event fulfil a step, given the events of the steps that it refers to?"""
        events = {name: earlier[place].kept for place, name in enumerate(self.names) if name and place in earlier}
        return self.checks[step](bound(event, events))

    def expired(self, first: float, now: float) -> bool:
        """Is a run that started then too old to end now?"""
        return now > first + self.within


_NOTHING: Mapping[str, Any] = {}


def _turns(may_be_same: list[bool]) -> list[int]:
    """Return the steps in the order in which they take an event.

    A step that may be the same event as the one before comes behind it, every other one before it.

    >>> _turns([False, True, False, False, True])
    [3, 4, 2, 0, 1]
    """
    blocks: list[list[int]] = []
    for index, is_same in enumerate(may_be_same):
        if is_same:
            blocks[-1].append(index)
        else:
            blocks.append([index])
    return [index for block in reversed(blocks) for index in block]


class LatestRuns:
    """The latest run that ends at each step: of `runs[i]` the events stand for the steps 0 to i."""

    __slots__ = ("runs",)

    def __init__(self, plan: Plan) -> None:
        self.runs: list[Run | None] = [None] * (plan.length - 1)

    def take(self, plan: Plan, step: int, event: Instance, _: Mapping[str, Any]) -> list[Run]:
        """Take an event for a step; return the runs that it ends."""
        if step == 0:
            run: Run = (event,)
        else:
            before = self.runs[step - 1]
            if before is None or event.at > before[0].at + plan.within:
                return []
            run = (*before, event)
        if step == plan.length - 1:
            return [run]
        self.runs[step] = run
        return []

    def saved(self) -> list[Any]:
        """Return what is kept, as data."""
        return [None if run is None else saved_run(run) for run in self.runs]

    def restore(self, data: list[Any]) -> None:
        """Take up what was kept."""
        self.runs = [None if run is None else restored_run(run) for run in data]

    def first(self) -> float:
        """Return when the oldest of what is kept began."""
        return min((run[0].at for run in self.runs if run is not None), default=math.inf)

    def prune(self, plan: Plan, now: float) -> None:
        """Drop what is too old."""
        self.runs = [None if run is None or plan.expired(run[0].at, now) else run for run in self.runs]

    def size(self) -> int:
        """Return how many events are kept."""
        return sum(len(run) for run in self.runs if run is not None)

    def events(self) -> Iterator[Instance]:
        """Yield the events that are kept; one may come several times."""
        return (each for run in self.runs if run is not None for each in run)

    def shed(self) -> int:
        """Drop what is oldest; here there is never too much."""
        return 0


class Stacks:
    """The events of each step but the last, in order."""

    __slots__ = ("ended", "stacks")

    def __init__(self, plan: Plan) -> None:
        self.stacks: list[list[Instance]] = [[] for _ in range(plan.length - 1)]
        self.ended = -1
        """The order of the event that was used last to end a run, where each is used once."""

    def take(self, plan: Plan, step: int, event: Instance, whole: Mapping[str, Any]) -> list[Run]:
        """Take an event for a step; return the runs that it ends, the earliest first."""
        if step < plan.length - 1:
            if (step == 0 or self._has_before(plan, step, event)) and event.order != self.ended:
                self.stacks[step].append(event)
            return []
        runs = self._back(plan, step, {step: event}, whole)
        taking = plan.sequence.taking
        if taking == "EVERY":
            return sorted(runs, key=lambda run: [each.order for each in run[-2::-1]])
        run = next(runs, None)
        if run is None:
            return []
        if taking == "EACH ONCE":
            self._use(run)
        return [run]

    def _has_before(self, plan: Plan, step: int, event: Instance) -> bool:
        stack = self.stacks[step - 1]
        return bool(stack) and (stack[0].order < event.order or plan.may_be_same[step])

    def _back(self, plan: Plan, step: int, chosen: dict[int, Instance], whole: Mapping[str, Any]) -> Iterator[Run]:
        """Yield the runs whose events from this step on are chosen, the earliest first (the latest for LATEST)."""
        if not self._agrees(plan, step, chosen, whole):
            return
        if step == 0:
            last = chosen[plan.length - 1]
            if plan.after is None or plan.is_absence or last.at >= chosen[0].at + plan.after:
                yield tuple(chosen[index] for index in range(plan.length))
            return
        stack = self.stacks[step - 1]
        following = chosen[step]
        place = bisect_right if plan.may_be_same[step] else bisect_left
        # What came before the first that is in time cannot have a first event that is.
        oldest = bisect_left(stack, chosen[plan.length - 1].at, key=lambda each: each.at + plan.within)
        places = range(oldest, place(stack, following.order, key=_ORDER))
        for index in reversed(places) if plan.sequence.taking == "LATEST" else places:
            chosen[step - 1] = stack[index]
            yield from self._back(plan, step - 1, chosen, whole)
        chosen.pop(step - 1, None)

    def _agrees(self, plan: Plan, step: int, chosen: Mapping[int, Instance], whole: Mapping[str, Any]) -> bool:
        """Do the steps hold whose references are known with this one?"""
        for index in plan.checked_at.get(step, ()):
            if index < plan.length:
                own = whole if index == plan.length - 1 else chosen[index].kept
                earlier = {place: each for place, each in chosen.items() if place < index}
                if not plan.fits(index, own, earlier):
                    return False
        return True

    def _use(self, run: Run) -> None:
        used = {each.order for each in run}
        self.ended = run[-1].order
        self.stacks = [[each for each in stack if each.order not in used] for stack in self.stacks]

    def saved(self) -> list[Any]:
        """Return what is kept, as data."""
        return [self.ended, *(saved_run(stack) for stack in self.stacks)]

    def restore(self, data: list[Any]) -> None:
        """Take up what was kept."""
        self.ended, *stacks = data
        self.stacks = [list(restored_run(stack)) for stack in stacks]

    def first(self) -> float:
        """Return when the oldest of what is kept came."""
        return min((stack[0].at for stack in self.stacks if stack), default=math.inf)

    def prune(self, plan: Plan, now: float) -> None:
        """Drop what is too old."""
        for index, stack in enumerate(self.stacks):
            if stack and plan.expired(stack[0].at, now):
                self.stacks[index] = stack[bisect_left(stack, now, key=lambda each: each.at + plan.within) :]

    def size(self) -> int:
        """Return how many events are kept."""
        return sum(map(len, self.stacks))

    def events(self) -> Iterator[Instance]:
        """Yield the events that are kept; one may come several times."""
        return (each for stack in self.stacks for each in stack)

    def shed(self) -> int:
        """Drop the oldest tenth of the longest stack; return how many events that were."""
        longest = max(self.stacks, key=len)
        count = max(1, len(longest) // 10)
        del longest[:count]
        return count


class Direct:
    """A single step: every event for it is a run."""

    __slots__ = ()

    def take(self, plan: Plan, step: int, event: Instance, _: Mapping[str, Any]) -> list[Run]:
        """Return the run that the event is."""
        return [(event,)]

    def saved(self) -> list[Any]:
        """Nothing is kept."""
        return []

    def restore(self, data: list[Any]) -> None:
        """Nothing is kept."""

    def first(self) -> float:
        """Nothing is kept."""
        return math.inf

    def prune(self, plan: Plan, now: float) -> None:
        """Nothing is kept."""

    def size(self) -> int:
        """Nothing is kept."""
        return 0

    def events(self) -> Iterator[Instance]:
        """Nothing is kept."""
        return iter(())

    def shed(self) -> int:
        """Nothing is kept."""
        return 0


def saved_run(run: Iterable[Instance]) -> list[Any]:
    """Return some instances as data."""
    return [[each.at, each.order, encoded(each.id), encoded(each.kept) if each.kept else None] for each in run]


def restored_run(data: list[Any]) -> Run:
    """Return the instances of some data."""
    return tuple(
        Instance(float(at), int(order), decoded(id), decoded(kept) if kept else _NOTHING)
        for at, order, id, kept in data
    )


Machine: TypeAlias = LatestRuns | Stacks | Direct


def machine(plan: Plan) -> Machine:
    """Return what finds the runs of one group."""
    if plan.length == 1:
        return Direct()
    return LatestRuns(plan) if plan.is_simple else Stacks(plan)
