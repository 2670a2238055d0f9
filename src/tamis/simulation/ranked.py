"""Clients who want the best k, in networks with delays and faults: random runs, each from one seed.

A run has rounds of two kinds of time. While links break and brokers crash, a home misses events, and can be asked only
to tell nobody what was not published, or was told before. After everything is mended and at rest,
windows begin anew, and clients subscribe, take back, publish and withdraw under delays; then whoever looks on
(`ranked_checking`) asks for everything.

Brokers wait for late events as long as the longest way through the network takes, so that the answer does not depend on
ways at all.

Source: ours; the promises that are checked are those of Pripužić 2010, section 2.3 (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.simulation.actors import Actor, world
from tamis.simulation.network import Network
from tamis.simulation.occurrences import MessageCarried
from tamis.simulation.ranked_checking import RankedChecker
from tamis.simulation.scenarios import MOST_STEPS, broker_maker
from tamis.simulation.tables import Tables
from tamis.simulation.topologies import TOPOLOGIES, names
from tamis.topk import Ranked

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression
    from tamis.routing import Broker
    from tamis.routing.messages import Key
    from tamis.simulation.occurrences import Occurrence
    from tamis.simulation.scenarios import Scenario

TEXTS = (
    "TOP 1 BY x ASC OVER 0.5 SECONDS",
    "TOP 1 BY z DESC OVER 0.15 SECONDS",
    "TOP 2 BY y DESC OVER 1 SECOND WHERE z < 5",
    "TOP 1 BY x + y ASC OVER 0.3 SECONDS WHERE s IS NOT NULL",
    "TOP 3 BY x - z DESC OVER 2 SECONDS",
    "TOP 2 BY euclidean(array(x, y), array(3.5D, 2D)) ASC OVER 0.7 SECONDS",
    "TOP 1 BY length(s) DESC OVER 1 SECOND WHERE x > 1",
    "TOP 1 BY z ASC OVER 4 EVENTS",
    "TOP 2 BY x DESC OVER 6 EVENTS WHERE y IS NOT NULL",
    "TOP 4 BY y ASC OVER 3 EVENTS",
)
"""What clients choose from: both orders, both windows, filters or none, ties, and scores that may be absent."""
LEFT_OUT: dict[str, Any] = {
    "advertisements": None,
    "guards": False,
    "schema": None,
    "leases": False,
    "announces": False,
    "is_crowded": False,
    "gradual": False,
    "settles": False,
}
"""What keeps events from clients, or lets filters spread later than the checker counts with, though nothing fails."""
HOP_S = 0.1
"""A message takes at most so long on a link (`Network`)."""
LONGEST_WINDOW_S = 2.0
STARTS_S = 0.05
"""More than brokers that start take together, in which time stands still for nobody else."""


class RankedActor(Actor):
    """Chance, as far as it moves clients who want the best k, and also withdraws what they have published."""

    def __init__(self, network: Network, chance: Random, scenario: Scenario, first_event: int = 0) -> None:
        super().__init__(network, chance, scenario)
        self._count = first_event
        self._actions += [self._withdraw, self._wait]
        self._weights += [5, 20]

    def _filter(self) -> Expression | Ranked:
        wants_best = {"conditions": 0.0, "ranked": 1.0, "mixed": 0.6}[self._scenario.wants]
        return self._chance.choice(_pool()) if self._chance.random() < wants_best else super()._filter()

    def _withdraw(self) -> None:
        if self._published:
            client, key, _ = self._chance.choice(self._published[-5:])
            self._network.withdraw(client, key)

    def pause(self) -> None:
        """Let some time pass: no two things happen at one time, or who is first would depend on ways."""
        self._network.wait(self._chance.uniform(0.001, 0.08))

    @property
    def event_count(self) -> int:
        """How many events were published."""
        return self._count


@lru_cache(1)
def _pool() -> tuple[Ranked, ...]:
    return tuple(map(Ranked.parse, TEXTS))


def simulate_ranked(scenario: Scenario, make: Callable[[Scenario, int, str], Broker] | None = None) -> RankedChecker:
    """Run a scenario in which clients want the best k; return who looked on.

    >>> from tamis.simulation import Scenario
    >>> simulate_ranked(Scenario.of_seed(5, wants="ranked", ranked="strict")).problems
    []
    """
    way_s = HOP_S * scenario.broker_count
    scenario = replace(scenario, **LEFT_OUT, lateness_s=way_s + STARTS_S)
    chance = Random(scenario.seed)
    maker = make or broker_maker()
    network = Network(
        names(scenario.broker_count),
        TOPOLOGIES[scenario.topology](scenario.broker_count, chance),
        lambda name: maker(scenario, int(name[1:]), name),
        chance,
        encodes=scenario.encodes,
    )
    checker = RankedChecker(network, scenario.lateness_s, scenario.lateness_s, way_s)
    tables = Tables(network, is_perfect=False, announces=False, world=world())
    network.observers.append(lambda occurrence: note_carried(tables, occurrence))
    for number in range(chance.randint(2, 5)):
        network.attach(f"c{number}", chance.choice(list(network.brokers)))
    network.run(MOST_STEPS)
    calm = replace(scenario, has_faults=False, renews=False, roams=False, adapts=False)
    event_count = 0
    for _ in range(scenario.round_count):
        if scenario.has_faults or scenario.renews or scenario.roams:
            event_count = play(RankedActor(network, chance, scenario, event_count), scenario, network)
            checker.check()
            begin_anew(network, checker)
        event_count = play(RankedActor(network, chance, calm, event_count), scenario, network)
        checker.check()
        checker.problems += tables.problems(wanted_of_others(network), {})
        begin_anew(network, checker)
    return checker


def act(actor: RankedActor, scenario: Scenario) -> None:
    """Let clients do something, with pauses."""
    for _ in range(scenario.action_count):
        actor.pause()
        actor.act()


def play(actor: RankedActor, scenario: Scenario, network: Network) -> int:
    """Let clients do something, and wait until nothing is due to them; return how many events were published."""
    act(actor, scenario)
    network.run(MOST_STEPS)
    network.wait(LONGEST_WINDOW_S + 3 * scenario.lateness_s)
    return actor.event_count


def mend(network: Network) -> None:
    """Mend everything, let everybody come back, and wait until all is at rest."""
    network.run(MOST_STEPS)
    network.mend()
    for client in list(network.clients.values()):
        if not client.is_connected:
            network.reconnect(client.name)
    network.run(MOST_STEPS)


def begin_anew(network: Network, checker: RankedChecker, *, is_lossy: bool = False) -> None:
    """Mend everything, and let windows be empty: who wants the best k of something takes that back and asks again.

    `is_lossy`: until it begins anew, events may be lost although nothing fails.
    """
    mend(network)
    wanted = {
        client.name: {key: each for key, each in client.subscriptions.items() if isinstance(each, Ranked)}
        for client in network.clients.values()
    }
    for name, ranked in wanted.items():
        for key in ranked:
            network.unsubscribe(name, key)
    network.run(MOST_STEPS)
    network.wait(LONGEST_WINDOW_S)
    checker.begin(is_lossy=is_lossy)
    for name, ranked in wanted.items():
        network.subscribe_many(name, ranked)


def wanted_of_others(network: Network) -> dict[tuple[str, Key], Expression]:
    """Return what others are to know of all clients."""
    wanted: dict[tuple[str, Key], Expression] = {}
    for client in network.clients.values():
        table = network.brokers[client.home].table.of(client.name)
        for key, each in client.subscriptions.items():
            wanted[client.name, key] = table[key] if isinstance(each, Ranked) else each
    return wanted


def note_carried(tables: Tables, occurrence: Occurrence) -> None:
    """Let tables be looked at while messages travel."""
    if isinstance(occurrence, MessageCarried):
        tables.carried(occurrence.source, occurrence.target, occurrence.message)
