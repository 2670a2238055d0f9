"""Evaluate what was touched, level by level.

A node that is told of an operand waits in the queue of its level. When its turn comes all of its operands have spoken,
and those that are silent have the value that they have when no predicate is true. The general filter then tells the
parents in any case. The other one tells them only what is news: where nodes are false by default, that is to suppress
zeros.

Source: Jewel 2004, sections 3.4 (general) and 3.5.1 (zero suppression; docs/bibliography.md).
Departs: defaults may be true, so that NOT and XOR are right. The source reads a silent operand as false, and
  evaluates no node all of whose operands are silent, though NOT would be true there. A subscription whose node is
  true by default is reported unless the node was turned over; there is a list of these nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from tamis_lab.matching.atree.filters import kernels
from tamis_lab.matching.atree.filters.base import BandedFilter, Ints, rising

if TYPE_CHECKING:
    from tamis.ragged import Ragged
    from tamis_lab.matching.atree.filters.kernels import Harvest, Rising, Waiting
    from tamis_lab.matching.atree.graph import SharedGraph
    from tamis_lab.matching.predicates import Numbers


class Levels(BandedFilter):
    """Level by level, with or without what is as it would be without any event."""

    has_not = True
    node_bytes = 12
    is_general: ClassVar[bool]
    _last_stamp = 1 << (64 - kernels.LEVEL_BITS)

    def __init__(self) -> None:
        super().__init__()
        self._states = np.zeros(0, np.uint64)
        self._queue = np.zeros(0, np.int32)

    def _reserve(self, graph: SharedGraph, event_count: int) -> None:
        super()._reserve(graph, event_count)
        if len(self._queue) < len(self._states):
            self._queue = np.empty(len(self._states), np.int32)

    def _run(
        self, graph: SharedGraph, fulfilled: Ragged[np.uint32], span: tuple[int, int], most: int, harvest: Harvest
    ) -> int:
        queue_starts = np.concatenate([[0, 0, 0], np.cumsum(graph.level_counts[1:])])[: len(graph.level_counts) + 1]
        room = (self._states, self._queue, queue_starts, queue_starts.copy())
        done: int = kernels.match_levels_of_columns(
            span, most, self._stamp, self.is_general, (*fulfilled, *rising(graph), *room, *harvest)
        )
        return done

    def _no_heads(self, graph: SharedGraph) -> npt.NDArray[np.int32]:
        return np.full((graph.band_count, len(graph.level_counts) + 1), -1, np.int32)

    def _run_band(self, graph: Rising, band: int, numbers: Numbers, waiting: Waiting, stamp: int, matched: Ints) -> int:
        count: int = kernels.match_band_by_levels(
            band, numbers, graph, waiting, np.uint64(stamp), self._states, self.is_general, matched
        )
        return count

    def memory(self) -> int:
        return super().memory() + self._queue.nbytes


class General(Levels):
    """Tell the parents of every node that was touched."""

    is_general = True


class Zero(Levels):
    """Tell them only what differs from a node's default."""

    is_general = False
