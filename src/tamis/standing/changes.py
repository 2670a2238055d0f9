"""How do many changes take the same events? For each group, who is true there at present.

Changes that are kept by the same attributes are a *family*, and a group of a family has one list: the numbers of the
changes that are true there. The events of a batch are matched by the entry conditions of all changes at once; whoever
matches and is not in the list is told. Of those in the list that do not match, most exit conditions are decided by what
is known of the event (`exits`); the others are asked, one by one where they are few, and else by a matcher of their
own. All of it is one compiled loop over the batch, which stops where somebody has to be asked. So what an event costs
depends on who matches and who is true in its group, not on how many changes there are.

Changes with FORGET AFTER are families of their own, in which each has the time of the last event that concerned it;
these are Python's.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from tamis.matching.closures import holding
from tamis.matching.matcher import Matcher
from tamis.standing.exits import exit_form, knowledge
from tamis.standing.held import HeldLists
from tamis.standing.kernels import DONE, NO_ROOM, ChangeMatches, ExitTable, ExitValues, HeldTable, TurnOutcome, turn
from tamis.standing.storage import decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import numpy.typing as npt

    from tamis.language.schema import Schema
    from tamis.matching.columns import Path
    from tamis.standing.arrivals import StandingBatch
    from tamis.standing.change import Change
    from tamis.standing.exits import ExitForm
    from tamis.standing.groups import Group, Paths
    from tamis.standing.kernels import Numbers
    from tamis.standing.sequences import Arrived

ASKED_ONE_BY_ONE = 32
"""Of so few missing changes the exit conditions are asked one by one."""
_COMPILED = 1 << 16
"""So many conditions are kept as functions."""

Asking: TypeAlias = "Callable[[int], Numbers]"
Pairs: TypeAlias = "tuple[Numbers, Numbers]"


class Changed(NamedTuple):
    """Who changes with an event."""

    entering: list[int]
    leaving: list[int]


class _Family:
    """Changes that are kept by the same attributes."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.members: set[int] = set()
        self.lists = HeldLists()


class _ForgetfulFamily:
    """Changes with the same PER and the same FORGET AFTER: of each that is true, when it was last concerned."""

    def __init__(self, index: int, span: float) -> None:
        self.index = index
        self.members: set[int] = set()
        self.span = span
        self.held: dict[Group, dict[int, float]] = {}
        self.heap: list[tuple[float, int, Group]] = []
        self.pushed = 0


