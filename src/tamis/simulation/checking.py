"""Does a network keep its promises? Invariants, checked from outside.

A checker looks on from outside. It knows what clients asked for, what was published and what arrived, and nothing of
how brokers decide. It finds:

    lost        an event that did not reach a client whose subscription had spread before, and stayed
    twice       an event that reached a client, or crossed a link, a second time
    unasked     an event for a client that did not want it, or for other subscriptions than those that match; or one
                that nobody had published, or was not allowed to
    detour      an event on a link behind which nobody wants it (of perfect strategies), or missing where somebody does
    tables      a broker knows too much or too little of a neighbour (`tables`), or something is left at the end; or
                TRUE is taken back too soon

A subscription *has spread* when the network was quiet after it was made, or its client was told that it is settled, and
so has an advertisement. A lease is over
when its client says so, and not a moment earlier or later: what is published at that time, or after it, is unasked.

What is promised without faults, and what with them:

- Nothing comes unasked, ever. Nothing reaches a client twice, either, unless its broker was started anew in between,
  and has forgotten; and then only if the event was still under way, or is published again.
- An event from whose publication until the network is quiet nothing fails or is mended crosses no link twice, however
  much failed before. If something does, it may have to: the tree has changed around it.
- An event that is published when the network was quiet after the last fault, and during which nothing fails, is not
  lost between brokers that reach each other, and takes the ways that it needs. Any other may be lost.
- When the ends of a link begin again, what is under way may be lost. What is published after that is not: what brokers
  said stays in force. When a broker is started anew, only what has to pass through it is lost, until it is quiet: it
  does not know yet where that has to go.
- Whenever the network is quiet, tables are right, faults or not.

An announcement is an event of the broker that makes it, published when it is first seen: a broker that announces
nothing at all is not found out here.

Source: valid and perfect routing are Mühl et al. 2002, section 2.2 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import EventError
from tamis.language.expressions import Expression
from tamis.language.meaning import holds
from tamis.routing import Publish
from tamis.routing.announcements import is_announcement, is_reminder
from tamis.simulation.errors import WrongStateError
from tamis.simulation.occurrences import (
    ClientSubscribed,
    ClientUnsubscribed,
    EventDelivered,
    EventPublished,
    Expired,
    Failed,
    MessageCarried,
    Occurrence,
    Quiet,
    Renewed,
    Settled,
)
from tamis.simulation.tables import Filters, Tables, World
from tamis.topk import Ranked

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.routing.messages import Key
    from tamis.simulation.network import Network


class _EventUnderWay:
    """An event that may still be under way."""

    def __init__(self, occurrence: EventPublished, due: set[tuple[str, Key]], is_calm: bool, is_accepted: bool) -> None:
        self.broker = occurrence.broker
        self.publication = occurrence.publication
        self.due = due
        """The subscriptions that must get it."""
        self.is_calm = is_calm
        """Did nobody subscribe, unsubscribe or fail meanwhile?"""
        self.is_whole = True
        """Did nothing fail meanwhile?"""
        self.is_accepted = is_accepted
        """Had its publisher advertised it, or no need to; and did it fit the schema?"""
        self.reached: set[str] = set()
        self.crossed: set[frozenset[str]] = set()


class Checker:
    """Somebody who looks on.

    `is_perfect` says that no event may go where nobody wants it, `announces` that brokers advertise what they announce.
    On the events of a `world` it is compared what filters in tables match. What does not fit the `schema` of the
    network goes nowhere.
    """

    def __init__(
        self,
        network: Network,
        *,
        is_perfect: bool = False,
        announces: bool = False,
        world: World | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.problems: list[str] = []
        self._network = network
        self._is_perfect = is_perfect
        self._schema = schema
        self._tables = Tables(network, is_perfect=is_perfect, announces=announces, world=world, schema=schema)
        self._active: Filters = {}
        self._advertised: Filters = {}
        self._settled: set[tuple[str, Key]] = set()
        self._settled_advertisements: set[tuple[str, Key]] = set()
        self._is_calm = False
        self._anew: set[str] = set()
        """The brokers that were started anew since it was quiet, while their neighbours kept what they said."""
        self._pending: dict[Key, _EventUnderWay] = {}
        self._published_keys: set[Key] = set()
        self._delivered: set[tuple[str, Key]] = set()
        self.expected_count = 0
        """How many deliveries were due."""
        self.settled_count = 0
        """How often a client was told that something is in force everywhere, which still was."""
        self.calm_count = 0
        """How many events' ways were compared with the ways that were needed."""
        network.observers.append(self.notice)

    def assume_spread(self, client: str, key: Key, filter_: Expression) -> None:
        """Take note of a subscription that was there before the checker, and has spread once the network is quiet."""
        self._active[client, key] = filter_

    def notice(self, occurrence: Occurrence) -> None:
        """Take note of what happened."""
        match occurrence:
            case ClientSubscribed(filter=Ranked()):
                raise WrongStateError("a client", "one who wants the best k", "look on with a RankedChecker")
            case ClientSubscribed(client, key, Expression() as filter_, is_advertisement):
                filters = self._advertised if is_advertisement else self._active
                if filters.get((client, key)) != filter_:  # otherwise a lease is renewed, and nothing changes
                    self._gone(client, key, is_advertisement)
                    filters[client, key] = filter_
            case ClientUnsubscribed(client, key, is_advertisement) | Expired(client, key, is_advertisement):
                self._gone(client, key, is_advertisement)
            case EventPublished():
                self._published(occurrence)
            case MessageCarried(source, target, message):
                if isinstance(message, Publish):
                    self._carried(source, target, message)
                else:
                    self._tables.carried(source, target, message)
            case EventDelivered(client, publication, keys):
                self._arrived(client, publication, keys)
            case Failed(_, restarted):
                self._failed(restarted)
            case Settled(client, key, filter_, is_advertisement):
                self._note_settled(client, key, filter_, is_advertisement)
            case Renewed(broker):
                self._renewed(broker)
            case Quiet():
                self._quiet()

    def _disturb(self) -> None:
        self._is_calm = False
        for pending in self._pending.values():
            pending.is_calm = False

    def _failed(self, restarted: str | None) -> None:
        self._disturb()
        self._forget_deliveries(restarted)
        self._settled, self._settled_advertisements = set(), set()
        for pending in self._pending.values():
            pending.due = set()
            pending.is_whole = False

    def _renewed(self, broker: str | None) -> None:
        self._disturb()
        if broker is not None:
            self._anew.add(broker)
            self._forget_deliveries(broker)
        for pending in self._pending.values():
            pending.due = set()
            pending.is_whole = False

    def _note_settled(self, client: str, key: Key, filter_: Expression, is_advertisement: bool) -> None:
        filters = self._advertised if is_advertisement else self._active
        if filters.get((client, key)) == filter_:  # otherwise it has changed since
            self.settled_count += 1
            (self._settled_advertisements if is_advertisement else self._settled).add((client, key))

    def _forget_deliveries(self, broker: str | None) -> None:
        """A broker that was started anew does not know which events its clients had."""
        here = {client.name for client in self._network.clients.values() if client.home == broker}
        self._delivered = {each for each in self._delivered if each[0] not in here}

    def _gone(self, client: str, key: Key, is_advertisement: bool) -> None:
        self._disturb()
        if is_advertisement:
            self._advertised.pop((client, key), None)
            self._settled_advertisements.discard((client, key))
            return
        self._active.pop((client, key), None)
        self._settled.discard((client, key))
        for pending in self._pending.values():
            pending.due.discard((client, key))

    def _wanting(self, publication: Publish) -> set[tuple[str, Key]]:
        return {source for source, filter_ in self._active.items() if holds(filter_, publication.event, self._schema)}

    # -- Events

    def _published(self, occurrence: EventPublished) -> None:
        publication = occurrence.publication
        before = self._pending.get(publication.key)
        if before is not None and before.is_accepted:
            return  # the publisher says it again, to be sure
        has_spread = is_accepted = True
        is_own = is_announcement(publication.event)
        if self._network.brokers[occurrence.broker].advertising is not None and not is_own:
            matching = {
                source
                for source, filter_ in self._advertised.items()
                if source[0] == occurrence.client and holds(filter_, publication.event, self._schema)
            }
            is_accepted, has_spread = bool(matching), bool(matching & self._settled_advertisements)
        if not self._fits(publication):
            is_accepted = has_spread = False
        is_first = publication.key not in self._published_keys
        if is_accepted:
            self._published_keys.add(publication.key)
        due: set[tuple[str, Key]] = set()
        if has_spread and is_first:
            ways = self._before(occurrence.broker)
            wanting = self._wanting(publication) & self._settled
            due = {
                source
                for source in wanting
                if self._is_known_way(ways, home := self._network.clients[source[0]].home)
                and self._is_open_way(ways, home, publication)
            }
        self._pending[publication.key] = _EventUnderWay(occurrence, due, self._is_calm and is_first, is_accepted)

    def _is_known_way(self, before: dict[str, str], home: str) -> bool:
        """Is a broker within reach, by others who all know the way? Whoever was started anew knows its clients only."""
        if home not in before:
            return False
        while before[home] != home:
            home = before[home]
            if home in self._anew:
                return False
        return True

    def _may_cross(self, source: str, target: str, publication: Publish) -> bool:
        guard = self._network.guards.get((source, target))
        return guard is None or holds(guard, publication.event, self._schema)

    def _is_open_way(self, before: dict[str, str], home: str, publication: Publish) -> bool:
        """May an event go all the way to a broker, whatever guards say on it?"""
        while before[home] != home:
            if not self._may_cross(before[home], home, publication):
                return False
            home = before[home]
        return True

    def _fits(self, publication: Publish) -> bool:
        """Can an event be read in the types of the schema, and has it all that is mandatory?"""
        if self._schema is None:
            return True
        try:
            self._schema.conform(publication.event)
        except EventError:
            return False
        return True

    def _seen(self, publication: Publish, broker: str) -> _EventUnderWay | None:
        """Return what is known of an event that goes somewhere; an announcement is published when it first does so."""
        event = publication.event
        if publication.key not in self._published_keys and is_announcement(event) and event["broker"] == broker:
            self._published(EventPublished(event["client"], broker, publication))
        pending = self._pending.get(publication.key)
        if pending is None:
            self.problems.append(f"unasked: {publication.key} goes on from {broker}, though it was at rest")
        elif not pending.is_accepted:
            self.problems.append(f"unasked: {publication.key} goes on from {broker}, though it was refused")
        return pending

    def _carried(self, source: str, target: str, publication: Publish) -> None:
        pending = self._seen(publication, source)
        if pending is not None:
            link = frozenset((source, target))
            if not self._may_cross(source, target, publication):
                self.problems.append(f"unasked: {publication.key} left {source} for {target}, where it may not go")
            if link in pending.crossed and pending.is_whole:
                self.problems.append(f"twice: {publication.key} crossed {source}-{target} again")
            pending.crossed.add(link)

    def _arrived(self, client: str, publication: Publish, keys: tuple[Key, ...]) -> None:
        if is_reminder(publication.key):
            self._reminded(client, publication, keys)
            return
        if (client, publication.key) in self._delivered:
            self.problems.append(f"twice: {client} got {publication.key} again")
        self._delivered.add((client, publication.key))
        pending = self._seen(publication, self._network.clients[client].home)
        if pending is not None:
            pending.reached.add(client)
        wanted = {key for name, key in self._wanting(publication) if name == client}
        wrong = wanted ^ set(keys)
        if is_announcement(publication.event) and publication.event["client"] == client:
            wrong -= {key for key in wrong if str(key) == publication.event["key"]}  # it is just coming, or leaving
        if wrong or len(set(keys)) < len(keys) or not keys:
            self.problems.append(
                f"unasked: {client} got {publication.key} for {keys}, wanted for {sorted(map(str, wanted))}"
            )

    def _reminded(self, client: str, publication: Publish, keys: tuple[Key, ...]) -> None:
        """Check that what a new listener hears is wanted, and so, if it is about a client of its own broker."""
        wanted = {key for name, key in self._wanting(publication) if name == client}
        if not keys or not wanted >= set(keys):
            self.problems.append(f"unasked: {client} was reminded for {keys}, wanted for {sorted(map(str, wanted))}")
        event = publication.event
        if event["client"]:
            filters = self._active if event["type"] == "tamis.Subscribed" else self._advertised
            known = {str(key): str(each) for (name, key), each in filters.items() if name == event["client"]}
            if known.get(event["key"]) != event["filter"]:
                self.problems.append(f"unasked: {client} was reminded of {event['key']}, which is not there")

    def _quiet(self) -> None:
        for key, pending in self._pending.items():
            due = {client for client, _ in pending.due}
            self.expected_count += len(due)
            self.problems += [f"lost: {client} did not get {key}" for client in sorted(due - pending.reached)]
            if pending.is_calm:
                self._check_way(pending)
        self._pending = {}
        self._settled, self._settled_advertisements = set(self._active), set(self._advertised)
        self._is_calm = True
        self._anew = set()
        self.problems += self._tables.narrow
        self._tables.narrow = []
        self.problems += self._tables.problems(self._active, self._advertised)

    # -- Ways

    def _check_way(self, pending: _EventUnderWay) -> None:
        self.calm_count += 1
        homes = {self._network.clients[client].home for client, _ in self._wanting(pending.publication)}
        ways = self._before(pending.broker)
        homes = {home for home in homes if home in ways and self._is_open_way(ways, home, pending.publication)}
        needed = self._ways(pending.broker, homes) if pending.is_accepted else set()
        key = pending.publication.key
        for link in sorted(map(sorted, needed - pending.crossed)):
            self.problems.append(f"detour: {key} did not cross {'-'.join(link)}")
        if self._is_perfect:
            for link in sorted(map(sorted, pending.crossed - needed)):
                self.problems.append(f"detour: {key} crossed {'-'.join(link)} in vain")

    def _ways(self, start: str, homes: set[str]) -> set[frozenset[str]]:
        """Return the links between a broker and some others."""
        before = self._before(start)
        edges: set[frozenset[str]] = set()
        for home in homes & before.keys():
            while home != start:
                edges.add(frozenset((home, before[home])))
                home = before[home]
        return edges

    def _before(self, start: str) -> dict[str, str]:
        """Return the brokers within reach of one, and for each the one before it on the way there."""
        beside: dict[str, list[str]] = {}
        for one, two in self._network.used:
            beside.setdefault(one, []).append(two)
            beside.setdefault(two, []).append(one)
        before: dict[str, str] = {start: start}
        order = [start]
        for broker in order:
            for other in beside.get(broker, ()):
                if other not in before:
                    before[other] = broker
                    order.append(other)
        return before

    def check_answer(self, client: str, filter_: Expression, is_wanted: bool | None) -> None:
        """Check that a client was not told that nobody wants something, if all is quiet and somebody does.

        With advertisements, it is about what the client has advertised: of anything else its broker need not know.
        """
        world = self._tables.world
        if is_wanted is not False or world is None:
            return
        home = self._network.clients[client].home
        asked = world.where(filter_)
        if any(broker.advertising is not None for broker in self._network.brokers.values()):
            asked &= world.anywhere(each for (name, _), each in self._advertised.items() if name == client)
        for (name, key), wish in self._active.items():
            if name != client and self._network.clients[name].home in self._before(home) and asked & world.where(wish):
                self.problems.append(f"lost: {client} heard that nobody wants {filter_}, and {name} does by {key}")

    def check_empty(self) -> None:
        """Check that nothing is left: to be called when nobody wants anything any more, and all is quiet."""
        assert not self._active
        assert not self._advertised
        self.problems += self._tables.left()
