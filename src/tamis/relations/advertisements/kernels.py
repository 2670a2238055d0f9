"""Which trees can still be true without some predicates? The compiled loop of overlaps: count, then evaluate.

A tree with too few leaves left is dismissed by a count of them (the counting algorithm, turned around: what is counted
are the predicates that are false). The others are evaluated from the leaves up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tamis.compilation import kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tamis.ragged import Ragged

PARENT, NEED, PREDICATE = range(3)
"""The columns of a tree's rows."""


class FilterForest(NamedTuple):
    """Filters as trees. Made by `segments.laid_out`, and never changed.

    rows         Ragged of int32[:, 3]  the rows of each tree, from the root down and from left to right: the PARENT's
                                        row, counted from the root; how many operands it NEEDs to be true; its
                                        PREDICATE, -1 for a junction
    owners       Ragged of int32        by predicate: the tree of each leaf that it is
    least_hits   int32[:]               by tree: how many true leaves it needs at least
    leaf_counts  int32[:]               by tree: how many leaves it has
    """

    rows: Ragged[np.int32]
    owners: Ragged[np.int32]
    least_hits: npt.NDArray[np.int32]
    leaf_counts: npt.NDArray[np.int32]


class Falsehoods(NamedTuple):
    """The predicates that are false.

    predicates  int32[:]  their numbers, each once
    is_false    bool[:]   by predicate
    """

    predicates: npt.NDArray[np.int32]
    is_false: npt.NDArray[np.bool_]


class OverlapScratch(NamedTuple):
    """Room to work in.

    hits   int32[:]  by tree: how many of its leaves are false; zeros before and after
    trues  int32[:]  by row of one tree: how many of its operands are true; room for the largest tree
    """

    hits: npt.NDArray[np.int32]
    trues: npt.NDArray[np.int32]


@kernel
def find_overlaps(
    forest: FilterForest,
    false: Falsehoods,
    is_there: npt.NDArray[np.bool_],
    scratch: OverlapScratch,
    is_found: npt.NDArray[np.bool_],
    order: npt.NDArray[np.int32],
) -> tuple[int, int, int]:
    """Mark trees that can be true without the false predicates; return how many were found, candidates, evaluated.

    Those come first of which no predicate is false. A tree that is marked already is not looked at again, so that the
    next call finds the next ones.

    is_there  bool[:]   by tree: whether anybody is interested
    is_found  bool[:]   by tree: whether it is marked; updated in place
    order     int32[:]  written: what was found, in the order in which it was; when it is full, that is enough
    """
    owner_starts, owners = forest.owners.starts, forest.owners.values
    hits, most = scratch.hits, len(order)
    for predicate in false.predicates:
        for leaf in range(owner_starts[predicate], owner_starts[predicate + 1]):
            hits[owners[leaf]] += 1
    found_count, candidate_count, evaluated_count = 0, 0, 0
    # First the trees without a false leaf, which are true as they stand; then those that have to be evaluated.
    for is_touched in (False, True):
        for tree in range(len(forest.least_hits)):
            if found_count == most:
                break
            if is_found[tree] or not is_there[tree] or (hits[tree] != 0) != is_touched:
                continue
            # Counted by occurrence on both sides: a predicate that a tree has twice is two of its leaves.
            if forest.least_hits[tree] + hits[tree] > forest.leaf_counts[tree]:
                continue  # too few leaves are left
            candidate_count += 1
            if is_touched:
                evaluated_count += 1
            if not is_touched or _is_true(forest.rows, tree, false.is_false, scratch.trues):
                is_found[tree] = True
                order[found_count] = tree
                found_count += 1
    # Only what was touched is cleaned, so that a query costs what it touches.
    for predicate in false.predicates:
        for leaf in range(owner_starts[predicate], owner_starts[predicate + 1]):
            hits[owners[leaf]] = 0
    return found_count, candidate_count, evaluated_count


@kernel
def _is_true(trees: Ragged[np.int32], tree, is_false, trues):
    """Is a tree true if all predicates are that are not false?"""
    rows, begin = trees.values, trees.starts[tree]
    size = trees.starts[tree + 1] - begin
    for row in range(size):
        trues[row] = 0
    is_true = False
    for row in range(size - 1, -1, -1):  # operands before their junction, the root last
        predicate = rows[begin + row, PREDICATE]
        if predicate >= 0:
            is_true = not is_false[predicate]
        else:
            is_true = trues[row] >= rows[begin + row, NEED]
        if is_true and row > 0:
            trues[rows[begin + row, PARENT]] += 1
    return is_true
