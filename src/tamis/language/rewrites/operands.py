"""What may stand where a condition gave a value? Conditions inside predicates and functions.

`(a AND a) IS NULL`, `coalesce(NOT NOT a, FALSE)`: a condition among the operands of a predicate or function gives its
truth. A rewrite that makes it the attribute `a` itself would let through values that are no truths: `5 IS NULL` is
false, but `(5 AND 5) IS NULL` is true. So what was a condition stays one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.expressions import TRUE, Compare, Condition, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence


def over(node: Expression, below: Sequence[Expression]) -> Expression:
    """Return a predicate or function over its operands, rewritten.

    >>> import tamis
    >>> node = tamis.parse("(NOT NOT a) IS NULL")
    >>> print(over(node, [tamis.parse("a")]))
    a = TRUE IS NULL
    """
    return node.with_children(tuple(map(_as_before, node.children, below))) if below else node


def _as_before(before: Expression, after: Expression) -> Expression:
    if isinstance(before, Condition) and not isinstance(after, Condition | Literal):
        return Compare("=", after, TRUE)
    return after
