"""What can go wrong between a caller and the relations."""

from __future__ import annotations

from typing import Any

from tamis.errors import TamisError


class NotAFilterError(TamisError, TypeError):
    """Something that is neither a text nor a condition."""

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"a filter must be a text or a condition such as tamis.parse returns, not {self.found!r}"


class NoFiltersError(TamisError, ValueError):
    """A merger of no filters: what would it match?"""

    def __str__(self) -> str:
        return "there is nothing to merge; give at least one filter"


class DuplicateKeyError(TamisError, ValueError):
    """A filter under a key that is taken."""

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"there is a filter {self.key!r} already; remove it first, or choose another key"


class UnknownKeyError(TamisError, KeyError):
    """A key under which there is no filter."""

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"there is no filter {self.key!r}"
