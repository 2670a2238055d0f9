"""Filters about places, vectors, weighted sums, arrays and patterns: what mathematics knows of them, relations know too."""

from __future__ import annotations

import math
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import FunctionError
from tamis.language.values import distance_km
from tamis.relations import CoveringIndex, covers, mergers, overlaps, refute, satisfiable
from tamis.relations.advertisements import OverlapIndex
from tests.lengths import so_many
from tests.relations.test_relations import check_safety

# -- Places and vectors: random filters, and events on their edges

latitudes = st.one_of(st.sampled_from([-90.0, -89.9, -45.0, 0.0, 0.5, 45.0, 89.9, 90.0]), st.floats(-90, 90))
longitudes = st.one_of(st.sampled_from([-360.0, -180.0, -179.9, 0.0, 179.9, 180.0, 359.5, 360.0]), st.floats(-360, 360))
kilometres = st.one_of(st.sampled_from([0.0, 1e-9, 1.0, 111.2, 10_000.0, 20_000.0, 20_015.0]), st.floats(0, 20_020))
small = st.one_of(st.integers(-3, 3), st.floats(-3, 3, width=32))
weights = st.sampled_from(["0", "0.25", "1", "2", "4"])
operators = st.sampled_from(["<", "<=", ">", ">="])


def written(number):
    return f"double('{number!r}')"


@st.composite
def places(draw):
    lat, lon, reach = draw(latitudes), draw(longitudes), draw(kilometres)
    around = f"lat, lon, {written(lat)}, {written(lon)}"
    swapped = f"{written(lat)}, {written(lon)}, lat, lon"
    text = f"distance({draw(st.sampled_from([around, swapped]))}) {draw(operators)} {written(reach)}"
    near = draw(st.sampled_from([0.0, 1e-13, 1e-7]))
    angle = math.degrees(reach / 6371.0088)
    edges = [(lat + side * angle * (1 + near), lon + turn) for side in (-1, 1) for turn in (0.0, 180.0, 360.0)]
    return text, [{"lat": a, "lon": b} for a, b in (*edges, (lat, lon), (-lat, lon + 180.0), (lat, lon + angle))]


@st.composite
def place_boxes(draw):
    south, west = draw(latitudes), draw(longitudes)
    height, width = draw(st.sampled_from([0.0, 0.1, 1.0, 30.0])), draw(st.sampled_from([0.0, 0.1, 1.0, 90.0, 400.0]))
    text = f"lat BETWEEN {written(south)} AND {written(south + height)}"
    text += f" AND lon BETWEEN {written(west)} AND {written(west + width)}"
    corners = product((south, south + height), (west, west + width, west + width / 2))
    return text, [{"lat": a, "lon": b} for a, b in corners]


@st.composite
def vectors(draw):
    x, y, reach = draw(small), draw(small), draw(st.floats(0, 5, width=32))
    scales = draw(st.tuples(weights, weights))
    rest = draw(st.sampled_from(["", f", array({', '.join(scales)})"]))
    text = f"euclidean(array(x, y), array({written(x)}, {written(y)}){rest}) {draw(operators)} {written(reach)}"
    turns = [index * math.pi / 6 for index in range(12)]
    return text, [{"x": x + reach * math.cos(turn), "y": y + reach * math.sin(turn)} for turn in turns]


@st.composite
def sums(draw):
    one, two, constant, bound = (draw(small) for _ in range(4))
    text = f"{written(one)} * x + {written(two)} * y - {written(constant)} {draw(operators)} {written(bound)}"
    exact = f"{draw(st.integers(-3, 3))} * x + y {draw(operators)} {draw(st.integers(-3, 3))}"
    events = [{"x": x, "y": (bound + constant - one * x) / two if two else 0.0} for x in (-1.0, 0.0, 0.1, 1e16, 3.0)]
    return draw(st.sampled_from([text, exact])), events


