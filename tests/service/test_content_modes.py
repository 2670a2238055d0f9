"""Requests become events: the content modes of the CloudEvents HTTP binding, JSON lines and plain objects."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.cloud_events import LARGEST, Sizes, cloud_event
from tamis.service.content_modes import Request, events_of
from tamis.service.errors import BadRequestError, MediaTypeError, TooLargeError
from tamis.service.log.base import PLAIN

from .test_cloud_events import OFFER, attribute_texts, cloud_events, values


def read(content_type, body, headers=(), limits=LARGEST):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return events_of(Request(content_type, dict(headers), body, new_id="new", source="/ann"), limits)


def in_headers(event):
    """Write a CloudEvent in binary mode, as the binding says."""
    headers = {}
    for name, value in event.items():
        if name in ("data", "data_base64", "datacontenttype") or value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        headers[f"CE-{name.title()}"] = "".join(
            c if "!" <= c <= "~" and c not in '"%' else quote(c, safe="") for c in text
        )
    return headers


@given(cloud_events())
def test_structured_and_batch_mode_give_the_same_event(event):
    expected = cloud_event(event, LARGEST)
    assert read("application/cloudevents+json; charset=UTF-8", event) == (expected,)
    assert read("application/cloudevents-batch+json", [event, event]) == (expected, expected)
    assert read("application/json", event) == (expected,)
    assert read("application/x-ndjson", json.dumps(event).encode() + b"\n\n") == (expected,)


@given(attribute_texts, attribute_texts, values)
def test_binary_mode_gives_the_same_event_as_structured_mode(subject, ext, data):
    event = OFFER | {
        "subject": subject,
        "ext": ext,
        "time": "2018-04-05T03:56:24Z",
        "datacontenttype": "application/json",
    }
    [incoming] = read("application/json", data, in_headers(event))
    [structured] = read("application/cloudevents+json", event | {"data": data})
    assert incoming.record == structured.record
    assert json.loads(incoming.body) == json.loads(structured.body)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("%41%62c%25", "Abc%"),
        ("%e2%82%ac", "€"),
        ('"a b\\"c\\\\"', 'a b"c\\'),
        ("100%", "100%"),
        ("a%2520b", "a%20b"),
    ],
)
def test_headers_are_unquoted_once_and_then_percent_decoded_once(header, text):
    [incoming] = read("", b"", in_headers(OFFER) | {"ce-subject": header})
    assert incoming.record["subject"] == text


@pytest.mark.parametrize("header", ["%C0%A0", "%ff", "%ED%A0%80", "a%0Ab", "\udcff"])
def test_headers_that_are_no_utf8_or_have_control_characters_are_refused(header):
    with pytest.raises(BadRequestError, match=r"ce-subject|attribute subject"):
        read("", b"", in_headers(OFFER) | {"ce-subject": header})


@pytest.mark.parametrize(
    ("content_type", "body", "members"),
    [
        ("application/json", b'{"a": 1}', {"data": {"a": 1}}),
        ("application/vnd.shop+json", b"[1]", {"data": [1]}),
        ("text/plain; charset=utf-8", "é".encode(), {"data": "é"}),
        ("text/plain", b"\xff", {"data_base64": "/w=="}),
        ("application/octet-stream", b"\x00\xff", {"data_base64": "AP8="}),
        ("image/png", b"", {}),
    ],
)
def test_the_body_of_binary_mode_is_data_as_its_type_says(content_type, body, members):
    [incoming] = read(content_type, body, in_headers(OFFER))
    assert json.loads(incoming.body) == OFFER | {"datacontenttype": content_type} | members


@pytest.mark.parametrize("header", ["ce-data", "ce-data_base64", "ce-datacontenttype", "ce-my-name", "ce-", "ce-Ä"])
def test_headers_that_name_no_attribute_are_refused(header):
    with pytest.raises(BadRequestError):
        read("application/json", {}, in_headers(OFFER) | {header: "x"})


def test_a_header_that_stands_twice_is_refused():
    with pytest.raises(BadRequestError, match="twice"):
        read("", b"", in_headers(OFFER) | {"ce-id": "8"})


def test_plain_objects_become_the_data_of_events_with_the_given_id_and_source():
    [incoming] = read("application/json", {"price": 12, "type": 7, "id": "x"})
    assert json.loads(incoming.body) == {
        "specversion": "1.0", "id": "new", "source": "/ann", "type": "tamis.event", "data": {"price": 12, "type": 7, "id": "x"},
    }  # fmt: skip
    assert incoming.flags == PLAIN
    assert [event.record["type"] for event in read("application/json", [{"type": "offer"}, {"type": ""}, {"type": "a\nb"}])] == [
        "offer", "tamis.event", "tamis.event",
    ]  # fmt: skip


def test_lines_may_be_cloud_events_or_plain_objects_and_their_ids_are_their_lines():
    body = b'{"price": 1}\r\n\n' + json.dumps(OFFER).encode() + b'\n{"price": 3}'
    assert [event.key for event in read("application/x-ndjson", body)] == ["/ann\nnew.1", "/shop\n7", "/ann\nnew.4"]


def test_a_batch_may_be_empty():
    assert read("application/cloudevents-batch+json", []) == ()


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        ("application/x-ndjson", b'{"a": 1}\n\n{"a"', "line 3: "),
        ("application/x-ndjson", b'{"a": 1}\n[]', "line 2: an array is not an event"),
        ("application/cloudevents-batch+json", [OFFER, OFFER | {"id": ""}], "event 1: "),
        ("application/cloudevents-batch+json", OFFER, "the batch is not an array"),
        ("application/json", [{}, 7], "event 1: an integer"),
        ("application/cloudevents+json", [OFFER], "an array is not an event"),
    ],
)
def test_one_bad_event_refuses_all_and_is_named(content_type, body, message):
    with pytest.raises(BadRequestError) as caught:
        read(content_type, body)
    assert message in caught.value.detail


@pytest.mark.parametrize(
    "content_type", ["application/cloudevents-batch+json", "application/json", "application/x-ndjson"]
)
def test_more_events_than_a_batch_may_have_are_refused(content_type):
    body = b"\n".join([json.dumps(OFFER).encode()] * 3) if content_type.endswith("ndjson") else [OFFER] * 3
    with pytest.raises(TooLargeError, match="batch_events, 2"):
        read(content_type, body, limits=Sizes(batch_events=2))
    with pytest.raises(TooLargeError, match="batch_bytes, 9"):
        read(content_type, body, limits=Sizes(batch_bytes=9))


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/cloudevents+xml",
        "application/json; charset=utf-16",
    ],
)
def test_other_media_types_are_refused(content_type):
    with pytest.raises(MediaTypeError):
        read(content_type, {"price": 12})


@given(
    st.text()
    | st.sampled_from(
        [
            "application/json",
            "application/x-ndjson",
            "application/cloudevents+json",
            "application/cloudevents-batch+json",
        ]
    ),
    st.dictionaries(
        st.sampled_from(["ce-id", "CE-Source", "ce-type", "ce-specversion", "ce-time", "ce-x"]) | st.text(), st.text()
    ),
    st.binary() | values.map(lambda value: json.dumps(value).encode()),
)
def test_any_request_gives_events_or_a_service_error(content_type, headers, body):
    try:
        read(content_type, body, headers)
    except (BadRequestError, TooLargeError, MediaTypeError):
        return
