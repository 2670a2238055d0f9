"""What does a network of brokers cost, by strategy?

    routing_tables    control messages, tables and their bytes, for growing numbers of subscriptions
    routing_events    how many messages a second the simulator carries, and how many of them the events need

`wrong` counts deliveries that are missing or too many, beside one matcher that knows all subscriptions; and events that
a perfect strategy carried over a link behind which nobody wanted them.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Any

from benchmarks.cases import CASES, events_of, parsed
from tamis.language import parse
from tamis.matching import Matcher
from tamis.routing import STRATEGIES, Broker
from tamis.simulation import TOPOLOGIES, Checker, Counters, Network, measured
from tamis.simulation.occurrences import Delivered
from tamis.simulation.topologies import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.language import Expression

SIMILAR = "similar"
"""Subscriptions to shares, of which few are popular, up to round prices: many are identical, covered, or merge."""
NETWORKS = (("line", 5), ("balanced tree", 100))
_EVENTS = 300
_CHECKED = 20
"""So many events' ways are compared with those that are needed."""


def _load(name: str, subscription_count: int, event_count: int, seed: int) -> tuple[list[Expression], list[Any]]:
    """Return filters and events of a workload."""
    if name != SIMILAR:
        workload = CASES[name]()
        filters = parsed(workload.subscriptions(subscription_count, seed))
        return filters, events_of(workload.events(event_count, seed + 1))
    chance = Random(seed)

    def share() -> str:
        return f"share {int(200 * chance.random() ** 2):03}"

    texts = [
        chance.choice(
            (
                f"name = '{share()}' AND price < {10 * chance.randint(1, 20)}",
                f"name = '{share()}' AND price BETWEEN {10 * chance.randint(0, 10)} AND {10 * chance.randint(10, 20)}",
                f"name IN ('{share()}', '{share()}') AND price < {50 * chance.randint(1, 4)}",
            )
        )
        for _ in range(subscription_count)
    ]
    events = [{"name": share(), "price": chance.uniform(0, 200)} for _ in range(event_count)]
    return [parse(text) for text in texts], events


def _network(topology: str, broker_count: int, strategy: str, seed: int, algorithm: str = "block") -> Network:
    chance = Random(seed)
    links = TOPOLOGIES[topology](broker_count, chance)
    network = Network(names(broker_count), links, lambda name: Broker(name, strategy, algorithm=algorithm), chance)
    for name in names(broker_count):
        network.attach(f"client of {name}", name)
    network.run()
    return network


def routing_tables(
    networks: Sequence[tuple[str, int]] = NETWORKS,
    subscription_counts: Sequence[int] = (200,),
    strategies: Sequence[str] = ("flooding", "simple", "identity", "covering", "merging"),
    names: Sequence[str] = (SIMILAR, "auction"),
    cancelled_share: float = 0.1,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many control messages does it take until subscriptions have spread, and how large are the tables then?"""
    for name, (topology, broker_count) in product(names, networks):
        for count in subscription_counts:
            filters, events = _load(name, count, _EVENTS, seed)
            for strategy in strategies:
                network = _network(topology, broker_count, strategy, seed)
                counters = Counters()
                network.observers.append(counters)
                chance = Random(seed)
                homes = [f"client of b{chance.randrange(broker_count)}" for _ in filters]
                start = process_time()
                for number, (client, filter_) in enumerate(zip(homes, filters, strict=True)):
                    network.subscribe(client, number, filter_)
                    network.run()
                subscribed = counters.control_count
                sizes = measured(network)
                for number in range(int(count * cancelled_share)):
                    network.unsubscribe(homes[number], number)
                    network.run()
                spent_s = process_time() - start
                active = {number: filters[number] for number in range(int(count * cancelled_share), count)}
                match_count, wrong = _judged(network, events, active)
                yield {
                    "workload": name,
                    "network": f"{topology} of {broker_count}",
                    "subscriptions": count,
                    "strategy": strategy,
                    "subscribe_messages": subscribed,
                    "cancel_messages": counters.control_count - subscribed,
                    "entries": sizes["entries"],
                    "largest_table": sizes["largest_table"],
                    "table_bytes": sizes["table_bytes"],
                    "change_us": spent_s / (count + int(count * cancelled_share)) * 1e6,
                    "matches": match_count,
                    "wrong": wrong,
                }


def _judged(network: Network, events: list[Any], active: dict[int, Any]) -> tuple[int, int]:
    """Publish events; return how many matches one matcher finds that knows all subscriptions, and how many differ."""
    judge = Matcher()
    judge.add_many(active)
    got: Counter[tuple[int, int]] = Counter()

    def note(occurrence: Any) -> None:
        if isinstance(occurrence, Delivered):
            got.update((occurrence.publication.key, key) for key in occurrence.subscriptions)

    network.observers.append(note)
    clients = list(network.clients)
    for number, event in enumerate(events):
        network.publish(clients[number % len(clients)], number, event)
    network.run()
    expected = Counter((number, key) for number, event in enumerate(events) for key in judge.match(event))
    return expected.total(), (got - expected).total() + (expected - got).total()


def routing_events(
    networks: Sequence[tuple[str, int]] = NETWORKS,
    subscription_count: int = 500,
    event_count: int = 500,
    strategies: Sequence[str] = tuple(STRATEGIES)[:-1],
    name: str = SIMILAR,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many messages does the simulator carry in a second, and how many does an event need?"""
    filters, events = _load(name, subscription_count, event_count, seed)
    for topology, broker_count in networks:
        for strategy in strategies:
            network = _network(topology, broker_count, strategy, seed)
            chance = Random(seed)
            clients = list(network.clients)
            for number, filter_ in enumerate(filters):
                network.subscribe(chance.choice(clients), number, filter_)
            network.run()
            network.publish(clients[0], "first", events[0])  # tables are laid out
            network.run()
            counters = Counters()
            network.observers.append(counters)
            start = process_time()
            for number, event in enumerate(events):
                network.publish(chance.choice(clients), number, event)
            network.run()
            spent_s = process_time() - start
            yield {
                "network": f"{topology} of {broker_count}",
                "strategy": strategy,
                "events": event_count,
                "messages_s": counters.event_count / spent_s,
                "messages_per_event": counters.event_count / event_count,
                "load": counters.event_count / event_count / (broker_count - 1),
                "hops": counters.hop_count / max(1, counters.delivered_count),
                "delivered": counters.delivered_count,
                "wrong": _detours(network, clients, events[:_CHECKED], STRATEGIES[strategy].is_perfect),
            }


def _detours(network: Network, clients: list[str], events: list[Any], is_perfect: bool) -> int:
    """Publish some events again while a checker looks on; return what it finds."""
    checker = Checker(network, is_perfect=is_perfect)
    for client in network.clients.values():
        for key, filter_ in client.subscriptions.items():
            checker.knows(client.name, key, filter_)
    network.run()
    for number, event in enumerate(events):
        network.publish(clients[number % len(clients)], f"checked {number}", event)
    network.run()
    assert checker.calm_count == len(events)
    return len(checker.problems)
