"""Three ways in, one result: text, JSON and pickles all come back as the same expression."""

from __future__ import annotations

import dataclasses
import json
import pickle

import jsonschema
import pytest
from hypothesis import given

import tamis
from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    Test,
    Xor,
    postorder,
)
from tamis.language.limits import Limits
from tests.strategies import conditions


@given(conditions)
def test_text_to_expression_to_text_to_expression_is_the_identity(expression):
    text = str(expression)
    again = tamis.parse(text)
    assert again == expression
    assert hash(again) == hash(expression)
    assert str(again) == text


@given(conditions)
def test_json_to_expression_to_json_to_expression_is_the_identity(expression):
    document = expression.to_json()
    again = tamis.from_json(document)
    assert again == expression
    assert again.to_json() == document


@given(conditions)
def test_the_json_form_fits_its_published_schema(expression):
    _VALIDATOR.validate(json.loads(expression.to_json()))


_VALIDATOR = jsonschema.Draft202012Validator(tamis.json_schema())


@given(conditions)
def test_a_pickle_comes_back_equal(expression):
    assert pickle.loads(pickle.dumps(expression)) == expression


def test_an_expression_of_any_depth_is_hashed_compared_printed_and_pickled():
    def deep():
        node = Compare("=", Attribute(("a",)), Literal(1))
        for _ in range(100_000):
            node = ~node
        return node

    one, two = deep(), deep()
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == two
    assert str(one).count("NOT") == 100_000
    assert tamis.holds(one, {"a": 1})
    assert tamis.parse(str(one), limits=Limits(depth=200_000, nodes=200_000)) == one


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("a = 1", "a = 1.0"),
        ("a = 1", "a = 1D"),
        ("a = TRUE", "a = 1"),
        ("a = 0D", "a = -0.0D"),
        ("a = 'x'", "a = DATE '2024-01-01'"),
    ],
)
def test_literals_of_different_types_are_different(one, two):
    assert tamis.parse(one) != tamis.parse(two)


def test_expressions_are_frozen():
    with pytest.raises(AttributeError):
        tamis.parse("a = 1").operator = "<"


@given(conditions)
def test_a_node_is_made_of_its_children_and_the_rest(expression):
    for node in postorder(expression):
        assert type(node).made(node.children, node.own) == node
        assert node.with_children(node.children) == node
        declared = (node.CHILDREN,) if isinstance(node.CHILDREN, str) else node.CHILDREN
        fields = [each for each in type(node).__match_args__ if each not in declared]
        assert node.own == tuple(getattr(node, name) for name in fields)
        below = [getattr(node, name) for name in declared]
        assert node.children == (below[0] if isinstance(node.CHILDREN, str) else tuple(below))


def test_every_field_that_holds_an_expression_is_declared_a_child():
    for kind in (Call, Compare, Between, In, IsNull, IsA, Like, RLike, Test, Not, And, Or, Xor, AtLeast):
        holding = {each.name for each in dataclasses.fields(kind) if "Expression" in str(each.type)}
        assert holding == ({kind.CHILDREN} if isinstance(kind.CHILDREN, str) else set(kind.CHILDREN)), kind
