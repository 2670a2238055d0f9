"""Are clients told the best k, and at the right moments? Ranked clients of a network, checked.

What clients publish, withdraw, want and hear becomes a trace, and two things are asked of it. The promises of the
definition (`topk.specification`): nobody is told what was not published, nor twice, and, as long as nothing fails,
nobody is told what is withdrawn, and everybody what is among the best and nothing else. And, as long as nothing fails,
that a network tells just what one processor tells that sees all events in order (`TopK("naive")`), at the same moments,
later by what brokers wait for late events.

A subscription counts from `spread_s` after it was made, and an end of one counts from `lateness_s` before, because
what waits then is not ranked for it any more. Of events that are under way while a condition is made or taken back, or
are published while it spreads, it is not asked whether they reach its client.

Source: Pripužić 2010, section 2.3, equations 2.66 to 2.77 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.meaning import holds
from tamis.simulation.occurrences import (
    ClientSubscribed,
    ClientUnsubscribed,
    EventDelivered,
    EventPublished,
    EventWithdrawn,
    Expired,
    Failed,
    Renewed,
)
from tamis.topk import Ranked, TopK, Trace
from tamis.topk.happenings import NotifyStep, PublishStep, SubscribeStep, UnpublishStep, UnsubscribeStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.language.expressions import Expression
    from tamis.routing.messages import Key
    from tamis.simulation.network import Network
    from tamis.simulation.occurrences import Occurrence
    from tamis.topk.happenings import Happening

_ROUNDING_S = 1e-9
"""Sums of times differ by less."""


class _Counted(NamedTuple):
    """A subscription of a client, under a name of its own."""

    name: str
    client: str
    wanted: Expression | Ranked
    begin: float


class RankedChecker:
    """What a network with ranked clients does, and what is wrong with it; an observer.

    `lateness_s` and `spread_s` are those of its brokers; `longest_way_s` is as long as an event or a filter may travel.
    What is due is told within `told_within_s`: where a subscription does not live at its home, that hears of it later.
    What is withdrawn within `overtaken_s` after it was due may not be told at all, as the withdrawal may come first.
    """

    def __init__(
        self,
        network: Network,
        lateness_s: float,
        spread_s: float,
        longest_way_s: float,
        told_within_s: float = 0.0,
        overtaken_s: float = 0.0,
    ) -> None:
        self.problems: list[str] = []
        self.delivered = 0
        """How many deliveries of ranked subscriptions were compared with those of one who sees everything."""
        self.promoted = 0
        """How many of them no event had brought about: something had left a window."""
        self._network = network
        self._lateness_s, self._spread_s, self._way_s = lateness_s, spread_s, longest_way_s
        self._told_within_s, self._overtaken_s = told_within_s, overtaken_s
        self._stays: dict[tuple[str, Key], _Counted] = {}
        self._names = 0
        self._lives: dict[str, int] = {}
        self._wanted_anywhere: dict[Any, Expression | Ranked] = {}
        self.begin()
        network.observers.append(self)

    def begin(self, *, is_lossy: bool = False) -> None:
        """Start a new trace, in which windows are empty and nothing has been published; events may be lost in it."""
        self._happenings: list[Happening] = []
        self._contents: dict[Any, Mapping[str, Any]] = {}
        self._published_s: dict[Key, float] = {}
        self._deliveries: list[EventDelivered] = []
        self._delivered_s: list[tuple[float, bool]] = []
        """When each was made, and whether only ranked subscriptions were its reason."""
        self._doubts: list[tuple[str, Expression, float, float]] = []
        self._ends: list[tuple[str, Key | None, float]] = []
        """When a client's subscription ended, or an event was withdrawn."""
        self._expected: dict[tuple[Any, Any], float] = {}
        self._has_failed = is_lossy
        for stay in self._stays.values():
            self._happenings.append(SubscribeStep(stay.begin, stay.client, stay.name))

    def __call__(self, occurrence: Occurrence) -> None:
        now = self._network.now
        match occurrence:
            case ClientSubscribed(client, key, wanted, False):
                before = self._stays.get((client, key))
                if before is not None and before.wanted == wanted:
                    return
                self._end(client, key)
                self._subscribed(client, key, wanted)
            case ClientUnsubscribed(client, key, False) | Expired(client, key, False):
                self._end(client, key)
            case EventPublished(client, _, publication):
                if publication.key not in self._contents:
                    self._contents[publication.key] = publication.event
                    self._published_s[publication.key] = now
                    self._happenings.append(PublishStep(now, client, publication.key))
            case EventWithdrawn(client, _, key):
                self._happenings.append(UnpublishStep(now, client, key))
                self._ends.append(("", key, now))
            case EventDelivered(client, publication):
                self._deliveries.append(occurrence)
                is_ranked = all(isinstance(self._wanted_by(client, key), Ranked) for key in occurrence.subscriptions)
                self._delivered_s.append((now, is_ranked))
                self._happenings.append(NotifyStep(now, self._named(client), publication.key))
            case Failed(_, broker):
                self._has_failed = True
                if broker is not None:
                    self._lives[broker] = self._lives.get(broker, 0) + 1
            case Renewed(broker):
                self._has_failed = True
                if broker is not None:
                    self._lives[broker] = self._lives.get(broker, 0) + 1

    def _named(self, client: str) -> str:
        """Return a client's name for the trace while nothing fails; a home that starts anew knows nobody any more."""
        life = self._lives.get(self._network.clients[client].home, 0) if self._has_failed else 0
        return f"{client} of life {life}" if life else client

    def _subscribed(self, client: str, key: Key, wanted: Expression | Ranked) -> None:
        now = self._network.now
        self._names += 1
        begin = now + (self._spread_s if isinstance(wanted, Ranked) else 0.0)
        stay = self._stays[client, key] = _Counted(f"{client}/{key}/{self._names}", client, wanted, begin)
        self._wanted_anywhere[stay.name] = wanted
        self._happenings.append(SubscribeStep(begin, client, stay.name))
        if not isinstance(wanted, Ranked):
            self._doubts.append((client, wanted, now - self._way_s, now + self._way_s))

    def _end(self, client: str, key: Key) -> None:
        stay = self._stays.pop((client, key), None)
        if stay is None:
            return
        now = self._network.now
        end = now
        if isinstance(stay.wanted, Ranked):
            end = now - self._lateness_s
            self._ends.append((client, None, end))
        else:
            self._doubts.append((client, stay.wanted, now - self._way_s, now))
        if end <= stay.begin:  # it never counted
            self._happenings.remove(SubscribeStep(stay.begin, client, stay.name))
        else:
            self._happenings.append(UnsubscribeStep(end, client, stay.name))

    # -- What is wrong

    def check(self) -> None:
        """Say what was wrong since the trace began; if nothing failed, all that was promised is asked for."""
        now = self._network.now
        order = sorted(range(len(self._happenings)), key=lambda place: self._happenings[place].at)
        self._happenings = [self._happenings[place] for place in order]
        trace = Trace(
            self._happenings,
            self._wanted_anywhere,
            self._contents,
            until=now,
            subscription_delay=self._lateness_s + self._told_within_s + _ROUNDING_S,
            publication_delay=self._lateness_s + self._told_within_s + _ROUNDING_S,
        )
        self._expected = {} if self._has_failed else self._told_by_one()
        self.problems += [
            f"ranked: {each}"
            for each in trace.validity()
            # Where links fail, withdrawals may be lost, and events late; but all were published.
            if not (self._has_failed and each.event in self._contents)
        ]
        self.problems += [f"ranked: {each}" for each in trace.uniqueness()]
        if not self._has_failed:
            for each in (*trace.legality(), *trace.responsiveness()):
                if not self._is_doubtful(each.client, each.event):
                    self.problems.append(f"ranked: {each}")
            self.problems += list(self._differences())

    def _differences(self) -> Iterator[str]:
        """Say what one who sees everything in order would have told otherwise, or at another moment."""
        expected = self._expected
        said: dict[tuple[str, Key], tuple[float, bool]] = {}
        for delivery, moment in zip(self._deliveries, self._delivered_s, strict=True):
            said[delivery.client, delivery.publication.key] = moment
        for client, event in sorted(expected.keys() | said.keys(), key=str):
            if self._is_doubtful(client, event):
                continue
            if (client, event) not in said:
                yield f"ranked: {client} was not notified of {event}, which was due at {expected[client, event]}"
            elif (client, event) not in expected:
                yield f"ranked: {client} was notified of {event}, which was never due"
            else:
                at, is_ranked = said[client, event]
                due = expected[client, event] + self._lateness_s
                rounding_s = _ROUNDING_S * max(1.0, at)
                if is_ranked and not due - rounding_s <= at <= due + self._told_within_s + rounding_s:
                    yield f"ranked: {client} was notified of {event} at {at}, and it was due at {due}"
                self.delivered += is_ranked
                self.promoted += is_ranked and expected[client, event] > self._published_s[event]

    def _wanted_by(self, client: str, key: Key) -> Expression | Ranked | None:
        stay = self._stays.get((client, key))
        return None if stay is None else stay.wanted

    def _told_by_one(self) -> dict[tuple[str, Key], float]:
        """Return who is told of what, and when, by one who sees everything at once; what counts up to now."""
        processor = TopK("naive")
        deliveries = []
        owners: dict[Any, Any] = {}
        until = self._network.now - self._lateness_s
        for each in self._happenings:
            if each.at + self._lateness_s > self._network.now:
                break
            match each:
                case SubscribeStep(_, client, name):
                    owners[name] = client
                    processor.add(name, self._wanted_anywhere[name], client=client)
                case UnsubscribeStep(at, _, name):
                    deliveries += processor.advance(at)
                    processor.remove(name)
                case PublishStep(at, _, event):
                    deliveries += processor.process(self._contents[event], at, event)
                case UnpublishStep(at, _, event):
                    deliveries += processor.withdraw(event, at)
        deliveries += processor.advance(max(until, processor.now)) if until > -math.inf else []
        return {(owners[each.subscription], each.event): each.at for each in deliveries}

    def _is_doubtful(self, client: Any, event: Any) -> bool:
        """Was an event under way while a condition of the client that it fulfils spread, or was taken back?

        Or so late that it may be under way, or wait? Or was the client about to be told when its subscription ended, or
        the event was withdrawn?
        """
        at = self._published_s.get(event)
        if at is None or at + self._lateness_s + self._way_s > self._network.now:
            return True
        due = self._expected.get((client, event), math.inf)
        for who, key, end in self._ends:
            if (who == client and 0 <= end - due <= self._told_within_s) or (
                key == event and 0 <= end - due <= self._overtaken_s
            ):
                return True
        return any(
            client == who and begin <= at <= end and holds(condition, self._contents[event])
            for who, condition, begin, end in self._doubts
        )
