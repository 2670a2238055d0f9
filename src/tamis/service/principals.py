"""Who asks? Authentication: a token, a JSON Web Token, a client certificate, or the machine itself.

Where there are no roles, everybody whom the listener lets in is `local` and may do everything; the settings allow only
loopback addresses then. Where there are, a request shows a token (`Authorization: Bearer …`) or its connection a
certificate that one of the listener's authorities has signed. A token that is wrong is refused, whatever certificate
comes with it: who shows one means it. A JSON Web Token is verified with the keys of its issuer, which may have to be
fetched; `prepare` does that before, so that deciding never waits.

Browsers cannot send headers with server-sent events. They fetch a *ticket* first, which stands in the address, is good
for one minute and for one connection.
"""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.service.errors import TooManyError, UnauthenticatedError
from tamis.service.messages import Principal
from tamis.service.settings import ADMIN, is_loopback
from tamis.service.tokens import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tamis.service.issuers.verifying import Issuers
    from tamis.service.settings import Settings
    from tamis.service.tokens import Tokens

LOCAL = "local"
TICKET_S = 60.0
TICKETS_EACH = 100
TICKETS = 10_000
_BEARER = re.compile(r"bearer +([!-~]{1,8192}) *", re.IGNORECASE)
_EXPECTED = "a header 'Authorization: Bearer TOKEN', or a client certificate"


