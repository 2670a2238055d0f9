"""Subscriptions go to all clients, and publishers match their own events.

A publisher sends an event straight to those whom it interests. For ranked subscriptions it holds proxies (`proxies`):
it sends what passes a threshold, and the owner's ranking decides. The threshold moves, and every move that is told
costs a message for every client; that is why the thesis advises against it. Behind a recent-buffer filter, events that
were not sent at first are looked at again when they leave the buffer.

Source: Pripužić 2010, sections 5.1.2, 5.2.2 and 5.3.1 (docs/bibliography.md).
Departs: the position of an event in a count window is known to all, as its time is; without that an owner who is not
sent an event could not know that another left. Recent buffers are by the order of all publications, as theorem 3.9
needs it.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import TamisError
from tamis.language.meaning import holds
from tamis.language.parser import parse
from tamis.matching.errors import UnknownAlgorithmError
from tamis.topk.algorithms import RANKINGS
from tamis.topk.owner import Owner
from tamis.topk.policies import EveryChange, Policy
from tamis.topk.ranked import Ranked
from tamis.topk.scores import key
from tamis.topk.settings import TopKSettings
from tamis.topk.text import is_ranked
from tamis_lab.topk.central.base import CentralSystem, ClientDelivery

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from tamis.language.expressions import Expression


class _Sent(NamedTuple):
    """A publication in a publisher's recent buffer."""

    number: int
    at: float
    publisher: Any
    event: Mapping[str, Any]


class _Member:
    """A ranked subscription at its owner, what others know of it, and the publications that may be sent yet."""

    def __init__(self, client: Any, owner: Owner, policy: Policy) -> None:
        self.client = client
        self.owner = owner
        self.policy = policy
        self.ranked = owner.ranked
        self.clocks: dict[int, float] = {}
        """By the number of a publication in the recent buffer, the reading of the clock when it came."""
        self.buffer: deque[_Sent] = deque()
        self.served: set[int] = set()
        """Which publications in the recent buffer were sent to the owner."""


