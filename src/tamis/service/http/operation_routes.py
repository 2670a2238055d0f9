"""What may an operator ask? Whether the broker lives, is ready, how it fares, and to read its settings again."""

from __future__ import annotations

from aiohttp import web

from tamis.service.asyncapi import asyncapi
from tamis.service.errors import ForbiddenError, NotFoundError
from tamis.service.http.answers import answer
from tamis.service.http.front import FRONT
from tamis.service.http.guarding import CALLER, PRINCIPAL
from tamis.service.openapi import openapi


async def live(request: web.Request) -> web.Response:
    """Say that the loop runs."""
    return answer({"live": True})


async def ready(request: web.Request) -> web.Response:
    """Say whether events are taken, and why not."""
    core = request.app[FRONT].core
    if core.is_ready:
        return answer({"ready": True})
    return answer({"ready": False, "why": core.why_not_ready}, 503)


async def metrics(request: web.Request) -> web.Response:
    """Answer with the figures of the broker."""
    front = request.app[FRONT]
    figures = front.core.figures
    figures.connections = front.connections.count
    if front.links is not None:
        front.links.count_bytes()
    figures.log_first, figures.log_head = front.core.first, front.core.head
    figures.ready = int(front.core.is_ready)
    figures.count_failures(front.functions)
    headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
    return web.Response(body=figures.text().encode(), headers=headers)


async def describe_http(request: web.Request) -> web.Response:
    """Answer with what may be asked over HTTP."""
    return answer(openapi())


async def describe_web_socket(request: web.Request) -> web.Response:
    """Answer with what may be said over the WebSocket."""
    return answer(asyncapi())


async def reload(request: web.Request) -> web.Response:
    """Read the settings again, as SIGHUP does; answer what has changed, and what waits for a start."""
    front = request.app[FRONT]
    if not front.permissions.is_admin(request[PRINCIPAL]):
        raise ForbiddenError("only an admin may reload", "a token with the role admin")
    if front.reload is None:
        raise NotFoundError("this broker has no settings that can be read again", "a broker that 'tamis serve' started")
    changed = await front.reload()
    return answer({"reloaded": True, **changed._asdict()})


async def ticket(request: web.Request) -> web.Response:
    """Answer with a ticket: it stands for the one who asks, in an address, once and for a minute."""
    front = request.app[FRONT]
    return answer({"ticket": front.authenticator.ticket(*request[CALLER])}, 201)
