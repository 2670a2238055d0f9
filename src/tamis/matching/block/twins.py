"""Which subscriptions ask the same, so that it need be asked only once? Deduplication of equal subscriptions.

A million people have saved far fewer than a million searches. Subscriptions with equal clauses are *twins*: the first
of them is laid out, and what it matches all of them match. Leaves are equal that ask the same of the same axis, clauses
that have equal leaves and trees, and subscriptions that have equal clauses: three steps, each of which numbers what the
one before found equal. Subscriptions that are written differently and mean the same are not twins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.matching.block import kernels
from tamis.ragged import Ragged, places_of, starts_of

if TYPE_CHECKING:
    from tamis.matching.block.draft import Draft
    from tamis.matching.leaves import Ints

_WORTH_IT = 0.05
"""The share of subscriptions that must have an earlier twin."""
NO_TWINS: Ragged[np.uint32] = Ragged(np.zeros(1, np.uint32), np.zeros(0, np.uint32))
"""No lists at all: every subscription is asked by itself."""


def twins_in(draft: Draft) -> Ragged[np.uint32]:
    """Return the twins of each subscription, itself among them, if it is their first; no lists if few have any.

    The list of a subscription is empty if an earlier one is like it.
    """
    count = len(draft.handles)
    firsts = _like_subscriptions(draft, _like_clauses(draft, _like_leaves(draft)))
    if np.count_nonzero(firsts != np.arange(count)) < max(1, _WORTH_IT * count):
        return NO_TWINS
    counts = np.bincount(firsts, minlength=count)
    return Ragged.of_counts(counts, np.argsort(firsts, kind="stable").astype(np.uint32), np.uint32)


def _like_leaves(draft: Draft) -> Ints:
    """Return for each leaf the first that asks the same."""
    leaves, is_set = draft.leaves, draft.leaves.is_set
    sets = draft.sets.chosen(leaves.a[is_set])
    sizes = np.ones(len(is_set), np.int64)
    sizes[is_set] = sets.counts
    starts = starts_of(sizes + 3)
    words = np.empty(int(starts[-1]), np.uint32)
    words[starts[:-1]] = leaves.axes
    words[starts[:-1] + 1] = leaves.operations
    words[starts[:-1] + 2] = np.where(leaves.is_span, leaves.b, 0)  # others say nothing with it
    words[starts[:-1][~is_set] + 3] = leaves.a[~is_set]
    words[places_of(starts[:-1][is_set] + 3, sizes[is_set])] = sets.values
    return _first_equal(Ragged(starts, words))


def _like_clauses(draft: Draft, like_leaves: Ints) -> Ints:
    """Return for each clause the first with equal leaves and an equal tree."""
    leaf_counts, tree_sizes = draft.clauses.leaves.counts, draft.tree_sizes()
    starts = starts_of(1 + leaf_counts + 3 * tree_sizes)
    words = np.empty(int(starts[-1]), np.uint32)
    at = starts[:-1]
    words[at] = leaf_counts  # else a leaf might be taken for a tree
    words[places_of(at + 1, leaf_counts)] = like_leaves[draft.clauses.leaves.values]
    at = at + 1 + leaf_counts
    for column in (like_leaves[draft.jumps.leaves], draft.jumps.on_true, draft.jumps.on_false):
        words[places_of(at, tree_sizes)] = column
        at = at + tree_sizes
    return _first_equal(Ragged(starts, words))


def _like_subscriptions(draft: Draft, like_clauses: Ints) -> Ints:
    """Return for each subscription the first with equal clauses."""
    counts = np.bincount(draft.clauses.owners, minlength=len(draft.handles))
    return _first_equal(Ragged.of_counts(counts, like_clauses.astype(np.uint32)))


def _first_equal(rows: Ragged[np.uint32]) -> Ints:
    """Return for each row of words the first that is equal."""
    firsts = np.empty(rows.list_count, np.int64)
    table = np.full(1 << (2 * rows.list_count + 1).bit_length(), -1, np.int64)
    kernels.find_first_equal(rows, table, firsts)
    return firsts
