"""How do brokers and clients live together in one process?

Time is virtual: it jumps to the next arrival. A message takes a random time on its link; links keep their order, and
know nothing of each other, so messages overtake each other on different ways. Chance comes from one generator, and
nothing depends on the order of a set: the same seed gives the same run.

Clients speak with their broker without delay. They remember what they want, and say it again to a broker that was
restarted. Links and brokers fail and come back; messages that are under way on a failing link are lost, and the brokers
at its ends are told. Of a graph, the links of a spanning tree are used, chosen anew after every fault.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError
from tamis.routing import (
    Advertise,
    Broker,
    Deliver,
    Entry,
    Message,
    Output,
    Publish,
    Reject,
    Send,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    spanning_links,
)
from tamis.simulation.occurrences import (
    Carried,
    Delivered,
    Failed,
    Occurrence,
    Published,
    Quiet,
    Subscribed,
    Unsubscribed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from random import Random

    from tamis.language.expressions import Expression
    from tamis.routing.messages import Key


class RestlessError(TamisError, RuntimeError):
    """A network that does not come to rest: brokers answer each other without end."""

    def __init__(self, step_count: int) -> None:
        super().__init__(step_count)
        self.step_count = step_count

    def __str__(self) -> str:
        return (
            f"after {self.step_count:,} messages there are still some under way; a broker must be answering in circles"
        )


class Client:
    """Somebody at a broker, and what it wants and may publish."""

    def __init__(self, name: str, home: str) -> None:
        self.name = name
        self.home = home
        self.subscriptions: dict[Key, Expression] = {}
        self.advertisements: dict[Key, Expression] = {}


class Network:
    """Brokers, links, clients, and what is under way.

    >>> from random import Random
    >>> import tamis
    >>> network = Network(["a", "b"], [("a", "b")], Broker, Random(1))
    >>> network.attach("ann", "a"), network.attach("bob", "b")
    (None, None)
    >>> network.subscribe("ann", "cheap", tamis.parse("price < 20"))
    >>> network.run()
    >>> network.publish("bob", "e1", {"price": 12})
    >>> network.run()
    >>> network.delivered_count
    1
    """

    def __init__(
        self,
        brokers: Iterable[str],
        links: Iterable[tuple[str, str]],
        make: Callable[[str], Broker],
        chance: Random,
        *,
        delays_s: tuple[float, float] = (0.001, 0.1),
        observers: Iterable[Callable[[Occurrence], None]] = (),
    ) -> None:
        self.now = 0.0
        self.brokers: dict[str, Broker] = {}
        self.links = list(links)
        self.used: list[tuple[str, str]] = []
        self.clients: dict[str, Client] = {}
        self.observers = list(observers)
        self.delivered_count = 0
        self.rejected: list[Reject] = []
        self.duplicate_share = 0.0
        """The share of messages that links deliver twice."""
        self._make = make
        self._chance = chance
        self._delays_s = delays_s
        self._arrivals: list[tuple[float, int, str, str, int, Message]] = []
        self._arrival_count = 0
        self._latest: dict[tuple[str, str], float] = {}
        self._connections: dict[tuple[str, str], int] = {}
        self._down: set[tuple[str, str]] = set()
        self._hops: dict[Key, dict[str, int]] = {}
        self._published_s: dict[Key, float] = {}
        for name in brokers:
            self.brokers[name] = make(name)
        self._names = tuple(self.brokers)
        self._rewire()

    # -- Time

    @property
    def is_quiet(self) -> bool:
        """Is nothing under way?"""
        return not self._arrivals

    def step(self) -> None:
        """Let the next message arrive."""
        arrives, _, source, target, connection, message = heappop(self._arrivals)
        self.now = max(self.now, arrives)
        if self._connections.get(_pair(source, target)) == connection:
            self._carry_out(target, self.brokers[target].receive(message, source, self.now))

    def run(self, most_steps: int = 10_000_000) -> None:
        """Let everything arrive that is under way."""
        count = 0
        while self._arrivals:
            if count >= most_steps:
                raise RestlessError(count)
            self.step()
            count += 1
        self._hops.clear()
        self._published_s.clear()
        self._notice(Quiet())

    def wait(self, seconds: float) -> None:
        """Let time pass, and with it messages and leases."""
        until = self.now + seconds
        while True:
            arrival = self._arrivals[0][0] if self._arrivals else inf
            expiries = [(at, name) for name, each in self.brokers.items() if (at := each.next_expiry) is not None]
            expiry, name = min(expiries, default=(inf, ""))
            if min(arrival, expiry) > until:
                break
            if expiry <= arrival:
                self.now = max(self.now, expiry)
                self._carry_out(name, self.brokers[name].advance(self.now))
            else:
                self.step()
        self.now = until

    def _notice(self, occurrence: Occurrence) -> None:
        for observer in self.observers:
            observer(occurrence)

    def _carry_out(self, broker: str, outputs: Iterable[Output]) -> None:
        for output in outputs:
            match output:
                case Send(peer, message):
                    self._send(broker, peer, message)
                case Deliver(client, publication, keys):
                    self.delivered_count += 1
                    hops = self._hops.get(publication.key, {}).get(broker, 0)
                    delay_s = self.now - self._published_s.get(publication.key, self.now)
                    self._notice(Delivered(client, publication, keys, hops, delay_s))
                case Reject():
                    self.rejected.append(output)

    def _send(self, source: str, target: str, message: Message) -> None:
        connection = self._connections.get(_pair(source, target))
        if connection is None:
            return  # the link failed in this moment, and the broker is about to hear of it
        self._notice(Carried(source, target, message))
        if isinstance(message, Publish):
            hops = self._hops.setdefault(message.key, {})
            hops.setdefault(target, hops.get(source, 0) + 1)
        for _ in range(2 if self.duplicate_share and self._chance.random() < self.duplicate_share else 1):
            arrives = max(self.now + self._chance.uniform(*self._delays_s), self._latest.get((source, target), 0.0))
            self._latest[source, target] = arrives
            self._arrival_count += 1
            heappush(self._arrivals, (arrives, self._arrival_count, source, target, connection, message))

    # -- Clients

    def attach(self, client: str, broker: str) -> None:
        """Put a client at a broker."""
        self.clients[client] = Client(client, broker)
        self.brokers[broker].attach(client)

    def is_online(self, client: str) -> bool:
        """Is the client's broker there?"""
        return self.clients[client].home in self.brokers

    def subscribe(self, client: str, key: Key, filter_: Expression, lease_s: float | None = None) -> None:
        """A client subscribes."""
        self.clients[client].subscriptions[key] = filter_
        if self.is_online(client):
            self._notice(Subscribed(client, key, filter_))
            self._say(client, Subscribe((Entry(key, filter_),), lease_s=lease_s))

    def subscribe_many(self, client: str, filters: Mapping[Key, Expression]) -> None:
        """A client subscribes to many at once: tables become the same as one by one, and messages are fewer."""
        self.clients[client].subscriptions.update(filters)
        if self.is_online(client):
            for key, filter_ in filters.items():
                self._notice(Subscribed(client, key, filter_))
            self._say(client, Subscribe(tuple(Entry(key, filter_) for key, filter_ in filters.items())))

    def unsubscribe(self, client: str, key: Key) -> None:
        """A client takes a subscription back."""
        del self.clients[client].subscriptions[key]
        if self.is_online(client):
            self._notice(Unsubscribed(client, key))
            self._say(client, Unsubscribe((key,)))

    def advertise(self, client: str, key: Key, filter_: Expression, lease_s: float | None = None) -> None:
        """A client advertises."""
        self.clients[client].advertisements[key] = filter_
        if self.is_online(client):
            self._notice(Subscribed(client, key, filter_, is_advertisement=True))
            self._say(client, Advertise((Entry(key, filter_),), lease_s=lease_s))

    def unadvertise(self, client: str, key: Key) -> None:
        """A client takes an advertisement back."""
        del self.clients[client].advertisements[key]
        if self.is_online(client):
            self._notice(Unsubscribed(client, key, is_advertisement=True))
            self._say(client, Unadvertise((key,)))

    def publish(self, client: str, key: Key, event: Mapping[str, Any]) -> None:
        """A client publishes an event, if its broker is there."""
        if self.is_online(client):
            publication = Publish(key, event)
            self._published_s.setdefault(key, self.now)
            self._notice(Published(client, self.clients[client].home, publication))
            self._say(client, publication)

    def _say(self, client: str, message: Message) -> None:
        home = self.clients[client].home
        self._carry_out(home, self.brokers[home].receive(message, client, self.now))

    # -- Faults

    def fail_link(self, link: tuple[str, str]) -> None:
        """Cut a link; what is under way on it is lost."""
        self._down.add(link)
        self._notice(Failed(f"link {link}"))
        self._rewire()

    def mend_link(self, link: tuple[str, str]) -> None:
        """Make a link work again."""
        self._down.discard(link)
        self._notice(Failed(f"mended {link}"))
        self._rewire()

    def crash(self, broker: str) -> None:
        """Let a broker forget everything and be gone."""
        self._notice(Failed(f"broker {broker}"))
        del self.brokers[broker]
        for client in self.clients.values():
            if client.home == broker:
                for key in client.subscriptions:
                    self._notice(Unsubscribed(client.name, key))
                for key in client.advertisements:
                    self._notice(Unsubscribed(client.name, key, is_advertisement=True))
        self._rewire()

    def restart(self, broker: str) -> None:
        """Start a broker that knows nothing; its clients tell it what they want."""
        self._notice(Failed(f"restarted {broker}", restarted=broker))
        self.brokers[broker] = self._make(broker)
        self.brokers = {name: self.brokers[name] for name in self._names if name in self.brokers}
        for client in self.clients.values():
            if client.home == broker:
                self.brokers[broker].attach(client.name)
        self._rewire()
        for client in self.clients.values():
            if client.home == broker:
                for key, filter_ in client.advertisements.items():
                    self.advertise(client.name, key, filter_)
                for key, filter_ in client.subscriptions.items():
                    self.subscribe(client.name, key, filter_)

    def mend(self) -> None:
        """Mend all links and restart all brokers."""
        for link in sorted(self._down):
            self.mend_link(link)
        for name in self._names:
            if name not in self.brokers:
                self.restart(name)

    def _rewire(self) -> None:
        """Use a spanning tree of what works."""
        working = [link for link in self.links if link not in self._down]
        wanted = spanning_links(self.brokers, working, self.used)
        before, self.used = self.used, wanted
        lost = [link for link in before if link not in wanted]
        for one, two in lost:
            del self._connections[_pair(one, two)]
        for one, two in lost:
            for here, there in ((one, two), (two, one)):
                if here in self.brokers and there in self.brokers[here].neighbours:
                    self._carry_out(here, self.brokers[here].disconnect(there, self.now))
        for one, two in wanted:
            if (one, two) not in before:
                self._arrival_count += 1
                self._connections[_pair(one, two)] = self._arrival_count
                for here, there in ((one, two), (two, one)):
                    self._carry_out(here, self.brokers[here].connect(there, self.now))


def _pair(one: str, two: str) -> tuple[str, str]:
    return (one, two) if one < two else (two, one)
