"""Which messages of a stream of NATS are read, and in which parts?

A stream of JetStream numbers its messages and keeps them, so a range of numbers is a table. A range that is read again
gives the same messages, unless the stream has dropped them meanwhile: that is told, or an error (`on_loss`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.sources.errors import LostMessagesError, OptionError
from tamis.sources.jetstream import JetStreamClient
from tamis.sources.nats_address import NatsAddress, asked_address
from tamis.sources.schemes.table import NATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.sources.jetstream import StreamMessage, StreamState
    from tamis.sources.options import Options

SCHEMA = "subject string, sequence bigint, published timestamp, headers map<string,string>, body binary"
MESSAGES = pa.schema(
    [
        ("subject", pa.string()),
        ("sequence", pa.int64()),
        ("published", pa.timestamp("us", "UTC")),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("body", pa.binary()),
    ]
)
"""What a message has, as columns."""
COLUMNS = tuple(MESSAGES.names)
_PATIENCE_S = 3.0
"""A person waits for an answer: a server that is not there is told soon."""


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
        reading = cls(
            address=asked_address(options),
            timeout_s=options.seconds("timeout_s", 10),
            start=options.text("start", "earliest") or "",
            end=options.text("end", "latest") or "",
            max_messages=options.number("max_messages", 100_000),
            partitions=options.number("partitions", 8),
            partition_messages=options.number("partition_messages", 10_000),
            on_loss=options.one_of("on_loss", ("report", "fail")),
        )
        if reading.start not in ("earliest", "latest"):
            _sequence("start", reading.start)
        if reading.end != "latest":
            _sequence("end", reading.end)
        return reading

    def connection(self) -> JetStreamClient:
        return JetStreamClient(self.address, self.timeout_s)

    def first(self, state: StreamState) -> int:
        """Return the sequence to begin with."""
        return {"earliest": state.first, "latest": state.next}.get(self.start) or _sequence("start", self.start)

    def behind(self, state: StreamState) -> int:
        """Return the sequence before which to end."""
        return state.next if self.end == "latest" else min(state.next, _sequence("end", self.end) + 1)

    def ranges(self, start: int, end: int) -> list[tuple[int, int]]:
        """Cut a range into parts for tasks: as few as there have to be, and never more than allowed.

        The same range is cut the same way each time, because rows get their names from the part they are in.
        """
        count = min(self.partitions, -(-(end - start) // self.partition_messages))
        cuts = [start + (end - start) * number // count for number in range(count + 1)] if end > start else []
        return list(pairwise(cuts))

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range."""
        with self.connection() as connection:
            if self.on_loss == "fail":
                first = connection.state().first
                if first > start:
                    raise lost(self.address, start, first)
            for messages in connection.messages(start, end):
                yield arrow_batch(messages)


def nats_reading(url: str, options: Mapping[str, str], *, streaming: bool = False) -> NatsReading:
    """Return what is to be read at an address."""
    return NatsReading.asked(NATS.source_options({**options, "url": url}, streaming=streaming))


def require_source(url: str, options: Mapping[str, str], *, streaming: bool) -> NatsAddress:
    """Return the stream that can be read at an address; raise if there is none, or an option means nothing."""
    reading = nats_reading(url, options, streaming=streaming)
    with JetStreamClient(reading.address, _PATIENCE_S) as connection:
        connection.state()
    return reading.address


def arrow_batch(messages: list[StreamMessage]) -> pa.RecordBatch:
    """Return messages as rows."""
    subjects, sequences, times, headers, bodies = zip(*messages, strict=True) if messages else ((),) * 5
    columns = [subjects, sequences, times, [list(each.items()) for each in headers], bodies]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, MESSAGES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=MESSAGES)


def lost(address: NatsAddress, wanted: int, first: int) -> LostMessagesError:
    """Return the error that says what is gone."""
    return LostMessagesError(
        f"{address} no longer has the messages {wanted:,} to {first - 1:,}, which were not read yet; "
        f"keep messages longer, or go on without them: on_loss=report"
    )


def _sequence(name: str, written: str) -> int:
    if not written.isdecimal() or int(written) < 1:
        words = "earliest, latest" if name == "start" else "latest"
        raise OptionError(f"{name} of nats must be {words} or a sequence number of at least 1, not {written!r}")
    return int(written)
