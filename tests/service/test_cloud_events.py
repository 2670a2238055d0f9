"""CloudEvents: what is taken, what is stored, what filters see; and what hostile JSON does (nothing)."""

from __future__ import annotations

import base64
import datetime as dt
import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.service.cloud_events import LARGEST, CloudEvent, Sizes, cloud_event, read_json, record_of
from tamis.service.errors import BadRequestError, ServiceError, TooLargeError

OFFER = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "offer"}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
attribute_texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=8)
numbers = st.integers() | st.integers(-(10**60), 10**60) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["price", "type", "source", "id", "data", "data_base64", "time", "subject"]) | texts
extension_names = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=5).filter(
    lambda name: name not in CloudEvent.__struct_fields__
)
moments = st.datetimes(timezones=st.timezones() | st.just(dt.UTC), min_value=dt.datetime(1900, 1, 1)).map(
    lambda moment: moment.replace(
        tzinfo=dt.timezone(dt.timedelta(minutes=moment.utcoffset() // dt.timedelta(minutes=1)))
    ).isoformat()
)


@st.composite
def cloud_events(draw):
    event = {"specversion": "1.0", **{name: draw(attribute_texts) for name in ("id", "source", "type")}}
    if draw(st.booleans()):
        event["time"] = draw(moments)
    event |= draw(st.dictionaries(st.sampled_from(["subject", "dataschema"]), st.none() | attribute_texts))
    event |= draw(
        st.dictionaries(extension_names, st.none() | attribute_texts | st.booleans() | st.integers(-(2**31), 2**31 - 1))
    )
    kind = draw(st.sampled_from(["none", "object", "other", "binary"]))
    if kind == "object":
        event["data"] = draw(st.dictionaries(names, values, max_size=5))
    elif kind == "other":
        event["data"] = draw(values)
    elif kind == "binary":
        event["data_base64"] = base64.b64encode(draw(st.binary(max_size=9))).decode()
    return event


def definition(event):
    """The record by the rule: `{**data, "data": data, **context}`, `time` a timestamp."""
    data = event.get("data")
    context = {
        name: value for name, value in event.items() if name not in ("data", "data_base64") and value is not None
    }
    if "time" in context:
        context["time"] = dt.datetime.fromisoformat(context["time"])
    return {**(data if isinstance(data, dict) else {}), **({"data": data} if "data" in event else {}), **context}


@given(cloud_events())
def test_the_record_is_what_the_rule_says_and_the_same_when_it_is_read_back(event):
    incoming = cloud_event(json.loads(json.dumps(event)), LARGEST)
    assert incoming.record == definition(event)
    assert record_of(incoming.body, incoming.flags) == incoming.record
    assert incoming.key == event["source"] + "\n" + event["id"]


@given(cloud_events())
def test_the_stored_body_is_a_cloud_event_with_the_same_content(event):
    body = cloud_event(event, LARGEST).body
    present = {name: value for name, value in event.items() if value is not None or name == "data"}
    assert json.loads(body) == present
    assert cloud_event(read_json(body), LARGEST).body == body
    assert b"\n" not in body, "a stored event is one line"


@given(
    st.binary()
    | st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))
    | values.map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_are_an_event_or_a_service_error(body):
    try:
        cloud_event(read_json(body), LARGEST)
    except ServiceError:
        return


@given(st.fixed_dictionaries({}, optional=dict.fromkeys((*CloudEvent.__struct_fields__, "Extension", "ext"), values)))
def test_members_of_any_type_are_an_event_or_a_service_error(extra):
    try:
        incoming = cloud_event(OFFER | extra, LARGEST)
    except ServiceError:
        return
    assert record_of(incoming.body) == incoming.record


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"specversion": "0.3"}, "Invalid enum value '0.3' - at `$.specversion`"),
        ({"specversion": None}, "missing required field `specversion`"),
        ({"id": ""}, "length >= 1 - at `$.id`"),
        ({"id": 7}, "Expected `str`, got `int` - at `$.id`"),
        ({"source": None}, "missing required field `source`"),
        ({"type": ["a"]}, "at `$.type`"),
        ({"time": "2024-02-29"}, "at `$.time`"),
        ({"time": "2024-02-29T12:00:00"}, "timezone"),
        ({"time": 7}, "at `$.time`"),
        ({"Price": 7}, "'Price' is not the name of an attribute"),
        ({"my-ext": 7}, "'my-ext' is not the name"),
        ({"price": 7.5}, "the extension price is a double"),
        ({"price": 2**31}, "the extension price is an integer of more than 32 bits"),
        ({"price": {}}, "the extension price is an object"),
        ({"id": "a\nb"}, "the attribute id has a character"),
        ({"ext": "a\x7fb"}, "the attribute ext has a character"),
        ({"data": 1, "data_base64": "AAAA"}, "both data and data_base64"),
        ({"data_base64": "no base 64!"}, "at `$.data_base64`"),
        ({"data_base64": 7}, "at `$.data_base64`"),
    ],
)
def test_what_is_no_cloud_event_is_refused_and_named(change, message):
    with pytest.raises(BadRequestError) as caught:
        cloud_event(OFFER | change, LARGEST, place="event 3: ")
    assert message in caught.value.detail
    assert caught.value.detail.startswith("event 3: ")


