"""If one term has a value in an interval, where do the values of others lie? Interval bounds between terms.

A distance of at most 10 km from one place is at most 15 km from a place that is 5 km away, and the latitude is at most
0.09 degrees from the first place's. A point in a box has a weighted sum between two bounds, and so has a point in a
ball. Each term is an axis of its own to whoever compares filters; this module says what one axis means for another.

An interval that is returned is never too small for what the evaluator computes: terms are evaluated in doubles or in 38
digits, with rounding, so bounds have margins that are far larger than what rounding can do, and where rounding can do
anything (sums of numbers without bounds, which cancel each other) nothing is said.

Source: regions and containment, Pripužić 2010, section 4.3 (docs/bibliography.md); constraints that bring their own
  covering, Mühl et al. 2002, section 3.4.
Departs: exact geometry would be wrong by an ulp; margins are ours.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tamis.language.expressions import Attribute, Call, Expression, Literal, fold_shared, postorder
from tamis.language.functions import function_of
from tamis.language.ranges.lines import DOUBLE, NUMBER, first_value, last_value
from tamis.language.ranges.predicates import compared
from tamis.language.ranges.value_sets import NONE, Values, intersection, stretches, union_of
from tamis.language.values import EARTH_RADIUS_KM
from tamis.relations.families import ONE, terms_of
from tamis.relations.geometry import spread_of
from tamis.relations.regions import HALFWAY_KM, Ball, Cap, region_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Interval: TypeAlias = tuple[float, float]
"""The least and the greatest value, both included."""

_SHARE = 1e-11
_LEAST = 1e-30
"""Bounds are wider by this share of all that was added up, and at least by this: the last digit of 38 is 1e-38."""
_LARGEST = 1e15
"""Sums beyond it may overflow an integer, and so be NULL."""
_WEIGHTS = 1e-100, 1e100
"""Weights between these neither overflow nor vanish when they are multiplied by what is within `_LARGEST`."""
_WIDEST = 1_000
"""Of vectors with more coordinates nothing is said: their sums round more often."""
_NEAR_KM, _FAR_KM = 1e-6, 1e-3
"""How exact a distance is: worse towards the other side of the earth, where an arc sine is steep."""
_ANGLE = 1e-9


class WeightedSum(NamedTuple):
    """A weighted sum of attributes, each once, and a constant."""

    weights: Mapping[Expression, Fraction]
    constant: Fraction
    gross: Mapping[Expression, float]
    """How much of an attribute is added or subtracted on the way, which is what rounds."""


_Shape: TypeAlias = "Ball | Cap | WeightedSum"


# -- What is known of a term


@lru_cache(1 << 14)
def shape_of(term: Expression) -> _Shape | None:
    """Return the ball or cap that a distance has its centre in, of radius 0, or a weighted sum; None for other terms.

    >>> from tamis import parse
    >>> shape_of(parse("distance(45, 16, lat, lon) < 1").left).latitude
    45.0
    """
    match term:
        case Call("distance", (Literal() as lat, Literal() as lon, latitude, longitude)):
            term = Call("distance", (latitude, longitude, lat, lon))
    match region_of(term, 0.0) if isinstance(term, Call) else None:
        case Ball(inputs, centre, weights) as ball if len(centre) == len(weights) <= _WIDEST:
            is_safe = all(weight == 0 or _WEIGHTS[0] <= weight <= _WEIGHTS[1] for weight in weights)
            # A vector of one coordinate that is an attribute would look like the coordinate itself.
            is_clear = len(centre) > 1 or inputs != term.children[:1]
            return ball if is_safe and is_clear and all(abs(each) <= _LARGEST for each in centre) else None
        case Cap(_, north, east) as cap if abs(north) <= 90 and abs(east) <= 360:
            return cap
    return _sum_of(term) if isinstance(term, Call) else None


def _sum_of(term: Expression) -> WeightedSum | None:
    terms = terms_of(term)
    if terms is None or len(terms) > _WIDEST or not all(math.isfinite(weight) for _, weight in terms):
        return None
    weights: dict[Expression, Fraction] = {}
    gross: dict[Expression, float] = {}
    for attribute, weight in terms:
        if abs(float(weight)) > _WEIGHTS[1]:
            return None
        weights[attribute] = weights.get(attribute, Fraction(0)) + Fraction(weight)
        gross[attribute] = gross.get(attribute, 0.0) + abs(float(weight))
    constant = weights.pop(ONE, Fraction(0))
    return WeightedSum(weights, constant, gross) if weights else None


# -- From one term to another


def confined(one: Expression, two: Expression, between: Interval) -> Interval | None:
    """Return where the second term's value lies, which it then has, if the first one's lies in an interval.

    None if that is not known. Of user functions their hook `confines` says it.

    >>> from tamis import parse
    >>> one, two = (parse(f"distance(lat, lon, {place}) < 1").left for place in ("45, 16", "46, 16"))
    >>> [round(bound) for bound in confined(one, two, (0.0, 10.0))]
    [101, 121]
    """
    low, high = between
    if math.isnan(low) or math.isnan(high) or low > high:
        return None
    mine, theirs = shape_of(one), shape_of(two)
    match mine, theirs:
        case Ball(), Ball():
            if mine.inputs != theirs.inputs or len(mine.centre) != len(theirs.centre) or not high <= _LARGEST:
                return None
            apart, reach = spread_of(mine, theirs, high)
            return _margined(max(0.0, apart - reach), apart + reach, apart + reach) if reach <= _LARGEST else None
        case Cap(), Cap():
            if mine.inputs != theirs.inputs or not high < HALFWAY_KM:
                return None
            apart, reach = spread_of(mine, theirs, high)
            error = _error_km(apart + reach)
            return max(0.0, apart - reach - error), apart + reach + error
        case Ball(), WeightedSum():
            return _sum_in_ball(mine, theirs, high)
        case None, None:
            return _by_hook(one, two, between)
    return None


def _margined(low: float, high: float, size: float) -> Interval:
    margin = _SHARE * size + _LEAST
    return low - margin, high + margin


def _error_km(distance: float) -> float:
    return _NEAR_KM if distance < HALFWAY_KM - 100 else _FAR_KM


def _sum_in_ball(ball: Ball, total: WeightedSum, radius: float) -> Interval | None:
    """Bound a weighted sum in a ball: its value at the centre, and how steep it is."""
    if not 0 <= radius <= _LARGEST or len(ball.inputs) != len(ball.centre) or len(set(ball.inputs)) < len(ball.inputs):
        return None
    scales = dict(zip(ball.inputs, zip(ball.centre, ball.weights, strict=True), strict=True))
    middle, steepness, size = total.constant, 0.0, abs(float(total.constant)) + total.gross.get(ONE, 0.0)
    for attribute, weight in total.weights.items():
        centre, scale = scales.get(attribute, (0.0, 0.0))
        if scale == 0:
            return None
        middle += weight * Fraction(centre)
        steepness += float(weight) ** 2 / scale
        size += total.gross[attribute] * (abs(centre) + radius / math.sqrt(scale))
    if size > _LARGEST:
        return None
    reach = radius * math.sqrt(steepness)
    return _margined(float(middle) - reach, float(middle) + reach, size)


def _by_hook(one: Expression, two: Expression, between: Interval) -> Interval | None:
    """Ask the function of two calls that differ in their literals what the value of one says of the other's."""
    if not (isinstance(one, Call) and isinstance(two, Call) and one.function == two.function):
        return None
    confines = function_of(one.function).confines
    if confines is None or skeleton_of(one) != skeleton_of(two):
        return None
    return confines(literals_in(one), literals_in(two), between)


