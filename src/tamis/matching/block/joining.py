"""How do several drafts become one, without what nobody asks any more? Compaction of segments.

Segments are merged from their drafts, without going back to the expressions. First each draft loses what belongs to
removed subscriptions only: clauses, trees, leaves, sets, operands, axes. Otherwise a matcher whose subscriptions come
and go would grow for ever. Then the axes of all are united, and the drafts stand one behind the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.matching.axes import TRUTH, Axis, AxisKey
from tamis.matching.block.breathing import breathe
from tamis.matching.block.draft import Draft
from tamis.matching.block.kernels import NONE
from tamis.matching.leaves import Ints, Starts, sorted_operands
from tamis.matching.operations import AMONG, BEYOND, FROM_TO, NOT_AMONG, WITHIN
from tamis.ragged import places_of

Flags = npt.NDArray[np.bool_]


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
    clause_leaves, tree_leaves, step_leaves = draft.clause_leaves, draft.tree_leaves, draft.step_leaves
    is_used = np.zeros(len(draft.leaf_axes), np.bool_)
    is_used[clause_leaves] = is_used[tree_leaves] = is_used[step_leaves[step_leaves != NONE]] = True
    leaf_numbers = (np.cumsum(is_used) - 1).astype(np.uint32)
    leaf_axes, operations = draft.leaf_axes[is_used], draft.leaf_operations[is_used]
    a, b = draft.leaf_a[is_used].astype(np.int64), draft.leaf_b[is_used].astype(np.int64)
    is_set = (operations == AMONG) | (operations == NOT_AMONG)
    set_sizes = np.diff(draft.set_starts)[a[is_set]]
    members = draft.set_operands[places_of(draft.set_starts[:-1][a[is_set]], set_sizes)].astype(np.int64)

    # Which operands are asked for, on all axes one behind the other?
    sizes = np.array([len(axis.operands) for axis in draft.axes], np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    is_asked = np.repeat(np.array([axis.key.kind == TRUTH for axis in draft.axes], np.bool_), sizes)
    is_span = np.isin(operations, (WITHIN, BEYOND, FROM_TO))
    base = offsets[leaf_axes]
    set_base = np.repeat(base[is_set], set_sizes)
    is_asked[(base + a)[~is_set]] = is_asked[(base + b)[is_span]] = is_asked[set_base + members] = True
    has_leaf = np.bincount(leaf_axes, minlength=len(draft.axes)) > 0
    axis_numbers = (np.cumsum(has_leaf) - 1).astype(np.uint32)
    axes = [
        Axis(axis.key, [operand for operand, asked in zip(axis.operands, is_asked[start:], strict=False) if asked])
        for axis, start, used in zip(draft.axes, offsets, has_leaf, strict=False)
        if used
    ]
    places = np.cumsum(is_asked) - 1  # among the asked ones of all axes
    firsts = np.concatenate([[0], np.cumsum(is_asked)])[offsets]  # and where each axis starts there
    moved_base = firsts[leaf_axes]
    a[~is_set] = places[(base + a)[~is_set]] - moved_base[~is_set]
    a[is_set] = np.arange(len(set_sizes))
    b = np.where(is_span, places[np.minimum(base + b, len(places) - 1)] - moved_base, 0)
    return Draft(
        axes,
        draft.handles[alive],
        axis_numbers[leaf_axes],
        operations,
        a.astype(np.int32),
        b.astype(np.int32),
        starts_of_sizes(set_sizes),
        (places[set_base + members] - np.repeat(moved_base[is_set], set_sizes)).astype(np.int32),
        draft.clause_starts,
        leaf_numbers[clause_leaves],
        (np.cumsum(alive) - 1)[draft.clause_owners].astype(np.uint32),
        draft.clause_ordinals,
        draft.clause_trees,
        leaf_numbers[tree_leaves],
        draft.tree_trues,
        draft.tree_falses,
        draft.clause_steps,
        draft.step_actions,
        np.where(step_leaves == NONE, NONE, leaf_numbers[np.where(step_leaves == NONE, 0, step_leaves)]).astype(
            np.uint32
        )
        if len(leaf_numbers)
        else step_leaves,
    )


def thinned(draft: Draft, wanted: Flags) -> Draft:
    """Return a draft without the clauses of some subscriptions; all else stays as it is, their handles too."""
    keep = wanted[draft.clause_owners]
    lengths, step_counts, tree_sizes = (
        sizes[keep] for sizes in (np.diff(draft.clause_starts), np.diff(draft.clause_steps), draft.tree_sizes())
    )
    trees = draft.clause_trees[keep]
    steps = places_of(draft.clause_steps[:-1][keep], step_counts)
    in_trees = places_of(np.maximum(trees, 0), tree_sizes)
    return replace(
        draft,
        clause_starts=starts_of_sizes(lengths),
        clause_leaves=draft.clause_leaves[places_of(draft.clause_starts[:-1][keep], lengths)],
        clause_owners=draft.clause_owners[keep],
        clause_ordinals=draft.clause_ordinals[keep],
        clause_trees=np.where(trees < 0, -1, np.cumsum(tree_sizes) - tree_sizes).astype(np.int32),
        tree_leaves=draft.tree_leaves[in_trees],
        tree_trues=draft.tree_trues[in_trees],
        tree_falses=draft.tree_falses[in_trees],
        clause_steps=starts_of_sizes(step_counts),
        step_actions=draft.step_actions[steps],
        step_leaves=draft.step_leaves[steps],
    )


def starts_of_sizes(sizes: npt.NDArray[Any]) -> Starts:
    """Return where groups of such sizes start."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def _moved(draft: Draft, axis_numbers: npt.NDArray[np.uint32], moves: list[Ints]) -> Draft:
    """Express a draft over other axes and operands."""
    offsets = np.concatenate([[0], np.cumsum([len(move) for move in moves])]).astype(np.int64)
    flat = np.concatenate([*moves, np.zeros(1, np.int64)])
    is_set = (draft.leaf_operations == AMONG) | (draft.leaf_operations == NOT_AMONG)
    base = offsets[draft.leaf_axes]
    a = np.where(is_set, draft.leaf_a, flat[np.where(is_set, 0, base + draft.leaf_a)])
    b = flat[np.minimum(base + draft.leaf_b, len(flat) - 1)]
    set_axes = np.zeros(len(draft.set_starts) - 1, np.int64)
    set_axes[draft.leaf_a[is_set]] = draft.leaf_axes[is_set]
    set_base = np.repeat(offsets[set_axes], np.diff(draft.set_starts))
    return replace(
        draft,
        axes=[],
        leaf_axes=axis_numbers[draft.leaf_axes] if len(draft.leaf_axes) else draft.leaf_axes,
        leaf_a=a.astype(np.int32),
        leaf_b=b.astype(np.int32),
        set_operands=flat[set_base + draft.set_operands].astype(np.int32),
    )


