"""How do two brokers talk over one connection? The conversation: bytes in, requests out, and back.

    greeting    who is it: version, network, broker, schema
    proof       that it knows the link token, if one is asked for
    join        where the session goes on
    then        control messages, events, acknowledgements, in any order

A `Talk` is one end of one connection. It has no socket: whoever drives it hands it the bytes that came, carries the
requests that it returns to the node, hands it the node's answers, and writes what it wants written (`take_written`).
Anything that is not as it should be is a `LinkError`, after which the connection is closed; it never reaches the node.

A token is never sent. Each end proves that it has it by a code over both nonces and both names (HMAC), so that neither
a proof that was overheard nor one that is sent back to its maker is worth anything.
"""

from __future__ import annotations

import hmac
from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tamis.service.links import frames
from tamis.service.links.frames import (
    Ack,
    Frame,
    FrameReader,
    GraphSaid,
    Greeting,
    Join,
    Kind,
    LinkClose,
    LinkError,
    LinkEvent,
    Pieces,
)
from tamis.service.links.requests import (
    Behind,
    Controls,
    GraphTold,
    Heard,
    Joining,
    LinkAcked,
    LinkBehind,
    LinkClosed,
    LinkControl,
    LinkFlood,
    LinkJoined,
    LinkOpen,
    Relay,
)
from tamis.service.log.base import LATE
from tamis.service.messages import Deliveries, Lost, Published, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tamis.service.links.terms import LinkTerms
    from tamis.service.messages import Incoming


class RefusedError(LinkError):
    """The other end refuses the link, or is not whom it should be: another try soon would end the same way."""

    status = 403
    title = "The link is refused"


class LinkIdentity(NamedTuple):
    """What an end of a link says of itself, and asks of the other."""

    network: str
    broker: str
    token: str = ""
    """What both ends must know; empty if certificates, or the socket itself, say who may connect."""
    digest: str = ""
    attributes: dict[str, str] | None = None
    functions: Mapping[str, int] = MappingProxyType({})
    """The versions of the functions that filters may call, by name."""
    is_graph: bool = False


