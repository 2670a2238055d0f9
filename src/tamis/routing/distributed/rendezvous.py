"""How can one node match an event for all? Subscriptions and events are sent to where they meet.

A subscription is deposited at the nodes of all events that it may want (`meeting`), and lives there: windows, recent
buffer and promotions included. An event goes to its one node, which tells the homes of those who want it. There are no
proxies, so ranked subscriptions cost no more messages than Boolean ones.

Source: Pripužić 2010, sections 6.2.4 and 6.3.4 (docs/bibliography.md).
Departs: an event is delivered once to a client also where its subscriptions live at several nodes; its home sees to it.
A subscription counts from when its home took it, and has a number, so that its end and another one under its key may
overtake it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.language.meaning import holds
from tamis.routing.distributed.base import RoutingNode
from tamis.routing.distributed.residents import Satisfied
from tamis.routing.errors import UnknownPeerError
from tamis.routing.messages import (
    Deposit,
    Key,
    Message,
    Notified,
    Output,
    Passed,
    Post,
    Relayed,
    Send,
    TakeBack,
)
from tamis.topk.ranked import Ranked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.routing.distributed.meeting import Meeting
    from tamis.routing.distributed.residents import Who


def notified(name: str, satisfied: Iterable[Satisfied]) -> tuple[list[Satisfied], list[Output]]:
    """Return which of the satisfied are at home here, and what to post to the homes of the others: an event once."""
    own: list[Satisfied] = []
    together: dict[tuple[str, Key], tuple[Passed, list[tuple[str, Key]]]] = {}
    for each in satisfied:
        home, client, key = each.who
        if home == name:
            own.append(each)
        else:
            together.setdefault((home, each.publication.key), (each.publication, []))[1].append((client, key))
    return own, [Post(home, Notified(passed, tuple(wanted))) for (home, _), (passed, wanted) in together.items()]


def satisfied_by(message: Notified, home: str) -> list[Satisfied]:
    """Return who at a home is to be told of what."""
    return [Satisfied((home, client, key), message.publication) for client, key in message.wanted]


class DepositingNode(RoutingNode):
    """A node whose clients' subscriptions live elsewhere."""

    def _deposit(self, who: Who, wanted: Expression | Ranked) -> Deposit:
        made = self._made[who[1:]]
        return Deposit(*who, wanted, made.at, made.number)

    def _is_due(self, client: str, key: Key, passed: Passed, now: float) -> bool:
        if not super()._is_due(client, key, passed, now):
            return False
        # It may have been matched for what the client wanted before under this key.
        wanted = self._clients[client][key]
        return isinstance(wanted, Ranked) or holds(wanted, passed.event, self._schema)

    def _take_back(self, who: Who) -> TakeBack:
        return TakeBack(*who, self._made[who[1:]].number)


class RendezvousNode(DepositingNode):
    """A node that may be where some events and subscriptions meet.

    Whoever drives it says over which neighbour the way to each other node goes (`know_ways`).
    """

    name_of_strategy: ClassVar[str] = "rendezvous"
    hears: ClassVar[frozenset[type[Message]]] = frozenset({Relayed, Notified})
    sees_all: ClassVar[bool] = True
    keeps_recent: ClassVar[bool] = True

    def __init__(self, name: str, *args: Any, meeting: Meeting, **settings: Any) -> None:
        super().__init__(name, *args, **settings)
        self._meeting = meeting
        self._ways: dict[str, str] = {}
        self._missing: list[Relayed] = []

    def know_ways(self, ways: Mapping[str, str], now: float) -> list[Output]:
        """Hear which neighbour is nearest to each node; what waited for a way goes on."""
        self._ways = dict(ways)
        waiting, self._missing = self._missing, []
        return [output for message in waiting for output in self._toward(message, now)]

    def _toward(self, relayed: Relayed, now: float) -> list[Output]:
        assert isinstance(relayed.target, str)
        if relayed.target == self.name:
            return self._arrived(relayed.message, now)
        if relayed.target not in self._ways:
            self._missing.append(relayed)
            return []
        return [Send(self._ways[relayed.target], relayed)]

    def _arrived(self, message: Deposit | TakeBack | Passed, now: float) -> list[Output]:
        match message:
            case Deposit() | TakeBack():
                self.residents.deposit(message)
                return []
            case Passed():
                return self._settle(self.residents.take(message, now), now)

    def _settle(self, satisfied: list[Satisfied], now: float) -> list[Output]:
        own, posts = notified(self.name, satisfied)
        return self._deliveries(own, now) + posts

    def _objection(self, wanted: Expression | Ranked) -> str | None:
        if (reason := super()._objection(wanted)) is not None:
            return reason
        targets = self._meeting.of_subscription(wanted)
        if not targets:
            return "no node can be found where this meets its events"
        if isinstance(wanted, Ranked) and len(targets) > 1:
            return f"the best {wanted.k} of events that meet at {len(targets)} nodes are ranked by none of them"
        return None

    def _enter(self, who: Who, wanted: Expression | Ranked, now: float) -> list[Output]:
        targets = self._meeting.of_subscription(wanted)
        deposit = self._deposit(who, wanted)
        return [output for target in targets for output in self._toward(Relayed(target, deposit), now)]

    def _remove(self, who: Who, wanted: Expression | Ranked, now: float) -> list[Output]:
        take_back = self._take_back(who)
        targets = self._meeting.of_subscription(wanted)
        return [output for target in targets for output in self._toward(Relayed(target, take_back), now)]

    def _publish(self, passed: Passed, now: float) -> list[Output]:
        return self._toward(Relayed(self._meeting.of_event(passed.event), passed), now)

    def _hear(self, message: Message, source: str, now: float) -> list[Output]:
        if isinstance(message, Notified):
            return self._deliveries(satisfied_by(message, self.name), now)
        assert isinstance(message, Relayed)
        if not isinstance(message.target, str):
            raise UnknownPeerError(self.name, message.target)
        return self._toward(message, now)
