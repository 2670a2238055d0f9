"""The corners of the meaning that Spark cannot check, and how an answer is explained."""

from __future__ import annotations

import pytest
from hypothesis import given

import tamis
from tamis.errors import ExpressionSyntaxError
from tamis.language.explanation import TRUTHS
from tests.strategies import conditions, events


@pytest.mark.parametrize(
    ("text", "event", "truth"),
    [
        # at_least and xor follow three-valued logic
        ("at_least(2, a, b, c)", {"a": True, "b": True}, True),
        ("at_least(2, a, b, c)", {"a": True, "b": False}, None),
        ("at_least(2, a, b, c)", {"a": False, "b": False}, False),
        ("NOT at_least(2, a, b, c)", {"a": False, "b": False}, True),
        ("at_least(0, a)", {}, True),
        ("at_least(2, a)", {}, False),
        ("xor(a, b)", {"a": True, "b": False}, True),
        ("xor(a, b)", {"a": True, "b": True}, False),
        ("xor(a, b)", {"a": True}, None),
        ("xor(a, b, c)", {"a": True, "b": True, "c": True}, True),
        # constraints over several attributes (Jewel 2004, section 4.2.1)
        ("a >= 200 AND b >= 100 AND c >= 600 AND a + b + c <= 1000", {"a": 300, "b": 170, "c": 500}, False),
        ("a >= 200 AND b >= 100 AND c >= 600 AND a + b + c <= 1000", {"a": 300, "b": 170, "c": 630}, False),
        ("a >= 200 AND b >= 100 AND c >= 600 AND a + b + c <= 1000", {"a": 240, "b": 120, "c": 630}, True),
        ("least(a, b) > least(c, d)", {"a": 5, "b": 4, "c": 3, "d": 9}, True),
        ("avg(a, b, c) = 2", {"a": 1, "b": 2, "c": 3}, True),
        ("avg(a, b) = 2", {"a": 2}, None),
        # values that do not meet
        ("a < 5", {"a": "4"}, None),
        ("NOT a < 5", {"a": "4"}, None),
        ("a <=> 5", {"a": "5"}, False),
        ("a IN (5, '5')", {"a": "5"}, True),
        ("a IN (5, 6)", {"a": "5"}, None),
        ("sold", {"sold": 1}, None),
        ("sold", {"sold": True}, True),
        # names are case-sensitive, paths lead into records
        ("A = 1", {"a": 1}, None),
        ("p.x = 1", {"p": {"x": 1}}, True),
        ("`p.x` = 1", {"p": {"x": 1}}, None),
        ("`p.x` = 1", {"p.x": 1}, True),
        ("p.x = 1", {"p": 5}, None),
        ("p IS NOT NULL", {"p": {"x": 1}}, True),
        # what Spark refuses is NULL
        ("a / b > 1", {"a": 1, "b": 0}, None),
        ("(a / b) IS NULL", {"a": 1, "b": 0}, True),
        ("a + 1 > 0", {"a": 2**63 - 1}, None),
        ("a * 2 > 0", {"a": 2**62}, None),
        # places and networks
        ("distance(lat, lon, 48.208, 16.373) BETWEEN 267 AND 270", {"lat": 45.815, "lon": 15.982}, True),
        ("distance(lat, lon, 48.208, 16.373) < 5", {"lat": 91, "lon": 15}, None),
        ("in_cidr(ip, '10.0.0.0/8')", {"ip": "10.200.3.4"}, True),
        ("in_cidr(ip, '10.0.0.0/8')", {"ip": "11.0.0.1"}, False),
        ("in_cidr(ip, '10.0.0.0/8')", {"ip": "no address"}, None),
        ("in_cidr(ip, '2001:db8::/32')", {"ip": "2001:db8::1"}, True),
        # arrays
        ("array_contains(tags, 'a')", {"tags": ["a", None]}, True),
        ("array_contains(tags, 'b')", {"tags": ["a", None]}, None),
        ("array_contains(tags, 'b')", {"tags": ["a", 5]}, None),
        ("array_contains(tags, 'b')", {"tags": []}, False),
        ("array_contains(tags, 'b')", {"tags": "b"}, None),
        ("arrays_overlap(tags, array('a'))", {"tags": []}, False),
        ("arrays_overlap(tags, array('a'))", {"tags": ["b", None]}, None),
        ("size(tags) = 2", {"tags": ("a", "b")}, True),
    ],
)
def test_the_meaning_of(text, event, truth):
    assert tamis.truth(tamis.parse(text), event) is truth


@given(conditions, events())
def test_matching_never_raises_because_of_an_events_values(expression, event):
    assert tamis.truth(expression, event) in (True, False, None)
    assert tamis.holds(expression, event) is (tamis.truth(expression, event) is True)


@given(conditions, events())
def test_an_explanation_tells_the_truth_of_every_condition(expression, event):
    explained = tamis.explain(expression, event)
    assert explained.truth is tamis.truth(expression, event)
    for _, part in explained.lines():
        assert tamis.truth(tamis.parse(part.text), event) is part.truth
    assert explained.as_dict()["truth"] == TRUTHS[explained.truth]
    assert len(str(explained).split("\n")) >= 1


@pytest.mark.parametrize(
    ("text", "event", "reason"),
    [
        ("price < 20", {"price": 12}, "price is 12"),
        ("price < 20", {}, "price is absent"),
        ("price < 20", {"price": None}, "price is NULL"),
        ("price < 20", {"price": "dear"}, "price is 'dear'; a text and a number do not compare"),
        ("price < 20", {"price": b"x"}, "price is b'x', which is not a value of the language"),
        ("a / b < 20", {"a": 1, "b": 0}, "a / b has no value: an operand is NULL or no number, or the divisor is zero"),
        ("a + b < 20", {"a": 1, "b": 2}, "a + b is 3"),
        ("a < b", {"a": 1, "b": 2}, "a is 1; b is 2"),
        ("tags IS NULL", {"tags": ["a"]}, "tags is ['a']"),
        (
            "array_contains(tags, 'b')",
            {"tags": ["a", None]},
            "tags is ['a', NULL]; a NULL among its elements could be it",
        ),
        ("p IS NULL", {"p": {}}, "p is a record"),
        ("a AND b", {"a": True, "b": True}, "all are true"),
        ("a AND b", {"a": True, "b": False}, "1 of 2 is false"),
        ("a XOR b", {"a": True, "b": True}, "2 of 2 are true, an even number"),
        ("at_least(2, a, b)", {"a": True}, "1 of 2 is true, 1 is unknown; 2 are needed"),
        ("sold", {"sold": True}, "sold is TRUE"),
    ],
)
def test_the_reason_of(text, event, reason):
    assert tamis.explain(tamis.parse(text), event).reason == reason


def test_a_text_means_what_its_expression_means():
    text = "price < 20 OR NOT bids > 3"
    for event in ({"price": 12}, {"price": 25}, {"price": 25, "bids": 9}):
        assert tamis.holds(text, event) == tamis.holds(tamis.parse(text), event)
        assert tamis.truth(text, event) == tamis.truth(tamis.parse(text), event)
        assert tamis.explain(text, event) == tamis.explain(tamis.parse(text), event)
    with pytest.raises(ExpressionSyntaxError, match="price <"):
        tamis.holds("price <", {})
