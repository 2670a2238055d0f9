"""Which tables need no Java to be read? File scans: Parquet files, as they are.

Rows that enter Python are copied by Java column by column, and rows that come back are copied once more: of a wide
table, that is most of what matching costs. Where a DataFrame is nothing but columns of Parquet files, workers read the
files themselves, as Arrow, and send back only the events that match. Whatever else a DataFrame is (filtered, joined,
cached, of another format, on a file system that only Java opens) Spark reads.

Nobody is to see a difference. So the plan is looked at, and the footer of every file: each column must be of just the
type that Spark reads there, with no calendar of old times, and the options of the reader must be those that only choose
files. Anything unknown is left to Spark. `spark.tamis.parquet` set to `spark` leaves all of them to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import types as kinds

from tamis.spark.columns import arrow_schema
from tamis.spark.errors import OptionError, ParquetError
from tamis.spark.forests import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

SETTING = "spark.tamis.parquet"
"""The setting of a session that says who reads Parquet files: `workers`, or `spark`."""
READERS = ("workers", "spark")
MOST_FILES = 1_000
"""The driver looks at the footers of so many files at most."""

_PLAIN = (
    kinds.BooleanType, kinds.ByteType, kinds.ShortType, kinds.IntegerType, kinds.LongType, kinds.FloatType,
    kinds.DoubleType, kinds.StringType, kinds.DateType, kinds.TimestampType, kinds.TimestampNTZType, kinds.DecimalType,
)  # fmt: skip
_CHOOSING = {"path", "paths", "recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter", "mergeschema"}
"""Options of the reader that choose files, and change nothing in them."""
_CHANGING = {
    "spark.sql.caseSensitive": ("true",),
    "spark.sql.files.ignoreCorruptFiles": ("true",),
    "spark.sql.files.ignoreMissingFiles": ("true",),
    "spark.sql.parquet.fieldId.read.enabled": ("true",),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("legacy", "exception"),
}
"""Settings under which Spark reads files in ways of its own."""
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_VERSION, _OLD_VERSIONS = b"org.apache.spark.version", (b"1.", b"2.")
_DEFAULT = "EXISTS_DEFAULT"
"""What Spark notes of a column that has a default where a file lacks it."""
_BATCH_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class FileScan:
    """The parts of files that tasks read, and the columns they read of them."""

    tasks: tuple[tuple[tuple[str, int], ...], ...]
    """For each task, files and the numbers of row groups."""
    schema: pa.Schema

    def answered(
        self,
        spark: SparkSession,
        run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        fields: StructType,
    ) -> DataFrame:
        """Return what `run` makes of the rows, as `mapInArrow` would."""
        tasks, schema = self.tasks, self.schema

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            numbers = (number for batch in batches for number in batch.column(0).to_pylist())
            return run(batch for number in numbers for batch in _rows(tasks[number], schema))

        return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(read, fields)


def file_scan(events: DataFrame, names: Sequence[str]) -> FileScan | None:
    """Return how workers read these columns of a table themselves; None if they cannot, or are not to."""
    spark = events.sparkSession
    who = str(spark.conf.get(SETTING, READERS[0]))
    if who not in READERS:
        raise OptionError(f"{SETTING} must be one of {', '.join(map(repr, READERS))}, not {who!r}")
    if who == "spark" or is_connect(spark) or events.isStreaming or not names:
        return None
    by_name = {field.name: field for field in events.schema.fields}
    if not all(name in by_name and _is_plain(by_name[name]) for name in names):
        return None
    if any(str(spark.conf.get(name, None)).lower() in values for name, values in _CHANGING.items()):
        return None
    paths = _paths(events)
    if not paths or len(paths) > MOST_FILES or _is_cached(events):
        return None
    schema = arrow_schema(kinds.StructType([by_name[name] for name in names]))
    groups: list[tuple[int, str, int]] = []
    for path in paths:
        sizes = _groups(path, schema)
        if sizes is None:
            return None
        groups += [(size, path, number) for number, size in enumerate(sizes)]
    return FileScan(_shared_out(spark, groups), schema)


def answered_by(
    run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    events: DataFrame,
    shown: dict[str, Column],
    fields: StructType,
) -> DataFrame:
    """Return what `run` makes of some columns of the events, whoever reads them; they are called by their numbers."""
    scan = file_scan(events, list(shown))
    if scan is not None:
        return scan.answered(events.sparkSession, run, fields)
    # By number, because mapInArrow takes a dot in a name for a step into a record.
    numbered = (each.alias(str(number)) for number, each in enumerate(shown.values()))
    return events.select(*numbered).mapInArrow(run, fields)


def _is_plain(field: kinds.StructField) -> bool:
    return isinstance(field.dataType, _PLAIN) and _DEFAULT not in (field.metadata or {})


def _is_cached(events: DataFrame) -> bool:
    level = events.storageLevel
    return level.useMemory or level.useDisk or level.useOffHeap


# -- The plan


def _paths(events: DataFrame) -> list[str] | None:
    """Return the files of a DataFrame that is nothing but columns of Parquet files; None if it is something else."""
    plan: Any = events._jdf.queryExecution().analyzed()
    while plan.nodeName() in ("SubqueryAlias", "Project"):
        if plan.nodeName() == "Project" and not _all_named(plan.projectList()):
            return None
        plan = plan.child()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    if not relation.fileFormat().getClass().getName().endswith(".ParquetFileFormat"):
        return None
    if not relation.partitionSchema().isEmpty():  # some columns are in the names of folders
        return None
    options = relation.options().keysIterator()
    while options.hasNext():
        if options.next().lower() not in _CHOOSING:
            return None
    if not {field.name for field in events.schema.fields} <= set(relation.dataSchema().fieldNames()):
        return None
    paths = [_on_disk(address) for address in relation.location().inputFiles()]
    return None if None in paths else [path for path in paths if path is not None]


def _all_named(columns: Any) -> bool:
    """Are all columns of a projection columns as they are, under their own names?"""
    each = columns.iterator()
    while each.hasNext():
        if each.next().getClass().getSimpleName() != "AttributeReference":
            return False
    return True


def _on_disk(address: str) -> str | None:
    parts = urlparse(address)
    return unquote(parts.path) if parts.scheme == "file" and not parts.netloc else None


# -- The files


def _groups(path: str, schema: pa.Schema) -> list[int] | None:
    """Return the sizes of a file's row groups; None if Spark might read the file otherwise than we would."""
    try:
        with parquet.ParquetFile(path) as file:
            metadata, there = file.metadata, file.schema_arrow
    except (pa.ArrowException, OSError):
        return None  # Spark has its own words for what is wrong
    notes = metadata.metadata or {}
    if any(key in notes for key in _OLD_CALENDAR) or notes.get(_VERSION, b"").startswith(_OLD_VERSIONS):
        return None
    if not any(name in there.names for name in schema.names):
        return None
    lower = [name.lower() for name in there.names]
    if len(set(lower)) < len(lower):
        return None
    for field in schema:
        if field.name not in there.names:
            if field.name.lower() in lower:
                return None
        elif not _is_read_alike(there.field(field.name).type, field.type):
            return None
    return [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]


