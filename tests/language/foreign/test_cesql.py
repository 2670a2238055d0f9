"""CloudEvents SQL and the filter dialects of CloudEvents: the examples of the specifications, and a plain evaluator."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import TranslationError
from tamis.language import holds, parse
from tamis.language.foreign.cesql_reading import CesqlConstant, CesqlName, read_cesql
from tests.language.foreign.eventbridge import is_as_assumed

EVENT = {"specversion": "1.0", "id": "order-1", "source": "https://shop.example/eu", "type": "com.shop.order.created"}


# -- The definition: a value, or an error


class EvaluationError(Exception):
    """What CESQL calls an error: the event does not pass."""


def passes(text, event):
    """Does an event pass an expression?"""
    try:
        return value_of(read_cesql(text), event) is True
    except EvaluationError:
        return False


def value_of(node, event):
    """The value of an expression, as sections 3.4 to 3.7 of the specification have it."""
    if isinstance(node, CesqlConstant):
        return node.value
    if isinstance(node, CesqlName):
        if event.get(node.name) is None:
            raise EvaluationError("missing attribute")
        return event[node.name]
    operator, operands = node.operator, node.operands
    if operator == "EXISTS":
        return event.get(operands[0].name) is not None
    left = value_of(operands[0], event)
    if operator in ("AND", "OR"):
        if boolean(left) is (operator == "OR"):
            return boolean(left)
        return boolean(value_of(operands[1], event))
    if operator == "NOT":
        return not boolean(left)
    if operator in ("LOWER", "UPPER", "LENGTH"):
        text = written(left)
        return {"LOWER": text.lower(), "UPPER": text.upper(), "LENGTH": len(text)}[operator]
    others = [value_of(each, event) for each in operands[1:]]
    if operator == "IN":
        return any(equal(cast(other, type(left)), left) for other in others)
    [right] = others
    if operator == "XOR":
        return boolean(left) is not boolean(right)
    if operator == "LIKE":
        return like(written(left), right)
    if operator in ("=", "!=", "<>"):  # the type of the right side decides
        return (cast(left, type(right)) == right) is (operator == "=")
    left, right = integer(left), integer(right)
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]


def equal(one, other):
    return type(one) is type(other) and one == other


def cast(value, kind):
    return {bool: boolean, int: integer, str: written}[kind](value)


def boolean(value):
    if isinstance(value, str):
        if value.lower() not in ("true", "false"):
            raise EvaluationError("cast")
        return value.lower() == "true"
    return bool(value)


def integer(value):
    try:
        return int(value)
    except ValueError:
        raise EvaluationError("cast") from None


def written(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def like(text, pattern):
    """Does a text fulfil a pattern? Letter by letter."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[start:], pattern[1:]) for start in range(len(text) + 1))
    if pattern[0] == "\\" and len(pattern) > 1:
        pattern = pattern[1:]
    elif pattern[0] == "_":
        return bool(text) and like(text[1:], pattern[1:])
    return text[:1] == pattern[0] and like(text[1:], pattern[1:])


# -- Examples, after those of the specification and its conformance tests

