"""When is enough pruned? Stopping criteria.

    count         after so many prunings
    share         after this share of all that are possible
    threshold     before the first that the measure finds worse than this
    reduction     as soon as this share of all predicates is gone, by occurrence: the memory of a routing table
    memory_bytes  as soon as all trees together take no more than this

Whichever of them comes first ends it. Everything that can be pruned is a share of 1.

Source: count and threshold are Bittner 2008, section 6.6.2; share and reduction are what its chapter 8 plots, pru^prop
  and M (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, isnan

from tamis.pruning.errors import GoalError


@dataclass(frozen=True, slots=True)
class Goal:
    """How far to prune; at least one of them is given.

    >>> Goal(share=0.5, threshold=0.01)
    Goal(count=None, share=0.5, threshold=0.01, reduction=None, memory_bytes=None)
    """

    count: int | None = None
    share: float | None = None
    threshold: float | None = None
    reduction: float | None = None
    memory_bytes: float | None = None

    def __post_init__(self) -> None:
        given = [self.count, self.share, self.threshold, self.reduction, self.memory_bytes]
        if all(each is None for each in given):
            raise GoalError("a goal", None, "one of count, share, threshold, reduction, memory_bytes")
        if self.count is not None and (self.count < 0 or int(self.count) != self.count):
            raise GoalError("count", self.count, "a whole number of at least 0")
        for name in ("share", "reduction"):
            limit = getattr(self, name)
            if limit is not None and not 0 <= limit <= 1:
                raise GoalError(name, limit, "a share from 0 to 1")
        if self.threshold is not None and isnan(self.threshold):
            raise GoalError("threshold", self.threshold, "a number")
        if self.memory_bytes is not None and not self.memory_bytes >= 0:
            raise GoalError("memory_bytes", self.memory_bytes, "a number of bytes of at least 0")

    def most_of(self, possible_count: int) -> int:
        """Return how many of all possible prunings the share allows."""
        return possible_count if self.share is None else floor(self.share * possible_count + 1e-9)

    def is_small_enough(self, leaf_count: int, original_leaf_count: int, memory_bytes: int) -> bool:
        """Are the filters as small as was asked for?"""
        if self.reduction is not None and original_leaf_count - leaf_count >= self.reduction * original_leaf_count:
            return True
        return self.memory_bytes is not None and memory_bytes <= self.memory_bytes
