"""Where is the broker, and how is it reached? Its address, and the TLS context for it.

An address is `http://`, `https://`, `ws://` or `wss://`, or `host:port` alone; all of them mean the same broker, which
speaks HTTP and WebSocket at one port.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from tamis.service import wire
from tamis.service.errors import SettingsError

DEFAULT_PORT = 7410
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"

_IS_SECURE = {"http": False, "ws": False, "https": True, "wss": True}

Certificate = str | Path | tuple[str | Path, str | Path]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A broker's address.

    >>> endpoint = Endpoint.read("wss://broker.example/")
    >>> endpoint.http, endpoint.web_socket
    ('https://broker.example:7410', 'wss://broker.example:7410/ws')
    >>> Endpoint.read("localhost:8000").http
    'http://localhost:8000'
    """

    host: str
    port: int
    is_secure: bool
    path: str = ""

    @classmethod
    def read(cls, url: str) -> Endpoint:
        """Return the endpoint that an address names, or raise what is wrong with it."""
        split = urlsplit(url if "://" in url else f"http://{url}")
        expected = f"one such as {DEFAULT_URL} or wss://broker.example:{DEFAULT_PORT}"
        try:
            port = split.port
        except ValueError:
            raise SettingsError(f"{url!r:.100} has an invalid port", expected) from None
        if split.scheme not in _IS_SECURE or not split.hostname or split.query or split.fragment:
            raise SettingsError(f"{url!r:.100} is not the address of a broker", expected)
        if split.username is not None:
            raise SettingsError("an address holds no name and password", "a token: token=…")
        host = f"[{split.hostname}]" if ":" in split.hostname else split.hostname
        return cls(host, port or DEFAULT_PORT, _IS_SECURE[split.scheme], split.path.rstrip("/"))

    @property
    def http(self) -> str:
        """The address for requests."""
        return f"http{'s' * self.is_secure}://{self.host}:{self.port}{self.path}"

    @property
    def web_socket(self) -> str:
        """The address for conversations."""
        return f"ws{'s' * self.is_secure}://{self.host}:{self.port}{self.path}{wire.PATH}"


def subscriber_path(name: str) -> str:
    """Return the path of a subscriber, whatever its name has in it.

    >>> subscriber_path("ann/phone")
    '/subscribers/ann%2Fphone'
    """
    return f"/subscribers/{quote(name, safe='')}"


def tls_context(ca: str | Path | None, certificate: Certificate | None) -> ssl.SSLContext:
    """Return how the broker is to prove who it is, and how we prove who we are.

    `ca` is a file of certificates to trust instead of the system's. `certificate` is ours: one file with certificate
    and key, or two.
    """
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
        if certificate is not None:
            chain, key = certificate if isinstance(certificate, tuple) else (certificate, None)
            context.load_cert_chain(str(chain), None if key is None else str(key))
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(str(part) for part in (ca, certificate) if part is not None)
        raise SettingsError(f"the certificates cannot be read ({named}): {error}", "PEM files") from None
    return context
