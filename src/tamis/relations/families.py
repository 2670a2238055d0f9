"""Which scores can be computed for many subscriptions at once?

Subscriptions differ in numbers rather than in form: thousands ask for the nearest to a thousand places, or weigh the
same attributes differently. A *family* is such a form, and a subscription's place in it is a row of *numbers*:

    euclidean    euclidean(array(x, y), array(3, 4))                  the centre and the weights
    geographic   distance(lat, lon, 45.8, 15.97)                      the place
    linear       0.3 * price + 2 * bids - 7                           the weights
    box          greatest(abs(x - 3), 2 * abs(y - 4))                 the centre and the weights
    city         abs(x - 3) + 2 * abs(y - 4)                          the centre and the weights
    cosine       cosine(array(x, y), array(3, 4))                     the axis
    shared       everything else                                      the sign

Of a shared score there is one value for all who ask for it, so it is computed once for an event by the reference
meaning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from tamis.language.expressions import Attribute, Call, Expression, Literal
from tamis.language.values import is_number
from tamis.language.vectors import vector

Number: TypeAlias = int | float | Decimal
ONE = Literal(1)
"""The input of a term without an attribute."""


@dataclass(frozen=True, slots=True)
class Family:
    """A form of scores: what they read from an event, and whether the nearest or the farthest is best."""

    kind: str
    inputs: tuple[Expression, ...]
    width: int
    """How many coordinates an event has here."""
    sign: int
    """1 where the lowest score is best, -1 where the highest is; a linear score has it in its weights."""


def recognised(score: Expression, is_ascending: bool = True) -> tuple[Family, tuple[Number, ...]]:
    """Return the family of a score, and the numbers that are its own.

    >>> from tamis import parse
    >>> recognised(parse("2 * price - bids < 0").left)[1]
    (2, -1)
    """
    sign = 1 if is_ascending else -1
    match score:
        case Call("euclidean", (point, *literals)):
            numbers = [_literal_vector(each) for each in literals]
            if all(numbers) and len({len(each or ()) for each in numbers}) == 1:
                centre = numbers[0] or ()
                weights = numbers[1] if len(numbers) > 1 else (1.0,) * len(centre)
                is_written = isinstance(point, Call) and point.function == "array"
                inputs = point.children if is_written else (point,)
                return Family("euclidean", inputs, len(centre), sign), (*centre, *(weights or ()))
        case Call("distance", (latitude, longitude, Literal(lat), Literal(lon))) if is_number(lat) and is_number(lon):
            return Family("geographic", (latitude, longitude), 2, sign), (_number(lat), _number(lon))
        case Call("cosine", (point, literal)) if axis := _literal_vector(literal):
            is_written = isinstance(point, Call) and point.function == "array" and len(point.children) == len(axis)
            inputs = point.children if is_written and isinstance(point, Call) else (point,)
            return Family("cosine", inputs, len(axis), sign), axis
        case Call("greatest", parts) if sides := _gaps(parts):
            return _around("box", sides, sign)
        case _:
            if sides := _gaps(_summands(score)):
                return _around("city", sides, sign)
            terms = terms_of(score)
            if terms is not None and any(weight not in (1, -1) for _, weight in terms):
                inputs = tuple(term for term, _ in terms)
                return Family("linear", inputs, len(inputs), 1), tuple(_signed(weight, sign) for _, weight in terms)
    return Family("shared", (score,), 1, 1), (sign,)


def weighted_gap(part: Expression) -> tuple[Expression, Number, Number] | None:
    """Read `abs(x - c)` or `w * abs(x - c)`: the attribute, the centre and a positive weight.

    >>> from tamis import parse
    >>> weighted_gap(parse("2 * abs(x - 3) < 1").left)[1:]
    (3, 2)
    """
    match part:
        case Call("multiply", (Literal(weight), inner)) | Call("multiply", (inner, Literal(weight))):
            side = weighted_gap(inner)
            # Of two weights the product would be rounded differently.
            if side is None or side[2] != 1 or not is_number(weight):
                return None
            return (side[0], side[1], _number(weight)) if 0 < _number(weight) < math.inf else None
        case Call("abs", (Call("subtract", (Attribute() as attribute, Literal(centre))),)) if is_number(centre):
            return (attribute, _number(centre), 1) if -math.inf < _number(centre) < math.inf else None
    return None


def _gaps(parts: tuple[Expression, ...]) -> list[tuple[Expression, Number, Number]] | None:
    """Read weighted gaps of different attributes; None where it is not all such gaps."""
    sides = [side for part in parts if (side := weighted_gap(part)) is not None]
    return sides if len(sides) == len(parts) == len({side[0] for side in sides}) else None


def _summands(score: Expression) -> tuple[Expression, ...]:
    """Return what is added up from the left: only that order rounds as is computed here."""
    reversed_summands: list[Expression] = []
    while isinstance(score, Call) and score.function == "add" and len(score.arguments) == 2:
        score, right = score.arguments
        reversed_summands.append(right)
    return (score, *reversed(reversed_summands))


def _around(kind: str, sides: list[tuple[Expression, Number, Number]], sign: int) -> tuple[Family, tuple[Number, ...]]:
    inputs = tuple(attribute for attribute, _, _ in sides)
    numbers = (*(centre for _, centre, _ in sides), *(weight for _, _, weight in sides))
    return Family(kind, inputs, len(sides), sign), numbers


def _literal_vector(node: Expression) -> tuple[Number, ...] | None:
    if not isinstance(node, Call) or node.function != "array":
        return None
    coordinates = [each.value for each in node.arguments if isinstance(each, Literal)]
    if len(coordinates) < len(node.arguments) or vector(coordinates) is None:
        return None
    return tuple(_number(each) for each in coordinates)


def terms_of(score: Expression) -> list[tuple[Expression, Number]] | None:
    """Return the terms of a sum, from the left, each an attribute (or 1) with its weight; None where it is no such sum.

    Only what is computed in this order counts: `a + (b + c)` may round differently.
    """
    reversed_terms: list[tuple[Expression, Number]] = []
    node = score
    while True:
        match node:
            case Call("add" | "subtract" as name, (left, right)):
                term = _term(right)
                if term is None:
                    return None
                reversed_terms.append((term[0], _signed(term[1], 1 if name == "add" else -1)))
                node = left
            case _:
                term = _term(node)
                return None if term is None else [term, *reversed(reversed_terms)]


def _term(node: Expression) -> tuple[Expression, Number] | None:
    match node:
        case Attribute():
            return node, 1
        case Literal(constant) if is_number(constant):
            return ONE, _number(constant)
        case Call("multiply", (Literal(weight), Attribute() as attribute)) if is_number(weight):
            return attribute, _number(weight)
        case Call("multiply", (Attribute() as attribute, Literal(weight))) if is_number(weight):
            return attribute, _number(weight)
        case Call("negate", (Attribute() as attribute,)):
            return attribute, -1
    return None


def _number(value: object) -> Number:
    assert isinstance(value, int | float | Decimal)
    return value


def _signed(number: Number, sign: int) -> Number:
    # A decimal's unary minus would round it to Python's 28 digits.
    return number if sign > 0 else number.copy_negate() if isinstance(number, Decimal) else -number
