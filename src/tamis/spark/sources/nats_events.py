"""How do the messages of a stream of NATS become events that can be matched?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.spark.sources import register
from tamis.spark.sources.event_columns import LOOKED_AT, event_columns, events_in, nothing_seen
from tamis.spark.sources.jetstream import JetStream
from tamis.spark.sources.nats_address import SCHEMES
from tamis.spark.sources.nats_sink import SINK_OPTIONS, only_subject
from tamis.spark.sources.nats_source import COLUMNS, SOURCE_OPTIONS, NatsReading, asked_address
from tamis.spark.sources.options import Options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from tamis.spark.folders import Place
    from tamis.spark.sources.nats_address import NatsAddress

_PATIENCE_S = 3.0
"""A person waits for an answer: a server that is not there is told soon."""


def is_stream_url(events: str) -> bool:
    """Is it the address of a stream of NATS?

    >>> is_stream_url("nats://localhost/EVENTS"), is_stream_url("events.parquet")
    (True, False)
    """
    scheme, separator, _ = events.partition("://")
    return bool(separator) and scheme.lower() in SCHEMES


def require_source(url: str, options: Mapping[str, str], *, streaming: bool) -> NatsAddress:
    """Return the stream that can be read at an address; raise if there is none, or an option means nothing."""
    known = [name for name in SOURCE_OPTIONS if name != "end" or not streaming]
    reading = NatsReading.asked(Options("nats", {**options, "url": url}, known))
    with JetStream(reading.address, _PATIENCE_S) as connection:
        connection.state()
    return reading.address


def require_sink(url: str, options: Mapping[str, str]) -> None:
    """Raise unless there is a stream at an address that can be written to."""
    asked = Options("nats", {**options, "url": url}, SINK_OPTIONS)
    asked.seconds("timeout_s", 10)
    address = asked_address(asked)
    with JetStream(address, _PATIENCE_S) as connection:
        state = connection.state()
    if address.subject is None:
        only_subject(address, state)


def nats_events(
    spark: SparkSession,
    url: str,
    *,
    schema: StructType | str | None = None,
    keep: str | Sequence[str] = (),
    streaming: bool = False,
    remembered: Place | None = None,
    options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Return the events of a stream, as a table of what is there, or as a stream.

    schema        their columns, such as "price double, title string"; seen from the first messages if nobody says
    keep          columns of the result; those that only messages have (sequence, subject, ...) are added to the events
    remembered    where to keep the columns that were seen: a stream that goes on reads as it read before
    options       as for the format "nats"
    """
    settings = {name: str(value) for name, value in (options or {}).items()}
    address = require_source(url, settings, streaming=streaming)
    register(spark)
    columns = event_columns(schema, remembered, lambda: _first_messages(spark, address))
    reader: Any = spark.readStream if streaming else spark.read
    messages = reader.format("nats").options(**settings).load(url)
    return events_in(messages, columns, keep, COLUMNS)


def _first_messages(spark: SparkSession, address: NatsAddress) -> DataFrame:
    """Return the first messages that are left, whatever the query is to read: they say which columns events have."""
    found: list[tuple[bytes]] = []
    with JetStream(address) as connection:
        state = connection.state()
        for messages in connection.messages(state.first, state.next):
            found += [(message.body,) for message in messages]
            if len(found) >= LOOKED_AT:
                break
    if not found:
        raise nothing_seen(address)
    return spark.createDataFrame(found[:LOOKED_AT], "body binary")