def skeleton_of(term: Expression) -> Expression:
    """Return a term with every literal replaced by the same one: terms that have it in common differ in literals."""

    def bare(node: Expression, below: list[Expression]) -> Expression:
        return ONE if isinstance(node, Literal) else node.with_children(tuple(below)) if below else node

    return fold_shared(term, bare)


def literals_in(term: Expression) -> tuple[object, ...]:
    """Return the values of all literals of a term, from left to right."""
    return tuple(node.value for node in postorder(term) if isinstance(node, Literal))


# -- From attributes to terms, and back


def confined_in_box(term: Expression, box: Mapping[Expression, Interval]) -> Interval | None:
    """Return where a term's value lies, which it then has, if its attributes are numbers in intervals.

    >>> from tamis import parse
    >>> x, y = parse("x < y").children
    >>> low, high = confined_in_box(parse("2 * x - y > 0").left, {x: (0.0, 1.0), y: (3.0, 4.0)})
    >>> round(low, 6), round(high, 6)
    (-4.0, -1.0)
    """
    shape = shape_of(term)
    if shape is None:
        return None
    inputs = shape.weights if isinstance(shape, WeightedSum) else shape.inputs
    if not all(each in box and max(map(abs, box[each])) <= _LARGEST for each in inputs):
        return None
    match shape:
        case WeightedSum():
            return _sum_in_box(shape, box)
        case Ball():
            return _ball_in_box(shape, box) if len(shape.inputs) == len(shape.centre) else None
        case Cap():
            return _cap_in_box(shape, box)


