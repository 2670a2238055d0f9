"""Which way does an event take, broker by broker, under different strategies?

Seven brokers, five subscribers, one event. At every broker that the event gets to, its table is asked who wants it: a
client, or a neighbour for somebody behind it. The same event takes different ways to the same subscribers.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language import parse
from tamis.language.meaning import holds
from tamis.pruning import Goal
from tamis.routing import Broker, Merging, Pruned, Simple, Strategy
from tamis.selectivity import Sample
from tamis.simulation import TOPOLOGIES, Network
from tamis.simulation.occurrences import EventDelivered, MessageCarried
from tamis.simulation.topologies import names
from tamis_lab.experiments.base import Claim, Experiment, Picture, Result, Row, Scale, Tell
from tamis_lab.experiments.routing.ways_drawn import drawn_ways
from tamis_lab.experiments.statements import Judge

if TYPE_CHECKING:
    from collections.abc import Callable

judged = Judge("routing", "way")

BROKER_COUNT = 7
WANTED = {
    "ann": ("b3", "category = 'Thriller' AND price < 20"),
    "ben": ("b6", "category = 'Thriller' AND price < 10"),
    "cem": ("b6", "title = 'Dune' AND price < 10"),
    "dot": ("b5", "category = 'Poetry' AND price < 20"),
    "eva": ("b0", "price < 15"),
}
PUBLISHER = "b4"
EVENT = {"title": "Dune", "category": "Thriller", "price": 12.0}
_SEEN = [
    {"title": title, "category": category, "price": float(price)}
    for title in ("Dune", "Emma", "Iliad", "Kim", "Ulysses", "Walden")
    for category in ("Thriller", "Poetry", "Romance", "Travel")
    for price in range(1, 40)
]
"""What was published before: from it is known which conditions are rarely true."""
STRATEGIES: dict[str, Callable[[], str | Strategy]] = {
    "flooding": lambda: "flooding",
    "merging": Merging,
    "simple, pruned to one condition": lambda: Pruned(Simple(), Goal(share=1), Sample(_SEEN).share),
}


@dataclass(frozen=True, slots=True)
class Stop:
    """A broker that the event gets to."""

    broker: str
    source: str | None
    """The neighbour that it came from; None at the publisher's broker."""
    asked: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]
    """Each peer that was looked at, its filters, and whether they match."""
    sent: tuple[str, ...]
    delivered: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """All stops of an event."""

    strategy: str
    stops: tuple[Stop, ...]

    @property
    def delivered(self) -> tuple[str, ...]:
        """Who got it."""
        return tuple(sorted(client for stop in self.stops for client in stop.delivered))


def way(strategy: str) -> Way:
    """Publish the event in a network of brokers, and see where it gets to."""
    chance = Random(1)
    make = STRATEGIES[strategy]
    links = TOPOLOGIES["balanced tree"](BROKER_COUNT, chance)
    network = Network(names(BROKER_COUNT), links, lambda name: Broker(name, make()), chance)
    for client, (home, wanted) in WANTED.items():
        network.attach(client, home)
        network.subscribe(client, client, parse(wanted))
    network.attach("publisher", PUBLISHER)
    network.run()
    seen: list[Any] = []
    network.observers.append(seen.append)
    network.publish("publisher", "the event", EVENT)
    network.run()
    carried = [each for each in seen if isinstance(each, MessageCarried)]
    got = {each.client for each in seen if isinstance(each, EventDelivered)}
    arrivals: list[tuple[str, str | None]] = [(PUBLISHER, None), *((each.target, each.source) for each in carried)]
    return Way(
        strategy,
        tuple(
            Stop(
                broker,
                source,
                tuple(_asked(network.brokers[broker], source)),
                tuple(each.target for each in carried if each.source == broker),
                tuple(sorted(client for client in got if WANTED[client][0] == broker)),
            )
            for broker, source in arrivals
        ),
    )


def _asked(broker: Broker, source: str | None) -> list[tuple[str, tuple[tuple[str, bool], ...]]]:
    peers = [peer for peer in (*broker.clients, *broker.neighbours) if peer not in (source, "publisher")]
    return [(peer, tuple((str(each), holds(each, EVENT)) for each in broker.table.of(peer).values())) for peer in peers]


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Follow the event under three strategies; size and chance have no part in it."""
    ways = [way(name) for name in STRATEGIES]
    rows = [_row(each, stop) for each in ways for stop in each.stops]
    setup = (
        f"Seven brokers, five subscribers, and one event that is published at {PUBLISHER}: "
        f"{', '.join(f'{name} = {value!r}' for name, value in EVENT.items())}."
    )
    picture = Picture("An event's way", drawn_ways(ways, WANTED, PUBLISHER))
    return Result(setup, _claims(ways), (picture,), tuple(rows))


def _claims(ways: list[Way]) -> tuple[Claim, ...]:
    flooded, perfect, pruned = ways
    return (
        judged("flooding-everywhere", len(flooded.stops) - 1),
        judged("merging-only-interested", [bool(stop.delivered or stop.sent) for stop in perfect.stops[1:]]),
        judged("pruned-goes-farther", (len(pruned.stops) - 1) / (len(perfect.stops) - 1)),
        judged("same-subscribers", [each.delivered == perfect.delivered for each in ways]),
    )


def _row(each: Way, stop: Stop) -> Row:
    return {
        "strategy": each.strategy,
        "broker": stop.broker,
        "from": stop.source or "the publisher",
        "filters asked": sum(len(filters) for _, filters in stop.asked),
        "filters that match": sum(is_match for _, filters in stop.asked for _, is_match in filters),
        "sent to": ", ".join(stop.sent),
        "delivered to": ", ".join(stop.delivered),
    }


EXPERIMENT = Experiment(
    "way",
    "Which way does an event take, broker by broker, under different strategies?",
    "Mühl et al. 2002, section 2; Bittner 2008, section 6.3",
    run,
)
