"""Relations of filters with CASE, `if`, `coalesce` and `nullif` equal those of a small world where every event is asked."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Call, Compare, Expression, IsNull, Literal
from tamis.relations import covers, covers_by_set, identical, merge, overlaps, satisfiable
from tests.relations.test_every_function import check_relations
from tests.strategies import choices_of, conditions_over, events, number_terms, scalars, simple_predicates

SCHEMA = tamis.Schema({"a": "int", "b": "int", "f": "bool"})
# Literals are 0 to 2, so nothing that is written tells -1 from any number below, nor 3 from any above.
WORLD = [
    {name: value for name, value in zip("abf", values, strict=True) if value is not None}
    for values in product((None, -1, 0, 1, 2, 3), (None, -1, 0, 1, 2, 3), (None, True, False))
]
small = st.sampled_from([0, 1, 2]).map(Literal)
numbers = st.one_of(st.sampled_from([Attribute(("a",)), Attribute(("b",)), Literal(None)]), small)
tests = st.one_of(
    st.builds(Compare, st.sampled_from(["<", "=", ">=", "<=>"]), st.sampled_from([Attribute(("a",)), Attribute(("b",))]), small),
    st.builds(IsNull, st.sampled_from([Attribute(("a",)), Attribute(("b",))])),
    st.just(Attribute(("f",))),
)  # fmt: skip
weights = st.lists(
    st.builds(lambda condition, weight: Call("if", (condition, weight, Literal(0))), tests, small),
    min_size=2,
    max_size=3,
)


def total(parts: list[Expression]) -> Expression:
    whole = parts[0]
    for part in parts[1:]:
        whole = Call("add", (whole, part))
    return whole


filters = conditions_over(
    st.one_of(
        tests,
        st.builds(Compare, st.sampled_from(["<", "=", ">=", "<>", "<=>"]), choices_of(numbers, tests, height=2), small),
        st.builds(lambda parts, least: Compare(">=", total(parts), least), weights, small),
        st.builds(IsNull, choices_of(numbers, tests)),
        st.builds(lambda choice: Compare("=", choice, Literal(True)), choices_of(tests, tests)),
    ),
    max_leaves=3,
)


@given(filters, filters, filters)
def test_relations_of_choices_are_exact_in_a_small_world(one, two, three):
    ones, twos, threes = (
        {index for index, event in enumerate(WORLD) if tamis.holds(each, event)} for each in (one, two, three)
    )
    wanted = {
        "covers": (covers(one, two, SCHEMA), ones >= twos),
        "overlaps": (overlaps(one, two, SCHEMA), bool(ones & twos)),
        "identical": (identical(one, two, SCHEMA), ones == twos),
        "satisfiable": (satisfiable(one, SCHEMA), bool(ones)),
        "by set": (covers_by_set([one, three], two, SCHEMA), ones | threes >= twos),
    }
    for name, (verdict, is_so) in wanted.items():
        assert verdict.proven, (name, str(one), str(two))
        assert bool(verdict) is is_so, (name, str(one), str(two), str(three))
    merged = merge([one, two], SCHEMA).expression
    assert {index for index, event in enumerate(WORLD) if tamis.holds(merged, event)} >= ones | twos


choosing = choices_of(number_terms, simple_predicates, height=2)
ugly = st.builds(Compare, st.sampled_from(["<", "=", ">=", "<=>"]), choosing, scalars.map(Literal))


@given(ugly, ugly, st.lists(events(), max_size=6))
def test_nothing_is_proven_of_choices_that_an_event_refutes(one, two, asked):
    check_relations(one, two, asked)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("coalesce(price, 0) < 20", "price < 20 OR price IS NULL"),
        ("if(a = 1, 2, 0) + if(b = 1, 1, 0) + if(c = 1, 1, 0) >= 2", "a = 1 OR b = 1 AND c = 1"),
        ("CASE WHEN a > 1 THEN b WHEN a > 0 THEN c END = 'x'", "a > 1 AND b = 'x' OR a > 0 AND a <= 1 AND c = 'x'"),
        ("nullif(a, 0) IS NULL", "a = 0 OR a IS NULL"),
        ("coalesce(sold, FALSE)", "sold"),
        ("NOT coalesce(sold, FALSE)", "sold = FALSE OR sold IS NULL OR sold <> TRUE"),
    ],
)
def test_a_choice_is_identical_with_what_it_says_in_words(one, two):
    schema = tamis.Schema(dict.fromkeys(("price", "a"), "int") | {"b": "string", "c": "string", "sold": "bool"})
    schema = None if "b = 1" in one else schema
    assert identical(one, two, schema)


def test_a_choice_that_widens_its_numbers_is_left_alone():
    # 2**53 + 1 beside a double is 2**53.
    assert not covers("a = 9007199254740993", "if(TRUE, a, 0.5D) = 9007199254740993")
    event = {"a": 2**53}
    assert tamis.holds(tamis.parse("if(f IS NULL, a, 0.5D) = 9007199254740993"), event)
    assert overlaps("a = 9007199254740992", "if(f IS NULL, a, 0.5D) = 9007199254740993")
