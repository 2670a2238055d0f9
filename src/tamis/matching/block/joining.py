"""How do several drafts become one, without what nobody asks any more? Compaction of segments.

Segments are merged from their drafts, without going back to the expressions. First each draft loses what belongs to
removed subscriptions only: clauses, trees, leaves, sets, operands, axes. Otherwise a matcher whose subscriptions come
and go would grow for ever. Then the axes of all are united, and the drafts stand one behind the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.matching.axes import TRUTH, Axis, AxisKey
from tamis.matching.block.breathing import breathe
from tamis.matching.block.draft import ClauseTable, Draft, TreeJumps, TreeSteps
from tamis.matching.block.kernels import NONE
from tamis.matching.leaves import Ints, LeafColumns, sorted_operands
from tamis.ragged import Ragged, places_of, starts_of

if TYPE_CHECKING:
    from collections.abc import Iterable

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.uint32]


def joined(drafts: list[Draft], alive: list[Flags]) -> Draft:
    """Join drafts into one, without the subscriptions that are no longer alive."""
    drafts = [compacted(draft, living) for draft, living in zip(drafts, alive, strict=True)]
    numbers: dict[AxisKey, int] = {}
    for draft in drafts:
        for axis in draft.axes:
            numbers.setdefault(axis.key, len(numbers))
    pooled: list[list[Any]] = [[] for _ in numbers]
    for draft in drafts:
        for axis in draft.axes:
            pooled[numbers[axis.key]] += axis.operands
    axes: list[Axis] = []
    places: list[Ints] = []
    for key, operands in zip(numbers, pooled, strict=True):
        unique, place = sorted_operands(key.kind, operands)
        breathe()
        axes.append(Axis(key, unique))
        places.append(place)
    used = [0] * len(numbers)
    parts: list[Draft] = []
    for draft in drafts:
        moves = []
        for axis in draft.axes:
            number = numbers[axis.key]
            moves.append(places[number][used[number] : used[number] + len(axis.operands)])
            used[number] += len(axis.operands)
        breathe()
        parts.append(_moved(draft, np.array([numbers[axis.key] for axis in draft.axes], np.uint32), moves))
    return _concatenated(axes, parts)


def compacted(draft: Draft, alive: Flags) -> Draft:
    """Return a draft of the subscriptions that are alive, and of nothing else."""
    if alive.all():
        return draft
    draft = thinned(draft, alive)
    is_used = np.zeros(len(draft.leaves.axes), np.bool_)
    is_used[draft.clauses.leaves.values] = is_used[draft.jumps.leaves] = True
    is_used[draft.steps.leaves[draft.steps.leaves != NONE]] = True
    numbers = (np.cumsum(is_used) - 1).astype(np.uint32)
    owners = (np.cumsum(alive) - 1)[draft.clauses.owners].astype(np.uint32)
    axes, leaves, sets = _compacted_leaves(draft.axes, draft.leaves.chosen(is_used), draft.sets)
    clauses, jumps, steps = draft.clauses, draft.jumps, draft.steps
    return Draft(
        axes,
        draft.handles[alive],
        leaves,
        sets,
        clauses._replace(owners=owners, leaves=clauses.leaves._replace(values=numbers[clauses.leaves.values])),
        jumps._replace(leaves=numbers[jumps.leaves]),
        steps._replace(leaves=_renumbered(steps.leaves, numbers)),
    )


def _compacted_leaves(
    axes: list[Axis], leaves: LeafColumns, sets: Ragged[np.int32]
) -> tuple[list[Axis], LeafColumns, Ragged[np.int32]]:
    """Return the axes, operands and sets that leaves ask for, without all others, and the leaves over them."""
    a, b = leaves.a.astype(np.int64), leaves.b.astype(np.int64)
    is_set, is_span = leaves.is_set, leaves.is_span
    sets = sets.chosen(a[is_set])
    set_sizes, members = sets.counts, sets.values.astype(np.int64)

    # Which operands are asked for, on all axes one behind the other?
    offsets = starts_of([len(axis.operands) for axis in axes])
    is_asked = np.repeat(np.array([axis.key.kind == TRUTH for axis in axes], np.bool_), np.diff(offsets))
    base = offsets[leaves.axes]
    set_base = np.repeat(base[is_set], set_sizes)
    is_asked[(base + a)[~is_set]] = is_asked[(base + b)[is_span]] = is_asked[set_base + members] = True
    has_leaf = np.bincount(leaves.axes, minlength=len(axes)) > 0
    axis_numbers = (np.cumsum(has_leaf) - 1).astype(np.uint32)
    used_axes = [
        Axis(axis.key, [operand for operand, asked in zip(axis.operands, is_asked[start:], strict=False) if asked])
        for axis, start, used in zip(axes, offsets, has_leaf, strict=False)
        if used
    ]
    places = np.cumsum(is_asked) - 1  # among the asked ones of all axes
    moved_base = starts_of(is_asked)[offsets][leaves.axes]  # where each leaf's axis starts there
    a[~is_set] = places[(base + a)[~is_set]] - moved_base[~is_set]
    a[is_set] = np.arange(len(set_sizes))
    b = np.where(is_span, places[np.minimum(base + b, len(places) - 1)] - moved_base, 0)
    operands = places[set_base + members] - np.repeat(moved_base[is_set], set_sizes)
    return (
        used_axes,
        LeafColumns(axis_numbers[leaves.axes], leaves.operations, a.astype(np.int32), b.astype(np.int32)),
        sets._replace(values=operands.astype(np.int32)),
    )


def _renumbered(leaves: Numbers, numbers: Numbers) -> Numbers:
    """Return the leaves of steps by their new numbers; a step without a leaf stays without."""
    if not len(numbers):
        return leaves
    has_leaf = leaves != NONE
    return np.where(has_leaf, numbers[np.where(has_leaf, leaves, 0)], NONE).astype(np.uint32)


def thinned(draft: Draft, wanted: Flags) -> Draft:
    """Return a draft without the clauses of some subscriptions; all else stays as it is, their handles too."""
    return _with_clauses(draft, np.flatnonzero(wanted[draft.clauses.owners]))


def ordered(draft: Draft) -> Draft:
    """Return a draft whose subscriptions came in any order in the order of their handles."""
    order = np.argsort(draft.handles, kind="stable")
    places = np.empty(len(order), np.uint32)
    places[order] = np.arange(len(order))
    owners = places[draft.clauses.owners]
    moved = replace(draft, handles=draft.handles[order], clauses=draft.clauses._replace(owners=owners))
    return _with_clauses(moved, np.argsort(owners, kind="stable"))


def _with_clauses(draft: Draft, keep: Ints) -> Draft:
    """Return a draft of some clauses, by number, in this order."""
    clauses = draft.clauses
    step_counts, tree_sizes, trees = draft.steps.counts[keep], draft.tree_sizes()[keep], clauses.trees[keep]
    steps = places_of(draft.steps.starts[:-1][keep], step_counts)
    in_trees = places_of(np.maximum(trees, 0), tree_sizes)
    return replace(
        draft,
        clauses=ClauseTable(
            clauses.owners[keep],
            clauses.ordinals[keep],
            np.where(trees < 0, -1, np.cumsum(tree_sizes) - tree_sizes).astype(np.int32),
            clauses.leaves.chosen(keep),
        ),
        jumps=TreeJumps(*(column[in_trees] for column in draft.jumps)),
        steps=TreeSteps(starts_of(step_counts, np.int32), draft.steps.actions[steps], draft.steps.leaves[steps]),
    )


def _moved(draft: Draft, axis_numbers: Numbers, moves: list[Ints]) -> Draft:
    """Express a draft over other axes and operands."""
    leaves, sets, is_set = draft.leaves, draft.sets, draft.leaves.is_set
    offsets = starts_of([len(move) for move in moves])
    flat = np.concatenate([*moves, np.zeros(1, np.int64)])
    base = offsets[leaves.axes]
    a = np.where(is_set, leaves.a, flat[np.where(is_set, 0, base + leaves.a)])
    b = flat[np.minimum(base + leaves.b, len(flat) - 1)]
    set_axes = np.zeros(sets.list_count, np.int64)
    set_axes[leaves.a[is_set]] = leaves.axes[is_set]
    set_base = np.repeat(offsets[set_axes], sets.counts)
    axes = axis_numbers[leaves.axes] if len(leaves.axes) else leaves.axes
    return replace(
        draft,
        axes=[],
        leaves=LeafColumns(axes, leaves.operations, a.astype(np.int32), b.astype(np.int32)),
        sets=sets._replace(values=flat[set_base + sets.values].astype(np.int32)),
    )


def _concatenated(axes: list[Axis], parts: list[Draft]) -> Draft:
    """Put drafts over the same axes one behind the other; what points into a table moves on by the tables before."""
    leaf_counts = [len(part.leaves.axes) for part in parts]
    leaves = LeafColumns(*(np.concatenate(column) for column in zip(*(part.leaves for part in parts), strict=True)))
    set_numbers = _shifted([part.leaves.a for part in parts], [part.sets.list_count for part in parts], np.int32)
    trees = _shifted([part.clauses.trees for part in parts], [len(part.jumps.leaves) for part in parts], np.int32)
    trees[np.concatenate([part.clauses.trees for part in parts]) < 0] = -1
    step_leaves = _shifted([part.steps.leaves for part in parts], leaf_counts, np.uint32)
    step_leaves[np.concatenate([part.steps.leaves for part in parts]) == NONE] = NONE
    return Draft(
        axes,
        np.concatenate([part.handles for part in parts]),
        leaves._replace(a=np.where(leaves.is_set, set_numbers, leaves.a)),
        Ragged(_starts(part.sets.counts for part in parts), np.concatenate([part.sets.values for part in parts])),
        ClauseTable(
            _shifted([part.clauses.owners for part in parts], [len(part.handles) for part in parts], np.uint32),
            np.concatenate([part.clauses.ordinals for part in parts]),
            trees,
            Ragged(
                _starts(part.clauses.leaves.counts for part in parts),
                _shifted([part.clauses.leaves.values for part in parts], leaf_counts, np.uint32),
            ),
        ),
        TreeJumps(
            _shifted([part.jumps.leaves for part in parts], leaf_counts, np.uint32),
            np.concatenate([part.jumps.on_true for part in parts]),
            np.concatenate([part.jumps.on_false for part in parts]),
        ),
        TreeSteps(
            _starts(part.steps.counts for part in parts),
            np.concatenate([part.steps.actions for part in parts]),
            step_leaves,
        ),
    )


def _shifted(columns: list[npt.NDArray[Any]], sizes: list[int], dtype: Any) -> npt.NDArray[Any]:
    """Return columns one behind the other, each moved on by the sizes of the tables that stand before its own."""
    shifts = starts_of(sizes)
    moved = [column.astype(np.int64) + shift for column, shift in zip(columns, shifts, strict=False)]
    return np.concatenate(moved).astype(dtype)


def _starts(counts: Iterable[npt.NDArray[Any]]) -> npt.NDArray[np.int32]:
    """Return where lists start that stand one behind the other, part after part."""
    return starts_of(np.concatenate(list(counts)), np.int32)
