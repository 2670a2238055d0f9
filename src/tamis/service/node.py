"""What does a broker of the service do? The node: a state machine without I/O.

The node has no socket, file, clock, thread or chance. Whoever drives it hands it requests, the time, and what the
disks say, and carries out what it returns: `hear` and `take` for requests, `on_disk` and `kept` when the log and the
state are written, `take_read` for what was read, `tick` for time, `work` for a slice of catching up. What it wants said
about an event is held back until the event is on disk (`gate`).

The way of an event: it is numbered and handed to the log; while the disk works, the broker says who wants it; when it
is on disk, its publisher is answered and its deliveries go out. In a log that several nodes share, positions are given
by the log, and everything is matched when it comes back from there (`follow`).
"""

from __future__ import annotations

from collections import Counter, deque
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.errors import EventError
from tamis.service import event_keys, unwanted
from tamis.service.catching_up import Stride, Window, lowest_event, skipped, together
from tamis.service.changes import ResumeKept, WebhookGone
from tamis.service.dispatching import Dispatcher
from tamis.service.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    MisfitError,
    NotFoundError,
    OverloadedError,
    ServiceError,
    StorageFullError,
    TooLargeError,
)
from tamis.service.event_keys import EventKeys, event_key
from tamis.service.gate import Gate
from tamis.service.grouping import PublicationGroup, WaitingPublication
from tamis.service.interest import CloseInterest, Interest
from tamis.service.links.graph_neighbours import GraphNeighbours
from tamis.service.links.neighbours import Neighbours, mark_of
from tamis.service.links.requests import (
    LinkAcked,
    LinkBehind,
    LinkChange,
    LinkControl,
    LinkFlood,
    LinkForget,
    LinkJoined,
    LinkOpen,
    LinksDescribe,
    Relay,
)
from tamis.service.log.base import LATE, PASSED_ON, PLAIN, REROUTED, UNWANTED, Block, Gap, end_of, is_rerouted
from tamis.service.messages import (
    Accepted,
    Acknowledge,
    Append,
    Attach,
    Attached,
    CaughtUp,
    Close,
    Configure,
    Delivery,
    Describe,
    Described,
    Ended,
    Forget,
    Incoming,
    Keep,
    KeepWebhook,
    Match,
    Matched,
    Output,
    Publish,
    Published,
    Read,
    Reasons,
    Refused,
    Request,
    Revive,
    Say,
    Session,
    Subscribe,
    Subscribed,
    Take,
    Unsubscribe,
    Why,
    Wrote,
)
from tamis.service.positions import Position
from tamis.service.recent import Recent
from tamis.service.roster import Roster, highest_position
from tamis.service.standing import TIME, TIME_EVENT, NeededEvent, Resume, StandingHost, is_stateful
from tamis.service.steps import Steps
from tamis.service.subscribers import PAIR_BYTES, looked_of
from tamis.service.windows import WindowLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.routing import Broker
    from tamis.service.changes import Change, Stored
    from tamis.service.links.neighbours import Neighbour
    from tamis.service.permissions import Permissions
    from tamis.service.subscribers import Replay, Subscriber

FLOORS_EVERY_S = 0.2
ALL_FLOORS_EVERY_S = 30.0
"""So often are the floors of those kept who came on without a delivery, so that a restart need not look again."""
WARMED_WITH = 1_024
"""So many of the latest events are matched once more before a node is ready."""
FULL_PAUSE_S = 1.0
"""So long after the disk was full nothing is tried."""
MOST_MATCHES = 200_000
"""So many pairs of a subscriber and a key are said of several events in one answer."""


class NodeLimits(msgspec.Struct, frozen=True):
    """How much a node keeps for others."""

    subscriptions: int = 10_000
    """Of one owner."""
    subscribers: int = 1_000
    """Of one owner, durable ones."""
    queue_events: int = 1_024
    """Found and not sent, of one subscriber; a passing one loses what is beyond."""
    queue_bytes: int = 1_000_000
    waiting_bytes: int = 64_000_000
    """Found and not sent, of all subscribers; of those who take nothing the furthest behind let go of what is over."""
    recent_bytes: int = 64_000_000
    """Of the latest events, kept in memory."""
    keys: int = event_keys.MOST
    """Events by which a repeated one is recognised, at least."""
    keys_s: float = event_keys.LEAST_S
    """For how long it is, at least."""


class LogFacts(msgspec.Struct, frozen=True):
    """What a node must know of its log when it starts."""

    first: int = 1
    last: int = 0
    time_us: int = 0
    is_shared: bool = False
    is_durable: bool = True
    """Whether what is acknowledged is on disk, and not only on its way there."""
    gaps: tuple[Gap, ...] = ()
    block_positions: int = 1
    """A block takes a multiple of so many positions, the last of which may be of no event."""


