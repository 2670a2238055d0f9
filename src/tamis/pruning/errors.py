"""What can go wrong between a caller and pruning."""

from __future__ import annotations

from typing import Any

from tamis.errors import TamisError


class UnknownMeasureError(TamisError, ValueError):
    """A name that no measure has."""

    def __init__(self, name: Any, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name, self.known = name, known

    def __str__(self) -> str:
        return f"there is no measure {self.name!r}, only {', '.join(self.known)}"


class GoalError(TamisError, ValueError):
    """A goal that says nothing, or cannot be reached by pruning."""

    def __init__(self, goal: str, found: Any, allowed: str) -> None:
        super().__init__(goal, found, allowed)
        self.goal, self.found, self.allowed = goal, found, allowed

    def __str__(self) -> str:
        return f"{self.goal} must be {self.allowed}, not {self.found!r}"


class DuplicateEntryError(TamisError, ValueError):
    """An entry under a key that is taken."""

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"there is an entry {self.key!r} already; remove it first, or choose another key"


class UnknownEntryError(TamisError, KeyError):
    """A key under which there is no entry."""

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"there is no entry {self.key!r}"
