"""What does an expression give for one event, asked again and again? Expressions compiled to closures.

The reference meaning looks at every node of the tree anew for every event. Here each node becomes a Python function
once, made of the functions of its children, and the pairs of types that nearly all values have are dealt with on the
spot. Everything else is handed to the same functions that the reference meaning calls.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.language.choices import keeps_types
from tamis.language.expressions import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    Test,
)
from tamis.language.functions import function_of, in_cidr
from tamis.language.meaning import attribute_value, meaning, value
from tamis.language.patterns import ANY_TEXT, like_matches, like_pieces, regex_matches
from tamis.language.values import DIGITS, GREATEST_INTEGER, LEAST_INTEGER, compare, value_of

if TYPE_CHECKING:
    from tamis.language.schema import Schema

Closure: TypeAlias = Callable[[Mapping[str, Any]], Any]

_MOST_NODES, _DEEPEST = 1_000, 100
"""Functions call one another as deep as the tree, and one node as often as it occurs: beyond that there are none."""

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "=": python.eq,
    "<>": python.ne,
    "<": python.lt,
    "<=": python.le,
    ">": python.gt,
    ">=": python.ge,
}
_EXACT: dict[str, Callable[[int, int], int]] = {"add": python.add, "subtract": python.sub, "multiply": python.mul}

_REMEMBERED = 1 << 16
remembered_like = lru_cache(_REMEMBERED)(like_matches)
remembered_regex = lru_cache(_REMEMBERED)(regex_matches)
remembered_cidr = lru_cache(_REMEMBERED)(in_cidr)
"""What takes more than a microsecond is remembered of recent texts: they come again."""


def compiled(expression: Expression, schema: Schema | None = None) -> Closure:
    """Return a function of events that gives the value of an expression, a condition's being its truth.

    >>> import tamis
    >>> is_cheap = compiled(tamis.parse("price * bids < 20"))
    >>> [is_cheap(event) for event in ({"price": 2.5, "bids": 4}, {"price": 25, "bids": 1}, {"bids": 1})]
    [True, False, None]
    """
    return _made(expression, schema) if is_small(expression) else lambda event: value(expression, event, schema)


def holding(expression: Expression, schema: Schema | None = None) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function of events that says whether a condition is true.

    Whoever asks no more than that need not know of a conjunction whether it is false or unknown, and may stop sooner.

    >>> import tamis
    >>> is_wanted = holding(tamis.parse("price < 20 AND bids > 3"))
    >>> [is_wanted(event) for event in ({"price": 2, "bids": 4}, {"price": 25, "bids": 4}, {"bids": 4})]
    [True, False, False]
    """
    if not isinstance(expression, And) or not is_small(expression):
        truth = compiled(expression, schema)
        return lambda event: truth(event) is True
    operands = [_made(operand, schema) for operand in expression.operands]

    def holds(event: Mapping[str, Any]) -> bool:
        for operand in operands:  # noqa: SIM110 - a generator costs more than what it asks
            if operand(event) is not True:
                return False
        return True

    return holds


def is_small(expression: Expression) -> bool:
    """Is an expression small enough for functions of its own?

    It is looked at level by level, and no further than to the answer.
    """
    level: list[Expression] = [expression]
    node_count = 0
    for _ in range(_DEEPEST):
        node_count += len(level)
        if node_count > _MOST_NODES:
            return False
        level = [child for node in level for child in node.children]
        if not level:
            return True
    return False


def _made(node: Expression, schema: Schema | None) -> Closure:
    return _closure(node, [_made(child, schema) for child in node.children], schema)


def _closure(node: Expression, below: list[Closure], schema: Schema | None) -> Closure:
    match node:
        case Literal(constant):
            return lambda event: constant
        case Attribute((name,)):
            return lambda event: value_of(event.get(name))
        case Attribute(path):
            return lambda event: attribute_value(event, path)
        case Call("case" | "if") if keeps_types(node):  # so it need not look at the branches that it does not take
            return _first_true(below)
        case Call("coalesce") if keeps_types(node):
            return _first_known(below)
        case Call(name) if name in _EXACT:
            return _arithmetic(_EXACT[name], function_of(name).meaning, *below)
        case Test("in_cidr"):
            return _both_texts(remembered_cidr, *below)
        case Call(name) | Test(name):
            return _call(function_of(name).meaning, below)
        case Compare(operator, Attribute((name,)), Literal(constant)) if operator in _ORDERED:
            return _attribute_comparison(_ORDERED[operator], name, below[0], constant)
        case Compare(operator, _, Literal(constant)) if operator in _ORDERED:
            return _comparison_with(_ORDERED[operator], below[0], constant)
        case Compare(operator) if operator in _ORDERED:
            return _comparison(_ORDERED[operator], *below)
        case Between(_, Literal(low), Literal(high)):
            return _conjunction(
                [_comparison_with(python.ge, below[0], low), _comparison_with(python.le, below[0], high)]
            )
        case In(_, members):
            return _membership(node, below[0], members, schema)
        case IsNull():
            inner = below[0]
            return lambda event: inner(event) is None
        case Like(_, pattern, escape):
            return _of_text(_like(pattern, escape), below[0])
        case RLike(_, pattern):
            return _of_text(lambda text: remembered_regex(text, pattern), below[0])
        case Not():
            return _negation(below[0])
        case And():
            return _conjunction(below)
        case Or():
            return _negation(_conjunction([_negation(inner) for inner in below]))
        case _:
            return lambda event: meaning(node, [inner(event) for inner in below], event, schema)


