"""What do brokers and clients say to each other? The protocol's messages.

*Messages* are immutable values, all of them. A client names its subscriptions and advertisements by keys of
its own; so does a broker towards each of its neighbours, because what it tells a neighbour (one filter for many, a
merger) is nobody's subscription in particular. Keys mean something between two peers only.

A message that takes filters back carries those that take their place. The receiver adds first and removes then, in
one step, so no event is lost in between. That is why there is no gap when a broad filter leaves and those that it
covered come up again.

An event that a client publishes is *passed* from broker to broker with what windows of ranked subscriptions need: when
its first broker took it, which one that was, and how many it had taken. A ranked subscription itself stays at its
broker, which tells its neighbours a filter in its place.

A broker answers with *outputs*: what to send to a neighbour, deliver to a client, or tell it that it did wrong.

Source: Mühl et al. 2002, sections 2.3 to 2.8 and 5; events in ranked windows, and withdrawing them: Pripužić 2010,
section 2.3 (docs/bibliography.md).
Departs: embedded subscriptions are for mergers only there; with covering it is the same gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.language.schema import NO_SCHEMA
from tamis.routing.errors import MessageError
from tamis.topk.ranked import Ranked

if TYPE_CHECKING:
    from tamis.language.expressions import Expression

Key: TypeAlias = int | str
"""What one peer calls a filter, or a publisher an event."""
PROVISIONAL, INCOMPLETE = -1, -2
"""What a broker calls filters that it tells a neighbour for the time being. The others have numbers from 0 on.

The first is TRUE, until it has worked out what to tell; the second is FALSE, until its own neighbours have told it all.
They are for this neighbour alone, which does not tell them on."""


def _freeze(message: Any, *names: str) -> None:
    for name in names:
        object.__setattr__(message, name, tuple(getattr(message, name)))


def _frozen(value: Any) -> Any:
    """Return a value that nobody can change: records and arrays all the way down."""
    if isinstance(value, Mapping):
        return MappingProxyType({name: _frozen(each) for name, each in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def plain(value: Any) -> Any:
    """Return an event, or a value of one, as dictionaries and lists that are one's own.

    >>> plain(Publish("e", {"bids": [1, 2], "at": {"x": 3}}).event)
    {'bids': [1, 2], 'at': {'x': 3}}
    """
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return list(map(plain, value)) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Entry:
    """A filter under a key."""

    key: Key
    filter: Expression | Ranked
    """A client may say which events it wants the best of; neighbours tell each other filters only."""
    imperfection: float = 0.0
    """The share of what the filter matches that nobody behind the sender may want, at most; 0 if a client said it."""
    hops: int = 0
    """How many links lie between the sender and the nearest broker whose client wants it; 0 if a client said it."""
    priority: int = 0
    """What a client's broker delivers first if it is higher. It stays there: neighbours tell each other of none."""

    @property
    def condition(self) -> Expression:
        """What an event has to fulfil, ranked or not.

        >>> from tamis.topk import Ranked
        >>> print(Entry("best", Ranked("price", 5, "1 HOUR", "category = 'flat'")).condition)
        category = 'flat'
        """
        return self.filter.where if isinstance(self.filter, Ranked) else self.filter


@dataclass(frozen=True, slots=True)
class Hello:
    """A neighbour is there: all that it wants, and all that may come from its side. The first message on a link."""

    entries: tuple[Entry, ...] = ()
    advertisements: tuple[Entry, ...] = ()
    schema: str = NO_SCHEMA
    """The digest of the sender's schema: brokers that conclude from different schemas would lose events."""
    lease_s: float | None = None
    """After so long a silence all that the sender said on this link is over; any message of it renews that."""
    part: int = 0
    """A long greeting comes in parts, numbered from 0. All of it counts when the last has come, and nothing before."""
    more: bool = False
    """Does another part follow?"""
    functions: tuple[tuple[str, int], ...] = ()
    """The names and versions of the functions of the host that filters may call: both ends have the same ones."""

    def __post_init__(self) -> None:
        _freeze(self, "entries", "advertisements", "functions")


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Filters that the sender wants from now on, and the keys of those that it no longer needs for them."""

    entries: tuple[Entry, ...]
    replaces: tuple[Key, ...] = ()
    lease_s: float | None = None
    """For how long, unless it says so again; a client's alone, as a broker's whole link has a lease (`Hello`)."""

    def __post_init__(self) -> None:
        _freeze(self, "entries", "replaces")


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Keys of filters that the sender no longer wants, and the filters that it wants instead."""

    keys: tuple[Key, ...]
    instead: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        _freeze(self, "keys", "instead")


