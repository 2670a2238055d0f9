"""Functions made of expressions give what the reference meaning gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import And, Attribute, Call, Compare, Literal, Or
from tamis.language.meaning import value
from tamis.matching import closures
from tamis.matching.closures import compiled
from tests.matching.columnwise.test_evaluation import SCHEMA, THEMES, same, terms
from tests.strategies import conditions, events, predicates


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
