"""How does an operator take events in order of time, if Spark hands them out as they come? Event-time timers.

An event waits in the state of its key until the watermark says that none before it will come. A timer wakes the key
when the watermark passes the first event that waits, or a moment at which something is due although nothing comes.
"""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import ListState, StatefulProcessorHandle, TimerValues

MICROS = 1_000_000
"""So many microseconds, in which Spark counts times, are a second."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def micros_of(moment: dt.datetime) -> int:
    """Return the microseconds since 1970; a moment without a zone is UTC's."""
    aware = moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // _MICROSECOND


def instant_of(micros: int) -> dt.datetime:
    """Return the moment so many microseconds after the beginning of 1970.

    >>> micros_of(instant_of(1_500_000))
    1500000
    """
    return _EPOCH + micros * _MICROSECOND


class InOrderOfTime(StatefulProcessor):
    """An operator whose events wait for their turn; a row of a NULL key only tells the time."""

    columns: ClassVar[tuple[int, int, int]]
    """Where a row has its time, the event's id, and what else of the event is needed."""
    handle: StatefulProcessorHandle
    waiting: ListState
    """What waits: microseconds, the event's id, and what else is needed."""

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
        time, event, rest = self.columns
        arrived = [(micros_of(row[time]), row[event], row[rest]) for row in rows]
        self.waiting.appendList(arrived)
        self.wake(min(micros for micros, _, _ in arrived))
        return iter(())

    def split(self, until: int) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return what is before a moment, in the order in which events take turns, and what goes on waiting."""
        waiting = [tuple(row) for row in self.waiting.get()]
        due = sorted((row for row in waiting if row[0] < until), key=self.turn)
        return due, [row for row in waiting if row[0] >= until]

    @staticmethod
    @abstractmethod
    def turn(row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return by what events take turns: their time first."""

    def wake(self, micros: int) -> None:
        """Ask to be woken once the watermark has passed a moment."""
        self.handle.registerTimer(micros // 1000 + 1)

    def close(self) -> None:
        """Nothing is open."""


def put(state: ListState, rows: list[tuple[Any, ...]]) -> None:
    """Keep rows in place of those that are there; nothing takes no room."""
    if rows:
        state.put(rows)
    else:
        state.clear()


def watermark_of(timer_values: TimerValues) -> int:
    """Return the watermark in microseconds: no event before it will come."""
    return int(timer_values.getCurrentWatermarkInMs()) * 1000
