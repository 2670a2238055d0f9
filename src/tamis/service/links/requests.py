"""What do the sockets of links and the core say to each other? The messages of neighbours.

They are as those of clients (`messages`): requests of a session, and answers to it. The session is the connection.
"""

from __future__ import annotations

from tamis.service.links.frames import GraphSaid, Join  # noqa: TC001 (msgspec reads it)
from tamis.service.links.terms import LinkTerms
from tamis.service.messages import LinkAsked, LinkSaid, Message, Publish

# -- Requests


class LinkOpen(LinkAsked, frozen=True):
    """A broker that has proved who it is has connected, or was called. Answer: `Joining`."""

    neighbour: str
    terms: LinkTerms
    url: str = ""


class LinkJoined(LinkAsked, frozen=True):
    """What the neighbour says of its session. Answers: `Controls`, `Deliveries` and so on from now on."""

    join: Join


class LinkControl(LinkAsked, frozen=True):
    """A numbered control message of the neighbour. Answer: `Heard`, sooner or later."""

    number: int
    payload: bytes


class LinkAcked(LinkAsked, frozen=True):
    """What has arrived at the neighbour. No answer."""

    events: int
    control: int
    settled: int


class LinkBehind(LinkAsked, frozen=True):
    """The brokers that are reached through the neighbour have changed. No answer."""

    brokers: tuple[str, ...]


class LinkFlood(LinkAsked, frozen=True):
    """What the neighbour says of the graph. Answer: `GraphTold`, if that changes anything."""

    said: GraphSaid


class Relay(Publish, frozen=True):
    """Events of a neighbour; `request` is the position of the last of them in its log. Answer: `Published`."""


class LinkForget(LinkAsked, frozen=True):
    """A neighbour is gone for good. Answer: `Accepted`."""

    request: int
    neighbour: str


class LinkChange(LinkAsked, frozen=True):
    """Other terms for a link count from now on, or it is to be remembered. Answer: `Accepted`."""

    request: int
    neighbour: str
    terms: LinkTerms
    url: str = ""


class LinksDescribe(LinkAsked, frozen=True):
    """Say what is known of all links. Answer: `LinksDescribed`."""

    request: int


# -- Answers


class Joining(LinkSaid, frozen=True):
    """What to tell the neighbour of this end's session."""

    join: Join


class Controls(LinkSaid, frozen=True):
    """Numbered control messages for the neighbour, in order."""

    items: tuple[tuple[int, bytes], ...]


class Heard(LinkSaid, frozen=True):
    """What of the neighbour's control messages was heard, and what is settled."""

    control: int
    settled: int


class Behind(LinkSaid, frozen=True):
    """The brokers that are reached through this end have changed."""

    brokers: tuple[str, ...]


class GraphTold(LinkSaid, frozen=True):
    """What to tell the neighbour of the graph."""

    said: GraphSaid


class LinkClosed(LinkSaid, frozen=True):
    """Close the connection, and say why."""

    reason: str
    is_refusal: bool = False
    """Whether another try soon would end the same way."""


class LinkFacts(Message, frozen=True):
    """What is known of a link."""

    name: str
    state: str
    """`live`, `behind` (connected, and not at the head of the log), `joining` or `away`; in a graph also `idle`, if it
    is not in the tree, and `leaving`, if it is not any more and has a backlog."""
    url: str
    terms: LinkTerms
    position: int
    """Everything up to here that concerns the neighbour is on its disk."""
    unacknowledged: int
    waiting_control: int
    told: int
    """How many filters the neighbour knows from here."""
    wants: int
    """How many filters are known from there."""
    is_settled: bool
    """Whether everything that was told to it is in force behind it."""
    behind: tuple[str, ...]
    """The brokers that are reached through it."""
    refusal: str
    """Why it was refused last; empty if it was not."""
    sent: int
    received: int
    known: int
    """How many of those received had been there before."""
    begun: int
    """How many sessions were begun with everything told anew."""
    resumed: int
    """How many connections went on where the last one broke."""
    lost: int
    """Gaps of the log that the neighbour was too far behind for."""
    carries: bool = False
    """Whether events pass over it now."""


class LinksDescribed(LinkSaid, frozen=True):
    """What is known of all links."""

    request: int
    broker: str
    links: tuple[LinkFacts, ...]
