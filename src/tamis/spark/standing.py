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
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tamis.errors import TamisError
from tamis.language import Schema
from tamis.spark.columns import ID_TYPES, column, entering, id_type, require
from tamis.spark.errors import ColumnError, OptionError, RejectedSubscriptionsError
from tamis.spark.standing_state import GROUPED, Notifications, told_rows
from tamis.spark.subscriptions import compiled
from tamis.spark.top_k import require_store, seconds_of, top_k
from tamis.spark.workers import require_workers
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

    from tamis.language import Expression
    from tamis.spark.forests import ForestFile

    Wanted = Expression | Sequence | Change

_MICROS = 1_000_000
_MOST_EVENTS = 8_192
"""So many events are matched at once: their pairs are more."""


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
) -> DataFrame:
    """Return who is told of which events, and when: the subscription's id, `events` (ids), `at` and `change`.

    events           a table or a stream, with a column of times and one of ids; other columns are attributes
    subscriptions    a table of ids and texts: conditions, sequences, changes, and ranked ones, which are `top_k`'s
    lateness         of a stream: an event may come so much later than others of a later time
    until            of a table: the end of time, up to which something that did not happen is told
    schema           what texts may mention; the columns of the events if you do not say

    What a stream tells is final: it comes once all events up to that moment have. A sequence without WITHIN would be
    kept for ever by a stream, and is refused there.
    """
    require_workers(events.sparkSession)
    require(events, (time, event), "events")
    require(subscriptions, (id, where), "subscriptions")
    if not isinstance(events.schema[time].dataType, TimestampType | TimestampNTZType):
        raise ColumnError(f"times are timestamps, and {time!r} is {events.schema[time].dataType.simpleString()}")
    if events.isStreaming and until is not None:
        raise OptionError("a stream ends when it ends: until is for tables")
    kinds = ID_TYPES[id_type(subscriptions, id).simpleString()], ID_TYPES[id_type(events, event).simpleString()]
    schema = schema or Schema.from_spark(events)
    asked, ranked = _parsed(subscriptions, id, where, schema, is_stream=events.isStreaming)
    if ranked:
        kind = StructType([subscriptions.schema[id], StructField("ranked", StringType())])
        table = subscriptions.sparkSession.createDataFrame(list(ranked.items()), kind)
        best = top_k(events, table, time=time, event=event, id=id, lateness=lateness, until=until, schema=schema)
        ranked_told = best.select(
            column(id),
            F.array(column(event)).alias("events"),
            column("at"),
            F.lit(None).cast("boolean").alias("change"),
        )
        if not asked:
            return ranked_told
    forest, paths = _interests(subscriptions, id, asked, schema)
    shown = entering(events, paths, ())
    grouping = Grouping(forest, tuple(shown), asked, kinds)
    subscription_id, event_id = subscriptions.schema[id], events.schema[event]
    grouped_schema = StructType([subscription_id, GROUPED[0], event_id, *GROUPED[1:]])
    numbered = [column(event), column(time).cast("timestamp"), *shown.values()]
    timed = events.where(column(time).isNotNull())
    selected = timed.select(*(each.alias(str(number)) for number, each in enumerate(numbered)))
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
        told = Notifications(asked, event_id.dataType.simpleString(), tuple(out.names), schema)
        notified = timed_groups.transformWithState(told, out, outputMode="Append", timeMode="EventTime")
        # The two must not share tasks. Where both have one partition, Spark's union computes them one after the other
        # in one task, and then nothing came of the first; behind an exchange, the ranked ones have their own tasks.
        return notified.unionByName(ranked_told.repartition(1)) if ranked else notified
    history = _history(asked, math.inf if until is None else seconds_of(until), schema, kinds[1])
    notified = grouped.where(column(id).isNotNull()).groupBy(column(id), column("group")).applyInArrow(history, out)
    return notified.unionByName(ranked_told) if ranked else notified


