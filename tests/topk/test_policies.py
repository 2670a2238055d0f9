"""What others know of a threshold, as a key and as a condition: never tighter than it is."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.language import parse
from tamis.language.expressions import TRUE
from tamis.language.meaning import holds
from tamis.language.schema import Schema
from tamis.topk import Ranked
from tamis.topk.policies import BoxCells, EveryChange, ExactCells, Hysteresis
from tamis.topk.scores import key

POLICIES = {
    "every change": EveryChange,
    "hysteresis": Hysteresis,
    "exact cells": lambda ranked: ExactCells(ranked, resolution=5),
    "box of cells": lambda ranked: BoxCells(ranked, resolution=5),
}
coordinates = st.one_of(
    st.floats(-0.5, 1.5),
    st.sampled_from(
        [0, 1, 0.2, 0.4, 0.6000000000000001, math.nan, math.inf, -math.inf, None, "a", Decimal("0.2"), 10**30]
    ),
)
CENTRED = (
    Ranked("euclidean(array(x, y), array(0.25D, 0.9D))", 2, "1 HOUR", "c = 1"),
    Ranked("euclidean(array(x, y), array(0.2D, 0.6D), array(2, 0.5D))", 2, "1 HOUR"),
    Ranked("euclidean(array(x, y), array(0.2D, 0.6D), array(0, 1))", 2, "1 HOUR"),
    Ranked("euclidean(array(x, y), array(-3, 9))", 2, "1 HOUR"),
)


@settings(max_examples=150)
@given(
    ranked=st.sampled_from(CENTRED),
    name=st.sampled_from(sorted(POLICIES)),
    thresholds=st.lists(st.one_of(st.floats(0, 2), st.sampled_from([math.inf, 0.0])), min_size=1, max_size=5),
    events=st.lists(st.fixed_dictionaries({"x": coordinates, "y": coordinates, "c": st.integers(0, 1)}), max_size=12),
)
def test_what_others_know_never_shuts_out_what_is_within_the_threshold(ranked, name, thresholds, events):
    policy = POLICIES[name](ranked)
    for threshold in thresholds:
        policy.moved(threshold)
        assert policy.known >= threshold
        condition = policy.filter()
        for event in events:
            within = holds(ranked.where, event) and key(ranked, event) <= threshold
            assert not within or (holds(condition, event) and policy.wants(event, key(ranked, event)))
            assert holds(ranked.where, event) or not holds(condition, event)


@given(
    score=st.sampled_from(["x", "x + 1", "2 * x - y"]),
    order=st.sampled_from(["ASC", "DESC"]),
    values=st.lists(
        st.one_of(
            st.integers(),
            st.floats(),
            st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20),
            st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, Decimal("0.3"), Decimal("0.1"), 10**400]),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_a_threshold_that_is_some_events_score_lets_that_event_pass_however_it_was_rounded(score, order, values):
    ranked = Ranked(score, 1, "1 HOUR", order=order)
    policy = EveryChange(ranked)
    events = [{"x": value, "y": 1} for value in values]
    for event in events:
        try:
            threshold = key(ranked, event)
        except OverflowError:
            continue
        if math.isnan(threshold) or math.isinf(threshold):
            continue
        policy.moved(threshold)
        assert holds(policy.filter(), event)


@given(
    times=st.lists(
        st.datetimes(min_value=dt.datetime(1900, 1, 1), max_value=dt.datetime(2200, 1, 1)), min_size=1, max_size=5
    ),
    order=st.sampled_from(["ASC", "DESC"]),
    knows_schema=st.booleans(),
)
def test_a_threshold_that_is_a_time_travels_as_a_time(times, order, knows_schema):
    ranked = Ranked("begins", 1, "1 HOUR", order=order)
    policy = EveryChange(ranked, Schema({"begins": "timestamp"}) if knows_schema else None)
    assert policy.reads_times == knows_schema
    policy.reads_times = True
    for time in times:
        threshold = key(ranked, {"begins": time})
        policy.moved(threshold)
        condition = policy.filter()
        for other in times:
            if key(ranked, {"begins": other}) <= threshold:
                assert holds(condition, {"begins": other})
        assert not holds(
            condition, {"begins": times[0] + dt.timedelta(1 if order == "ASC" else -1) + (time - times[0])}
        )


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_who_knows_no_threshold_knows_the_condition(name):
    policy = POLICIES[name](CENTRED[0])
    assert policy.known == math.inf
    assert policy.filter() == parse("c = 1")
    assert POLICIES[name](CENTRED[3]).filter() == TRUE


def test_a_box_of_cells_is_plain_intervals_and_moves_when_the_ball_passes_an_edge():
    policy = BoxCells(CENTRED[3], resolution=5)
    assert policy.moved(1.0)
    assert "euclidean" not in str(policy.filter())
    box = BoxCells(Ranked("euclidean(array(x, y), array(0.5D, 0.5D))", 1, "1 HOUR"), resolution=5)
    assert [box.moved(radius) for radius in (0.05, 0.09, 0.11, 0.15, 0.05, 9.0)] == [
        True,
        False,
        True,
        False,
        True,
        True,
    ]
    assert box.filter() == TRUE
    exact = ExactCells(Ranked("euclidean(array(x, y), array(0.5D, 0.5D))", 1, "1 HOUR"), resolution=5)
    assert exact.moved(0.05) and exact.known == pytest.approx(0.1)
    point = BoxCells(Ranked("euclidean(place, array(0.5D, 0.5D))", 1, "1 HOUR"), resolution=5)
    assert point.moved(0.05)
    assert holds(point.filter(), {"place": [0.5, 0.54]}) and not holds(point.filter(), {"place": [0.5, 0.9]})


def test_nothing_is_wanted_by_who_wants_nothing():
    for policy in (EveryChange(CENTRED[1]), BoxCells(CENTRED[1]), ExactCells(CENTRED[1])):
        policy.moved(-math.inf)
        assert not holds(policy.filter(), {"x": 0.2, "y": 0.6, "c": 1})
