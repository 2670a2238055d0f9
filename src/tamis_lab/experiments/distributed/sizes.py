"""How large are the experiments on networks without a centre?

The thesis has 256 peers, a grid of 12 cells an axis in four dimensions, 400 subscriptions, and a million events after
100,000 that are not counted (its table 6.1). Smaller ones keep the proportions as far as they can: with more
subscriptions a peer, or shorter recent buffers, mergers of RAPF reach all of space, and never move.

At the published size a setting of PA takes some minutes. One of RAPF takes half an hour, because its thresholds move
with nearly every event and each move is worked out; so RAPF plays fewer events there, after its window has been full,
and what is compared is messages for an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Scale

DIMENSIONS = 4
RADIUS = 0.09
"""Of Boolean subscriptions, which is about the best 9 of 40,000 uniform points."""


@dataclass(frozen=True, slots=True)
class DistributedSizes:
    """Counts for one scale."""

    events: int
    warm_up: int
    subscriptions: int
    window: int
    buffer: int
    peers: int
    resolution: int
    ks: tuple[int, ...]
    growing: tuple[int, ...]
    """Numbers of subscriptions."""
    crowds: tuple[int, ...]
    """Numbers of peers."""
    boolean_events: int
    """Boolean subscriptions are counted at once, so there may be more events."""
    filtered_events: int | None = None
    """Events of RAPF, if fewer, as many as fit in a few minutes."""
    filtered_warm_up: int = 0

    def of_kind(self, is_filtered: bool) -> tuple[int, int]:
        """Return how many events are counted, and how many come before these."""
        if is_filtered and self.filtered_events is not None:
            return self.filtered_events, self.filtered_warm_up
        return self.events, self.warm_up

    @property
    def shortened(self) -> str:
        """What could not be run at its size, and why; empty if all could."""
        if self.filtered_events is None:
            return ""
        return (
            f" RAPF: {self.filtered_events:,} events after {self.filtered_warm_up:,} in place of {self.events:,} after "
            f"{self.warm_up:,}, because that takes half an hour of one core for each setting; all is per event."
        )


SIZES = {
    "tiny": DistributedSizes(300, 100, 20, 100, 10, 8, 4, (1, 5), (10, 20), (4, 8), 2_000),
    "quick": DistributedSizes(1_500, 500, 40, 400, 40, 16, 4, (1, 9), (20, 40, 80), (4, 16, 32), 100_000),
    "default": DistributedSizes(
        20_000, 8_000, 100, 4_000, 1_000, 64, 8, (1, 9, 27), (25, 50, 100), (16, 64, 256), 1_000_000
    ),
    "full": DistributedSizes(
        1_000_000, 100_000, 400, 40_000, 2_000, 256, 12, (1, 9, 27, 81), (100, 200, 400, 800), (16, 64, 256, 1024),
        1_000_000, 60_000, 40_000,
    ),
}  # fmt: skip


def sizes_of(scale: Scale) -> DistributedSizes:
    """Return the sizes of a scale; what has another name is a toy.

    >>> from tamis_lab.experiments.base import SCALES
    >>> sizes_of(SCALES["full"]).peers
    256
    """
    return SIZES.get(scale.name, SIZES["tiny"])
