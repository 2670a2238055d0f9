"""Who is at the other end of an encrypted link? Certificates both ways, with the broker's name in them.

An end shows a certificate, and takes one that rests on the authorities that it knows. Whose it is, is not a question of
the address: a broker may be called at any. Its name must stand in the certificate, as a DNS name (subjectAltName).
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

from tamis.service.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.service.settings import LinkTls


def calling_context(tls: LinkTls) -> ssl.SSLContext:
    """Return a context for calling: it shows a certificate, if there is one, and asks for one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the name of the broker is looked for instead
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(tls.ca)
        if tls.certificate is not None:
            context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"links.tls: {tls.ca}, {tls.certificate} and {tls.key} cannot be used: {error}",
            "authorities, a certificate and its private key, in PEM",
        ) from error
    return context


def is_named(certificate: Mapping[str, Any] | None, name: str) -> bool:
    """Does a certificate, as Python's `getpeercert` has it, name a broker?

    >>> is_named({"subjectAltName": (("DNS", "north"), ("DNS", "n.example"))}, "north")
    True
    >>> is_named({"subjectAltName": (("DNS", "*.example"),)}, "n.example"), is_named(None, "north")
    (False, False)
    """
    names = (certificate or {}).get("subjectAltName", ())
    return ("DNS", name) in names