class ChangeStates:
    """The states of all changes, by the number of the change."""

    def __init__(self, most_states: int, schema: Schema | None = None) -> None:
        self.most_states = most_states
        """So many changes may be true at once, in all groups together; beyond it the oldest group is forgotten."""
        self.schema = schema
        self._changes: dict[int, Change] = {}
        self._forms: dict[int, ExitForm] = {}
        self._families: dict[Paths, _Family] = {}
        self._forgetful: dict[tuple[Paths, float], _ForgetfulFamily] = {}
        self._profiles: dict[tuple[Path, ...], int] = {(): 0}
        """What has to be known to decide an exit condition, and its number."""
        self._family_of = np.zeros(0, np.int64)
        """By number: the index of its family, and so on."""
        self._ways = np.zeros(0, np.int8)
        self._profile_of = np.zeros(0, np.int32)
        self._limits = np.zeros(0)
        self._is_both_ways = np.zeros(0, np.bool_)
        self._marks = np.zeros(0, np.int64)
        self._verdicts = np.zeros(0, np.int64)
        self._stamp = 0
        self._next_family = 0
        self._exits = Matcher(schema=schema)
        self._unregistered: dict[int, None] = {}
        self._held_count = 0
        self._forgotten = 0
        self._asking = lru_cache(_COMPILED)(self._compiled)

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def has_forgetful(self) -> bool:
        """Are there changes with FORGET AFTER, which take events one by one?"""
        return bool(self._forgetful)

    def add(self, number: int, change: Change) -> None:
        """Let a change take events from now on; it is true nowhere."""
        self._changes[number] = change
        form = self._forms[number] = exit_form(change)
        family: _Family | _ForgetfulFamily | None
        if change.forget_after is None:
            family = self._families.get(form.per)
            if family is None:
                family = self._families[form.per] = _Family(self._next_family)
                self._next_family += 1
        else:
            key = (change.per, change.forget_after)
            family = self._forgetful.get(key)
            if family is None:
                family = self._forgetful[key] = _ForgetfulFamily(self._next_family, change.forget_after)
                self._next_family += 1
        family.members.add(number)
        if number >= len(self._family_of):
            self._grow(number + 1)
        self._family_of[number] = family.index
        self._ways[number], self._limits[number] = form.way, form.limit
        self._profile_of[number] = self._profiles.setdefault(form.paths, len(self._profiles))
        self._is_both_ways[number] = change.is_both_ways
        self._verdicts[number] = -1
        self._unregistered[number] = None

    def _grow(self, room: int) -> None:
        for name in ("_family_of", "_ways", "_profile_of", "_limits", "_is_both_ways", "_marks", "_verdicts"):
            column = getattr(self, name)
            setattr(self, name, np.append(column, np.zeros(room, column.dtype)))

    def remove(self, number: int) -> None:
        """Forget a change and all its states."""
        change = self._changes.pop(number)
        form = self._forms.pop(number)
        if number in self._unregistered:
            del self._unregistered[number]
        else:
            self._exits.remove(number)
        if change.forget_after is None:
            family = self._families[form.per]
            family.members.remove(number)
            self._held_count -= family.lists.drop(number)
            if not family.members:
                del self._families[form.per]
            return
        key = (change.per, change.forget_after)
        forgetful = self._forgetful[key]
        forgetful.members.remove(number)
        for group in [group for group, states in forgetful.held.items() if number in states]:
            del forgetful.held[group][number]
            self._held_count -= 1
            if not forgetful.held[group]:
                del forgetful.held[group]
        if not forgetful.members:
            del self._forgetful[key]

    # -- Events

    def take(self, rows: Numbers, numbers: Numbers, batch: StandingBatch, asking: Asking) -> tuple[Pairs, Pairs]:
        """Take a batch, and whose entry conditions match, by row; return rows and numbers of who enters and leaves.

        Of those who leave only such as are told of it. Changes with FORGET AFTER are left out: see `take_forgetful`.

        asking    returns whose exit conditions a row matches, sorted; asked only if many have to be
        """
        entering: list[Numbers] = []
        leaving: list[Numbers] = []
        is_alone = len(self._families) == 1 and not self._forgetful
        families = None if is_alone else self._family_of[numbers]
        states, values = knowledge(batch.events, list(self._profiles))
        known = _Known(batch, states, values, asking)
        for per, family in self._families.items():
            own = slice(None) if families is None else families == family.index
            bounds = batch.bounds(rows[own])
            if not (len(family.lists) or bounds[-1]):
                continue
            codes = family.lists.codes_of(batch.groups(per), bounds)
            self._turn(family.lists, bounds, numbers[own], codes, known, entering, leaving)
        return _joined(entering), _joined(leaving)

    def _turn(
        self,
        lists: HeldLists,
        bounds: Numbers,
        numbers: Numbers,
        codes: Numbers,
        known: _Known,
        entering: list[Numbers],
        leaving: list[Numbers],
    ) -> None:
        """Let the changes of a family take a batch."""
        before = lists.count_of(codes)
        new = len(numbers)
        enter, leave = np.empty((new, 2), np.int64), np.empty((new + before, 2), np.int64)
        missing = np.empty(new + before, np.int64)
        tally = np.zeros(6, np.int64)
        matches = ChangeMatches(bounds, numbers, codes, known.batch.order)
        exits = ExitTable(self._ways, self._profile_of, self._limits, self._is_both_ways, self._verdicts, self._marks)
        values, turned = ExitValues(known.states, known.values), TurnOutcome(tally, enter, leave, missing)
        row, last = 0, len(bounds) - 1
        while True:
            tally[3] = lists.used
            status = turn(row, last, matches, self._stamp, exits, values, HeldTable(lists.spans, lists.held), turned)
            self._stamp += 2 * (last - row) + 2
            row, entered, left, lists.used, wanted, more = tally.tolist()
            if status == DONE:
                break
            if status == NO_ROOM:
                lists.make_room(wanted)
            else:
                self._judge(missing[:wanted].copy(), row, known)
        self._held_count += more
        entering.append(enter[:entered])
        leaving.append(leave[:left])
        lists.free(codes)

    def _judge(self, missing: Numbers, row: int, known: _Known) -> None:
        """Find which of the missing become false with an event, by their exit conditions."""
        if len(missing) > ASKED_ONE_BY_ONE:
            leaves = np.isin(missing, known.asking(row), assume_unique=True)
        else:
            event = known.batch.mappings[row]
            leaves = np.array([self._asking(number, False)(event) for number in missing.tolist()], np.bool_)
        self._verdicts[missing] = 2 * (known.batch.order + row) + leaves

    def has_room(self, entering: int) -> bool:
        """Is it sure that no group has to be forgotten if so many become true?"""
        return self._held_count + entering <= self.most_states

    def bound(self) -> None:
        """Forget groups while too many changes are true."""
        while self._held_count > self.most_states:
            self._forget_one()

    def take_forgetful(self, arrived: Arrived, matching: Numbers) -> Changed:
        """Take an event for the changes with FORGET AFTER, and all whose entry conditions match; return who changes."""
        entering: list[int] = []
        leaving: list[int] = []
        families = self._family_of[matching]
        for (per, _), family in self._forgetful.items():
            numbers = matching[families == family.index]
            if not len(numbers) and not family.held:
                continue
            changed = self._take_forgetful(family, arrived.group(per), arrived, numbers.tolist())
            entering += changed.entering
            leaving += [number for number in changed.leaving if self._is_both_ways[number]]
        return Changed(entering, leaving)

    def _take_forgetful(self, family: _ForgetfulFamily, group: Group, arrived: Arrived, matching: list[int]) -> Changed:
        states = family.held.get(group, {})
        leaving: list[int] = []
        matches = set(matching)
        for number, last in list(states.items()):
            if arrived.at > last + family.span:
                del states[number]
                self._held_count -= 1
            elif number in matches:
                states[number] = arrived.at
            else:
                if self._asking(number, True)(arrived.event):
                    states[number] = arrived.at
                    if self._asking(number, False)(arrived.event):
                        del states[number]
                        self._held_count -= 1
                        leaving.append(number)
        entering = [number for number in matching if number not in states]
        if entering and group not in family.held:
            family.held[group] = states
            self._schedule(family, group, arrived.at + family.span)
        for number in entering:
            states[number] = arrived.at
        self._held_count += len(entering)
        if not states:
            family.held.pop(group, None)
        return Changed(entering, sorted(leaving))

    def _compiled(self, number: int, concerns: bool) -> Callable[[Mapping[str, Any]], bool]:
        """Return the function that says whether an event concerns a change, or whether it makes it false."""
        change = self._changes[number]
        return holding(change.where if concerns else change.exit, self.schema)

    # -- The exit conditions, all at once

    def exits(self) -> Matcher:
        """Return the matcher of the exit conditions, which is made when it is first needed."""
        if self._unregistered:
            self._exits.add_many([(number, self._changes[number].exit) for number in self._unregistered])
            self._unregistered = {}
        return self._exits

    # -- Time

    def _schedule(self, family: _ForgetfulFamily, group: Group, when: float) -> None:
        family.pushed += 1
        heappush(family.heap, (when, family.pushed, group))

    def advance(self, now: float) -> None:
        """Let the time pass: forget what nothing concerned for too long."""
        for family in self._forgetful.values():
            while family.heap and family.heap[0][0] < now:
                *_, group = heappop(family.heap)
                states = family.held.get(group)
                if states is None:
                    continue
                for number in [number for number, last in states.items() if now > last + family.span]:
                    del states[number]
                    self._held_count -= 1
                if states:
                    self._schedule(family, group, min(states.values()) + family.span)
                else:
                    del family.held[group]
            if len(family.heap) > 2 * len(family.held) + ASKED_ONE_BY_ONE:
                # A group that became false and true again is there twice.
                family.heap = [
                    (min(states.values()) + family.span, place, group)
                    for place, (group, states) in enumerate(family.held.items())
                ]
                family.pushed = len(family.heap)
                heapify(family.heap)

    def _forget_one(self) -> None:
        """Forget the group that has been true for longest, of the family with most groups."""
        family = max(self._families.values(), key=lambda each: len(each.lists), default=None)
        forgetful = max(self._forgetful.values(), key=lambda each: len(each.held), default=None)
        if forgetful is None or (family is not None and len(family.lists) >= len(forgetful.held)):
            assert family is not None
            count = family.lists.forget_oldest()
        else:
            count = len(forgetful.held.pop(next(iter(forgetful.held))))
        self._held_count -= count
        self._forgotten += count

    # -- Saving

    def saved(self) -> dict[int, list[Any]]:
        """Return by number in which groups each change is true, as data, with the last time that it was concerned."""
        states: dict[int, list[Any]] = {}
        for family in self._families.values():
            for group, numbers in family.lists.items():
                for number in numbers:
                    own = group[: len(self._changes[number].per)]
                    states.setdefault(number, []).append([encoded(own), None])
        for forgetful in self._forgetful.values():
            for group, known in forgetful.held.items():
                for number, last in known.items():
                    states.setdefault(number, []).append([encoded(group), last])
        return states

    def restore(self, states: Mapping[int, list[Any]]) -> None:
        """Take up the states of all changes."""
        plain: dict[Paths, dict[Group, list[int]]] = {}
        for number, groups in states.items():
            change, form = self._changes[number], self._forms[number]
            for data, last in groups:
                group = decoded(data)
                if change.forget_after is None:
                    plain.setdefault(form.per, {}).setdefault((*group, *form.extra), []).append(number)
                    continue
                family = self._forgetful[change.per, change.forget_after]
                if group not in family.held:
                    family.held[group] = {}
                    self._schedule(family, group, last + family.span)
                family.held[group][number] = float(last)
                self._held_count += 1
        for per, lists in plain.items():
            self._families[per].lists.restore(lists)
            self._held_count += sum(map(len, lists.values()))

    # -- Looking inside

    def statistics(self) -> dict[str, int]:
        """Return how many changes are true in how many groups, and how many states did not fit."""
        plain = sum(len(family.lists) for family in self._families.values())
        return {
            "change_states": self._held_count,
            "change_groups": plain + sum(len(family.held) for family in self._forgetful.values()),
            "forgotten_states": self._forgotten,
        }


class _Known(NamedTuple):
    """A batch, and what is known of its events."""

    batch: StandingBatch
    states: npt.NDArray[np.int8]
    values: npt.NDArray[np.float64]
    asking: Asking


def _joined(parts: list[Numbers]) -> Pairs:
    """Return rows and numbers."""
    whole = np.concatenate(parts) if parts else np.zeros((0, 2), np.int64)
    return whole[:, 0], whole[:, 1]
