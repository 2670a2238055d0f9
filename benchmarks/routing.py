"""What does a network of brokers cost, by strategy?

    routing_tables    control messages, tables and their bytes, for growing numbers of subscriptions
    routing_costs     how long it takes to decide what one neighbour is told of many filters
    routing_slices    how long a unit of work is at most, when a neighbour is connected gradually
    routing_events    how many messages a second the simulator carries, and how many of them the events need

`wrong` counts deliveries that are missing or too many, beside one matcher that knows all subscriptions; and events that
a perfect strategy carried over a link behind which nobody wanted them.
"""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import contextmanager
from itertools import islice, pairwise, product
from pathlib import Path
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.cases import CASES, events_of, parsed
from tamis.language import parse
from tamis.matching import Matcher
from tamis.pruning import Goal
from tamis.relations import identical
from tamis.relations.forms import Context, context_of
from tamis.routing import STRATEGIES, Broker, Entry, Pruned, Strategy, Subscribe, Unsubscribe, strategy_of
from tamis.selectivity import Sample
from tamis.simulation import TOPOLOGIES, Checker, Network, TrafficCounters, measured
from tamis.simulation.occurrences import EventDelivered
from tamis.simulation.topologies import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.language import Expression

SIMILAR = "similar"
"""Subscriptions to shares, of which few are popular, up to round prices: many are identical, covered, or merge."""
NETWORKS = (("line", 5), ("balanced tree", 100), ("random tree", 100))
PRUNED = ", pruned"
COSTS = (*STRATEGIES, *(name + PRUNED for name in STRATEGIES if name != "flooding"))
"""All strategies, and all that have something to prune with a condition left out of each filter on each link."""
_EVENTS = 300
_CHECKED = 20
"""So many events' ways are compared with those that are needed."""
_ONE_BY_ONE = 10_000
_BATCHES = 1_000
"""Up to so many subscriptions come one by one; more of them come in so many batches, each from one client at once."""
_CANCELLED = 1_000
_MOST_ENTRIES = 5_000_000
"""Above so many entries of simple routing, what simple routing and identity cost is computed and not simulated."""


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
    known: dict[str, Expression] = {}  # equal texts are one filter, which is read once
    return [known[text] if text in known else known.setdefault(text, parse(text)) for text in texts], events


def _strategy(name: str, events: list[Any]) -> Strategy:
    """Return a strategy, which all brokers of a network share, and with it what it found out about filters."""
    if not name.endswith(PRUNED):
        return strategy_of(name)
    return Pruned(strategy_of(name.removesuffix(PRUNED)), Goal(count=1), Sample(events).share)


