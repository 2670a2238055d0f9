"""Does a network keep its promises?

A checker looks on from outside. It knows what clients asked for, what was published and what arrived, and nothing of
how brokers decide. It finds:

    lost        an event that did not reach a client whose subscription had spread before, and stayed
    twice       an event that reached a client, or crossed a link, a second time
    unasked     an event for a client that did not want it, or for other subscriptions than those that match
    detour      an event on a link behind which nobody wants it (of perfect strategies), or missing where somebody does
    tables      what a broker told a neighbour and what the neighbour knows are not the same; or something is left at
    the end

A subscription *has spread* when the network was quiet after it was made. While faults happen, events may be lost;
nothing may come twice or unasked even then; and once the network is quiet again, nothing is lost any more between
brokers that reach each other. A broker that is started anew remembers nothing: an event that is published again may
reach its clients again.

Source: valid and perfect routing are Mühl et al. 2002, section 2.2 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.expressions import TRUE
from tamis.language.meaning import holds
from tamis.routing import Flooding, Publish
from tamis.simulation.occurrences import (
    Carried,
    Delivered,
    Failed,
    Occurrence,
    Published,
    Quiet,
    Subscribed,
    Unsubscribed,
)

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.routing.messages import Key
    from tamis.simulation.network import Network

_Filters = dict[tuple[str, "Key"], "Expression"]


class _Pending:
    """An event that may still be under way."""

    def __init__(self, occurrence: Published, due: set[tuple[str, Key]], is_calm: bool, is_accepted: bool) -> None:
        self.broker = occurrence.broker
        self.publication = occurrence.publication
        self.due = due
        """The subscriptions that must get it."""
        self.is_calm = is_calm
        """Did nobody subscribe, unsubscribe or fail meanwhile?"""
        self.is_accepted = is_accepted
        self.reached: set[str] = set()
        self.crossed: set[frozenset[str]] = set()


class Checker:
    """Somebody who looks on."""

    def __init__(self, network: Network, *, is_perfect: bool = False, uses_advertisements: bool = False) -> None:
        self.problems: list[str] = []
        self._network = network
        self._is_perfect = is_perfect
        self._uses_advertisements = uses_advertisements
        self._active: _Filters = {}
        self._advertised: _Filters = {}
        self._settled: set[tuple[str, Key]] = set()
        self._settled_advertisements: set[tuple[str, Key]] = set()
        self._is_calm = False
        self._has_no_faults = True
        self._pending: dict[Key, _Pending] = {}
        self._published_keys: set[Key] = set()
        self._delivered: set[tuple[str, Key]] = set()
        self.expected_count = 0
        """How many deliveries were due."""
        self.calm_count = 0
        """How many events' ways were compared with the ways that were needed."""
        network.observers.append(self.notice)

    def knows(self, client: str, key: Key, filter_: Expression) -> None:
        """Take note of a subscription that was there before the checker, and has spread once the network is quiet."""
        self._active[client, key] = filter_

    def notice(self, occurrence: Occurrence) -> None:
        """Take note of what happened."""
        match occurrence:
            case Subscribed(client, key, filter_, is_advertisement):
                self._gone(client, key, is_advertisement)
                (self._advertised if is_advertisement else self._active)[client, key] = filter_
            case Unsubscribed(client, key, is_advertisement):
                self._gone(client, key, is_advertisement)
            case Published():
                self._published(occurrence)
            case Carried(source, target, Publish() as publication):
                self._carried(source, target, publication)
            case Delivered(client, publication, keys):
                self._arrived(client, publication, keys)
            case Failed(_, restarted):
                self._disturb()
                self._forget(restarted)
                self._has_no_faults = False
                self._settled, self._settled_advertisements = set(), set()
                for pending in self._pending.values():
                    pending.due = set()
            case Quiet():
                self._quiet()

    def _disturb(self) -> None:
        self._is_calm = False
        for pending in self._pending.values():
            pending.is_calm = False

    def _forget(self, broker: str | None) -> None:
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
        return {source for source, filter_ in self._active.items() if holds(filter_, publication.event)}

    def _published(self, occurrence: Published) -> None:
        publication = occurrence.publication
        if publication.key in self._pending:
            return  # the publisher says it again, to be sure
        matching = {
            source
            for source, filter_ in self._advertised.items()
            if source[0] == occurrence.client and holds(filter_, publication.event)
        }
        is_accepted = bool(matching) or not self._uses_advertisements
        has_spread = not self._uses_advertisements or bool(matching & self._settled_advertisements)
        is_first = publication.key not in self._published_keys
        self._published_keys.add(publication.key)
        due: set[tuple[str, Key]] = set()
        if has_spread and is_first:
            within_reach = self._before(occurrence.broker)
            wanting = self._wanting(publication) & self._settled
            due = {source for source in wanting if self._network.clients[source[0]].home in within_reach}
        self._pending[publication.key] = _Pending(occurrence, due, self._is_calm and is_first, is_accepted)

    def _carried(self, source: str, target: str, publication: Publish) -> None:
        pending = self._pending.get(publication.key)
        if pending is not None:
            link = frozenset((source, target))
            if link in pending.crossed and pending.is_accepted and self._has_no_faults:
                self.problems.append(f"twice: {publication.key} crossed {source}-{target} again")
            pending.crossed.add(link)

    def _arrived(self, client: str, publication: Publish, keys: tuple[Key, ...]) -> None:
        if (client, publication.key) in self._delivered:
            self.problems.append(f"twice: {client} got {publication.key} again")
        self._delivered.add((client, publication.key))
        wanted = {key for name, key in self._wanting(publication) if name == client}
        if wanted != set(keys) or len(set(keys)) < len(keys) or not keys:
            self.problems.append(
                f"unasked: {client} got {publication.key} for {keys}, wanted for {sorted(map(str, wanted))}"
            )
        if publication.key in self._pending:
            self._pending[publication.key].reached.add(client)

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
        self._has_no_faults = True
        self._check_tables()

    # -- Ways

    def _check_way(self, pending: _Pending) -> None:
        self.calm_count += 1
        homes = {self._network.clients[client].home for client, _ in self._wanting(pending.publication)}
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
        found: set[frozenset[str]] = set()
        for home in homes & before.keys():
            while home != start:
                found.add(frozenset((home, before[home])))
                home = before[home]
        return found

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

    # -- Tables

    def _check_tables(self) -> None:
        for name, broker in self._network.brokers.items():
            for neighbour in broker.neighbours:
                told = {entry.key: entry.filter for entry in broker.told(neighbour)}
                if told != self._network.brokers[neighbour].table.of(name):
                    self.problems.append(f"tables: {neighbour} does not know what {name} told it")

    def check_empty(self) -> None:
        """Check that nothing is left: to be called when nobody wants anything any more, and all is quiet."""
        is_flooded = any(isinstance(broker.strategy, Flooding) for broker in self._network.brokers.values())
        for name, broker in self._network.brokers.items():
            for peer, key, filter_ in broker.table.entries():
                if not is_flooded or filter_ != TRUE:  # who floods wants everything, always
                    self.problems.append(f"tables: {name} still knows {key}, {filter_} of {peer}")
            for neighbour in broker.neighbours:
                if self._network.brokers[neighbour].advertising is not None and broker.advertised_by(neighbour):
                    self.problems.append(f"tables: {name} still knows advertisements of {neighbour}")
