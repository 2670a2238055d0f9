"""How much of a condition is worth taking apart? A bound on expression growth.

Taken apart, a condition becomes clauses and programs over its predicates. AND, OR and NOT become as much as they are.
XOR does not: each operand is needed true and false, so a nest of them doubles with every level. `at_least` does not
either: its program has a row for every number of operands that may still be needed. A text of two hundred characters
can ask for a program that fills the memory.

So the size of the program is computed first, on the condition itself and in a moment. What would grow beyond a few
times its own size is not taken apart: it is asked as a whole, as a truth axis that evaluates it once for each node
(`columnwise`, `closures`). The other operands of its AND are leaves as usual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import LimitError
from tamis.language.expressions import CONNECTIVES, And, AtLeast, Expression, Not, Or, Xor

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_STEPS = 1_000
"""A program may have so many steps, whatever it is the program of,"""
_MOST_TIMES = 4
"""or so many times the nodes of the condition."""
_MOST_NODES = 1_000_000
"""Occurrences of nodes; more than a text can have, but not more than an expression that is built from shared ones."""
_LOOKED_AT = 2_000
_PLAIN = frozenset({And, Or, Not})


def is_linear(expression: Expression) -> bool:
    """Is it seen at once that a condition becomes no larger when it is taken apart? Most do not.

    >>> import tamis
    >>> is_linear(tamis.parse("a = 1 AND NOT (b = 2 OR c = 3)")), is_linear(tamis.parse("a = 1 XOR b = 2"))
    (True, False)
    """
    stack = [expression]
    looks = 0
    while stack:
        node = stack.pop()
        looks += 1
        if type(node) in _PLAIN:
            stack += node.children
        elif isinstance(node, CONNECTIVES):
            return False
        if looks > _LOOKED_AT:
            return False
    return True


def check(expression: Expression) -> None:
    """Raise if a condition is too large to be registered: not as it is written, but with all that it repeats.

    >>> import tamis
    >>> doubled = tamis.parse("a = 1")
    >>> for _ in range(60):
    ...     doubled = doubled & ~doubled
    >>> check(doubled)
    Traceback (most recent call last):
        ...
    tamis.errors.LimitError: nodes is limited to 1,000,000, found more
    ...
    """
    if not is_linear(expression):
        asked_whole((expression,))


def asked_whole(operands: Sequence[Expression]) -> list[Expression]:
    """Return those of the operands of an AND that are not taken apart: the largest, until the rest is small enough.

    >>> import tamis
    >>> odd = tamis.parse(" XOR ".join(f"(p{number} XOR q{number} AND r)" for number in range(30)))
    >>> asked_whole([tamis.parse("a = 1"), odd]) == [odd]
    True
    """
    weighed = _weighed(operands)
    sizes = sum(weighed[id(operand)][1] for operand in operands)
    if sizes > _MOST_NODES:
        raise LimitError("nodes", _MOST_NODES, "more")
    total = sum(weighed[id(operand)][0] for operand in operands)
    allowed = max(_MOST_STEPS, _MOST_TIMES * sizes)
    whole: list[Expression] = []
    for operand in sorted(operands, key=lambda each: weighed[id(each)][0], reverse=True):
        if total <= allowed:
            break
        whole.append(operand)
        total -= weighed[id(operand)][0]
    return whole


def _weighed(roots: Sequence[Expression]) -> dict[int, tuple[int, int]]:
    """Return of every condition among some, by identity, how large its program is and how large it is itself."""
    weighed: dict[int, tuple[int, int]] = {}
    stack = list(roots)
    while stack:
        node = stack[-1]
        children = node.children if isinstance(node, CONNECTIVES) else ()
        missing = [child for child in children if id(child) not in weighed]
        if missing:
            stack += missing
            continue
        stack.pop()
        steps = sum(weighed[id(child)][0] for child in children)
        size = 1 + sum(weighed[id(child)][1] for child in children)
        weighed[id(node)] = _times(node) * max(1, steps), size
    return weighed


def _times(node: Expression) -> int:
    """Return how often each operand of a connective is written."""
    match node:
        case Xor(operands):
            return len(operands)  # split in halves: twice for each halving, in both polarities
        case AtLeast(count, operands):
            return max(1, min(count, len(operands) - count + 1))
    return 1