@pytest.mark.parametrize("what", [None, 7, "text", [], [OFFER], True])
def test_what_is_no_object_is_no_event(what):
    with pytest.raises(BadRequestError, match="is not an event"):
        cloud_event(what, LARGEST)


@pytest.mark.parametrize(
    ("limits", "event", "limit"),
    [
        (Sizes(event_bytes=80), OFFER | {"data": "x" * 40}, "event_bytes, 80"),
        (Sizes(depth=2), OFFER | {"data": {"a": {"b": {}}}}, "depth, 2"),
        (Sizes(depth=2), OFFER | {"data": [[[]]]}, "depth, 2"),
        (Sizes(attributes=5), OFFER | {"data": {"a": 1, "b": 2}}, "attributes, 5"),
        (Sizes(attributes=5), OFFER | {"data": [{"a": 1}, {"b": 2}]}, "attributes, 5"),
    ],
)
def test_a_limit_is_named_when_an_event_exceeds_it(limits, event, limit):
    with pytest.raises(TooLargeError, match=f"at most the limit {limit}"):
        cloud_event(event, limits)


def test_an_event_at_the_limit_is_taken():
    event = OFFER | {"data": {"a": {"b": 1}}}
    size = len(cloud_event(event, LARGEST).body)
    taken = cloud_event(event, Sizes(event_bytes=size, depth=2, attributes=6))
    assert len(taken.record) == 6
    with pytest.raises(TooLargeError):
        cloud_event(event, Sizes(event_bytes=size - 1))


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000, b'"\\ud800"', b'"\xff"', b'"\xed\xa0\x80"', b"NaN", b"Infinity",
        b"1e400", b"9" * 5_000, b"", b"{", b"{} {}", b"\xef\xbb\xbf{}", b"{'a': 1}", b'{"\\ud800": 1}', b"\x00", b'"\x00"',
    ],
    ids=lambda body: repr(body[:12]),
)  # fmt: skip
def test_hostile_json_is_a_typed_error(body):
    with pytest.raises((BadRequestError, TooLargeError)):
        read_json(body)


def test_of_a_member_that_stands_twice_everybody_reads_the_same():
    body = b'{"specversion":"1.0","id":"7","source":"/a","source":"/shop","type":"t","data":{"price":1,"price":2}}'
    incoming = cloud_event(read_json(body), LARGEST)
    assert incoming.key == "/shop\n7"
    assert incoming.body.count(b"price") == 1
    assert incoming.record["price"] == record_of(incoming.body)["price"] == 2


def test_whole_numbers_of_any_size_stay_exact():
    number = 10**37 + 1
    incoming = cloud_event(read_json(msgspec.json.encode(OFFER | {"data": {"n": number}})), LARGEST)
    assert record_of(incoming.body)["n"] == number
    assert tamis.holds(tamis.parse(f"n = {number}"), incoming.record)


def test_filters_compare_the_time_of_an_event_with_timestamps():
    record = cloud_event(OFFER | {"time": "2024-02-29T12:00:00.123456789+02:00"}, LARGEST).record
    assert tamis.holds(
        tamis.parse("time > TIMESTAMP '2024-02-29 10:00:00' AND time < TIMESTAMP '2024-02-29 10:00:01'"), record
    )


def test_a_payload_cannot_pretend_to_another_source():
    record = cloud_event(OFFER | {"data": {"source": "/bank", "price": 1}}, LARGEST).record
    assert record["source"] == "/shop"
    assert tamis.holds(tamis.parse("data.source = '/bank' AND source = '/shop' AND price = 1"), record)


@pytest.mark.parametrize("size", [10, 300, 700, 5_000])
def test_the_stored_body_takes_the_memory_of_its_bytes(size):
    contents = {"specversion": "1.0", "id": "1", "source": "/a", "type": "t", "data": {"text": "x" * size}}
    tracemalloc.start()
    try:
        bodies = [cloud_event(contents, LARGEST).body for _ in range(100)]
        before, _ = tracemalloc.get_traced_memory()
        lengths = sum(map(len, bodies))
        bodies.clear()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert before - after < lengths + 100 * 64
