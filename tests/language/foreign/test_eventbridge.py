"""Patterns of EventBridge: what they say by the documentation, and that the translation says the same."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import TranslationError
from tamis.language import Schema, holds, parse
from tests.language.foreign.eventbridge import is_as_assumed, matches

EVENT = {
    "version": "0", "id": "e-1", "detail-type": "Order State-change Notification", "source": "shop.orders",
    "account": "123456789012", "time": "2026-01-31T16:24:49Z", "region": "eu-north-7",
    "resources": ["arn:shop:order/17", "arn:shop:customer/4"],
    "detail": {
        "c-count": 5, "d-count": 3, "x-limit": 301.8, "source-ip": "10.0.0.33", "order-id": "o-17", "state": "running",
        "file": "dir/picture.PNG", "empty": "", "nothing": None, "gift": True, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}],
        "tags": ["new", "rare"],
    },
}  # fmt: skip
"""An event with the members that those of the documentation have."""

EXAMPLES = [
    # Values, in lists of which one has to match; arrays of which one element has to.
    ({"source": ["shop.orders"]}, True),
    ({"source": ["shop.orders", "shop.bids"], "detail-type": ["Order State-change Notification"]}, True),
    ({"source": ["shop.bids"]}, False),
    ({"resources": ["arn:shop:customer/4", "arn:none"]}, True),
    ({"resources": ["arn:shop:order/18"]}, False),
    ({"detail": {"state": ["initializing", "running"]}}, True),
    ({"detail": {"c-count": [5], "x-limit": [301.8], "gift": [True]}}, True),
    ({"detail": {"c-count": ["5"]}}, False),
    ({"detail": {"gift": ["true"]}}, False),
    ({"detail": {"empty": [""]}}, True),
    ({"detail": {"state": [""]}}, False),
    ({"detail": {"tags": ["rare"], "state": ["running"]}}, True),
    # Null, and what is not there.
    ({"detail": {"nothing": [None]}}, True),
    ({"detail": {"state": [None]}}, False),
    ({"detail": {"c-count": [{"exists": True}]}}, True),
    ({"detail": {"d2-count": [{"exists": True}]}}, False),
    ({"detail": {"d2-count": [{"exists": False}]}}, True),
    ({"detail": {"c-count": [{"exists": False}]}}, False),
    ({"detail": {"lines": [{"exists": False}]}}, True),  # of objects there are no values
    ({"detail": {"nothing": [{"exists": True}]}}, True),
    # Beginnings, ends, cases and wildcards.
    ({"time": [{"prefix": "2026-01-31"}]}, True),
    ({"region": [{"prefix": "us-"}]}, False),
    ({"detail": {"c-count": [{"prefix": "5"}]}}, False),
    ({"source": [{"prefix": {"equals-ignore-case": "SHOP."}}]}, True),
    ({"source": [{"suffix": "orders"}]}, True),
    ({"detail": {"file": [{"suffix": ".png"}]}}, False),
    ({"detail": {"file": [{"suffix": {"equals-ignore-case": ".png"}}]}}, True),
    ({"detail": {"state": [{"equals-ignore-case": "RUNning"}]}}, True),
    ({"detail": {"file": [{"wildcard": "dir/*.PNG"}]}}, True),
    ({"detail": {"file": [{"wildcard": "*/lib/*"}]}}, False),
    ({"detail": {"file": [{"wildcard": "dir\\*"}]}}, False),
    ({"resources": [{"prefix": "arn:shop:cust"}]}, True),
    # Numbers and networks.
    ({"detail": {"c-count": [{"numeric": [">", 0, "<=", 5]}], "d-count": [{"numeric": ["<", 10]}]}}, True),
    ({"detail": {"x-limit": [{"numeric": ["=", 3.018e2]}]}}, True),
    ({"detail": {"c-count": [{"numeric": [">", 5]}]}}, False),
    ({"detail": {"state": [{"numeric": [">", 0]}]}}, False),
    ({"detail": {"source-ip": [{"cidr": "10.0.0.0/24"}]}}, True),
    ({"detail": {"source-ip": [{"cidr": "10.0.1.0/24"}]}}, False),
    ({"detail": {"source-ip": [{"cidr": "10.9.9.9/8"}]}}, True),
    ({"detail": {"state": [{"cidr": "10.0.0.0/8"}]}}, False),
    # Anything but.
    ({"detail": {"state": [{"anything-but": "initializing"}]}}, True),
    ({"detail": {"state": [{"anything-but": ["stopped", "running"]}]}}, False),
    ({"detail": {"x-limit": [{"anything-but": [100, 200, 300]}]}}, True),
    ({"detail": {"c-count": [{"anything-but": 5}]}}, False),
    ({"detail": {"c-count": [{"anything-but": "5"}]}}, True),
    ({"detail": {"nowhere": [{"anything-but": "x"}]}}, False),
    ({"detail": {"state": [{"anything-but": {"prefix": "init"}}]}}, True),
    ({"detail": {"state": [{"anything-but": {"prefix": ["init", "run"]}}]}}, False),
    ({"detail": {"file": [{"anything-but": {"suffix": ".PNG"}}]}}, False),
    ({"detail": {"state": [{"anything-but": {"equals-ignore-case": ["STOPPED", "Running"]}}]}}, False),
    ({"detail": {"file": [{"anything-but": {"wildcard": "*/lib/*"}}]}}, True),
    ({"detail": {"nothing": [{"anything-but": "x"}]}}, True),
    ({"detail": {"tags": [{"anything-but": "new"}]}}, True),
    # Choices.
    ({"$or": [{"source": ["x"]}, {"region": ["eu-north-7"]}]}, True),
    ({"source": ["shop.orders"], "$or": [{"account": ["1"]}, {"detail": {"state": ["stopped"]}}]}, False),
    ({"$or": [{"source": ["x"]}, {"region": ["eu-north-7"], "detail": {"$or": [{"c-count": [4]}, {"d-count": [3]}]}}]}, True),
    # Arrays of objects: one object has to match all of it.
    ({"detail": {"lines": {"sku": ["b"]}}}, True),
    ({"detail": {"lines": {"sku": ["b"], "n": [2]}}}, True),
    ({"detail": {"lines": {"sku": ["b"], "n": [1]}}}, False),
    ({"detail": {"state": {"deeper": [{"exists": False}]}}}, True),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "expected"), EXAMPLES, ids=[json.dumps(pattern) for pattern, _ in EXAMPLES])
def test_examples_of_the_documentation(pattern, expected):
    assert matches(pattern, EVENT) is expected, "the definition"
    translation = tamis.translate(json.dumps(pattern))
    if all(is_as_assumed(EVENT, each) for each in translation.assumes):
        assert holds(translation.condition, EVENT) is expected, str(translation)
    else:  # only where the language cannot say it
        shapes = {shape for each in translation.assumes for shape in each.never}
        assert shapes & {"null", "absent", "an object", "an array", "an array without values"}


def test_most_examples_of_the_documentation_are_as_their_translations_assume():
    fit = [all(is_as_assumed(EVENT, each) for each in tamis.translate(pattern).assumes) for pattern, _ in EXAMPLES]
    assert sum(fit) == len(fit) - 8


# -- Everything that can be said

names = st.sampled_from(["a", "b", "c-d", "$or", "Ü"])
texts = st.sampled_from(["", "a", "A", "ab", "aB%", "a_b", "b*", "\\", "ÄB", "10.0.0.7", "::1", "5", "a\nb"])
numbers = st.one_of(st.integers(-5, 5), st.sampled_from([0.5, -2.0, 3e2, 1e-3, 2**52]))
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c-d"]), inner, max_size=3)
    ),
    max_leaves=6,
)
events = st.dictionaries(st.sampled_from(["a", "b", "c-d", "Ü"]), values, max_size=4)
wildcards = (
    st.lists(st.sampled_from(["a", "B", "%", "_", "\\*", "\\\\", "*"]), max_size=4)
    .map("".join)
    .filter(lambda text: "**" not in text.replace("\\*", "x"))
)
insensitive = st.builds(lambda text: {"equals-ignore-case": text}, texts)


def some(strategy):
    """One of these, or a list of them."""
    return st.one_of(strategy, st.lists(strategy, min_size=1, max_size=2))


solid = texts.filter(bool)
operators = st.one_of(
    st.builds(lambda text: {"prefix": text}, st.one_of(texts, insensitive)),
    st.builds(lambda text: {"suffix": text}, st.one_of(texts, insensitive)),
    insensitive,
    st.builds(lambda text: {"wildcard": text}, wildcards),
    st.builds(lambda sign, number: {"numeric": [sign, number]}, st.sampled_from(["<", "<=", ">", ">=", "="]), numbers),
    st.builds(
        lambda low, n, high, m: {"numeric": [low, min(n, m), high, max(n, m) + 1]},
        st.sampled_from([">", ">="]), numbers, st.sampled_from(["<", "<="]), numbers,
    ),
    st.builds(lambda text: {"cidr": text}, st.sampled_from(["10.0.0.0/24", "10.0.0.9/8", "::/64", "0.0.0.0/0"])),
    st.builds(lambda is_there: {"exists": is_there}, st.booleans()),
    st.builds(lambda operand: {"anything-but": operand}, st.one_of(some(texts), some(numbers))),
    st.builds(
        lambda name, operand: {"anything-but": {name: operand}},
        st.sampled_from(["prefix", "suffix", "equals-ignore-case"]), some(solid),
    ),
    st.builds(lambda operand: {"anything-but": {"wildcard": operand}}, some(wildcards.filter(bool))),
)  # fmt: skip
leaf = st.lists(st.one_of(scalars, operators), min_size=1, max_size=3)
patterns = st.recursive(
    st.dictionaries(st.sampled_from(["a", "b", "c-d", "Ü"]), leaf, min_size=1, max_size=2),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["a", "b"]), st.one_of(leaf, inner), min_size=1, max_size=2),
        st.builds(lambda one, other: {"$or": [one, other]}, inner, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=2_000)
@given(patterns, events)
@example({"a": [{"anything-but": "x"}]}, {"a": 5})
@example({"a": [{"exists": False}, None]}, {"a": None})
@example({"a": {"b": [{"exists": False}]}}, {"a": "text"})
@example({"a": [{"wildcard": "%*_"}]}, {"a": "%x_"})
def test_a_translation_says_what_the_pattern_says_of_every_event_that_is_as_it_assumes(pattern, event):
    translation = tamis.translate(pattern)
    assume(all(is_as_assumed(event, each) for each in translation.assumes))
    expected = matches(pattern, event)
    assert holds(translation.condition, event) is expected
    assert holds(parse(str(translation)), event) is expected, "as a text, too"


@settings(max_examples=1_000)
@given(st.dictionaries(st.sampled_from(["a", "b"]), st.lists(st.one_of(st.booleans(), numbers, texts), min_size=1, max_size=3), min_size=1), events)  # fmt: skip
def test_values_are_found_in_arrays_too(pattern, event):
    """The one assumption about values is that arrays are not in arrays."""
    translation = tamis.translate(pattern)
    assert {shape for each in translation.assumes for shape in each.never} == {"an array of arrays"}
    assume(all(is_as_assumed(event, each) for each in translation.assumes))
    assert holds(translation.condition, event) is matches(pattern, event)


@given(patterns)
def test_a_pattern_is_not_changed_and_its_place_is_below_where_it_is_said(pattern):
    before = copy.deepcopy(pattern)
    translation = tamis.translate(pattern, below="data")
    assert pattern == before
    assert str(tamis.translate(json.dumps(pattern), below=("data",))) == str(translation)
    assert all(each.path[0] == "data" for each in translation.assumes)


def test_a_schema_says_what_need_not_be_assumed():
    schema = Schema({"state": "string", "tags": "array<string>", "detail": {"n": "long"}})
    plain = tamis.translate({"state": [{"prefix": "a"}], "detail": {"n": [1]}}, schema=schema, strict=True)
    assert plain.is_exact and str(plain) == "detail.n = 1 AND startswith(state, 'a')"
    assert str(tamis.translate({"tags": ["x", "y"]}, schema=schema)) == "arrays_overlap(tags, array('x', 'y'))"
    [assumption] = tamis.translate({"state": [{"anything-but": "a"}]}, schema=schema).assumes
    assert str(assumption) == "state is never null"
    with pytest.raises(TranslationError, match="says the same only if state is never null"):
        tamis.translate({"state": [{"anything-but": "a"}]}, schema=schema, strict=True)


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("{", "not JSON"), ({}, "the pattern is an object"), ([], "the pattern is a list"), ({"a": "x"}, "a is a text"), ({"a": []}, "list of a is empty"),
        ({"a": [["x"]]}, "a is a list"), ({"a": {}}, "a is an object"), ({"a": [{}]}, "a is an object"), ({"a": [{"prefix": "x", "suffix": "y"}]}, "a is an object"),
        ({"a": [{"prefx": "x"}]}, "an operator 'prefx' that is not known"), ({"a": [{"prefix": 5}]}, "a is a number"), ({"a": [{"wildcard": "a**"}]}, "a is a text"),
        ({"a": [{"wildcard": "a\\n"}]}, "a is a text"), ({"a": [{"numeric": [">"]}]}, "a is a list"), ({"a": [{"numeric": ["<", 1, ">", 0]}]}, "a is a list"),
        ({"a": [{"numeric": [">", 5, "<", 5]}]}, "a is a list"), ({"a": [{"numeric": ["!", 5]}]}, "no comparison '!'"), ({"a": [{"numeric": ["<", "5"]}]}, "a is a text"),
        ({"a": [{"numeric": ["<", True]}]}, "a is a Boolean"), ({"a": [{"cidr": "10.0.0.0"}]}, "a is a text"), ({"a": [{"cidr": "x/8"}]}, "a is a text"),
        ({"a": [{"exists": "yes"}]}, "a is a text"), ({"a": [{"anything-but": []}]}, "a is a list"), ({"a": [{"anything-but": ["x", 5]}]}, "a is a list"),
        ({"a": [{"anything-but": None}]}, "a is null"), ({"a": [{"anything-but": {"numeric": ["<", 5]}}]}, "a is an object"),
        ({"a": [{"anything-but": {"prefix": ""}}]}, "a is a text"), ({"a": [float("inf")]}, "a is a number"),
    ],
)  # fmt: skip
def test_what_is_no_pattern_is_refused_with_its_place(pattern, told):
    with pytest.raises(TranslationError, match=told):
        tamis.translate(pattern)


def test_a_choice_is_one_only_with_several_objects_of_fields():
    assert str(tamis.translate({"$or": ["a", "b"]})) == "`$or` IN ('a', 'b') OR arrays_overlap(`$or`, array('a', 'b'))"
    assert (
        str(tamis.translate({"$or": [{"prefix": "a"}, {"prefix": "b"}]}))
        == "startswith(`$or`, 'a') OR startswith(`$or`, 'b')"
    )
    with pytest.raises(TranslationError, match=r"Did you mean eventbridge\?"):
        tamis.translate({}, "eventbrige")
