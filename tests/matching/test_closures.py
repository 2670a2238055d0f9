"""Functions made of expressions give what the reference meaning gives."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import And, Attribute, Between, Call, Compare, In, Literal, Not, Or, Xor
from tamis.language.meaning import value
from tamis.matching import closures
from tamis.matching.closures import compiled, holding
from tests.matching.columnwise.test_evaluation import SCHEMA, THEMES, same, terms
from tests.strategies import COMPARISONS, conditions, events, predicates

A, B = Attribute(("a",)), Attribute(("b",))


@given(
    asked=st.lists(st.one_of(predicates, conditions, terms), min_size=1, max_size=5),
    batch=st.lists(events(), max_size=5),
)
def test_a_closure_gives_what_the_reference_meaning_gives(asked, batch):
    for expression in asked:
        closure = compiled(expression, SCHEMA)
        for event in batch:
            assert same(closure(event), value(expression, event, SCHEMA)), (expression, event)


@pytest.mark.parametrize("theme", THEMES)
@given(data=st.data())
def test_a_closure_gives_what_the_reference_meaning_gives_for_values_of_its_kind(theme, data):
    kinds, asked = THEMES[theme]
    values = st.one_of(st.none(), *(values for types in kinds for values in types.values()))
    event = data.draw(st.fixed_dictionaries(dict.fromkeys(("a", "b", "c", "odd name", "für"), values)))
    for expression in data.draw(st.lists(asked, min_size=1, max_size=4)):
        assert same(compiled(expression, SCHEMA)(event), value(expression, event, SCHEMA)), expression


@given(asked=st.lists(conditions, min_size=1, max_size=5), batch=st.lists(events(), max_size=5))
def test_what_says_whether_a_condition_holds_agrees_with_the_reference_meaning(asked, batch):
    for expression in (*asked, And((*asked, asked[0])), *(And((A, Not(each))) for each in asked)):
        holds = holding(expression, SCHEMA)
        for event in batch:
            assert holds(event) is tamis.holds(expression, event, SCHEMA), (expression, event)


@given(
    members=st.lists(st.one_of(st.integers(-3, 3), st.sampled_from(["a", "é", 2**63, 1.0, None, True])), min_size=1),
    found=st.one_of(
        st.integers(-3, 3), st.sampled_from(["a", "é", "\ud800", 2**63, 10**40, 1.0, None, True, math.nan])
    ),
    is_uniform=st.booleans(),
)
def test_membership_is_that_of_the_reference_meaning_whatever_the_types(members, found, is_uniform):
    if is_uniform:
        members = [member for member in members if type(member) is type(members[0])]
    expression = In(A, tuple(members))
    assert same(compiled(expression)({"a": found}), value(expression, {"a": found}))


UGLY = [None, True, False, 0, 1, -1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 0.0, -0.0, 1.5, float(2**53), 9.3e18]
UGLY += [
    math.nan,
    math.inf,
    -math.inf,
    Decimal(1),
    Decimal("1.5"),
    Decimal(2**63),
    Decimal("0.1"),
    0.1,
    "",
    "a",
    "b",
    "é",
]
UGLY += [dt.date(2024, 2, 29), dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 1), [1, "a"], [], {"x": 1}]


@pytest.mark.parametrize("operator", COMPARISONS)
def test_any_two_values_compare_as_the_reference_meaning_says(operator):
    between_attributes = compiled(Compare(operator, A, B))
    for right in UGLY:
        is_literal = not isinstance(right, list | dict)
        beside = Compare(operator, A, Literal(right)) if is_literal else Compare(operator, A, B)
        turned = Compare(operator, Literal(right), A) if is_literal else Compare(operator, B, A)
        for left in UGLY:
            event = {"a": left, "b": right}
            assert same(between_attributes(event), value(Compare(operator, A, B), event)), event
            assert same(compiled(beside)(event), value(beside, event)), (beside, event)
            assert same(compiled(turned)(event), value(turned, event)), (turned, event)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "remainder", "least", "greatest", "avg"])
def test_any_two_values_compute_as_the_reference_meaning_says(name):
    term = Call(name, (A, B))
    closure = compiled(term)
    for left in UGLY:
        for right in UGLY:
            assert same(closure({"a": left, "b": right}), value(term, {"a": left, "b": right})), (left, right)


@pytest.mark.parametrize("joined", [lambda *parts: And(parts), lambda *parts: Or(parts), lambda *parts: Xor(parts)])
def test_any_two_values_join_as_the_reference_meaning_says(joined):
    for node in (joined(A, B), joined(A, Not(B)), Not(joined(A, B)), Between(A, Literal(1), Literal(1.5)), Not(A)):
        closure = compiled(node)
        for left in UGLY:
            for right in (None, True, False, 1, "a"):
                assert closure({"a": left, "b": right}) is value(node, {"a": left, "b": right}), (node, left, right)


def test_an_expression_that_is_too_deep_or_too_large_is_left_to_the_reference_meaning():
    deep = Attribute(("a",))
    for _ in range(5_000):
        deep = Call("negate", (deep,))
    assert compiled(deep)({"a": 3}) == 3
    shared = tamis.parse("a < b")
    for _ in range(12):  # a graph of few nodes, whose tree is large
        shared = And((shared, Or((shared, Compare("=", Attribute(("a",)), Literal(1))))))
    assert tamis.language.measures.size(shared) > closures._MOST_NODES
    assert compiled(shared)({"a": 1, "b": 2}) is True


def test_a_literal_beyond_all_numbers_is_compared_all_the_same():
    asked = Compare("<", Attribute(("a",)), Literal(10**400))
    assert compiled(asked)({"a": 5}) is True
    assert compiled(asked)({}) is None


def test_what_is_remembered_of_texts_is_bounded():
    for remembered in (closures.remembered_like, closures.remembered_regex, closures.remembered_cidr):
        assert remembered.cache_info().maxsize is not None
