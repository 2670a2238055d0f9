"""How are the messages of a stream of NATS events of one process? As a table, or batch by batch.

Bodies are JSON objects. A message is called by its stream and its number in it, so it has the same name in every run.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.sources.arriving import BATCH_EVENTS, Arrived, ArrivedBatch, BadLines, batches
from tamis.sources.columns import columns_of
from tamis.sources.durable_reading import DurableReading
from tamis.sources.fitting import json_as
from tamis.sources.inferring import json_table
from tamis.sources.jetstream import JetStreamClient
from tamis.sources.match_names import name_of
from tamis.sources.nats_reading import MESSAGES, arrow_batch, nats_reading
from tamis.sources.tables import json_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tamis.sources.jetstream import StreamMessage, StreamState
    from tamis.sources.nats_address import NatsAddress


def nats_table(url: str, options: Mapping[str, str], schema: str | None, keep: Sequence[str] | None) -> pa.Table:
    """Return what a stream holds now; columns to `keep` that only messages have (sequence, ...) are added."""
    columns = None if schema is None else columns_of(schema)
    with _messages(url, options) as (_, parts):
        messages = pa.Table.from_batches(map(arrow_batch, parts), MESSAGES)
    rows = [json_object(body) for body in messages["body"].to_pylist()]
    # What is not JSON is an event in which everything is NULL.
    table = json_table([row or {} for row in rows]) if columns is None else json_as(rows, columns)
    for name in dict.fromkeys(keep or ()):
        if name in MESSAGES.names and name not in table.schema.names:
            table = table.append_column(name, messages[name])
    return table


def nats_batches(url: str, options: Mapping[str, str], bad: BadLines) -> Iterator[ArrivedBatch]:
    """Yield what a stream holds now, in order."""

    def arrived() -> Iterator[Arrived]:
        with _messages(url, options) as (stream, parts):
            for message in chain.from_iterable(parts):
                event = bad.event(message.body)
                if event is not None:
                    yield name_of(stream, message.sequence), event

    return batches([arrived()], min(BATCH_EVENTS, nats_reading(url, options).max_messages))


def durable_batches(
    url: str, options: Mapping[str, str], bad: BadLines, name: str, ack_wait_s: float
) -> Iterator[ArrivedBatch]:
    """Yield what a consumer of this name has not acknowledged yet; a batch that is done is acknowledged."""
    reading = nats_reading(url, options)
    with JetStreamClient(reading.address, reading.timeout_s) as connection:
        stream = _stream_name(reading.address, connection.state())
        durable = DurableReading(connection, reading, name, ack_wait_s)
        for messages in durable.batches(BATCH_EVENTS):
            parsed = [(name_of(stream, message.sequence), bad.event(message.body)) for message in messages]
            good = [(event_name, event) for event_name, event in parsed if event is not None]
            yield ArrivedBatch(
                [event_name for event_name, _ in good],
                [event for _, event in good],
                lambda messages=messages: durable.acknowledge(messages),  # type: ignore[misc]
            )


@contextmanager
def _messages(url: str, options: Mapping[str, str]) -> Iterator[tuple[str, Iterator[list[StreamMessage]]]]:
    """Give the name of a stream, and the messages that it holds now, in order, some at a time."""
    reading = nats_reading(url, options)
    with JetStreamClient(reading.address, reading.timeout_s) as connection:
        state = connection.state()
        parts = connection.messages(max(reading.first(state), state.first), reading.behind(state))
        yield _stream_name(reading.address, state), parts


def _stream_name(address: NatsAddress, state: StreamState) -> str:
    """Return a name for a stream that no other has, not even one that is made anew under the same name."""
    return f"{address.stream} {state.created}"
