"""How do events look that are posted? The content modes of CloudEvents: structured, binary, or several in a batch.

| mode | body | attributes |
|---|---|---|
| `structured` | the CloudEvent as JSON | in the body |
| `binary` | its data | in headers `ce-…` |
| `batch` | a JSON list of CloudEvents | in the body |

What subscriptions that remember earlier events have to tell is an extension attribute, `tamistold`: a text in JSON, the
member `told` of a delivery. As a header it is without the events of a sequence, for which headers have no room. Of a
publisher no attribute of that name is passed on, so that whoever is posted to can believe it.

Source: CloudEvents 1.0.2, HTTP Protocol Binding, sections 3.1 to 3.3 (3.1.3.2 for values of headers); extension
"Distributed Tracing", section "Using the extension".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from tamis.service.http.answers import told_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.service.messages import Delivery

TOLD = "tamistold"
BATCH_BYTES = 1_000_000
"""A batch is posted without the next event, if it would be larger with it."""
_JSON = "application/json"
_IS_JSON = re.compile(r"[^;]*[/+]json *(;.*)?", re.IGNORECASE)
_SPACE_TO_TILDE = "".join(map(chr, range(0x21, 0x7F))).replace('"', "").replace("%", "")
"""What stands for itself in the value of a header."""
_TRACE = re.compile(r"[ -~]{1,512}")


def batches(items: Sequence[Delivery], most: int, kept: dict[object, object]) -> Iterator[tuple[Delivery, ...]]:
    """Yield deliveries in batches, each of at most so many events.

    `kept` says of a position in which batch it was posted before. What failed together is posted together once more, so
    that a batch has the same id at every attempt, and is not joined by others.

    >>> from tamis.service.messages import Delivery
    >>> items = [Delivery(number, ("cheap",), b"{}") for number in range(5)]
    >>> [len(batch) for batch in batches(items, 2, {})], [len(batch) for batch in batches(items, 9, {0: "a", 1: "a"})]
    ([2, 2, 1], [2, 3])
    """
    batch: list[Delivery] = []
    size = 0
    for item in items:
        is_other = bool(batch) and kept.get(item.position) != kept.get(batch[-1].position)
        if len(batch) == most or is_other or (batch and size + len(item.body) > BATCH_BYTES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(item)
        size += len(item.body)
    if batch:
        yield tuple(batch)


def written(mode: str, batch: Sequence[Delivery], epoch: str = "") -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of a post.

    >>> from tamis.service.messages import Delivery
    >>> event = b'{"specversion":"1.0","id":"7","source":"/shop","type":"offer","data":{"price":12}}'
    >>> headers, body = written("binary", [Delivery(1, ("cheap",), event)])
    >>> headers["ce-source"], headers["Content-Type"], body
    ('/shop', 'application/json', b'{"price":12}')
    """
    if mode == "batch":
        bodies = [_with_told(item, epoch) for item in batch]
        return {"Content-Type": "application/cloudevents-batch+json"}, b"[%b]" % b",".join(bodies)
    (item,) = batch
    body = _with_told(item, epoch, has_events=mode != "binary")
    if mode == "binary":
        return _binary(msgspec.json.decode(body))
    headers = {"Content-Type": "application/cloudevents+json"}
    if b'"traceparent"' in body:
        headers |= _traced(msgspec.json.decode(body))
    return headers, body


def _with_told(delivery: Delivery, epoch: str, *, has_events: bool = True) -> bytes:
    """Return the CloudEvent of a delivery, with what is told of it."""
    body = delivery.body
    if TOLD.encode() in body:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        members.pop(TOLD, None)
        body = msgspec.json.encode(members)
    if not delivery.told:
        return body
    tellings = [told_json(each, epoch) for each in delivery.told]
    if not has_events:
        tellings = [msgspec.structs.replace(each, events=msgspec.UNSET) for each in tellings]
    text = msgspec.json.encode(msgspec.json.encode(tellings).decode())
    return b'{"%b":%b,%b' % (TOLD.encode(), text, body[1:])


def _binary(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    headers = _traced(event)
    said = event.get("datacontenttype")
    if "data_base64" in event:
        body = msgspec.convert(event["data_base64"], bytes)
    elif "data" not in event:
        body = b""
    elif isinstance(event["data"], str) and said is not None and not _IS_JSON.fullmatch(said):
        body = event["data"].encode()
    else:
        body = msgspec.json.encode(event["data"])
    if body or said is not None:
        headers["Content-Type"] = quote(said, _SPACE_TO_TILDE + ' "') if said is not None else _JSON
    for name, value in event.items():
        if name not in ("data", "data_base64", "datacontenttype"):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            headers[f"ce-{name}"] = quote(text, _SPACE_TO_TILDE)
    return headers, body


def _traced(event: dict[str, Any]) -> dict[str, str]:
    """Return the headers by which the receiver's spans go on with the publisher's trace."""
    said = ((name, event.get(name)) for name in ("traceparent", "tracestate"))
    return {name: value for name, value in said if isinstance(value, str) and _TRACE.fullmatch(value)}
