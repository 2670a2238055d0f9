"""Zones divide the torus, and every point is reached by going nearer to it."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.routing.dzalaps.zones import SHORTEST, Zone, Zones
from tamis.routing.errors import ZoneError

coordinates = st.one_of(
    st.floats(0, 1, exclude_max=True), st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, math.nextafter(1, 0), 5e-324])
)


def lives(dimensions: int):
    """Who comes, at which point, and who leaves after that: by place among those who are there, or nobody."""
    points = st.tuples(*[coordinates] * dimensions)
    return st.lists(st.tuples(points, st.one_of(st.none(), st.integers(0, 50))), max_size=25)


def played(dimensions, steps):
    """Yield the map after each step."""
    zones = Zones.of_one("P0", dimensions)
    yield zones
    for number, (point, leaving) in enumerate(steps, start=1):
        zones = zones.join(f"P{number}", point)
        yield zones
        if leaving is not None:
            zones = zones.leave(list(zones)[leaving % len(zones)])
            yield zones


def corners(zones: Zones):
    """The lower corners of all zones, which lie on borders, and their middles."""
    for name in zones:
        for zone in zones.of(name):
            yield zone.low
            yield tuple((low + high) / 2 for low, high in zip(zone.low, zone.high, strict=True))


@given(dimensions=st.integers(1, 4), data=st.data())
@settings(max_examples=40, deadline=None)
def test_zones_partition_the_torus_after_any_joins_and_leaves(dimensions, data):
    for zones in played(dimensions, data.draw(lives(dimensions))):
        assert sum(zone.volume for name in zones for zone in zones.of(name)) == 1
        probes = [*corners(zones), data.draw(st.tuples(*[coordinates] * dimensions))]
        for point in probes:
            assert [point in zone for name in zones for zone in zones.of(name)].count(True) == 1


@given(dimensions=st.integers(1, 4), data=st.data())
@settings(max_examples=40, deadline=None)
def test_greedy_routing_arrives_and_the_distance_falls_at_each_hop(dimensions, data):
    *_, zones = played(dimensions, data.draw(lives(dimensions)))
    for point in [*corners(zones), data.draw(st.tuples(*[coordinates] * dimensions))]:
        owner = zones.owner(point)
        for name in zones:
            way = zones.way(name, point)
            assert way[-1] == owner
            distances = [zones.distance(each, point) for each in way]
            assert all(nearer < before for before, nearer in itertools.pairwise(distances))
            assert all(there in zones.neighbours(here) for here, there in itertools.pairwise(way))


@given(dimensions=st.integers(1, 4), data=st.data())
@settings(max_examples=30, deadline=None)
def test_neighbours_are_neighbours_of_each_other_and_connect_all_peers(dimensions, data):
    *_, zones = played(dimensions, data.draw(lives(dimensions)))
    for name in zones:
        assert all(name in zones.neighbours(other) for other in zones.neighbours(name))
    reached, border = set(), [next(iter(zones))]
    while border:
        name = border.pop()
        if name not in reached:
            reached.add(name)
            border += zones.neighbours(name)
    assert reached == set(zones)


def test_four_peers_of_the_plan_have_a_quarter_each_and_two_neighbours():
    zones = Zones.joined([("P0", ()), ("P1", (0.75, 0.25)), ("P2", (0.25, 0.75)), ("P3", (0.75, 0.75))], 2)
    assert {name: [(zone.low, zone.high) for zone in zones.of(name)] for name in zones} == {
        "P0": [((0.0, 0.0), (0.5, 0.5))],
        "P1": [((0.5, 0.0), (1.0, 0.5))],
        "P2": [((0.0, 0.5), (0.5, 1.0))],
        "P3": [((0.5, 0.5), (1.0, 1.0))],
    }
    assert {name: set(zones.neighbours(name)) for name in zones} == {
        "P0": {"P1", "P2"}, "P1": {"P0", "P3"}, "P2": {"P0", "P3"}, "P3": {"P1", "P2"},
    }  # fmt: skip
    assert zones.way("P0", (0.6, 0.6)) == ["P0", "P1", "P3"]


def test_who_leaves_gives_its_half_to_the_sibling_if_that_is_whole():
    zones = Zones.joined([("a", ()), ("b", (0.75, 0.25)), ("c", (0.75, 0.75))], 2)
    assert zones.leave("c").of("b") == (Zone((0.5, 0.0), (1.0, 1.0), 1),)
    assert zones.leave("c").leave("b").of("a") == (Zone.whole(2),)


def test_who_leaves_a_broken_half_gives_its_zone_to_the_smallest_neighbour_and_the_next_to_join_there_gets_it():
    zones = Zones.joined([("a", ()), ("b", (0.75, 0.25)), ("c", (0.75, 0.75)), ("d", (0.9, 0.75))], 2)
    (left,) = zones.of("a")
    after = zones.leave("a")  # its sibling is halved; c and d have an eighth each, b a quarter
    assert after.of("c") == (left, *zones.of("c")) and after.of("b") == zones.of("b")
    again = after.join("e", (0.1, 0.1))
    assert again.of("e") == (left,) and again.of("c") == zones.of("c")


def test_the_torus_goes_round():
    zones = Zones.joined([("a", ()), ("b", (0.9,)), ("c", (0.9,)), ("d", (0.2,)), ("e", (0.4,))], 1)
    assert "c" in zones.neighbours("d"), "the last zone touches the first"
    assert Zone((0.0,), (0.25,)).gap((0.9,)) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("dimensions", "count", "low", "high"), [(2, 16, 1.5, 2.5), (2, 64, 3.0, 5.0), (4, 16, 1.2, 2.5)]
)
def test_the_mean_number_of_hops_is_about_a_quarter_of_the_dimensions_times_the_side(dimensions, count, low, high):
    chance = Random(1)
    points = [(f"P{n}", tuple(chance.random() for _ in range(dimensions))) for n in range(count)]
    zones = Zones.joined(points, dimensions)
    hops = [
        len(zones.way(f"P{chance.randrange(count)}", tuple(chance.random() for _ in range(dimensions)))) - 1
        for _ in range(2000)
    ]
    assert low < sum(hops) / len(hops) < high  # (d / 4) * C ** (1 / d): 2, 4, 2


def test_what_no_torus_has_is_refused():
    zones = Zones.of_one("a", 2)
    with pytest.raises(ZoneError, match="numbers from 0 up to 1"):
        zones.join("b", (1.0, 0.5))
    with pytest.raises(ZoneError, match="2 numbers"):
        zones.owner((0.5,))
    with pytest.raises(ZoneError, match="2 numbers"):
        zones.next_hop("a", (math.nan, 0.5))
    with pytest.raises(ZoneError, match="at least 1"):
        Zones.of_one("a", 0)
    with pytest.raises(ZoneError, match="last peer"):
        zones.leave("a")
    with pytest.raises(ZoneError, match="already"):
        zones.join("a", (0.5, 0.5))
    with pytest.raises(ZoneError, match="no zone"):
        zones.leave("b")


def test_a_zone_is_not_halved_for_ever():
    zones = Zones.of_one("P0", 1)
    for number in range(1, 21):
        zones = zones.join(f"P{number}", (0.0,))
    with pytest.raises(ZoneError, match="somewhere else"):
        zones.join("P21", (0.0,))
    assert min(zone.volume for name in zones for zone in zones.of(name)) == SHORTEST
