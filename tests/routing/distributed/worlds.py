"""One seed makes a world: who subscribes to what and when, and what is published. Played by a network and by a centre."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import tamis
from tamis.simulation.occurrences import EventDelivered
from tamis.topk import Ranked
from tamis_lab.topk.central import SelectiveRouting

if TYPE_CHECKING:
    from tamis.simulation import Network

NODES = [f"n{number}" for number in range(7)]


class Step(NamedTuple):
    """After so many seconds a client does something: subscribes, unsubscribes or publishes."""

    seconds: float
    client: str
    does: str
    key: Any
    what: Any = None


def tree(chance: Random) -> list[tuple[str, str]]:
    return [(chance.choice(NODES[:number]), NODES[number]) for number in range(1, len(NODES))]


def clients() -> list[tuple[str, str]]:
    """Two clients at each node, by name and node."""
    return [(f"{which}{name}", name) for name in NODES for which in "ab"]


def _near(chance: Random) -> str:
    return f"euclidean(array(x, y), array({chance.random():.3f}, {chance.random():.3f}))"


def wish(chance: Random, kind: str, *, may_filter: bool) -> Any:
    """Return a subscription: Boolean, ranked, or one of both if `kind` is mixed; windows by `kind`, too."""
    if ("mixed" in kind and chance.random() < 0.4) or "boolean" in kind:
        return tamis.parse(f"{_near(chance)} <= {chance.choice([0.05, 0.2, 0.5])}")
    k = chance.choice([1, 1, 2, 3])
    if "count" in kind:
        return Ranked.parse(f"TOP {k} BY {_near(chance)} OVER {chance.choice([9, 12, 20])} EVENTS")
    where = f" WHERE z < {chance.random():.2f}" if may_filter and chance.random() < 0.4 else ""
    return Ranked.parse(f"TOP {k} BY {_near(chance)} OVER {chance.choice([9.0, 14.5, 25.25])} SECONDS{where}")


def story(seed: int, kind: str, *, length: int = 70, may_filter: bool = True) -> list[Step]:
    """Return what happens, in order. Some subscribe before the first event, some later, some leave off."""
    chance = Random(seed)
    names = [name for name, _ in clients()]
    active: list[tuple[str, int]] = []
    steps: list[Step] = []
    for number in range(length + 6):
        seconds = chance.uniform(0.1, 2.0)
        drawn = chance.random()
        if number < 6 or drawn < 0.06:
            client = chance.choice(names)
            steps.append(Step(seconds, client, "subscribe", number, wish(chance, kind, may_filter=may_filter)))
            active.append((client, number))
        elif drawn < 0.1 and active:
            client, key = active.pop(chance.randrange(len(active)))
            steps.append(Step(seconds, client, "unsubscribe", key))
        else:
            event = {name: chance.random() for name in "xyz"}
            if chance.random() < 0.1:  # an equal score, now and then
                event |= {"x": 0.5, "y": 0.5}
            steps.append(Step(seconds, chance.choice(names), "publish", f"e{number}", event))
    return steps


Told = list[tuple[str, Any, float]]


def at_a_centre(steps: list[Step], algorithm: str = "naive", **settings: Any) -> Told:
    """Return who was told of what, and when, by one service."""
    centre = SelectiveRouting([name for name, _ in clients()], algorithm, **settings)
    now, told = 0.0, []
    for step in steps:
        now += step.seconds
        told += centre.advance(now)
        if step.does == "subscribe":
            centre.subscribe(step.client, (step.client, step.key), step.what)
        elif step.does == "unsubscribe":
            centre.unsubscribe(step.client, (step.client, step.key))
        else:
            told += centre.publish(step.client, step.what, now, step.key)
    told += centre.advance(now + 100)
    return sorted((each.client, each.event, round(each.at, 6)) for each in told)


def play(network: Network, steps: list[Step]) -> Told:
    """Return who was told of what, and when, in a network whose messages take no time."""
    told: Told = []

    def see(occurrence: Any) -> None:
        if isinstance(occurrence, EventDelivered):
            told.append((occurrence.client, occurrence.publication.key, round(network.now, 6)))

    network.observers.append(see)
    for name, node in clients():
        network.attach(name, node)
    network.run()
    for step in steps:
        network.wait(step.seconds)
        if step.does == "subscribe":
            network.subscribe(step.client, step.key, step.what)
        elif step.does == "unsubscribe":
            network.unsubscribe(step.client, step.key)
        else:
            network.publish(step.client, step.key, step.what)
        network.run()
        assert not network.rejected, network.rejected
    network.wait(100)
    return sorted(told)
