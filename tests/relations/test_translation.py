"""A formula holds just where its expression is true; its opposite, where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import And, Attribute, Compare, Literal, Not, Or, Xor
from tamis.language.meaning import holds
from tamis.relations.forms import Context
from tamis.relations.formulas import (
    ALWAYS,
    NEVER,
    Conjunction,
    Fact,
    Threshold,
    Within,
    all_of,
    any_of,
    at_least,
    leaves,
    opposite,
)
from tamis.relations.samples import EventSample
from tests.strategies import conditions, events


def formula(text, schema=None):
    return Context(schema).form(text).formula


@given(condition=conditions, some_events=st.lists(events(), min_size=1, max_size=8))
@settings(max_examples=300)
def test_a_formula_holds_where_the_expression_is_true_and_its_opposite_where_it_is_not(condition, some_events):
    found = Context(None).form(condition)
    sample = EventSample(some_events, None)
    expected = [holds(condition, event) for event in some_events]
    assert sample.matched(found.formula).tolist() == expected
    assert sample.matched(found.opposite).tolist() == [not each for each in expected]


@given(condition=conditions)
def test_the_opposite_of_the_opposite_is_the_formula(condition):
    found = Context(None).form(condition).formula
    assert opposite(opposite(found)) == found
    assert hash(opposite(opposite(found))) == hash(found)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("a = 1 AND b = 2", "b = 2 AND a = 1"),
        ("a > 3 AND a > 5", "a > 5"),
        ("a > 3 OR a > 5", "a > 3"),
        ("NOT (a >= 20 OR b)", "b = FALSE AND a < 20"),
        ("a < b", "b > a"),
        ("NOT a < b", "a >= b"),
        ("contains(a, 'x')", "a LIKE '%x%'"),
        ("a RLIKE 'x'", "a LIKE '%x%'"),
        ("(a < 5) = TRUE", "a < 5"),
        ("(a < 5) IS NOT NULL", "a < 5 OR a >= 5"),
        ("(a < 5) <=> FALSE", "a >= 5"),
        ("a IN (1, 2)", "a = 1 OR a = 2"),
        ("a BETWEEN 1 AND 2", "a >= 1 AND a <= 2"),
        ("b BETWEEN a AND c", "a <= b AND c >= b"),
        ("at_least(2, a = 1, b = 1)", "a = 1 AND b = 1"),
        ("xor(a, TRUE)", "NOT a"),
        ("arrays_overlap(a, array(1, 2))", "array_contains(a, 1) OR array_contains(a, 2)"),
        ("a = 1 AND 1 < 2", "a = 1"),
        ("a < b IS NOT NULL", "a < b OR a >= b"),
    ],
)
def test_different_spellings_have_equal_formulas(one, two):
    context = Context(None)
    assert context.form(one).formula == context.form(two).formula


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 5 AND a < 3", NEVER),
        ("a = 1 AND a = 'x'", NEVER),
        ("a IS NULL OR a IS NOT NULL", ALWAYS),
        ("a LIKE '%x' AND NOT a LIKE '%x'", NEVER),
        ("in_cidr(a, '10.0.0.0/8') AND NOT in_cidr(a, '10.0.0.0/8')", NEVER),
        ("a < NULL", NEVER),
        ("NULL", NEVER),
        ("at_least(0, a = 1)", ALWAYS),
        ("at_least(3, a = 1, b = 1)", NEVER),
    ],
)
def test_what_is_seen_at_once_becomes_a_constant(text, expected):
    assert formula(text) is expected


def test_a_mandatory_attribute_has_no_absence():
    schema = tamis.Schema({"a": "int", "b": "int"}, mandatory=["a"])
    assert formula("a IS NOT NULL", schema) is ALWAYS and formula("a IS NULL", schema) is NEVER
    assert isinstance(formula("b IS NULL", schema), Within)


def test_junctions_are_flat_and_sets_of_one_term_are_joined():
    found = formula("(a = 1 AND (b = 2 AND c LIKE '%x%')) AND a < 5")
    assert isinstance(found, Conjunction)
    assert sum(isinstance(child, Within) for child in found.children) == 2
    assert sum(isinstance(child, Fact) for child in found.children) == 1


def test_thresholds_keep_operands_that_are_equal():
    one, two = (leaf for leaf in leaves(formula("a = 1 OR b = 1")))
    found = at_least(2, [one, one, two, NEVER])
    assert isinstance(found, Threshold) and len(found.children) == 3
    assert at_least(3, [one, two]) is NEVER and at_least(1, [one, ALWAYS]) is ALWAYS
    assert at_least(2, [one, two]) == all_of([two, one]) and at_least(1, [one, two]) == any_of([two, one])
    assert found != at_least(2, [one, two, formula("c = 1")]) and found != "text"


def test_a_wide_parity_stays_small():
    flags = tuple(Attribute((f"f{number}",)) for number in range(200))
    found = Context(None).form(Xor(flags)).formula
    assert sum(1 for _ in leaves(found)) == 400
    assert len({id(node) for node in _nodes(found)}) < 2_000


def _nodes(root):
    seen, stack = {}, [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(node.children)
    return seen.values()


def test_nothing_recurses():
    deep = Compare("=", Attribute(("a",)), Literal(0))
    for number in range(3_000):
        leaf = Compare("<>", Attribute((f"b{number % 7}",)), Literal(number))
        deep = Not(And((deep, leaf))) if number % 2 else Or((deep, leaf))
    found = Context(None).form(deep)
    assert found.formula == opposite(found.opposite)
    assert repr(ALWAYS) == "always" and "in" in repr(formula("a = 1"))
