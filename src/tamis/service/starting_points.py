"""From where on? Starting points in the log: a duration ago, a time, a position, or the first event.

| text | meaning |
|---|---|
| `-10m`, `-1h`, `-2d`, `-90s` | so long ago |
| `2026-01-31T12:00:00Z` | a time (RFC 3339) |
| `k3f9-812` | an event by its position; the event itself is included |
| `first` | everything that there still is |
| `now` | nothing of the past |

>>> starting_point("-90s", "k3f9", now_us=100_000_000)
SinceTime(time_us=10000000)
>>> starting_point("k3f9-812", "k3f9", now_us=0)
Place(position=812)
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from tamis.service.errors import BadRequestError
from tamis.service.positions import read_position

_AGO = re.compile(r"-(\d{1,12}(?:\.\d{1,6})?)(s|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_START = datetime(1970, 1, 1, tzinfo=UTC)
FORMS = "-10m, -1h, a time such as 2026-01-31T12:00:00Z, a position, first, or now"


class SinceTime(NamedTuple):
    """The first event that was taken at or after a time, in microseconds since 1970."""

    time_us: int


class Place(NamedTuple):
    """The event at a position; 0 is for what comes next."""

    position: int


def rfc3339(time_us: int) -> str:
    """Return a time in microseconds since 1970 as it is written on the wire.

    >>> rfc3339(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    return (_START + timedelta(microseconds=time_us)).isoformat().replace("+00:00", "Z")


def starting_point(text: str, epoch: str, now_us: int) -> SinceTime | Place:
    """Return what a text says; raise `BadRequestError` if that is nothing, `GoneError` for another log's position."""
    if text == "first":
        return Place(1)
    if text in ("now", ""):
        return Place(0)
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return SinceTime(max(0, now_us - round(float(ago[1]) * _SECONDS[ago[2]] * 1_000_000)))
    if text.startswith(f"{epoch}-") or re.fullmatch(r"[a-z0-9]+-\d{1,19}(\.\d{1,19})?", text):
        return Place(max(1, read_position(text, epoch).event))
    try:
        moment = msgspec.convert(text, datetime)
        if moment.tzinfo is None:
            raise ValueError(text)
        return SinceTime(max(0, (moment - _START) // timedelta(microseconds=1)))
    except (msgspec.ValidationError, ValueError, OverflowError):
        raise BadRequestError(f"{text!r:.60} is not a place to begin", FORMS) from None
