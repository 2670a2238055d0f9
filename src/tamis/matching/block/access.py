"""How is a subscription found? Its access plan, as a database's EXPLAIN prints the plan of a query.

The plan is read off the segment itself, not computed a second time: the rows that a subscription's clauses have there,
the key each row lies under, and whether a block takes it through that key or through bitmaps. So a wrong match can be
hunted without a debugger: what the plan says is what the kernels do.

    key       a block of events is sorted by the key's axis, and the slice that passes the key is checked leaf by leaf
    bitmap    too many events pass the best key: every leaf is a bitmap over the block, and the clause intersects them
    scan      no leaf can be a key: every event is checked
    never     no event can pass; the clause is laid out nowhere

A single event finds every clause by its key, those of bitmaps too, and checks the others of a scan one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language.expressions import And, Between, Compare, Expression, In, Literal, Not
from tamis.matching import operations as op
from tamis.matching.axes import TRUTH
from tamis.matching.block import kernels
from tamis.matching.block.segment import leaf_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.schema import Schema
    from tamis.matching.block.draft import Draft
    from tamis.matching.block.segment import Segment
    from tamis.matching.columns import Events
    from tamis.matching.leaves import Ints

KEY, BITMAP, SCAN, NEVER = "key", "bitmap", "scan", "never"

_COMPARED = {op.EQUAL: "=", op.UNEQUAL: "<>", op.BELOW: "<", op.AT_MOST: "<=", op.ABOVE: ">", op.AT_LEAST: ">="}


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """One leaf of a clause: a predicate as it is laid out."""

    text: str
    axis: str
    """What is measured: a term and the kind of its values, or the truth of a predicate."""
    share: float
    """Which share of the events passes it, as the layout was chosen by."""
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class TreeStep:
    """One step of a tree's program: a leaf, and where to go on if it holds and if not."""

    leaf: LeafPlan
    if_true: str
    if_false: str


@dataclass(frozen=True, slots=True)
class ClausePlan:
    """One clause: how it is found, the leaves that must all hold, and the tree that must hold with them."""

    path: str
    """`key`, `bitmap`, `scan` or `never`."""
    share: float
    """Which share of the events gets as far as its other leaves."""
    rows: int
    """How often it is laid out: once for each member where its key is a set."""
    leaves: tuple[LeafPlan, ...]
    tree: tuple[TreeStep, ...] = ()


@dataclass(frozen=True, slots=True)
class HandlePlan:
    """How one subscription is found, as its algorithm knows it: by handles."""

    segment: int | None
    """The number of its segment, the oldest first; None while it is open, that is, not laid out yet."""
    segment_size: int
    """How many subscriptions the segment has, or how many are open."""
    is_informed: bool
    """Whether the layout follows observed events; else shares are guessed from the operands."""
    twin_of: Any
    """The subscription whose clauses are asked for this one, because they are equal; None if its own are."""
    twin_count: int
    """How many subscriptions share the clauses, this one included."""
    clauses: tuple[ClausePlan, ...]


