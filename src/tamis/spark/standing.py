"""What has a sequence or a change to tell, where the events are a table or a stream of Spark's?

Two steps, as for ranked subscriptions (`top_k`). The first knows no history: by the matcher it finds the events that
matter to a subscription (its `interest`), and the group that each belongs to. The second looks at one group of one
subscription, in order of time, and keeps its state: for a table from the first event to the last, for a stream in
Spark's state store, with timers for what is due although nothing comes (`standing_state`). Both tell what
`tamis.Standing` tells, if that is given the events in order of time, those of one instant in the order of their ids,
and the end of time afterwards. What has no time is left out. Two events may have one id: each is an event of its own.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType, TimestampType

from tamis.language import Schema
from tamis.language.functions import functions_of
from tamis.spark.columns import column, require
from tamis.spark.errors import OptionError
from tamis.spark.event_time import MICROS
from tamis.spark.hosting import AskedOf, counted, failure_count
from tamis.spark.standing_state import GROUPED, Notifications, notification_rows
from tamis.spark.timed_events import (
    arrow_kinds,
    compiled_conditions,
    entering_rows,
    read_texts,
    require_store,
    require_timed,
    seconds_of,
    tables_of,
    without_attributes,
)
from tamis.spark.top_k import top_k
from tamis.standing import Change, Sequence, interest, parse_subscription
from tamis.standing.groups import group_of
from tamis.standing.references import paths_of, projected
from tamis.standing.solo import Solo
from tamis.standing.storage import decoded, encoded
from tamis.topk import Ranked

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from tamis.language import Expression, Functions
    from tamis.matching.columns import Path
    from tamis.spark.forests import ForestFile

    Wanted = Expression | Sequence | Change


def notify(
    events: DataFrame,
    subscriptions: DataFrame,
    *,
    time: str = "time",
    event: str = "event_id",
    id: str = "subscription_id",
    where: str = "condition",
    lateness: str = "0 seconds",
    until: dt.datetime | None = None,
    schema: Schema | None = None,
    on_error: str = "raise",
    functions: Functions | None = None,
) -> DataFrame:
    """Return who is told of which events, and when: the subscription's id, `events` (ids), `at` and `change`.

    events           a table or a stream, with a column of times and one of ids; other columns are attributes
    subscriptions    a table of ids and texts: conditions, sequences, changes, and ranked ones, which are `top_k`'s
    lateness         of a stream: an event may come so much later than others of a later time
    until            of a table: the end of time, up to which something that did not happen is told
    schema           what texts may mention; the columns of the events if you do not say
    on_error         "raise": fail at what is no subscription; "reject": leave it out, with a warning
    functions        those of the host that texts may call; without them, those of the schema

    What a stream tells is final: it comes once all events up to that moment have. A sequence without WITHIN would be
    kept for ever by a stream, and is refused there.
    """
    require_timed(events, time, event, until)
    require(subscriptions, (id, where), "subscriptions")
    kinds = arrow_kinds(subscriptions, id, events, event)
    hosted = functions_of(functions, schema)
    schema = (schema or Schema.from_spark(events)).calling(hosted)
    parsed, ranked = _parsed(subscriptions, id, where, schema, on_error, is_stream=events.isStreaming)
    asked = AskedOf(parsed, hosted)
    if ranked:
        kind = StructType([subscriptions.schema[id], StructField("ranked", StringType())])
        table = subscriptions.sparkSession.createDataFrame(list(ranked.items()), kind)
        best = top_k(events, table, time=time, event=event, id=id, lateness=lateness, until=until, schema=schema)
        ranked_rows = best.select(
            column(id),
            F.array(column(event)).alias("events"),
            column("at"),
            F.lit(None).cast("boolean").alias("change"),
        )
        if not asked:
            return ranked_rows
    interests = {subscription_id: interest(wanted) for subscription_id, wanted in asked.items()}
    forest, mentioned = compiled_conditions(subscriptions, id, interests, schema)
    selected, names = entering_rows(events, time, event, tuple(dict.fromkeys([*mentioned, *_mentioned(asked)])))
    grouping = Grouping(forest, names, asked, kinds, failure_count(events.sparkSession, hosted))
    # Ids may be NULL there, whatever the tables say: a row more is nobody's (`Grouping`).
    subscription_id, event_id = (
        StructField(each.name, each.dataType) for each in (subscriptions.schema[id], events.schema[event])
    )
    grouped_schema = StructType([subscription_id, GROUPED[0], event_id, *GROUPED[1:]])
    grouped = selected.mapInArrow(grouping.run, grouped_schema)
    out = StructType(
        [
            StructField(id, subscription_id.dataType, nullable=False),
            StructField("events", ArrayType(event_id.dataType), nullable=False),
            StructField("at", TimestampType(), nullable=False),
            StructField("change", BooleanType()),
        ]
    )
    if events.isStreaming:
        require_store(events, "notify")
        # To Spark, what has the time of the watermark itself is late; another event of that instant may still come.
        timed_groups = grouped.withWatermark("at", f"{lateness} 1 millisecond").groupBy(column(id), column("group"))
        operator = Notifications(asked, event_id.dataType.simpleString(), tuple(out.names), schema)
        notified = timed_groups.transformWithState(operator, out, outputMode="Append", timeMode="EventTime")
        # The two must not share tasks. Where both have one partition, Spark's union computes them one after the other
        # in one task, and then nothing came of the first; behind an exchange, the ranked ones have their own tasks.
        return notified.unionByName(ranked_rows.repartition(1)) if ranked else notified
    history = _history(asked, math.inf if until is None else seconds_of(until), schema, kinds[1])
    notified = grouped.where(column(id).isNotNull()).groupBy(column(id), column("group")).applyInArrow(history, out)
    return notified.unionByName(ranked_rows) if ranked else notified


def _parsed(
    subscriptions: DataFrame, id: str, where: str, schema: Schema, on_error: str, *, is_stream: bool
) -> tuple[dict[Any, Wanted], dict[Any, str]]:
    """Read the subscriptions; of ranked ones, which are `top_k`'s, the texts."""

    def understood(text: str) -> Wanted | str:
        wanted = parse_subscription(text, schema)
        if isinstance(wanted, Ranked):
            return text
        if is_stream and isinstance(wanted, Sequence) and wanted.within is None:
            raise OptionError("a stream would keep it for ever; add WITHIN 1 DAY, or another span")
        return wanted

    read = read_texts(subscriptions, id, where, understood, "all", on_error)
    asked = {key: wanted for key, wanted in read.items() if not isinstance(wanted, str)}
    return asked, {key: text for key, text in read.items() if isinstance(text, str)}


