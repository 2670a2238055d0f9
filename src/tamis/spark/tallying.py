"""How often does each rule match? The cheapest first answer about many rules.

No pair leaves a worker: each counts what its rules match, and sends a number for each rule. Of the events only
what rules mention is read. So what nobody ever matches, and what matches everything, is seen before anybody waits
for pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import LongType, StructField, StructType

from tamis.language import Schema
from tamis.spark.columns import ID_TYPES, column, shown_to
from tamis.spark.errors import OptionError
from tamis.spark.file_scans import answered_by
from tamis.spark.hosting import counted, failure_count
from tamis.spark.sharding import matched_in_shards
from tamis.spark.subscriptions import Compiled, compiled, warn_of_rejected
from tamis.spark.worker import TaskClock, gathered, slices
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from tamis.language import Functions
    from tamis.spark.forests import ForestFile

_FOLDED = 1_000_000
"""After so many rows of counts those of one rule are added up."""


def tally(
    events: DataFrame,
    rules: DataFrame | Compiled,
    *,
    id: str = "subscription_id",
    where: str = "condition",
    schema: Schema | None = None,
    shards: int | None = None,
    functions: Functions | None = None,
) -> DataFrame:
    """Return, for each rule, its id and `matches`: how many events it matches, 0 included.

    schema       what conditions may mention; the columns of the events if you do not say
    shards       as for `match`
    functions    those of the host that conditions may call; without them, those of the schema
    """
    if events.isStreaming:
        raise OptionError("a stream has no end to count to: count its pairs, tamis.spark.match(...).groupBy(...)")
    require_workers(events.sparkSession)
    if isinstance(rules, Compiled):
        ready = rules
    else:
        schema = schema or Schema.from_spark(events)
        ready = compiled(rules, id=id, where=where, schema=schema, shards=shards, functions=functions)
        warn_of_rejected(ready)
    rule_id = StructField(ready.id, ready.id_type, nullable=False)
    fields = StructType([rule_id, StructField("matches", LongType(), nullable=False)])
    kind = ID_TYPES[ready.id_type.simpleString()]
    shown = shown_to(events, ready.attributes, ())
    if ready.shards is not None:
        pairs = matched_in_shards(events, ready.shards, shown, 0, "pairs", kind, StructType([_list_of(ready)]))
        counts = pairs.select(column(ready.id), F.lit(1).cast("bigint").alias("matches"))
    else:
        assert ready.forest is not None
        failures = failure_count(events.sparkSession, ready.forest.functions)
        counts = answered_by(Tallying(ready.forest, tuple(shown), kind, failures).run, events, shown, fields)
    forests = ready.every_forest()
    every = events.sparkSession.range(0, len(forests), 1, max(1, len(forests))).mapInArrow(
        Naming(forests, kind).run, fields
    )
    return every.unionAll(counts).groupBy(column(ready.id)).agg(F.sum("matches").alias("matches"))


def _list_of(ready: Compiled) -> StructField:
    from pyspark.sql.types import ArrayType

    return StructField(ready.id, ArrayType(ready.id_type, containsNull=False), nullable=False)


@dataclass(frozen=True, slots=True)
class Naming:
    """A task that has nothing to count, and says of all rules that they are there."""

    forests: tuple[ForestFile, ...]
    id_type: str

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn numbers of forests into the ids of their rules, each with a count of 0."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                ids = pa.array(self.forests[number].matcher().ids(), pa.type_for_alias(self.id_type))
                yield pa.RecordBatch.from_arrays(
                    [ids, pa.repeat(pa.scalar(0, pa.int64()), len(ids))], ["id", "matches"]
                )


@dataclass(frozen=True, slots=True)
class Tallying:
    """A task that counts what the rules match of the events of a partition."""

    forest: ForestFile
    names: tuple[str, ...]
    """What the columns are called."""
    id_type: str
    """Arrow's name for it."""
    failures: Any = None
    """An accumulator for what functions of the host could not do, or None."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn events into a count for each rule that matches any of them."""
        watch = TaskClock()
        counts: list[pa.Table] = []
        rows = 0
        for numbered in gathered(batches):
            table = numbered.rename_columns(list(self.names))
            matcher = self.forest.matcher(table)
            with counted(self.failures, matcher.functions):
                for part in slices(table, watch):
                    ids = matcher.match_batch(part).column("subscription").cast(pa.type_for_alias(self.id_type))
                    watch.took(0.0, part.num_rows, len(ids))
                    counts.append(_of_each(pa.table({"id": ids}), "count"))
                    rows += counts[-1].num_rows
                    if rows >= _FOLDED:
                        counts = [_of_each(pa.concat_tables(counts), "sum")]
                        rows = counts[0].num_rows
        if counts:
            yield from _of_each(pa.concat_tables(counts), "sum").combine_chunks().to_batches()


def _of_each(table: pa.Table, how: str) -> pa.Table:
    """Return one row for each id, with the number of its rows, or the sum of their numbers."""
    grouped = table.group_by("id").aggregate([("id" if how == "count" else "matches", how)])
    return pa.table(
        {"id": grouped.column("id"), "matches": grouped.column(1 if grouped.column_names[0] == "id" else 0)}
    )
