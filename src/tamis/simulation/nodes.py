"""Clients of nodes without reverse paths, who want the best k or filter: random runs, each from one seed.

Subscription flooding, rendezvous, both kinds of gossiping and D-ZaLaPS run here as brokers do in `ranked`: clients
subscribe, lease, take back, leave, come back, publish and withdraw while messages are under way, and peers of D-ZaLaPS
join and leave. Whoever looks on (`ranked_checking`) asks for everything. Gossiping promises something only if everybody
passes on everything to all, so that is what is asked of it.

Where a subscription does not live at its home, what its client is told takes one more way, and one before that if its
zone moves just then; it is that much later.

Source: ours; the strategies are those of Pripužić 2010, sections 6.2 to 6.4 (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language.parser import parse
from tamis.routing.distributed import DISTRIBUTED, ByValue, OneNode, RankingSettings
from tamis.routing.dzalaps import Space
from tamis.simulation.network import Network
from tamis.simulation.peers import PeerNetwork
from tamis.simulation.ranked import LEFT_OUT, STARTS_S, RankedActor, play
from tamis.simulation.ranked_checking import RankedChecker
from tamis.simulation.scenarios import MOST_STEPS
from tamis.simulation.topologies import TOPOLOGIES, names
from tamis.topk import Ranked

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.simulation.scenarios import Scenario

DZALAPS = "D-ZaLaPS"
NODE_STRATEGIES = ("subscription flooding", "rendezvous", "basic gossiping", "informed gossiping", DZALAPS)
_HOP_S = 0.03
"""A message takes at most so long, so that many more events come than are under way."""
_WAYS_BEFORE_TOLD = {"rendezvous": 1, DZALAPS: 2}
"""From where a subscription lives to its home; and before, with its zone to another peer."""
_CENTRES = ((3.5, 2.0), (0.0, 0.0), (6.5, 5.0), (2.0, 2.0))
_STAYS: dict[str, Any] = {
    **LEFT_OUT,
    "has_faults": False,
    "renews": False,
    "adapts": False,
    "link_leases": False,
    "prunes_tables": False,
    "prunes_heeded": False,
    "prunes_as_they_come": False,
}
"""Nodes have none of it, and promise nothing where links fail."""


class NodeActor(RankedActor):
    """Chance, as far as it moves clients of nodes; with a `pool`, they choose from that."""

    pool: tuple[Expression | Ranked, ...] = ()

    def _filter(self) -> Expression | Ranked:
        return self._chance.choice(self.pool) if self.pool else super()._filter()


class PeerActor(NodeActor):
    """Chance, as far as it moves clients of peers, and peers that come and go."""

    def __init__(self, network: PeerNetwork, chance: Random, scenario: Scenario) -> None:
        super().__init__(network, chance, scenario)
        self.pool = _places(scenario.wants)
        self._peers, self._guests, self._joined = network, list[str](), 0
        self._actions.append(self._churn)
        self._weights.append(8)

    def _churn(self) -> None:
        """Let a peer without clients join or leave, if nobody does so now."""
        if self._peers.is_moving:
            return
        if self._guests and self._chance.random() < 0.5:
            self._peers.leave(self._guests.pop(self._chance.randrange(len(self._guests))))
            return
        self._joined += 1
        self._guests.append(f"g{self._joined}")
        self._peers.join(self._guests[-1], (self._chance.random(), self._chance.random()))


@lru_cache
def _places(wants: str) -> tuple[Expression | Ranked, ...]:
    """Return what has a place in the space of x and y."""
    pool: list[Expression | Ranked] = []
    for x, y in _CENTRES:
        near = f"euclidean(array(x, y), array({x}D, {y}D))"
        if wants != "ranked":
            pool += [parse(f"{near} <= 1.5D"), parse(f"z > 1 AND {near} < 4D")]
        if wants != "conditions":
            pool += [
                Ranked.parse(f"TOP 1 BY {near} OVER 0.7 SECONDS"),
                Ranked.parse(f"TOP 2 BY {near} OVER 0.3 SECONDS WHERE z < 5"),
            ]
    return tuple(pool)


def simulate_nodes(strategy: str, scenario: Scenario) -> RankedChecker:
    """Run a scenario with the nodes of a strategy; return who looked on.

    >>> from tamis.simulation import Scenario
    >>> simulate_nodes("rendezvous", Scenario.of_seed(5, wants="ranked", action_count=10)).problems
    []
    """
    count = max(2, scenario.broker_count)
    way_s = _HOP_S * (count + 4)  # from node to node, to who is interested, and to the home; a zone may be under way
    chance = Random(scenario.seed)
    scenario = replace(
        scenario, **{**_STAYS, "leases": chance.random() < 0.5}, broker_count=count, lateness_s=way_s + STARTS_S
    )
    settings = RankingSettings(
        scenario.ranked if scenario.ranked != "block" else "strict",
        lateness_s=scenario.lateness_s,
        spread_s=scenario.lateness_s,
    )
    network = _network(strategy, settings, scenario, chance)
    told_within_s = _HOP_S * _WAYS_BEFORE_TOLD.get(strategy, 0)
    checker = RankedChecker(network, scenario.lateness_s, scenario.lateness_s, way_s, told_within_s, way_s)
    for number in range(chance.randint(2, 5)):
        network.attach(f"c{number}", chance.choice(list(network.brokers)))
    network.run(MOST_STEPS)
    actor = PeerActor if isinstance(network, PeerNetwork) else NodeActor
    play(actor(network, chance, scenario), scenario, network)
    checker.check()
    return checker


def _network(strategy: str, settings: RankingSettings, scenario: Scenario, chance: Random) -> Any:
    nodes = names(scenario.broker_count)
    if strategy == DZALAPS:
        points = [(name, (chance.random(), chance.random())) for name in nodes]
        space = Space(("x", "y"), chance.choice([3, 5]), 0.0, 7.0)
        return PeerNetwork(
            points, space, chance, encodes=scenario.encodes, settings=settings, spread_s=_HOP_S,
            delays_s=(0.001, _HOP_S),
            border=chance.choice(["clip", "wrap"]),
        )  # fmt: skip
    options: dict[str, Any] = {}
    if strategy == "rendezvous":
        by_value = scenario.wants == "conditions" and chance.random() < 0.7
        options["meeting"] = ByValue("x", nodes) if by_value else OneNode(chance.choice(nodes))
    elif "gossiping" in strategy:
        options |= {"fan_out": len(nodes), "rounds": len(nodes) + 1}
    links = TOPOLOGIES[scenario.topology](scenario.broker_count, chance)
    return Network(
        nodes,
        links,
        lambda name: DISTRIBUTED[strategy](name, settings, **options),
        chance,
        delays_s=(0.001, _HOP_S),
        encodes=scenario.encodes,
        uses="all" if "gossiping" in strategy else "tree",
    )
