"""A tree of nodes without sockets, clocks and disks: what a driver does with `Talk` and `Node`, in virtual time.

Nodes are joined by connections that carry bytes in order. What happens next is chosen from outside, one step at a time:
bytes arrive, in pieces of any size; a disk is done; a node looks for those who are behind; time goes on; a connection
breaks; a node ends without a word and begins again with what its disks have.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from tamis.routing import Broker
from tamis.service.event_keys import event_key
from tamis.service.filters import wanted_of
from tamis.service.links.frames import LinkError
from tamis.service.links.talking import LinkIdentity, Talk
from tamis.service.links.terms import LinkTerms
from tamis.service.log.base import UNWANTED
from tamis.service.messages import (
    Acknowledge,
    Append,
    Attach,
    Close,
    Deliveries,
    Incoming,
    Keep,
    Principal,
    Publish,
    Published,
    Read,
    Refused,
    Say,
    Session,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from tamis.service.node import LogFacts, Node, NodeLimits
from tamis.service.permissions import Permissions
from tamis.service.windows import WindowLimits
from tests.service.world_disks import LogDisk, StateDisk

ROOT = Principal("root", (), True)


def read_record(body: bytes, flags: int) -> dict[str, Any]:
    event = msgspec.json.decode(body)
    record = {**event["data"], "id": event["id"], "source": event["source"]}
    return {**record, "unwanted": True} if flags & UNWANTED else record


def read_event(body: bytes, flags: int) -> Incoming:
    return Incoming(event_key(body), body, read_record(body, flags), flags)


def event(source: str, number: int, **data: Any) -> Incoming:
    body = msgspec.json.encode({"id": str(number), "source": source, "data": {"n": number, **data}})
    return read_event(body, 0)


@dataclass
class End:
    """One end of a connection."""

    site: Site
    talk: Talk
    session: int
    life: int
    """Which life of the node it belongs to."""
    coming: deque[bytes] = field(default_factory=deque)
    other: End | None = None
    is_open: bool = True


class Site:
    """A node with its disks, and what drives it. A node that is down is None."""

    node_type: type[Node] = Node
    reroute_after_s: float | None = None
    """Of a broker in a graph."""
    windows = WindowLimits(mark_every_s=2.0)

    def __init__(self, tree: Tree, name: str, strategy: str) -> None:
        self.tree, self.name, self.strategy = tree, name, strategy
        self.log, self.state = LogDisk(), StateDisk()
        self.node: Node | None = None
        self.lives = 0
        self.ends: list[End] = []
        self.said: list[tuple[int, Any]] = []
        self.reads: deque[Read] = deque()
        self.terms: dict[str, LinkTerms] = {}
        """Of links that have other terms than all others, by neighbour."""
        self.listeners: dict[int, Any] = {}
        """Sessions of clients: what to do with an answer."""
        self.start()

    def start(self) -> None:
        assert self.node is None
        self.lives += 1
        facts = LogFacts(self.log.first, self.log.last, self.log.blocks[-1].time_us if self.log.blocks else 0)
        self.node = self.node_type(
            Broker(self.name, self.strategy, algorithm="naive"), Permissions({}), read_record,
            self.state.rows.stored(), facts, now=self.tree.now, limits=self.tree.limits,
            life=f"{self.name}-{self.lives}", reroute_after_s=self.reroute_after_s, windows=self.windows,
        )  # fmt: skip
        self.node.remember(self.log.blocks)
        self.do(self.node.start())

    def terms_for(self, name: str) -> LinkTerms:
        return self.terms.get(name, self.tree.terms)

    def crash(self, chance: Random) -> None:
        """End without a word; what was not synced is perhaps there, as far as disks keep an order."""
        self.node = None
        self.log.crash(chance)
        self.state.crash(chance)
        self.reads.clear()
        self.listeners.clear()
        for end in list(self.ends):
            self.tree.cut(end)

    def do(self, outputs: list[Any]) -> None:
        for output in outputs:
            match output:
                case Say(session, answer):
                    self.heard(session, answer)
                case Append(block):
                    self.log.writing.append(block)
                case Keep():
                    self.state.writing.append(output)
                case Read():
                    self.reads.append(output)

    def heard(self, session: int, answer: Any) -> None:
        self.said.append((session, answer))
        end = next((each for each in self.ends if each.session == session), None)
        if end is not None:
            requests = end.talk.hear([answer])
            self.flush(end)
            for request in requests:
                self.hear(end.session, request)
        elif session in self.listeners:
            self.listeners[session](answer)

    def flush(self, end: End) -> None:
        data = end.talk.take_written()
        if data and end.other is not None and end.other.is_open:
            end.other.coming.append(data)
        if end.talk.is_over:
            self.tree.leave(end)

    def hear(self, session: int, request: Any, principal: Principal = ROOT) -> None:
        assert self.node is not None
        self.do(self.node.hear(request, Session(session, principal), self.tree.now))

    def receive(self, end: End, data: bytes) -> None:
        try:
            requests = end.talk.receive(data)
        except LinkError:
            self.flush(end)
            if end.is_open:
                self.tree.leave(end)
            return
        for request in requests:
            self.hear(end.session, request)
        if end.is_open:
            self.flush(end)

    # -- Steps

    def steps(self) -> list[tuple[str, Any]]:
        """Return what can happen here next."""
        if self.node is None:
            return []
        steps: list[tuple[str, Any]] = []
        if self.log.writing:
            steps.append(("log", None))
        if self.state.writing:
            steps.append(("state", None))
        if self.reads:
            steps.append(("read", None))
        if self.node.has_work:
            steps.append(("work", None))
        steps += [("bytes", end) for end in self.ends if end.coming]
        return steps

    def step(self, kind: str, end: End | None, chance: Random) -> None:
        node, now = self.node, self.tree.now
        assert node is not None
        match kind:
            case "log":
                self.log.sync(chance.randint(1, len(self.log.writing)))
                self.do(node.on_disk(self.log.last, now))
            case "state":
                self.do(node.kept(self.state.sync(chance.randint(1, len(self.state.writing)))))
            case "read":
                read = self.reads.popleft()
                blocks, through = self.log.read(read.first, read.last, 1)
                self.do(node.take_read(blocks, through, self.log.first, now))
            case "work":
                self.do(node.work(now))
            case "bytes":
                assert end is not None
                data = end.coming.popleft()
                if len(data) > 1 and chance.random() < 0.2:
                    cut = chance.randrange(1, len(data))
                    end.coming.appendleft(data[cut:])
                    data = data[:cut]
                self.receive(end, data)


class Tree:
    """Sites and the connections between them; all chance is `chance`."""

    def __init__(
        self,
        links: list[tuple[str, str]],
        strategy: str = "covering",
        seed: int = 1,
        site_type: type[Site] = Site,
        terms: LinkTerms | None = None,
        **limits: Any,
    ) -> None:
        self.now = 1_000.0
        self.chance = Random(seed)
        self.limits = NodeLimits(**limits)
        self.links = links
        self.terms = terms or LinkTerms()
        names = sorted({name for link in links for name in link})
        self.sites = {name: site_type(self, name, strategy) for name in names}
        self._sessions = 0
        self.ends: dict[tuple[str, str], End] = {}
        """The calling ends of connections, by link."""
        self.steps = 0

    def session(self) -> int:
        self._sessions += 1
        return self._sessions

    # -- Connections

    def call(self, link: tuple[str, str], identities: dict[str, LinkIdentity] | None = None) -> None:
        """Make a connection, if both ends are up."""
        caller, called = (self.sites[name] for name in link)
        if caller.node is None or called.node is None:
            return
        ends = []
        for site in (caller, called):
            is_graph = site.reroute_after_s is not None
            identity = (identities or {}).get(site.name) or LinkIdentity("net", site.name, is_graph=is_graph)
            nonce = self.chance.randbytes(16)
            talk = Talk(identity, nonce, site.terms_for, read_event)
            ends.append(End(site, talk, self.session(), site.lives))
        ends[0].other, ends[1].other = ends[1], ends[0]
        self.ends[link] = ends[0]
        for end in ends:
            end.site.ends.append(end)
            end.site.flush(end)

    def cut(self, end: End) -> None:
        """A connection breaks: what is under way is lost, and both ends learn of it."""
        for each in (end, end.other):
            if each is not None and each.is_open:
                each.coming.clear()
                self.leave(each)

    def leave(self, end: End) -> None:
        """One end closes; the other still reads what was sent, and then learns of it."""
        if end.is_open:
            end.is_open = False
            end.site.ends.remove(end)
            if end.site.node is not None and end.life == end.site.lives:
                end.site.hear(end.session, Close())

    def tidy(self) -> None:
        """Ends whose other end has closed, and who have read all that was sent, close too."""
        for site in self.sites.values():
            for end in list(site.ends):
                if end.other is not None and not end.other.is_open and not end.coming:
                    self.leave(end)

    def is_connected(self, link: tuple[str, str]) -> bool:
        end = self.ends.get(link)
        return end is not None and end.is_open and end.other is not None and end.other.is_open

    # -- Time

    def step(self) -> bool:
        """Let one thing happen; return whether anything could."""
        self.tidy()
        steps = [(site, *step) for site in self.sites.values() for step in site.steps()]
        if not steps:
            return False
        self.steps += 1
        site, kind, end = self.chance.choice(steps)
        site.step(kind, end, self.chance)
        return True

    def tick(self, seconds: float = 1.0) -> None:
        self.now += seconds
        for site in self.sites.values():
            if site.node is not None:
                site.do(site.node.tick(self.now))

    def rest(self, most: int = 100_000) -> None:
        """Bring everything up, connect everything, and let everything happen that can."""
        for site in self.sites.values():
            if site.node is None:
                site.start()
        for _ in range(50):
            self.tidy()
            for link in self.links:
                if not self.is_connected(link):
                    self.call(link)
            before = self.steps
            while self.step():
                assert self.steps - before < most, "the tree does not come to rest"
            self.tick()
            if not any(site.steps() for site in self.sites.values()) and all(map(self.is_connected, self.links)):
                break
        else:
            raise AssertionError("the links do not stay connected")

    # -- Neighbours, for checkers

    def neighbour(self, at: str, name: str) -> Any:
        node = self.sites[at].node
        assert node is not None
        return node.neighbours[name]


class Client:
    """Somebody who is connected to a site, remembers what was said, and takes everything."""

    def __init__(self, tree: Tree, site: str, name: str = "") -> None:
        self.tree, self.site, self.name = tree, tree.sites[site], name
        self.session = 0
        self.count = 0
        self.answers: list[Any] = []
        self.received: list[tuple[int, bytes]] = []
        self.repeated: list[bool] = []
        """Of what was received: whether it was marked as something that comes again, or late."""
        self.connect()

    def connect(self) -> None:
        self.session = self.tree.session()
        self.site.listeners[self.session] = self.hear

    def number(self) -> int:
        self.count += 1
        return self.count

    def ask(self, request: Any) -> None:
        self.site.hear(self.session, request)

    def hear(self, answer: Any) -> None:
        self.answers.append(answer)
        if isinstance(answer, Deliveries):
            self.received += [(item.position.event, item.body) for item in answer.items]
            self.repeated += [item.is_again for item in answer.items]
            self.ask(Acknowledge(0, self.name, done=tuple(item.position for item in answer.items)))

    def subscribe(self, settle_s: float = 0.0, **texts: str) -> None:
        wanted = {key: wanted_of(text) for key, text in texts.items()}
        self.ask(Subscribe(self.number(), self.name, wanted, settle_s=settle_s))

    def unsubscribe(self, *keys: str) -> None:
        self.ask(Unsubscribe(self.number(), self.name, keys))

    def attach(self) -> None:
        self.ask(Attach(self.number(), self.name))

    def publish(self, *events: Incoming) -> None:
        self.ask(Publish(self.number(), events))

    def last(self, kind: type) -> Any:
        return next((answer for answer in reversed(self.answers) if isinstance(answer, kind)), None)

    @property
    def events(self) -> list[tuple[str, int]]:
        """What was received, as source and number, in order."""
        return [(record["source"], record["n"]) for _, body in self.received for record in [read_record(body, 0)]]


__all__ = ["Client", "Published", "Refused", "Site", "Subscribed", "Tree", "event"]
