"""Which schemes are there? The table of connectors.

A record for each: `nats`, `kafka`, `webhook`, `tamis`, files, and servers that take no matches, though Spark may read
files from them. What begins with anything else is files, and so is every plain path: which file systems there are,
Spark knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.sources.addresses import scheme_of
from tamis.sources.schemes.row import Deferred, Refusal, Requirement, Scheme, Sink, Source

if TYPE_CHECKING:
    import os

NATS = Scheme(
    name="nats",
    title="NATS",
    prefixes=("nats", "tls", "ws", "wss"),
    form="nats://host:4222/STREAM",
    source=Source(
        look=Deferred("tamis.sources.nats_reading:require_source"),
        table=Deferred("tamis.sources.nats_events:nats_table"),
        arriving=Deferred("tamis.sources.nats_events:nats_batches"),
        durable=Deferred("tamis.sources.nats_events:durable_batches"),
        on_spark=Deferred("tamis.spark.sources.nats_events:nats_events"),
        options=(
            "url",
            "stream",
            "subject",
            "credentials",
            "timeout_s",
            "start",
            "end",
            "max_messages",
            "partitions",
            "partition_messages",
            "on_loss",
        ),
        of_tables=("end",),
    ),
    sink=Sink(
        require=Deferred("tamis.sources.nats_sink:require_address"),
        ask=Deferred("tamis.sources.nats_sink:require_sink"),
        writing=Deferred("tamis.sources.nats_sink:nats_writing"),
        options=("url", "stream", "subject", "credentials", "timeout_s", "id"),
    ),
    formats=(Deferred("tamis.spark.sources.nats:NatsDataSource"),),
    requires=Requirement(
        "nats", "the client of NATS is not installed; install it with tamis: pip install 'tamis[nats]'"
    ),
)
KAFKA = Scheme(
    name="kafka",
    title="Kafka",
    prefixes=("kafka",),
    form="kafka://host:9092/topic",
    source=Source(
        look=Deferred("tamis.sources.kafka_address:require_address"),
        on_spark=Deferred("tamis.spark.kafka:kafka_events"),
        settings=Deferred("tamis.spark.kafka:kafka_packages"),
    ),
    sink=Refusal(
        "matches cannot go to {}",
        "Kafka is written to by Spark's own sink, from the folder of matches: see tamis.spark.kafka_messages",
    ),
)
WEBHOOK = Scheme(
    name="webhook",
    title="webhooks",
    prefixes=("http", "https"),
    form="https://host/path",
    source=Refusal("events are not fetched from web servers", "Name files, or a stream: nats:// or kafka://"),
    sink=Sink(
        require=Deferred("tamis.sources.webhook:require_address"),
        writing=Deferred("tamis.sources.webhook:webhook_writing"),
        options=("url", "batch_rows", "batch_bytes", "timeout_s", "patience_s", "header.<name>"),
    ),
    formats=(Deferred("tamis.spark.sources.webhook:WebhookDataSource"),),
)
_TO_A_BROKER = ("url", "token", "ca", "certificate", "key", "patience_s")
"""How to reach one, whether events are read there or published."""
BROKER = Scheme(
    name="tamis",
    title="brokers of Tamis",
    prefixes=("tamis", "tamis+tls"),
    form="tamis://host:7410",
    source=Source(
        look=Deferred("tamis.service.bridge.reading:require_source"),
        table=Deferred("tamis.service.bridge.arriving:broker_table"),
        arriving=Deferred("tamis.service.bridge.arriving:broker_batches"),
        on_spark=Deferred("tamis.spark.sources.broker_events:broker_events"),
        options=(
            *_TO_A_BROKER,
            "where",
            "name",
            "start",
            "end",
            "max_events",
            "partitions",
            "partition_events",
            "on_loss",
        ),
        of_tables=("end",),
    ),
    sink=Sink(
        require=Deferred("tamis.service.bridge.writing:require_address"),
        ask=Deferred("tamis.service.bridge.writing:require_sink"),
        writing=Deferred("tamis.service.bridge.writing:event_writing"),
        options=(
            *_TO_A_BROKER,
            "type",
            "source",
            "subject",
            "time",
            "id",
            "batch_rows",
            "batch_bytes",
        ),
    ),
    formats=(Deferred("tamis.spark.sources.broker:BrokerDataSource"),),
    requires=Requirement(
        "aiohttp", "what brokers are asked with is not installed; install it with tamis: pip install 'tamis[service]'"
    ),
)
_FILES = Source(
    table=Deferred("tamis.sources.tables:event_table"),
    arriving=Deferred("tamis.sources.arriving:file_batches"),
    on_spark=Deferred("tamis.spark.files:file_events"),
    are_files=True,
)
FILES = Scheme(
    name="a folder of matches",
    title="files",
    prefixes=("", "file"),
    form="a folder",
    source=_FILES,
    sink=Sink(require=Deferred("tamis.sources.places:require_no_options"), options=()),
    formats=(Deferred("tamis.spark.sources.parquet_folder:ParquetFolderDataSource"),),
)
NOT_WRITTEN = Scheme(
    name="servers",
    title="servers that take no matches",
    prefixes=("ftp", "mqtt", "amqp", "redis", "jdbc", "tcp"),
    form="",
    source=_FILES,
    sink=Refusal("matches cannot go to {}", "a folder, nats://... or https://..."),
)
SCHEMES: tuple[Scheme, ...] = (NATS, KAFKA, WEBHOOK, BROKER, FILES, NOT_WRITTEN)


def scheme_at(place: str | os.PathLike[str]) -> Scheme:
    """Return what is known of the kind of address that a place has; a path of pathlib holds no address.

    >>> [scheme_at(place).title for place in ("nats://host/EVENTS", "HTTPS://host/hook", "s3a://bucket/a", "a.csv")]
    ['NATS', 'webhooks', 'files', 'files']
    """
    prefix = scheme_of(place) if isinstance(place, str) else ""
    return next((scheme for scheme in SCHEMES if prefix in scheme.prefixes), FILES)
