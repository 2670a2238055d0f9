"""Conjunctions and disjunctions of any number of operands, as rewrites need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.expressions import FALSE, TRUE, And, Expression, Or

if TYPE_CHECKING:
    from collections.abc import Iterable


def conjunction(operands: Iterable[Expression]) -> Expression:
    """All of these: TRUE for none, the operand itself for one."""
    operands = tuple(operands)
    return And(operands) if len(operands) > 1 else operands[0] if operands else TRUE


def disjunction(operands: Iterable[Expression]) -> Expression:
    """Any of these: FALSE for none, the operand itself for one."""
    operands = tuple(operands)
    return Or(operands) if len(operands) > 1 else operands[0] if operands else FALSE
