"""Which index is fastest here? Measure.

With the first few thousand events, and then again and again as windows fill and regions shrink, each index that takes
the scores is made and asked for the latest events; the fastest is used until the next time. What is measured is time,
but nothing that anybody is told depends on it.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from tamis.topk.index.columns import SlotColumns
from tamis.topk.index.grid import Grid
from tamis.topk.index.tree import MedianTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.topk.index.base import Index
    from tamis.topk.kernels import Floats
    from tamis.topk.scoring import Group

INDEXES: dict[str, type[Index]] = {index.name: index for index in (SlotColumns, Grid, MedianTree)}
FEW_SLOTS = 4096
"""Below so many subscriptions columns are taken without asking."""
_ASKED = 16


def fastest(
    group: Group, bounds: Floats, sample: Floats, ask: Callable[[Index, int], object], asked_places: int
) -> tuple[Index, dict[str, float]]:
    """Return the index that finds the latest events' subscriptions soonest, and how many microseconds each takes.

    `ask(index, place)` asks for the event at a place of the sample.
    """
    times_us: dict[str, float] = {}
    made: dict[str, Index] = {}
    places = range(max(0, asked_places - _ASKED), asked_places)
    for name, kind in INDEXES.items():
        if not kind.takes(group):
            continue
        made[name] = index = kind(group, bounds, sample)
        ask(index, places[0])  # compiles
        elapsed = []
        for place in places:
            start = perf_counter_ns()
            ask(index, place)
            elapsed.append(perf_counter_ns() - start)
        times_us[name] = float(np.median(elapsed)) / 1e3
    best = min(times_us, key=lambda name: times_us[name])
    return made[best], times_us
