"""Why does a rule match some rows, or not?

The evaluation trace of the language (`tamis.explain`), for each event and each rule that is asked about: it says what
decided, condition by condition. It is made in Python, tree by tree, so it is for some rows and some rules, as a filter
or a limit leaves them; how often each of many rules matches is counted (`tallying`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BooleanType, StringType, StructField

from tamis.errors import did_you_mean
from tamis.language import Schema
from tamis.spark.columns import ID_TYPES, column, id_type, kept_fields, names_in, require, shown_to
from tamis.spark.errors import OptionError, RejectedSubscriptionsError
from tamis.spark.file_scans import answered_by
from tamis.spark.hosting import counted, failure_count
from tamis.spark.subscriptions import Compiled, compiled, warn_of_rejected
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from tamis.language import Functions
    from tamis.spark.forests import ForestFile

ADDED = (StructField("truth", BooleanType()), StructField("why", StringType(), nullable=False))
_OUT = 256
"""So many explanations go out together."""


def explain(
    events: DataFrame,
    rules: DataFrame | Compiled,
    *,
    of: Any = None,
    id: str = "subscription_id",
    where: str = "condition",
    keep: str | Sequence[str] | None = None,
    schema: Schema | None = None,
    functions: Functions | None = None,
) -> DataFrame:
    """Return, for each event and each rule, the columns of the event, the rule's id, `truth` and `why`.

    of           the ids of the rules to explain, or one id; all rules if you do not say
    keep         the columns of the events that the result has; all of them if you do not say
    schema       what conditions may mention; the columns of the events if you do not say
    functions    those of the host that conditions may call; without them, those of the schema

    `truth` is NULL where it is unknown, and `why` the tree of the condition, a line for each part:

        ✗ AND   (1 of 2 is false)
        ├─ ✗ price < 20   (price is 25)
        └─ ? bids > 3   (bids is absent)
    """
    require_workers(events.sparkSession)
    if events.isStreaming:
        raise OptionError("explanations are for some rows of a table, and the events are a stream")
    asked = None if of is None else list(dict.fromkeys([of] if isinstance(of, str | int) else of))
    if isinstance(rules, Compiled):
        ready = rules
        _require_none_rejected(ready, asked)
    else:
        chosen = rules if asked is None else _chosen(rules, asked, id)
        schema = schema or Schema.from_spark(events)
        ready = compiled(chosen, id=id, where=where, schema=schema, shards=1, functions=functions)
        if asked is None:
            warn_of_rejected(ready)
        else:
            _require_none_rejected(ready, asked)
    names = list(events.columns) if keep is None else names_in(keep)
    require(events, names, "events")
    rule_id = StructField(ready.id, ready.id_type, nullable=False)
    fields = kept_fields(events, names, [rule_id, *ADDED])
    shown = shown_to(events, ready.attributes, names)
    forests = ready.every_forest()
    failures = failure_count(events.sparkSession, forests[0].functions) if forests else None
    kind = ID_TYPES[ready.id_type.simpleString()]
    task = Explaining(
        forests, None if asked is None else tuple(asked), ready.attributes, tuple(shown), len(names), kind, failures
    )
    return answered_by(task.run, events, shown, fields)


def _chosen(rules: DataFrame, asked: list[Any], id: str) -> DataFrame:
    """Return the rows of the rules that are asked about; raise if one has none."""
    require(rules, [id], "rules")
    id_type(rules, id)
    chosen = rules.where(column(id).isin(asked))
    known = {row[0] for row in chosen.select(column(id)).distinct().collect()}
    for each in asked:
        if each not in known:
            some = [str(row[0]) for row in rules.select(column(id)).limit(1_000).collect()]
            hint = did_you_mean(str(each), some)
            raise OptionError(f"no rule has the {id} {each!r}" + (f". {hint}" if hint else ""))
    return chosen


def _require_none_rejected(ready: Compiled, asked: list[Any] | None) -> None:
    """Raise if a rule that is asked about is none."""
    if not asked or not ready.rejected_count:
        return
    bad = ready.rejected.where(column(ready.id).isin(asked) & (column("error") != "DuplicateIdError")).collect()
    if bad:
        each, _, error, message = bad[0]
        raise RejectedSubscriptionsError(len(bad), len(asked), f"{each!r}: {error}: {message}")


@dataclass(frozen=True, slots=True)
class Explaining:
    """What to do with the events of a partition."""

    forests: tuple[ForestFile, ...]
    asked: tuple[Any, ...] | None
    attributes: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    """What the columns are called."""
    keep: int
    """The first so many columns come out again."""
    id_type: str
    """Arrow's name for it."""
    failures: Any = None
    """An accumulator for what functions of the host could not do, or None."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Explain the events of a partition, one after the other, each by all rules that are asked about."""
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns(list(self.names))
            mentioned = {path[0] for path in self.attributes}
            seen = table.select([name for name in self.names if name in mentioned])
            events: list[dict[str, Any]] = seen.to_pylist() if seen.num_columns else [{}] * table.num_rows
            kept = table.select(range(self.keep))
            rows: list[tuple[int, Any, bool | None, str]] = []
            for number, event in enumerate(events):
                rows += ((number, *row) for row in self._explained(event))
                if len(rows) >= _OUT:
                    yield from self._batches(kept, rows)
                    rows = []
            yield from self._batches(kept, rows)

    def _explained(self, event: dict[str, Any]) -> Iterable[tuple[Any, bool | None, str]]:
        explained: dict[Any, tuple[bool | None, str]] = {}
        for forest in self.forests:  # of shards, one rule may lie in several
            matcher = forest.matcher()
            with counted(self.failures, matcher.functions):
                for each in matcher.ids() if self.asked is None else self.asked:
                    if each not in explained and each in matcher:
                        explanation = matcher.explain(each, event)
                        explained[each] = explanation.truth, str(explanation)
        for each in explained if self.asked is None else self.asked:
            if each not in explained:
                raise OptionError(f"no rule has the id {each!r}")
            yield each, *explained[each]

    def _batches(self, kept: pa.Table, rows: list[tuple[int, Any, bool | None, str]]) -> Iterator[pa.RecordBatch]:
        if not rows:
            return
        numbers, ids, truths, whys = zip(*rows, strict=True)
        whole = kept.take(pa.array(np.array(numbers, np.int64))) if kept.num_columns else None
        added = {
            "id": pa.array(ids, pa.type_for_alias(self.id_type)),
            "truth": pa.array(truths, pa.bool_()),
            "why": pa.array(whys, pa.string()),
        }
        columns = [] if whole is None else whole.columns
        table = pa.Table.from_arrays([*columns, *added.values()], [*(kept.column_names if columns else ()), *added])
        yield from table.combine_chunks().to_batches()
