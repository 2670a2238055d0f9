"""How is more matched than one process can match?

On Spark, with the same language, the same compiled subscriptions and the same answers. `match` pairs a DataFrame of
events with a DataFrame of subscriptions; `compiled` keeps the subscriptions ready and says which rows are none;
`match_stream` matches a stream, exactly once, while subscriptions come and go (`SubscriptionLog`); `top_k` ranks the
events of a table or a stream; `session` starts a small quiet Spark where there is none.
"""

from importlib.util import find_spec

from tamis.spark.errors import (
    ColumnError,
    JavaError,
    OptionError,
    RejectedSubscriptionsError,
    RejectedSubscriptionsWarning,
    SparkError,
    SparkMissingError,
)

if find_spec("pyspark") is None:
    raise SparkMissingError("PySpark is not installed; install it with tamis: pip install 'tamis[spark]'")

from tamis.spark.batch import match, matching
from tamis.spark.exposition import MetricsPage
from tamis.spark.session import running, session
from tamis.spark.sink import commits, read_matches
from tamis.spark.statistics import statistics
from tamis.spark.streaming import MatchStream, match_stream
from tamis.spark.subscription_log import SubscriptionLog
from tamis.spark.subscriptions import Compiled, compiled
from tamis.spark.top_k import top_k

__all__ = [
    "ColumnError",
    "Compiled",
    "JavaError",
    "MatchStream",
    "MetricsPage",
    "OptionError",
    "RejectedSubscriptionsError",
    "RejectedSubscriptionsWarning",
    "SparkError",
    "SparkMissingError",
    "SubscriptionLog",
    "commits",
    "compiled",
    "match",
    "match_stream",
    "matching",
    "read_matches",
    "running",
    "session",
    "statistics",
    "top_k",
]
