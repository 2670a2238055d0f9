"""Which subscriptions ask the same, so that it need be asked only once? Deduplication of equal subscriptions.

A million people have saved far fewer than a million searches. Subscriptions with equal clauses are *twins*: the first
of them is laid out, and what it matches all of them match. Leaves are equal that ask the same of the same axis, clauses
that have equal leaves and trees, and subscriptions that have equal clauses: three steps, each of which numbers what the
one before found equal. Subscriptions that are written differently and mean the same are no twins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.matching.block import kernels
from tamis.matching.block.joining import starts_of_sizes
from tamis.matching.operations import AMONG, BEYOND, FROM_TO, NOT_AMONG, WITHIN
from tamis.ragged import places_of

if TYPE_CHECKING:
    from tamis.matching.block.draft import Draft
    from tamis.matching.leaves import Ints

Numbers = npt.NDArray[np.uint32]

_WORTH_IT = 0.05
"""The share of subscriptions that must have an earlier twin."""


def twins_in(draft: Draft) -> tuple[Numbers, Numbers]:
    """Return where the twins of each subscription start, if it is their first, and all twins; nothing if few have any.

    Those of subscription s, itself among them, are `twins[starts[s] : starts[s + 1]]`; none if an earlier one is like
    it.
    """
    count = len(draft.handles)
    firsts = _like_subscriptions(draft, _like_clauses(draft, _like_leaves(draft)))
    if np.count_nonzero(firsts != np.arange(count)) < max(1, _WORTH_IT * count):
        return np.zeros(0, np.uint32), np.zeros(0, np.uint32)
    starts = starts_of_sizes(np.bincount(firsts, minlength=count))
    return starts.astype(np.uint32), np.argsort(firsts, kind="stable").astype(np.uint32)


def _like_leaves(draft: Draft) -> Ints:
    """Return for each leaf the first that asks the same."""
    is_set = (draft.leaf_operations == AMONG) | (draft.leaf_operations == NOT_AMONG)
    sets = draft.leaf_a[is_set]
    sizes = np.ones(len(is_set), np.int64)
    sizes[is_set] = np.diff(draft.set_starts)[sets]
    starts = starts_of_sizes(sizes + 3)
    words = np.empty(int(starts[-1]), np.uint32)
    words[starts[:-1]] = draft.leaf_axes
    words[starts[:-1] + 1] = draft.leaf_operations
    has_end = np.isin(draft.leaf_operations, (WITHIN, BEYOND, FROM_TO))
    words[starts[:-1] + 2] = np.where(has_end, draft.leaf_b, 0)  # others say nothing with it
    words[starts[:-1][~is_set] + 3] = draft.leaf_a[~is_set]
    members = places_of(draft.set_starts[:-1][sets], sizes[is_set])
    words[places_of(starts[:-1][is_set] + 3, sizes[is_set])] = draft.set_operands[members]
    return _first_equal(starts, words)


def _like_clauses(draft: Draft, like_leaves: Ints) -> Ints:
    """Return for each clause the first with equal leaves and an equal tree."""
    leaf_counts, tree_sizes = np.diff(draft.clause_starts), draft.tree_sizes()
    starts = starts_of_sizes(1 + leaf_counts + 3 * tree_sizes)
    words = np.empty(int(starts[-1]), np.uint32)
    at = starts[:-1]
    words[at] = leaf_counts  # else a leaf might be taken for a tree
    words[places_of(at + 1, leaf_counts)] = like_leaves[draft.clause_leaves]
    at = at + 1 + leaf_counts
    for column in (like_leaves[draft.tree_leaves], draft.tree_trues, draft.tree_falses):
        words[places_of(at, tree_sizes)] = column
        at = at + tree_sizes
    return _first_equal(starts, words)


def _like_subscriptions(draft: Draft, like_clauses: Ints) -> Ints:
    """Return for each subscription the first with equal clauses."""
    starts = starts_of_sizes(np.bincount(draft.clause_owners, minlength=len(draft.handles)))
    return _first_equal(starts, like_clauses.astype(np.uint32))


def _first_equal(starts: npt.NDArray[Any], words: Numbers) -> Ints:
    count = len(starts) - 1
    firsts = np.empty(count, np.int64)
    table = np.full(1 << (2 * count + 1).bit_length(), -1, np.int64)
    kernels.find_first_equal(starts, words, table, firsts)
    return firsts
