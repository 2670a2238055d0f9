"""In which piece of space does an event lie, and whose is it? A regular grid over the torus.

The grid cuts each axis into as many pieces as its *resolution* says. A cell belongs to the peer in whose zone its
centre lies, so a peer's cells are a box of cells for each of its zones; it may have none. A *box of cells* is a whole
number for each axis, whose bit `c` says that the cells at place `c` belong to it. So a box may go round the border, the
intersection of two is an AND for each axis, and nobody ever lists the cells.

Source: Pripužić 2010, section 6.4 (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from tamis.routing.errors import ZoneError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.routing.dzalaps.zones import Point, Zone, Zones

Cell: TypeAlias = tuple[int, ...]
Box: TypeAlias = tuple[int, ...]
"""For each axis the set of places, as bits."""
Area: TypeAlias = tuple[Box, ...]
"""Boxes of cells, none of them empty, in order."""
FINEST = 1024


@dataclass(frozen=True)
class CellGrid:
    """A regular grid.

    >>> grid = CellGrid(2, 4)
    >>> grid.cell((0.6, 1.0)), grid.centre((2, 3))
    ((2, 3), (0.625, 0.875))
    """

    dimensions: int
    resolution: int

    def __post_init__(self) -> None:
        if isinstance(self.resolution, bool) or not isinstance(self.resolution, int):
            raise ZoneError(f"a grid of {self.resolution!r} cells an axis", "a whole number")
        if not 1 <= self.resolution <= FINEST:
            raise ZoneError(f"a grid of {self.resolution} cells an axis", f"1 to {FINEST}")

    def place(self, x: float) -> int:
        """Return at which place of an axis a coordinate lies; those outside lie in the cells at the border."""
        return min(max(int(x * self.resolution), 0), self.resolution - 1)

    def cell(self, point: Point) -> Cell:
        """Return the cell in which a point lies."""
        return tuple(map(self.place, point))

    def centre(self, cell: Cell) -> Point:
        """Return the middle of a cell: what belongs to the cell is sent there."""
        return tuple((place + 0.5) / self.resolution for place in cell)

    @cached_property
    def whole(self) -> Box:
        """All cells."""
        return ((1 << self.resolution) - 1,) * self.dimensions

    def box(self, zone: Zone) -> Box:
        """Return the cells whose centres lie in a zone."""
        sides = []
        for low, high in zip(zone.low, zone.high, strict=True):
            places = [c for c in range(self.resolution) if low <= (c + 0.5) / self.resolution < high]
            sides.append(span(places[0], places[-1]) if places else 0)
        return tuple(sides)

    def area(self, zones: Iterable[Zone]) -> Area:
        """Return the cells of several zones."""
        return area_of(self.box(zone) for zone in zones)


class Plots:
    """Which cells are whose, by a map and a grid."""

    def __init__(self, zones: Zones, grid: CellGrid) -> None:
        self.zones = zones
        self.grid = grid
        self._areas = {name: grid.area(zones.of(name)) for name in zones}
        self._owners: dict[Cell, str] = {}

    def of(self, name: str) -> Area:
        """Return the cells of a peer, none if it is not on the map."""
        return self._areas.get(name, ())

    def owner(self, cell: Cell) -> str:
        """Return whose a cell is."""
        if cell not in self._owners:
            self._owners[cell] = self.zones.owner(self.grid.centre(cell))
        return self._owners[cell]


def span(first: int, last: int) -> int:
    """Return the places from one to another, both included, as bits."""
    return ((1 << (last - first + 1)) - 1) << first


def area_of(boxes: Iterable[Box]) -> Area:
    """Return boxes as an area: those with cells, each once."""
    return tuple(sorted({box for box in boxes if all(box)}))


def intersection(one: Area, other: Area) -> Area:
    """Return the cells that two areas share.

    >>> intersection(((0b0011, 0b1111),), ((0b0110, 0b0100), (0b1000, 0b1111)))
    ((2, 4),)
    """
    return area_of(tuple(a & b for a, b in zip(box, each, strict=True)) for box in one for each in other)


def has_cell(area: Area, cell: Cell) -> bool:
    """Does a cell belong to an area?"""
    return any(all(side >> place & 1 for side, place in zip(box, cell, strict=True)) for box in area)


def size(box: Box) -> int:
    """Return how many cells a box has."""
    count = 1
    for side in box:
        count *= side.bit_count()
    return count
