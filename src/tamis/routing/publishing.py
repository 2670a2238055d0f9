"""What does a broker do with an event? Deduplication, admission, forwarding.

An event that was here before goes no further. One that a client publishes is looked at once, here: does it fit the
schema, may the client publish it? Whatever goes on is matched against the routing table; each client that wants it gets
it with the keys of the subscriptions that do, and each neighbour behind which somebody may want it, but never the one
that it came from.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from tamis.errors import EventError
from tamis.language.meaning import holds
from tamis.routing import announcements
from tamis.routing.acceptance import check_keys
from tamis.routing.errors import UnknownPeerError
from tamis.routing.memory import LatestKeys
from tamis.routing.messages import Deliver, Filter, Output, Publish, Reject, Send

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing.base import Strategy
    from tamis.routing.links import Link
    from tamis.routing.messages import Key
    from tamis.routing.table import RoutingTable


class PublishingPart:
    """The part of `Broker` that passes single events on."""

    def __init__(
        self, name: str, table: RoutingTable, schema: Schema | None, advertising: Strategy | None, remembered: int
    ) -> None:
        self.name = name
        self.table = table
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
        if message.key in self._seen:
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
        return self._route(message, source, now)

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

    def _route(self, message: Publish, source: str, now: float) -> list[Output]:
        self._seen.add(message.key)
        return self._passed_on(message, self.table.match(message.event), source, now)

    def _passed_on(self, message: Publish, wanted_by: Mapping[str, list[Key]], source: str, now: float) -> list[Output]:
        """Return what is delivered and sent of an event that was matched."""
        ranks = self._ranks
        clients = sorted((peer for peer in wanted_by if peer in ranks), key=ranks.__getitem__)
        deliveries = [self._delivery(client, message, wanted_by[client]) for client in clients]
        deliveries.sort(key=lambda each: -each.priority)  # of one priority in their order
        outputs: list[Output] = [*deliveries]
        for neighbour, link in self._links.items():
            if neighbour != source and self._note_going(neighbour, link, neighbour in wanted_by, now):
                outputs.append(Send(neighbour, message))
        if self._note_received(source, is_wanted=bool(outputs)):
            outputs.append(Send(source, Filter()))
        return outputs

    def _delivery(self, client: str, message: Publish, keys: list[Key]) -> Deliver:
        priorities = tuple(self.table.priority(client, key) for key in keys)
        return Deliver(client, message, tuple(keys), priorities if any(priorities) else ())

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

    def _note_received(self, source: str, *, is_wanted: bool) -> bool:
        """Take note of an event that a peer sent; is it a neighbour that should filter again?"""
        origin = self._links.get(source)
        return origin is not None and origin.rates is not None and origin.rates.note_received(is_wanted)

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
