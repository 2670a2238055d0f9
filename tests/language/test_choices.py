"""CASE, `if`, `coalesce` and `nullif`: how they are written, and what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import ExpressionSyntaxError, JsonFormError, LimitError, TypeMismatchError
from tamis.language.builder import attr, coalesce, when
from tamis.language.choices import choice_of, keeps_types
from tamis.language.expressions import Call, Compare, IsNull, Literal, Not, fold
from tamis.language.limits import Limits
from tamis.language.meaning import meaning, truth, value
from tamis.language.rewrites import canonical, flatten, fold_constants, simplify
from tests.strategies import (
    attributes,
    choices_of,
    conditions,
    events,
    literals,
    number_terms,
    numbers,
    simple_predicates,
)

PASSES = (fold_constants, flatten, canonical, simplify)
choosing = choices_of(number_terms, simple_predicates, height=3)


def term(text):
    return tamis.parse(f"{text} = 1").left


def test_the_simple_form_is_the_searched_form_with_comparisons():
    assert term("CASE a WHEN 1 THEN 5 WHEN b THEN 6 ELSE 7 END") == term(
        "case when a = 1 then 5 when a = b then 6 else 7 end"
    )


@pytest.mark.parametrize(
    ("text", "event", "wanted"),
    [
        ("CASE WHEN f THEN 1 ELSE 2 END", {"f": True}, 1),
        ("CASE WHEN f THEN 1 ELSE 2 END", {}, 2),
        ("CASE WHEN f THEN 1 END", {"f": False}, None),
        ("CASE WHEN f THEN 1 ELSE 2.5D END", {"f": True}, 1.0),
        ("CASE a WHEN NULL THEN 1 ELSE 2 END", {}, 2),
        ("if(f, a, b)", {"f": 1, "a": 3, "b": 4}, 4),
        ("coalesce(a)", {}, None),
        ("coalesce(a, b, 7)", {"b": 0}, 0),
        ("nullif(a, b)", {"a": 1, "b": 1.0}, None),
        ("nullif(a, b)", {"a": 1}, 1),
        ("nullif(a, b)", {"b": 1}, None),
        ("coalesce(a > 1, FALSE)", {}, False),
    ],
)
def test_a_choice_gives_the_value_behind_the_first_true_condition(text, event, wanted):
    found = value(term(text) if "FALSE" not in text else tamis.parse(text).left, event)
    assert (type(found), found) == (type(wanted), wanted)


@given(choosing, events())
def test_all_four_forms_are_the_cases_that_they_are_read_as(node, event):
    """Up to the type of a number, the value of a choice is that of its arm."""
    choice = choice_of(node)
    values = [(truth(arm.deciding, event), value(arm.value, event)) for arm in choice.arms]
    wanted = next((each for is_true, each in values if is_true is True), value(choice.otherwise, event))
    found = value(node, event)
    if not isinstance(wanted, dict):
        assert (
            meaning(Compare("<=>", Literal(1), Literal(1)), [found, wanted], {}, None) is True
            or (found == float(wanted) and not keeps_types(node))
            or isinstance(wanted, list)
        )
    if keeps_types(node):
        assert type(found) is type(wanted)


@given(st.one_of(choosing, choices_of(conditions, conditions)), literals(numbers), events())
def test_rewrites_keep_the_truth_of_what_is_inside_a_choice(node, operand, event):
    for predicate in (Compare("=", node, operand), IsNull(node), Not(Compare("<", node, operand))):
        wanted = truth(predicate, event)
        for rewrite in PASSES:
            found = truth(rewrite(predicate), event)
            if rewrite in (canonical, simplify):  # which keep what is true, and no more
                assert (found is True) is (wanted is True), (str(predicate), str(rewrite(predicate)))
            else:
                assert found is wanted, (str(predicate), str(rewrite(predicate)))


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("(a > 5 AND a < 3) <=> FALSE", {}),
        ("(a > 1 AND a IS NULL) IS NULL", {}),
        ("(NOT NOT a) IS NULL", {"a": 5}),
        ("(a AND a) IS NULL", {"a": 5}),
        ("(TRUE AND a) IS NULL", {"a": 5}),
        ("(FALSE XOR a) IS NULL", {"a": 5}),
        ("coalesce(a > 5 AND a < 3, TRUE)", {}),
    ],
)
def test_what_is_unknown_inside_a_predicate_stays_unknown(text, event):
    node = tamis.parse(text)
    for rewrite in PASSES:
        assert truth(rewrite(node), event) is truth(node, event), (rewrite.__name__, str(rewrite(node)))


def test_constants_take_arms_away():
    assert str(fold_constants(tamis.parse("CASE WHEN FALSE THEN 1 WHEN a THEN b WHEN TRUE THEN 2 ELSE 3 END = c"))) == (
        "CASE WHEN a THEN b ELSE 2 END = c"
    )
    assert str(fold_constants(tamis.parse("coalesce(NULL, a, 1, 2) = c"))) == "coalesce(a, 1) = c"
    assert str(fold_constants(tamis.parse("if(TRUE, a, 0) = c"))) == "a = c"
    assert str(fold_constants(tamis.parse("if(TRUE, a, 0.5D) = c"))) == "if(TRUE, a, 0.5D) = c", (
        "it makes a double of a"
    )


def test_if_and_case_are_one_in_canonical_form():
    assert canonical(tamis.parse("if(a, 1, 2) = b")) == canonical(tamis.parse("CASE WHEN a THEN 1 ELSE 2 END = b"))


@pytest.mark.parametrize("name", ["case", "when", "then", "else", "end", "if", "coalesce"])
def test_the_words_remain_names_of_attributes(name):
    for text in (
        f"{name} = 1",
        f"{name} + 1 > 2 AND {name} IS NOT NULL",
        f"{name} IN (1, 2) AND {name} NOT IN (3)",
        f"CASE WHEN `{name}` THEN `{name}` ELSE `{name}` END = 1",
        f"{name}.x = 1 AND NOT {name} AND {name}",
        f"-{name} < 2",
    ):
        node = tamis.parse(text)
        assert tamis.parse(str(node)) == node
    assert tamis.holds(tamis.parse(f"{name} = 1"), {name: 1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN a THEN 1", "expected WHEN, ELSE or END"),
        ("CASE WHEN a THEN 1 ELSE 2", "expected END"),
        ("CASE WHEN a", "expected THEN"),
        ("CASE a", "expected WHEN"),
        ("CASE a ELSE 1 END = 1", "found ELSE, expected WHEN"),
        ("CASE WHEN a THEN 1 ELSE 2 ELSE 3 END = 1", "found ELSE, expected END"),
        ("CASE WHEN a THEN 1, 2 END = 1", "found ,"),
        ("(CASE WHEN a THEN 1) = 1", r"found \), expected WHEN, ELSE or END"),
        ("CASE WHEN THEN 1 END = 1", "found 1"),
        ("CASE WHEN a BETWEEN 1 THEN 1 END = 1", "AND"),
        ("a = 1 END", "found END, expected AND, OR or an operator"),
    ],
)
def test_a_case_that_is_not_finished_says_what_is_missing(text, expected):
    with pytest.raises(ExpressionSyntaxError, match=expected):
        tamis.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CASE WHEN 1 THEN 2 END = 1", "a number stands where a condition is expected"),
        ("if('x', 1, 2) = 1", "a text stands where a condition is expected"),
        ("CASE WHEN a THEN 1 ELSE 'x' END = 1", "its branches are of different kinds: number, string"),
        ("coalesce(a, 1, 'x') = 1", "its arguments are of different kinds"),
        ("CASE a WHEN 1 THEN 2 WHEN 'x' THEN 3 END = 'x'", "cannot be compared"),
        ("coalesce(a, 1) AND b", "a number cannot be compared with a Boolean"),
        ("length(a) AND b", "a value stands where a condition is expected"),
    ],
)
def test_the_checker_knows_branches_from_conditions(text, message):
    with pytest.raises(TypeMismatchError, match=message):
        tamis.parse(text)


def test_a_schema_gives_branches_their_kinds():
    schema = tamis.Schema({"a": "int", "s": "string", "f": "bool"})
    tamis.parse("coalesce(f, FALSE) AND if(f, a, 0) > 1", schema)
    for text in ("if(a, 1, 2) = 1", "if(f, a, s) = 1", "coalesce(a, 0)", "CASE WHEN f THEN s END > 1"):
        with pytest.raises(TypeMismatchError):
            tamis.parse(text, schema)


def test_a_repeated_operand_counts_in_the_size_of_the_text():
    nested = "a"
    for _ in range(8):
        nested = f"CASE ({nested}) WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 WHEN 4 THEN 4 END"
    with pytest.raises(LimitError):
        tamis.parse(f"{nested} = 1", limits=Limits(nodes=5_000))


def test_the_builder_makes_what_the_parser_reads():
    points = when(attr("signed"), 2).otherwise(0) + when(attr("bids") < 3, 1).when(attr("bids") < 9, attr("low"))
    assert (points >= 2) == tamis.parse(
        "CASE WHEN signed THEN 2 ELSE 0 END + CASE WHEN bids < 3 THEN 1 WHEN bids < 9 THEN low END >= 2"
    )
    assert (coalesce(attr("sold"), False) & attr("signed")) == tamis.parse("coalesce(sold, FALSE) AND signed")
    with pytest.raises(TypeMismatchError):
        when(attr("a"), 1).otherwise("x")
    with pytest.raises(TypeMismatchError):
        when(5, 1)


def test_json_takes_a_choice_where_a_condition_is_expected():
    data = {"tamis": 1, "expression": {"not": {"call": "coalesce", "arguments": [{"attribute": ["sold"]}, False]}}}
    assert tamis.from_json(data) == tamis.parse("NOT coalesce(sold, FALSE)")
    with pytest.raises(JsonFormError):
        tamis.from_json({"tamis": 1, "expression": {"call": "length", "arguments": [{"attribute": ["sold"]}]}})


def test_an_explanation_shows_the_conditions_inside():
    told = str(tamis.explain(tamis.parse("if(a > 1, 2, 0) + CASE WHEN b < 3 THEN 1 END >= 3"), {"a": 4, "b": 7}))
    assert "✓ a > 1   (a is 4)" in told
    assert "✗ b < 3   (b is 7)" in told
    assert "has no value" in told
    assert "all its arguments are NULL" in str(tamis.explain(tamis.parse("coalesce(a, b) = 1"), {}))


@given(choices_of(st.one_of(attributes, literals(numbers)), conditions), events())
def test_a_choice_evaluates_all_its_parts_and_raises_nothing(node, event):
    assert isinstance(node, Call)
    fold(node, lambda inner, below: meaning(inner, below, event, None))
