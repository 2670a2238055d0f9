"""What is an event for the broker? A CloudEvent, and the record that filters see of it.

A CloudEvent is *context attributes* (`id`, `source`, `type`, … and extensions) around `data`. It is checked once, when
it comes, and written anew: what is stored and delivered are the bytes that this module wrote, never those of the
publisher. (In JSON with a member twice, another parser may read the other one.)

The record of an event is `{**data, "data": data, **context}`: the members of `data` by name, the context attributes
by theirs. Where both have a name the context wins, and the member is `data.name`; so no payload can pretend to another
source. `time` is a timestamp. `data` that is no JSON object is only `data`; binary data is not seen by filters.
`unwanted` is true of an event that nobody wanted (`unwanted`), and is never taken from the event itself.

>>> event = cloud_event({"specversion": "1.0", "id": "7", "source": "/shop", "type": "offer",
...                      "data": {"price": 12, "type": "book"}}, LARGEST)
>>> event.record["type"], event.record["price"], event.record["data"]["type"]
('offer', 12, 'book')
>>> record_of(event.body, event.flags) == event.record
True

Source: CloudEvents 1.0.2, specification and JSON event format.
Departs: a string with a leap second is refused as `time`, because no timestamp of the language has one.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec

from tamis.service.errors import BadRequestError, TooLargeError
from tamis.service.log.base import FROM_CLIENT, UNWANTED
from tamis.service.messages import Incoming

Name = Annotated[str, msgspec.Meta(min_length=1)]


class EventLimits(Protocol):
    """How large events may be: the part of the service's limits that this module reads."""

    @property
    def event_bytes(self) -> int: ...
    @property
    def batch_events(self) -> int: ...
    @property
    def batch_bytes(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def attributes(self) -> int: ...


class Sizes(NamedTuple):
    """Limits of events by themselves, with the service's default values."""

    event_bytes: int = 256_000
    batch_events: int = 1_000
    batch_bytes: int = 4_000_000
    depth: int = 32
    attributes: int = 256


LARGEST = Sizes()


class CloudEvent(msgspec.Struct, omit_defaults=True):
    """A CloudEvent 1.0 in its JSON form. Members with other names, of a to z and 0 to 9, are extensions."""

    specversion: Literal["1.0"]
    id: Name
    source: Name
    type: Name
    datacontenttype: Name | None = None
    dataschema: Name | None = None
    subject: Name | None = None
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    data: Any = msgspec.UNSET
    data_base64: bytes | msgspec.UnsetType = msgspec.UNSET


_PAYLOAD = frozenset({"data", "data_base64"})
_SPECIFIED = frozenset(CloudEvent.__struct_fields__)
_TEXTS = _SPECIFIED - _PAYLOAD - {"time", "specversion"}
_EXTENSION = re.compile(r"[a-z0-9]+")
# The specification forbids control characters and non-characters in attributes. A key is source, line feed and id, so
# this also keeps two events from having one key by accident.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")
_CLOUD_EVENTS_INTEGERS = range(-(2**31), 2**31)
UNWANTED_ATTRIBUTE = "unwanted"
"""What filters see of an event that nobody wanted, and of no other."""

_encode = msgspec.json.Encoder().encode


def read_json(body: bytes, place: str = "") -> Any:
    """Return what a JSON text says, or raise an error that says where it is wrong.

    Deep nesting, NaN, numbers without end, half surrogate pairs and bytes that are no UTF-8 are all refused here.

    >>> read_json(b'{"price": NaN}')
    Traceback (most recent call last):
        ...
    tamis.service.errors.BadRequestError: JSON is malformed: invalid character (byte 10); expected JSON in UTF-8
    """
    try:
        return msgspec.json.decode(body)
    except UnicodeDecodeError as error:
        raise BadRequestError(f"{place}byte {error.start} of a text is not UTF-8", "JSON in UTF-8") from None
    except RecursionError:
        raise TooLargeError(
            f"{place}the JSON is nested too deeply to be read", "less, as the limit depth says"
        ) from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadRequestError(f"{place}{error}", "JSON in UTF-8") from None


def cloud_event(members: Any, limits: EventLimits, flags: int = FROM_CLIENT, place: str = "") -> Incoming:
    """Check a CloudEvent in its JSON form; return it as it is stored, with its key and its record.

    `place` begins the message of every error: which of several events it was.
    """
    if type(members) is not dict:
        raise BadRequestError(
            f"{place}{_kind(members)} is not an event", "a JSON object with id, source, type, specversion"
        )
    if "data" in members and "data_base64" in members:
        raise BadRequestError(f"{place}an event has both data and data_base64", "one of them")
    # In the JSON format an attribute that is null is one that is not set. `data` may be null.
    present = {name: value for name, value in members.items() if value is not None or name == "data"}
    try:
        event = msgspec.convert(present, CloudEvent)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"{place}{error}", "a CloudEvent 1.0") from None
    for name, value in present.items():
        if name in _PAYLOAD:
            continue
        if name not in _SPECIFIED:
            _check_extension(name, value, place)
        if type(value) is str and not (value.isascii() and value.isprintable()) and _FORBIDDEN.search(value):
            raise BadRequestError(
                f"{place}the attribute {name:.60} has a character that attributes may not have",
                "a text without control characters",
            )
    depth, members_count = _extent(present.get("data"), limits.depth)
    if depth > limits.depth:
        raise TooLargeError(f"{place}data is nested too deeply", f"at most the limit depth, {limits.depth} levels")
    count = len(present) - ("data" in present) + members_count
    if count > limits.attributes:
        raise TooLargeError(
            f"{place}the event has {count} attributes", f"at most the limit attributes, {limits.attributes}"
        )
    record = _record(present, event.time)
    # A copy of the right size: what the encoder returns keeps all of its buffer, which may be twice as much.
    body = b"%b" % _encode(present)
    if len(body) > limits.event_bytes:
        raise TooLargeError(
            f"{place}the event has {len(body)} bytes", f"at most the limit event_bytes, {limits.event_bytes}"
        )
    return Incoming(f"{event.source}\n{event.id}", body, record, flags)


