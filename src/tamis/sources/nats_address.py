"""Where is a stream of NATS?

One URL says it: `nats://host:port/STREAM?subject=auctions.>`. It may name several servers of a cluster, separated by
commas, and who asks; what is shown of it to people never has the password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from tamis.errors import did_you_mean
from tamis.sources.addresses import scheme_of, without_secrets
from tamis.sources.errors import OptionError
from tamis.sources.schemes.table import NATS

if TYPE_CHECKING:
    from tamis.sources.options import Options

_FORM = f"{NATS.form}, with ?subject=... if you like"
_PARAMETERS = ("subject", "credentials")


@dataclass(frozen=True)
class NatsAddress:
    """Servers, a stream, and which of its subjects."""

    servers: tuple[str, ...] = field(repr=False)
    stream: str
    subject: str | None = None
    credentials: str | None = None

    def __str__(self) -> str:
        return f"{', '.join(map(without_secrets, self.servers))}/{self.stream}"


def nats_address(
    url: str | None, stream: str | None = None, subject: str | None = None, credentials: str | None = None
) -> NatsAddress:
    """Read the address of a stream; what is said beside the URL counts more.

    >>> print(nats_address("nats://anna:secret@north,south:5222/EVENTS?subject=a.>"))
    nats://north:4222, nats://south:5222/EVENTS
    >>> nats_address("nats://localhost/EVENTS?subject=a.>").subject
    'a.>'
    """
    if not url:
        raise OptionError(f"no NATS server was named; give its url: {_FORM}")
    scheme, rest = scheme_of(url), url.partition("://")[2]
    if scheme not in NATS.prefixes:
        raise OptionError(f"{without_secrets(url)} is not a NATS address: {_FORM}")
    authority, _, path = rest.partition("/")
    authority, _, query = authority.partition("?") if "?" in authority else (authority, "", "")
    path, _, written = path.partition("?")
    given = dict(parse_qsl(written or query, keep_blank_values=True))
    for name in given:
        if name not in _PARAMETERS:
            raise OptionError(
                f"{name!r} is not a parameter of a NATS address. {did_you_mean(name, _PARAMETERS)}".strip()
            )
    stream = stream or unquote(path.strip("/"))
    if not stream:
        raise OptionError(f"{without_secrets(url)} names no stream: {_FORM}")
    if re.search(r"[\s.*>/\\]", stream):
        raise OptionError(f"{stream!r} is not the name of a stream: it has no spaces, dots, stars, slashes or '>'")
    login, _, hosts = authority.rpartition("@")
    servers = tuple(_server(scheme, login, host, url) for host in hosts.split(","))
    return NatsAddress(
        servers, stream, subject or given.get("subject") or None, credentials or given.get("credentials")
    )


def _server(scheme: str, login: str, host: str, url: str) -> str:
    server = f"{scheme}://{login}@{host}" if login else f"{scheme}://{host}"
    try:
        parts = urlsplit(server)
        if not parts.hostname:
            raise ValueError
        if parts.port is None and scheme in ("nats", "tls"):
            server += ":4222"
    except ValueError:
        raise OptionError(f"{without_secrets(url)} names no server: {_FORM}") from None
    return server


def asked_address(options: Options) -> NatsAddress:
    """Return the stream that options name."""
    return nats_address(
        options.text("url") or options.text("path"),
        options.text("stream"),
        options.text("subject"),
        options.text("credentials"),
    )
