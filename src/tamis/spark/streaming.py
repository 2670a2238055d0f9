"""How is a stream of events matched while subscriptions come and go?

Micro-batch by micro-batch. Before a batch is matched, the version of the subscriptions that it sees is written down
beside the checkpoint; a batch that is run again after a crash sees the same version, and so gives the same pairs. The
newest version is looked up whenever a batch starts: a change is in force in the next batch.

Changes may come as a stream of their own (`feeding`). Then the first batch waits for those that are there, and if that
stream dies, so does this one: matching by rules that nobody keeps up would be wrong in silence.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation, functions

from tamis.language import Schema
from tamis.language.functions import functions_of
from tamis.sources.places import takes_messages
from tamis.spark.batch import matched
from tamis.spark.changes import Feeder, read_rejected_from, rejected_count
from tamis.spark.clock import clock
from tamis.spark.columns import kept_fields, names_in, require
from tamis.spark.errors import ColumnError, OptionError
from tamis.spark.feeding import asked_changes, fed, feeder_error
from tamis.spark.folders import Folder, folder_at
from tamis.spark.forests import is_connect
from tamis.spark.listener import BatchListener
from tamis.spark.metrics import Metrics
from tamis.spark.sink import ParquetSink
from tamis.spark.sources.delivering import UrlSink, sink_at
from tamis.spark.sources.failures import plainly
from tamis.spark.subscription_log import SubscriptionLog
from tamis.spark.versions import Versions
from tamis.spark.worker import RESULTS
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from tamis.language import Functions
    from tamis.spark.clock import Times
    from tamis.spark.folders import Place
    from tamis.spark.sources.delivering import BatchSink

_PATIENCE_S = 5
"""So long is waited for Spark's word on the last batches of a stream."""


