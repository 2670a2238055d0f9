"""The sets of a predicate are just the values that make it true, and false."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Compare, In, IsA, Like, Literal, RLike, Test
from tamis.language.meaning import truth
from tamis.language.ranges.predicates import pieces_of, subject
from tamis.language.ranges.value_sets import is_disjoint, is_member
from tamis.language.values import value_of
from tamis.relations.domains import axis_of, values_on
from tests.strategies import betweens, event_values, like_patterns, regexes, scalars, simple_predicates, texts

A = Attribute(("a",))
of_one_attribute = st.one_of(
    simple_predicates.map(lambda each: Compare(each.operator, A, each.right)),
    st.builds(lambda value: Compare("<=>", A, Literal(value)), scalars),
    st.builds(lambda value: Compare("<=", Literal(value), A), scalars),
    betweens().map(lambda each: each.with_children((A, each.low, each.high))),
    st.builds(lambda members: In(A, tuple(members)), st.lists(scalars, min_size=1, max_size=4)),
    st.sampled_from([tamis.parse("a IS NULL"), A, IsA(A, "Quote")]),
    st.builds(lambda pattern: Like(A, pattern), like_patterns),
    st.builds(lambda pattern: RLike(A, pattern), st.one_of(regexes, st.sampled_from(["^a$", "^ab", "b$", "a"]))),
    st.builds(lambda name, text: Test(name, (A, Literal(text))), st.sampled_from(["startswith", "endswith"]), texts),
)
SCHEMA = tamis.Schema({"a": "string"}, hierarchy={"Quote": None, "StockQuote": "Quote"})


@given(predicate=of_one_attribute, value=st.one_of(event_values, scalars))
def test_a_value_is_in_the_set_that_the_reference_meaning_puts_it_into(predicate, value):
    assume(subject(predicate) == A)
    axis = axis_of(A, None)
    true, false = (values_on(axis, predicate, is_true, None) for is_true in (True, False))
    answer = truth(predicate, {"a": value})
    cut = axis.cut_in({"a": value_of(value)}, None)
    assert (is_member(cut, true), is_member(cut, false)) == (answer is True, answer is False)
    assert is_disjoint(true, false)


TYPES = {"int": st.integers(-(2**63), 2**63 - 1), "double": st.floats(), "bool": st.booleans(), "string": texts}
TYPES |= {"date": st.dates(), "timestamp": st.datetimes(), "decimal(38,18)": st.decimals(-(10**9), 10**9, places=6)}


@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
def test_with_a_type_too_a_value_is_in_the_set_where_it_belongs(kind, data):
    predicate = data.draw(of_one_attribute)
    assume(subject(predicate) == A)
    schema = tamis.Schema({"a": kind}, hierarchy=SCHEMA.hierarchy if kind == "string" else None)
    assume(not isinstance(predicate, IsA) or kind == "string")
    event = schema.conform({"a": data.draw(TYPES[kind])})
    axis = axis_of(A, schema)
    true, false = (values_on(axis, predicate, is_true, schema) for is_true in (True, False))
    answer = truth(predicate, event, schema)
    cut = axis.cut_in(event, schema)
    assert (is_member(cut, true), is_member(cut, false)) == (answer is True, answer is False)


@pytest.mark.parametrize("name", ["Quote", "StockQuote", "News", ""])
def test_is_a_holds_for_the_subtypes_that_the_schema_names(name):
    for schema in (SCHEMA, None):
        for ancestor in ("Quote", "StockQuote"):
            true = values_on(axis_of(A, schema), IsA(A, ancestor), True, schema)
            cut = axis_of(A, schema).cut_in({"a": name}, schema)
            assert is_member(cut, true) is (truth(IsA(A, ancestor), {"a": name}, schema) is True)


@pytest.mark.parametrize(
    "text", ["low < high", "a LIKE '%b'", "a LIKE 'a_'", "a RLIKE 'a+'", "array_contains(a, 'x')", "1 < 2"]
)
def test_predicates_that_are_no_sets_have_no_subject(text):
    assert subject(tamis.parse(text)) is None


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a LIKE 'x%%y'", ["x", "%", "y"]),
        ("startswith(a, 'x')", ["x", "%"]),
        ("endswith(a, 'x')", ["%", "x"]),
        ("contains(a, 'x')", ["%", "x", "%"]),
        ("contains(a, '')", ["%"]),
        ("a RLIKE 'x'", ["%", "x", "%"]),
        ("a RLIKE '^x$'", ["x"]),
        ("a RLIKE 'x.y'", None),
        ("a = 'x'", None),
    ],
)
def test_patterns_are_cut_into_pieces(text, pattern):
    pieces = pieces_of(tamis.parse(text))
    assert pattern == (pieces if pieces is None else [piece if isinstance(piece, str) else "%" for piece in pieces])
