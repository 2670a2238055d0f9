"""Any filters become one, as imperfect as somebody allows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import Goal, GoalError, merge_by_pruning
from tamis.relations import NoFiltersError, covers
from tests.pruning.test_sequencing import filters, share

EVENTS = [{"a": a, "b": b} for a in range(10) for b in range(10)]


@given(members=st.lists(filters, min_size=1, max_size=4), part=st.sampled_from([0, 0.5, 1]))
@settings(max_examples=80)
def test_a_merger_covers_its_members(members, part):
    merger = merge_by_pruning(members, share, Goal(share=part))
    assert merger.members == tuple(range(len(members))) and 0 <= merger.imperfection <= 1
    for each in members:
        assert covers(merger.expression, each)
    assert part > 0 or (merger.perfect and merger.imperfection == 0)


@pytest.mark.parametrize("budget", [0.0, 0.3, 0.6, 1.0])
def test_a_budget_of_imperfection_is_kept(budget):
    members = ["a = 1 AND b < 8", "a = 2 AND b < 7", "a = 1 AND b > 3 AND b < 9"]
    from tamis.selectivity import Sample

    merger = merge_by_pruning(members, Sample(EVENTS).share, budget=budget, events=EVENTS)
    matched = [event for event in EVENTS if tamis.holds(merger.expression, event)]
    unwanted = [event for event in matched if not any(tamis.holds(tamis.parse(each), event) for each in members)]
    assert len(unwanted) <= budget * len(matched)
    assert merger.imperfection == pytest.approx(len(unwanted) / len(matched))
    assert merger.perfect is (not unwanted) or budget == 0


def test_more_budget_makes_smaller_mergers():
    from tamis.language.rewrites.monotone import leaf_count
    from tamis.pruning.trees import pruning_form

    members = [f"a = {n} AND b < {n + 3} AND c IS NULL" for n in range(5)]
    sizes = [
        leaf_count(pruning_form(merge_by_pruning(members, lambda _: 0.5, budget=budget, events=EVENTS).expression))
        for budget in (0.0, 0.2, 0.5, 0.9)
    ]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]


def test_a_merger_needs_filters_and_one_goal():
    with pytest.raises(NoFiltersError):
        merge_by_pruning([], share, Goal(count=1))
    for goals in ({}, {"goal": Goal(count=1), "budget": 0.5}):
        with pytest.raises(GoalError):
            merge_by_pruning(["a = 1"], share, **goals)