# -- Conditions


def _negation(inner: Closure) -> Closure:
    def truth(event: Mapping[str, Any]) -> bool | None:
        value = inner(event)
        return not value if type(value) is bool else None

    return truth


def _conjunction(below: list[Closure]) -> Closure:
    def truth(event: Mapping[str, Any]) -> bool | None:
        known = True
        for inner in below:
            value = inner(event)
            if value is False:
                return False
            if value is not True:
                known = False
        return known or None

    return truth


def _comparison(ordered: Callable[[Any, Any], bool], left: Closure, right: Closure) -> Closure:
    def truth(event: Mapping[str, Any]) -> bool | None:
        one, two = left(event), right(event)
        kind = type(one)
        # NaN is not equal to itself in Python, but is here.
        if kind is type(two) and (kind is int or kind is str or (kind is float and one == one and two == two)):
            return ordered(one, two)
        order = compare(one, two)
        return None if order is None else ordered(order, 0)

    return truth


def _comparison_with(ordered: Callable[[Any, Any], bool], inner: Closure, constant: Any) -> Closure:
    # A double is compared with the double of a number, an integer with the number itself if that is exact.
    is_exact, is_text = type(constant) in (int, Decimal), type(constant) is str
    is_number = (is_exact or type(constant) is float) and abs(constant) < 10**DIGITS  # NaN is not
    as_double = float(constant) if is_number else 0.0

    def truth(event: Mapping[str, Any]) -> bool | None:
        value = inner(event)
        kind = type(value)
        if kind is float and is_number and value == value:
            return ordered(value, as_double)
        if (kind is int and is_exact) or (kind is str and is_text):
            return ordered(value, constant)
        order = compare(value, constant)
        return None if order is None else ordered(order, 0)

    return truth


def _attribute_comparison(ordered: Callable[[Any, Any], bool], name: str, inner: Closure, constant: Any) -> Closure:
    """Look into the event at once; what is not of the usual type, or not in its usual bounds, goes the long way."""
    general = _comparison_with(ordered, inner, constant)
    if type(constant) is str:

        def text_truth(event: Mapping[str, Any]) -> Any:
            text = event.get(name)
            return ordered(text, constant) if type(text) is str and text.isascii() else general(event)

        return text_truth
    if type(constant) is not int:
        return general

    def truth(event: Mapping[str, Any]) -> Any:
        value = event.get(name)
        if type(value) is int and LEAST_INTEGER <= value <= GREATEST_INTEGER:
            return ordered(value, constant)
        return general(event)

    return truth


def _membership(node: In, inner: Closure, members: tuple[Any, ...], schema: Schema | None) -> Closure:
    kinds = set(map(type, members))
    if len(kinds) != 1 or not kinds <= {int, str}:
        return lambda event: meaning(node, [inner(event)], event, schema)
    kind, known = kinds.pop(), frozenset(members)

    def truth(event: Mapping[str, Any]) -> Any:
        value = inner(event)
        return value in known if type(value) is kind else meaning(node, [value], event, schema)

    return truth


# -- Texts


def _of_text(function: Callable[[str], bool], text: Closure) -> Closure:
    def truth(event: Mapping[str, Any]) -> bool | None:
        given = text(event)
        return function(given) if isinstance(given, str) else None

    return truth


def _both_texts(function: Callable[[str, str], Any], one: Closure, two: Closure) -> Closure:
    def value(event: Mapping[str, Any]) -> Any:
        first, second = one(event), two(event)
        return function(first, second) if isinstance(first, str) and isinstance(second, str) else None

    return value


def _like(pattern: str, escape: str) -> Callable[[str], bool]:
    match like_pieces(pattern, escape):
        case [str(part), last] if last is ANY_TEXT:
            return lambda text: text.startswith(part)
        case [first, str(part)] if first is ANY_TEXT:
            return lambda text: text.endswith(part)
        case [first, str(part), last] if first is ANY_TEXT is last:
            return lambda text: part in text
    return lambda text: remembered_like(text, pattern, escape)


# -- Functions


def _first_true(below: list[Closure]) -> Closure:
    arms = list(zip(below[0:-1:2], below[1::2], strict=True))
    otherwise = below[-1] if len(below) % 2 else lambda event: None

    def chosen(event: Mapping[str, Any]) -> Any:
        for deciding, branch in arms:
            if deciding(event) is True:
                return branch(event)
        return otherwise(event)

    return chosen


def _first_known(below: list[Closure]) -> Closure:
    def chosen(event: Mapping[str, Any]) -> Any:
        for inner in below:
            value = inner(event)
            if value is not None:
                return value
        return None

    return chosen


def _call(function: Callable[..., Any], below: list[Closure]) -> Closure:
    if len(below) == 1:
        one = below[0]
        return lambda event: function(one(event))
    if len(below) == 2:
        first, second = below
        return lambda event: function(first(event), second(event))
    return lambda event: function(*[inner(event) for inner in below])


def _arithmetic(
    exact: Callable[[Any, Any], Any], function: Callable[[Any, Any], Any], left: Closure, right: Closure
) -> Closure:
    def result(event: Mapping[str, Any]) -> Any:
        one, two = left(event), right(event)
        if type(one) is float is type(two):
            return exact(one, two)
        if type(one) is int is type(two):
            number = exact(one, two)
            return number if LEAST_INTEGER <= number <= GREATEST_INTEGER else None
        return function(one, two)

    return result
