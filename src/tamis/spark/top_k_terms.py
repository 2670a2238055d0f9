"""Who is told of ranked subscriptions, from when to when, and which events are told of no more?

Events that expire or were withdrawn keep their place in all windows, and nobody is told of them any more. A
subscription takes part from its start on, with an empty window, and is told of nothing after its end. A client is told
of an event once, by whichever of its subscriptions is first. All this is as in `tamis.TopK`: none of it changes a
ranking, so it is a matter of which events enter, and of what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import TimestampNTZType, TimestampType

from tamis.spark.columns import column, require
from tamis.spark.errors import ColumnError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pyspark.sql import Column, DataFrame

EXPIRES, WITHDRAWN, PUBLISHED = "\x00expires", "\x00withdrawn", "\x00published"
_ALWAYS = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class RankedTerms:
    """What is asked for beside rankings; the names of columns."""

    client: str | None = None
    """Of the subscriptions: whose they are."""
    starts: str | None = None
    ends: str | None = None
    """Of the subscriptions: from when to when."""
    expires: str | None = None
    """Of the events: until when somebody is told of them."""

    def of(self, subscriptions: DataFrame, id: str) -> dict[Any, tuple[int, int]]:
        """Return from when to when subscriptions take part, in microseconds; of those that do not always."""
        named = [name for name in (self.starts, self.ends) if name is not None]
        require(subscriptions, [*named, *([self.client] if self.client else [])], "ranked subscriptions")
        if not named:
            return {}
        for name in named:
            _require_times(subscriptions, name)
        start = micros_of(self.starts) if self.starts else F.lit(None)
        end = micros_of(self.ends) if self.ends else F.lit(None)
        rows = subscriptions.select(column(id), start.cast("bigint"), end.cast("bigint")).collect()
        return {
            each: (_ALWAYS[0] if first is None else first, _ALWAYS[1] if last is None else last)
            for each, first, last in rows
        }

    def require_table(self, events: DataFrame, withdrawn: DataFrame | None) -> None:
        """Raise if what is asked of a stream is told of tables only."""
        if events.isStreaming:
            for name, given in (("client", self.client), ("expires", self.expires), ("withdrawn", withdrawn)):
                if given is not None:
                    raise OptionError(f"{name} is for tables only: a stream of them would have to be remembered")


def ended(events: DataFrame, terms: RankedTerms, withdrawn: DataFrame | None, time: str, event: str) -> DataFrame:
    """Add to events when they expire, and when they were withdrawn first after they came, in microseconds."""
    expires = F.lit(None)
    if terms.expires is not None:
        require(events, [terms.expires], "events")
        _require_times(events, terms.expires)
        expires = micros_of(terms.expires)
    known = events.withColumn(EXPIRES, expires.cast("bigint"))
    if withdrawn is None:
        return known.withColumn(WITHDRAWN, F.lit(None).cast("bigint"))
    require(withdrawn, [event, time], "withdrawals")
    _require_times(withdrawn, time)
    by_event = withdrawn.groupBy(column(event).alias("\x00event")).agg(F.array_agg(micros_of(time)).alias("\x00at"))
    joined = known.join(by_event, column(event) == column("\x00event"), "left")
    later = F.filter(column("\x00at"), lambda at: at >= micros_of(time))
    return joined.withColumn(WITHDRAWN, F.array_min(later)).drop("\x00event", "\x00at")


def is_told(
    at: npt.NDArray[np.int64], published: npt.NDArray[np.int64], expires: Any, withdrawn: Any, *, is_timed: bool
) -> npt.NDArray[np.bool_]:
    """Return of which events that enter a ranking somebody is still told.

    What was withdrawn at the instant at which it enters is told of if an event of that instant brings it in, its own
    or, in a window of some number of events, another; what leaves a window of time at that instant leaves later.
    """
    last, gone = (each.fill_null(_ALWAYS[1]).to_numpy() for each in (expires, withdrawn))
    still: npt.NDArray[np.bool_] = at < gone
    still |= (at == gone) & ((at == published) | (not is_timed))
    still &= at <= last
    return still


def once_for_each_client(
    deliveries: DataFrame, subscriptions: DataFrame, id: str, event: str, client: str
) -> DataFrame:
    """Leave out deliveries of an event to a client that another subscription of it has been told of before."""
    owners = subscriptions.select(column(id).alias("\x00id"), column(client).alias("\x00client"))
    owned = deliveries.join(owners, column(id) == column("\x00id"))
    alone = F.when(column("\x00client").isNull(), column(id))
    first = Window.partitionBy("\x00client", alone, column(event), column(PUBLISHED)).orderBy("at", column(id))
    turns = owned.withColumn("\x00turn", F.row_number().over(first)).where(column("\x00turn") == 1)
    return turns.select(column(id), column(event), "at")


def micros_of(name: str) -> Column:
    """Return a column of times in microseconds since 1970."""
    return F.unix_micros(column(name).cast("timestamp"))


def _require_times(frame: DataFrame, name: str) -> None:
    kind = frame.schema[name].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise ColumnError(f"times must be timestamps, but {name!r} is {kind.simpleString()}")
