"""Does one region lie within another, and which region holds several?

Where we cannot tell, the answer errs to the safe side: a region covers another only if it surely does, and a region
around others is a little larger than it need be.

Source: Pripužić 2010, section 4.3, figures 4.3 to 4.5 (docs/bibliography.md).
Departs: the thesis has pictures; the tests of containment and the regions around several are ours.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tamis.language.values import distance_km
from tamis.relations.regions import (
    HALFWAY_KM,
    Ball,
    Box,
    Cap,
    Cone,
    Everywhere,
    HalfSpace,
    Nowhere,
    Region,
    SublevelSet,
    Vector,
    unit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROUNDING_SHARE = 1e-12
"""Regions around others are larger by this share, so that rounding leaves nothing outside."""


# -- Does one lie within another?


def covers(one: Region, two: Region) -> bool:
    """Does the first region surely hold everything that the second holds?"""
    if one == two:
        return True
    match one, two:
        case (Everywhere(), _) | (_, Nowhere()):
            return True
        case SublevelSet(), SublevelSet():
            return (one.score, one.order) == (two.score, two.order) and one.key >= two.key
        case Ball(), Ball() if one.inputs == two.inputs:
            is_exact = (one.centre, one.weights) == (two.centre, two.weights)
            return _fits(sum(spread_of(two, one, two.radius)), one.radius, is_exact)
        case Cap(), Cap() if one.inputs == two.inputs:
            is_exact = (one.latitude, one.longitude) == (two.latitude, two.longitude)
            return _fits(sum(spread_of(two, one, two.radius)), one.radius, is_exact)
        case HalfSpace(), HalfSpace() if one.inputs == two.inputs:
            ratio = _parallel(one.weights, two.weights)
            return ratio is not None and _fits(ratio * two.bound, one.bound, ratio == 1)
        case Box(), Box() if one.inputs == two.inputs:
            return all(
                _fits(abs(mine - theirs) + small, large, mine == theirs)
                for mine, theirs, large, small in zip(one.centre, two.centre, one.reach, two.reach, strict=True)
            )
        case Cone(), Cone() if one.inputs == two.inputs:
            return _fits(_angle(one.axis, two.axis) + two.angle, one.angle, one.axis == two.axis)
    return False


def spread_of(one: Ball | Cap, two: Ball | Cap, radius: float) -> tuple[float, float]:
    """Return how far the centre of one is from that of another, and how much that differs for what is around it.

    By the measure of the other: the greatest distance is the sum of both, the least the difference.
    """
    match one, two:
        case Ball(), Ball():
            return _distance(one.centre, two.centre, two.weights), radius * _stretch(two, one)
        case Cap(), Cap():
            return _apart_km(one, two), radius
    raise TypeError(f"a {type(one).__name__} and a {type(two).__name__} have no measure in common")


def _fits(needed: float, there_is: float, is_exact: bool) -> bool:
    """Is there as much as needed, even if what is needed was rounded down?"""
    return needed <= there_is if is_exact else needed + _ROUNDING_SHARE / 10 * (abs(needed) + abs(there_is)) <= there_is


def _stretch(one: Ball, two: Ball) -> float:
    """By how much a step of the second ball can be longer by the weights of the first."""
    ratios = [
        0.0 if mine == 0 else math.inf if theirs == 0 else mine / theirs
        for mine, theirs in zip(one.weights, two.weights, strict=True)
    ]
    return math.sqrt(max(ratios))


def _distance(one: Vector, two: Vector, weights: Vector) -> float:
    return math.sqrt(sum(weight * (a - b) ** 2 for a, b, weight in zip(one, two, weights, strict=True)))


def _apart_km(one: Cap, two: Cap) -> float:
    return distance_km(one.latitude, one.longitude, two.latitude, two.longitude) or 0.0


def _parallel(one: Vector, two: Vector) -> float | None:
    """Return the positive factor by which the second vector is the first, None where there is none."""
    pairs = [(a, b) for a, b in zip(one, two, strict=True) if a or b]
    if not pairs or not pairs[0][0] * pairs[0][1] > 0:
        return None
    (a, b), *_ = pairs
    # Cross products are exact tests where the weights are; a nearly parallel plane is not parallel.
    return a / b if all(x * b == y * a for x, y in pairs) else None


def _angle(one: Vector, two: Vector) -> float:
    # By half the chord, because a cosine is blind to small angles.
    chord = math.sqrt(sum((a - b) ** 2 for a, b in zip(one, two, strict=True)))
    return 2 * math.asin(min(1.0, chord / 2))


# -- What holds several?


def merged(regions: Sequence[Region]) -> tuple[Region, bool]:
    """Return a region that covers all of these, and whether it surely has nothing that none of them has.

    >>> ball = Ball((), (0.0, 0.0), (1.0, 1.0), 2.0)
    >>> merged([ball, Ball((), (1.0, 0.0), (1.0, 1.0), 0.5)]) == (ball, True)
    True
    """
    whole: Region = Nowhere()
    is_perfect = True
    for region in _in_a_row(regions):
        whole, is_exact = _joined(whole, region)
        is_perfect = is_perfect and is_exact
    return whole, is_perfect


def _in_a_row(regions: Sequence[Region]) -> Sequence[Region]:
    """Order cones of two dimensions round the circle, from behind the widest gap, so that neighbours are joined."""
    cones = [each for each in regions if isinstance(each, Cone) and len(each.axis) == 2]
    if len(cones) < 3 or len(cones) < len(regions):
        return regions
    turns = sorted((math.atan2(cone.axis[1], cone.axis[0]), place) for place, cone in enumerate(cones))
    gaps = []
    for at, (turn, place) in enumerate(turns):
        before_turn, before = turns[at - 1]
        gap = (turn - before_turn) % (2 * math.pi) - cones[place].angle - cones[before].angle
        gaps.append((gap, at))
    start = max(gaps)[1]
    return [cones[place] for _, place in turns[start:] + turns[:start]]


def _joined(one: Region, two: Region) -> tuple[Region, bool]:
    if covers(one, two):
        return one, True
    if covers(two, one):
        return two, True
    match one, two:
        case HalfSpace(), HalfSpace() if one.inputs == two.inputs and _parallel(one.weights, two.weights) is not None:
            ratio = _parallel(one.weights, two.weights)
            assert ratio is not None
            bound = ratio * two.bound
            return HalfSpace(one.inputs, one.weights, max(one.bound, bound + _ROUNDING_SHARE * abs(bound))), True
        case Ball(), Ball() if (one.inputs, one.weights) == (two.inputs, two.weights):
            apart = _distance(one.centre, two.centre, one.weights)
            radius = (apart + one.radius + two.radius) / 2
            share = (radius - one.radius) / apart
            centre = tuple(a + share * (b - a) for a, b in zip(one.centre, two.centre, strict=True))
            reach = max(
                _distance(centre, one.centre, one.weights) + one.radius,
                _distance(centre, two.centre, one.weights) + two.radius,
            )
            return Ball(one.inputs, centre, one.weights, reach * (1 + _ROUNDING_SHARE)), False
        case Box(), Box() if one.inputs == two.inputs:
            return _joined_boxes(one, two)
        case Cone(), Cone() if one.inputs == two.inputs:
            return _joined_cones(one, two)
        case Cap(), Cap() if one.inputs == two.inputs:
            # The cap around the larger one's centre: not the smallest, but there is no pole to trip over.
            large, small = (one, two) if one.radius >= two.radius else (two, one)
            radius = (_apart_km(large, small) + small.radius) * (1 + _ROUNDING_SHARE)
            if radius >= HALFWAY_KM:
                return Everywhere(), False
            return Cap(one.inputs, large.latitude, large.longitude, max(radius, large.radius)), False
    return Everywhere(), False


def _joined_boxes(one: Box, two: Box) -> tuple[Region, bool]:
    centre, reach = [], []
    differing = 0
    is_gapless = True
    for mine, my_reach, theirs, their_reach in zip(one.centre, one.reach, two.centre, two.reach, strict=True):
        low = min(mine - my_reach, theirs - their_reach)
        high = max(mine + my_reach, theirs + their_reach)
        if (mine, my_reach) == (theirs, their_reach):
            centre.append(mine)
            reach.append(my_reach)
            continue
        differing += 1
        is_gapless = is_gapless and abs(mine - theirs) <= my_reach + their_reach
        middle = (low + high) / 2
        centre.append(middle)
        reach.append(max(high - middle, middle - low) * (1 + _ROUNDING_SHARE))
    # Two boxes that differ in one dimension only, and meet there, are a box together.
    return Box(one.inputs, tuple(centre), tuple(reach)), differing == 1 and is_gapless


def _joined_cones(one: Cone, two: Cone) -> tuple[Region, bool]:
    apart = _angle(one.axis, two.axis)
    angle = (apart + one.angle + two.angle) / 2
    if angle >= math.pi or apart > math.pi - 1e-6:
        return Everywhere(), False
    share = (angle - one.angle) / apart
    weights = math.sin((1 - share) * apart) / math.sin(apart), math.sin(share * apart) / math.sin(apart)
    axis = unit([weights[0] * a + weights[1] * b for a, b in zip(one.axis, two.axis, strict=True)])
    reach = (
        max(_angle(axis, one.axis) + one.angle, _angle(axis, two.axis) + two.angle) * (1 + _ROUNDING_SHARE)
        + _ROUNDING_SHARE
    )
    if reach >= math.pi:
        return Everywhere(), False
    # In the plane cones are arcs, and two arcs that meet are one; in space there is more between them.
    is_perfect = len(axis) == 2 and apart <= one.angle + two.angle
    return Cone(one.inputs, axis, reach), is_perfect