def record_of(body: bytes, flags: int = FROM_CLIENT) -> dict[str, Any]:
    """Return the record of an event that was stored: the same as when it came, unless nobody wanted it.

    Other flags say how it came; the stored form is a CloudEvent in any case.
    """
    members = msgspec.json.decode(body)
    time = members.get("time")
    record = _record(members, None if time is None else msgspec.convert(time, datetime))
    if flags & UNWANTED:
        record[UNWANTED_ATTRIBUTE] = True
    return record


def _record(members: dict[str, Any], time: datetime | None) -> dict[str, Any]:
    data = members.get("data")
    record = dict(data) if type(data) is dict else {}
    if "data_base64" in members:  # which comes without `data`
        members = {name: value for name, value in members.items() if name != "data_base64"}
    record.update(members)
    if time is not None:
        record["time"] = time
    if UNWANTED_ATTRIBUTE in record:
        del record[UNWANTED_ATTRIBUTE]
    return record


def _check_extension(name: str, value: Any, place: str) -> None:
    if not _EXTENSION.fullmatch(name):
        raise BadRequestError(
            f"{place}{name!r:.60} is not the name of an attribute",
            "lower-case letters a to z and digits; the rest is for data",
        )
    if not (type(value) in (str, bool) or (type(value) is int and value in _CLOUD_EVENTS_INTEGERS)):
        raise BadRequestError(
            f"{place}the extension {name:.60} is {_kind(value)}", "a text, a Boolean or an integer of 32 bits"
        )


def _extent(data: Any, most: int) -> tuple[int, int]:
    """Return how many containers are inside each other, and how many members all objects have together.

    A text that could be read is never deep enough to overflow the stack, but a walk without recursion is no longer.
    It ends one level beyond `most`.
    """
    level = [data] if isinstance(data, dict | list) else []
    depth = members = 0
    while level and depth <= most:
        depth += 1
        members += sum(len(container) for container in level if type(container) is dict)
        level = [
            inner
            for container in level
            for inner in (container.values() if type(container) is dict else container)
            if isinstance(inner, dict | list)
        ]
    return depth, members


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "an array",
        str: "a text",
        bool: "a Boolean",
        int: "an integer",
        float: "a double",
    }
    return "an integer of more than 32 bits" if type(value) is int else names.get(type(value), "null")
