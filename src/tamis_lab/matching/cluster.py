"""Which conjunctions are worth a look?

The cluster algorithm. Each conjunction has an *access predicate*, an equality that must hold for it to match; those
with the same access predicate and the same number of predicates are a *cluster*. An event visits only the clusters of
the access predicates that it fulfils, and checks each column of predicates there against the bits of those that hold.

    title = 'Emma'  ─▶  cluster of 3    line     s4   s9   s2         subscriptions
                                        columns  p7   p8   p7         first the predicate that holds least often,
                                                 p3   p3   p5         looked at only where the one above it holds
                    ─▶  cluster of 5    ...

Its time goes into the columns of large clusters: the access predicates that hold for many events, such as
`condition = 'Used'`, are chosen only where nothing better is there. A conjunction without any equality has no access
predicate; all events visit it, and with many of them the algorithm is no better than asking everybody.

Source: Hanson et al. 1999, Fabret et al. 2001, as described in Bittner 2008, sections 2.3.2 and 5.3
  (docs/bibliography.md).
Departs: the access predicate is one equality, the one that a sample of events (or the operands) says to hold least
  often. What came since the last layout is asked directly (see `conjunctive`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tamis.matching.axes import TRUTH
from tamis.matching.operations import EQUAL
from tamis_lab.matching import kernels
from tamis_lab.matching.conjunctive import Conjunctive, Pages

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.language.schema import Schema
    from tamis.matching.columns import Events
    from tamis_lab.matching.predicates import Fulfilled, PredicateView, Shares
    from tamis_lab.matching.roll import Scratch

_SAMPLE = 2048
_SAMPLED_FROM = 256
"""The first batch of so many events is taken as a sample."""


class Cluster(Conjunctive):
    """Conjunctions under the equality predicates that give access to them."""

    name: ClassVar[str] = "cluster"

    def __init__(self, schema: Schema | None = None) -> None:
        super().__init__(schema)
        self._sample: Events | None = None

    def _laid_out(self, pages: Pages, view: PredicateView) -> ClusterIndex:
        shares = view.guessed_shares() if self._sample is None else view.shares(self._sample)
        return ClusterIndex(pages, equalities(view), shares)

    def learn(self, events: Events) -> None:
        """Remember a sample of the events, and choose access predicates by it."""
        with self._lock:
            self._sample = events.slice(0, _SAMPLE)
            self._lay_out()

    def observe(self, events: Events) -> None:
        if self._sample is None and events.count >= _SAMPLED_FROM:
            self.learn(events)

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            figures = super().statistics()
            index = self._index
            if isinstance(index, ClusterIndex):
                figures["clusters"] = len(index.table.clusters) - 1
                figures["without_access"] = index.without_access
                figures["payload_bytes"] = {
                    "fulfilled predicates": (self._predicates.number_count + 7) // 8,
                    "clusters": index.table.line.nbytes + index.table.columns.nbytes,
                    "subscription clusters": self._book.pages.owners.nbytes,
                    "predicate-subscription associations": self._book.pages.predicates.nbytes,
                }
            return figures


class ClusterIndex:
    """Clusters by access predicate."""

    def __init__(self, pages: Pages, is_equality: npt.NDArray[np.bool_], shares: Shares) -> None:
        number_count = len(is_equality)
        self.conjunction_count = len(pages.ends)
        access = np.empty(self.conjunction_count, np.int64)
        ordered = np.empty(len(pages.predicates), np.uint32)
        kernels.choose_access(pages.predicates, pages.ends, is_equality, shares, number_count, access, ordered)
        has_access = access < number_count
        self.without_access = int(np.count_nonzero(~has_access))
        sizes = np.diff(pages.ends, prepend=np.uint32(0)).astype(np.int64) - has_access
        order = np.lexsort((sizes, access))
        by_access, by_size = access[order], sizes[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (by_access[1:] != by_access[:-1]) | (by_size[1:] != by_size[:-1])
        firsts = np.flatnonzero(is_first)
        clusters = np.zeros((len(firsts) + 1, 3), np.int64)
        clusters[:-1, kernels.LINE], clusters[-1, kernels.LINE] = firsts, len(order)
        clusters[:-1, kernels.SIZE] = by_size[firsts]
        areas = np.diff(clusters[:, kernels.LINE]) * clusters[:-1, kernels.SIZE]
        clusters[1:, kernels.COLUMNS] = np.cumsum(areas)
        line, columns = np.empty(len(order), np.uint32), np.empty(int(areas.sum()), np.uint32)
        kernels.write_clusters(order, pages.owners, pages.ends, ordered, clusters, line, columns)
        starts = np.searchsorted(by_access[firsts], np.arange(number_count + 2))
        is_shared = np.diff(pages.slot_ends, prepend=np.uint32(0)) > 1
        self.table = kernels.ClusterTable(starts, clusters, line, columns, is_shared)

    def match(
        self, part: Fulfilled, begin: int, pages: kernels.LastPages, scratch: Scratch, out: kernels.Outlet
    ) -> tuple[int, int]:
        room = (
            scratch.zeros("bits", part.word_count, np.uint32),
            scratch.zeros("stamps", len(self.table.is_shared), np.uint32),
            scratch.zeros("epochs", 1, np.uint32),
        )
        at, written = kernels.match_clusters_of_columns(begin, (*part.lists, *self.table, *pages, *room, *out))
        return at, written

    def memory(self) -> int:
        return sum(array.nbytes for array in self.table)


def equalities(view: PredicateView) -> npt.NDArray[np.bool_]:
    """Return which predicates compare something with one value for equality, by number."""
    axes, keys = view.axes()
    is_truth = np.array([key.kind == TRUTH for key in keys] or [False])
    are_equalities: npt.NDArray[np.bool_] = (view.operations() == EQUAL) & ~is_truth[axes]
    return are_equalities
