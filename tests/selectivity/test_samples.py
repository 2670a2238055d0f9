"""A sample counts what the reference meaning counts, however it searches."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Between, Compare, In, Literal, Not
from tamis.selectivity import Sample
from tests.strategies import events, predicates, scalars

A = Attribute(("a",))
operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
simple = st.one_of(
    st.builds(lambda operator, value: Compare(operator, A, Literal(value)), operators, scalars),
    st.builds(lambda operator, value: Compare(operator, Literal(value), A), operators, scalars),
    st.builds(lambda low, high: Between(A, Literal(low), Literal(high)), scalars, scalars),
    st.builds(lambda members: In(A, tuple(members)), st.lists(scalars, min_size=1, max_size=4)),
    st.builds(lambda members: Not(In(A, tuple(members))), st.lists(scalars, min_size=1, max_size=4)),
)
some_events = st.lists(events() | st.builds(lambda value: {"a": value}, scalars), max_size=10)


@given(predicate=simple | predicates | predicates.map(Not), sample=some_events)
@settings(max_examples=300)
@example(predicate=In(A, (1, 1.0)), sample=[{"a": 1}])
@example(predicate=In(A, (1, 1)), sample=[{"a": 1}])
@example(predicate=Compare("=", A, Literal(2**53)), sample=[{"a": float(2**53)}, {"a": 2**53 + 1}])
@example(predicate=Compare("<", A, Literal(0.0)), sample=[{"a": -0.0}, {"a": float("nan")}])
def test_a_sample_counts_what_the_reference_meaning_counts(predicate, sample):
    expected = sum(tamis.holds(predicate, event) for event in sample)
    found = Sample(sample)
    assert found.count(predicate) == expected
    assert found.share(predicate) == (expected / len(sample) if sample else 0)


def test_a_schema_knows_subtypes():
    schema = tamis.Schema({"type": "string"}, hierarchy={"Quote": None, "StockQuote": "Quote"})
    sample = Sample([{"type": "StockQuote"}, {"type": "News"}], schema)
    assert sample.share(tamis.parse("type IS A 'Quote'", schema)) == 0.5


def test_no_events_make_nothing_true():
    assert Sample([]).share(tamis.parse("a = 1")) == 0 and len(Sample([])) == 0


def test_nested_attributes_are_found():
    sample = Sample([{"pos": {"x": 1}}, {"pos": {"x": 3}}, {"pos": 3}, {}])
    assert sample.share(tamis.parse("pos.x < 2")) == pytest.approx(0.25)
