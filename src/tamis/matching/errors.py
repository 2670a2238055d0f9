"""What can go wrong between a caller and a matcher."""

from __future__ import annotations

from typing import Any

from tamis.errors import TamisError


class DuplicateIdError(TamisError, ValueError):
    """A subscription under an id that is taken."""

    def __init__(self, subscription_id: Any) -> None:
        super().__init__(subscription_id)
        self.subscription_id = subscription_id

    def __str__(self) -> str:
        return f"there is a subscription {self.subscription_id!r} already; replace it, or choose another id"


class UnknownIdError(TamisError, KeyError):
    """An id under which there is no subscription."""

    def __init__(self, subscription_id: Any) -> None:
        super().__init__(subscription_id)
        self.subscription_id = subscription_id

    def __str__(self) -> str:
        return f"there is no subscription {self.subscription_id!r}"


class UnknownAlgorithmError(TamisError, ValueError):
    """A name that no algorithm has."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name, self.known = name, known

    def __str__(self) -> str:
        return f"there is no algorithm {self.name!r}, only {', '.join(self.known)}"


class UnsupportedExpressionError(TamisError, ValueError):
    """An expression that an algorithm cannot take."""

    def __init__(self, algorithm: str, reason: str) -> None:
        super().__init__(algorithm, reason)
        self.algorithm, self.reason = algorithm, reason

    def __str__(self) -> str:
        return f"the algorithm {self.algorithm!r} cannot take this expression: {self.reason}"


class BadTableError(TamisError, ValueError):
    """A table of subscriptions that lacks a column, or has one of the wrong type."""


class LifetimeError(TamisError, ValueError):
    """An end of a subscription's life that is no time, or that has passed."""

    def __init__(self, until: Any, now: float | None = None) -> None:
        super().__init__(until, now)
        self.until, self.now = until, now

    def __str__(self) -> str:
        if self.now is None:
            return f"until is a finite number of seconds, or None for no end, not {self.until!r}"
        return f"until={self.until!r} has passed: it is {self.now!r}; expected a later time, or None for no end"


class MatcherOptionError(TamisError, ValueError):
    """An option that does not exist, or not with this value."""


class SavedMatcherError(TamisError, ValueError):
    """A file that is not a saved matcher of this version, or not all of one."""


class WatchError(TamisError, ValueError):
    """A matcher is to look at one of so many events, which are no number."""

    def __init__(self, every: Any) -> None:
        super().__init__(every)
        self.every = every

    def __str__(self) -> str:
        return f"a matcher samples one of {self.every!r} events; expected a whole number of at least 1"
