"""Where is a topic of Kafka?

One URL says it: `kafka://host:9092,host:9092/topic?maxOffsetsPerTrigger=10000`. Only Spark reads it, through its own
connector (`tamis.spark.kafka`); whether it is an address can be seen without Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from tamis.sources.addresses import scheme_of
from tamis.sources.errors import OptionError
from tamis.sources.schemes.table import KAFKA

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class KafkaAddress:
    """Brokers, topics, and what else there is to say to the connector."""

    brokers: str
    topics: str
    options: dict[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"kafka://{self.brokers}/{self.topics}"


def kafka_address(url: str) -> KafkaAddress:
    """Read an address.

    >>> found = kafka_address("kafka://north,south:9093/auctions,bids?maxOffsetsPerTrigger=100")
    >>> print(found, found.options)
    kafka://north:9092,south:9093/auctions,bids {'maxOffsetsPerTrigger': '100'}
    """
    if scheme_of(url) not in KAFKA.prefixes:
        raise OptionError(f"{url} is not a Kafka address: {KAFKA.form}")
    place, _, query = url.partition("://")[2].partition("?")
    hosts, _, topics = place.partition("/")
    topics = unquote(topics.strip("/"))
    if not topics or not all(topics.split(",")):
        raise OptionError(f"{url.partition('?')[0]} names no topic: {KAFKA.form}")
    brokers = ",".join(map(_broker, hosts.split(",")))
    return KafkaAddress(brokers, topics, dict(parse_qsl(query, keep_blank_values=True)))


def _broker(host: str) -> str:
    if not host or any(each.isspace() for each in host):
        raise OptionError(f"a Kafka address must name its brokers: {KAFKA.form}")
    name, colon, port = host.rpartition(":")
    if colon and not host.endswith("]"):
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise OptionError(f"{port!r} is not a port: {KAFKA.form}")
        return f"{name}:{port}"
    return f"{host}:9092"


def require_address(url: str, options: Mapping[str, str], *, streaming: bool) -> None:
    """Raise if an address means nothing; its options are the connector's, which alone knows them."""
    kafka_address(url)
