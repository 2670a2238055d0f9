"""Regions, proxies, covering and merging: whatever they leave out is left out rightly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.relations.geometry import covers, merged
from tamis.relations.regions import (
    Ball,
    Box,
    Cap,
    Cone,
    Everywhere,
    HalfSpace,
    Nowhere,
    SublevelSet,
    region_of,
)
from tamis.topk import Ranked, TopK
from tamis.topk.closed_form import entering_times
from tamis.topk.covering import covers as covers_ranked
from tamis.topk.covering import warm_up
from tamis.topk.merging import RegionMerger
from tamis.topk.proxies import Proxy
from tamis.topk.scores import key
from tamis.topk.windows import CountWindow, TimeWindow


def cut_out(ranked, threshold):
    return region_of(ranked.score, threshold, is_ascending=ranked.is_ascending)


coordinate = st.one_of(st.integers(-2, 2).map(float), st.floats(-2, 2, width=32))
positive = st.one_of(st.sampled_from([0.5, 1.0, 2.0]), st.floats(0.25, 4, width=32))
SHAPES = {
    "ball": lambda x, y, a, b: f"euclidean(array(x, y), array({x}D, {y}D))",
    "ellipse": lambda x, y, a, b: f"euclidean(array(x, y), array({x}D, {y}D), array({a}D, {b}D))",
    "cap": lambda x, y, a, b: f"distance(x, y, {x * 40}D, {y * 80}D)",
    "half-space": lambda x, y, a, b: f"{a}D * x + {b}D * y + {x}D",
    "box": lambda x, y, a, b: f"greatest({a}D * abs(x - {x}D), abs(y - {y}D))",
    "level": lambda x, y, a, b: "x / y",
}


@st.composite
def thresholds(draw, shape):
    """A ranked subscription of a shape, with a threshold."""
    numbers = draw(coordinate), draw(coordinate), draw(positive), draw(positive)
    scale = 3_000.0 if shape == "cap" else 1.0
    return Ranked(SHAPES[shape](*numbers), 1, "1 HOUR"), scale * draw(st.one_of(coordinate, st.just(math.inf)))


@st.composite
def cones(draw):
    axis = draw(coordinate), draw(coordinate)
    x, y = axis if any(axis) else (1.0, 0.0)
    return Ranked(f"cosine(array(x, y), array({x}D, {y}D))", 1, "1 HOUR", order="DESC"), draw(
        st.floats(-1, 1, width=32)
    )


pairs = st.sampled_from([*SHAPES, "cone"]).flatmap(
    lambda shape: st.lists(cones() if shape == "cone" else thresholds(shape), min_size=2, max_size=4)
)


def points(seed, scale):
    chance = np.random.default_rng(seed)
    return [
        {"x": x, "y": y}
        for x, y in (*(chance.normal(size=(60, 2)) * scale).tolist(), *chance.integers(-3, 4, (40, 2)).tolist())
    ]


def interests(ranked, threshold, event):
    """Does an event interest a subscription at a threshold? The definition."""
    found = key(ranked, event)
    return found <= (threshold if ranked.is_ascending else -threshold)


def contains(region, event):
    """Is an event in a region, up to a little on the safe side?"""
    x, y = event["x"], event["y"]
    match region:
        case Everywhere():
            return True
        case Nowhere():
            return False
        case Ball(_, centre, weights, radius):
            gap = sum(w * (a - c) ** 2 for a, c, w in zip((x, y), centre, weights, strict=True))
            return math.sqrt(gap) <= radius * (1 + 1e-9)
        case Box(_, centre, reach):
            return all(abs(a - c) <= r * (1 + 1e-9) + 1e-12 for a, c, r in zip((x, y), centre, reach, strict=True))
        case HalfSpace(_, weights, bound):
            total = sum(w * a for w, a in zip(weights, (x, y), strict=True))
            return total <= bound + 1e-9 * (1 + abs(bound))
        case Cone(_, axis, angle):
            length = math.hypot(x, y)
            cosine = (x * axis[0] + y * axis[1]) / length if length else math.nan
            return math.acos(max(-1.0, min(1.0, cosine))) <= angle + 1e-7 if length else False
        case Cap(_, latitude, longitude, radius):
            place = Ranked(f"distance(x, y, {latitude!r}D, {longitude!r}D)", 1, "1 HOUR")
            return key(place, event) <= radius * (1 + 1e-9)
        case SublevelSet(score, order, bound):
            return key(Ranked(score, 1, "1 HOUR", order=order), event) <= bound
    raise AssertionError(region)


@settings(max_examples=120)
@given(pairs=pairs, seed=st.integers(0, 99))
def test_a_region_that_covers_another_leaves_out_none_of_its_events(pairs, seed):
    (one, first), (two, second) = pairs[:2]
    scale = 60 if "distance" in str(one.score) else 2
    if covers(cut_out(one, first), cut_out(two, second)):
        for event in points(seed, scale):
            assert not interests(two, second, event) or interests(one, first, event)


@settings(max_examples=120)
@given(pairs=pairs, seed=st.integers(0, 99))
def test_a_merger_covers_every_member_and_a_perfect_one_has_nothing_else(pairs, seed):
    regions = [cut_out(ranked, threshold) for ranked, threshold in pairs]
    whole, is_perfect = merged(regions)
    scale = 60 if "distance" in str(pairs[0][0].score) else 2
    for event in points(seed, scale):
        wanted = [interests(ranked, threshold, event) for ranked, threshold in pairs]
        if any(wanted):
            assert contains(whole, event)
        if is_perfect and contains(whole, event):
            assert any(contains(region, event) for region in regions)


def test_each_score_cuts_out_its_own_shape():
    def shape(text, threshold, order="ASC"):
        return type(cut_out(Ranked(text, 1, "1 HOUR", order=order), threshold))

    assert shape("euclidean(array(x, y), array(1, 2))", 0.5) is Ball
    assert shape("euclidean(array(x, y), array(1, 2))", -0.5) is Nowhere
    assert shape("distance(x, y, 1, 2)", 5.0) is Cap
    assert shape("distance(x, y, 1, 2)", 30_000.0) is Everywhere
    assert shape("2 * x + y", 5.0) is HalfSpace
    assert shape("greatest(abs(x - 1), 2 * abs(y - 3))", 5.0) is Box
    assert shape("cosine(array(x, y), array(1, 2))", 0.5, "DESC") is Cone
    assert shape("cosine(array(x, y), array(1, 2))", 0.5) is SublevelSet
    assert shape("x / y", 1.0) is SublevelSet
    assert shape("x", math.inf) is Everywhere


def test_boxes_spheres_half_spaces_and_cones_merge_as_in_the_pictures():
    box = [Box((), (0.0, 0.0), (1.0, 1.0)), Box((), (2.0, 0.0), (1.0, 1.0)), Box((), (4.0, 0.0), (1.0, 1.0))]
    assert merged(box[:2])[1]  # side by side
    assert not merged([box[0], box[2]])[1]  # with a gap
    assert not merged([box[0], Box((), (1.0, 1.0), (1.0, 1.0))])[1]
    parallel = [HalfSpace((), (1.0, 2.0), 3.0), HalfSpace((), (2.0, 4.0), 8.0)]
    assert merged(parallel)[1]
    assert merged([parallel[0], HalfSpace((), (1.0, 2.1), 3.0)]) == (Everywhere(), False)
    ball, is_perfect = merged([Ball((), (0.0,), (1.0,), 1.0), Ball((), (4.0,), (1.0,), 1.0)])
    assert (round(ball.centre[0], 9), round(ball.radius, 9), is_perfect) == (2.0, 3.0, False)


def test_a_merger_grows_at_once_and_shrinks_where_that_is_worth_it():
    def ball(radius):
        return Ball((), (0.0, 0.0), (1.0, 1.0), radius)

    merger = RegionMerger(shrinks=lambda small, large: small.radius < 0.5 * large.radius)
    assert merger.update("a", ball(4.0))
    assert not merger.update("b", ball(3.0))  # within
    assert not merger.update("a", ball(3.5))  # smaller, but not by half
    assert merger.update("b", ball(9.0))  # beyond
    assert not merger.update("b", ball(5.0))
    assert merger.remove("b")
    assert merger.region == ball(3.5)
    assert len(merger) == 1 and "a" in merger and "b" not in merger


# -- Proxies

THRESHOLD = [("probabilistic", {"guard": False}), ("strict", {"filter": "strict", "buffer": 10})]


@pytest.mark.parametrize(("algorithm", "settings_"), THRESHOLD)
@pytest.mark.parametrize("order", ["ASC", "DESC"])
def test_a_proxy_in_step_refuses_only_what_changes_nothing(algorithm, settings_, order):
    chance = np.random.default_rng(1)
    processor = TopK(algorithm, **settings_)
    processor.add("s", Ranked("x", 2, "60 EVENTS", order=order))
    refused = 0
    for place, x in enumerate(chance.random(1_000).tolist()):
        proxy = Proxy.of(processor, "s", place)
        told = processor.process({"x": x}, float(place), place)
        if not proxy.wants({"x": x}):
            refused += 1
            assert place not in [each.event for each in told]
    assert refused > 500


def test_a_proxy_moves_with_versions_and_the_newer_one_counts():
    proxy = Proxy("s", Ranked("price", 1, "1 HOUR", "category = 'flat'"), 10.0)
    looser = proxy.moved(12.0)
    assert (looser.threshold, looser.version) == (12.0, 1)
    assert proxy.newer(looser) is looser
    assert looser.newer(proxy) is looser
    assert looser.covers(proxy) and not proxy.covers(looser)
    assert looser.wants({"price": 11, "category": "flat"}) and not proxy.wants({"price": 11, "category": "flat"})
    assert not looser.wants({"price": 11, "category": "house"})
    assert not looser.wants({"category": "flat"})
    everything = Proxy("t", Ranked("price", 1, "1 HOUR"), 12.0)
    assert everything.covers(looser) and not looser.covers(everything)


# -- Covering of ranked subscriptions

streams = st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.5, 1.0, 3.0])), max_size=60)
shapes = st.tuples(st.integers(1, 4), st.sampled_from([1.0, 2.0, 5.0, 9.0]))


@given(stream=streams, one=shapes, two=shapes)
def test_more_events_of_a_shorter_window_cover_fewer_of_a_longer_one_and_no_later(stream, one, two):
    (k, w), (less, longer) = one, two
    wide, narrow = Ranked("x", k, TimeWindow(w)), Ranked("x", less, TimeWindow(longer))
    if not covers_ranked(wide, narrow):
        assert k < less or w > longer
        return
    keys, times = [float(each) for each, _ in stream], np.cumsum([step for _, step in stream])
    first = entering_times(keys, times, k, wide.window)
    second = entering_times(keys, times, less, narrow.window)
    for mine, theirs in zip(first.tolist(), second.tolist(), strict=True):
        assert math.isnan(theirs) or mine <= theirs


@given(stream=streams, late=st.integers(0, 30), k=st.integers(1, 3))
def test_an_older_subscription_covers_a_newer_one_only_after_its_own_window(stream, late, k):
    wide, narrow = Ranked("x", k, TimeWindow(2.0)), Ranked("x", k, TimeWindow(5.0))
    keys, times = np.array([float(each) for each, _ in stream]), np.cumsum([step for _, step in stream])
    first = entering_times(keys, times, k, wide.window)[late:]
    second = entering_times(keys[late:], times[late:], k, narrow.window)
    for at, mine, theirs in zip(times[late:].tolist(), first.tolist(), second.tolist(), strict=True):
        if at > times[late] + warm_up(wide):
            assert math.isnan(theirs) or mine <= theirs


def test_before_that_it_does_not():
    keys, times = [0.0, 5.0], [0.0, 1.0]
    assert math.isnan(entering_times(keys, times, 1, TimeWindow(5.0), until=2.0)[1])
    assert entering_times(keys[1:], times[1:], 1, TimeWindow(5.0))[0] == 1.0


def test_other_scores_orders_filters_and_kinds_of_windows_are_not_covered():
    best = Ranked("price", 5, "1 HOUR", "a = 1 AND b = 2")
    assert covers_ranked(best, Ranked("price", 2, "1 DAY", "b = 2 AND a = 1"))
    for other in (
        Ranked("bids", 2, "1 DAY", "a = 1 AND b = 2"),
        Ranked("price", 2, "1 DAY", "a = 1 AND b = 2", order="DESC"),
        Ranked("price", 2, "1 DAY"),
        Ranked("price", 2, CountWindow(10**6), "a = 1 AND b = 2"),
        Ranked("price", 6, "1 DAY", "a = 1 AND b = 2"),
        Ranked("price", 2, "1 MINUTE", "a = 1 AND b = 2"),
    ):
        assert not covers_ranked(best, other)


def arc(degrees, half_width):
    turn = math.radians(degrees)
    return Cone((), (math.cos(turn), math.sin(turn)), math.radians(half_width))


@given(
    arcs=st.lists(st.tuples(st.integers(0, 359), st.integers(1, 60)), min_size=1, max_size=5),
)
def test_a_merger_of_cones_in_the_plane_that_is_perfect_has_no_direction_that_no_cone_has(arcs):
    whole, is_perfect = merged([arc(*each) for each in arcs])
    for degrees in range(0, 720, 3):
        turn = math.radians(degrees / 2)
        direction = (math.cos(turn), math.sin(turn))

        def is_in(cone, room, direction=direction):
            inner = sum(a * b for a, b in zip(cone.axis, direction, strict=True))
            return math.acos(max(-1.0, min(1.0, inner))) <= cone.angle + room

        is_in_one = any(is_in(arc(*each), 1e-6) for each in arcs)
        is_in_whole = isinstance(whole, Everywhere) or is_in(whole, -1e-6)
        assert not (is_perfect and is_in_whole) or is_in_one
        assert isinstance(whole, Everywhere) or is_in(whole, 1e-6) or not any(is_in(arc(*each), -1e-6) for each in arcs)


def test_cones_that_meet_in_the_plane_merge_perfectly_in_whatever_order_they_come():
    row = [arc(10, 10), arc(50, 12), arc(30, 10)]
    for one, two, three in itertools.permutations(row):
        whole, is_perfect = merged([one, two, three])
        assert is_perfect and isinstance(whole, Cone)
        assert whole.angle == pytest.approx(math.radians(31), rel=1e-9)
    assert not merged([arc(10, 10), arc(50, 12)])[1]
    assert merged([arc(350, 10), arc(5, 10), arc(20, 10)])[1]
    assert not merged([arc(0, 80), arc(120, 80), arc(240, 80)])[1]  # all directions, but what has none is in no cone
    in_space = [Cone((), (1.0, 0.0, 0.0), 0.5), Cone((), (math.cos(0.4), math.sin(0.4), 0.0), 0.5)]
    assert not merged(in_space)[1]
