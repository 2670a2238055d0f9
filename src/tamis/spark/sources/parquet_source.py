"""How does Spark read a folder of Parquet files in which more arrive, without copying rows in Java?

Workers read the files themselves, as Arrow, and of them only the columns that the schema names: for a pipeline that
goes on in Python that saves most of the work, which is to turn rows into Arrow. A stream is the files in the order in
which they arrived (`arrivals`), and an offset is how many of them: the same offsets are the same files, today and
after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructField, StructType

from tamis.spark.errors import OptionError, ParquetError
from tamis.spark.folders import disk_path
from tamis.spark.sources.arrivals import Arrivals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.streaming.datasource import ReadLimit

    from tamis.sources.options import Options

SOURCE_OPTIONS = ("max_files", "log", "partition_bytes")
_BATCH_ROWS = 16_384


class FilePart(InputPartition):
    """Some row groups of a file."""

    def __init__(self, path: str, groups: tuple[int, ...]) -> None:
        super().__init__((path, groups))
        self.path, self.groups = path, groups


@dataclass(frozen=True)
class FolderReading:
    """What is read, and how."""

    folder: str
    log: str | None
    max_files: int
    partition_bytes: int
    schema: StructType

    @classmethod
    def asked(cls, options: Options, schema: StructType) -> FolderReading:
        return cls(
            folder=asked_folder(options),
            log=options.text("log"),
            max_files=options.number("max_files", 100),
            partition_bytes=options.number("partition_bytes", 64 << 20),
            schema=schema,
        )

    def arrivals(self) -> Arrivals:
        return Arrivals(self.folder, self.log)

    def parts(self, names: Sequence[str]) -> list[FilePart]:
        """Cut files into parts for tasks, along their row groups."""
        all_parts = []
        for name in names:
            path = str(Path(self.folder) / name)
            with opened(path) as file:
                sizes = [file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups)]
            part: list[int] = []
            for number in range(len(sizes)):
                part.append(number)
                if sum(sizes[group] for group in part) >= self.partition_bytes:
                    all_parts.append(FilePart(path, tuple(part)))
                    part = []
            if part:
                all_parts.append(FilePart(path, tuple(part)))
        return all_parts

    def read(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part, with the columns that are asked for and no others."""
        target = to_arrow_schema(self.schema, timezone="UTC")
        with opened(part.path) as file:
            there = [name for name in target.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=list(part.groups), columns=there):
                columns = [_column(batch, field, part.path) for field in target]
                yield pa.RecordBatch.from_arrays(columns, schema=target)


class FolderReader(DataSourceReader):
    """The files that are there as a table."""

    def __init__(self, reading: FolderReading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        arrivals = self._reading.arrivals()
        arrivals.require()
        return self._reading.parts(arrivals.present()) or [FilePart("", ())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePart)
        return self._reading.read(partition) if partition.path else iter(())


class FolderStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The files that arrive as a stream. An offset is a number of files."""

    def __init__(self, reading: FolderReading) -> None:
        self._reading = reading
        self._arrivals = reading.arrivals()
        self._arrivals.require()
        self._last: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"files": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        count = len(self._arrivals.looked())
        if start["files"] > count:
            raise ParquetError(
                f"{self._reading.folder} has {count:,} files in its log of arrivals, and the checkpoint is behind the "
                f"first {start['files']:,}: the log was deleted; begin with another checkpoint"
            )
        end = count if self._last is None else max(start["files"], min(count, self._last))
        if isinstance(limit, ReadMaxFiles):
            end = min(end, start["files"] + limit.max_files)
        return {"files": end}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxFiles(self._reading.max_files)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        waiting = self._arrivals.unfinished()
        return {"files": len(self._arrivals.known()), "unfinished": len(waiting)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = len(self._arrivals.looked())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self._reading.parts(self._arrivals.known()[start["files"] : end["files"]])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePart)
        return self._reading.read(partition)


def seen_schema(folder: str, log: str | None) -> StructType:
    """Return the columns of the first file that is there, with types that Spark has."""
    arrivals = Arrivals(folder, log)
    arrivals.require()
    names = arrivals.present()  # the very first may have been cleared away since
    if not names:
        raise OptionError(f"{folder} has no file yet that says which columns there are; give a schema")
    with opened(str(Path(folder) / names[0])) as file:
        fields = [StructField(each.name, _spark_type(each, names[0])) for each in file.schema_arrow]
    return StructType(fields)


def asked_folder(options: Options) -> str:
    """Return the folder that options name."""
    path = options.text("path")
    if not path:
        raise OptionError("no folder was named; give its path: load('folder')")
    return str(disk_path(path, "what the format parquet_folder reads and writes"))


def opened(path: str) -> parquet.ParquetFile:
    """Open a file; say in one line why it cannot be."""
    try:
        return parquet.ParquetFile(path)
    except FileNotFoundError:
        raise ParquetError(f"{path} is gone: it arrived, and was deleted before it was read") from None
    except (pa.ArrowException, OSError) as error:
        raise ParquetError(f"{path} cannot be read: {' '.join(str(error).split())}") from None


def _column(batch: pa.RecordBatch, field: pa.Field, path: str) -> pa.Array:
    """Return a column as the schema wants it; one that a file does not have is NULL."""
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return column if column.type == field.type else column.cast(field.type)
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())
        raise ParquetError(f"{path}: {field.name} is {column.type}, not {field.type}: {reason}") from None


def _spark_type(field: pa.Field, name: str) -> Any:
    types, kind = pa.types, field.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_unsigned_integer(kind):
        wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}
        kind = wider.get(kind.bit_width, pa.decimal128(20, 0))
    if types.is_timestamp(kind):
        kind = pa.timestamp("us", "UTC" if kind.tz else None)
    if types.is_float16(kind):
        kind = pa.float32()
    try:
        return from_arrow_type(kind, prefer_timestamp_ntz=True)
    except Exception:
        raise ParquetError(
            f"{name}: Spark has no type for {field.name}, which is {field.type}; give a schema"
        ) from None