@st.composite
def boxes(draw):
    x, y, width, height = draw(small), draw(small), draw(st.floats(0, 4, width=32)), draw(st.floats(0, 4, width=32))
    text = f"x BETWEEN {written(x)} AND {written(x + width)} AND y BETWEEN {written(y)} AND {written(y + height)}"
    return text, [{"x": a, "y": b} for a, b in product((x, x + width), (y, y + height))]


ODD = [{}, {"x": math.nan, "y": 0.0}, {"x": math.inf, "y": -math.inf}, {"x": 10**30, "y": -(10**30)}, {"x": "1", "y": 1},
       {"x": 1e308, "y": -1e308}, {"lat": 91, "lon": 0}, {"lat": 90, "lon": 361}, {"lat": None, "lon": 1}]  # fmt: skip


@st.composite
def junctions(draw, of):
    """One or two predicates, joined or negated."""
    drawn = [draw(of) for _ in range(draw(st.integers(1, 2)))]
    form = draw(st.sampled_from(["{0}", "NOT ({0})"] if len(drawn) == 1 else ["{0} AND {1}", "({0}) OR ({1})"]))
    return tamis.parse(form.format(*(text for text, _ in drawn))), [event for _, events in drawn for event in events]


on_earth = junctions(st.one_of(places(), places(), place_boxes()))
in_plane = junctions(st.one_of(vectors(), vectors(), sums(), boxes()))


@settings(max_examples=120, deadline=None)
@given(one=st.one_of(on_earth, in_plane), two=st.one_of(on_earth, in_plane))
def test_no_place_on_the_edge_refutes_what_filters_say_of_each_other(one, two):
    check_safety(one[0], two[0], [*one[1], *two[1], *ODD])


@pytest.mark.slow
@settings(max_examples=so_many(20_000), deadline=None)
@given(one=st.one_of(on_earth, in_plane), two=st.one_of(on_earth, in_plane))
def test_no_place_on_the_edge_refutes_what_many_more_filters_say(one, two):
    check_safety(one[0], two[0], [*one[1], *two[1], *ODD])


def near(lat, lon, reach):
    return f"distance(lat, lon, {written(lat)}, {written(lon)}) <= {written(reach)}"


@settings(max_examples=60, deadline=None)
@given(st.tuples(latitudes, longitudes, st.floats(0.1, 9_000)), st.tuples(latitudes, longitudes, st.floats(0.1, 9_000)))
def test_caps_cover_and_exclude_each_other_wherever_geometry_says_so_by_a_metre(one, two):
    apart = distance_km(*one[:2], *two[:2])
    if apart + two[2] < one[2] - 1e-3:
        assert covers(near(*one), near(*two)).proven and covers(near(*one), near(*two))
    if apart + two[2] > one[2] + 1e-3 and one[2] + apart + two[2] < 20_000:
        assert not covers(near(*one), near(*two))
    assert bool(overlaps(near(*one), near(*two))) or apart > one[2] + two[2]
    if apart > one[2] + two[2] + 1e-3:
        assert not overlaps(near(*one), near(*two))


@settings(max_examples=60, deadline=None)
@given(*(st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.floats(0.1, 9)) for _ in range(2)))
def test_balls_cover_and_exclude_each_other_wherever_geometry_says_so(one, two):
    def ball(x, y, reach):
        return f"euclidean(array(x, y), array({written(x)}, {written(y)})) < {written(reach)}"

    apart = math.dist(one[:2], two[:2])
    if apart + two[2] < one[2] - 1e-9:
        assert covers(ball(*one), ball(*two))
    if apart > one[2] + two[2] + 1e-9:
        assert not overlaps(ball(*one), ball(*two))
    # What is not so is shown by an event: the farthest point from a centre, or the nearest, and no candidate at random.
    if apart > 1e-6 and apart + two[2] > one[2] + 1e-6:
        verdict = covers(ball(*one), ball(*two))
        assert (bool(verdict), verdict.proven, verdict.by) == (False, True, "search")
    if 1e-6 < apart < one[2] + two[2] - 1e-6:
        verdict = overlaps(ball(*one), ball(*two))
        assert (bool(verdict), verdict.proven, verdict.by) == (True, True, "search")