def _sum_in_box(total: WeightedSum, box: Mapping[Expression, Interval]) -> Interval | None:
    low = high = float(total.constant)
    size = abs(low) + total.gross.get(ONE, 0.0)
    for attribute, weight in total.weights.items():
        ends = [float(weight) * end for end in box[attribute]]
        low, high = low + min(ends), high + max(ends)
        size += total.gross[attribute] * max(map(abs, box[attribute]))
    return _margined(low, high, size) if size <= _LARGEST else None


def _ball_in_box(ball: Ball, box: Mapping[Expression, Interval]) -> Interval:
    near = far = size = 0.0
    for attribute, centre, weight in zip(ball.inputs, ball.centre, ball.weights, strict=True):
        low, high = box[attribute]
        near += weight * max(0.0, low - centre, centre - high) ** 2
        far += weight * max(abs(low - centre), abs(high - centre)) ** 2
        size += math.sqrt(weight) * (abs(centre) + max(abs(low), abs(high)))
    return _margined(max(0.0, math.sqrt(near)), math.sqrt(far), size)


def _cap_in_box(cap: Cap, box: Mapping[Expression, Interval]) -> Interval | None:
    (south, north), (west, east) = (box[each] for each in cap.inputs)
    if not (south >= -90 and north <= 90 and west >= -360 and east <= 360):
        return None  # what is not on the earth has no distance
    near = max(0.0, south - cap.latitude, cap.latitude - north)
    latitudes = max(abs(south - cap.latitude), abs(north - cap.latitude))
    longitudes = max(abs(west - cap.longitude), abs(east - cap.longitude))
    widest = 1.0 if south <= 0 <= north else math.cos(math.radians(min(abs(south), abs(north))))
    half_chord = math.sin(math.radians(latitudes) / 2) ** 2 + widest * math.cos(math.radians(cap.latitude)) * (
        1.0 if longitudes >= 180 else math.sin(math.radians(longitudes) / 2) ** 2
    )
    far = 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, half_chord)))
    error = _error_km(far)
    return max(0.0, math.radians(near) * EARTH_RADIUS_KM - error), far + error


def parallel_sum(
    one: Expression, two: Expression, between: Interval, box: Mapping[Expression, Interval]
) -> Interval | None:
    """Return where a multiple of a weighted sum lies if the sum lies in an interval, and its attributes in others.

    Without bounds for the attributes nothing is known: of numbers that cancel each other, what rounding leaves is any.

    >>> from tamis import parse
    >>> one, two = parse("2 * x + 3 * y < 5").left, parse("4 * x + 6 * y < 9").left
    >>> box = dict.fromkeys(parse("x < y").children, (0.0, 9.0))
    >>> round(parallel_sum(one, two, (0.0, 5.0), box)[1], 6)
    10.0
    """
    mine, theirs = shape_of(one), shape_of(two)
    if not (isinstance(mine, WeightedSum) and isinstance(theirs, WeightedSum)):
        return None
    if mine.weights.keys() != theirs.weights.keys():
        return None
    if not all(each in box and max(map(abs, box[each])) <= _LARGEST for each in mine.weights):
        return None
    first = next(iter(mine.weights))
    if mine.weights[first] == 0:
        return None
    ratio = theirs.weights[first] / mine.weights[first]
    if any(theirs.weights[each] != ratio * weight for each, weight in mine.weights.items()):
        return None
    offset = float(theirs.constant - ratio * mine.constant)
    size = abs(offset)
    for total, scale in ((mine, abs(float(ratio))), (theirs, 1.0)):
        size += scale * (abs(float(total.constant)) + total.gross.get(ONE, 0.0))
        size += scale * sum(total.gross[each] * max(map(abs, box[each])) for each in total.weights)
    ends = sorted(float(ratio) * end + offset if ratio else offset for end in between)
    if size > _LARGEST or any(math.isnan(end) for end in ends):
        return None
    return _margined(ends[0], ends[1], size)


