"""How does a person write how long and how much? Quantities: `"7d"`, `"0.2s"`, `"20GB"`.

A quantity is a number with its unit, and is kept in seconds or bytes: a `Duration` is a float, a `Size` an int, so
whoever computes with them need not know how they were written. A bare number is in seconds or bytes.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import msgspec

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
BYTES = {
    "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
DURATION_FORMS = "a duration such as 0.2s, 30s, 5m, 12h, 7d"
SIZE_FORMS = "a size such as 256kB, 64MB, 20GB"


class Duration(float):
    """A length of time, in seconds.

    >>> Duration.read("1.5h"), Duration.read(30), str(Duration(604_800))
    (5400.0, 30.0, '7d')
    """

    @classmethod
    def read(cls, written: object) -> Duration:
        """Return the duration that somebody wrote; a ValueError says what would be right."""
        if isinstance(written, int | float) and not isinstance(written, bool):
            return cls(_bounded(float(written), written, DURATION_FORMS))
        form = _DURATION.fullmatch(written.strip()) if isinstance(written, str) else None
        if form is None or form[2] not in SECONDS:
            raise ValueError(f"{written!r:.60} is not a duration; expected {DURATION_FORMS}")
        return cls(_bounded(float(form[1]) * SECONDS[form[2]], written, DURATION_FORMS))

    def __str__(self) -> str:
        """In the largest unit in which it is a whole number."""
        unit = next((name for name in ("d", "h", "m", "s") if self and self % SECONDS[name] == 0), "")
        return f"{int(self // SECONDS[unit])}{unit}" if unit else f"{float(self):g}s"


class Sync(Duration):
    """How long an event may be acknowledged before it is on disk: 0 is `always`, infinite is `never`.

    >>> Sync.read("always"), Sync.read("0.2s"), Sync.read("never")
    (0.0, 0.2, inf)
    """

    @classmethod
    def read(cls, written: object) -> Sync:
        """Return what somebody wrote; a ValueError says what would be right."""
        if written in ("always", "never"):
            return cls(0.0 if written == "always" else math.inf)
        try:
            return cls(Duration.read(written))
        except ValueError:
            raise ValueError(
                f"{written!r:.60} is not a setting of sync; expected always, never, or {DURATION_FORMS}"
            ) from None

    def __str__(self) -> str:
        return "never" if math.isinf(self) else super().__str__() if self else "always"


class Size(int):
    """An amount of memory or disk, in bytes.

    >>> Size.read("256kB"), Size.read("1GiB"), Size.read(17), str(Size(20_000_000_000))
    (256000, 1073741824, 17, '20GB')
    """

    @classmethod
    def read(cls, written: object) -> Size:
        """Return the size that somebody wrote; a ValueError says what would be right."""
        if isinstance(written, int | float) and not isinstance(written, bool):
            return cls(_bounded(float(written), written, SIZE_FORMS))
        form = _SIZE.fullmatch(written.strip()) if isinstance(written, str) else None
        if form is None or form[2] not in BYTES:
            raise ValueError(f"{written!r:.60} is not a size; expected {SIZE_FORMS}")
        return cls(_bounded(float(form[1]) * BYTES[form[2]], written, SIZE_FORMS))

    def __str__(self) -> str:
        """In the largest unit in which it is a whole number."""
        unit = next((name for name in ("TB", "GB", "MB", "kB") if self and self % BYTES[name] == 0), "")
        return f"{int(self // BYTES[unit])}{unit}" if unit else f"{int(self)}B"


class KeepLimits(msgspec.Struct, frozen=True):
    """How much of the log is kept: events younger than an age, so many bytes of the newest, or what fulfils both.

    >>> KeepLimits.read("7d"), KeepLimits.read(["7d", "20GB"])
    (KeepLimits(age_s=604800.0, size_bytes=None), KeepLimits(age_s=604800.0, size_bytes=20000000000))
    """

    age_s: float | None = None
    size_bytes: int | None = None

    @classmethod
    def read(cls, written: object) -> KeepLimits:
        """Return what somebody wrote, `"forever"` included; a ValueError says what would be right."""
        parts = [part.strip() for part in written.split(",")] if isinstance(written, str) else written
        if parts == ["forever"]:
            return cls()
        if not isinstance(parts, list) or not 1 <= len(parts) <= 2 or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"{written!r:.60} is not a setting of keep; expected {_KEEP_FORMS}")
        quantities: dict[Literal["age_s", "size_bytes"], Any] = {}
        for part in parts:
            unit = part.lstrip("0123456789. ")
            if unit in SECONDS:
                quantities["age_s"] = float(Duration.read(part))
            elif unit in BYTES:
                quantities["size_bytes"] = int(Size.read(part))
        if len(quantities) < len(parts):
            raise ValueError(f"{written!r:.60} is not a setting of keep; expected {_KEEP_FORMS}")
        return cls(**quantities)

    def __str__(self) -> str:
        parts = [] if self.age_s is None else [str(Duration(self.age_s))]
        return ", ".join(parts + ([] if self.size_bytes is None else [str(Size(self.size_bytes))])) or "forever"


_KEEP_FORMS = 'an age ("7d"), a size ("20GB"), both ("7d, 20GB"), or "forever"'
_LARGEST = 2.0**62


def _bounded(number: float, written: object, forms: str) -> float:
    if not 0 <= number <= _LARGEST:  # not a number is not between them either
        raise ValueError(f"{written!r:.60} is out of bounds; expected {forms}")
    return number
