"""What does Spark remember of a group of a subscription between two micro-batches? Operator state.

A text with what `tamis.standing.solo` keeps, and the events that came early: an event waits until the watermark says
that none before it will come. A timer wakes the group when the watermark passes the first event that waits, or the
moment when something is to be told or forgotten although nothing comes. A group of which nothing is to be remembered
takes no room.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import StringType, StructField, TimestampType

from tamis.spark.event_time import MICROS, InOrderOfTime, instant_of, put, watermark_of
from tamis.standing.solo import Solo, SoloTelling
from tamis.standing.storage import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

    from tamis.language import Schema

GROUPED = (StructField("group", StringType()), StructField("at", TimestampType()), StructField("kept", StringType()))
"""What stands beside the two ids: the group, the event's time, and what of it is asked for."""


class Notifications(InOrderOfTime):
    """All groups of all subscriptions, one at a time."""

    columns = (3, 2, 4)

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
        until = watermark_of(timerValues)
        due, left = self.split(until)
        (state,) = self.state.get() or (None,)
        solo = Solo(wanted, state, schema=self.schema)
        notifications = []
        for micros, event, kept in due:
            notifications += solo.take(micros / MICROS, event, _attributes(kept))
        notifications += solo.advance(until / MICROS, inclusive=False)
        put(self.waiting, left)
        if solo.is_empty:
            self.state.clear()
        else:
            self.state.update((solo.saved(),))
        following = min([row[0] for row in left] + [solo.due * MICROS])
        if following < math.inf:
            # What is due at the very end of a time is told when the watermark has passed it.
            self.wake(max(int(following), until))
        for each in notifications:
            at = instant_of(round(each.at * MICROS))
            values = subscription_id, list(each.events), at, each.change
            yield Row(**dict(zip(self.names, values, strict=True)))

    @staticmethod
    def turn(row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return by what events take turns: time, id, attributes; what has no id comes last, as in a sorted table.

        >>> sorted([(5, "b", "{}"), (5, None, "{}"), (5, "a", "{}"), (4, "z", "{}")], key=Notifications.turn)
        [(4, 'z', '{}'), (5, 'a', '{}'), (5, 'b', '{}'), (5, None, '{}')]
        """
        micros, event, kept = row
        return micros, (event is None, 0 if event is None else event), kept


def notification_rows(
    subscription_id: Any, notifications: list[SoloTelling], id_field: pa.Field, event_kind: str
) -> pa.Table:
    """Return notifications as a table."""
    at = [round(each.at * MICROS) for each in notifications]
    return pa.table(
        [
            pa.array([subscription_id] * len(notifications), id_field.type),
            pa.array([list(each.events) for each in notifications], pa.list_(pa.type_for_alias(event_kind))),
            pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC")),
            pa.array([each.change for each in notifications], pa.bool_()),
        ],
        names=[id_field.name, "events", "at", "change"],
    )


def _attributes(kept: str) -> Any:
    return decoded(json.loads(kept))
