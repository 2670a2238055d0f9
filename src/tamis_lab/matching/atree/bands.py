"""Which priorities share a band? The bounds of a histogram, chosen by what is in use.

The filter finds subscriptions one band after the other, and within a band it knows no order. Priorities may be any
integers and bands are few, so neighbours share one. Bounds that are fixed suit one range and no other: with 1, 2, 3, 4,
8, 16 and 64 nearly all of the priorities from 1 to 1,000 are one band. So the bounds follow the subscriptions: as few
pairs of them as possible that differ in priority share a band.

    priority          -5     0     7     8     9
    subscriptions      2   900    40     1    60
    three bands       └──────┘   └──────┘   └─┘       2 · 900 + 40 · 1 pairs; no other cuts have fewer

They are chosen anew whenever as many priorities have come as there were at the last choice, so that each subscription
is moved a constant number of times on average.

Source: Jewel 2004, section 4.1 (docs/bibliography.md), which asks for bands and does not say which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.matching.base import Handles

_RUNS = 512
"""Priorities that few have are taken together until they are one of so many parts of all subscriptions."""


def chosen_bounds(values: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], band_count: int) -> Handles:
    """Return where bands begin, but for the lowest: values in use, so many of each, in the best cuts.

    The best have the least sum of squares of what bands hold, and that is the fewest pairs that share one.

    >>> chosen_bounds(np.array([-5, 0, 7, 8, 9]), np.array([2, 900, 40, 1, 60]), 3).tolist()
    [7, 9]
    >>> chosen_bounds(np.arange(400), np.ones(400, np.int64), 4).tolist()
    [100, 200, 300]
    """
    values, counts = _runs(values, counts)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
    size = len(values)
    if size <= band_count:
        return values[1:].copy()
    # least[n]: the least sum for the first n runs in so many bands; cuts[b][n]: where the last band of these begins.
    least = ends**2
    cuts = []
    for _ in range(band_count - 1):
        costs = least[None, :] + (ends[:, None] - ends[None, :]) ** 2
        costs[np.triu_indices(size + 1, 1)] = np.inf  # a band does not end before it begins
        cuts.append(np.argmin(costs, 1))
        least = costs[np.arange(size + 1), cuts[-1]]
    begins, end = [], size
    for cut in reversed(cuts):
        end = int(cut[end])
        begins.append(end)
    return values[sorted({begin for begin in begins if begin > 0})]


def _runs(
    values: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return values with their counts, so few that all cuts can be tried: rare ones that follow one another as one."""
    if len(values) <= _RUNS:
        return values, counts
    share = int(counts.sum()) // _RUNS + 1
    begins, held = [0], 0
    for place, count in enumerate(counts.tolist()):
        if place and held + count > share:
            begins.append(place)
            held = 0
        held += count
    return values[begins], np.add.reduceat(counts, begins)


class Bands:
    """The priorities of the subscriptions in a graph, and the band of each.

    >>> bands = Bands(4)
    >>> bands.note([0, 1, 2], [500, 900, 900])
    >>> bands.is_outgrown
    True
    >>> bands.choose(subscription_count=10)
    >>> bands.of(np.array([-1, 0, 1, 500, 900])).tolist()
    [0, 0, 0, 1, 2]
    """

    def __init__(self, band_count: int) -> None:
        self.band_count = band_count
        self.priorities: dict[int, int] = {}
        """By handle, of those whose priority is not 0."""
        self.bounds: Handles = np.zeros(0, np.int64)
        self._came_count = 0
        self._chosen_for = 0

    def note(self, handles: Sequence[int], priorities: Any) -> None:
        """Take note of priorities other than 0."""
        self.priorities.update(zip(map(int, handles), map(int, priorities), strict=True))
        self._came_count += len(handles)

    def forget(self, handles: Iterable[int]) -> None:
        """Forget subscriptions that are no longer in the graph."""
        for handle in handles:
            self.priorities.pop(handle, None)

    @property
    def is_outgrown(self) -> bool:
        """Have as many come as there were when bounds were chosen?"""
        return self._came_count > 0 and self._came_count >= self._chosen_for

    def choose(self, subscription_count: int) -> None:
        """Choose bounds for what is in the graph; those without a priority have 0."""
        urgent = np.fromiter(self.priorities.values(), np.int64, len(self.priorities))
        values, counts = np.unique(urgent, return_counts=True)
        rest = subscription_count - len(urgent)
        if rest > 0:
            place = int(np.searchsorted(values, 0))
            values, counts = np.insert(values, place, 0), np.insert(counts, place, rest)
        self.bounds = chosen_bounds(values, counts, self.band_count)
        self._came_count, self._chosen_for = 0, len(urgent)

    def of(self, priorities: Any) -> npt.NDArray[np.uint8]:
        """Return the bands of priorities."""
        bands: npt.NDArray[np.uint8] = np.searchsorted(self.bounds, priorities, "right").astype(np.uint8)
        return bands

    @property
    def of_zero(self) -> int:
        """The band of those who have no priority."""
        return int(np.searchsorted(self.bounds, 0, "right"))
