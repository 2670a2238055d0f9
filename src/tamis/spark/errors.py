"""What can keep the pipeline from running, and what helps?"""

from __future__ import annotations

from tamis.errors import TamisError


class SparkError(TamisError):
    """Anything that the Spark pipeline refuses to do, and why."""


class JavaError(SparkError):
    """Spark needs a Java that this machine does not have."""


class StartError(SparkError):
    """Spark's Java machine ended before it was there."""


class SparkMissingError(SparkError, ImportError):
    """PySpark is not installed."""


class WorkerError(SparkError):
    """Workers are started with a Python that cannot run what they are sent."""


class ColumnError(SparkError, ValueError):
    """A DataFrame that lacks a column, has one of the wrong type, or two that would have one name."""


class OptionError(SparkError, ValueError):
    """An option with a value that means nothing."""


class FolderError(SparkError, OSError):
    """A folder that cannot be reached, read or written."""


class RejectedSubscriptionsError(SparkError, ValueError):
    """Subscriptions that are no subscriptions, where these were to be raised."""

    def __init__(self, count: int, total: int, first: str) -> None:
        super().__init__(count, total, first)
        self.count, self.total, self.first = count, total, first

    def __str__(self) -> str:
        return f"{self.count:,} of {self.total:,} subscriptions cannot be used; the first: {self.first}"


class RejectedSubscriptionsWarning(UserWarning):
    """Some subscriptions cannot be used and were left out."""


class ConnectorError(SparkError):
    """A source or a sink that cannot be reached, or does not do what it was asked for; one line that says which."""


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


class ChangesError(ConnectorError):
    """A stream of changes of the subscriptions that has died, and the stream of matches with it."""


class KafkaError(ConnectorError):
    """Kafka does not answer, or Spark has no connector to it."""


class ParquetError(ConnectorError):
    """A file that cannot be read as the events it should hold."""
