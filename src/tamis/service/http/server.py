"""Where does the broker listen? The HTTP server: listeners, time-outs and limits of connections.

aiohttp reads requests, but waits for them for ever: a client that sends a header a byte a minute (*slow loris*) would
hold its connection. So each connection gets a timer when it is accepted, and is cut off unless its first request has
come by then; between requests the idle time-out of aiohttp counts. TLS handshakes have the same time, and beyond the
limit of connections a new one is answered 503 and closed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http import HttpProcessingError

from tamis.service.errors import ExpectationError
from tamis.service.http.answers import PROBLEM, refusal
from tamis.service.http.front import FRONT, Front
from tamis.service.http.guarding import add_safe_headers, guard
from tamis.service.http.handing_over import FIRST, FirstBroker, hand_over
from tamis.service.http.routes import ROUTES

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from tamis.service.http.front import ServedCore
    from tamis.service.permissions import Permissions
    from tamis.service.principals import Authenticator
    from tamis.service.quotas import Quotas
    from tamis.service.settings import Differences, Settings

HEADER_BYTES = 16_384
"""The longest line of a request: an address with a filter in it, or a header."""
BACKLOG = 1_024
REFUSAL_S = 1.0
"""So long may a client take to read that it is refused."""
_BUSY = (
    b'{"title":"The broker is busy","status":503,"detail":"there are too many connections",'
    b'"expected":"fewer than limits.connections at a time","retry_s":5.0}'
)
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: %b\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (PROBLEM.encode(), len(_BUSY), _BUSY)
)


_CLIENTS_FAULT = (HttpProcessingError, web.RequestPayloadError, ConnectionError)


def _is_ours(record: logging.LogRecord) -> bool:
    """Is a failure worth a line? Of clients that speak no HTTP, or go away: no. They could fill the disk with those."""
    return not (record.exc_info and isinstance(record.exc_info[1], _CLIENTS_FAULT))


_LOGGER = logging.getLogger("tamis.service.http")
_LOGGER.addFilter(_is_ours)


class HttpServer:
    """The sockets of a broker. `start` opens them, `stop` closes them and lets everybody finish."""

    def __init__(
        self,
        core: ServedCore,
        settings: Settings,
        authenticator: Authenticator,
        quotas: Quotas,
        permissions: Permissions,
        reload: Callable[[], Awaitable[Differences]] | None = None,
        first: Path | None = None,
    ) -> None:
        """`first` is the socket of the first broker, if this is an edge broker of it."""
        self.front = Front(core, settings, authenticator, quotas, permissions, reload)
        application = web.Application(middlewares=[self._seen, hand_over, guard])
        application[FRONT] = self.front
        self.front.first = None if first is None else FirstBroker(first, self.front.closing)
        application[FIRST] = self.front.first
        application.add_routes(ROUTES)
        application.on_response_prepare.append(add_safe_headers)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=_LOGGER,
            handle_signals=False,
            handler_cancellation=True,
            keepalive_timeout=settings.limits.idle,
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
            shutdown_timeout=5.0,
        )
        self._servers: list[asyncio.Server] = []
        self._silent: dict[asyncio.BaseProtocol, asyncio.TimerHandle] = {}
        """Connections that have not asked anything yet, and when they are cut off."""
        self.addresses: list[str] = []

    async def start(self, contexts: Sequence[ssl.SSLContext | None] = ()) -> None:
        """Listen on all addresses of the settings; `contexts` are how they are encrypted, in the same order."""
        await self._runner.setup()
        manager = self._runner.server
        assert manager is not None
        manager.request_handler = _expecting_little(manager.request_handler)
        loop = asyncio.get_running_loop()
        listeners = self.front.settings.listeners
        for listener, context in zip(listeners, contexts or [None] * len(listeners), strict=True):
            server = await loop.create_server(
                self._connection,
                listener.host,
                listener.port,
                ssl=context,
                backlog=BACKLOG,
                reuse_port=listener.shared or None,
                ssl_handshake_timeout=None if context is None else self.front.settings.limits.header,
            )
            self._servers.append(server)
            scheme = "http" if context is None else "https"
            for socket in server.sockets:
                host, port = socket.getsockname()[:2]
                self.addresses.append(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")

    async def listen_to_edges(self, path: Path) -> None:
        """Answer what edge brokers hand over, on a Unix socket that nobody else can open."""
        server = await asyncio.get_running_loop().create_unix_server(self._connection, str(path), backlog=BACKLOG)
        path.chmod(0o600)
        self._servers.append(server)

    async def stop(self) -> None:
        """Take no more connections, say goodbye on those that last, and wait for requests to be answered."""
        for server in self._servers:
            server.close()
        self.front.closing.set()
        await self._runner.cleanup()
        if self.front.first is not None:
            await self.front.first.close()
        self._servers, self.addresses = [], []

    # -- Connections

    def _connection(self) -> asyncio.Protocol:
        """Return who reads a new connection."""
        manager = self._runner.server
        assert manager is not None
        limits = self.front.settings.limits
        if len(manager.connections) >= limits.connections:
            return _Refusal()
        protocol: asyncio.Protocol = manager()
        timer = asyncio.get_running_loop().call_later(limits.header, self._cut_off, protocol)
        self._silent[protocol] = timer
        return protocol

    def _cut_off(self, protocol: asyncio.Protocol) -> None:
        del self._silent[protocol]
        transport = getattr(protocol, "transport", None)
        if transport is not None:
            transport.abort()

    @web.middleware
    async def _seen(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Remember that a connection has asked something."""
        timer = self._silent.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        return await handler(request)


def _expecting_little(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Refuse what a client expects beside `100-continue`, before aiohttp does.

    That fails at a header that is no text, on every path and before any middleware.
    """

    async def answered(request: web.BaseRequest) -> web.StreamResponse:
        expected = request.headers.get("Expect", "100-continue")
        if expected.lower() == "100-continue":
            return await handler(request)
        error = ExpectationError(f"the broker does not know what to do for Expect: {expected:.40}", "100-continue")
        response = refusal(error)
        await add_safe_headers(request, response)
        return response

    return answered


class _Refusal(asyncio.Protocol):
    """Answers that there are too many connections, and closes.

    What was sent meanwhile is read first: closing with bytes that nobody read resets a connection, answer and all.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(_FULL)
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(REFUSAL_S, transport.abort)
