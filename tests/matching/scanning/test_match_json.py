"""An event in JSON matches what the same event does when `json.loads` has read it, and the same documents are refused."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamis import Matcher
from tamis.errors import EventError
from tests.strategies import conditions

RULES = dict(
    enumerate(
        (
            "a < 3", "a >= 2.5", "a = 1.5D", "a > 1e300", "a IN (1, 7, 9007199254740993)", "a < 0.1D", "a <= -0.0D",
            "a = 9223372036854775807", "a > 12345678901234567890", "a BETWEEN -2 AND 0.30000000000000004D",
            "b", "NOT b", "b = FALSE", "s = ''", "s = 'é'", "s > 'abcdefgh'", "s < 'abcdefghi'", "s LIKE 'ab%'",
            "s LIKE '%x%'", "s IN ('x', 'y\\\\', '\U0001f600')", "s IS NULL", "a <=> NULL", "a + c > 2", "c < a",
            "p.x > 1", "p.q.r = 'deep'", "p IS NOT NULL", "array_contains(l, 2)", "t > TIMESTAMP '2024-01-01 00:00:00'",
            "t = '2024-01-01'", "`odd name` = 1", "`ü` = 'ü'", "distance(lat, lon, 45, 16) < 900",
        )
    )
)  # fmt: skip


def registered(rules):
    matcher = Matcher()
    matcher.add_many(rules)
    matcher.compile()
    return matcher


@pytest.fixture(scope="module")
def matcher():
    return registered(RULES)


def scanned(matcher, document):
    """What the compiled loops read, without the decoder; None if they leave it."""
    return matcher._snapshot(None)[0].match_json(document)


def agrees(matcher, document):
    """Does the document match what it matches decoded, or do both refuse it?"""
    try:
        event = json.loads(document)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        with pytest.raises(EventError):
            matcher.match_json(document)
        return
    assert matcher.match_json(document) == matcher.match(event)
    (part,) = matcher._engine._parts
    read = part.segment.scanner(None).codes(document) if type(document) is bytes else None
    if read is not None:
        assert read[1].tolist() == list(part.segment.encoder(None).codes(event))


# -- Documents, written in every way

names = st.sampled_from(
    ["a", "b", "c", "s", "p", "l", "t", "x", "q", "lat", "lon", "odd name", "ü", "", "unknown", "aa"]
)
numbers = st.one_of(
    st.integers(-9, 9).map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from([
        "-0", "0.0", "-0.0", "0e0", "1E5", "1e+5", "1.50", "0.1", "0.10000000000000000001", "9007199254740993", "1e22",
        "1e23", "9007199254740993.0", "123456789012345678", "1234567890123456789", "2.5e-7", "1e400", "-1e-400",
        "0.30000000000000004", "1" * 40, "0." + "0" * 30 + "1", "5e-324", "1.7976931348623157e308",
    ]),
)  # fmt: skip
words = st.sampled_from(["true", "false", "null"])
contents = st.one_of(
    st.sampled_from(
        ["", "é", "ab", "abcdefgh", "abcdefghi", "abcdefg", "x", "y\\", "\U0001f600", "2024-01-01", '"', "\n"]
    ),
    st.text(max_size=12),
)


@st.composite
def texts(draw):
    content = draw(contents)
    return json.dumps(
        content, ensure_ascii=draw(st.booleans()) or any(0xD800 <= ord(each) < 0xE000 for each in content)
    )


spaces = st.sampled_from(["", "", "", " ", "\n", "\t \r"])


@st.composite
def objects(draw, inner, keys=names):
    pairs = draw(st.lists(st.tuples(keys, inner), max_size=6))  # a name may come twice
    space = draw(spaces)
    members = [
        f"{space}{json.dumps(key, ensure_ascii=draw(st.booleans()))}{space}:{draw(spaces)}{value}"
        for key, value in pairs
    ]
    return "{" + f"{space},".join(members) + space + "}"


def lists(inner):
    return st.lists(inner, max_size=4).map(lambda members: "[" + ", ".join(members) + "]")


values = st.recursive(
    st.one_of(numbers, words, texts()), lambda inner: st.one_of(lists(inner), objects(inner)), max_leaves=8
)
documents = st.tuples(spaces, objects(values), spaces).map("".join)


@given(document=documents)
@example(document='{"a": 1, "a": "x"}')
@example(document='{"a": "x", "a": 1e400}')
@example(document='{"a": 1e400, "a": 2}')
@example(document='{"p": {"x": 2}, "p": 3}')
@example(document='{"l": [1, [2, {"a": 5}], 2], "a": 1}')
def test_every_document_matches_what_it_does_decoded(matcher, document):
    agrees(matcher, document.encode())
    agrees(matcher, document)


@given(rules=st.lists(conditions, min_size=1, max_size=8), document=documents)
def test_any_conditions_ask_documents_as_they_ask_events(rules, document):
    agrees(registered(dict(enumerate(rules))), document.encode())


@given(document=documents, data=st.data())
def test_damaged_documents_are_refused_or_read_as_the_decoder_does(matcher, document, data):
    damaged = bytearray(document.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1)) if damaged else 0
        byte = data.draw(
            st.one_of(st.sampled_from(list(b'{}[]:,"\\.eE+-019 tfn\xc3\xa9\x00\x1f\xed\xa0')), st.integers(0, 255))
        )
        match data.draw(st.sampled_from(["put", "take", "write"])):
            case "put":
                damaged.insert(at, byte)
            case "take":
                del damaged[at : at + 1]
            case "write":
                damaged[at : at + 1] = bytes([byte])
    agrees(matcher, bytes(damaged))


@pytest.mark.parametrize(
    "document",
    [
        b"", b" ", b"{", b"}", b"[]", b"1", b"null", b'"a"', b"{}{}", b"{},", b'{"a"}', b'{"a":}', b'{"a":1,}', b'{,}', b'{"a":01}', b'{"a":+1}',
        b'{"a":.5}', b'{"a":5.}', b'{"a":1e}', b'{"a":-}', b'{"a":nul}', b'{"a":tru', b'{"a":"x', b'{"a":"\n"}', b'{"a":"\\x"}', b'{"a":"\\u12g4"}',
        b'{"a":[1,]}', b'{"a":[1 2]}', b'{"a":[}', b'{"a":{]}', b'{"a":1]', b"{'a':1}", b'{a:1}', b'{"a":1}x', b'{"\xff":1}', b'{"s":"\xc3"}',
        b'{"s":"\xed\xa0\x80"}', b'\xef\xbb\xbf{"a":1}', '{"a":1}'.encode("utf-16"), '{"a":1}'.encode("utf-32-le"), b'{"a":NaN}', b'{"a":-Infinity}',
        b'{"zz":NaN}', b'{"a":' + b"1" * 5000 + b"}", b'{"zz":' + b"1" * 5000 + b"}", b'{"zz":0.' + b"1" * 5000 + b"}", b'{"a":' + b"[" * 70 + b"]" * 70 + b"}",
        b'{"zz":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"s":"\\ud800"}', b'{"s":"\\ud83d\\ude00"}', b'{"\\u0061":1}', b'{"p":{"\\u0078":2}}',
        b'{"s":"' + b"x" * 100_000 + b'"}', b'{"a":1e-400}', b'{"a":0e999999999999}',
    ],
)  # fmt: skip
def test_what_is_not_everyday_or_wrong_is_what_the_decoder_says_it_is(matcher, document):
    agrees(matcher, document)


@pytest.mark.parametrize("document", [None, 1, {"a": 1}, ["{}"]])
def test_what_is_neither_bytes_nor_text_is_refused(matcher, document):
    with pytest.raises(EventError):
        matcher.match_json(document)


EVERYDAY = [
    {
        "a": 1,
        "b": True,
        "s": "é",
        "c": 0.25,
        "p": {"x": 2, "q": {"r": "deep"}},
        "l": [1, 2],
        "lat": 45.01,
        "lon": 16.02,
    },
    {"a": math.pi, "s": 'quoted "text"', "other": [{"a": 1}, [], {}, None, "line\nend"]},
    {},
]


def test_everyday_documents_are_read_without_the_decoder(matcher, monkeypatch):
    for event in EVERYDAY:
        document = json.dumps(event).encode()
        expected = matcher.match(event)
        assert matcher.match_json(document) == expected  # the first of its kind is looked at, for `unmet`
        with monkeypatch.context() as patch:
            patch.setattr("tamis.matching.matcher.decoded", None)
            patch.setattr(matcher._sightings, "look", None)
            assert matcher.match_json(document) == expected
        assert scanned(matcher, document)[1].tolist() == expected


def test_documents_are_asked_as_events_are(matcher):
    document = json.dumps(EVERYDAY[0]).encode()
    some = [0, 11, 14, 22]
    assert matcher.match_json(document, among=some) == matcher.match(EVERYDAY[0], among=some)
    ranked = Matcher()
    ranked.add("low", "a = 1", metadata={"mail": 1})
    ranked.add("high", "a < 3", priority=2)
    for _ in range(2):  # open, and laid out
        assert ranked.match_json(b'{"a": 1}') == ["high", "low"]
        assert ranked.match_json(b'{"a": 1}', metadata=True) == [("high", None), ("low", {"mail": 1})]
        ranked.compile()


def test_documents_are_counted_and_their_attributes_known():
    matcher = registered({1: "a < 3", 2: "gone = 1", 3: "s > 5"})
    for _ in range(3):
        matcher.match_json(b'{"a": 1, "s": "x"}')
    assert matcher.statistics()["events"] == 3
    assert [str(each) for each in matcher.unmet()] == [
        "no event had the attribute gone",
        "s is compared with numbers, and events had only texts",
    ]


def test_a_matcher_that_is_watched_looks_at_documents():
    matcher = registered({1: "a < 3"})
    matcher.watch(every=1)
    matcher.match_json(b'{"a": 1}')
    assert matcher.watched_count == 1


def test_subscriptions_in_several_segments_and_other_algorithms_are_asked():
    document, event = b'{"a": 1, "s": "x"}', {"a": 1, "s": "x"}
    matcher = Matcher()
    for first in range(0, 20_000, 5_000):
        matcher.add_many({number: f"a < {number % 9}" for number in range(first, first + 5_000)})
    assert matcher.match_json(document) == matcher.match(event)
    naive = Matcher("naive")
    naive.add_many(RULES)
    assert naive.match_json(document) == naive.match(event)
