"""What is the same for every strategy without reverse paths? A node, which has the face of a broker.

A `RoutingNode` takes messages of clients and of other nodes and returns what is to be sent, posted, spread and
delivered; like a broker it has no socket, clock or chance. Its own clients are served as everywhere: each event once,
however many of a client's subscriptions want it, and also long after it came, if it enters the best k then. Where
subscriptions live, and which way events go, is each strategy's own.

What is withdrawn, every node hears of over the links (`withdrawals`); its home keeps it from each client. Clients may
lease what they subscribe to. Events may overtake each other, so what is ranked waits, if the settings say so.

Besides links there is the network below, by which a node reaches any other (`Post`), as the thesis has it.

Source: Pripužić 2010, sections 6.2 and 6.3 (docs/bibliography.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from tamis.language.functions import Functions, functions_of
from tamis.matching.leases import Leases
from tamis.routing.acceptance import check_message
from tamis.routing.distributed.residents import RankingSettings, Residents
from tamis.routing.distributed.withdrawals import Withdrawals
from tamis.routing.errors import KnownPeerError, MessageError, NamelessError, UnknownPeerError
from tamis.routing.kinds import CLIENT, NEIGHBOUR, NODE
from tamis.routing.memory import LatestKeys
from tamis.routing.messages import (
    Deliver,
    Entry,
    Key,
    Message,
    Output,
    Passed,
    Publish,
    Reject,
    Send,
    Subscribe,
    Unsubscribe,
    Withdraw,
)
from tamis.routing.table import RoutingTable
from tamis.topk.policies import EveryChange
from tamis.topk.ranked import Ranked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing.base import Changes, Summary
    from tamis.routing.distributed.residents import Satisfied, Who
    from tamis.topk.policies import Policy

_REMEMBERED = 100_000
_FROM_NEIGHBOURS = frozenset({Subscribe, Unsubscribe})
"""What the table of kinds has neighbours say, and nodes say to their neighbours too."""


class _Made(NamedTuple):
    """When a subscription of an own client was made, which of this home's it is, and from when on it counts."""

    at: float
    number: int
    begin: float


