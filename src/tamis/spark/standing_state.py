"""What does Spark remember of a group of a subscription between two micro-batches? Operator state.

A text with what `tamis.standing.solo` keeps, and the events that came early: an event waits until the watermark says
that none before it will come. A timer wakes the group when the watermark passes the first event that waits, or the
moment when something is to be told or forgotten although nothing comes. A group of which nothing is to be remembered
takes no room.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StringType, StructField, TimestampType

from tamis.standing.solo import Solo, SoloTelling
from tamis.standing.storage import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

    from tamis.language import Schema

GROUPED = (StructField("group", StringType()), StructField("at", TimestampType()), StructField("kept", StringType()))
"""What stands beside the two ids: the group, the event's time, and what of it is asked for."""
_MICROS = 1_000_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


class Notifications(StatefulProcessor):
    """All groups of all subscriptions, one at a time."""

    def __init__(self, asked: dict[Any, Any], event_type: str, names: tuple[str, ...], schema: Schema | None) -> None:
        """Take the subscriptions by their ids, the type of events' ids, and the columns of what is told."""
        self.asked = asked
        self.event_type = event_type
        self.names = names
        self.schema = schema

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name what is remembered of a group."""
        self.handle = handle
        self.waiting = handle.getListState("waiting", f"micros bigint, event {self.event_type}, kept string")
        self.state = handle.getValueState("state", "state string")

    def handleInputRows(  # noqa: N802 - Spark's names
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        """Let events wait for their turn."""
        if key[0] is None:  # these rows only told the time
            for _ in rows:
                pass
            return iter(())
        arrived = [(_micros(row[3]), row[2], row[4]) for row in rows]
        self.waiting.appendList(arrived)
        self._wake(min(micros for micros, _, _ in arrived))
        return iter(())

    def handleExpiredTimer(  # noqa: N802 - Spark's names
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Let everything happen that happens before the watermark."""
        subscription_id = key[0]
        wanted = self.asked.get(subscription_id)
        if wanted is None:  # the subscription is not there any more
            self.waiting.clear()
            self.state.clear()
            return
        until = timerValues.getCurrentWatermarkInMs() * 1000
        waiting = [tuple(row) for row in self.waiting.get()]
        due = sorted((row for row in waiting if row[0] < until), key=_turn)
        left = [row for row in waiting if row[0] >= until]
        (state,) = self.state.get() or (None,)
        solo = Solo(wanted, state, schema=self.schema)
        told = [each for micros, event, kept in due for each in solo.take(micros / _MICROS, event, _attributes(kept))]
        told += solo.advance(until / _MICROS, inclusive=False)
        if left:
            self.waiting.put(left)
        else:
            self.waiting.clear()
        if solo.is_empty:
            self.state.clear()
        else:
            self.state.update((solo.saved(),))
        following = min([row[0] for row in left] + [solo.due * _MICROS])
        if following < math.inf:
            # What is due at the very end of a time is told when the watermark has passed it.
            self._wake(max(int(following), until))
        for each in told:
            at = _EPOCH + round(each.at * _MICROS) * _MICROSECOND
            values = subscription_id, list(each.events), at, each.change
            yield Row(**dict(zip(self.names, values, strict=True)))

    def _wake(self, micros: int) -> None:
        """Ask to be woken once the watermark has passed a moment."""
        self.handle.registerTimer(micros // 1000 + 1)

    def close(self) -> None:
        """Nothing is open."""


def told_rows(subscription_id: Any, told: list[SoloTelling], id_field: pa.Field, event_kind: str) -> pa.Table:
    """Return what is told as a table."""
    at = [round(each.at * _MICROS) for each in told]
    return pa.table(
        [
            pa.array([subscription_id] * len(told), id_field.type),
            pa.array([list(each.events) for each in told], pa.list_(pa.type_for_alias(event_kind))),
            pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC")),
            pa.array([each.change for each in told], pa.bool_()),
        ],
        names=[id_field.name, "events", "at", "change"],
    )


def _attributes(kept: str) -> Any:
    return decoded(json.loads(kept))


def _turn(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return by what events take turns: time, id, attributes; what has no id comes last, as in a sorted table.

    >>> sorted([(5, "b", "{}"), (5, None, "{}"), (5, "a", "{}"), (4, "z", "{}")], key=_turn)
    [(4, 'z', '{}'), (5, 'a', '{}'), (5, 'b', '{}'), (5, None, '{}')]
    """
    micros, event, kept = row
    return micros, (event is None, 0 if event is None else event), kept


def _micros(moment: dt.datetime) -> int:
    aware = moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // _MICROSECOND