def _is_read_alike(there: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(there):
        there = there.value_type
    if pa.types.is_large_string(there):
        there = pa.string()
    if pa.types.is_timestamp(there) and pa.types.is_timestamp(wanted):
        return there.unit in ("ms", "us") and (there.tz is None) == (wanted.tz is None)
    return bool(there == wanted)


def _shared_out(spark: SparkSession, groups: list[tuple[int, str, int]]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Give row groups to tasks, so that each has about as much to read."""
    most = int(spark._jsparkSession.sessionState().conf().filesMaxPartitionBytes())
    total = sum(size for size, _, _ in groups)
    count = min(len(groups), max(int(spark.sparkContext.defaultParallelism), -(-total // most)))
    tasks: list[list[tuple[str, int]]] = [[] for _ in range(count)]
    loads = [0] * count
    for size, path, number in sorted(groups, reverse=True):
        least = loads.index(min(loads))
        tasks[least].append((path, number))
        loads[least] += size
    return tuple(tuple(sorted(task)) for task in tasks)


def _rows(task: tuple[tuple[str, int], ...], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a task reads, in the columns of a schema."""
    by_path: dict[str, list[int]] = {}
    for path, number in task:
        by_path.setdefault(path, []).append(number)
    for path, numbers in by_path.items():
        try:
            with parquet.ParquetFile(path) as file:
                names = [name for name in schema.names if name in file.schema_arrow.names]
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=numbers, columns=names):
                    columns = [_column(batch, field) for field in schema]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except (pa.ArrowException, OSError) as error:
            raise ParquetError(f"{path} cannot be read any more: {' '.join(str(error).split())}") from None


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    return column if column.type == field.type else column.cast(field.type)
