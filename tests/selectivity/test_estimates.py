"""Estimates bound what is counted, and reproduce the numbers of the literature."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Compare, Literal
from tamis.selectivity import Estimate, Sample, estimate
from tamis.selectivity.estimates import exactly, of_all, of_any, of_at_least, opposite
from tests.strategies import conditions, conditions_over, events

SHARES = {"p1": 0.015, "p2": 0.002, "p3": 0.16, "p4": 0.15, "p5": 0.011, "p6": 0.87, "p7": 0.011}
shares = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]) | st.floats(0, 1), min_size=1, max_size=5)


def share(predicate):
    return SHARES[str(predicate.left)]


def test_the_worked_example_of_the_literature_is_reproduced():
    found = estimate(tamis.parse("(p1 OR p2) AND (p3 AND (p6 OR p7) OR p4 AND p5)"), share)
    assert found == pytest.approx((0, 0.00239, 0.017), abs=1e-6)


@given(
    condition=conditions_over(st.sampled_from("abcd").map(lambda name: Compare("=", Attribute((name,)), Literal(1))))
)
def test_what_is_counted_lies_between_the_least_and_the_most(condition):
    sample = [dict(zip("abcd", chosen, strict=True)) for chosen in product((1, 2, None), repeat=4)][::7]
    found = estimate(condition, Sample(sample).share)
    counted = sum(tamis.holds(condition, event) for event in sample) / len(sample)
    assert found.least - 1e-9 <= counted <= found.most + 1e-9
    assert -1e-9 <= found.least <= found.average + 1e-9 and found.average <= found.most + 1e-9 <= 1 + 2e-9


@given(condition=conditions, some_events=st.lists(events(), min_size=1, max_size=8))
def test_the_bounds_hold_whatever_the_events(condition, some_events):
    found = estimate(condition, Sample(some_events).share)
    counted = sum(tamis.holds(condition, event) for event in some_events) / len(some_events)
    assert found.least - 1e-9 <= counted <= found.most + 1e-9


@given(given_shares=shares)
def test_all_and_any_are_the_extremes_of_at_least(given_shares):
    parts = [exactly(each) for each in given_shares]
    assert of_at_least(len(parts), parts) == pytest.approx(of_all(parts), abs=1e-9)
    assert of_at_least(1, parts) == pytest.approx(of_any(parts), abs=1e-9)
    assert of_at_least(0, parts) == (1, 1, 1) and of_at_least(len(parts) + 1, parts) == (0, 0, 0)


@given(given_shares=shares, count=st.integers(0, 5))
def test_the_average_of_at_least_is_that_of_independent_predicates(given_shares, count):
    expected = 0.0
    for chosen in product((True, False), repeat=len(given_shares)):
        if sum(chosen) >= count:
            weight = 1.0
            for is_true, each in zip(chosen, given_shares, strict=True):
                weight *= each if is_true else 1 - each
            expected += weight
    assert of_at_least(count, [exactly(each) for each in given_shares]).average == pytest.approx(expected, abs=1e-9)


def test_the_opposite_swaps_the_bounds():
    assert opposite(Estimate(0.25, 0.5, 1.0)) == (0.0, 0.5, 0.75)


def test_constants_hold_always_or_never():
    assert [estimate(tamis.parse(text), share).average for text in ("TRUE", "FALSE", "NULL", "NOT NULL")] == [
        1,
        0,
        0,
        0,
    ]


def test_an_expression_of_any_depth_is_estimated():
    deep = tamis.parse("p1 = TRUE")
    for _ in range(3_000):
        deep = (deep | tamis.parse("p2 = TRUE")) & tamis.parse("p3 = TRUE")
    assert 0 <= estimate(deep, share).average <= 1
