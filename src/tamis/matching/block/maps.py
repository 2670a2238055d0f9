"""How is a clause checked against all events of a block at once? Bitmap indexes over a block of events.

A clause that many events reach gains nothing from being found by a key. Each of its leaves is a bitmap over the
block instead, and the clause is the intersection. An axis keeps one map for each of its buckets of codes, and one
for each union of the buckets up to a point; an interval is then one map, or a difference of two. An axis with few
codes has a bucket for each, and its maps are exact. One with many has buckets of about equally many events; the
intersection holds a few events too many, and those that are left at the end are checked exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.matching import operations as op
from tamis.matching.block import kernels
from tamis.matching.block.kernels import Broad
from tamis.ragged import places_of

if TYPE_CHECKING:
    from tamis.matching.block.draft import Draft
    from tamis.matching.block.kernels import Layout, LeafTable
    from tamis.matching.leaves import Ints

Flags = npt.NDArray[np.bool_]

_MOST_EXACT = 160
"""Up to so many codes an axis has a bucket for each."""
_BUCKETS = 64
_LONGEST_LIST = 16
_CHECKED_SINGLY = 0.001
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
    broad: Broad
    """The rows that are checked with them."""

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
    leaves: LeafTable,
    layout: Layout,
    is_broad: Flags,
    broad_rows: npt.NDArray[np.int32],
    sample_codes: list[npt.NDArray[Any]] | None,
) -> Maps:
    """Plan the maps for the placed leaves and the trees of broad clauses (`is_broad`, by row)."""
    steps = _BroadSteps.of(draft, layout, is_broad)
    mapped = _mapped_leaves(draft, leaves, layout, is_broad, steps)
    axes, buckets = _mapped_axes(draft, mapped, sample_codes)
    bases, counts, used = [], [], 0
    for bucket_of in buckets:
        bases.append(used)
        counts.append(int(bucket_of[-1]) + 1)
        used += 2 * counts[-1] + 1
    on_maps = _OnMaps.of(mapped, draft, leaves, axes, buckets, bases)
    terms = on_maps.packed()[layout.leaves.values]
    survival = np.empty(len(layout.clauses), np.float32)
    shares = leaves.shares[layout.leaves.values]
    kernels.stop_early(layout.leaves.starts, shares, np.float32(_CHECKED_SINGLY), terms, survival)
    # Where few events survive the leaves, the tree is followed event by event.
    kept = survival >= _CHECKED_SINGLY
    broad = Broad(broad_rows, terms, on_maps.lists, *_tree_steps(draft, steps, on_maps, kept))
    return Maps(axes, np.array(bases, np.int64), np.array(counts, np.int64), buckets, used, broad)


class _BroadSteps(NamedTuple):
    """The steps of the trees of broad rows, one row behind the other.

    counts   int64[rows]  how many each row has
    numbers  int64[:]     which of the draft's steps they are
    leaves   uint32[:]    their leaves, NONE where a step has none
    """

    counts: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    leaves: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, draft: Draft, layout: Layout, is_broad: Flags) -> _BroadSteps:
        counts = np.where(is_broad, draft.steps.counts[layout.clauses], 0)
        numbers = places_of(draft.steps.starts[:-1][layout.clauses], counts)
        return cls(counts, numbers, draft.steps.leaves[numbers])


def _mapped_leaves(draft: Draft, leaves: LeafTable, layout: Layout, is_broad: Flags, steps: _BroadSteps) -> Ints:
    """Return the leaves that broad rows ask, as far as bitmaps can say something about them."""
    is_used = np.zeros(len(leaves.kinds), np.bool_)
    is_used[layout.leaves.values[np.repeat(is_broad, layout.leaves.counts)]] = True
    is_used[steps.leaves[steps.leaves != kernels.NONE]] = True
    # Intervals, and sets that a value must be in.
    return np.flatnonzero(is_used & ((leaves.kinds == kernels.INTERVAL) | (draft.leaves.operations == op.AMONG)))


def _mapped_axes(
    draft: Draft, mapped: Ints, sample_codes: list[npt.NDArray[Any]] | None
) -> tuple[Ints, list[npt.NDArray[np.uint16]]]:
    """Return the axes that some leaves ask about, and the bucket of each code of each."""
    axes = np.flatnonzero(np.bincount(draft.leaves.axes[mapped], minlength=1))
    samples = [None if sample_codes is None else sample_codes[axis] for axis in axes]
    counts = [draft.axes[axis].code_count for axis in axes]
    return axes, [_buckets(count, sample) for count, sample in zip(counts, samples, strict=True)]


class _OnMaps(NamedTuple):
    """What each leaf of a draft is on bitmaps. Invariant: EVERY, which is no help, is not exact.

    kinds   uint8[leaves]   EVERY, ONE_MAP, DIFFERENCE or ANY_MAP
    a       uint32[leaves]  its map, or where its list starts
    b       uint32[leaves]  the map to take away, or how long its list is
    exacts  bool[leaves]    whether its maps hold no event too many
    lists   uint32[:]       the maps of sets, one set behind the other
    """

    kinds: npt.NDArray[np.uint8]
    a: npt.NDArray[np.uint32]
    b: npt.NDArray[np.uint32]
    exacts: Flags
    lists: npt.NDArray[np.uint32]

    @classmethod
    def of(
        cls,
        mapped: Ints,
        draft: Draft,
        leaves: LeafTable,
        axes: Ints,
        buckets: list[npt.NDArray[np.uint16]],
        bases: list[int],
    ) -> _OnMaps:
        """Find the maps of some leaves; those of each axis start at its base."""
        count = len(leaves.kinds)
        nothing = np.zeros(1, np.uint32)
        table = cls(
            np.zeros(count, np.uint8), np.zeros(count, np.uint32), np.zeros(count, np.uint32),
            np.zeros(count, np.bool_), nothing,
        )  # fmt: skip
        lists, listed = [nothing], 1
        # All axes at once: to look for the leaves of each among all of them would take the square of a long condition.
        by_axis = mapped[np.argsort(draft.leaves.axes[mapped], kind="stable")]
        ends = np.searchsorted(draft.leaves.axes[by_axis], axes, "right")
        of_axes = np.split(by_axis, ends)[: len(axes)]  # no leaf is of another axis
        for mine, bucket_of, base in zip(of_axes, buckets, bases, strict=True):
            is_interval = leaves.kinds[mine] == kernels.INTERVAL
            table._note_intervals(mine[is_interval], leaves, bucket_of, base)
            of_sets = table._note_sets(mine[~is_interval], draft, bucket_of, base, listed)
            lists.append(of_sets)
            listed += len(of_sets)
        return table._replace(lists=np.concatenate(lists))

    def _note_intervals(self, intervals: Ints, leaves: LeafTable, bucket_of: npt.NDArray[np.uint16], base: int) -> None:
        """An interval is one bucket, or all up to its last without all up to its first."""
        count = int(bucket_of[-1]) + 1
        starts = _bucket_starts(bucket_of)
        is_void = leaves.firsts[intervals] >= len(bucket_of)
        plain, void = intervals[~is_void], intervals[is_void]
        low = leaves.firsts[plain].astype(np.int64)
        high = np.minimum(low + leaves.spans[plain], len(bucket_of) - 1)
        first, last = bucket_of[low].astype(np.int64), bucket_of[high].astype(np.int64)
        is_one = first == last
        self.kinds[plain] = np.where(is_one, kernels.ONE_MAP, kernels.DIFFERENCE)
        self.a[plain] = np.where(is_one, base + first, base + count + last + 1)
        self.b[plain] = base + count + first
        self.exacts[plain] = (starts[first] == low) & (starts[last + 1] == high + 1)
        # What nothing lies in is the union of no bucket.
        self.kinds[void], self.a[void], self.exacts[void] = kernels.ONE_MAP, base + count, True

    def _note_sets(
        self, sets: Ints, draft: Draft, bucket_of: npt.NDArray[np.uint16], base: int, listed: int
    ) -> npt.NDArray[np.uint32]:
        """A set is any of the buckets of its members; returns their maps, which stand behind `listed` others."""
        starts = np.empty(len(sets) + 1, np.int64)
        listed_maps = np.empty(_LONGEST_LIST * len(sets), np.uint32)
        is_exact = np.empty(len(sets), np.bool_)
        written = kernels.list_buckets(
            draft.leaves.a[sets].astype(np.int64), draft.sets, bucket_of, np.diff(_bucket_starts(bucket_of)),
            _LONGEST_LIST, starts, listed_maps, is_exact,
        )  # fmt: skip
        has_list = np.diff(starts) > 0
        self.kinds[sets] = np.where(has_list, kernels.ANY_MAP, kernels.EVERY)
        self.a[sets] = listed + starts[:-1]
        self.b[sets] = np.diff(starts)
        self.exacts[sets] = is_exact & has_list
        return listed_maps[:written] + np.uint32(base)

    def packed(self) -> npt.NDArray[np.uint32]:
        """Return two words for each leaf: the first map with kind and exactness, and the second."""
        first = self.a + (self.kinds.astype(np.uint32) << kernels.KIND_SHIFT)
        first[self.exacts] += kernels.EXACT_BIT
        return np.stack([first, self.b], axis=1)


def _bucket_starts(bucket_of: npt.NDArray[np.uint16]) -> Ints:
    """Return the first code of each bucket, and the number of codes."""
    return np.concatenate([[0], np.flatnonzero(np.diff(bucket_of)) + 1, [len(bucket_of)]])


def _tree_steps(
    draft: Draft, steps: _BroadSteps, on_maps: _OnMaps, kept: Flags
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Return the steps of the rows that keep theirs, and for each row where they start and whether they are exact."""
    # A step without a leaf, or with one that has no maps, lets every event through.
    has_leaf = steps.leaves != kernels.NONE
    of_leaves = np.stack([on_maps.kinds, on_maps.a, on_maps.b]).astype(np.uint32).T
    rows = np.zeros((len(steps.leaves), 4), np.uint32)
    rows[:, 0] = draft.steps.actions[steps.numbers]
    rows[has_leaf, 1:] = of_leaves[steps.leaves[has_leaf]]
    is_inexact = np.isin(rows[:, 0], (kernels.START, kernels.INTERSECT, kernels.UNITE))
    is_inexact[has_leaf] = ~on_maps.exacts[steps.leaves[has_leaf]]
    inexact_before = np.concatenate([[0], np.cumsum(is_inexact)])
    ends = np.cumsum(steps.counts)
    is_exact = inexact_before[ends] == inexact_before[ends - steps.counts]
    starts = np.concatenate([[0], np.cumsum(np.where(kept, steps.counts, 0))])
    flags = np.concatenate([is_exact, [False]])
    return rows[np.repeat(kept, steps.counts)], (2 * starts + flags).astype(np.uint32)


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
