"""How are the events of a Kafka topic matched?

Through Spark's own connector, as a table or as a stream. One URL says where they are:

    kafka://host:9092,host:9092/topic?maxOffsetsPerTrigger=10000&kafka.security.protocol=SASL_SSL

What stands behind the question mark goes to the connector as it is. Messages are JSON objects; their columns are said,
or seen from the first messages and kept beside the checkpoint. Offsets are in Spark's checkpoint, so a stream that was
killed goes on where its last committed batch ended. A stream starts with the oldest message, not with the next to
come as Spark's does: whoever subscribes to a topic expects to be told of what is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from tamis.sources.kafka_address import kafka_address
from tamis.spark.columns import column
from tamis.spark.errors import KafkaError
from tamis.spark.sources.event_columns import event_columns, events_in, nothing_seen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from tamis.sources.kafka_address import KafkaAddress
    from tamis.spark.folders import Place

COLUMNS = ("topic", "partition", "offset", "timestamp", "key")
"""What a message has beside its value; `keep` may name them."""
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_OF_STREAMS = ("startingOffsets", "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""Options that mean nothing, or something else, to a table."""
_PATIENCE_MS = 15_000
"""A broker that is not there is told after so long; Kafka itself would wait for minutes."""


def kafka_packages(spark_version: str | None = None) -> dict[str, str]:
    """Return the setting with which a session fetches the connector when it starts: `session(config=...)`.

    >>> kafka_packages("4.3.0")
    {'spark.jars.packages': 'org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0'}
    """
    import pyspark

    return {"spark.jars.packages": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version or pyspark.__version__}"}


def kafka_events(
    spark: SparkSession,
    url: str,
    *,
    schema: StructType | str | None = None,
    keep: str | Sequence[str] = (),
    streaming: bool = False,
    remembered: Place | None = None,
    options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Return the events of a topic, as a table of what is there, or as a stream.

    schema        their columns, such as "price double, title string"; seen from the first messages if nobody says
    keep          columns of the result; those that only messages have (`COLUMNS`) are added to the events
    remembered    where to keep the columns that were seen: a stream that goes on reads as it read before
    options       for the connector; what the address says counts more
    """
    address = kafka_address(url)
    require_connector(spark)
    settings = {
        "kafka.bootstrap.servers": address.brokers,
        "subscribe": address.topics,
        "startingOffsets": "earliest",
        "kafka.default.api.timeout.ms": str(_PATIENCE_MS),
        "kafka.request.timeout.ms": str(_PATIENCE_MS - 5_000),
        **{name: str(value) for name, value in (options or {}).items()},
        **address.options,
    }
    columns = event_columns(schema, remembered, lambda: _first_messages(spark, address, settings), body="value")
    reader: Any = spark.readStream if streaming else spark.read
    messages = reader.format("kafka").options(**settings).load().withColumn("key", column("key").cast("string"))
    return events_in(messages, columns, keep, COLUMNS, body="value")


def kafka_messages(frame: DataFrame, key: str | None = None) -> DataFrame:
    """Return rows as messages that `write.format("kafka")` takes: JSON objects, and one of their columns as the key."""
    value = functions.to_json(functions.struct(*map(column, frame.columns))).alias("value")
    return frame.select(*([] if key is None else [column(key).cast("string").alias("key")]), value)


def require_connector(spark: SparkSession) -> None:
    """Raise unless Spark has its connector to Kafka, and say how to get it."""
    java: Any = getattr(spark, "_jvm", None)
    if java is None:
        return  # behind Spark Connect, which says so itself
    try:
        java.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_PROVIDER)
    except Exception:
        package = kafka_packages()["spark.jars.packages"]
        raise KafkaError(
            f"this Spark has no connector to Kafka; start it with --packages {package}, "
            "or in Python with tamis.spark.session(config=tamis.spark.kafka_packages())"
        ) from None


def _first_messages(spark: SparkSession, address: KafkaAddress, settings: dict[str, str]) -> DataFrame:
    """Return the messages of a topic as a table; raise if nobody answers, or there are none."""
    of_tables = {name: value for name, value in settings.items() if name not in _OF_STREAMS}
    messages = spark.read.format("kafka").options(**of_tables, startingOffsets="earliest").load()
    try:
        is_empty = not messages.limit(1).count()
    except Exception as error:
        raise KafkaError(f"{address} cannot be read: {_reason(error)}") from None
    if is_empty:
        raise nothing_seen(address)
    return messages


def _reason(error: Exception) -> str:
    """Return the last cause in an error of Java's: what Kafka itself had to say."""
    lines = [line for line in str(error).splitlines() if line.startswith("Caused by: ") or "kafka" in line.lower()]
    return (lines[-1] if lines else str(error).splitlines()[0]).removeprefix("Caused by: ").strip()
