"""How is an address written? The scheme of a URL, and the secrets in it."""

from __future__ import annotations

import re


def scheme_of(place: str) -> str:
    """Return what stands before `://`, or nothing: then it is a path.

    >>> scheme_of("NATS://localhost/EVENTS"), scheme_of("events.parquet")
    ('nats', '')
    """
    scheme, separator, _ = place.partition("://")
    return scheme.lower() if separator else ""


def without_secrets(url: str) -> str:
    """Return a URL without the name and the password in it.

    >>> without_secrets("https://anna:secret@example.org/hook?token=1")
    'https://example.org/hook'
    """
    return re.sub(r"^([\w+.-]+://)[^/]*@", r"\1", url).partition("?")[0]
