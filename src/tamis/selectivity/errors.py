"""What callers can get wrong about selectivity."""

from __future__ import annotations

from typing import Any

from tamis.errors import TamisError


class HalfLifeError(TamisError):
    """A number of events after which one counts half is none."""

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"a half-life of {self.found!r}; expected a number of events, more than 0"