EXAMPLES = [
    ("TRUE", {}, True), ("FALSE", {}, False), ("NOT TRUE", {}, False), ("not false", {}, True),
    ("source LIKE 'https://%'", {}, True), ("source LIKE 'https://%'", {"source": "http://a"}, False),
    ("type like '%.created'", {}, True), ("type NOT LIKE '%.created'", {}, False), ("id = 'order-1'", {}, True), ('id = "order-2"', {}, False),
    ("myext LIKE 'custom%'", {"myext": "customer"}, True), ("myext LIKE 'custom%'", {}, False), ("NOT (myext LIKE 'custom%')", {}, False),
    ("myext != 'a'", {}, False), ("myext <> 'a'", {"myext": "b"}, True), ("EXISTS subject", {}, False), ("EXISTS subject", {"subject": ""}, True),
    ("NOT EXISTS subject", {}, True), ("EXISTS id", {}, True), ("EXISTS time", {}, False),
    # An error on the left stays, one behind a decision does not happen.
    ("id LIKE 'no%' OR myext LIKE '%ext'", {}, False), ("id LIKE 'order%' OR myext LIKE '%ext'", {}, True),
    ("myext LIKE '%ext' OR id LIKE 'order%'", {}, False), ("myext = 'a' OR TRUE", {}, False), ("TRUE OR myext = 'a'", {}, True),
    ("NOT (myext = 'a' AND FALSE)", {}, False), ("NOT (FALSE AND myext = 'a')", {}, True), ("TRUE XOR myext = 'a'", {}, False),
    ("TRUE XOR FALSE", {}, True), ("TRUE XOR id = 'order-1'", {}, False),
    # AND, OR and XOR bind alike, and to the right.
    ("FALSE AND FALSE OR TRUE", {}, False), ("(FALSE AND FALSE) OR TRUE", {}, True), ("TRUE OR FALSE AND FALSE", {}, True),
    ("firstname = 'Ana' OR subject = 'Ana'", {"firstname": "Ivo", "subject": "Ana"}, True),
    ("(firstname = 'Ana' AND lastname = 'Kos') OR subject = 'Ana Kos'", {"firstname": "Ana", "lastname": "Kos", "subject": "x"}, True),
    # Integers and Booleans.
    ("hop < 10 AND hop >= 5", {"hop": 5}, True), ("hop < 10", {}, False), ("10 > hop", {"hop": 11}, False), ("hop = -3", {"hop": -3}, True),
    ("hop IN (1, 2, 3)", {"hop": 2}, True), ("hop NOT IN (1, 2)", {"hop": 2}, False), ("id IN ('a', 'order-1')", {}, True), ("flag", {"flag": True}, True),
    ("NOT flag", {"flag": True}, False), ("flag = FALSE", {"flag": False}, True), ("flag AND hop > 1", {"flag": True, "hop": 2}, True),
    ("LENGTH(id) > 3", {}, True), ("lower(type) = 'com.shop.order.created'", {"type": "COM.shop.Order.created"}, True), ("UPPER(subject) = 'A'", {}, False),
    # Patterns.
    ("subject LIKE '_b%'", {"subject": "abcd"}, True), ("subject LIKE '_b%'", {"subject": "b"}, False), ("subject LIKE 'abc\\%'", {"subject": "abc%"}, True),
    ("subject LIKE 'abc\\%'", {"subject": "abcd"}, False), ("subject LIKE 'a\\_c'", {"subject": "abc"}, False), ("subject = 'it\\'s'", {"subject": "it's"}, True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "more", "expected"), EXAMPLES)
