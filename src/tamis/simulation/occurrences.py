"""What happens in a network, as those see it who look on from outside? The trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.routing import Message, Publish
    from tamis.routing.messages import Key
    from tamis.topk import Ranked


@dataclass(frozen=True, slots=True)
class ClientSubscribed:
    """A client's broker has a new subscription of the client; or a new advertisement."""

    client: str
    key: Key
    filter: Expression | Ranked
    is_advertisement: bool = False


@dataclass(frozen=True, slots=True)
class ClientUnsubscribed:
    """A client's broker has it no longer."""

    client: str
    key: Key
    is_advertisement: bool = False


@dataclass(frozen=True, slots=True)
class Expired:
    """The lease of a subscription or an advertisement is over, and the client has forgotten it."""

    client: str
    key: Key
    is_advertisement: bool = False


@dataclass(frozen=True, slots=True)
class EventPublished:
    """A client's broker took an event."""

    client: str
    broker: str
    publication: Publish


@dataclass(frozen=True, slots=True)
class EventWithdrawn:
    """A client's broker heard that the client takes back an event."""

    client: str
    broker: str
    key: Key


@dataclass(frozen=True, slots=True)
class MessageCarried:
    """A message left for a neighbour."""

    source: str
    target: str
    message: Message


@dataclass(frozen=True, slots=True)
class MessagePosted:
    """A message left for any node, not along a link."""

    source: str
    target: str
    message: Message


@dataclass(frozen=True, slots=True)
class EventDelivered:
    """An event reached a client, for these of its subscriptions."""

    client: str
    publication: Publish
    subscriptions: tuple[Key, ...]
    hop_count: int
    delay_s: float


@dataclass(frozen=True, slots=True)
class Failed:
    """Something failed, or was mended."""

    what: str
    restarted: str | None = None
    """The broker that starts anew, and remembers nothing."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """What was under way on some links is lost, and their ends begin again; what they said before stays in force."""

    broker: str | None = None
    """The broker that was started anew meanwhile, if one was: it knows its clients, and of its neighbours nothing."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A client was told that its subscription or advertisement is in force everywhere."""

    client: str
    key: Key
    filter: Expression
    is_advertisement: bool = False


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nothing is under way any more."""


Occurrence: TypeAlias = (
    ClientSubscribed
    | ClientUnsubscribed
    | Expired
    | EventPublished
    | EventWithdrawn
    | MessageCarried
    | MessagePosted
    | EventDelivered
    | Failed
    | Renewed
    | Settled
    | Quiet
)
