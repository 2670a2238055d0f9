"""How far apart are two vectors, and how alike? Distances and cosines.

A vector is an array of numbers: an attribute of the event, or `array(x, y)` of several. Both functions compute in
doubles, coordinate by coordinate from the left, so that a compiled loop can give the very same bits. What is not a
vector, or of another length, gives NULL, as everywhere in the language.
"""

from __future__ import annotations

import math
from typing import Any

from tamis.errors import ArityError, LiteralError
from tamis.language.expressions import Call, Expression
from tamis.language.values import is_number


def euclidean(point: Any, centre: Any, weights: Any = None) -> float | None:
    """Return the Euclidean distance of two vectors, each squared difference times its weight.

    >>> euclidean([0, 3], [4, 0]), euclidean([0, 3], [4, 0], [0.25, 0]), euclidean([0], [4, 0])
    (5.0, 2.0, None)
    """
    here, there = vector(point), vector(centre)
    scale = [1.0] * len(here or ()) if weights is None else vector(weights)
    if here is None or there is None or scale is None or not len(here) == len(there) == len(scale):
        return None
    if not all(weight >= 0 for weight in scale):
        return None
    total = 0.0
    for one, two, weight in zip(here, there, scale, strict=True):
        total += weight * ((one - two) * (one - two))
    return math.sqrt(total)


def cosine(one: Any, two: Any) -> float | None:
    """Return the cosine of the angle between two vectors: 1 is the same direction, -1 the opposite.

    >>> cosine([1, 0], [2, 0]), cosine([1, 0], [0, 3]), cosine([1, 0], [0, 0])
    (1.0, 0.0, None)
    """
    here, there = vector(one), vector(two)
    if here is None or there is None or len(here) != len(there):
        return None
    product = here_squared = there_squared = 0.0
    for mine, theirs in zip(here, there, strict=True):
        product += mine * theirs
        here_squared += mine * mine
        there_squared += theirs * theirs
    length = math.sqrt(here_squared) * math.sqrt(there_squared)
    return None if length == 0 else product / length


def vector(value: Any) -> list[float] | None:
    """Return the coordinates of a vector as doubles; None where it is none, or has none."""
    if not isinstance(value, list) or not value or not all(map(is_number, value)):
        return None
    return [float(coordinate) for coordinate in value]


def check_vectors(arguments: tuple[Expression, ...], most: int) -> None:
    """Refuse too many arguments, and vectors of which one sees that they have different lengths."""
    if len(arguments) > most:
        raise ArityError(f"it takes no more than {most} vectors, not {len(arguments)}")
    lengths = {len(each.arguments) for each in arguments if isinstance(each, Call) and each.function == "array"}
    if len(lengths) > 1:
        raise LiteralError(
            f"the vectors have different lengths: {', '.join(map(str, sorted(lengths)))}",
            hint="Write as many numbers in each: euclidean(array(x, y), array(0.5, 0.5)).",
        )
