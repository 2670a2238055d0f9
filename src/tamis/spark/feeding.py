"""How do the changes of a stream become rules in force?

By a query of their own, beside the one that matches: each of its micro-batches becomes a version of the log. Before
anything is matched it takes all that is there, so that the first events meet the rules that came before them; then it
goes on with what arrives, or, if the stream is to end with what there is, has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions
from pyspark.sql.types import IntegralType, StringType, TimestampNTZType, TimestampType

from tamis.spark.columns import column, id_type, require
from tamis.spark.errors import ChangesError, ColumnError, OptionError
from tamis.spark.sources.failures import plainly, understood

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tamis.spark.changes import Feeder
    from tamis.spark.folders import Folder

_USUAL = ("sequence", "time")
"""What the column that says the order is called, if nobody names it."""
_ONCE = ("availableNow", "once")


def asked_changes(changes: DataFrame, id: str, where: str, sequence: str | None) -> tuple[DataFrame, bool]:
    """Return what a feeder reads of a stream of changes, and whether something says their order; raise if it cannot."""
    if not changes.isStreaming:
        raise OptionError("subscriptions are a table; give them as a log: tamis.spark.SubscriptionLog(folder)")
    require(changes, ("operation", id, where, *([sequence] if sequence else [])), "changes")
    id_type(changes, id)
    for name in ("operation", where):
        if not isinstance(changes.schema[name].dataType, StringType):
            written = changes.schema[name].dataType.simpleString()
            raise ColumnError(f"{name!r} of the changes must hold texts, but it is {written}")
    sequence = sequence or next((name for name in _USUAL if name in changes.columns), None)
    order = functions.lit(None).cast("bigint") if sequence is None else _moment(changes, sequence)
    asked = changes.select(column("operation"), column(id), column(where), order.alias("sequence"))
    return asked, sequence is not None


def fed(asked: DataFrame, feeder: Feeder, checkpoint: Folder, trigger: Mapping[str, Any] | None) -> StreamingQuery:
    """Write what there is of the changes to a log; return the query that goes on with what comes, or has ended."""

    def started(trigger: Mapping[str, Any]) -> StreamingQuery:
        writer = asked.writeStream.foreachBatch(feeder.run).option("checkpointLocation", checkpoint.place)
        return (writer.trigger(**trigger) if trigger else writer).start()

    first = started({"availableNow": True})
    with plainly():
        first.awaitTermination()
    if any((trigger or {}).get(name) for name in _ONCE):
        return first
    return started({name: value for name, value in (trigger or {}).items() if name == "processingTime"})


def _moment(changes: DataFrame, name: str) -> Column:
    """Return the column that says the order, as a whole number."""
    kind = changes.schema[name].dataType
    if isinstance(kind, IntegralType):
        return column(name).cast("bigint")
    if isinstance(kind, TimestampType):
        return functions.unix_micros(column(name))
    if isinstance(kind, TimestampNTZType):
        epoch = functions.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        return functions.timestamp_diff("MICROSECOND", epoch, column(name))
    raise ColumnError(
        f"the order of changes must be given by whole numbers or timestamps, but {name!r} is {kind.simpleString()}"
    )


def feeder_error(feeder: StreamingQuery) -> Exception | None:
    """Return what ended the changes, in words of its own; None if nothing did."""
    error = feeder.exception()
    if error is None:
        return None
    why = str(error).strip().splitlines()[0]
    return understood(error) or ChangesError(f"the stream of changes has ended, so nothing is matched any more: {why}")