@dataclass
class MatchStream:
    """A stream that is being matched."""

    query: StreamingQuery
    feeder: StreamingQuery | None
    """The query that takes changes of the subscriptions from a stream, if they come as one."""
    log: SubscriptionLog
    metrics: Metrics
    listener: BatchListener
    session: SparkSession
    put_aside: Folder | None
    """Where the changes lie that could not be applied."""
    versions: Versions
    """How the subscriptions of the log are read."""

    @property
    def rejected(self) -> DataFrame:
        """What could not be used so far.

        Of changes that come as a stream: operation, id, condition, sequence, error, message and batch. Of a log, what
        of its newest version does not fit the events: the id, the condition, error and message.
        """
        if self.put_aside is None:
            return self.versions.rejected(self.session)
        return read_rejected_from(self.session, self.put_aside)

    def await_all(self) -> None:
        """Wait until everything that has arrived is matched."""
        with self._whole():
            if self.feeder is not None and self.feeder.isActive:
                self.feeder.processAllAvailable()
            self.query.processAllAvailable()

    def await_end(self, timeout_s: int | None = None) -> bool:
        """Wait for the end of the stream; return whether it has come. An error of the stream is raised here."""
        try:
            with self._whole():
                await_s = () if timeout_s is None else (timeout_s,)
                ended = self.query.awaitTermination(*await_s)
        except Exception:
            self.stop()
            raise
        if ended is None or ended:
            self._forget()
            return True
        return False

    def stop(self) -> None:
        """Stop after the present batch, or in it: nothing is lost."""
        for query in (self.query, self.feeder):
            if query is not None:
                with suppress(Exception):  # an error of the query belongs to who awaits it
                    query.stop()
        self._forget()

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Raise what ended the stream as what it was; first what ended the changes, if that was it."""
        with plainly():
            try:
                yield
            except Exception:
                self._require_changes()
                raise
            self._require_changes()

    def _require_changes(self) -> None:
        if self.feeder is not None and (error := self.feeder.exception()) is not None:
            raise error

    def _forget(self) -> None:
        """Hear Spark out about the last batches, and listen no more."""
        self.listener.ended.wait(_PATIENCE_S)
        with suppress(Exception):  # the session may be gone
            self.session.streams.removeListener(self.listener)


def match_stream(
    events: DataFrame,
    subscriptions: SubscriptionLog | DataFrame | Place,
    *,
    out: Place,
    checkpoint: Place,
    out_options: Mapping[str, str] | None = None,
    id: str = "subscription_id",
    where: str = "condition",
    keep: str | Sequence[str] | None = None,
    result: str = "pairs",
    schema: Schema | None = None,
    sequence: str | None = None,
    rejected: Place | None = None,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    on_batch: Callable[[dict[str, Any]], None] | None = None,
    functions: Functions | None = None,
) -> MatchStream:
    """Match a stream of events, exactly once, into a folder of Parquet files that `read_matches` reads, or elsewhere.

    events           a streaming DataFrame of a source that can be replayed
    subscriptions    a log of versions, or its folder; or a stream of changes with the columns `operation` ("add" or
                     "remove"), the id and the condition, which is kept as a log beside the checkpoint
    out              the folder for the matches, which driver and workers reach; or an address that takes them
                     as JSON: a stream of NATS ("nats://host:4222/MATCHES") or a webhook ("https://...")
    out_options      what there is to say about an address, as to the formats "nats" and "webhook"
    checkpoint       the folder that lets the stream go on after a stop or a crash
    sequence         of a stream of changes: the column of numbers or times that says in which order they were made;
                     "sequence" or "time" if there is such a column
    rejected         of a stream of changes: the folder for those that cannot be applied; beside the checkpoint if you
                     do not say
    trigger          as for `DataStreamWriter.trigger`, such as {"processingTime": "1 second"} or {"availableNow": True}
    functions        those of the host that conditions may call; without them, those of the schema. The log has their
                     names and versions, and goes on with the same ones only
    on_batch         called with the record of every micro-batch once Spark has done with it: events and rows, version,
                     and where the time went

    Priorities of the log order the ids of `result="lists"`, the highest first, then by id. What has an end in the log
    (`SubscriptionLog.add(..., untils=...)`) is gone from the first batch on that starts at that time or later.

    Folders are paths, or addresses of any file system that Spark reaches: "s3a://bucket/matches", "hdfs://host/matches".
    """
    if not events.isStreaming:
        raise OptionError("the events are not a stream; use tamis.spark.match for a table")
    if result not in RESULTS:
        raise OptionError(f"result must be one of {', '.join(map(repr, RESULTS))}, not {result!r}")
    require_workers(events.sparkSession)
    kept = None if keep is None else names_in(keep)
    require(events, kept or (), "events")
    _require_columns(events, events.columns if kept is None else kept, out)
    hosted = functions_of(functions, schema)
    schema = (schema or Schema.from_spark(events)).calling(hosted)
    spark = events.sparkSession
    changes = asked_changes(subscriptions, id, where, sequence) if isinstance(subscriptions, DataFrame) else None
    if changes is None and (rejected is not None or sequence is not None):
        raise OptionError("sequence and rejected are about changes that come as a stream, and these are a log")
    place = folder_at(checkpoint, spark)
    log = _log_of(subscriptions, place, spark)
    log.demand(log.version, hosted)
    sink = sink_at(out, place, out_options or {}, spark)
    feeder = put_aside = None
    if changes is not None:
        asked, is_ordered = changes
        put_aside = place.below("tamis", "rejected") if rejected is None else folder_at(rejected, spark)
        feeder = fed(asked, Feeder(log, put_aside, schema, is_ordered), place.below("changes"), trigger)
    metrics = Metrics()
    is_elsewhere = is_connect(spark)  # then batches run in a process of the server's
    versions = Versions(log, schema, id, where)
    job = _Job(
        versions,
        log,
        sink,
        place.below("tamis", "versions"),
        kept,
        result,
        None if is_elsewhere else metrics,
        put_aside,
        None if is_elsewhere else feeder,
    )
    writer = events.writeStream.foreachBatch(job.run).option("checkpointLocation", place.place)
    if name:
        writer = writer.queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    listener = BatchListener(metrics, on_batch, sink.commit_of if is_elsewhere else None)
    query = _started(writer, listener, feeder, spark)
    return MatchStream(query, feeder, log, metrics, listener, spark, put_aside, versions)


def _log_of(
    subscriptions: SubscriptionLog | DataFrame | Place, checkpoint: Folder, spark: SparkSession
) -> SubscriptionLog:
    """Return the log that batches read: one that was given, or that of changes, beside the checkpoint."""
    if isinstance(subscriptions, SubscriptionLog):
        return subscriptions
    if isinstance(subscriptions, DataFrame):
        return SubscriptionLog(checkpoint.below("tamis", "subscriptions").place, spark=spark)
    return SubscriptionLog(subscriptions, spark=spark)


def _started(
    writer: DataStreamWriter, listener: BatchListener, feeder: StreamingQuery | None, spark: SparkSession
) -> StreamingQuery:
    """Start the query that matches; it is listened to from its first batch on, and ends if the changes end."""
    spark.streams.addListener(listener)
    try:
        query = writer.start()
    except Exception:
        spark.streams.removeListener(listener)
        if feeder is not None:
            feeder.stop()
        raise
    if feeder is not None:
        # The listener hears of the end while Spark holds it up: somebody else has to stop the query.
        listener.depend(str(feeder.runId), lambda: Thread(target=_stopped, args=(query,), daemon=True).start())
        if feeder_error(feeder) is not None:
            query.stop()
    listener.follow(str(query.runId))
    return query


def _stopped(query: StreamingQuery) -> None:
    with suppress(Exception):  # it may have ended by itself
        query.stop()


def _require_columns(events: DataFrame, names: Iterable[str], out: Place) -> None:
    """Raise if something is to be kept that would be lost: two columns of one name, a type that cannot be sent."""
    ours = (UrlSink if takes_messages(out) else ParquetSink).columns
    for name in names:
        if name.lower() in ours:  # Spark takes names that differ in case for one
            raise ColumnError(
                f"the matches of a stream have a column {name.lower()!r} of their own, and the events have {name!r}: "
                f"rename it, events.withColumnRenamed({name!r}, ...), or keep others (keep=[...])"
            )
    kept_fields(events, list(names), [], is_written=not takes_messages(out))


@dataclass
class _Job:
    """What is done with every micro-batch."""

    versions: Versions
    log: SubscriptionLog
    sink: BatchSink
    chosen: Folder
    keep: list[str] | None
    result: str
    metrics: Metrics | None
    put_aside: Folder | None
    feeder: StreamingQuery | None

    def run(self, events: DataFrame, batch: int) -> None:
        if self.sink.commit_of(batch) is not None:
            return  # the crash came after the commit, and before Spark knew of it
        if self.feeder is not None and (error := feeder_error(self.feeder)) is not None:
            raise error
        start = perf_counter()
        version = self._version(batch)
        compiled = self.versions.at(version, events.sparkSession)
        ready = perf_counter()
        entered, left = Observation(), Observation()
        seen = events.observe(entered, functions.count(functions.lit(1)).alias("rows"))
        watch = clock(events)
        matches = matched(seen, compiled, self.keep, self.result, watch)
        matches = matches.withColumn("version", functions.lit(version).cast("bigint"))
        delivered = self.sink.write(matches.observe(left, functions.count(functions.lit(1)).alias("rows")), batch)
        record = {
            "batch": batch,
            "version": version,
            "subscriptions": compiled.count,
            "rejected": compiled.rejected_count + (rejected_count(self.put_aside) if self.put_aside else 0),
            "rows_in": entered.get["rows"],
            "rows_out": left.get["rows"],
            **({"delivered": delivered} if delivered else {}),
            "compile_s": round(ready - start, 4),
            **({} if watch is None else _worker_seconds(watch.value)),
            "batch_s": round(perf_counter() - start, 4),
            "committed": round(time(), 3),
            "schema": matches.schema.jsonValue(),
        }
        self.sink.commit(batch, record)
        if self.metrics is not None:
            self.metrics.count(record)

    def _version(self, batch: int) -> int:
        """Return the version that a batch sees: the one it saw before, or the newest."""
        known = self.chosen.record(f"{batch:012}.json")
        if known is None:
            known = self.log.advance(time())  # what has ended is gone, in a version that a later run sees, too
            self.chosen.put_record(f"{batch:012}.json", known)
        return int(known)


def _worker_seconds(times: Times) -> dict[str, float]:
    """Return what a commit says of where the time went."""
    durations = {"kernel_s": times.kernel_s, "forest_s": times.forest_s, "arrow_s": times.arrow_s}
    return {name: round(seconds, 4) for name, seconds in (durations | {"workers_s": times.workers_s}).items()}
