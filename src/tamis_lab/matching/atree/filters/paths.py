"""Follow truth upwards from every true leaf.

A node that becomes true tells its parents at once, and they theirs. There are no levels and no queues, and a false node
costs nothing. It takes AND, OR and at_least, which once true stay true whatever else is said.

Source: Jewel 2004, section 3.5.2, the true-value path filter (docs/bibliography.md).
Departs: an explicit stack instead of recursion, and a counter instead of "touched before", for nodes of any width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis_lab.matching.atree.filters import kernels
from tamis_lab.matching.atree.filters.base import Filter, Ints

if TYPE_CHECKING:
    from tamis_lab.matching.atree.graph import SharedGraph
    from tamis_lab.matching.predicates import Numbers


class Paths(Filter):
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
        self, graph: SharedGraph, starts: Ints, numbers: Numbers, begin: int, end: int, most: int, ends: Ints
    ) -> int:
        tables = graph.tables
        done: int = kernels.match_paths(
            begin, end, starts, numbers, tables.leaves, tables.rises, tables.parents, tables.holders, graph.standing,
            most, self._stamp, self._states, self._stack, self._found, ends, self.counters,
        )  # fmt: skip
        return done

    def _no_heads(self, graph: SharedGraph) -> npt.NDArray[np.int32]:
        return np.full(graph.band_count, -1, np.int32)

    def _run_band(
        self, graph: SharedGraph, band: int, numbers: Numbers, bands: Any, standing: Any, stamp: int, heads: Any,
        following: Any, found: Ints,
    ) -> int:  # fmt: skip
        tables = graph.tables
        count: int = kernels.match_band_by_paths(
            band, numbers, bands, tables.leaves, tables.rises, tables.parents, tables.holders, standing,
            np.uint32(stamp << kernels.PATH_BITS), self._states, self._stack, heads, following, found,
        )  # fmt: skip
        return count

    def memory(self) -> int:
        return super().memory() + self._stack.nbytes