class SubscriptionFlooding(CentralSystem):
    """Matching at the publishers.

    >>> system = SubscriptionFlooding("ABCDEF")
    >>> system.subscribe("E", "s1", "x > 10")
    >>> system.subscribe("D", "s2", "x > 15")
    >>> [told.client for told in system.publish("A", {"x": 20}, now=0.0, event_id="p")], system.message_count
    (['E', 'D'], 14)
    """

    def __init__(
        self,
        clients: Iterable[Hashable],
        algorithm: str = "probabilistic",
        policy: Callable[[Ranked], Policy] = EveryChange,
        **settings: Any,
    ) -> None:
        """Choose an algorithm and, for `strict` and `relaxed`, a filter; without one they have no threshold to tell."""
        super().__init__(clients)
        if algorithm not in RANKINGS:
            raise UnknownAlgorithmError(algorithm, tuple(RANKINGS))
        # A guard would have to see the events that are not sent.
        self._settings = TopKSettings(**(settings | {"guard": False}))
        self._settings.check_filter(algorithm)
        self._algorithm = algorithm
        self._policy = policy
        self._conditions: dict[Any, tuple[Any, Expression]] = {}
        self._rankings: dict[Any, _Member] = {}
        self._next_number = 0
        self._ids: dict[int, Any] = {}
        self._notifications: set[tuple[Any, int]] = set()
        self.wasted = 0
        """How many events were sent to an owner whose ranking did not take them."""

    def subscribe(self, client: Hashable, subscription_id: Hashable, wanted: str | Ranked | Expression) -> None:
        if subscription_id in self._conditions or subscription_id in self._rankings:
            raise TamisError(f"there is a subscription {subscription_id!r} already")
        if isinstance(wanted, str):
            wanted = Ranked.parse(wanted) if is_ranked(wanted) else parse(wanted)
        if isinstance(wanted, Ranked):
            owner = Owner(wanted, self._algorithm, self._settings, self._next_number)
            self._rankings[subscription_id] = _Member(client, owner, self._policy(wanted))
        else:
            self._conditions[subscription_id] = client, wanted
        self.messages["subscribe"] += len(self.clients)

    def unsubscribe(self, client: Hashable, subscription_id: Hashable) -> None:
        if subscription_id in self._conditions:
            del self._conditions[subscription_id]
        else:
            del self._rankings[subscription_id]
        self.messages["unsubscribe"] += len(self.clients)

    def publish(self, client: Hashable, event: Mapping[str, Any], now: float, event_id: Any) -> list[ClientDelivery]:
        deliveries = self._elapse(now, inclusive=False)
        number = self._next_number
        self._next_number += 1
        self._ids[number] = event_id
        self.messages["publish"] += 0  # nothing goes to the service
        receivers: dict[Any, None] = {}
        for owner, condition in self._conditions.values():
            if holds(condition, event):
                receivers[owner] = None
                deliveries += self._tell(owner, [number], now)
        for member in self._rankings.values():
            self._expel(member, now, deliveries, makes_room=True)
            if not holds(member.ranked.where, event):
                continue
            owner = member.owner
            clock = owner.clock(number, now)
            score = key(member.ranked, event)
            if owner.buffer_size is not None:
                member.clocks[number] = clock
                member.buffer.append(_Sent(number, now, client, event))
            if member.policy.wants(event, score):
                receivers[member.client] = None
                if owner.buffer_size is not None:
                    member.served.add(number)
                deliveries += self._receive(member, number, score, clock, now)
            if not owner.is_timed:
                deliveries += self._tell(member.client, owner.leave(clock), now)
            self._tell_threshold(member)
        # An event goes once to a client, however many of its subscriptions it interests.
        self.messages["notify"] += len(receivers.keys() - {client})
        return deliveries

    def _receive(self, member: _Member, number: int, score: float, clock: float, now: float) -> list[ClientDelivery]:
        """The owner takes an event that was sent at once."""
        before = len(member.owner)
        entering = member.owner.take(number, score, clock)
        self.wasted += not entering and len(member.owner) == before
        return self._tell(member.client, entering, now)

    def _expel(self, member: _Member, now: float, deliveries: list[ClientDelivery], *, makes_room: bool) -> None:
        """What leaves the recent buffer is looked at again, and sent if it was not sent before."""
        owner, buffer, size = member.owner, member.buffer, member.owner.buffer_size
        if size is None:
            return
        # By the order of all publications, also of those that do not pass the filter.
        oldest = self._next_number - 1 - size.events if makes_room else -1
        while buffer and (buffer[0].number <= oldest or buffer[0].at + size.seconds <= now):
            sent = buffer.popleft()
            owner.expel(sent.number)
            clock = member.clocks.pop(sent.number)
            score = key(member.ranked, sent.event)
            if sent.number not in member.served and member.policy.wants(sent.event, score):
                self.messages["notify"] += sent.publisher != member.client
                member.served.add(sent.number)
            if sent.number in member.served:
                member.served.remove(sent.number)
                deliveries += self._tell(member.client, owner.retry(sent.number, score, clock), now)
            self._tell_threshold(member)

    def _tell_threshold(self, member: _Member) -> None:
        if member.policy.moved(member.owner.threshold):
            self.messages["update"] += len(self.clients)

    def advance(self, now: float) -> list[ClientDelivery]:
        return self._elapse(now, inclusive=True)

    def _elapse(self, until: float, *, inclusive: bool) -> list[ClientDelivery]:
        """Let leave what leaves time windows and, by age, recent buffers, in order of time."""
        deliveries: list[ClientDelivery] = []
        while True:
            timed = [each for each in self._rankings.values() if each.owner.is_timed]
            due = min((each.owner.due for each in timed), default=math.inf)
            for each in timed:
                if (size := each.owner.buffer_size) is not None:
                    while each.buffer and (at := each.buffer[0].at + size.seconds) <= min(due, until):
                        self._expel(each, at, deliveries, makes_room=False)
            if not (due < until or (inclusive and due <= until)):
                return deliveries
            for each in timed:
                if each.owner.due <= due:
                    deliveries += self._tell(each.client, each.owner.leave(due), due)
                    self._tell_threshold(each)

    def _tell(self, client: Any, numbers: list[int], at: float) -> list[ClientDelivery]:
        deliveries = []
        for number in numbers:
            if (client, number) not in self._notifications:
                self._notifications.add((client, number))
                deliveries.append(ClientDelivery(client, self._ids[number], at))
        return deliveries
