"""What do the subscriptions of a segment ask, before anybody decides how to find out?

A draft is a list of *clauses*: a subscription matches where one of its clauses holds, and a clause holds where all
its leaves and its tree do. A leaf asks where a value lies on an axis. A tree is written twice: as a program of
leaves with jumps (where to go on if the leaf holds, and where if not), for one event at a time, and as steps in
postfix order, for many events at once.

Which clauses a subscription has follows from its access set. A leaf is its own access set; an AND has that of its
cheapest child; an OR, that of all its children together; `at_least(k, ...)` of n, those of its cheapest n - k + 1.
Every clause thus has a leaf that must hold, by which it can be found.

Everything is kept in flat arrays over the segment's own axes and operands, so that drafts can be joined without
going back to the expressions.

Source: the access predicate is Hanson's and Fabret's, generalised to trees (docs/bibliography.md, Bittner 2008,
  section 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import (
    CONNECTIVES,
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    AtLeast,
    Expression,
    Literal,
    Not,
    Or,
    fold_shared,
)
from tamis.language.rewrites import flatten, fold_constants, nnf
from tamis.matching.block.kernels import (
    ACCEPT,
    INTERSECT,
    INTERSECT_TOP,
    NONE,
    REJECT,
    START,
    UNITE,
    UNITE_TOP,
)
from tamis.matching.leaves import Leaves, Starts, integers, starts_of
from tamis.selectivity.operations import GUESSES, WITHIN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.matching.axes import Axis

_NO_LEAVES = frozenset({*CONNECTIVES, Literal} - {Not})
_MOST_CLAUSES = 32
_DEEPEST_TREE = 100
DEEPEST_STACK = 8
"""How many bitmaps a tree may need at once."""


@dataclass(slots=True)
class Draft:
    """Subscriptions as clauses over axes. Subscription s is the s-th of `handles`."""

    axes: list[Axis]
    handles: npt.NDArray[np.int64]
    leaf_axes: npt.NDArray[np.uint32]
    leaf_operations: npt.NDArray[np.uint8]
    leaf_a: npt.NDArray[np.int32]
    """The first operand, or the set of AMONG and NOT_AMONG."""
    leaf_b: npt.NDArray[np.int32]
    set_starts: Starts
    set_operands: npt.NDArray[np.int32]
    clause_starts: Starts
    clause_leaves: npt.NDArray[np.uint32]
    clause_owners: npt.NDArray[np.uint32]
    clause_ordinals: npt.NDArray[np.uint16]
    clause_trees: npt.NDArray[np.int32]
    """Where the clause's program starts, -1 for none."""
    tree_leaves: npt.NDArray[np.uint32]
    tree_trues: npt.NDArray[np.uint32]
    tree_falses: npt.NDArray[np.uint32]
    clause_steps: Starts
    """Where the clause's steps start; the clause has none where they end at once."""
    step_actions: npt.NDArray[np.uint8]
    step_leaves: npt.NDArray[np.uint32]
    """The leaf of each step, NONE where it has none."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything but the axes, by name."""
        return {name: getattr(self, name) for name in ARRAYS}


ARRAYS = tuple(name for name in Draft.__dataclass_fields__ if name != "axes")


class _Node:
    """A node of a tree, and the share of events that its access set lets through, roughly."""

    __slots__ = ("children", "cost", "count", "kind", "leaf")

    def __init__(
        self, kind: int, cost: float, leaf: int = -1, children: list[_Node] | None = None, count: int = 0
    ) -> None:
        self.kind = kind
        self.cost = cost
        self.leaf = leaf
        self.children = children or []
        self.count = count


_LEAF, _ALL, _ANY, _SOME = range(4)