@dataclass(frozen=True, slots=True)
class Advertise:
    """Filters of what may come from the sender from now on."""

    entries: tuple[Entry, ...]
    replaces: tuple[Key, ...] = ()
    lease_s: float | None = None

    def __post_init__(self) -> None:
        _freeze(self, "entries", "replaces")


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """Keys of filters that nothing comes from any more, and the filters that hold instead."""

    keys: tuple[Key, ...]
    instead: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        _freeze(self, "keys", "instead")


@dataclass(frozen=True, slots=True)
class Publish:
    """An event. No other event in the whole network has its key: who sees a key again sees the event again.

    >>> Publish("auctions/17", {"price": 12}) == Publish("auctions/17", {"price": 12})
    True
    """

    key: Key
    event: Mapping[str, Any] = field(hash=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "event", _frozen(self.event))
        except RecursionError:
            raise MessageError("an event is nested too deeply", "a few levels of records and arrays") from None

    @classmethod
    def of_promised(cls, key: Key, event: Mapping[str, Any]) -> Publish:
        """Return a publication of an event that nobody will ever change: it is kept as it is, and not copied.

        >>> Publish.of_promised("auctions/17", {"price": 12}) == Publish("auctions/17", {"price": 12})
        True
        """
        publication = object.__new__(cls)
        object.__setattr__(publication, "key", key)
        object.__setattr__(publication, "event", event)
        return publication

    def __reduce__(self) -> tuple[Any, ...]:
        return Publish, (self.key, plain(self.event))


@dataclass(frozen=True, slots=True)
class Passed(Publish):
    """An event on its way between brokers.

    >>> Passed("e", {"x": 1}, at=2.0, origin="b1", number=7).published == Publish("e", {"x": 1})
    True
    """

    at: float = 0.0
    """When its first broker took it; windows go by this wherever they are kept."""
    origin: str = ""
    """That broker."""
    number: int = 0
    """The how-manieth event of that broker it is, from 1 on; 0 if that was not said."""
    attempt: int = 1
    """2: it has left its first broker's recent buffer, and is matched again for ranked subscriptions alone."""

    @property
    def published(self) -> Publish:
        """The event as its publisher said it."""
        return Publish.of_promised(self.key, self.event)

    @classmethod
    def of(cls, publication: Publish, at: float, origin: str, number: int, attempt: int = 1) -> Passed:
        """Return a publication on its way; its event is not copied again."""
        passed = object.__new__(cls)
        fields = {"key": publication.key, "event": publication.event, "at": at, "origin": origin, "number": number}
        for name, value in (*fields.items(), ("attempt", attempt)):
            object.__setattr__(passed, name, value)
        return passed

    def __reduce__(self) -> tuple[Any, ...]:
        return Passed, (self.key, plain(self.event), self.at, self.origin, self.number, self.attempt)


@dataclass(frozen=True, slots=True)
class Withdraw:
    """A client takes back an event that it has published: from then on nobody is told of it.

    It keeps its place in all windows.
    """

    key: Key
    at: float | None = None
    """When its broker heard so; that broker says it, and not the client."""


@dataclass(frozen=True, slots=True)
class ResumeFiltering:
    """A neighbour asks that events be filtered for it again: too many came that nobody wanted."""


@dataclass(frozen=True, slots=True)
class Renew:
    """A neighbour is still there, and had nothing else to say for a while."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A client asks whether anybody else may want an event that a filter matches."""

    key: Key
    filter: Expression


# -- Between the nodes of a strategy without reverse paths


@dataclass(frozen=True, slots=True)
class Flooded:
    """What the clients of one node want, for every node: what changed since a version of it, or all of it."""

    origin: str
    version: int
    """It grows with every change, and over the lives of a node."""
    since: int
    """The version that this one follows; 0 if it takes the place of all that was said before."""
    entries: tuple[Entry, ...]
    removed: tuple[Key, ...] = ()

    def __post_init__(self) -> None:
        _freeze(self, "entries", "removed")


@dataclass(frozen=True, slots=True)
class Deposit:
    """A subscription, for the node where it meets its events."""

    home: str
    client: str
    key: Key
    wanted: Expression | Ranked
    at: float = 0.0
    """When its home took it: from then on it counts what is published."""
    number: int = 0
    """Which of its home's subscriptions it is: the same client may use a key again."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The end of a subscription, for the node where it was deposited."""

    home: str
    client: str
    key: Key
    number: int = 0
    """Which of its home's subscriptions ends, and those before it under this key."""


