"""What does a broker tell of subscriptions and advertisements? Meta-events.

Publishers may want to know whether anybody listens, and operators who does. A broker that announces publishes an event
for each subscription and advertisement that a client of its own makes or takes back. They are events like others:
whoever wants them subscribes to them (`type = 'tamis.Subscribed'`), and they cause no announcements themselves. Clients
may not publish any.

Who starts to listen is *reminded* of what is there already: its broker delivers, to it alone, an announcement for
whatever it knows of its clients and its neighbours. Of what is wanted behind a neighbour it knows a summary, and of no
client; such a reminder names the neighbour as the broker, and no client.

Source: Mühl et al. 2002, section 5 (docs/bibliography.md); that publishers may keep quiet if nobody listens is Elvin's
idea.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.expressions import And, Attribute, Compare, In, IsNull, Literal, postorder
from tamis.relations import overlaps
from tamis.routing.messages import Advertise, Key, Publish, Subscribe, Unadvertise, Unsubscribe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.topk.ranked import Ranked

TYPES: dict[type[Any], str] = {
    Subscribe: "tamis.Subscribed",
    Unsubscribe: "tamis.Unsubscribed",
    Advertise: "tamis.Advertised",
    Unadvertise: "tamis.Unadvertised",
}
ATTRIBUTES = ("type", "broker", "client", "key", "filter")
AGAIN = "tamis/again/"
"""How the keys of reminders begin."""
PREFIX = "tamis/"
"""How the keys of announcements begin; clients' events have others, or they would be taken for the same event."""


def announcement(
    kind: type[Any], broker: str, client: str, key: Key, wanted: Expression | Ranked, number: int, now: float
) -> Publish:
    """Return the event that says what a client did.

    >>> import tamis
    >>> said = announcement(Subscribe, "b1", "ann", "cheap", tamis.parse("price < 20"), 1, 0.0)
    >>> said.event["type"], said.event["filter"]
    ('tamis.Subscribed', 'price < 20')
    """
    event = {"type": TYPES[kind], "broker": broker, "client": client, "key": str(key), "filter": str(wanted)}
    return Publish(f"{PREFIX}{broker}/{now!r}/{number}", event)


def objection(schema: Schema) -> str | None:
    """Return why announcements do not fit a schema; None if they do.

    >>> from tamis.language.schema import Schema
    >>> objection(Schema({"price": "double"}))
    'the schema has no attribute type'
    """
    events = (dict.fromkeys(ATTRIBUTES, "") | {"type": name} for name in TYPES.values())
    return next((reason for event in events if (reason := schema.objection(event))), None)


def reminder(
    kind: type[Any], teller: str, broker: str, client: str, key: Key, wanted: Expression | Ranked, number: int, now: float
) -> Publish:
    """Return what says again what a client did, or what a neighbour told, as a broker knows it.

    >>> import tamis
    >>> is_reminder(reminder(Subscribe, "b1", "b2", "", 7, tamis.parse("price < 20"), 1, 0.0).key)
    True
    """
    event = announcement(kind, broker, client, key, wanted, number, now).event
    return Publish(f"{AGAIN}{teller}/{now!r}/{number}", event)


def is_reminder(key: Key) -> bool:
    """Is this the key of what is said again, to one client alone?"""
    return isinstance(key, str) and key.startswith(AGAIN)


def may_match(filter_: Expression, schema: Schema | None) -> bool:
    """May a filter match an announcement, which has a few attributes and no others?

    >>> import tamis
    >>> [may_match(tamis.parse(text), None) for text in ("type LIKE 'tamis.%'", "price < 20", "price IS NULL")]
    [True, False, True]
    """
    named = {node for node in postorder(filter_) if isinstance(node, Attribute)}
    absent = [IsNull(each) for each in sorted(named, key=str) if each.path[0] not in ATTRIBUTES]
    types = In(Attribute(("type",)), tuple(TYPES.values()))
    return overlaps(filter_, And((types, *absent)) if absent else types, schema).holds


def announced_by(broker: str) -> Expression:
    """Return the filter of all that a broker announces."""
    types = In(Attribute(("type",)), tuple(TYPES.values()))
    return And((types, Compare("=", Attribute(("broker",)), Literal(broker))))


def is_announcement(event: Mapping[str, Any]) -> bool:
    """Does an event look like an announcement?"""
    kind = event.get("type")
    return isinstance(kind, str) and kind in TYPES.values()


def is_key_of_announcement(key: Key) -> bool:
    """Does an event's key look like an announcement's?"""
    return isinstance(key, str) and key.startswith(PREFIX)
