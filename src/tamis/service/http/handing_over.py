"""What does an edge broker answer itself? Publications and passing subscribers; the rest it hands over to the first.

Edge brokers are behind the same address as the first, so any of them may be asked anything. Whatever needs the state
of the first (durable subscribers, history, tickets, links, figures) is passed on to it, byte by byte, over a Unix
socket in a folder that nobody else can open: requests, answers that do not end, WebSockets. What the first must know of
who asks, and cannot see there, stands in a header of its own: the address, and the certificate.

A WebSocket is handed over if its first message names a subscriber, or says that the past will be asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import msgspec
from aiohttp import WSCloseCode, WSMsgType, web
from multidict import CIMultiDict
from yarl import URL

from tamis.service import wire
from tamis.service.errors import OverloadedError, ServiceError
from tamis.service.http.answers import refusal
from tamis.service.http.frames import messages_in, refusal_message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

EDGE_HEADER = "Tamis-Edge"
_HERE = frozenset(
    {
        ("POST", "/events"), ("POST", "/check"), ("GET", "/"), ("GET", "/live"), ("GET", "/ready"), ("GET", "/listen"),
        ("GET", "/openapi.json"), ("GET", "/asyncapi.json"), ("GET", wire.PATH),
    }
)  # fmt: skip
_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
        "upgrade", "expect", EDGE_HEADER.lower(),
    }
)  # fmt: skip
"""Headers that are for one connection, not for the request (RFC 9110, 7.6.1)."""
_RETRY_S = 1.0


class AskedFor(NamedTuple):
    """What an edge broker says of whoever asks."""

    remote: str
    certificate: dict[str, Any] | None = None


def asked_for(request: web.Request) -> AskedFor:
    """Return from where a request comes, and with which certificate; of one that was handed over, as the edge says.

    Only edge brokers can reach the Unix socket; on any other, nobody believes the header.
    """
    transport = request.transport
    if transport is None:
        return AskedFor("")
    door = transport.get_extra_info("socket")
    if door is not None and door.family == socket.AF_UNIX and EDGE_HEADER in request.headers:
        return msgspec.json.decode(request.headers[EDGE_HEADER], type=AskedFor)
    return AskedFor(request.remote or "", transport.get_extra_info("peercert"))


def is_answered_here(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    """Does an edge broker answer a request itself?

    >>> is_answered_here("POST", "/events", {}, {}), is_answered_here("GET", "/subscribers/ann", {}, {})
    (True, False)
    >>> is_answered_here("GET", "/listen", {"where": "price < 20"}, {})
    True
    >>> is_answered_here("GET", "/listen", {"from": "-1h"}, {})  # history
    False
    """
    if method == "OPTIONS":
        return True
    if (method, path) not in _HERE or "ticket" in query or "Last-Event-ID" in headers:
        return False
    return "from" not in query and "wanted" not in query


@web.middleware
async def hand_over(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer a request here, or let the first broker answer."""
    first = request.app[FIRST]
    if first is None or is_answered_here(request.method, request.path, request.query, request.headers):
        return await handler(request)
    try:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await first.upgrade(request)
        return await first.answer(request)
    except ServiceError as error:
        return refusal(error)


def needs_first(frame: bytes | str) -> bool:
    """Does the first frame of a WebSocket begin a conversation that only the first broker can hold?

    >>> needs_first('{"hello": {"as": "ann"}}'), needs_first('{"hello": {}}'), needs_first("nonsense")
    (True, False, False)
    """
    try:
        messages = messages_in(frame)
    except ServiceError:
        return False
    hellos = [message.hello for message in messages if isinstance(message.hello, wire.Hello)]
    return any(hello.name or hello.past for hello in hellos) or any(message.since for message in messages)