def _network(topology: str, broker_count: int, strategy: Strategy, seed: int, algorithm: str = "block") -> Network:
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
    strategies: Sequence[str] = COSTS,
    names: Sequence[str] = (SIMILAR, "auction"),
    cancelled_share: float = 0.1,
    most_s: float = 300.0,
    most_gb: float = 12.0,
    most_entries: int = _MOST_ENTRIES,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many control messages does it take until subscriptions have spread, and how large are the tables then?

    A case that takes longer than `most_s` of processor time, or more than `most_gb` of memory, is stopped after the
    batch under way; then `registered` says how far it came, and everything else is about those subscriptions. What
    simple routing and identity cost is computed where it would take more than `most_entries` entries.
    """
    for name, (topology, broker_count), count in product(names, networks, subscription_counts):
        filters, events = _load(name, count, _EVENTS, seed)
        for strategy in strategies:
            batch = 1 if count <= _ONE_BY_ONE else count // _BATCHES
            told = {
                "workload": name,
                "network": f"{topology} of {broker_count}",
                "subscriptions": count,
                "strategy": strategy,
                "at_once": batch,
            }
            if strategy in COMPUTED and count * broker_count > most_entries:
                found = COMPUTED[strategy](filters, topology, broker_count, batch, seed)
                yield told | {"registered": count, "stopped": "computed"} | found
                continue
            with _uncollected():
                network = _network(topology, broker_count, _strategy(strategy, events), seed)
                yield told | _simulated_cost(network, filters, events, batch, cancelled_share, most_s, most_gb, seed)
                del network


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector of cycles away, which takes a third of the time among millions of entries and finds none."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


def _simulated_cost(
    network: Network,
    filters: Sequence[Expression],
    events: list[Any],
    batch: int,
    cancelled_share: float,
    most_s: float,
    most_gb: float,
    seed: int,
) -> dict[str, Any]:
    """Let clients subscribe, cancel a share of it, publish events; return what that costs."""
    counters = TrafficCounters()
    network.observers.append(counters)
    chance = Random(seed)
    homes: list[str] = []
    stopped = ""
    start = process_time()
    waiting = iter(filters)
    while not stopped and (some := list(islice(waiting, batch))):
        client = f"client of b{chance.randrange(len(network.brokers))}"
        network.subscribe_many(client, dict(enumerate(some, len(homes))))
        network.run()
        homes += [client] * len(some)
        stopped = _stopped(process_time() - start, most_s, most_gb)
    subscribed_s = process_time() - start
    subscribed, items = counters.control_count, counters.item_count
    sizes = measured(network)
    cancelled = min(int(len(homes) * cancelled_share), _CANCELLED)
    start = process_time()
    for number in range(cancelled):
        network.unsubscribe(homes[number], number)
        network.run()
        if process_time() - start > most_s / 3:
            cancelled = number + 1
            break
    cancel_s = process_time() - start
    active = {number: filters[number] for number in range(cancelled, len(homes))}
    match_count, wrong = _judged(network, events, active)
    return {
        "registered": len(homes),
        "stopped": stopped,
        "subscribe_messages": subscribed,
        "subscribe_items": items,
        "cancel_messages": (counters.control_count - subscribed) / max(1, cancelled),
        "entries": sizes["entries"],
        "largest_table": sizes["largest_table"],
        "table_bytes": sizes["table_bytes"],
        "subscribe_us": subscribed_s / max(1, len(homes)) * 1e6,
        "cancel_us": cancel_s / max(1, cancelled) * 1e6,
        "matches": match_count,
        "wrong": wrong,
    }


def _simple_cost(
    filters: Sequence[Expression], topology: str, broker_count: int, batch: int, seed: int
) -> dict[str, Any]:
    """Return what simple routing costs: every broker but one's own is told of every filter."""
    chance = Random(seed)
    others = broker_count - 1
    homes = Counter(chance.randrange(broker_count) for _ in range(0, len(filters), batch))
    fewest = min(homes[number] for number in range(broker_count)) * batch
    sizes = Counter(filters)
    return {
        "subscribe_messages": homes.total() * others,
        "subscribe_items": len(filters) * others,
        "entries": len(filters) * others,
        "largest_table": len(filters) - fewest,
        "table_bytes": others * sum(len(str(each).encode()) * count for each, count in sizes.items()),
    }


def _identity_cost(
    filters: Sequence[Expression], topology: str, broker_count: int, batch: int, seed: int
) -> dict[str, Any]:
    """Return what identity costs: a link is told of each different filter behind it, when the first of them comes."""
    chance = Random(seed)
    context = context_of(None)
    numbers: dict[Any, int] = {}
    number_of = {each: numbers.setdefault(context.form(each).formula, len(numbers)) for each in dict.fromkeys(filters)}
    never = len(filters)
    shape = (broker_count, len(numbers))
    firsts = np.full(shape, never, np.int64)  # in which batch a broker's clients first want it, and how it is written
    sizes = np.zeros(shape, np.int64)
    for start in range(0, len(filters), batch):
        home = chance.randrange(broker_count)
        for each in filters[start : start + batch]:
            number = number_of[each]
            if firsts[home, number] == never:
                firsts[home, number], sizes[home, number] = start, len(str(each).encode())
    messages = told_bytes = 0
    tables: Counter[int] = Counter()
    for receiver, behind in _sides(TOPOLOGIES[topology](broker_count, Random(seed))):
        earliest = firsts[behind].argmin(axis=0)
        first = np.take_along_axis(firsts[behind], earliest[None], axis=0)[0]
        is_told = first < never
        tables[receiver] += int(is_told.sum())
        messages += len(np.unique(first[is_told]))
        told_bytes += int(np.take_along_axis(sizes[behind], earliest[None], axis=0)[0][is_told].sum())
    return {
        "subscribe_messages": messages,
        "subscribe_items": tables.total(),
        "entries": tables.total(),
        "largest_table": max(tables.values()),
        "table_bytes": told_bytes,
    }


