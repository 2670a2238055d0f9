"""What do the sockets and the core say to each other? The messages of the node.

The loop turns bytes into *requests* and hands them to the node together with the session they came from; the node
returns *outputs*: what to say to which session, what to write to the log, what to keep in the state, what to read.
None of these has a socket, a file or a clock in it, so a test can play the loop, the log and the disk.

A session is a connection, or one HTTP request. `request` is the number by which its sender recognises the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from tamis.service.changes import Change, WebhookKept
from tamis.service.errors import ServiceError
from tamis.service.log.base import Block, Gap
from tamis.service.positions import Position
from tamis.service.tellings import Told


class Message(msgspec.Struct, frozen=True):
    """The base of everything that is said."""


class LinkAsked(Message, frozen=True):
    """The base of what the connection of a neighbour asks (`links.requests`)."""


class LinkSaid(Message, frozen=True):
    """The base of what the connection of a neighbour is told (`links.requests`)."""


# -- Who


class Principal(Message, frozen=True):
    """Who asks: a name, and the roles that say what it may do."""

    name: str
    roles: tuple[str, ...] = ()
    is_admin: bool = False


class Session(Message, frozen=True):
    """A connection or a single request, and who is at its other end."""

    number: int
    """Never used twice by a process."""
    principal: Principal


# -- Requests


class Incoming(Message, frozen=True):
    """An event that somebody publishes."""

    key: str
    """Its source and its id: who sends the same key again sends the same event again."""
    body: bytes
    """The CloudEvent as JSON, as it is stored and delivered."""
    record: Mapping[str, Any]
    """What filters see of it. Nobody changes it."""
    flags: int = 0


class Publish(Message, frozen=True):
    """Take these events, all of them or none. Answer: `Published`."""

    request: int
    events: tuple[Incoming, ...]
    asks_wanted: bool = False
    """Whether the answer is to say how many subscribers want each event."""


class Wanted(Message, frozen=True):
    """A subscription: the text that its owner wrote, and what it says."""

    text: str
    filter: Any
    """A condition, or what remembers earlier events: a `Ranked`, a `Sequence` or a `Change`."""


class Subscribe(Message, frozen=True):
    """Add or replace subscriptions of a subscriber, all of them or none. Answer: `Subscribed`.

    A subscriber that is not there yet is made, durable or passing. `replay_from` is the position from which on events
    of the past are delivered too; 0 is for none.
    """

    request: int
    subscriber: str
    subscriptions: Mapping[str, Wanted]
    is_durable: bool = True
    replay_from: int = 0
    removes_others: bool = False
    """Whether all subscriptions of the subscriber that are not named end."""
    settle_s: float = 0.0
    """For how long the answer may wait until every broker that has to know of them does."""
    lease_s: float = 0.0
    """After which time they end, unless they are subscribed to again; 0 is for never."""


class Unsubscribe(Message, frozen=True):
    """End subscriptions of a subscriber. Answer: `Accepted`."""

    request: int
    subscriber: str
    keys: tuple[str, ...]


class SubscriberSettings(Message, frozen=True):
    """How deliveries to a subscriber are repeated."""

    wait_s: float = 30.0
    """So long after a delivery without *done* it comes again."""
    attempts: int = 0
    """So often is an event delivered before it becomes a dead letter; 0 is for ever."""
    is_ordered: bool = False
    """Whether everything behind a delivery that comes again comes again, too."""
    forget_after_s: float = 0.0
    """So long after its last connection a subscriber is forgotten; 0 is never."""
    backoff_s: float = 0.0
    """The pause before a delivery that was not done comes again; it doubles with every further attempt."""


class Configure(Message, frozen=True):
    """Make a durable subscriber, or change how it is served. Answer: `Accepted`."""

    request: int
    subscriber: str
    settings: SubscriberSettings


class Forget(Message, frozen=True):
    """Forget a subscriber with its subscriptions and dead letters. Answer: `Accepted`."""

    request: int
    subscriber: str


class Describe(Message, frozen=True):
    """Say what is known of a subscriber, or of all that the principal may use. Answer: `Described`."""

    request: int
    subscriber: str = ""


class Attach(Message, frozen=True):
    """Deliver to this session from now on, as a consumer of a subscriber. Answer: `Attached`, then `Deliveries`.

    Consumers that acknowledge (`acknowledges`) have at most `credit` deliveries and `credit_bytes` bytes that are not
    done. Others (server-sent events, `listen`) cannot say *done*: for them credit counts what the loop has not yet
    written (`Wrote`). A passing subscriber's deliveries are done when they are written. `done_through` is what a
    consumer says that it has when it comes back (`Last-Event-ID`): everything up to there is done, of whomever it was
    sent to, so it is for subscribers that one consumer takes from. While others consume, it is left unheard.
    """

    request: int
    subscriber: str
    acknowledges: bool = True
    credit: int = 256
    credit_bytes: int = 1_000_000
    is_durable: bool = True
    done_through: Position | None = None
    ends_when_slow: bool = False
    """Whether a passing subscriber that is too slow is closed, instead of going on behind a gap."""


class Take(Message, frozen=True):
    """Deliver at most so many events, at once or when there are some (long poll). Answer: `Taken`.

    What is taken must be acknowledged like every delivery.
    """

    request: int
    subscriber: str
    most: int
    wait_s: float


class Acknowledge(Message, frozen=True):
    """What a consumer says of deliveries: done, again, never. Answer: `Accepted`, if `request` is not 0."""

    request: int
    subscriber: str
    done: tuple[Position, ...] = ()
    done_through: Position | None = None
    """Everything that this session was sent up to this position, when it was sent that, is done.

    Of what others have, or what came again from them later, it does not speak. Said outside of a connection it is for
    what a long poll took together with this position; a stream, which has no other way, means everything.
    """
    again: tuple[Position, ...] = ()
    in_s: float = 0.0
    """After how long those of `again` come again."""
    never: tuple[Position, ...] = ()
    """These become dead letters."""
    reason: str = ""
    floor: Position | None = None
    """Everything up to here is done, delivered or not: said by who reads the log by itself and keeps its own place."""


class Wrote(Message, frozen=True):
    """So many deliveries to this session were written to its socket. No answer."""

    subscriber: str
    count: int
    size_bytes: int


class Revive(Message, frozen=True):
    """Deliver dead letters once more. Answer: `Accepted`."""

    request: int
    subscriber: str
    letters: tuple[Delivery, ...]
    """As they were delivered: the keys of the subscriptions that wanted them, the events, and what was told."""


class Match(Message, frozen=True):
    """Which subscriptions want these events? Nothing is published. Answer: `Matched`."""

    request: int
    records: tuple[Mapping[str, Any], ...]


class Why(Message, frozen=True):
    """Why did a subscriber get an event, or why not? Answer: `Reasons`.

    The event is named by its position, or by its key: then `position` is 0.
    """

    request: int
    subscriber: str
    position: int = 0
    key: str = ""


class KeepWebhook(Message, frozen=True):
    """Post the events of a subscriber to an address from now on, or, without one, no more. Answer: `Accepted`."""

    request: int
    subscriber: str
    webhook: WebhookKept | None = None


class Close(Message, frozen=True):
    """The session is over: what it consumed goes to others, and passing subscribers end. No answer."""


Request: TypeAlias = (
    Publish | Subscribe | Unsubscribe | Configure | Forget | Describe | Attach | Take | Acknowledge | Wrote | Revive
    | Match | Why | KeepWebhook | Close | LinkAsked
)  # fmt: skip


# -- Answers


class Published(Message, frozen=True):
    """The events are on disk, as far as `is_durable` says."""

    request: int
    last: int
    """The position of the last of them."""
    positions: tuple[int, ...]
    known_count: int
    """How many of them had been taken before."""
    is_durable: bool
    wanted: tuple[int | None, ...] | None = None
    """How many subscribers here, and neighbours, want each, if that was asked; None for what had been taken before.

    0 is for what nobody in the network wants, as far as this broker knows; who asks for just that does not count.
    """


class Subscribed(Message, frozen=True):
    """Subscriptions are in force for every event behind `since`, and survive a restart."""

    request: int
    since: int
    is_new: bool
    """Whether any of them was not there in this form before."""
    effective: Mapping[str, str]
    """What is matched, by key: the text, restricted to what the principal may receive."""
    is_settled: bool = True
    """Whether every broker that has to know of them does."""
    remembering: tuple[str, ...] = ()
    """The keys of those that remember earlier events."""

    def as_settled(self, is_settled: bool) -> Subscribed:
        """Return the same answer with what is known now of neighbours."""
        return msgspec.structs.replace(self, is_settled=is_settled)


class Accepted(Message, frozen=True):
    """Done as asked."""

    request: int


class Refused(Message, frozen=True):
    """Not done, and why; nothing has happened."""

    request: int
    error: ServiceError


class SubscriptionFacts(Message, frozen=True):
    """What is known of a subscription."""

    text: str
    effective: str
    since: int
    ends_s: float | None = None
    """When it ends, if it is leased."""


class SubscriberFacts(Message, frozen=True):
    """What is known of a subscriber."""

    name: str
    owner: str
    is_durable: bool
    state: str
    """`live`, `behind` or `far`."""
    settings: SubscriberSettings
    subscriptions: Mapping[str, SubscriptionFacts]
    floor: Position
    """Everything up to here is done."""
    unacknowledged: int
    consumers: int
    dead: int


class Described(Message, frozen=True):
    """What is known of subscribers."""

    request: int
    subscribers: tuple[SubscriberFacts, ...]


class Attached(Message, frozen=True):
    """The session is a consumer."""

    request: int
    subscriber: str
    at: int
    """The position of the newest event."""
    floor: Position


class Delivery(Message, frozen=True):
    """An event for a subscriber."""

    position: Position
    keys: tuple[str, ...]
    """The subscriptions that want it."""
    body: bytes
    """The CloudEvent as JSON."""
    is_again: bool = False
    """Whether it may have been delivered before."""
    flags: int = 0
    """What a neighbour has to know of it."""
    told: tuple[Told, ...] = ()
    """What subscriptions say of it that remember earlier events."""

    @property
    def decided_at(self) -> int:
        """Up to where the log must be on disk before it may go out."""
        return self.position.head if self.told else self.position.event


class Deliveries(Message, frozen=True):
    """Events for a consumer, in order."""

    subscriber: str
    items: tuple[Delivery, ...]


class Taken(Message, frozen=True):
    """What a long poll has taken; nothing, if its time is over."""

    request: int
    items: tuple[Delivery, ...]
    losses: tuple[Lost, ...] = ()
    """What the subscriber will not get."""


class Lost(Message, frozen=True):
    """Events that a subscriber will not get: retention or damage took them, or it was too slow and is not durable."""

    subscriber: str
    gap: Gap
    """The positions, of which some were perhaps not wanted."""
    reason: str
    """`retention`, `damage` or `slow`."""


class CaughtUp(Message, frozen=True):
    """A subscriber has been sent everything of the past; what follows is new."""

    subscriber: str
    at: int


class Ended(Message, frozen=True):
    """The subscriber of this consumer is no more, or serves another; close the connection."""

    subscriber: str
    reason: str


class Matched(Message, frozen=True):
    """The subscriptions that want each event, as pairs of a subscriber and a key, that the principal may use."""

    request: int
    matches: tuple[tuple[tuple[str, str], ...], ...]


class VersionFacts(Message, frozen=True):
    """What is known of a version of a subscription, and whether it counts for an event."""

    key: str
    text: str
    asked: Any
    effective: Any
    since: int
    until: int
    """0 while it is in force."""
    counts: bool
    """Whether it was in force when the event came, or the event is of the past that it asked for."""


class DeliveryFacts(Message, frozen=True):
    """What became of the delivery of an event."""

    state: str
    """`done`, `sent`, `again` (it waits to come again), `waiting` (to be sent) or `ahead` (not looked at yet)."""
    attempts: int = 0


class Reasons(Message, frozen=True):
    """What the node knows of an event and a subscriber."""

    request: int
    position: int
    versions: tuple[VersionFacts, ...]
    delivery: DeliveryFacts


Answer: TypeAlias = (
    Published | Subscribed | Accepted | Refused | Described | Attached | Deliveries | Taken | Lost | CaughtUp | Ended
    | Matched | Reasons | LinkSaid
)  # fmt: skip


# -- Outputs


class Say(Message, frozen=True):
    """Tell a session."""

    session: int
    answer: Answer


class Append(Message, frozen=True):
    """Write a block to the log; say `on_disk` when it is there. A shared log gives the block its positions."""

    block: Block


class Keep(Message, frozen=True):
    """Write changes to the state, all of them in one transaction; say `kept` when they are there.

    What nobody waits for (`is_urgent` is False) may be written later together with others, in order.
    """

    number: int
    changes: tuple[Change, ...]
    is_urgent: bool


class Read(Message, frozen=True):
    """Read events from the log, from `first` on, `count` of them or a block more; answer with `take_read`.

    There is at most one at a time.
    """

    first: int
    last: int
    count: int = 256


Output: TypeAlias = Say | Append | Keep | Read
