"""Values compare and compute as in Spark SQL, and never raise."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language import values
from tamis.language.values import compare, value_of
from tests.strategies import event_values, numbers, scalars

exact_numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**31), max_value=10**31),
)
OPERATIONS = (values.add, values.subtract, values.multiply, values.divide, values.remainder)


@given(event_values, event_values)
def test_no_pair_of_values_makes_an_operation_raise(one, two):
    left, right = value_of(one), value_of(two)
    compare(left, right)
    for operation in OPERATIONS:
        operation(left, right)
    values.negate(left)
    values.absolute(left)
    values.extreme([left, right], 1)
    values.distance_km(left, right, left, right)


@given(scalars, scalars)
def test_comparison_is_antisymmetric(one, two):
    left, right = value_of(one), value_of(two)
    forward, backward = compare(left, right), compare(right, left)
    assert (forward is None) == (backward is None)
    assert forward is None or forward == -backward


@given(st.lists(exact_numbers, min_size=3, max_size=3))
def test_exact_numbers_compare_exactly(three):
    one, two, _ = three
    assert compare(one, two) == (Fraction(one) > Fraction(two)) - (Fraction(one) < Fraction(two))


@given(numbers)
def test_nan_is_greater_than_every_other_number_and_equal_to_itself(number):
    nan = float("nan")
    assert compare(nan, nan) == 0
    if number == number:
        assert compare(nan, number) == 1


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        (2**53 + 1, float(2**53), 0),  # beside a double an integer is a double
        (2**53 + 1, Decimal(2**53), 1),
        (0.1, Decimal("0.1"), 0),
        (0.0, -0.0, 0),
        (float("inf"), 10**300, None),
        ("a", "B", 1),
        ("é", "z", 1),
        ("😀", "\uffff", 1),  # by code point, as UTF-8 bytes sort
        (True, 1, None),
        ("1", 1, None),
        (dt.date(2024, 1, 2), dt.datetime(2024, 1, 2), 0),
        (dt.date(2024, 1, 2), "2024-01-02", None),
        (None, None, None),
        ([1], [1], None),
    ],
)
def test_comparison_across_types(left, right, order):
    assert compare(value_of(left), value_of(right)) == order


@given(exact_numbers, exact_numbers)
def test_exact_arithmetic_is_exact_or_null(left, right):
    for operation, expected in (
        (values.add, Fraction(left) + Fraction(right)),
        (values.subtract, Fraction(left) - Fraction(right)),
    ):
        found = operation(left, right)
        if isinstance(left, int) and isinstance(right, int):
            assert found == (expected if -(2**63) <= expected < 2**63 else None)
        else:
            assert Fraction(found) == expected


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_the_remainder_has_the_sign_of_the_dividend(left, right):
    found = values.remainder(left, right)
    if right == 0:
        assert found is None
    else:
        assert found == abs(left) % abs(right) * (1 if left >= 0 else -1)


def test_a_product_of_more_than_38_digits_is_null_and_excess_scale_is_rounded():
    assert values.multiply(Decimal(10**20), Decimal(10**20)) is None
    assert values.multiply(Decimal("0." + "3" * 30), Decimal("0." + "3" * 30)) == Decimal(
        "0.11111111111111111111111111111088888889"
    )


def test_the_smallest_integer_has_no_opposite():
    assert values.negate(-(2**63)) is None
    assert values.absolute(-(2**63)) is None


class Colour(Enum):
    RED = 1


class Size(IntEnum):
    LARGE = 3


class Word(str, Enum):  # noqa: UP042 - what people wrote before StrEnum
    YES = "yes"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (np.int64(5), 5),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array([1, 2]), [1, 2]),
        ((1, "a"), [1, "a"]),
        (Size.LARGE, 3),
        (Word.YES, "yes"),
        (Colour.RED, None),
        (10**38, None),
        (2**64, Decimal(2**64)),
        (Decimal("Infinity"), None),
        (dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), dt.datetime(2024, 1, 1)),
        (dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-1))), None),
        ("\ud800", None),
        (object(), None),
    ],
)
def test_the_value_of_a_python_object(raw, value):
    assert value_of(raw) == value
    assert type(value_of(raw)) is type(value)
