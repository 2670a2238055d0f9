"""How is a table of events matched against a table of subscriptions?

As one step from DataFrame to DataFrame. The subscriptions are read and compiled when the step is made, because they
decide which columns of the events it needs; the events are read when somebody asks for the result, in parallel, and
as often as Spark likes. It works on a stream of events too, as long as the subscriptions stay the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, LongType, StructField

from tamis.language import Schema
from tamis.spark.columns import ID_TYPES, kept_fields, names_in, opened, require, shown_to
from tamis.spark.errors import OptionError
from tamis.spark.file_scans import answered_by
from tamis.spark.hosting import failure_count
from tamis.spark.sharding import matched_in_shards
from tamis.spark.subscriptions import Compiled, compiled, warn_of_rejected
from tamis.spark.worker import RESULTS, Task
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from tamis.language import Functions


def match(
    events: DataFrame,
    subscriptions: DataFrame | Compiled,
    *,
    id: str = "subscription_id",
    where: str = "condition",
    priority: str | None = None,
    keep: str | Sequence[str] | None = None,
    result: str = "pairs",
    schema: Schema | None = None,
    shards: int | None = None,
    on_error: str = "reject",
    functions: Functions | None = None,
) -> DataFrame:
    """Return which subscriptions match each event, beside the columns of the event.

    events           a row is an event, a column an attribute; fields of records have dotted names
    subscriptions    a table of ids and conditions, or what `compiled` made of one
    keep             the columns of the events that the result has; all of them if you do not say
    result           "pairs": a row for every event and subscription that match, with the id;
                     "lists": a row for every event, with `subscription_ids`, the highest priority first, then by id;
                     "counts": a row for every event, with `matches`, their number
    schema           what conditions may mention; the columns of the events if you do not say
    functions        those of the host that conditions may call; without them, those of the schema
    shards           into about how many shards to cut the subscriptions; by their number, if you do not say
    on_error         "reject": leave out what is not a subscription, with a warning; "raise": fail
    """
    if result not in RESULTS:
        raise OptionError(f"result must be one of {', '.join(map(repr, RESULTS))}, not {result!r}")
    require_workers(events.sparkSession)
    if not isinstance(subscriptions, Compiled):
        schema = schema or Schema.from_spark(events)
        subscriptions = compiled(
            subscriptions,
            id=id,
            where=where,
            priority=priority,
            schema=schema,
            shards=shards,
            on_error=on_error,
            functions=functions,
        )
        warn_of_rejected(subscriptions)
    return matched(events, subscriptions, keep, result)


def matching(subscriptions: DataFrame | Compiled, **options: Any) -> Callable[[DataFrame], DataFrame]:
    """Return the step for `events.transform(matching(subscriptions))`; options are those of `match`."""
    return partial(match, subscriptions=subscriptions, **options)


def matched(
    events: DataFrame, compiled: Compiled, keep: str | Sequence[str] | None, result: str, clock: Any = None
) -> DataFrame:
    """Match events against compiled subscriptions; workers add the time it took to the clock, an accumulator."""
    names = list(events.columns) if keep is None else names_in(keep)
    require(events, names, "events")
    schema = kept_fields(events, names, [worker_field(compiled, result)])
    shown = shown_to(events, compiled.attributes, names)
    if compiled.shards is not None:
        if result == "lists" and compiled.has_priorities:
            raise OptionError("lists in order of priority need all subscriptions in one place: shards=1")
        kind = ID_TYPES[compiled.id_type.simpleString()]
        return matched_in_shards(events, compiled.shards, shown, len(names), result, kind, schema)
    assert compiled.forest is not None
    task = Task(
        compiled.forest,
        tuple(shown),
        len(names),
        result,
        ID_TYPES[compiled.id_type.simpleString()],
        clock,
        failure_count(events.sparkSession, compiled.forest.functions),
    )
    answered = answered_by(task.run, events, shown, schema)
    return opened(answered) if result == "pairs" else answered


def worker_field(compiled: Compiled, result: str) -> StructField:
    """Return the column that workers add; pairs come as lists, to be opened."""
    if result == "counts":
        return StructField("matches", LongType(), nullable=False)
    name = compiled.id if result == "pairs" else "subscription_ids"
    return StructField(name, ArrayType(compiled.id_type, containsNull=False), nullable=False)
