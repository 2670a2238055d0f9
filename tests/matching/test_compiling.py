"""Nothing is open after `compile`, whatever came before, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching import Matcher
from tamis.matching.algorithms import ALGORITHMS
from tests.strategies import conditions, events

steps = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove", "compile", "match", "batch"]), st.integers(0, 9)), max_size=30
)


@given(steps=steps, wanted=st.lists(conditions, min_size=10, max_size=10), event=events())
@settings(max_examples=100, deadline=None)
def test_who_compiles_at_any_moment_matches_what_the_definition_matches_and_leaves_nothing_open(steps, wanted, event):
    matcher, present = Matcher(), {}
    for what, number in steps:
        if what == "add" and number not in present:
            matcher.add(number, wanted[number])
            present[number] = wanted[number]
        elif what == "remove" and number in present:
            matcher.remove(number)
            del present[number]
        elif what == "compile":
            was_open = matcher.statistics()["open"] > 0
            assert matcher.compile() is was_open
            assert matcher.statistics()["open"] == 0 and matcher.compile() is False
        elif what == "match":
            matcher.match(event)
        elif what == "batch":
            matcher.match_batch([event] * 3)
    expected = [number for number, each in present.items() if tamis.holds(each, event)]
    assert matcher.match(event) == expected
    matcher.compile()
    assert matcher.match(event) == expected
    assert matcher.list_batch([event] * 40).to_pylist() == [expected] * 40


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_can_be_told_to_compile(algorithm):
    matcher = Matcher(algorithm)
    assert matcher.compile() is False
    matcher.add("cheap", "price < 20 AND sold = TRUE")
    is_lazy = algorithm in ("block", "boolean", "counting", "cluster", "gryphon", "counting-sliced", "cluster-several")
    assert matcher.compile() is is_lazy and matcher.compile() is False
    assert matcher.match({"price": 5, "sold": True}) == ["cheap"]
    matcher.remove("cheap")
    matcher.compile()
    assert matcher.compile() is False and matcher.match({"price": 5, "sold": True}) == []


def test_what_is_compiled_again_and_again_stays_in_few_segments():
    matcher = Matcher()
    matcher.add_many({number: f"a = {number}" for number in range(1_000)})
    matcher.compile()
    for number in range(1_000, 1_200):
        matcher.add(number, f"a = {number}")
        assert matcher.compile() is True
    assert len(matcher.statistics()["segments"]) <= 5 and sum(matcher.statistics()["segments"]) == 1_200
    matcher._engine.settle()
    assert [matcher.match({"a": number}) for number in (5, 1_003, 1_199)] == [[5], [1_003], [1_199]]


def test_what_the_background_is_compiling_is_compiled_once(monkeypatch):
    matcher = Matcher()
    matcher.add_many({number: f"a > {number}" for number in range(100)})
    matcher.match({"a": 1})
    for number in range(100, 130):  # more than an event should ask, so a thread begins
        matcher.add(number, f"a > {number}")
        matcher.match({"a": 1_000})
    matcher.compile()
    matcher._engine.settle()
    assert matcher.statistics()["open"] == 0 and sum(matcher.statistics()["segments"]) == 130
    assert matcher.match({"a": 1_000}) == list(range(130))


def test_open_count_is_what_statistics_say_is_open():
    matcher = tamis.Matcher()
    for number in range(3):
        matcher.add(number, f"a = {number} OR b > {number}")
        assert matcher.open_count == matcher.statistics()["open"]
    matcher.compile()
    assert matcher.open_count == matcher.statistics()["open"] == 0
    assert tamis.Matcher("naive").open_count == 0
