"""What does a node know of its neighbours, and when does it tell them? Store and forward along a tree.

A neighbour is a durable subscriber that is kept under a name which no client can have. What it wants is in the
routing table, told by control messages; which events go there is decided by the `Broker`. New events are offered to it
as they are matched while it is live; what it missed, the pass over the log finds with the filters that it has told
since. It acknowledges what is on its own disk, so nothing that was acknowledged to a publisher is lost on its way.

After a restart nothing of what neighbours wanted is known. Until a neighbour that is remembered has told it again, it
counts as one that wants everything, and the other neighbours, who are told that this is not all yet, keep what they
knew of this node before. Nothing is sent to a neighbour before it has told what it wants.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError
from tamis.language.expressions import TRUE
from tamis.language.meaning import holds
from tamis.routing import Entry, Hello, Send, Settlement, decode, encode
from tamis.routing.messages import PROVISIONAL
from tamis.service.changes import Change, FloorKept, LinkGone, LinkKept
from tamis.service.deliveries import InFlight
from tamis.service.errors import ConflictError, NotFoundError
from tamis.service.links.frames import LinkError
from tamis.service.links.requests import (
    Behind,
    Controls,
    Heard,
    Joining,
    LinkAcked,
    LinkBehind,
    LinkChange,
    LinkClosed,
    LinkControl,
    LinkFacts,
    LinkForget,
    LinkJoined,
    LinkOpen,
    LinksDescribe,
    LinksDescribed,
)
from tamis.service.links.sessions import LinkSession
from tamis.service.links.terms import LINK_SUBSCRIBER, LinkTerms, RoutingTerms, routing_terms
from tamis.service.log.base import MARK_MOST, MARK_SHIFT, PASSED_ON, rerouted_part
from tamis.service.messages import (
    Accepted,
    Attach,
    Delivery,
    LinkAsked,
    Lost,
    Output,
    Principal,
    Say,
    Session,
    SubscriberSettings,
)
from tamis.service.messages import Deliveries as Sent
from tamis.service.permissions import EFFECTIVE_LIMITS
from tamis.service.positions import START, Position
from tamis.service.subscribers import Subscriber

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing import Broker
    from tamis.routing.messages import Output as RoutingOutput
    from tamis.routing.wanted import GroupMatches
    from tamis.service.figures import Figures
    from tamis.service.interest import Hits
    from tamis.service.log.base import Block
    from tamis.service.node import Node

CREDIT, CREDIT_BYTES = 8_192, 4_000_000
"""What a neighbour may have without saying that it is on its disk."""
WORK_UNITS = 5
"""So many filters are compared at a time, at first, with what a neighbour was told: some milliseconds."""
MOST_WORK_UNITS = 20
WORK_S = 0.005
"""About so long one slice of work is to take, in which nothing else is done."""
_NEVER = float("inf")
_NOBODY = Principal("")


def mark_of(number: int) -> int:
    """Return the flag of events that came over a link."""
    return min(number, MARK_MOST) << MARK_SHIFT


def link_of(flags: int) -> int:
    """Return the number of the link that an event came over; 0 if a client published it.

    >>> link_of(mark_of(5) | 1), link_of(1), link_of(mark_of(200))
    (5, 0, 15)
    """
    return flags >> MARK_SHIFT & MARK_MOST


@dataclass(slots=True)
class Neighbour:
    """A broker at the other end of a link."""

    name: str
    number: int
    """By which its events are marked in the log."""
    subscriber: Subscriber
    session: LinkSession
    terms: LinkTerms
    url: str = ""
    connection: int = 0
    """The session of its connection; 0 while there is none."""
    is_joined: bool = False
    awaits_hello: bool = True
    """Whether it has not yet told what it wants, since it began a session."""
    events_through: int = 0
    """Of its log: everything that it sent up to there is on disk here."""
    writing: deque[tuple[int, int]] = field(default_factory=deque)
    """What is not on disk: positions of our log, and of its log."""
    behind: frozenset[str] = frozenset()
    said_behind: tuple[str, ...] = ()
    said: tuple[int, int] = (0, 0)
    """What it was told last of its control messages: heard, settled."""
    seen_s: float = 0.0
    refusal: str = ""
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("sent", "received", "known", "begun", "resumed", "lost"), 0)
    )

    is_routed: bool = True
    """Whether it is in the routing table. In a graph, only those are to whom a link of the tree leads, or led."""
    may_send: Expression | None = None
    may_receive: Expression | None = None
    """What may go there and come from there; None is for everything."""

    def agree(self, terms: LinkTerms, routed: RoutingTerms) -> None:
        """Keep to other terms from now on."""
        self.terms, self.may_send, self.may_receive = terms, routed["may_leave"], routed["may_enter"]

    @property
    def peer(self) -> str:
        """What it is called in the routing table, and among subscribers."""
        return self.subscriber.name


@dataclass(slots=True)
class _Wait:
    """An answer that waits until everything is settled, or its time is over."""

    marks: Mapping[str, int] | None
    """None while it is not yet worked out what neighbours must be told."""
    ends_s: float
    session: int
    answer: Any
    kept: int


def subscriber_of(name: str, deliveries: InFlight) -> Subscriber:
    """Return what a neighbour is to the log, from where it has come to."""
    settings, floor = SubscriberSettings(wait_s=_NEVER), deliveries.least_floor
    subscriber = Subscriber(LINK_SUBSCRIBER + name, "", True, settings, floor.event, deliveries, passed=floor)
    subscriber.is_neighbour = True
    return subscriber


class Neighbours:
    """All neighbours of a node."""

    def __init__(self, node: Node, broker: Broker, schema: Schema | None, life: str) -> None:
        self._node, self._broker, self._schema, self._life = node, broker, schema, life
        self._by_name: dict[str, Neighbour] = {}
        self._by_peer: dict[str, Neighbour] = {}
        self._by_number: dict[int, str] = {}
        """Peers by the marks of their events."""
        self._by_connection: dict[int, Neighbour] = {}
        self._settling = Settlement()
        self._waits: list[_Wait] = []
        self.work_units = WORK_UNITS

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Neighbour]:
        return iter(self._by_name.values())

    def __getitem__(self, name: str) -> Neighbour:
        return self._by_name[name]

    @property
    def subscribers(self) -> Iterator[Subscriber]:
        """What neighbours are to the log: subscribers."""
        return (neighbour.subscriber for neighbour in self._by_name.values() if neighbour.is_routed)

    def is_known(self, subscriber: Subscriber) -> bool:
        """Is this the subscriber of a neighbour that was not forgotten?"""
        neighbour = self._by_peer.get(subscriber.name)
        return neighbour is not None and neighbour.is_routed and neighbour.subscriber is subscriber

    # -- Coming and going

    def restore(self, kept: Sequence[LinkKept], floors: Sequence[FloorKept], head: int, now: float) -> None:
        """Take the neighbours that were kept; each counts as one that wants everything until it says otherwise."""
        of_names = {each.name: each for each in floors}
        self._broker.expect(LINK_SUBSCRIBER + each.name for each in kept)
        for each in kept:
            floor = of_names.get(LINK_SUBSCRIBER + each.name)
            position = Position.of(head) if floor is None else floor.floor
            islands = () if floor is None else floor.islands
            deliveries = InFlight(position, islands, Position.of(head))
            neighbour = self._take(each.name, each.number, deliveries, each.terms, each.url, now)
            neighbour.subscriber.settle(position)
        for (
            neighbour
        ) in self:  # when all are connected: what each of them is told is not all before the others have told
            self._assume(neighbour, now)

    def _assume(self, neighbour: Neighbour, now: float) -> None:
        """Let a neighbour count as one that wants everything, for the time being."""
        versions = tuple(self._broker.functions.versions.items())
        everything, anything = (Entry(PROVISIONAL, TRUE, 1.0),), (Entry(0, TRUE),)
        assumed = Hello(everything, anything, self._broker.digest, functions=versions)
        self.tell(self._broker.receive(assumed, neighbour.peer, now))

    def _take(
        self,
        name: str,
        number: int,
        deliveries: InFlight,
        terms: LinkTerms,
        url: str,
        now: float,
        *,
        route: bool = True,
    ) -> Neighbour:
        subscriber = subscriber_of(name, deliveries)
        neighbour = Neighbour(name, number, subscriber, LinkSession(self._life), terms, url, seen_s=now)
        neighbour.agree(terms, self._routed(terms))
        self._by_name[name] = self._by_peer[subscriber.name] = neighbour
        if number < MARK_MOST:
            self._by_number[number] = subscriber.name
        neighbour.is_routed = route
        if route:
            self._route(neighbour, now)
        return neighbour

    def _route(self, neighbour: Neighbour, now: float) -> None:
        """Take a neighbour into the routing table, and what it is told into account."""
        self._settling.told(neighbour.name, 0)
        routed = self._routed(neighbour.terms)
        self.tell(self._broker.connect(neighbour.peer, now, gradually=True, **routed))

    def _unroute(self, neighbour: Neighbour, now: float) -> None:
        """Take back everywhere what a neighbour wanted; nothing waits for it any more."""
        self._settling.forget(neighbour.name)
        self._node.leave(neighbour.subscriber)
        self.tell(self._broker.disconnect(neighbour.peer, now))

    def _routed(self, terms: LinkTerms) -> RoutingTerms:
        with self._broker.functions.in_use():
            return routing_terms(terms, self._broker.strategy, self._schema)

    def _amend(self, neighbour: Neighbour, terms: LinkTerms, now: float) -> list[Output]:
        """Keep to other terms. If others are told or pass then, everything is told anew, in a new session."""
        before, routed = neighbour.terms, self._routed(terms)
        neighbour.agree(terms, routed)
        if terms.routed_alike(before) or not neighbour.is_routed:
            return []
        self.tell(self._broker.amend(neighbour.peer, now, **routed))
        neighbour.session.spend()
        connection = neighbour.connection
        if not connection:
            return []
        return [*self.closed(connection, now), Say(connection, LinkClosed("the terms of the link have changed"))]

    def _made(self, name: str, terms: LinkTerms, url: str, now: float) -> tuple[Neighbour, list[Change], list[Output]]:
        """Return a neighbour, taken now if it is not there, what is to be kept, and what to say."""
        neighbour = self._by_name.get(name)
        if neighbour is not None:
            is_same = (neighbour.terms, neighbour.url) == (terms, url or neighbour.url)
            neighbour.url = url or neighbour.url
            said = self._amend(neighbour, terms, now)
            return neighbour, [] if is_same else [LinkKept(name, neighbour.number, neighbour.url, terms)], said
        number = self._free_number()
        floor = Position.of(self._node.head)
        neighbour = self._take(name, number, InFlight(floor, sent_through=floor), terms, url, now)
        return (
            neighbour,
            [LinkKept(name, number, url, terms), FloorKept(LINK_SUBSCRIBER + name, floor, (), int(now * 1e6))],
            [],
        )

    def _free_number(self) -> int:
        """Return a mark for the events of a new neighbour."""
        used = {each.number for each in self}
        return next(number for number in range(1, MARK_MOST + 1) if number not in used or number == MARK_MOST)

    def forget(self, name: str, now: float) -> tuple[list[Output], list[Change]]:
        """A neighbour is gone for good: what it wanted is taken back everywhere."""
        neighbour = self._by_name.get(name)
        if neighbour is None:
            raise NotFoundError(f"there is no link to {name!r:.80}", "one of GET /links")
        outputs: list[Output] = []
        if neighbour.connection:
            outputs += [Say(neighbour.connection, LinkClosed("the link was ended here", is_refusal=True))]
            outputs += self.closed(neighbour.connection, now)
        del self._by_name[name], self._by_peer[neighbour.peer]
        self._by_number.pop(neighbour.number, None)
        if neighbour.is_routed:
            self._unroute(neighbour, now)
        # Now, and not at the next tick: a link of this name that comes at once would count anew.
        return outputs + self._answered(now) + self.flushed(now), [LinkGone(name)]

    # -- What the sockets say

    def hear(self, request: LinkAsked, session: Session, now: float) -> list[Output]:
        """Do what a request asks for; return what to say, write and read."""
        match request:
            case LinkOpen():
                return self._open(request, session, now)
            case LinkChange(number, name, terms, url):
                _, changes, said = self._made(name, terms, url, now)
                return said + self._node.keep_all(changes, session, Accepted(number)) + self.flushed(now)
            case LinkForget(number, name):
                outputs, gone = self.forget(name, now)
                return outputs + self._node.keep_all(gone, session, Accepted(number))
            case LinksDescribe(number):
                facts = tuple(map(self._facts, self))
                return [Say(session.number, LinksDescribed(number, self._broker.name, facts))]
        neighbour = self._by_connection.get(session.number)
        if neighbour is None:
            return []  # another connection has taken its place
        try:
            return self._talked(request, neighbour, now)
        except TamisError as error:  # a filter that is none, another schema, numbers out of order
            neighbour.session.spend()
            neighbour.session.heard_session = ""
            return self._refused(neighbour, str(error), now)

    def _talked(self, request: LinkAsked, neighbour: Neighbour, now: float) -> list[Output]:
        match request:
            case LinkJoined(join):
                return self._joined(neighbour, join, now)
            case LinkControl(number, payload):
                return self._controlled(neighbour, number, payload, now)
            case LinkAcked(events, control, settled):
                return self._acked(neighbour, events, control, settled, now)
            case LinkBehind(brokers):
                return self._gossip(neighbour, brokers, now)
        raise AssertionError(f"{type(request).__name__} is not a request of a link")

    def _refused(self, neighbour: Neighbour, reason: str, now: float) -> list[Output]:
        """Close a connection because of what was said on it."""
        connection, neighbour.refusal = neighbour.connection, reason
        return [*self.closed(connection, now), Say(connection, LinkClosed(reason, is_refusal=True))]

    def _open(self, request: LinkOpen, session: Session, now: float) -> list[Output]:
        if request.neighbour == self._broker.name:
            return [Say(session.number, LinkClosed("it has the same name as this broker", is_refusal=True))]
        neighbour, changes, outputs = self._made(request.neighbour, request.terms, request.url, now)
        if neighbour.connection:
            outputs.append(Say(neighbour.connection, LinkClosed("another connection has taken its place")))
            outputs += self.closed(neighbour.connection, now)
        neighbour.connection, neighbour.is_joined, neighbour.seen_s = session.number, False, now
        self._by_connection[session.number] = neighbour
        neighbour.said, neighbour.said_behind = (0, 0), self._behind_us(neighbour)
        join = neighbour.session.join(neighbour.said_behind, self._on_disk(neighbour))
        return outputs + self._node.keep_all(changes, session, Joining(join))

    def _on_disk(self, neighbour: Neighbour) -> int:
        """Return up to which position of its log everything that a neighbour sent is on disk; the rest is forgotten."""
        self._note_written(neighbour)
        neighbour.writing.clear()
        return neighbour.events_through

    def _note_written(self, neighbour: Neighbour) -> None:
        while neighbour.writing and neighbour.writing[0][0] <= self._node.gate.logged:
            neighbour.events_through = max(neighbour.events_through, neighbour.writing.popleft()[1])

    def _joined(self, neighbour: Neighbour, join: Any, now: float) -> list[Output]:
        if circle := self._circle(neighbour, join.behind):
            return self._refused(neighbour, circle, now)
        session = neighbour.session
        has_ours = join.heard_session == session.name
        goes_on = session.meet(join)
        neighbour.is_joined, neighbour.refusal = True, ""
        if goes_on:
            neighbour.counts["resumed"] += 1
        else:
            neighbour.counts["begun"] += 1
            neighbour.awaits_hello, neighbour.events_through = True, 0
            self._settling.begin(neighbour.name)
            session.begin()
            self.tell(self._broker.renew(neighbour.peer, now))
        if has_ours and join.events_through:
            self._done(neighbour, join.events_through)
        outputs = self._gossip(neighbour, join.behind, now)
        if not neighbour.awaits_hello:
            outputs += self._serve(neighbour, now)
        return outputs + self.flushed(now)

    def _serve(self, neighbour: Neighbour, now: float) -> list[Output]:
        """Send events to a neighbour from where it is."""
        subscriber = neighbour.subscriber
        attach = Attach(0, subscriber.name, True, CREDIT, CREDIT_BYTES)
        consumer = Session(neighbour.connection, _NOBODY)
        self._node.dispatcher.attach(subscriber, attach, consumer, self._node.head)
        return self._node.sent(subscriber, now)

    def _controlled(self, neighbour: Neighbour, number: int, payload: bytes, now: float) -> list[Output]:
        if not neighbour.is_joined:
            raise LinkError("a control message before the session was agreed on", "a join first")
        outputs: list[Output] = []
        if neighbour.session.take(number):
            message = decode(payload, limits=EFFECTIVE_LIMITS, functions=self._broker.functions)
            self.tell(self._broker.receive(message, neighbour.peer, now))
            self._settling.heard(neighbour.name, number)
            self._conclude()
            if neighbour.awaits_hello and self._broker.has_greeted(neighbour.peer):
                neighbour.awaits_hello = False
                outputs += self._serve(neighbour, now)
        return outputs + self.flushed(now)

    def _acked(self, neighbour: Neighbour, events: int, control: int, settled: int, now: float) -> list[Output]:
        if control:
            neighbour.session.acknowledge(control)
        outputs: list[Output] = []
        if events:
            self._done(neighbour, events)
            outputs += self._node.sent(neighbour.subscriber, now)
        if settled:
            if settled > neighbour.session.said:
                raise LinkError(f"the control message {settled} is settled", f"at most {neighbour.session.said}")
            self._settling.settled(neighbour.name, settled)
            outputs += self._answered(now)
        return outputs + self.flushed(now)

    def _done(self, neighbour: Neighbour, events: int) -> None:
        if events > self._node.gate.logged:
            raise LinkError(f"an acknowledgement of the event {events}", f"at most {self._node.gate.logged}")
        self._node.dispatcher.done_through(neighbour.subscriber, Position.of(events))

    def closed(self, connection: int, now: float) -> list[Output]:
        """A connection is over; the neighbour is away."""
        neighbour = self._by_connection.pop(connection, None)
        if neighbour is None:
            return []
        neighbour.connection, neighbour.is_joined, neighbour.seen_s = 0, False, now
        return self._node.detach(neighbour.subscriber, connection, now) if neighbour.is_routed else []

    # -- Who is where

    def _behind_us(self, neighbour: Neighbour) -> tuple[str, ...]:
        """Return the brokers that a neighbour reaches through this one."""
        others = {name for other in self if other is not neighbour for name in other.behind}
        return tuple(sorted({self._broker.name, *others}))

    def _circle(self, neighbour: Neighbour, brokers: Sequence[str]) -> str:
        """Say why a link would close a circle; return nothing if it would not."""
        ours = set(self._behind_us(neighbour))
        if twice := ours.intersection(brokers):
            name = min(twice)
            ways = [other.name for other in self if other is not neighbour and name in other.behind]
            way = f"over {ways[0]}" if ways else "here"
            return f"the link would close a circle: {name} is reached {way} already"
        return ""

    def _gossip(self, neighbour: Neighbour, brokers: Sequence[str], now: float) -> list[Output]:
        if circle := self._circle(neighbour, brokers):
            return self._refused(neighbour, circle, now)
        neighbour.behind = frozenset((neighbour.name, *brokers))
        return self._told_behind()

    def _told_behind(self) -> list[Output]:
        """Tell everybody who is connected which brokers it reaches through this one, if that has changed."""
        outputs: list[Output] = []
        for other in self:
            if other.is_joined and (brokers := self._behind_us(other)) != other.said_behind:
                other.said_behind = brokers
                outputs.append(Say(other.connection, Behind(brokers)))
        return outputs

    # -- Filters

    def tell(self, outputs: Sequence[RoutingOutput]) -> None:
        """Take what the broker wants told to neighbours; `flushed` returns what can be sent now."""
        for output in outputs:
            if isinstance(output, Send):
                neighbour = self._by_peer[output.peer]
                self._settling.told(neighbour.name, neighbour.session.say(encode(output.message)))

    def flushed(self, now: float) -> list[Output]:
        """Return what neighbours are told now: control messages, and what of theirs was heard and is settled."""
        outputs: list[Output] = []
        for neighbour in self:
            if not neighbour.is_joined:
                continue
            if items := neighbour.session.unsent():
                outputs.append(Say(neighbour.connection, Controls(tuple(items))))
            if not neighbour.session.is_begun:  # too much waits for it
                outputs.append(Say(neighbour.connection, LinkClosed("too much waits; a new session is cheaper")))
                outputs += self.closed(neighbour.connection, now)
                continue
            said = neighbour.session.heard_control, self._settling.through(neighbour.name)
            if said != neighbour.said:
                neighbour.said = said
                outputs.append(Say(neighbour.connection, Heard(*said)))
        return outputs

    # -- Work that can wait

    @property
    def has_work(self) -> bool:
        """Is there something to be worked out that neighbours must be told?"""
        return bool(self._by_name) and self._broker.work_count > 0

    def work(self, now: float) -> list[Output]:
        """Work out a little of what neighbours must be told; return what can be said of it."""
        self.tell(self._broker.work(self.work_units, now))
        self._conclude()
        return self._answered(now) + self.flushed(now)

    def pace(self, took_s: float) -> None:
        """Take note of how long a slice of work took: what merging compares takes several times what identity does."""
        if took_s > WORK_S:
            self.work_units = max(1, self.work_units // 2)
        elif took_s < WORK_S / 2:
            self.work_units = min(MOST_WORK_UNITS, self.work_units + 1)

    # -- Settlement

    @property
    def is_settled(self) -> bool:
        """Does every broker that matters know everything that was told up to now?"""
        return not self.has_work and self._settling.are_settled(self._settling.marks())

    def wait(self, session: int, answer: Any, kept: int, wait_s: float, now: float) -> list[Output]:
        """Say an answer when everything that was told is settled, or the time is over."""
        marks = self._settling.marks() if self._broker.is_worked_out else None
        is_settled = marks is not None and self._settling.are_settled(marks)
        if is_settled or wait_s <= 0:
            return self._settled_answer(session, answer, kept, is_settled)
        self._waits.append(_Wait(marks, now + wait_s, session, answer, kept))
        return []

    def _conclude(self) -> None:
        """When all is worked out that neighbours must be told, it is known what has to be settled."""
        if self._broker.is_worked_out:
            self._settling.conclude()
            for wait in self._waits:
                if wait.marks is None:
                    wait.marks = self._settling.marks()

    def _settled_answer(self, session: int, answer: Any, kept: int, is_settled: bool) -> list[Output]:
        return self._node.gate.hold(Say(session, answer.as_settled(is_settled)), kept=kept)

    def _answered(self, now: float) -> list[Output]:
        """Return the answers that need not wait any longer."""
        outputs: list[Output] = []
        waiting = []
        for wait in self._waits:
            is_settled = wait.marks is not None and self._settling.are_settled(wait.marks)
            if is_settled or wait.ends_s <= now:
                outputs += self._settled_answer(wait.session, wait.answer, wait.kept, is_settled)
            else:
                waiting.append(wait)
        self._waits = waiting
        return outputs

    # -- Events

    def sender(self, connection: int) -> Neighbour:
        """Return the neighbour that sends events over a connection; raise an error if another took its place."""
        neighbour = self._by_connection.get(connection)
        if neighbour is None or not neighbour.is_joined:
            raise ConflictError("the connection is not that of a neighbour any more", "a new one")
        return neighbour

    def is_stale(self, connection: int) -> bool:
        """Is what comes over a connection from before it was agreed on, so that it does not count?"""
        return False

    def on_disk(self, now: float) -> list[Output]:
        """The log is on disk as far as the gate says; return what may be said now."""
        return []

    def note_taken(self, neighbour: Neighbour, position: int, last: int, count: int, known_count: int) -> None:
        """Events of a neighbour were taken; they are on disk when our log is, up to a position."""
        self._note_written(neighbour)
        neighbour.writing.append((last, position))
        neighbour.counts["received"] += count
        neighbour.counts["known"] += known_count

    def not_written(self, first: int, last: int, now: float) -> list[Output]:
        """A block was not written: whose events were in it sends them again, on another connection."""
        outputs: list[Output] = []
        for neighbour in list(self):
            if any(first <= ours <= last for ours, _ in neighbour.writing):
                self._note_written(neighbour)
                neighbour.writing.clear()
                connection = neighbour.connection
                if connection:
                    outputs += [*self.closed(connection, now), Say(connection, LinkClosed("the disk is full"))]
        return outputs

    def offer(
        self,
        block: Block,
        wanted: GroupMatches,
        sources: Sequence[str],
        records: Sequence[Mapping[str, Any]],
        now: float,
    ) -> list[Subscriber]:
        """Offer new events to the neighbours that are live; return those that were offered some."""
        live = {neighbour.peer for neighbour in self if neighbour.subscriber.is_live}
        touched: list[Subscriber] = []
        for peer, numbers in self._onward(wanted, sources, live, records, now).items():
            neighbour = self._by_peer[peer]
            for index in numbers:
                position, flags = Position.of(block.first + index), block.flags[index] & PASSED_ON
                flags |= rerouted_part(block.flags[index])
                neighbour.subscriber.deliveries.offer(Delivery(position, (), block.events[index], flags=flags))
            touched.append(neighbour.subscriber)
        return touched

    def hits(
        self,
        wanted: GroupMatches,
        flags: Sequence[int],
        names: Set[str],
        records: Sequence[Mapping[str, Any]],
        now: float,
    ) -> Hits:
        """Return which events of the past go to neighbours that are behind; never back to where they came from."""
        behind = names & self._by_peer.keys()
        if not behind:
            return {}
        sources = [self._by_number.get(link_of(flag), "") for flag in flags]
        onward = self._onward(wanted, sources, behind, records, now)
        return {peer: [(index, []) for index in numbers] for peer, numbers in onward.items()}

    @property
    def are_filtered(self) -> bool:
        """Are events filtered on the way to everybody, so that it is known what is wanted there?"""
        return all(self._broker.is_filtering(neighbour.peer) for neighbour in self if neighbour.is_routed)

    def may_come(self, neighbour: Neighbour, record: Mapping[str, Any]) -> bool:
        """May an event come from a neighbour?"""
        return neighbour.may_receive is None or holds(neighbour.may_receive, record, self._schema)

    def _onward(
        self,
        wanted: GroupMatches,
        sources: Sequence[str],
        only: Set[str],
        records: Sequence[Mapping[str, Any]],
        now: float,
    ) -> dict[str, list[int]]:
        """Return which events go to which neighbours: as the broker decides, within what may leave."""
        matches, outputs = self._broker.onward(wanted, sources, only, now)
        self.tell(outputs)
        numbers: dict[str, list[int]] = {}
        for event, place in zip(matches.events.tolist(), matches.neighbours.tolist(), strict=True):
            peer = matches.names[place]
            may_send = self._by_peer[peer].may_send
            if may_send is None or holds(may_send, records[event], self._schema):
                numbers.setdefault(peer, []).append(event)
        return numbers

    def count(self, outputs: list[Output]) -> None:
        """Count what goes out to neighbours, and what the log no longer had for them."""
        for output in outputs:
            if isinstance(output, Say) and (neighbour := self._by_connection.get(output.session)) is not None:
                if isinstance(output.answer, Sent):
                    neighbour.counts["sent"] += len(output.answer.items)
                elif isinstance(output.answer, Lost):
                    neighbour.counts["lost"] += 1

    # -- Time

    def tick(self, now: float) -> list[Output]:
        """Do what is due: neighbours that were away for too long are gone, answers do not wait any longer."""
        outputs = self._answered(now)
        for neighbour in list(self):
            if neighbour.connection:
                neighbour.seen_s = now
                self._note_written(neighbour)
            elif not 0 <= now - neighbour.seen_s <= neighbour.terms.patience_s:
                if now < neighbour.seen_s:  # a clock was set back
                    neighbour.seen_s = now
                    continue
                said, gone = self.forget(neighbour.name, now)
                outputs += said + self._node.keep_all(gone, None, None)
        return outputs + self.flushed(now)

    def measure(self, figures: Figures) -> None:
        """Write down how the links fare."""
        for neighbour in self:
            name, counts = neighbour.name, neighbour.counts
            figures.link_up[name] = int(neighbour.is_joined)
            figures.link_unacknowledged[name] = neighbour.subscriber.deliveries.unacknowledged_count
            figures.link_waiting_control[name] = neighbour.session.waiting_count
            for what in ("sent", "received", "known", "begun", "resumed", "lost"):
                getattr(figures, f"link_{what}")[name] = counts[what]
        for name in figures.link_up.keys() - self._by_name.keys():
            figures.link_up[name] = figures.link_unacknowledged[name] = figures.link_waiting_control[name] = 0

    def _facts(self, neighbour: Neighbour) -> LinkFacts:
        subscriber, session = neighbour.subscriber, neighbour.session
        is_served = neighbour.is_joined and not neighbour.awaits_hello
        state = subscriber.state if is_served else "joining" if neighbour.connection else "away"
        filters_told = filters_wanted = 0
        if neighbour.is_routed:
            filters_told = len(self._broker.told(neighbour.peer))
            filters_wanted = len(self._broker.wanted_by(neighbour.peer))
        marks = {name: number for name, number in self._settling.marks().items() if name == neighbour.name}
        counts = neighbour.counts
        return LinkFacts(
            neighbour.name, state, neighbour.url, neighbour.terms,
            max(subscriber.floor(self._node.gate.logged), START).event,
            subscriber.deliveries.unacknowledged_count, session.waiting_count,
            filters_told, filters_wanted,
            not self.has_work and self._settling.are_settled(marks), tuple(sorted(neighbour.behind)), neighbour.refusal,
            counts["sent"], counts["received"], counts["known"], counts["begun"], counts["resumed"], counts["lost"],
            is_served,
        )  # fmt: skip