def coordinates(term: Expression, most: float) -> dict[Attribute, list[Interval]]:
    """Return the intervals in which attributes lie where a term's value is at most so great.

    >>> from tamis import parse
    >>> for attribute, intervals in coordinates(parse("euclidean(array(x), array(3)) < 1").left, 2.0).items():
    ...     print(attribute, [(round(low, 6), round(high, 6)) for low, high in intervals])
    x [(1.0, 5.0)]
    """
    shape = shape_of(term)
    confines: dict[Attribute, list[Interval]] = {}
    if isinstance(shape, Ball) and 0 <= most <= _LARGEST and len(shape.inputs) == len(shape.centre):
        for attribute, centre, weight in zip(shape.inputs, shape.centre, shape.weights, strict=True):
            if isinstance(attribute, Attribute) and weight > 0:
                reach = most / math.sqrt(weight)
                confines[attribute] = [_margined(centre - reach, centre + reach, abs(centre) + reach)]
    elif isinstance(shape, Cap) and 0 <= most < HALFWAY_KM:
        angle = (most + _error_km(most)) / EARTH_RADIUS_KM + _ANGLE
        height = math.degrees(angle)
        south, north = shape.latitude - height, shape.latitude + height
        latitude, longitude = shape.inputs
        if isinstance(latitude, Attribute):
            confines[latitude] = [(max(south, -90.0), min(north, 90.0))]
        share = math.sin(angle) / math.cos(math.radians(shape.latitude)) if south > -90 and north < 90 else 1.0
        if isinstance(longitude, Attribute) and share < 1 - _ANGLE:
            width = math.degrees(math.asin(share)) + _ANGLE
            middles = [shape.longitude + 360.0 * turn for turn in range(-2, 3)]
            confines[longitude] = [
                (max(middle - width, -360.0), min(middle + width, 360.0))
                for middle in middles
                if middle - width <= 360 and middle + width >= -360
            ]
    return confines


# -- Intervals and sets of values


def interval_of(values: Values, line: str) -> Interval | None:
    """Return the interval that some values lie in, if all are numbers; infinite where there is no bound, or NaN.

    >>> from tamis.language.ranges.predicates import compared
    >>> interval_of(compared("<", 5, "double"), "double")
    (-inf, 5.0)
    """
    lows, highs = [], []
    for low, high in stretches(values):
        if low[0] not in (DOUBLE, NUMBER):
            return None
        lows.append(_outwards(first_value(low, high, line), -math.inf) if len(low) > 1 else -math.inf)
        highs.append(_outwards(last_value(low, high, line), math.inf) if len(high) > 1 else math.inf)
    return (min(lows), max(highs)) if lows else None


def _outwards(number: object, towards: float) -> float:
    """Return a double that is not on the inner side of a number."""
    nearest = float(number)  # type: ignore[arg-type]
    return math.nextafter(nearest, towards) if math.isfinite(nearest) else nearest


def values_between(intervals: list[Interval], line: str) -> Values:
    """Return the numbers of a line that lie in one of some intervals.

    >>> interval_of(values_between([(1.0, 2.0)], "any"), "any")
    (0.9999999999999999, 2.0000000000000004)
    """
    sets = [NONE]
    for low, high in intervals:
        from_low = compared(">=", low, line)
        sets.append(intersection(from_low, compared("<=", high, line)) if high < math.inf else from_low)
    return union_of(*sets)