@dataclass(frozen=True, slots=True)
class AccessPlan(HandlePlan):
    """How one subscription is found. A match is an event for which one of the clauses holds."""

    subscription: Any
    text: str

    def as_dict(self) -> dict[str, Any]:
        """The plan as data, for programs."""
        return {
            "subscription": self.subscription,
            "text": self.text,
            "segment": self.segment,
            "segment_size": self.segment_size,
            "is_informed": self.is_informed,
            "twin_of": self.twin_of,
            "twin_count": self.twin_count,
            "clauses": [
                {
                    "path": clause.path,
                    "share": clause.share,
                    "rows": clause.rows,
                    "leaves": [_leaf_data(leaf) for leaf in clause.leaves],
                    "tree": [
                        {**_leaf_data(step.leaf), "if_true": step.if_true, "if_false": step.if_false}
                        for step in clause.tree
                    ],
                }
                for clause in self.clauses
            ],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"subscription {self.subscription!r}: {self.text}"
        if self.segment is None:
            yield f"open: asked by itself, with {self.segment_size - 1:,} others that are not laid out yet"
            return
        basis = "observed events" if self.is_informed else "operands alone"
        size = f"{self.segment_size:,} subscription{'s' if self.segment_size != 1 else ''}"
        yield f"segment {self.segment}: {size}, laid out by {basis}"
        if self.twin_count > 1:
            asked = "its clauses are" if self.twin_of is None else f"those of subscription {self.twin_of!r} are"
            yield f"twins: {self.twin_count:,} subscriptions ask the same; {asked} asked for all of them"
        if not self.clauses:
            yield "no clause: no event can match"
        for number, clause in enumerate(self.clauses, 1):
            rows = f", in {clause.rows} rows" if clause.rows > 1 else ""
            yield f"clause {number} of {len(self.clauses)}: by {clause.path}, {_percent(clause.share)} of events{rows}"
            for leaf in clause.leaves:
                yield f"    {'key  ' if leaf.is_key else 'check'} {leaf.text}   ({leaf.axis}, {_percent(leaf.share)})"
            for place, step in enumerate(clause.tree, 1):
                yield f"    tree {place}: {step.leaf.text}   true: {step.if_true}, false: {step.if_false}"


def _leaf_data(leaf: LeafPlan) -> dict[str, Any]:
    return {"text": leaf.text, "axis": leaf.axis, "share": leaf.share, "is_key": leaf.is_key}


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def clause_plans(segment: Segment, place: int, sample: Events | None, schema: Schema | None) -> tuple[ClausePlan, ...]:
    """Return how the clauses of one subscription, the first of its twins, are laid out in a segment."""
    draft = segment.draft
    clause_rows = segment.program.clauses[:-1]
    rows = np.flatnonzero(clause_rows[:, kernels.OWNER] == place)
    clauses = np.flatnonzero(draft.clauses.owners == place)
    leaves = _LeafReader(draft, clauses, sample, schema)
    return tuple(
        _clause_plan(
            segment, clause, rows[clause_rows[rows, kernels.ORDINAL] == draft.clauses.ordinals[clause]], leaves
        )
        for clause in clauses.tolist()
    )


def _clause_plan(segment: Segment, clause: int, rows: Ints, leaves: _LeafReader) -> ClausePlan:
    draft = segment.draft
    asked = draft.clauses.leaves.members(clause).tolist()
    tree = leaves.tree(clause)
    if not len(rows):
        return ClausePlan(NEVER, 0.0, 0, tuple(leaves.plan(leaf) for leaf in asked), tree)
    keys = np.searchsorted(segment.keys.rows, rows, side="right") - 1
    axis = int(segment.key_axes[keys[0]])
    key = None if axis < 0 else leaves.key_among(asked, axis, segment.keys.firsts[keys], segment.keys.lasts[keys])
    share = 1.0 if key is None else leaves.plan(key).share
    path = BITMAP if segment.runs.is_broad[rows[0]] else KEY
    return ClausePlan(
        SCAN if key is None and path == KEY else path,
        share,
        len(rows),
        tuple(leaves.plan(leaf, is_key=leaf == key) for leaf in sorted(asked, key=lambda leaf: leaf != key)),
        tree,
    )


class _LeafReader:
    """The leaves of some clauses, as people would write them."""

    def __init__(self, draft: Draft, clauses: Ints, sample: Events | None, schema: Schema | None) -> None:
        self._draft = draft
        self._tree_sizes = draft.tree_sizes()
        used = [draft.clauses.leaves.members(clause) for clause in clauses]
        used += [self._tree_leaves(int(clause)) for clause in clauses]
        numbers = np.unique(np.concatenate([np.zeros(0, np.uint32), *used])).astype(np.int64)
        axes, places = np.unique(draft.leaves.axes[numbers], return_inverse=True)
        small = replace(
            draft,
            axes=[draft.axes[axis] for axis in axes],
            leaves=draft.leaves.chosen(numbers)._replace(axes=places.astype(np.uint32)),
        )
        codes = None
        if sample is not None and sample.count:
            codes = [axis.codes(sample, schema) for axis in small.axes]
        table, _ = leaf_table(small, codes)
        lasts = table.firsts + table.spans
        self._shares = dict(zip(numbers.tolist(), table.shares.tolist(), strict=True))
        self._intervals = dict(
            zip(numbers.tolist(), zip(table.firsts.tolist(), lasts.tolist(), strict=True), strict=True)
        )

    def plan(self, leaf: int, *, is_key: bool = False) -> LeafPlan:
        axis = self._draft.axes[self._draft.leaves.axes[leaf]]
        measured = "its truth" if axis.key.kind == TRUTH else f"{axis.key.term} as {axis.key.kind}"
        return LeafPlan(str(self._predicate(leaf)), measured, self._shares[leaf], is_key)

    def key_among(self, leaves: list[int], axis: int, firsts: Any, lasts: Any) -> int:
        """Return the leaf of a clause that its rows lie under: the interval of its key, or the set of its keys."""
        draft = self._draft
        for leaf in leaves:
            if draft.leaves.axes[leaf] != axis:
                continue
            if draft.leaves.operations[leaf] == op.AMONG:
                if np.array_equal(np.sort(2 * self._members(leaf) + 2), np.sort(firsts)):
                    return leaf
            elif self._intervals[leaf] == (firsts[0], lasts[0]):
                return leaf
        raise AssertionError("a row lies under a key that is not a leaf of its clause")

    def tree(self, clause: int) -> tuple[TreeStep, ...]:
        """Return the program of a clause's tree; steps are numbered from 1."""
        jumps, start = self._draft.jumps, int(self._draft.clauses.trees[clause])

        def target(number: int) -> str:
            return {kernels.ACCEPT: "holds", kernels.REJECT: "fails"}.get(number) or f"go to {number + 1}"

        return tuple(
            TreeStep(self.plan(leaf), target(int(jumps.on_true[at])), target(int(jumps.on_false[at])))
            for at, leaf in enumerate(self._tree_leaves(clause).tolist(), start)
        )

    def _tree_leaves(self, clause: int) -> Any:
        start = int(self._draft.clauses.trees[clause])
        return self._draft.jumps.leaves[max(start, 0) : max(start, 0) + int(self._tree_sizes[clause])]

    def _members(self, leaf: int) -> Any:
        return self._draft.sets.members(self._draft.leaves.a[leaf])

    def _predicate(self, leaf: int) -> Expression:
        """Return the predicate that a leaf asks, from its axis and operands."""
        axis = self._draft.axes[self._draft.leaves.axes[leaf]]
        operation = int(self._draft.leaves.operations[leaf])
        term: Any = axis.key.term
        if axis.key.kind == TRUTH:
            return term if self._draft.leaves.a[leaf] else Not(term)
        if operation in (op.AMONG, op.NOT_AMONG):
            among = In(term, tuple(axis.operands[member] for member in self._members(leaf)))
            return among if operation == op.AMONG else Not(among)
        first: Any = Literal(axis.operands[self._draft.leaves.a[leaf]])
        if operation in _COMPARED:
            return Compare(_COMPARED[operation], term, first)
        second: Any = Literal(axis.operands[self._draft.leaves.b[leaf]])
        if operation == op.FROM_TO:
            return And((Compare(">=", term, first), Compare("<", term, second)))
        between = Between(term, first, second)
        return between if operation == op.WITHIN else Not(between)
