"""How far apart, and how alike, are the vectors of two columns?

Coordinate by coordinate from the left, as `language.vectors` does it for two vectors, but for all rows at once: each
step is one operation of IEEE arithmetic, so the bits are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.language.values import is_number
from tamis.matching.columnwise.series import NULL, NUMBERS, Series, both


def euclidean(point: Series, centre: Series, weights: Series | None = None) -> Series | None:
    """Return the Euclidean distance of vectors, each squared difference times its weight."""
    if weights is not None and weights.known() is not None:
        return None  # what NULL weighs is for the reference meaning to say
    coordinates = _coordinates([point, centre] if weights is None else [point, centre, weights])
    if not isinstance(coordinates, tuple):
        return coordinates
    (here, there, *weighed), valid = coordinates
    total: Any = 0.0
    for place in range(here.shape[1]):
        difference = here[:, place] - there[:, place]
        weight = weighed[0][:, place] if weighed else 1.0
        total = total + weight * (difference * difference)
    if weighed:
        valid = both(valid, (weighed[0] >= 0).all(axis=1))
    return Series("double", np.sqrt(total), valid)


def cosine(one: Series, two: Series) -> Series | None:
    """Return the cosine of the angle between vectors; NULL for one that has no direction."""
    coordinates = _coordinates([one, two])
    if not isinstance(coordinates, tuple):
        return coordinates
    (here, there), valid = coordinates
    product: Any = 0.0
    here_squared: Any = 0.0
    there_squared: Any = 0.0
    for place in range(here.shape[1]):
        mine, theirs = here[:, place], there[:, place]
        product = product + mine * theirs
        here_squared = here_squared + mine * mine
        there_squared = there_squared + theirs * theirs
    length = np.sqrt(here_squared) * np.sqrt(there_squared)
    return Series("double", product / length, both(valid, length != 0))


def _coordinates(vectors: list[Series]) -> tuple[list[Any], Any] | Series | None:
    """Return vectors of one length as tables of doubles, a row for each, and which rows are such vectors.

    NULL where none is; None where only the rows can tell: some are not arrays, or they have no common length.
    """
    if any(vector.kind not in ("array", "object") for vector in vectors):
        return NULL
    if any(vector.kind == "object" for vector in vectors):
        return None
    counts = [np.diff(vector.values, prepend=0) for vector in vectors]
    length = next((each[0] for each in counts if len(each) == 1), counts[0][0])
    if not any(len(each) == 1 for each in counts) and any((each != length).any() for each in counts):
        return None
    tables, valid = [], np.array([length > 0])
    for vector, count in zip(vectors, counts, strict=True):
        doubles, are_numbers = _doubles(vector.elements)
        if not len(doubles):
            return NULL  # a vector has a coordinate at least
        fits = count == length
        places = np.where(fits, vector.values - count, 0)[:, np.newaxis] + np.arange(length)
        places = np.minimum(places, len(doubles) - 1)  # of those that do not fit
        tables.append(doubles[places])
        valid = valid & fits & (True if vector.valid is None else vector.valid)
        if are_numbers is not None:
            valid = valid & are_numbers[places].all(axis=1)
    return tables, valid


def _doubles(elements: Series) -> tuple[Any, Any]:
    """Return elements as doubles, and which are numbers; None: all. No doubles where none is."""
    if elements.kind in NUMBERS:
        return elements.doubles(), elements.valid
    if elements.kind != "object":
        return np.zeros(0), None
    numbers = np.fromiter(map(is_number, elements.values), np.bool_, len(elements.values))
    doubles = [float(value) if known else 0.0 for value, known in zip(elements.values, numbers, strict=True)]
    return np.array(doubles, np.float64), numbers
