"""How may a filter be generalised by leaving something out? Pruning: the definition.

In negation normal form a filter is monotone: a tree of AND and OR over predicates. Without one of its operands an AND
is true for more events; without one of its operands an OR is true for fewer. So the *valid prunings* of a tree are the
operands of its ANDs, wherever they stand. Afterwards the tree is put in order: an AND or OR of one operand is that
operand, and an OR in an OR is part of it.

    a AND (b OR c AND d)        without d        a AND (b OR c)

`at_least(k, ...)` lies between the two. Without one of its operands, and with one less to hold, it is true for more
events; as long as k is 2 or more, this is a pruning too.

Source: Bittner 2008, sections 6.3.1 and 4.2.1; Bittner & Hinze 2006, section 2.2 (docs/bibliography.md).
Departs: `at_least` is pruned as it stands. What is never true for lack of a value (NULL) counts as FALSE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tamis.errors import BudgetError
from tamis.language.expressions import TRUE, And, AtLeast, Expression, Literal, Or
from tamis.language.parser import parse
from tamis.language.rewrites.constants import fold_constants
from tamis.language.rewrites.monotone import all_of, at_least, fold_monotone, joined, leaf_count, leaves_of
from tamis.language.rewrites.negation import nnf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

MOST_LEAVES = 1_000
"""A larger filter is left as it is: to choose among its prunings, again and again, takes as long as its size cubed."""
MOST_COUNTED = 300
"""The same for a filter with `at_least`, whose chances take another factor of its size to compute."""
LEAF_BYTES, JUNCTION_BYTES, THRESHOLD_BYTES = 5, 2, 3
"""An encoded leaf is a type and a predicate's number, an AND or OR an operator and a count; at_least has two counts."""

RULES = ("any", "innermost", "lowest")
"""Which operands of ANDs may go: any; those with no valid pruning inside; those of ANDs with none further down."""


@dataclass(frozen=True, slots=True)
class Option:
    """A valid pruning: what goes, and the tree without it."""

    branch: Expression
    tree: Expression


def pruning_form(given: str | Expression, *, most_leaves: int = MOST_LEAVES) -> Expression:
    """Return the tree that prunings are defined on: AND, OR, `at_least` and predicates, none nested in its own kind.

    >>> print(pruning_form("NOT (sold OR (price >= 20 OR 1 > 2))"))
    sold = FALSE AND price < 20
    """
    expression = fold_constants(nnf(parse(given) if isinstance(given, str) else given))
    if fold_monotone(expression, lambda node, below: isinstance(node, AtLeast) or any(below)):
        most_leaves = min(most_leaves, MOST_COUNTED)
    if leaf_count(expression) > most_leaves:
        raise BudgetError("pruning", most_leaves)
    return fold_monotone(expression, joined)


# -- Options


def options(tree: Expression, rule: str = "any") -> list[Option]:
    """Return all valid prunings of a tree in pruning form, in the order in which the branches stand.

    >>> for option in options(pruning_form("a = 1 AND (b = 2 OR c = 3 AND d = 4)")):
    ...     print(option.tree)
    b = 2 OR c = 3 AND d = 4
    a = 1
    a = 1 AND (b = 2 OR d = 4)
    a = 1 AND (b = 2 OR c = 3)
    """
    assert rule in RULES
    prunings = []
    for path, parent in _children(tree):
        branch = parent.children[path[-1]]
        if not offers(parent):
            continue
        if rule == "innermost" and is_prunable(branch):
            continue
        if rule == "lowest" and any(map(is_prunable, parent.children)):
            continue
        prunings.append(Option(branch, _without(tree, path)))
    return prunings


def offers(node: Expression) -> bool:
    """May an operand of this node be left out?"""
    return isinstance(node, And) or (isinstance(node, AtLeast) and node.count >= 2)


def is_prunable(tree: Expression) -> bool:
    """Is there a valid pruning? Not of a predicate, nor of an OR of predicates.

    >>> is_prunable(pruning_form("a = 1 OR b = 2")), is_prunable(pruning_form("a = 1 OR b = 2 AND c = 3"))
    (False, True)
    """
    return fold_monotone(tree, lambda node, below: offers(node) or any(below))


def _children(tree: Expression) -> Iterator[tuple[tuple[int, ...], Expression]]:
    """Yield the way to each node but the root, and its parent, in the order in which they stand."""
    stack: list[tuple[tuple[int, ...], Expression]] = [((), tree)]
    while stack:
        path, node = stack.pop()
        if path:
            yield path, _at(tree, path[:-1])
        if isinstance(node, And | Or | AtLeast):
            stack.extend(((*path, index), child) for index, child in reversed(list(enumerate(node.children))))


def _at(tree: Expression, path: tuple[int, ...]) -> Expression:
    for index in path:
        tree = tree.children[index]
    return tree


def _without(tree: Expression, path: tuple[int, ...]) -> Expression:
    way = [tree]
    for index in path[:-1]:
        way.append(way[-1].children[index])
    parent = way[-1]
    operands = [*parent.children[: path[-1]], *parent.children[path[-1] + 1 :]]
    changed = at_least(parent.count - 1, operands) if isinstance(parent, AtLeast) else all_of(operands)
    for node, index in zip(reversed(way[:-1]), reversed(path[:-1]), strict=True):
        changed = joined(node, [*node.children[:index], changed, *node.children[index + 1 :]])
    return changed


def without(tree: Expression, removed: Collection[int]) -> Expression:
    """Return a tree without the branches at some places, counted from the root down and from left to right.

    One pass for a whole sequence of prunings, whose places are those of the first tree.

    >>> print(without(pruning_form("a = 1 AND (b = 2 OR c = 3 AND d = 4)"), {6}))
    a = 1 AND (b = 2 OR c = 3)
    """
    if not removed:
        return tree
    number = -1
    stack: list[tuple[Expression, int, list[Expression]]] = []  # a node, how many operands are to come, those that came
    at: Expression | None = tree
    while True:
        if at is not None:
            number += 1
            if isinstance(at, And | Or | AtLeast):
                stack.append((at, len(at.children), []))
                if number in removed:
                    stack[-1] = (at, -len(at.children), [])  # to be walked over only
                at = at.children[0]
                continue
            done, is_removed = at, number in removed
        else:
            node, left, operands = stack.pop()
            is_removed = left < 0
            done = TRUE if is_removed else _rest(node, operands)
        if not stack:
            return done
        node, _, operands = stack[-1]
        operands.append(_GONE if is_removed else done)
        at = node.children[len(operands)] if len(operands) < len(node.children) else None


_GONE = Literal("left out")


def _rest(node: Expression, operands: list[Expression]) -> Expression:
    kept = [operand for operand in operands if operand is not _GONE]
    if isinstance(node, AtLeast):
        return at_least(node.count - (len(operands) - len(kept)), kept)
    return joined(node, kept)


# -- Sizes


def memory_bytes(tree: Expression) -> int:
    """Return the bytes of an encoded tree.

    >>> memory_bytes(pruning_form("a = 1 AND (b = 2 OR c = 3)"))
    19
    """
    return fold_monotone(tree, _bytes)


def _bytes(node: Expression, below: list[int]) -> int:
    own = THRESHOLD_BYTES if isinstance(node, AtLeast) else JUNCTION_BYTES
    return own + sum(below) if below else LEAF_BYTES


def fold_leaves(tree: Expression, value: Callable[[Expression], float]) -> float:
    """Add up a value over the predicates, by occurrence."""
    total = 0.0
    for leaf in leaves_of(tree):
        total += value(leaf)
    return total
