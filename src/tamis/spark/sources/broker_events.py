"""How do the events of a broker become events that can be matched? They have columns already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StructField, StructType

from tamis.service.bridge.reading import POSITION, log_reading, require_source
from tamis.spark.columns import names_in
from tamis.spark.sources import register
from tamis.spark.sources.broker import spark_columns
from tamis.spark.sources.event_columns import columns_of_events

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tamis.spark.folders import Place


def broker_events(
    spark: SparkSession,
    url: str,
    *,
    schema: StructType | str | None = None,
    keep: str | Sequence[str] = (),
    streaming: bool = False,
    remembered: Place | None = None,
    options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Return the events of a broker, as a table of what its log holds, or as a stream.

    url           tamis://host:7410, or tamis+tls://host:7410
    schema        their columns, such as "price double, title string"; seen from the first events if nobody says
    keep          columns of the result; `_position`, the number of an event in the log, is added only if it is here
    remembered    where to keep the columns that were seen: a stream that goes on reads as it read before
    options       as for the format "tamis": `where`, `token`, `name`, `start`, ...
    """
    settings = {name: str(value) for name, value in (options or {}).items()}
    require_source(url, settings, streaming=streaming)
    register(spark)

    def guess() -> StructType:
        return spark_columns(log_reading(url, settings, streaming=streaming).guessed())

    columns = columns_of_events(schema, remembered, guess)
    fields = [field for field in columns.fields if field.name != POSITION or schema is not None]
    if POSITION in names_in(keep) and POSITION not in [field.name for field in fields]:
        fields.append(StructField(POSITION, LongType()))
    settings.setdefault("partitions", str(_cores(spark)))
    reader: Any = spark.readStream if streaming else spark.read
    frame: DataFrame = reader.format("tamis").schema(StructType(fields)).options(**settings).load(url)
    return frame


def _cores(spark: SparkSession) -> int:
    """Return how many tasks run at once; behind Spark Connect, where nobody says, a number that does no harm."""
    try:
        return max(1, spark.sparkContext.defaultParallelism)
    except PySparkException:
        return 4
