"""Which prunings are valid, and what the tree looks like afterwards."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import BudgetError
from tamis.language.expressions import And, AtLeast, Attribute, Compare, Literal, Or
from tamis.language.measures import least_hits
from tamis.language.rewrites.monotone import leaves_of
from tamis.pruning.trees import (
    is_prunable,
    leaf_count,
    memory_bytes,
    options,
    pruning_form,
    without,
)
from tamis.relations import covers
from tests.pruning.classes import CLASSES, S3
from tests.strategies import conditions, conditions_over, events

small = conditions_over(
    st.builds(
        lambda name, value: Compare("=", Attribute((name,)), Literal(value)), st.sampled_from("abcd"), st.integers(0, 1)
    )
)


@pytest.mark.parametrize("name", CLASSES)
def test_the_classes_of_the_literature_have_the_printed_figures(name):
    text, leaf, junctions, hits, memory, option = CLASSES[name]
    tree = pruning_form(text)
    assert (leaf_count(tree), least_hits(tree), memory_bytes(tree), len(options(tree))) == (leaf, hits, memory, option)
    assert memory == 5 * leaf + 2 * junctions


def test_the_six_options_of_the_literature_shrink_the_tree_as_printed():
    found = {str(option.branch).replace(" = TRUE", ""): option.tree for option in options(pruning_form(S3))}
    drops = ["p1 OR p2", "p3 AND (p6 OR p7) OR p4 AND p5", "p6 OR p7", "p3", "p4", "p5"]  # in the literature's order
    assert [memory_bytes(found[each]) for each in drops] == [33, 12, 33, 38, 40, 40]
    assert [least_hits(found[each]) for each in drops] == [2, 1, 2, 2, 2, 2]


def test_by_memory_only_what_has_no_pruning_inside_may_go():
    branches = {str(option.branch).replace(" = TRUE", "") for option in options(pruning_form(S3), "innermost")}
    assert branches == {"p1 OR p2", "p6 OR p7", "p3", "p4", "p5"}
    lowest = {str(option.branch).replace(" = TRUE", "") for option in options(pruning_form(S3), "lowest")}
    assert lowest == {"p6 OR p7", "p3", "p4", "p5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", []),
        ("a = 1 OR b = 2", []),
        ("TRUE", []),
        ("a = NULL AND b = 1", []),
        ("a = 1 AND b = 2", ["b = 2", "a = 1"]),
        ("a = 1 OR b = 2 AND c = 3", ["a = 1 OR c = 3", "a = 1 OR b = 2"]),
        ("a = 1 AND (b = 2 OR (c = 3 AND (d = 4 OR e = 5)))",
         ["b = 2 OR c = 3 AND (d = 4 OR e = 5)", "a = 1", "a = 1 AND (b = 2 OR d = 4 OR e = 5)", "a = 1 AND (b = 2 OR c = 3)"]),
        ("at_least(2, a = 1, b = 2, c = 3)", ["b = 2 OR c = 3", "a = 1 OR c = 3", "a = 1 OR b = 2"]),
        ("at_least(3, a = 1, b = 2, c = 3, d = 4)",
         [f"at_least(2, {rest})" for rest in ("b = 2, c = 3, d = 4", "a = 1, c = 3, d = 4", "a = 1, b = 2, d = 4", "a = 1, b = 2, c = 3")]),
        ("NOT (a = 1 OR contains(b, 'x'))", ["NOT contains(b, 'x')", "a <> 1"]),
    ],
)  # fmt: skip
def test_the_valid_prunings_are_the_operands_of_ands(text, expected):
    assert [option.tree for option in options(pruning_form(text))] == [pruning_form(each) for each in expected]


@given(condition=conditions, some_events=st.lists(events(), max_size=6))
@settings(max_examples=100)
def test_the_pruning_form_matches_what_the_filter_matches(condition, some_events):
    tree = pruning_form(condition)
    for event in some_events:
        assert tamis.holds(tree, event) is tamis.holds(condition, event)


@given(condition=conditions, some_events=st.lists(events(), max_size=6))
@settings(max_examples=100)
def test_whatever_matches_a_filter_matches_it_after_every_pruning(condition, some_events):
    tree = pruning_form(condition)
    for option in options(tree):
        assert memory_bytes(option.tree) < memory_bytes(tree) and leaf_count(option.tree) < leaf_count(tree)
        assert least_hits(option.tree) <= least_hits(tree)
        for event in some_events:
            assert tamis.holds(option.tree, event) or not tamis.holds(tree, event)


@given(condition=small)
@settings(max_examples=100)
def test_a_pruned_filter_covers_its_original_and_is_in_pruning_form(condition):
    tree = pruning_form(condition)
    for option in options(tree):
        assert covers(option.tree, tree)
        assert pruning_form(option.tree) == option.tree
        assert is_prunable(tree)
    assert is_prunable(tree) is bool(options(tree))


@given(condition=small, data=st.data())
@settings(max_examples=60)
def test_branches_at_places_go_together_as_they_go_one_by_one(condition, data):
    tree = pruning_form(condition)
    places, at, removed = numbered(tree), tree, set()
    while found := options(at):
        chosen = data.draw(st.sampled_from(found))
        where = [
            place
            for place, branch in places.items()
            if without(tree, removed | {place}) == chosen.tree and place not in removed and branch is not tree
        ]
        assert where
        removed, at = removed | {where[0]}, chosen.tree
        if len(removed) > 4:
            break
    assert without(tree, removed) == at


def numbered(tree):
    found, stack = {}, [tree]
    while stack:
        node = stack.pop()
        found[len(found)] = node
        if isinstance(node, And | Or | AtLeast):
            stack.extend(reversed(node.children))
    return found


def test_what_is_too_large_is_refused_by_name():
    wide = And(tuple(Compare("=", Attribute((f"a{number}",)), Literal(1)) for number in range(1_001)))
    with pytest.raises(BudgetError, match="pruning"):
        pruning_form(wide)
    parities = tamis.xor(*(tamis.attr(f"a{number}") for number in range(40)))
    with pytest.raises(BudgetError, match="pruning"):
        pruning_form(parities)


def test_a_deep_tree_is_pruned_without_recursion():
    deep = tamis.parse("x = 0")
    for number in range(450):
        deep = Or((Compare("=", Attribute((f"a{number}",)), Literal(1)), And((tamis.parse("y = 1"), deep))))
    tree = pruning_form(deep)
    assert len(leaves_of(tree)) == 901
    assert is_prunable(tree) and leaf_count(without(tree, {2})) < 901
