"""Where do events come from, and where do matches go?

From and to whatever Spark reads and writes, and beyond that: streams of NATS (`nats`), brokers of Tamis (`broker`),
webhooks (`webhook`) and folders of Parquet files that workers read as Arrow (`parquet_folder`), each a data source in
Python, for tables and streams. `register` makes them known to a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.sources.schemes import table
from tamis.spark import releases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Make the formats of all schemes known to a session; once is enough, and more often does no harm.

    A PySpark without what they are made of gets none of them, and says that it does not know them.
    """
    if not releases.has(releases.LIMITED_READERS):
        return
    for scheme in table.SCHEMES:
        for source in scheme.formats:
            kind: Any = source.resolved()
            spark.dataSource.register(kind)
