r"""How do two brokers cut a stream of bytes into messages? Frames: a length, a kind, a body.

    bytes u32 · kind u8 · body

The length counts the kind and the body. Before the other end has proved who it is, only small frames are taken; after
that, no frame is larger than a limit, whatever its length says: nothing is reserved for bytes that have not come. A
control message that is larger travels in pieces. Events travel as the bytes that are stored, each with its position in
the sender's log, and are never parsed or written again on the way.

>>> reader = FrameReader()
>>> data = frame(Kind.PING, b"")
>>> reader.feed(data[:3]), reader.feed(data[3:] + b"\0")
([], [Frame(kind=<Kind.PING: 5>, body=b'')])
"""

from __future__ import annotations

import enum
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from tamis.routing.overlay import LinkState
from tamis.service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

VERSION = 1
"""Of what is said over a link; both ends must speak the same."""
PORT = 7411
MOST_GREETING_BYTES = 262_144
"""Of a frame before the peer is known: a greeting names the attributes of a schema."""
MOST_BYTES = 16_000_000
PIECE_BYTES = 1_000_000
"""Of a control message in one frame."""
MOST_CONTROL_BYTES = 512_000_000
"""Of a control message in all its pieces: filters of a large network."""
MOST_EVENTS = 65_536
"""In one frame."""
_HEAD = struct.Struct(">IB")
_EVENT = struct.Struct(">QBI")
_PIECE = struct.Struct(">QB")
_COUNT = struct.Struct(">I")
_ACK = struct.Struct(">QQQ")
_Told = TypeVar("_Told")


class LinkError(ServiceError):
    """The other end of a link said what it may not say; the connection is closed."""

    status = 400
    title = "The link is broken"


class Kind(enum.IntEnum):
    """What a frame is. The numbers are the wire format."""

    GREETING = 1
    PROOF = 2
    JOIN = 3
    CONTROL = 4
    PING = 5
    PONG = 6
    EVENTS = 7
    ACK = 8
    BEHIND = 9
    CLOSE = 10
    FLOOD = 11


class Frame(NamedTuple):
    """One message of a link."""

    kind: Kind
    body: bytes


class Greeting(msgspec.Struct, frozen=True, array_like=True):
    """Who speaks: the first frame of both ends."""

    version: int
    network: str
    broker: str
    nonce: bytes
    """Chosen anew for each connection, so that a proof cannot be used twice."""
    asks_proof: bool
    """Whether a link token is expected."""
    digest: str
    """Of the schema; brokers that conclude from different schemas would lose events."""
    attributes: dict[str, str] | None = None
    """The schema, so that the other end can say what differs; None without one."""
    functions: dict[str, int] = {}
    """The versions of the functions that filters may call, by name; both ends have the same ones."""
    is_graph: bool = False
    """Whether links may close circles, and brokers agree which of them carry traffic."""


class Join(msgspec.Struct, frozen=True, array_like=True):
    """Where the talk goes on: which session this is, and what of the other's session has arrived here."""

    session: str
    heard_session: str
    """The session of the other end that the following numbers are of; empty if none is known."""
    control_through: int
    events_through: int
    """A position of the other's log: everything that it sent up to there is on disk here."""
    behind: tuple[str, ...]
    """The brokers that are reached through this end, itself included; in a graph, floods say that."""
    turns: tuple[int, int] = (0, 0)
    """In a graph: of which tree it speaks, by the turns of this end and of the other."""


class GraphSaid(msgspec.Struct, frozen=True, array_like=True):
    """What a broker of a graph says to a neighbour: links of brokers, and which tree it computes from all it knows."""

    states: tuple[LinkState, ...]
    tree: str
    turn: int
    """How often this end has computed another tree; two words of one turn speak of one tree."""
    is_complete: bool = False
    """Whether everybody behind this end names the tree too, and the neighbour knows what all of them want."""


