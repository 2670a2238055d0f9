"""How are NOT and XOR removed? Negation normal form.

Negation normal form: NOT is pushed to the predicates and into them (`NOT a < 5` is `a >= 5`), and
stays only on predicates that have no complement of their own (`a NOT IN (...)`). `xor` becomes AND and
OR over both polarities. What remains is monotone in its leaves, so a matcher may read "unknown" as
"false" at the leaf and needs no third truth value.

Source: Bittner 2008, section 4.2.1 (docs/bibliography.md).
Departs: messages need not be total. A complement is unknown where its predicate is, never true.
"""

from __future__ import annotations

from tamis.errors import BudgetError
from tamis.language.expressions import (
    COMPLEMENTS,
    FALSE,
    TRUE,
    And,
    AtLeast,
    Attribute,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
    Xor,
)

DEFAULT_BUDGET = 1_000_000

_Job = tuple[Expression, bool]


def nnf(expression: Expression, *, budget: int = DEFAULT_BUDGET) -> Expression:
    """Return the negation normal form.

    Each sub-expression is rewritten once per polarity, so the result is a graph at most twice as large as
    the input, but for wide XORs, which grow as their square. Beyond `budget` nodes it is a `BudgetError`.

    >>> import tamis
    >>> print(nnf(tamis.parse("NOT (a < 5 AND (b IN (1, 2) OR NOT sold))")))
    a >= 5 OR b NOT IN (1, 2) AND sold = TRUE
    """
    done: dict[tuple[int, bool], Expression] = {}
    made = 0
    stack: list[_Job] = [(expression, True)]
    while stack:
        node, is_positive = stack[-1]
        needed = [job for job in _needed(node, is_positive) if (id(job[0]), job[1]) not in done]
        if needed:
            stack.extend(needed)
            continue
        stack.pop()
        if (id(node), is_positive) in done:
            continue
        made += len(node.children) + 1
        if isinstance(node, Xor):
            made += len(node.operands) ** 2
        if made > budget:
            raise BudgetError("negation normal form", budget)
        below = [done[id(child), polarity] for child, polarity in _needed(node, is_positive)]
        done[id(node), is_positive] = _rewritten(node, is_positive, below)
    return done[id(expression), True]


def _needed(node: Expression, is_positive: bool) -> list[_Job]:
    """Return which children, in which polarity, a node in this polarity is made of."""
    match node:
        case Not(operand):
            return [(operand, not is_positive)]
        case And(operands) | Or(operands) | AtLeast(_, operands):
            return [(operand, is_positive) for operand in operands]
        case Xor(operands):
            return [(operand, polarity) for operand in operands for polarity in (True, False)]
        case _:
            return []


def _rewritten(node: Expression, is_positive: bool, below: list[Expression]) -> Expression:
    match node:
        case Not():
            return below[0]
        case And() | Or():
            return (And if isinstance(node, And) is is_positive else Or)(tuple(below))
        case AtLeast(count, operands):
            # Fewer than `count` are true when enough are false to keep the others below it.
            needed = count if is_positive else max(0, len(operands) - count + 1)
            return AtLeast(needed, tuple(below))
        case Xor():
            odd, even = _parity(list(zip(below[::2], below[1::2], strict=True)))
            return odd if is_positive else even
        case Literal(bool() as constant):
            return TRUE if constant is is_positive else FALSE
        case Attribute():
            return Compare("=", node, TRUE if is_positive else FALSE)
        case Compare(operator, left, right) if not is_positive and operator in COMPLEMENTS:
            return Compare(COMPLEMENTS[operator], left, right)
        case Literal():
            return node  # NULL: neither true nor false
        case _:
            return node if is_positive else Not(node)


def _parity(pairs: list[tuple[Expression, Expression]]) -> tuple[Expression, Expression]:
    """Return (odd, even) for operands given as (operand, its negation), splitting in halves."""
    if len(pairs) == 1:
        return pairs[0]
    middle = len(pairs) // 2
    left_odd, left_even = _parity(pairs[:middle])
    right_odd, right_even = _parity(pairs[middle:])
    odd = Or((And((left_odd, right_even)), And((left_even, right_odd))))
    even = Or((And((left_odd, right_odd)), And((left_even, right_even))))
    return odd, even
