"""Is a token what its issuer has signed? Verification (RFC 7515, with the precautions of RFC 8725).

A token says by itself which issuer, key and algorithm it has. The issuer must be one of the settings; the algorithm
one that they pin for it; the key one of the issuer's, of the kind that the algorithm needs. Verifying takes about
100 µs, so a token that was good is remembered until it ends, or until the keys or the settings are others.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import re
import time
from binascii import Error as NotBase64
from typing import TYPE_CHECKING, Any, NamedTuple

import jwt
import msgspec
from jwt.utils import base64url_decode

from tamis.service.errors import ServiceError, UnauthenticatedError
from tamis.service.issuers.claims import TokenOwner, identity
from tamis.service.issuers.fetching import KeySource
from tamis.service.tokens import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tamis.service.settings import Issuer, Settings

LONGEST = 8_192
REMEMBERED = 10_000
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_KINDS = frozenset({"JWT", "AT+JWT", "APPLICATION/AT+JWT"})
"""What a token may be by its header, if that says so: no logout token, no proof of possession."""


class _Header(NamedTuple):
    """What a token says of itself, before anything is verified."""

    issuer: str
    algorithm: str
    kid: str | None


def looks_like_one(secret: str) -> bool:
    """Whether a secret has the form of a JSON Web Token.

    >>> looks_like_one("eyJhbGciOiJFUzI1NiJ9.e30.AA"), looks_like_one("tamis_x")
    (True, False)
    """
    return len(secret) <= LONGEST and _FORM.fullmatch(secret) is not None


class Issuers:
    """Everybody whose tokens count. `started` makes one, when all files of keys are read and addresses were asked."""

    def __init__(
        self, settings: Settings, previous: Issuers | None = None, now: Callable[[], float] = time.time
    ) -> None:
        """`previous` are those before a reload: keys of an issuer that is the same go on to count."""
        old: dict[Issuer, KeySource] = {}
        if previous is not None:
            old = {source.issuer: source for source in previous._sources.values()}
        self._sources: dict[str, KeySource] = {
            issuer.issuer: old.get(issuer) or KeySource(name, issuer) for name, issuer in settings.issuers.items()
        }
        self._roles = tuple(settings.roles)
        self._now = now
        self._remembered: dict[str, TokenOwner] = {}
        self._editions = self._keys_editions()
        self._ends: list[int] = []
        self._ends_waiting: set[int] = set()
        self._ended = 0

    @classmethod
    async def started(cls, settings: Settings, previous: Issuers | None = None) -> Issuers:
        """Return the issuers of some settings, when their keys are there or could not be fetched.

        A `SettingsError` says which file cannot be read. An issuer that does not answer is asked again later.
        """
        issuers = cls(settings, previous)
        await asyncio.gather(*(issuers._start(source) for source in issuers._sources.values()))
        return issuers

    async def _start(self, source: KeySource) -> None:
        try:
            await source.fetch()
        except ServiceError:
            if not source.is_address:
                raise

    async def refresh(self) -> None:
        """Fetch keys again that are old."""
        await asyncio.gather(*(source.refresh() for source in self._sources.values()))

    async def prepare(self, secret: str) -> None:
        """Have the keys that a token needs, if its issuer has them; to be called before `identity_of`."""
        if not looks_like_one(secret) or digest_of(secret) in self._remembered:
            return
        try:
            said = _said(secret)
        except UnauthenticatedError:
            return
        source = self._sources.get(said.issuer)
        if source is not None and said.algorithm in source.issuer.algorithms:
            await source.ensure(said.kid)

    def identity_of(self, secret: str) -> TokenOwner:
        """Return whom a token stands for; raise an `UnauthenticatedError`, or an `IssuerError` if there are no keys."""
        now = self._now()
        if (editions := self._keys_editions()) != self._editions:
            self._editions = editions
            self._remembered.clear()
        digest = digest_of(secret)
        known = self._remembered.get(digest)
        if known is not None and now < known.ends:
            return known
        verified = self._verified(secret, now)
        if len(self._remembered) >= REMEMBERED:
            self._remembered.pop(next(iter(self._remembered)))  # the oldest; it can be verified again
        self._remembered[digest] = verified
        second = math.ceil(verified.ends)
        if second not in self._ends_waiting:
            self._ends_waiting.add(second)
            heapq.heappush(self._ends, second)
        return verified

    def edition(self, now: float) -> tuple[object, ...]:
        """What is another one when a token may count no longer: keys have changed, or one has ended."""
        while self._ends and self._ends[0] <= now:
            self._ends_waiting.discard(heapq.heappop(self._ends))
            self._ended += 1
        return self._ended, self._keys_editions()

    def _keys_editions(self) -> tuple[int, ...]:
        return tuple(source.edition for source in self._sources.values())

    def _verified(self, secret: str, now: float) -> TokenOwner:
        said = _said(secret)
        source = self._sources.get(said.issuer)
        if source is None:
            raise UnauthenticatedError("the token is of an issuer that the settings do not name", "another token")
        pinned = source.issuer.algorithms
        if said.algorithm not in pinned:
            raise UnauthenticatedError(
                f"the token is signed by {said.algorithm!r:.20}", f"{' or '.join(pinned)}, as the settings say"
            )
        keys = source.usable()
        if not keys.knows(said.kid):
            raise UnauthenticatedError(f"the issuer has no key {said.kid!r:.80}", "a token that it has signed lately")
        for key in keys.candidates(said.algorithm, said.kid):
            payload = _payload(secret, said.algorithm, key.key)
            if payload is not None:
                return identity(_object(payload), source.issuer, self._roles, now)
        raise UnauthenticatedError("the signature of the token is wrong", "a token that its issuer has signed")


def _said(secret: str) -> _Header:
    if not looks_like_one(secret):
        raise UnauthenticatedError("the token cannot be read", "a JSON Web Token")
    header, payload = (_object(_bytes(part)) for part in secret.split(".")[:2])
    algorithm, kid, issuer = header.get("alg"), header.get("kid"), payload.get("iss")
    kind = header.get("typ", "JWT")
    if not isinstance(algorithm, str) or not isinstance(issuer, str) or not isinstance(kid, str | None):
        raise UnauthenticatedError("the token cannot be read", "a header with alg and kid, and a claim iss")
    if "crit" in header or not isinstance(kind, str) or kind.upper() not in _KINDS:
        raise UnauthenticatedError("the token is for something else", "an access token, without the header crit")
    return _Header(issuer, algorithm, kid)


def _payload(secret: str, algorithm: str, key: Any) -> bytes | None:
    """Return what is signed; None if it is not, with this key."""
    try:
        payload: bytes = jwt.PyJWS(algorithms=[algorithm]).decode(secret, key, algorithms=[algorithm])
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return payload


def _bytes(part: str) -> bytes:
    try:
        return base64url_decode(part)
    except (NotBase64, ValueError):
        raise UnauthenticatedError("the token cannot be read", "three parts in base64url") from None


def _object(document: bytes) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(document, type=dict[str, Any])
    except (ValueError, RecursionError):
        raise UnauthenticatedError("the token cannot be read", "JSON objects") from None
