"""How does a browser or `curl` listen? Server-sent events, and JSON lines.

Both are answers that do not end: one delivery after another, written as they come, several in one write. Neither can
say *done*: what was written counts. With server-sent events, who comes back says how far it has come
(`Last-Event-ID`), and only that is done for a durable subscriber.

    id: k3f9-813                                                  {"at":"k3f9-813","for":["listen"],"event":{…}}
    data: {"at":"k3f9-813","for":["cheap"],"event":{…}}

    event: caught_up                                              {"caught_up":"k3f9-815"}
    data: "k3f9-815"

    : still here                                                  (an empty line)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from tamis.service.errors import ServiceError
from tamis.service.http.answers import delivery_json, gap_json, problem_of
from tamis.service.messages import CaughtUp, Deliveries, Ended, Lost
from tamis.service.positions import Position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.service.http.consuming import Mailbox
    from tamis.service.http.front import Front

ALIVE_S = 15.0
"""After so long without an event something is written, so that nobody between takes the connection for dead."""
_encode = msgspec.json.encode


class EventStream:
    """Server-sent events (WHATWG HTML, section 9.2)."""

    media_type = "text/event-stream"
    alive = b": still here\n\n"
    bye = b"event: bye\ndata: {}\n\n"

    def delivery(self, at: str, content: bytes) -> bytes:
        """Write a delivery; JSON that we wrote has no line feed in it."""
        return b"id: %b\ndata: %b\n\n" % (at.encode(), content)

    def note(self, name: str, content: Any) -> bytes:
        """Write anything else that a consumer should know."""
        return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode(content))


class JsonLines:
    """A line, a delivery."""

    media_type = "application/x-ndjson"
    alive = b"\n"
    bye = b""

    def delivery(self, at: str, content: bytes) -> bytes:
        """Write a delivery."""
        return content + b"\n"

    def note(self, name: str, content: Any) -> bytes:
        """Write anything else that a consumer should know."""
        return _encode({name: content}) + b"\n"


Form = EventStream | JsonLines


def form_of(request: web.Request) -> Form:
    """Return the form that a request accepts: server-sent events if it names them, else JSON lines."""
    return EventStream() if "text/event-stream" in request.headers.get("Accept", "") else JsonLines()


def noted(answer: Lost | CaughtUp | Ended, epoch: str) -> tuple[str, Any]:
    """Return the name and the content of what is told besides deliveries."""
    if isinstance(answer, Lost):
        return "gap", gap_json(answer, epoch)
    if isinstance(answer, CaughtUp):
        return "caught_up", Position.of(answer.at).text(epoch)
    return "bye", answer.reason


async def begun(request: web.Request, form: Form) -> web.StreamResponse:
    """Begin an answer that goes on; proxies are asked not to hold it back."""
    response = web.StreamResponse(headers={"Content-Type": form.media_type, "X-Accel-Buffering": "no"})
    await response.prepare(request)
    return response


async def stream(
    front: Front, mailbox: Mailbox, response: web.StreamResponse, form: Form, waiting: Sequence[Any], most: int = 0
) -> None:
    """Write what comes for a mailbox until somebody ends it, or `most` events have gone out."""
    epoch, left, items = front.core.epoch, most or -1, list(waiting)
    closing = asyncio.ensure_future(front.closing.wait())
    closing.add_done_callback(lambda _: mailbox.put(None))
    try:
        while True:
            written = b""
            for item in items:
                if isinstance(item, Deliveries):
                    chosen = item.items if left < 0 else item.items[:left]
                    left -= len(chosen) if left > 0 else 0
                    written += b"".join(
                        form.delivery(delivery.position.text(epoch), delivery_json(delivery, epoch))
                        for delivery in chosen
                    )
                elif isinstance(item, Lost | CaughtUp | Ended):
                    written += form.note(*noted(item, epoch))
                elif isinstance(item, ServiceError):
                    written += form.note("error", problem_of(item))
            is_over = left == 0 or any(item is None or isinstance(item, Ended | ServiceError) for item in items)
            if is_over and any(item is None for item in items):
                written += form.bye
            if written or not items:
                await response.write(written or form.alive)
            if is_over:
                return
            for item in items:
                if isinstance(item, Deliveries):
                    await mailbox.wrote(item)
            items = await mailbox.take(ALIVE_S)
    except ServiceError:
        return  # the core has failed or is stopping: there is nothing more to come, and the answer has begun already
    finally:
        closing.cancel()
