"""Which files can be matched?

Parquet, JSON lines and CSV, files or folders of them, anywhere that Spark can read. The ending of a path says what it
holds; a CSV file has a line of names, and its types are guessed from its values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions
from pyspark.sql.types import ArrayType, StructType

from tamis.sources.errors import TableError
from tamis.sources.tables import format_of
from tamis.spark.columns import column
from tamis.spark.sources import register

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

CSV = {"header": "true", "inferSchema": "true", "escape": '"', "multiLine": "true"}
"""How CSV is read: with a line of names, a quote within quotes written twice, as everybody but Spark writes it, and
lines within quotes. So one task reads a file; with multiLine=false several do, and break such lines."""


def read_table(
    spark: SparkSession, path: str, schema: str | None = None, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the table of a path, with the columns of `schema` if they are said, and with options of Spark's reader."""
    kind = format_of(path)
    reader = spark.read.format(kind).options(**{**(CSV if kind == "csv" else {}), **(options or {})})
    table = (reader.schema(schema) if schema else reader).load(path)
    if kind == "json" and not schema and "_corrupt_record" in table.columns:
        raise TableError(
            f"{path} has lines that are not JSON objects; a file of JSON lines has one on each line "
            "(mode=DROPMALFORMED passes over others)"
        )
    return table


def file_events(
    spark: SparkSession,
    path: str,
    *,
    schema: str | None = None,
    keep: Sequence[str] = (),
    streaming: bool = False,
    remembered: str | None = None,
    options: Mapping[str, str] | None = None,
    kind: str = "parquet",
    files: int = 100,
) -> DataFrame:
    """Return the events of files, as a table of what is there, or as a stream of what arrives in a folder.

    schema    their columns; seen from the files if nobody says, each time: `remembered` is for those who cannot
    keep      whatever is to be kept of events is in the files
    kind      of a stream: what arrives (of a table the ending of its path says that)
    files     of a stream: the most files in a micro-batch
    """
    if not streaming:
        return read_table(spark, path, schema, options)
    register(spark)
    settings = {**(CSV if kind == "csv" else {}), **(options or {})}
    limit = "max_files" if kind == "parquet_folder" else "maxFilesPerTrigger"
    columns = schema or spark.read.format(kind).options(**settings).load(path).schema
    return spark.readStream.format(kind).schema(columns).options(**{limit: str(files), **settings}).load(path)


def read_in_order(spark: SparkSession, path: str) -> DataFrame:
    """Return the table of a path with its rows in order: files by their names, then as they stand in them."""
    table = read_table(spark, path)
    if len(table.inputFiles()) < 2:
        return table
    return table.orderBy("_metadata.file_path", "_metadata.file_block_start", functions.monotonically_increasing_id())


def write_table(frame: DataFrame, path: str, *, replaces: bool = True) -> None:
    """Write a table to a path, as a folder of files, replacing what is there; lists and records in CSV are JSON."""
    kind = format_of(path)
    if kind == "csv":
        nested = {field.name for field in frame.schema.fields if isinstance(field.dataType, ArrayType | StructType)}
        frame = frame.select(
            *(functions.to_json(column(name)).alias(name) if name in nested else column(name) for name in frame.columns)
        )
    writer = frame.write.format(kind).mode("overwrite" if replaces else "error")
    (writer.options(header="true", escape='"') if kind == "csv" else writer).save(path)
