"""What does Spark remember of a ranked subscription between two micro-batches? Operator state.

Its candidates: the k-skyband of its window, no more. And the events that came early: an event waits until the
watermark says that none before it will come, because a ranking takes events in order. A timer wakes the
subscription when the watermark passes the first event that waits, or the moment when a candidate leaves whose leaving
matters; everything else is left alone, however long the stream runs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.types import DoubleType, StructField, StructType, TimestampType

from tamis.spark.event_time import MICROS, InOrderOfTime, instant_of, put, watermark_of
from tamis.topk.base import Candidate
from tamis.topk.strict import Strict
from tamis.topk.windows import TimeWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

    from tamis.topk import Ranked

KEYED = (StructField("at", TimestampType()), StructField("key", DoubleType()))
"""What stands beside the two ids: the event's time, and its key."""


class TimedDeliveries(InOrderOfTime):
    """The streams of all subscriptions, one at a time."""

    columns = (2, 1, 3)

    def __init__(
        self, asked: dict[Any, Ranked], delivered: StructType, lasting: dict[Any, tuple[int, int]] | None = None
    ) -> None:
        """Take the subscriptions by their ids, what a delivery tells, and until when those last that end.

        A delivery tells the two ids and the time.
        """
        self.asked = asked
        self.lasting = lasting or {}
        self.delivered = delivered

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name what is remembered of a subscription."""
        event = f"event {self.delivered[1].dataType.simpleString()}"
        self.handle = handle
        self.waiting = handle.getListState("waiting", f"micros bigint, {event}, key double")
        self.held = handle.getListState("held", f"number bigint, {event}, key double, leaves double, entered boolean")
        self.position = handle.getValueState("position", "position bigint")

    def handleExpiredTimer(  # noqa: N802 - Spark's names
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Let everything happen that happens before the watermark."""
        (subscription_id,) = key
        ranked = self.asked[subscription_id]
        until = watermark_of(timerValues)
        due, left = self.split(until)
        (position,) = self.position.get() or (0,)
        stream = Stream(ranked, [tuple(row) for row in self.held.get()], position)
        deliveries = [delivery for micros, event, score in due for delivery in stream.arrive(micros, event, score)]
        deliveries += stream.advance(until)
        put(self.waiting, left)
        put(self.held, stream.state())
        self.position.update((stream.position,))
        following = min([row[0] for row in left] + [stream.due])
        if following < math.inf:
            self.wake(int(following))
        _, last = self.lasting.get(subscription_id, (None, None))
        for event, micros in deliveries:
            if last is not None and micros > last:
                continue
            values = subscription_id, event, instant_of(micros)
            yield Row(**dict(zip(self.delivered.names, values, strict=True)))

    @staticmethod
    def turn(row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return by what events take turns: time, id, key; what has no id or no key comes last, as in a sorted table.

        >>> rows = [(5, "b", 1.0), (5, None, 0.0), (5, "a", math.nan), (5, "a", 2.0), (4, "z", 9.0)]
        >>> sorted(rows, key=TimedDeliveries.turn)
        [(4, 'z', 9.0), (5, 'a', 2.0), (5, 'a', nan), (5, 'b', 1.0), (5, None, 0.0)]
        """
        micros, event, key = row
        return micros, (event is None, 0 if event is None else event), (key != key, 0.0 if key != key else key)


class Stream:
    """The stream of one subscription: a strict ranking, taken up where it was left.

    >>> from tamis.topk import Ranked
    >>> stream = Stream(Ranked.parse("TOP 1 BY price OVER 10 SECONDS"), [], 0)
    >>> stream.arrive(0, "a", 5.0), stream.arrive(1_000_000, "b", 7.0)
    ([('a', 0)], [])
    >>> again = Stream(Ranked.parse("TOP 1 BY price OVER 10 SECONDS"), stream.state(), stream.position)
    >>> again.advance(10_000_001)
    [('b', 10000000)]
    """

    def __init__(self, ranked: Ranked, held: list[tuple[Any, ...]], position: int) -> None:
        self.position = position
        self._is_timed = isinstance(ranked.window, TimeWindow)
        self._span = ranked.window.span
        items = [Candidate(score, -number, leaves) for number, _, score, leaves, _ in held]
        entered = {number for number, *_, has_entered in held if has_entered}
        self._ranking = Strict.resumed(ranked.k, items, entered)
        self._events = {number: event for number, event, *_ in held}

    @property
    def due(self) -> float:
        """When, in microseconds, somebody may enter because another leaves; infinite if only arrivals matter."""
        return round(self._ranking.due * MICROS) if self._is_timed and self._ranking.due < math.inf else math.inf

    def arrive(self, micros: int, event: Any, score: float) -> list[tuple[Any, int]]:
        """Take an event; return the deliveries until then, and those that it brings about."""
        at = micros / MICROS
        deliveries = self._elapse(at) if self._is_timed else []
        self.position += 1
        clock = at if self._is_timed else self.position
        self._events[self.position] = event
        entering: list[int] = []
        if score == score:
            entering = self._ranking.insert(Candidate(score, -self.position, clock + self._span))
        if not self._is_timed and self._ranking.due <= clock:
            entering = entering + self._ranking.leave(clock)
        return deliveries + [(self._events[number], micros) for number in entering]

    def advance(self, micros: int) -> list[tuple[Any, int]]:
        """Let leave what leaves before a moment."""
        return self._elapse(micros / MICROS) if self._is_timed else []

    def _elapse(self, until: float) -> list[tuple[Any, int]]:
        deliveries: list[tuple[Any, int]] = []
        while (due := self._ranking.due) < until:
            deliveries += [(self._events[number], round(due * MICROS)) for number in self._ranking.leave(due)]
        return deliveries

    def state(self) -> list[tuple[Any, ...]]:
        """Return what has to be remembered."""
        ranking = self._ranking
        return [
            (item.number, self._events[item.number], item.key, item.leaves, item.number in ranking.entered)
            for item in ranking.items
        ]
