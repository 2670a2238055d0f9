"""What does an expression mean? This module is the definition; every matcher is tested against it.

The logic is SQL's: a condition is true, false or unknown (True, False, None), an absent attribute is
NULL, a predicate over NULL is unknown, and only *true* matches. It is written to be read, not to be
fast: each node's value follows from the values of its children, and nothing else is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    Test,
    Xor,
    fold,
)
from tamis.language.functions import function_of
from tamis.language.patterns import like_matches, regex_matches
from tamis.language.values import compare, value_of

if TYPE_CHECKING:
    from tamis.language.schema import Schema

Event = Mapping[str, Any]


def holds(expression: Expression | str, event: Event, schema: Schema | None = None) -> bool:
    """Does the event match? True only where the expression, or its text, is true, not where it is unknown.

    >>> import tamis
    >>> wanted = tamis.parse("category = 'Thriller' AND (price < 20 OR bids <= 3)")
    >>> holds(wanted, {"category": "Thriller", "price": 25, "bids": 1})
    True
    >>> holds(wanted, {"category": "Thriller"})
    False
    >>> holds("price < 20", {"price": 12})
    True
    """
    return truth(expression, event, schema) is True


def truth(expression: Expression | str, event: Event, schema: Schema | None = None) -> bool | None:
    """Return True, False, or None for unknown, of an expression or of its text.

    >>> import tamis
    >>> [truth(tamis.parse("NOT price < 20"), event) for event in ({"price": 10}, {"price": 30}, {})]
    [False, True, None]
    """
    return as_truth(value(as_expression(expression, schema), event, schema))


def value(expression: Expression, event: Event, schema: Schema | None = None) -> Any:
    """Return the value of any expression, a condition's being its truth."""
    return fold(expression, lambda node, below: meaning(node, below, event, schema))


def as_expression(given: Expression | str, schema: Schema | None = None) -> Expression:
    """Return the expression that a caller gave, or that the text says which was given instead."""
    if isinstance(given, str):
        from tamis.language.parser import parse  # which needs the meaning of constants

        return parse(given, schema)
    return given


def as_truth(value: Any) -> bool | None:
    """Read a value where a condition is expected: only a Boolean has a truth, all else is unknown."""
    return value if isinstance(value, bool) else None


def meaning(node: Expression, below: list[Any], event: Event, schema: Schema | None) -> Any:
    """Return the value of one node, given the values of its children."""
    match node:
        case Literal(constant):
            return constant
        case Attribute(path):
            return attribute_value(event, path)
        case Call(name) | Test(name):
            return function_of(name).meaning(*below)
        case Compare(operator):
            return _comparison(operator, *below)
        case Between():
            middle, low, high = below
            return _all([_comparison(">=", middle, low), _comparison("<=", middle, high)])
        case In(_, members):
            return _any([_comparison("=", below[0], member) for member in members])
        case IsNull():
            return below[0] is None
        case IsA(_, event_type):
            return _is_a(below[0], event_type, schema)
        case Like(_, pattern, escape):
            return like_matches(below[0], pattern, escape) if isinstance(below[0], str) else None
        case RLike(_, pattern):
            return regex_matches(below[0], pattern) if isinstance(below[0], str) else None
        case Not():
            operand = as_truth(below[0])
            return None if operand is None else not operand
        case And():
            return _all([as_truth(operand) for operand in below])
        case Or():
            return _any([as_truth(operand) for operand in below])
        case Xor():
            truths = [as_truth(operand) for operand in below]
            return None if None in truths else truths.count(True) % 2 == 1
        case AtLeast(count):
            truths = [as_truth(operand) for operand in below]
            if truths.count(True) >= count:
                return True
            return False if truths.count(True) + truths.count(None) < count else None
    raise AssertionError(f"a node of an unknown class: {type(node).__name__}")


def attribute_value(event: Event, path: tuple[str, ...]) -> Any:
    """Follow the path into the event. What is absent is NULL.

    >>> attribute_value({"position": {"x": 1}}, ("position", "x"))
    1
    """
    value: Any = event
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value_of(value)


def _comparison(operator: str, left: Any, right: Any) -> bool | None:
    order = compare(left, right)
    if operator == "<=>":
        return order == 0 or (left is None and right is None)
    if order is None:
        return None
    match operator:
        case "=":
            return order == 0
        case "<>":
            return order != 0
        case "<":
            return order < 0
        case "<=":
            return order <= 0
        case ">":
            return order > 0
        case _:
            return order >= 0


def _all(truths: list[bool | None]) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


def _any(truths: list[bool | None]) -> bool | None:
    if True in truths:
        return True
    return None if None in truths else False


def _is_a(type_name: Any, event_type: str, schema: Schema | None) -> bool | None:
    if not isinstance(type_name, str):
        return None
    return type_name == event_type if schema is None else schema.is_a(type_name, event_type)
