"""How is a tree of AND, OR and `at_least` asked, whatever stands at its leaves? Access predicates.

Subscriptions are many and their shapes are few: a form on a web page is one shape, filled in a million times. So a tree
is sketched as its *outline* and its predicates, and the *plan* of an outline is made once, over the positions of the
leaves; what each subscription has of its own is filled in.

A plan is a list of clauses, one of which must hold. Which ones follows from the access set. A leaf is its own access
set; an AND has that of its cheapest child; an OR, that of all its children together; `at_least(k, ...)` of n, those of
its cheapest n - k + 1. Every clause thus has a leaf that must hold, by which it can be found. What a leaf costs is
guessed from what it asks.

Source: the access predicate is Hanson's and Fabret's, generalised to trees (docs/bibliography.md, Bittner 2008,
  section 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tamis.language.expressions import And, AtLeast, Expression, Or
from tamis.matching.block.kernels import (
    ACCEPT,
    INTERSECT,
    INTERSECT_TOP,
    REJECT,
    START,
    UNITE,
    UNITE_TOP,
)
from tamis.matching.operations import GUESSES

NO_LEAF = -1
"""The position of a step that has no leaf: the last, where NONE stands."""
DEEPEST_STACK = 8
"""How many bitmaps a tree may need at once."""
_MOST_CLAUSES = 32
_MOST_WRITTEN, _MOST_TIMES = 4_096, 4
"""Clauses may have so many leaves together, or so many times those of the tree; else there is one clause."""
_DEEPEST_TREE = 100
_MOST_PLANS = 4_096
_LARGEST_KEPT = 64
LEAF, ALL, ANY, _SOME = range(4)
"""What stands in an outline: a leaf, or what opens; `at_least` of n operands is _SOME + n."""
CLOSE = -1


@dataclass(frozen=True, slots=True)
class Clause:
    """What must hold together. Leaves are told by their positions among the predicates of the sketch."""

    leaves: tuple[int, ...]
    tree_leaves: tuple[int, ...] = ()
    """The program of the tree: a leaf, and where to go on if it holds and if not."""
    tree_trues: tuple[int, ...] = ()
    tree_falses: tuple[int, ...] = ()
    step_actions: tuple[int, ...] = ()
    """The tree in postfix order; empty too where its stack would be too deep."""
    step_leaves: tuple[int, ...] = ()


ALWAYS = (Clause(()),)
NEVER: tuple[Clause, ...] = ()


# -- Sketches


def sketched(expression: Expression) -> tuple[tuple[int, ...], list[Expression]] | None:
    """Return the outline of a tree and its predicates; None where a constant count is still to be folded away.

    The outline says in prefix order what opens and what closes. A child of its parent's own kind belongs to the parent.

    >>> from tamis.language.parser import parse
    >>> outline, predicates = sketched(parse("a = 1 AND (b = 2 AND (c = 3 OR d = 4))"))
    >>> outline, len(predicates)
    ((1, 0, 0, 2, 0, 0, -1, -1), 4)
    """
    outline: list[int] = []
    predicates: list[Expression] = []
    return (tuple(outline), predicates) if _sketch(expression, LEAF, 0, outline, predicates) else None


def _sketch(node: Any, parent: int, depth: int, outline: list[int], predicates: list[Expression]) -> bool:
    kind = type(node)
    if kind is And:
        opening = ALL
    elif kind is Or:
        opening = ANY
    elif kind is AtLeast:
        if not 0 < node.count <= len(node.operands):
            return False
        opening = _SOME + node.count
    else:
        opening = LEAF
    if opening == LEAF or depth > _DEEPEST_TREE:
        outline.append(LEAF)
        predicates.append(node)
        return True
    is_own = opening != parent or opening > _SOME
    if is_own:
        outline.append(opening)
    for child in node.operands:
        if not _sketch(child, opening, depth + 1, outline, predicates):
            return False
    if is_own:
        outline.append(CLOSE)
    return True


def with_leaves(outline: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return the outline of what a tree asks, and so many leaves behind those of the tree.

    >>> with_leaves((ANY, LEAF, LEAF, CLOSE), 2)
    (1, 2, 0, 0, -1, 0, 0, -1)
    """
    inner = outline[1:-1] if outline[:1] == (ALL,) else outline
    if len(inner) + count == 1:
        return (*inner, *[LEAF] * count)
    return (ALL, *inner, *[LEAF] * count, CLOSE)


