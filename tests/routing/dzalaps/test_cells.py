"""Every cell is somebody's, and a merger has all cells of every ball."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.routing.dzalaps.cells import CellGrid, Plots, has_cell, intersection, size
from tamis.routing.dzalaps.merger import Reach, merger
from tamis.routing.dzalaps.zones import Zones
from tamis.routing.errors import ZoneError

coordinates = st.one_of(st.floats(0, 1, exclude_max=True), st.sampled_from([0.0, 0.25, 0.5, math.nextafter(1, 0)]))
anywhere = st.one_of(coordinates, st.floats(-2, 3))
radii = st.one_of(st.floats(0, 1.5), st.sampled_from([0.0, 0.25, math.inf, 1e-17]))


@given(
    resolution=st.integers(1, 7),
    points=st.lists(st.tuples(coordinates, coordinates), max_size=12),
    leaving=st.lists(st.integers(0, 50), max_size=4),
)
@settings(max_examples=40, deadline=None)
def test_every_cell_belongs_to_the_one_peer_whose_zone_has_its_centre(resolution, points, leaving):
    zones = Zones.joined([("P0", ()), *((f"P{n}", point) for n, point in enumerate(points, start=1))], 2)
    for place in leaving:
        if len(zones) > 1:
            zones = zones.leave(list(zones)[place % len(zones)])
    grid = CellGrid(2, resolution)
    plots = Plots(zones, grid)
    for cell in itertools.product(range(resolution), repeat=2):
        owners = [name for name in zones if has_cell(plots.of(name), cell)]
        assert owners == [plots.owner(cell)] == [zones.owner(grid.centre(cell))]


def test_a_peer_may_own_no_cell():
    zones = Zones.joined([("a", ()), ("b", (0.0,)), ("c", (0.0,)), ("d", (0.0,))], 1)
    plots = Plots(zones, CellGrid(1, 2))
    assert [plots.of(name) for name in zones].count(()) == 2


@given(
    dimensions=st.integers(1, 3),
    resolution=st.integers(1, 13),
    border=st.sampled_from(["clip", "wrap"]),
    boxes=st.integers(1, 3),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_a_merger_has_the_cells_of_all_that_lies_within_a_radius(dimensions, resolution, border, boxes, data):
    grid = CellGrid(dimensions, resolution)
    points = st.tuples(*[anywhere] * dimensions)
    reaches = [
        Reach(point, (radius,) * dimensions)
        for point, radius in data.draw(st.lists(st.tuples(points, radii), max_size=5))
    ]
    area = merger(reaches, grid, border, boxes)
    assert len(area) <= boxes
    events = data.draw(st.lists(points, max_size=8)) + [
        tuple(x + (radii[0] if axis == at else 0.0) * sign for at, x in enumerate(point))
        for point, radii in reaches
        for axis in range(dimensions)
        for sign in (1, -1)
        if radii[0] < math.inf
    ]
    for event, reach in itertools.product(events, reaches):
        if math.dist(event, reach.point) <= reach.radii[0]:
            assert has_cell(area, grid.cell(event))


def test_nothing_wanted_is_an_empty_merger_and_an_infinite_radius_is_everything():
    grid = CellGrid(2, 4)
    assert merger([], grid) == ()
    assert merger([Reach((0.5, 0.5), (-1.0, -1.0))], grid) == merger([Reach((0.5, 0.5), (math.nan, 1.0))], grid) == ()
    for border in ("clip", "wrap"):
        assert merger([Reach((0.5, 0.5), (math.inf, math.inf))], grid, border) == (grid.whole,)


def test_a_box_that_goes_round_the_border_has_more_cells_and_never_fewer():
    chance, grid = Random(1), CellGrid(2, 9)
    for _ in range(200):
        reaches = [Reach((chance.random(), chance.random()), (chance.random() / 2,) * 2) for _ in range(3)]
        (clipped,), (round_,) = merger(reaches, grid), merger(reaches, grid, "wrap")
        assert intersection((clipped,), (round_,)) == (clipped,)


def test_several_boxes_have_no_more_cells_than_one():
    corner, other = Reach((0.1, 0.1), (0.05, 0.05)), Reach((0.9, 0.9), (0.05, 0.05))
    one, two = merger([corner, other], CellGrid(2, 10)), merger([corner, other], CellGrid(2, 10), boxes=2)
    assert (sum(map(size, one)), sum(map(size, two))) == (100, 8)


def test_a_grid_that_is_too_fine_or_none_is_refused():
    for resolution in (0, 2000, 2.5, True):
        with pytest.raises(ZoneError, match="cells an axis"):
            CellGrid(2, resolution)