@dataclass(slots=True)
class _Clause:
    leaves: list[int]
    trees: list[_Node] = field(default_factory=list)


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

    def add_many(self, handles: Iterable[int], expressions: Iterable[Expression]) -> None:
        """Take subscriptions."""
        leaves_of = self._leaves.leaves
        known, owners, ends, clause_leaves = self._handles, self._clause_owners, self._clause_ends, self._clause_leaves
        for handle, expression in zip(handles, expressions, strict=False):  # there may be more handles
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
        root = self._node(expression, 0)
        if root is None:
            # In negation normal form unknown may be read as false, and then folded away.
            positive = fold_shared(fold_constants(nnf(expression)), _without_unknown)
            rewritten = flatten(fold_constants(positive))
            if rewritten == FALSE:
                self._handles.append(handle)
                return
            if rewritten == TRUE:
                self._take(handle, [_Clause([])])
                return
            root = self._node(rewritten, 0) or self._whole(rewritten)
        self._take(handle, self._clauses(root) if root.cost < 1 else [_Clause([], [root])])

    def _take(self, handle: int, clauses: list[_Clause]) -> None:
        self._catch_up()
        owner = len(self._handles)
        self._handles.append(handle)
        for ordinal, clause in enumerate(clauses):
            self._clause_leaves += clause.leaves
            self._clause_ends.append(len(self._clause_leaves))
            self._clause_owners.append(owner)
            self._clause_ordinals.append(ordinal)
            self._clause_trees.append(self._program(clause.trees))
            self._step_ends.append(len(self._step_actions))

    def _whole(self, expression: Expression) -> _Node:
        """A tree too deep to take apart: its truth is computed per row."""
        return _Node(_LEAF, GUESSES[WITHIN], self._leaves.truth(expression, True))

    def _node(self, node: Expression, depth: int) -> _Node | None:
        """Return the tree of AND, OR and `at_least` over leaves; None where the expression is not of that form yet."""
        kind = type(node)
        if kind not in (And, Or, AtLeast):
            leaf = self._leaves.leaf(node)
            return None if leaf < 0 else _Node(_LEAF, GUESSES[self._leaves.operation(leaf)], leaf)
        if depth > _DEEPEST_TREE:
            return self._whole(node)
        children = []
        for child in node.children:
            below = self._node(child, depth + 1)
            if below is None:
                return None
            children.append(below)
        costs = [child.cost for child in children]
        if kind is And:
            return _Node(_ALL, min(costs), children=children)
        if kind is Or:
            return _Node(_ANY, sum(costs) if len(costs) <= _MOST_CLAUSES else 2.0, children=children)
        count = node.count  # type: ignore[attr-defined]
        if not 0 < count <= len(children):
            return None  # a constant, to be folded away
        cheapest = sorted(costs)[: len(costs) - count + 1]
        cost = sum(cheapest) if len(cheapest) <= _MOST_CLAUSES else 2.0
        return _Node(_SOME, cost, children=children, count=count)

    def _clauses(self, node: _Node) -> list[_Clause]:
        """Return the clauses of a node, one for each leaf of its access set."""
        if node.kind == _LEAF:
            return [_Clause([node.leaf])]
        if node.kind == _ANY:
            split = [clause for child in node.children for clause in self._clauses(child)]
        elif node.kind == _SOME:
            cheapest = sorted(node.children, key=lambda child: child.cost)[: len(node.children) - node.count + 1]
            found = [clause for child in cheapest for clause in self._clauses(child)]
            # The child that was found need not be all that is true: the whole count is checked.
            split = [_Clause(clause.leaves[:1], [node]) for clause in found if clause.leaves]
            if len(split) < len(found):
                return [_Clause([], [node])]
        else:
            best = min(node.children, key=lambda child: child.cost)
            others = [child for child in node.children if child is not best]
            leaves = [child.leaf for child in others if child.kind == _LEAF]
            trees = [child for child in others if child.kind != _LEAF]
            split = [_Clause(clause.leaves + leaves, clause.trees + trees) for clause in self._clauses(best)]
        return split if 0 < len(split) <= _MOST_CLAUSES else [_Clause([], [node])]

    # -- Trees

    def _program(self, trees: list[_Node]) -> int:
        """Write the program of some trees that must all hold, and return where it starts; -1 for none."""
        if not trees:
            return -1
        start = len(self._tree_leaves)
        root = trees[0] if len(trees) == 1 else _Node(_ALL, 1.0, children=trees)
        for leaf, on_true, on_false in _jumps(root):
            self._tree_leaves.append(leaf)
            self._tree_trues.append(on_true)
            self._tree_falses.append(on_false)
        first = len(self._step_actions)
        if self._steps(root, 1) > DEEPEST_STACK:
            del self._step_actions[first:], self._step_leaves[first:]
        return start

    def _steps(self, node: _Node, depth: int) -> int:
        """Write a tree in postfix order, and return how deep its stack becomes."""
        if node.kind in (_LEAF, _SOME):
            self._step(START, node.leaf if node.kind == _LEAF else NONE)
            return depth
        joins = (INTERSECT, INTERSECT_TOP) if node.kind == _ALL else (UNITE, UNITE_TOP)
        deepest = depth
        # Trees first, so that the leaves can be joined to what is on the stack.
        ordered = sorted(node.children, key=lambda child: child.kind in (_LEAF, _SOME))
        for position, child in enumerate(ordered):
            if position == 0:
                deepest = max(deepest, self._steps(child, depth))
            elif child.kind in (_LEAF, _SOME):
                self._step(joins[0], child.leaf if child.kind == _LEAF else NONE)
            else:
                deepest = max(deepest, self._steps(child, depth + 1))
                self._step(joins[1], NONE)
        return deepest

    def _step(self, action: int, leaf: int) -> None:
        self._step_actions.append(action)
        self._step_leaves.append(leaf)

    # -- The result

    def finished(self) -> Draft:
        """Return the draft."""
        self._catch_up()
        leaves = self._leaves.finished()
        return Draft(
            leaves.axes,
            integers(self._handles),
            leaves.leaf_axes,
            leaves.leaf_operations,
            leaves.leaf_a,
            leaves.leaf_b,
            leaves.set_starts,
            leaves.set_operands,
            starts_of(self._clause_ends),
            integers(self._clause_leaves, np.uint32),
            integers(self._clause_owners, np.uint32),
            integers(self._clause_ordinals, np.uint16),
            integers(self._clause_trees, np.int32),
            integers(self._tree_leaves, np.uint32),
            integers(self._tree_trues, np.uint32),
            integers(self._tree_falses, np.uint32),
            starts_of(self._step_ends),
            integers(self._step_actions, np.uint8),
            integers(self._step_leaves, np.uint32),
        )


