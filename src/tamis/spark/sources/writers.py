"""How do the rows of Spark's tasks go to a server? As its writing writes them, named by where a task stands."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tamis.spark.sources.tasks import WrittenCounts, this_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tamis.sources.places import Writing


class RowWriter(DataSourceArrowWriter):
    """A table to a server."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return WrittenCounts(asdict(self._writing.write(iterator, this_place(self._writing.run))))


class RowStreamWriter(DataSourceStreamArrowWriter):
    """A stream to a server."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return WrittenCounts(asdict(self._writing.write(iterator, this_place(self._writing.run))))
