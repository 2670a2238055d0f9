"""Distances in columns are the reference meaning's to the last bit, and so is who lies within a limit."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.language.expressions import Attribute, Call, Literal
from tamis.language.values import EARTH_RADIUS_KM, distance_km
from tamis.matching.axes import DOUBLE, Axis, AxisKey
from tamis.matching.columns import Events
from tamis.matching.columnwise import places
from tamis.matching.columnwise.places import Centre, Centres, Whereabouts, distance
from tamis.matching.columnwise.series import from_values

HALF_ROUND = math.pi * EARTH_RADIUS_KM

latitudes = st.one_of(st.sampled_from([0.0, -0.0, 90.0, -90.0, 45.8, -45.8, 1e-9]), st.floats(-90, 90))
longitudes = st.one_of(st.sampled_from([0.0, 180.0, -180.0, 360.0, -360.0, 15.97, -164.03]), st.floats(-360, 360))
ugly = st.sampled_from([None, math.nan, math.inf, -math.inf, 90.00000000000001, 1e308, 1, Decimal("45.8"), "x", True])
odd_places = st.tuples(st.one_of(latitudes, ugly), st.one_of(longitudes, ugly))


def neighbours(number):
    """The doubles around a number, and the number."""
    return [number, math.nextafter(number, -math.inf), math.nextafter(number, math.inf)]


@given(events=st.lists(odd_places, max_size=8), centre=odd_places)
def test_a_distance_is_that_of_the_reference_meaning_to_the_last_bit(events, centre):
    here = [from_values([event[coordinate] for event in events]) for coordinate in (0, 1)]
    there = [from_values([coordinate]) for coordinate in centre]
    found = distance(*here, *there)
    expected = [distance_km(*event, *centre) for event in events]
    if found is None:
        kinds = {type(value) for pair in (*events, centre) for value in pair} - {float, type(None)}
        assert kinds  # of several kinds, which is left to the rows
    elif events:
        values = found.tolist()
        assert list(map(repr, values * len(expected) if len(values) == 1 else values)) == list(map(repr, expected))


@given(data=st.data(), events=st.lists(st.tuples(latitudes, longitudes), min_size=1, max_size=8))
@settings(max_examples=400)
def test_who_is_within_a_limit_is_who_the_reference_meaning_says(data, events):
    """Limits are the very distances of events and the doubles next to them, where every bit counts."""
    centres = []
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.one_of(st.tuples(latitudes, longitudes), st.sampled_from(events)))
        exact = data.draw(st.lists(st.sampled_from(events), max_size=3))
        limits = [limit for event in exact for limit in neighbours(distance_km(*event, *place))]
        limits += data.draw(
            st.lists(
                st.one_of(
                    st.sampled_from([0.0, -1.0, 1e-9, HALF_ROUND, *neighbours(HALF_ROUND), 3e4, math.inf, -math.inf]),
                    st.floats(0, 21_000),
                ),
                max_size=12,
            )
        )
        limits = sorted(set(limits)) + ([math.nan] if data.draw(st.booleans()) else [])
        centres.append(Centre(*place, limits))
    axes = [Axis(AxisKey(Attribute(("d",)), DOUBLE), list(centre.limits)) for centre in centres]
    expected = [
        [axis.code(distance_km(*event, *centre[:2])) for event in events]
        for axis, centre in zip(axes, centres, strict=True)
    ]
    together = Centres(centres)
    codes = np.zeros((len(centres), len(events)), np.uint32)
    here = Whereabouts.of(from_values([lat for lat, _ in events]), from_values([lon for _, lon in events]), len(events))
    together.write_codes(here, np.arange(len(centres)), codes, lambda centre, far: axes[centre].code(far))
    assert codes.tolist() == expected
    for number, event in enumerate(events):
        found = together.event_codes(*event, lambda centre, far: axes[centre].code(far))
        assert found.tolist() == [each[number] for each in expected]


@given(events=st.lists(odd_places, min_size=1, max_size=8))
def test_what_is_nowhere_is_within_no_limit_and_beyond_none(events):
    centres = Centres([Centre(0.0, 0.0, [1_000.0]), Centre(45.8, 16.0, [10.0, 500.0])])
    here = Whereabouts.of(*(from_values([event[axis] for event in events]) for axis in (0, 1)), len(events))
    codes = np.full((2, len(events)), 9, np.uint16)
    centres.write_codes(here, np.array([0, 1]), codes, lambda centre, far: 2)
    for number, event in enumerate(events):
        is_nowhere = distance_km(*event, 0, 0) is None
        assert (codes[:, number] == 0).all() == (codes[:, number] == 0).any() == is_nowhere
        assert centres.event_codes(*event, lambda centre, far: 2).tolist() == codes[:, number].tolist()


def test_hardly_any_event_has_to_be_measured():
    chance = np.random.default_rng(1)
    events = Whereabouts.of(
        from_values(chance.uniform(-90, 90, 2_000).tolist()),
        from_values(chance.uniform(-180, 180, 2_000).tolist()),
        2_000,
    )
    centres = Centres([Centre(lat, lon, [100.0, 5_000.0]) for lat, lon in chance.uniform(-90, 90, (200, 2)).tolist()])
    calls = Counter()
    measure = places.measured

    def counting(*arguments):
        calls["measured"] += 1
        return measure(*arguments)

    with patch.object(places, "measured", counting):
        centres.write_codes(events, np.arange(200), np.empty((200, 2_000), np.uint32), lambda centre, far: 1)
    assert calls["measured"] < 5  # of 400,000


def test_a_distance_is_measured_where_rounding_decides():
    place = (45.8, 15.97)
    events = [(48.2, 16.37), (10.0, 20.0)]
    limit = distance_km(*events[0], *place)
    centres = Centres([Centre(*place, [limit])])
    asked = []
    codes = np.zeros((1, 2), np.uint32)
    here = Whereabouts.of(from_values([48.2, 10.0]), from_values([16.37, 20.0]), 2)
    centres.write_codes(here, np.array([0]), codes, lambda centre, far: asked.append((centre, far)) or 2)
    assert asked == [(0, limit)]
    assert codes.tolist() == [[2, 3]]


@pytest.mark.parametrize("is_turned", [False, True])
def test_the_constant_place_may_stand_first_or_last(is_turned):
    here, there = (Attribute(("lat",)), Attribute(("lon",))), (Literal(45), Literal(Decimal("15.97")))
    position, place = places.centre_of(Call("distance", there + here if is_turned else here + there))
    assert position == here and place == (45.0, 15.97)


@pytest.mark.parametrize("centre", [(None, 0), (91, 0), (0, 361), (True, 0), ("x", 0), (math.nan, 0)])
def test_a_constant_that_is_no_place_is_no_centre(centre):
    lat, lon = Attribute(("lat",)), Attribute(("lon",))
    assert places.centre_of(Call("distance", (lat, lon, *map(Literal, centre)))) is None
    axis = Axis(AxisKey(Call("distance", (lat, lon, *map(Literal, centre))), DOUBLE), [10.0])
    assert axis.codes(Events([{"lat": 1.0, "lon": 2.0}] * 2), None).tolist() == [0, 0]
