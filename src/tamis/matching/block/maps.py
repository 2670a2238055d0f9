"""How is a clause checked against all events of a block at once?

A clause that many events reach gains nothing from being found by a key. Each of its leaves is a bitmap over the
block instead, and the clause is the intersection. An axis keeps one map for each of its buckets of codes, and one
for each union of the buckets up to a point; an interval is then one map, or a difference of two. An axis with few
codes has a bucket for each, and its maps are exact. One with many has buckets of about equally many events; the
intersection holds a few events too many, and those that are left at the end are checked exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.matching.block import kernels
from tamis.selectivity import operations as op

if TYPE_CHECKING:
    from tamis.matching.block.draft import Draft

_MOST_EXACT = 160
"""Up to so many codes an axis has a bucket for each."""
_BUCKETS = 64
_LONGEST_LIST = 16
_FEW = 0.001
"""The share of a block's events below which survivors are checked one by one."""


@dataclass(frozen=True, slots=True)
class Maps:
    """Which maps a segment needs, and what each leaf is on them."""

    axes: npt.NDArray[np.int64]
    """The axes that have maps, and for each: its first map, its number of buckets, the bucket of each code."""
    bases: npt.NDArray[np.int64]
    bucket_counts: npt.NDArray[np.int64]
    buckets: list[npt.NDArray[np.uint16]]
    map_count: int
    terms: npt.NDArray[np.uint32]
    """For each placed leaf its two maps, the first packed with what it is on bitmaps and whether it is exact."""
    lists: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.uint32]
    """For each step of a tree: its action, and the kind and maps of its leaf."""
    step_starts: npt.NDArray[np.uint32]
    """For each row: where its steps start, times two, plus one if they are exact."""

    def filled(self, codes: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        """Return the maps of a block, one behind the other."""
        count = codes.shape[1]
        words = (count + 63) // 64
        maps = np.empty(self.map_count * words, np.uint64)
        for axis, base, bucket_count, buckets in zip(
            self.axes, self.bases, self.bucket_counts, self.buckets, strict=True
        ):
            kernels.fill_maps(codes[axis], count, buckets, base, bucket_count, words, maps)
        return maps


def planned(
    draft: Draft,
    rows: npt.NDArray[np.int64],
    leaf_starts: npt.NDArray[np.int64],
    placed: npt.NDArray[np.uint32],
    is_broad: npt.NDArray[np.bool_],
    shares: npt.NDArray[np.float32],
    kinds: npt.NDArray[np.uint8],
    firsts: npt.NDArray[np.uint32],
    spans: npt.NDArray[np.uint32],
    sample_codes: list[npt.NDArray[np.uint32]] | None,
) -> Maps:
    """Plan the maps for the placed leaves and the trees of broad clauses (`is_broad`, by row)."""
    step_counts = np.where(is_broad, np.diff(draft.clause_steps)[rows], 0)
    step_ends = np.cumsum(step_counts)
    first_steps = np.repeat(draft.clause_steps[:-1][rows] - (step_ends - step_counts), step_counts)
    steps_used = first_steps + np.arange(len(first_steps))
    step_leaves = draft.step_leaves[steps_used]
    is_used = np.zeros(len(kinds), np.bool_)
    is_used[placed[np.repeat(is_broad, np.diff(leaf_starts))]] = True
    is_used[step_leaves[step_leaves != kernels.NONE]] = True
    leaves = np.flatnonzero(is_used & ((kinds == kernels.INTERVAL) | (draft.leaf_operations == op.AMONG)))
    axes = np.flatnonzero(np.bincount(draft.leaf_axes[leaves], minlength=1))
    bases, counts, buckets, used = [], [], [], 0
    for axis in axes:
        codes = None if sample_codes is None else sample_codes[axis]
        bucket_of = _buckets(draft.axes[axis].code_count, codes)
        bases.append(used)
        counts.append(int(bucket_of[-1]) + 1)
        buckets.append(bucket_of)
        used += 2 * counts[-1] + 1
    leaf_kinds = np.zeros(len(kinds), np.uint8)
    leaf_a, leaf_b = np.zeros(len(kinds), np.uint32), np.zeros(len(kinds), np.uint32)
    exacts = np.zeros(len(kinds), np.bool_)
    lists: list[npt.NDArray[np.uint32]] = [np.zeros(1, np.uint32)]
    listed = 1
    # All axes at once: to look for the leaves of each among all of them would take the square of a long condition.
    by_axis = leaves[np.argsort(draft.leaf_axes[leaves], kind="stable")]
    bounds = np.searchsorted(draft.leaf_axes[by_axis], axes), np.searchsorted(draft.leaf_axes[by_axis], axes, "right")
    for number, (begin, end) in enumerate(zip(*bounds, strict=True)):
        mine = by_axis[begin:end]
        bucket_of, base, count = buckets[number], bases[number], counts[number]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(bucket_of)) + 1, [len(bucket_of)]])
        plain = mine[(kinds[mine] == kernels.INTERVAL) & (firsts[mine] < len(bucket_of))]
        low = firsts[plain].astype(np.int64)
        high = np.minimum(low + spans[plain], len(bucket_of) - 1)
        first, last = bucket_of[low].astype(np.int64), bucket_of[high].astype(np.int64)
        is_one = first == last
        leaf_kinds[plain] = np.where(is_one, kernels.ONE_MAP, kernels.DIFFERENCE)
        leaf_a[plain] = np.where(is_one, base + first, base + count + last + 1)
        leaf_b[plain] = base + count + first
        exacts[plain] = (starts[first] == low) & (starts[last + 1] == high + 1)
        void = mine[(kinds[mine] == kernels.INTERVAL) & (firsts[mine] >= len(bucket_of))]
        leaf_kinds[void], leaf_a[void], exacts[void] = kernels.ONE_MAP, base + count, True  # the union of nothing
        sets = mine[kinds[mine] != kernels.INTERVAL]
        list_starts = np.empty(len(sets) + 1, np.int64)
        found = np.empty(_LONGEST_LIST * len(sets), np.uint32)
        is_exact = np.empty(len(sets), np.bool_)
        written = kernels.list_buckets(
            draft.leaf_a[sets].astype(np.int64), draft.set_starts, draft.set_operands, bucket_of, np.diff(starts), base,
            _LONGEST_LIST, list_starts, found, is_exact,
        )  # fmt: skip
        has_list = np.diff(list_starts) > 0
        leaf_kinds[sets] = np.where(has_list, kernels.ANY_MAP, kernels.EVERY)
        leaf_a[sets] = listed + list_starts[:-1]
        leaf_b[sets] = np.diff(list_starts)
        exacts[sets] = is_exact & has_list
        lists.append(found[:written])
        listed += written
    table = np.stack([leaf_kinds, leaf_a, leaf_b, exacts]).astype(np.uint32).T
    packed = leaf_a + (leaf_kinds.astype(np.uint32) << kernels.KIND_SHIFT)
    packed[exacts] += kernels.EXACT_BIT
    terms = np.stack([packed, leaf_b], axis=1)[placed]
    survival = np.empty(len(rows), np.float32)
    kernels.stop_early(leaf_starts, shares[placed], np.float32(_FEW), terms, survival)
    # A step without a leaf, or with one that has no maps, lets every event through.
    has_leaf = step_leaves != kernels.NONE
    steps = np.zeros((len(step_leaves), 4), np.uint32)
    steps[:, 0] = draft.step_actions[steps_used]
    steps[has_leaf, 1:] = table[step_leaves[has_leaf]][:, :3]
    is_inexact = np.isin(steps[:, 0], (kernels.START, kernels.INTERSECT, kernels.UNITE))
    is_inexact[has_leaf] = ~exacts[step_leaves[has_leaf]]
    inexact = np.concatenate([[0], np.cumsum(is_inexact)])
    step_starts = np.concatenate([[0], step_ends])
    is_exact = inexact[step_starts[1:]] == inexact[step_starts[:-1]]
    # Where few events survive the leaves, the tree is followed event by event.
    kept = survival >= _FEW
    keep_steps = np.repeat(kept, step_counts)
    starts = np.concatenate([[0], np.cumsum(np.where(kept, step_counts, 0))])
    flags = np.concatenate([is_exact, [False]])
    return Maps(
        axes,
        np.array(bases, np.int64),
        np.array(counts, np.int64),
        buckets,
        used,
        terms,
        np.concatenate(lists),
        steps[keep_steps],
        (2 * starts + flags).astype(np.uint32),
    )


def _buckets(code_count: int, sample: npt.NDArray[np.uint32] | None) -> npt.NDArray[np.uint16]:
    """Return the bucket of each code. Code 0, NULL, has a bucket of its own, which no leaf asks for."""
    if code_count <= _MOST_EXACT:
        return np.arange(code_count, dtype=np.uint16)
    if sample is None or not len(sample):
        weights: npt.NDArray[np.float64] = np.ones(code_count)
    else:
        weights = (np.bincount(sample, minlength=code_count)[:code_count] + 1e-3).astype(np.float64)
    weights[0] = 0
    share = np.cumsum(weights) / weights.sum()
    bucket_of = np.minimum(share * _BUCKETS, _BUCKETS - 1).astype(np.int64) + 1
    bucket_of[0] = 0
    _, dense = np.unique(bucket_of, return_inverse=True)
    return dense.astype(np.uint16)
