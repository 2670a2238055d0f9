"""Every index finds all subscriptions that an event concerns, as asking each of them does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.relations.families import recognised
from tamis.topk import Ranked, TopK, kernels
from tamis.topk.index.choice import INDEXES, fastest
from tamis.topk.scoring import Group

coordinates = st.one_of(
    st.floats(0, 1), st.integers(-3, 3), st.sampled_from([0.0, -0.0, 1e-200, 1e18, -1e200, 2**60, math.inf, -math.inf])
)
weights = st.one_of(st.floats(0, 4), st.sampled_from([0.0, 1.0, 1e-9, 1e9]))
bounds = st.one_of(st.floats(0, 2), st.sampled_from([0.0, 5e-324, 1e-12, 1e30, math.inf]))


def euclidean(x, y, one, two):
    return Ranked(f"euclidean(array(x, y), array({x!r}D, {y!r}D), array({one!r}D, {two!r}D))", 1, "9 EVENTS")


def linear(x, y, one, two):
    return Ranked(f"{x!r}D * x + {y!r}D * y", 1, "9 EVENTS")


def geographic(x, y, one, two):
    return Ranked(f"distance(x, y, {90 * math.sin(x)!r}D, {180 * math.sin(y)!r}D)", 1, "9 EVENTS")


def group_of(make, rows):
    rankeds = [make(*row) for row in rows]
    families = [recognised(ranked.score, ranked.is_ascending) for ranked in rankeds]
    family = families[0][0]
    group = Group(family)
    for ranked, (own, numbers) in zip(rankeds, families, strict=True):
        if own == family:
            group.add(ranked, numbers)
    return group


def concerned(group, bounds, column):
    """Ask every subscription."""
    measures = np.empty(group.slots)
    kernels.measures_of_subscriptions(group.scores, column, 0, 0, group.slots, measures)
    return {slot for slot in range(group.slots) if measures[slot] <= bounds[slot]}


@pytest.fixture(autouse=True, scope="module")
def _infinities_are_no_news():
    with np.errstate(all="ignore"):  # loops that are not compiled would warn of them
        yield


finite = st.floats(-2, 2)
rows = st.lists(st.tuples(finite, finite, weights, weights), min_size=1, max_size=40)
points = st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=8)


@pytest.mark.parametrize("index_type", INDEXES.values(), ids=list(INDEXES))
@pytest.mark.parametrize("make", [euclidean, linear, geographic])
@settings(max_examples=40)
@given(rows=rows, points=points, sample=points, data=st.data())
def test_every_index_finds_what_asking_every_subscription_finds(index_type, make, rows, points, sample, data):
    group = group_of(make, rows)
    known = np.full(group.numbers.shape[1], -math.inf)
    draw = st.lists(bounds, min_size=group.slots, max_size=group.slots)
    known[: group.slots] = data.draw(draw)
    columns = []
    for x, y in sample + points:
        column = np.full((group.coordinate_rows, 1), math.nan)
        group.read({"x": float(x), "y": float(y)}, column, 0)
        columns.append(column)
    if data.draw(st.booleans()) and len(group) > 1:
        group.remove(0)
        known[0] = -math.inf
    index = index_type(group, known, np.concatenate(columns[: len(sample)], axis=1))
    for column in columns:
        assert concerned(group, known, column) <= set(index.near(column, 0, known).tolist())
    # Regions move: those that grow are known at once.
    moved = known.copy()
    moved[: group.slots] = data.draw(draw)
    moved[np.isnan(group.numbers[0])] = -math.inf
    index.grown(np.arange(group.slots), moved)
    for column in columns:
        assert concerned(group, moved, column) <= set(index.near(column, 0, moved).tolist())


def test_an_index_leaves_most_subscriptions_alone():
    chance = np.random.default_rng(1)
    group = group_of(euclidean, [(x, y, 1.0, 1.0) for x, y in chance.random((400, 2)).tolist()])
    known = np.full(group.numbers.shape[1], -math.inf)
    known[: group.slots] = 0.05**2
    sample = chance.random((2, 100))
    for name in ("grid", "tree"):
        index = INDEXES[name](group, known, sample)
        asked = np.mean([len(index.near(sample, place, known)) for place in range(100)])
        assert asked < 0.2 * group.slots, name


def test_far_distances_and_scores_without_a_form_have_columns_only():
    farthest = Ranked("euclidean(array(x, y), array(1, 2))", 1, "1 HOUR", order="DESC")
    for ranked in (farthest, Ranked("abs(x)", 1, "1 HOUR")):
        family, numbers = recognised(ranked.score, ranked.is_ascending)
        group = Group(family)
        group.add(ranked, numbers)
        assert [name for name, index in INDEXES.items() if index.takes(group)] == ["columns"]


def test_the_fastest_index_is_found_by_measuring():
    chance = np.random.default_rng(2)
    group = group_of(euclidean, [(x, y, 1.0, 1.0) for x, y in chance.random((500, 2)).tolist()])
    known = np.full(group.numbers.shape[1], 1e-4)
    asked = []
    index, times_us = fastest(
        group, known, chance.random((2, 32)), lambda index, place: asked.append((index.name, place)), 32
    )
    assert set(times_us) == set(INDEXES)
    assert times_us[index.name] == min(times_us.values())
    assert {place for _, place in asked} == set(range(16, 32))


def test_many_subscriptions_and_many_events_are_told_the_same_with_every_index():
    chance = np.random.default_rng(3)
    centres = chance.random((100, 3)).tolist()
    processors = [TopK("strict"), *(TopK("block", index=name) for name in INDEXES)]
    for processor in processors:
        processor.add_many(
            {
                f"s{place}": Ranked(f"euclidean(array(x, y, z), array({x}D, {y}D, {z}D))", 3, "100 EVENTS")
                for place, (x, y, z) in enumerate(centres)
            }
        )
    for at, (x, y, z) in enumerate(chance.random((600, 3)).tolist()):
        answers = [processor.process({"x": x, "y": y, "z": z}, float(at), at) for processor in processors]
        assert all(answer == answers[0] for answer in answers)
