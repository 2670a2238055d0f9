"""How is more matched than one process can match?

On Spark, with the same language, the same compiled subscriptions and the same answers. `match` pairs a DataFrame of
events with a DataFrame of subscriptions; `compiled` keeps the subscriptions ready and says which rows are none;
`match_stream` matches a stream, exactly once, while subscriptions come and go (`SubscriptionLog`),
which may `follow` a table that changes; `match_history` asks the past by the rules of its day; `top_k` ranks the
events of a table or a stream; `notify` tells of sequences and changes in one; `pruned` generalises a table of
subscriptions, and `reduce` finds those that say nothing new; `tally` counts how often each matches, `explain` says why,
and `rejected` which rows are none; `session` starts a small quiet Spark where there is none; `register` adds NATS,
brokers, webhooks and folders of Parquet to what Spark reads and writes, and rules to what SQL can ask; `matches` is a
column of those that match, and `matching_step` a step of a declarative pipeline; `register_functions` lets Spark SQL
call functions of the host.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tamis.spark import releases
from tamis.spark.errors import (
    AnotherLogError,
    BrokerError,
    ChangesError,
    ColumnError,
    ConnectorError,
    FolderError,
    JavaError,
    KafkaError,
    LostEventsError,
    LostMessagesError,
    NatsError,
    OptionError,
    ParquetError,
    RejectedSubscriptionsError,
    RejectedSubscriptionsWarning,
    SparkError,
    SparkMissingError,
    SparkVersionError,
    StartError,
    WebhookError,
    WorkerError,
)

releases.require_release("tamis.spark", releases.LEAST)

if TYPE_CHECKING:
    from tamis.spark.batch import match, matching
    from tamis.spark.changes import read_rejected
    from tamis.spark.explaining import explain
    from tamis.spark.exposition import MetricsPage
    from tamis.spark.following import Followed, catch_up, follow
    from tamis.spark.history import match_history
    from tamis.spark.hosting import register_functions
    from tamis.spark.kafka import kafka_events, kafka_messages, kafka_packages
    from tamis.spark.pruning import pruned, pruning_order
    from tamis.spark.reducing import Reduction, reduce
    from tamis.spark.rejecting import rejected
    from tamis.spark.session import running, session
    from tamis.spark.sink import commits, read_matches
    from tamis.spark.sources.broker_events import broker_events
    from tamis.spark.sources.events import json_events
    from tamis.spark.sources.nats_events import nats_events
    from tamis.spark.sql import matches, register
    from tamis.spark.standing import notify
    from tamis.spark.statistics import load_statistics, save_statistics, statistics
    from tamis.spark.steps import matching_step
    from tamis.spark.streaming import MatchStream, match_stream
    from tamis.spark.subscription_log import SubscriptionLog
    from tamis.spark.subscriptions import Compiled, compiled
    from tamis.spark.tallying import tally
    from tamis.spark.top_k import top_k

__all__ = [
    "AnotherLogError",
    "BrokerError",
    "ChangesError",
    "ColumnError",
    "Compiled",
    "ConnectorError",
    "FolderError",
    "Followed",
    "JavaError",
    "KafkaError",
    "LostEventsError",
    "LostMessagesError",
    "MatchStream",
    "MetricsPage",
    "NatsError",
    "OptionError",
    "ParquetError",
    "Reduction",
    "RejectedSubscriptionsError",
    "RejectedSubscriptionsWarning",
    "SparkError",
    "SparkMissingError",
    "SparkVersionError",
    "StartError",
    "SubscriptionLog",
    "WebhookError",
    "WorkerError",
    "broker_events",
    "catch_up",
    "commits",
    "compiled",
    "explain",
    "follow",
    "json_events",
    "kafka_events",
    "kafka_messages",
    "kafka_packages",
    "load_statistics",
    "match",
    "match_history",
    "match_stream",
    "matches",
    "matching",
    "matching_step",
    "nats_events",
    "notify",
    "pruned",
    "pruning_order",
    "read_matches",
    "read_rejected",
    "reduce",
    "register",
    "register_functions",
    "rejected",
    "running",
    "save_statistics",
    "session",
    "statistics",
    "tally",
    "top_k",
]

_HOMES = {
    "Compiled": "subscriptions",
    "Followed": "following",
    "MatchStream": "streaming",
    "MetricsPage": "exposition",
    "Reduction": "reducing",
    "SubscriptionLog": "subscription_log",
    "broker_events": "sources.broker_events",
    "catch_up": "following",
    "commits": "sink",
    "compiled": "subscriptions",
    "explain": "explaining",
    "follow": "following",
    "json_events": "sources.events",
    "kafka_events": "kafka",
    "kafka_messages": "kafka",
    "kafka_packages": "kafka",
    "load_statistics": "statistics",
    "match": "batch",
    "match_history": "history",
    "match_stream": "streaming",
    "matches": "sql",
    "matching": "batch",
    "matching_step": "steps",
    "nats_events": "sources.nats_events",
    "notify": "standing",
    "pruned": "pruning",
    "pruning_order": "pruning",
    "read_matches": "sink",
    "read_rejected": "changes",
    "reduce": "reducing",
    "register": "sql",
    "register_functions": "hosting",
    "rejected": "rejecting",
    "running": "session",
    "save_statistics": "statistics",
    "session": "session",
    "statistics": "statistics",
    "tally": "tallying",
    "top_k": "top_k",
}

_NEEDS = {
    "broker_events": releases.LIMITED_READERS,
    "matches": releases.ARROW_FUNCTIONS,
    "matching_step": releases.ARROW_FUNCTIONS,
    "nats_events": releases.LIMITED_READERS,
}
"""What needs a newer PySpark than the rest does."""


def __getattr__(name: str) -> Any:
    """Import a name when somebody asks for it.

    Spark plans every read and write of a Python data source in a new process, which would import the compiler of the
    kernels in vain, for a second or two.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _NEEDS:
        releases.require_release(f"tamis.spark.{name}", _NEEDS[name])
    attribute = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = attribute
    return attribute


class _Package(ModuleType):
    """A package in which a function may bear the name of its module: the function is what `tamis.spark` shows."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
