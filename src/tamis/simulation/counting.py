"""How much does a network send, keep and wait?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.routing import Advertise, Hello, Publish, Subscribe, Unadvertise, Unsubscribe, encode
from tamis.routing.table import text_bytes
from tamis.simulation.occurrences import Carried, Delivered, Occurrence

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.simulation.network import Network


@dataclass
class Counters:
    """What was sent and delivered; an observer of a network.

    `items` are the filters and keys in messages: what one message carries for several.
    """

    counts_bytes: bool = False
    messages: Counter[str] = field(default_factory=Counter)
    items: Counter[str] = field(default_factory=Counter)
    message_bytes: Counter[str] = field(default_factory=Counter)
    delivered_count: int = 0
    hop_count: int = 0
    delay_s: float = 0.0

    def __call__(self, occurrence: Occurrence) -> None:
        match occurrence:
            case Carried(_, _, message):
                kind = type(message).__name__
                self.messages[kind] += 1
                self.items[kind] += _item_count(message)
                if self.counts_bytes:
                    self.message_bytes[kind] += len(encode(message))
            case Delivered():
                self.delivered_count += 1
                self.hop_count += occurrence.hop_count
                self.delay_s += occurrence.delay_s

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
        return self.messages[Publish.__name__]


def _item_count(message: Any) -> int:
    match message:
        case Subscribe(one, two) | Unsubscribe(one, two) | Advertise(one, two) | Unadvertise(one, two):
            return len(one) + len(two)
        case Hello(one, two):
            return len(one) + len(two)
    return 1


def measured(network: Network) -> dict[str, int]:
    """Return how large the tables are now, clients' own subscriptions aside, and how many entries matched so far."""
    largest = 0
    counts: Counter[Expression] = Counter()  # each is written once, however many brokers have it
    for broker in network.brokers.values():
        tables = [broker.table.of(neighbour) for neighbour in broker.neighbours]
        largest = max(largest, sum(map(len, tables)))
        for table in tables:
            counts.update(table.values())
    return {
        "entries": counts.total(),
        "largest_table": largest,
        "table_bytes": sum(count * text_bytes(expression) for expression, count in counts.items()),
        "matches": sum(broker.table.match_count for broker in network.brokers.values()),
    }
