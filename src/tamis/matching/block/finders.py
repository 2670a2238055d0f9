"""By what does a single event find the clauses it should be tried on? Cells of two values, and ranges in buckets.

A block finds a clause by its most selective leaf. For a single event that leaves too many: of 100,000 conjunctions of
five predicates each event would try thousands, because a predicate alone holds for some hundredth of the events. Two
predicates together hold for a few in ten thousand. So a clause that asks for a value each on two axes lies in the
*cell* of these two values. An event looks into one cell of every pair of axes, which costs about as much as trying a
few clauses; a pair has cells only if that is saved, and if its cells are not many more than its clauses.

What is found by a range lies in *buckets*: some neighbouring codes of an axis, with the ranges that reach into them.

    title = 'Tamis' AND price = 3 AND bids < 5       in the cell ('Tamis', 3) of (title, price)
    title = 'Tamis' AND bids < 5                     in the cell 'Tamis' of title
    bids < 5                                         in the buckets of bids up to that of 5

Which leaf a block chose must be asked for here as well, because the row of the clause may leave it out: it is one of
the pair, or an interval of the probe.

Source: the choice of access predicates by their selectivity, with conjunctions of two as candidates, follows Fabret et
al. 2001, section 3 (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tamis.matching import operations as op
from tamis.matching.axes import TRUTH
from tamis.matching.block import kernels, probing
from tamis.matching.block.breathing import breathe
from tamis.matching.block.probing import Finders, Hulls, Probes
from tamis.ragged import Ragged, places_of, starts_of

if TYPE_CHECKING:
    from tamis.matching.block.draft import Draft
    from tamis.matching.block.kernels import LeafTable, Program
    from tamis.matching.leaves import Ints

_MOST_COPIES = 8
"""A clause that is found by sets lies in so many cells at most."""
_COPY = 0.002
"""A copy of a clause is worth this share of the events."""
_PAIRED_AXES = 64
"""So many axes, those that most clauses ask for a value, may have pairs."""
_LOOK = 4.0
"""To look into the cell of a pair takes as long as to try so many clauses."""
_CELLS_PER_CLAUSE = 4
"""A pair of axes has no cells if they were more than so many for each clause in them."""
_BUCKETS_PER_RANGE = 4
"""Buckets are so narrow that a range reaches into so many on average."""
_MOST_BUCKET_BITS = 8
_NO_CODE = 2**32 - 2
"""From here on are codes that no value has."""


@dataclass(frozen=True, slots=True)
class _Points:
    """Which leaves ask for one value, or for one of a few: `sizes` of them, which lie at `starts` in `places`."""

    starts: Ints
    sizes: Ints
    places: Ints


def laid_out(
    draft: Draft, leaves: LeafTable, chosen: Ints, keeps_chosen: npt.NDArray[np.bool_], program: Program
) -> tuple[Finders, Probes]:
    """Return by what single events find clauses, given the leaf that a block finds each by, and if rows ask it too."""
    widths = [int(axis.code_count - 1).bit_length() for axis in draft.axes]
    shifts = np.array([max(0, width - 16) for width in widths], np.uint8)
    truths = np.array([axis.key.kind == TRUTH for axis in draft.axes], np.uint8)
    points = _points(draft, leaves, truths)
    is_there = program.clause_rows != kernels.NONE
    demanded = _demanded(leaves, chosen, keeps_chosen, shifts)
    pairs, axes_of_groups = _pairs(draft, leaves, points, chosen, demanded, is_there)
    breathe()
    by_pair = pairs[:, 0] >= 0
    by_point = is_there & ~by_pair & (chosen >= 0)
    if len(points.sizes):
        by_point &= points.sizes[chosen] > 0
    by_range = is_there & ~by_pair & ~by_point & (chosen >= 0)
    scanned = np.flatnonzero(is_there & (chosen < 0))
    found_by = pairs.copy()
    found_by[by_point | by_range, 0] = chosen[by_point | by_range]
    cells, table, clauses = _cells(draft, leaves, points, np.where(by_range[:, None], -1, found_by), axes_of_groups)
    ranged, buckets, bounds, ranges = _buckets(draft, leaves, chosen, np.flatnonzero(by_range))
    breathe()
    count = draft.clause_count
    asked = Probes(
        shifts, np.empty((count, probing.FIRST_PART), np.uint16), np.empty((count, probing.SECOND_PART), np.uint16)
    )
    left = np.where((found_by == chosen[:, None]).any(axis=1), -1, demanded)
    probing.choose_probes(draft.clauses.leaves, found_by, left, leaves, _hulls(draft, leaves), shifts, asked)
    _write_whose(asked.rows, draft, program)
    order = np.concatenate([clauses, ranges, scanned])
    finders = Finders(
        truths, cells, table, ranged, buckets.starts, buckets.values, bounds,
        len(clauses), len(clauses) + len(ranges),
    )  # fmt: skip
    return finders, Probes(shifts, asked.firsts[order], asked.rows[order])


def _points(draft: Draft, leaves: LeafTable, truths: npt.NDArray[np.uint8]) -> _Points:
    """Return the places of the values that leaves ask for."""
    sets = draft.sets
    among = draft.leaves.operations == op.AMONG
    numbers = np.where(among, draft.leaves.a, 0)
    firsts = leaves.firsts.astype(np.int64)
    is_truth = truths[leaves.axes] == 1 if len(truths) else np.zeros(len(firsts), np.bool_)
    is_point = (leaves.kinds == kernels.INTERVAL) & (leaves.spans == 0) & (firsts < _NO_CODE) & ~among
    is_point &= is_truth | (firsts % 2 == 0)
    sizes = is_point.astype(np.int64)
    starts = len(sets.values) + np.arange(len(firsts))
    if sets.list_count:
        # As many members as a block would have keys for: more are asked for as a set.
        is_found = among & (sets.counts[numbers] <= kernels.MOST_KEYS_OF_A_SET)
        sizes = np.where(is_found, sets.counts[numbers], sizes)
        starts = np.where(among, sets.starts[numbers], starts)
    places = np.where(is_truth, firsts - 1, firsts // 2 - 1)
    return _Points(starts, sizes, np.concatenate([sets.values.astype(np.int64), places]))


def _demanded(
    leaves: LeafTable, chosen: Ints, keeps_chosen: npt.NDArray[np.bool_], shifts: npt.NDArray[np.uint8]
) -> Ints:
    """Return for each clause the leaf that its row leaves out; -1 for none, and -2 - leaf if no probe can ask it."""
    demanded = np.where(keeps_chosen, -1, chosen)
    if not len(leaves.kinds):
        return demanded
    axes = leaves.axes[demanded]
    is_exact = (leaves.kinds[demanded] == kernels.INTERVAL) & (shifts[axes] == 0) & (axes <= probing.MOST_AXES)
    return np.where((demanded >= 0) & ~is_exact, -2 - demanded, demanded)


def _pairs(
    draft: Draft, leaves: LeafTable, points: _Points, chosen: Ints, demanded: Ints, is_there: npt.NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """Return the two leaves that each clause is found by, -1 where it is found by one; and the axes that have pairs."""
    pairs = np.full((draft.clause_count, 2), -1, np.int64)
    asking = draft.clauses.leaves.values[points.sizes[draft.clauses.leaves.values] > 0]
    counts = np.bincount(leaves.axes[asking], minlength=len(draft.axes))
    axes = np.sort(np.argsort(-counts, kind="stable")[:_PAIRED_AXES])
    axes = axes[counts[axes] > 0]
    if len(axes) < 2:
        return pairs, axes
    groups = np.full(len(draft.axes), -1, np.int64)
    groups[axes] = np.arange(len(axes))
    shares = np.where(chosen >= 0, leaves.shares[chosen], 1.0).astype(np.float64)
    costs = np.where(is_there, shares, 0.0)  # what never holds is not worth a pair
    sizes = np.where(points.sizes <= _MOST_COPIES, points.sizes, 0)
    place_counts = _place_counts(draft)[axes].astype(np.float64)
    cell_counts = np.outer(place_counts, place_counts)
    allowed = np.ones((len(axes), len(axes)), np.bool_)
    # Chosen twice: the second time, only pairs that are worth having are left.
    for _ in range(2):
        gains = np.zeros((*allowed.shape, 2), np.float64)
        asked = probing.PairLeaves(sizes, groups[leaves.axes], leaves.shares, _MOST_COPIES, _COPY)
        probing.choose_pairs(draft.clauses.leaves, asked, demanded, costs, allowed, pairs, gains)
        breathe()
        allowed &= (gains[:, :, 1] > _LOOK) & (cell_counts <= _CELLS_PER_CLAUSE * gains[:, :, 0])
    return pairs, axes


def _place_counts(draft: Draft) -> Ints:
    """Return how many values can be asked for on each axis."""
    return np.array([2 if axis.key.kind == TRUTH else len(axis.operands) for axis in draft.axes], np.int64)


def _cells(
    draft: Draft, leaves: LeafTable, points: _Points, found_by: Ints, paired_axes: Ints
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], Ints]:
    """Return the pairs of axes, where the clauses of each cell start, and the clauses, in the order of their cells."""
    none = len(draft.axes)
    is_in = found_by[:, 0] >= 0
    one, other = found_by[is_in].T
    axes = np.stack([leaves.axes[one], np.where(other >= 0, leaves.axes[other], none)]).astype(np.int64)
    used, numbers = np.unique(axes[0] * (none + 1) + axes[1], return_inverse=True)
    place_counts = np.append(_place_counts(draft), 1)
    firsts, seconds = used // (none + 1), used % (none + 1)
    cell_starts = starts_of(place_counts[firsts] * place_counts[seconds])
    pairs = np.stack([firsts, seconds, place_counts[seconds], cell_starts[:-1]], axis=1).astype(np.uint32)
    sizes = points.sizes[one] * np.where(other >= 0, points.sizes[other], 1)
    cells, clauses = np.empty((2, int(sizes.sum())), np.int64)
    bases = np.stack([cell_starts[:-1][numbers], place_counts[seconds][numbers]], axis=1)
    probing.write_cells(found_by[is_in], bases, points.starts, points.sizes, points.places, cells, clauses)
    order = np.argsort(cells, kind="stable")
    table = starts_of(np.bincount(cells, minlength=int(cell_starts[-1])), np.uint32)
    return pairs, table, np.flatnonzero(is_in)[clauses[order]]


def _buckets(
    draft: Draft, leaves: LeafTable, chosen: Ints, clauses: Ints
) -> tuple[npt.NDArray[np.uint32], Ragged[np.uint32], npt.NDArray[np.uint32], Ints]:
    """Return the axes of ranges, the ranges of each bucket, the bounds of all ranges, and their clauses, in order."""
    leaf = chosen[clauses]
    order = np.lexsort((leaves.firsts[leaf], leaves.axes[leaf]))
    clauses, leaf = clauses[order], leaf[order]
    axes, firsts = leaves.axes[leaf].astype(np.int64), leaves.firsts[leaf].astype(np.int64)
    lasts = firsts + leaves.spans[leaf]
    ranged, buckets, members, bucket_count = [], [], [], 0
    for axis in np.unique(axes).tolist():
        mine = np.flatnonzero(axes == axis)
        top = draft.axes[axis].code_count - 1
        shift = _shift(firsts[mine], lasts[mine], top)
        begins = firsts[mine] >> shift
        counts = (np.minimum(lasts[mine], top) >> shift) - begins + 1
        ranged.append((axis, shift, bucket_count))
        buckets.append(bucket_count + places_of(begins, counts))
        members.append(np.repeat(mine, counts))
        bucket_count += (top >> shift) + 1
    empty = np.zeros(0, np.int64)
    grouped = Ragged.grouped(
        np.concatenate([empty, *buckets]), np.concatenate([empty, *members]).astype(np.uint32), bucket_count
    )
    bounds = np.stack([firsts, lasts - firsts], axis=1).astype(np.uint32)
    return (
        np.array(ranged, np.uint32).reshape(-1, 3),
        Ragged(grouped.starts.astype(np.uint32), grouped.values),
        bounds,
        clauses,
    )


def _shift(firsts: Ints, lasts: Ints, top: int) -> int:
    """Return by how many bits codes are shifted so that buckets are as narrow as they may be."""
    width = int(top).bit_length()
    shift = max(0, width - _MOST_BUCKET_BITS)
    while shift < width:
        if int(((lasts >> shift) - (firsts >> shift) + 1).sum()) <= _BUCKETS_PER_RANGE * len(firsts):
            break
        shift += 1
    return shift


def _hulls(draft: Draft, leaves: LeafTable) -> Hulls:
    """Return an interval around each leaf."""
    firsts, lasts = leaves.firsts.copy(), leaves.firsts + leaves.spans
    is_interval = (leaves.kinds == kernels.INTERVAL) & (firsts < _NO_CODE)
    costs = np.where(is_interval, leaves.shares, np.float32(np.inf))
    sets = np.flatnonzero(draft.leaves.operations == op.AMONG)
    if len(sets):
        numbers = draft.leaves.a[sets]
        least = draft.sets.values[draft.sets.starts[numbers]]  # members lie in order
        greatest = draft.sets.values[draft.sets.starts[numbers + 1] - 1]
        firsts[sets], lasts[sets] = 2 * least + 2, 2 * greatest + 2
        costs[sets] = np.minimum(_WIDTH_OF_A_HULL * leaves.shares[sets], 1)
    return Hulls(firsts, lasts, costs)


_WIDTH_OF_A_HULL = 4
"""The interval around a set holds about so many times the events that the set holds."""


def _write_whose(asked: npt.NDArray[np.uint16], draft: Draft, program: Program) -> None:
    """Write into each probe whose it is where it asks all, and else the row of its clause."""
    is_all = asked[:, probing.WHOSE + 1] != 0
    has_tree = draft.clauses.trees >= 0
    numbers = np.where(is_all & ~has_tree, draft.clauses.owners, program.clause_rows).astype(np.uint32)
    numbers &= probing.NUMBER
    numbers[is_all & ~has_tree] |= probing.IS_ALL
    numbers[is_all & has_tree] |= probing.IS_TREE_LEFT
    asked[:, probing.WHOSE], asked[:, probing.WHOSE + 1] = numbers & 0xFFFF, numbers >> 16


def owners_of(probes: Probes, program: Program) -> npt.NDArray[np.uint32]:
    """Return whose clause each probe is."""
    whose = probes.rows[:, probing.WHOSE].astype(np.uint32)
    whose |= probes.rows[:, probing.WHOSE + 1].astype(np.uint32) << np.uint32(16)
    numbers = whose & probing.NUMBER
    is_all = whose >= probing.IS_ALL
    owners: npt.NDArray[np.uint32] = numbers.copy()
    owners[~is_all] = program.clauses[numbers[~is_all], kernels.OWNER]
    return owners
