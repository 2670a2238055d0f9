"""Where do the matches of a stream go, if not into a folder?

To a stream of NATS or to a webhook, batch by batch. Which batches are done is written down beside the checkpoint, so
a batch that was delivered before a crash is not delivered again. A batch that a crash cut short is delivered anew,
and what had arrived of it has the same names as before: a receiver that keeps to them takes each row once.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from tamis.sources.places import require_place, takes_messages, writing_to
from tamis.spark.folders import folder_at
from tamis.spark.sink import ParquetSink, identity
from tamis.spark.sources.tasks import this_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from tamis.sources.places import Writing
    from tamis.spark.folders import Folder, Place


class BatchSink(Protocol):
    """What takes the batches of a stream."""

    columns: tuple[str, ...]
    """What rows have beside what is kept of the events."""

    def commit_of(self, batch: int) -> dict[str, Any] | None:
        """Return what was committed with a batch; None if it was not."""

    def write(self, frame: DataFrame, batch: int) -> dict[str, Any]:
        """Take the rows of a batch; return what there is to say of it."""

    def commit(self, batch: int, record: dict[str, Any]) -> None:
        """Let a batch count."""


def sink_at(out: Place, checkpoint: Folder, options: Mapping[str, str], spark: Any = None) -> BatchSink:
    """Return the sink that lies at a path or an address."""
    require_place(out, options)
    if takes_messages(out):
        return UrlSink(str(out), checkpoint, options)
    return ParquetSink(folder_at(out, spark), identity(checkpoint))


class UrlSink:
    """An address that takes rows, with a record of which batches it has taken."""

    columns: tuple[str, ...] = ("version",)

    def __init__(self, url: str, checkpoint: Folder, options: Mapping[str, str]) -> None:
        self._url, self._options = url, dict(options)
        self._commits = checkpoint.below("tamis", "commits")

    def commit_of(self, batch: int) -> dict[str, Any] | None:
        """Return what was committed with a batch; None if it was not."""
        commit: dict[str, Any] | None = self._commits.record(f"{batch:012}.json")
        return commit

    def write(self, frame: DataFrame, batch: int) -> dict[str, Any]:
        """Deliver the rows of a batch; return when all of them are acknowledged."""
        return delivered(frame, self._url, self._options)

    def commit(self, batch: int, record: dict[str, Any]) -> None:
        """Remember that a batch is delivered."""
        self._commits.put_record(f"{batch:012}.json", record)


def delivered(frame: DataFrame, url: str, options: Mapping[str, str] | None = None) -> dict[str, int]:
    """Deliver the rows of a table to an address; return how many messages or requests that took, and the like.

    The tasks of the table itself deliver: a writer of Spark's would first plan in a process of its own, each time.
    """
    writing = writing_to(url, options or {}, frame.schema.names)
    counts = frame.mapInArrow(_Delivery(writing).run, "counted map<string,bigint>").collect()
    total: dict[str, int] = {}
    for (counted,) in counts:
        for name, count in counted.items():
            total[name] = total.get(name, 0) + count
    return total


class _Delivery:
    """What a task does; a class, so that it can be sent to workers."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counted = list(asdict(self._writing.write(batches, this_place(self._writing.run))).items())
        yield pa.RecordBatch.from_arrays([pa.array([counted], pa.map_(pa.string(), pa.int64()))], ["counted"])
