"""Who is subscribed to what? The roster: subscribers, versions of subscriptions, and what of it must be kept.

Each change happens here first and at once, and is named as a `Change` for the state; the node answers when the state
is on disk. A version that is replaced stays, with the range of positions that it counts for, until everything up to
its end is done.
"""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from tamis.language import parse
from tamis.matching.leases import Leases
from tamis.routing import Entry
from tamis.routing import Subscribe as RoutingSubscribe
from tamis.routing import Unsubscribe as RoutingUnsubscribe
from tamis.service.changes import (
    Change,
    FloorKept,
    LeaseKept,
    ReplayGone,
    ReplayKept,
    SubscriberGone,
    SubscriberKept,
    SubscriptionGone,
    SubscriptionKept,
)
from tamis.service.deliveries import InFlight
from tamis.service.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    SettingsError,
    TooLargeError,
)
from tamis.service.interest import PastVersions
from tamis.service.messages import (
    DeliveryFacts,
    Principal,
    SubscriberFacts,
    SubscriberSettings,
    SubscriptionFacts,
    VersionFacts,
    Wanted,
)
from tamis.service.permissions import EFFECTIVE_LIMITS
from tamis.service.positions import START, Position
from tamis.service.standing import Resume, is_stateful
from tamis.service.subscribers import Replay, Subscriber, Version
from tamis.service.windows import WindowLimits
from tamis.standing import interest, parse_subscription
from tamis.topk.many_texts import read_subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.routing import Broker
    from tamis.routing.messages import Output as RoutingOutput
    from tamis.service.changes import Stored
    from tamis.service.interest import Hits
    from tamis.service.messages import Subscribe
    from tamis.service.permissions import Permissions
    from tamis.service.steps import Steps
    from tamis.standing.subscriptions import Subscription

LONGEST_NAME = 200


