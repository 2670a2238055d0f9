"""How are nested ANDs in ANDs made one? Associativity.

Source: Bittner 2008, section 4.2.1, "operator summarisation" (docs/bibliography.md).
Departs: XOR is flattened too, and NOT NOT is removed.
"""

from __future__ import annotations

from tamis.language.expressions import And, Expression, Not, Or, Xor, fold_shared, is_condition
from tamis.language.rewrites.operands import over


def flatten(expression: Expression) -> Expression:
    """Merge each AND, OR and XOR with the operands of its own kind, and drop double negations.

    >>> import tamis
    >>> print(flatten(tamis.parse("(a = 1 AND (b = 2 AND c = 3)) AND NOT NOT d = 4")))
    a = 1 AND b = 2 AND c = 3 AND d = 4
    """
    return fold_shared(expression, _flattened)


def _flattened(node: Expression, below: list[Expression]) -> Expression:
    match node:
        case And() | Or() | Xor():
            operands: list[Expression] = []
            for child in below:
                operands.extend(child.children if type(child) is type(node) else (child,))
            return type(node)(tuple(operands))
        case Not() if isinstance(below[0], Not) and is_condition(below[0].value):
            return below[0].value
        case Not():
            return Not(*below)
        case _:
            return over(node, below)
