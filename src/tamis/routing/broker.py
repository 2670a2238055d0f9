"""What does a broker do with a message? A state machine without I/O.

A `Broker` is a state machine without sockets, clock or chance. The driver (a simulator, or a network service) hands it
messages and the time, and carries out what it returns. It promises the driver's part of the bargain back: on a tree of
links that each keep their order, every client gets each event that one of its subscriptions wants, once, as soon as the
subscription has spread; and no event that none of them wants, ever.

For each neighbour a strategy sums up the filters of all others, clients and neighbours alike; whatever changes in that
summary is told to the neighbour, in one message. With advertisements the summary has only filters that overlap
something that may come from there.

What a new neighbour must know of very many filters takes long to work out. A driver with other things to do connects it
gradually, and gives the broker a little time now and then (`work`). A neighbour that was started anew is renewed: what
it said stays in force until it has said it again.

A client may ask for the best k events of a window (`desk`). Neighbours are told a filter in its place, so that all of
the above holds for it too; the filter moves if the broker has a policy for thresholds, and else never.

Source: Mühl et al. 2002, section 2; ranked subscriptions in networks of brokers: Pripužić 2010, sections 6.3.1 and
6.3.3 (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import TRUE
from tamis.language.functions import Functions, functions_of
from tamis.language.meaning import holds
from tamis.language.schema import NO_SCHEMA
from tamis.matching.leases import Leases
from tamis.pruning.goals import Goal
from tamis.relations.advertisements import OverlapIndex
from tamis.routing import announcements
from tamis.routing.acceptance import check_message, entries_of, is_lease
from tamis.routing.base import Knowledge
from tamis.routing.desk import Desk
from tamis.routing.errors import (
    KnownPeerError,
    LeaseOfLinksError,
    LengthOfMessagesError,
    MemoryOfEventsError,
    MessageError,
    NamelessError,
    OtherFunctionsError,
    OtherSchemaError,
    SchemaOfAnnouncementsError,
    SchemaOfStrategyError,
    UnknownPeerError,
)
from tamis.routing.greeting import PartialHello
from tamis.routing.groups import Groups
from tamis.routing.guard import Guard
from tamis.routing.heeding import Heeding
from tamis.routing.interests import Interests
from tamis.routing.links import Ledger, Link
from tamis.routing.messages import (
    INCOMPLETE,
    PROVISIONAL,
    Advertise,
    Answer,
    Ask,
    Deliver,
    Entry,
    Hello,
    Key,
    LostNeighbour,
    Message,
    Output,
    Publish,
    Reject,
    Renew,
    ResumeFiltering,
    Send,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Withdraw,
)
from tamis.routing.silence import Silence
from tamis.routing.strategies import strategy_of
from tamis.routing.table import RoutingTable
from tamis.topk.ranked import Ranked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing.adaptation import Adaptation
    from tamis.routing.base import Strategy
    from tamis.routing.links import Said
    from tamis.routing.renewal import Content
    from tamis.selectivity.estimates import Share
    from tamis.topk.policies import Policy

_REMEMBERED = 100_000
MOST_ENTRIES = 20
"""So many filters are told in one message: whoever gets it has read them in a few milliseconds."""
DEFAULT_GOAL = Goal(reduction=0.5)
"""How far a broker prunes that was not told: the published load explodes behind 0.65, by most measures."""
_LEAST_LEASE_S = 0.001
_FOR_THE_TIME_BEING = (PROVISIONAL, INCOMPLETE)
_OWN = ""
"""Whose the broker's own advertisement is."""


