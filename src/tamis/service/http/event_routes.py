"""What may be asked of events? Publishing, reading what has happened, and listening.

| | |
|---|---|
| `POST /events` | take events, all of them or none |
| `GET /events` | what has happened, as JSON lines; with server-sent events it goes on live |
| `GET /log` | where the log begins and ends, for who reads it in parts |
| `GET /listen` | what happens, for as long as the connection lasts |
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from tamis.service.content_modes import Request, events_of, source_of
from tamis.service.errors import BadRequestError, OverloadedError
from tamis.service.filters import condition_of
from tamis.service.history import Found, Range, conjoined, read_events
from tamis.service.http.answers import answer
from tamis.service.http.consuming import Mailbox
from tamis.service.http.event_stream import EventStream, begun, form_of, stream
from tamis.service.http.front import FRONT, Front
from tamis.service.http.guarding import CALLER, PRINCIPAL
from tamis.service.messages import Attach, Publish, Published, Subscribe
from tamis.service.positions import Position, read_position

if TYPE_CHECKING:
    from aiohttp import web

MOST_READ = 1_000
"""So many events are read at once, if nobody asks for another number."""
LONGEST_KEY = 200
"""Characters of an `Idempotency-Key`."""


async def publish(request: web.Request) -> web.Response:
    """Take the events of a request; answer when they are on disk."""
    front, principal, epoch = request.app[FRONT], request[PRINCIPAL], request.app[FRONT].core.epoch
    asks_wanted = flag(request, "wanted")
    with front.counted_refusals():
        sent = Request(
            request.headers.get("Content-Type", ""),
            request.headers,
            await front.body(request),
            _idempotency_key(request) or front.new_id(),
            source_of(principal.name),
        )
        events = events_of(sent, front.settings.limits)
    with front.counted_refusals(len(events)):
        size_bytes = sum(len(event.body) for event in events)
        front.quotas.take(principal, events=len(events), size_bytes=size_bytes, now=time.monotonic())
    if not events:
        at = Position.of(front.core.head).text(epoch)
        return answer({"position": at, "positions": [], "events": 0, "known": 0, "durable": front.core.is_durable})
    with front.counted_refusals(len(events), OverloadedError):  # whatever else the core refuses, it counts itself
        published = await front.core.ask(principal, Publish(1, events, asks_wanted))
    assert isinstance(published, Published)
    content = {
        "position": Position.of(published.last).text(epoch),
        "positions": [Position.of(position).text(epoch) for position in published.positions],
        "events": len(published.positions),
        "known": published.known_count,
        "durable": published.is_durable,
    }
    if published.wanted is not None:
        content["wanted"] = published.wanted
    return answer(content)


async def read(request: web.Request) -> web.StreamResponse:
    """Answer with what has happened: `from`, `until` (not included), `where`, `most`."""
    front, principal = request.app[FRONT], request[PRINCIPAL]
    form = form_of(request)
    if isinstance(form, EventStream) and "until" not in request.query:
        return await listen(request)
    where = request.query.get("where")
    front.quotas.take(principal, subscriptions=1, now=time.monotonic())  # the whole log may be read for it
    wanted = None if where is None else condition_of((await front.parsed({"where": where}))["where"], "the past")
    await asyncio.to_thread(front.core.refresh)
    begin = request.query.get("from", "first")
    first = front.core.first if begin == "first" else await front.start(begin)
    until = await front.start(request.query["until"]) if "until" in request.query else 0
    head = front.core.head
    left = whole(request, "most", MOST_READ, 1, 10_000_000)
    positions = Range(first or head + 1, min(until or head + 1, head + 1))
    epoch = front.core.epoch
    with front.connected(request[CALLER]) as hold:
        response = await begun(request, form)
        allowed = front.permissions.receive(principal)
        async for items in read_events(front.core, positions, conjoined(wanted, allowed), front.schema):
            is_other = front.permissions.receive(principal) != allowed  # it may see less than when it asked
            if is_other or front.closing.is_set() or hold.error is not None:
                # Cut off, so that nobody takes a part for the whole.
                assert request.transport is not None
                request.transport.abort()
                return response
            written = b""
            for item in items:
                at = _at(item.position if isinstance(item, Found) else item.first, epoch)
                if isinstance(item, Found):
                    written += form.delivery(at, b'{"at":"%b","event":%b}' % (at.encode(), item.body))
                    left -= 1
                else:
                    gap = {"first": at, "last": _at(item.last, epoch), "reason": item.reason}
                    written += form.note("gap", gap)
                if not left:
                    break
            await response.write(written)
            if not left:
                break
        await response.write_eof()
    return response


async def describe_log(request: web.Request) -> web.Response:
    """Answer with what the log holds, and at which position `from` begins."""
    front = request.app[FRONT]
    await asyncio.to_thread(front.core.refresh)
    begin, epoch = request.query.get("from", ""), front.core.epoch
    start = await front.start(begin) if begin not in ("", "first") else 0
    first, head = front.core.first, front.core.head
    content: dict[str, Any] = {
        "epoch": epoch,
        "first": _at(first, epoch),
        "at": _at(head, epoch),
        "gaps": [{"first": _at(gap.first, epoch), "last": _at(gap.last, epoch)} for gap in front.core.gaps()],
    }
    if begin:
        content["start"] = _at(first if begin == "first" else start or head + 1, epoch)
    return answer(content)


async def listen(request: web.Request) -> web.StreamResponse:
    """Answer with events as they come: `where`, `from` for some of the past, and `most` to end after so many."""
    front, principal = request.app[FRONT], request[PRINCIPAL]
    where = request.query.get("where", "TRUE")
    wanted = await front.wanted(principal, {"listen": where})
    start = await front.start(request.query.get("from") or _last_seen(request, front))
    most = whole(request, "most", 0, 0, 10_000_000)
    when_slow = request.query.get("when_slow", "gap")
    if when_slow not in ("gap", "close"):
        raise BadRequestError(f"when_slow is {when_slow!r:.40}", "gap or close")
    name = front.passing_name(principal)
    limits = front.settings.limits
    with front.connected(request[CALLER]) as hold, Mailbox(front, principal, hold) as mailbox:
        attach = Attach(1, name, False, limits.credit, limits.credit_bytes, False, ends_when_slow=when_slow == "close")
        subscribe = Subscribe(2, name, wanted, False, start)
        _, waiting = await mailbox.answers_to([attach, subscribe])
        form = form_of(request)
        response = await begun(request, form)
        await stream(front, mailbox, response, form, waiting, most)
        await response.write_eof()
    return response


def _idempotency_key(request: web.Request) -> str:
    """Return the id that a publisher gives to a plain object; a part of it would be the id of other objects, too."""
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > LONGEST_KEY:
        raise BadRequestError(
            f"the header Idempotency-Key has {len(key):,} characters", f"at most {LONGEST_KEY} characters"
        )
    return key


def _last_seen(request: web.Request, front: Front) -> str:
    """Return where a browser that lost its connection goes on: behind the last event that it has seen."""
    seen = request.headers.get("Last-Event-ID", "")
    if not seen:
        return "now"
    return Position.of(read_position(seen, front.core.epoch).event + 1).text(front.core.epoch)


def _at(number: int, epoch: str) -> str:
    return Position.of(number).text(epoch)


def flag(request: web.Request, name: str) -> bool:
    """Return an option of the address that is on or off."""
    value = request.query.get(name, "false").lower()
    if value not in ("true", "false", "1", "0", ""):
        raise BadRequestError(f"{name} is {value!r:.40}", "true or false")
    return value in ("true", "1", "")


def whole(request: web.Request, name: str, otherwise: int, least: int, most: int) -> int:
    """Return an option of the address that is a whole number within bounds."""
    text = request.query.get(name)
    if text is None:
        return otherwise
    if not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most):
        raise BadRequestError(f"{name} is {text!r:.40}", f"a whole number from {least} to {most}")
    return int(text)
