"""How is a broker called? One session of the HTTP library, with the token and the certificates.

Conversations and requests share it. What the library raises becomes an error of the service: a broker that does not
answer is `UnreachableError`, one that refuses is what it says.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from tamis.service import wire
from tamis.service.client.endpoints import Certificate, Endpoint, tls_context
from tamis.service.client.problems import rebuilt
from tamis.service.errors import ServiceError, UnauthenticatedError, UnreachableError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

_CONNECT_S = 10.0
_HEARTBEAT_S = 20.0
_LARGEST_FRAME = 64 * 2**20


class Dialler:
    """The way to one broker.

    `patience_s` is how long to try to reach it. None is not at all before it was reached once, and for ever after that.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        ca: str | Path | None = None,
        certificate: Certificate | None = None,
        patience_s: float | None = None,
    ) -> None:
        self.endpoint = Endpoint.read(url)
        self.url = self.endpoint.http
        self.token = token or ""
        self.patience_s = patience_s
        self._tls: ssl.SSLContext | bool = tls_context(ca, certificate) if self.endpoint.is_secure else True
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        """Return the session; made by the first who asks, inside the loop."""
        if self._session is None:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            self._session = aiohttp.ClientSession(
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
                connector=aiohttp.TCPConnector(ssl=self._tls, limit=0),
            )
        return self._session

    async def close(self) -> None:
        """Let go of all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def web_socket(self) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket, or raise why there is none."""
        try:
            async with asyncio.timeout(_CONNECT_S):  # for the handshake too: the other end may be silent
                return await self.session().ws_connect(
                    self.endpoint.web_socket,
                    protocols=(wire.SUBPROTOCOL,),
                    heartbeat=_HEARTBEAT_S,
                    max_msg_size=_LARGEST_FRAME,
                )
        except aiohttp.WSServerHandshakeError as error:
            raise _refusal(error.status, error.message, self.url) from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(error) from None

    @asynccontextmanager
    async def request(
        self, method: str, path: str, parameters: Mapping[str, str] | None = None, body: Any = None, text: str = ""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Give the response to a request, if it is a good one; `text` is a text of the language that it is about."""
        options: dict[str, Any] = {}
        if body is not None:
            options = {"data": wire.encode(body), "headers": {"Content-Type": "application/json"}}
        try:
            async with self.session().request(method, self.url + path, params=parameters, **options) as response:
                if response.status >= 400:
                    raise rebuilt(await _problem(response), _retry_s(response), text or None)
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if isinstance(error, ServiceError):
                raise
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> ServiceError:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return UnauthenticatedError(
                f"{self.url} could not be verified: {error.certificate_error}",
                "a certificate of an authority that is trusted, see ca=…",
            )
        reason = error.os_error.strerror if isinstance(error, aiohttp.ClientConnectorError) else str(error)
        return UnreachableError(
            f"no broker answers at {self.url}" + (f" ({reason})" if reason else ""),
            "one that runs; `tamis serve` starts it",
        )


async def _problem(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Return the problem document of a response, or make one of what it is."""
    content = await response.content.read(100_000)
    try:
        document = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        document = {"detail": f"{response.url.path} is answered with {response.status} {response.reason or ''}".strip()}
    return {"status": response.status, **document}


def _retry_s(response: aiohttp.ClientResponse) -> float:
    try:
        return max(0.0, float(response.headers.get("Retry-After", "1")))
    except ValueError:
        return 1.0


def _refusal(status: int, words: str, url: str) -> Exception:
    if status == 200 or status == 404:
        return UnreachableError(f"what answers at {url} is not a broker ({status})", "a broker's address and port")
    return rebuilt({"status": status, "detail": f"{url} refuses the connection: {status} {words}".strip()})
