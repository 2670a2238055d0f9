"""What do subscriptions that keep a state need of a table or a stream of Spark's, before there is any state?

Events with a time and an id, in columns of the right types; the texts of all subscriptions, which the driver reads,
because all workers need all of them; and a matcher of what can be asked of single events, so that only the events that
matter to a subscription reach its state.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType, TimestampNTZType, TimestampType

from tamis.errors import TamisError
from tamis.spark.columns import ID_TYPES, column, entering, id_type, require
from tamis.spark.errors import ColumnError, OptionError, RejectedSubscriptionsError, RejectedSubscriptionsWarning
from tamis.spark.releases import ARROW_FUNCTIONS, require_release
from tamis.spark.session import ROCKS_DB, STATE_STORE
from tamis.spark.subscriptions import ON_ERROR, compiled
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from tamis.language import Expression, Schema
    from tamis.matching.columns import Path
    from tamis.spark.forests import ForestFile

Understood = TypeVar("Understood")
_MOST_EVENTS = 8_192
"""So many events are matched at once: their pairs are more."""


def require_timed(events: DataFrame, time: str, event: str, until: dt.datetime | None) -> None:
    """Raise unless events have times and ids, and an end of time only if they are a table."""
    require_workers(events.sparkSession)
    require(events, (time, event), "events")
    if not isinstance(events.schema[time].dataType, TimestampType | TimestampNTZType):
        raise ColumnError(f"times must be timestamps, but {time!r} is {events.schema[time].dataType.simpleString()}")
    if events.isStreaming and until is not None:
        raise OptionError("until is for tables only: it is not known when a stream ends")


def require_store(events: DataFrame, who: str) -> None:
    """Raise unless the session's state store can keep lists and timers; the session is not ours to change."""
    require_release(f"{who} of a stream", ARROW_FUNCTIONS)
    present = str(events.sparkSession.conf.get(STATE_STORE, ""))
    if not present or present.endswith(".HDFSBackedStateStoreProvider"):
        raise OptionError(
            f"{who} keeps what a stream may still need in RocksDB, and this session keeps state elsewhere: "
            f"spark.conf.set('{STATE_STORE}', '{ROCKS_DB}')"
        )


def arrow_kinds(subscriptions: DataFrame, id: str, events: DataFrame, event: str) -> tuple[str, str]:
    """Return Arrow's names for the types of the two ids."""
    return ID_TYPES[id_type(subscriptions, id).simpleString()], ID_TYPES[id_type(events, event).simpleString()]


def read_texts(
    subscriptions: DataFrame, id: str, text: str, understand: Callable[[str], Understood], kinds: str, on_error: str
) -> dict[Any, Understood]:
    """Read the subscriptions by their ids; unlike conditions they are all needed by all workers, so the driver does."""
    if on_error not in ON_ERROR:
        raise OptionError(f"on_error must be 'reject' or 'raise', not {on_error!r}")
    asked: dict[Any, Understood] = {}
    wrong: list[str] = []
    rows = subscriptions.select(column(id), column(text)).collect()
    for subscription_id, written in rows:
        if subscription_id is None or written is None or subscription_id in asked:
            what = "two subscriptions have this id" if subscription_id in asked else "a NULL in its row"
            wrong.append(f"{subscription_id!r}: {what}")
            continue
        try:
            asked[subscription_id] = understand(written)
        except TamisError as error:
            wrong.append(f"{subscription_id!r}: {error}")
    if wrong and on_error == "raise":
        raise RejectedSubscriptionsError(len(wrong), len(rows), wrong[0])
    if wrong:
        warnings.warn(
            f"{len(wrong):,} subscriptions cannot be used and are left out; the first: {wrong[0]}\n"
            f"  tamis.spark.rejected(subscriptions, where={text!r}, kinds={kinds!r}) has them all",
            RejectedSubscriptionsWarning,
            stacklevel=4,
        )
    return asked


def compiled_conditions(
    subscriptions: DataFrame, id: str, conditions: Mapping[Any, Expression], schema: Schema
) -> tuple[ForestFile, tuple[Path, ...]]:
    """Compile what can be asked of single events; return it, and the attributes that it mentions."""
    kind = StructType([subscriptions.schema[id], StructField("condition", StringType())])
    rows = [(subscription_id, str(condition)) for subscription_id, condition in conditions.items()]
    frame = subscriptions.sparkSession.createDataFrame(rows, kind)
    rules = compiled(frame, id=id, schema=schema, shards=1, on_error="raise")
    assert rules.forest is not None
    return rules.forest, rules.attributes


def entering_rows(
    events: DataFrame, time: str, event: str, paths: tuple[Path, ...], carried: tuple[str, ...] = ()
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return events that have a time (their id, their time, their attributes), and what the attributes are called.

    What is `carried` stands between the two.
    """
    shown = entering(events, paths, ())
    numbered = [column(event), column(time).cast("timestamp"), *map(column, carried), *shown.values()]
    timed = events.where(column(time).isNotNull())
    return timed.select(*(each.alias(str(number)) for number, each in enumerate(numbered))), tuple(shown)


def tables_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Cut batches to what is matched at once."""
    for batch in batches:
        for start in range(0, batch.num_rows, _MOST_EVENTS):
            yield pa.Table.from_batches([batch.slice(start, _MOST_EVENTS)])


def without_attributes(count: int) -> pa.Table:
    """Return so many events without attributes, which Arrow cannot count if there is no column."""
    return pa.table({"": pa.nulls(count, pa.bool_())})


def seconds_of(moment: dt.datetime) -> float:
    """Return a moment in seconds since 1970; without a zone it is UTC's."""
    import datetime as dt

    aware = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return aware.timestamp()
