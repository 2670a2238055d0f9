"""What do simulated brokers send, keep and deliver?

Everybody subscribes, some cancel again, and events are published at all brokers. What clients get is compared with
one matcher that knows all subscriptions: a strategy that saves messages and loses an event is not a result.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.matching import Matcher
from tamis.simulation import TOPOLOGIES, Network, TrafficCounters, measured
from tamis.simulation.occurrences import EventDelivered
from tamis.simulation.topologies import names
from tamis_lab.experiments.errors import DisagreementError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.routing import Broker
    from tamis_lab.experiments.base import Row

CANCELLED = 0.2
"""So many of the subscriptions are taken back, the oldest ones."""


def built(topology: str, broker_count: int, make: Callable[[str], Broker], seed: int) -> Network:
    """Return a network with a client at each broker."""
    chance = Random(seed)
    network = Network(names(broker_count), TOPOLOGIES[topology](broker_count, chance), make, chance)
    for name in names(broker_count):
        network.attach(client_of(name), name)
    network.run()
    return network


def client_of(broker: str) -> str:
    """Return the name of the client at a broker."""
    return f"client of {broker}"


def played(
    network: Network,
    filters: Sequence[Expression],
    homes: Sequence[str],
    events: Sequence[Mapping[str, Any]],
    publishers: Sequence[str],
    cancelled: float = CANCELLED,
) -> Row:
    """Subscribe, cancel, publish; return what was counted."""
    counters = TrafficCounters()
    network.observers.append(counters)
    for number, (home, wanted) in enumerate(zip(homes, filters, strict=True)):
        network.subscribe(client_of(home), number, wanted)
        network.run()
    sizes, subscribing = measured(network), counters.control_count
    gone = int(len(filters) * cancelled)
    for number in range(gone):
        network.unsubscribe(client_of(homes[number]), number)
        network.run()
    items_per_cancellation = counters.items["Unsubscribe"] / max(1, counters.messages["Unsubscribe"])
    cancelling, before = counters.control_count - subscribing, counters.event_count
    got = published(network, events, publishers)
    expected = wanted_by(dict(enumerate(filters[gone:], gone)), events)
    if got != expected:
        raise DisagreementError("the brokers", "one matcher that knows everything", 0)
    return {
        "entries": sizes["entries"],
        "largest table": sizes["largest_table"],
        "table bytes": sizes["table_bytes"],
        "subscribe messages": subscribing,
        "cancel messages": cancelling,
        "filters and keys in a cancellation": items_per_cancellation,
        "event messages": counters.event_count - before,
        "delivered": got.total(),
    }


def published(
    network: Network, events: Sequence[Mapping[str, Any]], publishers: Sequence[str]
) -> Counter[tuple[Any, Any]]:
    """Publish events, the publishers taking turns; return which subscription got which event how often."""
    got: Counter[tuple[Any, Any]] = Counter()

    def note(occurrence: object) -> None:
        if isinstance(occurrence, EventDelivered):
            got.update((occurrence.publication.key, key) for key in occurrence.subscriptions)

    network.observers.append(note)
    for number, event in enumerate(events):
        network.publish(client_of(publishers[number % len(publishers)]), number, event)
    network.run()
    network.observers.remove(note)
    return got


def wanted_by(filters: Mapping[int, Expression], events: Sequence[Mapping[str, Any]]) -> Counter[tuple[Any, Any]]:
    """Return which subscription should get which event."""
    matcher = Matcher()
    matcher.add_many(filters)
    return Counter((number, key) for number, event in enumerate(events) for key in matcher.match(event))
