"""What do the subscriptions of a segment ask, before anybody decides how to find out? An intermediate form.

A draft is a list of *clauses*: a subscription matches where one of its clauses holds, and a clause holds where all
its leaves and its tree do. A leaf asks where a value lies on an axis. A tree is written twice: as a program of
leaves with jumps (where to go on if the leaf holds, and where if not), for one event at a time, and as steps in
postfix order, for many events at once.

Which clauses a subscription has follows from its shape (`plans`).

Everything is kept in tables over the segment's own axes and operands, so that drafts can be joined without going back
to the expressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import (
    CONNECTIVES,
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    AtLeast,
    Between,
    Call,
    Compare,
    Expression,
    In,
    Literal,
    Not,
    Or,
    fold_shared,
)
from tamis.language.rewrites import flatten, fold_constants, nnf
from tamis.language.rewrites.junctions import conjunction
from tamis.language.rewrites.monotone import fold_monotone
from tamis.language.rewrites.weighing import weighed
from tamis.matching.block.budgets import asked_whole, is_linear
from tamis.matching.block.kernels import NONE
from tamis.matching.block.plans import ALWAYS, LEAF, NEVER, Clause, plan_of, sketched, with_leaves
from tamis.matching.leaves import LeafColumns, Leaves, ReadLeaves, Starts, integers, starts_of_ends
from tamis.ragged import Ragged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.matching.axes import Axis

_NO_LEAVES = frozenset({*CONNECTIVES, Literal} - {Not})
_TREES = frozenset({And, Or, AtLeast})


class ClauseTable(NamedTuple):
    """The clauses of a draft. Invariant: they lie in the order of their owners, and those of one owner in order.

    owners    uint32[clauses]  whose clause it is: a place among the draft's handles
    ordinals  uint16[clauses]  which of the owner's clauses it is
    trees     int32[clauses]   where its program starts among the jumps, -1 for none; programs lie in this order too
    leaves    lists[clauses]   of uint32: its leaves, all of which must hold
    """

    owners: npt.NDArray[np.uint32]
    ordinals: npt.NDArray[np.uint16]
    trees: npt.NDArray[np.int32]
    leaves: Ragged[np.uint32]


class TreeJumps(NamedTuple):
    """The programs of trees, one behind the other: a leaf each, and where to go on.

    leaves    uint32[:]
    on_true   uint32[:]  the next place if the leaf holds, counted from the start of the program, or ACCEPT or REJECT
    on_false  uint32[:]  and if not
    """

    leaves: npt.NDArray[np.uint32]
    on_true: npt.NDArray[np.uint32]
    on_false: npt.NDArray[np.uint32]


class TreeSteps(NamedTuple):
    """The same trees in postfix order. Invariant: only clauses with a program have steps.

    starts   int32[clauses + 1]  the steps of clause c are starts[c]:starts[c + 1]
    actions  uint8[:]            what each does, as `kernels` counts them
    leaves   uint32[:]           its leaf, NONE where it has none
    """

    starts: Starts
    actions: npt.NDArray[np.uint8]
    leaves: npt.NDArray[np.uint32]

    @property
    def counts(self) -> npt.NDArray[np.int32]:
        """How many steps each clause has."""
        return np.diff(self.starts)


@dataclass(slots=True)
class Draft:
    """Subscriptions as clauses over axes. Subscription s is the s-th of `handles`, which are in order."""

    axes: list[Axis]
    handles: npt.NDArray[np.int64]
    leaves: LeafColumns
    sets: Ragged[np.int32]
    """The operands of the sets that leaves ask for."""
    clauses: ClauseTable
    jumps: TreeJumps
    steps: TreeSteps

    @property
    def clause_count(self) -> int:
        """How many clauses all subscriptions have together."""
        return len(self.clauses.owners)

    def tree_sizes(self) -> npt.NDArray[np.int64]:
        """Return how long the program of each clause is: they lie in order, so each ends where the next one starts."""
        trees = self.clauses.trees
        has_tree = trees >= 0
        sizes = np.zeros(len(has_tree), np.int64)
        sizes[has_tree] = np.diff(trees[has_tree], append=len(self.jumps.leaves))
        return sizes


class Drafting:
    """A draft under construction. `add_many` is on the path of every registration, so the simple case comes first."""

    def __init__(self) -> None:
        self._leaves = Leaves()
        self._handles: list[int] = []
        self._clause_leaves: list[int] = []
        self._clause_ends: list[int] = []
        self._clause_owners: list[int] = []
        self._clause_ordinals: list[int] = []
        self._clause_trees: list[int] = []
        self._tree_leaves: list[int] = []
        self._tree_trues: list[int] = []
        self._tree_falses: list[int] = []
        self._step_ends: list[int] = []
        self._step_actions: list[int] = []
        self._step_leaves: list[int] = []

    def __len__(self) -> int:
        return len(self._handles)

    @property
    def leaves(self) -> Leaves:
        """The leaves so far, for whoever adds some of his own."""
        return self._leaves

    def add_many(self, handles: Iterable[int], expressions: Iterable[Expression]) -> None:
        """Take subscriptions."""
        leaves_of = self._leaves.leaves
        known, owners, ends, clause_leaves = self._handles, self._clause_owners, self._clause_ends, self._clause_leaves
        for handle, expression in zip(handles, expressions, strict=False):  # there may be more handles
            operands = expression.operands if type(expression) is And else (expression,)
            if any(
                type(each) is Compare and (type(each.left) is Call or type(each.right) is Call) for each in operands
            ):
                expression = flatten(conjunction(map(_weighed_leaf, operands)))
                operands = expression.operands if type(expression) is And else (expression,)
            if _NO_LEAVES.isdisjoint(map(type, operands)):
                leaves = leaves_of(operands)
                if -1 not in leaves:
                    clause_leaves += leaves
                    ends.append(len(clause_leaves))
                    owners.append(len(known))
                    known.append(handle)
                    continue
            self._add_general(handle, expression)

    def _catch_up(self) -> None:
        """Write down of the clauses of conjunctions what goes without saying: the first of its owner, and no tree."""
        behind = len(self._clause_ends) - len(self._clause_trees)
        self._clause_ordinals += [0] * behind
        self._clause_trees += [-1] * behind
        self._step_ends += [len(self._step_actions)] * behind

    # -- General Boolean expressions

    def _add_general(self, handle: int, expression: Expression) -> None:
        if not is_linear(expression):
            operands = expression.operands if type(expression) is And else (expression,)
            whole = asked_whole(operands)
            if whole:
                self._add_partly(handle, [operand for operand in operands if operand not in whole], whole)
                return
        if not _calls(expression) and self._take_sketched(handle, expression):
            return
        rewritten = monotone(expression)
        if _calls(rewritten):
            rewritten = monotone(_weighed(rewritten))
        if rewritten in (FALSE, TRUE):
            self._take(handle, ALWAYS if rewritten == TRUE else NEVER, [])
        elif not self._take_sketched(handle, rewritten):
            self._take_planned(handle, (LEAF,), [self._leaves.truth(rewritten, True)])

    def _add_partly(self, handle: int, others: list[Expression], whole: list[Expression]) -> None:
        """Take the conjunction of some conditions that are taken apart and of others that are not."""
        rest = monotone(conjunction(others))
        if rest == FALSE:
            self._take(handle, NEVER, [])
            return
        outline, leaves = (
            ((), []) if rest == TRUE else self._sketched_leaves(rest) or ((LEAF,), [self._leaves.truth(rest, True)])
        )
        leaves += [self._leaves.truth(operand, True) for operand in whole]
        self._take_planned(handle, with_leaves(outline, len(whole)), leaves)

    def _take_sketched(self, handle: int, expression: Expression) -> bool:
        """Take a subscription if it is a tree of AND, OR and `at_least` over leaves."""
        sketch = self._sketched_leaves(expression)
        if sketch is not None:
            self._take_planned(handle, *sketch)
        return sketch is not None

    def _sketched_leaves(self, expression: Expression) -> tuple[tuple[int, ...], list[int]] | None:
        """Return the outline and the leaves of a tree of AND, OR and `at_least`; None if it is something else."""
        sketch = sketched(expression)
        if sketch is None:
            return None
        outline, predicates = sketch
        leaves = self._leaves.leaves(predicates)
        for position, leaf in enumerate(leaves):
            if leaf < 0:
                predicate = predicates[position]
                if type(predicate) not in _TREES:
                    return None
                leaves[position] = self._leaves.truth(predicate, True)  # too deep to take apart
        return outline, leaves

    def _take_planned(self, handle: int, outline: tuple[int, ...], leaves: list[int]) -> None:
        self._take(handle, plan_of(outline, tuple(map(self._leaves.operation, leaves))), leaves)

    def _take(self, handle: int, plan: tuple[Clause, ...], leaves: list[int]) -> None:
        """Fill in a plan."""
        self._catch_up()
        owner = len(self._handles)
        self._handles.append(handle)
        leaf_at = [*leaves, NONE].__getitem__
        for ordinal, clause in enumerate(plan):
            self._clause_leaves += map(leaf_at, clause.leaves)
            self._clause_ends.append(len(self._clause_leaves))
            self._clause_owners.append(owner)
            self._clause_ordinals.append(ordinal)
            if clause.tree_leaves:
                self._clause_trees.append(len(self._tree_leaves))
                self._tree_leaves += map(leaf_at, clause.tree_leaves)
                self._tree_trues += clause.tree_trues
                self._tree_falses += clause.tree_falses
                self._step_actions += clause.step_actions
                self._step_leaves += map(leaf_at, clause.step_leaves)
            else:
                self._clause_trees.append(-1)
            self._step_ends.append(len(self._step_actions))

    # -- The result

    def finished(self, read: ReadLeaves | None = None) -> Draft:
        """Return the draft. Leaves that come in columns are those of clauses that will be added to it."""
        self._catch_up()
        tables = self._leaves.finished(read)
        clauses = ClauseTable(
            integers(self._clause_owners, np.uint32),
            integers(self._clause_ordinals, np.uint16),
            integers(self._clause_trees, np.int32),
            Ragged(starts_of_ends(self._clause_ends), integers(self._clause_leaves, np.uint32)),
        )
        jumps = TreeJumps(
            integers(self._tree_leaves, np.uint32),
            integers(self._tree_trues, np.uint32),
            integers(self._tree_falses, np.uint32),
        )
        steps = TreeSteps(
            starts_of_ends(self._step_ends),
            integers(self._step_actions, np.uint8),
            integers(self._step_leaves, np.uint32),
        )
        return Draft(tables.axes, integers(self._handles), tables.leaves, tables.sets, clauses, jumps, steps)


def monotone(expression: Expression) -> Expression:
    """Return what is true for the same events, without NOT and XOR: unknown is then read as false, and folded away."""
    positive = fold_shared(fold_constants(nnf(expression)), _without_unknown)
    return flatten(fold_constants(positive))


def _calls(expression: Expression) -> bool:
    """Does it compare the results of functions, which may be weighed?"""
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, CONNECTIVES):
            stack.extend(node.children)
        elif isinstance(node, Compare | Between | In) and any(type(each) is Call for each in node.children):
            return True
    return False


def _weighed(expression: Expression) -> Expression:
    """Return a monotone expression with its weighted partial matches as trees."""
    return fold_monotone(expression, _weighed_node)


def _weighed_node(node: Expression, below: list[Expression]) -> Expression:
    if isinstance(node, And | Or | AtLeast):
        return node.with_children(tuple(below))
    return _weighed_leaf(node)


def _weighed_leaf(predicate: Expression) -> Expression:
    tree = weighed(predicate)
    return predicate if tree is None else tree


def _without_unknown(node: Expression, below: list[Expression]) -> Expression:
    if node == UNKNOWN:
        return FALSE
    return node.with_children(tuple(below)) if below and isinstance(node, CONNECTIVES) else node
