"""Shapes: what is left of a condition when its predicates are taken out, and what the shape alone decides."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import BudgetError
from tamis.language import measures
from tamis.language.expressions import And, AtLeast, Attribute, Not, Or, Xor
from tamis.language.rewrites import disjuncts
from tamis.matching import UnsupportedExpressionError
from tamis_lab.matching.conjunctive import NormalForm, normal_form
from tamis_lab.matching.predicates import spelled
from tamis_lab.matching.shapes import (
    ALL,
    ALWAYS,
    ANY,
    LEAF,
    NEVER,
    conjunctions,
    fold_shape,
    least_hits,
    operator_count,
    shaped,
)
from tests.strategies import conditions, conditions_over, events, simple_predicates

FLAGS = [Attribute((name,)) for name in "abcde"]
flags = st.sampled_from(FLAGS)
junctions = st.recursive(
    flags, lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(lambda some: st.sampled_from([And(tuple(some)), Or(tuple(some))])), max_leaves=10
)  # fmt: skip


def shape_of(text):
    return shaped(tamis.parse(text), "boolean").shape


def holds(found, event):
    """The meaning of a shape and its predicates."""
    if found.shape in (ALWAYS, NEVER):
        return found.shape == ALWAYS
    return fold_shape(
        found.shape,
        lambda position: tamis.holds(found.predicates[position], event),
        lambda operator, below: all(below) if operator == ALL else any(below),
    )


def taken(condition):
    try:
        return shaped(condition, "boolean")
    except UnsupportedExpressionError:
        return None


@given(condition=st.one_of(conditions, conditions_over(simple_predicates)), event=events())
def test_a_shape_and_its_predicates_mean_what_the_condition_means(condition, event):
    found = taken(condition)
    if found is not None:
        assert holds(found, event) == tamis.holds(condition, event)


def test_summarisation_nested_operators_of_a_kind_are_one():
    nested = shape_of("((a = 1 AND b = 2) AND (c = 3 AND (d = 4 AND (e = 5 OR (f = 6 OR g = 7)))))")
    assert nested == bytes([ALL, 5, LEAF, LEAF, LEAF, LEAF, ANY, 3, LEAF, LEAF, LEAF])
    assert operator_count(nested) == 2


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("a = 1", [LEAF]),
        ("NOT a = 1", [LEAF]),
        ("NOT (a = 1 AND b = 2)", [ANY, 2, LEAF, LEAF]),
        ("NOT (a = 1 OR NOT b = 2)", [ALL, 2, LEAF, LEAF]),
        ("xor(a = 1, b = 2)", [ANY, 2, ALL, 2, LEAF, LEAF, ALL, 2, LEAF, LEAF]),
        ("at_least(2, a = 1, b = 2, c = 3)", [ANY, 2, ALL, 2, LEAF, LEAF, ALL, 2, LEAF, ANY, 2, LEAF, LEAF]),
        ("at_least(1, a = 1, b = 2)", [ANY, 2, LEAF, LEAF]),
        ("a = 1 AND TRUE", [LEAF]),
        ("a = 1 OR NULL", [LEAF]),
        ("a = 1 OR TRUE", list(ALWAYS)),
        ("a = 1 AND NULL", list(NEVER)),
        ("at_least(0, a = 1)", list(ALWAYS)),
        ("at_least(3, a = 1, b = 2)", list(NEVER)),
    ],
)
def test_only_and_and_or_are_left(text, shape):
    assert shape_of(text) == bytes(shape)


def test_nodes_of_more_than_255_children_are_split_without_losing_anything():
    wide = tamis.parse(" OR ".join(f"a = {number}" for number in range(1000)))
    found = shaped(wide, "boolean")
    assert len(found.predicates) == 1000
    assert found.shape[:2] == bytes([ANY, 4])
    assert least_hits(found.shape) == 1
    both = shaped(And((wide, wide)), "boolean")
    assert least_hits(both.shape) == 2
    narrow = shaped(tamis.parse(" AND ".join(f"a <> {number}" for number in range(30_000))), "boolean")
    assert least_hits(narrow.shape) == 30_000
    assert all(holds(found, {"a": number}) == (0 <= number < 1000) for number in (-1, 0, 255, 256, 999, 1000))


def test_what_would_grow_beyond_all_bounds_is_refused_with_a_reason():
    chain = FLAGS[0]
    for _ in range(30):
        chain = Xor((chain, FLAGS[1]))
    many = AtLeast(50, tuple(tamis.parse(f"a = {number}") for number in range(100)))
    doubled = FLAGS[0]
    for turn in range(60):
        doubled = (And if turn % 2 else Or)((doubled, doubled))
    for condition in (chain, many, doubled):
        with pytest.raises(UnsupportedExpressionError, match="predicates") as caught:
            shaped(condition, "boolean")
        assert caught.value.algorithm == "boolean"


def test_a_deep_tree_needs_no_deep_stack():
    deep = FLAGS[0]
    for turn in range(5_000):
        deep = (And if turn % 2 else Or)((deep, FLAGS[turn % 5]))
    found = shaped(deep, "boolean")
    assert len(found.predicates) == 5_001
    assert least_hits(found.shape) == measures.least_hits(deep)


# -- Least hits


@given(condition=junctions)
def test_least_hits_are_those_of_the_language(condition):
    assert least_hits(shaped(condition, "boolean").shape) == measures.least_hits(condition)


@given(condition=junctions)
def test_a_true_tree_has_at_least_its_least_hits_by_occurrence(condition):
    found = shaped(condition, "boolean")
    for values in product([True, False], repeat=len(FLAGS)):
        event = dict(zip("abcde", values, strict=True))
        if tamis.holds(condition, event):
            assert sum(event[predicate.path[0]] for predicate in found.predicates) >= least_hits(found.shape)


def test_counting_a_repeated_predicate_once_would_lose_a_match():
    # p AND (p OR q) needs two hits. An event that fulfils only p scores both of them, by occurrence.
    found = shaped(tamis.parse("p AND (p OR q)"), "boolean")
    assert least_hits(found.shape) == 2
    hits = [tamis.holds(predicate, {"p": True, "q": False}) for predicate in found.predicates]
    assert sum(hits) == 2
    assert len({predicate for predicate, hit in zip(found.predicates, hits, strict=True) if hit}) == 1


# -- Normal forms


@given(condition=st.one_of(junctions, conditions_over(simple_predicates, max_leaves=8)), event=events())
def test_the_normal_form_of_a_shape_is_that_of_the_condition(condition, event):
    try:
        predicates, form = normal_form(condition, "counting")
    except UnsupportedExpressionError:
        return
    ways = form.parts()
    found = any(all(tamis.holds(predicates[position], event) for position in way) for way in ways)
    assert found == tamis.holds(condition, event)


@given(condition=junctions)
def test_shapes_and_expressions_have_the_same_conjunctions(condition):
    predicates, form = normal_form(condition, "counting")
    seen = {}
    firsts = tuple(seen.setdefault(predicate, place) for place, predicate in enumerate(predicates))
    mine = {frozenset(str(predicates[position]) for position in way) for way in form.merged(firsts).parts()}
    flag_names = {f"{name} = TRUE": name for name in "abcde"}
    theirs = {frozenset(flag_names[str(each)] for each in way) for way in disjuncts(condition)}
    assert mine == theirs


def test_equal_predicates_are_seen_where_the_shape_alone_would_be_too_large():
    # Two to the twentieth conjunctions by the shape, and but one by the predicates.
    same = And(tuple(Or((FLAGS[0], FLAGS[0])) for _ in range(20)))
    with pytest.raises(BudgetError):
        conjunctions(shaped(same, "counting").shape)
    predicates, form = normal_form(same, "counting")
    assert [str(predicate) for predicate in predicates] == ["a = TRUE"]
    assert form.parts() == [(0,)]


def test_a_normal_form_that_is_too_large_is_refused_with_a_reason():
    wide = And(tuple(Or((tamis.parse(f"a = {number}"), tamis.parse(f"b = {number}"))) for number in range(20)))
    with pytest.raises(UnsupportedExpressionError, match="disjunctive normal form") as caught:
        normal_form(wide, "cluster")
    assert caught.value.algorithm == "cluster"
    assert len(shaped(wide, "boolean").predicates) == 40, "without a normal form it is small"


@pytest.mark.parametrize("text", ["TRUE", "FALSE", "NULL", "a = 1 OR NOT NULL", "NOT FALSE"])
def test_constants_have_a_normal_form(text):
    predicates, form = normal_form(tamis.parse(text), "counting")
    always = tamis.holds(tamis.parse(text), {})
    assert (form.parts() == [()]) == always or len(predicates) > 0


def test_merging_drops_what_is_double():
    form = NormalForm([(0, 1), (1, 0, 2), (2, 2)])
    assert form.parts() == [(0, 1), (1, 0, 2), (2,)]
    assert form.merged((0, 0, 2)).parts() == [(0,), (0, 2), (2,)]
    assert form.merged((0, 0, 0)).parts() == [(0,)]


@given(condition=junctions)
def test_negation_reaches_the_leaves_and_keeps_the_meaning(condition):
    found = shaped(Not(condition), "boolean")
    assert not any(isinstance(spelled(predicate), Not) for predicate in found.predicates)
    for values in product([True, False], repeat=len(FLAGS)):
        event = dict(zip("abcde", values, strict=True))
        assert holds(found, event) == (not tamis.holds(condition, event))
