"""How large is an expression, and how many true predicates does a match need at least? Syntactic measures.

Source: p_min is Bittner 2008, section 4.2.3 (docs/bibliography.md).
Departs: p_min is extended to `at_least` and `xor`, and to constants, which need no hit at all.
"""

from __future__ import annotations

from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Condition,
    Expression,
    Literal,
    Not,
    Or,
    Xor,
    fold_shared,
)


def size(expression: Expression) -> int:
    """Count the nodes of the tree, a shared one as often as it occurs.

    >>> import tamis
    >>> size(tamis.parse("a = 1 AND b = 2"))
    7
    """
    return fold_shared(expression, lambda _, below: 1 + sum(below))


def depth(expression: Expression) -> int:
    """Count the nodes from the root to the deepest leaf.

    >>> import tamis
    >>> depth(tamis.parse("a = 1 AND NOT b = 2"))
    4
    """
    return fold_shared(expression, lambda _, below: 1 + max(below, default=0))


def predicate_count(expression: Expression) -> int:
    """Count the predicates, by occurrence.

    >>> import tamis
    >>> predicate_count(tamis.parse("a = 1 AND (a = 1 OR b BETWEEN 2 AND 3)"))
    3
    """

    def count(node: Expression, below: list[int]) -> int:
        if isinstance(node, And | Or | Xor | Not | AtLeast):
            return sum(below)
        return 1 if isinstance(node, Condition | Attribute) else 0

    return fold_shared(expression, count)


def least_hits(expression: Expression) -> int:
    """Return the fewest true predicates with which the expression can be true (p_min).

    Predicates count by occurrence: in `p AND (p OR q)` a true `p` scores two hits, and needs two. A
    negated predicate is a predicate of its own, the one that is true when the other is false.

    >>> import tamis
    >>> least_hits(tamis.parse("price < 20 AND (format = 'hardcover' OR condition = 'new')"))
    2
    """
    # For each node: the fewest hits that make it true, and the fewest that make it false, where a hit is
    # a true predicate for the one and a true complement for the other. None is: no number of them.
    fewest, _ = fold_shared(expression, _hits)
    return 0 if fewest is None else fewest


_Hits = tuple[int | None, int | None]


def _hits(node: Expression, below: list[_Hits]) -> _Hits:
    match node:
        case Literal(True):
            return 0, None
        case Literal(False):
            return None, 0
        case Literal():
            return None, None
        case Not():
            (true, false) = below[0]
            return false, true
        case And():
            return _sum([true for true, _ in below]), _least([false for _, false in below])
        case Or():
            return _least([true for true, _ in below]), _sum([false for _, false in below])
        case AtLeast(count, operands):
            return (
                _sum_of_least([true for true, _ in below], count),
                _sum_of_least([false for _, false in below], len(operands) - count + 1),
            )
        case Xor():
            odd: int | None = None
            even: int | None = 0
            for true, false in below:
                odd, even = (
                    _least([_sum([odd, false]), _sum([even, true])]),
                    _least([_sum([even, false]), _sum([odd, true])]),
                )
            return odd, even
        case _:
            return 1, 1


def _sum(parts: list[int | None]) -> int | None:
    return None if None in parts else sum(part for part in parts if part is not None)


def _least(parts: list[int | None]) -> int | None:
    return min((part for part in parts if part is not None), default=None)


def _sum_of_least(parts: list[int | None], count: int) -> int | None:
    possible = sorted(part for part in parts if part is not None)
    if count <= 0:
        return 0
    return sum(possible[:count]) if len(possible) >= count else None
