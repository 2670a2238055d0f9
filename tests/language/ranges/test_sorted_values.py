"""Counting among sorted values gives what the reference meaning counts, whichever of the two ways is taken."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.expressions import Attribute, Compare, Literal
from tamis.language.meaning import truth
from tamis.language.ranges.predicates import compared
from tamis.language.ranges.sorted_values import SortedValues

INTEGERS = [0, 1, -1, 3, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1]
DOUBLES = [0.0, -0.0, 1.0, 0.1, float(2**53), 1e300, float("inf"), float("-inf"), float("nan")]
TEXTS = ["", "a", "a\0", "ä", "\ud7ff", "\ue000", "\U0001f600"]
OTHERS = [True, False, Decimal("0.1"), Decimal("1.00000000000000000001"), None, []]
COLUMNS = [INTEGERS, DOUBLES, DOUBLES[:-1], TEXTS, [*INTEGERS, *DOUBLES], [*INTEGERS, *DOUBLES, *TEXTS, *OTHERS]]
OPERANDS = [
    10**37,
    10**38 - 1,
    10**38,
    -(10**76),
    10**300,
    -(10**300),
    *INTEGERS,
    *DOUBLES,
    *TEXTS,
    "a\ud800",
    "\udfff",
    True,
    Decimal("0.1"),
    Decimal(1),
]


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@given(data=st.data())
def test_values_are_counted_as_the_reference_meaning_counts(operator, data):
    pool = data.draw(st.sampled_from(COLUMNS))
    values = data.draw(st.lists(st.one_of(st.sampled_from(pool), st.none()), max_size=12))
    operand = data.draw(st.sampled_from(OPERANDS))
    predicate = Compare(operator, Attribute(("a",)), Literal(operand))
    expected = sum(truth(predicate, {"a": value}) is True for value in values)
    found = SortedValues(values)
    assert found.among(compared(operator, operand, found.line)) == expected
    assert found.compared(operator, operand) in (None, expected)


@pytest.mark.parametrize("values", [INTEGERS, DOUBLES[:-1], TEXTS])
def test_a_column_of_one_type_is_searched_as_it_is(values):
    assert all(SortedValues(values).compared("<", operand) is not None for operand in values)
