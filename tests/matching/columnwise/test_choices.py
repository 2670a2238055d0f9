"""Choices over columns give what the reference meaning gives, natively, whatever the kinds of their branches."""

from __future__ import annotations

from decimal import Decimal
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Call, Compare, IsNull, Literal
from tamis.language.meaning import truth, value
from tamis.language.values import kind_of
from tamis.matching.closures import compiled
from tamis.matching.columns import Events
from tamis.matching.columnwise import evaluation, term_column, truth_codes
from tamis.matching.columnwise.evaluation import BatchSeries
from tests.strategies import COMPARISONS, choices_of, events, literals, number_terms, scalars, simple_predicates

CODES = {None: 0, False: 1, True: 2}
VALUES = {
    "i": [1, 2**53 + 1, -(2**63), 0],
    "d": [0.5, float("nan"), float(2**53), -0.0],
    "n": [Decimal("1.50"), Decimal("0.3333333333333333"), Decimal(2), Decimal("-99999999.99")],
    "s": ["a", "b", "", "é"],
    "f": [True, False],
    "tags": [["a"], [], ["b", None]],
    "mix": [1, 0.5, "a", True, Decimal("0.1")],
}
typed_events = st.fixed_dictionaries(
    {}, optional={name: st.one_of(st.none(), st.sampled_from(pool)) for name, pool in VALUES.items()}
)
typed_terms = st.one_of(
    st.sampled_from([Attribute((name,)) for name in VALUES]),
    literals(st.sampled_from([0, 1, 0.5, Decimal("0.5"), Decimal("0.25"), 2**53 + 1, "a", "z", None, True])),
)
deciding = st.one_of(
    st.sampled_from([Attribute(("f",)), Attribute(("i",)), Literal(True), Literal(None)]),
    st.builds(lambda name: IsNull(Attribute((name,))), st.sampled_from(sorted(VALUES))),
    st.builds(lambda left, right: Compare("<", left, right), typed_terms, typed_terms),
)
typed_choices = choices_of(typed_terms, deciding, height=3)


def same(one, two):
    if isinstance(one, float) and isinstance(two, float):
        return repr(one) == repr(two)
    return type(one) is type(two) and one == two


@given(typed_choices, st.lists(typed_events, min_size=1, max_size=8))
def test_a_choice_gives_each_row_the_value_and_the_type_that_the_definition_gives(choice, batch):
    series = BatchSeries.of(Events(batch)).evaluated(choice)
    found = series.tolist()
    found = found * len(batch) if len(found) == 1 else found
    for event, each in zip(batch, found, strict=True):
        assert same(each, value(choice, event)), (str(choice), event, each)


@given(
    st.sampled_from(COMPARISONS),
    typed_choices,
    st.one_of(typed_terms, typed_choices),
    st.lists(typed_events, max_size=8),
)
def test_what_is_computed_of_mixed_columns_equals_the_definition(operator, one, two, batch):
    for predicate in (
        Compare(operator, one, two),
        Compare(operator, Call("add", (one, two)), Literal(1)),
        Compare(operator, Call("divide", (two, one)), Literal(0.5)),
        IsNull(one),
    ):
        wanted = [CODES[truth(predicate, event)] for event in batch]
        assert truth_codes(predicate, Events(batch)).tolist() == wanted, str(predicate)


@given(
    choices_of(number_terms, simple_predicates), st.sampled_from(COMPARISONS), scalars, st.lists(events(), max_size=6)
)
def test_every_way_to_evaluate_a_choice_equals_the_definition(choice, operator, operand, batch):
    predicate = Compare(operator, choice, Literal(operand))
    wanted = [truth(predicate, event) for event in batch]
    assert truth_codes(predicate, Events(batch)).tolist() == [CODES[each] for each in wanted]
    ask = compiled(predicate)
    assert [ask(event) for event in batch] == wanted
    matcher = tamis.Matcher()
    matcher.add("it", predicate)
    assert [matcher.match(event) == ["it"] for event in batch] == [each is True for each in wanted]
    assert [row == ["it"] for row in matcher.list_batch(batch).to_pylist()] == [each is True for each in wanted]


@pytest.mark.parametrize(
    "text",
    [
        "coalesce(price, 0) < 5",
        "coalesce(price, 0) * 2 + if(signed, 1, 0) < 5",
        "CASE WHEN signed THEN 2 ELSE 0 END + CASE WHEN price < 5 THEN 1 ELSE 0 END >= 2",
        "CASE WHEN signed THEN price ELSE bids END BETWEEN 1 AND 7",
        "coalesce(title, 'none') IN ('none', 'It')",
        "CASE title WHEN 'It' THEN 'King' ELSE author END = 'King'",
        "nullif(bids, 0) IS NULL",
        "price / nullif(bids, 0) > 1",
        "coalesce(price < 5, signed, FALSE)",
    ],
)
def test_a_choice_is_not_computed_row_by_row(text):
    batch = [
        {"price": 2.5, "bids": 3, "signed": True, "title": "It", "author": "King"},
        {"bids": 0, "signed": False, "title": "Emma"},
        {"price": 7.5, "signed": None},
        {},
    ]
    predicate = tamis.parse(text)
    with patch.object(evaluation, "row_by_row", side_effect=AssertionError("row by row")):
        codes = truth_codes(predicate, Events(batch)).tolist()
    assert codes == [CODES[truth(predicate, event)] for event in batch]


def test_short_numbers_of_several_types_are_one_column_of_doubles():
    term = tamis.parse("coalesce(price, 0) < 1").left
    assert term_column(term, Events([{"price": 0.5}, {}])).kind == "double"
    long = tamis.parse("coalesce(price, 9007199254740993) < 1").left
    column = term_column(long, Events([{"price": 0.5}, {}]))
    assert column.kind == "object" and [kind_of(each) for each in column.values] == ["number", "number"]
    assert column.values == [0.5, 9007199254740993]