class Ack(NamedTuple):
    """What has arrived: events on disk, control messages heard, control messages that are settled."""

    events: int = 0
    control: int = 0
    settled: int = 0


class LinkEvent(NamedTuple):
    """An event on a link."""

    position: int
    """In the log of the sender."""
    flags: int
    body: bytes


class LinkClose(msgspec.Struct, frozen=True, array_like=True):
    """Why an end closes the connection."""

    reason: str
    is_refusal: bool = False
    """Whether the link itself is refused: another try soon would end the same way."""


def frame(kind: Kind, body: bytes) -> bytes:
    """Return a frame as bytes."""
    return _HEAD.pack(len(body) + 1, kind) + body


def told(kind: Kind, message: msgspec.Struct) -> bytes:
    """Return a frame whose body is a Struct."""
    return frame(kind, msgspec.msgpack.encode(message))


def read(body: bytes, message: type[_Told]) -> _Told:
    """Return the Struct of a body."""
    try:
        return msgspec.msgpack.decode(body, type=message)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise LinkError(f"a {message.__name__} cannot be read: {error!s:.200}", "its fields in MessagePack") from None


class FrameReader:
    """Bytes as they come, cut into frames."""

    def __init__(self, most_bytes: int = MOST_GREETING_BYTES) -> None:
        self.most_bytes = most_bytes
        """Of the next frame; raised when the peer is known."""
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes; return the frames that are complete. Raise a `LinkError` for what is no frame."""
        self._bytes += data
        frames: list[Frame] = []
        place = 0
        while len(self._bytes) - place >= _HEAD.size:
            length, number = _HEAD.unpack_from(self._bytes, place)
            if not 1 <= length <= self.most_bytes:
                raise LinkError(f"a frame of {length} bytes", f"1 to {self.most_bytes}")
            if number not in _KINDS:
                raise LinkError(f"a frame of kind {number}", f"one of {', '.join(map(str, sorted(_KINDS)))}")
            end = place + _COUNT.size + length
            if len(self._bytes) < end:
                break
            frames.append(Frame(_KINDS[number], bytes(memoryview(self._bytes)[place + _HEAD.size : end])))
            place = end
        del self._bytes[:place]
        return frames


_KINDS = {int(kind): kind for kind in Kind}


# -- Acknowledgements


def ack_frame(ack: Ack) -> bytes:
    """Return an acknowledgement as bytes."""
    return frame(Kind.ACK, _ACK.pack(*ack))


def read_ack(body: bytes) -> Ack:
    """Return the acknowledgement of a body."""
    if len(body) != _ACK.size:
        raise LinkError(f"an acknowledgement of {len(body)} bytes", f"{_ACK.size}")
    return Ack(*_ACK.unpack(body))


# -- Events


def event_frames(events: Sequence[LinkEvent], most_bytes: int = MOST_BYTES) -> Iterator[bytes]:
    """Yield frames with these events, as few as there can be."""
    parts: list[bytes] = []
    size, count = _COUNT.size + 1, 0
    for event in events:
        event_bytes = _EVENT.size + len(event.body)
        if count and (size + event_bytes > most_bytes or count >= MOST_EVENTS):
            yield frame(Kind.EVENTS, _COUNT.pack(count) + b"".join(parts))
            parts, size, count = [], _COUNT.size + 1, 0
        parts += (_EVENT.pack(event.position, event.flags, len(event.body)), event.body)
        size, count = size + event_bytes, count + 1
    if count:
        yield frame(Kind.EVENTS, _COUNT.pack(count) + b"".join(parts))


def read_events(body: bytes) -> list[LinkEvent]:
    """Return the events of a body, whose positions ascend.

    >>> data = b"".join(event_frames([LinkEvent(7, 1, b"{}"), LinkEvent(9, 0, b"[]")]))
    >>> read_events(data[5:])
    [LinkEvent(position=7, flags=1, body=b'{}'), LinkEvent(position=9, flags=0, body=b'[]')]
    """
    broken = LinkError("the events of a frame cannot be read", "a count, and a position, flags, length and body each")
    if len(body) < _COUNT.size:
        raise broken
    (count,) = _COUNT.unpack_from(body)
    place, last = _COUNT.size, 0
    events: list[LinkEvent] = []
    while place < len(body):
        if len(body) - place < _EVENT.size:
            raise broken
        position, flags, length = _EVENT.unpack_from(body, place)
        place += _EVENT.size
        if length > len(body) - place:
            raise broken
        if position <= last:
            raise LinkError(f"an event at {position} behind one at {last}", "positions that ascend")
        events.append(LinkEvent(position, flags, body[place : place + length]))
        place, last = place + length, position
    if len(events) != count or not events:
        raise broken
    return events


# -- Control messages, which may be large


def control_frames(messages: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """Yield frames with numbered control messages: pieces, of which the last says that it is."""
    for number, payload in messages:
        for start in range(0, max(1, len(payload)), PIECE_BYTES):
            is_last = start + PIECE_BYTES >= len(payload)
            yield frame(Kind.CONTROL, _PIECE.pack(number, is_last) + payload[start : start + PIECE_BYTES])


class Pieces:
    """Control messages of which pieces have come.

    >>> pieces = Pieces()
    >>> frames = [each[5:] for each in control_frames([(4, b"x" * (PIECE_BYTES + 1))])]
    >>> pieces.feed(frames[0]), len(pieces.feed(frames[1])[1])
    (None, 1000001)
    """

    def __init__(self) -> None:
        self._number, self._pieces, self._size_bytes = -1, list[bytes](), 0

    def feed(self, body: bytes) -> tuple[int, bytes] | None:
        """Take a piece; return the message that it completes, with its number."""
        if len(body) < _PIECE.size:
            raise LinkError(f"a piece of a control message of {len(body)} bytes", f"{_PIECE.size} at least")
        number, is_last = _PIECE.unpack_from(body)
        if is_last > 1 or (self._pieces and number != self._number):
            raise LinkError(f"a piece of the control message {number}", f"the rest of {self._number}")
        self._number = number
        self._pieces.append(body[_PIECE.size :])
        self._size_bytes += len(body)
        if self._size_bytes > MOST_CONTROL_BYTES:
            raise LinkError("a control message that does not end", f"at most {MOST_CONTROL_BYTES} bytes")
        if not is_last:
            return None
        payload = b"".join(self._pieces)
        self._pieces, self._size_bytes = [], 0
        return number, payload


def differing_functions(ours: Mapping[str, int], theirs: Mapping[str, int]) -> str:
    """Return which functions one end has and the other has not.

    >>> differing_functions({"score": 1}, {"score": 2, "rank": 1})
    'score@1 is here only, rank@1 is there only, score@2 is there only'
    """
    here, there = ({f"{name}@{version}" for name, version in each.items()} for each in (ours, theirs))
    parts = [f"{each} is here only" for each in sorted(here - there)]
    parts += [f"{each[:80]} is there only" for each in sorted(there - here)]
    return ", ".join(parts[:20])


def differing(ours: dict[str, str] | None, theirs: dict[str, str] | None) -> str:
    """Say in which attributes two schemas differ.

    >>> differing({"price": "double", "title": "string"}, {"price": "bigint"})
    'price is double here and bigint there, title is string here and nothing there'
    """
    here, there = ours or {}, theirs or {}
    if ours is None or theirs is None:
        return f"{'this end' if ours is None else 'the other end'} has no schema"
    names: list[Any] = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
    parts = [f"{name} is {here.get(name, 'nothing')} here and {there.get(name, 'nothing')} there" for name in names]
    return ", ".join(parts[:5]) + (f", and {len(parts) - 5} more" if len(parts) > 5 else "")
