"""What do brokers and clients say to each other over a WebSocket? The messages of the protocol `tamis.v1`.

A frame is JSON: one message, or a list of them. A message is an object, and its first member says what it is: `hello`,
`subscribe`, `publish`, `done` from a client, `welcome`, `ok`, `events`, `error` from a broker. What has an `id` is
answered under it. Events are CloudEvents, carried as the bytes that they are (`msgspec.Raw`): who passes them on need
not parse them.

>>> encode(FromClient(subscribe={"cheap": "price < 20"}, since="-10m", id=1))
b'{"subscribe":{"cheap":"price < 20"},"from":"-10m","id":1}'
>>> decode_broker(b'{"ok": 1, "since": "k3f9-812"}')[0].since
'k3f9-812'
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

SUBPROTOCOL = "tamis.v1"
PATH = "/ws"


class Hello(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who connects: `name` ("as") is a subscriber; without it, the connection only publishes, or is a passing one."""

    name: str = field(default="", name="as")
    token: str = ""
    durable: bool | UnsetType = UNSET
    """Whether the subscriber is remembered when it has gone."""
    credit: int = 256
    """So many deliveries may be unacknowledged."""
    when_slow: Literal["gap", "close"] = "gap"
    """What happens to a passing subscriber that is too slow: it goes on behind a gap, or is closed."""
    past: bool = False
    """Whether a passing subscriber will ask for events of the past, which edge brokers do not have."""


class FromClient(msgspec.Struct, frozen=True, omit_defaults=True):
    """Anything that a client says; which of it is set says what it is."""

    hello: Hello | UnsetType = UNSET
    subscribe: dict[str, Any] | UnsetType = UNSET
    """Texts of the language, or their JSON form, by key."""
    since: str = field(default="", name="from")
    """From where on events of the past are wanted too: `-1h`, a time, a position, `first`."""
    settle_s: float = 0.0
    """How long the answer to `subscribe` may wait until every broker of the network knows."""
    lease_s: float = 0.0
    """After which time the subscriptions end, unless they are subscribed to again; 0 is for never."""
    unsubscribe: list[str] | UnsetType = UNSET
    """Keys of subscriptions that end."""
    publish: list[Raw] | UnsetType = UNSET
    wanted: bool = False
    """Whether the answer to `publish` is to say how many subscribers want each event."""
    done: list[str] | UnsetType = UNSET
    done_through: str = ""
    again: list[str] | UnsetType = UNSET
    in_s: float = 0.0
    never: list[str] | UnsetType = UNSET
    reason: str = ""
    id: int | UnsetType = UNSET


class Welcome(msgspec.Struct, frozen=True):
    """What a broker is: its name, the epoch of its log, the newest position, and its limits."""

    broker: str = ""
    epoch: str = ""
    at: str = ""
    limits: dict[str, Any] = {}


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a subscription that remembers earlier events has to tell: which, of what kind, and when it was so."""

    key: str
    kind: str
    """`ranked`, `sequence` or `change`."""
    at: str
    """The time at which an event came, or something was due although nothing came."""
    change: bool | UnsetType = UNSET
    """Of a change: whether the condition became true, or ceased to be."""
    rank: int | UnsetType = UNSET
    """Of a ranked subscription: the place of the event among the best, 1 is the first."""
    run: list[str] | UnsetType = UNSET
    """Of a sequence: the positions of its events,"""
    events: list[Raw] | UnsetType = UNSET
    """and the events."""


class Delivered(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event, where it stands, the keys of the subscriptions that want it, and whether it may have come before."""

    at: str
    keys: list[str] = field(default_factory=list, name="for")
    again: bool = False
    told: list[Told] = field(default_factory=list)
    """What those of the subscriptions say of it that remember earlier events."""
    event: Raw = field(default_factory=lambda: Raw(b"null"))  # a default value would have to be in the JSON Schema


class FromBroker(msgspec.Struct, frozen=True, omit_defaults=True):
    """Anything that a broker says; which of it is set says what it is."""

    welcome: Welcome | UnsetType = UNSET
    ok: int | UnsetType = UNSET
    """The `id` of what was asked and is done."""
    since: str = ""
    settled: bool | UnsetType = UNSET
    position: str = ""
    """Of the last event that was published."""
    positions: list[str] | UnsetType = UNSET
    """Of each event that was published, in order."""
    known: int | UnsetType = UNSET
    """How many of the published events had been taken before."""
    durable: bool | UnsetType = UNSET
    """Whether the published events are on disk."""
    wanted: list[int | None] | UnsetType = UNSET
    """Of each published event, how many want it; null if it had been taken before."""
    effective: dict[str, str] | UnsetType = UNSET
    """What is matched, by key: the text, restricted to what may be received."""
    remembering: list[str] | UnsetType = UNSET
    """The keys of the subscriptions that remember earlier events, and so have no past (`from`)."""
    events: list[Delivered] | UnsetType = UNSET
    gap: dict[str, Any] | UnsetType = UNSET
    """Events that a subscriber will not get, and why."""
    caught_up: Any = UNSET
    """All that was asked of the past is delivered."""
    error: dict[str, Any] | UnsetType = UNSET
    """A problem document, as over HTTP."""
    id: int | UnsetType | None = UNSET
    """What the error is an answer to."""
    bye: str | UnsetType = UNSET
    """The broker ends the connection, and why."""
    retry_s: float = 1.0


_ENCODER = msgspec.json.Encoder(decimal_format="number")
_BROKER = msgspec.json.Decoder(FromBroker | list[FromBroker])
_CLIENT = msgspec.json.Decoder(FromClient | list[FromClient])

encode = _ENCODER.encode


def decode_broker(frame: bytes | str) -> list[FromBroker]:
    """Return the messages of a frame that a broker sent."""
    said = _BROKER.decode(frame)
    return said if isinstance(said, list) else [said]


def decode_client(frame: bytes | str) -> list[FromClient]:
    """Return the messages of a frame that a client sent."""
    said = _CLIENT.decode(frame)
    return said if isinstance(said, list) else [said]


def joined(messages: list[bytes]) -> bytes:
    """Return one frame of several encoded messages.

    >>> joined([b'{"done":["k3f9-1"]}', b'{"done":["k3f9-2"]}'])
    b'[{"done":["k3f9-1"]},{"done":["k3f9-2"]}]'
    """
    return messages[0] if len(messages) == 1 else b"[" + b",".join(messages) + b"]"
