"""How far are the events of a batch from a place, or from thousands of them?

The distance itself is computed with the sines of Python's `math`, one by one, and everything else in columns: so it is
the reference meaning's to the last bit, whatever sines numpy has.

Most distances are only compared with limits: `distance(lat, lon, 45.8, 15.97) < 10`. For them the sines of each event
and of each centre will do, and none of each pair. Two points of the unit sphere have a chord between them, and its
square is three products. A limit on the distance is a limit on the chord. A square that lies beyond the reach of
rounding errors from the limit tells which side the event is on; the few that lie closer are measured.

How far do rounding errors reach? Half the chord is the sine q of half the angle. The coordinates of both points are
right to some 1e-15, and so is q; the reference meaning has q right to some 1e-15 too, takes the arc sine and
multiplies, each with an error of some 1e-16 of the result. The sine of half a limit over the radius moves no faster
than the limit, so that all these errors together move q by 1e-14 at most. `_REACH` is a hundred times that, and 13
micrometres.

Source: filtered predicates, as in computational geometry: Shewchuk 1997 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import Call, Expression, Literal
from tamis.language.values import EARTH_RADIUS_KM, distance_km, is_number
from tamis.matching.columnwise import kernels
from tamis.matching.columnwise.numbers import common_kind
from tamis.matching.columnwise.series import NULL, NUMBERS, Flags, Series, both
from tamis.ragged import starts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_REACH = 1e-12
_MOST_LATITUDE, _MOST_LONGITUDE = 90, 360
_RADIAN = math.pi / 180
_FAR = 9.0
"""A coordinate so far out that nobody who has it is close to a limit."""

Doubles = npt.NDArray[np.float64]
Position = tuple[Expression, Expression]


def distance(latitude: Series, longitude: Series, to_latitude: Series, to_longitude: Series) -> Series | None:
    """Return the great-circle distance in kilometres, to the last bit that of `distance_km`."""
    arguments = (latitude, longitude, to_latitude, to_longitude)
    kind = common_kind(*arguments)
    if kind in ("null", "object"):
        return NULL if kind == "null" else None
    valid: Flags | None = None
    degrees = []
    for argument, most in zip(arguments, (_MOST_LATITUDE, _MOST_LONGITUDE) * 2, strict=True):
        values = argument.doubles()
        is_place = np.abs(values) <= most
        valid = both(valid, both(argument.valid, is_place))
        degrees.append(np.where(is_place, values, 0.0))
    lat, lon, lat0, lon0 = degrees
    phi, phi0 = lat * _RADIAN, lat0 * _RADIAN
    half_chords = _squared_sines((phi0 - phi) / 2) + _each(math.cos, phi) * _each(math.cos, phi0) * _squared_sines(
        (lon0 - lon) * _RADIAN / 2
    )
    return Series("double", 2 * EARTH_RADIUS_KM * _each(math.asin, np.sqrt(np.minimum(1.0, half_chords))), valid)


def _each(function: Callable[[float], float], angles: Doubles) -> Doubles:
    return np.fromiter(map(function, angles.tolist()), np.float64, len(angles))


def _squared_sines(angles: Doubles) -> Doubles:
    # The power of the C library, which need not be the product.
    return np.fromiter((sine**2 for sine in map(math.sin, angles.tolist())), np.float64, len(angles))


def centre_of(term: Expression) -> tuple[Position, tuple[float, float]] | None:
    """Return of which attributes a term is the distance from a constant place, and that place; None for other terms.

    >>> from tamis.language.parser import parse
    >>> (latitude, longitude), place = centre_of(parse("distance(lat, lon, 45.8, 16) < 10").left)
    >>> str(latitude), str(longitude), place
    ('lat', 'lon', (45.8, 16.0))
    """
    match term:
        case Call("distance", (latitude, longitude, Literal(to_latitude), Literal(to_longitude))):
            position = latitude, longitude
        case Call("distance", (Literal(to_latitude), Literal(to_longitude), latitude, longitude)):
            position = latitude, longitude
        case _:
            return None
    if not is_number(to_latitude) or not is_number(to_longitude):
        return None
    place = float(to_latitude), float(to_longitude)  # type: ignore[arg-type]
    return (position, place) if _is_place(*place) else None


def _is_place(latitude: float, longitude: float) -> bool:
    return abs(latitude) <= _MOST_LATITUDE and abs(longitude) <= _MOST_LONGITUDE


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the events of a batch are."""

    latitudes: Doubles
    longitudes: Doubles
    nowhere: npt.NDArray[np.int64] | None
    """Those that have no place; None where all have one."""
    points: Doubles

    @classmethod
    def of(cls, latitude: Series, longitude: Series, count: int) -> Whereabouts:
        """Find the places; what has no number, or one that is not a coordinate, is nowhere."""
        latitudes, longitudes = _degrees(latitude, count), _degrees(longitude, count)
        is_nowhere = ~((np.abs(latitudes) <= _MOST_LATITUDE) & (np.abs(longitudes) <= _MOST_LONGITUDE))
        if not is_nowhere.any():
            return cls(latitudes, longitudes, None, _points(latitudes, longitudes))
        points = _points(np.where(is_nowhere, 0.0, latitudes), np.where(is_nowhere, 0.0, longitudes))
        points[:, is_nowhere] = _FAR
        return cls(latitudes, longitudes, np.flatnonzero(is_nowhere), points)