class Broker(Groups):
    """One node of an overlay.

    >>> import tamis
    >>> broker = Broker("middle")
    >>> _ = broker.connect("north", 0.0), broker.connect("south", 0.0)
    >>> wanted = Subscribe((Entry(0, tamis.parse("price < 20")),))
    >>> broker.receive(wanted, "north", 0.0)
    [Send(peer='south', message=Subscribe(entries=(Entry(key=0, filter=...),), replaces=(), lease_s=None))]
    >>> [output.peer for output in broker.receive(Publish("e1", {"price": 12}), "south", 0.0)]
    ['north']

    `advertisements` is the strategy by which advertisements spread; without one, filters go everywhere, and
    advertisements nowhere. `algorithm` is the matcher's. The keys of the latest `remembered` events are kept, so that
    an event that comes again goes no further. Many events of one peer are better received together (`receive_many`),
    or routed as arrays (`route_many`). A neighbour may forget this broker when it was silent for `link_lease_s`. More
    than `most_entries` filters are told a neighbour in several messages.

    With `pruning`, what neighbours want is generalised where it is kept: by `prune`, and, as far as a threshold of the
    measure, whenever something comes. With `advertisement_pruning`, so is each of their advertisements when it comes;
    `prune_advertisements` prunes all of them together.

    `functions` are those of the host that filters may call; without them, those of the schema. Neighbours must have the
    same ones, in the same versions.

    `ranked` says how the best k of a window are found for clients, in the words of `TopK`: `{"algorithm": "block"}` if
    nothing is said. With a `policy`, neighbours are told thresholds, so that fewer events come (`topk.policies`).
    `buffer_s` is how long events of clients are kept for a second attempt, which filtered algorithms need: one setting
    for all brokers of a network. Events may be late by `lateness_s`; ranked subscriptions wait so long, and then take
    them in the order in which they were published. They count what is published from `spread_s` after they were made.

    >>> broker = Broker("middle")
    >>> broker.attach("ann"), broker.attach("shop")
    (None, None)
    >>> best = tamis.Ranked.parse("TOP 1 BY price ASC OVER 10 SECONDS WHERE kind = 'flat'")
    >>> _ = broker.receive(Subscribe((Entry("best", best),)), "ann", 0.0)
    >>> offers = [Publish(f"e{price}", {"price": price, "kind": "flat"}) for price in (300, 400, 200)]
    >>> [output.publication.key for each in offers for output in broker.receive(each, "shop", 1.0)]
    ['e300', 'e200']
    >>> broker.next_due
    11.0
    """

    def __init__(
        self,
        name: str,
        strategy: str | Strategy = "covering",
        *,
        advertisements: str | Strategy | None = None,
        schema: Schema | None = None,
        algorithm: str = "block",
        announces: bool = False,
        adaptation: Adaptation | None = None,
        pruning: Goal | None = None,
        pruning_measure: str = "accuracy",
        advertisement_pruning: Goal | None = None,
        remembered: int = _REMEMBERED,
        link_lease_s: float | None = None,
        most_entries: int = MOST_ENTRIES,
        functions: Functions | None = None,
        ranked: Mapping[str, Any] | None = None,
        policy: Callable[[Ranked], Policy] | None = None,
        buffer_s: float | None = None,
        lateness_s: float = 0.0,
        spread_s: float = 0.0,
    ) -> None:
        if not isinstance(remembered, int) or remembered < 1:
            raise MemoryOfEventsError(remembered)
        if link_lease_s is not None and not (is_lease(link_lease_s) and link_lease_s >= _LEAST_LEASE_S):
            raise LeaseOfLinksError(link_lease_s, _LEAST_LEASE_S)
        if not isinstance(most_entries, int) or most_entries < 1:
            raise LengthOfMessagesError(most_entries)
        advertising = None if advertisements is None else strategy_of(advertisements, schema)
        self.functions = functions_of(functions, schema)
        table = RoutingTable(schema, algorithm, self.functions, keeps_proxies=policy is not None)
        desk = Desk(schema, self.functions, ranked, policy, buffer_s, lateness_s, spread_s)
        super().__init__(_named(name), table, schema, advertising, remembered, desk)
        self.strategy = strategy_of(strategy, schema)
        for each in (self.strategy, self.advertising):
            if each is not None and each.schema is not None and each.schema != schema:
                raise SchemaOfStrategyError(name, each.name)
        if announces and schema is not None and (reason := announcements.objection(schema)):
            raise SchemaOfAnnouncementsError(name, reason)
        self._pruning, self._pruning_measure = pruning, pruning_measure
        self._heeding = Heeding(self.table, advertisement_pruning, schema)
        if pruning is not None and pruning.threshold is not None:
            self.table.prune_new(pruning.threshold, pruning_measure)
        self._digest = NO_SCHEMA if schema is None else schema.digest
        self._subscriptions = (
            None
            if self.advertising is None
            else OverlapIndex(schema, is_exact=True, context=self.strategy.comparisons.context)
        )
        self._announces = announces
        self._announced_count = 0
        self._announced: list[Publish] = []
        self._adaptation = adaptation
        self.link_lease_s = link_lease_s
        self._most_entries = most_entries
        self._expected: set[str] = set()
        self._silence = Silence(link_lease_s)
        self._interests = Interests(self.table, self.strategy.comparisons.context)
        self._imperfections: dict[tuple[str, type[Any], Key], float] = {}  # of what neighbours want partly in vain
        self._leases: Leases[tuple[str, type[Any], Key]] = Leases()
        self._asked: dict[tuple[str, Key], Expression | None] = {}
        """What neighbours are asked for in the place of what clients want, where that is something else."""

    # -- Peers

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The brokers that are linked to this one."""
        return tuple(self._links)

    @property
    def clients(self) -> tuple[str, ...]:
        """Who is attached."""
        return tuple(self._clients)

    def advertised_by(self, peer: str) -> dict[Key, Expression]:
        """Return what may come from a neighbour or a client, as far as it said so."""
        if peer in self._links:
            return self._links[peer].advertisements.names.numbers(self._links[peer].advertised)
        return dict(self._client(peer))

    def ranked_by(self, client: str) -> dict[Key, Ranked]:
        """Return what a client wants the best of, by the keys that it uses."""
        self._client(client)
        return self.desk.of(client)

    def wanted_by(self, peer: str) -> dict[Key, Expression]:
        """Return what a neighbour or a client wants, by the keys that it uses; `table` has keys of its own for some.

        Of a ranked subscription it is what others are told in its place (`ranked_by`).
        """
        if peer in self._links:
            link = self._links[peer]
            return link.filters.names.numbers({**self.table.of(peer), **link.said_filters})
        return dict(self.table.of(peer))

    def heeded_of(self, neighbour: str) -> dict[Key, Expression]:
        """Return what may come from a neighbour as it is kept here: some of it pruned."""
        return self._link(neighbour).heeded

    def relied_on(self, neighbour: str) -> dict[Key, int]:
        """Return how many filters a neighbour is told because of each of its advertisements, if of any."""
        return self._link(neighbour).relied_on

    def told(self, neighbour: str) -> tuple[Entry, ...]:
        """Return the filters that a neighbour knows from this broker."""
        return self._link(neighbour).wanted.entries

    def is_filtering(self, neighbour: str) -> bool:
        """Are events filtered on the way to a neighbour?"""
        rates = self._link(neighbour).rates
        return rates is None or rates.is_filtering

    def connect(
        self,
        neighbour: str,
        now: float,
        *,
        gradually: bool = False,
        strategy: str | Strategy | None = None,
        adaptation: Adaptation | None = None,
        may_leave: Expression | None = None,
        may_enter: Expression | None = None,
    ) -> list[Output]:
        """Take a neighbour; return what to say to it first. The neighbour does the same.

        `gradually`, it is told TRUE, so that events go its way at once, and `work` finds out what it must know.
        `strategy` and `adaptation` are of this link; without them, the broker's. `Pruned` as a strategy prunes what
        this neighbour is told, by what the broker counts in its traffic. Only events that a filter `may_leave` go to
        the neighbour, and only those that `may_enter` are taken from it, whatever anybody wants.
        """
        if neighbour == self.name:
            raise KnownPeerError(self.name, neighbour)
        self._check_newcomer(neighbour)
        own_strategy, guard = self._terms(neighbour, strategy, may_leave, may_enter)
        self._expected.discard(neighbour)
        ledger = Ledger(self._filter_of, self._advertisement_of) if gradually else None
        settings, knowledge = adaptation or self._adaptation, self._knowledge
        link = Link(
            own_strategy, self.advertising, self._schema, settings, neighbour, knowledge, ledger, guard, self._versions
        )
        self._links[neighbour] = link
        if gradually:
            self._begin(neighbour, link)
        else:
            self._tell_everything(link)
        self.table.connect(neighbour)
        self._silence.begin(neighbour, now)
        self._conclude()
        return self._hellos(neighbour, link)

    @property
    def _knowledge(self) -> Knowledge:
        return Knowledge(self.table.share, self._heeding.keeps_out)

    def _terms(
        self,
        neighbour: str,
        strategy: str | Strategy | None,
        may_leave: Expression | None,
        may_enter: Expression | None,
    ) -> tuple[Strategy, Guard]:
        """Return the strategy and the guard of a link, checked."""
        own_strategy = self.strategy if strategy is None else strategy_of(strategy, self._schema)
        if own_strategy.schema is not None and own_strategy.schema != self._schema:
            raise SchemaOfStrategyError(self.name, own_strategy.name)
        guard = Guard(may_leave, may_enter)
        for each in (may_leave, may_enter):
            if each is not None and (reason := self.table.objection(each)):
                raise MessageError(f"a guard of {neighbour!r}, {str(each)!r:.80}: {reason}", "a filter of our schema")
        return own_strategy, guard

    def amend(
        self,
        neighbour: str,
        now: float,
        *,
        strategy: str | Strategy | None = None,
        adaptation: Adaptation | None = None,
        may_leave: Expression | None = None,
        may_enter: Expression | None = None,
    ) -> list[Output]:
        """Give a link other terms, all of them as `connect` takes them; return what to say, as `renew` does.

        What the neighbour wants counts as far as it may leave now, at once. What it is told begins anew, with a Hello
        that takes the place of all that it was told: the neighbour has to `renew` this broker, as if it had been
        started anew.

        >>> import tamis
        >>> broker = Broker("middle")
        >>> _ = broker.connect("north", 0.0), broker.connect("south", 0.0)
        >>> _ = broker.receive(Hello((Entry(0, tamis.parse("price < 20")),)), "north", 0.0)
        >>> for output in broker.amend("north", 1.0, may_leave=tamis.parse("region = 'EU'")):
        ...     print(output.peer, *(entry.filter for entry in output.message.entries))
        south region = 'EU' AND price < 20
        north
        """
        link = self._link(neighbour)
        own_strategy, guard = self._terms(neighbour, strategy, may_leave, may_enter)
        is_same_exit = guard.may_leave == link.guard.may_leave
        link.close_wanted()
        link.agree(own_strategy.summary_for(neighbour, self._knowledge), adaptation or self._adaptation, guard)
        if not is_same_exit:
            self._guard_again(neighbour, link, now)
        if link.is_gradual:
            self._begin(neighbour, link)
        else:
            self._tell_filters(neighbour, link)
        changes = [
            output
            for output in self._told(now, is_removal=False)
            if not (isinstance(output, Send) and output.peer == neighbour)  # its Hello has all of that
        ]
        return self._sent(changes, now) + self.renew(neighbour, now)

    def _guard_again(self, neighbour: str, link: Link, now: float) -> None:
        """Let what a neighbour wants count as far as it may leave now; nobody is without a filter in between."""
        for key, expression in list(self.table.of(neighbour).items()):
            said = link.said_filters.pop(key, expression)
            entry = Entry(key, said, self._imperfection(neighbour, Subscribe, key), self.table.hops(neighbour, key))
            guarded = self._as_far_as_it_may_leave(entry, link)
            if guarded.filter == expression:
                continue
            if key in link.filters.provisional:
                self.table.remove(neighbour, key)
                self._interests.remove(neighbour, key)
                self._add_provisional(neighbour, guarded)
                continue
            remembered = link.said_filters.get(key)
            self._unsubscribe(neighbour, key, now)
            if remembered is not None:
                link.said_filters[key] = remembered
            self._add_filter(neighbour, guarded, now)

    def renew(self, neighbour: str, now: float) -> list[Output]:
        """Take note that a neighbour has forgotten what it was told, and will greet again; return what to say to it.

        It was started anew, or so much was lost between the two that both begin again. What it said stays in force
        until its new Hello is complete, which takes the place of all of it in one step. Of filters that it says again
        nobody else hears. What it says before its new Hello is from before, and does not count.

        >>> import tamis
        >>> broker = Broker("middle")
        >>> _ = broker.connect("north", 0.0), broker.connect("south", 0.0)
        >>> hello = Hello((Entry(7, tamis.parse("price < 20")),))
        >>> [output.peer for output in broker.receive(hello, "north", 0.0)]
        ['south']
        >>> [output.peer for output in broker.renew("north", 1.0)]
        ['north']
        >>> [output.peer for output in broker.receive(Publish("e1", {"price": 12}), "south", 1.0)]
        ['north']
        >>> broker.receive(Hello((Entry(0, tamis.parse("price < 20")),)), "north", 2.0)
        []
        """
        link = self._link(neighbour)
        ended = self.advance(now) if self._is_due(now) else []
        if neighbour not in self._links:
            return ended  # it was silent for too long, just now
        link.renew(
            {
                key: (
                    link.said_filters.get(key, expression),
                    self._imperfection(neighbour, Subscribe, key),
                    self.table.hops(neighbour, key),
                )
                for key, expression in self.table.of(neighbour).items()
            },
            {
                key: (expression, self._imperfection(neighbour, Advertise, key), 0)
                for key, expression in link.advertised.items()
            },
        )
        self._silence.forget(neighbour)
        self._silence.begin(neighbour, now)
        return ended + self._hellos(neighbour, link)

    def expect(self, neighbours: Iterable[str]) -> None:
        """Say which neighbours there will be, before any is connected; those that were named before are not awaited.

        A broker that is started anew knows them. Until all but one have said what they want, what it tells that one is
        marked as incomplete, and a neighbour that renews it keeps what it said in its life before. To give one up that
        stays away, name the others.
        """
        self._expected = {_named(neighbour) for neighbour in neighbours if neighbour not in self._links}

    def _hellos(self, neighbour: str, link: Link) -> list[Output]:
        return [Send(neighbour, each) for each in link.hello(TRUE, self._most_entries, self._silence.lease_s)]

    def _tell_everything(self, link: Link) -> None:
        """Work out in one piece what a new neighbour must know: the definition of what `work` does."""
        if self.advertising is None:
            self._tell_filters("", link)
        for peer, key, expression in self._all_advertisements():
            link.offer((peer, key), expression, self._imperfection(peer, Advertise, key))

    def _tell_filters(self, neighbour: str, link: Link) -> None:
        for peer, key, expression in self.table.entries():
            asked = self._asked.get((peer, key), expression)
            if peer != neighbour and asked is not None and not self._is_provisional(peer, key):
                link.want((peer, key), asked, self._imperfection(peer, Subscribe, key), self._hops(peer, key))

    # -- Work that can wait

    @property
    def work_count(self) -> int:
        """How many units of work there are to do, at least; 0 if neighbours know exactly what they must know."""
        return sum(link.work_count for link in self._links.values())

    @property
    def is_worked_out(self) -> bool:
        """Were neighbours told all that they must know? With advertisements that depends on what they say first."""
        return not self.work_count and (
            self.advertising is None or all(link.are_advertisements_final for link in self._links.values())
        )

    def work(self, budget: int, now: float) -> list[Output]:
        """Find out what gradual neighbours must know, so many units of it; return what to say to them.

        A unit is one filter that is compared with others, or one message to a neighbour. With covering and ten thousand
        filters of auctions that is a millisecond, and five at most.

        >>> import tamis
        >>> broker = Broker("middle")
        >>> broker.attach("ann")
        >>> _ = broker.receive(Subscribe((Entry("cheap", tamis.parse("price < 20")),)), "ann", 0.0)
        >>> [str(entry.filter) for entry in broker.connect("north", 0.0, gradually=True)[0].message.entries]
        ['TRUE']
        >>> broker.work_count, broker.work(1, 0.0)
        (2, [])
        >>> broker.work(1, 0.0)
        [Send(peer='north', message=Subscribe(entries=(Entry(key=0, ...),), replaces=(-1,), lease_s=None))]
        """
        for link in self._links.values():
            while budget > 0 and link.work_count:
                link.step(self._most_entries)
                budget -= 1
        return self._sent(self._told(now, is_removal=False), now)

    def _begin(self, neighbour: str, link: Link) -> None:
        """Begin to work out what a gradual neighbour must know, as soon as that can be known.

        Which filters concern it depends on what may come from there: it has to say that first.
        """
        link.begin_to_offer(self._advertisement_keys(neighbour))
        if self.advertising is None or (link.has_greeted and link.advertisements.is_worked_out):
            link.begin((peer, list(self.table.of(peer))) for peer in self.table.peers if peer != neighbour)

    def _advertisement_keys(self, besides: str) -> Iterable[tuple[str, list[Key]]]:
        if self._announces:
            yield _OWN, [0]
        for client, advertised in self._clients.items():
            yield client, list(advertised)
        for neighbour, link in self._links.items():
            if neighbour != besides:
                yield neighbour, list(link.advertised)

    def _filter_of(self, source: Any) -> Content | None:
        """Return what a peer wants, as far as others are told of it; None if nothing."""
        peer, key = source
        if source not in self.table or self._is_provisional(peer, key):
            return None
        asked = self._asked.get(source, self.table.of(peer)[key])
        return None if asked is None else (asked, self._imperfection(peer, Subscribe, key), self._hops(peer, key))

    def _advertisement_of(self, source: Any) -> Content | None:
        """Return what a peer advertises, as far as others are told of it; None if nothing."""
        peer, key = source
        if peer == _OWN:
            return announcements.announced_by(self.name), 0.0, 0
        link = self._links.get(peer)
        if link is not None and key in link.advertisements.provisional:
            return None
        expression = (self._clients.get(peer, {}) if link is None else link.advertised).get(key)
        return None if expression is None else (expression, self._imperfection(peer, Advertise, key), 0)

    def _is_provisional(self, peer: str, key: Key) -> bool:
        return peer in self._links and key in self._links[peer].filters.provisional

    def attach(self, client: str) -> None:
        """Take a client."""
        self._check_newcomer(client)
        self._clients[client] = {}
        self._ranks[client] = next(self._next_rank)
        self.table.attach(client)

    def _check_newcomer(self, peer: str) -> None:
        if _named(peer) in self._links or peer in self._clients:
            raise KnownPeerError(self.name, peer)

    def disconnect(self, peer: str, now: float) -> list[Output]:
        """Forget a neighbour or a client and all that it said; return what that changes for others."""
        advertised = list(self._links[peer].advertised if peer in self._links else self._client(peer))
        for key in list(self.table.of(peer)):
            self._unsubscribe(peer, key, now)
        for place in [place for place in self._asked if place[0] == peer]:
            del self._asked[place]  # what was never subscribed to
        if peer in self._links:
            self._links[peer].forget_reasons()
        for key in advertised:
            self._unadvertise(peer, key, now)
        if peer in self._clients:
            del self._clients[peer], self._ranks[peer]
            self.table.detach(peer)
            self.desk.forget(peer)
        else:
            self._silence.forget(peer)
            self.table.disconnect(peer)
            self._links.pop(peer).close()
        return self._sent(self._told(now, is_removal=True), now)

    def prune(self, goal: Goal | None = None, share: Share | None = None, measure: str | None = None) -> int:
        """Generalise what neighbours want, as far as a goal says, where it is kept; return how many filters changed.

        What clients want stays exact, and what is told to neighbours stays as it is. Which conditions go first depends
        on how often predicates are true: as this broker has counted it, or as `share` says. New filters are pruned as
        they come, as far as these are now.
        """
        measure = self._pruning_measure if measure is None else measure
        return self.table.prune(goal or self._pruning or DEFAULT_GOAL, share, measure)

    def prune_advertisements(self, goal: Goal | None = None, *, now: float) -> list[Output]:
        """Generalise what neighbours advertised, all together, as far as a goal says; return what to send.

        It counts from the advertisements as they came, so a smaller goal takes prunings back. Neighbours hear of the
        filters that concern what they may send, as it is kept now, and no more of those that do not. Advertisements
        that come later are kept as `advertisement_pruning` says.
        """
        ended = self.advance(now) if self._is_due(now) else []
        known = [(name, link, key) for name, link in self._links.items() for key in link.advertised]
        versions = self._heeding.heeded_together(
            [link.advertised[key] for _, link, key in known], goal or self._heeding.goal or DEFAULT_GOAL
        )
        for (name, link, key), version in zip(known, versions, strict=True):
            if link.heed(key, version):
                self._tell_what_concerns(name, link, key, version)
        return self._sent(ended + self._told(now, is_removal=False), now)

    def _client(self, client: str) -> dict[Key, Expression]:
        try:
            return self._clients[client]
        except KeyError:
            raise UnknownPeerError(self.name, client) from None

    def _all_advertisements(self) -> Iterable[tuple[str, Key, Expression]]:
        if self._announces:
            yield _OWN, 0, announcements.announced_by(self.name)
        for client, advertised in self._clients.items():
            for key, expression in advertised.items():
                yield client, key, expression
        for neighbour, link in self._links.items():
            for key, expression in link.advertised.items():
                if key not in link.advertisements.provisional:
                    yield neighbour, key, expression

    def _imperfection(self, peer: str, kind: type[Any], key: Key) -> float:
        return self._imperfections.get((peer, kind, key), 0.0)

    # -- Messages

    def receive(self, message: Message, source: str, now: float) -> list[Output]:
        """Do what a message of a peer asks for; return what to send and to deliver."""
        self._check(message, source)
        return self._sent(self._heard(source, now) + self._done(message, source, now), now)

    def _heard(self, source: str, now: float) -> list[Output]:
        """Take note that a peer said something, and let end what has ended by now; return what that changes."""
        self._silence.heard(source, now)
        return self.advance(now) if self._is_due(now) else []

    def _done(self, message: Message, source: str, now: float) -> list[Output]:
        """Do what a message asks for that was checked; return what to send and to deliver."""
        rejected: list[Output] = []
        is_removal = False
        match message:
            case Publish():
                return self._publish(message, source, now)
            case Withdraw(key, at):
                return self._withdrawn(key, at, source, now)
            case Ask(key, filter_):
                return self._answered(source, key, filter_)
            case ResumeFiltering():
                self._filter_again(source, now)
            case Hello():
                self._hello(source, message, now)
            case Subscribe(entries, keys, lease_s):
                rejected = self._change(Subscribe, source, entries, keys, lease_s, now)
            case Unsubscribe(keys, entries):
                is_removal = True
                rejected = self._change(Subscribe, source, entries, keys, None, now)
            case Advertise(entries, keys, lease_s):
                rejected = self._change(Advertise, source, entries, keys, lease_s, now)
            case Unadvertise(keys, entries):
                is_removal = True
                rejected = self._change(Advertise, source, entries, keys, None, now)
        return self._told(now, is_removal) + rejected

    def _check(self, message: Message, source: str) -> None:
        """Raise an error, before anything is done, unless this is for the peer to say."""
        if source in self._clients:
            check_message(message, "client")
        elif source in self._links:
            check_message(message, "neighbour")
            self._check_terms(message, source)
            for entry in entries_of(message):
                if reason := self.table.objection(entry.condition):
                    raise MessageError(f"{source!r} wants {str(entry.filter)!r:.80}: {reason}", "filters of our schema")
        else:
            raise UnknownPeerError(self.name, source)

    @property
    def _versions(self) -> tuple[tuple[str, int], ...]:
        return tuple(self.functions.versions.items())

    def _check_terms(self, message: Message, neighbour: str) -> None:
        """Refuse a neighbour that has another schema or other functions, and whatever it says after that."""
        link = self._links[neighbour]
        if isinstance(message, Hello):
            link.refused_functions = None if message.functions == self._versions else message.functions
            link.refused_schema = None if message.schema == self._digest else message.schema
        if link.refused_functions is not None:  # the digest of a schema has them, too, and does not say which
            raise OtherFunctionsError(self.name, neighbour, self._versions, link.refused_functions)
        if link.refused_schema is not None:
            raise OtherSchemaError(self.name, neighbour, self._digest, link.refused_schema)

    def advance(self, now: float) -> list[Output]:
        """Let the leases expire that nobody renewed, and renew one's own; return what that changes.

        A message does the same when it is received: what is over by then gets nothing of it.
        """
        for client, kind, key in self._leases.ended(now):
            (self._unsubscribe if kind is Subscribe else self._unadvertise)(client, key, now)
        outputs: list[Output] = self._delivered(self.desk.advance(now))
        outputs += self._told(now, is_removal=True) + self._moves(now) + self._second_attempts(now)
        for neighbour in list(self._silence.lost(now)):
            outputs += [*self.disconnect(neighbour, now), LostNeighbour(neighbour)]
        self._sent(outputs, now)
        return outputs + [Send(neighbour, Renew()) for neighbour in self._silence.unrenewed(now)]

    @property
    def next_due(self) -> float | None:
        """When `advance` has something to do next; None if nothing is due unless somebody says something.

        A lease ends, or an event leaves the window of a ranked subscription, so that its client is told of another.
        """
        dues = (self._next_end, self.desk.due, self._recent.due)
        return min((each for each in dues if each is not None and each < inf), default=None)

    @property
    def _next_end(self) -> float | None:
        """When the next lease ends, of a client or of a link."""
        ends = [each for each in (self._leases.next_end, self._silence.next_s) if each is not None]
        return min(ends, default=None)

    @property
    def lease_count(self) -> int:
        """How many subscriptions and advertisements of clients will end by themselves."""
        return len(self._leases)

    def _is_due(self, now: float) -> bool:
        return (at := self._next_end) is not None and at <= now

    def _sent(self, outputs: list[Output], now: float) -> list[Output]:
        """Take note of who is told something, which renews the lease of what they were told."""
        if self._silence.lease_s is not None:
            self._said_to((output.peer for output in outputs if isinstance(output, Send)), now)
        return outputs

    def _said_to(self, neighbours: Iterable[str], now: float) -> None:
        for neighbour in neighbours:
            self._silence.said(neighbour, now)

    def _hello(self, source: str, hello: Hello, now: float) -> None:
        """Take a Hello, or a part of one; when it is complete, it takes the place of all that was said before."""
        link = self._link(source)
        if link.has_greeted:
            return  # it came twice
        if link.greeting is None:
            if hello.part:
                return
            link.greeting = PartialHello()
            self._silence.lease(source, hello.lease_s, now)
        if not link.greeting.take(hello):
            return
        greeting, link.greeting = link.greeting, None
        link.has_greeted, link.is_renewed = True, False
        self._change(Advertise, source, greeting.advertisements, (), None, now)
        self._change(Subscribe, source, greeting.entries, (), None, now)
        for said, highest in zip((link.filters, link.advertisements), greeting.highest, strict=True):
            said.numbers.rise(highest)
        self._end_renewal(Advertise, source, now)
        self._end_renewal(Subscribe, source, now)

    def _end_renewal(self, kind: type[Any], source: str, now: float) -> None:
        """If a neighbour has said all that it has to say of one kind, what it said before and not again is gone."""
        link = self._links[source]
        said = link.filters if kind is Subscribe else link.advertisements
        if link.has_greeted and said.is_complete:
            for key in said.names.unsaid():
                (self._unsubscribe if kind is Subscribe else self._unadvertise)(source, key, now)
        if kind is Advertise:
            self._begin(source, link)

    def _change(
        self,
        kind: type[Any],
        source: str,
        entries: tuple[Entry, ...],
        keys: tuple[Key, ...],
        lease_s: float | None,
        now: float,
    ) -> list[Output]:
        """Add, then remove: nobody is without a filter in between.

        Return what a client may not have, and what one hears that begins to listen to announcements.
        """
        rejected: list[Output] = []
        if (link := self._links.get(source)) is not None and not link.has_greeted:
            if link.greeting is not None:
                change = link.greeting.change_filters if kind is Subscribe else link.greeting.change_advertisements
                change(entries, keys)
                return []
            if link.is_renewed:
                return []  # it said so in its life before
        add, remove = (
            (self._subscribe, self._unsubscribe) if kind is Subscribe else (self._advertise, self._unadvertise)
        )
        is_client = source in self._clients
        for entry in entries:
            if is_client and (reason := self._objection_to(entry)):
                rejected.append(Reject(source, entry.key, reason))
                continue
            reminds = (
                is_client
                and kind is Subscribe
                and not isinstance(entry.filter, Ranked)
                and self.table.of(source).get(entry.key) != entry.filter
            )
            add(source, entry, now)
            if reminds and self._announces:
                rejected += self._reminders(source, entry, now)
            if is_client:
                self._leases.lease((source, kind, entry.key), None if lease_s is None else now + lease_s)
        for key in (
            keys if link is None else _forgotten(keys, link.filters if kind is Subscribe else link.advertisements)
        ):
            remove(source, key, now)
        return rejected

    def _objection_to(self, entry: Entry) -> str | None:
        """Return why a client may not have what it says; None if it may."""
        reason = self.table.objection(entry.condition)
        if reason is None and isinstance(entry.filter, Ranked):
            reason = self.desk.objection(entry.filter)
        return reason

    def _conclude(self) -> None:
        """Find out which neighbours are told all that they must know, because all others have said it.

        Whoever was started anew says so only then: what it said in its life before stays in force until its own
        neighbours have told it what it told then.
        """
        if not any(link.is_awaiting for link in self._links.values()):
            return
        if self._expected:
            return
        filters = sum(not link.are_filters_final for link in self._links.values())
        advertisements = sum(not link.are_advertisements_final for link in self._links.values())
        for link in self._links.values():
            link.conclude(
                filters=filters <= (not link.are_filters_final)
                and (self.advertising is None or link.are_advertisements_final),
                advertisements=advertisements <= (not link.are_advertisements_final),
            )

    def _told(self, now: float, is_removal: bool) -> list[Output]:
        """Return what neighbours are told of what changed, and whom announcements go to, now that all has changed."""
        self._conclude()
        outputs: list[Output] = [
            Send(peer, each)
            for peer, link in self._links.items()
            for each in link.messages(is_removal, self._most_entries)
        ]
        announced, self._announced = self._announced, []
        for said in announced:
            outputs += self._route(self._stamped(said, _OWN, now), _OWN, now)
        return outputs

    # -- Subscriptions

    def _subscribe(self, source: str, entry: Entry, now: float) -> None:
        if source in self._links:
            said = self._links[source].filters
            if (named := _named_here(entry, said)) is None:
                return
            number, entry = entry.key, self._as_far_as_it_may_leave(named, self._links[source])
            if number in _FOR_THE_TIME_BEING:
                said.provisional[entry.key] = number
                self._add_provisional(source, entry)
                return
        if (source, entry.key) in self.table:
            if self._wanted_as(source, entry.key) == entry.filter:
                if source in self._clients:
                    self.table.prioritise(source, entry.key, entry.priority)
                return
            place = source, entry.key
            asked = {place: self._asked[place]} if place in self._asked else {}
            self._unsubscribe(source, entry.key, now)
            self._asked |= asked
        if isinstance(entry.filter, Ranked):
            self.desk.add(source, entry.key, entry.filter, now)
        self._add_filter(source, entry, now)

    def _wanted_as(self, source: str, key: Key) -> Expression | Ranked:
        """Return what a peer said under a key that is there."""
        return self.desk.wanted(source, key) or self.table.of(source)[key]

    def _add_provisional(self, source: str, entry: Entry) -> None:
        """Let events go where anything may be wanted; nobody else hears of that."""
        self.table.add(source, entry.key, entry.condition, entry.hops)
        self._interests.add(source, entry.key, entry.condition)

    def _add_filter(self, source: str, entry: Entry, now: float) -> None:
        """Let a filter count that is not there yet; of a ranked subscription, the one that others are told."""
        expression = entry.filter
        if isinstance(expression, Ranked):
            expression = self.desk.filter(source, entry.key)
        self._let_count(source, entry, expression)
        self._announce(Subscribe, source, entry.key, entry.filter, now)

    def _let_count(self, source: str, entry: Entry, expression: Expression) -> None:
        """Let what a peer wants count as a filter, here and for everybody else."""
        key = entry.key
        is_ranked = source in self._clients and self.desk.wanted(source, key) is not None
        self.table.add(source, key, expression, entry.hops, is_matched=not is_ranked)
        if entry.priority:
            self.table.prioritise(source, key, entry.priority)
        if entry.imperfection:
            self._imperfections[source, Subscribe, key] = entry.imperfection
        self._interests.add(source, key, expression)
        asked = self._asked.get((source, key), expression)
        if asked is not None:
            self._ask_neighbours(source, key, asked, entry.imperfection)

    def _ask_neighbours(self, source: str, key: Key, asked: Expression, imperfection: float = 0.0) -> None:
        if self._subscriptions is not None:
            self._subscriptions.add((source, key), asked)
        for neighbour, link in self._links.items():
            if neighbour != source:
                link.want((source, key), asked, imperfection, self._hops(source, key))

    def ask_for(self, client: str, key: Key, filter_: Expression | None, now: float) -> list[Output]:
        """Ask neighbours for something else than a client's subscription says, or for nothing; return what to send.

        The client gets what its subscription wants of whatever comes, as before. This is for a home that knows better
        than the subscription what can be of use just now (`StepRequests`). It may be said before the subscription is
        made, and ends with it.

        >>> import tamis
        >>> broker = Broker("middle")
        >>> broker.attach("ann"), broker.connect("north", 0.0)[0].peer
        (None, 'north')
        >>> _ = broker.receive(Subscribe((Entry("both", tamis.parse("a = 1 OR b = 2")),)), "ann", 0.0)
        >>> for output in broker.ask_for("ann", "both", tamis.parse("a = 1"), 1.0):
        ...     print(output.peer, *(entry.filter for entry in output.message.entries), output.message.replaces)
        north a = 1 (0,)
        >>> [output.client for output in broker.receive(Publish("e1", {"b": 2}), "north", 2.0)]
        ['ann']
        """
        self._client(client)
        if filter_ is not None and (reason := self.table.objection(filter_)):
            raise MessageError(f"{str(filter_)!r:.80} in the place of {key!r}: {reason}", "a filter of our schema")
        ended = self.advance(now) if self._is_due(now) else []
        place = client, key
        wanted = self.table.of(client).get(key)
        before = self._asked.get(place, wanted)
        self._asked[place] = filter_
        if wanted is None or before == filter_:
            return self._sent(ended, now)
        if before is not None:
            self._let_count_no_more(client, key, before)
        if filter_ is not None:
            self._ask_neighbours(client, key, filter_)
        return self._sent(ended + self._told(now, is_removal=filter_ is None), now)

    def _as_far_as_it_may_leave(self, entry: Entry, link: Link) -> Entry:
        """Return what a neighbour wants as far as it may have it; what it said is remembered."""
        if link.guard.may_leave is None:
            return entry
        link.said_filters[entry.key] = entry.condition
        return replace(entry, filter=link.guard.passed(entry.condition))

    def _unsubscribe(self, source: str, key: Key, now: float) -> None:
        if (source, key) not in self.table:
            return  # it is what the sender wants
        wanted = self._wanted_as(source, key)
        self.desk.remove(source, key)
        expression = self.table.remove(source, key)
        if source in self._links:
            self._links[source].said_filters.pop(key, None)
        self._leases.forget((source, Subscribe, key))
        self._imperfections.pop((source, Subscribe, key), None)
        self._interests.remove(source, key)
        if self._is_provisional(source, key):
            del self._links[source].filters.provisional[key]
            self._end_renewal(Subscribe, source, now)
            return
        asked = self._asked.pop((source, key), expression)
        if asked is not None:
            self._let_count_no_more(source, key, asked)
        self._announce(Unsubscribe, source, key, wanted, now)

    def _let_count_no_more(self, source: str, key: Key, expression: Expression) -> None:
        if self._subscriptions is not None:
            self._subscriptions.remove((source, key))
        for link in self._links.values():
            link.unwant((source, key), expression)

    def _moves(self, now: float) -> list[Output]:
        if not (moved := self.desk.moved()):
            return []
        for client, key, expression in moved:
            priority = self.table.priority(client, key)
            before = self.table.remove(client, key)
            self._interests.remove(client, key)
            asked = self._asked.get((client, key), before)
            if asked is not None:
                self._let_count_no_more(client, key, asked)
            self._let_count(client, Entry(key, expression, priority=priority), expression)
        return self._told(now, is_removal=False)

    def _hops(self, source: str, key: Key) -> int:
        """Return how many links lie between this broker and the subscriber of an entry, at least."""
        return self.table.hops(source, key) + 1 if source in self._links else 0

    # -- Advertisements

    def _advertise(self, source: str, entry: Entry, now: float) -> None:
        link = self._links.get(source)
        is_provisional = False
        if link is not None:
            if (named := _named_here(entry, link.advertisements)) is None:
                return
            is_provisional = entry.key in _FOR_THE_TIME_BEING
            if is_provisional:
                link.advertisements.provisional[named.key] = entry.key
            entry = named
        key, expression = entry.key, entry.condition
        heeded = expression
        if link is not None:
            heeded = expression if is_provisional else self._heeding.heeded(expression)
            link.advertise(key, expression, heeded)
            if entry.imperfection:
                self._imperfections[source, Advertise, key] = entry.imperfection
        else:
            known = self._clients[source].get(key)
            if known == expression:
                return
            if known is not None:
                self._unadvertise(source, key, now)
            self._clients[source][key] = expression
        if not is_provisional:
            for neighbour, other in self._links.items():
                if neighbour != source:
                    other.offer((source, key), expression, entry.imperfection)
        if link is not None:
            self._tell_what_concerns(source, link, key, heeded)
        self._announce(Advertise, source, entry.key, expression, now)

    def _tell_what_concerns(self, source: str, link: Link, key: Key, heeded: Expression) -> None:
        """Tell a neighbour of the filters that overlap what it advertised under a key, and that it does not know."""
        if self._subscriptions is None or not link.has_begun:
            return
        already_wanted = link.wanted
        for peer, wanted in self._subscriptions.overlapping(
            heeded, only=lambda each: each[0] != source and each not in already_wanted
        ):
            imperfection, hops = self._imperfection(peer, Subscribe, wanted), self._hops(peer, wanted)
            asked = self._asked.get((peer, wanted)) or self.table.of(peer)[wanted]
            link.want_because(key, (peer, wanted), asked, imperfection, hops)

    def _unadvertise(self, source: str, key: Key, now: float) -> None:
        link = self._links.get(source)
        if key not in (self._clients[source] if link is None else link.advertised):
            return
        expression = self._clients[source].pop(key) if link is None else link.unadvertise(key)
        self._leases.forget((source, Advertise, key))
        self._imperfections.pop((source, Advertise, key), None)
        if link is not None and key in link.advertisements.provisional:
            del link.advertisements.provisional[key]
            self._end_renewal(Advertise, source, now)
            return
        for other in self._links.values():
            other.withdraw((source, key), expression)
        self._announce(Unadvertise, source, key, expression, now)

    # -- Keeping quiet

    def is_wanted(self, filter_: Expression, besides: str | None = None) -> bool:
        """May anybody want an event that a filter matches, as far as this broker knows; other than one peer?

        "No" is certain: what neighbours told covers all that is wanted behind them, if it has spread, and with
        advertisements, if the asker has advertised such events. "Yes" may be too much where strategies are imperfect.
        """
        return self._interests.are_there(filter_, besides)

    def _answered(self, client: str, key: Key, filter_: Expression) -> list[Output]:
        if reason := self.table.objection(filter_):
            return [Reject(client, key, reason)]
        return [Answer(client, key, self.is_wanted(filter_, besides=client))]

    def _reminders(self, client: str, entry: Entry, now: float) -> list[Output]:
        """Return what a client hears that begins to listen: what this broker knows of its clients and neighbours."""
        if not announcements.may_match(entry.condition, self._schema):
            return []
        known: list[tuple[type[Any], str, Key, Expression | Ranked]] = [
            (Subscribe, peer, key, self._wanted_as(peer, key))
            for peer, key, _ in self.table.entries()
            if (peer, key) != (client, entry.key)
        ]
        known += [(Advertise, *each) for each in self._all_advertisements() if each[0] != _OWN]
        deliveries: list[Output] = []
        for kind, peer, key, expression in known:
            named = (self.name, peer) if peer in self._clients else (peer, "")
            self._announced_count += 1
            said = announcements.reminder(kind, self.name, *named, key, expression, self._announced_count, now)
            if holds(entry.condition, said.event, self._schema):
                deliveries.append(Deliver(client, said, (entry.key,)))
        return deliveries

    def _announce(self, kind: type[Any], source: str, key: Key, wanted: Expression | Ranked, now: float) -> None:
        if self._announces and source in self._clients:
            self._announced_count += 1
            self._announced.append(
                announcements.announcement(kind, self.name, source, key, wanted, self._announced_count, now)
            )


def _named(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise NamelessError(name)
    return name


def _named_here(entry: Entry, said: Said) -> Entry | None:
    """Return what a neighbour says under the name that it has here; None if it is known already."""
    if not said.numbers.take(entry.key):
        return None
    if entry.key not in _FOR_THE_TIME_BEING and said.names.recognised(entry):
        return None
    name = said.names.given(entry)
    return entry if name == entry.key else replace(entry, key=name)


def _forgotten(numbers: Iterable[Key], said: Said) -> list[Key]:
    """Return the names that filters have here, which a neighbour takes back."""
    return [name for number in numbers if (name := said.names.forget(number)) is not None]
