"""What can be chosen when a processor is made?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tamis.topk.errors import SettingError, UnknownFilterError, UnusedSettingError
from tamis.topk.index.choice import INDEXES

if TYPE_CHECKING:
    from collections.abc import Iterable

FILTERS = ("strict", "relaxed", "probabilistic")
FILTERED = ("strict", "relaxed")
"""The algorithms that a filter may stand before."""
_MEANT_FOR = {
    "gamma": "'relaxed', a filter 'relaxed', and 'probabilistic' with a guard",
    "sigma": "'probabilistic' and a filter 'probabilistic'",
    "buffer": "'strict' and 'relaxed' behind a filter",
    "buffer_s": "'strict' and 'relaxed' behind a filter",
    "guard": "'probabilistic'",
    "index": "'block'",
}


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
    buffer_s: float | None = None
    """How many seconds an event stays in the recent buffer of time windows. Without it, half a window; with it, a
    window of less than twice as much is refused. All who share the work on a subscription must agree on it."""
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
        if self.buffer_s is not None and not 0 < self.buffer_s < math.inf:
            raise SettingError(f"the buffer must last a number of seconds, more than 0, not {self.buffer_s!r}")
        if self.index not in ("auto", *INDEXES):
            raise SettingError(f"there is no index {self.index!r}, only auto, {', '.join(INDEXES)}")

    def check_meanings(self, algorithm: str, given: Iterable[str]) -> None:
        """Raise if a setting was given that means nothing to the algorithm."""
        has_limit = "probabilistic" in (algorithm, self.filter)
        means_something = {
            "gamma": "relaxed" in (algorithm, self.filter) or (algorithm == "probabilistic" and self.guard),
            "sigma": has_limit,
            "buffer": self.filter is not None,
            "buffer_s": self.filter is not None,
            "guard": algorithm == "probabilistic",
            "index": algorithm == "block",
        }
        for name in given:
            if not means_something.get(name, True):
                raise UnusedSettingError(name, algorithm, self.filter, _MEANT_FOR[name])

    def check_filter(self, algorithm: str) -> None:
        """Raise unless the filter exists, and may stand before the algorithm."""
        if self.filter is not None and (self.filter not in FILTERS or algorithm not in FILTERED):
            raise UnknownFilterError(str(self.filter), algorithm, FILTERS if algorithm in FILTERED else ())
