"""How much does imperfect merging carry in vain, link by link along a path?

    routing_imperfection    the share of events on each link of a line that nobody behind it wants

Subscriptions sit at all brokers of a line, and all events come in at one end, so that a filter on the first link was
merged at every broker behind it. *Local* is a budget that each broker keeps for itself, knowing nothing of what was
merged before; with it, imperfection adds up. *End to end* is the strategy as it is: entries carry their imperfection.

`wrong` counts deliveries that are missing or too many; and, end to end, links on which the share exceeds the budget.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language import holds, parse
from tamis.routing import Broker, ImperfectMerging, Publish
from tamis.routing.mergers import MergingSummary
from tamis.simulation import Network
from tamis.simulation.occurrences import EventDelivered, MessageCarried, Occurrence
from tamis.simulation.topologies import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.language.expressions import Expression
    from tamis.routing.base import Source, Summary

_SIZE = 40
"""Values of each attribute."""


class _LocalSummary(MergingSummary):
    """Takes every filter for one that is wanted as it is."""

    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        super().add(source, expression)


class LocalBudget(ImperfectMerging):
    """A budget that holds at each broker by itself."""

    def summary(self) -> Summary:
        return _LocalSummary(self.comparisons, self.budget, self._nearly, self._share)


def _filters(count: int, chance: Random) -> list[Expression]:
    """Return places of a plane, all of about the same size."""
    found = []
    for _ in range(count):
        x, y = chance.randrange(_SIZE), chance.randrange(_SIZE)
        found.append(parse(f"x BETWEEN {x} AND {x + 3} AND y BETWEEN {y} AND {y + 3}"))
    return found


def routing_imperfection(
    broker_count: int = 8,
    filter_count: int = 6,
    event_count: int = 600,
    budgets: Sequence[float] = (0.2, 0.5),
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """What share of the events on each link is in vain, with a budget at each broker and with one for the whole way?"""
    chance = Random(seed)
    wanted = {name: _filters(filter_count, chance) for name in names(broker_count)}
    events = [{"x": chance.randrange(_SIZE), "y": chance.randrange(_SIZE)} for _ in range(event_count)]

    @lru_cache(1 << 14)
    def where(filter_: Expression) -> frozenset[int]:
        return frozenset(number for number, event in enumerate(events) if holds(filter_, event))

    for budget in budgets:
        before: dict[str, float] = {}
        for is_local in (True, False):
            make = LocalBudget if is_local else ImperfectMerging
            strategy = make(budget=budget, share=lambda filter_: len(where(filter_)) / len(events))
            network, carried, got = _carried(strategy, wanted, events, seed)
            due = Counter(
                (f"client of {name}", number, place)
                for name, filters in wanted.items()
                for place, filter_ in enumerate(filters)
                for number in where(filter_)
            )
            lost = sum(((due - got) + (got - due)).values())
            entries = sum(
                len(broker.table.of(each)) for broker in network.brokers.values() for each in broker.neighbours
            )
            for link in range(broker_count - 1):
                behind = frozenset[int]().union(
                    *(where(each) for name in names(broker_count)[link + 1 :] for each in wanted[name])
                )
                crossed = carried[link]
                vain = len(crossed - behind) / max(1, len(crossed))
                row = {
                    "budget": budget,
                    "kept": "local" if is_local else "end to end",
                    "link": link + 1,
                    "hops_behind": broker_count - 2 - link,
                    "events": len(crossed),
                    "in_vain": round(vain, 3),
                    "entries_of_all": entries,
                    "wrong": lost + len(behind - crossed) + (not is_local and vain > budget),
                }
                if is_local:
                    before[str(link)] = vain
                else:
                    row["of_local"] = round(vain / before[str(link)], 3) if before[str(link)] else 1.0
                yield row


def _carried(
    strategy: ImperfectMerging, wanted: dict[str, list[Expression]], events: list[dict[str, int]], seed: int
) -> tuple[Network, dict[int, set[int]], Counter[tuple[str, int, int]]]:
    """Return which events crossed which link of a line, and who got what for which of their filters."""
    brokers = list(wanted)
    links = list(pairwise(brokers))
    network = Network(brokers, links, lambda name: Broker(name, strategy, algorithm="naive"), Random(seed))
    crossed: dict[int, set[int]] = {number: set() for number in range(len(links))}
    got: Counter[tuple[str, int, int]] = Counter()

    def note(occurrence: Occurrence) -> None:
        match occurrence:
            case MessageCarried(source, _, Publish(key)) if isinstance(key, int):
                crossed[brokers.index(source)].add(key)
            case EventDelivered(client, Publish(key), keys) if isinstance(key, int):
                got.update((client, key, int(each)) for each in keys)

    network.observers.append(note)
    for name, filters in wanted.items():
        network.attach(f"client of {name}", name)
        network.subscribe_many(f"client of {name}", dict(enumerate(filters)))
    network.attach("publisher", brokers[0])
    network.run()
    for number, event in enumerate(events):
        network.publish("publisher", number, event)
    network.run()
    return network, crossed, got
