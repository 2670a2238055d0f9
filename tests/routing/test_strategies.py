"""What a summary tells is what its definition says, whatever came and went before."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import Goal
from tamis.relations import covers_by_set, identical
from tamis.routing import (
    STRATEGIES,
    BudgetOfImperfectionError,
    Covering,
    Flooding,
    Identity,
    ImperfectMerging,
    Merging,
    Pruned,
    Simple,
    comparisons,
    coverage,
)
from tests.strategies import conditions, events

VALUES = range(5)
UNKNOWN = [
    "x = 1 AND length(s) = 1",
    "x = 1 AND (length(s) = 1 OR length(s) = 1 AND y = 2)",
    "x = 1 OR x = 1 AND length(s) = 0",
]
"""Filters whose projections are not known, though the first two match the same, and the last the same as x = 1."""
TEXTS = st.one_of(
    st.builds("x = {}".format, st.integers(0, 4)),
    st.builds("x < {}".format, st.integers(0, 4)),
    st.builds("x = {} AND y = {}".format, st.integers(0, 3), st.integers(0, 3)),
    st.builds("x BETWEEN {} AND {} AND y > {}".format, st.integers(0, 2), st.integers(1, 4), st.integers(0, 3)),
    st.builds("x = {} OR y = {}".format, st.integers(0, 3), st.integers(0, 3)),
    st.sampled_from(UNKNOWN),
    st.sampled_from(["TRUE", "FALSE", "x IS NULL", "NOT x = 1", "x > 3 AND x < 2", "x IN (0, 1)", "x = 0 OR x = 1"]),
)
FILTERS = TEXTS.map(tamis.parse)
STEPS = st.lists(st.tuples(st.integers(0, 5), FILTERS), max_size=14)
WORLD = [{"x": x, "y": y} for x in [*VALUES, None] for y in [*VALUES, None]]


def fed(summary, steps):
    """Add a source's filter, or remove it if it is there; follow what the neighbour would know."""
    wanted, known = {}, {entry.key: entry.filter for entry in summary.changes().added}
    for source, expression in steps:
        if source in wanted:
            del wanted[source]
            summary.remove(source)
        else:
            wanted[source] = expression
            summary.add(source, expression)
        changes = summary.changes()
        known |= {entry.key: entry.filter for entry in changes.added}
        for key in changes.removed:
            del known[key]  # a key that the neighbour does not know would fail here
        assert known == {entry.key: entry.filter for entry in summary.entries}
    return wanted, list(known.values())


def matched(filters):
    return [any(tamis.holds(each, event) for each in filters) for event in WORLD]


@pytest.mark.parametrize("name", STRATEGIES)
@given(steps=STEPS)
@settings(max_examples=60)
def test_every_summary_covers_every_filter_and_a_perfect_one_matches_nothing_else(name, steps):
    strategy = STRATEGIES[name]()
    wanted, known = fed(strategy.summary(), steps)
    needed, told = matched(wanted.values()), matched(known)
    assert all(not need or tell for need, tell in zip(needed, told, strict=True))
    if strategy.is_perfect:
        assert told == needed


@pytest.mark.parametrize("name", ["flooding", "simple", "identity", "covering"])
@given(steps=STEPS)
@settings(max_examples=60)
def test_a_summary_tells_what_the_definition_tells_whatever_came_and_went(name, steps):
    strategy = STRATEGIES[name]()
    wanted, known = fed(strategy.summary(), steps)
    defined = strategy.told(wanted.values())
    assert len(known) == len(defined)
    for each in defined:
        assert any(identical(each, other) for other in known)


@given(steps=STEPS)
@settings(max_examples=60)
def test_merging_tells_no_more_filters_than_covering_and_the_same_events(steps):
    wanted, known = fed(Merging().summary(), steps)
    assert len(known) <= max(1, len(Covering().told(wanted.values())))
    assert matched(known) == matched(Merging().told(wanted.values()))


@pytest.mark.parametrize("name", STRATEGIES)
@given(steps=st.lists(st.tuples(st.integers(0, 3), conditions), max_size=6), event=events())
@settings(max_examples=25)
def test_no_strategy_loses_an_event_of_ugly_filters(name, steps, event):
    wanted, known = fed(STRATEGIES[name]().summary(), steps)
    if any(tamis.holds(each, event) for each in wanted.values()):
        assert any(tamis.holds(each, event) for each in known)


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "flooding"])
@given(steps=STEPS)
@settings(max_examples=30)
def test_when_the_last_filter_leaves_nothing_is_told_any_more(name, steps):
    summary = STRATEGIES[name]().summary()
    wanted, _ = fed(summary, steps)
    for source in wanted:
        summary.remove(source)
    assert len(summary) == 0 and summary.entries == ()


def test_the_index_of_many_filters_tells_what_pairs_tell(monkeypatch):
    filters = [
        tamis.parse(f"x BETWEEN {a} AND {b} AND y = {c}")
        for a, b, c in itertools.product(range(4), range(2, 6), range(4))
    ]
    steps = [(number, each) for number, each in enumerate(filters)] + [
        (number, filters[number]) for number in range(0, 64, 3)
    ]
    _, by_pairs = fed(Covering().summary(), steps)
    monkeypatch.setattr(coverage, "_COMPARED_PAIRWISE", 2)
    monkeypatch.setattr(comparisons, "_COMPARED_PAIRWISE", 2)
    _, by_index = fed(Covering().summary(), steps)
    assert sorted(map(str, by_index)) == sorted(map(str, by_pairs)) and len(by_index) > 3


