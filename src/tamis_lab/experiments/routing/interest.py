"""When is filtering worth it, and when are advertisements?

Flooding is as good as filtering if everybody wants everything. Advertisements keep subscriptions away from where
nothing comes from that they want; if anything may come from anywhere, they keep nothing away.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from tamis.language import parse
from tamis.routing import Broker
from tamis.simulation import TrafficCounters, measured
from tamis.simulation.topologies import names
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.routing.simulated import built, client_of, published, wanted_by
from tamis_lab.experiments.routing.sizes import sizes_of
from tamis_lab.experiments.routing.stocks import quotes
from tamis_lab.experiments.statements import Judge

if TYPE_CHECKING:
    from collections.abc import Callable

judged = Judge("routing", "interest")

BROKER_COUNT = 15
TOPOLOGY = "balanced tree"
INTERESTED = (1, 2, 4, 8, 15)
PUBLISHING = (1, 3, 8, 15)
SHARE_COUNT = 30


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Let more and more brokers have clients who want an event, and more and more publish."""
    count = max(20, sizes_of(scale).simulated // 2)
    brokers = names(BROKER_COUNT)
    order = Random(seed).sample(brokers, len(brokers))
    interest = [_interested(order[:some], count, seed, tell) for some in INTERESTED]
    kinds: dict[str, Callable[[int], str]] = {
        "own shares": lambda number: f"name = 'share {number}' OR name = 'share {number + BROKER_COUNT}'",
        "anything": lambda number: "name IS NOT NULL AND price IS NOT NULL",
    }
    rows = [
        row
        for kind, advertised in kinds.items()
        for some in PUBLISHING
        for row in _advertised(kind, advertised, order[:some], count, seed, tell)
    ]
    saved = {
        kind: [
            row["entries"] / other["entries"]
            for row, other in zip(_of(rows, kind, True), _of(rows, kind, False), strict=True)
        ]
        for kind in kinds
    }
    messages = {
        kind: [
            row["subscribe messages"] / other["subscribe messages"]
            for row, other in zip(_of(rows, kind, True), _of(rows, kind, False), strict=True)
        ]
        for kind in kinds
    }
    claims = (
        judged("saves-less-with-more-interest", INTERESTED, [row["filtering"] for row in interest]),
        judged("all-want-all", interest[-1]["filtering"]),
        judged("one-publisher-entries", saved["own shares"][0]),
        judged("one-publisher-messages", messages["own shares"][0]),
        judged("anything-from-anywhere", saved["anything"][-1]),
    )
    setup = (
        f"A {TOPOLOGY} of {BROKER_COUNT} brokers, simulated, {count} subscriptions. Advertisements are of a "
        "publisher's own two shares, or of anything."
    )
    plots = (
        Plot(
            "Event messages",
            "brokers whose clients want the event",
            "share of those of flooding",
            (Curve("filtering", INTERESTED, tuple(row["filtering"] for row in interest)),),
        ),
        Plot(
            "Entries with advertisements",
            "publishers",
            "share of those without",
            tuple(Curve(kind, PUBLISHING, tuple(each)) for kind, each in saved.items()),
        ),
    )
    return Result(setup, claims, plots, tuple(interest + rows))


def _interested(homes: list[str], count: int, seed: int, tell: Tell) -> Row:
    """Count what an event costs that clients of some brokers want, from everywhere."""
    tell(f"{len(homes)} interested brokers")
    network = built(TOPOLOGY, BROKER_COUNT, lambda name: Broker(name, "covering"), seed)
    wanted = parse("price < 10")
    for number, home in enumerate(homes):
        network.subscribe(client_of(home), number, wanted)
    network.run()
    counters = TrafficCounters()
    network.observers.append(counters)
    events = [{"price": 1}] * count
    got = published(network, events, names(BROKER_COUNT))
    assert got == wanted_by(dict.fromkeys(range(len(homes)), wanted), events)
    return {"interested": len(homes), "filtering": counters.event_count / count / (BROKER_COUNT - 1)}


def _advertised(
    kind: str, advertised: Callable[[int], str], publishers: list[str], count: int, seed: int, tell: Tell
) -> list[Row]:
    """Compare subscribing with and without advertisements of some publishers."""
    filters, _ = quotes(count, 0, SHARE_COUNT, seed)
    rows = []
    for is_used in (False, True):
        tell(f"{len(publishers)} publishers of {kind}, {'with' if is_used else 'without'} advertisements")
        strategy = "covering" if is_used else None
        network = built(TOPOLOGY, BROKER_COUNT, partial(Broker, advertisements=strategy), seed)
        for number, home in enumerate(publishers):
            network.advertise(client_of(home), number, parse(advertised(number)))
        network.run()
        counters = TrafficCounters()
        network.observers.append(counters)
        chance = Random(seed)
        for number, wanted in enumerate(filters):
            network.subscribe(client_of(chance.choice(names(BROKER_COUNT))), number, wanted)
            network.run()
        rows.append(
            {
                "advertised": kind,
                "publishers": len(publishers),
                "with advertisements": is_used,
                "entries": measured(network)["entries"],
                "subscribe messages": counters.control_count,
            }
        )
    return rows


def _of(rows: list[Row], kind: str, is_used: bool) -> list[Row]:
    return [row for row in rows if row["advertised"] == kind and row["with advertisements"] is is_used]


EXPERIMENT = Experiment(
    "interest",
    "When is filtering worth it, and when are advertisements?",
    "Mühl et al. 2002, sections 2.2 and 2.7",
    run,
)
