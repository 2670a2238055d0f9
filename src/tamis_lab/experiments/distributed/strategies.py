"""What does each strategy cost in a network, for Boolean and for ranked subscriptions?"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from tamis.language.expressions import Compare, Literal
from tamis.routing.distributed import DISTRIBUTED, EXACT, OneNode, RankingSettings
from tamis.simulation import Network
from tamis.simulation.counting import TrafficCounters
from tamis.simulation.occurrences import EventDelivered
from tamis.simulation.topologies import names, random_tree
from tamis.topk.settings import TopKSettings
from tamis_lab.experiments.base import Bars, Experiment, Result
from tamis_lab.experiments.errors import DisagreementError
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.points import as_events, distances, nearest, uniform

if TYPE_CHECKING:
    from typing import Any

    from tamis_lab.experiments.base import Row, Scale, Tell

judged = Judge("distributed", "strategies")

K = 3
NODES = {"tiny": 6, "quick": 6, "default": 30, "full": 100}
CONTROL = ("Subscribe", "Unsubscribe", "Flooded")
GOSSIP = {"fan_out": 1, "rounds": 4}


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Let each node's client ask for the nearest points, by a radius and by the best k, and count every message."""
    count = NODES.get(scale.name, NODES["tiny"])
    events, window = 30 * count, 10 * count
    chance = Random(seed)
    links = random_tree(count, chance)
    points, centres = uniform(events, seed), uniform(count, seed + 1)
    rankeds = [nearest(centre, K, window) for centre in centres]
    radius = float(np.mean([np.partition(distances(points[:window], each), K - 1)[K - 1] for each in centres]))
    rows: list[Row] = []
    delivered: dict[tuple[str, str], set[tuple[str, Any]]] = {}
    for kind in ("Boolean", "ranked"):
        for strategy in DISTRIBUTED:
            tell(f"{strategy}, {kind}")
            counters = TrafficCounters()
            network = Network(
                names(count), links, partial(_node, strategy, window=window), Random(seed),
                delays_s=(0.0, 0.0), numbers=True, uses="all", observers=[counters],
            )  # fmt: skip
            deliveries: set[tuple[str, Any]] = set()
            network.observers.append(partial(_note, deliveries))
            for number, ranked in enumerate(rankeds):
                network.attach(f"c{number}", f"b{number}")
                wanted = ranked if kind == "ranked" else Compare("<=", ranked.score, Literal(radius))
                network.subscribe(f"c{number}", "k", wanted)
                network.run()
            before = sum(counters.messages[each] for each in CONTROL)
            for number, event in enumerate(as_events(points)):
                network.now += 1.0
                network.publish(f"c{number % count}", number, event)
                network.run()
            delivered[strategy, kind] = deliveries
            control = sum(counters.messages[each] for each in CONTROL)
            rows.append(
                {
                    "strategy": strategy,
                    "kind": kind,
                    "subscribe": before,
                    "update": control - before,
                    "events": counters.messages.total() - counters.messages["Hello"] - control,
                    "posts": counters.posted.total(),
                    "told": len(deliveries),
                }
            )
    for kind in ("Boolean", "ranked"):
        for strategy in EXACT:
            if delivered[strategy, kind] != delivered[EXACT[0], kind]:
                raise DisagreementError(EXACT[0], strategy, 0)
    return Result(_setup(count, events, window), _claims(rows, delivered), (_bars(rows),), tuple(rows))


def _note(deliveries: set[tuple[str, Any]], occurrence: Any) -> None:
    if isinstance(occurrence, EventDelivered):
        deliveries.add((occurrence.client, occurrence.publication.key))


def _node(strategy: str, name: str, window: int) -> Any:
    """Return a node; thresholds that others know are those of a filter over a tenth of the window."""
    buffer = max(1, window // 10)
    filtered = RankingSettings("strict", TopKSettings(filter="strict", buffer=buffer), buffer, is_numbered=True)
    match strategy:
        case "publication flooding" | "covering":
            return DISTRIBUTED[strategy](name)
        case "rendezvous":
            return DISTRIBUTED[strategy](name, RankingSettings(is_numbered=True), meeting=OneNode("b0"))
        case "basic gossiping":
            return DISTRIBUTED[strategy](name, RankingSettings(is_numbered=True), **GOSSIP)
        case "informed gossiping":
            return DISTRIBUTED[strategy](name, filtered, **GOSSIP)
    return DISTRIBUTED[strategy](name, filtered)


def _claims(rows: list[Row], delivered: dict[tuple[str, str], set[tuple[str, Any]]]) -> tuple[Any, ...]:
    by = {(row["strategy"], row["kind"]): row for row in rows}

    def update_share(strategy: str) -> float:
        row = by[strategy, "ranked"]
        return float(row["update"] / max(1, row["subscribe"] + row["events"] + row["posts"]))

    def recall(strategy: str) -> float:
        everybody = delivered[EXACT[0], "Boolean"]
        return len(delivered[strategy, "Boolean"]) / max(1, len(everybody))

    flooding = {kind: float(by["publication flooding", kind]["events"]) for kind in ("Boolean", "ranked")}
    no_updates = ("publication flooding", "rendezvous", "basic gossiping")
    flooded = by["subscription flooding", "ranked"]
    informed = by["informed gossiping", "ranked"]
    return (
        judged("flooding-alike", flooding),
        judged("no-updates", [by[strategy, "ranked"]["update"] == 0 for strategy in no_updates]),
        judged("flooding-unsuited", update_share("subscription flooding")),
        judged("informed-fewer", max(1, flooded["update"]) / max(1, informed["update"])),
        judged("informed-recall", recall("informed gossiping") / max(1e-9, recall("basic gossiping"))),
    )


def _bars(rows: list[Row]) -> Bars:
    kinds = ("subscribe", "update", "events", "posts")
    shares, totals = {}, {}
    for row in rows:
        name = f"{row['strategy']}, {row['kind']}"
        total = sum(row[kind] for kind in kinds)
        shares[name] = tuple(row[kind] / max(1, total) for kind in kinds)
        totals[name] = f"{total:,}"
    return Bars("Messages by kind", kinds, shares, totals)


def _setup(count: int, events: int, window: int) -> str:
    return (
        f"{count} nodes on a random tree, a client and a subscription at each, {events:,} events, k = {K}, windows of "
        f"{window:,}; gossip to {GOSSIP['fan_out']} for {GOSSIP['rounds']} rounds. "
        "Covering has its default, which tells no thresholds. Every message is sent and taken, so there are fewer "
        "nodes and events than published."
    )


EXPERIMENT = Experiment(
    "strategies",
    "What does each strategy cost in a network, for Boolean and for ranked subscriptions?",
    "Pripužić 2010, sections 6.2 and 6.3",
    run,
)
