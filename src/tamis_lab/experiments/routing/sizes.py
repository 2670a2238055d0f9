"""How large are the experiments on networks?

The thesis has 200,000 subscriptions on five brokers, and 12,500 on up to a hundred. Where loads explode depends on how
many subscriptions there are to a title, not on their number alone; from ten thousand on the curves look alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Scale

BROKERS = 5
"""Of the line on which most was measured."""


@dataclass(frozen=True, slots=True)
class RoutingSizes:
    """Counts for one scale."""

    subscriptions: int
    """Of the auction scenario, in all brokers together."""
    events: int
    sample: int
    """Events from which it is known how often predicates are true."""
    shares: tuple[float, ...]
    """Shares of all prunings after which time is measured."""
    few_shares: tuple[float, ...]
    """Fewer of them, where other things vary too."""
    brokers: tuple[int, ...]
    growing: tuple[int, ...]
    """Subscriptions, where their number is what matters."""
    simulated: int
    """Subscriptions in the simulator, and as many events."""
    covered: int
    """Subscriptions where covering is looked for."""
    auctions_per_book: tuple[float, ...]
    """The fewer, the fewer subscriptions cover each other."""
    advertisements: tuple[int, ...]
    asked: int
    """How many filters are asked which others they overlap."""


_SHARES = (0.0, 0.2, 0.35, 0.5, 0.65, 0.75, 0.85, 1.0)
SIZES = {
    "tiny": RoutingSizes(
        subscriptions=150,
        events=60,
        sample=100,
        shares=(0.0, 0.35, 1.0),
        few_shares=(0.0, 1.0),
        brokers=(5, 10),
        growing=(60, 120),
        simulated=16,
        covered=30,
        auctions_per_book=(20_000, 100),
        advertisements=(40, 80),
        asked=12,
    ),
    "quick": RoutingSizes(
        subscriptions=400,
        events=150,
        sample=300,
        shares=(0.0, 0.35, 0.75, 1.0),
        few_shares=(0.0, 0.75, 1.0),
        brokers=(5, 10, 20),
        growing=(150, 300),
        simulated=30,
        covered=60,
        auctions_per_book=(20_000, 1_000, 100),
        advertisements=(100, 200),
        asked=24,
    ),
    "default": RoutingSizes(
        subscriptions=12_500,
        events=1_500,
        sample=5_000,
        shares=_SHARES,
        few_shares=(0.0, 0.5, 0.75, 0.85, 1.0),
        brokers=(5, 10, 20, 40, 60, 80, 100),
        growing=(5_000, 10_000, 20_000),
        simulated=120,
        covered=3_000,
        auctions_per_book=(20_000, 3_000, 1_000, 300, 100, 10),
        advertisements=(2_500, 5_000, 10_000, 20_000),
        asked=80,
    ),
    "full": RoutingSizes(
        subscriptions=200_000,
        events=2_000,
        sample=20_000,
        shares=_SHARES,
        few_shares=(0.0, 0.5, 0.75, 0.85, 1.0),
        brokers=(5, 10, 20, 40, 60, 80, 100),
        growing=(100_000, 200_000, 500_000),
        simulated=1_000,
        covered=20_000,
        auctions_per_book=(1_000, 100, 10, 5, 2, 1, 0.1),
        advertisements=(20_000, 80_000, 200_000, 500_000),
        asked=1_000,
    ),
}


def sizes_of(scale: Scale) -> RoutingSizes:
    """Return the sizes of a scale; what has another name is a toy.

    >>> from tamis_lab.experiments.base import SCALES
    >>> sizes_of(SCALES["full"]).brokers[-1]
    100
    """
    return SIZES.get(scale.name, SIZES["tiny"])