def _sides(links: list[tuple[str, str]]) -> Iterator[tuple[int, list[int]]]:
    """Yield, for both directions of each link of a tree, who is told over it, and all brokers that it speaks for."""
    linked: dict[int, set[int]] = {}
    for one, two in ((int(one[1:]), int(two[1:])) for one, two in links):
        linked.setdefault(one, set()).add(two)
        linked.setdefault(two, set()).add(one)
    for receiver, senders in linked.items():
        for sender in senders:
            behind, waiting = {receiver, sender}, [sender]
            while waiting:
                for each in linked[waiting.pop()] - behind:
                    behind.add(each)
                    waiting.append(each)
            yield receiver, sorted(behind - {receiver})


COMPUTED = {"simple": _simple_cost, "identity": _identity_cost}
"""Strategies whose costs follow from who wants what."""


def _stopped(spent_s: float, most_s: float, most_gb: float) -> str:
    """Return what there is too much of."""
    if spent_s > most_s:
        return f"after {most_s:g} s"
    return f"above {most_gb:g} GB" if _resident_bytes() > most_gb * 2**30 else ""


def _resident_bytes() -> int:
    """Return how much memory this process has now; 0 where the system does not say."""
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) * 4096 if told.exists() else 0


def _judged(network: Network, events: list[Any], active: dict[int, Any]) -> tuple[int, int]:
    """Publish events; return how many matches one matcher finds that knows all subscriptions, and how many differ."""
    judge = Matcher()
    judge.add_many(active)
    got: Counter[tuple[int, int]] = Counter()

    def note(occurrence: Any) -> None:
        if isinstance(occurrence, EventDelivered):
            got.update((occurrence.publication.key, key) for key in occurrence.subscriptions)

    network.observers.append(note)
    clients = list(network.clients)
    for number, event in enumerate(events):
        network.publish(clients[number % len(clients)], number, event)
    network.run()
    expected = Counter((number, key) for number, event in enumerate(events) for key in judge.match(event))
    return expected.total(), (got - expected).total() + (expected - got).total()


