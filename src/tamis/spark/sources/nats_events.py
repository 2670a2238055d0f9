"""How do the messages of a stream of NATS become events that can be matched?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.sources.jetstream import JetStreamClient
from tamis.sources.nats_reading import COLUMNS, require_source
from tamis.spark.sources import register
from tamis.spark.sources.event_columns import LOOKED_AT, event_columns, events_in, nothing_seen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from tamis.sources.nats_address import NatsAddress
    from tamis.spark.folders import Place


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
    bodies: list[tuple[bytes]] = []
    with JetStreamClient(address) as connection:
        state = connection.state()
        for messages in connection.messages(state.first, state.next):
            bodies += [(message.body,) for message in messages]
            if len(bodies) >= LOOKED_AT:
                break
    if not bodies:
        raise nothing_seen(address)
    return spark.createDataFrame(bodies[:LOOKED_AT], "body binary")
