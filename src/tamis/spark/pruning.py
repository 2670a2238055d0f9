"""How are more subscriptions pruned than one process can hold?

The order in which a subscription would be pruned depends on it alone, and on what is known of predicates. So workers
compute these sequences side by side, and one sort puts the steps of all of them in the order in which a queue would
take them: a step cannot come before the one that it follows, so it stands under the greatest key up to it. Equal keys
are in order of the ids; a local `Pruner` to which the subscriptions were added in that order takes the same steps.

A goal is a cut in that order. Workers compute the sequences again, which is cheaper than to move them, and take what
lies before the cut.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

from tamis.errors import TamisError
from tamis.language.expressions import TRUE, Expression
from tamis.language.parser import parse
from tamis.language.rewrites.monotone import leaves_of
from tamis.pruning import kernels
from tamis.pruning.layout import laid_out
from tamis.pruning.measures import measure_of
from tamis.pruning.sequencing import PruningSequences, sequences
from tamis.ragged import places_of
from tamis.spark.columns import require
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from tamis.pruning.goals import Goal
    from tamis.pruning.measures import Measure
    from tamis.selectivity.estimates import Share

KEYS = ("key_1", "key_2", "key_3")
"""The columns that steps are in order of, before the id and the step."""


def pruning_order(
    subscriptions: DataFrame,
    share: Share,
    measure: str | Measure = "accuracy",
    *,
    id: str = "subscription_id",
    where: str = "condition",
    occurrence: Callable[[Expression], float] | None = None,
) -> DataFrame:
    """Return the prunings of all subscriptions, in the order in which a queue takes them.

    A row is a step: the subscription's id, which of its steps it is (from 1), its key, what the filter then takes
    (`memory_bytes`, `leaf_count`), and what the step saved (`saved_bytes`, `saved_leaves`). Rows whose condition is no
    condition have no steps.
    """
    task = _Task.of(subscriptions, share, measure, id, where, occurrence)
    schema = StructType([subscriptions.schema[id], *_STEP_FIELDS])
    steps = subscriptions.select(id, where).mapInArrow(task.steps, schema)
    return steps.orderBy(*KEYS, id, "step")


def pruned(
    subscriptions: DataFrame,
    share: Share,
    goal: Goal,
    measure: str | Measure = "accuracy",
    *,
    id: str = "subscription_id",
    where: str = "condition",
    occurrence: Callable[[Expression], float] | None = None,
) -> DataFrame:
    """Return the subscriptions as they are when a goal is reached: their ids, conditions, and the steps taken.

    Rows whose condition is not a condition are returned as they are.
    """
    task = _Task.of(subscriptions, share, measure, id, where, occurrence)
    limit = _last_step(subscriptions, task, goal)
    fields = [subscriptions.schema[id], StructField(where, StringType()), StructField("steps", IntegerType(), False)]
    given = subscriptions.select(id, where)
    return given.mapInArrow(_Cutting(task, limit).cut, StructType(fields))


_STEP_FIELDS = [
    StructField("step", IntegerType(), False),
    *(StructField(name, DoubleType(), False) for name in KEYS),
    *(StructField(name, LongType(), False) for name in ("memory_bytes", "leaf_count", "saved_bytes", "saved_leaves")),
]
_Limit = tuple[float, float, float, Any, int]
"""The last step that is taken: its key, the id and which of its steps."""


@dataclass(frozen=True)
class _Task:
    """What workers need to know."""

    share: Share
    measure: Measure
    id: str
    where: str
    occurrence: Callable[[Expression], float]

    @classmethod
    def of(
        cls,
        subscriptions: DataFrame,
        share: Share,
        measure: str | Measure,
        id: str,
        where: str,
        occurrence: Callable[[Expression], float] | None,
    ) -> _Task:
        require(subscriptions, [id, where], "subscriptions")
        require_workers(subscriptions.sparkSession)
        order = measure_of(measure)
        if occurrence is None:
            counts = _occurrences(subscriptions, where) if "occurrence" in order.dimensions else {}
            occurrence = _Occurrences(counts)
        return cls(share, order, id, where, occurrence)

    def sequences_of(self, batch: pa.RecordBatch) -> PruningSequences:
        filters = [_condition(text) for text in batch.column(1).to_pylist()]
        return sequences(filters, self.share, self.measure, occurrence=self.occurrence)

    def steps(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn subscriptions into their steps."""
        for batch in batches:
            sequences = self.sequences_of(batch)
            table = sequences.table
            owners = np.repeat(np.arange(len(sequences)), table.step_counts)
            places = places_of(table.starts[:-1], table.step_counts)
            numbers = places - table.starts[owners]
            keys = table.keys.copy()
            kernels.running_maxima(table.starts, table.step_counts, keys)
            sizes = table.sizes[places].astype(np.int64)
            before = np.where(
                (numbers == 0)[:, None], table.first_sizes[owners], table.sizes[np.maximum(places - 1, 0)]
            ).astype(np.int64)
            columns = [
                batch.column(0).take(pa.array(owners)),
                pa.array((numbers + 1).astype(np.int32)),
                *(pa.array(keys[places, part]) for part in range(3)),
                *(pa.array(sizes[:, part]) for part in range(2)),
                *(pa.array(before[:, part] - sizes[:, part]) for part in range(2)),
            ]
            yield pa.RecordBatch.from_arrays(columns, [self.id, *(field.name for field in _STEP_FIELDS)])


