"""What does every request pass? The door: where it comes from, who sends it, and what is said if it fails.

- *Host*. A broker without roles trusts whoever reaches its loopback address. A web page can make a browser reach it
  under a name of the page's own (DNS rebinding), so such a broker answers only to names of this machine.
- *Origin*. Browsers say which page a request comes from. Pages of other origins are refused unless the settings list
  them; for those that are listed, the browser is told so (CORS).
- *Who*. Everything but what says nothing of anybody asks the `Authenticator`; a WebSocket may say it in its `hello`.
- *Errors* become problem documents. What is our own mistake is logged and answered without its details.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from aiohttp import web

from tamis.errors import TamisError
from tamis.service.errors import BadRequestError, ForbiddenError, NotFoundError, ServiceError
from tamis.service.http.answers import refusal
from tamis.service.http.front import FRONT, Front
from tamis.service.http.holding import Caller
from tamis.service.messages import Principal
from tamis.service.settings import is_loopback

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PRINCIPAL: web.RequestKey[Principal] = web.RequestKey("principal", Principal)
CALLER: web.RequestKey[Caller] = web.RequestKey("caller", Caller)
OPEN = frozenset(
    {"/", "/page.css", "/page.js", "/icon.svg", "/tamis.js", "/live", "/ready", "/openapi.json", "/asyncapi.json"}
)
"""What anybody may ask: it says nothing of events, subscribers or principals."""
GREETED = frozenset({"/ws"})
"""Where the one who asks may say who it is later, in the first message."""

_UNASKED = OPEN | GREETED
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'",
    "Cache-Control": "no-store",
    "Server": "tamis",
}
_CORS = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID",
    "Access-Control-Max-Age": "600",
}
_logger = logging.getLogger("tamis.service.http")


class NotAllowedError(ServiceError):
    """A method that a path does not have."""

    status = 405
    title = "Not a method of this path"


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let a request in, or answer why not."""
    front = request.app[FRONT]
    response = await _answered(request, handler, front)
    front.core.figures.requests[str(response.status)] += 1
    return response


async def _answered(request: web.Request, handler: Handler, front: Front) -> web.StreamResponse:
    try:
        check_host(request, front)
        origin = check_origin(request, front)
        if request.method == "OPTIONS" and origin:
            return web.Response(status=204, headers=_CORS)
        path = request.match_info.route.resource
        canonical = "" if path is None else path.canonical
        if canonical not in _UNASKED:
            request[CALLER] = await front.caller_of(request)
            request[PRINCIPAL] = request[CALLER].principal
        return await handler(request)
    except web.HTTPNotFound:
        return refusal(NotFoundError(f"there is nothing at {request.path!r:.100}", "a path of /openapi.json"))
    except web.HTTPMethodNotAllowed as error:
        methods = ", ".join(sorted(error.allowed_methods))
        response = refusal(NotAllowedError(f"{request.method:.20} is not a method of this path", methods))
        response.headers["Allow"] = methods
        return response
    except (web.HTTPException, ConnectionError):
        raise
    except TamisError as error:
        return refusal(error)
    except Exception:
        _logger.exception("%s %s failed", request.method, request.path)
        return refusal(ServiceError("the broker made a mistake; its log says more"))


def split(address: str) -> SplitResult:
    """Return the parts of an address that a header names; raise an error if it is none."""
    try:
        return urlsplit(address)
    except ValueError as error:
        raise BadRequestError(f"{address!r:.100} is not an address: {error}", "the name or number of a host") from None


@lru_cache(maxsize=256)
def _host_of(header: str) -> str | None:
    """Return the host that a header names, without its port; of every request it is nearly always the same."""
    return split(f"//{header}").hostname


def check_host(request: web.Request, front: Front) -> None:
    """Refuse a name that is none of this machine's, where everybody who reaches the broker is trusted."""
    if front.settings.roles or front.settings.insecure:
        return
    host = _host_of(request.headers["Host"]) if "Host" in request.headers else "localhost"
    if not host or not is_loopback(host):
        raise ForbiddenError(
            f"a broker without roles does not answer to the host {host!r:.100}", "localhost or 127.0.0.1"
        )


def check_origin(request: web.Request, front: Front) -> str:
    """Return the origin of a page that may use the broker; empty if no page asks. Raise an error for all others."""
    origin = request.headers.get("Origin")
    if origin is None:
        return ""
    allowed = front.settings.origins
    is_own = split(origin).netloc.lower() == request.headers.get("Host", "").lower() and origin != "null"
    if is_own or origin in allowed or "*" in allowed:
        return origin
    raise ForbiddenError(
        f"pages of {origin!r:.100} may not use this broker", "an origin that the setting origins lists"
    )


async def add_safe_headers(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add to every answer what keeps browsers from guessing, framing and keeping it."""
    response.headers.update(_SAFE)
    origin = request.headers.get("Origin")
    if origin is not None and response.status != 403:
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = "Retry-After"
        response.headers["Vary"] = "Origin"
