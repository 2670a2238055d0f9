"""Places on the line say the same as comparisons of values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from math import inf, isnan, nan, nextafter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis.language.ranges.lines import (
    END,
    NULL,
    TEXT,
    cut_at,
    double_key,
    first_value,
    last_value,
    next_cut,
    places,
    prefix_cuts,
)
from tamis.language.values import compare, value_of
from tests.strategies import numbers, scalars, texts, times

LINES = {"any": scalars, "int": st.integers(-(2**63), 2**63 - 1), "double": st.floats(), "string": texts}
LINES |= {"bool": st.booleans(), "timestamp": st.datetimes(), "date": st.dates(), "number": numbers}
LINES |= {"decimal": numbers.filter(lambda number: isinstance(number, Decimal))}
close_numbers = st.one_of(
    numbers,
    st.integers(-50, 50).map(lambda offset: 2**53 + offset),
    st.integers(-50, 50).map(lambda offset: float(2**53) + offset),
    st.integers(-50, 50).map(lambda offset: Decimal(2**53) + Decimal(offset) / 4),
    st.sampled_from([0.1, Decimal("0.1"), nextafter(0.1, 1), Decimal("0.10000000000000000000001"), Decimal("1E-38")]),
    st.sampled_from([10**38 - 1, 1 - 10**38, 1e38, -1e38, nextafter(1e38, 0), Decimal(10**38 - 1), 5e-324, 1e-38]),
    st.integers(1, 37).map(lambda power: Decimal(10) ** power),
    st.integers(1, 37).map(lambda power: -(Decimal(10) ** power)),
)
anything = st.one_of(scalars, close_numbers, st.just([]), st.just({}))


def compared_by_places(value, operand):
    """Return what `compare` would say, from the places alone."""
    cut = cut_at(value)
    for start, before, after, end in places(operand, "any"):
        if start <= cut < end:
            return -1 if cut < before else 0 if cut < after else 1
    return None


@given(value=anything, operand=st.one_of(scalars, close_numbers))
def test_a_value_lies_before_at_or_behind_an_operand_as_it_compares_with_it(value, operand):
    value, operand = value_of(value), value_of(operand)
    assume(operand is not None)
    assert compared_by_places(value, operand) == compare(value, operand)


@given(value=close_numbers, operand=close_numbers)
def test_numbers_that_lie_close_together_are_told_apart_as_comparisons_do(value, operand):
    value, operand = value_of(value), value_of(operand)
    assume(value is not None and operand is not None)
    assert compared_by_places(value, operand) == compare(value, operand)


@pytest.mark.parametrize("line", LINES)
@given(data=st.data())
def test_a_value_of_a_type_lies_at_an_operand_as_it_compares_with_it(line, data):
    value, operand = value_of(data.draw(LINES[line])), value_of(data.draw(scalars))
    assume(value is not None and operand is not None)
    found = [
        -1 if cut < before else 0 if cut < after else 1
        for start, before, after, end in places(operand, line)
        if start <= (cut := cut_at(value, line)) < end
    ]
    order = compare(value, operand)
    assert found == ([] if order is None else [order])


@given(operand=st.one_of(scalars, close_numbers), line=st.sampled_from(list(LINES)))
def test_between_two_cuts_there_is_a_value_and_it_is_the_first_one(operand, line):
    operand = value_of(operand)
    assume(operand is not None)
    for place in places(operand, line):
        for low, high in pairwise(place):
            assert low <= high
            if low < high:
                value = first_value(low, high, line)
                assert cut_at(value, line) == low
                assert low < next_cut(low, line) <= high
                last = cut_at(last_value(low, high, line), line)
                assert low <= last < high
                assert next_cut(last, line) == high or low[0] == TEXT


def test_cuts_are_the_same_however_a_number_is_written():
    assert places(5, "any") == places(Decimal("5.00"), "any")
    assert places(0.0, "any") == places(-0.0, "any")
    assert places(5, "any") != places(5.0, "any")  # the double equals some decimals that the integer does not
    assert places(5, "double") == places(5.0, "double") == places(Decimal(5), "double")
    assert places(5, "int") == places(5.0, "int")
    assert places(2.5, "int") == places(2.75, "int") and places(2.5, "int")[0][1] == places(3, "int")[0][1]


def test_doubles_are_in_order_with_nan_at_the_end():
    ordered = [-inf, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308, inf, nan]
    keys = [double_key(number) for number in ordered]
    assert keys == sorted(set(keys)) and double_key(-0.0) == double_key(0.0)
    assert [first_value((2, key), ()) for key in keys[1:-1]] == ordered[1:-1]
    assert isnan(first_value((2, keys[-1]), ())) and next_cut((2, keys[-2])) == (2, keys[-1])


def test_there_is_no_text_between_a_text_and_the_same_with_a_zero_behind_it():
    assert next_cut(cut_at("ab")) == cut_at("ab\0")
    assert cut_at("") == (TEXT,) and next_cut((TEXT,)) == cut_at("\0")


@given(prefix=texts, text=texts)
def test_the_texts_that_start_so_lie_between_two_cuts(prefix, text):
    low, high = prefix_cuts(prefix)
    assert (low <= cut_at(text) < high) is text.startswith(prefix)


def test_a_prefix_of_the_greatest_characters_reaches_to_the_end_of_texts():
    assert prefix_cuts("a\U0010ffff")[1] == (TEXT, "b")
    assert prefix_cuts("\U0010ffff")[1] == (TEXT + 1,)
    assert prefix_cuts("\ud7ff")[1] == (TEXT, "\ue000")  # there are no characters between them


def test_an_operand_with_half_a_character_equals_no_text():
    ((_, before, after, _),) = places("a\ud800b", "string")
    assert before == after == (TEXT, "a\ue000")


def test_numbers_beyond_all_exact_ones_lie_at_the_ends():
    for huge, end in ((10**40, 1), (-(10**40), 0), (Decimal(10) ** 39, 1)):
        _, (start, before, after, finish) = places(huge, "any")
        assert before == after == (finish if end else start)
    assert places(10**400, "double")[0][1] == cut_at(inf)


def test_the_line_begins_with_null_and_ends_with_records():
    values = [None, False, True, -inf, 5.0, nan, -5, Decimal("0.1"), 5, "", "a", dt.date.min, dt.datetime.max, [], {}]
    cuts = [cut_at(value) for value in values]
    assert cuts == sorted(cuts) and cuts[0] == (NULL,) and cuts[-1] < (END,)


@given(day=times)
def test_a_date_is_its_first_moment(day):
    moment = day if isinstance(day, dt.datetime) else dt.datetime(day.year, day.month, day.day)
    assert cut_at(day) == cut_at(moment)
