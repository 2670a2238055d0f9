"""Which neighbours of a graph are sent events, and what becomes of those that wait for a link that left the tree?

Every broker is connected with all its neighbours. A link *carries* control messages and events while it is in the tree
and both ends name the same tree (`agreement`); then both say where their session goes on, as if they had just met.
Neighbours at the ends of other links are `idle`: they are not in the routing table, and the log waits for none of them.

A link that leaves the tree keeps its backlog: the neighbour stays in the routing table, with all that it wanted, until
the new way is *settled*. The new way is settled here when every neighbour of the new tree says that it is complete: it
says so when all who are behind it have said so, all that they want was told on, and all events that were logged by then
were sent on. So no event is judged by filters of a tree that is not there yet, and none is overtaken by the news that
it is wanted elsewhere.

Then the backlog is *rerouted*: it is logged once more, for the neighbours of the new tree alone, and marked. Whoever is
sent such an event logs it in the same way although it knows it, because those behind may miss it; what is new to a
broker is taken as any other event first. Clients get nothing twice: what is marked is not for them. When all of that is
on disk, the neighbour leaves the routing table. If it is not reached over the new tree, its backlog is rerouted for
those who were behind it, and is kept for it as well.

What waits to be settled waits for new neighbours, too, and for those that are leaving until they have left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from tamis.service.changes import Change, FloorKept, LinkGone, LinkKept
from tamis.service.deliveries import InFlight
from tamis.service.links.agreement import Agreement
from tamis.service.links.neighbours import Neighbours, subscriber_of
from tamis.service.links.requests import (
    GraphTold,
    Joining,
    LinkAcked,
    LinkClosed,
    LinkControl,
    LinkFacts,
    LinkFlood,
    LinkOpen,
)
from tamis.service.links.terms import LINK_SUBSCRIBER
from tamis.service.messages import Attach, Output, Principal, Say, Session
from tamis.service.messages import Deliveries as Sent
from tamis.service.positions import Position

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.routing import Broker
    from tamis.service.links.frames import GraphSaid, Join
    from tamis.service.links.neighbours import Neighbour
    from tamis.service.links.terms import LinkTerms
    from tamis.service.messages import LinkAsked
    from tamis.service.node import Node
    from tamis.service.subscribers import Subscriber

ITSELF = 1 << 62
"""Sessions from here on are of this broker, which takes a backlog in place of a neighbour."""
_ALL = 1 << 60
_NOBODY = Principal("")
_NEVER = (0, 0)


@dataclass(slots=True)
class Rerouting:
    """A backlog that is being logged once more."""

    session: int
    tree: str
    until: int
    """Events behind this position go the new way by themselves."""
    items: list[tuple[bytes, int]] = field(default_factory=list)
    logged: int = 0
    """Where the last of them came to lie."""


@dataclass(slots=True)
class LinkTurn:
    """How far both ends of a link have come with the present tree."""

    used: int = 0
    """The number of the change that says that the link is used."""
    join_said: tuple[int, int] = _NEVER
    """The turns for which this end has said where its session goes on."""
    early_join: Join | None = None
    """What the other end has said of its session before this end had."""
    joined: tuple[int, int] = _NEVER
    """Those for which both have."""
    flush: tuple[tuple[int, int], int] = (_NEVER, 0)
    """For which turns, and up to which position, events must be sent before this end is complete for the neighbour."""
    complete_said: tuple[int, int] = _NEVER
    rerouting: Rerouting | None = None
    rerouted_tree: str = ""
    """The tree for which its backlog was rerouted last."""


class GraphNeighbours(Neighbours):
    """All neighbours of a node in a graph. A link that was down for `reroute_after_s` is given up."""

    def __init__(self, node: Node, broker: Broker, schema: Schema | None, life: str, reroute_after_s: float) -> None:
        super().__init__(node, broker, schema, life)
        self._agreement = Agreement(broker.name)
        self._reroute_after_s = reroute_after_s
        self._turns: dict[str, LinkTurn] = {}
        self._reroutings = 0

    # -- Coming and going

    def restore(self, kept: Sequence[LinkKept], floors: Sequence[FloorKept], head: int, now: float) -> None:
        """Take the neighbours that were kept; those with a floor may have a backlog, the others were idle."""
        used = {floor.name for floor in floors}
        super().restore([each for each in kept if LINK_SUBSCRIBER + each.name in used], floors, head, now)
        for each in kept:
            if each.name not in self._by_name:
                floor = InFlight(Position.of(head), sent_through=Position.of(head))
                self._take(each.name, each.number, floor, each.terms, each.url, now, route=False)

    def _made(self, name: str, terms: LinkTerms, url: str, now: float) -> tuple[Neighbour, list[Change], list[Output]]:
        if name in self._by_name:
            return super()._made(name, terms, url, now)
        floor, number = Position.of(self._node.head), self._free_number()
        neighbour = self._take(name, number, InFlight(floor, sent_through=floor), terms, url, now, route=False)
        return neighbour, [LinkKept(name, number, url, terms)], []

    def forget(self, name: str, now: float) -> tuple[list[Output], list[Change]]:
        """A neighbour is gone for good, and so is its link."""
        outputs, gone = super().forget(name, now)
        self._turns.pop(name, None)
        if self._agreement.knows(name):
            outputs += self._flood(self._agreement.give_up(name))
        self._reopen()
        return outputs + self._advance(now), gone

    def _open(self, request: LinkOpen, session: Session, now: float) -> list[Output]:
        name = request.neighbour
        if name == self._broker.name:
            return [Say(session.number, LinkClosed("it has the same name as this broker", is_refusal=True))]
        neighbour, changes, outputs = self._made(name, request.terms, request.url, now)
        if neighbour.connection:
            outputs.append(Say(neighbour.connection, LinkClosed("another connection has taken its place")))
            outputs += self.closed(neighbour.connection, now)
        neighbour.connection, neighbour.is_joined, neighbour.seen_s = session.number, False, now
        self._by_connection[session.number] = neighbour
        turn = self._turn(neighbour)
        turn.join_said = turn.joined = turn.complete_said = _NEVER
        turn.flush, turn.early_join = (_NEVER, 0), None
        outputs += self._node.keep_all(changes, None, None)
        return outputs + self._flood(self._agreement.connect(name, now)) + self._advance(now)

    def closed(self, connection: int, now: float) -> list[Output]:
        """A connection is over; its link is given up if it is not back soon."""
        neighbour = self._by_connection.get(connection)
        outputs = super().closed(connection, now)
        if neighbour is None:
            return outputs
        self._agreement.lose(neighbour.name)
        return outputs + self._advance(now)

    def tick(self, now: float) -> list[Output]:
        """Do what is due: links that were down for too long are given up."""
        outputs: list[Output] = []
        for neighbour in self:
            if neighbour.connection or not self._agreement.knows(neighbour.name):
                continue
            if not 0 <= now - neighbour.seen_s < self._reroute_after_s:
                outputs += self._flood(self._agreement.give_up(neighbour.name))
        return outputs + self._advance(now) + super().tick(now)

    # -- What neighbours say

    def _talked(self, request: LinkAsked, neighbour: Neighbour, now: float) -> list[Output]:
        match request:
            case LinkFlood(said):
                return self._flood(self._agreement.receive(said, neighbour.name)) + self._advance(now)
            case LinkControl() | LinkAcked() if not neighbour.is_joined:
                return []  # it was said when the link was in a tree that is not named any more
        return super()._talked(request, neighbour, now) + self._advance(now)

    def is_stale(self, connection: int) -> bool:
        """Is what comes over a connection from before both ends named the same tree?"""
        neighbour = self._by_connection.get(connection)
        return neighbour is not None and not neighbour.is_joined

    def _joined(self, neighbour: Neighbour, join: Join, now: float) -> list[Output]:
        turns = self._agreement.turns(neighbour.name)
        turn = self._turn(neighbour)
        if join.turns != turns[::-1]:
            return []  # of a tree that one of the two does not name any more
        if turn.join_said != turns:
            turn.early_join = join
            return []
        turn.joined = turns
        return super()._joined(neighbour, join, now)

    def _circle(self, neighbour: Neighbour, brokers: Sequence[str]) -> str:
        return ""

    def _gossip(self, neighbour: Neighbour, brokers: Sequence[str], now: float) -> list[Output]:
        return []  # who is where is known from the flood

    def _flood(self, said: Mapping[str, GraphSaid]) -> list[Output]:
        connections = {name: self._by_name[name].connection for name in said if name in self._by_name}
        return [Say(connections[name], GraphTold(each)) for name, each in said.items() if connections.get(name)]

    # -- From one tree to the next

    def on_disk(self, now: float) -> list[Output]:
        """The log is on disk as far as the gate says; some backlog may be there, too."""
        return self._advance(now)

    def _turn(self, neighbour: Neighbour) -> LinkTurn:
        return self._turns.setdefault(neighbour.name, LinkTurn())

    def _advance(self, now: float) -> list[Output]:
        """Do what has become possible or necessary because of what is known of the tree."""
        outputs: list[Output] = []
        tree = self._agreement.neighbours
        for neighbour in list(self):
            turn, turns = self._turn(neighbour), self._agreement.turns(neighbour.name)
            is_used = neighbour.name in tree
            if neighbour.is_joined and turn.joined != turns:
                neighbour.is_joined = False
                outputs += self._node.detach(neighbour.subscriber, neighbour.connection, now)
            if is_used and turn.rerouting is not None:
                outputs += self._end_rerouting(neighbour, turn, turn.rerouting, now)
            if is_used and not neighbour.is_routed:
                outputs += self._use(neighbour, now)
            if self._may_join(neighbour, turn):
                turn.join_said = turns
                neighbour.said = (0, 0)
                join = neighbour.session.join((), self._on_disk(neighbour))
                outputs.append(Say(neighbour.connection, Joining(msgspec.structs.replace(join, turns=turns))))
                if turn.early_join is not None:
                    early_join, turn.early_join = turn.early_join, None
                    outputs += self._joined(neighbour, early_join, now)
        outputs += self._completed(tree, now)
        if self._is_settled_here(tree):
            for neighbour in list(self):
                if neighbour.is_routed and neighbour.name not in tree:
                    outputs += self._leave(neighbour, now)
        return outputs + self._relayed(now) + self.flushed(now)

    def _may_join(self, neighbour: Neighbour, turn: LinkTurn) -> bool:
        """Is it time to say where a session goes on? Not before it is kept that the link is used."""
        return (
            neighbour.connection > 0
            and self._agreement.carries(neighbour.name)
            and turn.join_said != self._agreement.turns(neighbour.name)
            and self._node.gate.kept >= turn.used
        )

    def _use(self, neighbour: Neighbour, now: float) -> list[Output]:
        """A link has come into the tree: the neighbour gets what is logged from now on."""
        floor = Position.of(self._node.head)
        subscriber = subscriber_of(neighbour.name, InFlight(floor, sent_through=floor))
        subscriber.settle(floor)
        neighbour.subscriber, neighbour.is_routed, neighbour.awaits_hello = subscriber, True, True
        neighbour.session.spend()
        self._route(neighbour, now)
        self._assume(neighbour, now)
        self._reopen()
        outputs = self._node.keep_all([FloorKept(subscriber.name, floor, (), int(now * 1e6))], None, None)
        self._turn(neighbour).used = self._node.urgent_count
        return outputs

    def _is_known_from(self, name: str) -> bool:
        """Is it known what everybody behind a neighbour of the tree wants?"""
        neighbour = self._by_name[name]
        return neighbour.is_joined and self._agreement.is_complete(name) and self._broker.has_said_all(neighbour.peer)

    def _is_settled_here(self, tree: frozenset[str]) -> bool:
        """Is the way to all others settled, so that a backlog may be rerouted?"""
        return bool(tree) and self._broker.is_worked_out and all(map(self._is_known_from, tree))

    def _completed(self, tree: frozenset[str], now: float) -> list[Output]:
        """Tell neighbours that everybody behind this end names the tree, and that they have been sent everything."""
        outputs: list[Output] = []
        unknown = [name for name in tree if not self._is_known_from(name)]
        if not self._broker.is_worked_out:
            return outputs
        for name in tree:
            neighbour, turns = self._by_name[name], self._agreement.turns(name)
            turn = self._turn(neighbour)
            if not neighbour.is_joined or neighbour.awaits_hello or turn.complete_said == turns:
                continue
            if any(other != name for other in unknown):
                continue
            if turn.flush[0] != turns:
                turn.flush = turns, self._node.head
            if self._is_through(neighbour.subscriber, turn.flush[1]):
                turn.complete_said = turns
                outputs += [Say(neighbour.connection, GraphTold(self._agreement.completion()))]
        return self.flushed(now) + outputs if outputs else []  # what is wanted comes before the word that it is all

    def _is_through(self, subscriber: Subscriber, position: int) -> bool:
        """Was everything sent that a subscriber wants of the log up to a position?"""
        first = subscriber.deliveries.first_waiting
        has_looked = subscriber.is_live or subscriber.looked >= position
        return has_looked and self._node.gate.logged >= position and (first is None or first.event > position)

    # -- What waits for a link that has left the tree

    def _leave(self, neighbour: Neighbour, now: float) -> list[Output]:
        """Reroute a backlog; when that is on disk, let the neighbour go if it is reached another way."""
        turn, tree = self._turn(neighbour), self._agreement.overlay.tree
        rerouting = turn.rerouting
        if rerouting is not None and rerouting.tree != tree:
            return self._end_rerouting(neighbour, turn, rerouting, now)
        is_reached = neighbour.name in self._agreement.overlay.reachable
        if rerouting is None:
            if turn.rerouted_tree != tree:
                return self._begin_rerouting(neighbour, turn, now)
            return self._let_go(neighbour, now) if is_reached else []
        if rerouting.items or self._node.gate.logged < rerouting.logged:
            return []
        if not self._is_through(neighbour.subscriber, rerouting.until):
            return []
        turn.rerouted_tree = tree
        outputs = self._end_rerouting(neighbour, turn, rerouting, now)
        return outputs + (self._let_go(neighbour, now) if is_reached else [])

    def _begin_rerouting(self, neighbour: Neighbour, turn: LinkTurn, now: float) -> list[Output]:
        self._reroutings += 1
        session = ITSELF + self._reroutings
        turn.rerouting = Rerouting(session, self._agreement.overlay.tree, self._node.head)
        attach = Attach(0, neighbour.peer, False, _ALL, _ALL)
        self._node.dispatcher.attach(neighbour.subscriber, attach, Session(session, _NOBODY), self._node.head)
        return self._node.sent(neighbour.subscriber, now)

    def _end_rerouting(self, neighbour: Neighbour, turn: LinkTurn, rerouting: Rerouting, now: float) -> list[Output]:
        turn.rerouting = None
        return self._node.detach(neighbour.subscriber, rerouting.session, now)

    def _let_go(self, neighbour: Neighbour, now: float) -> list[Output]:
        """The new way is settled, and the backlog on it: what the neighbour wanted is taken back, and its floor."""
        self._unroute(neighbour, now)
        neighbour.is_routed = False
        neighbour.session.spend()
        neighbour.session.heard_session = ""
        self._reopen()
        kept = LinkKept(neighbour.name, neighbour.number, neighbour.url, neighbour.terms)
        return self._node.keep_all([LinkGone(neighbour.name), kept], None, None)

    def _reopen(self) -> None:
        """What is not settled has other neighbours to wait for."""
        self._settling.reopen()
        for wait in self._waits:
            wait.marks = None
        self._conclude()

    def count(self, outputs: list[Output]) -> None:
        """Count what goes out; what this broker takes in place of a neighbour goes no further."""
        sessions = {
            turn.rerouting.session: turn.rerouting for turn in self._turns.values() if turn.rerouting is not None
        }
        for output in [each for each in outputs if isinstance(each, Say) and each.session > ITSELF]:
            outputs.remove(output)
            rerouting = sessions.get(output.session)
            if isinstance(output.answer, Sent) and rerouting is not None:
                rerouting.items += [
                    (item.body, item.flags) for item in output.answer.items if item.position.event <= rerouting.until
                ]
        super().count(outputs)

    def _relayed(self, now: float) -> list[Output]:
        """Log once more what was taken in place of neighbours."""
        outputs: list[Output] = []
        for neighbour in list(self):
            rerouting = self._turn(neighbour).rerouting
            if rerouting is not None and rerouting.items:
                items, rerouting.items = rerouting.items, []
                outputs += self._node.relay_again(items, neighbour, now)
                rerouting.logged = self._node.head
        return outputs

    @property
    def has_work(self) -> bool:
        """Is there something to be worked out, or was it kept by now that a link is used?"""
        return super().has_work or any(
            self._may_join(neighbour, self._turn(neighbour)) for neighbour in self if neighbour.is_routed
        )

    def work(self, now: float) -> list[Output]:
        """Work out a little of what neighbours must be told; return what can be said of it."""
        return super().work(now) + self._advance(now)

    # -- What is known

    def _facts(self, neighbour: Neighbour) -> LinkFacts:
        facts = super()._facts(neighbour)
        neighbour.behind = self._agreement.overlay.over(neighbour.name)
        state = facts.state
        if neighbour.name not in self._agreement.neighbours:
            state = "leaving" if neighbour.is_routed else "idle" if neighbour.connection else "away"
        return msgspec.structs.replace(facts, state=state, behind=tuple(sorted(neighbour.behind)))


__all__ = ["GraphNeighbours"]
