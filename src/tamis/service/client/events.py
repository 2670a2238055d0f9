"""What does a program have in its hands? An event, as a CloudEvent whose attributes are Python's.

What is published becomes a CloudEvent here, with an id that is made once: however often it is sent, it is the same
event. What is received is an `Event`: `data` is what was published, and the context attributes (`type`, `source`, `id`,
`subject`, `time`, extensions) are attributes of the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from math import isfinite
from typing import Any
from uuid import uuid4

import msgspec

from tamis.service import wire
from tamis.service.errors import BadRequestError

DEFAULT_TYPE = "tamis.event"
DEFAULT_SOURCE = "/python"

_PAYLOAD = ("data", "data_base64")


class Event:
    """An event that a broker has.

    >>> event = Event("k3f9-812", b'{"specversion":"1.0","id":"7","source":"/shop","type":"offer","data":{"price":12}}')
    >>> event.data, event.type, event.at
    ({'price': 12}, 'offer', 'k3f9-812')
    """

    def __init__(self, at: str, body: bytes | memoryview) -> None:
        self.at = at
        """Its position in the log of the broker; it does not change."""
        self.body = bytes(body)
        """The CloudEvent as JSON."""

    @cached_property
    def cloud_event(self) -> dict[str, Any]:
        """The CloudEvent as it was delivered: context attributes, and `data` or `data_base64`."""
        members: dict[str, Any] = msgspec.json.decode(self.body)
        return members

    @cached_property
    def context(self) -> dict[str, Any]:
        """The context attributes by name; `time` as a datetime."""
        attributes = {name: value for name, value in self.cloud_event.items() if name not in _PAYLOAD}
        if isinstance(attributes.get("time"), str):
            attributes["time"] = msgspec.convert(attributes["time"], datetime)
        return attributes

    @cached_property
    def data(self) -> Any:
        """What was published: a dictionary if it was an object; bytes if it was binary."""
        if "data_base64" in self.cloud_event:
            return msgspec.convert(self.cloud_event["data_base64"], bytes)
        return self.cloud_event.get("data")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            try:
                return self.context[name]
            except KeyError:
                pass
        raise AttributeError(
            f"the event has no attribute {name!r}; its data has names of its own: event.data[{name!r}]"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.at} {self.body.decode('utf-8', 'replace'):.200}>"


class Told:
    """What a ranked subscription, a sequence or a change has to tell of an event.

    >>> told = Told(wire.Told("best", "ranked", "2026-03-01T12:00:00Z", rank=1))
    >>> told.key, told.kind, told.at.hour, told.rank, told.change, told.run
    ('best', 'ranked', 12, 1, None, ())
    """

    def __init__(self, told: wire.Told) -> None:
        self.key, self.kind = told.key, told.kind
        """Of the subscription; the kind is `ranked`, `sequence` or `change`."""
        self.at = msgspec.convert(told.at, datetime)
        """The time at which an event came, or something was due although nothing came."""
        self.change = told.change if isinstance(told.change, bool) else None
        """Of a change: whether the condition became true, or ceased to be."""
        self.rank = told.rank if isinstance(told.rank, int) else None
        """Of a ranked subscription: the place of the event, from 1; None if others have driven it out at once."""
        places = told.run if isinstance(told.run, list) else []
        bodies = told.events if isinstance(told.events, list) else []
        self.run = tuple(Event(at, bytes(body)) for at, body in zip(places, bodies, strict=True))
        """Of a sequence: its events."""

    def __repr__(self) -> str:
        return f"<{self.kind} {self.key} at {self.at.isoformat()}>"


def encoded(event: Any, default_source: str = DEFAULT_SOURCE, /, **context: Any) -> bytes:
    """Return an event as the JSON of a CloudEvent.

    A mapping with `specversion` is a CloudEvent already, in which an id may be missing; anything else is its data.

    >>> encoded({"price": 12}, type="auction", id="7")
    b'{"specversion":"1.0","id":"7","source":"/python","type":"auction","data":{"price":12}}'
    """
    given = {name: value for name, value in context.items() if value is not None}
    if isinstance(event, Mapping) and "specversion" in event:
        members = {**event, **given}
        members.setdefault("id", str(uuid4()))
    else:
        # A `type` in the data is the event's, as it is for plain objects that are posted.
        own = event.get("type") if isinstance(event, Mapping) else None
        kind = own if isinstance(own, str) and own and own.isprintable() else DEFAULT_TYPE
        members = {"specversion": "1.0", "id": str(uuid4()), "source": default_source, "type": kind, **given}
        payload = "data_base64" if isinstance(event, bytes | bytearray | memoryview) else "data"
        members[payload] = event
    try:
        body = wire.encode(members)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadRequestError(f"the event is not JSON: {error}", "numbers, texts, lists, mappings by text") from None
    if b"null" in body and _has_endless_number(members):
        # JSON has none of them, and the library writes null: another event than the one that was meant.
        raise BadRequestError("the event has a number that is NaN or infinite", "finite numbers, or None")
    return body


def _has_endless_number(value: Any) -> bool:
    rest = [value]
    while rest:
        part = rest.pop()
        if isinstance(part, float) and not isfinite(part):
            return True
        if isinstance(part, Mapping):
            rest.extend(part.values())
        elif isinstance(part, list | tuple | set | frozenset):
            rest.extend(part)
    return False
