"""What do sequences and changes mean? This module is the definition; the processor is tested against it.

A *history* is what a subscription has seen: events in order of time, those of the same time in order of arrival, and
moments up to which somebody said that nothing more will come. Each function answers for a whole history, from the
beginning, and remembers nothing. It is written to be read.

A step or condition counts where it is *true*; unknown is neither true nor false. Times are compared as sums: an event
is in time if it comes no later than the first event's time plus WITHIN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.language.meaning import holds, truth
from tamis.standing.groups import group_of
from tamis.standing.references import bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.language.schema import Schema
    from tamis.standing.change import Change
    from tamis.standing.sequence import Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Occurrence:
    """An event at its time, under its id."""

    at: float
    id: Any
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Moment:
    """Nothing up to this time, and at it, will come any more."""

    at: float


History: TypeAlias = "list[Occurrence | Moment]"
Run: TypeAlias = tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class Telling:
    """Something to tell: the events, when, and for a change whether to true or to false."""

    events: Run
    at: float
    change: bool | None = None


# -- Sequences


def sequence_tellings(
    sequence: Sequence, history: History, schema: Schema | None = None, retention: float = math.inf
) -> list[Telling]:
    """Return what a sequence has to tell of a history, in order of time.

    `retention` stands for WITHIN where there is none.
    """
    reading = _Reading(sequence, history, schema, retention)
    if sequence.is_absence:
        return reading.absences()
    return [Telling(run, run[-1].at) for run in reading.taken(len(sequence.steps))]


class _Reading:
    """A sequence, read over a history."""

    def __init__(self, sequence: Sequence, history: History, schema: Schema | None, retention: float) -> None:
        self.sequence = sequence
        self.schema = schema
        self.history = history
        self.place = {id(each): place for place, each in enumerate(history)}
        self.events = [each for each in history if isinstance(each, Occurrence)]
        self.groups = {id(each): group_of(each.event, sequence.per) for each in self.events}
        self.within = retention if sequence.within is None else sequence.within

    def taken(self, length: int) -> list[Run]:
        """Return the runs of the first steps that TAKING chooses, in order of their last events."""
        chosen: list[Run] = []
        used: set[int] = set()
        for last in self.events:
            # The earliest first, compared from the event before the last back to the first.
            runs = sorted(self.runs_to(last, length), key=lambda run: [self.place[id(each)] for each in run[-2::-1]])
            if self.sequence.taking == "EACH ONCE":
                runs = [run for run in runs if not used & {id(each) for each in run}][:1]
                used |= {id(each) for run in runs for each in run}
            elif self.sequence.taking == "FIRST":
                runs = runs[:1]
            elif self.sequence.taking == "LATEST":
                runs = runs[-1:]
            chosen += runs
        return chosen

    def runs_to(self, last: Occurrence, length: int) -> Iterator[Run]:
        """Yield all runs of the first steps that end in an event."""
        together = [each for each in self.events if self.groups[id(each)] == self.groups[id(last)]]
        runs: list[Run] = [()]
        for index in range(length):
            candidates = [last] if index == length - 1 else together
            runs = [(*run, each) for run in runs for each in candidates if self.may_follow(run, each, index)]
        for run in runs:
            if self.is_in_time(run[0], last, is_whole=length == len(self.sequence.steps)):
                yield run

    def may_follow(self, run: Run, event: Occurrence, index: int) -> bool:
        """May an event stand for a step, behind the events of the steps before?"""
        step = self.sequence.steps[index]
        if run:
            between = self.place[id(event)] - self.place[id(run[-1])]
            if between < 0 or (between == 0 and not step.is_same):
                return False
        earlier = {
            each.name: before.event
            for each, before in zip(self.sequence.steps, run, strict=False)
            if each.name is not None
        }
        return holds(step.condition, bound(event.event, earlier), self.schema)

    def is_in_time(self, first: Occurrence, last: Occurrence, *, is_whole: bool) -> bool:
        """Is the last event neither too early nor too late? AFTER is asked of the last step alone."""
        if last.at > first.at + self.within:
            return False
        return not is_whole or self.sequence.after is None or last.at >= first.at + self.sequence.after

    def absences(self) -> list[Telling]:
        """Return the runs of all steps but the last for which no last event came in time."""
        tellings = []
        for run in self.taken(len(self.sequence.steps) - 1):
            end = run[0].at + self.within
            for each in self.history[self.place[id(run[-1])] + 1 :]:
                if isinstance(each, Moment):
                    if each.at >= end:
                        tellings.append(Telling(run, end))
                        break
                elif each.at > end:
                    tellings.append(Telling(run, end))
                    break
                elif (
                    self.groups[id(each)] == self.groups[id(run[-1])]
                    and self.may_follow(run, each, len(run))
                    and self.is_in_time(run[0], each, is_whole=True)
                ):
                    break
        return sorted(tellings, key=lambda telling: telling.at)


# -- Changes


def change_tellings(change: Change, history: History, schema: Schema | None = None) -> list[Telling]:
    """Return what a change has to tell of a history, in order of time."""
    is_true: dict[Any, bool] = {}
    last: dict[Any, float] = {}
    tellings = []
    for each in history:
        if isinstance(each, Moment) or not holds(change.where, each.event, schema):
            continue
        group = group_of(each.event, change.per)
        if change.forget_after is not None and each.at > last.get(group, each.at) + change.forget_after:
            is_true[group] = False
        last[group] = each.at
        now = truth(change.condition, each.event, schema)
        before = is_true.get(group, False)
        if now is True:
            is_true[group] = True
        elif now is False if change.until is None else holds(change.until, each.event, schema):
            is_true[group] = False
        if is_true.get(group, False) is not before and (not before or change.is_both_ways):
            tellings.append(Telling((each,), each.at, not before))
    return tellings
