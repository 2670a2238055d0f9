"""What does a broker do with an event? Deduplication, admission, forwarding.

An event that was here before goes no further. One that a client publishes is looked at once, here: does it fit the
schema, may the client publish it? Whatever goes on is matched against the routing table; each client that wants it gets
gets it with the keys of the subscriptions that do, and each neighbour behind which somebody may want it, but never the
one that it came from.

The first broker of an event stamps it with its clock and a number (`Passed`), by which windows of ranked subscriptions
go everywhere. With a recent buffer it also sends it a second time, for ranked subscriptions alone. An event may be
withdrawn by who published it; every broker is told, because any may hold it in a window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from typing import TYPE_CHECKING

from tamis.errors import EventError
from tamis.language.meaning import holds
from tamis.routing import announcements
from tamis.routing.acceptance import check_keys
from tamis.routing.errors import UnknownPeerError
from tamis.routing.memory import LatestKeys
from tamis.routing.messages import Deliver, Output, Passed, Publish, Reject, ResumeFiltering, Send, Withdraw
from tamis.routing.recent import RecentEvents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing.base import Strategy
    from tamis.routing.desk import Desk, RankedDelivery
    from tamis.routing.links import Link
    from tamis.routing.messages import Key
    from tamis.routing.table import RoutingTable

_NOBODY = ""
"""Where an event comes from that its first broker sends a second time."""


class PublishingPart(ABC):
    """The part of `Broker` that passes single events on."""

    def __init__(
        self,
        name: str,
        table: RoutingTable,
        schema: Schema | None,
        advertising: Strategy | None,
        remembered: int,
        desk: Desk,
    ) -> None:
        self.name = name
        self.table = table
        self.desk = desk
        """The ranked subscriptions of its clients."""
        self.advertising = advertising
        self.misfit_count = 0
        """How many events of clients were refused because they did not fit the schema."""
        self.kept_out_count = 0
        """How many events of neighbours were kept out, which they should not have sent."""
        self._schema = schema
        self._links: dict[str, Link] = {}
        self._clients: dict[str, dict[Key, Expression]] = {}
        """What each client advertised."""
        self._ranks: dict[str, int] = {}
        self._next_rank = count()
        """Clients hear of an event in the order in which they were attached."""
        self._seen = LatestKeys(remembered)
        self._seen_again = LatestKeys(remembered)
        """The events that came for the second time."""
        self._withdrawals = LatestKeys(remembered)
        self._recent = RecentEvents(desk.buffer_s)
        self._passed_count = 0

    # -- Events that were here before

    def knows(self, key: Key) -> bool:
        """Was an event of this key here, as far as this broker remembers? Then it would go no further.

        >>> from tamis.routing import Broker
        >>> broker = Broker("middle", remembered=2)
        >>> broker.remember(["e1", "e2", "e3"])
        >>> broker.knows("e1"), broker.knows("e3")
        (False, True)
        """
        return key in self._seen

    def remember(self, keys: Iterable[Key]) -> None:
        """Count events of these keys as having been here, the oldest first: those of before a restart, for instance.

        As with events that come, so many of the latest are remembered as the broker was told.
        """
        keys = list(keys)
        check_keys(keys)
        for key in keys:
            self._seen.add(key)

    # -- One event

    def _publish(self, message: Publish, source: str, now: float) -> list[Output]:
        is_second = isinstance(message, Passed) and message.attempt == 2
        if message.key in (self._seen_again if is_second else self._seen):
            return []
        if source in self._clients:
            try:
                message = self._fitting(message)
            except EventError as error:
                self.misfit_count += 1
                return [Reject(source, message.key, str(error))]
            if reason := self._objection(message.key, message.event, source):
                return [Reject(source, message.key, reason)]
        elif not self._let_in(message.event, source):
            return []
        return self._route(self._stamped(message, source, now), source, now)

    def _stamped(self, message: Publish, source: str, now: float) -> Passed:
        """Return an event as brokers pass it on: with the time and the number that its first broker gives it."""
        if isinstance(message, Passed):
            return message
        if source in self._links:  # a neighbour that says no more of it than a client would
            return Passed.of(message, now, source, 0)
        self._passed_count += 1
        return Passed.of(message, now, self.name, self._passed_count)

    def _let_in(self, event: Mapping[str, Any], neighbour: str) -> bool:
        """Return whether an event of a neighbour goes further; count it if its link's guard keeps it out."""
        if self._links[neighbour].guard.admits(event, self._schema):
            return True
        self.kept_out_count += 1
        return False

    def _fitting(self, message: Publish) -> Publish:
        """Return a publication that fits the schema; raise an error if it cannot be read so.

        That is done once, at the client's broker: whatever travels fits, and all that brokers conclude holds for it.
        """
        event = self._fitted(message.event)
        return message if event is message.event else Publish(message.key, event)

    def _fitted(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an event that fits the schema: this one, or another that says the same."""
        if self._schema is None or (reason := self._schema.objection(event)) is None:
            return event
        try:
            return self._schema.conform(event)
        except EventError:
            raise EventError(reason) from None

    def _objection(self, key: Key, event: Mapping[str, Any], client: str) -> str | None:
        if announcements.is_announcement(event):
            return f"events of the type {event['type']!r} are published by brokers alone; choose another type"
        if announcements.is_key_of_announcement(key):
            return f"the key {key!r} is a broker's; choose one that does not begin with {announcements.PREFIX!r}"
        if self.advertising is None:
            return None
        if any(holds(each, event, self._schema) for each in self._clients[client].values()):
            return None
        return f"{client!r} has advertised no such event; advertise a filter that matches it first"

    def _route(self, message: Passed, source: str, now: float) -> list[Output]:
        self._note_passed(message, source)
        return self._passed_on(message, self.table.match(message.event), source, now)

    def _note_passed(self, message: Passed, source: str) -> None:
        """Take note of an event that is here for the first time, or of its second attempt."""
        if message.attempt == 2:
            self._seen_again.add(message.key)
            return
        self._seen.add(message.key, source if source in self._clients else None)
        if message.origin == self.name:
            self._recent.push(message)

    def _passed_on(
        self,
        message: Passed,
        wanted_by: Mapping[str, list[Key]],
        source: str,
        now: float,
        ranked: list[RankedDelivery] | None = None,
    ) -> list[Output]:
        """Return what is delivered and sent of an event that was matched; `ranked` is what the desk has said of it."""
        served = self._served(message, wanted_by)
        if ranked is None:
            is_withdrawn = message.key in self._withdrawals
            ranked = self.desk.take(message, now, served, is_withdrawn=is_withdrawn) if self.desk else []
        others = [telling for telling in ranked if telling.publication.key != message.key]
        for telling in ranked:
            if telling.publication.key == message.key:
                for client, keys in telling.clients.items():
                    served[client] = [*served[client], *keys] if client in served else keys
        outputs: list[Output] = self._delivered(others)
        if served:
            clients = sorted(served, key=self._ranks.__getitem__)
            deliveries = self._deliveries(message.published, {client: served[client] for client in clients})
            if self.table.has_priorities:
                deliveries.sort(key=lambda each: -each.priority)  # of one priority in their order
            outputs += deliveries
        outputs += self._moves(now)
        is_wanted = bool(served)
        for neighbour, link in self._links.items():
            if neighbour != source and self._note_going(neighbour, link, neighbour in wanted_by, now):
                outputs.append(Send(neighbour, message))
                is_wanted = True
        if self._note_received(source, is_wanted=is_wanted, event=message.event):
            outputs.append(Send(source, ResumeFiltering()))
        return outputs

    def _served(self, message: Passed, wanted_by: Mapping[str, list[Key]]) -> dict[str, list[Key]]:
        """Return the clients who are told of an event in any case, with the subscriptions because of which they are."""
        if message.attempt == 2 or message.key in self._withdrawals:
            return {}
        return {peer: keys for peer, keys in wanted_by.items() if peer in self._ranks}

    def _delivered(self, ranked: Iterable[RankedDelivery]) -> list[Output]:
        """Return what is delivered because the desk says so."""
        outputs: list[Output] = []
        for telling in ranked:
            outputs += self._deliveries(telling.publication, telling.clients)
        return outputs

    def _deliveries(self, publication: Publish, clients: Mapping[str, list[Key]]) -> list[Deliver]:
        """Return what clients are told of an event, because of these of their subscriptions."""
        if not self.table.has_priorities:
            return [Deliver(client, publication, tuple(keys)) for client, keys in clients.items()]
        return [self._delivery(client, publication, keys) for client, keys in clients.items()]

    def _delivery(self, client: str, message: Publish, keys: list[Key]) -> Deliver:
        priorities = [self.table.priority(client, key) for key in keys]
        if any(priorities):  # of one priority in their order
            order = sorted(range(len(keys)), key=lambda place: -priorities[place])
            return Deliver(
                client, message, tuple(keys[each] for each in order), tuple(priorities[each] for each in order)
            )
        return Deliver(client, message, tuple(keys))

    @abstractmethod
    def _moves(self, now: float) -> list[Output]:
        """Return what neighbours are told because thresholds of ranked subscriptions have moved."""

    # -- Second attempts, and withdrawing

    def _second_attempts(self, now: float) -> list[Output]:
        """Return what comes of the events that leave the recent buffer."""
        return [output for passed in self._recent.expired(now) for output in self._route(passed, _NOBODY, now)]

    def _withdrawn(self, key: Key, at: float | None, source: str, now: float) -> list[Output]:
        """Let nobody be told of an event any more, and let neighbours hear of that."""
        if source in self._clients:
            if self._seen.publisher(key) != source:
                return [Reject(source, key, f"{source!r} has published no event {key!r:.60} that is remembered here")]
            at = now
        if key in self._withdrawals:
            return []
        self._withdrawals.add(key)
        assert at is not None, "the message was checked"
        outputs = self._delivered(self.desk.withdraw(key, at, now)) + self._moves(now)
        return outputs + [Send(each, Withdraw(key, at)) for each in self._links if each != source]

    # -- Adaptive filtering

    def _note_going(self, neighbour: str, link: Link, is_match: bool, now: float) -> bool:
        """Return whether an event goes to a neighbour, and note it: the neighbour may get all events from then on."""
        if link.rates is None:
            return is_match
        if not link.rates.is_filtering:
            return True
        if link.rates.note_sent(is_match, now):
            link.rates.is_filtering = False
            self.table.mute(neighbour)
        return is_match

    def _note_received(self, source: str, *, is_wanted: bool, event: Mapping[str, Any]) -> bool:
        """Take note of an event that a peer sent; is it a neighbour that should filter again?"""
        origin = self._links.get(source)
        if origin is None or origin.rates is None:
            return False
        return origin.rates.note_received(is_wanted or self.desk.may_want(event))

    def _filter_again(self, neighbour: str, now: float) -> None:
        rates = self._link(neighbour).rates
        if rates is not None:
            rates.asked(now)
            if not rates.is_filtering:
                rates.is_filtering = True
                self.table.unmute(neighbour)

    def _link(self, neighbour: str) -> Link:
        try:
            return self._links[neighbour]
        except KeyError:
            raise UnknownPeerError(self.name, neighbour) from None
