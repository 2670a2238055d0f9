"""How does Spark read the log of a broker, and read the same again after a crash?

Events have numbers in a log that has a name, its epoch. An offset is both: the number that is next, and of which log.
It also says in how many parts the batch before it was cut, so that a batch that is run again is cut the same way, on
whatever machine: rows that are sent on are named by their parts. What is gone from the log is an error, or is counted
(`missed`) in the offset, which the progress of the query shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

from tamis.service.bridge.holding import Held
from tamis.service.bridge.reading import another_log, cut
from tamis.sources.errors import BrokerError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

    from tamis.service.bridge.connection import BrokerConnection
    from tamis.service.bridge.reading import LogReading, LogState


class LogRange(InputPartition):
    """Events of a log from `start` on, before `end`."""

    def __init__(self, epoch: str, start: int, end: int) -> None:
        super().__init__((epoch, start, end))
        self.epoch, self.start, self.end = epoch, start, end


class BrokerReader(DataSourceReader):
    """A range of a log as a table."""

    def __init__(self, reading: LogReading, columns: pa.Schema) -> None:
        self._reading, self._columns = reading, columns

    def partitions(self) -> Sequence[InputPartition]:
        with self._reading.connection() as connection:
            self._reading.check(connection)
            state, end = self._reading.range(connection)
        parts = cut(state.start, end, self._reading.part_count(state.start, end))
        # Spark wants at least one partition.
        return [LogRange(state.epoch, *part) for part in parts or [(1, 1)]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogRange)
        return self._reading.read(partition.epoch, partition.start, partition.end, self._columns)


class BrokerStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A log as a stream."""

    def __init__(self, reading: LogReading, columns: pa.Schema) -> None:
        if reading.end != "now":
            raise OptionError("end is for tables only: a query that streams has no end")
        self._reading, self._columns = reading, columns
        self._held = None if reading.name is None else Held(reading.name, reading.where)
        self._last: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        with self._reading.connection() as connection:
            self._reading.check(connection)
            state = self._reading.state(connection, self._reading.start)
            self._reading.require(state, state.start, state.start)
            self._hold(connection, state, state.start)
        return {"epoch": state.epoch, "position": state.start, "missed": 0, "parts": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        position = start["position"]
        with self._reading.connection() as connection:
            state = self._reading.state(connection)
            if state.epoch != start["epoch"] or position > state.next:
                raise another_log(self._reading.address, f"{start['epoch']}-{position}", state)
            self._hold(connection, state, position)
        end = state.next if self._last is None else max(position, min(state.next, self._last))
        if isinstance(limit, ReadMaxRows):
            begin = min(max(position, state.first), end)  # what is gone takes no time
            end = min(end, begin + limit.max_rows)
        if end == position:
            return start
        missed = start["missed"] + self._reading.require(state, position, end)
        parts = self._reading.part_count(position, end)
        return {"epoch": state.epoch, "position": end, "missed": missed, "parts": parts}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._reading.max_events)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        state = self._state()
        return {"epoch": state.epoch, "position": state.next}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._state().next

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        # The offsets alone decide, so that a batch is cut the same way when it is run again.
        parts = cut(start["position"], end["position"], end["parts"])
        return [LogRange(end["epoch"], *part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogRange)
        return self._reading.read(partition.epoch, partition.start, partition.end, self._columns)

    def commit(self, end: dict[str, Any]) -> None:
        if self._held is None:
            return
        try:
            with self._reading.connection() as connection:
                state = self._reading.state(connection)
                if state.epoch == end["epoch"]:
                    self._hold(connection, state, end["position"])
                    self._held.move(connection, end["epoch"], end["position"] - 1)
        except BrokerError:
            return  # the log is held for longer than it has to be, until the next batch is done

    def _hold(self, connection: BrokerConnection, state: LogState, position: int) -> None:
        if self._held is not None:
            self._held.begin(connection, state.epoch, max(position, state.first))

    def _state(self) -> LogState:
        with self._reading.connection() as connection:
            return self._reading.state(connection)