def test_an_identical_filter_takes_over_without_a_word():
    summary = Covering().summary()
    summary.add(1, tamis.parse("x = 0 OR x = 1"))
    summary.add(2, tamis.parse("x IN (0, 1)"))
    summary.changes()
    summary.remove(1)
    assert not summary.changes()


SAME = ["x = 1", "x = 1 AND y = 2 OR x = 1 AND (y <> 2 OR y IS NULL) OR x = 1", "x = 1 AND (y = 3 OR x = 1)"]


def test_a_filter_of_unknown_projections_is_told_once_with_all_that_match_the_same():
    texts = [*UNKNOWN, "x = 1"]
    for order in itertools.permutations(range(4)):
        summary = Identity().summary()
        for number in order:
            summary.add(number, tamis.parse(texts[number]))
        assert len(summary) == 2
        for number in order:
            summary.remove(number)
        assert len(summary) == 0


@pytest.mark.parametrize("few", [32, 1], ids=["pairs", "index"])
def test_filters_that_are_proven_identical_are_told_once_in_whatever_order_they_come_and_go(few, monkeypatch):
    monkeypatch.setattr(coverage, "_COMPARED_PAIRWISE", few)
    monkeypatch.setattr(comparisons, "_COMPARED_PAIRWISE", few)
    for order in itertools.permutations(range(3)):
        summary = Identity().summary()
        others = [f"x = 1 AND z > {number} OR y = {number}" for number in range(3)]
        for number, text in enumerate(others):
            summary.add(f"other {number}", tamis.parse(text))
        for source in order:
            summary.add(source, tamis.parse(SAME[source]))
        assert len(summary) == 4 == len(Identity().told(map(tamis.parse, [*others, *SAME])))
        summary.changes()
        for source in order[:2]:
            summary.remove(source)
            assert not summary.changes(), "somebody still wants the same"
        summary.remove(order[2])
        assert len(summary.changes().removed) == 1
        for number in range(3):
            summary.remove(f"other {number}")
        assert len(summary) == 0


def test_identity_uses_what_the_schema_says():
    schema = tamis.Schema({"x": "int", "y": "double"}, mandatory=["y"])
    texts = ["x >= 5", "x > 4 AND y IS NOT NULL", "x > 4 AND (y < 1 OR y >= 1)", "x > 4 AND (x > 5 OR x = 5 OR y = 0)"]
    assert len(Identity(schema).told(map(tamis.parse, texts))) == 1
    assert len(fed(Identity(schema).summary(), list(enumerate(map(tamis.parse, texts))))[1]) == 1
    assert len(Identity().told(map(tamis.parse, texts))) == 4


def test_what_a_broad_filter_covered_comes_up_in_the_same_message():
    summary = Covering().summary()
    for source, text in enumerate(["x > 0", "x > 5", "x > 7", "x > 1 AND y = 2"]):
        summary.add(source, tamis.parse(text))
    summary.changes()
    summary.remove(0)
    changes = summary.changes()
    assert sorted(str(entry.filter) for entry in changes.added) == ["x > 1 AND y = 2", "x > 5"]
    assert changes.removed == (0,)


def test_a_merger_stays_as_long_as_what_remains_makes_the_same():
    summary = Merging().summary()
    for source, text in enumerate(["x < 5", "x >= 3", "x >= 4"]):
        summary.add(source, tamis.parse(text))
    (entry,) = summary.entries
    assert identical(entry.filter, "x < 5 OR x >= 3")
    summary.changes()
    summary.remove(1)
    assert not summary.changes()
    summary.remove(2)
    assert [str(each.filter) for each in summary.changes().added] == ["x < 5"]


def test_an_imperfect_merger_keeps_its_budget_and_covers_its_members():
    texts = ["x BETWEEN 0 AND 10 AND y = 1", "x BETWEEN 11 AND 20 AND y = 1", "x BETWEEN 0 AND 19 AND y = 2", "x = 900"]
    counts = []
    for budget in (0.001, 0.5):
        wanted, known = fed(ImperfectMerging(budget=budget).summary(), list(enumerate(map(tamis.parse, texts))))
        assert all(covers_by_set(known, each) for each in wanted.values())
        counts.append(len(known))
    assert counts[1] < counts[0] <= 3  # the first two make one without any imperfection


@pytest.mark.parametrize("budget", [0, 1, -0.1, float("nan")])
def test_a_budget_that_is_no_share_is_refused(budget):
    with pytest.raises(BudgetOfImperfectionError, match="a share above 0 and below 1"):
        ImperfectMerging(budget=budget)


@pytest.mark.parametrize("inner", [Simple(), Covering(), Flooding()], ids=lambda each: each.name)
@given(steps=STEPS)
@settings(max_examples=25)
def test_what_is_pruned_before_it_is_sent_loses_nothing_and_leaves_by_its_key(inner, steps):
    strategy = Pruned(inner, Goal(count=1), lambda _: 0.5)
    wanted, known = fed(strategy.summary(), steps)
    needed, told = matched(wanted.values()), matched(known)
    assert all(not need or tell for need, tell in zip(needed, told, strict=True))
    assert sorted(map(str, known)) == sorted(map(str, strategy.told(wanted.values()))) or inner.name == "covering"
