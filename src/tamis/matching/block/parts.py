"""Which subscriptions of a segment are still there? Tombstones, copied on write.

A *part* is a segment with two marks for each subscription: whether it is alive, and whether its clauses are asked, for
its own sake or for that of a living twin. Segments stay as they are for years; marks change with every removal. So a
removal copies the marks, which snapshots may hold, and sets those that change: nothing is computed anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tamis.matching.base import Handles
    from tamis.matching.block.segment import Segment

Flags = npt.NDArray[np.bool_]

_REMOVED_SINGLY = 32
"""So many removals at once are cheaper one by one than by asking all twins."""


@dataclass(frozen=True, slots=True)
class Part:
    """A segment and which of its subscriptions are alive, and asked. The flags are replaced, never changed."""

    segment: Segment
    alive: Flags
    asked: Flags
    living: int
    """How many are alive."""

    @classmethod
    def of(cls, segment: Segment, alive: Flags | None = None) -> Part:
        """Return a segment with all of its subscriptions alive, or some."""
        if alive is None:
            alive = np.ones(len(segment), np.bool_)
        return cls(segment, alive, segment.asked(alive), int(np.count_nonzero(alive)))

    @property
    def has_many_dead(self) -> bool:
        """Is so much of it dead that it is worth a rewrite?"""
        return len(self.segment) > 64 and self.living < 0.75 * len(self.segment)

    def places(self, handles: Handles) -> tuple[Handles, Flags]:
        """Return where some handles are, and which of them are here at all."""
        known = self.segment.draft.handles
        places = np.searchsorted(known, handles)
        is_here = places < len(known)
        is_here[is_here] = known[places[is_here]] == handles[is_here]
        return places[is_here], is_here

    def without(self, places: Handles) -> Part:
        """Return the part after some subscriptions, which are alive, were removed."""
        segment = self.segment
        alive = self.alive.copy()
        alive[places] = False
        living = self.living - len(places)
        if not segment.has_twins:
            return Part(segment, alive, alive, living)
        if len(places) > _REMOVED_SINGLY:
            return Part(segment, alive, segment.asked(alive), living)
        asked = self.asked.copy()
        firsts = segment.first_twins()
        for first in firsts[places].tolist():
            asked[first] = alive[segment.twins.members(first)].any()
        return Part(segment, alive, asked, living)

    def among(self, handles: Handles | None) -> tuple[Flags, Flags]:
        """Return which subscriptions are alive and which are asked, of some only."""
        if handles is None:
            return self.alive, self.asked
        alive = self.alive & np.isin(self.segment.draft.handles, handles)
        return alive, self.segment.asked(alive)
