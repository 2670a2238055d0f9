"""How do many changes take the same events? For each group, who is true there at present.

Changes with the same PER are a *family*, and a group of a family has one sorted list: the numbers of the changes that
are true there. An event is matched by the entry conditions of all changes at once; whoever matches and is not in the
list is told. Of those in the list that do not match, the exit conditions are asked: one by one where they are few, and
else by a matcher of their own. So what an event costs depends on who matches and who is true in its group, not on how
many changes there are.

Changes with FORGET AFTER are families of their own, in which each has the time of the last event that concerned it.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from tamis.matching.closures import holding
from tamis.matching.matcher import Matcher
from tamis.standing.kernels import compare_sorted, merge_sorted
from tamis.standing.storage import decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tamis.language.schema import Schema
    from tamis.standing.change import Change
    from tamis.standing.groups import Group, Paths
    from tamis.standing.kernels import Numbers
    from tamis.standing.sequences import Arrived

ASKED_ONE_BY_ONE = 32
"""Of so few missing changes the exit conditions are asked one by one."""
_NOBODY: Numbers = np.zeros(0, np.int64)
_COMPILED = 1 << 16
"""So many conditions are kept as functions."""

Asking: TypeAlias = "Callable[[], Numbers]"


class Changed(NamedTuple):
    """Who changes with an event."""

    entering: list[int]
    leaving: list[int]


class _Family:
    """Changes with the same PER."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.members: set[int] = set()
        self.held: dict[Group, Numbers] = {}


class _ForgetfulFamily:
    """Changes with the same PER and the same FORGET AFTER: of each that is true, when it was last concerned."""

    def __init__(self, index: int, span: float) -> None:
        self.index = index
        self.members: set[int] = set()
        self.span = span
        self.held: dict[Group, dict[int, float]] = {}
        self.heap: list[tuple[float, int, Group]] = []
        self.pushed = 0


