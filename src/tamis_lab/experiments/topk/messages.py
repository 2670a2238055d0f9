"""How many messages does a service with its clients need, by where events are matched?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tamis.language.expressions import Compare, Literal
from tamis_lab.experiments.base import Bars, Experiment, Result, Row, Scale, Tell
from tamis_lab.experiments.errors import DisagreementError
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.points import as_events, distances, nearest, uniform
from tamis_lab.experiments.topk.sizes import sizes_of
from tamis_lab.topk.central import (
    STRATEGIES,
    BoxCells,
    CentralSystem,
    EveryChange,
    ExactCells,
    Hysteresis,
    PublicationFlooding,
    SelectiveRouting,
    SubscriptionFlooding,
)

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.topk.ranked import Ranked

judged = Judge("topk", "messages")

K = 3
KINDS = ("subscribe", "publish", "notify", "update")
EXAMPLE = {"publication flooding": 6, "subscription flooding": 14, "selective routing": 5}


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Let each client subscribe to the nearest points, publish points, and count."""
    sizes = sizes_of(scale)
    clients, n = range(sizes.clients), max(20, sizes.publications // 5)
    points, centres = uniform(sizes.publications, seed), uniform(sizes.clients, seed + 1)
    rankeds = [nearest(centre, K, n) for centre in centres]
    radius = float(np.mean([np.partition(distances(points[:n], each), K - 1)[K - 1] for each in centres]))
    flooding = partial(SubscriptionFlooding, clients, "probabilistic")
    systems: dict[str, CentralSystem] = {
        "publication flooding": PublicationFlooding(clients),
        "selective routing": SelectiveRouting(clients),
        "subscription flooding, every change": flooding(EveryChange),
        "subscription flooding, cells": flooding(ExactCells),
        "subscription flooding, boxes of cells": flooding(BoxCells),
        "subscription flooding, hysteresis": flooding(Hysteresis),
        "selective routing, Boolean": SelectiveRouting(clients),
        "selective routing, Boolean, twice the radius": SelectiveRouting(clients),
        "publication flooding, Boolean": PublicationFlooding(clients),
    }
    rows: list[Row] = []
    deliveries_by: dict[str, set[tuple[int, int]]] = {}
    events = as_events(points)
    for name, system in systems.items():
        tell(name)
        for client, ranked in enumerate(rankeds):
            wanted: Ranked | Expression = ranked
            if "Boolean" in name:
                wanted = Compare("<=", ranked.score, Literal(radius * (2 if "twice" in name else 1)))
            system.subscribe(client, client, wanted)
        deliveries = [
            each for at, event in enumerate(events) for each in system.publish(at % len(clients), event, float(at), at)
        ]
        deliveries_by[name] = {(each.client, each.event) for each in deliveries}
        rows.append({"strategy": name, **{kind: system.messages[kind] for kind in KINDS}, "told": len(deliveries)})
    if deliveries_by["publication flooding"] != deliveries_by["selective routing"]:
        raise DisagreementError("publication flooding", "selective routing", 0)
    counts = {row["strategy"]: sum(row[kind] for kind in KINDS) for row in rows}
    updates = {row["strategy"]: row["update"] for row in rows}
    every = next(row for row in rows if row["strategy"].endswith("every change"))
    claims = (
        judged("running-example", [_example(name) == expected for name, expected in EXAMPLE.items()]),
        judged("publication-flooding-alike", counts["publication flooding"] / counts["publication flooding, Boolean"]),
        judged("order", {name: float(count) for name, count in counts.items()}),
        judged("thresholds-dominate", every["update"] / (every["subscribe"] + every["notify"])),
        judged(
            "cells-fewer",
            updates["subscription flooding, every change"] / max(1, updates["subscription flooding, cells"]),
        ),
        judged("bad-radius", counts["selective routing, Boolean, twice the radius"] / counts["selective routing"]),
    )
    shares = {
        row["strategy"]: tuple(row[kind] / counts[row["strategy"]] for kind in KINDS)
        for row in rows
        if "Boolean" not in row["strategy"]
    }
    bars = Bars("Messages by kind", KINDS, shares, {name: f"{counts[name]:,}" for name in shares})
    setup = (
        f"{sizes.clients} clients with a subscription each, {sizes.publications:,} events, k = {K}, windows of {n:,}."
    )
    return Result(setup, claims, (bars,), tuple(rows))


def _example(strategy: str) -> int:
    """Count the messages of the running example: two subscribers among six clients, one event for both."""
    system = STRATEGIES[strategy]("ABCDEF")
    system.subscribe("E", "s1", "x > 10")
    system.subscribe("D", "s2", "x > 15")
    system.publish("A", {"x": 20}, 0.0, "p")
    return system.message_count


EXPERIMENT = Experiment(
    "messages",
    "How many messages does a service with its clients need, by where events are matched?",
    "Pripužić 2010, chapter 5",
    run,
)
