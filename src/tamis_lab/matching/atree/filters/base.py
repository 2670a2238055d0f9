"""How does truth rise from predicates to subscriptions?

There are three filters over one graph. Each has working memory of its own, so any number of them may work at once, as
long as nobody changes the graph meanwhile.

    general     tell the parents of every node that was touched, true or false, level by level
    zero        tell them only what differs from the value that a node has when no predicate is true
    paths       no levels: a node that becomes true tells its parents at once; AND, OR and at_least only

By priority, subscriptions are found band by band: a node belongs to the highest band of its subscriptions, and waits
for it. Nothing is done for lower bands that a higher one does not need.

Source: Jewel 2004, sections 3.4, 3.5 and 4.1 (docs/bibliography.md).
Departs: a node counts its true operands instead of keeping their values, which takes any number of them, in any order.
Departs: a subscription is reported in its own band, not in that of its node, which may be higher because others use it;
  the source gives no order where one expression contains another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.ragged import Ragged
from tamis_lab.matching.atree.filters.kernels import Harvest, Rising, Waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.matching.base import Handles
    from tamis_lab.matching.atree.gate import ReadersWriterLock
    from tamis_lab.matching.atree.graph import SharedGraph
    from tamis_lab.matching.predicates import Numbers

Ints = npt.NDArray[np.int64]

_LEAST_FOUND = 1 << 14


def rising(graph: SharedGraph, standing: Any = None) -> Rising:
    """Return what the kernels read of a graph; the nodes that stand without any event may be those of a moment ago."""
    tables = graph.tables
    return Rising(
        tables.leaves,
        tables.rises,
        tables.inner,
        tables.parents,
        tables.holders,
        graph.standing if standing is None else standing,
    )


class TruthFilter(ABC):
    """A filter, and its working memory. What it found is good until it works again."""

    has_not: ClassVar[bool]
    """Can it take NOT and XOR?"""

    def __init__(self) -> None:
        self.counters = np.zeros(2, np.int64)
        """How often nodes were told of an operand, and how many nodes were, since the filter was made."""
        self._found = np.zeros(0, np.int64)
        self._stamp = 1
        self._states: Any = np.zeros(0, np.uint32)

    def matched(self, graph: SharedGraph, fulfilled: Ragged[np.uint32], begin: int, end: int) -> tuple[Ints, Handles]:
        """Match some events from `begin` up to `end`; return where the handles of each end, and the handles.

        Each event has the list of the predicates that it fulfils. There are fewer ends than events where the matches of
        more would be too many at once: go on from there.
        """
        most = graph.subscription_count
        if len(self._found) < most:
            self._found = np.empty(max(_LEAST_FOUND, 2 * most), np.int64)
        ends = np.empty(end, np.int64)
        self._reserve(graph, end - begin)
        harvest = Harvest(self._found, ends, self.counters)
        done = self._run(graph, fulfilled, (begin, end), most, harvest)
        self._stamp += end - begin
        ends = ends[begin:done]
        return ends, self._found[: ends[-1]] if len(ends) else self._found[:0]

    @abstractmethod
    def in_order(self, graph: SharedGraph, numbers: Numbers, gate: ReadersWriterLock) -> Iterator[Handles]:
        """Match one event, one band of priority after the other; between them others may change the graph."""

    def _reserve(self, graph: SharedGraph, event_count: int) -> None:
        """Make room for the states of all nodes, and begin again with the stamps before they are at their end."""
        count = len(graph.tables.inner)
        if len(self._states) < count or self._stamp + event_count >= self._last_stamp:
            self._states = np.zeros(count, self._states.dtype)
            self._stamp = 1

    _last_stamp: ClassVar[int]

    @abstractmethod
    def _run(
        self, graph: SharedGraph, fulfilled: Ragged[np.uint32], span: tuple[int, int], most: int, harvest: Harvest
    ) -> int:
        """Call the kernel."""

    node_bytes: ClassVar[int]
    """How much working memory it takes for each inner node."""

    def memory(self) -> int:
        """Return the bytes of its working memory."""
        return self._found.nbytes + int(self._states.nbytes)


class BandedFilter(TruthFilter):
    """One that does nothing for a lower band of priority before it is asked for it."""

    def in_order(self, graph: SharedGraph, numbers: Numbers, gate: ReadersWriterLock) -> Iterator[Handles]:
        """Match one event, one band of priority after the other; between them others may change the graph."""
        with gate.reading():
            bands, leaf_bands = graph.tables.bands.copy(), graph.tables.leaf_bands.copy()
            if len(bands):
                self._reserve(graph, 1)
                standing, heads = graph.standing.copy(), self._no_heads(graph)
                own_bands = graph.tables.subscriptions[:, 2].copy()  # others may move them all meanwhile
            else:
                matched = self.matched(graph, Ragged(np.array([0, len(numbers)]), numbers), 0, 1)[1].copy()
        if not len(bands):
            yield matched
            return
        stamp = self._stamp
        self._stamp += 1
        waiting = Waiting(bands, heads, np.empty(len(bands), np.int32))
        numbers = numbers[numbers < len(leaf_bands)]
        kept = np.zeros(0, np.int64)
        for band in range(graph.band_count - 1, -1, -1):
            mine = numbers[leaf_bands[numbers] == band]
            with gate.reading():
                matched = np.empty(graph.subscription_count, np.int64)
                count = self._run_band(rising(graph, standing), band, mine, waiting, stamp, matched)
            fresh = matched[:count]
            kept = np.concatenate([kept, fresh[fresh < len(own_bands)]])  # those that came since are not asked for
            is_due = own_bands[kept] >= band
            if is_due.any():
                yield kept[is_due]
            kept = kept[~is_due]

    @abstractmethod
    def _no_heads(self, graph: SharedGraph) -> npt.NDArray[np.int32]:
        """Return empty lists of nodes that wait for their band."""

    @abstractmethod
    def _run_band(self, graph: Rising, band: int, numbers: Numbers, waiting: Waiting, stamp: int, matched: Ints) -> int:
        """Call the kernel for one band; return how many were found."""
