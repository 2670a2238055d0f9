"""Scores of many subscriptions at once, and the loops behind them, each with its plain twin."""

from __future__ import annotations

import datetime as dt
import math
from bisect import insort
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.relations.families import recognised
from tamis.topk import Ranked, kernels
from tamis.topk.base import Candidate
from tamis.topk.block import kernels as ranking
from tamis.topk.block import tables
from tamis.topk.kernels import Edges
from tamis.topk.relaxed import undominated
from tamis.topk.scores import as_score, key
from tamis.topk.scoring import TWO, Group
from tests.topk.streams import events, ranked_subscriptions


@given(rankeds=st.lists(ranked_subscriptions, min_size=1, max_size=6), some=st.lists(events(), min_size=1, max_size=6))
def test_keys_of_many_subscriptions_are_those_of_the_definition_bit_for_bit(rankeds, some):
    groups = {}
    places = []
    for ranked in rankeds:
        family, numbers = recognised(ranked.score, ranked.is_ascending)
        group = groups.setdefault(family, Group(family))
        places.append((group, group.add(ranked, numbers)))
    for event in some:
        for ranked, (group, slot) in zip(rankeds, places, strict=True):
            expected, found = key(ranked, event), float(group.keys(event)[slot])
            assert (found == expected and math.copysign(1, found) == math.copysign(1, expected or found)) or (
                math.isnan(found) and math.isnan(expected)
            )


@given(rankeds=st.lists(ranked_subscriptions, min_size=1, max_size=4), some=st.lists(events(), min_size=2, max_size=6))
def test_no_event_with_a_key_as_small_has_a_measure_beyond_the_bound(rankeds, some):
    for ranked in rankeds:
        family, numbers = recognised(ranked.score, ranked.is_ascending)
        group = Group(family)
        group.add(ranked, numbers)
        measured = []
        for event in some:
            column = np.full((group.coordinate_rows, 1), math.nan)
            group.read(event, column, 0)
            measure = np.empty(1)
            kernels.measures_of_subscriptions(group.scores, column, 0, 0, 1, measure)
            measured.append((key(ranked, event), float(measure[0])))
        keys = np.array([each for each, _ in measured if each == each])
        bounds = np.empty(len(keys))
        kernels.measure_bounds(group.scores, keys, bounds)
        for limit, bound in zip(keys.tolist(), bounds.tolist(), strict=True):
            for found, measure in measured:
                assert not found <= limit or measure <= bound


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (3, 3.0),
        (Decimal("0.1"), 0.1),
        (2**60 + 1, float(2**60)),
        (math.inf, math.inf),
        (dt.date(1970, 1, 2), 86_400e6),
        (dt.datetime(1970, 1, 1, 0, 0, 1), 1e6),
        (True, math.nan),
        ("3", math.nan),
        (None, math.nan),
        (math.nan, math.nan),
        ([1], math.nan),
    ],
)
def test_numbers_and_times_are_scores_and_nothing_else(value, score):
    assert as_score(value) == score or (math.isnan(score) and math.isnan(as_score(value)))


def test_scores_of_one_form_are_one_family():
    near = [Ranked(f"euclidean(array(x, y), array({place}, 2))", 1, "1 HOUR") for place in range(3)]
    assert len({recognised(ranked.score, ranked.is_ascending)[0] for ranked in near}) == 1
    kinds = {
        "euclidean(p, array(1, 2, 3))": "euclidean",
        "distance(lat, lon, 45.8, 15.97)": "geographic",
        "0.3 * price + 2 * bids - 7": "linear",
        "price": "shared",
        "greatest(abs(x - 1), 0.5 * abs(y - 2))": "box",
        "abs(x - 1) + abs(y - 2) * 3": "city",
        "cosine(array(x, y), array(1, 2))": "cosine",
        "cosine(p, array(1, 2))": "cosine",
        "greatest(abs(x - 1), abs(x - 2))": "shared",  # twice the same attribute
        "greatest(abs(x - 1), y)": "shared",
        "abs(x - 1) + (abs(y - 2) + abs(z - 3))": "shared",  # added up in another order
        "2 * (3 * abs(x - 1)) + abs(y - 2)": "shared",  # multiplied in another order
        "cosine(array(x, y), array(z, 2))": "shared",
        "price / bids": "shared",
        "a + (2 * b + c)": "shared",  # added up in another order
        "euclidean(array(x, y), array(z, 2))": "shared",
    }
    assert {text: recognised(Ranked(text, 1, "1 HOUR").score)[0].kind for text in kinds} == kinds


# -- Loops and their twins

ranked_items = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 100)), unique_by=lambda each: each[1], max_size=30)


def ranking_of(items, room):
    candidates = tables.candidates(room)
    candidates.keys[: len(items)] = [key for key, _ in items]
    candidates.numbers[: len(items)] = [-age for _, age in items]
    return candidates


@given(items=ranked_items, new=st.integers(0, 5))
def test_an_event_is_inserted_at_its_rank(items, new):
    ordered = sorted((float(key), -member) for key, member in items)
    candidates = ranking_of(ordered, len(items) + 1)
    assert ranking._inserted(candidates, len(items), float(new), 1_000, 7.0, True) == len(items) + 1
    insort(ordered, (float(new), -1_000))
    assert list(zip(candidates.keys.tolist(), (-candidates.numbers).tolist(), strict=True)) == ordered


@given(items=ranked_items, k=st.integers(1, 6))
def test_the_dominated_are_pruned_as_relaxed_pruning_does(items, k):
    ordered = sorted((float(key), -member) for key, member in items)
    candidates = ranking_of(ordered, len(items) + 1)
    size = ranking._pruned(candidates, len(items), k, np.zeros(k, np.int64))
    expected = undominated([Candidate(key, age, 0.0) for key, age in ordered], k)
    assert candidates.numbers[:size].tolist() == [each.number for each in expected]


@given(keys=st.lists(st.integers(0, 8), max_size=400))
def test_what_waits_is_sorted_by_key_and_the_younger_first(keys):
    sorted_keys, places = np.array(keys, float), np.arange(len(keys))
    ranking._sort(sorted_keys, places, len(keys))
    expected = sorted(range(len(keys)), key=lambda place: (keys[place], -place))
    assert places.tolist() == expected
    assert sorted_keys.tolist() == [keys[place] for place in expected]


@given(
    dues=st.lists(st.one_of(st.floats(0, 9), st.just(math.inf)), max_size=20),
    time=st.floats(0, 9),
    position=st.integers(0, 9),
    data=st.data(),
)
def test_due_slots_are_those_that_something_leaves(dues, time, position, data):
    is_timed = data.draw(st.lists(st.booleans(), min_size=len(dues), max_size=len(dues)))
    ends = [due if timed else float(math.floor(min(due, 1e9))) for due, timed in zip(dues, is_timed, strict=True)]
    found = np.zeros(len(dues), np.int64)
    edges = Edges(np.zeros(len(ends)), np.array(ends), np.array(is_timed, bool))
    count, soonest = ranking.due_slots(edges, len(ends), time, float(position), found)
    pairs = list(enumerate(zip(ends, is_timed, strict=True)))
    assert found[:count].tolist() == [
        slot for slot, (end, timed) in pairs if (end < time if timed else end <= position)
    ]
    assert soonest == min((end for _, (end, timed) in pairs if timed and end >= time), default=math.inf)


def test_two_is_two():
    assert TWO == 2.0  # a variable, so that the power stays a call
