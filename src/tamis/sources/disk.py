"""Which places lie on the disks of this machine?

A plain path does, and so does a `file:` address, which is read as Hadoop reads it: nothing in it is decoded. Any other
address is the business of whoever opens it, and never a folder here that is called like its scheme.
"""

from __future__ import annotations

import re
from pathlib import Path

from tamis.sources.errors import OptionError

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""Two letters at least: one is a drive. A name with a colon, such as `at 10:30.csv`, has no slash behind it."""


def on_disk(place: str) -> Path | None:
    """Return the path of what lies on this machine; None for an address of anything else.

    >>> str(on_disk("events/a.csv")), str(on_disk("file:///tmp/a.csv")), on_disk("hdfs://host/a.csv")
    ('events/a.csv', '/tmp/a.csv', None)
    """
    if place[:5].lower() == "file:":
        return file_path(place)
    return None if _ADDRESS.match(place) else Path(place)


def as_path(place: str) -> str:
    """Return a place on this machine as a plain path, and any other as it is.

    >>> as_path("file:/tmp/a.csv"), as_path("nats://host/EVENTS")
    ('/tmp/a.csv', 'nats://host/EVENTS')
    """
    path = on_disk(place)
    return place if path is None else str(path)


def file_path(address: str) -> Path:
    """Return the path of a `file:` address; raise if it names a host, or no whole path."""
    rest = address.partition(":")[2]
    if rest.startswith("//") and not rest.startswith("///"):
        host, _, _ = rest[2:].partition("/")
        raise OptionError(f"a file: address cannot name a host, as {address} does ({host!r}): file:///folder")
    if not rest.startswith("/"):
        raise OptionError(f"a file: address needs an absolute path, which {address} does not have: file:///folder")
    return Path("/" + rest.lstrip("/"))
