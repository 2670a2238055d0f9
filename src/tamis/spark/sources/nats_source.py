"""How does Spark read a stream of NATS, and read the same again after a crash?

A stream of JetStream numbers its messages and keeps them, so a range of numbers is a table, and a number is where a
query has got to. That number lies in Spark's checkpoint; the server keeps nothing about us. A range that is read
again gives the same messages, unless the stream has dropped them meanwhile: those are counted (`missed`) in the
offset, which the progress of the query shows and the checkpoint keeps, or they stop the query (`on_loss` set to
`fail`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

from tamis.spark.errors import LostMessagesError, NatsError, OptionError
from tamis.spark.sources.jetstream import JetStream
from tamis.spark.sources.nats_address import NatsAddress, nats_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.streaming.datasource import ReadLimit

    from tamis.spark.sources.jetstream import Message, StreamState
    from tamis.spark.sources.options import Options

SCHEMA = "subject string, sequence bigint, published timestamp, headers map<string,string>, body binary"
_ARROW = pa.schema(
    [
        ("subject", pa.string()),
        ("sequence", pa.int64()),
        ("published", pa.timestamp("us", "UTC")),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("body", pa.binary()),
    ]
)
COLUMNS = tuple(_ARROW.names)
SOURCE_OPTIONS = (
    "url", "stream", "subject", "credentials", "timeout_s", "start", "end", "max_messages", "partitions",
    "partition_messages", "on_loss",
)  # fmt: skip


@dataclass(frozen=True)
class NatsReading:
    """What is read, and how."""

    address: NatsAddress
    timeout_s: float
    start: str
    end: str
    max_messages: int
    """The most of a micro-batch."""
    partitions: int
    partition_messages: int
    on_loss: str

    @classmethod
    def asked(cls, options: Options) -> NatsReading:
        found = cls(
            address=asked_address(options),
            timeout_s=options.seconds("timeout_s", 10),
            start=options.text("start", "earliest") or "",
            end=options.text("end", "latest") or "",
            max_messages=options.number("max_messages", 100_000),
            partitions=options.number("partitions", 8),
            partition_messages=options.number("partition_messages", 10_000),
            on_loss=options.one_of("on_loss", ("report", "fail")),
        )
        if found.start not in ("earliest", "latest"):
            _sequence("start", found.start)
        if found.end != "latest":
            _sequence("end", found.end)
        return found

    def connection(self) -> JetStream:
        return JetStream(self.address, self.timeout_s)

    def first(self, state: StreamState) -> int:
        """Return the sequence to begin with."""
        return {"earliest": state.first, "latest": state.next}.get(self.start) or _sequence("start", self.start)

    def behind(self, state: StreamState) -> int:
        """Return the sequence before which to end."""
        return state.next if self.end == "latest" else min(state.next, _sequence("end", self.end) + 1)

    def ranges(self, start: int, end: int) -> list[NatsRange]:
        """Cut a range into parts for tasks: as few as there have to be, and never more than allowed.

        The same range is cut the same way each time, because rows get their names from the part they are in.
        """
        count = min(self.partitions, -(-(end - start) // self.partition_messages))
        cuts = [start + (end - start) * number // count for number in range(count + 1)] if end > start else []
        return [NatsRange(first, last) for first, last in pairwise(cuts)]

    def read(self, part: NatsRange) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a part."""
        with self.connection() as connection:
            if self.on_loss == "fail":
                first = connection.state().first
                if first > part.start:
                    raise lost(self.address, part.start, first)
            for messages in connection.messages(part.start, part.end):
                yield arrow_batch(messages)


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
        return self._reading.ranges(max(start, state.first), self._reading.behind(state)) or [NatsRange(1, 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, NatsRange)
        return self._reading.read(partition)


class NatsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream as a stream. An offset has the next sequence, and which stream that is a sequence of."""

    def __init__(self, reading: NatsReading) -> None:
        if reading.end != "latest":
            raise OptionError("a query that streams has no end; the option is for tables")
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
                f"{self._reading.address} is another stream than the one that the checkpoint is about: it was made "
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
        return self._reading.ranges(start["sequence"] + gone, end["sequence"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, NatsRange)
        return self._reading.read(partition)

    def _state(self) -> StreamState:
        with self._reading.connection() as connection:
            return connection.state()

    def _offset(self, state: StreamState, sequence: int, missed: int) -> dict[str, Any]:
        return {
            "stream": self._reading.address.stream, "created": state.created, "sequence": sequence, "missed": missed,
        }  # fmt: skip


def arrow_batch(messages: list[Message]) -> pa.RecordBatch:
    """Return messages as rows."""
    subjects, sequences, times, headers, bodies = zip(*messages, strict=True) if messages else ((),) * 5
    columns = [subjects, sequences, times, [list(each.items()) for each in headers], bodies]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def asked_address(options: Options) -> NatsAddress:
    """Return the stream that options name."""
    return nats_address(
        options.text("url") or options.text("path"),
        options.text("stream"),
        options.text("subject"),
        options.text("credentials"),
    )


def lost(address: NatsAddress, wanted: int, first: int) -> LostMessagesError:
    """Return the error that says what is gone."""
    return LostMessagesError(
        f"{address} no longer has the messages {wanted:,} to {first - 1:,}, which were not read yet; "
        f"keep messages longer, or go on without them: on_loss=report"
    )


def _sequence(name: str, written: str) -> int:
    if not written.isdecimal() or int(written) < 1:
        words = "earliest, latest" if name == "start" else "latest"
        raise OptionError(f"{name} of nats is {words} or a sequence from 1 on, not {written!r}")
    return int(written)
