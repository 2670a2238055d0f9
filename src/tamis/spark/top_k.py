"""Which events belong to the best k of a window, where the events are a table or a stream of Spark's?

Two steps. The first knows no history: it finds the subscriptions whose filter an event passes, by the matcher, and
computes the event's key for each. The second looks at the stream of one subscription, in order of time, and says when
each event enters the best k. For a table that is the closed form (`tamis.topk.closed_form`), which keeps no state; for
a stream it is strict candidate pruning, with the candidates in Spark's state store and timers for what leaves
(`top_k_state`). Both give the deliveries of `tamis.TopK`, if that is told of the events in order of time, those of one
instant in the order of their ids, and of the end of time afterwards. Two events may have one id: each is an event of
its own, and of those at one instant the better comes first. What has no time is in no window, and left out.

Source: Pripužić 2010, chapter 3 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StructField, StructType

from tamis.language import Schema
from tamis.language.expressions import Attribute, postorder
from tamis.language.functions import functions_of
from tamis.spark.columns import column, require
from tamis.spark.event_time import MICROS
from tamis.spark.hosting import AskedOf, counted, failure_count
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
from tamis.spark.top_k_state import KEYED, TimedDeliveries
from tamis.spark.top_k_terms import EXPIRES, PUBLISHED, WITHDRAWN, RankedTerms, ended, is_told, once_for_each_client
from tamis.topk import Ranked
from tamis.topk.ageing import DatedEvent, family_of
from tamis.topk.closed_form import entering_times
from tamis.topk.scoring import Group
from tamis.topk.windows import TimeWindow

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from tamis.language import Functions
    from tamis.matching.columns import Path
    from tamis.relations.families import Family
    from tamis.spark.forests import ForestFile

ENDS = (EXPIRES, WITHDRAWN)
"""What is known of an event that is told of no more from some time on."""


def top_k(
    events: DataFrame,
    ranked_subscriptions: DataFrame,
    *,
    time: str = "time",
    event: str = "event_id",
    id: str = "subscription_id",
    ranked: str = "ranked",
    client: str | None = None,
    starts: str | None = None,
    ends: str | None = None,
    expires: str | None = None,
    withdrawn: DataFrame | None = None,
    lateness: str = "0 seconds",
    until: dt.datetime | None = None,
    schema: Schema | None = None,
    on_error: str = "raise",
    functions: Functions | None = None,
) -> DataFrame:
    """Return who is told of which event, and when: the columns of the subscription's id, the event's id, and `at`.

    events                  a table or a stream, with a column of times and one of ids; other columns are attributes
    ranked_subscriptions    a table of ids and texts: "TOP 2 BY price ASC OVER 1 HOUR WHERE category = 'flat'"
    client                  the column of the subscriptions that says whose they are: a client is told of an event once
    starts, ends            the columns of times at which subscriptions start and end, where they do not always last
    expires                 the column of the events that says until when somebody is told of them
    withdrawn               a table of events that are told of no more: the columns of their ids and of the times
    lateness                of a stream: an event may come so much later than others of a later time, and those of one
                            instant in different batches; what is later still may be left out
    until                   of a table: the end of time, after which nothing leaves a window any more
    schema                  what texts may mention; the columns of the events if you do not say
    on_error                "raise": fail at what is no ranked subscription; "reject": leave it out, with a warning
    functions               those of the host that texts may call; without them, those of the schema

    The deliveries of a stream are final: those up to some moment come once all events up to that moment have.
    """
    require_timed(events, time, event, until)
    require(ranked_subscriptions, (id, ranked), "ranked subscriptions")
    terms = RankedTerms(client, starts, ends, expires)
    terms.require_table(events, withdrawn)
    kinds = arrow_kinds(ranked_subscriptions, id, events, event)
    hosted = functions_of(functions, schema)
    schema = (schema or Schema.from_spark(events)).calling(hosted)
    read = read_texts(ranked_subscriptions, id, ranked, lambda text: Ranked.parse(text, schema), "ranked", on_error)
    asked = AskedOf(read, hosted)
    filters = {subscription_id: wanted.where for subscription_id, wanted in asked.items()}
    forest, mentioned = compiled_conditions(ranked_subscriptions, id, filters, schema)
    has_ends = expires is not None or withdrawn is not None
    entering = ended(events, terms, withdrawn, time, event) if has_ends else events
    paths = tuple(dict.fromkeys([*mentioned, *_scored(asked)]))
    selected, names = entering_rows(entering, time, event, paths, ENDS if has_ends else ())
    lasting = terms.of(ranked_subscriptions, id)
    keying = Keying(
        forest, names, asked, kinds, failure_count(events.sparkSession, hosted), ENDS if has_ends else (), lasting
    )
    # Ids may be NULL there, whatever the tables say: a row more is nobody's (`Keying`).
    delivered = StructType(
        [StructField(each.name, each.dataType) for each in (ranked_subscriptions.schema[id], events.schema[event])]
    )
    added = [StructField(name, LongType()) for name in keying.carried]
    keyed_schema = StructType([*delivered.fields, *KEYED, *added])
    keyed = selected.mapInArrow(keying.run, keyed_schema)
    out = StructType([*(StructField(each.name, each.dataType, nullable=False) for each in delivered.fields), KEYED[0]])
    if events.isStreaming:
        require_store(events, "top_k")
        # To Spark, what has the time of the watermark itself is late; another event of that instant may still come.
        grouped = keyed.withWatermark("at", f"{lateness} 1 millisecond").groupBy(column(id))
        return grouped.transformWithState(
            TimedDeliveries(asked, out, lasting), out, outputMode="Append", timeMode="EventTime"
        )
    history = _history(asked, math.inf if until is None else seconds_of(until), lasting, has_ends=has_ends)
    whole = StructType([*out.fields, StructField(PUBLISHED, LongType(), nullable=False)])
    deliveries = keyed.where(column(id).isNotNull()).groupBy(column(id)).applyInArrow(history, whole)
    if client is not None:
        return once_for_each_client(deliveries, ranked_subscriptions, id, event, client)
    return deliveries.drop(PUBLISHED)


def _scored(asked: dict[Any, Ranked]) -> list[Path]:
    """Return what scores mention."""
    return sorted(
        {node.path for wanted in asked.values() for node in postorder(wanted.score) if isinstance(node, Attribute)}
    )


@dataclass
class Keying:
    """The first step: which subscriptions does an event pass, and with what keys?"""

    forest: ForestFile
    names: tuple[str, ...]
    """What the attributes are called."""
    asked: AskedOf
    kinds: tuple[str, str]
    """Arrow's names for the types of the two ids."""
    failures: Any = None
    """An accumulator for what functions of the host could not do, or None."""
    carried: tuple[str, ...] = ()
    """What stands between the time of an event and its attributes, and comes out behind the keys."""
    lasting: dict[Any, tuple[int, int]] = field(default_factory=dict)
    """From when to when subscriptions take part, in microseconds, of those that do not always."""
    _slots: dict[Any, tuple[Group, int]] | None = field(default=None, repr=False)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn events into rows of a subscription's id, the event's id, its time and its key."""
        yield from map(self._keyed, tables_of(batches))

    def _keyed(self, table: pa.Table) -> pa.RecordBatch:
        ids, times = table.column(0), table.column(1).cast(pa.timestamp("us", "UTC"))
        first = 2 + len(self.carried)
        events = table.select(range(first, table.num_columns)).rename_columns(list(self.names))
        matcher = self.forest.matcher(events)
        with counted(self.failures, matcher.functions, self.asked.functions):
            pairs = matcher.match_batch(events if events.num_columns else without_attributes(len(ids)))
            if self.lasting:
                pairs = pairs.filter(pa.array(self._taking_part(pairs, times)))
            numbers = pairs.column("event").to_numpy()
            subscriptions = pairs.column("subscription").to_pylist()
            rows = events.to_pylist() if events.num_columns else [{}] * len(ids)
            if any(each.half_life_s is not None for each in self.asked.values()):
                seconds = (times.cast(pa.int64()).to_numpy() / 1e6).tolist()
                rows = [DatedEvent(*each) for each in zip(rows, seconds, strict=True)]
            keys = self._keys(rows, numbers, subscriptions)
        at = times.take(pairs.column("event")).combine_chunks()
        # One row more, which is nobody's, so that time goes on for those whom these events do not concern.
        latest = pa.array([pc.max(times).as_py()], at.type)
        return pa.RecordBatch.from_arrays(
            [
                pa.concat_arrays(
                    [
                        pa.array(subscriptions, pa.type_for_alias(self.kinds[0])),
                        pa.nulls(1, pa.type_for_alias(self.kinds[0])),
                    ]
                ),
                pa.concat_arrays([_array(ids.take(pairs.column("event"))), pa.nulls(1, ids.type)]).cast(
                    pa.type_for_alias(self.kinds[1])
                ),
                pa.concat_arrays([_array(at), latest]),
                pa.array(np.append(keys, math.nan)),
                *(
                    pa.concat_arrays(
                        [_array(table.column(2 + place).take(pairs.column("event"))), pa.nulls(1, pa.int64())]
                    )
                    for place in range(len(self.carried))
                ),
            ],
            [*("id", "event"), *(each.name for each in KEYED), *self.carried],
        )

    def _taking_part(self, pairs: pa.Table, times: Any) -> Any:
        """Return which pairs are of subscriptions that take part at the time of the event."""
        micros = times.cast(pa.int64()).to_numpy()[pairs.column("event").to_numpy()]
        spans = [self.lasting.get(each, (None, None)) for each in pairs.column("subscription").to_pylist()]
        return np.array(
            [
                (first is None or first <= at) and (last is None or at <= last)
                for at, (first, last) in zip(micros.tolist(), spans, strict=True)
            ],
            np.bool_,
        )

    def _keys(self, events: list[dict[str, Any]], numbers: Any, subscriptions: list[Any]) -> Any:
        """Return the key of each pair. The subscriptions of a family share the work on an event."""
        if self._slots is None:
            groups: dict[Family, Group] = {}
            self._slots = {}
            for subscription_id, ranked in self.asked.items():
                family, given = family_of(ranked)
                group = groups.setdefault(family, Group(family))
                self._slots[subscription_id] = group, group.add(ranked, given)
        keys = np.empty(len(subscriptions))
        known: dict[int, Any] = {}
        last = -1
        for place, (number, subscription_id) in enumerate(zip(numbers.tolist(), subscriptions, strict=True)):
            if number != last:
                known, last = {}, number
            group, slot = self._slots[subscription_id]
            of_event = known.get(id(group))
            if of_event is None:
                of_event = known[id(group)] = group.keys(events[number])
            keys[place] = of_event[slot]
        return keys


def _array(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _history(
    asked: dict[Any, Ranked], until: float, lasting: dict[Any, tuple[int, int]], *, has_ends: bool
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """Return the second step for a table: it takes the whole stream of a subscription at once."""

    def run(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        (subscription_id,) = key
        ranked = asked[subscription_id.as_py()]
        ordered = rows.sort_by([(rows.column_names[place], "ascending") for place in (2, 1, 3)])
        micros = ordered.column(2).cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
        entered = entering_times(ordered.column(3).to_numpy(), micros / MICROS, ranked.k, ranked.window, until)
        enters = ~np.isnan(entered)
        at = np.round(np.where(enters, entered, 0.0) * MICROS).astype(np.int64)
        if has_ends:
            ends = (_array(ordered.column(4 + place)) for place in range(len(ENDS)))
            enters &= is_told(at, micros, *ends, is_timed=isinstance(ranked.window, TimeWindow))
        if subscription_id.as_py() in lasting:
            enters &= at <= lasting[subscription_id.as_py()][1]
        chosen = ordered.filter(pa.array(enters))
        instants = pa.array(at[enters]).cast(pa.timestamp("us", "UTC"))
        return pa.table(
            [chosen.column(0), chosen.column(1), instants, pa.array(micros[enters])],
            names=[*rows.column_names[:2], KEYED[0].name, PUBLISHED],
        )

    return run