class Roster:
    """All subscribers of a node."""

    def __init__(
        self,
        broker: Broker,
        schema: Schema | None,
        permissions: Permissions,
        subscriptions_each: int,
        subscribers_each: int,
        windows: WindowLimits | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.broker = broker
        self.steps = steps
        """What neighbours are asked for of sequences, if that is less than all of their steps."""
        self.permissions = permissions
        self.subscribers: dict[str, Subscriber] = {}
        self.past = PastVersions(schema)
        self.windows = windows or WindowLimits()
        self._has_schema = schema is not None
        self.subscriptions_each, self.subscribers_each = subscriptions_each, subscribers_each
        self._counts: dict[str, int] = {}  # of subscriptions, by owner
        self._durable_counts: Counter[str] = Counter()  # of subscribers, by owner
        self._principals: dict[tuple[str, str], Principal] = {}
        self._to_neighbours: list[RoutingOutput] = []
        self.leases: Leases[tuple[str, str]] = Leases()
        """When subscriptions end, by subscriber and key; what has ended before may be in it, too."""

    def __iter__(self) -> Iterator[Subscriber]:
        return iter(self.subscribers.values())

    def see(self, hits: Hits, records: Sequence[Mapping[str, Any]], at_s: float) -> bool:
        """Take note of which events of a group are wanted; return whether neighbours are told something now."""
        if self.steps is not None:
            self.steps.see(hits, records, at_s)
            self._to_neighbours += self.steps.due(at_s)
        return bool(self._to_neighbours)

    def take_to_neighbours(self) -> list[RoutingOutput]:
        """Return what the broker wants told to neighbours since this was asked last."""
        outputs, self._to_neighbours = self._to_neighbours, []
        return outputs

    # -- Finding

    def named(self, name: str, principal: Principal) -> Subscriber:
        """Return a subscriber that a principal may use; raise an error if there is none, or it may not."""
        subscriber = self.subscribers.get(name)
        self._check_use(name, subscriber, principal)
        if subscriber is None:
            raise NotFoundError(f"there is no subscriber {name!r:.80}", "the name of one that was made before")
        return subscriber

    def _check_use(self, name: str, subscriber: Subscriber | None, principal: Principal) -> None:
        if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise BadRequestError(
                f"{name!r:.80} is not the name of a subscriber", f"1 to {LONGEST_NAME} printable characters"
            )
        if not self.permissions.may_use(principal, name, None if subscriber is None else subscriber.owner):
            raise ForbiddenError(f"{principal.name!r} may not use the subscriber {name!r}", "one of its own")

    def may_consume(self, subscriber: Subscriber, principal: Principal) -> bool:
        """May a principal see everything that a subscriber gets?

        Its owner may, with the roles that it subscribed with: the filters were restricted to what those allow. An owner
        who has other roles now, by a new token, may see no more than they allow.
        """
        if not self.permissions.may_use(principal, subscriber.name, subscriber.owner):
            return False
        made_by = [self._principals.get((subscriber.name, key)) for key in subscriber.subscriptions]
        if principal.name == subscriber.owner and all(
            each is None or each.roles == principal.roles for each in made_by
        ):
            return True
        versions = (*subscriber.subscriptions.values(), *subscriber.past.values())
        return self.permissions.may_see(principal, [version.filter for version in versions])

    def check_sight(self, subscriber: Subscriber, principal: Principal) -> None:
        """Raise an error if a subscriber gets what a principal may not see."""
        if not self.may_consume(subscriber, principal):
            raise ForbiddenError(
                f"{subscriber.name!r} gets events that {principal.name!r} may not see", "a subscriber of its own"
            )

    def used_by(self, principal: Principal, pattern: str = "*") -> list[Subscriber]:
        """Return the subscribers that a principal may use."""
        return [
            each
            for each in self.subscribers.values()
            if fnmatchcase(each.name, pattern) and self.permissions.may_use(principal, each.name, each.owner)
        ]

    # -- Subscribers

    def made(
        self, name: str, principal: Principal, is_durable: bool, head: int, settings: SubscriberSettings | None = None
    ) -> tuple[Subscriber, list[Change]]:
        """Return a subscriber, made now if it is not there, and what is to be kept."""
        subscriber = self.subscribers.get(name)
        self._check_use(name, subscriber, principal)
        is_new = subscriber is None
        if subscriber is not None:
            if subscriber.is_durable != is_durable:
                kind = "durable" if subscriber.is_durable else "passing"
                raise ConflictError(f"the subscriber {name!r} is {kind}", "the same, or another name")
            if settings is None or settings == subscriber.settings:
                return subscriber, []
            subscriber.settings = settings
        else:
            if is_durable:
                self._check_count(principal.name)
            floor = Position.of(head)
            subscriber = Subscriber(
                name, principal.name, is_durable, settings or SubscriberSettings(), head,
                InFlight(floor, sent_through=floor), passed=floor,
            )  # fmt: skip
            self.broker.attach(name)
            self.subscribers[name] = subscriber
            self._durable_counts[subscriber.owner] += is_durable
        if not is_durable:
            return subscriber, []
        floors = [FloorKept(name, subscriber.floor(head), (), subscriber.seen_us)] if is_new else []
        return subscriber, [_kept(subscriber), *floors]

    def _check_count(self, owner: str) -> None:
        if self._durable_counts[owner] >= self.subscribers_each:
            raise TooLargeError(
                f"{owner!r} would have more than {self.subscribers_each:,} durable subscribers",
                "fewer, or a higher limit (limits.subscribers)",
            )

    def forget(self, subscriber: Subscriber, now: float) -> list[Change]:
        """Forget a subscriber with all that belongs to it; return what is to be kept of that."""
        for version in subscriber.past.values():
            self.past.remove(subscriber.name, version)
        self._count(subscriber.owner, -len(subscriber.subscriptions))
        for key in subscriber.subscriptions:
            self._principals.pop((subscriber.name, key), None)
            if self.steps is not None:
                self.steps.forget(subscriber.name, key)
        del self.subscribers[subscriber.name]
        self._durable_counts[subscriber.owner] -= subscriber.is_durable
        self._durable_counts += Counter()  # which leaves out those who have none any more
        self._to_neighbours += self.broker.disconnect(subscriber.name, now)
        return [SubscriberGone(subscriber.name)] if subscriber.is_durable else []

    # -- Subscriptions

    def checked(
        self, subscriber: Subscriber | None, wanted: Mapping[str, Wanted], principal: Principal
    ) -> dict[str, Subscription]:
        """Return what each text comes to for a principal; raise an error, before anything is done, if one is bad."""
        owner = principal.name if subscriber is None else subscriber.owner
        known = {} if subscriber is None else subscriber.subscriptions
        new_count = sum(1 for key in wanted if key not in known)
        if self._counts.get(owner, 0) + new_count > self.subscriptions_each:
            raise TooLargeError(
                f"{owner!r} would have more than {self.subscriptions_each:,} subscriptions",
                "fewer, or a higher limit (limits.subscriptions)",
            )
        effective = {}
        for key, each in wanted.items():
            if not key or len(key) > LONGEST_NAME or not key.isprintable():
                raise BadRequestError(f"{key!r:.80} is not a key", f"1 to {LONGEST_NAME} printable characters")
            effective[key] = self.permissions.effective(principal, each)
            if is_stateful(each.filter):
                self.windows.check(key, each.filter)
            if reason := self.broker.table.objection(interest(effective[key])):
                raise BadRequestError(f"the subscription {key!r}: {reason}", "a filter that fits the schema")
        return effective

    def subscribe(
        self,
        subscriber: Subscriber,
        wanted: Mapping[str, Wanted],
        effective: Mapping[str, Subscription],
        principal: Principal,
        since: int,
        now: float,
        *,
        keeps_replays: bool = False,
    ) -> list[Change]:
        """Put subscriptions in force for every event behind `since`; return what is to be kept. Unchanged ones stay.

        Replays of a subscription that is replaced end, unless they are to go on with the new filter.
        """
        changes: list[Change] = []
        entries = []
        for key, each in wanted.items():
            current = subscriber.subscriptions.get(key)
            self._principals[subscriber.name, key] = principal
            if current is not None and (current.text, current.effective) == (each.text, effective[key]):
                continue
            version = Version(key, subscriber.next_number, each.text, each.filter, effective[key], since)
            renewed = self._renew_replays(subscriber, version) if keeps_replays else []
            if current is not None:
                changes += self._end(subscriber, current, since)
            else:
                self._count(subscriber.owner, 1)
            subscriber.next_number += 1
            subscriber.subscriptions[key] = version
            subscriber.remember(version)
            entries.append(Entry(key, version.filter))
            if self.steps is not None:
                self._to_neighbours += self.steps.take(subscriber.name, version, now)
            if subscriber.is_durable:
                changes += [self._version_kept(subscriber, version), *renewed]
        if entries:
            self._to_neighbours += self.broker.receive(RoutingSubscribe(tuple(entries)), subscriber.name, now)
        return changes

    def lease(self, subscriber: Subscriber, keys: Iterable[str], end_s: float | None) -> list[Change]:
        """Let subscriptions end then, or never; return what is to be kept of that."""
        changes: list[Change] = []
        for key in keys:
            place = subscriber.name, key
            if end_s is not None or self.leases.end_of(place) is not None:
                changes.append(LeaseKept(*place, 0 if end_s is None else int(end_s * 1e6)))
            self.leases.lease(place, end_s)
        return changes if subscriber.is_durable else []

    def end_leases(self, now: float) -> tuple[list[Subscriber], list[Change]]:
        """End the subscriptions whose time is over; return whose they were, and what is to be kept of that."""
        of: dict[str, Subscriber] = {}
        changes: list[Change] = []
        for name, key in list(self.leases.ended(now)):
            changes.append(LeaseKept(name, key, 0))
            subscriber = self.subscribers.get(name)
            if subscriber is not None and key in subscriber.subscriptions:
                of[name] = subscriber
                changes += self.unsubscribe(subscriber, (key,), now)
        return list(of.values()), changes

    def _end(self, subscriber: Subscriber, version: Version, until: int) -> list[Change]:
        """Let a version count up to a position only."""
        version.until = until
        subscriber.stateful_changes += version.is_stateful
        changes = self._stop_replays(subscriber, version.key, version.number)
        if until > version.since and (subscriber.is_durable or not subscriber.is_live):
            subscriber.past[version.key, version.number] = version
            self.past.add(subscriber.name, version)
            changes.append(self._version_kept(subscriber, version))
        else:
            subscriber.forget(version)
            changes.append(SubscriptionGone(subscriber.name, version.key, version.number))
        return changes if subscriber.is_durable else []

    def unsubscribe(self, subscriber: Subscriber, keys: tuple[str, ...], now: float) -> list[Change]:
        """End subscriptions: nothing more is delivered for them. Return what is to be kept."""
        missing = [key for key in keys if key not in subscriber.subscriptions]
        if missing:
            raise NotFoundError(
                f"the subscriber {subscriber.name!r} has no subscription {missing[0]!r:.80}",
                "the key of one that it has",
            )
        changes: list[Change] = []
        for key in dict.fromkeys(keys):
            version = subscriber.subscriptions.pop(key)
            subscriber.forget(version)
            if self.steps is not None:
                self.steps.forget(subscriber.name, key)
            self._principals.pop((subscriber.name, key), None)
            self._count(subscriber.owner, -1)
            changes += self._stop_replays(subscriber, key, version.number)
            changes.append(SubscriptionGone(subscriber.name, key, version.number))
            for (past_key, number), past in list(subscriber.past.items()):
                if past_key == key:
                    changes.append(self._drop_past(subscriber, past_key, number, past))
            for sent in subscriber.deliveries.drop_key(key):
                subscriber.free(sent)
        self._to_neighbours += self.broker.receive(RoutingUnsubscribe(tuple(dict.fromkeys(keys))), subscriber.name, now)
        return changes if subscriber.is_durable else []

    def _drop_past(self, subscriber: Subscriber, key: str, number: int, version: Version) -> Change:
        del subscriber.past[key, number]
        subscriber.forget(version)
        self.past.remove(subscriber.name, version)
        return SubscriptionGone(subscriber.name, key, number)

    def done_with(self, subscriber: Subscriber, floor: Position) -> list[Change]:
        """Let go of versions and replays that nothing above a floor needs; return what is to be kept of that."""
        changes: list[Change] = []
        looked = floor.event if floor.head == floor.event else floor.head - 1
        for (key, number), version in list(subscriber.past.items()):
            if version.until <= looked:
                changes.append(self._drop_past(subscriber, key, number, version))
        over = [replay for replay in subscriber.ending if replay.end <= floor]
        if over:
            subscriber.ending = [replay for replay in subscriber.ending if replay.end > floor]
            changes += [ReplayGone(subscriber.name, *version) for replay in over for version in replay.versions.items()]
        return changes if subscriber.is_durable else []

    # -- Replays

    def replay(self, subscriber: Subscriber, keys: Mapping[str, Wanted], first: int, since: int) -> list[Change]:
        """Deliver events of the past, too; return what is to be kept."""
        changes: list[Change] = []
        for key in keys:
            changes += self._stop_replays(subscriber, key, subscriber.subscriptions[key].number)
        versions = {key: subscriber.subscriptions[key].number for key in keys}
        subscriber.replays.append(Replay(versions, first, since, first - 1, not subscriber.is_durable))
        if subscriber.is_durable:
            changes += [ReplayKept(subscriber.name, key, number, first, since) for key, number in versions.items()]
        return changes

    def is_replaying(
        self, subscriber: Subscriber, request: Subscribe, effective: Mapping[str, Subscription], head: int
    ) -> bool:
        """Is just this replay, asked for at this position, under way?"""
        current = subscriber.subscriptions
        for replay in (*subscriber.replays, *subscriber.ending):
            if replay.since == head and replay.first == request.replay_from:
                return replay.versions.keys() == request.subscriptions.keys() and all(
                    (current[key].text, current[key].effective) == (wanted.text, effective[key])
                    for key, wanted in request.subscriptions.items()
                )
        return False

    def _renew_replays(self, subscriber: Subscriber, version: Version) -> list[Change]:
        """Let the replays of a subscription go on with a new version of it; return what is to be kept."""
        changes: list[Change] = []
        for replay in (*subscriber.replays, *subscriber.ending):
            number = replay.versions.get(version.key)
            if number is not None:
                replay.versions[version.key] = version.number
                changes += [
                    ReplayGone(subscriber.name, version.key, number),
                    ReplayKept(subscriber.name, version.key, version.number, replay.first, replay.since),
                ]
        return changes

    def _stop_replays(self, subscriber: Subscriber, key: str, number: int) -> list[Change]:
        """End the replays of a version; the positions that they had are not used again."""
        changes: list[Change] = []
        for replay in (*subscriber.replays, *subscriber.ending):
            if replay.versions.get(key) == number:
                del replay.versions[key]
                changes.append(ReplayGone(subscriber.name, key, number))
                if not replay.versions:
                    subscriber.deliveries.pass_over(replay.end)
        if changes:
            floor = subscriber.deliveries.least_floor
            islands = subscriber.deliveries.islands(floor)
            floor = min([floor, *(loss.after for loss in subscriber.losses)])
            changes.append(FloorKept(subscriber.name, floor, islands, subscriber.seen_us))
            subscriber.saved = START, 0, 0
        subscriber.replays = [replay for replay in subscriber.replays if replay.versions]
        subscriber.ending = [replay for replay in subscriber.ending if replay.versions]
        return changes if subscriber.is_durable else []

    # -- Permissions

    def permit(self, permissions: Permissions, since: int, now: float) -> list[Change]:
        """Take other permissions: what owners may receive changes at a position. Return what is to be kept.

        A subscription that its owner may not have any more matches nothing from then on.
        """
        self.permissions = permissions
        changes: list[Change] = []
        for subscriber in self.subscribers.values():
            for key, version in list(subscriber.subscriptions.items()):
                principal = self._principals.get((subscriber.name, key)) or Principal(subscriber.owner)
                wanted = Wanted(version.text, version.asked)
                effective: Subscription
                try:
                    effective = permissions.effective(principal, wanted)
                except (BadRequestError, ForbiddenError):
                    effective = parse("FALSE")
                if effective != version.effective:
                    changes += self.subscribe(
                        subscriber, {key: wanted}, {key: effective}, principal, since, now, keeps_replays=True
                    )
        return changes

    # -- Keeping

    def _version_kept(self, subscriber: Subscriber, version: Version) -> SubscriptionKept:
        principal = self._principals.get((subscriber.name, version.key)) or Principal(subscriber.owner)
        return SubscriptionKept(
            subscriber.name, version.key, version.number, version.text, str(version.effective), version.since,
            version.until, principal.name, principal.roles, principal.is_admin,
        )  # fmt: skip

    def restore(self, stored: Stored, sent_through: Position, now: float) -> None:
        """Take what was kept, as it was left."""
        with self.broker.functions.in_use():
            self._restore(stored, sent_through, now)

    def _restore(self, stored: Stored, sent_through: Position, now: float) -> None:
        floors = {each.name: each for each in stored.floors}
        dead = dict(stored.dead_counts)
        for kept in stored.subscribers:
            settings = SubscriberSettings(
                kept.wait_s, kept.attempts, kept.is_ordered, kept.forget_after_s, kept.backoff_s
            )
            floor = floors.get(kept.name) or FloorKept(kept.name, Position(0, 0), (), 0)
            deliveries = InFlight(floor.floor, floor.islands, sent_through)
            subscriber = Subscriber(kept.name, kept.owner, True, settings, 0, deliveries, seen_us=floor.seen_us)
            subscriber.dead_count = dead.get(kept.name, 0)
            self.broker.attach(kept.name)
            self.subscribers[kept.name] = subscriber
            self._durable_counts[kept.owner] += 1
        entries: dict[str, list[Entry]] = {}
        known: dict[str, Subscription] = dict(read_subscriptions([row.text for row in stored.subscriptions]))

        def said(text: str) -> Subscription:
            if text in known:
                return known[text]
            return parse_subscription(text, limits=EFFECTIVE_LIMITS)  # it was within the limits of its time

        for row in stored.subscriptions:
            subscriber = self.subscribers[row.subscriber]
            asked = said(row.text)
            effective = asked if row.effective == row.text else said(row.effective)
            if self._has_schema and (reason := self.broker.table.objection(interest(effective))) is not None:
                raise SettingsError(  # without a word it would get nothing any more
                    f"schema: the subscription {row.key!r} of {row.subscriber!r} does not fit: {reason}",
                    "the earlier schema, or a broker without this subscription",
                )
            version = Version(row.key, row.number, row.text, asked, effective, row.since, row.until)
            subscriber.remember(version)
            subscriber.next_number = max(subscriber.next_number, row.number + 1)
            if row.until:
                subscriber.past[row.key, row.number] = version
                self.past.add(row.subscriber, version)
            else:
                subscriber.subscriptions[row.key] = version
                self._principals[row.subscriber, row.key] = Principal(row.by, row.roles, row.is_admin)
                self._count(subscriber.owner, 1)
                if self.steps is not None:
                    self._to_neighbours += self.steps.take(row.subscriber, version, now, may_be_open=True)
                entries.setdefault(row.subscriber, []).append(Entry(row.key, version.filter))
        for lease in stored.leases:
            self.leases.lease((lease.subscriber, lease.key), lease.ends_us / 1e6)
        for name, of_name in entries.items():
            self._to_neighbours += self.broker.receive(RoutingSubscribe(tuple(of_name)), name, now)
        for resume in stored.resumes:
            self.subscribers[resume.subscriber].resume = Resume(resume.at, resume.states)
        replays: dict[tuple[str, int], Replay] = {}
        for each in stored.replays:
            replay = replays.get((each.subscriber, each.since))
            if replay is None:
                replay = replays[each.subscriber, each.since] = Replay({}, each.first, each.since, each.first - 1)
                self.subscribers[each.subscriber].replays.append(replay)
            replay.versions[each.key] = each.number
        for subscriber in self.subscribers.values():
            done = subscriber.deliveries.least_floor
            places = [done, *subscriber.deliveries.islands(done), *(each.end for each in subscriber.replays)]
            subscriber.last_replay = max((each.head - 1 for each in places if each.head > each.event), default=-1)
            subscriber.settle(done)

    def _count(self, owner: str, change: int) -> None:
        count = self._counts.get(owner, 0) + change
        if count:
            self._counts[owner] = count
        else:
            self._counts.pop(owner, None)

    def facts(self, subscriber: Subscriber, logged: int) -> SubscriberFacts:
        """Return what is known of a subscriber."""
        return SubscriberFacts(
            subscriber.name, subscriber.owner, subscriber.is_durable, subscriber.state, subscriber.settings,
            {
                key: SubscriptionFacts(
                    version.text, str(version.effective), version.since, self.leases.end_of((subscriber.name, key))
                )
                for key, version in subscriber.subscriptions.items()
            },
            subscriber.floor(logged), subscriber.deliveries.unacknowledged_count,
            len(subscriber.consumers) + len(subscriber.polls), subscriber.dead_count,
        )  # fmt: skip

    def versions_for(self, subscriber: Subscriber, event: int) -> tuple[tuple[VersionFacts, ...], DeliveryFacts]:
        """Return all versions of its subscriptions, and what became of the delivery of an event.

        A version counts for an event that came while it was in force, and for those of the past that it asked for, as
        long as their replay is not over.
        """
        replays = [each for each in (*subscriber.replays, *subscriber.ending) if each.first <= event <= each.since]
        replayed = {version for replay in replays for version in replay.versions.items()}
        versions = sorted(
            (*subscriber.past.values(), *subscriber.subscriptions.values()), key=lambda each: (each.key, each.number)
        )
        facts = tuple(
            VersionFacts(
                each.key, each.text, each.asked, each.effective, each.since, each.until,
                each.counts_for(event) or (each.key, each.number) in replayed,
            )
            for each in versions
        )  # fmt: skip
        is_own = any(each.counts_for(event) for each in versions)
        position = replays[0].position(event) if replays and not is_own else Position.of(event)
        return facts, subscriber.deliveries.facts(position)


def _kept(subscriber: Subscriber) -> SubscriberKept:
    settings = subscriber.settings
    return SubscriberKept(
        subscriber.name,
        subscriber.owner,
        settings.wait_s,
        settings.attempts,
        settings.is_ordered,
        settings.forget_after_s,
        settings.backoff_s,
    )


def highest_position(stored: Stored) -> int:
    """Return the highest position that the state speaks of; the log goes on behind it.

    Positions that were given to events which a crash lost before they were on disk are not given again: a subscription
    counts for the events *behind* the position at which it was made.
    """
    numbers = [each.floor.head for each in stored.floors]
    numbers += [position.head for each in stored.floors for position in each.islands]
    numbers += [max(each.since, each.until) for each in stored.subscriptions]
    numbers += [each.since + 1 for each in stored.replays]
    numbers += [each.at for each in stored.resumes]
    return max(numbers, default=0)
