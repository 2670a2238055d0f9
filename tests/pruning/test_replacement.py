"""Predicates are replaced by others that cover them, wherever they occur."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Compare, Literal
from tamis.language.rewrites.monotone import leaves_of, monotone
from tamis.pruning import GoalError, replace_predicates
from tamis.pruning import replacement as module
from tamis.relations import covers
from tamis.selectivity import Sample
from tests.strategies import conditions_over

limits = st.builds(
    lambda name, operator, value: Compare(operator, Attribute((name,)), Literal(value)),
    st.sampled_from("ab"), st.sampled_from(["<", "<=", ">", ">=", "="]), st.integers(0, 6),
)  # fmt: skip
SAMPLE = Sample([{"a": a, "b": b} for a in range(7) for b in range(0, 7, 2)])


def distinct(filters):
    return {leaf for each in filters for leaf in leaves_of(monotone(each))}


@pytest.mark.parametrize("few", [0, 300])
@given(filters=st.lists(conditions_over(limits, max_leaves=6), min_size=1, max_size=5), count=st.integers(0, 6))
@settings(max_examples=60)
def test_filters_cover_what_they_were_and_have_fewer_predicates(few, filters, count):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_COMPARED_PAIRWISE", few)
        found = replace_predicates(dict(enumerate(filters)), SAMPLE.share, count=count)
    assert len(found.replacements) <= count
    for number, each in enumerate(filters):
        assert covers(found.filters[number], each)
    for old, new in found.replacements.items():
        assert covers(new, old) and new not in found.replacements
    left = distinct(found.filters.values())
    assert left.isdisjoint(found.replacements)
    assert left <= distinct(filters) | {Literal(True), Literal(False)}


def test_the_least_loss_comes_first_and_a_threshold_ends_it():
    filters = {n: f"a < {n}" for n in (1, 2, 5, 6)} | {"or": "a < 1 OR b = 2"}
    found = replace_predicates(filters, lambda leaf: leaf.right.value / 10, threshold=0.15)
    assert {str(old): str(new) for old, new in found.replacements.items()} == {"a < 1": "a < 2", "a < 5": "a < 6"}
    assert str(found.filters["or"]) == "a < 2 OR b = 2"  # an OR of leaves, which no pruning can generalise


def test_the_loss_of_a_chain_counts_from_its_beginning():
    filters = {n: f"a < {n}" for n in (1, 2, 3)}
    found = replace_predicates(filters, lambda leaf: leaf.right.value / 10, threshold=0.1)
    assert len(found.replacements) == 1  # one step of 0.1 each is allowed, both together are not
    found = replace_predicates(filters, lambda leaf: leaf.right.value / 10, threshold=0.2)
    assert {str(each) for each in found.filters.values()} == {"a < 3"}


def test_what_local_filters_use_stays():
    found = replace_predicates({1: "a < 1", 2: "a < 2"}, lambda _: 0.5, local=["a < 1", "a < 9"], count=9)
    assert {str(old): str(new) for old, new in found.replacements.items()} == {"a < 2": "a < 9"}


def test_a_goal_is_needed():
    with pytest.raises(GoalError):
        replace_predicates({}, lambda _: 0.5)
    assert replace_predicates({}, lambda _: 0.5, count=1).filters == {}
    assert isinstance(tamis.parse("a < 1"), Compare)