class Authenticator:
    """Says who asks.

    >>> from tamis.service.settings import Role, Settings
    >>> from tamis.service.tokens import Tokens
    >>> tokens = Tokens(":memory:")
    >>> Authenticator(Settings(), tokens).principal(None, None, "127.0.0.1")
    Principal(name='local', roles=(), is_admin=True)
    >>> authenticator = Authenticator(Settings(roles={"shop": Role(receive="TRUE")}), tokens)
    >>> secret = tokens.create("ann", ("shop",))
    >>> authenticator.principal(f"Bearer {secret}", None, "127.0.0.1")
    Principal(name='ann', roles=('shop',), is_admin=False)
    """

    def __init__(
        self,
        settings: Settings,
        tokens: Tokens,
        now: Callable[[], float] = time.time,
        issuers: Issuers | None = None,
    ) -> None:
        self._settings = settings
        self.issuers = issuers
        """Whose JSON Web Tokens count; None if the settings name nobody."""
        self._is_insecure = settings.insecure
        self._reload_count = 0
        self._tokens = tokens
        self._now = now
        self._tickets: dict[str, Ticket] = {}

    def reload(self, settings: Settings, issuers: Issuers | None = None) -> None:
        """Go on with other roles. Whether everybody is let in is decided at the start, with the addresses."""
        self._settings = settings
        self.issuers = issuers
        self._reload_count += 1

    async def prepare(self, authorization: str | None) -> None:
        """Have what `principal` needs for this header: the keys of an issuer, which may have to be fetched."""
        if self.issuers is not None and authorization is not None and self._settings.roles:
            header = _BEARER.fullmatch(authorization)
            if header is not None and _is_json_web_token(header[1]):
                await self.issuers.prepare(header[1])

    def principal(
        self, authorization: str | None, peer_certificate: Mapping[str, Any] | None, remote: str
    ) -> Principal:
        """Return who asks, or raise an `UnauthenticatedError`.

        `peer_certificate` is what Python's `getpeercert` returns: empty or None where no certificate was verified.
        """
        if not self._settings.roles:
            if self._is_insecure or is_loopback(remote):
                return Principal(LOCAL, is_admin=True)
            raise UnauthenticatedError(f"this broker has no roles, and {remote!r:.80} is another machine", "roles")
        if authorization is not None:
            header = _BEARER.fullmatch(authorization)
            if header is None:
                raise UnauthenticatedError("the header Authorization cannot be read", _EXPECTED)
            return self.of_token(header[1])
        if peer_certificate:
            return self._of_certificate(peer_certificate)
        raise UnauthenticatedError("the client is not authenticated", _EXPECTED)

    def of_token(self, secret: str) -> Principal:
        """Return whom a token stands for, or raise an `UnauthenticatedError`."""
        if self.issuers is not None and _is_json_web_token(secret):
            identity = self.issuers.identity_of(secret)
            return self._named(identity.name, identity.roles)
        token = self._tokens.find(secret)
        if token is None:
            raise UnauthenticatedError("there is no such token", "one that 'tamis token create' has shown")
        if token.ends is not None and token.ends <= self._now():
            raise UnauthenticatedError("the token has expired", "a new one, made with 'tamis token create'")
        return self._named(token.principal, token.roles)

    def _of_certificate(self, certificate: Mapping[str, Any]) -> Principal:
        names = [name for name in _names(certificate) if name.isprintable() and 0 < len(name) <= 200]
        if not names:
            raise UnauthenticatedError("the certificate has no name", "one with a subject alternative name")
        # With several names, the one that the operator knows. Nobody knows it: somebody, without any role.
        name = next((name for name in names if name in self._settings.principals), names[0])
        return self._named(name, self._settings.principals.get(name, ()))

    def _named(self, name: str, roles: tuple[str, ...]) -> Principal:
        known = self._settings.roles
        is_admin = any(role == ADMIN or (role in known and known[role].admin) for role in roles)
        return Principal(name, roles, is_admin)

    @property
    def edition(self) -> tuple[object, ...]:
        """What is another one when somebody may be let in no longer, or as somebody else."""
        now = self._now()
        issued = () if self.issuers is None else self.issuers.edition(now)
        return self._tokens.edition, self._tokens.ended_count(now), self._reload_count, issued

    def ticket(self, principal: Principal, renew: Callable[[], Principal] | None = None) -> str:
        """Return a ticket that stands for a principal, for one connection within a minute.

        `renew` says whether that principal is still what it was, for as long as the connection lasts.
        """
        now = self._now()
        self._tickets = {digest: ticket for digest, ticket in self._tickets.items() if ticket.ends > now}
        own = sum(ticket.principal.name == principal.name for ticket in self._tickets.values())
        if own >= TICKETS_EACH or len(self._tickets) >= TICKETS:
            raise TooManyError(
                f"{principal.name} has {own} tickets that are not used", f"at most {TICKETS_EACH}", retry_s=TICKET_S
            )
        secret = secrets.token_urlsafe(24)
        self._tickets[digest_of(secret)] = Ticket(principal, now + TICKET_S, renew or (lambda: principal))
        return secret

    def of_ticket(self, secret: str) -> Principal:
        """Return whom a ticket stands for, and take it; raise an `UnauthenticatedError` if it is none any more."""
        return self.redeemed(secret).principal

    def redeemed(self, secret: str) -> Ticket:
        """Take a ticket; raise an `UnauthenticatedError` if it is none any more."""
        ticket = self._tickets.pop(digest_of(secret[:100]), None)
        if ticket is None or ticket.ends <= self._now():
            raise UnauthenticatedError("there is no such ticket", "one from POST /tickets, used once, within a minute")
        return ticket


class Ticket(NamedTuple):
    """What a ticket stands for."""

    principal: Principal
    ends: float
    renew: Callable[[], Principal]
    """Says who the one is now who asked for it."""


def _is_json_web_token(secret: str) -> bool:
    """Whether a secret is a token of an issuer's; those of the broker itself have no dots."""
    return secret.count(".") == 2


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names in a certificate: alternative names; the common name only without them (RFC 6125, 6.4.4)."""
    alternatives = [name for kind, name in certificate.get("subjectAltName", ()) if kind in ("DNS", "URI", "email")]
    if alternatives:
        yield from alternatives
        return
    for part in certificate.get("subject", ()):
        yield from (value for kind, value in part if kind == "commonName")