def _jumps(root: _Node) -> list[tuple[int, int, int]]:
    """Compile a tree into leaves with jumps, backwards: targets first."""
    steps: list[tuple[int, int, int]] = []
    made: dict[tuple[int, int, int], int] = {}

    def emit(node: _Node, on_true: int, on_false: int) -> int:
        known = made.get((id(node), on_true, on_false))
        if known is not None:
            return known
        if node.kind == _LEAF:
            steps.append((node.leaf, on_true, on_false))
            target = len(steps) - 1
        elif node.kind == _ALL:
            target = on_true
            for child in reversed(node.children):
                target = emit(child, target, on_false)
        elif node.kind == _ANY:
            target = on_false
            for child in reversed(node.children):
                target = emit(child, on_true, target)
        else:
            # row[n]: where to go when n more must hold, from the operand that was looked at last
            row = [on_true] + [on_false] * node.count
            for position, child in enumerate(reversed(node.children)):
                most = min(node.count, position + 1)
                row = [
                    on_true,
                    *(emit(child, row[needed - 1], row[needed]) for needed in range(1, most + 1)),
                    *[on_false] * (node.count - most),
                ]
            target = row[node.count]
        made[id(node), on_true, on_false] = target
        return target

    entry = emit(root, ACCEPT, REJECT)
    # Reachable steps only, and the entry first.
    order: dict[int, int] = {}
    waiting = [entry]
    while waiting:
        at = waiting.pop()
        if at < REJECT and at not in order:
            order[at] = len(order)
            waiting += (steps[at][2], steps[at][1])

    def turned(target: int) -> int:
        return target if target >= REJECT else order[target]

    return [(steps[at][0], turned(steps[at][1]), turned(steps[at][2])) for at in order]


def _without_unknown(node: Expression, below: list[Expression]) -> Expression:
    if node == UNKNOWN:
        return FALSE
    return node.with_children(tuple(below)) if below and isinstance(node, CONNECTIVES) else node
