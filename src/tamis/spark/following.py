"""How does a log of subscriptions follow a table that changes? By what is different.

A table is seen as of one of its versions: a snapshot of Parquet files, a version of Delta, a snapshot of Iceberg. Spark
compares it with what is in force in the log, and only the rows that were added, changed or removed since come to the
driver, are read and become a version of the log; so what follows from it (`match_stream`, `match_history`) compiles
them alone. The log is then what `SubscriptionLog.load` would have made of the whole table.

A version of the table is taken once, however often it is offered: the version of the log names it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import IntegerType, LongType, StringType

from tamis.language.functions import functions_of
from tamis.matching.admission import CandidateRow, admitted
from tamis.spark.columns import column, id_type, require
from tamis.spark.compiling import numbered, rejected_frame
from tamis.spark.errors import ColumnError, OptionError
from tamis.spark.event_time import MICROS
from tamis.spark.subscription_log import ADD, Terms
from tamis.spark.timed_events import seconds_of
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.language import Functions, Schema
    from tamis.spark.subscription_log import Changes, SubscriptionLog

FORMATS = ("delta", "iceberg")


@dataclass(frozen=True)
class Followed:
    """What a version of a table has changed in a log."""

    version: int
    """The version of the log that says what the table says."""
    added: int
    changed: int
    """How many have another text or priority than before."""
    removed: int
    rejected: DataFrame
    """The rows of the table that are no subscriptions: id, condition, error, message."""
    rejected_count: int


def follow(
    log: SubscriptionLog,
    table: DataFrame,
    *,
    version: str | int | None = None,
    since: dt.datetime | None = None,
    id: str = "subscription_id",
    where: str = "condition",
    priority: str | None = None,
    schema: Schema | None = None,
    functions: Functions | None = None,
) -> Followed:
    """Bring a log to what a table says, in one version of it; read only what is different from what is in force.

    version      what the table calls what it says now; one that the log has taken before changes nothing
    since        from when on it is in force, for `match_history`; a time without a zone is UTC's
    schema       what texts are checked against; what the log has, if you do not say
    functions    those of the host that texts may call; without them, those of the schema, or of the log

    A row that is in force as it stands is not read again, so the schema is asked about new rows only.
    """
    names = [id, where, *([priority] if priority else [])]
    require(table, names, "rules")
    kind = id_type(table, id)
    if table.schema[where].dataType.simpleString() != "string":
        raise ColumnError(f"conditions must be strings, but {where!r} is {table.schema[where].dataType}")
    if priority and not isinstance(table.schema[priority].dataType, IntegerType | LongType):
        raise ColumnError(f"priorities must be integers, but {priority!r} is {table.schema[priority].dataType}")
    spark = table.sparkSession
    require_workers(spark)
    source = _source(version)
    if source and (written := log.version_of(source)) is not None:
        return Followed(written, 0, 0, 0, rejected_frame(spark, [], id, where, kind), 0)
    schema = schema or log.schema
    hosted = functions_of(functions, schema) or log.functions
    present = in_force(spark, log, "string" if isinstance(kind, StringType) else "bigint")
    rank = column(priority).cast("bigint") if priority else F.lit(0)
    chosen = table.select(
        column(id).cast(present.schema["id"].dataType).alias("id"),
        column(where).alias("condition"),
        F.coalesce(rank, F.lit(0)).cast("bigint").alias("priority"),
    )
    snapshot = numbered(chosen).toDF("id", "condition", "priority", "place")
    alone = snapshot.withColumn("alone", F.count(F.lit(1)).over(Window.partitionBy("id")) == 1)
    # A row that stands alone under its id, and just as it is in force, is nothing new.
    is_known = F.expr("alone AND condition = former AND priority = former_priority")
    different = alone.join(present, "id", "full_outer").where(~F.coalesce(is_known, F.lit(False)))
    columns = ("id", "condition", "priority", "place", "former", "former_priority")
    rows = different.select(*columns).orderBy("place").collect()
    with hosted.in_use():
        _, bad = admitted([CandidateRow(*row[:4]) for row in rows if row.place is not None], schema)
    lost = {row.row for row in bad}
    wanted = {row.id: (row.condition, row.priority) for row in rows if row.place is not None and row.place not in lost}
    before = {row.id: (row.former, row.former_priority) for row in rows if row.former is not None}
    changes: Changes = dict.fromkeys(each for each in before if each not in wanted)
    changes |= {each: row[0] for each, row in wanted.items() if row != before.get(each)}
    number = log.version
    if changes or (source and number):  # that a version was taken is written down, so that nobody compares it again
        terms = {each: Terms(wanted[each][1]) for each, text in changes.items() if text is not None}
        moment = None if since is None else seconds_of(since)
        number = log.append(changes, source, terms=terms, functions=hosted, since=moment)
    return Followed(
        number,
        sum(1 for each, text in changes.items() if text is not None and each not in before),
        sum(1 for each, text in changes.items() if text is not None and each in before),
        sum(1 for text in changes.values() if text is None),
        rejected_frame(spark, bad, id, where, kind),
        len(bad),
    )


def in_force(spark: SparkSession, log: SubscriptionLog, kind: str) -> DataFrame:
    """Return what is in force in a log as Spark reads it: id, its text (`former`) and its priority."""
    last = log.version
    fields = f"operation string, id {kind}, condition string, priority bigint"
    if not last:
        return spark.createDataFrame([], f"id {kind}, former string, former_priority bigint")
    if (log.id_type is str) != (kind == "string"):
        raise ColumnError(
            f"the ids of {log.folder} are {'texts' if log.id_type is str else 'integers'}; cast those of the table"
        )
    files = [log.folder.below(f"{number:012}.parquet").place for number in range(1, last + 1)]
    rows = spark.read.schema(fields).parquet(*files).withColumn("version", F.col("_metadata.file_name"))
    newest = F.row_number().over(Window.partitionBy("id").orderBy(F.col("version").desc()))
    standing = rows.withColumn("turn", newest).where((F.col("turn") == 1) & (F.col("operation") == ADD))
    return standing.select(
        "id", F.col("condition").alias("former"), F.coalesce("priority", F.lit(0)).alias("former_priority")
    )


# -- Tables that have versions of their own


def catch_up(
    log: SubscriptionLog, table: str, spark: SparkSession, *, format: str = "delta", **options: Any
) -> list[Followed]:
    """Take all versions of a table that a log has not taken, the oldest first, each with the time of its commit.

    table      its name in SQL: `catalog.schema.rules`, or delta.`/path/to/rules`
    format     "delta" or "iceberg", whose history is asked
    options    as for `follow`
    """
    if format not in FORMATS:
        raise OptionError(f"format must be one of {', '.join(map(repr, FORMATS))}, not {format!r}")
    if format == "delta":
        history = spark.sql(f"DESCRIBE HISTORY {table}").selectExpr("version", "timestamp AS since").orderBy("version")
    else:
        kept = spark.sql(
            f"SELECT snapshot_id AS version, made_current_at AS since FROM {table}.history WHERE is_current_ancestor"
        )
        history = kept.orderBy("since")
    micros = F.unix_micros("since").alias("micros")
    versions = [tuple(row) for row in history.select("version", micros).collect()]
    known = [place for place, row in enumerate(versions) if log.version_of(_source(row[0])) is not None]
    taken: list[Followed] = []
    for number, at in versions[max(known, default=-1) + 1 :]:  # an empty table leaves no trace in an empty log
        snapshot = spark.sql(f"SELECT * FROM {table} VERSION AS OF {number}")
        since = dt.datetime.fromtimestamp(at / MICROS, dt.UTC)
        taken.append(follow(log, snapshot, version=number, since=since, **options))
    return taken


def _source(version: str | int | None) -> str:
    """Return what a version of a log says of the version of the table that it was made of."""
    return "" if version is None else f"table version {version}"
