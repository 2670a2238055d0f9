"""How would the tree be asked from its roots down?

Each subscription's expression is evaluated, children first; what was evaluated for this event is not evaluated again.
So sharing still helps, but every node is looked at, most of them twice, although few are touched by what holds.

Source: Jewel 2004, sections 3.2.2 and 3.2.3, on why the tree is evaluated from its leaves (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.ragged import Ragged
from tamis_lab.matching.atree.filters.base import TruthFilter
from tamis_lab.matching.atree.published import kernels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.matching.base import Handles
    from tamis_lab.matching.atree.filters.kernels import Harvest
    from tamis_lab.matching.atree.gate import ReadersWriterLock
    from tamis_lab.matching.atree.graph import SharedGraph
    from tamis_lab.matching.predicates import Numbers


class TopDown(TruthFilter):
    """Evaluate every expression."""

    has_not = True
    node_bytes = 8
    _last_stamp = 1 << 62

    def __init__(self) -> None:
        super().__init__()
        self._states = np.zeros(0, np.uint64)
        self._leaf_marks = np.zeros(0, np.uint64)
        self._stack = np.zeros(0, np.int64)

    def _reserve(self, graph: SharedGraph, event_count: int) -> None:
        super()._reserve(graph, event_count)
        if len(self._leaf_marks) < len(graph.tables.leaves):
            self._leaf_marks = np.zeros(len(graph.tables.leaves), np.uint64)
        if len(self._stack) <= graph.edge_count:
            self._stack = np.empty(2 * graph.edge_count + 1, np.int64)
        if len(self._found) < len(graph.tables.subscriptions):
            self._found = np.empty(len(graph.tables.subscriptions), np.int64)

    def _run(
        self, graph: SharedGraph, fulfilled: Ragged[np.uint32], span: tuple[int, int], most: int, harvest: Harvest
    ) -> int:
        tables = graph.tables
        trees = (tables.inner, tables.children, self._leaf_marks)
        room = (self._states, self._stack)
        harvest = harvest._replace(handles=self._found)
        done: int = kernels.match_top_down_of_columns(
            span, self._stamp, (*fulfilled, *trees, tables.subscriptions, *room, *harvest)
        )
        return done

    def in_order(self, graph: SharedGraph, numbers: Numbers, gate: ReadersWriterLock) -> Iterator[Handles]:
        """Evaluate everything first: whoever goes from root to root has no reason to stop between bands."""
        with gate.reading():
            lists = Ragged(np.array([0, len(numbers)], np.int64), numbers)
            handles = self.matched(graph, lists, 0, 1)[1].copy()
            bands = graph.tables.subscriptions[handles, 2]
        for band in range(graph.band_count - 1, -1, -1):
            if (bands == band).any():
                yield handles[bands == band]

    def memory(self) -> int:
        return super().memory() + self._leaf_marks.nbytes + self._stack.nbytes
