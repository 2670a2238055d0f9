"""What several predicates on one term say together is said again in fewer words, and means the same for every value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import And, Attribute, Between, Compare, In, Literal, Not, Or
from tamis.language.meaning import truth
from tamis.language.ranges.rewording import ranged
from tamis.language.ranges.simple import simple
from tamis.language.rewrites import simplify

A = Attribute(("a",))
NUMBERS = [
    *(0, -0.0, 0.0, 1, 1.0, Decimal("1.0"), Decimal("1.00000000000000000001"), 2, 2.5, Decimal("2.5"), 3, -5),
    *(2**53, 2**53 + 1, float(2**53), 2**53 + 2, 2**63 - 1, Decimal(10) ** 20, 1e300),
    *(float("inf"), float("-inf"), float("nan")),
]
TEXTS = ["", "a", "a\0", "b", "ä", "\U0001f600"]
TIMES = [dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)]
KINDS = (NUMBERS, TEXTS, TIMES, [True, False], [*NUMBERS, *TEXTS, *TIMES, True, None])
BESIDE = [None, [], 4, 4.5, "c", Decimal("2.5000000000000000000001"), Decimal("0.99999999999999999999")]


@st.composite
def predicates_on_one_attribute(draw):
    operands = st.sampled_from(draw(st.sampled_from(KINDS)))

    def predicate():
        match draw(st.integers(0, 3)):
            case 0 | 1:
                operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
                return Compare(operator, A, Literal(draw(operands)))
            case 2:
                found = Between(A, Literal(draw(operands)), Literal(draw(operands)))
            case _:
                found = In(A, tuple(draw(st.lists(operands, min_size=1, max_size=3))))
        return Not(found) if draw(st.booleans()) else found

    return [predicate() for _ in range(draw(st.integers(2, 4)))]


@given(predicates=predicates_on_one_attribute(), junction=st.sampled_from([And, Or]))
@example(predicates=[Compare(">", A, Literal(1)), Compare(">", A, Literal(1.0))], junction=And)
@example(predicates=[In(A, (2.5, 1)), Compare("=", A, Literal(1.0))], junction=Or)
@example(predicates=[Not(In(A, (2**53 + 1, float(2**53)))), Not(In(A, (2, 3)))], junction=And)
def test_what_is_simplified_is_true_for_the_same_values(predicates, junction):
    before = junction(tuple(predicates))
    after = simplify(before)
    for value in [*NUMBERS, *TEXTS, *TIMES, True, False, *BESIDE]:
        assert (truth(before, {"a": value}) is True) == (truth(after, {"a": value}) is True), (value, after)


@given(predicates=predicates_on_one_attribute(), junction=st.sampled_from([And, Or]), value=st.integers(-9, 9))
def test_whole_numbers_have_names_of_their_own(predicates, junction, value):
    before = junction(tuple(predicates))
    after = simplify(before, tamis.Schema({"a": "int"}))
    assert (truth(before, {"a": value}) is True) == (truth(after, {"a": value}) is True), after


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 1 AND a > 1.0D", "a > 1.0D"),  # 1.00000000000000000001 is greater than 1, and as a double it is 1.0
        ("a = 1 OR a = 1.0D", "a = 1.0D"),
        ("a >= 9007199254740992 AND a >= 9007199254740993", "a >= 9007199254740993"),
        ("a < 'b' OR a = 'b'", "a <= 'b'"),
        ("a LIKE 'x' AND a = 'y'", "FALSE"),
    ],
)
def test_the_names_are_exact(text, expected):
    assert str(simplify(tamis.parse(text))) == str(tamis.parse(expected))


@given(predicates=predicates_on_one_attribute())
def test_a_predicate_with_a_range_is_true_for_just_its_values(predicates):
    from tamis.language.ranges.lines import cut_at
    from tamis.language.ranges.value_sets import is_member

    for predicate in predicates:
        found = ranged(predicate)
        assert (found is None) <= (
            simple(predicate).operator in ("between", "in") or None in simple(predicate).operands
        )
        if found is not None:
            for value in [*NUMBERS, *TEXTS, *TIMES, True, False, *BESIDE]:
                assert is_member(cut_at(value), found.values) == (truth(predicate, {"a": value}) is True), value
