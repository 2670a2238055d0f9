"""Does a system do what was promised? Safety and liveness, checked on traces.

A *trace* is what clients and system did, in order: clients publish, withdraw, subscribe and unsubscribe; the system
notifies clients and drops events from windows. The checkers here read a trace and say where a promise was broken. They
know nothing of any algorithm, only the definitions: which events are in a window, and which of them match.

    responsiveness   what matches, is active and new to the client is told in time
    validity         nobody is told of what was never published, is withdrawn, or, for a condition, is over
    legality         nobody is told of what he did not ask for
    uniqueness       nobody is told twice
    regularity       an event leaves a window in time
    correctness      and not before its time

A system that does nothing keeps all of these but responsiveness and regularity, one that tells everybody everything
keeps those; so all are needed. Boolean subscriptions are checked beside ranked ones: they match when an event is
published, or never.

Source: Pripužić 2010, sections 2.2 and 2.3, definitions 2.15 and 2.33, equations 2.41 and 2.66 to 2.77
(docs/bibliography.md).
Departs: events of a trace may share a time, and then come in the order of the trace; what leaves windows at a time
leaves after all events of that time. Past operators are read where the text prints future ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.language.meaning import holds
from tamis.topk.ageing import DatedEvent
from tamis.topk.happenings import (
    Drop,
    Happening,
    NotifyStep,
    PublishStep,
    SubscribeStep,
    UnpublishStep,
    UnsubscribeStep,
    Violation,
)
from tamis.topk.ranked import Ranked
from tamis.topk.scores import key
from tamis.topk.windows import CountWindow, TimeWindow

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema


@dataclass(frozen=True, slots=True)
class _Stay:
    """A subscription from its activation to its end, as places in the trace."""

    client: Hashable
    subscription: Hashable
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _Moment:
    """A point between the events of a trace: after the event at `place`, or after the departures of its time."""

    place: int
    at: float
    is_departure: bool


class Trace:
    """What happened, and what it was about."""

    def __init__(
        self,
        happenings: Iterable[Happening],
        wanted: Mapping[Any, Ranked | Expression],
        contents: Mapping[Any, Mapping[str, Any]],
        *,
        until: float,
        subscription_delay: float = 0.0,
        publication_delay: float = 0.0,
        all_ties: bool = False,
        schema: Schema | None = None,
    ) -> None:
        """Take a trace in order of time, observed up to and including `until`.

        wanted     what each subscription asks for
        contents   what each event says
        all_ties   whether only strictly better events count, as in the thesis's chapter 2; otherwise the younger of two
        with
                   equal scores is better, as in its chapter 3
        """
        self.happenings: Sequence[Happening] = sorted(happenings, key=lambda each: each.at)
        self.until = until
        self._wanted = wanted
        self._delta_s, self._delta_p = subscription_delay, publication_delay
        self._all_ties = all_ties
        self._published = {
            each.event: place
            for place, each in reversed(list(enumerate(self.happenings)))
            if isinstance(each, PublishStep)
        }
        self._withdrawn = {
            each.event: place
            for place, each in reversed(list(enumerate(self.happenings)))
            if isinstance(each, UnpublishStep) and place > self._published.get(each.event, math.inf)
        }
        self._stays = list(self._all_stays())
        self._keys: dict[tuple[Any, Any], float | None] = {}
        for name, asked in wanted.items():
            condition = asked.where if isinstance(asked, Ranked) else asked
            for event in self._published:
                passes = holds(condition, contents[event], schema)
                dated = DatedEvent(contents[event], self.happenings[self._published[event]].at)
                score = key(asked, dated, schema) if isinstance(asked, Ranked) else 0.0
                self._keys[name, event] = score if passes else None

    def _all_stays(self) -> Iterator[_Stay]:
        begun: dict[tuple[Any, Any], int] = {}
        for place, each in enumerate(self.happenings):
            if isinstance(each, SubscribeStep):
                begun.setdefault((each.client, each.subscription), place)
            elif isinstance(each, UnsubscribeStep):
                begin = begun.pop((each.client, each.subscription), None)
                if begin is not None:
                    yield _Stay(each.client, each.subscription, begin, place)
        for (client, subscription), begin in begun.items():
            yield _Stay(client, subscription, begin, len(self.happenings))

    # -- What is so at a moment

    def _moments(self) -> Iterator[_Moment]:
        """Yield all moments at which anything may have changed."""
        departures = {
            self.happenings[self._published[event]].at + asked.window.span
            for (name, event), score in self._keys.items()
            if score is not None and isinstance(asked := self._wanted[name], Ranked)
            if isinstance(asked.window, TimeWindow)
        }
        waiting = sorted(at for at in departures if at <= self.until)
        for place, each in enumerate(self.happenings):
            while waiting and waiting[0] < each.at:
                yield _Moment(place - 1, waiting.pop(0), is_departure=True)
            yield _Moment(place, each.at, is_departure=False)
        for at in waiting:
            yield _Moment(len(self.happenings) - 1, at, is_departure=True)

    def _window(self, stay: _Stay, moment: _Moment) -> list[Any]:
        """Return the events in the window of a subscription, the oldest first."""
        asked = self._wanted[stay.subscription]
        if not stay.begin <= moment.place < stay.end:
            return []
        seen = [
            each.event
            for place, each in enumerate(self.happenings[stay.begin + 1 : moment.place + 1], stay.begin + 1)
            if isinstance(each, PublishStep) and self._published[each.event] == place
            if self._keys[stay.subscription, each.event] is not None
        ]
        if not isinstance(asked, Ranked):
            is_now = not moment.is_departure and seen and self._published[seen[-1]] == moment.place
            return seen[-1:] if is_now else []
        if isinstance(asked.window, CountWindow):
            return seen[-asked.window.events :]
        inside = []
        for event in seen:
            leaves = self.happenings[self._published[event]].at + asked.window.span
            if leaves > moment.at or (leaves == moment.at and not moment.is_departure):
                inside.append(event)
        return inside

    def _matching(self, stay: _Stay, moment: _Moment) -> set[Any]:
        """Return the events that are in the window of a subscription and match it."""
        asked = self._wanted[stay.subscription]
        window = self._window(stay, moment)
        if not isinstance(asked, Ranked):
            return set(window)
        scored = [(self._keys[stay.subscription, event], event) for event in window]
        keys = [
            (mine, -place, event) for place, (mine, event) in enumerate(scored) if mine is not None and mine == mine
        ]
        names = set()
        for mine, age, event in keys:
            better = sum(
                other < mine or (other == mine and others_age < age and not self._all_ties)
                for other, others_age, _ in keys
            )
            if better < asked.k:
                names.add(event)
        return names

    def _is_active(self, event: Any, moment: _Moment) -> bool:
        begin = self._published.get(event, math.inf)
        return begin <= moment.place < self._withdrawn.get(event, math.inf)

    # -- Promises

    def violations(self) -> list[Violation]:
        """Return every promise that was broken."""
        return [
            *self.responsiveness(),
            *self.validity(),
            *self.legality(),
            *self.uniqueness(),
            *self.regularity(),
            *self.correctness(),
        ]

    def responsiveness(self) -> Iterator[Violation]:
        """Yield what matched, was active and new to the client, and was not told within the publication delay."""
        deliveries: dict[tuple[Any, Any], list[tuple[int, float]]] = {}
        for place, each in enumerate(self.happenings):
            if isinstance(each, NotifyStep):
                deliveries.setdefault((each.client, each.event), []).append((place, each.at))
        missed = set()
        for moment in self._moments():
            if moment.at + self._delta_p > self.until:
                continue
            for stay in self._stays:
                if moment.at < self.happenings[stay.begin].at + self._delta_s:
                    continue
                for event in self._matching(stay, moment):
                    tellings = deliveries.get((stay.client, event), [])
                    in_time = any(at <= moment.at + self._delta_p for _, at in tellings)
                    if in_time or not self._is_active(event, moment) or (stay.client, event) in missed:
                        continue
                    missed.add((stay.client, event))
                    yield Violation("responsiveness", moment.at, stay.client, event, stay.subscription)

    def validity(self) -> Iterator[Violation]:
        """Yield what was told although it was not active within the publication delay before.

        Of one who has only conditions for it (equation 2.41): although it was not published within that delay, because
        a condition matches when an event is published, or never.
        """
        for place, each in enumerate(self.happenings):
            if isinstance(each, NotifyStep):
                begin = self._published.get(each.event)
                end = self._withdrawn.get(each.event)
                is_late = end is not None and end < place and self.happenings[end].at + self._delta_p <= each.at
                if begin is None or begin > place or is_late or self._is_stale(each, begin):
                    yield Violation("validity", each.at, each.client, each.event)

    def _is_stale(self, notified: NotifyStep, published: int) -> bool:
        is_ranked = any(
            isinstance(self._wanted[stay.subscription], Ranked)
            and self._keys[stay.subscription, notified.event] is not None
            for stay in self._stays
            if stay.client == notified.client
        )
        return not is_ranked and self.happenings[published].at + self._delta_p < notified.at

    def legality(self) -> Iterator[Violation]:
        """Yield what was told although no subscription of the client matched it within the subscription delay."""
        moments = list(self._moments())
        for place, each in enumerate(self.happenings):
            if isinstance(each, NotifyStep) and not any(
                each.event in self._matching(stay, moment)
                for moment in moments
                if (moment.is_departure or moment.place <= place) and each.at - self._delta_s <= moment.at <= each.at
                for stay in self._stays
                if stay.client == each.client
            ):
                yield Violation("legality", each.at, each.client, each.event)

    def uniqueness(self) -> Iterator[Violation]:
        """Yield what was told to a client again."""
        delivered = set()
        for each in self.happenings:
            if isinstance(each, NotifyStep):
                if (each.client, each.event) in delivered:
                    yield Violation("uniqueness", each.at, each.client, each.event)
                delivered.add((each.client, each.event))

    def regularity(self) -> Iterator[Violation]:
        """Yield what was not dropped from a time window by its time, unless the subscription ended first."""
        dropped = {(each.subscription, each.event): each.at for each in self.happenings if isinstance(each, Drop)}
        for stay, event, leaves in self._stays_of_events():
            end = self.happenings[stay.end].at if stay.end < len(self.happenings) else math.inf
            if end > leaves <= self.until and not dropped.get((stay.subscription, event), math.inf) <= leaves:
                yield Violation("regularity", leaves, stay.client, event, stay.subscription)

    def correctness(self) -> Iterator[Violation]:
        """Yield what was dropped from a time window before its time."""
        leaving = {(stay.subscription, event): (stay, leaves) for stay, event, leaves in self._stays_of_events()}
        for each in self.happenings:
            if isinstance(each, Drop):
                stay, leaves = leaving.get((each.subscription, each.event), (None, math.inf))
                if each.at < leaves:
                    client = None if stay is None else stay.client
                    yield Violation("correctness", each.at, client, each.event, each.subscription)

    def _stays_of_events(self) -> Iterator[tuple[_Stay, Any, float]]:
        """Yield when each event leaves the time window of each subscription that sees it."""
        for stay in self._stays:
            asked = self._wanted[stay.subscription]
            if isinstance(asked, Ranked) and isinstance(asked.window, TimeWindow):
                for event, place in self._published.items():
                    if stay.begin < place < stay.end and self._keys[stay.subscription, event] is not None:
                        yield stay, event, self.happenings[place].at + asked.window.seconds
