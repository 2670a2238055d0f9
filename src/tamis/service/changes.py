"""What must survive a restart, besides events? Changes of the state, as rows.

The node names each change of what it must not forget as one of these values; `state` writes them, and returns them all
as one `Stored` at the next start. A change that names something that is there replaces it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tamis.service.links.terms import LinkTerms
from tamis.service.positions import Position
from tamis.service.tellings import Told


class SubscriberKept(msgspec.Struct, frozen=True):
    """A durable subscriber, and how it is served."""

    name: str
    owner: str
    wait_s: float
    attempts: int
    is_ordered: bool
    forget_after_s: float
    backoff_s: float = 0.0


class SubscriberGone(msgspec.Struct, frozen=True):
    """A subscriber is forgotten, with all that belongs to it: subscriptions, replays, floor, dead letters."""

    name: str


class FloorKept(msgspec.Struct, frozen=True):
    """Everything up to `floor` is done, and of what follows these `islands`."""

    name: str
    floor: Position
    islands: tuple[Position, ...]
    seen_us: int
    """When the subscriber was connected last."""


class SubscriptionKept(msgspec.Struct, frozen=True):
    """A version of a subscription: in force for the events behind `since` up to `until` (0: without an end).

    A version is named by subscriber, key and number. A replaced one stays until nobody can need it for the past any
    more.
    """

    subscriber: str
    key: str
    number: int
    text: str
    effective: str
    """What is matched: the text, restricted to what the owner may receive."""
    since: int
    until: int = 0
    by: str = ""
    """Who registered it, by which its restriction is computed again when roles change."""
    roles: tuple[str, ...] = ()
    is_admin: bool = False


class SubscriptionGone(msgspec.Struct, frozen=True):
    """A version of a subscription that nobody needs any more."""

    subscriber: str
    key: str
    number: int


class LeaseKept(msgspec.Struct, frozen=True):
    """When a subscription ends, unless it is subscribed to again; 0 if it is not leased any more."""

    subscriber: str
    key: str
    ends_us: int


class ResumeKept(msgspec.Struct, frozen=True):
    """What a subscriber's subscriptions remember of earlier events is found again by going through the log from here.

    `states` is what cannot be found so.
    """

    subscriber: str
    at: int
    states: bytes = b""


class ReplayKept(msgspec.Struct, frozen=True):
    """A subscription also wants the events from `first` up to `since`, where it was made; until they are done."""

    subscriber: str
    key: str
    number: int
    """The version of the subscription."""
    first: int
    since: int


class ReplayGone(msgspec.Struct, frozen=True):
    """A replay is done, or nobody wants it any more."""

    subscriber: str
    key: str
    number: int


class Buried(msgspec.Struct, frozen=True):
    """A dead letter: an event that a subscriber gave up, or that was delivered too often."""

    subscriber: str
    position: Position
    keys: tuple[str, ...]
    body: bytes
    reason: str
    attempts: int
    at_us: int
    told: tuple[Told, ...] = ()
    """What subscriptions that remember earlier events had to tell."""


class Exhumed(msgspec.Struct, frozen=True):
    """A dead letter was delivered after all."""

    subscriber: str
    position: Position


class WebhookKept(msgspec.Struct, frozen=True):
    """Where a subscriber's events are posted to."""

    subscriber: str
    url: str
    secrets: tuple[str, ...]
    """Each signs; two while one replaces the other."""
    by: str
    """Who made it; it sees no more than that principal may."""
    roles: tuple[str, ...] = ()
    is_admin: bool = False
    mode: str = "structured"
    """How events look: `structured`, `binary` or `batch`."""
    most: int = 1
    """How many events a batch has at most."""


class WebhookGone(msgspec.Struct, frozen=True):
    """A subscriber's events are not posted any more."""

    subscriber: str


class LinkKept(msgspec.Struct, frozen=True):
    """A neighbour that is remembered; how far it has come is a floor, under the name of its subscriber."""

    name: str
    number: int
    """By which its events are marked in the log."""
    url: str
    terms: LinkTerms


class LinkGone(msgspec.Struct, frozen=True):
    """A neighbour is gone for good."""

    name: str


Change: TypeAlias = (
    SubscriberKept | SubscriberGone | FloorKept | SubscriptionKept | SubscriptionGone | ReplayKept | ReplayGone |
    ResumeKept
    | Buried
    | Exhumed | LeaseKept | LinkKept | LinkGone | WebhookKept | WebhookGone
)  # fmt: skip


class Stored(msgspec.Struct, frozen=True):
    """Everything that was kept, as it was left. Dead letters stay on disk; only their number is told."""

    subscribers: tuple[SubscriberKept, ...] = ()
    floors: tuple[FloorKept, ...] = ()
    subscriptions: tuple[SubscriptionKept, ...] = ()
    replays: tuple[ReplayKept, ...] = ()
    dead_counts: tuple[tuple[str, int], ...] = ()
    links: tuple[LinkKept, ...] = ()
    leases: tuple[LeaseKept, ...] = ()
    webhooks: tuple[WebhookKept, ...] = ()
    resumes: tuple[ResumeKept, ...] = ()
