"""Which kinds of messages are there, who may say them, and in which order do their fields travel?

One table. **The order of its rows and of their fields is the wire format**: a kind's number in the bytes is its place
here, and its fields travel in this order, without names. So rows and fields are only ever added, at the end, with a new
`encoding.VERSION`; nothing is moved. The tests keep the bytes of a message of every kind.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tamis.routing.messages import (
    Advertise,
    Ask,
    CellInterest,
    Deposit,
    Flooded,
    Gossiped,
    HandOver,
    Hello,
    Message,
    Notified,
    Passed,
    Publish,
    Relayed,
    Renew,
    ResumeFiltering,
    Subscribe,
    TakeBack,
    TakenOver,
    Unadvertise,
    Unsubscribe,
    Withdraw,
)

CLIENT, NEIGHBOUR, NODE = "client", "neighbour", "node"
"""Who may say what; a node is one of a strategy without reverse paths, whether a neighbour or not."""

ENTRIES, KEYS, EVENT, FILTER, PLAIN = "entries", "keys", "event", "filter", "plain"
WANTED, MESSAGE, VERSIONS = "wanted", "message", "versions"
"""How a field travels: as filters under keys, keys, a record, the text of a filter, or as it is; as the text of a
filter or of a ranked subscription; as another message, in bytes; as pairs of a name and a version, left out where there
are none."""

TUPLES, MESSAGES, DEPOSITS, SERVED = "tuples", "messages", "deposits", "served"
"""And as numbers, texts and tuples of such; as several messages, in bytes; as subscriptions that move, with rankings;
as events, each with the names of those who were sent it."""


class MessageKind(NamedTuple):
    """A kind of message: who may say it, and its fields in the order in which they travel, each with its form."""

    message: type[Message]
    said_by: frozenset[str]
    fields: dict[str, str]


_BOTH, _CLIENTS, _NEIGHBOURS = frozenset({CLIENT, NEIGHBOUR}), frozenset({CLIENT}), frozenset({NEIGHBOUR})
_NODES = frozenset({NODE})

KINDS: Final[tuple[MessageKind, ...]] = (
    MessageKind(
        Hello,
        _NEIGHBOURS,
        {
            "entries": ENTRIES,
            "advertisements": ENTRIES,
            "schema": PLAIN,
            "lease_s": PLAIN,
            "part": PLAIN,
            "more": PLAIN,
            "functions": VERSIONS,
        },
    ),
    MessageKind(Subscribe, _BOTH, {"entries": ENTRIES, "replaces": KEYS, "lease_s": PLAIN}),
    MessageKind(Unsubscribe, _BOTH, {"keys": KEYS, "instead": ENTRIES}),
    MessageKind(Advertise, _BOTH, {"entries": ENTRIES, "replaces": KEYS, "lease_s": PLAIN}),
    MessageKind(Unadvertise, _BOTH, {"keys": KEYS, "instead": ENTRIES}),
    MessageKind(Publish, _BOTH, {"key": PLAIN, "event": EVENT}),
    MessageKind(ResumeFiltering, _NEIGHBOURS, {}),
    MessageKind(Renew, _NEIGHBOURS, {}),
    MessageKind(Ask, _CLIENTS, {"key": PLAIN, "filter": FILTER}),
    MessageKind(
        Passed,
        _NEIGHBOURS,
        {"key": PLAIN, "event": EVENT, "at": PLAIN, "origin": PLAIN, "number": PLAIN, "attempt": PLAIN},
    ),
    MessageKind(Withdraw, _BOTH, {"key": PLAIN, "at": PLAIN}),
    MessageKind(
        Flooded,
        _NODES,
        {"origin": PLAIN, "version": PLAIN, "since": PLAIN, "entries": ENTRIES, "removed": KEYS},
    ),
    MessageKind(Relayed, _NODES, {"target": TUPLES, "message": MESSAGE}),
    MessageKind(Notified, _NODES, {"publication": MESSAGE, "wanted": TUPLES}),
    MessageKind(Gossiped, _NODES, {"publication": MESSAGE, "rounds": PLAIN, "is_certain": PLAIN}),
    MessageKind(
        Deposit, _NODES, {"home": PLAIN, "client": PLAIN, "key": PLAIN, "wanted": WANTED, "at": PLAIN, "number": PLAIN}
    ),
    MessageKind(TakeBack, _NODES, {"home": PLAIN, "client": PLAIN, "key": PLAIN, "number": PLAIN}),
    MessageKind(CellInterest, _NODES, {"peer": PLAIN, "version": PLAIN, "area": TUPLES}),
    MessageKind(
        HandOver,
        _NODES,
        {"zone": TUPLES, "subscriptions": DEPOSITS, "interests": TUPLES, "recent": SERVED, "kept": MESSAGES},
    ),
    MessageKind(TakenOver, _NODES, {"zone": TUPLES}),
)

NUMBERS: Final[dict[type[Message], int]] = {kind.message: number for number, kind in enumerate(KINDS)}


def names_said_by(sender: str) -> str:
    """Return the kinds of messages that a sender may say.

    >>> names_said_by("client")
    'Subscribe, Unsubscribe, Advertise, Unadvertise, Publish, Ask or Withdraw'
    """
    *names, last = [kind.message.__name__ for kind in KINDS if sender in kind.said_by]
    return f"{', '.join(names)} or {last}"
