"""How large are the experiments on ranked subscriptions?

The thesis has a million events, windows of 40,000 and a recent buffer of 2,000 (its table 3.3). What the experiments
are about follows from ranks, so smaller windows show the same, down to a size where k is no longer small beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Scale

SIGMA = 1e-3
DIMENSIONS = 4


@dataclass(frozen=True, slots=True)
class TopkSizes:
    """Counts for one scale."""

    n: int
    """Events in a window."""
    count: int
    """Events of a stream."""
    ks: tuple[int, ...]
    queries: int
    """Subscriptions where only deliveries are counted."""
    indexed: int
    """Subscriptions that stand in an index."""
    clients: int
    publications: int
    """Of the centralised system."""

    @property
    def buffer(self) -> int:
        """The recent buffer, a twentieth of the window as in the thesis."""
        return max(2, self.n // 20)


SIZES = {
    "tiny": TopkSizes(n=200, count=1_000, ks=(1, 3, 9), queries=6, indexed=40, clients=4, publications=80),
    "quick": TopkSizes(n=200, count=1_200, ks=(1, 3, 9), queries=10, indexed=300, clients=6, publications=300),
    "default": TopkSizes(
        n=4_000, count=24_000, ks=(1, 3, 9, 27, 81), queries=100, indexed=30_000, clients=30, publications=4_000
    ),
    "full": TopkSizes(
        n=40_000, count=1_000_000, ks=(1, 3, 9, 27, 81), queries=400, indexed=100_000, clients=100, publications=40_000
    ),
}


def sizes_of(scale: Scale) -> TopkSizes:
    """Return the sizes of a scale; what has another name is a toy.

    >>> from tamis_lab.experiments.base import SCALES
    >>> sizes_of(SCALES["full"]).buffer
    2000
    """
    return SIZES.get(scale.name, SIZES["tiny"])
