"""Does one tree for each publisher's broker pay in a graph, against one tree for all?

    trees_of_graphs    events and control messages on links, hops and table entries, by size and interest

Random graphs, in which brokers have one link and a half for each. One tree is what all brokers compute, from links that
came up in any order (`routing.Overlay`); a tree for each source has the shortest ways from there. Subscriptions sit at
all brokers, each wants a share of the events, and events come in at all brokers alike. Both are simulated with
the same brokers; for trees of sources there is a network for each, in which only that broker publishes.

`of_one` are the ratios to one tree. `wrong` counts deliveries that are missing or too many.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language import holds, parse
from tamis.routing import Broker, Publish
from tamis.routing.overlay import LinkState, tree_of
from tamis.simulation import Network
from tamis.simulation.occurrences import EventDelivered, MessageCarried, Occurrence
from tamis.simulation.topologies import graph, names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.simulation.topologies import Links

_KINDS = 100


def trees_of_graphs(
    broker_counts: Sequence[int] = (8, 16, 32),
    shares: Sequence[float] = (0.02, 0.2),
    events_each: int = 4,
    subscriptions_each: int = 2,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How much is carried by one tree, and by a tree for each source?"""
    for count in broker_counts:
        for share in shares:
            chance = Random(f"{seed} {count} {share}")
            links, brokers = graph(count, chance), names(count)
            wanted = {
                (broker, number): chance.randrange(_KINDS) for broker in brokers for number in range(subscriptions_each)
            }
            width = max(1, round(share * _KINDS))
            events = {broker: [{"kind": chance.randrange(_KINDS)} for _ in range(events_each)] for broker in brokers}
            one_tree = _one_tree(brokers, links, chance)
            one = _counted(brokers, [(one_tree, brokers)], wanted, width, events)
            by_source = [(_shortest(brokers, links, source), [source]) for source in brokers]
            several = _counted(brokers, by_source, wanted, width, events)
            for trees, counts in (("one", one), ("one for each source", several)):
                yield {
                    "brokers": count,
                    "links": len(links),
                    "wanted": share,
                    "trees": trees,
                    **{name: counts[name] for name in ("events", "control", "entries")},
                    "hops": round(_hops(brokers, [(one_tree, brokers)] if counts is one else by_source), 2),
                    **{
                        f"{name}_of_one": round(counts[name] / max(1, one[name]), 2)
                        for name in ("events", "control", "entries")
                    },
                    "wrong": counts["wrong"],
                }


def _one_tree(brokers: Sequence[str], links: Links, chance: Random) -> Links:
    """Return the tree that all brokers compute, of links that came up in any order."""
    since = {link: chance.random() for link in links}
    states = [
        LinkState(
            broker,
            1,
            tuple((other, since[link]) for link in links if broker in link for other in link if other != broker),
        )
        for broker in brokers
    ]
    return tree_of(states, brokers[0])[0]


def _shortest(brokers: Sequence[str], links: Links, source: str) -> Links:
    """Return a tree of the shortest ways from a broker."""
    tree: Links = []
    within, order = {source}, [source]
    for broker in order:
        for link in links:
            if broker in link:
                other = link[0] if link[1] == broker else link[1]
                if other not in within:
                    within.add(other)
                    order.append(other)
                    tree.append(link)
    return tree


def _hops(brokers: Sequence[str], trees: Sequence[tuple[Links, Sequence[str]]]) -> float:
    """Return how many links there are between a publisher's broker and another, on average."""
    total = 0
    for tree, sources in trees:
        for source in sources:
            depths, order = {source: 0}, [source]
            for broker in order:
                for link in tree:
                    other = (link[0] if link[1] == broker else link[1]) if broker in link else broker
                    if other not in depths:
                        depths[other] = depths[broker] + 1
                        order.append(other)
            total += sum(depths.values())
    return total / (len(brokers) * (len(brokers) - 1))


def _counted(
    brokers: Sequence[str],
    trees: Sequence[tuple[Links, Sequence[str]]],
    wanted: dict[tuple[str, int], int],
    width: int,
    events: dict[str, list[dict[str, int]]],
) -> Counter[str]:
    """Return what was carried and kept when each source has published along its tree."""
    counts: Counter[str] = Counter()
    for tree, sources in trees:
        network = Network(brokers, tree, lambda name: Broker(name, "identity", algorithm="naive"), Random(1))
        got: Counter[tuple[str, str]] = Counter()

        def note(occurrence: Occurrence, got: Counter[tuple[str, str]] = got) -> None:
            match occurrence:
                case MessageCarried(_, _, Publish()):
                    counts["events"] += 1
                case MessageCarried():
                    counts["control"] += 1
                case EventDelivered(who, Publish(what)):
                    got[who, str(what)] += 1

        network.run()
        network.observers.append(note)
        filters = {place: parse(f"kind >= {least} AND kind < {least + width}") for place, least in wanted.items()}
        for (broker, number), filter_ in filters.items():
            client = f"{broker}/{number}"
            network.attach(client, broker)
            network.subscribe(client, "it", filter_)
        network.run()
        counts["entries"] += sum(
            len(broker.table.of(each)) for broker in network.brokers.values() for each in broker.neighbours
        )
        due: Counter[tuple[str, str]] = Counter()
        for source in sources:
            network.attach(f"publisher of {source}", source)
            for place, event in enumerate(events[source]):
                key = f"{source}/{place}"
                network.publish(f"publisher of {source}", key, event)
                due.update(
                    (f"{broker}/{number}", key) for (broker, number), each in filters.items() if holds(each, event)
                )
        network.run()
        counts["wrong"] += sum(((due - got) + (got - due)).values())
    return counts
