"""How much does a network send, keep and wait?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.routing import Advertise, Hello, Passed, Subscribe, Unadvertise, Unsubscribe, encode
from tamis.routing.table import text_bytes
from tamis.simulation.occurrences import EventDelivered, MessageCarried, MessagePosted, Occurrence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.routing.messages import Key
    from tamis.simulation.network import Network


@dataclass
class TrafficCounters:
    """What was sent and delivered; an observer of a network.

    `items` are the filters and keys in messages: what one message carries for several.
    """

    counts_bytes: bool = False
    messages: Counter[str] = field(default_factory=Counter)
    posted: Counter[str] = field(default_factory=Counter)
    """By kind, as messages are, what did not go along a link but to its receiver at once."""
    items: Counter[str] = field(default_factory=Counter)
    message_bytes: Counter[str] = field(default_factory=Counter)
    delivered_count: int = 0
    hop_count: int = 0
    """Of all deliveries together; so is the delay."""
    delay_s: float = 0.0
    largest_hop_count: int = 0
    largest_delay_s: float = 0.0

    def __call__(self, occurrence: Occurrence) -> None:
        match occurrence:
            case MessageCarried(_, _, message):
                kind = type(message).__name__
                self.messages[kind] += 1
                self.items[kind] += _item_count(message)
                if self.counts_bytes:
                    self.message_bytes[kind] += len(encode(message))
            case MessagePosted(_, _, message):
                self.posted[type(message).__name__] += 1
            case EventDelivered():
                self.delivered_count += 1
                self.hop_count += occurrence.hop_count
                self.delay_s += occurrence.delay_s
                self.largest_hop_count = max(self.largest_hop_count, occurrence.hop_count)
                self.largest_delay_s = max(self.largest_delay_s, occurrence.delay_s)

    @property
    def control_count(self) -> int:
        """How many messages were about filters; greetings aside, which links exchange once."""
        return sum(self.messages[kind.__name__] for kind in (Subscribe, Unsubscribe, Advertise, Unadvertise))

    @property
    def item_count(self) -> int:
        """How many filters and keys those messages carried."""
        return sum(self.items[kind.__name__] for kind in (Subscribe, Unsubscribe, Advertise, Unadvertise))

    @property
    def event_count(self) -> int:
        """How many times an event crossed a link."""
        return self.messages[Passed.__name__]


def _item_count(message: Any) -> int:
    match message:
        case Subscribe(one, two) | Unsubscribe(one, two) | Advertise(one, two) | Unadvertise(one, two):
            return len(one) + len(two)
        case Hello(one, two):
            return len(one) + len(two)
    return 1


def measured(network: Network) -> dict[str, int]:
    """Return how large the tables are now, and how many entries matched so far.

    What clients want and advertise themselves is left aside: it is the same whatever brokers do.
    """
    filters = [[broker.table.of(neighbour) for neighbour in broker.neighbours] for broker in network.brokers.values()]
    advertised = [
        [broker.advertised_by(neighbour) for neighbour in broker.neighbours] for broker in network.brokers.values()
    ]
    entries, largest, table_bytes = _sizes(filters)
    advertisements, largest_advertised, advertisement_bytes = _sizes(advertised)
    return {
        "entries": entries,
        "largest_table": largest,
        "table_bytes": table_bytes,
        "matches": sum(broker.table.match_count for broker in network.brokers.values()),
        "advertisements": advertisements,
        "largest_advertisement_table": largest_advertised,
        "advertisement_bytes": advertisement_bytes,
    }


def _sizes(tables: Sequence[Sequence[Mapping[Key, Expression]]]) -> tuple[int, int, int]:
    """Return the entries of all brokers' tables, those of the largest, and the bytes of all as text."""
    counts: Counter[Expression] = Counter()  # each is written once, however many brokers have it
    for table in (table for of_broker in tables for table in of_broker):
        counts.update(table.values())
    largest = max((sum(map(len, of_broker)) for of_broker in tables), default=0)
    return counts.total(), largest, sum(count * text_bytes(each) for each, count in counts.items())
