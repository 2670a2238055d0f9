"""Which peers, subscriptions and events do the experiments on D-ZaLaPS have? One seed makes them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np

from tamis.routing.dzalaps import CellGrid, Zones
from tamis.topk.settings import TopKSettings
from tamis_lab.experiments.distributed.counting import THESIS, MessageCounts, RankingChoice, count_boolean, count_ranked
from tamis_lab.experiments.distributed.sizes import DIMENSIONS, RADIUS
from tamis_lab.experiments.topk.points import uniform

if TYPE_CHECKING:
    from tamis_lab.experiments.distributed.counting import Convention
    from tamis_lab.experiments.distributed.sizes import DistributedSizes

PA, RAPF, BOOLEAN = "PA", "RAPF", "Boolean"
WHOLE = "Mergers of RAPF reach all of space in a run so small, so they never move and all events interest all."
"""Why what is said of RAPF is not judged where no merger of it moves."""


def joined(peers: int, seed: int) -> Zones:
    """Return the zones of peers that joined at random points."""
    chance = Random(seed)
    points = [(f"P{number}", tuple(chance.random() for _ in range(DIMENSIONS))) for number in range(peers)]
    return Zones.joined(points, DIMENSIONS)


def ranking_of(kind: str, k: int, window: int, buffer: int) -> RankingChoice:
    """Return how the thesis ranks: PA, or RA behind a probabilistic filter."""
    if kind == PA:
        return RankingChoice("probabilistic", TopKSettings(sigma=1e-3), k, window)
    settings = TopKSettings(filter="probabilistic", gamma=0.2, sigma=1e-3, buffer=buffer)
    return RankingChoice("relaxed", settings, k, window, buffer)


def counted(
    kind: str,
    sizes: DistributedSizes,
    seed: int,
    *,
    k: int = 9,
    window: int | None = None,
    subscriptions: int | None = None,
    peers: int | None = None,
    radius: float = RADIUS,
    convention: Convention = THESIS,
) -> MessageCounts:
    """Count the messages of a run of a kind: PA, RAPF or Boolean."""
    grid = CellGrid(DIMENSIONS, sizes.resolution)
    zones = joined(peers or sizes.peers, seed)
    centres = uniform(subscriptions or sizes.subscriptions, seed + 1)
    if kind == BOOLEAN:
        return count_boolean(zones, grid, centres, radius, uniform(sizes.boolean_events, seed + 2), convention)
    count, warm_up = sizes.of_kind(kind == RAPF)
    events = uniform(warm_up + count, seed + 2)
    ranking = ranking_of(kind, k, window or sizes.window, sizes.buffer)
    return count_ranked(zones, grid, centres, ranking, events, warm_up, convention)


def radius_of(volume: float, seed: int) -> float:
    """Return the radius with which as large a share of uniform points is matched, by bisection."""
    points, centres = uniform(20_000, seed + 3), uniform(50, seed + 1)
    distances = np.concatenate([np.sqrt(((points - centre) ** 2).sum(axis=1)) for centre in centres])
    return float(np.quantile(distances, min(1.0, volume)))
