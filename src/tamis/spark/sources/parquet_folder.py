"""A folder of Parquet files as a format of Spark: `spark.readStream.format("parquet_folder").load("arriving")`.

Reading is described in `parquet_source`. Writing is transactional: the rows of a batch count when its commit lies
beside them (`tamis.spark.sink`), with the names of the files that belong to it. What a failed or repeated try has
left behind is not among them. `tamis.spark.read_matches` and this format itself read what is committed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyarrow import parquet
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tamis.sources.options import Options
from tamis.spark.errors import OptionError, ParquetError
from tamis.spark.sink import ParquetSink, commits
from tamis.spark.sources.parquet_source import (
    SOURCE_OPTIONS,
    FolderReader,
    FolderReading,
    FolderStreamReader,
    asked_folder,
    seen_schema,
)
from tamis.spark.sources.tasks import this_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

_TABLES = "tables"
"""Who owns a folder that jobs write to, and not a stream."""


@dataclass
class WrittenFile(WriterCommitMessage):
    """What a task has written: for which query, into which file, how many rows; no rows, no file."""

    query: str
    name: str
    rows: int


@dataclass(frozen=True)
class FolderWriting:
    """Writes the rows of tasks, and lets batches count."""

    folder: str
    schema: StructType

    def write(self, batches: Iterator[pa.RecordBatch], batch: int | None, owner: str | None) -> WrittenFile:
        """Write the rows of a task into a file of its own."""
        place = this_place("")
        batch = place.batch if batch is None else batch
        name = f"batch={batch}/part-{place.partition:05}-{uuid4()}.parquet"
        path = Path(self.folder) / name
        rows = 0
        writer: parquet.ParquetWriter | None = None
        try:
            for each in batches:
                if not each.num_rows:
                    continue
                if writer is None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    writer = parquet.ParquetWriter(path, each.schema)
                writer.write_batch(each)
                rows += each.num_rows
        finally:
            if writer is not None:
                writer.close()
        return WrittenFile(owner or place.query, name if rows else "", rows)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Let a batch count; one that counts already stays as it is."""
        written = [message for message in messages if isinstance(message, WrittenFile)]
        if not written:
            return
        sink = ParquetSink(self.folder, written[0].query)
        record: dict[str, Any] = {
            "batch": batch,
            "rows_out": sum(message.rows for message in written),
            "files": [message.name for message in written if message.name],
            "committed": round(time(), 3),
            "schema": self.schema.jsonValue(),
        }
        if sink.is_first(batch, record):
            return
        self.forget(messages)
        if written[0].query == _TABLES:  # a stream says the same again; another job has something else to say
            raise ParquetError(
                f"another job wrote to {self.folder} at the same time; nothing is written, so run it again"
            )

    def forget(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what does not count."""
        for message in messages:
            if isinstance(message, WrittenFile) and message.name:
                with suppress(OSError):
                    (Path(self.folder) / message.name).unlink()


class FolderWriter(DataSourceArrowWriter):
    """A table into a folder: one batch more."""

    def __init__(self, writing: FolderWriting) -> None:
        self._writing = writing
        self._batch = max((record["batch"] for record in commits(writing.folder)), default=-1) + 1
        ParquetSink(writing.folder, _TABLES)  # raises if the folder is a stream's

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._writing.write(iterator, self._batch, _TABLES)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._writing.commit(messages, self._batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._writing.forget(messages)


class FolderStreamWriter(DataSourceStreamArrowWriter):
    """A stream into a folder, each batch once."""

    def __init__(self, writing: FolderWriting) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._writing.write(iterator, None, None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self._writing.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._writing.forget(messages)


class ParquetFolderDataSource(DataSource):
    """A folder of Parquet files."""

    @classmethod
    def name(cls) -> str:
        return "parquet_folder"

    def schema(self) -> StructType:
        options = self._options(SOURCE_OPTIONS)
        return seen_schema(asked_folder(options), options.text("log"))

    def reader(self, schema: StructType) -> FolderReader:
        return FolderReader(FolderReading.asked(self._options(SOURCE_OPTIONS), schema))

    def streamReader(self, schema: StructType) -> FolderStreamReader:  # noqa: N802 - Spark's name
        return FolderStreamReader(FolderReading.asked(self._options(SOURCE_OPTIONS), schema))

    def writer(self, schema: StructType, overwrite: bool) -> FolderWriter:
        if overwrite:
            raise OptionError("what is committed cannot be replaced: mode('append'), or another folder")
        return FolderWriter(self._writing(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> FolderStreamWriter:  # noqa: N802
        return FolderStreamWriter(self._writing(schema))

    def _writing(self, schema: StructType) -> FolderWriting:
        return FolderWriting(asked_folder(self._options(())), schema)

    def _options(self, known: tuple[str, ...]) -> Options:
        return Options("parquet_folder", self.options, known)
