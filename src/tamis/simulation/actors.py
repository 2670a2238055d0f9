"""What do clients do next, and what breaks?

An actor is chance with a list of things to do, each as often as its weight says. Filters come from a small pool in
which many are identical, cover, overlap or merge with others; where many are wanted at once, from a large one.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language.meaning import holds
from tamis.language.parser import parse
from tamis.pruning import Goal
from tamis.simulation.schemas import SCHEMAS, broken, filters, fitting
from tamis.simulation.tables import World
from tamis.topk import Ranked

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression
    from tamis.simulation.network import Network
    from tamis.simulation.scenarios import Scenario

_ATTRIBUTES = ("x", "y", "z")
_VALUES = 8
_TEXTS = ("", "a", "b", "ab", "abc", "bcdef")
_MEASURES = ("accuracy", "memory", "occurrence", "distance")
_CROWD = 45
"""So many filters a client of a crowd wants: more than are compared one by one."""


class Actor:
    """Chance, as far as it moves clients and breaks things."""

    def __init__(self, network: Network, chance: Random, scenario: Scenario) -> None:
        self._network = network
        self._chance = chance
        self._scenario = scenario
        self._schema = scenario.kept_schema
        self._asking = Random(scenario.seed)  # questions change nothing, and so nothing that is drawn after them
        self._count = 0
        self._published: list[tuple[str, str, dict[str, Any]]] = []
        self._actions: list[Callable[[], None]] = [self._subscribe, self._unsubscribe, self.publish]
        self._weights = [30, 15, 25]
        for is_done, weight, action in (
            (scenario.advertisements is not None, 15, self._advertise),
            (scenario.advertisements is not None, 6, self._unadvertise),
            (scenario.leases, 10, self._wait),
            (scenario.roams, 5, self._disconnect),
            (scenario.roams, 6, self._reconnect),
            (scenario.prunes_tables, 6, self._prune),
            (scenario.prunes_heeded, 6, self._prune_heeded),
            (scenario.has_faults, 10, self._break),
            (scenario.renews, 8, self._renew),
        ):
            if is_done:
                self._actions.append(action)
                self._weights.append(weight)
        if scenario.has_faults:
            network.travel.duplicate_share = 0.1

    def begin(self) -> None:
        """Let clients want and advertise something, so that there is something to see from the start."""
        network, chance = self._network, self._chance
        for number, name in enumerate(network.clients):
            if self._scenario.advertisements is not None and chance.random() < 0.7:
                network.advertise(name, "a0", condition_of(self._filter()))
            if self._scenario.is_crowded and number < 2:
                wanted = chance.sample(_crowd(), _CROWD)
                network.subscribe_many(name, {f"m{number}": each for number, each in enumerate(wanted)})

    def act(self) -> None:
        """Do something."""
        self._chance.choices(self._actions, self._weights)[0]()

    def publish(self) -> None:
        """Publish something, or the same again if links are bad."""
        chance = self._chance
        if self._published and self._scenario.has_faults and chance.random() < 0.1:
            self._network.publish(*chance.choice(self._published[-3:]))
            return
        self.publish_new()

    def publish_new(self) -> None:
        """Publish something that was not published before."""
        chance = self._chance
        self._count += 1
        client, event = chance.choice(list(self._network.clients)), self._event()
        advertising = [each for each in self._network.clients.values() if each.advertisements]
        if self._scenario.advertisements is not None and advertising and chance.random() < 0.9:
            publisher = chance.choice(advertising)
            client, filter_ = publisher.name, condition_of(chance.choice(list(publisher.advertisements.values())))
            event = next((each for each in (self._event() for _ in range(30)) if self._holds(filter_, each)), event)
        if self._schema is not None and chance.random() < 0.15:
            event = broken(event, self._schema, chance)
        self._published.append((client, f"e{self._count}", event))
        self._network.publish(client, f"e{self._count}", event)

    def ask(self) -> tuple[str, Expression, bool | None]:
        """Let somebody ask whether anybody else wants something; return who, what, and the answer."""
        client, filter_ = self._asking.choice(list(self._network.clients)), self._asking.choice(_pool())
        return client, filter_, self._network.ask(client, filter_)

    def leave(self) -> None:
        """Let everybody come back and take everything back."""
        for client in self._network.clients.values():
            if not client.is_connected:
                self._network.reconnect(client.name)
        wishes = [
            (client, is_advertisement, key)
            for client in self._network.clients.values()
            for is_advertisement in (False, True)
            for key in client.said(is_advertisement)
        ]
        if self._scenario.leaves_one_by_one:
            self._chance.shuffle(wishes)
        for client, is_advertisement, key in wishes:
            if key not in client.said(is_advertisement):
                continue  # its lease ended meanwhile
            if is_advertisement:
                self._network.unadvertise(client.name, key)
            else:
                self._network.unsubscribe(client.name, key)
            if self._scenario.leaves_one_by_one:
                self._let_some_arrive()

    def _let_some_arrive(self) -> None:
        if self._chance.random() < 0.5:
            self._network.run()
        for _ in range(self._chance.choice((0, 1, 2, 5))):
            if not self._network.is_quiet:
                self._network.step()

    def _event(self) -> dict[str, Any]:
        return _event(self._chance, self._schema)

    def _holds(self, filter_: Expression, event: dict[str, Any]) -> bool:
        return holds(filter_, event, SCHEMAS.get(self._schema or ""))

    # -- What clients do

    def _subscribe(self) -> None:
        chance = self._chance
        client = self._network.clients[chance.choice(list(self._network.clients))]
        key, filter_ = f"s{chance.randrange(4)}", self._filter()  # or what it wants the best of
        if self._scenario.leases and chance.random() < 0.3:
            filter_ = client.subscriptions.get(key, filter_)  # a lease is renewed, or another takes its place
        self._network.subscribe(client.name, key, filter_, self._lease())

    def _unsubscribe(self) -> None:
        client = self._chance.choice(list(self._network.clients.values()))
        if client.subscriptions:
            self._network.unsubscribe(client.name, self._chance.choice(list(client.subscriptions)))

    def _advertise(self) -> None:
        client = self._chance.choice(list(self._network.clients))
        self._network.advertise(client, f"a{self._chance.randrange(3)}", condition_of(self._filter()), self._lease())

    def _unadvertise(self) -> None:
        client = self._chance.choice(list(self._network.clients.values()))
        if client.advertisements:
            self._network.unadvertise(client.name, self._chance.choice(list(client.advertisements)))

    def _disconnect(self) -> None:
        self._network.disconnect(name) if (name := self._one_that(is_connected=True)) else None

    def _reconnect(self) -> None:
        self._network.reconnect(name) if (name := self._one_that(is_connected=False)) else None

    def _one_that(self, *, is_connected: bool) -> str | None:
        names = [each.name for each in self._network.clients.values() if each.is_connected == is_connected]
        return self._chance.choice(names) if names else None

    def _filter(self) -> Expression | Ranked:
        if self._scenario.announces and self._chance.random() < 0.2:
            return self._chance.choice(_about_announcements())
        if self._schema is not None and self._chance.random() < 0.5:
            return self._chance.choice(filters(self._schema))
        return self._chance.choice(_pool())

    def _lease(self) -> float | None:
        is_leased = self._scenario.leases and self._chance.random() < 0.4
        return self._chance.uniform(0.05, 1.5) if is_leased else None

    # -- What happens to them

    def _wait(self) -> None:
        self._network.wait(self._chance.uniform(0.0, 0.3))

    def _prune(self) -> None:
        broker = self._chance.choice(list(self._network.brokers.values()))
        broker.prune(Goal(share=self._chance.choice((0.0, 0.3, 0.6, 1.0))), measure=self._chance.choice(_MEASURES))

    def _prune_heeded(self) -> None:
        if self._network.brokers:
            broker = self._chance.choice(list(self._network.brokers))
            self._network.prune_advertisements(broker, Goal(share=self._chance.choice((0.0, 0.3, 0.6, 1.0))))

    def _renew(self) -> None:
        chance, network = self._chance, self._network
        if chance.random() < 0.5 and network.brokers:
            network.renew(chance.choice(list(network.brokers)))
        elif network.links:
            network.renew_link(chance.choice(network.links))

    def _break(self) -> None:
        chance, network = self._chance, self._network
        drawn = chance.random()
        if drawn < 0.3 and network.links:
            network.fail_link(chance.choice(network.links))
        elif drawn < 0.5 and network.links:
            network.mend_link(chance.choice(network.links))
        elif drawn < 0.75 and len(network.brokers) > 1:
            is_noticed = not self._scenario.link_leases or chance.random() < 0.4
            network.crash(chance.choice(list(network.brokers)), is_noticed=is_noticed)
        elif network.crashed:
            network.restart(chance.choice(network.crashed))


def condition_of(wanted: Expression | Ranked) -> Expression:
    """Return what an event has to fulfil, ranked or not."""
    return wanted.where if isinstance(wanted, Ranked) else wanted


def _event(chance: Random, schema: str | None) -> dict[str, Any]:
    event: dict[str, Any] = {name: chance.randrange(_VALUES) for name in _ATTRIBUTES if chance.random() < 0.9}
    if chance.random() < 0.7:
        event["s"] = chance.choice(_TEXTS)
    return event if schema is None else fitting(event, schema, chance)


def guards_of(links: list[tuple[str, str]], chance: Random) -> dict[tuple[str, str], Expression]:
    """Return what may cross some of the links, in one direction or in both."""
    texts = ("x < 6", "x IS NOT NULL", "y > 1 OR z > 1", "x >= 2", "NOT (y = 3)", "x < 3 AND y < 6")
    return {way: parse(chance.choice(texts)) for link in links for way in (link, link[::-1]) if chance.random() < 0.4}


@lru_cache
def world(schema: str | None = None) -> World:
    """Return events by which the filters of the pools are told apart; all of them fit the schema, if there is one."""
    chance = Random(3)
    return World([_event(chance, schema) for _ in range(64)], SCHEMAS.get(schema or ""))


@lru_cache(1)
def _pool() -> tuple[Expression, ...]:
    """Return the filters that clients choose from."""
    chance = Random(5)
    simple = [f"x = {value}" for value in range(4)] + ["x < 3", "x < 6", "x BETWEEN 2 AND 5", "x >= 1", "y IN (1, 2)"]
    simple += ["y = 1", "y > 4", "z <> 3", "z IS NULL", "NOT (x > 2)", "y = 2 OR y = 1", "TRUE", "x > 5 AND x < 3"]
    pairs = [
        f"{chance.choice(simple[:9])} AND {chance.choice(('y = 1', 'y = 2', 'y < 5', 'z = 0', 'z = 1'))}"
        for _ in range(20)
    ]
    functions = [f"length(s) = {length} AND x < 6" for length in range(4)] + ["length(s) > 2", "abs(x - 3) < 2"]
    functions += ["length(s) < 2 AND y = 1", "startswith(s, 'a')", "startswith(s, 'ab')", "x + y < 6", "x + y > 9"]
    mixed = [f"{chance.choice(pairs)} OR {chance.choice(simple[:13])}" for _ in range(8)]
    return tuple(parse(text) for text in (*simple, *pairs, *functions, *mixed))


@lru_cache(1)
def _crowd() -> tuple[Expression, ...]:
    """Return many filters, few of which cover each other."""
    texts = [f"x = {x} AND y = {y} AND z {sign} {z}" for x, y, z in product(range(8), repeat=3) for sign in ("=", "<")]
    return tuple(parse(text) for text in Random(7).sample(texts, 200))


@lru_cache(1)
def _about_announcements() -> tuple[Expression, ...]:
    """Return filters of what brokers announce."""
    texts = ["type = 'tamis.Subscribed'", "type LIKE 'tamis.%' AND client = 'c0'", "broker IN ('b0', 'b1')"]
    return tuple(parse(text) for text in (*texts, "type = 'tamis.Unsubscribed' OR x = 1", "`key` = 's1' AND x IS NULL"))