class RoutingNode(ABC):
    """A node of a distributed publish/subscribe system."""

    name_of_strategy: ClassVar[str]
    hears: ClassVar[frozenset[type[Message]]]
    """What other nodes may say to it."""
    sees_all: ClassVar[bool] = False
    """Do all events come to where a subscription lives, whatever its threshold?"""
    keeps_recent: ClassVar[bool] = False
    """Are second attempts made where subscriptions live, of all events that came there at first?"""

    def __init__(
        self,
        name: str,
        settings: RankingSettings | None = None,
        *,
        schema: Schema | None = None,
        policy: Callable[[Ranked], Policy] = EveryChange,
        remembers: int = _REMEMBERED,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise NamelessError(name)
        self.name = name
        self.settings = settings or RankingSettings()
        self.settings.check()
        self.functions: Functions = functions_of(None, schema)
        self._schema = schema
        self._links: dict[str, None] = {}
        self._clients: dict[str, dict[Key, Expression | Ranked]] = {}
        self._checker = RoutingTable(schema=schema)
        self._policy = policy
        self.residents = Residents(self.settings, schema, policy, keeps_recent=self.keeps_recent)
        self._made: dict[tuple[str, Key], _Made] = {}
        self._latest_number = 0
        self._leases: Leases[tuple[str, Key]] = Leases()
        self._publishers = LatestKeys(remembers)
        """Which events own clients have published, and who."""
        self._withdrawals = Withdrawals(remembers)
        self._delivered: dict[str, LatestKeys] = {}
        """Of each client, which events it was told of: nobody is told twice, wherever its subscriptions live."""
        self._remembers = remembers
        self._published = 0

    # -- Who is there

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The nodes at the other ends of its links."""
        return tuple(self._links)

    @property
    def clients(self) -> tuple[str, ...]:
        """Its own clients."""
        return tuple(self._clients)

    def wanted_by(self, client: str) -> dict[Key, Expression | Ranked]:
        """Return the subscriptions of a client."""
        if client not in self._clients:
            raise UnknownPeerError(self.name, client)
        return dict(self._clients[client])

    def connect(self, neighbour: str, now: float) -> list[Output]:
        """Let a link come up; return what to say."""
        self._check_newcomer(neighbour)
        self._links[neighbour] = None
        return self._greet(neighbour, now)

    def attach(self, client: str) -> None:
        """Let a client come."""
        self._check_newcomer(client)
        self._clients[client] = {}
        self._delivered[client] = LatestKeys(self._remembers)

    def _check_newcomer(self, peer: str) -> None:
        if not isinstance(peer, str) or not peer:
            raise NamelessError(peer)
        if peer == self.name or peer in self._links or peer in self._clients:
            raise KnownPeerError(self.name, peer)

    def disconnect(self, peer: str, now: float) -> list[Output]:
        """Let a neighbour or a client be gone; return what that brings about."""
        if peer in self._links:
            del self._links[peer]
            return self._part(peer, now)
        if peer not in self._clients:
            raise UnknownPeerError(self.name, peer)
        outputs: list[Output] = []
        for key in list(self._clients[peer]):
            outputs += self._unsubscribe(peer, key, now)
        del self._clients[peer], self._delivered[peer]
        return outputs + self._tell(now)

    # -- Messages

    def receive(self, message: Message, source: str, now: float) -> list[Output]:
        """Take a message of a client or of another node; return what to do. Bad ones change nothing."""
        if source in self._clients:
            check_message(message, CLIENT)
            return self._ended(now) + self._of_client(message, source, now)
        if type(message) in _FROM_NEIGHBOURS or isinstance(message, Passed | Withdraw):
            check_message(message, NEIGHBOUR)
        else:
            check_message(message, NODE)
        if type(message) not in self.hears | {Withdraw}:
            names = ", ".join(sorted(kind.__name__ for kind in self.hears | {Withdraw}))
            raise MessageError(f"{source!r} said {type(message).__name__} to {self.name!r}", f"one of {names}")
        if type(message) in _FROM_NEIGHBOURS and source not in self._links:
            raise UnknownPeerError(self.name, source)
        if isinstance(message, Withdraw):
            return self._withdrawn(message, source)
        return self._ended(now) + self._hear(message, source, now)

    def _of_client(self, message: Message, client: str, now: float) -> list[Output]:
        outputs: list[Output] = []
        match message:
            case Subscribe(entries, replaces, lease_s):
                for entry in entries:
                    outputs += self._wish(client, entry, lease_s, now)
                refused = {each.key for each in outputs if isinstance(each, Reject)}
                for key in set(replaces) & self._clients[client].keys() - {each.key for each in entries} - refused:
                    outputs += self._unsubscribe(client, key, now)
            case Unsubscribe(keys, instead):
                for entry in instead:
                    outputs += self._wish(client, entry, None, now)
                for key in set(keys) & self._clients[client].keys() - {each.key for each in instead}:
                    outputs += self._unsubscribe(client, key, now)
            case Publish(key):
                if key in self._publishers:
                    return []  # it was here before
                self._publishers.add(key, client)
                self._published += 1
                number = self.residents.number + 1 if self.settings.is_numbered else self._published
                return self._publish(Passed.of(message, now, self.name, number), now)
            case Withdraw(key):
                if self._publishers.publisher(key) != client:
                    reason = f"{client!r} has published no event {key!r:.60} that is remembered here"
                    return [Reject(client, key, reason)]
                return self._withdrawn(Withdraw(key, now), client)
            case _:
                raise MessageError(
                    f"a client said {type(message).__name__} to {self.name!r}",
                    "Subscribe, Unsubscribe, Publish or Withdraw",
                )
        return outputs + self._tell(now)

    def _wish(self, client: str, entry: Entry, lease_s: float | None, now: float) -> list[Output]:
        """Let a client subscribe, in place of what it had under this key; what it says again goes on."""
        if (reason := self._objection(entry.filter)) is not None:
            return [Reject(client, entry.key, reason)]
        outputs: list[Output] = []
        wanted = self._clients[client]
        if entry.key not in wanted or wanted[entry.key] != entry.filter:
            if entry.key in wanted:
                outputs += self._unsubscribe(client, entry.key, now)
            wanted[entry.key] = entry.filter
            # A node that is started anew begins with a greater number, so that nobody takes it for old.
            self._latest_number = max(self._latest_number + 1, int(now * 1_000_000))
            self._made[client, entry.key] = _Made(now, self._latest_number, now + self.settings.spread_s)
            outputs += self._enter((self.name, client, entry.key), entry.filter, now)
        self._leases.lease((client, entry.key), None if lease_s is None else now + lease_s)
        return outputs

    def _unsubscribe(self, client: str, key: Key, now: float) -> list[Output]:
        self._leases.forget((client, key))
        outputs = self._remove((self.name, client, key), self._clients[client].pop(key), now)
        del self._made[client, key]
        return outputs

    def _ended(self, now: float) -> list[Output]:
        """Let end what is leased until now."""
        if not self._leases.has_ended(now):
            return []
        outputs = [each for client, key in self._leases.ended(now) for each in self._unsubscribe(client, key, now)]
        return outputs + self._tell(now)

    def _withdrawn(self, message: Withdraw, source: str) -> list[Output]:
        """Let no client be told of an event any more, and let others hear of that."""
        assert message.at is not None, "the message was checked"
        return self._spread(message, source) if self._withdrawals.add(message.key, message.at) else []

    def _spread(self, message: Withdraw, source: str) -> list[Output]:
        """Return how a message goes to all nodes."""
        return [Send(neighbour, message) for neighbour in self.neighbours if neighbour != source]

    def _objection(self, wanted: Expression | Ranked) -> str | None:
        """Return why a subscription is refused, or None."""
        if not isinstance(wanted, Ranked):
            return self._checker.objection(wanted)
        return self._checker.objection(wanted.where) or self.settings.objection(wanted, sees_all=self.sees_all)

    def _deliveries(self, satisfied: Iterable[Satisfied], now: float) -> list[Output]:
        """Return what to deliver to own clients: an event once to each, with all its keys that came up together."""
        together: dict[tuple[str, Key], tuple[Passed, list[Key]]] = {}
        for (_, client, key), passed in satisfied:
            if client in self._clients and key in self._clients[client] and self._is_due(client, key, passed, now):
                together.setdefault((client, passed.key), (passed, []))[1].append(key)
        outputs: list[Output] = []
        for (client, event_key), (passed, keys) in together.items():
            if event_key not in self._delivered[client]:
                self._delivered[client].add(event_key)
                outputs.append(Deliver(client, passed.published, tuple(keys)))
        return outputs

    def _is_due(self, client: str, key: Key, passed: Passed, now: float) -> bool:
        """Does a subscription count an event, and was that not withdrawn by the moment that this is about?

        What was published before it was made is of another one under its key, and was perhaps told already.
        """
        is_ranked, made = isinstance(self._clients[client][key], Ranked), self._made[client, key]
        moment = now - self.settings.lateness_s if is_ranked else now
        is_counted = passed.at >= (made.begin if is_ranked else made.at)
        return is_counted and not self._withdrawals.is_over(passed.key, moment)

    # -- Time

    @property
    def next_due(self) -> float | None:
        """When it has to be told of the time; None for never.

        Something leaves a window or a recent buffer, has waited long enough, or is leased until then.
        """
        due = self._due
        return None if due == inf else due

    @property
    def _due(self) -> float:
        end = self._leases.next_end
        return min(self.residents.due, inf if end is None else end)

    def advance(self, now: float) -> list[Output]:
        """Let the time pass: what leaves windows and recent buffers by then leaves, and leases end."""
        return self._ended(now) + self._settle(self.residents.advance(now), now)

    def make_room(self, number: int, now: float) -> list[Output]:
        """Hear that the publication of this number is about to be made: homes forget what leaves recent buffers."""
        return self._settle(self.residents.make_room(number), now)

    def try_again(self, number: int, now: float) -> list[Output]:
        """Hear the same, before that: whoever published what leaves recent buffers sends it once more."""
        return []

    def count(self, number: int, now: float) -> list[Output]:
        """Hear that the publication of this number has been made, and that windows that count go by it."""
        return self._settle(self.residents.count(number), now)

    def _settle(self, satisfied: list[Satisfied], now: float) -> list[Output]:
        """Return whom to tell of what, and what others have to know of thresholds that have moved."""
        return self._deliveries(satisfied, now) + self._tell(now)

    # -- What each strategy does

    def _enter(self, who: Who, wanted: Expression | Ranked, now: float) -> list[Output]:
        """Let a subscription of an own client take effect."""
        self.residents.add(who, wanted, now)
        return []

    def _remove(self, who: Who, wanted: Expression | Ranked, now: float) -> list[Output]:
        """Let a subscription of an own client end."""
        self.residents.remove(who)
        return []

    @abstractmethod
    def _publish(self, passed: Passed, now: float) -> list[Output]:
        """Take an event of an own client."""

    @abstractmethod
    def _hear(self, message: Message, source: str, now: float) -> list[Output]:
        """Take a message of another node."""

    def _tell(self, now: float) -> list[Output]:
        """Let others know what has changed here, if they have to."""
        return []

    def _greet(self, neighbour: str, now: float) -> list[Output]:
        """Say to a new neighbour what it has to know."""
        return []

    def _part(self, neighbour: str, now: float) -> list[Output]:
        """Take note that a neighbour is gone."""
        return []


class SummarisingNode(RoutingNode):
    """A node that keeps a summary of what its clients want, for others: `_summary`, of a strategy."""

    _summary: Summary

    def _enter(self, who: Who, wanted: Expression | Ranked, now: float) -> list[Output]:
        outputs = super()._enter(who, wanted, now)
        self._summary.add(who, self.residents.filter(who))
        return outputs

    def _remove(self, who: Who, wanted: Expression | Ranked, now: float) -> list[Output]:
        self._summary.remove(who)
        return super()._remove(who, wanted, now)

    def _changes(self) -> Changes:
        """Return what has changed of the summary since this was asked last, thresholds that moved included."""
        for who in self.residents.moved():
            self._summary.remove(who)
            self._summary.add(who, self.residents.filter(who))
        return self._summary.changes()