def _degrees(coordinate: Series, count: int) -> Doubles:
    """Return numbers as doubles, and everything else as NaN."""
    if coordinate.kind == "object":
        degrees = [float(value) if is_number(value) else math.nan for value in coordinate.values]
        return np.broadcast_to(np.array(degrees, np.float64), count)
    if coordinate.kind not in NUMBERS:
        return np.full(count, math.nan)
    doubles = coordinate.doubles()
    return np.broadcast_to(
        doubles if coordinate.valid is None else np.where(coordinate.valid, doubles, math.nan), count
    )


class Centre(NamedTuple):
    """A place, and the distances from it that matter, in order."""

    latitude: float
    longitude: float
    limits: Sequence[float]


class Centres:
    """Centres, and who is within which of their limits.

    Codes are those of an axis: 0 for nowhere, 1 within the first limit, 2 at it, 3 within the second, and so on. Who is
    so close to a limit that rounding decides is measured, and `code` is asked about a centre and the distance from it.

    >>> centres = Centres([Centre(45.8, 16.0, [10.0, 300.0]), Centre(0.0, 0.0, [10.0])])
    >>> centres.event_codes(48.2, 16.4, lambda centre, distance: 2).tolist()
    [3, 3]
    >>> from tamis.matching.columnwise.series import from_values
    >>> events = Whereabouts.of(from_values([45.8, 48.2, None]), from_values([16.0, 16.4, 0.0]), 3)
    >>> codes = np.zeros((2, 3), np.uint32)
    >>> centres.write_codes(events, np.array([0, 1]), codes, lambda centre, distance: 2)
    >>> codes.tolist()
    [[1, 3, 0], [3, 3, 0]]
    """

    def __init__(self, centres: Sequence[Centre]) -> None:
        self._centres = centres
        places = np.array([centre[:2] for centre in centres], np.float64)
        lows, highs = _reach_of(np.array([limit for centre in centres for limit in centre.limits]))
        starts = starts_of([len(centre.limits) for centre in centres])
        self._table = kernels.CentreTable(_points(places[:, 0], places[:, 1]), starts, lows, highs)

    def write_codes(
        self,
        events: Whereabouts,
        rows: npt.NDArray[np.int64],
        codes: npt.NDArray[Any],
        code: Callable[[int, float], int],
    ) -> None:
        """Write the codes of all events for all centres, those of each centre into its row."""
        near = np.empty(len(rows), np.uint32)
        kernels.codes_of_events(events.points, self._table, rows, codes, near)
        for centre in np.flatnonzero(near).tolist():
            latitude, longitude, _ = self._centres[centre]
            for event in self._close(events.points, centre):
                here = events.latitudes[event].item(), events.longitudes[event].item()
                codes[rows[centre], event] = code(centre, measured(*here, latitude, longitude))
        if events.nowhere is not None:
            codes[np.ix_(rows, events.nowhere)] = 0

    def _close(self, points: Doubles, centre: int) -> npt.NDArray[np.int64]:
        """Return the events that are close to a limit, and perhaps a few more: numpy may add in another order."""
        table = self._table
        squares = np.square(points - table.points[:, centre : centre + 1]).sum(axis=0)
        is_close = np.zeros(len(squares), np.bool_)
        for limit in range(table.starts[centre], table.starts[centre + 1]):
            is_close |= (squares >= table.lows[limit] - 1e-14) & (squares <= table.highs[limit] + 1e-14)
        return np.flatnonzero(is_close)

    def event_codes(self, latitude: Any, longitude: Any, code: Callable[[int, float], int]) -> npt.NDArray[np.uint32]:
        """Return the code of one event for every centre."""
        codes = np.zeros(len(self._centres), np.uint32)
        if not is_number(latitude) or not is_number(longitude):
            return codes
        lat, lon = float(latitude), float(longitude)
        if not _is_place(lat, lon):
            return codes
        phi, lam = lat * _RADIAN, lon * _RADIAN
        point = math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi)
        near = np.empty(len(codes), np.int64)
        count = kernels.codes_of_centres(point, self._table, codes, near)
        for centre in near[:count].tolist():
            codes[centre] = code(centre, measured(lat, lon, *self._centres[centre][:2]))
        return codes


def measured(latitude: float, longitude: float, to_latitude: float, to_longitude: float) -> float:
    """Return the distance of two places that are known to be places."""
    distance = distance_km(latitude, longitude, to_latitude, to_longitude)
    assert distance is not None
    return distance


def _points(latitudes: Doubles, longitudes: Doubles) -> Doubles:
    """Return places as points of the unit sphere."""
    phi, lam = latitudes * _RADIAN, longitudes * _RADIAN
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])


def _reach_of(limits: Doubles) -> tuple[Doubles, Doubles]:
    """Return the squares of chords between which nobody can say whether a distance is below a limit or above."""
    halves = limits / (2 * EARTH_RADIUS_KM)
    sines = np.sin(np.clip(halves, 0.0, math.pi / 2))
    lows = np.where(sines > _REACH, (2 * (sines - _REACH)) ** 2, -1.0)
    highs = (2 * (sines + _REACH)) ** 2
    is_passed = halves < 0
    is_never_passed = ~(halves < math.pi / 2 + 1e-9)  # NaN, the greatest of numbers, among them
    lows[is_passed] = highs[is_passed] = -1.0
    lows[is_never_passed] = highs[is_never_passed] = np.inf
    return lows, highs
