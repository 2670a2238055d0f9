"""Where do the keys of an issuer come from, and when are they fetched again? A cache of key sets.

From a file, an address, or, if the settings name neither, by OpenID Connect Discovery: `issuer` +
`/.well-known/openid-configuration` says where they are. They are fetched again when they are old, when a token names a
key that is not among them (the issuer may have changed its keys), and at a reload; never twice within the pause of the
settings, or whoever shows tokens with invented names of keys could make the broker ask the issuer all day.

An issuer that does not answer changes nothing: the keys that are there go on to count. Only where there are none yet,
its tokens cannot be verified, and those who show them are asked to come back (503).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from tamis.service.errors import IssuerError, ServiceError, SettingsError
from tamis.service.issuers.keys import KeySet
from tamis.service.settings.checking import is_private

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.service.settings import Issuer

DOCUMENT_BYTES = 1 << 20
DISCOVERY = "/.well-known/openid-configuration"
_LOGGER = logging.getLogger("tamis.service.issuers")


class KeySource:
    """The keys of one issuer, as they are now."""

    def __init__(self, name: str, issuer: Issuer, now: Callable[[], float] = time.monotonic) -> None:
        self.name, self.issuer = name, issuer
        self.keys: KeySet | None = None
        self.edition = 0
        """A number that is another one when the keys are others."""
        self.is_address = not issuer.keys or "://" in issuer.keys
        self._now = now
        self._fetched_s = self._asked_s = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._failure = ""

    async def ensure(self, kid: str | None) -> None:
        """Have the key of this name, if there is one: fetch the keys again if they have none, and nobody just did."""
        if (self.keys is None or not self.keys.knows(kid)) and self._may_ask:
            with suppress(ServiceError):
                await self.fetch()

    async def refresh(self) -> None:
        """Fetch the keys again if they are old, or if there are none yet."""
        age = self._now() - self._fetched_s
        if self.is_address and (self.keys is None or age >= float(self.issuer.refresh)) and self._may_ask:
            with suppress(ServiceError):
                await self.fetch()

    @property
    def _may_ask(self) -> bool:
        """Those who come while the keys are being fetched wait for the same answer."""
        return self._fetching is not None or self._now() - self._asked_s >= float(self.issuer.pause)

    def usable(self) -> KeySet:
        """Return the keys; raise an `IssuerError` if there are none yet."""
        if self.keys is None:
            wait_s = max(0.1, self._asked_s + float(self.issuer.pause) - self._now())
            raise IssuerError(
                f"the keys of the issuer {self.name} are not there: {self._failure or 'nobody has asked yet'}",
                "an issuer that answers",
                min(wait_s, float(self.issuer.pause)),
            )
        return self.keys

    async def fetch(self) -> None:
        """Fetch the keys, once for all who ask at a time; raise a `ServiceError` if that fails."""
        if self._fetching is None:
            self._asked_s = self._now()
            self._fetching = asyncio.create_task(self._fetch())
            self._fetching.add_done_callback(self._fetched)
        await asyncio.shield(self._fetching)

    def _fetched(self, task: asyncio.Task[None]) -> None:
        self._fetching = None
        if not task.cancelled():
            task.exception()  # is raised where somebody waits for it, if anybody does

    async def _fetch(self) -> None:
        try:
            document, source = await self._document()
            keys = KeySet.read(document, source, is_public=self.is_address)
        except ServiceError as error:
            if str(error) != self._failure:
                _LOGGER.warning("issuers.%s: %s", self.name, error)
            self._failure = str(error)
            raise
        self._failure, self._fetched_s = "", self._now()
        if keys != self.keys:
            self.keys = keys
            self.edition += 1

    async def _document(self) -> tuple[bytes, str]:
        if not self.is_address:
            return await asyncio.to_thread(_read, self.name, Path(self.issuer.keys)), self.issuer.keys
        url = self.issuer.keys
        timeout = aiohttp.ClientTimeout(total=float(self.issuer.timeout))
        tls: Any = True if self.issuer.ca is None else await asyncio.to_thread(_trusting, self.name, self.issuer.ca)
        async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(ssl=tls)) as session:
            if not url:
                url = await self._discovered(session)
            return await _get(session, url), url

    async def _discovered(self, session: aiohttp.ClientSession) -> str:
        """Return where the keys are, as the issuer says. It must say the same name as the settings (Discovery, 4.3)."""
        place = self.issuer.issuer.rstrip("/") + DISCOVERY
        document = await _get(session, place)
        try:
            facts = msgspec.json.decode(document, type=dict[str, Any])
        except (ValueError, RecursionError):
            raise IssuerError(f"{place} is not a JSON object", "a configuration of OpenID Connect") from None
        if facts.get("issuer") != self.issuer.issuer:
            raise IssuerError(
                f"{place} is of the issuer {facts.get('issuer')!r:.200}", f"exactly {self.issuer.issuer!r}"
            )
        url = facts.get("jwks_uri")
        if not isinstance(url, str) or not is_private(url):
            raise IssuerError(f"{place}: its jwks_uri {url!r:.200} cannot be used", "an address with https")
        return url


async def _get(session: aiohttp.ClientSession, url: str) -> bytes:
    """Return what an address answers; redirects are not followed, because they lead out of what the settings say."""
    try:
        async with session.get(url, allow_redirects=False, headers={"Accept": "application/json"}) as response:
            if response.status != 200:
                raise IssuerError(f"{url} answers with the status {response.status}", "200, and no redirect")
            body = bytearray()
            async for chunk in response.content.iter_chunked(65_536):
                body += chunk
                if len(body) > DOCUMENT_BYTES:
                    raise IssuerError(f"{url} answers with more than {DOCUMENT_BYTES} bytes", "a key set")
            return bytes(body)
    except TimeoutError:
        raise IssuerError(f"{url} does not answer in time", "an answer within issuers.NAME.timeout") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise IssuerError(f"{url} cannot be reached: {error!s:.200}", "an issuer that answers") from None


def _read(name: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(DOCUMENT_BYTES)
    except OSError as error:
        raise SettingsError(
            f"issuers.{name}.keys: {path} cannot be read: {error.strerror}", "a file with a key set (JWKS)"
        ) from None


def _trusting(name: str, ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"issuers.{name}.ca: {ca} cannot be used: {error.strerror or error}", "certificates in PEM"
        ) from None