class Changes:
    """The states of all changes, by the number of the change."""

    def __init__(self, most_states: int, schema: Schema | None = None) -> None:
        self.most_states = most_states
        """So many changes may be true at once, in all groups together; beyond it the oldest group is forgotten."""
        self.schema = schema
        self._changes: dict[int, Change] = {}
        self._families: dict[tuple[Paths, float | None], _Family | _ForgetfulFamily] = {}
        self._family_of = np.zeros(1024, np.int64)
        """By number: the index of its family."""
        self._next_family = 0
        self._exits = Matcher(schema=schema)
        self._unregistered: dict[int, None] = {}
        self._held_count = 0
        self._forgotten = 0
        self._asking = lru_cache(_COMPILED)(self._compiled)

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, number: int, change: Change) -> None:
        """Let a change take events from now on; it is true nowhere."""
        self._changes[number] = change
        key = (change.per, change.forget_after)
        family = self._families.get(key)
        if family is None:
            index = self._next_family
            self._next_family += 1
            span = change.forget_after
            family = self._families[key] = _Family(index) if span is None else _ForgetfulFamily(index, span)
        family.members.add(number)
        if number >= len(self._family_of):
            self._family_of = np.append(self._family_of, np.zeros(number + 1, np.int64))
        self._family_of[number] = family.index
        self._unregistered[number] = None

    def remove(self, number: int) -> None:
        """Forget a change and all its states."""
        change = self._changes.pop(number)
        if number in self._unregistered:
            del self._unregistered[number]
        else:
            self._exits.remove(number)
        key = (change.per, change.forget_after)
        family = self._families[key]
        family.members.remove(number)
        if isinstance(family, _ForgetfulFamily):
            for group in [group for group, states in family.held.items() if number in states]:
                del family.held[group][number]
                self._held_count -= 1
                if not family.held[group]:
                    del family.held[group]
        else:
            gone = np.array([number], np.int64)
            for group in [group for group, held in family.held.items() if _contains(held, number)]:
                self._keep(family, group, family.held[group], _NOBODY, gone)
        if not family.members:
            del self._families[key]

    # -- Events

    def take(self, arrived: Arrived, matching: Numbers, asking: Asking) -> Changed:
        """Take an event, and whose entry conditions match, sorted; return who changes.

        asking    returns whose exit conditions match, sorted; asked only if many have to be
        """
        entering: list[int] = []
        leaving: list[int] = []
        families = self._family_of[matching] if len(self._families) > 1 else None
        for (per, _), family in self._families.items():
            numbers = matching if families is None else matching[families == family.index]
            if not len(numbers) and not family.held:
                continue
            group = arrived.group(per)
            if isinstance(family, _ForgetfulFamily):
                changed = self._take_forgetful(family, group, arrived, numbers.tolist())
            else:
                changed = self._take_plain(family, group, arrived, numbers, asking)
            entering += changed.entering
            leaving += changed.leaving
        while self._held_count > self.most_states:
            self._forget_one()
        return Changed(entering, leaving)

    def _take_plain(
        self, family: _Family, group: Group, arrived: Arrived, matching: Numbers, asking: Asking
    ) -> Changed:
        held = family.held.get(group, _NOBODY)
        if not len(held):
            if len(matching):
                self._keep(family, group, held, matching, _NOBODY)
            return Changed(matching.tolist(), [])
        entering, missing = np.empty(len(matching), np.int64), np.empty(len(held), np.int64)
        entering_count, missing_count = compare_sorted(matching, held, entering, missing)
        entering, missing = entering[:entering_count], missing[:missing_count]
        leaving = _NOBODY
        if missing_count:
            leaving = self._leaving(missing, arrived, asking)
        if entering_count or len(leaving):
            self._keep(family, group, held, entering, leaving)
        return Changed(entering.tolist(), leaving.tolist())

    def _leaving(self, missing: Numbers, arrived: Arrived, asking: Asking) -> Numbers:
        if len(missing) > ASKED_ONE_BY_ONE:
            return np.intersect1d(missing, asking(), assume_unique=True)
        leaving = [number for number in missing.tolist() if self._asking(number, False)(arrived.event)]
        return np.array(leaving, np.int64)

    def _keep(self, family: _Family, group: Group, held: Numbers, entering: Numbers, leaving: Numbers) -> None:
        merged = np.empty(len(held) + len(entering) - len(leaving), np.int64)
        merge_sorted(held, entering, leaving, merged)
        self._held_count += len(merged) - len(held)
        if len(merged):
            family.held[group] = merged
        else:
            del family.held[group]

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
        for family in self._families.values():
            if not isinstance(family, _ForgetfulFamily):
                continue
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
        family = max(self._families.values(), key=lambda each: len(each.held))
        group = next(iter(family.held))
        count = len(family.held.pop(group))
        self._held_count -= count
        self._forgotten += count

    # -- Saving

    def saved(self) -> dict[int, list[Any]]:
        """Return by number in which groups each change is true, as data, with the last time that it was concerned."""
        states: dict[int, list[Any]] = {}
        for family in self._families.values():
            for group, held in family.held.items():
                known = held if isinstance(held, dict) else dict.fromkeys(held.tolist())
                for number, last in known.items():
                    states.setdefault(number, []).append([encoded(group), last])
        return states

    def restore(self, states: Mapping[int, list[Any]]) -> None:
        """Take up the states of all changes."""
        plain: dict[tuple[Paths, Group], list[int]] = {}
        for number, groups in states.items():
            change = self._changes[number]
            family = self._families[change.per, change.forget_after]
            for data, last in groups:
                group = decoded(data)
                if isinstance(family, _ForgetfulFamily):
                    if group not in family.held:
                        family.held[group] = {}
                        self._schedule(family, group, last + family.span)
                    family.held[group][number] = float(last)
                    self._held_count += 1
                else:
                    plain.setdefault((change.per, group), []).append(number)
        for (per, group), numbers in plain.items():
            family = self._families[per, None]
            assert isinstance(family, _Family)
            self._keep(family, group, _NOBODY, np.array(sorted(numbers), np.int64), _NOBODY)

    # -- Looking inside

    def statistics(self) -> dict[str, int]:
        """Return how many changes are true in how many groups, and how many states did not fit."""
        return {
            "change_states": self._held_count,
            "change_groups": sum(len(family.held) for family in self._families.values()),
            "forgotten_states": self._forgotten,
        }


def _contains(numbers: Numbers, number: int) -> bool:
    place = int(np.searchsorted(numbers, number))
    return place < len(numbers) and int(numbers[place]) == number
