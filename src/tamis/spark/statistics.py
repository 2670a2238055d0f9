"""What does history say of events?

One job over a table of events counts the values of every attribute: tasks count batch by batch, Spark adds up, and one
task for each attribute keeps what `tamis.selectivity.Statistics` keeps: how often it is absent, the frequent values,
a histogram of the others. With it subscriptions are laid out before the first event comes, and pruned.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions
from pyspark.sql.types import BinaryType, MapType, StructType

from tamis.matching.columns import Events
from tamis.selectivity import Statistics, files
from tamis.selectivity.statistics import BUCKET_COUNT, FREQUENT_COUNT, counted_as, summarised
from tamis.spark.columns import column, names_in, require
from tamis.spark.errors import OptionError
from tamis.spark.folders import file_at
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from tamis.spark.folders import Place

_COUNTS = "attribute string, value binary, count bigint"
_KEPT = "attribute string, kept binary"
_EVENTS = ""
"""The attribute under which the events themselves are counted."""


def statistics(
    events: DataFrame,
    attributes: str | Sequence[str] | None = None,
    *,
    frequent_count: int = FREQUENT_COUNT,
    bucket_count: int = BUCKET_COUNT,
) -> Statistics:
    """Count the values of a table of events; of all columns, or of some.

    `save_statistics` writes the result to a Parquet file, anywhere that Spark reaches; `load_statistics` reads it.
    """
    require_workers(events.sparkSession)
    names = list(events.columns) if attributes is None else names_in(attributes)
    require(events, names, "events")
    kinds = {field.name: field.dataType for field in events.schema.fields}
    paths = [path for name in names for path in _paths((name,), kinds[name])]
    numbered = events.select(*(column(name).alias(str(number)) for number, name in enumerate(names)))
    counted = numbered.mapInArrow(_counting(names, paths), _COUNTS)
    summed = counted.groupBy("attribute", "value").agg(functions.sum("count").alias("count"))
    kept = summed.groupBy("attribute").applyInArrow(_summarising(frequent_count, bucket_count), _KEPT)
    parts = {row["attribute"]: pickle.loads(row["kept"]) for row in kept.collect()}
    event_count, _ = parts.pop(_EVENTS, (0, None))
    # A task knows how many events have its attribute; how many have not, only who knows the number of all.
    kept_attributes = {
        name: replace(about, absent=event_count - present) for name, (present, about) in sorted(parts.items())
    }
    return Statistics(event_count, kept_attributes)


def save_statistics(statistics: Statistics, path: Place, spark: SparkSession | None = None) -> None:
    """Write statistics to a Parquet file: a path, or an address of a file system that the session knows."""
    buffer = io.BytesIO()
    files.save(statistics, buffer)
    folder, name = file_at(path, spark)
    folder.put(name, buffer.getvalue())


def load_statistics(path: Place, spark: SparkSession | None = None) -> Statistics:
    """Read statistics from a Parquet file that `save_statistics` or `tamis.selectivity.files.save` has written."""
    folder, name = file_at(path, spark)
    content = folder.read(name)
    if content is None:
        raise OptionError(f"there are no statistics at {path}")
    return files.load(pa.BufferReader(content))


def _paths(path: tuple[str, ...], kind: DataType) -> Iterator[tuple[str, ...]]:
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _paths((*path, field.name), field.dataType)
    elif not isinstance(kind, BinaryType | MapType):
        yield path


def _counting(
    names: list[str], paths: list[tuple[str, ...]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does with its events: counts the values of each batch."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            events = Events(pa.Table.from_batches([batch]).rename_columns(names))
            yield _counts(_EVENTS, {None: batch.num_rows})
            for path in paths:
                yield _counts(".".join(path), _counted(events, path))

    return run


def _counted(events: Events, path: tuple[str, ...]) -> dict[Any, int]:
    array = events.arrow(path)
    counter: Counter[Any] = Counter()
    if array is None or isinstance(array.type, pa.ListType):
        for value in events.values(path):
            if value is not None:
                counter[counted_as(value)] += 1
        return counter
    counts = pc.value_counts(array)
    distinct = Events(pa.table({"": counts.field("values")})).values(("",))
    for value, count in zip(distinct, counts.field("counts").to_pylist(), strict=True):
        if value is not None:
            counter[counted_as(value)] += count
    return counter


def _counts(attribute: str, counts: dict[Any, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([attribute] * len(counts), pa.string()),
            pa.array([pickle.dumps(value) for value in counts], pa.binary()),
            pa.array(list(counts.values()), pa.int64()),
        ],
        ["attribute", "value", "count"],
    )


def _summarising(frequent_count: int, bucket_count: int) -> Callable[[pa.Table], pa.Table]:
    """Return what is done with the counts of one attribute."""

    def run(table: pa.Table) -> pa.Table:
        name = table["attribute"][0].as_py()
        counter: Counter[Any] = Counter()
        # In an order of their own, so that of two values that are equally frequent always the same is kept.
        for value, count in sorted(zip(table["value"].to_pylist(), table["count"].to_pylist(), strict=True)):
            counter[pickle.loads(value)] += count
        total = counter.total()
        about = None if name == _EVENTS else summarised(counter, total, frequent_count, bucket_count)
        kept = (total, about)
        return pa.table({"attribute": [name], "kept": pa.array([pickle.dumps(kept)], pa.binary())})

    return run
