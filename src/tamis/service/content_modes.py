"""How does an HTTP request become events? Content modes.

| `Content-Type` | mode |
|---|---|
| `application/cloudevents+json` | *structured*: the body is one CloudEvent |
| `application/cloudevents-batch+json` | *batch*: the body is an array of them |
| anything, with headers `ce-id`, `ce-source`, … | *binary*: the headers are the context, the body is `data` |
| `application/x-ndjson` | a line, an event: a CloudEvent, or any object |
| `application/json` | one event or an array of them: CloudEvents, or any objects |

An object without `specversion` is *plain*: it is the `data` of an event whose id and source the caller gives, and whose
type is the object's own member `type`, if that is a text, or `tamis.event`.

>>> requests = Request("application/json", {}, b'{"price": 12}', new_id="a1", source="/ann")
>>> [event.body for event in events_of(requests, LARGEST)]
[b'{"specversion":"1.0","id":"a1","source":"/ann","type":"tamis.event","data":{"price":12}}']

No other media type is taken: a form on any web page could send `text/plain` to a broker on the reader's machine without
being asked, and the browser lets only these types pass after a question (CORS).

Source: CloudEvents 1.0.2, HTTP protocol binding, sections 3.1 to 3.3.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from tamis.service.cloud_events import LARGEST, EventLimits, cloud_event, read_json
from tamis.service.errors import BadRequestError, MediaTypeError, TooLargeError
from tamis.service.log.base import PLAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.service.messages import Incoming

__all__ = ["DEFAULT_TYPE", "LARGEST", "Request", "events_in", "events_of", "source_of"]

DEFAULT_TYPE = "tamis.event"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Request(NamedTuple):
    """What a publisher sent, and what is put in where it said nothing."""

    content_type: str
    """The value of the header, with parameters."""
    headers: Mapping[str, str]
    """The others; names in any case, and what stands there several times only if the mapping can have it so."""
    body: bytes
    new_id: str
    """The id of a plain object; if there are several, it is followed by a dot and their number."""
    source: str
    """The source of a plain object."""


def events_of(request: Request, limits: EventLimits) -> tuple[Incoming, ...]:
    """Return the events of a request, or raise an error that says which of them is wrong and why."""
    if len(request.body) > limits.batch_bytes:
        raise TooLargeError(
            f"the request has {len(request.body)} bytes", f"at most the limit batch_bytes, {limits.batch_bytes}"
        )
    media_type = _media_type(request.content_type)
    if media_type == "application/cloudevents+json":
        return (cloud_event(read_json(request.body), limits),)
    if media_type == "application/cloudevents-batch+json":
        batch = read_json(request.body)
        if type(batch) is not list:
            raise BadRequestError("the batch is not an array", "an array of CloudEvents")
        _check_count(len(batch), limits)
        return tuple(cloud_event(event, limits, place=f"event {index}: ") for index, event in enumerate(batch))
    if media_type.startswith("application/cloudevents"):
        raise MediaTypeError(f"the event format {media_type:.80} is not supported", "application/cloudevents+json")
    if any(name.lower().startswith("ce-") for name in request.headers):
        return (cloud_event(_from_headers(request, media_type), limits),)
    if media_type == "application/x-ndjson":
        return tuple(_from_lines(request, limits))
    if media_type == "application/json":
        return events_in(read_json(request.body), limits, request.new_id, request.source)
    raise MediaTypeError(
        f"events do not come as {media_type or 'a body without a type':.80}",
        "Content-Type: application/json, application/cloudevents+json, application/cloudevents-batch+json or "
        "application/x-ndjson",
    )


def events_in(content: Any, limits: EventLimits, new_id: str, source: str) -> tuple[Incoming, ...]:
    """Return the events that JSON says: one or an array of them, CloudEvents or plain objects."""
    if type(content) is not list:
        return (_either(content, limits, new_id, source, ""),)
    _check_count(len(content), limits)
    return tuple(
        _either(event, limits, f"{new_id}.{index}", source, f"event {index}: ") for index, event in enumerate(content)
    )


def source_of(principal: str) -> str:
    """Return the source of plain objects that a principal publishes: a URI reference of its name.

    >>> source_of("ann smith")
    '/ann%20smith'
    """
    return "/" + quote(principal, safe="@:")


def _from_lines(request: Request, limits: EventLimits) -> Iterator[Incoming]:
    lines = [(number, line) for number, line in enumerate(request.body.split(b"\n"), 1) if line.strip()]
    _check_count(len(lines), limits)
    for number, line in lines:
        place = f"line {number}: "
        yield _either(read_json(line, place), limits, f"{request.new_id}.{number}", request.source, place)


def _either(content: Any, limits: EventLimits, new_id: str, source: str, place: str) -> Incoming:
    if type(content) is not dict or "specversion" in content:
        return cloud_event(content, limits, place=place)
    type_ = content.get("type")
    is_type = type(type_) is str and type_ != "" and type_.isprintable()
    members = {
        "specversion": "1.0",
        "id": new_id,
        "source": source,
        "type": type_ if is_type else DEFAULT_TYPE,
        "data": content,
    }
    return cloud_event(members, limits, PLAIN, place)


def _from_headers(request: Request, media_type: str) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for header, value in request.headers.items():
        name = header.lower()
        if not name.startswith("ce-"):
            continue
        name = name[3:]
        if name in members:
            raise BadRequestError(f"the header ce-{name:.60} is there twice", "each attribute once")
        if name in ("data", "data_base64", "datacontenttype"):
            raise BadRequestError(
                f"the header ce-{name} does not exist", "the data as the body, its type as Content-Type"
            )
        members[name] = _header_text(name, value)
    if request.content_type:
        members["datacontenttype"] = request.content_type
    if not request.body:
        return members
    if media_type.endswith(("/json", "+json")):
        members["data"] = read_json(request.body)
    elif media_type.startswith("text/") and (text := _text(request.body)) is not None:
        members["data"] = text
    else:
        members["data_base64"] = base64.b64encode(request.body).decode()
    return members


def _header_text(name: str, value: str) -> str:
    """Undo quotation, then percent-encoding, as the binding says (3.1.3.2)."""
    quoted = _QUOTED.sub(lambda text: re.sub(r"\\(.)", r"\1", text[1]), value)
    try:
        return unquote_to_bytes(quoted).decode()
    except UnicodeError:
        raise BadRequestError(
            f"the header ce-{name:.60} is not UTF-8 once its percent signs are decoded", "percent-encoded UTF-8"
        ) from None


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _media_type(content_type: str) -> str:
    kind, _, parameters = content_type.partition(";")
    media_type = kind.strip().lower()
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", parameters, re.IGNORECASE)
    is_json = media_type.endswith(("json", "ndjson"))
    if is_json and charset and charset[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise MediaTypeError(f"JSON does not come in {charset[1]:.40}", "UTF-8")
    return media_type


def _check_count(count: int, limits: EventLimits) -> None:
    if count > limits.batch_events:
        raise TooLargeError(f"the batch has {count} events", f"at most the limit batch_events, {limits.batch_events}")