class Node:
    """One broker as a service, without its sockets and disks."""

    def __init__(
        self,
        broker: Broker,
        permissions: Permissions,
        read_record: Callable[[bytes, int], Mapping[str, Any]],
        stored: Stored,
        log: LogFacts,
        *,
        now: float,
        schema: Schema | None = None,
        limits: NodeLimits | None = None,
        life: str = "",
        reroute_after_s: float | None = None,
        windows: WindowLimits | None = None,
        steps_while_open: bool = False,
    ) -> None:
        """`steps_while_open`: neighbours are asked for later steps of a sequence only while a run of it is open."""
        self.limits = limits or NodeLimits()
        self._block_positions = log.block_positions
        self.head = max(self._end_of(log.last), 0 if log.is_shared else highest_position(stored))
        """The highest position that was given to an event, or that the state speaks of."""
        self.first = log.first if log.first > log.block_positions else 1
        self.gate = Gate(logged=self._end_of(log.last))
        ceiling = max(event_keys.CEILING, 2 * self.limits.keys)
        self.keys = EventKeys(self.limits.keys, self.limits.keys_s, ceiling)
        self._windows = windows or WindowLimits()
        self.roster = Roster(
            broker, schema, permissions, self.limits.subscriptions, self.limits.subscribers, self._windows,
            Steps(broker, schema) if steps_while_open else None,
        )  # fmt: skip
        self.dispatcher = Dispatcher(self.gate)
        self._broker, self._schema, self._read_record = broker, schema, read_record
        self._interest = Interest(broker)
        self._close_interest = CloseInterest(schema)
        self._stride = Stride()
        self._is_shared, self.is_durable, self._gaps = log.is_shared, log.is_durable, log.gaps
        self._time_us = log.time_us + 1 if log.time_us else 0
        """When the next block is taken, at the earliest: what was told at a time can have no event of that time."""
        self._recent = Recent(self.limits.recent_bytes, log.last)
        self._live: dict[str, Subscriber] = {}
        self._behind: dict[str, Subscriber] = {}
        self._remembering: dict[str, Subscriber] = {}
        """Those that are live and have subscriptions that remember earlier events."""
        self._touched: deque[tuple[int, list[Subscriber]]] = deque()
        """Who was found something in blocks that are not on disk, by their last positions."""
        self._kept_count = self._urgent_count = 0
        self._floors_at_s = self._all_floors_at_s = now
        self._keeping: deque[tuple[int, Replay]] = deque()
        """Replays that begin when they are kept, by the numbers of their changes."""
        self._asked_from: int | None = None
        """The first event that is being read for the pass, if any is."""
        self._waiting_most = 0
        """At most so much memory is taken by what waits; counted anew when that is too much."""
        self._full_at_s = float("-inf")
        self._last_replay = -1
        self._expected: deque[tuple[Block, list[WaitingPublication]]] = deque()
        """Blocks that were handed to a shared log and have no positions yet."""
        self._time_asked_us = 0
        """What time it was in the block that was handed to a shared log to say so; 0 if its time has come."""
        self._repetitions: set[int] = set()
        """Positions of a shared log that nobody gets: of an event that was taken before, or that misfits the schema."""
        self._unmatched: tuple[Block, list[Mapping[str, Any]], list[WaitingPublication], list[str]] | None = None
        """What was accepted, and is to be matched next."""
        self.counts = {"taken": 0, "known": 0, "refused": 0, "relayed": 0}
        """Events; what was relayed by a neighbour is among those that were taken."""
        self.refusals: Counter[str] = Counter()
        """Events that were refused, by the kind of the error."""
        # A shared log cannot be made to go on behind the replays that were asked for at its head.
        sent_through = Position(self.head + 1, self.head) if log.is_shared else Position.of(self.head)
        self.roster.restore(stored, sent_through, now)
        for subscriber in self.roster:
            self._note_steps(subscriber)
        self.neighbours: Neighbours = (
            Neighbours(self, broker, schema, life)
            if reroute_after_s is None
            else GraphNeighbours(self, broker, schema, life, reroute_after_s)
        )
        """`life` is a name that no other start of a broker has: sessions of links are called by it."""
        self.neighbours.restore(stored.links, stored.floors, self.head, now)
        changes = self.roster.permit(permissions, self.head, now)
        self._start: list[Output] = self._keep(changes)

    def start(self) -> list[Output]:
        """Return what is to be kept, before anything is heard, because permissions are others than they were."""
        start, self._start = self._start, []
        return start

    def remember(self, blocks: Iterable[Block]) -> None:
        """Learn the keys of the latest events of the log, oldest first, so that a repetition is recognised."""
        for block in blocks:
            self._learn_keys(block)

    def _learn_keys(self, block: Block) -> None:
        new: dict[str, int] = {}
        for position, (body, flag) in enumerate(zip(block.events, block.flags, strict=True), block.first):
            if is_rerouted(flag):
                continue
            key = event_key(body)
            if self.keys.get(key) is not None or key in new:
                self._repetitions.add(position)
            else:
                new[key] = position
        self.keys.remember(new.items(), block.time_us)

    def warm(self, blocks: Iterable[Block] = ()) -> None:
        """Match groups of several sizes for nothing, so that no event has to wait for kernels to be compiled.

        Those are the latest events of the log, if there are any: subscriptions are laid out by what comes. And every
        subscription is read once, to know whether it asks for what nobody wants: of 100,000 that takes over a second.
        """
        unwanted.is_asked_for(self._broker)
        pairs = [pair for block in blocks for pair in zip(block.events, block.flags, strict=True)]
        records = [record for body, flag in pairs[-WARMED_WITH:] if (record := self._record(body, flag)) is not None]
        self._interest.warm(records)

    def settle(self) -> None:
        """Lay out what was subscribed last, so that single events need not look for it; cheap if nothing was."""
        self._interest.compile()

    @property
    def open_count(self) -> int:
        """How many subscriptions are not laid out yet."""
        return self._interest.open_count

    @property
    def needed(self) -> int:
        """The lowest position that a durable subscriber still needs."""
        lowest = [self.head + 1]
        for subscriber in self._everybody():
            if subscriber.is_durable:
                floor = subscriber.floor(self.gate.logged)
                lowest.append(looked_of(floor) + 1)
                if subscriber.stateful:
                    lowest.append(subscriber.stateful_from + 1)
                lowest += [
                    max(replay.first, floor.event + 1) if floor.head == replay.since + 1 else replay.first
                    for replay in (*subscriber.replays, *subscriber.ending)
                    if replay.end > floor
                ]
        return min(lowest)

    @property
    def remembers_from(self) -> int | None:
        """The lowest position behind which a subscriber that remembers earlier events begins; None if none does."""
        return min((each.stateful_from for each in self.roster if each.stateful), default=None)

    @property
    def kept_all(self) -> bool:
        """Is everything on disk that was to be kept?"""
        return self.gate.kept >= self._kept_count

    @property
    def urgent_count(self) -> int:
        """The number of the last change that others wait for."""
        return self._urgent_count

    # -- Requests

    def hear(self, request: Request, session: Session, now: float) -> list[Output]:
        """Do what a request asks for; return what to say, write and read."""
        if isinstance(request, Publish):
            return self.take([(session, request)], now)
        try:
            outputs = self._heard(request, session, now)
            return outputs + self._told(now) if self.neighbours else outputs
        except ServiceError as error:  # perhaps because of what was changed and is not kept yet
            refusal = Say(session.number, Refused(getattr(request, "request", 0), error))
            return self.gate.hold(refusal, kept=self._urgent_count)

    def _heard(self, request: Request, session: Session, now: float) -> list[Output]:
        match request:
            case Subscribe():
                return self._subscribe(request, session, now)
            case Unsubscribe(number, name, keys):
                subscriber = self.roster.named(name, session.principal)
                changes = self.roster.unsubscribe(subscriber, keys, now)
                self._note_memory(subscriber)
                return self.keep_all(changes, session, Accepted(number)) + self.sent(subscriber, now)
            case Configure(number, name, settings):
                subscriber, changes = self.roster.made(name, session.principal, True, self.head, settings)
                return self.keep_all(changes, session, Accepted(number))
            case Forget(number, name):
                return self._forget(self.roster.named(name, session.principal), session, Accepted(number), now)
            case Describe(number, name):
                principal = session.principal
                chosen = [self.roster.named(name, principal)] if name else self.roster.used_by(principal)
                facts = tuple(self.roster.facts(subscriber, self.gate.logged) for subscriber in chosen)
                return [Say(session.number, Described(number, facts))]
            case Attach():
                return self._attach(request, session, now)
            case Take(_, name):
                subscriber = self.roster.named(name, session.principal)
                self.roster.check_sight(subscriber, session.principal)
                self.dispatcher.poll(subscriber, request, session, now)
                subscriber.seen_us = int(now * 1e6)
                return self.sent(subscriber, now)
            case Acknowledge(number, name):
                subscriber = self.roster.named(name, session.principal)
                changes = self.dispatcher.acknowledge(subscriber, request, session.number, self.head, now)
                subscriber.seen_us = int(now * 1e6)
                answer = Accepted(number) if number else None
                return self._keep(changes, session, answer) + self.sent(subscriber, now)
            case Wrote(name):
                if name not in self.roster.subscribers:
                    return []
                subscriber = self.roster.subscribers[name]
                self.dispatcher.wrote(subscriber, request, session.number)
                return self.sent(subscriber, now)
            case Revive(number, name):
                subscriber = self.roster.named(name, session.principal)
                self.dispatcher.revive(subscriber, request)
                return [Say(session.number, Accepted(number)), *self.sent(subscriber, now)]
            case Match(number, records):
                return [Say(session.number, Matched(number, self._matches(records, session)))]
            case Why(number, name):
                subscriber = self.roster.named(name, session.principal)
                self.roster.check_sight(subscriber, session.principal)
                event = self._event_of(request)
                return [Say(session.number, Reasons(number, event, *self.roster.versions_for(subscriber, event)))]
            case KeepWebhook(number, name, webhook):
                subscriber = self.roster.named(name, session.principal)
                self.roster.check_sight(subscriber, session.principal)
                if not subscriber.is_durable:
                    raise ConflictError(f"the subscriber {name!r} is passing", "a durable subscriber")
                return self.keep_all([WebhookGone(name) if webhook is None else webhook], session, Accepted(number))
            case Close():
                return self._close(session.number, now)
            case LinkOpen() | LinkJoined() | LinkControl() | LinkAcked() | LinkBehind() | LinkFlood():
                return self.neighbours.hear(request, session, now)
            case LinkForget() | LinkChange() | LinksDescribe():
                if not self.roster.permissions.is_admin(session.principal):
                    raise ForbiddenError("only an admin may see and change links", "a token with the role admin")
                return self.neighbours.hear(request, session, now)
        raise AssertionError(f"{type(request).__name__} is not a request")

    def _count_refused(self, error: ServiceError, count: int) -> None:
        self.counts["refused"] += count
        self.refusals[type(error).__name__.removesuffix("Error")] += count

    def _told(self, now: float) -> list[Output]:
        """Return what neighbours are told of what has changed here."""
        self.neighbours.tell(self.roster.take_to_neighbours())
        return self.neighbours.flushed(now)

    def _everybody(self) -> Iterator[Subscriber]:
        """Return all who take events: subscribers and neighbours."""
        return chain(self.roster, self.neighbours.subscribers)

    def _keep(
        self, changes: Sequence[Change], session: Session | None = None, answer: Any = None, *, is_urgent: bool = True
    ) -> list[Output]:
        """Let changes be kept; the answer is said when they are."""
        outputs: list[Output] = []
        if changes:
            self._kept_count += 1
            self._urgent_count = self._kept_count if is_urgent else self._urgent_count
            outputs.append(Keep(self._kept_count, tuple(changes), is_urgent))
        if session is not None and answer is not None:
            outputs += self.gate.hold(Say(session.number, answer), kept=self._kept_count if changes else 0)
        return outputs

    def keep_all(self, changes: Sequence[Change], session: Session | None, answer: Any) -> list[Output]:
        """Let changes be kept; the answer is said when they are, and whatever was to be kept before.

        So a request that changes nothing, because somebody who had no answer asks for the same once more, is not
        answered before what it asked for is on disk.
        """
        outputs = self._keep(changes)
        if session is not None and answer is not None:
            outputs += self.gate.hold(Say(session.number, answer), kept=self._urgent_count)
        return outputs

    # -- Subscriptions

    def _subscribe(self, request: Subscribe, session: Session, now: float) -> list[Output]:
        principal, roster = session.principal, self.roster
        known = roster.subscribers.get(request.subscriber)
        effective = roster.checked(known, request.subscriptions, principal)
        versions = {} if known is None else {key: each.number for key, each in known.subscriptions.items()}
        if request.replay_from and (
            stateful := [key for key, each in request.subscriptions.items() if is_stateful(each.filter)]
        ):
            raise BadRequestError(
                f"the subscription {stateful[0]!r} remembers events from now on, and has no past",
                "a subscription without 'from', or conditions",
            )
        is_replay = 0 < request.replay_from <= self.head and bool(request.subscriptions)
        if is_replay and known is not None and roster.is_replaying(known, request, effective, self.head):
            is_replay = False  # somebody who had no answer asks once more
        if is_replay and self._is_shared and known is not None and known.last_replay == self.head:
            raise OverloadedError(
                f"the subscriber {known.name!r} has a replay that was asked for at the same position",
                "another try after the next event",
            )
        subscriber, changes = roster.made(request.subscriber, principal, request.is_durable, self.head)
        subscriber.made_by = subscriber.made_by or session.number
        if is_replay and self.head == self._last_replay and not self._is_shared:
            self.head += 1  # two replays that were asked for at one position would have deliveries of one position
        since = self.head
        changes += roster.subscribe(subscriber, request.subscriptions, effective, principal, since, now)
        end_s = now + request.lease_s if request.lease_s else None
        changes += roster.lease(subscriber, request.subscriptions, end_s)
        if request.removes_others:
            others = tuple(key for key in subscriber.subscriptions if key not in request.subscriptions)
            if others:
                changes += roster.unsubscribe(subscriber, others, now)
        self._note_memory(subscriber)
        if is_replay:
            self._last_replay = subscriber.last_replay = since
            self._leave_live(subscriber)
            changes += roster.replay(subscriber, request.subscriptions, request.replay_from, since)
            self._keeping.append((self._kept_count + 1, subscriber.replays[-1]))
        subscriber.is_catching_up |= request.replay_from > 0
        answer = Subscribed(
            request.request,
            since,
            any(key not in versions or versions[key] != subscriber.subscriptions[key].number for key in effective),
            {key: str(expression) for key, expression in effective.items()},
            remembering=tuple(key for key, subscription in effective.items() if is_stateful(subscription)),
        )
        if not self.neighbours:
            outputs = self.keep_all(changes, session, answer)
        else:
            self.neighbours.tell(self.roster.take_to_neighbours())
            outputs = self._keep(changes)
            outputs += self.neighbours.wait(session.number, answer, self._urgent_count, request.settle_s, now)
        outputs += self._part(subscriber, now)
        return outputs + self.sent(subscriber, now)

    def _forget(self, subscriber: Subscriber, session: Session | None, answer: Any, now: float) -> list[Output]:
        outputs = self.dispatcher.tell(subscriber, Ended(subscriber.name, "the subscriber was forgotten"))
        outputs += [
            Say(poll.session, Ended(subscriber.name, "the subscriber was forgotten")) for poll in subscriber.polls
        ]
        self._unfollow(subscriber.name)
        self._interest.leave(subscriber.name)
        for group in (self._behind, self.dispatcher.dirty):
            group.pop(subscriber.name, None)
        subscriber.consumers, subscriber.polls, subscriber.polled = {}, [], None
        return outputs + self.keep_all(self.roster.forget(subscriber, now), session, answer)

    def permit(self, permissions: Permissions, now: float) -> list[Output]:
        """Take other permissions; what subscribers may receive changes with the next event.

        Whoever may not use a subscriber any more, or not see what it gets, no longer consumes it.
        """
        outputs = self._keep(self.roster.permit(permissions, self.head, now))
        for subscriber in list(self.roster):
            self._note_memory(subscriber)
            outputs += self._part(subscriber, now)
        return outputs + self._told(now)

    def _part(self, subscriber: Subscriber, now: float) -> list[Output]:
        """Part a subscriber from consumers that may not have what it gets."""
        outputs: list[Output] = []
        for consumer in list(subscriber.consumers.values()):
            if consumer.principal is None or self.roster.may_consume(subscriber, consumer.principal):
                continue
            outputs.append(Say(consumer.session, Ended(subscriber.name, "it may not be used any more")))
            outputs += self.detach(subscriber, consumer.session, now)
        return outputs

    # -- Consumers

    def _attach(self, request: Attach, session: Session, now: float) -> list[Output]:
        subscriber, changes = self.roster.made(request.subscriber, session.principal, request.is_durable, self.head)
        self.roster.check_sight(subscriber, session.principal)
        outputs = self.dispatcher.attach(subscriber, request, session, self.head)
        subscriber.seen_us = int(now * 1e6)
        subscriber.is_catching_up |= not subscriber.is_live and not self._is_at_head(subscriber)
        floor = subscriber.floor(self.gate.logged)
        answer = Attached(request.request, subscriber.name, self.gate.logged, floor)
        outputs += self._keep(changes, session, answer)
        outputs += [Say(session.number, loss.lost) for loss in subscriber.losses]
        return outputs + self.sent(subscriber, now)

    def _close(self, session: int, now: float) -> list[Output]:
        outputs = self.neighbours.closed(session, now)
        for subscriber in [each for each in self.roster if each.is_used_by(session)]:
            outputs += self.detach(subscriber, session, now)
        return outputs

    def detach(self, subscriber: Subscriber, session: int, now: float) -> list[Output]:
        self._settle(subscriber)
        self.dispatcher.detach(subscriber, session)
        subscriber.seen_us = int(now * 1e6)
        if not subscriber.is_durable and not subscriber.consumers:
            return self._forget(subscriber, None, None, now)
        return self.sent(subscriber, now)

    def _settle(self, subscriber: Subscriber) -> None:
        """Write down how far a live subscriber has come, before it is no longer live."""
        if subscriber.is_live:
            subscriber.looked = self.head
            subscriber.passed = max(subscriber.passed, Position.of(self.head))

    def sent(self, subscriber: Subscriber, now: float) -> list[Output]:
        """Return what goes out to a subscriber now, and see to whether it is live or behind."""
        name = subscriber.name
        is_known = (
            self.neighbours.is_known(subscriber)
            if subscriber.is_neighbour
            else (self.roster.subscribers.get(name) is subscriber)
        )
        if not is_known:
            return []  # it was forgotten while its events were on their way to the disk
        outputs = self.dispatcher.pump(subscriber, now)
        if subscriber.is_neighbour:
            self.neighbours.count(outputs)
        if buried := self.dispatcher.take_buried():
            outputs += self._keep(buried)
        if not subscriber.is_live:
            self._unfollow(name)
        if not subscriber.is_attended:
            if subscriber.is_live or subscriber.deliveries.unacknowledged_count or subscriber.deliveries.queue_count:
                self._settle(subscriber)
                self.dispatcher.rewind(subscriber, subscriber.floor(self.gate.logged))
            self._unfollow(name)
            self._behind.pop(name, None)
        elif subscriber.is_live:
            if self._is_full(subscriber):
                if subscriber.is_durable:
                    self._leave_live(subscriber)
                else:
                    outputs += self.dispatcher.lose(subscriber)
        elif self._is_at_head(subscriber) and not self._is_full(subscriber):
            subscriber.is_live = True
            self._live[name] = subscriber
            self._note_memory(subscriber)
            self._interest.follow(name)
            self._behind.pop(name, None)
        else:
            self._behind[name] = subscriber
        if subscriber.is_live and subscriber.is_catching_up and not subscriber.deliveries.queue_count:
            subscriber.is_catching_up = False
            outputs += self.dispatcher.tell(subscriber, CaughtUp(name, self.gate.logged))
        return outputs

    def leave(self, subscriber: Subscriber) -> None:
        """Forget a neighbour that takes no more events."""
        self._unfollow(subscriber.name)
        for group in (self._behind, self.dispatcher.dirty):
            group.pop(subscriber.name, None)

    def _unfollow(self, name: str) -> None:
        self._remembering.pop(name, None)
        if self._live.pop(name, None) is not None and not self._has_steps(name):
            self._interest.leave(name)

    def _has_steps(self, name: str) -> bool:
        return self.roster.steps is not None and self.roster.steps.follows(name)

    def _note_steps(self, subscriber: Subscriber) -> None:
        """See to it that events for first steps of sequences are noticed, whether their subscriber is there or not."""
        if self.roster.steps is not None and not subscriber.is_live:
            follow = self._interest.follow if self._has_steps(subscriber.name) else self._interest.leave
            follow(subscriber.name)

    def _note_memory(self, subscriber: Subscriber) -> None:
        """See to it that a live subscriber which remembers earlier events has a host that takes new ones."""
        self._note_steps(subscriber)
        if subscriber.is_live and subscriber.stateful:
            subscriber.host = subscriber.host or self._new_host(subscriber)
            self._remembering[subscriber.name] = subscriber
        else:
            self._remembering.pop(subscriber.name, None)

    def _new_host(self, subscriber: Subscriber) -> StandingHost:
        resume = subscriber.resume or Resume(0)
        mark_every_s = self._windows.mark_every_s
        return StandingHost(resume, self._schema, self._broker.functions, mark_every_s, self._block_positions)

    def _leave_live(self, subscriber: Subscriber) -> None:
        if subscriber.is_live:
            self._settle(subscriber)
            subscriber.is_live = False
            self._unfollow(subscriber.name)
            self._behind[subscriber.name] = subscriber

    def _is_at_head(self, subscriber: Subscriber) -> bool:
        return not subscriber.replays and subscriber.looked >= self._recent.last

    def _is_full(self, subscriber: Subscriber) -> bool:
        deliveries = subscriber.deliveries
        return deliveries.queue_count >= self.limits.queue_events or deliveries.queue_bytes >= self.limits.queue_bytes

    # -- Events

    def take(self, publications: Sequence[tuple[Session, Publish]], now: float) -> list[Output]:
        """Take the events of several publications as one group; return what to write and, later, to answer."""
        return self.accept(publications, now) + self.match_taken(now)

    def accept(self, publications: Sequence[tuple[Session, Publish]], now: float) -> list[Output]:
        """Do the first half of `take`: number events, and return what to write. `match_taken` is the other half.

        Nothing else may come between them. Whoever drives the node hands the block to the disk first, which works while
        the events are matched.
        """
        assert self._unmatched is None, "what was accepted before is matched"
        outputs: list[Output] = []
        group = PublicationGroup(self.keys)
        for session, request in publications:
            neighbour: Neighbour | None = None
            if isinstance(request, Relay) and self.neighbours.is_stale(session.number):
                continue
            try:
                if isinstance(request, Relay):
                    neighbour = self.neighbours.sender(session.number)
                    events = self._passed(request.events, neighbour, now)
                else:
                    events = [self._checked(event, session, now) for event in request.events]
            except ServiceError as error:
                self._count_refused(error, len(request.events))
                outputs.append(Say(session.number, Refused(request.request, error)))
                continue
            group.add(session.number, request, events, neighbour)
        self.counts["known"] += group.known_count
        if not group.events:
            self._note_relayed(group.relayed, ())
            return outputs + self._answers(group.publications, (), ())
        events = group.events
        if not self._is_shared and unwanted.is_asked_for(self._broker) and self.neighbours.are_filtered:
            events = unwanted.marked(events, group.sources, self._interest)
        self._time_us = max(self._time_us, int(now * 1e6))
        self._leave_room()
        block = Block(
            self.head + 1,  # a shared log gives it another one
            self._time_us,
            tuple(event.body for event in events),
            bytes(event.flags for event in events),
        )
        outputs.append(Append(block))
        if self._is_shared:
            self._expected.append((block, group.publications))
            return outputs
        self.keys.remember(((key, block.first + index) for key, index in group.new.items()), self._time_us)
        self._unmatched = block, [event.record for event in events], group.publications, group.sources
        self._note_relayed(group.relayed, range(block.first, block.last + 1))
        return outputs

    def _leave_room(self) -> None:
        """Give the position behind a replay to no event: with it go the deliveries of the replay."""
        if self.head == self._last_replay and any(each.stateful for each in self.roster):
            self.head += 1

    def relay_again(self, events: Sequence[tuple[bytes, int]], source: Neighbour, now: float) -> list[Output]:
        """Take events of the log once more, for neighbours but the source alone: those behind it are elsewhere now."""
        records, bodies, flags = [], [], []
        for body, flag in events:
            record = self._record(body, flag)
            if record is not None:
                records.append(record)
                bodies.append(body)
                flags.append(flag & PASSED_ON | REROUTED | mark_of(source.number))
        if not records:
            return []
        self._time_us = max(self._time_us, int(now * 1e6))
        self._leave_room()
        block = Block(self.head + 1, self._time_us, tuple(bodies), bytes(flags))
        self._unmatched = block, records, [], [source.peer] * len(records)
        return [Append(block), *self.match_taken(now)]

    def match_taken(self, now: float) -> list[Output]:
        """Find out who wants the events that were accepted; return what to say of that."""
        if self._unmatched is None:
            return []
        (block, records, waiting, sources), self._unmatched = self._unmatched, None
        outputs: list[Output] = []
        is_counted = any(each.asks_wanted for each in waiting)
        wanted = self._found(block, records, now, outputs, sources, is_counted=is_counted)
        if wanted is not None:  # those who get what nobody wants do not count
            wanted = [0 if flag & UNWANTED else count for flag, count in zip(block.flags, wanted, strict=True)]
        return outputs + self._answers(waiting, range(block.first, block.last + 1), wanted)

    def _passed(self, events: Sequence[Incoming], neighbour: Neighbour, now: float) -> list[Incoming]:
        """Return the events of a neighbour that can be taken, marked as its own.

        It has looked at them, and it has our schema; one that misfits nevertheless is not taken by anybody.
        """
        if 0 <= now - self._full_at_s < FULL_PAUSE_S:
            raise StorageFullError("the disk is full", "room on the disk; reading goes on")
        mark = mark_of(neighbour.number)
        passed: list[Incoming] = []
        for event in events:
            record = self._fitting(event.record)
            if record is None or not self.neighbours.may_come(neighbour, record):
                self.counts["refused"] += 1
                self.refusals["Misfit" if record is None else "Forbidden"] += 1
            else:
                flags = event.flags & (PLAIN | PASSED_ON) | mark
                passed.append(Incoming(event.key, event.body, record, flags))
        return passed

    def _note_relayed(self, relayed: Sequence[tuple[Neighbour, WaitingPublication]], given: Sequence[int]) -> None:
        """Take note of where events of neighbours have come to lie: they may say so when those are on disk."""
        for neighbour, publication in relayed:
            last, count = max(publication.positions(given), default=0), len(publication.places)
            self.neighbours.note_taken(neighbour, publication.request, last, count, publication.known_count)

    def _checked(self, event: Incoming, session: Session, now: float) -> Incoming:
        """Return an event that may be taken, as filters see it."""
        if 0 <= now - self._full_at_s < FULL_PAUSE_S:
            raise StorageFullError("the disk is full", "room on the disk; reading goes on")
        if reason := self.roster.permissions.objection_to_publish(session.principal, event.record):
            raise ForbiddenError(reason)
        if self._schema is None or (objection := self._schema.objection(event.record)) is None:
            return event
        try:
            return Incoming(event.key, event.body, self._schema.conform(event.record), event.flags)
        except EventError:
            raise MisfitError(objection, "an event that fits the schema of the broker") from None

    def _found(
        self,
        block: Block,
        records: Sequence[Mapping[str, Any]],
        now: float,
        outputs: list[Output],
        sources: Sequence[str] = (),
        *,
        is_counted: bool = False,
    ) -> Sequence[int] | None:
        """Find out who wants the events of a new block; return how many subscribers want each, if that is asked for.

        To count them is to sort the matches of all, and not only of those who are connected. `sources`
        are the neighbours that sent them, or nobody; a log that several nodes share has no neighbours.
        """
        wanted: Sequence[int] | None = None
        if is_counted:
            hits, wanted = self._interest.hits_and_counts(records)
        else:
            hits = self._interest.hits(records)
        self.head = self._end_of(block.last)
        self._recent.add(block)
        self.counts["taken"] += len(records)
        self.counts["relayed"] += sum(map(bool, sources))
        touched = []
        if self.roster.steps is not None:
            if self.roster.see(hits, records, block.time_us / 1e6) and self.neighbours:
                outputs += self._told(now)
            hits = {name: of_name for name, of_name in hits.items() if name in self._live}
        alike: dict[tuple[int, tuple[str, ...]], Delivery] = {}  # in a fan-out thousands get the same
        for name in (*hits, *(name for name in self._remembering if name not in hits)):
            subscriber, of_name = self._live[name], hits.get(name, ())
            deliveries = []
            for index, keys in of_name:
                delivery = alike.get((index, asked := tuple(keys)))
                if delivery is None:
                    if block.first + index in self._repetitions or is_rerouted(block.flags[index]):
                        continue
                    position, is_late = Position.of(block.first + index), bool(block.flags[index] & LATE)
                    delivery = alike[index, asked] = Delivery(position, asked, block.events[index], is_late)
                deliveries.append(delivery)
            if subscriber.stateful:
                deliveries = self._remembered(subscriber, block, records, deliveries)
                if not deliveries:
                    continue
            for delivery in deliveries:
                subscriber.deliveries.offer(delivery)
            touched.append(subscriber)
            if self._is_full(subscriber):
                outputs += self.sent(subscriber, now)
            self._waiting_most += sum(len(block.events[index]) + PAIR_BYTES for index, _ in of_name)
        if self.neighbours and sources:
            for subscriber in self.neighbours.offer(block, self._interest.wanted, sources, records, now):
                touched.append(subscriber)
                if self._is_full(subscriber):
                    outputs += self.sent(subscriber, now)
        self._touched.append((block.last, touched))
        self._relieve()
        return wanted

    def _remembered(
        self,
        subscriber: Subscriber,
        block: Block,
        records: Sequence[Mapping[str, Any]],
        wanted: Sequence[Delivery],
    ) -> list[Delivery]:
        """Let the host of a subscriber take a block; return what is delivered because of that, and to conditions."""
        assert subscriber.host is not None
        candidates: list[NeededEvent] = []
        plain: list[Delivery] = []
        for delivery in wanted:
            needed = [key for key in delivery.keys if subscriber.subscriptions[key].is_stateful]
            if needed:
                position = delivery.position.event
                candidates.append(NeededEvent(position, records[position - block.first], delivery.body, needed))
            if rest := tuple(key for key in delivery.keys if key not in needed):
                plain.append(msgspec.structs.replace(delivery, keys=rest) if needed else delivery)
        due = subscriber.host.take(block, candidates, subscriber.stateful, subscriber.stateful_changes)
        last = plain.pop() if plain and plain[-1].position.event == block.last else None
        return [*plain, *together(due, last, self._end_of(block.last))]

    def _relieve(self) -> None:
        """Let subscribers whose consumers take nothing go far, those furthest behind first, if memory is short.

        Half of the limit is freed, so that not every event has to count again.
        """
        if self._waiting_most <= self.limits.waiting_bytes:
            return
        served = [*self._live.values(), *self._behind.values()]
        self._waiting_most = sum(subscriber.waiting_bytes for subscriber in served)
        if self._waiting_most <= self.limits.waiting_bytes:
            return
        stalled = [
            (first, subscriber.name, subscriber)
            for subscriber in served
            if subscriber.is_durable and (first := subscriber.deliveries.first_waiting) and subscriber.is_stalled
        ]
        for first, _, subscriber in sorted(stalled):
            if self._waiting_most <= self.limits.waiting_bytes // 2:
                return
            self._waiting_most -= subscriber.waiting_bytes
            self._leave_live(subscriber)
            subscriber.deliveries.drop_queue()
            subscriber.settle(_before(first))
            subscriber.is_far = True

    def _answers(
        self, waiting: Iterable[WaitingPublication], given: Sequence[int], wanted: Sequence[int] | None
    ) -> list[Output]:
        """Return the answers to publications all of whose events are on disk; hold the others back until they are."""
        outputs: list[Output] = []
        for publication in waiting:
            answer = publication.answer(given, wanted, is_durable=self.is_durable)
            assert isinstance(answer.answer, Published)
            outputs += self.gate.hold(answer, logged=answer.answer.last)
        return outputs

    def _matches(
        self, records: Sequence[Mapping[str, Any]], session: Session
    ) -> tuple[tuple[tuple[str, str], ...], ...]:
        usable = {subscriber.name for subscriber in self.roster.used_by(session.principal)}
        matches = tuple(
            tuple(sorted((name, key) for name, keys in of_event.items() if name in usable for key in keys))
            for of_event in self._interest.all_of(records)
        )
        if len(matches) > 1 and sum(map(len, matches)) > MOST_MATCHES:
            raise TooLargeError(f"the events have more than {MOST_MATCHES:,} matches", "fewer events at once")
        return matches

    def _event_of(self, request: Why) -> int:
        """Return the position of the event that a question is about."""
        position = request.position or self.keys.get(request.key)
        if position is None:
            source, _, id_ = request.key.partition("\n")
            raise NotFoundError(
                f"no event of source {source!r:.80} with id {id_!r:.80} is remembered",
                "one of the latest events, or its position",
            )
        if position > self.head:
            raise NotFoundError("there is no event at this position yet", f"at most the position {self.head}")
        return position

    # -- What the disks say

    def on_disk(self, through: int, now: float) -> list[Output]:
        """The log is on disk up to a position; return what may be said now."""
        outputs = self.gate.on_disk(through)
        self._recent.let_go(self.gate.logged)
        while self._touched and self._touched[0][0] <= through:
            for subscriber in self._touched.popleft()[1]:
                outputs += self.sent(subscriber, now)
        return outputs + self.neighbours.on_disk(now)

    def kept(self, through: int) -> list[Output]:
        """The state is on disk up to a number; return what may be said now."""
        while self._keeping and self._keeping[0][0] <= through:
            self._keeping.popleft()[1].is_kept = True
        return self.gate.on_kept(through)

    def not_written(self, block: Block, error: ServiceError, now: float) -> list[Output]:
        """A block could not be written: its events are not taken, and their publishers are told why.

        A publication that was refused because of some of its events may have others that another block has taken.
        """
        self._full_at_s = now
        if self._is_shared:
            _, waiting = self._expected.popleft()
            if block.flags[0] == TIME:
                self._time_asked_us = 0
            return [Say(each.session, Refused(each.request, error)) for each in waiting]
        self.keys.forget(
            event_key(body) for body, flag in zip(block.events, block.flags, strict=True) if not is_rerouted(flag)
        )
        self._recent.remove(block.first)
        for subscriber in self._everybody():
            subscriber.deliveries.drop_between(block.first, block.last)
            if subscriber.host is not None:  # which has taken what was not written
                self._begin_anew(subscriber, block.first)
        outputs = self.neighbours.not_written(block.first, block.last, now)
        for output in self.gate.withdraw(lambda output: _speaks_of(output, block)):
            assert isinstance(output, Say)
            assert isinstance(output.answer, Published)
            outputs.append(Say(output.session, Refused(output.answer.request, error)))
        return outputs

    def _begin_anew(self, subscriber: Subscriber, position: int) -> None:
        """Let what a subscriber remembers be found again from the log, in which there is nothing at a position.

        Later blocks may have been taken, too: what they tell now may be more, as what the lost block had told comes
        with them. Nothing of it has been sent, since what comes later in the log is on disk later.
        """
        self._leave_live(subscriber)
        deliveries = subscriber.deliveries
        floor = min(subscriber.passed, Position.of(position - 1))
        if deliveries.first_waiting is not None:
            floor = min(floor, _before(deliveries.first_waiting))
        deliveries.drop_queue()
        subscriber.settle(max(floor, deliveries.last_on_way))

    def appended(self, parts: Sequence[Block]) -> list[Output]:
        """A shared log has given the oldest block that waits its positions; return the answers to its publishers.

        The block may have been cut into parts. Who wants its events is known only when they come back from the log.
        """
        _, waiting = self._expected.popleft()
        positions = [position for part in parts for position in range(part.first, part.last + 1)]
        return [each.answer(positions, None, is_durable=self.is_durable) for each in waiting]

    def follow(self, blocks: Iterable[Block], now: float) -> list[Output]:
        """Take what a shared log has, from whomever it came, in the order of its positions.

        An event whose key was seen before is one that a publisher sent twice; every node drops the second.
        """
        outputs: list[Output] = []
        for block in blocks:
            self._learn_keys(block)
            records: list[Mapping[str, Any]] = []
            for position, (body, flag) in enumerate(zip(block.events, block.flags, strict=True), block.first):
                record = self._record(body, flag)
                if record is None:
                    self._repetitions.add(position)
                records.append(record or {})
            self._time_us = max(self._time_us, block.time_us + (block.flags[0] == TIME))
            if self._time_asked_us <= block.time_us:
                self._time_asked_us = 0
            self._found(block, records, now, outputs)
            self.counts["taken"] -= block.flags[0] == TIME
            outputs += self.on_disk(self.head, now)
        return outputs

    def _end_of(self, last: int) -> int:
        """Return up to where there are no more events, if the last one of a block is here.

        So a cursor that has passed a block has passed all its positions, and a log that drops just this block has
        dropped nothing that anybody misses.
        """
        return end_of(last, self._block_positions)

    def _record(self, body: bytes, flag: int) -> Mapping[str, Any] | None:
        """Return what filters see of an event that was stored; None if it is older than the schema, and misfits."""
        return self._fitting(self._read_record(body, flag))

    def _fitting(self, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if self._schema is None or self._schema.objection(record) is None:
            return record
        try:
            return self._schema.conform(record)
        except EventError:
            return None

    def dropped(self, first: int) -> None:
        """The log begins at a position now; those who needed more are told when they come there.

        Of what a shared log has given to events that this node has not followed, only `overtaken` speaks.
        """
        if first <= self._block_positions:
            return  # that is where a log begins
        self.first = max(self.first, min(first, self.head + 1))
        if self._repetitions:
            self._repetitions = {position for position in self._repetitions if position >= self.first}

    def overtaken(self, first: int) -> list[Output]:
        """A shared log has dropped events that this node has not followed; the next that it has is at `first`.

        Nobody is live any more: everybody is told what is lost when its cursor comes there.
        """
        outputs: list[Output] = []
        if first > self.head + 1:
            for subscriber in list(self._live.values()):
                self._leave_live(subscriber)
            self.head = first - 1
            outputs += self.gate.on_disk(self.head)
            self._recent = Recent(self.limits.recent_bytes, self.head)
        self.dropped(first)
        return outputs

    # -- Catching up

    @property
    def has_work(self) -> bool:
        """Is anybody behind who can take more?"""
        if self.neighbours.has_work:
            return True
        return self._asked_from is None and any(map(self._takes_more, self._behind.values()))

    def _takes_more(self, subscriber: Subscriber) -> bool:
        """Has a subscriber that is behind room for what a pass finds? So much that a pass is worth it."""
        deliveries = subscriber.deliveries
        return (
            subscriber.is_served
            and not subscriber.is_held
            and not (subscriber.is_far and subscriber.is_stalled)
            and deliveries.queue_count <= self.limits.queue_events // 2
            and deliveries.queue_bytes <= self.limits.queue_bytes // 2
        )

    def work(self, now: float) -> list[Output]:
        """Do a slice of catching up; return what to read for it, or what it found."""
        outputs = self.neighbours.work(now) if self.neighbours.has_work else []
        if self._asked_from is not None:
            return outputs
        ready = self._ready(outputs)
        first = lowest_event(ready)
        if first is None:
            return outputs
        if first < self._recent.first:
            self._asked_from = first
            return [*outputs, Read(first, self._recent.first - 1, self._stride.events)]
        blocks = _some(self._recent.read(first, self.head), self._stride.events)
        through = self._end_of(blocks[-1].last) if blocks else self.head
        self._look(ready, blocks, first, through, now, outputs)
        return outputs

    def take_read(self, blocks: Sequence[Block], through: int, log_first: int, now: float) -> list[Output]:
        """Take what was read: all events up to a position, from the one that was asked for.

        `log_first` is where the log began when that had been read: what retention took meanwhile is told as a gap.
        """
        first, self._asked_from = self._asked_from, None
        assert first is not None
        self.dropped(log_first)
        outputs: list[Output] = []
        self._look(self._ready(outputs), blocks, first, self._end_of(through), now, outputs)
        return outputs

    def _ready(self, outputs: list[Output]) -> list[Subscriber]:
        """Return who can take more of the past, moved over what the log no longer has."""
        ready = [subscriber for subscriber in self._behind.values() if self._takes_more(subscriber)]
        for subscriber in ready:
            subscriber.is_far = False
            for loss in skipped(subscriber, self.first, self._gaps):
                losses = self.dispatcher.tell(subscriber, loss)
                if subscriber.is_neighbour:
                    self.neighbours.count(losses)
                outputs += losses
                self.dispatcher.counts["lost"] += 1
        return [subscriber for subscriber in ready if self._takes_more(subscriber)]

    def _look(
        self,
        ready: Sequence[Subscriber],
        blocks: Sequence[Block],
        first: int,
        through: int,
        now: float,
        outputs: list[Output],
    ) -> None:
        """Give everybody whose cursor is from `first` to `through` what it wants of these blocks.

        Nobody moves into what a repair has left out: whoever comes there is told of that first.
        """
        through = min([through, *(gap.first - 1 for gap in self._gaps if gap.first > first)])
        here = [subscriber for subscriber in ready if first <= subscriber.next_event <= through]
        onward = None
        if any(subscriber.is_neighbour for subscriber in here):
            onward = partial(self.neighbours.hits, now=now)
        window = Window(
            blocks,
            first,
            self._record,
            self._interest,
            self._close_interest,
            self.roster.past,
            here,
            self._repetitions,
            self._new_host,
            self._end_of,
            onward,
        )
        self._stride.adapt(self.counts["taken"], window.delivery_count)
        for subscriber in here:
            window.look(subscriber, through, self.head, self._is_full)
            self.dispatcher.dirty[subscriber.name] = subscriber
            outputs += self.sent(subscriber, now)
            self._waiting_most += subscriber.waiting_bytes
        self._relieve()
        for subscriber in ready:
            if subscriber not in here and subscriber.next_event > self._recent.last:
                outputs += self.sent(subscriber, now)
        if self.head > self.gate.logged:
            self._touched.append((self.head, here))

    # -- Time

    def tick(self, now: float) -> list[Output]:
        """Do what is due: what comes again, polls that end, floors to keep, subscribers to forget."""
        outputs: list[Output] = []
        changes: list[Change] = []
        logged = self.gate.logged
        for subscriber in [each for each in self._everybody() if each.is_attended and each.may_change(now, logged)]:
            said, kept = self.dispatcher.tick(subscriber, now)
            changes += kept
            outputs += said + self.sent(subscriber, now)
        if self.roster.leases.has_ended(now):
            ended, kept = self.roster.end_leases(now)
            changes += kept
            for subscriber in ended:
                self._note_memory(subscriber)
                outputs += self.sent(subscriber, now)
        outputs += self._keep(changes)
        outputs += self._pass_time(now)
        self._relieve()
        if not 0 <= now - self._floors_at_s < FLOORS_EVERY_S:  # a clock may also be set back
            self._floors_at_s = now
            if not 0 <= now - self._all_floors_at_s < ALL_FLOORS_EVERY_S:
                self._all_floors_at_s = now
                self.dispatcher.dirty.update(self._live)
            outputs += self._floors()
            outputs += self._forgotten(now)
        self.roster.see({}, (), now)
        if self.neighbours:
            outputs += self._told(now) + self.neighbours.tick(now)
        return outputs

    def _pass_time(self, now: float) -> list[Output]:
        """Tell what is due although nothing comes, with a block that says what time it is.

        So what is told depends on the log alone, and after a restart it is told just the same.
        """
        if not self._remembering or 0 <= now - self._full_at_s < FULL_PAUSE_S:
            return []
        now_us = max(self._time_us, int(now * 1e6))
        hosts = [each.host for each in self._remembering.values() if each.host is not None]
        due = [host for host in hosts if host.is_due(now_us)]
        if not due:
            return []
        if self._is_shared:
            return self._ask_for_time(now_us)
        has_told = [host.pass_time(now_us) for host in due]
        self._time_us = now_us + 1
        if not any(has_told):
            return []
        self._leave_room()
        block = Block(self.head + 1, now_us, (TIME_EVENT,), bytes((TIME,)))
        outputs: list[Output] = [Append(block)]
        self._found(block, [{}], now, outputs)
        self.counts["taken"] -= 1
        return outputs

    def _ask_for_time(self, now_us: int) -> list[Output]:
        """Have a shared log say what time it is, unless that is under way.

        Several nodes may do so at once; whichever block comes first is the one that everybody's hosts go by.
        """
        if self._time_asked_us:
            return []
        self._time_asked_us = now_us
        block = Block(self.head + 1, now_us, (TIME_EVENT,), bytes((TIME,)))
        self._expected.append((block, []))
        return [Append(block)]

    def _floors(self) -> list[Output]:
        """Return what is to be kept of how far everybody has come."""
        dirty = list(self.dispatcher.dirty.values())
        changes = self.dispatcher.floors()
        for subscriber in dirty:
            if subscriber.past or subscriber.ending:
                changes += self.roster.done_with(subscriber, subscriber.kept_floor(self.gate.logged))
            if subscriber.host is not None:
                through = looked_of(subscriber.kept_floor(self.gate.logged))
                resume = subscriber.host.resume_behind(through, subscriber.stateful)
                if resume is not None:
                    subscriber.resume = resume
                    changes += [ResumeKept(subscriber.name, *resume)] if subscriber.is_durable else []
        return self._keep(changes, is_urgent=False)

    def _forgotten(self, now: float) -> list[Output]:
        """Forget subscribers that were away for longer than they asked to be remembered."""
        outputs: list[Output] = []
        for subscriber in list(self.roster):
            patience_s = subscriber.settings.forget_after_s
            subscriber.seen_us = subscriber.seen_us or int(now * 1e6)
            if patience_s and not subscriber.is_attended and now - subscriber.seen_us / 1e6 > patience_s:
                outputs += self._forget(subscriber, None, None, now)
        return outputs

    def stop(self) -> list[Output]:
        """Return what is to be kept before the process ends: how far everybody has come."""
        for subscriber in self._everybody():
            self.dispatcher.dirty[subscriber.name] = subscriber
        return self._floors()


def _before(position: Position) -> Position:
    """Return a position behind which this is the first that a delivery may have."""
    return Position(position.head, position.event - 1)


def _speaks_of(output: Output, block: Block) -> bool:
    """Does an answer say that an event of a block was taken, perhaps among others?"""
    if not isinstance(output, Say) or not isinstance(output.answer, Published):
        return False
    return any(block.first <= position <= block.last for position in output.answer.positions)


def _some(blocks: Sequence[Block], least: int) -> list[Block]:
    """Return the first blocks that have so many events, or a few more."""
    count, some = 0, []
    for block in blocks:
        some.append(block)
        count += len(block.events)
        if count >= least:
            break
    return some
