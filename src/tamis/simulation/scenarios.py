"""What do clients do, and what fails?

A scenario is decided by its seed: topology, strategies, clients, what they subscribe to, advertise and publish, when,
and what breaks. It has rounds. In each, clients come and go and publish while messages are under way; then the network
comes to rest, and events are published whose ways are all known. At the end everything is mended and everybody takes
back what they said. A checker looks on all the time.

Filters come from a small pool in which many are identical, cover, overlap or merge with others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language.parser import parse
from tamis.routing import STRATEGIES, Broker
from tamis.simulation.checking import Checker
from tamis.simulation.counting import Counters
from tamis.simulation.network import Network
from tamis.simulation.topologies import TOPOLOGIES, names

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression

_ATTRIBUTES = ("x", "y", "z")
_VALUES = 8


@dataclass(frozen=True)
class Scenario:
    """All that decides a run."""

    seed: int
    topology: str = "random tree"
    broker_count: int = 5
    strategies: tuple[str, ...] = ("covering",)
    """Of the brokers in turn."""
    advertisements: str | None = None
    """The strategy by which advertisements spread."""
    round_count: int = 2
    action_count: int = 25
    """What clients do in a round before it comes to rest."""
    has_faults: bool = False

    @classmethod
    def of_seed(cls, seed: int, **fixed: Any) -> Scenario:
        """Return the scenario of a seed, but for what is fixed.

        >>> Scenario.of_seed(3) == Scenario.of_seed(3), Scenario.of_seed(3, topology="star").topology
        (True, 'star')
        """
        chance = Random(seed)
        mixed = chance.random() < 0.2
        strategies = tuple(chance.choices(list(STRATEGIES), k=3 if mixed else 1))
        drawn = cls(
            seed,
            topology=chance.choice(list(TOPOLOGIES)),
            broker_count=chance.randint(1, 8),
            strategies=strategies,
            advertisements=chance.choice([None, None, "simple", "identity", "covering", "merging"]),
            has_faults=chance.random() < 0.3,
        )
        return replace(drawn, **fixed)


@dataclass(frozen=True)
class Run:
    """What came of a scenario."""

    scenario: Scenario
    network: Network
    checker: Checker
    counters: Counters

    @property
    def problems(self) -> list[str]:
        """What went wrong; nothing, one hopes."""
        return self.checker.problems


def simulate(scenario: Scenario, make: Callable[[Scenario, int, str], Broker] | None = None) -> Run:
    """Run a scenario. `make` makes the broker of a number and a name, if it is to be another one."""
    chance = Random(scenario.seed)
    brokers = names(scenario.broker_count)
    links = TOPOLOGIES[scenario.topology](scenario.broker_count, chance)
    maker = make or broker_of
    network = Network(brokers, links, lambda name: maker(scenario, int(name[1:]), name), chance)
    is_perfect = all(each.strategy.is_perfect for each in network.brokers.values())
    checker = Checker(network, is_perfect=is_perfect, uses_advertisements=scenario.advertisements is not None)
    counters = Counters()
    network.observers.append(counters)
    for number in range(chance.randint(1, 2 * scenario.broker_count)):
        network.attach(f"c{number}", chance.choice(brokers))
    network.run()
    actor = _Actor(network, chance, scenario)
    for _ in range(scenario.round_count):
        for _ in range(scenario.action_count):
            actor.act()
            for _ in range(chance.choice((0, 0, 1, 2, 5))):
                if not network.is_quiet:
                    network.step()
        network.run()
        for _ in range(5):
            actor.publish()
        network.run()
    network.mend()
    network.run()
    for _ in range(5):
        actor.publish()
    network.run()
    actor.leave()
    network.run()
    checker.check_empty()
    return Run(scenario, network, checker, counters)


def broker_of(scenario: Scenario, number: int, name: str) -> Broker:
    """Return a broker of a scenario, as it is meant to be."""
    strategy = scenario.strategies[number % len(scenario.strategies)]
    return Broker(name, strategy, advertisements=scenario.advertisements, algorithm="naive")


class _Actor:
    """Chance, as far as it moves clients and breaks things."""

    def __init__(self, network: Network, chance: Random, scenario: Scenario) -> None:
        self._network = network
        self._chance = chance
        self._scenario = scenario
        self._count = 0
        self._published: list[tuple[str, str, dict[str, Any]]] = []
        if scenario.has_faults:
            network.duplicate_share = 0.1

    def act(self) -> None:
        """Do something."""
        chance, network = self._chance, self._network
        client = network.clients[chance.choice(list(network.clients))]
        self._count += 1
        drawn = chance.random()
        if self._scenario.has_faults and drawn < 0.1:
            self._break()
        elif drawn < 0.4:
            network.subscribe(client.name, f"s{chance.randrange(4)}", _filter(chance))
        elif drawn < 0.55 and client.subscriptions:
            network.unsubscribe(client.name, chance.choice(list(client.subscriptions)))
        elif drawn < 0.7 and self._scenario.advertisements is not None:
            network.advertise(client.name, f"a{chance.randrange(3)}", _filter(chance))
        elif drawn < 0.75 and client.advertisements:
            network.unadvertise(client.name, chance.choice(list(client.advertisements)))
        else:
            self.publish()

    def publish(self) -> None:
        """Publish something, or the same again if links are bad."""
        chance = self._chance
        if self._published and self._scenario.has_faults and chance.random() < 0.1:
            self._network.publish(*chance.choice(self._published[-3:]))
            return
        self._count += 1
        client = chance.choice(list(self._network.clients))
        event = {name: chance.randrange(_VALUES) for name in _ATTRIBUTES if chance.random() < 0.9}
        self._published.append((client, f"e{self._count}", event))
        self._network.publish(client, f"e{self._count}", event)

    def _break(self) -> None:
        chance, network = self._chance, self._network
        drawn = chance.random()
        if drawn < 0.3 and network.links:
            network.fail_link(chance.choice(network.links))
        elif drawn < 0.5 and network.links:
            network.mend_link(chance.choice(network.links))
        elif drawn < 0.75 and len(network.brokers) > 1:
            network.crash(chance.choice(list(network.brokers)))
        else:
            gone = [name for name in names(self._scenario.broker_count) if name not in network.brokers]
            if gone:
                network.restart(chance.choice(gone))

    def leave(self) -> None:
        """Take everything back."""
        for client in self._network.clients.values():
            for key in list(client.subscriptions):
                self._network.unsubscribe(client.name, key)
            for key in list(client.advertisements):
                self._network.unadvertise(client.name, key)


def _filter(chance: Random) -> Expression:
    return chance.choice(_pool())


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
    mixed = [f"{chance.choice(pairs)} OR {chance.choice(simple[:13])}" for _ in range(8)]
    return tuple(parse(text) for text in (*simple, *pairs, *mixed))
