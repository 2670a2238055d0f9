"""Which subscriptions match a row, as a value beside its columns? Vectorised functions.

A step from table to table (`batch.match`) has to know the table. Where nobody may look at it before it runs (in SQL, in
the query function of a declarative pipeline), a *column function* is what remains: Spark hands it the columns that it
is called with, batch by batch, and puts its values beside the others. Of wide rows it costs Spark more than a step,
because they wait for their values, and events that match nothing get an empty list.

Spark may evaluate a deterministic function twice, once for a filter that it derives from `explode` and once for the
result; so it is told that ours is none, although it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions

from tamis.spark.errors import ColumnError, OptionError
from tamis.spark.hosting import counted
from tamis.spark.releases import ARROW_FUNCTIONS, require_release
from tamis.spark.worker import TaskClock, answers, gathered, slices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.types import DataType

    from tamis.spark.forests import ForestFile

RESULTS = ("lists", "counts")


@dataclass(frozen=True, slots=True)
class ColumnTask:
    """What to do with the columns that a function is called with: a value for each row, in the order of the rows."""

    forest: ForestFile
    names: tuple[str, ...]
    """What the columns are called."""
    result: str
    id_type: str
    """Arrow's name for it."""
    failures: Any = None
    """An accumulator, as that of `worker.Task`."""

    def values(self, batches: Iterator[Any]) -> Iterator[pa.Array]:
        """Answer the rows of a partition; many at once, and fewer where they have many matches."""
        watch = TaskClock()
        for table in gathered(map(self._named, batches)):
            yield from answered(self.forest, table, self.result, self.id_type, watch, self.failures)

    def _named(self, arrays: Any) -> pa.RecordBatch:
        columns = list(arrays) if isinstance(arrays, tuple) else [arrays]  # of one column, it is the array
        return pa.RecordBatch.from_arrays(columns, list(self.names))


@dataclass(frozen=True, slots=True)
class NamedTask:
    """What to do with records, and beside each the name of the rules that are asked about it."""

    forests: Mapping[str, ForestFile]
    result: str
    id_type: str
    failures: Any = None

    def values(self, batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        """Answer the rows of a partition, batch by batch."""
        watch = TaskClock()
        for records, names in batches:
            if not len(records):
                yield pa.array([], pa.int64() if self.result == "counts" else pa.list_(pa.type_for_alias(self.id_type)))
                continue
            forest = named_forest(self.forests, names.unique().to_pylist())
            yield from answered(forest, records_table(records), self.result, self.id_type, watch, self.failures)


def answered(
    forest: ForestFile, table: pa.Table, result: str, id_type: str, watch: TaskClock, failures: Any
) -> Iterator[pa.Array]:
    """Yield the answers to some events, slice by slice."""
    matcher = forest.matcher(table)
    with counted(failures, matcher.functions):
        for part in slices(table, watch):
            values, pairs = answers(matcher, part, result, pa.type_for_alias(id_type))
            watch.took(0.0, part.num_rows, pairs)
            yield values.cast(pa.int64()) if result == "counts" else values


def named_forest(forests: Mapping[str, ForestFile], names: list[str | None]) -> ForestFile:
    """Return the rules of a name; all rows have to name the same."""
    if len(names) != 1 or names[0] is None:
        raise OptionError("the name of the rules must be one text, the same for all rows: tamis_matches(..., 'rules')")
    forest = forests.get(names[0])
    if forest is None:
        known = ", ".join(sorted(forests)) or "none"
        raise OptionError(
            f"no rules are registered as {names[0]!r}, only {known}: tamis.spark.register(spark, rules=...)"
        )
    return forest


def records_table(records: pa.Array) -> pa.Table:
    """Return the fields of records as columns; of a record that is NULL, all are."""
    if not pa.types.is_struct(records.type):
        raise ColumnError(f"the events must be records, not {records.type}: tamis_matches(struct(*), 'rules')")
    names = [field.name for field in records.type]
    return pa.Table.from_arrays(records.flatten(), names)


def arrow_function(values: Callable[[Iterator[Any]], Iterator[pa.Array]], kind: DataType, *, takes: int) -> Any:
    """Return the function of Spark that calls ours with batches of so many columns."""
    require_release("a function over Arrow columns", ARROW_FUNCTIONS)
    made: Any = vars(functions)["arrow_udf"]

    def tamis_matches(batches: Any) -> Any:
        yield from values(batches)

    taken: Any = pa.Array if takes == 1 else tuple[pa.Array, ...]
    tamis_matches.__annotations__ = {"batches": Iterator[taken], "return": Iterator[pa.Array]}
    return made(tamis_matches, kind).asNondeterministic()