class FirstBroker:
    """The first broker, as an edge broker reaches it."""

    def __init__(self, path: Path, closing: asyncio.Event) -> None:
        self._path, self._closing = path, closing
        self._session: aiohttp.ClientSession | None = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(str(self._path), limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=10.0), auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )  # fmt: skip
        return self._session

    async def close(self) -> None:
        """Let go of all connections to it."""
        if self._session is not None:
            await self._session.close()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Pass a request on, and its answer back, as they come."""
        data = request.content if request.body_exists else None
        try:
            passed = await self._opened().request(
                request.method, self._url(request), headers=_headers_of(request), data=data, allow_redirects=False,
                skip_auto_headers=("User-Agent", "Accept-Encoding", "Accept", "Content-Type"),
            )  # fmt: skip
        except aiohttp.ClientError as error:
            raise _away(error) from None
        async with passed:
            headers = _end_to_end(passed.headers)
            response = web.StreamResponse(status=passed.status, reason=passed.reason, headers=headers)
            await response.prepare(request)
            await self._until_closing(_copied(passed, response))
            with contextlib.suppress(ConnectionError):
                await response.write_eof()
        return response

    async def upgrade(self, request: web.Request) -> web.StreamResponse:
        """Pass a WebSocket on from its first byte."""
        try:
            there = await self._connected(request)
        except aiohttp.WSServerHandshakeError as error:
            return web.Response(status=error.status, text=error.message)
        here = web.WebSocketResponse(protocols=(wire.SUBPROTOCOL,), compress=False, max_msg_size=0)
        await here.prepare(request)
        await self._until_closing(_joined(here, there))
        return here

    async def converse(self, request: web.Request, here: web.WebSocketResponse, frame: bytes | str) -> None:
        """Pass a WebSocket on whose first frame was read here."""
        try:
            there = await self._connected(request)
        except (ServiceError, aiohttp.WSServerHandshakeError) as failure:
            error = failure if isinstance(failure, ServiceError) else _away(failure)
            await here.send_frame(refusal_message(error), WSMsgType.TEXT)
            await here.close(code=WSCloseCode.TRY_AGAIN_LATER)
            return
        await there.send_str(frame if isinstance(frame, str) else frame.decode("utf-8", "replace"))
        await self._until_closing(_joined(here, there))

    def _url(self, request: web.Request) -> URL:
        return URL(f"http://first{request.raw_path}", encoded=True)

    async def _connected(self, request: web.Request) -> aiohttp.ClientWebSocketResponse:
        headers = _headers_of(request)
        for name in [name for name in headers if name.lower().startswith("sec-websocket-")]:
            headers.popall(name, None)
        try:
            return await self._opened().ws_connect(
                self._url(request), headers=headers, protocols=(wire.SUBPROTOCOL,), max_msg_size=0, compress=0
            )
        except aiohttp.WSServerHandshakeError:
            raise
        except aiohttp.ClientError as error:
            raise _away(error) from None

    async def _until_closing(self, work: Any) -> None:
        """Do something until it is over or this broker stops."""
        working, closing = asyncio.ensure_future(work), asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((working, closing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, closing):
                task.cancel()
            await asyncio.gather(working, closing, return_exceptions=True)


FIRST: web.AppKey[FirstBroker | None] = web.AppKey("first")


def _away(error: aiohttp.ClientError) -> OverloadedError:
    return OverloadedError(
        f"the first broker does not answer its edge broker ({type(error).__name__})", "another try soon", _RETRY_S
    )


def _end_to_end(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the headers that are not for one connection only."""
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in _BY_HOP and name.lower() not in named
    )


def _headers_of(request: web.Request) -> CIMultiDict[str]:
    """Return the headers of a request as the first broker gets them."""
    headers = _end_to_end(request.headers)
    headers[EDGE_HEADER] = msgspec.json.encode(asked_for(request)).decode()
    return headers


async def _copied(passed: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    with contextlib.suppress(aiohttp.ClientError, ConnectionError):
        async for chunk in passed.content.iter_any():
            await response.write(chunk)


async def _joined(here: web.WebSocketResponse, there: aiohttp.ClientWebSocketResponse) -> None:
    """Carry messages both ways until one end closes."""
    ways = [asyncio.ensure_future(_carried(*way)) for way in ((here, there), (there, here))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        # An end whose other end broke off without a word is told to come back.
        await here.close(code=there.close_code or WSCloseCode.GOING_AWAY)
        await there.close(code=here.close_code or WSCloseCode.GOING_AWAY)


async def _carried(source: Any, target: Any) -> None:
    with contextlib.suppress(ConnectionError):
        async for message in source:
            if message.type is WSMsgType.TEXT:
                await target.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                await target.send_bytes(message.data)
