"""How do many machines make test traffic? Each makes parts, of which none needs another.

Rows are the same as those that one process makes of the same parts, whatever the cluster is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

_BATCH = 10_000
"""So many rows go to Java at once."""


def generated(spark: SparkSession, make: Callable[[int], pa.Table], part_count: int) -> DataFrame:
    """Return tables that are made by their numbers as one, a partition for each of them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    plain = _plain(make(0).slice(0, 0)).schema  # one is made here, so that a mistake is one of the caller

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _plain(make(number)).cast(plain).to_batches(max_chunksize=_BATCH)

    return spark.range(0, part_count, 1, part_count).mapInArrow(made, from_arrow_schema(plain))


def _plain(table: pa.Table) -> pa.Table:
    """Return a table without dictionaries, which Spark's tables do not have."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    return table
