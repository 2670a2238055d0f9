"""Where a value stands on a line is said twice: exactly (`language.ranges`), and compiled (`matching.axes`).

Both say the same of every value, ugly ones included, and both say what the reference meaning says.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.expressions import Attribute, Between, Compare, In, Literal
from tamis.language.meaning import truth
from tamis.language.ranges.lines import cut_at
from tamis.language.ranges.predicates import values_of
from tamis.language.ranges.value_sets import is_member
from tamis.language.values import value_of
from tamis.matching.axes import TRUTH, Axis, AxisKey, axis_kind
from tamis.matching.leaves import sorted_operands
from tamis.selectivity import Sample, Statistics
from tests.strategies import COMPARISONS, scalars

A = Attribute(("a",))
UGLY = [
    None, True, False, 0, -1, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63),
    0.0, -0.0, float("nan"), float("inf"), float("-inf"), 0.1, 5e-324, 2.0**53, 2.0**53 + 2, 1e308, -1e308,
    Decimal("0.1"), Decimal("0.10"), Decimal(10) ** 37, Decimal("9007199254740993"), Decimal("-0.0"), Decimal("1E-38"),
    "", "a", "a\0", "ä", "\ud7ff", "\ue000", "\U0010ffff", "\U0001f600", "Z",
    dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31), dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    [], [1], {},
]  # fmt: skip
OPERANDS = [value for value in UGLY if not isinstance(value, list | dict)]
ugly = st.one_of(st.sampled_from(UGLY), scalars)
operands = st.one_of(st.sampled_from(OPERANDS), scalars)
predicates = st.one_of(
    st.builds(Compare, st.sampled_from(COMPARISONS), st.just(A), operands.map(Literal)),
    st.builds(Compare, st.sampled_from(COMPARISONS), operands.map(Literal), st.just(A)),
    st.builds(Between, st.just(A), operands.map(Literal), operands.map(Literal)),
    st.builds(In, st.just(A), st.lists(operands, min_size=1, max_size=4).map(tuple)),
)


def exactly(predicate, value):
    """Return the truth of a predicate by its two sets of values."""
    cut = cut_at(value_of(value))
    is_true, is_false = (is_member(cut, values_of(predicate, wanted)) for wanted in (True, False))
    assert not (is_true and is_false)
    return True if is_true else False if is_false else None


@given(predicates, st.lists(ugly, max_size=8))
def test_the_exact_line_says_what_the_meaning_says(predicate, values):
    for value in [*values, *UGLY]:
        assert exactly(predicate, value) is truth(predicate, {"a": value}), value


@pytest.mark.parametrize("operand", OPERANDS, ids=repr)
def test_the_exact_line_says_what_the_meaning_says_of_every_ugly_pair(operand):
    for operator in COMPARISONS:
        for value in UGLY:
            predicate = Compare(operator, A, Literal(operand))
            assert exactly(predicate, value) is truth(predicate, {"a": value}), (operator, value)


@given(st.lists(operands, min_size=1, max_size=6), st.lists(ugly, max_size=6))
def test_the_compiled_line_says_what_the_exact_line_says(given_operands, values):
    kind = axis_kind(given_operands[0])
    together = [operand for operand in given_operands if axis_kind(operand) == kind]
    if kind == TRUTH:  # it has no line: the meaning is asked
        return
    in_order, places = sorted_operands(kind, together)
    axis = Axis(AxisKey(A, kind), in_order)
    for operand, place in zip(together, places.tolist(), strict=True):
        for value in [*values, *UGLY]:
            code = axis.code(value_of(value))
            below, equal = code < 2 * place + 2, code == 2 * place + 2
            compiled = None if code == 0 else -1 if below else 0 if equal else 1
            is_less, is_equal = (exactly(Compare(operator, A, Literal(operand)), value) for operator in ("<", "="))
            assert compiled == (None if is_less is None else -1 if is_less else 0 if is_equal else 1), (operand, value)


@given(predicates, st.lists(ugly, max_size=8))
def test_a_sample_counts_what_the_meaning_counts(predicate, values):
    for among in (values, [*values, *UGLY]):
        events = [*({"a": value} for value in among), {}]
        assert Sample(events).count(predicate) == sum(truth(predicate, event) is True for event in events)


@given(predicates, st.lists(ugly, max_size=30), st.integers(0, 3))
def test_statistics_make_a_share_of_every_ugly_value(predicate, values, frequent_count):
    statistics = Statistics.of([{"a": value} for value in values], frequent_count=frequent_count, bucket_count=3)
    assert 0 <= statistics.share(predicate) <= 1
