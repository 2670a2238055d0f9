"""What can be wrong with a place that events come from or matches go to?"""

from __future__ import annotations

from typing import Self

from tamis.errors import TamisError


class PlaceError(TamisError):
    """Anything that is wrong with a place; what a worker of Spark's says comes back as text, and is read again."""

    @classmethod
    def recovered(cls, text: str) -> Self:
        """Return the error that says this."""
        return cls(text)


class OptionError(PlaceError, ValueError):
    """An option with a value that means nothing."""


class ColumnError(PlaceError, ValueError):
    """A table that lacks a column, has one of the wrong type, or two that would have one name."""


class ConnectorError(PlaceError):
    """A source or a sink that cannot be reached, or does not do what it was asked for; one line that says which."""


class TableError(ConnectorError, ValueError):
    """A file that cannot be read as the table it should hold."""


class NatsError(ConnectorError):
    """NATS does not answer, or says no."""


class LostMessagesError(NatsError):
    """Messages that a query was to read are no longer in their stream."""


class BrokerError(ConnectorError):
    """A broker of Tamis does not answer, or says no."""


class LostEventsError(BrokerError):
    """Events that a query was to read are no longer in the log of their broker."""


class AnotherLogError(BrokerError):
    """The log of a broker is not the one that a checkpoint belongs to, or it ends before the checkpoint."""


_ANSWERED, _SILENT = "answered ", "does not answer"


class WebhookError(ConnectorError):
    """A webhook that did not take what was sent to it."""

    def __init__(self, url: str, status: int | None, told: str) -> None:
        super().__init__(url, status, told)
        self.url, self.status, self.told = url, status, told

    def __str__(self) -> str:
        answer = f"{_ANSWERED}{self.status}" if self.status is not None else _SILENT
        return f"{self.url} {answer}: {self.told}"

    @classmethod
    def recovered(cls, text: str) -> Self:
        """Return the error that says this.

        >>> str(WebhookError.recovered("http://host/a answered 500: gone: for good"))
        'http://host/a answered 500: gone: for good'
        >>> WebhookError.recovered("http://host/a answered 500: gone: for good").status
        500
        """
        url, _, answer = text.partition(" ")  # an address has no space in it
        said, _, explanation = answer.partition(": ")
        return cls(url, int(said.removeprefix(_ANSWERED)) if said != _SILENT else None, explanation)
