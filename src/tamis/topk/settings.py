"""What can be chosen when a processor is made?"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.topk.errors import SettingError, UnknownFilterError
from tamis.topk.index.choice import INDEXES

FILTERS = ("strict", "relaxed", "probabilistic")
FILTERED = ("strict", "relaxed")
"""The algorithms that a filter may stand before."""


@dataclass(frozen=True, slots=True)
class TopKSettings:
    """How the algorithms work. The defaults are those of the thesis (Pripužić 2010, table 3.3)."""

    filter: str | None = None
    """Which filter over the recent buffer stands before the rankings."""
    gamma: float = 0.2
    """The share by which a relaxed ranking may grow before it is pruned."""
    sigma: float = 1e-3
    """The probability, for an event, that a probabilistic ranking forgets it wrongly."""
    buffer: int = 2_000
    """The most events of the recent buffer. It is never longer than half a window."""
    guard: bool = True
    """Whether probabilistic rankings watch the order of their streams."""
    index: str = "auto"
    """How `block` finds the subscriptions that an event concerns: columns, grid, tree, or whichever is fastest."""

    def __post_init__(self) -> None:
        if not self.gamma >= 0:
            raise SettingError(f"gamma must be a share, 0 or more, not {self.gamma!r}")
        if not 0 < self.sigma < 1:
            raise SettingError(f"sigma must be a probability between 0 and 1, not {self.sigma!r}")
        if isinstance(self.buffer, bool) or not isinstance(self.buffer, int) or self.buffer < 1:
            raise SettingError(f"the buffer must hold a whole number of events, at least 1, not {self.buffer!r}")
        if self.index not in ("auto", *INDEXES):
            raise SettingError(f"there is no index {self.index!r}, only auto, {', '.join(INDEXES)}")

    def check_filter(self, algorithm: str) -> None:
        """Raise unless the filter exists, and may stand before the algorithm."""
        if self.filter is not None and (self.filter not in FILTERS or algorithm not in FILTERED):
            raise UnknownFilterError(str(self.filter), algorithm, FILTERS if algorithm in FILTERED else ())
