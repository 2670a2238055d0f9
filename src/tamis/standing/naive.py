"""What would a processor tell if it went by the definition alone? It asks for the whole history every time.

The interface is that of `Standing`, so that both can be put to the same events. It is slow on purpose, and forgets
nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.language.meaning import holds
from tamis.standing.change import Change
from tamis.standing.definition import History, Moment, Occurrence, Telling, change_tellings, sequence_tellings
from tamis.standing.notification import Notification
from tamis.standing.sequence import Sequence
from tamis.standing.subscriptions import Subscription, subscription_of
from tamis.topk.lateness import Change as Happening
from tamis.topk.lateness import Lateness, Publication, Withdrawal

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from tamis.language.schema import Schema


@dataclass(slots=True)
class _Registered:
    number: int
    wanted: Subscription
    history: History = field(default_factory=list)
    notified: int = 0


class NaiveStanding:
    """Conditions, sequences and changes by their definition.

    >>> processor = NaiveStanding()
    >>> processor.add("up", "CHANGE TO price > 30")
    >>> [processor.process({"price": price}, now) for now, price in enumerate([29, 31, 35])]
    [[], [Notification(subscription='up', events=(1,), at=1.0, change=True)], []]
    """

    def __init__(self, *, schema: Schema | None = None, lateness: float = 0.0, retention: float = math.inf) -> None:
        self.schema = schema
        self.retention = retention
        self._lateness = Lateness(lateness)
        self._subscriptions: dict[Hashable, _Registered] = {}
        self._next_number = 0
        self._next_id = 0
        self._ids: set[Any] = set()
        self._ends: dict[Any, float] = {}

    def add(self, subscription_id: Hashable, wanted: Any) -> None:
        """Register a subscription; it starts without a history."""
        self._subscriptions[subscription_id] = _Registered(self._next_number, subscription_of(wanted, self.schema))
        self._next_number += 1

    def remove(self, subscription_id: Hashable) -> None:
        """Remove a subscription."""
        del self._subscriptions[subscription_id]

    def process(
        self, event: Mapping[str, Any], now: float, id: Any = None, expires: float = math.inf
    ) -> list[Notification]:
        """Take an event; return what there is to tell, in order of time and of registration."""
        return _in_order(self._settle(self._lateness.take([Publication(float(now), event, id, expires)])))

    def withdraw(self, event_id: Any, now: float) -> list[Notification]:
        """Let nobody be told of an event from now on."""
        return _in_order(self._settle(self._lateness.take([Withdrawal(float(now), event_id)])))

    def advance(self, now: float) -> list[Notification]:
        """Let the time pass, up to and including `now`."""
        notifications = self._settle(self._lateness.advance(float(now)))
        return _in_order(notifications + self._look(Moment(self._lateness.settled)))

    def _settle(self, happenings: list[Happening]) -> list[tuple[int, Notification]]:
        notifications: list[tuple[int, Notification]] = []
        for happening in happenings:
            # What was due before this happened is told before.
            notifications += self._look(Moment(math.nextafter(happening.at, -math.inf)))
            if isinstance(happening, Withdrawal):
                if happening.event_id in self._ids:
                    end = math.nextafter(happening.at, -math.inf)
                    self._ends[happening.event_id] = min(self._ends.get(happening.event_id, math.inf), end)
                continue
            event_id = happening.id
            if event_id is None:
                while self._next_id in self._ids:
                    self._next_id += 1
                event_id = self._next_id
            if event_id in self._ids:
                continue
            self._ids.add(event_id)
            self._ends[event_id] = happening.expires
            notifications += self._look(Occurrence(happening.at, event_id, happening.event))
        if self._lateness.seconds and self._lateness.settled > -math.inf:
            notifications += self._look(Moment(math.nextafter(self._lateness.settled, -math.inf)))
        return notifications

    def _look(self, happening: Occurrence | Moment) -> list[tuple[int, Notification]]:
        """Let every subscription see something; return what is new, each with the number of its subscription."""
        notifications: list[tuple[int, Notification]] = []
        for subscription_id, subscription in self._subscriptions.items():
            subscription.history.append(happening)
            tellings = self._tellings(subscription)
            for telling in tellings[subscription.notified :]:
                ids = tuple(each.id for each in telling.events)
                if all(self._ends[each] >= telling.at for each in ids):
                    notifications.append(
                        (subscription.number, Notification(subscription_id, ids, telling.at, telling.change))
                    )
            subscription.notified = len(tellings)
        return notifications

    def _tellings(self, subscription: _Registered) -> list[Telling]:
        match subscription.wanted:
            case Sequence() as sequence:
                return sequence_tellings(sequence, subscription.history, self.schema, self.retention)
            case Change() as change:
                return change_tellings(change, subscription.history, self.schema)
            case condition:
                matching = [
                    each
                    for each in subscription.history
                    if isinstance(each, Occurrence) and holds(condition, each.event, self.schema)  # type: ignore[arg-type]
                ]
                return [Telling((each,), each.at) for each in matching]


def _in_order(notifications: list[tuple[int, Notification]]) -> list[Notification]:
    """Put what is told by one call in order of time, and at one time of registration."""
    return [notification for _, notification in sorted(notifications, key=lambda each: (each[1].at, each[0]))]
