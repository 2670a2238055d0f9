"""What can keep the pipeline from running, and what helps?"""

from __future__ import annotations

from tamis.errors import TamisError
from tamis.sources.errors import (
    AnotherLogError,
    BrokerError,
    ColumnError,
    ConnectorError,
    LostEventsError,
    LostMessagesError,
    NatsError,
    OptionError,
    PlaceError,
    WebhookError,
)

__all__ = [
    "AnotherLogError",
    "BrokerError",
    "ColumnError",
    "ConnectorError",
    "JavaError",
    "KafkaError",
    "LostEventsError",
    "LostMessagesError",
    "NatsError",
    "OptionError",
    "ParquetError",
    "PlaceError",
    "RejectedSubscriptionsError",
    "RejectedSubscriptionsWarning",
    "SparkError",
    "SparkMissingError",
    "SparkVersionError",
    "StartError",
    "WebhookError",
    "WorkerError",
]


class SparkError(TamisError):
    """Anything that the Spark pipeline refuses to do, and why."""


class JavaError(SparkError):
    """Spark needs a Java that this machine does not have."""


class StartError(SparkError):
    """Spark's Java machine ended before it was there."""


class SparkMissingError(SparkError, ImportError):
    """PySpark is not installed."""


class SparkVersionError(SparkError, ImportError):
    """PySpark is too old for what is asked of it."""


class WorkerError(SparkError):
    """Workers are started with a Python that cannot run what they are sent."""


class FolderError(SparkError, OSError):
    """A folder that cannot be reached, read or written."""


class RejectedSubscriptionsError(SparkError, ValueError):
    """Subscriptions that are not subscriptions, where these were to be raised."""

    def __init__(self, count: int, total: int, first: str) -> None:
        super().__init__(count, total, first)
        self.count, self.total, self.first = count, total, first

    def __str__(self) -> str:
        return f"{self.count:,} of {self.total:,} subscriptions cannot be used; the first: {self.first}"


class RejectedSubscriptionsWarning(UserWarning):
    """Some subscriptions cannot be used and were left out."""


class ChangesError(ConnectorError):
    """A stream of changes of the subscriptions that has died, and the stream of matches with it."""


class KafkaError(ConnectorError):
    """Kafka does not answer, or Spark has no connector to it."""


class ParquetError(ConnectorError):
    """A file that cannot be read as the events it should hold."""
