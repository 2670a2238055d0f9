"""What can go wrong in a lab."""

from __future__ import annotations

from tamis.errors import TamisError


class LabError(TamisError):
    """An experiment that could not be done."""


class DisagreementError(LabError):
    """Two algorithms that found different matches: their times say nothing."""

    def __init__(self, one: str, other: str, event: int) -> None:
        super().__init__(one, other, event)
        self.one, self.other, self.event = one, other, event

    def __str__(self) -> str:
        return f"{self.one} and {self.other} find different subscriptions for event {self.event}; one of them is wrong"


class MissingPlotsError(LabError, ImportError):
    """The package that draws is not installed."""

    def __str__(self) -> str:
        return "a lab draws its results with matplotlib: pip install 'tamis[lab]'"