class Talk:
    """One end of a connection."""

    def __init__(
        self,
        identity: LinkIdentity,
        nonce: bytes,
        terms_of: Callable[[str], LinkTerms],
        read_event: Callable[[bytes, int], Incoming],
        *,
        expected: str = "",
        url: str = "",
        may_be: Callable[[str], bool] = lambda name: True,
    ) -> None:
        """`expected` is the name that the other end must have; `may_be` asks its certificate."""
        self._identity, self._nonce = identity, nonce
        self._terms_of, self._read_event = terms_of, read_event
        self._expected, self._url, self._may_be = expected, url, may_be
        self._reader, self._pieces = FrameReader(), Pieces()
        self._theirs: Greeting | None = None
        self._join: Join | None = None
        self._has_joined = False
        self.peer = ""
        """The name of the other end, when it is known for certain."""
        self.is_joined = False
        self.is_over = False
        """Whether nothing more is to be said: the connection is to be closed."""
        self.refusal = ""
        self.is_refused = False
        """Whether one of the ends refuses the link, so that another try soon would end the same way."""
        self._written: list[bytes] = []
        self._under_way: deque[tuple[int, bool]] = deque()
        """Events that the node has, by the position of the last in a frame, and whether they are on disk."""
        self._ack = Ack()
        self._said_ack = Ack()
        self.pinged = b""
        """What came with the latest ping, of an end that has joined (`rates`)."""
        self.counts = {"events_in": 0, "events_out": 0, "lost": 0}
        greeting = Greeting(
            frames.VERSION, identity.network, identity.broker, nonce, bool(identity.token), identity.digest,
            identity.attributes, dict(identity.functions), identity.is_graph,
        )  # fmt: skip
        self._write(frames.told(Kind.GREETING, greeting))

    # -- What is to be written

    def _write(self, data: bytes) -> None:
        self._written.append(data)

    def take_written(self) -> bytes:
        """Return what is to be written now."""
        if self._ack != self._said_ack:
            self._said_ack = self._ack
            self._write(frames.ack_frame(self._ack))
        written, self._written = b"".join(self._written), []
        return written

    def ping(self, said: bytes = b"") -> None:
        """Ask whether the other end is there, and tell it something by the way if it has joined."""
        self._write(frames.frame(Kind.PING, said if self.is_joined else b""))

    def close(self, reason: str, is_refusal: bool = False) -> None:
        """Say goodbye."""
        if not self.is_over:
            self.is_over, self.is_refused = True, is_refusal
            self._write(frames.told(Kind.CLOSE, LinkClose(reason[:500], is_refusal)))

    # -- What comes

    def receive(self, data: bytes) -> list[Any]:
        """Take bytes; return requests for the node. A `LinkError` ends the connection; what to write says why."""
        requests: list[Any] = []
        try:
            for frame in self._reader.feed(data):
                if self.is_over:
                    break
                requests += self._received(frame)
        except LinkError as error:
            self.refusal = str(error)
            self.close(str(error), isinstance(error, RefusedError))
            raise
        return requests

    def _received(self, frame: Frame) -> list[Any]:
        kind, body = frame
        match kind:
            case Kind.PING:
                self.pinged = body if self.is_joined else b""
                self._write(frames.frame(Kind.PONG, b""))
                return []
            case Kind.PONG:
                return []
            case Kind.CLOSE:
                close = frames.read(body, LinkClose)
                self.is_over = True
                if close.is_refusal:
                    raise RefusedError(f"the other end refuses: {close.reason!s:.500}")
                raise LinkError(f"the other end closes: {close.reason!s:.500}")
            case Kind.GREETING if self._theirs is None:
                return self._greeted(frames.read(body, Greeting))
            case Kind.PROOF if self._theirs is not None and not self.peer:
                return self._proved(self._theirs, body)
            case Kind.JOIN if self.peer and (self._identity.is_graph or not self.is_joined):
                self.is_joined = True
                self._join = frames.read(body, Join)
                return self._met()
            case Kind.FLOOD if self.peer and self._identity.is_graph:
                return [LinkFlood(frames.read(body, GraphSaid))]
        if not self.is_joined:
            raise LinkError(f"a {kind.name.lower()} before both ends have met", "a greeting, a proof and a join first")
        match kind:
            case Kind.CONTROL:
                message = self._pieces.feed(body)
                return [] if message is None else [LinkControl(*message)]
            case Kind.EVENTS:
                return [self._relayed(frames.read_events(body))]
            case Kind.ACK:
                return [LinkAcked(*frames.read_ack(body))]
            case Kind.BEHIND:
                return [LinkBehind(frames.read(body, tuple[str, ...]))]
        raise LinkError(f"a second {kind.name.lower()}", "one")

    def _greeted(self, greeting: Greeting) -> list[Any]:
        ours = self._identity
        if greeting.version != frames.VERSION:
            raise RefusedError(f"the other end speaks version {greeting.version}", f"version {frames.VERSION}")
        if greeting.network != ours.network:
            raise RefusedError(f"the other end is of the network {greeting.network!r:.80}", f"{ours.network!r}")
        name = greeting.broker
        if not name or len(name) > 200 or not name.isprintable():
            raise RefusedError(f"{name!r:.80} is not the name of a broker", "1 to 200 printable characters")
        if name == ours.broker:
            raise RefusedError(f"both ends are called {name!r}", "a name for each broker of a network")
        if self._expected and name != self._expected:
            raise RefusedError(f"the other end is {name!r:.80}", f"{self._expected!r}")
        if not self._may_be(name):
            raise RefusedError(f"the certificate of the other end is not that of {name!r:.80}", "its name in it")
        if greeting.functions != ours.functions:
            difference = frames.differing_functions(ours.functions, greeting.functions)
            raise RefusedError(f"the functions differ: {difference}", "the same functions in the same versions")
        if greeting.digest != ours.digest:
            difference = frames.differing(ours.attributes, greeting.attributes)
            raise RefusedError(f"the schemas differ: {difference}", "the same schema at both ends")
        if greeting.is_graph != ours.is_graph:
            here, there = ("a graph", "a tree") if ours.is_graph else ("a tree", "a graph")
            raise RefusedError(f"the network is {here} here and {there} there", "the same topology at both ends")
        if greeting.asks_proof != bool(ours.token):
            raise RefusedError("one end has a link token and the other has not", "the same token at both ends")
        self._theirs = greeting
        if ours.token:
            self._write(frames.frame(Kind.PROOF, self._code(ours.broker, self._nonce, name, greeting.nonce)))
            return []
        return self._known(name)

    def _code(self, prover: str, nonce: bytes, verifier: str, challenge: bytes) -> bytes:
        """Return the code by which one end proves to the other that it has the token."""
        said = msgspec.msgpack.encode((prover, nonce, verifier, challenge, self._identity.network))
        return hmac.digest(self._identity.token.encode(), said, "sha256")

    def _proved(self, theirs: Greeting, proof: bytes) -> list[Any]:
        expected = self._code(theirs.broker, theirs.nonce, self._identity.broker, self._nonce)
        if not self._identity.token or not hmac.compare_digest(proof, expected):
            raise RefusedError(f"{theirs.broker!r:.80} has another link token", "the same token at both ends")
        return self._known(theirs.broker)

    def _known(self, name: str) -> list[Any]:
        self.peer = name
        self._reader.most_bytes = frames.MOST_BYTES
        return [LinkOpen(name, self._terms_of(name), self._url)]

    def _relayed(self, events: list[LinkEvent]) -> Relay:
        last = events[-1].position
        if self._under_way and self._under_way[-1][0] >= events[0].position:
            raise LinkError(f"an event at {events[0].position} once more", "positions that ascend")
        try:
            incoming = tuple(self._read_event(event.body, event.flags) for event in events)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise LinkError(f"an event cannot be read: {error!s:.200}", "CloudEvents as JSON") from None
        self._under_way.append((last, False))
        self.counts["events_in"] += len(events)
        return Relay(last, incoming)

    # -- What the node says

    def hear(self, answers: Iterable[Any]) -> list[Any]:
        """Take answers of the node, and make frames of them; return requests that had to wait for them."""
        requests: list[Any] = []
        for answer in answers:
            if self.is_over:
                return []
            match answer:
                case Joining(join):
                    self._has_joined = True
                    self._write(frames.told(Kind.JOIN, join))
                    if self._identity.is_graph:  # what was under way when the link left the tree is sent again
                        self._under_way.clear()
                        self._ack = self._said_ack = Ack()
                    else:
                        requests += self._met()
                case GraphTold(said):
                    self._write(frames.told(Kind.FLOOD, said))
                case Controls(items):
                    self._written += frames.control_frames(items)
                case Deliveries(_, items):
                    self.counts["events_out"] += len(items)
                    passed = [
                        LinkEvent(item.position.event, item.flags | (LATE if item.is_again else 0), item.body)
                        for item in items
                    ]
                    self._written += frames.event_frames(passed)
                case Published(position):
                    self._on_disk(position)
                case Heard(control, settled):
                    self._ack = Ack(self._ack.events, control, settled)
                case Behind(brokers):
                    self._write(frames.frame(Kind.BEHIND, msgspec.msgpack.encode(brokers)))
                case Lost():
                    self.counts["lost"] += 1
                case LinkClosed(reason, is_refusal):
                    self.refusal = reason
                    self.close(reason, is_refusal)
                case Refused(_, error):
                    self.close(str(error))
        return requests

    def _met(self) -> list[Any]:
        """Return the other end's join, when ours has been said: what the node says because of it comes behind that."""
        if self._join is None or not (self._has_joined or self._identity.is_graph):
            return []
        return [LinkJoined(self._join)]

    def _on_disk(self, position: int) -> None:
        """Acknowledge the frames up to the first that is not on disk: a later one may be there before."""
        self._under_way = deque((last, is_done or last == position) for last, is_done in self._under_way)
        while self._under_way and self._under_way[0][1]:
            self._ack = Ack(self._under_way.popleft()[0], self._ack.control, self._ack.settled)
