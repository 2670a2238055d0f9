"""What does an address stand for, and is anybody there?

A place that events come from or matches go to is a path or an address with a scheme. What can be seen of it without an
event is looked at before anything takes time: a wrong address costs a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.sources.errors import OptionError
from tamis.sources.jetstream import JetStream
from tamis.sources.nats_address import asked_address, is_nats, scheme_of, without_secrets
from tamis.sources.nats_reading import SOURCE_OPTIONS, NatsReading
from tamis.sources.nats_sink import SINK_OPTIONS, NatsWriting, only_subject
from tamis.sources.options import Options
from tamis.sources.webhook import WebhookWriting, webhook_writing

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from tamis.sources.nats_address import NatsAddress

_PATIENCE_S = 3.0
"""A person waits for an answer: a server that is not there is told soon."""
_NOT_FOLDERS = ("kafka", "ftp", "mqtt", "amqp", "redis", "jdbc", "ws", "wss", "tcp")
"""What a folder's address never begins with; any other scheme may be a file system that Spark knows."""


def is_url(out: str | os.PathLike[str]) -> bool:
    """Is it the address of a stream of NATS or of a webhook?

    >>> is_url("https://example.org/hook"), is_url("nats://localhost/MATCHES"), is_url("matches")
    (True, True, False)
    """
    return isinstance(out, str) and (is_nats(out) or scheme_of(out) in ("http", "https"))


def require_place(out: str | os.PathLike[str], options: Mapping[str, str]) -> None:
    """Raise if matches cannot go to a place, or its options mean nothing, as far as that can be seen without rows."""
    if not is_url(out):
        if scheme_of(str(out)) in _NOT_FOLDERS:
            told = "Kafka is written to by Spark's own sink, from the folder of matches: see tamis.spark.kafka_messages"
            hint = told if scheme_of(str(out)) == "kafka" else "a folder, nats://... or https://..."
            raise OptionError(f"matches cannot go to {without_secrets(str(out))}: {hint}")
        Options("a folder of matches", options, ())
    elif is_nats(str(out)):
        asked_address(Options("nats", {**options, "url": str(out)}, SINK_OPTIONS))
    else:
        webhook_writing({**options, "url": str(out)})


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


def writing_to(url: str, options: Mapping[str, str], columns: Sequence[str]) -> NatsWriting | WebhookWriting:
    """Return how rows with these columns are written to an address."""
    if is_nats(url):
        return NatsWriting.asked(Options("nats", {**options, "url": url}, SINK_OPTIONS), columns)
    return webhook_writing({**options, "url": url})
