"""How do rows of texts become a forest?

Spark sorts the rows by id and gives each task a range of them. A task parses and compiles its rows, and the driver
joins what the tasks compiled. A row that is not a subscription (a text that does not parse, that names a column the
events do not have, an id that is NULL or that an earlier row has) is no reason to fail: it comes back with its reason,
and the others are matched. Which row is the earlier one is written into each before Spark moves it (`numbered`).
"""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StringType, StructField, StructType

from tamis.matching.admission import CandidateRow, admitted
from tamis.matching.matcher import Matcher
from tamis.matching.rejections import Rejected
from tamis.spark.columns import ID_TYPES, column
from tamis.spark.forests import folder, shares_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from tamis.language import Functions, Schema

_CHUNK = 8 << 20
"""A forest travels in pieces of so many bytes."""
PLACE = "\x00place"
"""The column that says which of two rows is the earlier one."""


def rejected_frame(spark: SparkSession, bad: list[Rejected], id: str, where: str, kind: DataType) -> DataFrame:
    """Return the rejected rows as a DataFrame."""
    texts = (StructField(name, StringType()) for name in (where, "error", "message"))
    fields = [StructField(id, kind), *texts]
    return spark.createDataFrame([row[:4] for row in bad], StructType(fields))


def numbered(rows: DataFrame) -> DataFrame:
    """Add where each row stands in the order in which Spark reads them; numbers have gaps."""
    return rows.select("*", F.monotonically_increasing_id().alias(PLACE))


# -- In parallel


def collected(
    spark: SparkSession, rows: DataFrame, schema: Schema | None, functions: Functions
) -> tuple[list[Matcher], list[Rejected]]:
    """Let Spark compile numbered rows; return the matchers in the order of the ids, and the rows that are none."""
    key: Column = column(rows.columns[0])
    parallelism = _parallelism(spark)
    ordered = rows.repartitionByRange(parallelism, key).sortWithinPartitions(key, column(PLACE))
    shared = str(folder()) if shares_disk(spark) else None
    kind = rows.schema[0].dataType.simpleString()
    parts = ordered.mapInArrow(
        _compiling(schema, shared, ID_TYPES[kind], functions),
        f"part int, chunk binary, {rejected_columns(kind)}",
    )
    table = parts.toArrow()
    bad: list[Rejected] = []
    pieces: dict[int, list[bytes]] = {}
    for row in table.to_pylist():
        if row["chunk"] is None:
            bad.append(rejection_in(row))
        else:
            pieces.setdefault(row["part"], []).append(row["chunk"])
    matchers = [matcher_of(chunks, functions, is_path=shared is not None) for _, chunks in sorted(pieces.items())]
    return matchers, in_order(bad)


def rejected_columns(kind: str) -> str:
    """Return the columns in which tasks return what they reject."""
    return f"id {kind}, condition string, error string, reason string, row bigint"


def rejection_in(row: Mapping[str, Any]) -> Rejected:
    """Return what a task rejected."""
    return Rejected(*(row[name] for name in Rejected._fields))


def in_order(bad: list[Rejected]) -> list[Rejected]:
    """Return rejected rows in the order of their table."""
    return sorted(bad, key=lambda row: row.row or 0)


def _parallelism(spark: SparkSession) -> int:
    if shares_disk(spark) or hasattr(spark, "_sc"):
        return int(spark.sparkContext.defaultParallelism)
    return int(spark.conf.get("spark.default.parallelism", "2") or 2)


def matcher_of(chunks: list[bytes], functions: Functions, *, is_path: bool) -> Matcher:
    """Return the matcher that a task compiled: of the pieces of its file, or of the path where it lies."""
    if is_path:
        path = Path(chunks[0].decode())
        matcher = Matcher.load(path, functions=functions)
        path.unlink()  # it stays mapped
        return matcher
    with TemporaryDirectory() as own:
        path = Path(own) / "part"
        path.write_bytes(b"".join(chunks))
        return Matcher.load(path, functions=functions)


def _compiling(
    schema: Schema | None, shared: str | None, kind: str, functions: Functions
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does with its rows."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context else 0
        with functions.in_use():
            matcher, bad = admitted((row for batch in batches for row in _rows(batch)), schema)
        if len(matcher):
            with TemporaryDirectory() as own:
                path = Path(shared or own) / f"{token_hex(8)}.part"
                matcher.save(path)
                chunks = [str(path).encode()] if shared else chunks_of(path.read_bytes())
            yield from (batch_of(kind, part=number, chunk=chunk) for chunk in chunks)
        for row in bad:
            yield batch_of(kind, **row._asdict())

    return run


def chunks_of(content: bytes) -> list[bytes]:
    """Cut a file into pieces that fit into a row."""
    return [content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK)]


def batch_of(kind: str, **values: Any) -> pa.RecordBatch:
    """Return a row of what tasks return: a piece of a matcher, or a rejected subscription."""
    types = {"part": pa.int32(), "chunk": pa.binary(), "id": pa.type_for_alias(kind)}
    types |= dict.fromkeys(("condition", "error", "reason"), pa.string()) | {"row": pa.int64()}
    return pa.RecordBatch.from_arrays([pa.array([values.get(name)], each) for name, each in types.items()], list(types))


def rows_of(table: pa.Table) -> list[CandidateRow]:
    """Return numbered rows in their order."""
    rows = [row for batch in table.to_batches() for row in _rows(batch)]
    return sorted(rows, key=lambda row: row.place)


def _rows(batch: pa.RecordBatch) -> Iterator[CandidateRow]:
    ids, conditions, *priorities, places = (each.to_pylist() for each in batch.columns)
    yield from map(CandidateRow, ids, conditions, priorities[0] if priorities else [0] * len(ids), places)