KNOWN = [
    ("distance(lat, lon, 45, 16) < 20", "distance(45.05, 16, lat, lon) < 10"),
    ("lat BETWEEN 44 AND 46", "distance(lat, lon, 45, 16) < 100"),
    ("lon BETWEEN 179 AND 181 OR lon BETWEEN -181 AND -179", "distance(lat, lon, 0, 180) < 100"),
    ("distance(lat, lon, 45, 16) < 200", "lat BETWEEN 44 AND 46 AND lon BETWEEN 15 AND 17"),
    ("euclidean(array(x, y), array(3, 4)) < 5", "euclidean(array(x, y), array(3, 5)) < 3.9"),
    ("euclidean(array(x, y), array(3, 4)) < 5", "euclidean(array(x, y), array(3, 4), array(4, 9)) < 9.9"),
    ("euclidean(words, array(1, 0, 0)) < 2", "euclidean(words, array(1, 0.5, 0)) < 1.4"),
    ("x BETWEEN 0 AND 6", "euclidean(array(x, y), array(3, 5)) < 2.9"),
    ("euclidean(array(x, y), array(3, 5)) < 3", "x BETWEEN 1 AND 5 AND y BETWEEN 3 AND 7"),
    ("x + y < 12.3", "euclidean(array(x, y), array(3, 5)) < 3"),
    ("3 * x - 2 * y >= -9.1", "x BETWEEN 1 AND 5 AND y BETWEEN 0 AND 6"),
    ("2 * x + 3 * y < 5", "4 * x + 6 * y < 9 AND x BETWEEN 0 AND 9 AND y BETWEEN 0 AND 9"),
    ("-2 * x - 3 * y > -5", "4 * x + 6 * y < 9 AND x BETWEEN 0 AND 9 AND y BETWEEN 0 AND 9"),
    ("name LIKE 'ab%'", "name LIKE 'abc%'"), ("name LIKE 'ab%'", "name = 'abcd'"), ("name LIKE 'ab%'", "name LIKE 'ab_%d'"),
    ("name LIKE 'ab%'", "name BETWEEN 'abc' AND 'abd'"), ("name LIKE '%b%'", "name LIKE 'abc%'"),
    ("name LIKE '_b%'", "name > 'abc' AND name < 'abd'"), ("name > 'aa'", "name LIKE 'ab%d'"),
    ("lower(name) LIKE 'ab%'", "lower(name) LIKE 'ab%d'"),
    ("arrays_overlap(tags, array('a', 'b'))", "array_contains(tags, 'a')"),
    ("arrays_overlap(tags, array('a', NULL))", "array_contains(tags, 'a')"),
    ("arrays_overlap(tags, array(x, 'a'))", "array_contains(tags, x)"), ("arrays_overlap(tags, other)", "arrays_overlap(other, tags)"),
    ("size(tags) >= 2", "array_contains(tags, 'a') AND array_contains(tags, 'b')"),
    ("x IN ('a', 'b', 'c')", "array_contains(array('a', 'b'), x)"),
]  # fmt: skip


@pytest.mark.parametrize(("general", "special"), KNOWN)
def test_what_mathematics_covers_is_proven_to_be_covered(general, special):
    verdict = covers(general, special)
    assert verdict and verdict.proven
    assert [str(each.expression) for each in mergers([general, special])] == [str(tamis.parse(general))]