def _parsed(
    subscriptions: DataFrame, id: str, where: str, schema: Schema, *, is_stream: bool
) -> tuple[dict[Any, Wanted], dict[Any, str]]:
    """Read the texts, of ranked ones apart; they are all needed by all workers, so the driver reads them."""
    asked: dict[Any, Wanted] = {}
    ranked: dict[Any, str] = {}
    rows = subscriptions.select(column(id), column(where)).collect()
    for subscription_id, text in rows:
        is_twice = subscription_id in asked or subscription_id in ranked
        if subscription_id is None or text is None or is_twice:
            what = "two subscriptions have this id" if is_twice else "a NULL in its row"
            raise RejectedSubscriptionsError(1, len(rows), f"{subscription_id!r}: {what}")
        try:
            wanted = parse_subscription(text, schema)
        except TamisError as error:
            raise RejectedSubscriptionsError(1, len(rows), f"{subscription_id!r}: {error}") from error
        if isinstance(wanted, Ranked):
            ranked[subscription_id] = text
            continue
        if is_stream and isinstance(wanted, Sequence) and wanted.within is None:
            raise RejectedSubscriptionsError(
                1, len(rows), f"{subscription_id!r}: a stream would keep it for ever; add WITHIN 1 DAY, or another span"
            )
        asked[subscription_id] = wanted
    return asked, ranked


def _paths(wanted: Wanted) -> tuple[tuple[str, ...], ...]:
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


def _interests(
    subscriptions: DataFrame, id: str, asked: dict[Any, Wanted], schema: Schema
) -> tuple[ForestFile, tuple[tuple[str, ...], ...]]:
    """Compile what can be asked of single events; return it, and everything that is mentioned."""
    kind = StructType([subscriptions.schema[id], StructField("condition", StringType())])
    rows = [(subscription_id, str(interest(wanted))) for subscription_id, wanted in asked.items()]
    frame = subscriptions.sparkSession.createDataFrame(rows, kind)
    found = compiled(frame, id=id, schema=schema, shards=1, on_error="raise")
    assert found.forest is not None
    mentioned = {path for wanted in asked.values() for path in (*_paths(wanted), *getattr(wanted, "per", ()))}
    return found.forest, tuple(dict.fromkeys([*found.attributes, *sorted(mentioned)]))


@dataclass
class Grouping:
    """The first step: to which subscriptions does an event matter, in which group, and what of it do they ask for?"""

    forest: ForestFile
    names: tuple[str, ...]
    """What the attributes are called."""
    asked: dict[Any, Wanted]
    kinds: tuple[str, str]
    """Arrow's names for the types of the two ids."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn events into rows of a subscription's id, a group, the event's id, its time and its attributes."""
        paths = {subscription_id: _paths(wanted) for subscription_id, wanted in self.asked.items()}
        for batch in batches:
            for start in range(0, batch.num_rows, _MOST_EVENTS):
                yield self._grouped(pa.Table.from_batches([batch.slice(start, _MOST_EVENTS)]), paths)

    def _grouped(self, table: pa.Table, paths: dict[Any, tuple[tuple[str, ...], ...]]) -> pa.RecordBatch:
        ids = table.column(0).to_pylist()
        times = table.column(1).cast(pa.timestamp("us", "UTC"))
        events = table.select(range(2, table.num_columns)).rename_columns(list(self.names))
        attributes = events if events.num_columns else pa.table({"": pa.nulls(len(ids), pa.bool_())})
        pairs = self.forest.matcher(attributes).match_batch(attributes)
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
        told = []
        for moment, event_id, kept in zip(
            micros, ordered.column(2).to_pylist(), ordered.column(4).to_pylist(), strict=True
        ):
            told += solo.take(moment / _MICROS, event_id, decoded(json.loads(kept)))
        told += solo.advance(until, inclusive=True)
        return told_rows(subscription_id, told, rows.schema.field(0), event_kind)

    return run
