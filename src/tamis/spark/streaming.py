"""How is a stream of events matched while subscriptions come and go?

Micro-batch by micro-batch. Before a batch is matched, the version of the subscriptions that it sees is written down
beside the checkpoint; a batch that is run again after a crash sees the same version, and so gives the same pairs. The
newest version is looked up whenever a batch starts: a change is in force in the next batch.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation, functions

from tamis.language import Schema
from tamis.spark import durable
from tamis.spark.batch import matched
from tamis.spark.columns import require
from tamis.spark.errors import ColumnError, OptionError
from tamis.spark.metrics import Metrics
from tamis.spark.sink import ParquetSink
from tamis.spark.subscription_log import SubscriptionLog
from tamis.spark.versions import Versions
from tamis.spark.worker import RESULTS

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql.streaming.query import StreamingQuery


@dataclass
class MatchStream:
    """A stream that is being matched."""

    query: StreamingQuery
    feeder: StreamingQuery | None
    """The query that takes changes of the subscriptions from a stream, if they come as one."""
    log: SubscriptionLog
    metrics: Metrics

    def await_all(self) -> None:
        """Wait until everything that has arrived is matched."""
        if self.feeder is not None:
            self.feeder.processAllAvailable()
        self.query.processAllAvailable()

    def await_end(self, timeout_s: int | None = None) -> bool:
        """Wait for the end of the stream; return whether it has come. An error of the stream is raised here."""
        ended = self.query.awaitTermination(timeout_s) if timeout_s is not None else self.query.awaitTermination()
        return True if ended is None else bool(ended)

    def stop(self) -> None:
        """Stop after the present batch, or in it: nothing is lost."""
        for query in (self.query, self.feeder):
            if query is not None:
                with suppress(Exception):  # an error of the query belongs to who awaits it
                    query.stop()


def match_stream(
    events: DataFrame,
    subscriptions: SubscriptionLog | DataFrame | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    id: str = "subscription_id",
    where: str = "condition",
    keep: Sequence[str] | None = None,
    result: str = "pairs",
    schema: Schema | None = None,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> MatchStream:
    """Match a stream of events, exactly once, into a folder of Parquet files that `read_matches` reads.

    events           a streaming DataFrame of a source that can be replayed
    subscriptions    a log of versions, or its folder; or a stream of changes with the columns `operation` ("add" or
                     "remove"), the id and the condition, which is kept as a log beside the checkpoint
    out              the folder for the matches, on a disk that driver and workers share
    checkpoint       the folder that lets the stream go on after a stop or a crash
    trigger          as for `DataStreamWriter.trigger`, such as {"processingTime": "1 second"} or {"availableNow": True}
    """
    if not events.isStreaming:
        raise OptionError("events are no stream; for a table there is tamis.spark.match")
    if result not in RESULTS:
        raise OptionError(f"result is one of {', '.join(map(repr, RESULTS))}, not {result!r}")
    require(events, keep or (), "events")
    schema = schema or Schema.from_spark(events)
    feeder = None
    if isinstance(subscriptions, DataFrame):
        log = SubscriptionLog(Path(checkpoint) / "tamis" / "subscriptions")
        feeder = _feeding(subscriptions, log, Path(checkpoint) / "changes", id, where)
    else:
        log = subscriptions if isinstance(subscriptions, SubscriptionLog) else SubscriptionLog(subscriptions)
    metrics = Metrics()
    job = _Job(
        Versions(events.sparkSession, log, schema, id, where),
        log,
        ParquetSink(out, checkpoint),
        Path(checkpoint) / "tamis" / "versions",
        None if keep is None else list(keep),
        result,
        metrics,
    )
    writer = events.writeStream.foreachBatch(job.run).option("checkpointLocation", str(checkpoint))
    if name:
        writer = writer.queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    return MatchStream(writer.start(), feeder, log, metrics)


@dataclass
class _Job:
    """What is done with every micro-batch."""

    versions: Versions
    log: SubscriptionLog
    sink: ParquetSink
    chosen: Path
    keep: list[str] | None
    result: str
    metrics: Metrics

    def run(self, events: DataFrame, batch: int) -> None:
        if self.sink.commit_of(batch) is not None:
            return  # the crash came after the commit, and before Spark knew of it
        start = perf_counter()
        version = self._version(batch)
        compiled = self.versions.at(version)
        ready = perf_counter()
        entered, left = Observation(), Observation()
        seen = events.observe(entered, functions.count(functions.lit(1)).alias("rows"))
        clock = _clock(events)
        found = matched(seen, compiled, self.keep, self.result, clock)
        found = found.withColumn("version", functions.lit(version).cast("bigint"))
        self.sink.write(found.observe(left, functions.count(functions.lit(1)).alias("rows")), batch)
        record = {
            "batch": batch,
            "version": version,
            "subscriptions": compiled.count,
            "rejected": compiled.rejected_count,
            "rows_in": entered.get["rows"],
            "rows_out": left.get["rows"],
            "compile_s": round(ready - start, 4),
            "kernel_s": None if clock is None else round(clock.value, 4),
            "batch_s": round(perf_counter() - start, 4),
            "schema": found.schema.jsonValue(),
        }
        self.sink.commit(batch, record)
        self.metrics.count(record)

    def _version(self, batch: int) -> int:
        """Return the version that a batch sees: the one it saw before, or the newest."""
        path = self.chosen / f"{batch:012}.json"
        known = durable.record(path)
        if known is None:
            known = self.log.version
            durable.put_record(path, known)
        return int(known)


def _clock(events: DataFrame) -> Any:
    """Return what workers add the time of the kernels to; None under Spark Connect, which has no such thing."""
    spark = events.sparkSession
    return spark.sparkContext.accumulator(0.0) if hasattr(spark, "_sc") else None


def _feeding(changes: DataFrame, log: SubscriptionLog, checkpoint: Path, id: str, where: str) -> StreamingQuery:
    """Write the changes of a stream to a log: a micro-batch of them is a version, written once."""
    if not changes.isStreaming:
        raise OptionError("subscriptions are a table; give them as a log: tamis.spark.SubscriptionLog(folder)")
    require(changes, ("operation", id, where), "changes")

    def run(batch: DataFrame, number: int) -> None:
        found: dict[Any, str | None] = {}
        for row in batch.select("operation", id, where).collect():
            if row[0] not in ("add", "remove"):
                raise ColumnError(f"an operation is 'add' or 'remove', not {row[0]!r}")
            found[row[1]] = row[2] if row[0] == "add" else None
        if found:
            log.append(found, source=f"batch {number}")

    feed: Callable[[DataFrame, int], None] = run
    return changes.writeStream.foreachBatch(feed).option("checkpointLocation", str(checkpoint)).start()
