"""What can go wrong between a caller and ranked subscriptions."""

from __future__ import annotations

from tamis.errors import LanguageError, TamisError


class WindowError(LanguageError):
    """A window that is none: empty, endless, or of an unknown unit."""


class RankedFormError(LanguageError):
    """A JSON document, or arguments, that make no ranked subscription."""


class UnknownFilterError(TamisError, ValueError):
    """A recent-buffer filter that does not exist, or does not go with the algorithm."""

    def __init__(self, name: str, algorithm: str, known: tuple[str, ...]) -> None:
        super().__init__(name, algorithm, known)
        self.name, self.algorithm, self.known = name, algorithm, known

    def __str__(self) -> str:
        if self.known:
            return f"there is no filter {self.name!r} for {self.algorithm!r}, only {', '.join(self.known)}"
        return f"the algorithm {self.algorithm!r} takes no filter; filters stand before 'strict' and 'relaxed'"


class SettingError(TamisError, ValueError):
    """A setting of a processor outside of what it can be."""


class UnusedSettingError(SettingError):
    """A setting of a processor that means nothing to its algorithm."""

    def __init__(self, name: str, algorithm: str, filter: str | None, meant_for: str) -> None:
        super().__init__(name, algorithm, filter, meant_for)
        self.name, self.algorithm, self.filter, self.meant_for = name, algorithm, filter, meant_for

    def __str__(self) -> str:
        behind = "" if self.filter is None else f" behind the filter {self.filter!r}"
        return f"{self.name} means nothing to the algorithm {self.algorithm!r}{behind}; it is for {self.meant_for}"


class LateEventError(TamisError, ValueError):
    """An event, or a moment, before what has been settled already."""

    def __init__(self, now: float, settled: float, lateness: float) -> None:
        super().__init__(now, settled, lateness)
        self.now, self.settled, self.lateness = now, settled, lateness

    def __str__(self) -> str:
        return (
            f"time {self.now} has passed: everything before {self.settled} is settled (lateness={self.lateness}); "
            "a larger lateness waits longer for what comes late"
        )


class BufferSizeError(TamisError, ValueError):
    """A recent buffer so long that filters before it would lose events."""

    def __init__(self, buffer: float, window: float) -> None:
        super().__init__(buffer, window)
        self.buffer, self.window = buffer, window

    def __str__(self) -> str:
        return (
            f"a recent buffer of {self.buffer:g} is too long for a window of {self.window:g}: what it holds back "
            "could be due before it is let go. It may be half as long as the window"
        )