@dataclass(frozen=True)
class _Cutting:
    """Take the steps up to a limit; None takes nothing."""

    task: _Task
    limit: _Limit | None

    def cut(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn subscriptions into pruned ones."""
        for batch in batches:
            sequences = self.task.sequences_of(batch)
            keys = sequences.table.keys.copy()
            kernels.running_maxima(sequences.table.starts, sequences.table.step_counts, keys)
            ids, texts = batch.column(0).to_pylist(), batch.column(1).to_pylist()
            steps = [self._taken(sequences, keys, number, each) for number, each in enumerate(ids)]
            pruned_texts = [
                str(sequences.expression(number, count)) if count else text
                for number, (text, count) in enumerate(zip(texts, steps, strict=True))
            ]
            columns = [batch.column(0), pa.array(pruned_texts, pa.string()), pa.array(steps, pa.int32())]
            yield pa.RecordBatch.from_arrays(columns, [self.task.id, self.task.where, "steps"])

    def _taken(self, sequences: PruningSequences, keys: Any, number: int, each: Any) -> int:
        if self.limit is None:
            return 0
        begin = int(sequences.table.starts[number])
        taken = 0
        for step in range(1, int(sequences.table.step_counts[number]) + 1):
            if (*keys[begin + step - 1].tolist(), each, step) > self.limit:
                break
            taken = step
        return taken


def _last_step(subscriptions: DataFrame, task: _Task, goal: Goal) -> _Limit | None:
    """Return the last step before a goal is reached; None if it is reached already."""
    schema = StructType([subscriptions.schema[task.id], *_STEP_FIELDS])
    steps = subscriptions.select(task.id, task.where).mapInArrow(task.steps, schema)
    columns = [*KEYS, task.id, "step", "saved_bytes", "saved_leaves"]
    table = steps.orderBy(*KEYS, task.id, "step").select(*columns).toArrow()
    total = table.num_rows
    last = min(total if goal.count is None else goal.count, goal.most_of(total))
    if goal.threshold is not None:
        firsts = table[KEYS[0]].to_numpy()
        last = min(last, int(np.searchsorted(firsts, task.measure.bound(goal.threshold), side="right")))
    if goal.reduction is not None or goal.memory_bytes is not None:
        sizes = subscriptions.select(task.id, task.where).mapInArrow(_Sizing(task).sizes, "bytes long, leaves long")
        all_bytes, all_leaves = (sum(column.to_pylist()) for column in sizes.toArrow().columns)
        if goal.reduction is not None:
            gone = np.concatenate([[0], np.cumsum(table["saved_leaves"].to_numpy())])
            last = min(last, _first(gone >= goal.reduction * all_leaves, total))
        if goal.memory_bytes is not None:
            left = all_bytes - np.concatenate([[0], np.cumsum(table["saved_bytes"].to_numpy())])
            last = min(last, _first(left <= goal.memory_bytes, total))
    if not last:
        return None
    one, two, three, key, step = (table[name][last - 1].as_py() for name in columns[:5])
    return one, two, three, key, step


def _first(flags: Any, otherwise: int) -> int:
    places = np.flatnonzero(flags)
    return int(places[0]) if len(places) else otherwise


@dataclass(frozen=True)
class _Sizing:
    """How large are the subscriptions as they are?"""

    task: _Task

    def sizes(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            totals = self.task.sequences_of(batch).table.first_sizes.sum(0, dtype=np.int64).tolist()
            yield pa.RecordBatch.from_arrays([pa.array([each]) for each in totals], ["bytes", "leaves"])


def _condition(text: str | None) -> Expression:
    try:
        return TRUE if text is None else parse(text)
    except TamisError:
        return TRUE


# -- Occurrences: how many subscriptions use a predicate, counted in a job of its own


@dataclass(frozen=True)
class _Occurrences:
    counts: Mapping[str, int]

    def __call__(self, predicate: Expression) -> float:
        return float(self.counts.get(str(predicate), 0))


def _occurrences(subscriptions: DataFrame, where: str) -> dict[str, int]:
    predicates = subscriptions.select(where).mapInArrow(_counted, "predicate string, users long")
    return {row[0]: row[1] for row in predicates.groupBy("predicate").sum("users").collect()}


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        users: Counter[str] = Counter()
        for tree in laid_out(map(_condition, batch.column(0).to_pylist())).trees:
            if tree is not None:
                users.update(str(leaf) for leaf in leaves_of(tree))
        columns = [pa.array(list(users), pa.string()), pa.array(list(users.values()), pa.int64())]
        yield pa.RecordBatch.from_arrays(columns, ["predicate", "users"])
