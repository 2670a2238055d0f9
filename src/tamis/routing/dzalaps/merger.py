"""Which cells concern a peer? One box of cells around all that its subscriptions want: its *merger*.

A subscription at a point that wants what lies within a radius wants a ball; a ranked one's radius is its threshold of
the moment. The merger is the smallest box of cells that holds all balls, or a few boxes. It is imperfect on purpose:
it moves far less often than any ball, and telling others of it takes a few numbers.

Scores are distances in the plane, so a box ends at the border of space (`clip`). The torus of the peers goes round it;
a merger that does so too (`wrap`) asks for cells in which nothing can lie that it wants. It is there because the
published figures come out only with it.

Source: Pripužić 2010, sections 4.3.2 and 6.4.1 (docs/bibliography.md).
Departs: several boxes for one peer, if wanted; those two are united first whose box has the fewest cells.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from tamis.routing.dzalaps.cells import Area, Box, CellGrid, area_of, size, span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.routing.dzalaps.zones import Point

BORDERS = ("clip", "wrap")
_SLACK = 1e-12
"""A distance is rounded; what it says lies within a radius may lie beyond it by so small a share."""


class Reach(NamedTuple):
    """Where a subscription is, and how far it reaches along each axis; infinitely far if it wants all."""

    point: Point
    radii: Point


class _Extent(NamedTuple):
    low: Point
    high: Point


def merger(reaches: Iterable[Reach], grid: CellGrid, border: str = "clip", boxes: int = 1) -> Area:
    """Return the box of cells around all that subscriptions want, or at most so many boxes.

    >>> merger([Reach((0.3, 0.3), (0.1, 0.1)), Reach((0.05, 0.3), (0.1, 0.1))], CellGrid(2, 4))
    ((3, 3),)
    >>> merger([Reach((0.05, 0.3), (0.1, 0.1))], CellGrid(2, 4), "wrap")
    ((9, 3),)
    """
    extents = [extent for reach in reaches if (extent := _extent(reach)) is not None]
    while len(extents) > boxes:
        extents = _with_two_united(extents, grid, border) if boxes > 1 else [_around(extents)]
    return area_of(_box(extent, grid, border) for extent in extents)


def _extent(reach: Reach) -> _Extent | None:
    if not all(radius >= 0 for radius in reach.radii):
        return None
    slack = [_SLACK * (abs(x) + radius) if radius < math.inf else 0.0 for x, radius in zip(*reach, strict=True)]
    return _Extent(
        tuple(x - radius - more for x, radius, more in zip(*reach, slack, strict=True)),
        tuple(x + radius + more for x, radius, more in zip(*reach, slack, strict=True)),
    )


def _around(extents: Sequence[_Extent]) -> _Extent:
    return _Extent(
        tuple(map(min, zip(*(extent.low for extent in extents), strict=True))),
        tuple(map(max, zip(*(extent.high for extent in extents), strict=True))),
    )


def _with_two_united(extents: list[_Extent], grid: CellGrid, border: str) -> list[_Extent]:
    one, other = min(
        combinations(range(len(extents)), 2),
        key=lambda pair: size(_box(_around([extents[place] for place in pair]), grid, border)),
    )
    united = _around([extents[one], extents[other]])
    return [extent for place, extent in enumerate(extents) if place not in (one, other)] + [united]


def _box(extent: _Extent, grid: CellGrid, border: str) -> Box:
    return tuple(_side(low, high, grid, border) for low, high in zip(*extent, strict=True))


def _side(low: float, high: float, grid: CellGrid, border: str) -> int:
    """Return the places of an axis from one coordinate to another."""
    # What lies outside of space lies in the cells at its border, so these count wherever the box goes round it.
    side = span(grid.place(max(low, 0.0)), grid.place(min(high, 1.0)))
    if border == "clip":
        return side
    if high - low >= 1:
        return span(0, grid.resolution - 1)
    for place in range(math.floor(low * grid.resolution), math.floor(high * grid.resolution) + 1):
        side |= 1 << place % grid.resolution
    return side
