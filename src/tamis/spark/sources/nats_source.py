"""How does Spark read a stream of NATS, and read the same again after a crash?

A stream of JetStream numbers its messages and keeps them, so a range of numbers is a table, and a number is where a
query has got to. That number lies in Spark's checkpoint; the server keeps nothing about us. A range that is read
again gives the same messages, unless the stream has dropped them meanwhile: those are counted (`missed`) in the
offset, which the progress of the query shows and the checkpoint keeps, or they stop the query (`on_loss` set to
`fail`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

from tamis.sources.errors import NatsError, OptionError
from tamis.sources.nats_reading import NatsReading, lost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

    from tamis.sources.jetstream import StreamState


class NatsRange(InputPartition):
    """Sequences from `start` on, before `end`."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))
        self.start, self.end = start, end


class NatsReader(DataSourceReader):
    """A range of a stream as a table."""

    def __init__(self, reading: NatsReading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        with self._reading.connection() as connection:
            state = connection.state()
        start = self._reading.first(state)
        if start < state.first and self._reading.on_loss == "fail":
            raise lost(self._reading.address, start, state.first)
        # Spark wants at least one partition.
        parts = self._reading.ranges(max(start, state.first), self._reading.behind(state)) or [(1, 1)]
        return [NatsRange(*part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, NatsRange)
        return self._reading.read(partition.start, partition.end)


class NatsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream as a stream. An offset has the next sequence, and which stream that is a sequence of."""

    def __init__(self, reading: NatsReading) -> None:
        if reading.end != "latest":
            raise OptionError("end is for tables only: a query that streams has no end")
        self._reading = reading
        self._last: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        state = self._state()
        start = self._reading.first(state)
        if start > state.next:
            raise OptionError(f"{self._reading.address} ends before {start}: its next message gets {state.next}")
        return self._offset(state, start, 0)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        state = self._state()
        position = start["sequence"]
        if start["created"] != state.created or position > state.next:
            raise NatsError(
                f"{self._reading.address} is not the stream that the checkpoint belongs to: it was made "
                f"{state.created}, and that one {start['created']}; begin with another checkpoint"
            )
        end = state.next if self._last is None else max(position, min(state.next, self._last))
        gone = max(0, min(state.first, end) - position)
        if gone and self._reading.on_loss == "fail":
            raise lost(self._reading.address, position, state.first)
        if isinstance(limit, ReadMaxRows):
            end = min(end, position + gone + limit.max_rows)  # what is gone takes no time
        return self._offset(state, end, start["missed"] + gone)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._reading.max_messages)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        state = self._state()
        return self._offset(state, state.next, 0)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._state().next

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        # From here on the offsets alone decide, so that a batch is cut the same way when it is run again.
        gone = end["missed"] - start["missed"]
        return [NatsRange(*part) for part in self._reading.ranges(start["sequence"] + gone, end["sequence"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, NatsRange)
        return self._reading.read(partition.start, partition.end)

    def _state(self) -> StreamState:
        with self._reading.connection() as connection:
            return connection.state()

    def _offset(self, state: StreamState, sequence: int, missed: int) -> dict[str, Any]:
        return {
            "stream": self._reading.address.stream, "created": state.created, "sequence": sequence, "missed": missed,
        }  # fmt: skip
