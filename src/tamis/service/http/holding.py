"""Who may stay? Connections that last, and what ends them before their time (revocation).

A request is let in once; a connection may last for weeks. So whoever holds one is asked again, when tokens or settings
have changed: is the token still there, has it ended, are its roles the same? If not, everything that waits on the
connection is told why, and the connection ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tamis.service.errors import ForbiddenError, IssuerError, OverloadedError, UnauthenticatedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container

    from tamis.service.errors import ServiceError
    from tamis.service.messages import Principal

_Answer = TypeVar("_Answer")


class Caller(NamedTuple):
    """Who asks, and how to ask once more who that is: `renew` raises an error if nobody is that any more."""

    principal: Principal
    renew: Callable[[], Principal]


class Hold:
    """A connection that lasts, as far as its right to do so goes."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.error: ServiceError | None = None
        """Why it has to end; None as long as it may stay."""
        self._watchers: list[Callable[[ServiceError], object]] = []

    def on_end(self, watcher: Callable[[ServiceError], object]) -> None:
        """Call a function when the connection has to end, with the reason."""
        self._watchers.append(watcher)

    def end(self, error: ServiceError) -> None:
        """End the connection; the first reason counts."""
        if self.error is None:
            self.error = error
            for watcher in self._watchers:
                watcher(error)

    async def outlast(self, answer: Awaitable[_Answer]) -> _Answer:
        """Wait for an answer as long as the connection may stay; raise why it may not."""
        waiting = asyncio.ensure_future(answer)
        self.on_end(lambda _: waiting.cancel())
        try:
            return await waiting
        except asyncio.CancelledError:
            if self.error is not None:
                raise self.error from None
            raise


def objection_to_stay(caller: Caller, roles: Container[str]) -> ServiceError | None:
    """Return why a caller may not stay, if these are the roles there are; None if it may.

    Other rights of the same roles end nothing: what somebody may do is judged anew with every request and event.
    """
    principal = caller.principal
    try:
        renewed = caller.renew()
    except (UnauthenticatedError, IssuerError) as error:
        return error
    if (renewed.name, renewed.roles) != (principal.name, principal.roles):
        return OverloadedError(f"{principal.name!r:.80} has other roles than before", "a new connection", 1.0)
    if principal.roles and not any(role in roles for role in principal.roles):
        return ForbiddenError(f"{principal.name!r:.80} has no role any more", "a role that the broker knows")
    return None