def test_examples_of_the_specification(text, more, expected):
    event = EVENT | more
    assert passes(text, event) is expected, "the definition"
    translation = tamis.translate(text, "cloudevents")
    assert all(is_as_assumed(event, each) for each in translation.assumes)
    assert holds(translation.condition, event) is expected, str(translation)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("type", "a text, and nothing else"), ("5", "not a condition"), ("a + 1 = 2", "cannot be computed"), ("-a < 3", "cannot be computed"), ("a / b", "gives no condition"),
        ("CONCAT(type, 'a') = 'b'", "cannot be computed"), ("LEFT(type, 2) = 'co'", "cannot be computed"), ("SUBSTRING(type, 2) = 'o'", "cannot be computed"), ("TRIM(type) = 'a'", "cannot be computed"),
        ("NOT type = 'a'", "NOT binds more tightly"), ("id = 5", "a text, and nothing else|cannot be computed"), ("time = '2026'", "a text, and nothing else|and a text there"), ("1 = 1", "two constants"),
        ("a = b", "two attributes"), ("type IN (a)", "with constants only"), ("subject LIKE 'a\\b'", "a backslash in a pattern"), ("type LIKE id", "a text in quotes"), ("type = ", "end of the text"),
        ("(type = 'a'", "end of the text"), ("type = 'a' )", "an operator, or the end"), ("Type = 'a'", "not the name of an attribute"), ("a = 99999999999", "32 bits"), ("a ~ b", "has no meaning"),
        ("AND", "a value"), ("EXISTS 'a'", "a value"), ("INT(a) < 3", "cannot be computed"), ("a = 'open", "has no meaning"), ("(" * 200 + "TRUE" + ")" * 200, "levels deep"), ("", "end of the text"),
        ("a" * 20_000, "more than 10,000"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_an_error_with_its_place(text, told):
    with pytest.raises(TranslationError, match=told) as raised:
        tamis.translate({"cesql": text}, "cloudevents")
    assert raised.value.position is None or 0 <= raised.value.position <= len(text)


def test_what_is_assumed_of_extensions_is_said():
    assert [str(each) for each in tamis.translate("level > 3 AND kind = 'a' AND gone", "cloudevents").assumes] == [
        "gone is never an integer or a text", "kind is never an integer or a Boolean", "level is never a Boolean or a text",
    ]  # fmt: skip
    assert tamis.translate("type = 'a' AND subject LIKE 'b%'", "cloudevents", strict=True).is_exact
    with pytest.raises(TranslationError, match="level is never a Boolean or a text"):
        tamis.translate("level > 3", "cloudevents", strict=True)


# -- Everything that can be said

texts = st.sampled_from(["a", "b", "ab", "5", "true", "", "a%"])
quoted = texts.map(lambda text: f"'{text}'")
core = st.sampled_from(["id", "type", "subject"])
leaves = st.one_of(
    st.sampled_from(["TRUE", "FALSE", "flag", "EXISTS subject", "EXISTS level", "EXISTS id", "LENGTH(subject) > 1"]),
    st.builds("{} {} {}".format, core, st.sampled_from(["=", "!=", "<>"]), quoted),
    st.builds("kind {} {}".format, st.sampled_from(["=", "!="]), quoted),
    st.builds("{} {} {}".format, core, st.sampled_from(["LIKE", "NOT LIKE"]), st.sampled_from(["'a%'", "'_'", "'%b'", "'a\\%'", "''"])),
    st.builds("{} {} ({}, {})".format, core, st.sampled_from(["IN", "NOT IN"]), quoted, quoted),
    st.builds("level {} {}".format, st.sampled_from(["=", "<", "<=", ">", ">=", "!="]), st.integers(-3, 6)),
    st.builds("level NOT IN ({}, {})".format, st.integers(-3, 6), st.integers(-3, 6)),
    st.builds("LOWER({}) = UPPER({})".format, core, core),
)  # fmt: skip
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds("({}) {} ({})".format, inner, st.sampled_from(["AND", "OR", "XOR", "and"]), inner),
        st.builds("{} {} {}".format, leaves, st.sampled_from(["AND", "OR", "XOR"]), inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=6,
)
events = st.fixed_dictionaries(
    {"id": texts.filter(bool), "type": texts.filter(bool)},
    optional={
        "subject": texts, "kind": st.one_of(texts, st.integers(-3, 6), st.booleans()),
        "level": st.one_of(st.integers(-3, 6), texts, st.booleans()), "flag": st.one_of(st.booleans(), texts, st.integers(0, 1)),
    },
)  # fmt: skip


def fits(event, assumption):
    """Is an extension of the kind that is assumed?"""
    value = event.get(assumption.path[-1])
    kind = {bool: "a Boolean", int: "an integer", str: "a text"}.get(type(value), "absent")
    return kind not in assumption.never


@settings(max_examples=2_000)
@given(expressions, events)
@example("NOT (kind = 'a' OR TRUE)", {"id": "a", "type": "a"})
@example("subject = 'a' OR id = 'a'", {"id": "a", "type": "a"})
def test_a_translation_says_what_the_expression_says_of_every_event_that_is_as_it_assumes(text, event):
    translation = tamis.translate(text, "cloudevents")
    assume(all(fits(event, each) for each in translation.assumes))
    expected = passes(text, event)
    assert holds(translation.condition, event) is expected, str(translation)
    assert holds(parse(str(translation)), event) is expected


# -- Filters


@pytest.mark.parametrize(
    ("document", "more", "expected"),
    [
        ({"exact": {"type": "com.shop.order.created", "id": "order-1"}}, {}, True), ({"exact": {"type": "com.shop.order"}}, {}, False), ({"exact": {"subject": "a"}}, {}, False),
        ({"exact": {"level": "5"}}, {"level": 5}, True), ({"exact": {"flag": "true"}}, {"flag": True}, True), ({"prefix": {"type": "com.shop."}}, {}, True),
        ({"prefix": {"type": "com.shop.", "subject": "a"}}, {}, False), ({"suffix": {"type": ".created"}}, {}, True), ({"suffix": {"type": ".Created"}}, {}, False),
        ({"all": [{"prefix": {"type": "com."}}, {"exact": {"id": "order-1"}}]}, {}, True), ({"any": [{"exact": {"id": "x"}}, {"suffix": {"type": "ed"}}]}, {}, True),
        ({"not": {"exact": {"subject": "a"}}}, {}, True), ({"not": {"exact": {"subject": "a"}}}, {"subject": "a"}, False), ({"not": {"sql": "subject = 'a'"}}, {}, True),
        ({"sql": "source LIKE '%shop%' AND type IN ('com.shop.order.created', 'x')"}, {}, True), ([{"exact": {"id": "order-1"}}, {"sql": "EXISTS subject"}], {}, False),
        ('{"cesql": "level > 3"}', {"level": 4}, True), ('[{"prefix": {"id": "order"}}]', {}, True),
    ],
)  # fmt: skip
def test_filters_of_the_subscriptions_api(document, more, expected):
    assert holds(tamis.translate(document, "cloudevents").condition, EVENT | more) is expected


@pytest.mark.parametrize("wrong", [{}, {"exact": {}}, {"exact": {"type": 5}}, {"all": []}, {"not": []}, {"sql": 5}, {"exakt": {"a": "b"}}, {"a": 1, "b": 2}, "{", 5, {"prefix": {"time": "2026"}}, {"exact": {"time": "noon"}}])  # fmt: skip
def test_what_is_no_filter_is_refused(wrong):
    with pytest.raises(TranslationError):
        tamis.translate(wrong, "cloudevents")
