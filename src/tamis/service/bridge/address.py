"""Where is a broker that tables are read from or written to, and who asks?

An address is `tamis://host:7410`, or `tamis+tls://host:7410` for TLS; as an option, what a client takes is taken, too
(`https://host`). The token is an option or the variable `TAMIS_TOKEN`, and is shown to nobody.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tamis.service.client.endpoints import Certificate, Endpoint
from tamis.service.errors import SettingsError
from tamis.sources.addresses import without_secrets
from tamis.sources.errors import OptionError
from tamis.sources.schemes.table import BROKER

if TYPE_CHECKING:
    from tamis.sources.options import Options

TOKEN = "TAMIS_TOKEN"
_MEANT = {"tamis": "http", "tamis+tls": "https"}


@dataclass(frozen=True)
class BrokerAddress:
    """A broker, and as whom it is asked."""

    url: str
    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    @property
    def own_certificate(self) -> Certificate | None:
        """Our certificate with its key, if we show one."""
        if self.certificate is None:
            return None
        return self.certificate if self.key is None else (self.certificate, self.key)

    def __str__(self) -> str:
        return self.url


def broker_url(written: str | None) -> str:
    """Return the URL of a broker for its clients.

    >>> broker_url("tamis://north"), broker_url("tamis+tls://north:443/shop"), broker_url("https://north")
    ('http://north:7410', 'https://north:443/shop', 'https://north:7410')
    >>> broker_url("nats://north")
    Traceback (most recent call last):
        ...
    tamis.sources.errors.OptionError: nats://north is not the address of a broker: tamis://host:7410
    """
    if not written:
        raise OptionError(f"no broker was named; give its url: {BROKER.form}")
    scheme, separator, rest = written.partition("://")
    meant = _MEANT.get(scheme.lower(), scheme)
    try:
        return Endpoint.read(f"{meant}://{rest}" if separator else written).http
    except SettingsError as error:
        if "password" in error.detail:
            raise OptionError(f"{without_secrets(written)}: {error.detail}; expected the option token") from None
        raise OptionError(f"{without_secrets(written)} is not the address of a broker: {BROKER.form}") from None


def asked_address(options: Options) -> BrokerAddress:
    """Return the broker that options name."""
    certificate, key = options.text("certificate"), options.text("key")
    if key is not None and certificate is None:
        raise OptionError("the option key is for the certificate that belongs to it; give the option certificate")
    return BrokerAddress(
        broker_url(options.text("url") or options.text("path")),
        options.text("token") or os.environ.get(TOKEN) or None,
        options.text("ca"),
        certificate,
        key,
    )
