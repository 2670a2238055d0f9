"""How does a filter look to those who only ask what it is true for? The monotone form.

As a tree of AND, OR and `at_least` over predicates, which may be negated themselves: negation normal form with
constants folded, what is never true (NULL) as FALSE, and no AND in an AND, nor OR in an OR. Such a tree is monotone:
if more of its predicates are true, it is not less true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tamis.language.expressions import (
    FALSE,
    TRUE,
    And,
    AtLeast,
    Attribute,
    Between,
    Compare,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Or,
    RLike,
)
from tamis.language.rewrites.constants import fold_constants
from tamis.language.rewrites.negation import nnf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

_PLAIN = frozenset({Between, In, IsNull, IsA, Like, RLike})


def monotone(expression: Expression) -> Expression:
    """Return the monotone form, true for the same events.

    >>> import tamis
    >>> print(monotone(tamis.parse("NOT (sold OR (price >= 20 OR 1 > 2)) OR bids = NULL")))
    sold = FALSE AND price < 20
    """
    return expression if is_monotone(expression) else fold_monotone(fold_constants(nnf(expression)), joined)


def is_monotone(expression: Expression) -> bool:
    """Is it seen at once that a filter is in monotone form as it is written? Most are, and are spared the rewriting.

    >>> import tamis
    >>> is_monotone(tamis.parse("a = 1 AND (b < 2 OR c = 3)")), is_monotone(tamis.parse("a = 1 AND NOT b < 2"))
    (True, False)
    """
    stack: list[tuple[Expression, type | None]] = [(expression, None)]
    while stack:
        node, above = stack.pop()
        kind = type(node)
        if kind is And or kind is Or:
            if kind is above:
                return False
            stack.extend([(child, kind) for child in node.children])
        elif not is_plain(node):
            return False
    return True


def is_plain(node: Expression) -> bool:
    """Is this surely a predicate that no rewriting touches?"""
    if isinstance(node, Compare):
        return isinstance(node.left, Attribute) and isinstance(node.right, Literal) and node.right.value is not None
    if type(node) not in _PLAIN or not isinstance(node.children[0], Attribute):
        return False
    if isinstance(node, In):
        return any(member is not None for member in node.values)
    return not isinstance(node, Between) or all(isinstance(child, Literal) for child in node.children[1:])


def joined(node: Expression, operands: list[Expression]) -> Expression:
    """Return a node over operands that are in monotone form already."""
    match node:
        case And():
            return all_of(operands)
        case Or():
            return any_of(operands)
        case AtLeast(count):
            return at_least(count, operands)
        case Literal():
            return TRUE if node == TRUE else FALSE
    return node


def all_of(operands: Iterable[Expression]) -> Expression:
    """Join operands that are in order already by AND."""
    flat = [each for operand in operands for each in (operand.children if isinstance(operand, And) else (operand,))]
    kept = tuple(each for each in flat if each != TRUE)
    if FALSE in kept:
        return FALSE
    return And(kept) if len(kept) > 1 else kept[0] if kept else TRUE


def any_of(operands: Iterable[Expression]) -> Expression:
    """Join operands that are in order already by OR."""
    flat = [each for operand in operands for each in (operand.children if isinstance(operand, Or) else (operand,))]
    kept = tuple(each for each in flat if each != FALSE)
    if TRUE in kept:
        return TRUE
    return Or(kept) if len(kept) > 1 else kept[0] if kept else FALSE


def at_least(count: int, operands: Iterable[Expression]) -> Expression:
    """Ask for so many of some operands that are in order already."""
    given = list(operands)
    count -= given.count(TRUE)
    kept = tuple(each for each in given if each not in (TRUE, FALSE))
    if count <= 0:
        return TRUE
    if count > len(kept):
        return FALSE
    if count == len(kept):
        return all_of(kept)
    return any_of(kept) if count == 1 else AtLeast(count, kept)


def fold_monotone(root: Expression, combine: Callable[[Expression, list[T]], T]) -> T:
    """Compute a value bottom-up over AND, OR and `at_least`; whatever else there is, is a leaf.

    Shared sub-expressions are computed once: negation normal form may be a graph whose tree is far larger.
    """
    values: dict[int, T] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        children = node.children if isinstance(node, And | Or | AtLeast) else ()
        missing = [child for child in children if id(child) not in values]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if id(node) not in values:
            values[id(node)] = combine(node, [values[id(child)] for child in children])
    return values[id(root)]


def leaf_count(tree: Expression) -> int:
    """Count the leaves of a monotone tree, by occurrence: a graph may have more than could ever be listed.

    >>> import tamis
    >>> leaf_count(tamis.parse("a = 1 AND (b = 2 OR a = 1)"))
    3
    """
    return fold_monotone(tree, lambda _, below: sum(below) if below else 1)


def occurrences(tree: Expression) -> dict[Expression, int]:
    """Return the distinct leaves of a monotone tree, and how often each occurs, without listing them all.

    >>> import tamis
    >>> {str(leaf): count for leaf, count in occurrences(tamis.parse("a = 1 AND (b = 2 OR a = 1)")).items()}
    {'a = 1': 2, 'b = 2': 1}
    """
    order: list[Expression] = []
    fold_monotone(tree, lambda node, _: order.append(node))
    # From the root down: a node occurs as often as all its parents together.
    counts: dict[int, int] = {id(tree): 1}
    uses: dict[Expression, int] = {}
    for node in reversed(order):
        count = counts[id(node)]
        if isinstance(node, And | Or | AtLeast):
            for child in node.children:
                counts[id(child)] = counts.get(id(child), 0) + count
        else:
            uses[node] = uses.get(node, 0) + count
    return uses


def leaves_of(tree: Expression) -> list[Expression]:
    """Return the leaves of a monotone tree, each as often as it occurs, from left to right.

    Of a graph whose tree is far larger, ask for `leaf_count` first, or for `occurrences`.
    """
    leaves, stack = [], [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, And | Or | AtLeast):
            stack.extend(reversed(node.children))
        else:
            leaves.append(node)
    return leaves
