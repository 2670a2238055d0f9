"""Thresholds that others know, in networks with delays and faults: random runs, each from one seed.

A home that has a policy tells its neighbours a threshold, and tells it anew whenever it moves. A run has rounds of two
kinds of time. In the one, messages take their time, links break and brokers crash: then a looser threshold may come too
late, or be lost with its link, and events with it; all that can be asked is to tell nobody what was not published, and
nobody anything twice. In the other everything is mended and messages take no time; then clients hear what one who sees
everything tells them, at the same moments, whatever there was before.

Whenever all is at rest, brokers know of each other what they said last (`tables`), and no home has told a threshold
that is tighter than its own, or it would stay without events for good.

Source: ours; that others may never know a tighter threshold is section 5.2.2 of Pripužić 2010 (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError
from tamis.language.meaning import holds
from tamis.routing import Broker
from tamis.simulation.actors import world
from tamis.simulation.network import Network
from tamis.simulation.ranked import (
    LEFT_OUT,
    LONGEST_WINDOW_S,
    RankedActor,
    act,
    begin_anew,
    mend,
    note_carried,
    wanted_of_others,
)
from tamis.simulation.ranked_checking import RankedChecker
from tamis.simulation.tables import Tables
from tamis.simulation.topologies import TOPOLOGIES, names
from tamis.topk.policies import BoxCells, EveryChange, ExactCells, Hysteresis
from tamis.topk.scores import key as key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.language.schema import Schema
    from tamis.simulation.scenarios import Scenario
    from tamis.topk import Ranked
    from tamis.topk.policies import Policy

FILTERED = (("strict", "strict"), ("strict", "relaxed"), ("relaxed", "strict"), ("relaxed", "probabilistic"))
"""Algorithms and filters, all of them exact."""
_BUFFER_S = 0.07
"""Less than half of the shortest window that clients ask for."""
_ALWAYS: dict[str, Any] = {**LEFT_OUT, "lateness_s": 0.0, "encodes": False, "adapts": False, "link_leases": False}
_NO_TIME = (0.0, 0.0)


def policies(chance: Random) -> Callable[..., Policy]:
    """Return a policy by chance; where a score has no cells it is hysteresis in their place."""
    share = chance.choice([0.05, 0.3])
    kinds: list[Callable[..., Policy]] = [EveryChange, partial(Hysteresis, share=share)]
    kinds += [partial(_cells, kind, Hysteresis) for kind in (BoxCells, ExactCells)]
    return chance.choice(kinds)


def _cells(kind: Callable[..., Policy], other: Callable[..., Policy], ranked: Ranked, schema: Schema | None) -> Policy:
    try:
        return kind(ranked, low=0.0, high=8.0, schema=schema)
    except TamisError:
        return other(ranked, schema=schema)


def simulate_thresholds(scenario: Scenario, make: Callable[..., Broker] = Broker) -> RankedChecker:
    """Run a scenario in which homes tell their thresholds; return who looked on. `make` makes a broker.

    >>> from tamis.simulation import Scenario
    >>> simulate_thresholds(Scenario.of_seed(5, wants="ranked", action_count=10, round_count=1)).problems
    []
    """
    scenario = replace(scenario, **_ALWAYS)
    chance = Random(scenario.seed)
    policy, (algorithm, filter_) = policies(chance), chance.choice(FILTERED)
    network = Network(
        names(scenario.broker_count),
        TOPOLOGIES[scenario.topology](scenario.broker_count, chance),
        lambda name: make(
            name,
            scenario.strategies[int(name[1:]) % len(scenario.strategies)],
            ranked={"algorithm": algorithm, "filter": filter_},
            policy=policy,
            buffer_s=_BUFFER_S,
        ),
        chance,
    )
    delays_s = network.travel.delays_s
    checker = RankedChecker(network, 0.0, 0.0, 0.0)
    tables = Tables(network, is_perfect=False, announces=False, world=world())
    network.observers.append(lambda occurrence: note_carried(tables, occurrence))
    for number in range(chance.randint(2, 5)):
        network.attach(f"c{number}", chance.choice(list(network.brokers)))
    calm = replace(scenario, has_faults=False, renews=False, roams=False)
    event_count = 0
    for _ in range(scenario.round_count):
        for kind, taken_s in ((scenario, delays_s), (calm, _NO_TIME)):
            network.travel.delays_s = taken_s
            begin_anew(network, checker, is_lossy=kind is scenario)
            actor = RankedActor(network, chance, kind, event_count)
            act(actor, kind)
            mend(network)
            # Windows are not empty yet, so there are thresholds to look at.
            checker.problems += tables.problems(wanted_of_others(network), {})
            checker.problems += _tighter(network)
            network.wait(LONGEST_WINDOW_S)
            checker.check()
            event_count = actor.event_count
    return checker


def _tighter(network: Network) -> Iterator[str]:
    """Say whose home has told a threshold that is tighter than its own: one that shuts out what is within it."""
    for client in network.clients.values():
        home = network.brokers[client.home]
        for key, ranked in home.desk.of(client.name).items():
            known, threshold = home.table.of(client.name)[key], home.desk.threshold(client.name, key)
            for event in world().events:
                if holds(ranked.where, event) and key_of(ranked, event) <= threshold and not holds(known, event):
                    yield f"thresholds: others do not send {client.name} {event}, which is within {threshold}: {known}"
