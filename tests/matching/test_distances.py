"""Distances from many places, all together, one by one, for a batch and for a single event: always the same codes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.values import distance_km
from tamis.matching import Matcher
from tamis.matching.axes import TRUTH
from tamis.matching.columns import Events
from tamis.matching.distances import Distances
from tamis.matching.encoder import Encoder
from tamis.matching.leaves import Leaves
from tests.strategies import events, predicates

coordinates = st.one_of(st.sampled_from([0, 45.8, 15.97, -90, 91, 400, None, "x", float("nan")]), st.floats(-90, 90))
places = st.fixed_dictionaries(
    {}, optional={"lat": coordinates, "lon": coordinates, "pos": st.fixed_dictionaries({"x": coordinates})}
)
questions = st.builds(
    "distance({}, {}, {}, {}) {} {}".format,
    st.sampled_from(["lat", "pos.x", "lat + 1", "-lat"]),
    st.sampled_from(["lon", "lon / 2"]),
    st.integers(-90, 90),
    st.integers(-180, 180),
    st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]),
    st.sampled_from(["0", "100", "1e3", "5000.5", "20016", "-1", "double('NaN')", "double('Infinity')"]),
).map(tamis.parse)
turned = st.builds(
    "distance({}, {}, lat, lon) < {}".format, st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 999)
).map(tamis.parse)


def axes_of(expressions):
    leaves = Leaves()
    for expression in expressions:
        leaves.leaf(expression)
    return leaves.finished().axes


def expected_code(axis, event):
    found = tamis.language.meaning.value(axis.key.term, event)
    if axis.key.kind == TRUTH:
        return {True: 2, False: 1}.get(found, 0) if isinstance(found, bool) else 0
    return axis.code(found)


@given(
    asked=st.lists(st.one_of(questions, questions, turned, predicates), max_size=8),
    batch=st.lists(st.one_of(places, events()), max_size=6),
)
def test_every_way_to_a_code_ends_at_the_same_code(asked, batch):
    axes = axes_of(asked)
    expected = [[expected_code(axis, event) for axis in axes] for event in batch]
    encoder = Encoder(axes, None)
    assert [list(map(int, encoder.codes(event))) for event in batch] == expected
    columns = Events(batch)
    assert [axis.codes(columns, None).tolist() for axis in axes] == [
        list(codes) for codes in zip(*expected, strict=True)
    ] or not batch
    codes = np.zeros((len(axes), len(batch)), np.uint16)
    for distances in Distances.among(axes):
        distances.write_codes(columns, None, codes)
        assert codes[distances.rows].T.tolist() == [[row[number] for number in distances.rows] for row in expected]


def test_distances_of_the_same_attributes_go_together():
    texts = ("distance(lat, lon, 1, 2) < 3", "distance(3, 4, lat, lon) < 5", "distance(lat, x, 1, 2) < 3", "lat < 3")
    found = Distances.among(axes_of(map(tamis.parse, texts)))
    assert [distances.rows.tolist() for distances in found] == [[0, 1], [2]]


def test_a_distance_between_attributes_is_no_distance_from_a_place():
    texts = ("distance(lat, lon, x, y) < 3", "distance(lat, 1, 2, lon) < 3", "distance(1, 2, 3, 4) < 3", "lat = 3")
    assert [distances.rows.tolist() for distances in Distances.among(axes_of(map(tamis.parse, texts[:2])))] == []
    matcher = Matcher()
    matcher.add_many(dict(enumerate(texts)))
    event = {"lat": 1.0, "lon": 2.0, "x": 1.0, "y": 2.01}
    assert distance_km(1.0, 2.0, 1.0, 2.01) < 3
    assert matcher.match(event) == [0]
    assert matcher.match_batch([event] * 40).num_rows == 40


def test_thousands_of_centres_are_matched_as_the_definition_says():
    chance = np.random.default_rng(3)
    spots = chance.integers(-90, 90, (2_000, 2)).tolist()
    asked = {
        number: f"distance(lat, lon, {lat}, {lon}) < {100 + number % 900}" for number, (lat, lon) in enumerate(spots)
    }
    matcher = Matcher()
    matcher.add_many(asked)
    batch = [{"lat": lat, "lon": lon} for lat, lon in chance.uniform(-90, 90, (60, 2)).tolist()] + [{"lat": 5.0}, {}]
    expected = [
        [number for number, (lat, lon) in enumerate(spots)
         if "lon" in event and distance_km(event["lat"], event["lon"], lat, lon) < 100 + number % 900]
        for event in batch
    ]  # fmt: skip
    assert matcher.list_batch(batch).to_pylist() == expected
    assert [matcher.match(event) for event in batch[:5]] == expected[:5]
    assert sum(map(len, expected)) > 500
