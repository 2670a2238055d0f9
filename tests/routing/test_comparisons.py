"""What links share is a memory: every answer is that of comparing all pairs anew."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.relations import covers
from tamis.routing import Covering, Merging, comparisons, coverage
from tamis.routing.comparisons import Comparisons
from tamis.routing.coverage import Coverage
from tests.routing.test_strategies import FILTERS, fed, matched
from tests.strategies import conditions


@pytest.fixture(params=[32, 2], ids=["pairs", "index"], scope="module")
def few(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparisons, "_FEW", request.param)
        patch.setattr(coverage, "_FEW", request.param)
        patch.setattr(comparisons, "_ANSWERS", 3)
        yield


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.one_of(FILTERS, conditions)), max_size=16)


@given(steps=STEPS, asked=st.lists(FILTERS, min_size=1, max_size=3))
@settings(max_examples=30)
def test_links_that_share_comparisons_answer_as_if_each_compared_all_pairs(few, steps, asked):
    shared = Comparisons()
    links = [Coverage(shared) for _ in range(3)]
    known = [{} for _ in links]
    for number, key, expression in steps:
        if key in known[number]:
            links[number].remove(key)
            del known[number][key]
        elif expression not in known[number].values():
            links[number].add(key, expression)
            known[number][key] = expression
        for link, filters in zip(links, known, strict=True):
            for each in asked:
                around = [key for key, other in filters.items() if covers(other, each)]
                assert link.covering(each) in (around or [None])
                assert sorted(link.covered_by(each)) == sorted(k for k, other in filters.items() if covers(each, other))


@pytest.mark.parametrize("strategy_type", [Covering, Merging])
@given(steps=st.lists(st.tuples(st.integers(0, 5), FILTERS), max_size=14), others=st.lists(FILTERS, max_size=6))
@settings(max_examples=25)
def test_what_other_links_saw_does_not_change_what_one_link_tells(few, strategy_type, steps, others):
    shared = strategy_type()
    beside = shared.summary()
    for number, each in enumerate(others):
        beside.add(number, each)
    _, together = fed(shared.summary(), steps)
    _, alone = fed(strategy_type().summary(), steps)
    assert together == alone
    assert matched(beside._entries.values()) == matched(others)


def test_a_pool_forgets_filters_that_nobody_is_told_any_more():
    shared = Comparisons()
    filters = [tamis.parse(f"x = {number}") for number in range(80)]
    links = [Coverage(shared) for _ in range(2)]
    for link in links:
        for key, each in enumerate(filters):
            link.add(key, each)
    assert len(shared._told) == len(shared._index) == 80
    for key in range(80):
        links[0].remove(key)
    assert len(shared._told) == 80, "the other link still tells them"
    for key in range(80):
        links[1].remove(key)
    assert len(shared._told) == len(shared._index) == len(shared._numbers) == 0


def test_the_memory_of_answers_is_bounded(monkeypatch):
    monkeypatch.setattr(comparisons, "_MEMBERS", 100)
    shared = Comparisons()
    link = Coverage(shared)
    for number in range(60):
        link.add(number, tamis.parse(f"x < {number} AND y = {number}"))
    for number in range(20):
        assert len(link.covered_by(tamis.parse(f"y < {100 + number}"))) == 60
    assert shared._inside._member_count == sum(len(each) for each, _ in shared._inside._answers.values()) <= 100
