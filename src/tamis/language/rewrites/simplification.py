"""What do the predicates on one attribute say together? Interval and set arithmetic.

`a > 3 AND a > 5` is `a > 5`, `a > 5 AND a < 3` is never true, `a = 1 OR a = 2` is `a IN (1, 2)`. Predicates
that compare the same term with literals become sets of values; an AND intersects them, an OR unites
them, and where the result is a single predicate again it replaces the others.

The input is in negation normal form. What is never *true* becomes FALSE although it may have been
unknown: nothing above it can tell the difference, because there is no NOT above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.expressions import (
    FALSE,
    TRUE,
    And,
    AtLeast,
    Attribute,
    Expression,
    IsNull,
    Not,
    Or,
)
from tamis.language.ranges.rewording import INTEGER, Ranged, as_predicates, ranged
from tamis.language.ranges.value_sets import intersection_of, union_of
from tamis.language.rewrites.junctions import conjunction, disjunction
from tamis.language.rewrites.monotone import fold_monotone
from tamis.language.types import ScalarType

if TYPE_CHECKING:
    from tamis.language.schema import Schema


def simplify(expression: Expression, schema: Schema | None = None) -> Expression:
    """Merge the predicates on each term; remove contradictions, tautologies and what is implied.

    >>> import tamis
    >>> print(simplify(tamis.parse("a > 3 AND a > 5 AND (b = 1 OR b = 2) AND c IS NOT NULL AND c < 4")))
    a > 5 AND b IN (1, 2) AND c < 4
    >>> print(simplify(tamis.parse("a > 5 AND a < 3")))
    FALSE
    """
    # Inside a predicate or a function unknown and false differ, so only AND, OR and `at_least` are gone through.
    return fold_monotone(expression, lambda node, below: _simplified(node, below, schema))


def _simplified(node: Expression, below: list[Expression], schema: Schema | None) -> Expression:
    match node:
        case And():
            return _conjunction(_unique(below, And), schema)
        case Or():
            return _disjunction(_unique(below, Or), schema)
        case IsNull(Attribute(path)) if schema is not None and schema.is_mandatory(path):
            return FALSE
        case Not(IsNull(Attribute(path))) if schema is not None and schema.is_mandatory(path):
            return TRUE
        case AtLeast():
            return node.with_children(tuple(below))
        case _:
            return node


def _unique(operands: list[Expression], kind: type[And] | type[Or]) -> list[Expression]:
    """The operands once each, those of the same kind of junction among them taken apart."""
    flat: dict[Expression, None] = {}
    for operand in operands:
        flat.update(dict.fromkeys(operand.children if type(operand) is kind else (operand,)))
    return list(flat)


def _conjunction(operands: list[Expression], schema: Schema | None) -> Expression:
    present = set(operands)
    if FALSE in present or any(isinstance(operand, Not) and operand.value in present for operand in operands):
        return FALSE
    sets = _by_term(operands, schema)
    merged: dict[Expression, list[Expression]] = {}
    for term, members in sets.items():
        if IsNull(term) in present:
            return FALSE  # a predicate that is true has a value to be true of
        values = intersection_of(*(member.values for member in members.values()))
        if not values:
            return FALSE
        if len(members) == 1:
            continue
        together = _together(members)._replace(values=values)
        predicates = as_predicates(together, And, INTEGER if _is_integer(term, schema) else "any")
        if 0 < len(predicates) < len(members):
            merged |= dict.fromkeys(members, predicates)
    needless: set[Expression] = {TRUE, *(Not(IsNull(term)) for term in sets)}
    return conjunction(_not_absorbed(_replaced(operands, merged, needless), Or))


def _disjunction(operands: list[Expression], schema: Schema | None) -> Expression:
    present = set(operands)
    if TRUE in present or any(
        isinstance(operand, Not) and isinstance(operand.value, IsNull) and operand.value in present
        for operand in operands
    ):
        return TRUE
    merged: dict[Expression, list[Expression]] = {}
    for term, members in _by_term(operands).items():
        if Not(IsNull(term)) in present:
            merged |= {member: [Not(IsNull(term))] for member in members}
            continue
        if len({member.kind for member in members.values()}) > 1:
            continue
        together = _together(members)._replace(values=union_of(*(member.values for member in members.values())))
        if together.is_full:
            everything = _anything(term, together, schema)
            if everything is TRUE:
                return TRUE
            if everything is not None:
                merged |= {member: [everything] for member in members}
            continue
        predicates = as_predicates(together, Or) if len(members) > 1 else []
        if 0 < len(predicates) < len(members):
            merged |= dict.fromkeys(members, predicates)
    return disjunction(_not_absorbed(_replaced(operands, merged, {FALSE}), And))


def _replaced(
    operands: list[Expression], merged: dict[Expression, list[Expression]], needless: set[Expression]
) -> list[Expression]:
    """The operands, with those that were merged replaced by what they became, where the first of them stood."""
    kept: dict[Expression, None] = {}
    for operand in operands:
        if operand not in needless:
            kept.update(dict.fromkeys(merged.get(operand, [operand])))
    return list(kept)


def _by_term(operands: list[Expression], schema: Schema | None = None) -> dict[Expression, dict[Expression, Ranged]]:
    """The predicates on each term, with their values; with a schema, among whole numbers where the term is one."""
    sets: dict[Expression, dict[Expression, Ranged]] = {}
    for operand in operands:
        member = ranged(operand)
        if member is not None and _is_integer(member.term, schema):
            member = ranged(operand, INTEGER)
        if member is not None:
            sets.setdefault(member.term, {})[operand] = member
    return sets


def _together(members: dict[Expression, Ranged]) -> Ranged:
    """One of the predicates on a term, with the operands of all."""
    first = next(iter(members.values()))
    return first._replace(operands=tuple(operand for member in members.values() for operand in member.operands))


def _anything(term: Expression, everything: Ranged, schema: Schema | None) -> Expression | None:
    """What is left of a tautology: that the term has a value of this kind. Only a schema can promise the kind."""
    if schema is None or not isinstance(term, Attribute):
        return None
    declared = schema.type_of(term.path)
    if declared is None or declared.kind != everything.kind:
        return None
    return TRUE if schema.is_mandatory(term.path) else Not(IsNull(term))


def _is_integer(term: Expression, schema: Schema | None) -> bool:
    kind = schema.type_of(term.path) if schema is not None and isinstance(term, Attribute) else None
    return isinstance(kind, ScalarType) and kind.name == "int"


def _not_absorbed(operands: list[Expression], inner: type[And] | type[Or]) -> list[Expression]:
    """Absorption: beside `p`, an operand `p AND q` of an OR adds nothing, nor does `p OR q` in an AND."""
    plain = set(operands)
    return [
        operand
        for operand in operands
        if type(operand) is not inner or not any(child in plain for child in operand.children)
    ]