def routing_slices(
    subscription_counts: Sequence[int] = (10_000,),
    strategies: Sequence[str] = ("identity", "covering", "merging"),
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long is a unit of work of a broker that connects a neighbour gradually, at most? Processor time.

    First all filters are worked out, then half of them leave, in one message, and that is worked out. A few filters of
    others are worked out before, so that what is loaded once is there. `wrong` counts filters that a neighbour knows
    and should not, or the reverse, beside one that was told in one piece; with merging, whose mergers depend on the
    order, that is not asked. Hoped for: no unit longer than 10 ms.
    """
    for count, strategy in product(subscription_counts, strategies):
        filters, _ = _load("auction", count, 1, seed)
        for warm in (True, False):
            broker = Broker("b", strategy)
            broker.attach("client")
            some = filters[:200] if warm else filters
            broker.receive(Subscribe([Entry(number, each) for number, each in enumerate(some)]), "client", 0.0)
            broker.connect("north", 0.0, gradually=True)
            coming_s = _slices_s(broker)
        phases = [("come", coming_s, _told_amiss(broker, strategy))]
        broker.disconnect("south", 0.0)
        gone = Random(seed).sample(range(count), count // 2)
        broker.receive(Unsubscribe(gone), "client", 0.0)
        phases.append(("leave", _slices_s(broker), _told_amiss(broker, strategy)))
        for what, slices_s, wrong in phases:
            in_order = sorted(slices_s)
            yield {
                "workload": "auction",
                "subscriptions": count,
                "strategy": strategy,
                "filters": what,
                "units": len(slices_s),
                "total_s": sum(slices_s),
                "p50_ms": 1e3 * in_order[len(in_order) // 2],
                "p99_ms": 1e3 * in_order[int(0.99 * len(in_order))],
                "longest_ms": 1e3 * in_order[-1],
                "wrong": wrong,
            }


def _slices_s(broker: Broker) -> list[float]:
    """Let a broker work until there is nothing left to do; return how long each unit took."""
    slices_s: list[float] = []
    with _uncollected():
        while broker.work_count:
            start = process_time()
            broker.work(1, 0.0)
            slices_s.append(process_time() - start)
    return slices_s


def _told_amiss(broker: Broker, strategy: str) -> int:
    """Connect one more neighbour in one piece; return in how many filters it differs from the one that was not."""
    broker.connect("south", 0.0)
    piecewise, whole = ({entry.filter for entry in broker.told(peer)} for peer in ("north", "south"))
    return 0 if "merging" in strategy else abs(len(piecewise) - len(whole))


def routing_costs(
    subscription_counts: Sequence[int] = (2_000,),
    strategies: Sequence[str] = ("simple", "identity", "covering"),
    names: Sequence[str] = ("auction", SIMILAR),
    cancelled_share: float = 0.1,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does it take to decide what one neighbour is told of a filter, and of its end?

    `of_covering` compares the time for a new filter. Each strategy prepares filters for itself. `wrong` counts filters
    that are told although another that is told is proven to match the same.
    """
    for name, count in product(names, subscription_counts):
        filters, _ = _load(name, count, 1, seed)
        rows = []
        for strategy in strategies:
            made = strategy_of(strategy)
            made.comparisons.context = Context(None)  # which has seen no filter yet
            summary = made.summary()
            start = process_time()
            for number, filter_ in enumerate(filters):
                summary.add(number, filter_)
            added_s = process_time() - start
            told = [entry.filter for entry in summary.entries]
            start = process_time()
            for number in range(int(cancelled_share * count)):
                summary.remove(number)
            removed_s = process_time() - start
            rows.append(
                {
                    "workload": name,
                    "subscriptions": count,
                    "strategy": strategy,
                    "told": len(told),
                    "add_us": added_s / count * 1e6,
                    "remove_us": removed_s / max(1, int(cancelled_share * count)) * 1e6,
                    "wrong": 0 if strategy == "simple" else _told_twice(told),
                }
            )
        compared = next((row["add_us"] for row in rows if row["strategy"] == "covering"), None)
        for row in rows:
            yield {**row, "of_covering": row["add_us"] / compared if compared else None}


def _told_twice(told: Sequence[Expression]) -> int:
    """Count the filters of which another one says the same, among some that stand near each other."""
    some = sorted(told, key=str)
    return sum(bool(identical(one, two)) for one, two in pairwise(some))


def routing_events(
    networks: Sequence[tuple[str, int]] = NETWORKS,
    subscription_count: int = 500,
    event_count: int = 500,
    strategies: Sequence[str] = COSTS,
    name: str = SIMILAR,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many messages does the simulator carry in a second, and how many does an event need?"""
    filters, events = _load(name, subscription_count, event_count, seed)
    for topology, broker_count in networks:
        for strategy in strategies:
            network = _network(topology, broker_count, _strategy(strategy, events), seed)
            chance = Random(seed)
            clients = list(network.clients)
            for number, filter_ in enumerate(filters):
                network.subscribe(chance.choice(clients), number, filter_)
            network.run()
            network.publish(clients[0], "first", events[0])  # tables are laid out
            network.run()
            counters = TrafficCounters()
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
                "wrong": _detours(network, clients, events[:_CHECKED], _strategy(strategy, events).is_perfect),
            }


def _detours(network: Network, clients: list[str], events: list[Any], is_perfect: bool) -> int:
    """Publish some events again while a checker looks on; return what it finds."""
    checker = Checker(network, is_perfect=is_perfect)
    for client in network.clients.values():
        for key, filter_ in client.subscriptions.items():
            checker.assume_spread(client.name, key, filter_)
    network.run()
    for number, event in enumerate(events):
        network.publish(clients[number % len(clients)], f"checked {number}", event)
    network.run()
    assert checker.calm_count == len(events)
    return len(checker.problems)
