r"""Which way through a tree of tests does an event take?

Gryphon's matching tree. The attributes are put in one order; a node tests the next attribute that somebody below asks
about, an edge is a predicate on it, and beside the edges there is one for those who do not care. A subscription stands
where its last predicate leads. An event starts at the root and follows every edge whose predicate holds, and every
"don't care"; what it passes matches.

                      category?
           = 'Poetry' /        \ *
                 price?          title?
            < 5 /   \ < 9          | = 'Emma'
              s1     s2  s7       price? ...

Of the edges by equality at a test only those of one value can hold, and they are looked up: mostly one, but `x = 1` and
`x <=> 1` are two predicates that the same events fulfil. All others are tried one by one. So the order puts the
attributes first that most conjunctions compare by equality, where the fewest do not care. Its time goes into the edges
that are tried: with ranges of many different ends there is an edge for each, at each node.

Source: Aguilera et al. 1999, as described in Jewel 2004, section 2.1, and Bittner 2008, section 2.3.1
  (docs/bibliography.md).
Departs: an edge is any predicate, where the source has results of tests; whether it holds is known from the predicate
  phase. Consecutive "don't care" edges are one step: the tests of a node stand side by side. A conjunction may have
  several predicates on an attribute. What came since the last layout is asked directly (see `conjunctive`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tamis_lab.matching import kernels
from tamis_lab.matching.cluster import equalities
from tamis_lab.matching.conjunctive import Conjunctive, Pages

if TYPE_CHECKING:
    from tamis.matching.leaves import Ints
    from tamis_lab.matching.predicates import Fulfilled, Numbers, PredicateView
    from tamis_lab.matching.roll import Scratch

_DEEPEST_STACK = 256


class Gryphon(Conjunctive):
    """Conjunctions in a tree of tests."""

    name: ClassVar[str] = "gryphon"

    def _laid_out(self, pages: Pages, view: PredicateView) -> GryphonIndex:
        axes, keys = view.axes()
        return GryphonIndex(pages, axes, max(1, len(keys)), equalities(view))

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            figures = super().statistics()
            index = self._index
            if isinstance(index, GryphonIndex):
                figures |= {
                    "nodes": len(index.tree.nodes) - 1,
                    "tests": len(index.tree.tests),
                    "edges": len(index.tree.labels),
                }
            return figures


class GryphonIndex:
    """The tree."""

    def __init__(self, pages: Pages, axes: Ints, axis_count: int, is_equality: npt.NDArray[np.bool_]) -> None:
        self.conjunction_count = len(pages.ends)
        ranks = _ranks(pages.predicates, axes, axis_count, is_equality)
        ordered = np.empty(len(pages.predicates), np.uint32)
        kernels.order_by_rank(pages.predicates, pages.ends, ranks, ordered)
        order = np.arange(self.conjunction_count)
        kernels.sort_conjunctions(pages.ends, ordered, ranks, order, np.empty((_DEEPEST_STACK, 3), np.int64))

        lengths = np.diff(pages.ends, prepend=np.uint32(0))
        parents, labels = np.empty(len(ordered), np.uint32), np.empty(len(ordered), np.uint32)
        nodes_of = np.empty(len(order), np.int64)
        path = np.empty(int(lengths.max(initial=0)) + 1, np.int64)
        count = kernels.grow_tree(order, pages.ends, ordered, path, parents, labels, nodes_of)
        parents, labels = parents[:count], labels[:count].copy()
        edges = np.argsort(parents, kind="stable")
        starts = np.searchsorted(parents[edges], np.arange(count + 2))
        nodes = np.zeros((count + 2, 2), np.uint32)
        tests = np.empty((count, 4), np.uint32)
        test_count = kernels.write_tests(edges, starts, axes, is_equality, labels, nodes, tests)
        # Sorted as they are, subscriptions stand in the order of their nodes.
        nodes[:, kernels.SUBSCRIPTIONS] = np.searchsorted(nodes_of, np.arange(count + 2))
        self.tree = kernels.MatchingTree(
            nodes,
            tests[:test_count].copy(),
            labels[edges],
            (edges + 1).astype(np.uint32),
            pages.owners[order],
            np.where(is_equality, axes + 1, 0).astype(np.int32),
            np.diff(pages.slot_ends, prepend=np.uint32(0)) > 1,
        )
        self.axis_count = axis_count

    def match(
        self, part: Fulfilled, begin: int, pages: kernels.LastPages, scratch: Scratch, out: kernels.Outlet
    ) -> tuple[int, int]:
        tree = self.tree
        room = (
            scratch.zeros("bits", part.word_count, np.uint32),
            scratch.zeros("equal", self.axis_count, np.uint32),
            scratch.empty("twins", len(tree.equal_axes), np.uint32),
            scratch.empty("stack", len(tree.nodes), np.uint32),
            scratch.zeros("stamps", len(tree.is_shared), np.uint32),
            scratch.zeros("epochs", 1, np.uint32),
        )
        at, written = kernels.match_tree_of_columns(begin, (*part.lists, *tree, *pages, *room, *out))
        return at, written

    def memory(self) -> int:
        return sum(array.nbytes for array in self.tree)


def _ranks(predicates: Numbers, axes: Ints, axis_count: int, is_equality: npt.NDArray[np.bool_]) -> Ints:
    """Return the place of each predicate in the order of tests: by its axis, equalities first, then by its number."""
    uses = np.bincount(predicates, minlength=len(axes))
    equal_uses = np.bincount(axes, uses * is_equality, minlength=axis_count)
    all_uses = np.bincount(axes, uses, minlength=axis_count)
    axis_ranks = np.empty(axis_count, np.int64)
    axis_ranks[np.lexsort((-all_uses, -equal_uses))] = np.arange(axis_count)
    ranks = np.empty(len(axes), np.int64)
    ranks[np.lexsort((np.arange(len(axes)), ~is_equality, axis_ranks[axes]))] = np.arange(len(axes))
    return ranks
