"""What does a predicate say that has a choice inside? Cases lifted out of terms.

`coalesce(price, 0) < 20` says: there is a price and it is less than 20, or there is none and 0 < 20. Lifted out of the
term, the conditions of a choice are conditions as all others, and what is left are predicates about the branches, which
relations know: so a weighted partial match (`if(a, 2, 0) + if(b, 1, 0) >= 2`) is decided exactly.

A choice brings the number it takes into the widest type among its branches. It is lifted only where that changes
nothing that the predicate could see; where it could, and where there are too many cases, the term stays as it is, about
which less is known, but nothing wrong.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.choices import Choice, choice_of, keeps_types
from tamis.language.expressions import (
    UNKNOWN,
    Attribute,
    Between,
    Compare,
    Condition,
    Expression,
    In,
    IsNull,
    Literal,
    fold_shared,
)
from tamis.language.ranges.predicates import subject

if TYPE_CHECKING:
    from tamis.language.schema import Schema

_MOST_CASES = 256
"""A predicate with more cases than this keeps its choices."""
_EXACT_AS_DOUBLE = 2**53
_MOST_DIGITS = 15
"""Between integers below 2**53, and decimals of so many digits, doubles have the same order as the numbers."""


class Lifted(NamedTuple):
    """The cases of a predicate: conditions in order, and the predicate where each is the first that is true."""

    conditions: tuple[Expression, ...]
    predicates: tuple[Expression, ...]
    """One more than there are conditions: the last one is for where none is true."""


def lifted(predicate: Expression, schema: Schema | None) -> Lifted | None:
    """Return the cases of a predicate by one of its choices, None if it has none that can be lifted.

    >>> import tamis
    >>> cases = lifted(tamis.parse("coalesce(price, 0) < 20"), None)
    >>> [str(each) for each in cases.conditions], [str(each) for each in cases.predicates]
    (['price IS NOT NULL'], ['price < 20', '0 < 20'])
    """
    choices: dict[Expression, Choice] = {}
    for node in _terms(predicate):
        choice = choice_of(node)
        if choice is not None and (keeps_types(node) or _is_transparent(predicate, node, choice, schema)):
            choices[node] = choice
    cases = 1
    for choice in choices.values():
        cases *= len(choice.values)
    if not choices or cases > _MOST_CASES:
        return None
    node, choice = next(iter(choices.items()))
    return Lifted(
        tuple(arm.deciding for arm in choice.arms),
        tuple(_with(predicate, node, value) for value in choice.values),
    )


def _terms(predicate: Expression) -> list[Expression]:
    """Return the terms of a predicate, from the outside in; what stands in a condition inside has its own turn."""
    terms: list[Expression] = []
    stack = list(predicate.children)
    while stack:
        node = stack.pop()
        if isinstance(node, Condition | Attribute | Literal):
            continue
        terms.append(node)
        if choice_of(node) is None:
            stack.extend(node.children)
    return terms


def _is_transparent(predicate: Expression, node: Expression, choice: Choice, schema: Schema | None) -> bool:
    """Does the predicate say the same of the values of a choice as they are without it?

    It does if they are of one type. An integer beside a double becomes a double, which no comparison with a short
    number can tell; and a value is not changed by the integers beside it.
    """
    values = {value for value in choice.values if value != UNKNOWN}
    types = {_type_of(value, schema) for value in values}
    if len(types) == 1 and "any" not in types:
        return True
    constants = [value.value for value in values if isinstance(value, Literal)]
    return (
        len(values) - len(constants) == 1
        and all(
            isinstance(each, str | bool) or (isinstance(each, int) and abs(each) < _EXACT_AS_DOUBLE)
            for each in constants
        )
        and subject(predicate) == node
        and all(map(_is_short, _operands(predicate)))
    )


def _operands(predicate: Expression) -> list[Any]:
    """Return the constants that a predicate compares its subject with, None if it is not a comparison."""
    match predicate:
        case In(_, members):
            return list(members)
        case Compare() | Between():
            return [child.value for child in predicate.children if isinstance(child, Literal)]
        case IsNull():
            return []
    return [None]


def _is_short(operand: Any) -> bool:
    if isinstance(operand, Decimal):
        return len(operand.as_tuple().digits) <= _MOST_DIGITS
    if isinstance(operand, int):
        return abs(operand) <= _EXACT_AS_DOUBLE
    return operand is not None


def _type_of(value: Expression, schema: Schema | None) -> str:
    if isinstance(value, Condition):
        return "bool"
    if isinstance(value, Literal):
        name = type(value.value).__name__
        return {"str": "string", "float": "double", "Decimal": "decimal", "datetime": "timestamp"}.get(name, name)
    declared = schema.type_of(value.path) if schema is not None and isinstance(value, Attribute) else None
    return "any" if declared is None else str(declared).partition("(")[0]


def _with(predicate: Expression, old: Expression, new: Expression) -> Expression:
    def put(node: Expression, below: list[Expression]) -> Expression:
        if node == old:
            return new
        return node.with_children(tuple(below)) if below else node

    return fold_shared(predicate, put)
