"""Follow truth upwards from every true leaf.

A node that becomes true tells its parents at once, and they theirs. There are no levels and no queues, and a false node
costs nothing. It takes AND, OR and at_least, which once true stay true whatever else is said.

Source: Jewel 2004, section 3.5.2, the true-value path filter (docs/bibliography.md).
Departs: an explicit stack instead of recursion, and a counter instead of "touched before", for nodes of any width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tamis_lab.matching.atree.filters import kernels
from tamis_lab.matching.atree.filters.base import BandedFilter, Ints, rising

if TYPE_CHECKING:
    from tamis.ragged import Ragged
    from tamis_lab.matching.atree.filters.kernels import Harvest, Rising, Waiting
    from tamis_lab.matching.atree.graph import SharedGraph
    from tamis_lab.matching.predicates import Numbers


class Paths(BandedFilter):
    """The true-value path filter."""

    has_not = False
    node_bytes = 8
    _last_stamp = 1 << (32 - kernels.PATH_BITS)

    def __init__(self) -> None:
        super().__init__()
        self._stack = np.zeros(0, np.int32)

    def _reserve(self, graph: SharedGraph, event_count: int) -> None:
        super()._reserve(graph, event_count)
        if len(self._stack) < len(self._states):
            self._stack = np.empty(len(self._states), np.int32)

    def _run(
        self, graph: SharedGraph, fulfilled: Ragged[np.uint32], span: tuple[int, int], most: int, harvest: Harvest
    ) -> int:
        room = (self._states, self._stack)
        done: int = kernels.match_paths_of_columns(
            span, most, self._stamp, (*fulfilled, *rising(graph), *room, *harvest)
        )
        return done

    def _no_heads(self, graph: SharedGraph) -> npt.NDArray[np.int32]:
        return np.full(graph.band_count, -1, np.int32)

    def _run_band(self, graph: Rising, band: int, numbers: Numbers, waiting: Waiting, stamp: int, matched: Ints) -> int:
        room = kernels.PathRoom(self._states, self._stack)
        count: int = kernels.match_band_by_paths(
            band, numbers, graph, waiting, np.uint32(stamp << kernels.PATH_BITS), room, matched
        )
        return count

    def memory(self) -> int:
        return super().memory() + self._stack.nbytes