# -- Plans


class _Node:
    """A node of a tree, and the share of events that its access set lets through, roughly."""

    __slots__ = ("children", "cost", "count", "kind", "leaf")

    def __init__(
        self, kind: int, cost: float, leaf: int = NO_LEAF, children: list[_Node] | None = None, count: int = 0
    ) -> None:
        self.kind = kind
        self.cost = cost
        self.leaf = leaf
        self.children = children or []
        self.count = count


@dataclass(slots=True)
class _Split:
    """A clause in the making: leaves and trees that must all hold."""

    leaves: list[int]
    trees: list[_Node] = field(default_factory=list)


def plan_of(outline: tuple[int, ...], operations: tuple[int, ...]) -> tuple[Clause, ...]:
    """Return the clauses of an outline whose leaves ask these things.

    >>> plan_of((ALL, LEAF, LEAF, CLOSE), (0, 0))
    (Clause(leaves=(0, 1), tree_leaves=(), tree_trues=(), tree_falses=(), step_actions=(), step_leaves=()),)
    """
    return (_kept_plan if len(outline) <= _LARGEST_KEPT else _plan)(outline, operations)


def _plan(outline: tuple[int, ...], operations: tuple[int, ...]) -> tuple[Clause, ...]:
    root = _tree(outline, operations)
    splits = _splits(root) if root.cost < 1 else []
    if not splits or _written(splits) > max(_MOST_WRITTEN, _MOST_TIMES * len(operations)):
        splits = [_Split([], [root])]
    return tuple(map(_clause, splits))


def _written(splits: list[_Split]) -> int:
    """Return how many leaves clauses have together: what they share each of them has."""
    counts: dict[int, int] = {}

    def count(node: _Node) -> int:
        if id(node) not in counts:
            counts[id(node)] = 1 if node.kind == LEAF else sum(map(count, node.children))
        return counts[id(node)]

    return sum(len(split.leaves) + sum(map(count, split.trees)) for split in splits)


_kept_plan = lru_cache(_MOST_PLANS)(_plan)


def _tree(outline: tuple[int, ...], operations: tuple[int, ...]) -> _Node:
    """Read an outline."""
    position = 0
    opened: list[tuple[int, list[_Node]]] = [(LEAF, [])]
    for word in outline:
        if word == LEAF:
            opened[-1][1].append(_Node(LEAF, GUESSES[operations[position]], position))
            position += 1
        elif word != CLOSE:
            opened.append((word, []))
        else:
            kind, children = opened.pop()
            opened[-1][1].append(_inner(kind, children))
    return opened[0][1][0]


def _inner(kind: int, children: list[_Node]) -> _Node:
    costs = [child.cost for child in children]
    if kind == ALL:
        return _Node(ALL, min(costs), children=children)
    if kind == ANY:
        return _Node(ANY, sum(costs) if len(costs) <= _MOST_CLAUSES else 2.0, children=children)
    count = kind - _SOME
    cheapest = sorted(costs)[: len(costs) - count + 1]
    return _Node(_SOME, sum(cheapest) if len(cheapest) <= _MOST_CLAUSES else 2.0, children=children, count=count)


