"""Where in the space of attributes is a score no greater than a bound? Regions.

A score and a threshold cut a region out of the space of the events: a distance cuts out a ball, a weighted sum a
half-space, the greatest of weighted differences a box, a cosine a cone. Whether one region lies within another, and
which region holds several, is geometry (`geometry`).

Source: Pripužić 2010, sections 4.1 and 4.3, figures 4.1 to 4.5 (docs/bibliography.md).
Departs: `SublevelSet` stands for every score that has no geometry here, and compares thresholds of the same score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tamis.language.expressions import Call, Expression, Literal
from tamis.language.values import EARTH_RADIUS_KM
from tamis.language.vectors import vector
from tamis.relations.families import ONE, recognised, weighted_gap

if TYPE_CHECKING:
    from collections.abc import Sequence

HALFWAY_KM = math.pi * EARTH_RADIUS_KM

Vector: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The whole space."""


@dataclass(frozen=True, slots=True)
class Nowhere:
    """No event at all."""


@dataclass(frozen=True, slots=True)
class SublevelSet:
    """The events whose key is no greater, by a score without a geometry."""

    score: Expression
    order: str
    key: float


@dataclass(frozen=True, slots=True)
class Ball:
    """The events near a centre, each dimension with its weight."""

    inputs: tuple[Expression, ...]
    centre: Vector
    weights: Vector
    radius: float


@dataclass(frozen=True, slots=True)
class Cap:
    """The places near a place on the earth, in kilometres."""

    inputs: tuple[Expression, ...]
    latitude: float
    longitude: float
    radius: float


@dataclass(frozen=True, slots=True)
class HalfSpace:
    """The events whose weighted sum is no greater than a bound."""

    inputs: tuple[Expression, ...]
    weights: Vector
    bound: float


@dataclass(frozen=True, slots=True)
class Box:
    """The events within some distance of a centre in each dimension."""

    inputs: tuple[Expression, ...]
    centre: Vector
    reach: Vector


@dataclass(frozen=True, slots=True)
class Cone:
    """The events in directions near an axis, by the angle in radians."""

    inputs: tuple[Expression, ...]
    axis: Vector
    angle: float


Region: TypeAlias = Everywhere | Nowhere | SublevelSet | Ball | Cap | HalfSpace | Box | Cone


def region_of(score: Expression, threshold: float, *, is_ascending: bool = True) -> Region:
    """Return the region in which a score is at most as great as a threshold, or at least if it is not ascending.

    >>> from tamis import parse
    >>> region_of(parse("euclidean(array(x, y), array(3, 4)) < 1").left, 0.5).radius
    0.5
    """
    sign = 1 if is_ascending else -1
    key = sign * threshold
    if key == math.inf:
        return Everywhere()
    if math.isnan(key) or key == -math.inf:
        return Nowhere()
    family, numbers = recognised(score, is_ascending)
    doubles = tuple(float(number) for number in numbers)
    if is_ascending and family.kind in ("euclidean", "geographic") and threshold < 0:
        return Nowhere()
    if is_ascending and family.kind == "euclidean":
        return Ball(family.inputs, doubles[: family.width], doubles[family.width :], threshold)
    if is_ascending and family.kind == "geographic":
        latitude, longitude = doubles
        return Everywhere() if threshold >= HALFWAY_KM else Cap(family.inputs, latitude, longitude, threshold)
    if family.kind == "linear":
        constant = sum(weight for term, weight in zip(family.inputs, doubles, strict=True) if term is ONE)
        terms = [(term, weight) for term, weight in zip(family.inputs, doubles, strict=True) if term is not ONE]
        inputs, weights = zip(*terms, strict=True) if terms else ((), ())
        return HalfSpace(inputs, weights, key - constant)
    return _box_or_cone(score, threshold, is_ascending) or SublevelSet(score, "ASC" if is_ascending else "DESC", key)


def _box_or_cone(score: Expression, threshold: float, is_ascending: bool) -> Region | None:
    match score:
        case Call("greatest", parts) if is_ascending:
            sides = [weighted_gap(part) for part in parts]
            known = [side for side in sides if side is not None]
            inputs = tuple(side[0] for side in known)
            if len(known) == len(sides) == len(set(inputs)):
                reach = tuple(threshold / float(weight) for _, _, weight in known)
                return Nowhere() if threshold < 0 else Box(inputs, tuple(float(side[1]) for side in known), reach)
        case Call("cosine", (point, Call("array", elements))) if not is_ascending:
            axis = vector([each.value for each in elements if isinstance(each, Literal)])
            if axis is not None and len(axis) == len(elements) and any(axis):
                inputs = point.children if isinstance(point, Call) and point.function == "array" else (point,)
                return Everywhere() if threshold <= -1 else Cone(inputs, unit(axis), math.acos(min(1.0, threshold)))
    return None


def unit(axis: Sequence[float]) -> Vector:
    """Return the direction of a vector: the same, of length 1."""
    length = math.sqrt(sum(each * each for each in axis))
    return tuple(each / length for each in axis)
