"""Messages survive the way through bytes, and bytes that are no message are refused."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import LimitError
from tamis.language import Limits
from tamis.language.schema import NO_SCHEMA
from tamis.routing import (
    Advertise,
    Ask,
    Deliver,
    Entry,
    Hello,
    MessageError,
    Publish,
    Renew,
    ResumeFiltering,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    decode,
    encode,
)
from tests.strategies import conditions, numbers, texts
from tests.strategies import times as any_times

keys = st.one_of(st.integers(0, 2**40), texts)
many_keys = st.lists(keys, max_size=3).map(tuple)
shares = st.sampled_from([0.0, 0.0, 0.125, 1.0, 5e-324])
entries = st.lists(st.builds(Entry, keys, conditions, shares, st.integers(0, 9)), max_size=3).map(tuple)
leases = st.one_of(st.none(), st.floats(0.001, 1e9))
times = any_times.map(lambda each: each.replace(fold=0) if isinstance(each, dt.datetime) else each)
"""Which of two hours a clock shows when it is set back means nothing here, as times have no places."""
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts, times, st.just(10**40), st.binary(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)
messages = st.one_of(
    st.builds(
        Hello, entries, entries, st.sampled_from([NO_SCHEMA, "", "f" * 32]), leases, st.integers(0, 9), st.booleans()
    ),
    st.builds(Subscribe, entries, many_keys, leases),
    st.builds(Unsubscribe, many_keys, entries),
    st.builds(Advertise, entries, many_keys, leases),
    st.builds(Unadvertise, many_keys, entries),
    st.builds(Publish, keys, st.dictionaries(texts, values, max_size=4)),
    st.just(ResumeFiltering()),
    st.just(Renew()),
    st.builds(Ask, keys, conditions),
)


@given(messages)
@settings(max_examples=60)
def test_every_message_comes_back_as_it_was_sent(message):
    # repr tells 1 from 1.0 and TRUE, and finds NaN equal to itself
    assert repr(decode(encode(message))) == repr(message)


@given(messages)
@settings(max_examples=60)
def test_a_cut_message_is_refused(message):
    data = encode(message)
    for end in {0, 1, 2, 3, len(data) - 1}:
        if end < len(data):
            with pytest.raises(MessageError):
                decode(data[:end])


@given(st.integers(0, 8), st.binary(max_size=40))
def test_arbitrary_bytes_are_a_message_or_refused(kind, body):
    try:
        message = decode(bytes((0xA7, 4, kind)) + body)
    except (MessageError, LimitError):
        return
    assert repr(decode(encode(message))) == repr(message)


def raw(kind, *values):
    return bytes((0xA7, 4, kind)) + msgpack.packb(list(values))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes"),
        (b"GET / HTTP", "begin with 0x47"),
        (b"\xa7\x01\x00", "version 1; expected version 4"),
        (b"\xa7\x04\x63", "kind 99"),
        (b"\xa7\x04\x05\x92\x01\x01", "an event is a record"),
        (b"\xa7\x04\x05\x92\xc3\x80", "True is not a key; expected a whole number or a text"),
        (b"\xa7\x04\x01\x93\x90\x90\xcb\xff\xf8\0\0\0\0\0\0", "a lease of nan; expected seconds, more than 0"),
        (b"\xa7\x04\x01\x93\x91\x92\x01\xa3x =\x90\xc0", "expected the fields of a Subscribe"),
        (raw(2, "abc", []), "keys are a list, found 'abc'"),
        (raw(2, {1: 2}, []), "name is a text"),
        (
            raw(1, ["ab"], [], None),
            "an entry is a key, the text of a filter, and its imperfection, hops and priority if any, found .ab.",
        ),
        (raw(1, [[1, b"x = 1"]], [], None), "an entry is a key, the text of a filter"),
        (raw(1, [[1, "x = 1", 0.0]], [], None), "and its imperfection, hops and priority if any"),
        (raw(1, [[1, "x = 1", 1.5]], [], None), "an imperfection of 1.5; expected a share from 0 to 1"),
        (raw(1, [[1, "x = 1", float("nan")]], [], None), "an imperfection of nan"),
        (raw(1, [[1, "x = 1", True]], [], None), "an imperfection of True"),
        (raw(1, [[1, "x = 1", "a"]], [], None), "an imperfection of 'a'"),
        (raw(1, [[1, "x = 1", 0.0, 0]], [], None), "and its imperfection, hops and priority if any"),
        (raw(1, [[1, "x = 1", 0.0, -1]], [], None), "a filter of -1 hops; expected a whole number from 0"),
        (raw(1, [[1, "x = 1", 0.0, 1.5]], [], None), "a filter of 1.5 hops"),
        (raw(1, [[1, "x = 1", 0.0, True]], [], None), "a filter of True hops"),
        (raw(1, [], [], msgpack.ExtType(1, b"1" + b"0" * 400)), "a lease of 1000"),
        (raw(1, [], [], 0), "a lease of 0"),
        (raw(1, [], [], True), "a lease of True"),
        (raw(5, "e", {"x": msgpack.ExtType(1, b" 1_000 ")}), "is not how a value is written"),
        (raw(5, "e", {"x": msgpack.ExtType(2, b"0x12")}), "the body of a Publish is broken"),
        (raw(5, "e", {"x": msgpack.ExtType(3, b"20240229")}), "is not how a value is written"),
        (raw(5, "e", {b"x": 1}), "name is a text, and there once; found b'x'"),
        (b"\xa7\x04\x05\x92\xa1e\x82\xa1x\x01\xa1x\x02", "there once; found 'x'"),
        (raw(5, 1.5, {}), "1.5 is not a key"),
        (raw(8, "q", 5), "a filter is a text, found 5"),
        (raw(8, None, "x = 1"), "None is not a key"),
    ],
)
def test_an_error_says_what_is_wrong_with_the_bytes(data, says):
    with pytest.raises(MessageError, match=says):
        decode(data)


def test_a_filter_beyond_the_limits_is_refused():
    data = encode(Subscribe((Entry(1, tamis.parse("x = 1 AND y = 2 AND z = 3")),)))
    with pytest.raises(LimitError):
        decode(data, limits=Limits(nodes=3))


def test_a_value_that_no_event_has_cannot_be_sent():
    with pytest.raises(MessageError, match="cannot travel"):
        encode(Publish("e", {"x": object()}))


@pytest.mark.parametrize(
    "message",
    [
        "what",
        Deliver("ann", Publish("e", {}), ("s",)),
        Subscribe((), lease_s=float("nan")),
        Subscribe((), lease_s=float("inf")),
        Advertise((), lease_s=-5),
        Unsubscribe((True,)),
        Unsubscribe((1.0,)),
        Subscribe((("s", "x = 1"),)),
        Subscribe((Entry("s", "x = 1"),)),
        Subscribe((Entry("s", tamis.parse("x + 1 = 2").left),)),
        Publish("e", {1: 2}),
        Publish("e", {"x": {None: 2}}),
        Publish(None, {}),
    ],
)
def test_what_would_be_refused_cannot_be_sent(message):
    with pytest.raises(MessageError):
        encode(message)


def test_a_timestamp_of_messagepack_is_one_of_ours():
    moment = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    assert decode(raw(5, "e", {"x": msgpack.Timestamp.from_datetime(moment)})).event["x"] == moment


def test_nothing_in_a_message_can_be_changed():
    message = Publish("e", {"bids": [1, {"x": [2]}]})
    assert message.event["bids"][1]["x"] == (2,)
    with pytest.raises(AttributeError):
        message.event["bids"].append(3)
    with pytest.raises(TypeError):
        message.event["bids"][1]["x"] = 0
    assert Unsubscribe([1, 2]) == Unsubscribe((1, 2)) and hash(Subscribe([])) == hash(Subscribe(()))
    assert pickle.loads(pickle.dumps(message)) == message
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(MessageError, match="nested too deeply"):
        Publish("e", {"x": deep})


def test_messages_are_immutable_and_can_be_compared_hashed_and_pickled():
    event = {"price": Decimal("1.50"), "day": dt.date(2024, 2, 29)}
    message = Publish("e", event)
    event["price"] = 0
    assert message.event["price"] == Decimal("1.50")
    with pytest.raises(TypeError):
        message.event["price"] = 0
    with pytest.raises(FrozenInstanceError):
        message.key = "f"
    assert pickle.loads(pickle.dumps(message)) == message and hash(message) == hash(Publish("e", dict(message.event)))