def _concatenated(axes: list[Axis], parts: list[Draft]) -> Draft:
    def shifted(name: str, sizes: list[int], dtype: Any) -> npt.NDArray[Any]:
        shifts = np.concatenate([[0], np.cumsum(sizes)])
        arrays = [getattr(part, name).astype(np.int64) + shift for part, shift in zip(parts, shifts, strict=False)]
        return np.concatenate(arrays).astype(dtype)

    def plain(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    def starts(name: str) -> Starts:
        return starts_of_sizes(np.concatenate([np.diff(getattr(part, name)) for part in parts]))

    leaf_counts = [len(part.leaf_axes) for part in parts]
    set_counts = [len(part.set_starts) - 1 for part in parts]
    is_set = np.isin(plain("leaf_operations"), (AMONG, NOT_AMONG))
    trees = shifted("clause_trees", [len(part.tree_leaves) for part in parts], np.int32)
    trees[plain("clause_trees") < 0] = -1
    step_leaves = shifted("step_leaves", leaf_counts, np.uint32)
    step_leaves[plain("step_leaves") == NONE] = NONE
    return Draft(
        axes,
        plain("handles"),
        plain("leaf_axes"),
        plain("leaf_operations"),
        np.where(is_set, shifted("leaf_a", set_counts, np.int64), plain("leaf_a")).astype(np.int32),
        plain("leaf_b"),
        starts("set_starts"),
        plain("set_operands"),
        starts("clause_starts"),
        shifted("clause_leaves", leaf_counts, np.uint32),
        shifted("clause_owners", [len(part.handles) for part in parts], np.uint32),
        plain("clause_ordinals"),
        trees,
        shifted("tree_leaves", leaf_counts, np.uint32),
        plain("tree_trues"),
        plain("tree_falses"),
        starts("clause_steps"),
        plain("step_actions"),
        step_leaves,
    )
