"""What happens in a run, from the first broker to the last unsubscription? Random scenarios, each from one seed.

A scenario is decided by its seed: topology, strategies, clients, what they subscribe to, advertise and publish, when,
and what breaks. It has rounds. In each, clients come and go and publish while messages are under way; then the network
comes to rest, and events are published whose ways are all known. At the end everything is mended and everybody takes
back what they said. A checker looks on all the time.

Most brokers match by the plain meaning of filters, because a network has many and each has little to match.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.pruning import Goal
from tamis.routing import MOST_ENTRIES, STRATEGIES, Adaptation, Broker, ImperfectMerging, Pruned, strategy_of
from tamis.simulation.actors import Actor, guards_of, world
from tamis.simulation.checking import Checker
from tamis.simulation.counting import TrafficCounters
from tamis.simulation.network import Network
from tamis.simulation.schemas import SCHEMAS
from tamis.simulation.topologies import TOPOLOGIES, names

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.schema import Schema
    from tamis.routing import Strategy

WANTS = ("conditions", "ranked", "mixed")
_MEASURES = ("accuracy", "occurrence", "distance")
_BUDGET = 0.5
"""Of imperfect merging: among so few filters there is nearly nothing to merge for less."""
_LINK_LEASE_S = 1.0
"""Ten times as long as a message takes at most."""
MOST_STEPS = 200_000
"""A scenario that needs more to come to rest never does; those of a few hundred seeds need 600 at most."""
_ADAPTATION = Adaptation(stop_above=0.6, ask_above=0.5, event_count=4, wait_s=0.01)


@dataclass(frozen=True)
class Scenario:
    """All that decides a run."""

    seed: int
    topology: str = "random tree"
    broker_count: int = 5
    strategies: tuple[str, ...] = ("covering",)
    """Of the brokers in turn."""
    prunes: bool = False
    """Are filters pruned before they are sent? By every broker, or by every second if strategies differ."""
    advertisements: str | None = None
    """The strategy by which advertisements spread."""
    prunes_advertisements: bool = False
    """Are advertisements pruned before they are sent?"""
    heeds_less: bool = False
    """Are they pruned where they are kept, as they come?"""
    prunes_heeded: bool = False
    """Are brokers told now and then to prune the advertisements that they keep, all together?"""
    prunes_as_they_come: bool = False
    """Are filters of neighbours pruned where they are kept, as they come?"""
    has_plain_brokers: bool = False
    """Does every third broker know nothing of advertisements?"""
    shares_strategies: bool = False
    """Do brokers of the same strategy share what they find out about filters?"""
    prunes_tables: bool = False
    """Are brokers told now and then to prune what they keep?"""
    schema: str | None = None
    """The schema that all brokers keep, by its name in `schemas`."""
    leases: bool = False
    link_leases: bool = False
    """Do brokers forget neighbours that are silent for too long? Then some die unnoticed, if there are faults."""
    announces: bool = False
    adapts: bool = False
    roams: bool = False
    """Do clients disconnect and come back?"""
    is_crowded: bool = False
    """Do some clients want many things at once?"""
    leaves_one_by_one: bool = False
    """Do clients take everything back in any order at the end, while messages are under way, or all at once?"""
    encodes: bool = False
    """Do messages travel as bytes?"""
    algorithm: str = "naive"
    has_faults: bool = False
    gradual: bool = False
    """Do brokers work out in steps what half of their neighbours must know?"""
    renews: bool = False
    """Are brokers started anew so soon that their neighbours keep what they said, and do links begin again?"""
    short_messages: bool = False
    """Do brokers tell two filters in a message at most, and so greet in parts?"""
    settles: bool = False
    """Are clients told when what they said is in force everywhere?"""
    guards: bool = False
    """Do some links let only some events pass, in one direction or in both?"""
    wants: str = "conditions"
    """What clients with a window want (`ranked`): conditions, the best k, or both."""
    ranked: str = "naive"
    """The algorithm for the best k."""
    lateness_s: float = 0.0
    """How long events wait at desks, for others that were published earlier."""
    round_count: int = 2
    action_count: int = 25
    """What clients do in a round before it comes to rest."""

    @property
    def kept_schema(self) -> str | None:
        """The schema that brokers can keep: one that announcements fit, if there are any."""
        return "numbers" if self.announces and self.schema == "mandatory" else self.schema

    @classmethod
    def of_seed(cls, seed: int, **fixed: Any) -> Scenario:
        """Return the scenario of a seed, but for what is fixed.

        >>> Scenario.of_seed(3) == Scenario.of_seed(3), Scenario.of_seed(3, topology="star").topology
        (True, 'star')
        """
        chance = Random(seed)
        is_mixed = chance.random() < 0.2
        drawn = cls(
            seed,
            topology=chance.choice(list(TOPOLOGIES)),
            broker_count=chance.randint(1, 8),
            strategies=tuple(chance.choices(list(STRATEGIES), k=3 if is_mixed else 1)),
            prunes=chance.random() < 0.25,
            advertisements=chance.choice([None, *STRATEGIES]) if chance.random() < 0.7 else None,
            prunes_advertisements=chance.random() < 0.25,
            has_plain_brokers=chance.random() < 0.15,
            shares_strategies=chance.random() < 0.3,
            prunes_tables=chance.random() < 0.2,
            schema=chance.choice(list(SCHEMAS)) if chance.random() < 0.4 else None,
            leases=chance.random() < 0.3,
            link_leases=chance.random() < 0.25,
            announces=chance.random() < 0.2,
            adapts=chance.random() < 0.2,
            roams=chance.random() < 0.3,
            is_crowded=chance.random() < 0.02,
            leaves_one_by_one=chance.random() < 0.4,
            encodes=chance.random() < 0.2,
            algorithm="block" if chance.random() < 0.03 else "naive",
            has_faults=chance.random() < 0.3,
        )
        # Drawn last, so that what was drawn before stays what it is for a seed.
        drawn = replace(drawn, heeds_less=chance.random() < 0.2, prunes_as_they_come=chance.random() < 0.2)
        drawn = replace(drawn, prunes_heeded=chance.random() < 0.2)
        drawn = replace(drawn, gradual=chance.random() < 0.3, renews=chance.random() < 0.3)
        drawn = replace(drawn, short_messages=chance.random() < 0.3)
        drawn = replace(drawn, settles=chance.random() < 0.3)
        drawn = replace(drawn, guards=chance.random() < 0.15)
        drawn = replace(
            drawn, wants=chance.choice(WANTS), ranked=chance.choice(("naive", "block", "strict", "relaxed"))
        )
        return replace(drawn, **fixed)


@dataclass(frozen=True)
class Run:
    """What came of a scenario."""

    scenario: Scenario
    network: Network
    checker: Checker
    counters: TrafficCounters

    @property
    def problems(self) -> list[str]:
        """What went wrong; nothing, one hopes."""
        return self.checker.problems


def simulate(scenario: Scenario, make: Callable[[Scenario, int, str], Broker] | None = None) -> Run:
    """Run a scenario. `make` makes the broker of a number and a name, if it is to be another one."""
    chance = Random(scenario.seed)
    brokers = names(scenario.broker_count)
    links = TOPOLOGIES[scenario.topology](scenario.broker_count, chance)
    maker = make or broker_maker()
    network = Network(
        brokers,
        links,
        lambda name: maker(scenario, int(name[1:]), name),
        chance,
        encodes=scenario.encodes,
        gradual_share=0.5 if scenario.gradual else 0.0,
        settles=scenario.settles,
        guards=guards_of(links, Random(scenario.seed)) if scenario.guards else None,
    )
    filters_exactly = not (scenario.adapts or scenario.prunes_tables or scenario.prunes_as_they_come)
    checker = Checker(
        network,
        is_perfect=filters_exactly and all(each.strategy.is_perfect for each in network.brokers.values()),
        announces=scenario.announces,
        world=world(scenario.kept_schema),
        schema=_schema(scenario),
    )
    counters = TrafficCounters()
    network.observers.append(counters)
    for number in range(chance.randint(1, 2 * scenario.broker_count)):
        network.attach(f"c{number}", chance.choice(brokers))
    actor = Actor(network, chance, scenario)
    actor.begin()
    network.run(MOST_STEPS)
    for _ in range(scenario.round_count):
        for _ in range(scenario.action_count):
            actor.act()
            for _ in range(chance.choice((0, 0, 1, 2, 5))):
                if not network.is_quiet:
                    network.step()
        network.run(MOST_STEPS)
        for _ in range(0 if scenario.guards else 3):  # what others want may not be allowed to reach them
            checker.check_answer(*actor.ask())
        for _ in range(5):
            actor.publish()
        network.run(MOST_STEPS)
    network.mend()
    network.run(MOST_STEPS)
    for _ in range(5):
        actor.publish()
    network.run(MOST_STEPS)
    actor.leave()
    network.run(MOST_STEPS)
    checker.check_empty()
    return Run(scenario, network, checker, counters)


def broker_maker() -> Callable[[Scenario, int, str], Broker]:
    """Return what makes the brokers of a scenario, as they are meant to be."""
    shared: dict[tuple[str, str], Strategy] = {}

    def strategy(scenario: Scenario, name: str, measure: str) -> Strategy:
        if not scenario.shares_strategies:
            return _strategy(name, measure, _schema(scenario))
        if (name, measure) not in shared:
            shared[name, measure] = _strategy(name, measure, _schema(scenario))
        return shared[name, measure]

    def make(scenario: Scenario, number: int, name: str) -> Broker:
        count = len(scenario.strategies)
        is_pruned = scenario.prunes and (count == 1 or number % 2 == 1)
        is_plain = scenario.advertisements is None or (scenario.has_plain_brokers and number % 3 == 2)
        return Broker(
            name,
            strategy(scenario, scenario.strategies[number % count], _MEASURES[scenario.seed % 3] if is_pruned else ""),
            advertisements=None
            if is_plain or scenario.advertisements is None
            else strategy(scenario, scenario.advertisements, "overlap" if scenario.prunes_advertisements else ""),
            schema=_schema(scenario),
            algorithm=scenario.algorithm,
            announces=scenario.announces,
            link_lease_s=_LINK_LEASE_S if scenario.link_leases else None,
            adaptation=_ADAPTATION if scenario.adapts else None,
            pruning=Goal(threshold=0.5) if scenario.prunes_as_they_come else None,
            advertisement_pruning=Goal(share=0.5) if scenario.heeds_less else None,
            most_entries=2 if scenario.short_messages else MOST_ENTRIES,
            ranked={"algorithm": scenario.ranked},
            lateness_s=scenario.lateness_s,
            spread_s=scenario.lateness_s,
        )

    return make


def _schema(scenario: Scenario) -> Schema | None:
    return None if scenario.kept_schema is None else SCHEMAS[scenario.kept_schema]


def _strategy(name: str, measure: str, schema: Schema | None) -> Strategy:
    inner = ImperfectMerging(schema, budget=_BUDGET) if name == ImperfectMerging.name else strategy_of(name, schema)
    goal = Goal(share=0.5) if measure == "occurrence" else Goal(count=1)  # of a link, and of each filter
    return Pruned(inner, goal, measure=measure) if measure else inner
