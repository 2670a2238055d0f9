"""All promises of a network at once: a tree of nodes, in virtual time, where everything goes wrong that can.

One seed decides the tree, the strategy, the clients, the order of everything, which connections break, which nodes end
without a word between any two steps, and what their disks lose. The checkers stand outside: they know what publishers
were told, what subscribers said and were sent, and nothing else, until everything has come to rest.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any

import tamis
from tamis.language.meaning import holds
from tamis.service.messages import Published, Subscribed, SubscriberFacts
from tests.service.links.tree import Client, Site, Tree, event, read_record

STRATEGIES = ("flooding", "simple", "identity", "covering", "merging")
PERFECT = ("simple", "identity", "covering", "merging")
TEXTS = ("n < 5", "kind = 1", "kind = 2", "kind IN (1, 3)", "n >= 3 AND kind <> 0", "TRUE", "kind = 1 AND n > 2")


NOBODYS = ("kind = 1", "kind = 2 AND n < 5", "unwanted", "unwanted AND kind <> 0", "unwanted AND n > 3 OR kind = 3")
"""What asks also for events that nobody wants."""


def who_wants(texts: dict[str, set[str]], record: dict[str, Any]) -> tuple[set[str], bool]:
    """Return who wants an event, and whether nobody did at first: the definition of what is unwanted.

    An event is judged as it is; if nobody in the network wants it, once more, as one that is unwanted.
    """
    for is_unwanted in (False, True):
        seen = {**record, "unwanted": True} if is_unwanted else record
        names = {name for name, own in texts.items() if any(holds(tamis.parse(text), seen) for text in own)}
        if names:
            return names, is_unwanted
    return set(), True


@dataclass
class Subscription:
    """What a subscriber asked for, and what it was told of that."""

    text: str
    condition: str = ""
    """Which events it may have to see, whatever came before; of a condition, the text."""
    is_settled: bool = False
    is_over: bool = False

    def __post_init__(self) -> None:
        self.condition = self.condition or self.text


@dataclass
class Reader:
    """A durable subscriber that comes back whenever its broker does."""

    world: World
    site: str
    name: str
    client: Client | None = None
    wants: dict[str, Subscription] = field(default_factory=dict)
    asked: dict[int, str] = field(default_factory=dict)
    received: list[tuple[str, int]] = field(default_factory=list)
    positions: dict[int, bytes] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    """Of each publisher, the last event that was received."""
    count: int = 0

    def connect(self) -> None:
        self.client = Client(self.world.tree, self.site, self.name)
        hear, client = self.client.hear, self.client
        self.asked = {}

        def listen(answer: Any) -> None:
            before = len(client.received)
            hear(answer)
            for (position, body), is_again in zip(client.received[before:], client.repeated[before:], strict=True):
                known = self.positions.setdefault(position, body)
                assert known == body, f"{self.name}: position {position} named two events"
                record = read_record(body, 0)
                self.received.append((record["source"], record["n"]))
                self.check_order(record["source"], record["n"], is_again)
            if isinstance(answer, Subscribed) and answer.request in self.asked:
                wanted = self.wants[self.asked[answer.request]]
                wanted.is_settled = wanted.is_settled or answer.is_settled
            self.heard(answer)

        client.site.listeners[client.session] = listen
        client.attach()
        for key, wanted in self.wants.items():
            if not wanted.is_over:
                self.subscribe(key, wanted.text)

    def heard(self, answer: Any) -> None:
        """Take note of an answer, besides."""

    def check_order(self, source: str, number: int, is_again: bool) -> None:
        """Events of a publisher come in the order in which it published them, but for those that are marked."""
        newest = self.newest.get(source, 0)
        assert is_again or number > newest, f"out of order: {source} {number} behind {newest} for {self.name}"
        self.newest[source] = max(newest, number)

    def subscribe(self, key: str, text: str) -> None:
        self.wants.setdefault(key, Subscription(text))
        assert self.client is not None
        self.asked[self.client.count + 1] = key
        self.client.subscribe(settle_s=1e9, **{key: text})


@dataclass
class Writer:
    """A publisher that sends each event until it was told that it is taken."""

    world: World
    site: str
    source: str
    client: Client | None = None
    number: int = 0
    open: Any = None
    published: dict[int, tuple[dict[str, Any], frozenset[tuple[str, str]]]] = field(default_factory=dict)
    """What was acknowledged, and which subscriptions were settled when it was first sent."""
    sent: dict[int, dict[str, Any]] = field(default_factory=dict)
    settled: frozenset[tuple[str, str]] = frozenset()
    settled_at: dict[int, frozenset[tuple[str, str]]] = field(default_factory=dict)

    def publish(self, chance: Random) -> None:
        if self.open is not None:
            return
        self.number += 1
        self.open = event(self.source, self.number, kind=chance.randrange(4))
        self.sent[self.number] = dict(self.open.record)
        self.settled = self.settled_at[self.number] = self.world.settled()
        self.send()

    def send(self) -> None:
        if self.client is None or self.client.site.node is None:
            return
        client, waiting, number = self.client, self.open, self.number

        def listen(answer: Any) -> None:
            if isinstance(answer, Published) and self.open is waiting:
                self.published[number] = dict(waiting.record), self.settled
                self.open = None

        client.site.listeners[client.session] = listen
        client.publish(self.open)

    def connect(self) -> None:
        self.client = Client(self.world.tree, self.site)
        if self.open is not None:
            self.send()


class World:
    """One run."""

    reader_type: type[Reader] = Reader

    def __init__(self, seed: int, site_type: type[Site] = Site, strategy: str = "") -> None:
        self.seed = seed
        self.chance = chance = Random(seed)
        count = chance.randint(2, 5)
        names = [chr(ord("a") + number) for number in range(count)]
        links = [(names[number], names[chance.randrange(number)]) for number in range(1, count)]
        self.strategy = strategy or chance.choice(STRATEGIES)
        self.texts = NOBODYS if seed % 5 == 4 else TEXTS
        self.tree = Tree(
            links, self.strategy, chance.randrange(2**32), site_type, queue_events=chance.choice((4, 1024)),
            recent_bytes=chance.choice((300, 1_000_000)),
        )  # fmt: skip
        self.readers = [
            self.reader_type(self, chance.choice(names), f"r{number}") for number in range(chance.randint(1, 3))
        ]
        self.writers = [Writer(self, chance.choice(names), f"/w{number}") for number in range(chance.randint(1, 3))]

    def settled(self) -> frozenset[tuple[str, str]]:
        """Return the subscriptions that were said to be settled."""
        return frozenset(
            (reader.name, key) for reader in self.readers for key, wanted in reader.wants.items() if wanted.is_settled
        )

    # -- What happens

    def run(self, steps: int = 400) -> None:
        self.tree.rest()  # a broker that was never joined has nobody to wait for
        for client in (*self.readers, *self.writers):
            client.connect()
        for reader in self.readers:
            reader.subscribe("k0", self.chance.choice(self.texts))
        for _ in range(steps):
            self.happen()
        self.rest()
        self.check()
        self.check_at_rest()

    def happen(self) -> None:
        chance, tree = self.chance, self.tree
        roll = chance.random()
        if roll < 0.70:
            if not tree.step():
                tree.tick(chance.choice((0.05, 0.3)))
        elif roll < 0.82:
            chance.choice(self.writers).publish(chance) if self.is_up(self.writers) else None
        elif roll < 0.86:
            reader = chance.choice(self.readers)
            if tree.sites[reader.site].node is not None and reader.count < 4:
                reader.count += 1
                reader.subscribe(f"k{reader.count}", chance.choice(self.texts))
        elif roll < 0.92:
            link = chance.choice(tree.links)
            if not tree.is_connected(link):
                tree.tidy()
                tree.call(link)
            elif chance.random() < 0.4:
                tree.cut(tree.ends[link])
        elif roll < 0.95:
            self.crash(chance.choice(list(tree.sites.values())))
        else:
            tree.tick(chance.choice((0.05, 0.3, 1.0)))
        for site in tree.sites.values():
            if site.node is None and chance.random() < 0.1:
                self.start(site)

    def is_up(self, clients: list[Writer]) -> bool:
        return all(self.tree.sites[client.site].node is not None for client in clients)

    def crash(self, site: Site) -> None:
        if site.node is not None:
            site.crash(self.chance)
            for client in (*self.readers, *self.writers):
                if client.site == site.name:
                    client.client = None

    def start(self, site: Site) -> None:
        site.start()
        for client in (*self.readers, *self.writers):
            if client.site == site.name:
                client.connect()

    def rest(self) -> None:
        for site in self.tree.sites.values():
            if site.node is None:
                self.start(site)
        self.tree.rest()

    # -- Checkers

    def check(self) -> None:
        """Check what was promised, whatever happened."""
        for reader in self.readers:
            filters = {key: tamis.parse(wanted.condition) for key, wanted in reader.wants.items()}
            got, reached = set(reader.received), self.reached(reader)
            for writer in self.writers:
                for number, record in writer.sent.items():
                    name = (writer.source, number)
                    if name in got and not any(holds(each, record) for each in filters.values()):
                        seen = {**record, "unwanted": True}
                        assert any(holds(each, seen) for each in filters.values()), f"unasked: {name}"
                        assert not self.is_wanted(writer, number), f"wanted by others: {name}"
                for number, (record, settled) in writer.published.items():
                    is_due = any((reader.name, key) in settled and holds(each, record) for key, each in filters.items())
                    assert not is_due or (writer.source, number) in reached, (
                        f"lost: {writer.source} {number} at {writer.site} for {reader.name} at {reader.site}"
                    )

    def reached(self, reader: Reader) -> set[tuple[str, int]]:
        """Return the events that came to where a reader is."""
        return set(reader.received)

    def is_wanted(self, writer: Writer, number: int) -> bool:
        """Did a subscription want an event that was settled when it was sent first?"""
        record, settled = writer.sent[number], writer.settled_at[number]
        return any(
            (reader.name, key) in settled and holds(tamis.parse(wanted.condition), record)
            for reader in self.readers
            for key, wanted in reader.wants.items()
        )

    def check_at_rest(self) -> None:
        """Check that everybody knows the same, and that events cross links as they should."""
        tree = self.tree
        for one, two in tree.links:
            for here, there in ((one, two), (two, one)):
                neighbour = tree.neighbour(here, there)
                assert neighbour.session.waiting_count == 0, "a control message was not acknowledged"
                assert neighbour.subscriber.deliveries.unacknowledged_count == 0
                broker, other = tree.sites[here].node._broker, tree.sites[there].node._broker
                told = {str(entry.filter) for entry in broker.told(neighbour.peer)}
                wants = {str(each) for each in other.wanted_by(tree.neighbour(there, here).peer).values()}
                assert told == wants, f"{here} told {there} {told}, which knows {wants}"
        for reader in self.readers:
            assert all(wanted.is_settled for wanted in reader.wants.values()), "not settled at rest"
        sent = self.crossings()
        for reader in self.readers:
            reader.received.clear()
        expected: dict[str, set[tuple[str, int]]] = defaultdict(set)
        crossing: dict[tuple[str, str], int] = defaultdict(int)
        for writer in self.writers:
            for _ in range(3):
                assert writer.open is None, "a publisher has no answer at rest"
                writer.publish(self.chance)
                record = dict(writer.open.record) if writer.open is not None else writer.sent[writer.number]
                tree.rest()
                self.expect(writer, record, expected, crossing)
        self.check_received(expected)
        if self.strategy in PERFECT:
            for link, count in self.crossings().items():
                assert count - sent[link] == crossing[link], f"{link} was crossed in vain"

    def check_received(self, expected: dict[str, set[tuple[str, int]]]) -> None:
        """Check what came at rest."""
        for reader in self.readers:
            assert sorted(reader.received) == sorted(expected[reader.name]), "not exactly its events at rest"
            for writer in self.writers:
                numbers = [number for source, number in reader.received if source == writer.source]
                assert numbers == sorted(numbers), "out of order at rest"

    def expect(self, writer, record, expected, crossing) -> None:
        """Note who is to get an event, and which links it has to cross therefore."""
        homes = set()
        texts = {reader.name: {wanted.condition for wanted in reader.wants.values()} for reader in self.readers}
        names, is_unwanted = who_wants(texts, record)
        if is_unwanted and self.strategy not in PERFECT:
            names = set()  # all neighbours are said to want everything
        for reader in self.readers:
            if reader.name in names:
                expected[reader.name].add((writer.source, record["n"]))
                homes.add(reader.site)
        crossed = set()
        for home in homes:
            crossed |= set(self.way(writer.site, home))
        for link in crossed:
            crossing[link] += 1

    def way(self, start: str, end: str, before: str = "") -> list[tuple[str, str]]:
        """Return the links from one broker to another, each in its direction; nothing if it is not there."""
        if start == end:
            return []
        for one, two in self.tree.links:
            for here, there in ((one, two), (two, one)):
                if here == start and there != before:
                    rest = self.way(there, end, start)
                    if rest or there == end:
                        return [(here, there), *rest]
        return []

    def crossings(self) -> dict[tuple[str, str], int]:
        return {
            (here, there): self.tree.neighbour(here, there).counts["sent"]
            for one, two in self.tree.links
            for here, there in ((one, two), (two, one))
        }


def run(seed: int, site_type: type[Site] = Site, steps: int = 400) -> World:
    world = World(seed, site_type)
    world.run(steps)
    return world


__all__ = ["SubscriberFacts", "World", "run"]
