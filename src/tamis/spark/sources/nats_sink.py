"""How do the rows of Spark's tasks become messages of NATS? As `tamis.sources.nats_sink` writes them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tamis.spark.sources.tasks import WrittenCounts, this_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tamis.sources.nats_sink import NatsWriting


class NatsWriter(DataSourceArrowWriter):
    """A table into a stream."""

    def __init__(self, writing: NatsWriting) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return WrittenCounts(asdict(self._writing.write(iterator, this_place(self._writing.run))))


class NatsStreamWriter(DataSourceStreamArrowWriter):
    """A stream into a stream."""

    def __init__(self, writing: NatsWriting) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return WrittenCounts(asdict(self._writing.write(iterator, this_place(self._writing.run))))
