"""What functions say of themselves: monotone arguments, and how a lie is found."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import FunctionError
from tamis.relations import Refutation, covers, overlaps, refute, satisfiable
from tests.relations.test_relations import check_safety


@tamis.function(takes=("number",), gives="number", version=1, monotone=("up",))
def steps(number):
    """Rises by steps, has no value at 4, and is not a number beyond 1e9."""
    if number == 4:
        raise ValueError
    return math.nan if number > 1e9 else math.floor(number / 3)


@tamis.function(takes=("number", "number"), gives="number", version=1, monotone=("up", "down"))
def gain(income, cost):
    return float(income) - float(cost)


@tamis.function(takes=("number", "string"), gives="number", version=1, monotone=("down", None))
def discount(price, category):
    return -min(float(price), 5 if category == "Crime" else 9)


PROMISING = tamis.Functions([steps, gain, discount])
NUMBERS = [None, math.nan, math.inf, -math.inf, -5, 0, 1, 3, 3.5, Decimal("4"), 4.0, 5, 9, 10**30, "x", True]
MAPPINGS = st.fixed_dictionaries({}, optional={name: st.sampled_from(NUMBERS) for name in ("a", "b")})


def parse(text):
    return tamis.parse(text, functions=PROMISING)


@pytest.mark.parametrize(
    ("general", "special"),
    [
        ("a > 3", "steps(a) > 1"),
        ("a >= 3", "steps(a) > 1"),
        ("a > 3 OR b = 1", "steps(a) >= 2 AND b = 2"),
        ("a > 5", "gain(a, 1) > 4.5"),
        ("a < 5 OR a = double('NaN')", "discount(a, 'Crime') > -4.5"),
        ("a > 3 OR b < 1", "gain(a, b) > 2.5 AND b < 50"),
    ],
)
def test_a_bound_of_an_argument_covers_what_only_larger_values_reach(general, special):
    assert covers(parse(general), parse(special))


@pytest.mark.parametrize(
    ("general", "special"),
    [
        ("a > 9", "steps(a) > 1"),  # 6 gives 2
        ("steps(a) > 0", "a > 3"),  # it has no value at 4
        ("a > 3", "steps(b) > 1"),
        ("a > 3", "steps(a) >= 1"),  # 3 gives 1
        ("a < 5", "gain(a, 1) > 4"),
        ("a < 5", "discount(a, 'Crime') > -4.5"),  # nothing is said of NaN, and it gives NaN, the greatest number
    ],
)
def test_what_does_not_follow_is_not_concluded(general, special):
    assert not covers(parse(general), parse(special))


def test_bounds_that_no_value_can_reach_exclude_each_other():
    assert not overlaps(parse("a < 3"), parse("steps(a) > 1"))
    assert not overlaps(parse("a BETWEEN 0 AND 2"), parse("steps(a) = 3"))
    assert not overlaps(parse("a IN (1, 2)"), parse("gain(a, 1) > 4"))
    assert not satisfiable(parse("a > 3 AND a < 9 AND steps(a) > 7"))
    assert overlaps(parse("a < 9"), parse("steps(a) > 1"))


TEXTS = st.sampled_from(
    [
        f"{term} {operator} {number}"
        for term in ("a", "b", "steps(a)", "steps(b)", "gain(a, b)", "gain(a, 3)", "discount(a, 'Crime')")
        for operator in ("<", "<=", ">", ">=", "=")
        for number in (-4, 0, 1, 3, 4, 5, "double('NaN')")
    ]
)


@settings(max_examples=150)
@given(TEXTS, TEXTS, TEXTS, st.lists(MAPPINGS, min_size=1, max_size=8))
def test_no_verdict_about_monotone_functions_is_unsafe(one, two, three, some_events):
    check_safety(parse(f"{one} AND {three}"), parse(two), some_events)
    check_safety(parse(f"{one} OR {three}"), parse(two), some_events)


def test_no_sample_refutes_functions_that_keep_their_word():
    numbers = [
        (each,) for each in (-7, -1, 0, 1, 2.5, 3, 4, 5, 1e9, 2e9, math.inf, -math.inf, math.nan, Decimal("2.9"))
    ]
    assert refute(steps, numbers) == []
    assert refute(gain, [(one, two) for (one,) in numbers for (two,) in numbers[:4]]) == []
    assert refute(discount, [(number, each) for (number,) in numbers for each in ("Crime", "Poetry")]) == []


class TestLies:
    @staticmethod
    def divides(**hooks):
        @tamis.function(takes=("number", "number"), gives="boolean", version=1, **hooks)
        def divides(number, divisor):
            return number % divisor == 0

        return divides

    SAMPLES = tuple((number, divisor) for number in (6, 7, 10) for divisor in (2, 3, 5))

    def test_a_hook_that_implies_too_much_is_found(self):
        (lie,) = refute(self.divides(implies=lambda one, two: True), self.SAMPLES)
        assert lie == Refutation("implies", (10, 2), (10, 3), "the first call is true, the second is not")
        assert refute(self.divides(implies=lambda one, two: one[0] % two[0] == 0), self.SAMPLES) == []

    def test_a_hook_that_excludes_too_much_is_found(self):
        (lie,) = refute(self.divides(excludes=lambda one, two: one != two), self.SAMPLES)
        assert (lie.hook, lie.one, lie.two) == ("excludes", (6, 2), (6, 3))

    def test_a_hook_that_unites_too_much_or_too_little_is_found(self):
        (lie,) = refute(self.divides(unites=lambda one, two: (1,)), self.SAMPLES)
        assert lie.hook == "unites" and "neither is true" in lie.reason
        (lie,) = refute(self.divides(unites=lambda one, two: (30,)), self.SAMPLES)
        assert lie.hook == "unites" and "one of them is true" in lie.reason

    def test_a_function_that_falls_where_it_said_that_it_rises_is_found(self):
        square = tamis.function(takes=("number",), gives="number", version=1, name="square", monotone=("up",))
        (lie,) = refute(square(lambda number: number * number), [(-2,), (1,), (3,)])
        assert (lie.hook, lie.one, lie.two) == ("monotone", (-2,), (1,))
        assert refute(square(lambda number: number * number), [(0,), (1,), (3,)]) == []

    def test_a_form_over_columns_that_gives_something_else_is_found_with_its_place(self):
        def doubled(columns):
            return tamis.function(takes=("number",), gives="number", version=1, name="doubled", columns=columns)(
                lambda number: number * 2
            )

        assert refute(doubled(lambda column: pc.multiply(column, 2)), [(1,), (None,), (3,)]) == []
        (lie,) = refute(doubled(lambda column: pc.add(column, 2)), [(2,), (3,)])
        assert (lie.hook, lie.one) == ("columns", (3,))
        (lie,) = refute(doubled(lambda column: column.no_such), [(2,)])
        assert "it raised AttributeError" in lie.reason

    def test_samples_of_another_length_are_a_typed_error(self):
        with pytest.raises(FunctionError, match="takes 2 arguments, and a sample has 1"):
            refute(self.divides(), [(1,)])
        with pytest.raises(FunctionError, match=r"made by tamis\.function"):
            refute(len, [])
        with pytest.raises(FunctionError, match="literals are"):
            refute(self.divides(), [], literals=[2])


@pytest.mark.parametrize(
    ("takes", "gives", "monotone"),
    [
        (["number"], "number", ["up", "up"]),
        (["number"], "number", ["rises"]),
        (["string"], "number", ["up"]),
        (["number"], "boolean", ["up"]),
    ],
)
def test_directions_that_make_no_sense_are_typed_errors(takes, gives, monotone):
    with pytest.raises(FunctionError, match="monotone"):
        tamis.function(takes=takes, gives=gives, version=1, monotone=monotone)
