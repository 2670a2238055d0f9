"""What do so many prunings do to a network?

All filters are pruned together, in the order of a measure; a *share* of all prunings is a place in that order. The
table of others' filters shrinks with it, by what the filters say; the load grows, by the events.

The *bend* is where the load takes off: the place at which most of the prunings are done for the least of the load that
all of them bring.

Source: Bittner 2008, sections 8.1 and 8.3; Bittner & Hinze 2006, section 4 (docs/bibliography.md).
Departs: all brokers prune in one order. The published bends were read off plots, ours is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from tamis.pruning.bulk import Cut, running_totals
from tamis.pruning.cut_off import NEVER, first_sent
from tamis.pruning.goals import Goal
from tamis.pruning.sequencing import sequences
from tamis_lab.experiments.routing.traffic import SEATS

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tamis.language.expressions import Expression
    from tamis.pruning.measures import Measure
    from tamis_lab.experiments.routing.overlays import LabOverlay, Ranks
    from tamis_lab.experiments.routing.traffic import Traffic

Group = TypeVar("Group", bound="Hashable")

FINE = tuple(number / 200 for number in range(201))
"""Shares of all prunings, close enough to draw and to find bends."""


class Pruning:
    """Filters of some traffic, pruned by a measure.

    >>> from tamis_lab.experiments.routing.overlays import LabOverlay
    >>> from tamis_lab.experiments.routing.sizes import SIZES
    >>> from tamis_lab.experiments.routing.traffic import auctions
    >>> pruning = Pruning(auctions(SIZES["tiny"], seed=1), "accuracy")
    >>> pruning.reduction(0), round(pruning.reduction(1), 1)
    (0.0, 0.8)
    >>> loads = pruning.loads(LabOverlay("line", 5))
    >>> loads == sorted(loads)
    True
    """

    def __init__(self, traffic: Traffic, measure: str | Measure, *, is_lexicographic: bool = True) -> None:
        self.traffic = traffic
        self._found = sequences(traffic.filters, traffic.share, measure)
        self._ordered = self._found.ordered(is_lexicographic=is_lexicographic)
        self._leaves, _ = running_totals(self._found, self._ordered)
        self._firsts: Ranks | None = None

    @property
    def step_count(self) -> int:
        """How many prunings there are."""
        return len(self._ordered.places)

    def steps(self, share: float) -> int:
        """Return how many prunings a share of all of them is."""
        return Goal(share=share).most_of(self.step_count)

    def reduction(self, share: float) -> float:
        """Return which share of all predicates is gone, by occurrence (M)."""
        return float(1 - self._leaves[self.steps(share)] / self._leaves[0])

    def leaf_count(self, share: float) -> int:
        """Return how many predicates there are still, by occurrence."""
        return int(self._leaves[self.steps(share)])

    def versions(self, share: float) -> list[Expression]:
        """Return the filters as they are after a share of all prunings."""
        taken = Cut.of(self._found, self._ordered, Goal(share=share)).step_counts.tolist()
        return [
            self._found.expression(number, steps) if steps else original
            for number, (original, steps) in enumerate(zip(self.traffic.filters, taken, strict=True))
        ]

    def first_sent(self, groups: Sequence[Group]) -> dict[Group, npt.NDArray[np.int64]]:
        """Return, by groups of filters, after how many prunings each event matches one of the group."""
        return first_sent(self._found, self._ordered, groups, self.traffic.events, self.traffic.schema)

    def reached(self, overlay: LabOverlay) -> Ranks:
        """Return after how many prunings events get where (see `LabOverlay.reached`)."""
        if self._firsts is None:
            self._firsts = np.full((SEATS, self.traffic.table.num_rows), NEVER)
            for seat, firsts in self.first_sent(self.traffic.seats.tolist()).items():
                self._firsts[seat] = firsts
        firsts = np.full((overlay.count, self._firsts.shape[1]), NEVER)
        np.minimum.at(firsts, np.arange(SEATS) * overlay.count // SEATS, self._firsts)
        return overlay.reached(firsts)

    def rise(self, overlay: LabOverlay) -> float:
        """Return the share of prunings after which the load rises, on its way to what all of them make of it."""
        loads = self.loads(overlay)
        return bend(FINE, loads, loads[-1])

    def risen(self, overlay: LabOverlay, gone: float) -> float:
        """Return how much of what all prunings add to the load is there when a share of the table is gone."""
        first, there, last = self.loads_over(overlay, (0.0, gone, 1.0))
        return (there - first) / max(last - first, 1e-9)

    def rise_remark(self, overlay: LabOverlay, published: float) -> str:
        """Say how the load rises, where no place stands out from which on it does."""
        first, *_, last = self.loads(overlay)
        parts = ", ".join(f"{self.risen(overlay, gone):.0%} at {gone}" for gone in (0.1, 0.3, published))
        return (
            f"The load rises all along, by {last - first:.2f} altogether; of that are there, by what is gone of the "
            f"table, {parts}. On such a curve no place stands out."
        )

    def loads_over(self, overlay: LabOverlay, gone: Sequence[float]) -> list[float]:
        """Return the load of a network when such shares of the table are gone."""
        loads = np.interp(gone, [self.reduction(share) for share in FINE], self.loads(overlay))
        return [float(each) for each in loads]

    def loads(self, overlay: LabOverlay, shares: Sequence[float] = FINE) -> list[float]:
        """Return the load of a network after each share of all prunings (N)."""
        return overlay.loads(self.reached(overlay), [self.steps(share) for share in shares])


def bend(shares: Sequence[float], loads: Sequence[float], end: float = 1.0) -> float:
    """Return the share of prunings after which the load takes off, on its way from its start to an end.

    >>> bend([0, 0.25, 0.5, 0.75, 1], [0.1, 0.1, 0.12, 0.5, 1.0])
    0.5
    """
    x = np.asarray(shares, np.float64)
    y: npt.NDArray[np.float64] = (np.asarray(loads) - loads[0]) / max(end - loads[0], 1e-9)
    gains = np.round(x - y, 12)
    return float(x[len(x) - 1 - int(np.argmax(gains[::-1]))])
