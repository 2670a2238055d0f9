"""How is a stream of events matched while subscriptions come and go?

Micro-batch by micro-batch. Before a batch is matched, the version of the subscriptions that it sees is written down
beside the checkpoint; a batch that is run again after a crash sees the same version, and so gives the same pairs. The
newest version is looked up whenever a batch starts: a change is in force in the next batch.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation, functions

from tamis.language import Schema
from tamis.spark import durable
from tamis.spark.batch import matched
from tamis.spark.clock import clock
from tamis.spark.columns import names_in, require
from tamis.spark.errors import ColumnError, OptionError
from tamis.spark.forests import is_connect
from tamis.spark.listener import BatchListener
from tamis.spark.metrics import Metrics
from tamis.spark.sources.delivering import sink_at
from tamis.spark.sources.failures import plainly
from tamis.spark.subscription_log import SubscriptionLog
from tamis.spark.versions import Versions
from tamis.spark.worker import RESULTS
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql.streaming.query import StreamingQuery

    from tamis.spark.clock import Times
    from tamis.spark.sources.delivering import Sink

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
    manager: Any
    """Spark's manager of queries, whom the listener listens to."""

    def await_all(self) -> None:
        """Wait until everything that has arrived is matched."""
        if self.feeder is not None:
            self.feeder.processAllAvailable()
        self.query.processAllAvailable()

    def await_end(self, timeout_s: int | None = None) -> bool:
        """Wait for the end of the stream; return whether it has come. An error of the stream is raised here."""
        try:
            with plainly():
                await_s = () if timeout_s is None else (timeout_s,)
                ended = self.query.awaitTermination(*await_s)
        except Exception:
            self._forget()
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

    def _forget(self) -> None:
        """Hear Spark out about the last batches, and listen no more."""
        self.listener.ended.wait(_PATIENCE_S)
        with suppress(Exception):  # the session may be gone
            self.manager.removeListener(self.listener)


def match_stream(
    events: DataFrame,
    subscriptions: SubscriptionLog | DataFrame | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    out_options: Mapping[str, str] | None = None,
    id: str = "subscription_id",
    where: str = "condition",
    keep: str | Sequence[str] | None = None,
    result: str = "pairs",
    schema: Schema | None = None,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    on_batch: Callable[[dict[str, Any]], None] | None = None,
) -> MatchStream:
    """Match a stream of events, exactly once, into a folder of Parquet files that `read_matches` reads, or elsewhere.

    events           a streaming DataFrame of a source that can be replayed
    subscriptions    a log of versions, or its folder; or a stream of changes with the columns `operation` ("add" or
                     "remove"), the id and the condition, which is kept as a log beside the checkpoint
    out              the folder for the matches, on a disk that driver and workers share; or an address that takes them
                     as JSON: a stream of NATS ("nats://host:4222/MATCHES") or a webhook ("https://...")
    out_options      what there is to say about an address, as to the formats "nats" and "webhook"
    checkpoint       the folder that lets the stream go on after a stop or a crash
    trigger          as for `DataStreamWriter.trigger`, such as {"processingTime": "1 second"} or {"availableNow": True}
    on_batch         called with the record of every micro-batch once Spark has done with it: events and rows, version,
                     and where the time went
    """
    if not events.isStreaming:
        raise OptionError("events are no stream; for a table there is tamis.spark.match")
    if result not in RESULTS:
        raise OptionError(f"result is one of {', '.join(map(repr, RESULTS))}, not {result!r}")
    require_workers(events.sparkSession)
    kept = None if keep is None else names_in(keep)
    require(events, kept or (), "events")
    schema = schema or Schema.from_spark(events)
    feeder = None
    if isinstance(subscriptions, DataFrame):
        log = SubscriptionLog(Path(checkpoint) / "tamis" / "subscriptions")
        feeder = _feeding(subscriptions, log, Path(checkpoint) / "changes", id, where)
    else:
        log = subscriptions if isinstance(subscriptions, SubscriptionLog) else SubscriptionLog(subscriptions)
    metrics = Metrics()
    sink = sink_at(out, checkpoint, out_options or {})
    is_elsewhere = is_connect(events.sparkSession)  # then batches run in a process of the server's
    job = _Job(
        Versions(log, schema, id, where),
        log,
        sink,
        Path(checkpoint) / "tamis" / "versions",
        kept,
        result,
        None if is_elsewhere else metrics,
    )
    writer = events.writeStream.foreachBatch(job.run).option("checkpointLocation", str(checkpoint))
    if name:
        writer = writer.queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    listener = BatchListener(metrics, on_batch, sink.commit_of if is_elsewhere else None)
    streams = events.sparkSession.streams
    streams.addListener(listener)
    try:
        query = writer.start()
    except Exception:
        streams.removeListener(listener)
        raise
    listener.follow(str(query.runId))
    return MatchStream(query, feeder, log, metrics, listener, streams)


@dataclass
class _Job:
    """What is done with every micro-batch."""

    versions: Versions
    log: SubscriptionLog
    sink: Sink
    chosen: Path
    keep: list[str] | None
    result: str
    metrics: Metrics | None

    def run(self, events: DataFrame, batch: int) -> None:
        if self.sink.commit_of(batch) is not None:
            return  # the crash came after the commit, and before Spark knew of it
        start = perf_counter()
        version = self._version(batch)
        compiled = self.versions.at(version, events.sparkSession)
        ready = perf_counter()
        entered, left = Observation(), Observation()
        seen = events.observe(entered, functions.count(functions.lit(1)).alias("rows"))
        watch = clock(events)
        found = matched(seen, compiled, self.keep, self.result, watch)
        found = found.withColumn("version", functions.lit(version).cast("bigint"))
        told = self.sink.write(found.observe(left, functions.count(functions.lit(1)).alias("rows")), batch)
        record = {
            "batch": batch,
            "version": version,
            "subscriptions": compiled.count,
            "rejected": compiled.rejected_count,
            "rows_in": entered.get["rows"],
            "rows_out": left.get["rows"],
            **({"delivered": told} if told else {}),
            "compile_s": round(ready - start, 4),
            **({} if watch is None else _told(watch.value)),
            "batch_s": round(perf_counter() - start, 4),
            "committed": round(time(), 3),
            "schema": found.schema.jsonValue(),
        }
        self.sink.commit(batch, record)
        if self.metrics is not None:
            self.metrics.count(record)

    def _version(self, batch: int) -> int:
        """Return the version that a batch sees: the one it saw before, or the newest."""
        path = self.chosen / f"{batch:012}.json"
        known = durable.record(path)
        if known is None:
            known = self.log.version
            durable.put_record(path, known)
        return int(known)


def _told(times: Times) -> dict[str, float]:
    """Return what a commit says of where the time went."""
    told = {"kernel_s": times.kernel_s, "forest_s": times.forest_s, "arrow_s": times.arrow_s}
    return {name: round(seconds, 4) for name, seconds in (told | {"workers_s": times.workers_s}).items()}


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