def _paths(wanted: Wanted) -> tuple[Path, ...]:
    """Return what a subscription asks of an event."""
    match wanted:
        case Sequence():
            asked = {path for step in wanted.steps for path in paths_of(step.condition)}
            own = {path for path in asked if path[0] not in wanted.names}
            return tuple(sorted(own | {path[1:] for path in asked - own}))
        case Change():
            conditions = (wanted.condition, wanted.where, *(() if wanted.until is None else (wanted.until,)))
            return tuple(sorted({path for each in conditions for path in paths_of(each)}))
    return tuple(sorted(paths_of(wanted)))


def _mentioned(asked: dict[Any, Wanted]) -> list[Path]:
    """Return everything that subscriptions mention, what they group by included."""
    return sorted({path for wanted in asked.values() for path in (*_paths(wanted), *getattr(wanted, "per", ()))})


@dataclass
class Grouping:
    """The first step: to which subscriptions does an event matter, in which group, and what of it do they ask for?"""

    forest: ForestFile
    names: tuple[str, ...]
    """What the attributes are called."""
    asked: AskedOf
    kinds: tuple[str, str]
    """Arrow's names for the types of the two ids."""
    failures: Any = None
    """An accumulator for what functions of the host could not do, or None."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn events into rows of a subscription's id, a group, the event's id, its time and its attributes."""
        paths = {subscription_id: _paths(wanted) for subscription_id, wanted in self.asked.items()}
        for table in tables_of(batches):
            yield self._grouped(table, paths)

    def _grouped(self, table: pa.Table, paths: dict[Any, tuple[Path, ...]]) -> pa.RecordBatch:
        ids = table.column(0).to_pylist()
        times = table.column(1).cast(pa.timestamp("us", "UTC"))
        events = table.select(range(2, table.num_columns)).rename_columns(list(self.names))
        attributes = events if events.num_columns else without_attributes(len(ids))
        matcher = self.forest.matcher(attributes)
        with counted(self.failures, matcher.functions):
            pairs = matcher.match_batch(attributes)
        rows = events.to_pylist() if events.num_columns else [{}] * len(ids)
        numbers, subscriptions = pairs.column("event").to_pylist(), pairs.column("subscription").to_pylist()
        groups, kept = [], []
        for number, subscription_id in zip(numbers, subscriptions, strict=True):
            wanted = self.asked[subscription_id]
            groups.append(_text(group_of(rows[number], getattr(wanted, "per", ()))))
            kept.append(_text(projected(rows[number], paths[subscription_id])))
        at = times.take(pairs.column("event")).combine_chunks()
        at = at.combine_chunks() if isinstance(at, pa.ChunkedArray) else at
        # One row more, which is nobody's, so that time goes on for those whom these events do not concern.
        latest = pa.array([pc.max(times).as_py()], at.type)
        return pa.RecordBatch.from_arrays(
            [
                pa.array([*subscriptions, None], pa.type_for_alias(self.kinds[0])),
                pa.array([*groups, None], pa.string()),
                pa.array([*(ids[number] for number in numbers), None], pa.type_for_alias(self.kinds[1])),
                pa.concat_arrays([at, latest]),
                pa.array([*kept, None], pa.string()),
            ],
            ["id", "group", "event", "at", "kept"],
        )


def _text(value: Any) -> str:
    """Write a group, or attributes, as a text that is equal where they are.

    >>> _text((1, None)), _text({"b": 1, "a": 2})
    ('{"tuple":[1,null]}', '{"record":[["a",2],["b",1]]}')
    """
    if isinstance(value, dict):
        value = dict(sorted(value.items()))
    return json.dumps(encoded(value), ensure_ascii=False, separators=(",", ":"))


def _history(
    asked: dict[Any, Wanted], until: float, schema: Schema, event_kind: str
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """Return the second step for a table: it takes all events of a group at once."""

    def run(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        subscription_id = key[0].as_py()
        solo = Solo(asked[subscription_id], schema=schema)
        ordered = rows.sort_by([(rows.column_names[place], "ascending") for place in (3, 2, 4)])
        micros = ordered.column(3).cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
        notifications = []
        for moment, event_id, kept in zip(
            micros, ordered.column(2).to_pylist(), ordered.column(4).to_pylist(), strict=True
        ):
            notifications += solo.take(moment / MICROS, event_id, decoded(json.loads(kept)))
        notifications += solo.advance(until, inclusive=True)
        return notification_rows(subscription_id, notifications, rows.schema.field(0), event_kind)

    return run
