"""What does a person see in a browser? The page of a broker, what it is made of, and what it shows.

The page is plain files: no build, nothing from elsewhere, and nothing in it that `default-src 'self'` forbids. What it
shows of a broker comes from `/overview`, a line a second; everything else from routes that any client uses. A browser
gets the page, and everybody else who asks for `/` a text that says how to try the broker.
"""

from __future__ import annotations

import asyncio
import time
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from tamis.service import page
from tamis.service.errors import ForbiddenError
from tamis.service.history import Range
from tamis.service.http.answers import answer
from tamis.service.http.event_routes import whole
from tamis.service.http.event_stream import JsonLines, begun
from tamis.service.http.front import FRONT, Front
from tamis.service.http.guarding import CALLER, PRINCIPAL
from tamis.service.http.subscriber_routes import facts_of, subscriber_of
from tamis.service.overview import Looker, counters, memory_bytes
from tamis.service.permissions import EFFECTIVE_LIMITS
from tamis.service.positions import Position
from tamis.service.shares import Shares, shares_of
from tamis.service.starting_points import rfc3339
from tamis.standing.subscriptions import interest, parse_subscription

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOK_S = 1.0
GREETING = """\
This is Tamis, a broker of events: publishers send them, and whoever wants those that fulfil a condition gets them.

  listen     curl -N '{url}/listen?where=price<20'
  publish    curl --json '{{"price": 12}}' {url}/events
  look back  curl '{url}/events?from=-1h&where=price<20'

What else there is: {url}/openapi.json, and {url}/asyncapi.json for the WebSocket at {url}/ws.
"""


async def front_page(request: web.Request) -> web.Response:
    """Answer with the page, or say what this is, and how to try it."""
    if "text/html" in request.headers.get("Accept", ""):
        return _file("index.html", "text/html")
    return web.Response(text=GREETING.format(url=f"{request.scheme}://{request.host}"))


async def style(request: web.Request) -> web.Response:
    """Answer with the style of the page."""
    return _file("page.css", "text/css")


async def script(request: web.Request) -> web.Response:
    """Answer with the script of the page."""
    return _file("page.js", "text/javascript")


async def module(request: web.Request) -> web.Response:
    """Answer with the client for JavaScript."""
    return _file("tamis.js", "text/javascript")


async def icon(request: web.Request) -> web.Response:
    """Answer with the icon of the page."""
    return _file("icon.svg", "image/svg+xml")


def _file(name: str, media_type: str) -> web.Response:
    return web.Response(body=_content(name), content_type=media_type, charset="utf-8")


@cache
def _content(name: str) -> bytes:
    return files(page).joinpath(name).read_bytes()


async def overview(request: web.Request) -> web.StreamResponse:
    """Answer with the state of the broker, a line a second."""
    front = request.app[FRONT]
    if not front.permissions.is_admin(request[PRINCIPAL]):
        raise ForbiddenError("only an admin may see the state of the broker", "a token with the role admin")
    left, looker = whole(request, "most", 0, 0, 10_000_000), Looker()
    with front.connected(request[CALLER]) as hold:
        response = await begun(request, JsonLines())
        while not (
            front.closing.is_set() or hold.error is not None or not front.permissions.is_admin(hold.caller.principal)
        ):
            await response.write(msgspec.json.encode(_look(front, looker)) + b"\n")
            left -= 1
            if not left:
                break
            try:
                async with asyncio.timeout(LOOK_S):
                    await front.closing.wait()
            except TimeoutError:
                continue
        await response.write_eof()
    return response


def _look(front: Front, looker: Looker) -> Mapping[str, Any]:
    core, figures = front.core, front.core.figures
    figures.connections = front.connections.count
    return {
        "broker": front.settings.name,
        "version": version("tamis"),
        "time": rfc3339(time.time_ns() // 1_000),
        "uptime_s": time.monotonic() - front.started_s,
        "at": Position.of(core.head).text(core.epoch),
        "first": Position.of(core.first).text(core.epoch),
        "head": core.head,
        "ready": core.is_ready,
        "why_not": "" if core.is_ready else core.why_not_ready,
        "durable": core.is_durable,
        "insecure": front.settings.insecure,
        "roles": bool(front.settings.roles),
        "strategy": front.settings.strategy,
        "memory_bytes": memory_bytes(),
        **counters(figures),
        "delays": {name: delay._asdict() for name, delay in looker.delays(figures).items()},
    }


async def shares(request: web.Request) -> web.Response:
    """Answer with how much the subscriptions of a subscriber match of the past, and which of them cover others."""
    front, principal = request.app[FRONT], request[PRINCIPAL]
    facts = await facts_of(front, principal, subscriber_of(request))
    begin = await front.start(request.query.get("from", "-10m"))
    positions = Range(max(begin or front.core.head + 1, front.core.first), front.core.head + 1)
    texts = {key: known.effective for key, known in facts.subscriptions.items()}
    counted = await asyncio.to_thread(_counted, front, positions, texts, front.permissions.receive(principal))
    seconds = (counted.last_us - counted.first_us) / 1e6
    return answer(
        {
            "seen": counted.seen,
            "seconds": seconds,
            "subscriptions": {
                key: {
                    "matched": count,
                    "share": count / counted.seen if counted.seen else None,
                    "per_s": count / max(seconds, 1.0),
                    "covered_by": counted.covered_by.get(key, []),
                }
                for key, count in counted.matched.items()
            },
            "compared_all": counted.compared_all,
        }
    )


def _counted(front: Front, positions: Range, texts: Mapping[str, str], allowed: Any) -> Shares:
    with front.functions.in_use():
        filters = {key: interest(parse_subscription(text, limits=EFFECTIVE_LIMITS)) for key, text in texts.items()}
        return shares_of(front.core, positions, filters, allowed, front.schema, clock=time.monotonic)
