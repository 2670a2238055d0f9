"""How do brokers and clients live together in one process? A discrete-event simulator.

Time is virtual: it jumps to the next arrival, to the end of a lease, or to when an event leaves the window of a ranked
subscription and another one takes its place. Chance comes from one generator, and nothing
depends on the order of a set: the same seed gives the same run.

Clients speak with their broker without delay. They remember what they want, and say it again to a broker that was
restarted, or when they come back; what is leased, for the rest of the lease. Links and brokers fail and come back;
the brokers at the ends of a failing link are told. Of a graph, the links of a spanning tree are used, chosen anew after
every fault. A broker may also be started anew so soon that its neighbours keep what it said, and both ends of a link
may begin again.

If brokers settle, control messages have numbers, and clients are told when what they said is in force everywhere.

Brokers that connect gradually work now and then, between messages, and before it is quiet until there is nothing to do.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from tamis.routing import (
    Advertise,
    Answer,
    Ask,
    Broker,
    Deliver,
    Entry,
    Gossiped,
    LostNeighbour,
    Message,
    Notified,
    Output,
    Passed,
    Post,
    Publish,
    Reject,
    Relayed,
    Renew,
    ResumeFiltering,
    Send,
    Settling,
    Spread,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Withdraw,
    decode,
    encode,
    spanning_links,
)
from tamis.routing.distributed import RendezvousNode, RoutingNode
from tamis.simulation.clients import Ends, SimulatedClient
from tamis.simulation.errors import KnownNameError, RestlessError, UnknownNameError, WrongStateError
from tamis.simulation.occurrences import (
    ClientSubscribed,
    ClientUnsubscribed,
    EventDelivered,
    EventPublished,
    EventWithdrawn,
    Expired,
    Failed,
    MessageCarried,
    MessagePosted,
    Occurrence,
    Quiet,
    Renewed,
    Settled,
)
from tamis.simulation.topologies import ways_from
from tamis.simulation.travel import Numbered, SettledThrough, Travel
from tamis.topk import Ranked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from random import Random

    from tamis.language.expressions import Expression
    from tamis.pruning.goals import Goal
    from tamis.routing.messages import Key
    from tamis.simulation.travel import Frame

_START_S = 0.001
"""So long a broker takes to start; what it says in one life and in the next is never of the same time."""


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

    With `encodes`, every message is written as bytes and read again on its way. `gradual_share` of the links are
    connected gradually, at either end. `guards` say what may cross links, by source and target.
    """

    def __init__(
        self,
        brokers: Iterable[str],
        links: Iterable[tuple[str, str]],
        make: Callable[[str], Broker],
        chance: Random,
        *,
        delays_s: tuple[float, float] = (0.001, 0.1),
        encodes: bool = False,
        gradual_share: float = 0.0,
        settles: bool = False,
        guards: Mapping[tuple[str, str], Expression] | None = None,
        uses: str = "tree",
        numbers: bool = False,
        observers: Iterable[Callable[[Occurrence], None]] = (),
    ) -> None:
        self.now = 0.0
        self.brokers: dict[str, Broker] = {}
        self.links = list(links)
        self.used: list[tuple[str, str]] = []
        self.clients: dict[str, SimulatedClient] = {}
        self.observers = list(observers)
        self.delivered_count = 0
        self.rejected: list[Reject] = []
        self.travel = Travel(chance, delays_s)
        self._make = make
        self._uses_all = uses == "all"
        self._number: int | None = 0 if numbers else None
        self._encodes = encodes
        self._chance = chance
        self._gradual_share = gradual_share
        self.guards = dict(guards or {})
        self._settling: dict[str, Settling] | None = {} if settles else None
        self._down: set[tuple[str, str]] = set()
        self._hops: dict[Key, dict[str, int]] = {}
        self._published_s: dict[Key, float] = {}
        self._has_dues = False
        self._unnoticed: set[str] = set()
        self._ends = Ends()
        self._advanced: dict[str, float] = {}
        self._names = tuple(brokers)
        for name in (end for link in self.links for end in link):
            if name not in self._names:
                raise UnknownNameError("broker", name, self._names)
        for name in self._names:
            self.brokers[name] = make(name)
            if self._settling is not None:
                self._settling[name] = Settling()
        self._rewire()
        self._has_dues = any(
            isinstance(broker, RoutingNode) or broker.next_due is not None for broker in self.brokers.values()
        )

    # -- Time

    @property
    def is_quiet(self) -> bool:
        """Is nothing under way, no broker gone unnoticed, and none at work?"""
        return not self.travel and not self._unnoticed and not self._working

    def step(self) -> None:
        """Let the next message arrive; or a lease end, if one ends before; or a broker work. Without any, nothing."""
        working = self._working
        if working and (not self.travel or self._chance.random() < 0.5):
            self.work(self._chance.choice(working), self._chance.randint(1, 3))
            return
        end, arrival = self._next_end(), self.travel.next_s
        if arrival < end:
            self.now = max(self.now, arrival)
            if (arrived := self.travel.arrive()) is not None:
                source, target, message = arrived
                if target not in self.brokers:
                    return  # it is gone, and its neighbour does not know yet
                self._arrive(source, target, message)
        elif end < inf:
            self._end(end)

    def _arrive(self, source: str, target: str, frame: Frame) -> None:
        broker = self.brokers[target]
        if isinstance(frame, SettledThrough):
            self._settling_of(target).acknowledged(source, frame.number)
        elif isinstance(frame, Numbered):
            self._carry_out(target, broker.receive(frame.message, source, self.now))
            if source in broker.neighbours:
                self._settling_of(target).received(source, frame.number, is_worked_out=broker.is_worked_out)
        else:
            self._carry_out(target, broker.receive(frame, source, self.now))
        self._settle(target)

    def _settling_of(self, broker: str) -> Settling:
        assert self._settling is not None
        return self._settling[broker]

    def _settle(self, broker: str) -> None:
        """Let others know what is settled at a broker."""
        if self._settling is None or broker not in self.brokers:
            return
        settling = self._settling[broker]
        if self.brokers[broker].is_worked_out:
            settling.worked_out()
        through, said = settling.settled()
        for neighbour, number in through:
            if self.travel.is_open(broker, neighbour):
                self.travel.send(broker, neighbour, SettledThrough(number), self.now)
        for each in said:
            self._notice(Settled(*each))

    def run(self, most_steps: int = 10_000_000) -> None:
        """Let everything arrive that is under way; leases end as far as time passes meanwhile.

        A broker that died unnoticed is found out first.
        """
        self._catch_up()
        count = 0
        while not self.is_quiet:
            if count >= most_steps:
                raise RestlessError(count)
            self.step()
            count += 1
        self._hops.clear()
        self._published_s.clear()
        self._notice(Quiet())

    @property
    def _working(self) -> list[str]:
        """The brokers that have something left to work out."""
        if not self._gradual_share:
            return []
        return [name for name, broker in self.brokers.items() if broker.work_count]

    def work(self, broker: str, budget: int) -> None:
        """Let a broker work out what its neighbours must know, so many units of it."""
        self._carry_out(broker, self._running(broker).work(budget, self.now))
        self._settle(broker)

    def wait(self, seconds: float) -> None:
        """Let time pass, and with it messages and leases."""
        until = self.now + seconds
        while min(self._next_end(), self.travel.next_s) <= until:
            self.step()
        self.now = until

    def _catch_up(self) -> None:
        """Let everything end that is over by now, before anybody says something: the clock may have been set."""
        while (end := self._next_end()) <= self.now:
            self._end(end)

    def _next_end(self) -> float:
        """Return when the next lease ends, as its client counts or as its broker does, or something leaves a window."""
        if not self._has_dues:
            return inf
        ends = [self._ends.next_s]
        for name, broker in self.brokers.items():
            if (at := broker.next_due) is not None and at > self._advanced.get(name, -inf):
                ends.append(at)  # a broker that was told of the time has no say in it any more
        return min(ends)

    def _end(self, end: float) -> None:
        """Let leases and stays in windows end: clients forget what they leased, and brokers hear how late it is."""
        self.now = max(self.now, end)
        homes = set()
        for client, (is_advertisement, key) in self._ends.until(self.now):
            homes.add(client.home)
            self._notice(Expired(client.name, key, is_advertisement))
        for name, broker in self.brokers.items():
            due = broker.next_due
            if name in homes or (due is not None and due <= self.now):
                self._advanced[name] = self.now
                self._carry_out(name, broker.advance(self.now))

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
                    self._notice(EventDelivered(client, publication, keys, hops, delay_s))
                case Post(target, message):
                    self._post(broker, target, message)
                case Spread(message, count, but, already):
                    drawn = [each for each in self.brokers[broker].neighbours if each not in but]
                    for each in self._chance.sample(drawn, min(count, len(drawn))):
                        if each not in already:
                            self._send(broker, each, message)
                case Reject():
                    self.rejected.append(output)
                case LostNeighbour(peer):
                    self._lose(broker, peer)

    def _send(self, source: str, target: str, message: Message) -> None:
        if not self.travel.is_open(source, target):
            return  # the link failed in this moment, and the broker is about to hear of it
        message = self._travelled(message, target)
        self._notice(MessageCarried(source, target, message))
        self._count_hop(source, target, message)
        frame: Frame = message
        if self._settling is not None and not isinstance(message, Publish | ResumeFiltering | Renew | Withdraw):
            frame = Numbered(self._settling[source].sent(target), message)
        self.travel.send(source, target, frame, self.now)

    def _count_hop(self, source: str, target: str, message: Message) -> None:
        publication = _publication_of(message)
        if publication is not None:
            hops = self._hops.setdefault(publication.key, {})
            hops.setdefault(target, hops.get(source, 0) + 1)

    def _post(self, source: str, target: str, message: Message) -> None:
        message = self._travelled(message, target)
        self._notice(MessagePosted(source, target, message))
        self.travel.post(source, target, message, self.now)

    def _travelled(self, message: Message, target: str) -> Message:
        """Return a message as a broker reads it."""
        if not self._encodes:
            return message
        reader = self.brokers.get(target)
        return decode(encode(message), functions=None if reader is None else reader.functions)

    # -- Clients

    def attach(self, client: str, broker: str) -> None:
        """Put a new client at a broker."""
        if client in self.clients:
            raise KnownNameError(client, f"a client at {self.clients[client].home!r}")
        if client in self._names and client != broker:
            raise KnownNameError(client, "another broker")
        self._running(broker).attach(client)
        self.clients[client] = SimulatedClient(client, broker)

    def disconnect(self, client: str) -> None:
        """Let a client be gone; its broker forgets what it wanted, and the client does not."""
        state = self._client(client)
        if not state.is_connected:
            raise WrongStateError(f"client {client!r}", "gone", "let it come back first")
        state.is_connected = False
        if state.home in self.brokers:
            self._notice_forgotten(state)
            self._carry_out(state.home, self.brokers[state.home].disconnect(client, self.now))

    def reconnect(self, client: str) -> None:
        """Let a client come back, and say again what it wants, if its broker is there."""
        state = self._client(client)
        if state.is_connected:
            raise WrongStateError(f"client {client!r}", "connected", "disconnect it first")
        state.is_connected = True
        if state.home in self.brokers:
            self.brokers[state.home].attach(client)
            self._say_again(state)

    def is_online(self, client: str) -> bool:
        """Are the client and its broker there?"""
        state = self._client(client)
        return state.is_connected and state.home in self.brokers

    def subscribe(self, client: str, key: Key, wanted: Expression | Ranked, lease_s: float | None = None) -> None:
        """A client subscribes; it does not remember what its broker refuses."""
        self._wish(client, {key: wanted}, lease_s, is_advertisement=False)

    def subscribe_many(self, client: str, filters: Mapping[Key, Expression | Ranked]) -> None:
        """A client subscribes to many at once: tables become the same as one by one, and messages are fewer."""
        self._wish(client, filters, None, is_advertisement=False)

    def unsubscribe(self, client: str, key: Key) -> None:
        """A client takes a subscription back."""
        self._take_back(client, key, is_advertisement=False)

    def advertise(self, client: str, key: Key, filter_: Expression, lease_s: float | None = None) -> None:
        """A client advertises."""
        self._wish(client, {key: filter_}, lease_s, is_advertisement=True)

    def unadvertise(self, client: str, key: Key) -> None:
        """A client takes an advertisement back."""
        self._take_back(client, key, is_advertisement=True)

    def publish(self, client: str, key: Key, event: Mapping[str, Any]) -> None:
        """A client publishes an event, if its broker is there."""
        self._catch_up()
        if self.is_online(client):
            publication = Publish(key, event)
            if self._number is not None:
                self._number += 1
                number = self._number
                self._tell_all(lambda node: node.try_again(number, self.now))
                self._tell_all(lambda node: node.make_room(number, self.now))
            outputs = self._answers(client, publication)
            self._published_s.setdefault(key, self.now)
            self._notice(EventPublished(client, self.clients[client].home, publication))
            self._carry_out(self.clients[client].home, outputs)
            if self._number is not None:
                self._arrive_now()
                number = self._number
                self._tell_all(lambda node: node.count(number, self.now))

    def _tell_all(self, said: Callable[[RoutingNode], list[Output]]) -> None:
        """Say something about the number of a publication to all nodes, and let what follows from it at once happen."""
        for name, node in list(self.brokers.items()):
            if isinstance(node, RoutingNode):
                self._carry_out(name, said(node))
        self._arrive_now()

    def _arrive_now(self) -> None:
        while self.travel and self.travel.next_s <= self.now:
            self.step()

    def withdraw(self, client: str, key: Key) -> None:
        """A client takes back an event that it has published, if its broker is there."""
        self._catch_up()
        if self.is_online(client):
            outputs = self._answers(client, Withdraw(key))
            if not any(isinstance(each, Reject) for each in outputs):
                self._notice(EventWithdrawn(client, self.clients[client].home, key))
            self._carry_out(self.clients[client].home, outputs)

    def ask(self, client: str, filter_: Expression) -> bool | None:
        """Does anybody else want what a filter matches, as far as a client's broker knows? None if that is gone."""
        self._catch_up()
        if not self.is_online(client):
            return None
        answers = self._answers(client, Ask("question", filter_))
        self._carry_out(self.clients[client].home, answers)
        return next((each.is_wanted for each in answers if isinstance(each, Answer)), None)

    def prune_advertisements(self, broker: str, goal: Goal) -> None:
        """Let a broker prune what its neighbours advertised, all together."""
        self._catch_up()
        self._carry_out(broker, self._running(broker).prune_advertisements(goal, now=self.now))

    def _client(self, name: str) -> SimulatedClient:
        if name not in self.clients:
            raise UnknownNameError("client", name, self.clients)
        return self.clients[name]

    def _wish(
        self, name: str, filters: Mapping[Key, Expression | Ranked], lease_s: float | None, *, is_advertisement: bool
    ) -> None:
        client, is_online = self._client(name), self.is_online(name)
        self._catch_up()
        outputs: list[Output] = []
        if is_online and filters:
            entries = tuple(Entry(key, filter_) for key, filter_ in filters.items())
            kind = Advertise if is_advertisement else Subscribe
            outputs = self._answers(name, kind(entries, lease_s=lease_s))
        refused = {each.key for each in outputs if isinstance(each, Reject)}
        for key, filter_ in filters.items():
            if key in refused:
                continue
            client.say(is_advertisement, key, filter_, None if lease_s is None else self.now + lease_s)
            self._has_dues |= isinstance(filter_, Ranked)
            if lease_s is not None:
                self._has_dues = True
                self._ends.add(client, (is_advertisement, key))
            if is_online:
                self._notice(ClientSubscribed(name, key, filter_, is_advertisement))
        self._carry_out(client.home, outputs)
        if self._settling is not None and is_online:
            for key, filter_ in filters.items():
                if key not in refused:
                    self._settling[client.home].said((name, key, filter_, is_advertisement), is_worked_out=False)
            self._settle(client.home)

    def _take_back(self, name: str, key: Key, *, is_advertisement: bool) -> None:
        client = self._client(name)
        if key not in client.said(is_advertisement):
            kind = "advertisement" if is_advertisement else "subscription"
            raise UnknownNameError(f"{kind} of {name!r}", key, client.said(is_advertisement))
        if not self.is_online(name):
            client.forget(is_advertisement, key)
            return
        outputs = self._answers(name, Unadvertise((key,)) if is_advertisement else Unsubscribe((key,)))
        client.forget(is_advertisement, key)
        self._notice(ClientUnsubscribed(name, key, is_advertisement))
        self._carry_out(client.home, outputs)

    def _answers(self, client: str, message: Message) -> list[Output]:
        home = self.brokers[self.clients[client].home]
        return home.receive(self._travelled(message, home.name), client, self.now)

    def _say_again(self, client: SimulatedClient) -> None:
        """Let a client tell a broker that knows nothing of it what it wants, for as long as it still does."""
        for is_advertisement in (True, False):
            for key, filter_ in list(client.said(is_advertisement).items()):
                end = client.ends.get((is_advertisement, key))
                client.forget(is_advertisement, key)
                lease_s = None if end is None else end - self.now
                if lease_s is None or lease_s > 0:
                    self._wish(client.name, {key: filter_}, lease_s, is_advertisement=is_advertisement)

    def _notice_forgotten(self, client: SimulatedClient) -> None:
        for is_advertisement in (False, True):
            for key in client.said(is_advertisement):
                self._notice(ClientUnsubscribed(client.name, key, is_advertisement))

    # -- Faults

    def fail_link(self, link: tuple[str, str]) -> None:
        """Cut a link; what is under way on it is lost."""
        link = self._link(link)
        self._down.add(link)
        self._notice(Failed(f"link {link}"))
        self._rewire()

    def mend_link(self, link: tuple[str, str]) -> None:
        """Make a link work again."""
        link = self._link(link)
        self._down.discard(link)
        self._notice(Failed(f"mended {link}"))
        self._rewire()

    def crash(self, broker: str, *, is_noticed: bool = True) -> None:
        """Let a broker forget everything and be gone.

        If that is not noticed, its links stay open, and nothing comes out of them; its neighbours find out when its
        lease is over.
        """
        if not is_noticed and self._running(broker).link_lease_s is None:
            raise WrongStateError(f"broker {broker!r}", "without a lease", "a link lease, or a crash that is noticed")
        self._running(broker)
        self._notice(Failed(f"broker {broker}"))
        del self.brokers[broker]
        for client in self._clients_at(broker):
            self._notice_forgotten(client)
        if is_noticed or not any(broker in link for link in self.used):
            self._rewire()
        else:
            self._unnoticed.add(broker)
            self._forget_links_between_the_dead()

    def _forget_links_between_the_dead(self) -> None:
        """Wait for no one to find out what only the dead could: a link has two ends, and both may be gone unnoticed."""
        for link in [link for link in self.used if not any(end in self.brokers for end in link)]:
            self.used.remove(link)
            self.travel.close(*link)
        self._unnoticed &= {end for link in self.used for end in link}

    def _lose(self, broker: str, peer: str) -> None:
        """Close a link of which one end says that nothing comes out of it any more."""
        link = next((each for each in self.used if set(each) == {broker, peer}), None)
        if link is not None:
            self._notice(Failed(f"{broker} lost {peer}"))
            self.used.remove(link)
            self.travel.close(*link)
            self._settle_without(broker, peer)
            if peer in self.brokers and broker in self.brokers[peer].neighbours:
                self._disconnect(peer, broker)
            self._rewire()

    def restart(self, broker: str) -> None:
        """Start a broker that knows nothing, which takes a moment; its clients tell it what they want."""
        if broker not in self._names:
            raise UnknownNameError("broker", broker, self._names)
        if broker in self.brokers:
            raise WrongStateError(f"broker {broker!r}", "running", "crash it first")
        made = self._make(broker)
        self.wait(_START_S)
        if broker in self._unnoticed:
            self._rewire()  # who starts anew answers on no old link
        self._notice(Failed(f"restarted {broker}", restarted=broker))
        self._take(broker, made)
        for client in self._clients_at(broker):
            made.attach(client.name)
        self._rewire()
        for client in self._clients_at(broker):
            self._say_again(client)

    def renew(self, broker: str) -> None:
        """Start a broker anew, so soon that its neighbours keep what it said; it knows its clients as it did before.

        What is under way on its links is lost.
        """
        self._running(broker)
        if self._unnoticed:
            self._rewire()
        self._notice(Renewed(broker))
        del self.brokers[broker]
        made = self._make(broker)
        self.wait(_START_S)
        self._notice(Renewed(broker))
        self._take(broker, made)
        for client in self._clients_at(broker):
            made.attach(client.name)
            self._say_as_before(client, made)
        links = [link for link in self.used if broker in link]
        made.expect(end for link in links for end in link if end != broker)
        for one, two in links:
            other = two if one == broker else one
            self.travel.open(one, two)
            self._carry_out(broker, self._connected(broker, other))
            self._renew_at(other, broker, is_new=True)

    def _renew_at(self, here: str, there: str, *, is_new: bool) -> None:
        if self._settling is not None:
            self._settling[here].renew(there, is_new=is_new)
        self._carry_out(here, self.brokers[here].renew(there, self.now))

    def _take(self, name: str, made: Broker) -> None:
        """Let a broker be there, in its place."""
        self.brokers[name] = made
        self.brokers = {name: self.brokers[name] for name in self._names if name in self.brokers}
        if self._settling is not None:
            self._settling[name] = Settling()

    def _say_as_before(self, client: SimulatedClient, broker: Broker) -> None:
        """Let a broker know again what a client said to it before; nobody is told, as nothing is new."""
        for is_advertisement in (True, False):
            for key, filter_ in client.said(is_advertisement).items():
                end = client.ends.get((is_advertisement, key))
                lease_s = None if end is None else end - self.now
                if lease_s is None or lease_s > 0:
                    kind = Advertise if is_advertisement else Subscribe
                    broker.receive(kind((Entry(key, filter_),), lease_s=lease_s), client.name, self.now)

    def renew_link(self, link: tuple[str, str]) -> None:
        """Let both ends of a link begin again, if it is used; what is under way on it is lost."""
        link = self._link(link)
        if self._unnoticed:
            self._rewire()
        if link in self.used:
            self._notice(Renewed())
            self.travel.open(*link)
            for here, there in (link, link[::-1]):
                self._renew_at(here, there, is_new=False)

    def _disconnect(self, here: str, there: str) -> None:
        self._carry_out(here, self.brokers[here].disconnect(there, self.now))
        self._settle_without(here, there)

    def _settle_without(self, here: str, there: str) -> None:
        if self._settling is not None and here in self.brokers:
            self._settling[here].disconnect(there)
            self._settle(here)

    def _connected(self, here: str, there: str) -> list[Output]:
        broker = self.brokers[here]
        if self._settling is not None:
            self._settling[here].connect(there)
        options: dict[str, Any] = {}
        if self._gradual_share and self._chance.random() < self._gradual_share:
            options["gradually"] = True
        if self.guards:
            options |= {"may_leave": self.guards.get((here, there)), "may_enter": self.guards.get((there, here))}
        return broker.connect(there, self.now, **options)

    def mend(self) -> None:
        """Mend all links and restart all brokers."""
        for link in sorted(self._down):
            self.mend_link(link)
        for name in self.crashed:
            self.restart(name)

    @property
    def crashed(self) -> list[str]:
        """The brokers that are gone."""
        return [name for name in self._names if name not in self.brokers]

    def _running(self, broker: str) -> Broker:
        if broker not in self._names:
            raise UnknownNameError("broker", broker, self._names)
        if broker not in self.brokers:
            raise WrongStateError(f"broker {broker!r}", "down", "restart it first")
        return self.brokers[broker]

    def _link(self, link: tuple[str, str]) -> tuple[str, str]:
        """Return a link as it was given, whichever end is named first."""
        for each in (tuple(link), tuple(reversed(link))):
            if each in self.links:
                return self.links[self.links.index(each)]
        raise UnknownNameError("link", "-".join(map(str, link)), ["-".join(each) for each in self.links])

    def _clients_at(self, broker: str) -> list[SimulatedClient]:
        return [client for client in self.clients.values() if client.home == broker and client.is_connected]

    def _links_to_use(self, working: list[tuple[str, str]]) -> list[tuple[str, str]]:
        if self._uses_all:
            return [link for link in working if all(end in self.brokers for end in link)]
        return spanning_links(self.brokers, working, self.used)

    def _rewire(self) -> None:
        """Use a spanning tree of what works; whoever is gone is noticed now."""
        self._unnoticed.clear()
        working = [link for link in self.links if link not in self._down]
        wanted = self._links_to_use(working)
        before, self.used = self.used, wanted
        lost = [link for link in before if link not in wanted]
        for one, two in lost:
            self.travel.close(one, two)
        for one, two in lost:
            for here, there in ((one, two), (two, one)):
                if here in self.brokers and there in self.brokers[here].neighbours:
                    self._disconnect(here, there)
        for one, two in wanted:
            if (one, two) not in before:
                self.travel.open(one, two)
                for here, there in ((one, two), (two, one)):
                    self._carry_out(here, self._connected(here, there))
        self._tell_ways()

    def _tell_ways(self) -> None:
        """Let nodes that send to others step by step know the ways there."""
        for name, node in list(self.brokers.items()):
            if isinstance(node, RendezvousNode):
                self._carry_out(name, node.know_ways(ways_from(name, self.used), self.now))


def _publication_of(message: Message) -> Publish | None:
    """Return the event that a message carries."""
    match message:
        case Publish():
            return message
        case Gossiped(publication) | Notified(publication):
            return publication
        case Relayed(_, Passed() as publication):
            return publication
    return None
