"""How is a connection encrypted, and how is its certificate renewed while it runs? TLS contexts.

A listener keeps the context that it was started with for ever. So that one only decides, at each handshake, which
context counts: the newest that was loaded. A reload makes a new one and exchanges it; open connections keep theirs.
That also takes authorities of clients away, which loading files into a living context cannot: there they only add up.

Sessions are not resumed: a resumed session would show the certificate of a client that was verified by the authorities
of before. That costs a handshake, about a millisecond, for each new connection.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from tamis.service.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.service.settings import Tls


class TlsDoor:
    """The encryption of a listener: `context` is for the server, `reload_doors` changes certificates."""

    def __init__(self, tls: Tls) -> None:
        self._current = _loaded(tls)
        self._verifies = self._current.verify_mode
        self.context = _loaded(tls)
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Choose the context of a handshake; called with a name or without."""
        connection.context = self._current

    def loaded(self, tls: Tls) -> ssl.SSLContext:
        """Return a context with other certificates, for `use`; a `SettingsError` says what cannot be used.

        Whether clients are asked for certificates at all cannot change below a listener.
        """
        context = _loaded(tls)
        if context.verify_mode != self._verifies:
            raise SettingsError(
                "listeners.tls: whether clients show certificates changes at a start only",
                "the same client_ca and clients",
            )
        return context

    def use(self, context: ssl.SSLContext) -> None:
        """Use another context for connections that begin from now on."""
        self._current = context


def reload_doors(doors: Iterable[tuple[TlsDoor, Tls]]) -> None:
    """Use other certificates at several doors: at all of them, or at none if a `SettingsError` is raised."""
    loaded = [(door, door.loaded(tls)) for door, tls in doors]
    for door, context in loaded:
        door.use(context)


def _loaded(tls: Tls) -> ssl.SSLContext:
    """Return a context for servers with these certificates: TLS 1.2 or later, 1.3 if clients show certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # In TLS 1.2 a server resumes sessions from its own memory, which Python cannot switch off.
    context.minimum_version = ssl.TLSVersion.TLSv1_2 if tls.client_ca is None else ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.num_tickets = 0
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"listeners.tls: {tls.certificate} and {tls.key} cannot be used: {_reason(error)}",
            "a certificate and its private key, in PEM",
        ) from error
    if tls.client_ca is not None:
        try:
            context.load_verify_locations(tls.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"listeners.tls: client_ca {tls.client_ca} cannot be used: {_reason(error)}", "certificates in PEM"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED if tls.clients == "required" else ssl.CERT_OPTIONAL
    return context


def _reason(error: OSError) -> str:
    return (error.reason if isinstance(error, ssl.SSLError) else error.strerror) or str(error)
