"""How do rows of texts become a forest?

Spark sorts the rows by id and gives each task a range of them. A task parses and compiles its rows, and the driver
joins what the tasks compiled. A row that is no subscription (a text that does not parse, that names a column the events
do not have, an id that is NULL or not the only one of its kind) is no reason to fail: it comes back with the
parser's message, and the others are matched.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from tamis.errors import LanguageError, TamisError
from tamis.language import Schema, parse
from tamis.matching.matcher import Matcher
from tamis.spark.columns import ID_TYPES, column
from tamis.spark.forests import folder, shares_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType


Row: TypeAlias = tuple[Any, Any, Any]
"""An id, a text and a priority, as they stand in the table."""
Rejected: TypeAlias = tuple[Any, Any, str, str]
"""An id, a text, the kind of mistake and the message."""

_CHUNK = 8 << 20
"""A forest travels in pieces of so many bytes."""


def told(rejected: Iterable[Any]) -> str:
    """Name a rejected row in one line or two."""
    subscription_id, _, error, message = rejected
    return f"{subscription_id!r}: {error}: {message}"


def rejected_frame(spark: SparkSession, bad: list[Rejected], id: str, where: str, kind: DataType) -> DataFrame:
    """Return the rejected rows as a DataFrame."""
    texts = (StructField(name, StringType()) for name in (where, "error", "message"))
    fields = [StructField(id, kind), *texts]
    return spark.createDataFrame(bad, StructType(fields))


# -- In parallel


def collected(spark: SparkSession, rows: DataFrame, schema: Schema | None) -> tuple[list[Matcher], list[Rejected]]:
    """Let Spark compile the rows; return the matchers in the order of the ids, and the rows that are none."""
    key: Column = column(rows.columns[0])
    parallelism = _parallelism(spark)
    ordered = rows.repartitionByRange(parallelism, key).sortWithinPartitions(key)
    shared = str(folder()) if shares_disk(spark) else None
    kind = rows.schema[0].dataType.simpleString()
    parts = ordered.mapInArrow(
        _compiling(schema, shared, ID_TYPES[kind]),
        f"part int, chunk binary, id {kind}, condition string, error string, message string",
    )
    table = parts.toArrow()
    bad: list[Rejected] = []
    pieces: dict[int, list[bytes]] = {}
    for row in table.to_pylist():
        if row["chunk"] is None:
            bad.append((row["id"], row["condition"], row["error"], row["message"]))
        else:
            pieces.setdefault(row["part"], []).append(row["chunk"])
    return [matcher_of(chunks, is_path=shared is not None) for _, chunks in sorted(pieces.items())], bad


def _parallelism(spark: SparkSession) -> int:
    if shares_disk(spark) or hasattr(spark, "_sc"):
        return int(spark.sparkContext.defaultParallelism)
    return int(spark.conf.get("spark.default.parallelism", "2") or 2)


def matcher_of(chunks: list[bytes], *, is_path: bool) -> Matcher:
    """Return the matcher that a task compiled: of the pieces of its file, or of the path where it lies."""
    if is_path:
        path = Path(chunks[0].decode())
        matcher = Matcher.load(path)
        path.unlink()  # it stays mapped
        return matcher
    with TemporaryDirectory() as own:
        path = Path(own) / "part"
        path.write_bytes(b"".join(chunks))
        return Matcher.load(path)


def _compiling(
    schema: Schema | None, shared: str | None, kind: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does with its rows."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context else 0
        rows = [row for batch in batches for row in _rows(batch)]
        matcher, bad = compiled_rows(rows, schema)
        if len(matcher):
            with TemporaryDirectory() as own:
                path = Path(shared or own) / f"{token_hex(8)}.part"
                matcher.save(path)
                chunks = [str(path).encode()] if shared else chunks_of(path.read_bytes())
            yield from (batch_of(kind, part=number, chunk=chunk) for chunk in chunks)
        for subscription_id, condition, error, message in bad:
            yield batch_of(kind, id=subscription_id, condition=condition, error=error, message=message)

    return run


def chunks_of(content: bytes) -> list[bytes]:
    """Cut a file into pieces that fit into a row."""
    return [content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK)]


def batch_of(kind: str, **values: Any) -> pa.RecordBatch:
    """Return a row of what tasks return: a piece of a matcher, or a rejected subscription."""
    types = {"part": pa.int32(), "chunk": pa.binary(), "id": pa.type_for_alias(kind)}
    types |= dict.fromkeys(("condition", "error", "message"), pa.string())
    return pa.RecordBatch.from_arrays([pa.array([values.get(name)], each) for name, each in types.items()], list(types))


def rows_of(table: pa.Table) -> list[Row]:
    """Return the rows of a table in the order of their ids, as Spark sorts them."""
    rows = [row for batch in table.to_batches() for row in _rows(batch)]
    return sorted(rows, key=lambda row: (row[0] is not None, row[0] if row[0] is not None else 0))


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    ids, conditions, *priorities = (each.to_pylist() for each in batch.columns)
    yield from zip(ids, conditions, priorities[0] if priorities else [0] * len(ids), strict=True)


def compiled_rows(rows: list[Row], schema: Schema | None) -> tuple[Matcher, list[Rejected]]:
    """Compile rows; return the matcher, and the rows that are no subscriptions.

    >>> matcher, bad = compiled_rows([(1, "price < 20", 0), (2, "price <", 0)], None)
    >>> len(matcher), bad[0][:3]
    (1, (2, 'price <', 'ExpressionSyntaxError'))
    """
    counts = Counter(row[0] for row in rows)
    bad: list[Rejected] = []
    usable: list[Row] = []
    for subscription_id, condition, priority in rows:
        if subscription_id is None:
            bad.append((None, condition, "NullIdError", "a subscription has an id, and this one has NULL"))
        elif condition is None:
            bad.append((subscription_id, None, "NullConditionError", "a condition is a text, and this one is NULL"))
        elif counts[subscription_id] > 1:
            message = f"{counts[subscription_id]} subscriptions have this id; which one is meant?"
            bad.append((subscription_id, condition, "DuplicateIdError", message))
        else:
            usable.append((subscription_id, condition, priority or 0))
    matcher = Matcher(schema=schema)
    try:
        matcher.add_many(usable)
    except TamisError:  # then it is worth the time to ask each of them
        good = []
        for subscription_id, condition, priority in usable:
            try:
                parse(condition, schema)
                Matcher(schema=schema).add(subscription_id, condition, priority=priority)
            except TamisError as error:
                bad.append((subscription_id, condition, type(error).__name__, _message(error)))
            else:
                good.append((subscription_id, condition, priority))
        matcher = Matcher(schema=schema)
        matcher.add_many(good)
    return matcher, bad


def _message(error: TamisError) -> str:
    return LanguageError.__str__(error) if isinstance(error, LanguageError) else str(error)