APART = [
    ("distance(lat, lon, 45, 16) < 20", "distance(lat, lon, 46, 16) < 80"),
    ("distance(lat, lon, 45, 16) < 20", "lat > 46"),
    ("distance(lat, lon, 45, 16) < 20", "lon BETWEEN 17 AND 300"),
    ("distance(lat, lon, 45, 16) > 200", "lat BETWEEN 44.9 AND 45.1 AND lon BETWEEN 15.9 AND 16.1"),
    ("euclidean(array(x, y), array(3, 4)) < 2", "euclidean(array(x, y), array(6, 8)) < 2.9"),
    ("euclidean(array(x, y), array(3, 4)) < 2", "x + y > 10"),
    ("x BETWEEN 0 AND 1 AND y BETWEEN 0 AND 1", "x + y > 2.1"),
    ("name LIKE 'ab%d'", "name LIKE 'ac%'"), ("name LIKE 'ab%'", "name LIKE 'ac%'"), ("name LIKE 'ab%d'", "name < 'ab'"),
    ("name LIKE 'b%'", "name LIKE 'a%b%'"), ("array_contains(tags, 'a')", "size(tags) = 0"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two"), APART)
def test_what_mathematics_keeps_apart_is_proven_not_to_overlap(one, two):
    verdict = overlaps(one, two)
    assert not verdict and verdict.proven
    assert not satisfiable(f"({one}) AND ({two})")
    for is_exact in (True, False):
        index = OverlapIndex(is_exact=is_exact)
        index.add(1, one)
        assert is_exact is False or index.overlapping(two) == []


NOT_KNOWN = [
    ("2 * x + 3 * y <= 5", "4 * x + 6 * y <= 10"),  # numbers without bounds may cancel each other, or overflow
    ("euclidean(array(x, y), array(0, 0)) <= 5", "euclidean(array(x, y), array(3, 4)) <= 0"),  # on the edge
    ("euclidean(array(x, y), array(0, 0)) <= 5", "euclidean(array(x), array(0)) <= 1"),
    ("euclidean(array(x), array(0)) <= 5", "euclidean(x, array(0)) <= 1"),  # a number, and a vector of one
    ("x BETWEEN -2 AND 2", "euclidean(x, array(0)) <= 1"),
    ("x + y <= 2", "x BETWEEN 0 AND 1 AND y BETWEEN 0 AND 1"),  # but for the last digit
    ("distance(lat, lon, 45, 16) >= 0", "lat BETWEEN 89 AND 91 AND lon BETWEEN 0 AND 1"),
]


@pytest.mark.parametrize(("general", "special"), NOT_KNOWN)
def test_what_rounding_could_refute_is_not_claimed(general, special):
    assert not covers(general, special)


def test_halves_of_what_cancels_are_refuted_by_an_event():
    """Why nothing is said of multiples without bounds: here is the event."""
    event = {"x": 1e308, "y": -1e308}
    one, two = tamis.parse("x + y <= 0"), tamis.parse("2 * x + 2 * y <= 0")
    assert tamis.holds(one, event) and not tamis.holds(two, event)
    assert not covers(two, one)


# -- Small worlds, whole

TEXTS = ["".join(letters) for length in range(5) for letters in product("ab", repeat=length)]
PATTERNS = ["".join(symbols) for length in (1, 2, 3) for symbols in product("a%_b", repeat=length)][::3]
TEXT_FILTERS = [f"t LIKE '{pattern}'" for pattern in PATTERNS] + [
    "t > 'ab'", "t < 'ab'", "t >= 'ab' AND t < 'b'", "t BETWEEN 'aa' AND 'ab'", "t = 'ab'", "t IN ('a', 'ba')", "NOT t LIKE 'a%b'",
]  # fmt: skip
ARRAYS = [list(members) for length in range(3) for members in product([None, 1, 2, "a"], repeat=length)]
ARRAY_FILTERS = [
    "array_contains(t, 1)", "array_contains(t, 2)", "array_contains(t, 'a')", "NOT array_contains(t, 1)", "NOT array_contains(t, 'a')",
    "arrays_overlap(t, array(1, 2))", "arrays_overlap(t, array(1, NULL))", "NOT arrays_overlap(t, array(1, NULL))",
    "NOT arrays_overlap(t, array(1, 2))", "size(t) = 0", "size(t) >= 1", "size(t) < 2", "size(t) = 2", "arrays_overlap(t, t)",
    "array_contains(t, 1) AND array_contains(t, 2)", "array_contains(t, 1) OR NOT array_contains(t, 2)", "array_contains(t, 1.0)",
    "array_contains(t, 1D)",
]  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "values", "least"), [(TEXT_FILTERS, TEXTS, 120), (ARRAY_FILTERS, ARRAYS, 20)], ids=["texts", "arrays"]
)
def test_in_a_small_world_no_verdict_is_wrong_and_many_coverings_are_proven(filters, values, least):
    world = [{}, {"t": None}, {"t": 1.5}, *({"t": value} for value in values)]
    parsed = [tamis.parse(text) for text in filters]
    matched = [frozenset(n for n, event in enumerate(world) if tamis.holds(each, event)) for each in parsed]
    covered = 0
    for one, two in combinations(range(len(parsed)), 2):
        for general, special in ((one, two), (two, one)):
            if covers(parsed[general], parsed[special]):
                assert matched[general] >= matched[special], (filters[general], filters[special])
                covered += 1
        if not overlaps(parsed[one], parsed[two]):
            assert not matched[one] & matched[two], (filters[one], filters[two])
    assert covered > least


