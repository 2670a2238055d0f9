"""What is said of a set means the set, and is said as a person would."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import TamisError
from tamis.language.ranges.value_sets import intersection
from tamis.relations.forms import Context, context_of
from tamis.relations.formulas import ALWAYS, NEVER, Within
from tamis.relations.wording import worded
from tests.relations.worlds import WORLDS
from tests.strategies import conditions_over, simple_predicates

SCHEMA = tamis.Schema(
    {
        "i": "int", "d": "double", "e": "decimal(10,2)", "s": "string", "b": "bool", "t": "timestamp", "y": "date",
        "type": "string", "m": "int",
    },
    mandatory=["m"],
    hierarchy={"Quote": None, "StockQuote": "Quote", "BondQuote": "Quote", "News": None},
)  # fmt: skip


def said(text, schema=None):
    context = Context(schema)
    formula = context.form(text).formula
    return str(worded(formula.axis, formula.values, context)) if isinstance(formula, Within) else repr(formula)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x < 4 OR x > 7", "x NOT BETWEEN 4 AND 7"),
        ("x IN (2, 3) OR x IN (4, 5)", "x IN (2, 3, 4, 5)"),
        ("x NOT IN (2, 3, 7) OR x NOT IN (3, 7, 9)", "x NOT IN (3, 7)"),
        ("x BETWEEN 2 AND 4 OR x BETWEEN 3 AND 5", "x BETWEEN 2 AND 5"),
        ("x = 5 OR x <> 5", "x <= double('NaN')"),
        ("x > 5 AND x <= 7.5", "x > 5 AND x <= 7.5"),
        ("x > 0.1D", "x > 0.1D"),
        ("x > 1e300D", "x > 1e+300D"),
        ("x > 9007199254740993", "x > 9007199254740993"),
        ("x = 1 OR x = 'a' OR x IS NULL", "x IS NULL OR x = 1 OR x = 'a'"),
        ("x <> 5 AND x <> 7 AND x < 100", "(x < 5 OR x > 5 AND x < 7 OR x > 7 AND x < 100)"),
        ("startswith(x, '10% of')", r"x LIKE '10\\% of%'"),
        ("x >= 'a' AND x < 'c'", "x >= 'a' AND x < 'c'"),
        ("x IS NOT NULL", "x IS NOT NULL"),
        ("x <= TRUE", "x <= TRUE"),
        ("x >= ''", "x >= ''"),
        ("low < x", "low < x"),
        ("low <> x AND low <= x", "low < x"),
        ("length(x) = 2 OR length(x) = 1", "length(x) BETWEEN 1 AND 2"),
        ("length(x) < 3 OR length(x) > 7", "length(x) NOT BETWEEN 3 AND 7"),
        ("length(x) = 0", "length(x) <= 0"),
        ("length(x) > -1", "length(x) IS NOT NULL"),
        ("size(x) = 0 OR size(x) > 1 OR size(x) IS NULL", "size(x) IS NULL OR size(x) <> 1"),
        ("distance(x, y, 1, 2) < 3 OR distance(x, y, 1, 2) > 7", "distance(x, y, 1, 2) NOT BETWEEN 3 AND 7"),
        ("distance(x, y, 1, 2) > 19000 AND distance(x, y, 1, 2) < 30000", "distance(x, y, 1, 2) > 19000"),
    ],
)
def test_sets_of_values_of_any_type_are_said_as_people_would(text, expected):
    assert said(text).strip("()") == expected.strip("()")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i < 4 OR i > 7", "i NOT BETWEEN 4 AND 7"),
        ("i = 2 OR i = 3", "i BETWEEN 2 AND 3"),
        ("i > 9", "i >= 10"),
        ("i <> 5", "i <> 5"),
        ("d > 0.1D AND d < 5", "d > 0.1 AND d < 5"),
        ("d < 5 OR d >= 5", "d IS NOT NULL"),
        ("m < 5 OR m >= 5", "always"),
        ("e > 1.25", "e > 1.25"),
        ("NOT b", "b = FALSE"),
        ("t > TIMESTAMP '2024-01-01 00:00:00'", "t > TIMESTAMP '2024-01-01 00:00:00'"),
        ("y > TIMESTAMP '2024-01-01 12:00:00'", "y >= DATE '2024-01-02'"),
        ("type IS A 'StockQuote' OR type IN ('BondQuote', 'Quote')", "type IS A 'Quote'"),
        ("type IS A 'StockQuote' OR type IS A 'BondQuote'", "type IN ('BondQuote', 'StockQuote')"),
        ("i IS NULL OR i = 5", "i IS NULL OR i = 5"),
    ],
)
def test_sets_of_typed_values_are_said_as_people_would(text, expected):
    assert said(text, SCHEMA) == expected


@given(condition=conditions_over(simple_predicates, 4))
def test_whatever_is_said_of_a_set_means_just_that_set(condition):
    context = Context(None)
    formula = context.form(condition).formula
    if isinstance(formula, Within):
        expression = worded(formula.axis, formula.values, context)
        if expression is not None:
            assert context.form(expression).formula == formula
            assert context.form(str(expression)).formula == formula


@given(
    term=st.sampled_from(["length(s)", "size(a)", "distance(x, y, 1, 2)", "abs(x)", "x + y", "lower(s)", "x"]),
    operators=st.lists(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "<=>"]), min_size=1, max_size=4),
    operands=st.lists(
        st.one_of(st.integers(-2, 4), st.sampled_from(["0D", "2.5", "20016", "1e300D", "double('NaN')", "''", "NULL"])),
        min_size=4,
        max_size=4,
    ),
    joint=st.sampled_from(["AND", "OR"]),
)
def test_sets_of_a_function_s_values_are_said_within_what_the_function_can_give(term, operators, operands, joint):
    context = Context(None)
    parts = [f"{term} {operator} {operand}" for operator, operand in zip(operators, operands, strict=False)]
    try:
        formula = context.form(f" {joint} ".join(parts)).formula
    except TamisError:
        return  # a text beside a number
    if isinstance(formula, Within):
        expression = worded(formula.axis, formula.values, context)
        assert expression is None or context.form(str(expression)).formula == formula


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_sets_that_people_ask_for_have_a_wording(world):
    chance = Random(3)
    context = context_of(world.schema)
    seen = 0
    for _ in range(300):
        formula = context.form(world.predicate(chance)).formula
        if isinstance(formula, Within):
            expression = worded(formula.axis, formula.values, context)
            if expression is None:  # arrays and records are among the values, but not all that is there
                assert intersection(formula.values, ((6,), (8,)))
            else:
                assert context.form(expression).formula == formula
                seen += 1
    assert seen > 100


def test_everything_and_nothing_have_a_wording():
    context = Context(SCHEMA)
    axis = context.form("i = 1").formula.axis
    assert context.form(worded(axis, axis.values, context)).formula is ALWAYS
    assert context.form(worded(axis, (), context)).formula is NEVER


def test_a_set_without_a_wording_has_none():
    context = Context(None)
    formula = context.form("NOT (a <=> 5)").formula  # also arrays and records, which no comparison reaches
    assert worded(formula.axis, formula.values, context) is None
    order = context.form("(a < b) IS NULL").formula
    assert not isinstance(order, Within) or worded(order.axis, order.values, context) is None


@given(number=st.floats(allow_nan=False), other=st.floats(allow_nan=False))
def test_doubles_are_said_exactly(number, other):
    schema = tamis.Schema({"d": "double"})
    context = Context(schema)
    low, high = sorted((number, other))
    formula = context.form(tamis.attr("d").between(low, high)).formula
    if isinstance(formula, Within):
        expression = worded(formula.axis, formula.values, context)
        assert expression is not None and context.form(str(expression)).formula == formula
