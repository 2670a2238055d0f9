"""What do all requests need? The front of the broker: the core, the settings, and who may ask for how much.

A handler gets a request and the `Front`, asks the core, and answers. What is the same for all of them is here: who
asks, how much of a body is read and for how long, filters from bodies, starting points, and waiting instead of refusing
where somebody has a connection of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from aiohttp import web

from tamis.language.limits import Limits
from tamis.service.errors import BadRequestError, GoneError, ServiceError, TooLargeError, TooManyError
from tamis.service.filters import all_wanted
from tamis.service.http.handing_over import asked_for
from tamis.service.http.holding import Caller, Hold, objection_to_stay
from tamis.service.quotas import Connections
from tamis.service.starting_points import SinceTime, starting_point

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from tamis.language.schema import Schema
    from tamis.service.changes import Buried
    from tamis.service.figures import Figures
    from tamis.service.http.handing_over import FirstBroker
    from tamis.service.links.server import LinkServer
    from tamis.service.log.base import Block, Gap
    from tamis.service.messages import Answer, Principal, Request, Session, Wanted
    from tamis.service.permissions import Permissions
    from tamis.service.principals import Authenticator
    from tamis.service.quotas import Quotas
    from tamis.service.settings import Differences, Settings
    from tamis.service.webhooks.sending import Webhooks

_Kind = TypeVar("_Kind")

SLOWEST_BYTES_PER_S = 50_000
"""Whoever sends a body more slowly than this holds a connection for nothing."""
RECHECKED_AT_ONCE = 100
"""So many connections are asked again whether they may stay, before others have their turn."""
PARSED_AT_ONCE = 2_000
"""Characters of filters that are parsed in the loop; more are parsed in a thread, so that others do not wait."""


class ServedCore(Protocol):
    """What the sockets need of the core; `core_thread.Core` is it."""

    epoch: str
    figures: Figures

    @property
    def head(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def is_durable(self) -> bool: ...
    @property
    def is_ready(self) -> bool: ...
    @property
    def why_not_ready(self) -> str: ...

    def open(self, principal: Principal, listener: Callable[[list[Answer]], None]) -> Session: ...
    def hear(self, session: Session, request: Request) -> None: ...
    def close(self, session: Session) -> None: ...
    async def ask(self, principal: Principal, request: Request) -> Answer: ...
    def refresh(self) -> None: ...
    def position_at(self, time_us: int) -> int: ...
    def gaps(self) -> tuple[Gap, ...]: ...
    def read(self, first: int, last: int) -> Iterator[Block]: ...
    def dead(self, subscriber: str) -> list[Buried]: ...


class Front:
    """What handlers share. What a reload may change is replaced by `renew`."""

    def __init__(
        self,
        core: ServedCore,
        settings: Settings,
        authenticator: Authenticator,
        quotas: Quotas,
        permissions: Permissions,
        reload: Callable[[], Awaitable[Differences]] | None = None,
    ) -> None:
        self.core = core
        self.authenticator = authenticator
        self.quotas = quotas
        self.reload = reload
        self.first: FirstBroker | None = None
        """The broker that has the state, if this is an edge broker of it."""
        self.webhooks: Webhooks | None = None
        """Who posts events to those who do not ask for them."""
        self.links: LinkServer | None = None
        """The sockets of neighbours."""
        self.connections = Connections(settings.limits)
        self._holds: set[Hold] = set()
        self._edition: tuple[object, ...] = ()
        self.closing = asyncio.Event()
        """Set when the broker stops: whoever holds a connection says goodbye and ends it."""
        self.started_s = time.monotonic()
        self._process, self._ids = secrets.token_hex(8), itertools.count(1)
        self.renew(settings, permissions)

    def renew(self, settings: Settings, permissions: Permissions) -> None:
        """Go on with other settings and permissions."""
        self.settings = settings
        self.permissions = permissions
        self.connections.limits = settings.limits
        self.schema: Schema | None = settings.event_schema()
        self.functions = settings.host_functions()
        self.filter_limits = Limits(text_length=settings.limits.text_length)

    # -- Who

    async def caller_of(self, request: web.Request) -> Caller:
        """Return who asks: by a ticket in the address, a token in the header, or a certificate."""
        ticket = request.query.get("ticket")
        if ticket is not None:
            redeemed = self.authenticator.redeemed(ticket)
            return Caller(redeemed.principal, redeemed.renew)
        return await self.caller(request, request.headers.get("Authorization"))

    async def caller(self, request: web.Request, authorization: str | None) -> Caller:
        """Return who shows this header, over the connection of this request."""
        remote, certificate = asked_for(request)
        await self.authenticator.prepare(authorization)

        def renew() -> Principal:
            return self.authenticator.principal(authorization, certificate, remote)

        return Caller(renew(), renew)

    @contextmanager
    def connected(self, caller: Caller) -> Iterator[Hold]:
        """Count a connection that lasts, for as long as it does; what is yielded ends it before, if it has to."""
        if (error := objection_to_stay(caller, self.permissions.roles)) is not None:
            raise error  # something has changed since its first words came
        self.connections.enter(caller.principal)
        hold = Hold(caller)
        self._holds.add(hold)
        try:
            yield hold
        finally:
            self._holds.discard(hold)
            self.connections.leave(caller.principal)

    async def recheck(self) -> None:
        """End the connections of those who may not stay, if anything has changed that says who may."""
        edition = self.authenticator.edition
        if edition == self._edition:
            return
        self._edition = edition
        for number, hold in enumerate(list(self._holds)):
            if number % RECHECKED_AT_ONCE == RECHECKED_AT_ONCE - 1:
                await asyncio.sleep(0)
            error = objection_to_stay(hold.caller, self.permissions.roles)
            if error is not None:
                hold.end(error)

    def passing_name(self, principal: Principal) -> str:
        """Return a name for a subscriber that lasts as long as its connection."""
        return f"{principal.name}/passing-{secrets.token_hex(8)}"

    @contextmanager
    def counted_refusals(self, events: int = 1, kind: type[ServiceError] = ServiceError) -> Iterator[None]:
        """Count events that are refused before the core has taken them, by the kind of error.

        What cannot be read counts as one event.
        """
        try:
            yield
        except kind as error:
            self.core.figures.events_refused[type(error).__name__.removesuffix("Error")] += max(1, events)
            raise

    def new_id(self) -> str:
        """Return an id that no other event has: of this process, and a number.

        Not random bytes each time: asking the system for them lets go of the interpreter's lock, and a loop that is
        in a hurry would wait milliseconds behind the core to get it back.
        """
        return f"{self._process}-{next(self._ids):x}"

    # -- What

    async def body(self, request: web.Request, most_bytes: int = 0) -> bytes:
        """Return the body of a request, if it is small enough and comes in time."""
        limits = self.settings.limits
        most = most_bytes or limits.batch_bytes

        def too_large() -> TooLargeError:
            limit = "the size of this request" if most_bytes else "batch_bytes"
            return TooLargeError(f"the request has more than {most} bytes", f"at most the limit {limit}, {most}")

        if (request.content_length or 0) > most:
            raise too_large()
        content = request.content
        chunks, size = [], 0
        try:
            if content.is_eof():  # a small body, which has come with its head: there is nothing to wait for
                chunks = [content.read_nowait(most + 1)]
                if len(chunks[0]) > most:
                    raise too_large()
                return chunks[0]
            async with asyncio.timeout(limits.header + most / SLOWEST_BYTES_PER_S):
                # What was compressed is unpacked piece by piece, so that a small body that becomes large is noticed.
                async for chunk in content.iter_chunked(65_536):
                    size += len(chunk)
                    if size > most:
                        raise too_large()
                    chunks.append(chunk)
        except TimeoutError:
            raise BadRequestError("the request did not come in time", "the whole body without a pause") from None
        except (web.RequestPayloadError, ValueError) as error:
            raise BadRequestError(f"the body cannot be read: {error!s:.200}", "a complete body") from None
        return b"".join(chunks)

    async def struct(self, request: web.Request, kind: type[_Kind]) -> _Kind:
        """Return the body of a request as a Struct; an empty body is an empty object."""
        body = await self.body(request)
        try:
            return msgspec.json.decode(body or b"{}", type=kind)
        except RecursionError:
            raise TooLargeError("the JSON is nested too deeply to be read", "less") from None
        except (msgspec.MsgspecError, ValueError) as error:
            raise BadRequestError(f"the body: {error}", f"JSON as {kind.__name__} in /openapi.json") from None

    async def wanted(self, principal: Principal, given: Mapping[str, Any], *, waits: bool = False) -> dict[str, Wanted]:
        """Return what subscriptions say, by key, within what the principal may still make; wait for that, if asked."""
        limit = self.settings.limits.texts
        if len(given) > limit:
            raise TooLargeError(
                f"the request has {len(given)} subscriptions", f"at most the limit texts, {limit}, at once"
            )
        if waits:
            await self.take(principal, subscriptions=len(given))
        else:
            self.quotas.take(principal, subscriptions=len(given), now=time.monotonic())
        return await self.parsed(given)

    async def parsed(self, given: Mapping[str, Any]) -> dict[str, Wanted]:
        """Return what filters say; in a thread, if that takes a while."""
        length = sum(len(form) if type(form) is str else PARSED_AT_ONCE for form in given.values())
        if length < PARSED_AT_ONCE:
            return all_wanted(given, self.schema, self.filter_limits, self.functions)
        return await asyncio.to_thread(all_wanted, given, self.schema, self.filter_limits, self.functions)

    async def start(self, text: str) -> int:
        """Return the position that a text such as `-1h` says to begin with; 0 is for nothing of the past."""
        if self.first is not None and text not in ("", "now"):
            raise GoneError(
                f"an edge broker has no history, and was asked for events from {text:.60} on",
                'GET /listen?from=…, a name in hello, or "past": true in it',
            )
        point = starting_point(text, self.core.epoch, time.time_ns() // 1_000)
        if isinstance(point, SinceTime):
            return max(1, await asyncio.to_thread(self.core.position_at, point.time_us))
        if point.position > self.core.head + 1:
            raise GoneError(f"the position {text:.60} has not come yet", f"at most {self.core.epoch}-{self.core.head}")
        return point.position

    # -- Waiting

    async def hear(self, session: Session, request: Request) -> None:
        """Hand a request of a connection to the core; wait while the core is busy, and read nothing meanwhile."""
        while True:
            try:
                self.core.hear(session, request)
                return
            except TooManyError as error:
                if self.closing.is_set():
                    raise
                await asyncio.sleep(min(error.retry_s, 1.0))

    async def take(self, principal: Principal, events: int = 0, size_bytes: int = 0, subscriptions: int = 0) -> None:
        """Take from the quota of a principal; wait for it, if it is used up."""
        while True:
            try:
                self.quotas.take(
                    principal, events=events, size_bytes=size_bytes, subscriptions=subscriptions, now=time.monotonic()
                )
                return
            except TooManyError as error:
                await asyncio.sleep(min(error.retry_s, 1.0))


FRONT: web.AppKey[Front] = web.AppKey("front", Front)