# -- Indexes, and a function of the host


def test_indexes_answer_as_all_pairs_do():
    texts = [near(45 + 0.2 * a, 16 + 0.3 * b, reach) for a in range(4) for b in range(4) for reach in (5, 30, 80)][::2]
    texts += [f"in_cidr(ip, '10.{number}.0.0/{length}')" for number in (0, 16, 32) for length in (12, 16, 24)]
    texts += ["lat BETWEEN 44 AND 46", "lat > 46 AND lon < 18", "ip IS NOT NULL", "name LIKE 'ab%c'", "name LIKE 'a%'"]
    covering, exact, quick = CoveringIndex(), OverlapIndex(is_exact=True), OverlapIndex()
    for index in (covering, exact, quick):
        for text in texts:
            index.add(text, text)
    sure = 0
    for text in texts[::3]:
        assert covering.covering(text) == [other for other in texts if covers(other, text)]
        assert covering.covered_by(text) == [other for other in texts if covers(text, other)]
        overlapping = {other for other in texts if overlaps(text, other)}
        assert set(exact.overlapping(text)) == overlapping
        assert set(quick.overlapping(text)) >= overlapping
        sure += len(texts) - len(quick.overlapping(text))
    assert sure > 50, "single predicates exclude some: far places, other networks, other beginnings"


@tamis.function(
    takes=("number", "number"),
    gives="number",
    version=1,
    confines=lambda one, two, bounds: (bounds[0] - abs(one[0] - two[0]), bounds[1] + abs(one[0] - two[0])),
)
def gap(number, centre):
    """How far a number is from another."""
    return abs(number - centre)


def test_a_function_of_the_host_says_what_one_call_means_for_another():
    functions = tamis.Functions([gap])

    def parsed(text):
        return tamis.parse(text, functions=functions)

    assert covers(parsed("gap(x, 5) < 9"), parsed("gap(x, 7) < 6"))
    assert not covers(parsed("gap(x, 5) < 9"), parsed("gap(x, 7) < 8"))
    assert not covers(parsed("gap(x, 5) < 9"), parsed("gap(y, 7) < 6"))
    assert [str(each.expression) for each in mergers([parsed("gap(x, 5) < 9"), parsed("gap(x, 7) < 6")])] == [
        "gap(x, 5) < 9"
    ]
    with pytest.raises(FunctionError, match="number"):
        tamis.function(takes=["number"], gives="string", version=1, confines=lambda *_: None)(str)


def test_a_hook_that_confines_too_much_is_found():
    samples = [(number, centre) for number in (-3, 0, 4.5, 10) for centre in (0, 5, 7)]
    assert refute(gap, samples) == []

    @tamis.function(takes=("number", "number"), gives="number", version=1, confines=lambda one, two, bounds: bounds)
    def stretch(number, centre):
        return abs(number - centre)

    (lie,) = refute(stretch, samples)
    assert lie.hook == "confines"
    assert "should lie in" in lie.reason