def _splits(node: _Node) -> list[_Split]:
    """Return the clauses of a node, one for each leaf of its access set."""
    if node.kind == LEAF:
        return [_Split([node.leaf])]
    if node.kind == ANY:
        split = [clause for child in node.children for clause in _splits(child)]
    elif node.kind == _SOME:
        cheapest = sorted(node.children, key=lambda child: child.cost)[: len(node.children) - node.count + 1]
        clauses = [clause for child in cheapest for clause in _splits(child)]
        # The child that was found need not be all that is true: the whole count is checked.
        split = [_Split(clause.leaves[:1], [node]) for clause in clauses if clause.leaves]
        if len(split) < len(clauses):
            return [_Split([], [node])]
    else:
        best = min(node.children, key=lambda child: child.cost)
        others = [child for child in node.children if child is not best]
        leaves = [child.leaf for child in others if child.kind == LEAF]
        trees = [child for child in others if child.kind != LEAF]
        split = [_Split(clause.leaves + leaves, clause.trees + trees) for clause in _splits(best)]
    return split if 0 < len(split) <= _MOST_CLAUSES else [_Split([], [node])]


# -- Trees


def _clause(split: _Split) -> Clause:
    """Write the program and the steps of the trees of a clause, which must all hold."""
    leaves = tuple(split.leaves)
    if not split.trees:
        return Clause(leaves)
    root = split.trees[0] if len(split.trees) == 1 else _Node(ALL, 1.0, children=split.trees)
    tree_leaves, on_trues, on_falses = zip(*_jumps(root), strict=True)
    steps: list[tuple[int, int]] = []
    is_shallow = _steps(root, 1, steps) <= DEEPEST_STACK
    actions, step_leaves = zip(*steps, strict=True) if is_shallow else ((), ())
    return Clause(leaves, tree_leaves, on_trues, on_falses, actions, step_leaves)


def _steps(node: _Node, depth: int, steps: list[tuple[int, int]]) -> int:
    """Write a tree in postfix order, and return how deep its stack becomes."""
    if node.kind in (LEAF, _SOME):
        steps.append((START, node.leaf))
        return depth
    joins = (INTERSECT, INTERSECT_TOP) if node.kind == ALL else (UNITE, UNITE_TOP)
    deepest = depth
    # Trees first, so that the leaves can be joined to what is on the stack.
    ordered = sorted(node.children, key=lambda child: child.kind in (LEAF, _SOME))
    for position, child in enumerate(ordered):
        if position == 0:
            deepest = max(deepest, _steps(child, depth, steps))
        elif child.kind in (LEAF, _SOME):
            steps.append((joins[0], child.leaf))
        else:
            deepest = max(deepest, _steps(child, depth + 1, steps))
            steps.append((joins[1], NO_LEAF))
    return deepest


def _jumps(root: _Node) -> list[tuple[int, int, int]]:
    """Compile a tree into leaves with jumps, backwards: targets first."""
    steps: list[tuple[int, int, int]] = []
    made: dict[tuple[int, int, int], int] = {}

    def emit(node: _Node, on_true: int, on_false: int) -> int:
        known = made.get((id(node), on_true, on_false))
        if known is not None:
            return known
        if node.kind == LEAF:
            steps.append((node.leaf, on_true, on_false))
            target = len(steps) - 1
        elif node.kind == ALL:
            target = on_true
            for child in reversed(node.children):
                target = emit(child, target, on_false)
        elif node.kind == ANY:
            target = on_false
            for child in reversed(node.children):
                target = emit(child, on_true, target)
        else:
            # row[n]: where to go when n more must hold, from the operand that was looked at last
            row = [on_true] + [on_false] * node.count
            last = len(node.children) - 1
            for position, child in enumerate(reversed(node.children)):
                # Fewer cannot be needed than if all before held, nor more than are left.
                least, most = max(1, node.count - (last - position)), min(node.count, position + 1)
                row = [
                    on_true,
                    *[on_false] * (least - 1),
                    *(emit(child, row[needed - 1], row[needed]) for needed in range(least, most + 1)),
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