@dataclass(frozen=True, slots=True)
class Relayed:
    """A message on its way to a node, or to the owner of a cell: each node sends it one step nearer."""

    target: str | tuple[int, ...]
    message: Deposit | TakeBack | Passed

    def __post_init__(self) -> None:
        if not isinstance(self.target, str):
            _freeze(self, "target")


@dataclass(frozen=True, slots=True)
class Notified:
    """An event, straight to the node whose clients want it, and which of their subscriptions do."""

    publication: Passed
    wanted: tuple[tuple[str, Key], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "wanted", tuple(map(tuple, self.wanted)))


@dataclass(frozen=True, slots=True)
class Gossiped:
    """An event that goes from node to node by chance, for so many rounds more."""

    publication: Passed
    rounds: int
    is_certain: bool
    """Was it sent because somebody wants it, and not by chance?"""


@dataclass(frozen=True, slots=True)
class CellInterest:
    """All cells of the receiver that a peer wants the events of; the newest version counts."""

    peer: str
    version: int
    area: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "area", tuple(map(tuple, self.area)))


@dataclass(frozen=True, slots=True)
class Deposited:
    """A subscription that moves to another peer, with all that is remembered of it."""

    home: str
    client: str
    key: Key
    wanted: Expression | Ranked
    state: tuple[Any, ...] = ()
    """Of a ranked one its ranking, as numbers and tuples (`topk.saving`)."""
    held: tuple[Passed, ...] = ()
    """The events that its ranking refers to, and those that wait to be ranked."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class HandOver:
    """A zone moves to another peer, and all that lives in it: lower and upper corner, and how often it was halved."""

    zone: tuple[tuple[float, ...], tuple[float, ...], int]
    subscriptions: tuple[Deposited, ...] = ()
    interests: tuple[tuple[str, int, tuple[tuple[int, ...], ...]], ...] = ()
    """Who wants the events of which cells of it, and by which version."""
    recent: tuple[tuple[Passed, tuple[str, ...]], ...] = ()
    """The events of the recent buffer that lie in it, and which peers were sent each at first."""
    kept: tuple[Passed, ...] = ()
    """Events that the subscriptions' own recent buffer holds, wherever they lie."""

    def __post_init__(self) -> None:
        _freeze(self, "subscriptions", "recent", "kept")


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A zone has been taken over, and everybody concerned knows: the peer that gave it away may forget it."""

    zone: tuple[tuple[float, ...], tuple[float, ...], int]


Message: TypeAlias = (
    Hello
    | Subscribe
    | Unsubscribe
    | Advertise
    | Unadvertise
    | Publish
    | ResumeFiltering
    | Renew
    | Ask
    | Passed
    | Withdraw
    | Flooded
    | Relayed
    | Notified
    | Gossiped
    | Deposit
    | TakeBack
    | CellInterest
    | HandOver
    | TakenOver
)


@dataclass(frozen=True, slots=True)
class Send:
    """To a neighbour."""

    peer: str
    message: Message


@dataclass(frozen=True, slots=True)
class Deliver:
    """To a client: an event, and the keys of its subscriptions that want it, the highest priority first.

    Of the deliveries of one event, too, that of the highest priority comes first.
    """

    client: str
    publication: Publish
    subscriptions: tuple[Key, ...]
    priorities: tuple[int, ...] = ()
    """Of each of these subscriptions; empty where all are 0."""

    @property
    def priority(self) -> int:
        """The highest of its subscriptions."""
        return max(self.priorities, default=0)


@dataclass(frozen=True, slots=True)
class Reject:
    """To a client: what it may not do, and what would be right."""

    client: str
    key: Key
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """To a client: may anybody else want what it asked about under this key, as far as its broker knows?"""

    client: str
    key: Key
    is_wanted: bool


@dataclass(frozen=True, slots=True)
class LostNeighbour:
    """To the driver: a neighbour was silent for longer than its lease, and is forgotten; close the link."""

    peer: str


@dataclass(frozen=True, slots=True)
class Post:
    """To any node, not along a link: the network below finds the way."""

    broker: str
    message: Message


@dataclass(frozen=True, slots=True)
class Spread:
    """To some neighbours by chance: the driver draws, as a node has no chance of its own."""

    message: Message
    count: int
    """So many are drawn, of those that are not in `but`."""
    but: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    """Who of them has the message anyway: to be drawn costs them nothing."""


Output: TypeAlias = Send | Deliver | Reject | Answer | LostNeighbour | Post | Spread
