"""One seed, three networks: the simulator's brokers, nodes in virtual time, real processes. Clients are sent the same.

A seed decides a tree, a strategy, who is where, and what everybody says, one thing after the other; each network comes
to rest in between. What the simulator delivers is the definition.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

import pytest

import tamis
from tamis.routing import Broker
from tamis.simulation.network import Network
from tamis.simulation.occurrences import EventDelivered
from tamis.simulation.topologies import TOPOLOGIES, names
from tests.lengths import so_many
from tests.service.broker_processes import BrokerProcess, free_port
from tests.service.links.tree import Client, Tree, event
from tests.service.links.world import TEXTS

STRATEGIES = ("flooding", "simple", "identity", "covering", "merging", "imperfect merging")
TREES = ("line", "star", "balanced tree", "random tree")
PATIENCE_S = 120

Sent = dict[str, list[tuple[str, int]]]


@dataclass
class Course:
    """What happens: all that a seed decides."""

    seed: int
    most_brokers: int = 6
    brokers: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    strategy: str = ""
    homes: dict[str, str] = field(default_factory=dict)
    steps: list[tuple] = field(default_factory=list)
    due: list[dict[str, int]] = field(default_factory=list)
    """After each step of the simulator: how many events each client has been sent."""

    def __post_init__(self) -> None:
        chance = Random(self.seed)
        count = chance.randint(2, self.most_brokers)
        self.brokers, self.strategy = names(count), STRATEGIES[self.seed % len(STRATEGIES)]
        self.links = list(TOPOLOGIES[chance.choice(TREES)](count, chance))
        self.homes = {f"c{number}": chance.choice(self.brokers) for number in range(chance.randint(2, 5))}
        wishes: dict[str, set[str]] = defaultdict(set)
        numbers: dict[str, int] = defaultdict(int)
        for number in range(25):
            client = chance.choice(list(self.homes))
            roll = chance.random()
            if roll < 0.3:
                wishes[client].add(f"k{number}")
                self.steps.append(("subscribe", client, f"k{number}", chance.choice(TEXTS)))
            elif roll < 0.4 and wishes[client]:
                key = chance.choice(sorted(wishes[client]))
                wishes[client].remove(key)
                self.steps.append(("unsubscribe", client, key))
            else:
                numbers[client] += 1
                self.steps.append(("publish", client, numbers[client], chance.randrange(4)))


def simulated(course: Course) -> tuple[Sent, dict[tuple[str, str], set[str]]]:
    """Return what clients are sent, and what brokers tell each other in the end, by the simulator."""
    sent: Sent = {client: [] for client in course.homes}

    def observe(occurrence):
        if isinstance(occurrence, EventDelivered):
            record = occurrence.publication.event
            sent[occurrence.client].append((record["source"], record["n"]))

    network = Network(
        course.brokers, course.links, lambda name: Broker(name, course.strategy, algorithm="naive"),
        Random(course.seed), observers=[observe],
    )  # fmt: skip
    for client, home in course.homes.items():
        network.attach(client, home)
    course.due.clear()
    for what, client, *rest in course.steps:
        match what, rest:
            case "subscribe", (key, text):
                network.subscribe(client, key, tamis.parse(text))
            case "unsubscribe", (key,):
                network.unsubscribe(client, key)
            case "publish", (number, kind):
                incoming = event(f"/{client}", number, kind=kind)
                network.publish(client, incoming.key, dict(incoming.record))
        network.run()
        course.due.append({client: len(events) for client, events in sent.items()})
    told = {
        (here, there): {str(entry.filter) for entry in network.brokers[here].told(there)}
        for link in course.links
        for here, there in (link, link[::-1])
    }
    return sent, told


def in_nodes(course: Course) -> tuple[Sent, dict[tuple[str, str], set[str]]]:
    """Return the same of nodes that talk by the bytes of real links."""
    tree = Tree(course.links, course.strategy, course.seed)
    tree.rest()
    clients = {client: Client(tree, home, client) for client, home in course.homes.items()}
    for client in clients.values():
        client.attach()
    for what, client, *rest in course.steps:
        match what, rest:
            case "subscribe", (key, text):
                clients[client].subscribe(**{key: text})
            case "unsubscribe", (key,):
                clients[client].unsubscribe(key)
            case "publish", (number, kind):
                clients[client].publish(event(f"/{client}", number, kind=kind))
        tree.rest()
    told = {
        (here, there): {
            str(entry.filter) for entry in tree.sites[here].node._broker.told(tree.neighbour(here, there).peer)
        }
        for link in course.links
        for here, there in (link, link[::-1])
    }
    return {name: client.events for name, client in clients.items()}, told


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 12 + so_many(288)), marks=pytest.mark.slow)], ids=str
)
def test_clients_of_nodes_are_sent_what_the_simulator_delivers_and_brokers_know_the_same(seeds):
    count = 0
    for seed in seeds:
        course = Course(seed)
        sent, told = simulated(course)
        assert in_nodes(course) == (sent, told), f"seed {seed}, {course.strategy}"
        count += sum(map(len, sent.values()))
    assert count > 5 * len(seeds), "hardly anything was sent"


def test_a_network_that_loses_an_event_is_told_apart(monkeypatch):
    from tamis.service.links.neighbours import Neighbours

    whole = Neighbours._onward
    monkeypatch.setattr(
        Neighbours, "_onward", lambda *given: {peer: events[1:] for peer, events in whole(*given).items()}
    )
    assert any(in_nodes(course)[0] != simulated(course)[0] for course in map(Course, range(6)))


class RealNetwork:
    """The brokers of a course, each a process."""

    def __init__(self, forge, folder, course: Course) -> None:
        ports = {name: free_port() for name in course.brokers}
        self.brokers = {}
        for name in course.brokers:
            config = f'name = "{name}"\nstrategy = "{course.strategy}"\n[[link_listeners]]\nport = {ports[name]}\n'
            for other in [there for here, there in course.links if here == name]:
                config += f'[links.{other}]\nurl = "tamis://127.0.0.1:{ports[other]}"\n'
            self.brokers[name] = BrokerProcess(forge, folder / name, config=config)
        self._link_count = 2 * len(course.links)

    def links(self):
        return [link for each in self.brokers.values() for link in each.ask("GET", "/links")[1]["links"]]

    def rest(self) -> None:
        """Wait until nothing is under way on any link, twice in a row."""
        ends, before = time.monotonic() + PATIENCE_S, None
        while True:
            links = self.links()
            is_quiet = len(links) == self._link_count and all(
                link["state"] == "live"
                and link["settled"]
                and not link["unacknowledged"]
                and not link["waiting_control"]
                for link in links
            )
            counts = [(link["sent"], link["received"]) for link in links] if is_quiet else None
            if is_quiet and counts == before:
                return
            before = counts
            assert time.monotonic() < ends, "the network does not come to rest"
            time.sleep(0.02)


def in_processes(forge, folder, course: Course) -> Sent:
    """Return what clients of real brokers are sent."""
    network = RealNetwork(forge, folder, course)
    sent: Sent = {client: [] for client in course.homes}
    try:
        for broker in network.brokers.values():
            broker.start()
        network.rest()
        for (what, client, *rest), due in zip(course.steps, course.due, strict=True):
            broker = network.brokers[course.homes[client]]
            match what, rest:
                case "subscribe", (key, text):
                    path = f"/subscribers/{client}/subscriptions/{key}?settle=60s"
                    status, content = broker.ask("PUT", path, text.encode(), Content_Type="text/plain")
                    assert (status, content["settled"]) == (201, True)
                case "unsubscribe", (key,):
                    assert broker.ask("DELETE", f"/subscribers/{client}/subscriptions/{key}")[0] in (200, 204)
                case "publish", (number, kind):
                    body = {
                        "specversion": "1.0", "id": str(number), "source": f"/{client}", "type": "t",
                        "data": {"n": number, "kind": kind},
                    }  # fmt: skip
                    assert broker.ask("POST", "/events", body, Content_Type="application/cloudevents+json")[0] == 200
            network.rest()
            for each, count in due.items():
                take(network, course, sent, each, count)
        for each in course.homes:
            take(network, course, sent, each, len(sent[each]) + 1, patience_s=1.0)  # what comes besides, is wrong
        return sent
    finally:
        for broker in network.brokers.values():
            if broker.process:
                broker.kill()


def take(
    network: RealNetwork, course: Course, sent: Sent, client: str, count: int, patience_s: float = PATIENCE_S
) -> None:
    """Take what is there for a client, until that is so many events, or it had time enough."""
    broker, ends = network.brokers[course.homes[client]], time.monotonic() + patience_s
    while len(sent[client]) < count and time.monotonic() < ends:
        status, content = broker.ask("POST", f"/subscribers/{client}/take", {"most": 100, "wait_s": 0.5})
        if status == 404:  # it has never subscribed
            return
        items = content["events"]
        sent[client] += [(item["event"]["source"], item["event"]["data"]["n"]) for item in items]
        broker.ask("POST", f"/subscribers/{client}/done", {"done": [item["at"] for item in items]})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_clients_of_real_brokers_are_sent_what_the_simulator_delivers(forge, tmp_path, seed):
    course = Course(seed, most_brokers=4)
    sent, _ = simulated(course)
    assert in_processes(forge, tmp_path, course) == sent
