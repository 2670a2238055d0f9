"""What links share is a memory: every answer is that of comparing all pairs anew."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.relations import covers, identical
from tamis.relations.relations import covers_forms
from tamis.routing import Broker, Covering, Entry, Merging, Subscribe, comparisons, coverage, mergers
from tamis.routing.comparisons import Comparisons
from tamis.routing.coverage import Coverage
from tests.routing.test_strategies import FILTERS, fed, matched
from tests.strategies import conditions


@pytest.fixture(params=[32, 2], ids=["pairs", "index"], scope="module")
def few(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparisons, "_COMPARED_PAIRWISE", request.param)
        patch.setattr(coverage, "_COMPARED_PAIRWISE", request.param)
        patch.setattr(coverage, "_ENTERED_AT_ONCE", 1)  # so that some are in the pool, and some are not yet
        patch.setattr(comparisons, "_MOST_LISTED", request.param)
        yield


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.one_of(FILTERS, conditions)), max_size=16)


@given(steps=STEPS, asked=st.lists(FILTERS, min_size=1, max_size=3))
@settings(max_examples=30)
def test_links_that_share_comparisons_answer_as_if_each_compared_all_pairs(few, steps, asked):
    shared = Comparisons()
    links = [Coverage(shared) for _ in range(3)]
    known = [{} for _ in links]
    for step, (number, choice, expression) in enumerate(steps):
        key = next((key for key in known[number] if key % 4 == choice), 4 * step + choice)  # keys of a link only grow
        if key in known[number]:
            links[number].remove(key)
            del known[number][key]
        elif not any(identical(expression, other) for other in known[number].values()):
            links[number].add(key, shared.known(expression))
            known[number][key] = expression
        for link, filters in zip(links, known, strict=True):
            for each in asked:
                around = [key for key, other in filters.items() if covers(other, each)]
                assert link.covering(shared.known(each)) == min(around, default=None)
                inside = sorted(key for key, other in filters.items() if covers(each, other))
                assert sorted(link.covered_by(shared.known(each))) == inside


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
            link.add(key, shared.known(each))
    assert len(shared._told) == len(shared._index) == len(shared._by_formula) == 80
    for key in range(80):
        links[0].remove(key)
    assert len(shared._told) == 80, "the other link still tells them"
    links[1].clear()
    assert len(shared._told) == len(shared._index) == len(shared._with_lists) == shared._listed_count == 0
    gc.collect()
    assert len(shared._by_formula) == len(shared._by_expression) == 0


def test_filters_enter_the_pool_a_few_at_a_time_and_all_of_them_in_the_end(monkeypatch):
    monkeypatch.setattr(coverage, "_ENTERED_AT_ONCE", 1)
    shared = Comparisons()
    link = Coverage(shared, few=10)
    pooled = []
    for number in range(30):
        link.add(number, shared.known(tamis.parse(f"x = {number}")))
        pooled.append(len(shared._told))
    assert pooled == [0] * 10 + list(range(2, 22, 2)) + list(range(21, 31))
    assert [link.covering(shared.known(tamis.parse(f"x = {number}"))) for number in range(30)] == list(range(30))


def test_a_filter_that_is_told_finds_itself():
    shared = Comparisons()
    link = Coverage(shared)
    for number in range(40):
        link.add(number, shared.known(tamis.parse(f"x = {number}")))
    assert link.covering(shared.known(tamis.parse("x = 5"))) == 5
    assert link.covered_by(shared.known(tamis.parse("x = 5"))) == [5]


def test_merging_with_a_pool_tells_no_filter_twice(monkeypatch):
    monkeypatch.setattr(mergers, "_COMPARED_ONE_BY_ONE", 32)
    summary = Merging().summary()
    for number in range(40):
        summary.add(("pad", number), tamis.parse(f"u = {number} AND v{number} = 1"))
    for source, text in enumerate(["x >= 1 AND y = 2 OR x = 2", "x BETWEEN 2 AND 5", "x >= 1"]):
        summary.add(source, tamis.parse(text))
    summary.remove(2)
    summary.remove(1)
    assert sorted(str(entry.filter) for entry in summary.entries if "x" in str(entry.filter)) == [
        "x >= 1 AND y = 2 OR x = 2"
    ]


def test_the_memory_of_lists_is_bounded_and_counted(monkeypatch):
    monkeypatch.setattr(comparisons, "_MOST_LISTED", 100)
    shared = Comparisons()
    link = Coverage(shared)
    for number in range(60):
        link.add(number, shared.known(tamis.parse(f"x < {number} AND y = {number}")))
    asked = [shared.known(tamis.parse(f"y < {100 + number}")) for number in range(20)]
    for each in asked:
        assert len(link.covered_by(each)) == 60
    listed = sum(len(each.around or ()) + len(each.inside or ()) for each in shared._with_lists)
    assert shared._listed_count == listed <= 100


def test_what_was_compared_on_one_link_is_not_compared_on_the_next(monkeypatch):
    monkeypatch.setattr(comparisons, "_MOST_LISTED", 10_000)
    shared = Comparisons()
    links = [Coverage(shared) for _ in range(5)]
    for link in links:
        for number in range(60):
            link.add(number, shared.known(tamis.parse(f"x IN ({number}, {number + 1}) AND y < 9")))
    compared = []
    monkeypatch.setattr(comparisons, "covers_forms", lambda *forms: compared.append(forms) or covers_forms(*forms))
    narrow, broad = (shared.known(tamis.parse(text)) for text in ("x = 7 AND y < 5", "x > 40 AND y < 10"))
    counts = []
    for link in links:
        assert link.covering(narrow) == 6 and len(link.covered_by(broad)) == 19
        counts.append(len(compared))
    assert counts[0] > 0 and len(set(counts)) == 1


def test_a_link_that_is_gone_leaves_nothing_in_the_pool():
    strategy = Covering()
    broker = Broker("middle", strategy)
    for neighbour in ("north", "south"):
        broker.connect(neighbour, 0.0)
    entries = tuple(Entry(number, tamis.parse(f"x = {number}")) for number in range(80))
    broker.receive(Subscribe(entries), "north", 0.0)
    assert len(strategy.comparisons._told) == 80, "the south knows them"
    broker.disconnect("south", 1.0)
    assert not strategy.comparisons._told and not len(strategy.comparisons._index)
