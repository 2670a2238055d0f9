"""What do bounds of an argument say of a monotone function, and its values of the argument? Lemmas at known numbers.

A function of the host may say that it never falls where an argument grows. Then `a <= 3` makes `f(a) <= f(3)`, wherever
`f(a)` has a value, and so whoever asks for `f(a) > 10`, where `f(3)` is 8, asks for `a > 3`: the filter `a > 3` covers
it, and `a < 2` excludes it. That is exact as far as the promise goes, at the numbers that the filters compare the
argument with; between them nothing is known of the function. The other direction does not hold: for `a > 3` the
function may have no value at all, so nothing follows for `f(a) > 5`.

NaN as an argument is not promised anything about. As a result it is the greatest number, as in the language.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Between, Call, Compare, Expression, In, Literal, postorder
from tamis.language.functions import HostedName, UserFunction
from tamis.language.ranges.kinds import ABSENT
from tamis.language.ranges.predicates import compared
from tamis.language.ranges.value_sets import difference, intersection, union_of
from tamis.language.values import kind_of
from tamis.relations.formulas import any_of, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tamis.relations.domains import TermAxis
    from tamis.relations.formulas import Formula

MOST_NUMBERS = 16
"""An argument that is compared with more numbers than this is asked about at the first of them."""
MOST_POINTS = 64
"""A function is computed at so many points at most, for one question."""
_ABOVE = {"up": ">", "down": "<"}
_BELOW = {"up": "<", "down": ">"}


def monotone_calls(axes: Iterable[TermAxis]) -> list[TermAxis]:
    """Return the axes whose terms are calls of functions that say how they follow an argument."""
    return [
        axis
        for axis in axes
        if isinstance(axis.term, Call)
        and isinstance(axis.term.function, HostedName)
        and axis.term.function.function.row.monotone
    ]


def monotony(
    calls: Iterable[TermAxis], filters: Iterable[Expression], axis_of: Callable[[Expression], TermAxis]
) -> Iterator[Formula]:
    """Yield what the numbers that filters compare arguments with say of the calls of monotone functions."""
    numbers: dict[Expression, dict[Any, None]] | None = None
    for axis in calls:
        assert isinstance(axis.term, Call)
        assert isinstance(axis.term.function, HostedName)
        if numbers is None:
            numbers = _compared_with(filters)
        yield from _at_points(axis, axis.term, axis.term.function.function, numbers, axis_of)


def _compared_with(filters: Iterable[Expression]) -> dict[Expression, dict[Any, None]]:
    """Return the numbers that terms are compared with."""
    numbers: dict[Expression, dict[Any, None]] = {}

    def note(term: Expression, constants: Iterable[Any]) -> None:
        for each in constants:
            if kind_of(each) == "number" and not (isinstance(each, float) and math.isnan(each)):
                own = numbers.setdefault(term, {})
                if len(own) < MOST_NUMBERS:
                    own[each] = None

    for expression in filters:
        for node in postorder(expression):
            match node:
                case Compare(_, Literal(constant), term) | Compare(_, term, Literal(constant)):
                    note(term, (constant,))
                case Between(term, low, high):
                    note(term, (each.value for each in (low, high) if isinstance(each, Literal)))
                case In(term, members):
                    note(term, members)
    return numbers


def _at_points(
    axis: TermAxis,
    call: Call,
    function: UserFunction,
    numbers: dict[Expression, dict[Any, None]],
    axis_of: Callable[[Expression], TermAxis],
) -> Iterator[Formula]:
    choices: list[list[Any]] = []
    moving: list[tuple[int, str]] = []
    for place, (argument, direction) in enumerate(zip(call.arguments, function.row.monotone, strict=True)):
        if isinstance(argument, Literal):
            choices.append([argument.value])
        elif direction is None or argument not in numbers:
            return  # it may be anything, and the function with it
        else:
            choices.append(list(numbers[argument]))
            moving.append((place, direction))
    if not moving or math.prod(map(len, choices)) > MOST_POINTS:
        return
    absent = intersection(axis.values, ABSENT)
    for point in product(*choices):
        value = function.probe(*point)
        if value is None:
            continue
        for outside, result in ((_ABOVE, "<="), (_BELOW, ">=")):
            # Unless an argument is beyond the point, the result is on its side of the value, if there is one.
            allowed = union_of(absent, intersection(axis.values, compared(result, value, axis.line)))
            beyond = [
                _beyond(axis_of(call.arguments[place]), outside[direction], point[place]) for place, direction in moving
            ]
            yield any_of([*beyond, within(axis, allowed)])


def _beyond(axis: TermAxis, operator: str, number: Any) -> Formula:
    """The argument is beyond a number, or NaN, or not a number at all."""
    opposite = "<=" if operator == ">" else ">="
    near = compared(opposite, number, axis.line)
    if operator == "<":  # NaN is greater than every number, and nothing is said of it
        near = difference(near, compared("=", math.nan, axis.line))
    return within(axis, difference(axis.values, near))
