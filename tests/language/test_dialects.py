"""What is written in another dialect of SQL gets a hint that leads on."""

from __future__ import annotations

import re

import pytest

import tamis
from tamis.errors import ExpressionSyntaxError, UnknownAttributeError, UnknownFunctionError
from tamis.language import dialects
from tamis.language.functions import FUNCTIONS

CLOCK = "A condition has no clock"


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("title ILIKE 'x%'", ExpressionSyntaxError, r"Write lower\(title\) LIKE"),
        ("title not ilike 'x%'", ExpressionSyntaxError, r"Write lower\(title\) LIKE"),
        ("ilike(title, 'x%')", UnknownFunctionError, r"Write lower\(title\) LIKE"),
        ("title CONTAINS 'x'", ExpressionSyntaxError, r"contains\(title, 'house'\); .*array_contains\(tags, 'new'\)"),
        ("a > 1 AND tags contains 'x'", ExpressionSyntaxError, r"array_contains\(tags, 'new'\)"),
        ("'x' IN tags", ExpressionSyntaxError, r"If tags is an array: array_contains\(tags, 'x'\)"),
        ("'x' NOT IN tags", ExpressionSyntaxError, r"If tags is an array: NOT array_contains\(tags, 'x'\)"),
        ("size IN position.sizes", ExpressionSyntaxError, r"If position.sizes is an array: array_contains\(position.sizes, size\)"),
        ("a IN 1, 2", ExpressionSyntaxError, r"IN takes a list: category IN \('Thriller', 'Crime'\)"),
        ("ends > now()", UnknownFunctionError, CLOCK),
        ("ends > NOW() - INTERVAL 1 DAY", UnknownFunctionError, CLOCK),
        ("ends > current_timestamp()", UnknownFunctionError, CLOCK),
        ("today() < ends", UnknownFunctionError, CLOCK),
        ("'x' = ANY(tags)", UnknownFunctionError, r"Write array_contains\(tags, 'new'\)"),
        ("has(tags, 'x')", UnknownFunctionError, r"Write array_contains"),
        ("strpos(title, 'x') > 0", UnknownFunctionError, r"Write contains\(title, 'house'\)"),
        ("regexp_like(title, 'x')", UnknownFunctionError, "Write title RLIKE 'pattern'"),
        ("title ~ 'x'", ExpressionSyntaxError, "Write title RLIKE 'pattern'"),
        ("tags @> 'x'", ExpressionSyntaxError, r"Write array_contains"),
        ("nvl(a, b) = 1", UnknownFunctionError, r"Write coalesce\(price, 0\) < 20"),
        ("iif(a, b, c) = 1", UnknownFunctionError, "Write CASE WHEN signed THEN 30 ELSE 20 END"),
        ("min(a, b) = 1", UnknownFunctionError, r"write least\(low, high\)"),
        ("MAX(a, b) = 1", UnknownFunctionError, r"write greatest\(low, high\)"),
        ("sum(a, b) = 1", UnknownFunctionError, r"write low \+ high"),
        ("title starts with 'x'", ExpressionSyntaxError, r"Write startswith\(title, 'The'\)"),
        ("a ISNULL", ExpressionSyntaxError, "Write price IS NULL"),
    ],
)  # fmt: skip
def test_the_hint_says_what_would_be_right(text, error, hint):
    with pytest.raises(error, match=hint):
        tamis.parse(text)


def test_a_clock_without_a_parenthesis_is_an_attribute_and_a_schema_tells():
    assert tamis.holds(tamis.parse("current_date > 5"), {"current_date": 6}), "a name like any other"
    with pytest.raises(UnknownAttributeError, match=CLOCK):
        tamis.parse("ends > current_timestamp", tamis.Schema({"ends": "timestamp"}))


def test_what_a_hint_says_to_write_can_be_written():
    hints = {*dialects.OPERATORS.values(), *dialects.FUNCTIONS.values(), *dialects.CLOCKS.values()}
    examples = [
        example
        for hint in hints
        for example in re.findall(
            r"(?:Write|write|function:|one:|missing:|OR:|array,) ((?:[^';]|'[^']*')+?)(?:;|,? with|\.$)", hint
        )
    ]
    assert len(examples) >= len(hints) - 1, sorted(hints)
    for example in examples:
        tamis.parse(example)


def test_no_hint_hides_a_function_that_exists():
    assert not dialects.FUNCTIONS.keys() & FUNCTIONS.keys()
