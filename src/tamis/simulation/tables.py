"""Do brokers know of each other what they need to know, and nothing else? Convergence of routing tables.

Whenever a network is quiet, on every link and in both directions:

    known     what was said on the link, what its sender says that it told, and what the receiver knows are the same;
              and of clients a broker knows what they want and advertise
    valid     what is told covers every subscription behind the sender which something behind the receiver may concern
    perfect   it matches nothing that none of them matches, if all strategies are perfect
    placed    with advertisements, a filter is told only where something is advertised that overlaps it, or the whole
              filter of which merging made several pieces
    left      when nobody wants anything any more, nothing is told; but for brokers that flood, which always want
              everything, and for what brokers advertise themselves, because they announce

And at any moment, quiet or not:

    never     when TRUE is taken back that a neighbour was told for the time being, what it was told instead covers all
    narrow    that is known to be wanted there and then

Advertisements are held to the same, the other way round. What filters match is compared on a *world* of some events; it
is not a proof, and needs none, as all of it is asked again in every run.

Source: valid and perfect routing are Mühl et al. 2002, section 2.2; where subscriptions go with advertisements is
section 2.7 (docs/bibliography.md).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import TRUE
from tamis.language.meaning import holds
from tamis.relations import identical, overlaps
from tamis.routing import (
    Advertise,
    Flooding,
    Hello,
    ImperfectMerging,
    Merging,
    Pruned,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from tamis.routing.announcements import announced_by
from tamis.routing.messages import PROVISIONAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing import Broker, Message, Strategy
    from tamis.routing.messages import Key
    from tamis.simulation.network import Network

Filters = dict[tuple[str, "Key"], "Expression"]
"""What clients want or advertise, by client and key."""


class World:
    """Some events, and which of them filters match.

    >>> import tamis
    >>> world = World([{"x": 1}, {"x": 2}, {"x": 3}])
    >>> bin(world.where(tamis.parse("x > 1"))), bin(world.anywhere([]))
    ('0b110', '0b0')
    """

    def __init__(self, events: Sequence[Mapping[str, Any]], schema: Schema | None = None) -> None:
        self.events = events
        self.schema = schema
        self.where = lru_cache(1 << 14)(self._where)
        """A number with a bit for each event that a filter matches."""

    def _where(self, filter_: Expression) -> int:
        return sum(1 << number for number, event in enumerate(self.events) if holds(filter_, event, self.schema))

    def anywhere(self, filters: Iterable[Expression]) -> int:
        """Return the same for events that any of some filters matches."""
        events = 0
        for each in filters:
            events |= self.where(each)
        return events


class _Announced:
    """What one broker said to another since they greeted."""

    def __init__(self) -> None:
        self.filters: dict[Key, Expression] = {}
        self.advertisements: dict[Key, Expression] = {}

    def take(self, message: Message) -> None:
        match message:
            case Hello(entries, advertisements):
                self.filters.update({entry.key: entry.condition for entry in entries})
                self.advertisements.update({entry.key: entry.condition for entry in advertisements})
                return
            case Subscribe(entries, keys) | Unsubscribe(keys, entries):
                known = self.filters
            case Advertise(entries, keys) | Unadvertise(keys, entries):
                known = self.advertisements
            case _:
                return
        known.update({entry.key: entry.condition for entry in entries})
        for key in keys:
            known.pop(key, None)


class Tables:
    """What brokers say to each other, and whether their tables are as they should be.

    `world` is a sample of events; without one, what filters match is not compared. `announces` says that brokers
    advertise what they announce.
    """

    def __init__(
        self, network: Network, *, is_perfect: bool, announces: bool, world: World | None, schema: Schema | None = None
    ) -> None:
        self._network = network
        self._is_perfect = is_perfect
        self._announces = announces
        self.world = world
        self._schema = schema
        self._said: dict[tuple[str, str], _Announced] = {}
        self.narrow: list[str] = []
        """What was wrong when TRUE was taken back."""
        for source, target, message in network.travel:
            self.carried(source, target, message)

    def carried(self, source: str, target: str, message: Message) -> None:
        """Take note of what a broker says to another."""
        if isinstance(message, Hello) and not message.part:
            self._said[source, target] = _Announced()
        if (source, target) in self._said:
            self._said[source, target].take(message)
            if _ends_provisional(message):
                self.narrow += self._too_narrow(source, target)

    def problems(self, wanted: Filters, advertised: Filters) -> Iterator[str]:
        """Say what is wrong with tables, as clients want and advertise this, and all is quiet."""
        by_client = _by_client(wanted), _by_client(advertised)
        for name, broker in self._network.brokers.items():
            yield from _wrong_peers(name, broker, *by_client)
            for neighbour in broker.neighbours:
                yield from self._unknown(name, neighbour)
                yield from self._misplaced(name, neighbour)
                if self.world is not None and not self._network.guards:  # which of them count depends on the way
                    yield from self._incomplete(name, neighbour, wanted, advertised, self.world)

    # -- Never narrow

    def _too_narrow(self, source: str, target: str) -> Iterator[str]:
        broker = self._network.brokers.get(source)
        if broker is None or self.world is None:
            return
        wanted = [filter_ for peer in broker.table.peers if peer != target for filter_ in self._final(broker, peer)]
        if broker.advertising is not None:
            may_come = list(broker.heeded_of(target).values())
            wanted = [each for each in wanted if any(_overlap(each, other, self._schema) for other in may_come)]
        sent = self.world.anywhere(self._said[source, target].filters.values())
        may_cross = self.world.where(self._network.guards.get((target, source), TRUE))
        if missing := self.world.anywhere(wanted) & may_cross & ~sent:
            yield f"tables: {source} took TRUE back from {target} too soon{_such(missing, self.world)}"

    def _final(self, broker: Broker, peer: str) -> list[Expression]:
        """Return what a peer wants of a broker, and not just for the time being."""
        if peer not in broker.neighbours:
            return list(broker.table.of(peer).values())
        return [
            filter_ for number, filter_ in broker.wanted_by(peer).items() if isinstance(number, int) and number >= 0
        ]

    # -- Known

    def _unknown(self, source: str, target: str) -> Iterator[str]:
        known = self._network.brokers[target].wanted_by(source)
        if {entry.key: entry.condition for entry in self._network.brokers[source].told(target)} != known:
            yield f"tables: {target} does not know what {source} sent it"
        said = self._said.get((source, target))
        if said is not None and said.filters != known:
            yield f"tables: {target} knows other filters than {source} said"
        if said is not None and said.advertisements != self._network.brokers[target].advertised_by(source):
            yield f"tables: {target} knows other advertisements than {source} said"

    # -- Valid, perfect, placed

    def _misplaced(self, source: str, target: str) -> Iterator[str]:
        broker = self._network.brokers[source]
        if broker.advertising is None or floods(broker.strategy):
            return
        advertised = list(broker.heeded_of(target).values())
        for entry in broker.told(target):
            if not any(_overlap(entry.condition, each, self._schema) for each in advertised) and not (
                _merges(broker.strategy) and self._is_piece(entry.condition, broker, target, advertised)
            ):
                yield f"tables: {source} sent {target} {entry.condition}, and nothing like it may come from there"

    def _is_piece(self, filter_: Expression, broker: Broker, target: str, advertised: list[Expression]) -> bool:
        """Is it a piece, cut off a merger, of a filter that as a whole does concern the receiver?"""
        return any(
            _overlap(filter_, each, self._schema) and any(_overlap(each, other, self._schema) for other in advertised)
            for peer, _, each in broker.table.entries()
            if peer != target
        )

    def _incomplete(
        self, source: str, target: str, wanted: Filters, advertised: Filters, world: World
    ) -> Iterator[str]:
        here, there = self._side(source, target), self._side(target, source)
        wishes = self._behind(here, wanted)
        announced = world.anywhere(entry.condition for entry in self._network.brokers[source].told(target))
        if self._is_perfect and (vain := announced & ~world.anywhere(wishes)):
            yield f"tables: {source} sent {target} what nobody wants{_such(vain, world)}"
        if self._network.brokers[source].advertising is not None:
            may_come = self._offered(there, advertised, world)
            wishes = [each for each in wishes if world.where(each) & may_come]
        if missing := world.anywhere(wishes) & ~announced:
            yield f"tables: {source} did not tell {target} all that is wanted{_such(missing, world)}"
        yield from self._wrong_advertisements(source, target, advertised, world)

    def _wrong_advertisements(self, source: str, target: str, advertised: Filters, world: World) -> Iterator[str]:
        if (source, target) not in self._said:
            return
        here = self._side(source, target)
        announced = world.anywhere(self._said[source, target].advertisements.values())
        needed = self._offered(here, advertised, world)
        if missing := needed & ~announced:
            yield f"tables: {source} did not tell {target} all that is advertised{_such(missing, world)}"
        strategies = [self._network.brokers[name].advertising for name in here]
        if all(each is not None and each.is_perfect for each in strategies) and (vain := announced & ~needed):
            yield f"tables: {source} sent {target} what nobody advertised{_such(vain, world)}"

    def _offered(self, brokers: set[str], advertised: Filters, world: World) -> int:
        """Return what may come from some brokers: what clients advertised, or anything."""
        if any(self._network.brokers[name].advertising is None for name in brokers):
            return world.where(TRUE)
        return world.anywhere(self._behind(brokers, advertised))

    def _behind(self, brokers: set[str], filters: Filters) -> list[Expression]:
        clients = self._network.clients
        return [filter_ for (client, _), filter_ in filters.items() if clients[client].home in brokers]

    def _side(self, start: str, other: str) -> set[str]:
        """Return the brokers that one reaches without another."""
        reached = {start}
        order = [start]
        for broker in order:
            for neighbour in self._network.brokers[broker].neighbours:
                if neighbour not in reached and (broker, neighbour) != (start, other):
                    reached.add(neighbour)
                    order.append(neighbour)
        return reached

    # -- Left

    def left(self) -> Iterator[str]:
        """Say what is left, when nobody wants or advertises anything any more."""
        brokers = self._network.brokers
        for name, broker in brokers.items():
            if broker.lease_count:
                yield f"tables: {name} still waits for a lease to end"
            for peer, key, filter_ in broker.table.entries():
                is_everything = self._is_everything(filter_) or bool(self._network.guards)  # all that may pass
                if not is_everything or not self._is_flooded(peer, name):
                    yield f"tables: {name} still knows {key}, {filter_} of {peer}"
            for neighbour in broker.neighbours:
                for filter_ in broker.advertised_by(neighbour).values():
                    if not self._is_constant(filter_, neighbour, name):
                        yield f"tables: {name} still knows that {filter_} may come from {neighbour}"

    def _is_everything(self, filter_: Expression) -> bool:
        """Does every event match? With a schema, that may be said in many ways."""
        return filter_ == TRUE or bool(identical(filter_, TRUE, self._schema))

    def _is_flooded(self, source: str, target: str) -> bool:
        """Does somebody flood from whom a broker hears by another?"""
        return source in self._network.brokers[target].neighbours and any(
            floods(self._network.brokers[name].strategy) for name in self._side(source, target)
        )

    def _is_constant(self, filter_: Expression, source: str, target: str) -> bool:
        """Is it what a broker advertises however little its clients do?"""
        side = self._side(source, target)
        strategies = [self._network.brokers[name].advertising for name in side]
        if self._is_everything(filter_) and any(each is None or floods(each) for each in strategies):
            return True
        return self._announces and any(_overlap(filter_, announced_by(name), self._schema) for name in side)


def _ends_provisional(message: Message) -> bool:
    match message:
        case Subscribe(_, keys) | Unsubscribe(keys):
            return PROVISIONAL in keys
    return False


def floods(strategy: Strategy) -> bool:
    """Does a strategy want everything, always?

    >>> from tamis.pruning import Goal
    >>> from tamis.routing import Covering
    >>> floods(Pruned(Flooding(), Goal(count=1), lambda _: 0.5)), floods(Covering())
    (True, False)
    """
    while isinstance(strategy, Pruned):
        strategy = strategy.inner
    return isinstance(strategy, Flooding)


def _merges(strategy: Strategy) -> bool:
    while isinstance(strategy, Pruned):
        strategy = strategy.inner
    return isinstance(strategy, Merging | ImperfectMerging)


def _wrong_peers(
    name: str,
    broker: Broker,
    wanted: Mapping[str, Mapping[Key, Expression]],
    advertised: Mapping[str, Mapping[Key, Expression]],
) -> Iterator[str]:
    for peer in sorted({peer for peer, _, _ in broker.table.entries()}):
        if peer not in broker.neighbours and peer not in broker.clients:
            yield f"tables: {name} still knows filters of {peer}, which is gone"
    for client in broker.clients:
        if broker.table.of(client) != wanted.get(client, {}):
            yield f"tables: {name} does not know what {client} wants"
        if broker.advertised_by(client) != advertised.get(client, {}):
            yield f"tables: {name} does not know what {client} advertised"


def _by_client(filters: Filters) -> dict[str, dict[Key, Expression]]:
    grouped: dict[str, dict[Key, Expression]] = {}
    for (client, key), filter_ in filters.items():
        grouped.setdefault(client, {})[key] = filter_
    return grouped


def _such(events: int, world: World) -> str:
    return f", such as {dict(world.events[(events & -events).bit_length() - 1])}"


@lru_cache(1 << 16)
def _overlap(one: Expression, two: Expression, schema: Schema | None) -> bool:
    return overlaps(one, two, schema).holds
