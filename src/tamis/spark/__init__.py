"""How is more matched than one process can match?

On Spark, with the same language, the same compiled subscriptions and the same answers. `match` pairs a DataFrame of
events with a DataFrame of subscriptions; `compiled` keeps the subscriptions ready and says which rows are none;
`session` starts a small quiet Spark where there is none.
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
from tamis.spark.compiling import Compiled, compiled
from tamis.spark.session import running, session

__all__ = [
    "ColumnError",
    "Compiled",
    "JavaError",
    "OptionError",
    "RejectedSubscriptionsError",
    "RejectedSubscriptionsWarning",
    "SparkError",
    "SparkMissingError",
    "compiled",
    "match",
    "matching",
    "running",
    "session",
]
