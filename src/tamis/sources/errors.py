"""What can be wrong with a place that events come from or matches go to?"""

from __future__ import annotations

from tamis.errors import TamisError


class OptionError(TamisError, ValueError):
    """An option with a value that means nothing."""


class ColumnError(TamisError, ValueError):
    """A table that lacks a column, has one of the wrong type, or two that would have one name."""


class ConnectorError(TamisError):
    """A source or a sink that cannot be reached, or does not do what it was asked for; one line that says which."""


class TableError(ConnectorError, ValueError):
    """A file that cannot be read as the table it should hold."""


class NatsError(ConnectorError):
    """NATS does not answer, or says no."""


class LostMessagesError(NatsError):
    """Messages that a query was to read are no longer in their stream."""


class WebhookError(ConnectorError):
    """A webhook that did not take what was sent to it."""

    def __init__(self, url: str, status: int | None, told: str) -> None:
        super().__init__(url, status, told)
        self.url, self.status, self.told = url, status, told

    def __str__(self) -> str:
        answer = f"answered {self.status}" if self.status is not None else "does not answer"
        return f"{self.url} {answer}: {self.told}"
