"""Which peer is responsible for a point of space? Zones of a torus, as CAN divides it.

The space is the unit torus of some dimensions. Each peer holds a *zone*, a box that it got by halving another one, axis
after axis. Whoever joins names a point, and gets that half of the zone with the point in it. Who leaves gives its zone
to the owner of the other half, if that half is still whole, or to its smallest neighbour, which then holds two.

A message finds its way to a point by its own: each peer hands it to that neighbour whose zone is nearest to the point.
What falls from hop to hop is the distance to the point, and where that is 0 already, because the point lies on a
border, the number of axes in which it is outside. So there are no circles, and nobody has to remember anything.

Source: Pripužić 2010, section 6.4.1, and Ratnasamy et al. 2001, which it cites (docs/bibliography.md).
Departs: a map is a value that a whole system shares, where CAN's peers know their neighbours' zones alone; the way
of a message uses nothing else of it. A peer with two zones gives one of them away to the next that joins there. No
side of a zone is shorter than `SHORTEST`, so that distances can be told apart as doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from tamis.routing.errors import ZoneError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Point: TypeAlias = tuple[float, ...]
SHORTEST = 2.0**-20
"""Squares of such lengths still count beside the square of the torus's diameter."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A box of the unit torus, without its upper sides: one of 2**depth that it was halved into on the way.

    >>> Zone.whole(2).halves[1]
    Zone(low=(0.5, 0.0), high=(1.0, 1.0), depth=1)
    """

    low: Point
    high: Point
    depth: int = 0

    @staticmethod
    def whole(dimensions: int) -> Zone:
        """Return the whole torus."""
        return Zone((0.0,) * dimensions, (1.0,) * dimensions)

    @property
    def axis(self) -> int:
        """Along which it is halved next."""
        return self.depth % len(self.low)

    @property
    def volume(self) -> float:
        """Its share of the torus."""
        return 0.5**self.depth

    def __contains__(self, point: Point) -> bool:
        return not self.misses(point)

    def misses(self, point: Point) -> int:
        """Return in how many axes a point is outside."""
        return sum(not low <= x < high for x, low, high in zip(point, self.low, self.high, strict=True))

    def gap(self, point: Point) -> float:
        """Return the square of the distance, on the torus, between a point and the zone with all its sides."""
        return sum(
            0.0 if low <= x < high else min(abs(x - low), abs(x - high), 1 - abs(x - low), 1 - abs(x - high)) ** 2
            for x, low, high in zip(point, self.low, self.high, strict=True)
        )

    @property
    def halves(self) -> tuple[Zone, Zone]:
        """The two zones that it is halved into."""
        middle = (self.low[self.axis] + self.high[self.axis]) / 2
        before, after = list(self.high), list(self.low)
        before[self.axis] = after[self.axis] = middle
        return Zone(self.low, tuple(before), self.depth + 1), Zone(tuple(after), self.high, self.depth + 1)

    @property
    def parent(self) -> Zone | None:
        """The zone of which it is a half; None for the whole torus."""
        if not self.depth:
            return None
        axis = (self.depth - 1) % len(self.low)
        side = self.high[axis] - self.low[axis]
        low, high = list(self.low), list(self.high)
        if (low[axis] / side) % 2:
            low[axis] -= side
        else:
            high[axis] += side
        return Zone(tuple(low), tuple(high), self.depth - 1)

    @property
    def sibling(self) -> Zone | None:
        """The other half of its parent."""
        if (parent := self.parent) is None:
            return None
        return next(half for half in parent.halves if half != self)

    def touches(self, other: Zone) -> bool:
        """Do they share a side? Then they overlap in all axes but one, in which one begins where the other ends."""
        adjacent = 0
        for low, high, other_low, other_high in zip(self.low, self.high, other.low, other.high, strict=True):
            if low < other_high and other_low < high:
                continue
            meets = high == other_low or other_high == low or (high == 1 and other_low == 0)
            if not meets and not (other_high == 1 and low == 0):
                return False
            adjacent += 1
        return adjacent == 1


class Zones:
    """Who holds which zones: a map of the torus, which never changes. Joining and leaving make another one.

    >>> zones = Zones.of_one("P0", 2).join("P1", (0.75, 0.25)).join("P2", (0.25, 0.75)).join("P3", (0.75, 0.75))
    >>> zones.neighbours("P0"), zones.way("P0", (0.6, 0.6))
    (('P1', 'P2'), ['P0', 'P1', 'P3'])
    """

    def __init__(self, held: Mapping[str, tuple[Zone, ...]]) -> None:
        self._held = MappingProxyType(dict(held))
        self._neighbours: dict[str, tuple[str, ...]] = {}

    @staticmethod
    def of_one(name: str, dimensions: int) -> Zones:
        """Return the map of a torus that is one peer's."""
        if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
            raise ZoneError(f"a torus of {dimensions!r} dimensions", "a whole number of them, at least 1")
        return Zones({name: (Zone.whole(dimensions),)})

    @staticmethod
    def joined(points: Iterable[tuple[str, Point]], dimensions: int) -> Zones:
        """Return the map after these peers have joined, each at its point."""
        first, *others = points
        zones = Zones.of_one(first[0], dimensions)
        for name, point in others:
            zones = zones.join(name, point)
        return zones

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __contains__(self, name: str) -> bool:
        return name in self._held

    @property
    def dimensions(self) -> int:
        """How many axes the torus has."""
        return len(next(iter(self._held.values()))[0].low)

    def of(self, name: str) -> tuple[Zone, ...]:
        """Return the zones of a peer."""
        if name not in self._held:
            raise ZoneError(f"{name!r} holds no zone", f"one of {', '.join(self._held)}"[:200])
        return self._held[name]

    def owner(self, point: Point) -> str:
        """Return the peer that holds a point."""
        self._check(point)
        return next(name for name, zones in self._held.items() if any(point in zone for zone in zones))

    def _check(self, point: Point) -> None:
        if len(point) != self.dimensions or not all(0 <= x < 1 for x in point):
            raise ZoneError(f"the point {point!r:.80}", f"{self.dimensions} numbers from 0 up to 1, 1 not included")

    # -- Joining and leaving

    def join(self, name: str, point: Point) -> Zones:
        """Return the map in which a new peer has the half of a zone in which a point lies.

        The zone's owner gives the whole of it away if it holds another one.
        """
        if name in self._held:
            raise ZoneError(f"{name!r} joins and holds a zone already", "another name")
        owner = self.owner(point)
        zone = next(each for each in self._held[owner] if point in each)
        rest = tuple(each for each in self._held[owner] if each != zone)
        if rest:
            return Zones({**self._held, owner: rest, name: (zone,)})
        if zone.high[zone.axis] - zone.low[zone.axis] < 2 * SHORTEST:
            raise ZoneError(f"the zone at {point!r:.80} has been halved {zone.depth} times", "a point somewhere else")
        given, kept = sorted(zone.halves, key=lambda half: point not in half)
        return Zones({**self._held, owner: (kept,), name: (given,)})

    def leave(self, name: str) -> Zones:
        """Return the map without a peer, whose zones others have."""
        if len(self.of(name)) and len(self) == 1:
            raise ZoneError(f"the last peer {name!r} leaves", "another peer, to hold its zone")
        held = dict(self._held)
        for zone in held.pop(name):
            heir = self._heir(zone, held)
            held[heir] = _merged((*held[heir], zone))
        return Zones(held)

    @staticmethod
    def _heir(zone: Zone, held: Mapping[str, tuple[Zone, ...]]) -> str:
        """Return who gets a zone: the owner of its sibling, or the smallest neighbour."""
        sibling = zone.sibling
        for name, zones in held.items():
            if sibling in zones:
                return name
        touching = [name for name, zones in held.items() if any(zone.touches(each) for each in zones)]
        # All neighbours may have left with it, among its own zones; then the nearest by name will do.
        return min(touching or held, key=lambda name: (sum(each.volume for each in held[name]), name))

    # -- Ways

    def neighbours(self, name: str) -> tuple[str, ...]:
        """Return who holds a zone that shares a side with one of a peer's."""
        if name not in self._neighbours:
            own = self.of(name)
            self._neighbours[name] = tuple(
                other
                for other, zones in self._held.items()
                if other != name and any(zone.touches(each) for zone in own for each in zones)
            )
        return self._neighbours[name]

    def distance(self, name: str, point: Point) -> tuple[float, int]:
        """Return what falls from hop to hop: how far a peer is from a point, and in how many axes that is outside."""
        return min((zone.gap(point), zone.misses(point)) for zone in self.of(name))

    def next_hop(self, name: str, point: Point) -> str | None:
        """Return the neighbour that is nearest to a point; None if the peer holds the point itself."""
        self._check(point)
        if any(point in zone for zone in self.of(name)):
            return None
        return min(self.neighbours(name), key=lambda other: (*self.distance(other, point), other))

    def way(self, name: str, point: Point) -> list[str]:
        """Return all peers on the way to a point, both ends included."""
        way = [name]
        while (following := self.next_hop(way[-1], point)) is not None:
            way.append(following)
        return way


def _merged(zones: tuple[Zone, ...]) -> tuple[Zone, ...]:
    """Return the zones with two halves of one zone as that zone, again and again."""
    held = set(zones)
    while (half := next((zone for zone in held if zone.sibling in held), None)) is not None:
        assert half.sibling is not None
        assert half.parent is not None
        held -= {half, half.sibling}
        held.add(half.parent)
    return tuple(sorted(held, key=lambda zone: zone.low))
