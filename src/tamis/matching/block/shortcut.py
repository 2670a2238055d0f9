"""Whom need an event not be asked for any more? Early termination by destination.

A destination that an event has reached is not asked again: of twenty thousand entries of a neighbour the first that
matches will do. A row of a segment stands for its owner and the owner's twins, so it has a *group* of destinations; it
is passed over once all of these are reached. Those who have no destination are in the group as number 0, which nobody
reaches, and so are asked always.

A destination stays in its group when the subscription that brought it is removed. That costs an evaluation now and
then, and no match: what an event reaches is looked up among the living.

Source: Bittner 2008, section 4.5.4, the filtering shortcut (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from tamis.matching.block import kernels
from tamis.ragged import Ragged

if TYPE_CHECKING:
    from tamis.matching.destinations import Destinations

Numbers: TypeAlias = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Shortcut:
    """The destinations of a segment's subscriptions, and the groups of these."""

    table: Destinations
    """Whose numbers these are."""
    destinations: Numbers
    owner_groups: Numbers
    probe_groups: Numbers
    groups: Ragged[np.uint32]
    twins: Ragged[np.uint32]

    @classmethod
    def of(cls, table: Destinations, numbers: Numbers, owners: Numbers, twins: Ragged[np.uint32]) -> Shortcut:
        """Group the owners, given the number of each subscription's destination and the owner of each probe."""
        if not twins.list_count:
            members, places = np.unique(numbers, return_inverse=True)
            groups = Ragged(np.arange(len(members) + 1, dtype=np.uint32), members)
            owner_groups = places.astype(np.uint32)
            return cls(table, numbers, owner_groups, owner_groups[owners], groups, twins)
        firsts = np.repeat(np.arange(len(numbers)), twins.counts)
        pairs = np.unique((firsts.astype(np.int64) << 32) + numbers[twins.values])
        bounds = np.searchsorted(pairs >> 32, np.arange(len(numbers) + 1)).astype(np.uint32)
        groups = Ragged(bounds, (pairs & 0xFFFFFFFF).astype(np.uint32))
        # Equal groups are one, so that a few of them serve all rows and stay in the cache.
        likes = np.empty(len(numbers), np.int64)
        room = np.full(1 << (2 * len(numbers) + 1).bit_length(), -1, np.int64)
        kernels.find_first_equal(groups, room, likes)
        owner_groups = likes.astype(np.uint32)
        return cls(table, numbers, owner_groups, owner_groups[owners], groups, twins)

    def arrays(self, alive: npt.NDArray[np.bool_], reached: npt.NDArray[np.uint64], words: int) -> kernels.Reaching:
        """Return what the kernels take: with the maps of the events that reached each destination, to be written."""
        targets = np.zeros(2 * (len(reached) // words), np.uint32)
        return kernels.Reaching(
            self.owner_groups, self.probe_groups, self.groups, self.destinations, self.twins, alive, words, reached,
            targets,
        )  # fmt: skip
