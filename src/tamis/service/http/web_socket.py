"""How do publishers and subscribers talk over one connection? The WebSocket of the protocol `tamis.v1`.

A frame is one message or a list of them (`wire`). One task reads: it turns messages into requests and hands them to the
core; while the core is busy, a quota is used up or answers are not taken, it does not read, and TCP tells the other
end to wait. Another task writes: it takes everything that waits and sends it as one frame, so a connection that is
slow gets fewer and larger frames.

A message that cannot be read is answered with `error`, and the connection goes on; only broken framing ends it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web
from msgspec import UNSET

from tamis.errors import TamisError
from tamis.service import wire
from tamis.service.cloud_events import read_json
from tamis.service.content_modes import events_in, source_of
from tamis.service.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    ServiceError,
    TooLargeError,
    UnauthenticatedError,
)
from tamis.service.http.answers import deliveries_json, problem_of
from tamis.service.http.consuming import Mailbox
from tamis.service.http.event_stream import noted
from tamis.service.messages import (
    Accepted,
    Acknowledge,
    Attach,
    Attached,
    CaughtUp,
    Deliveries,
    Ended,
    Lost,
    Publish,
    Published,
    Refused,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from tamis.service.positions import Position, read_position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.service.http.front import Front
    from tamis.service.messages import Principal

_logger = logging.getLogger("tamis.service.http")

WAITING_MOST = 512
"""So many answers may wait to be written, and so many requests to be answered, before no more are read."""
MESSAGES_MOST = 1_000
"""So many messages may come in one frame."""
FRAME_BYTES = 1_000_000
"""About so much goes into one frame."""


class WebSocket:
    """One connection: what it is, what it has asked and what it waits for."""

    def __init__(self, front: Front, request: web.Request, principal: Principal | None, subscriber: str = "") -> None:
        limits = front.settings.limits
        self._front = front
        self._request = request
        self._principal = principal
        self._subscriber = subscriber
        """Whose deliveries come here; empty until there are any to come."""
        self._is_durable = bool(subscriber)
        self._is_attached = False
        self._credit = limits.credit
        self._is_greeted = False
        self._next_number = 1
        self._ids: dict[int, int | None] = {}
        """The numbers of requests that are not answered yet, and how the other end calls them."""
        self._has_room = asyncio.Event()
        self.response = web.WebSocketResponse(
            protocols=(wire.SUBPROTOCOL,),
            compress=False,
            max_msg_size=limits.batch_bytes + 100_000,
            heartbeat=limits.idle / 2,
            writer_limit=limits.queue_bytes,
        )

    async def run(self) -> web.WebSocketResponse:
        """Talk until one end has enough."""
        await self.response.prepare(self._request)
        try:
            messages = await self._introduced() if self._principal is None else []
        except TamisError as error:
            await self._send(wire.encode({"error": problem_of(error)}))
            await self.response.close(code=WSCloseCode.POLICY_VIOLATION)
            return self.response
        if self._principal is None:
            return self.response
        with self._front.connected(self._principal), Mailbox(self._front, self._principal) as self._mailbox:
            closing = asyncio.ensure_future(self._front.closing.wait())
            closing.add_done_callback(lambda _: self._mailbox.put(None))
            writer = asyncio.ensure_future(self._written())
            try:
                await self._hear_all(messages)
                await self._read()
            finally:
                closing.cancel()
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)
                await self.response.close()
        return self.response

    async def _introduced(self) -> list[wire.FromClient]:
        """Wait for the first frame of somebody unknown; it must say who that is, and soon."""
        try:
            frame = await self.response.receive(self._front.settings.limits.header)
        except TimeoutError:
            raise UnauthenticatedError("nobody said hello", "hello with a token, as the first message") from None
        if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return []
        messages = _messages(frame.data)
        hello = messages[0].hello if messages else UNSET
        if hello is UNSET or not hello.token:
            raise UnauthenticatedError("nobody knows who you are", "hello with a token, as the first message")
        self._principal = self._front.principal(self._request, f"Bearer {hello.token}")
        return messages

    # -- Reading

    async def _read(self) -> None:
        async for frame in self.response:
            if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return
            try:
                messages = _messages(frame.data)
            except TamisError as error:
                self._refuse(error, None)
                messages = []
            await self._hear_all(messages)
            await self._room()

    async def _room(self) -> None:
        """Wait until not too much waits, to be answered or to be written."""
        while len(self._mailbox) + len(self._ids) > WAITING_MOST:
            self._has_room.clear()
            await self._has_room.wait()

    async def _hear_all(self, messages: list[wire.FromClient]) -> None:
        for message in messages:
            request_id = None if message.id is UNSET else message.id
            try:
                if message.hello is not UNSET:
                    await self._greet(message.hello, request_id)
                else:
                    await self._hear(message, request_id)
            except TamisError as error:
                self._refuse(error, request_id)
            await self._room()

    async def _greet(self, hello: wire.Hello, request_id: int | None) -> None:
        if self._is_greeted:
            raise ConflictError("this connection has said hello already", "one hello, as the first message")
        assert self._principal is not None
        if hello.token:
            principal = self._front.principal(self._request, f"Bearer {hello.token}")
            if principal != self._principal:
                raise ForbiddenError(f"this connection is of {self._principal.name!r:.80}", "a token of the same name")
        if self._subscriber and hello.name not in ("", self._subscriber):
            raise ForbiddenError(f"this connection is for {self._subscriber!r:.80}", "no other name")
        if hello.durable is True and not (hello.name or self._subscriber):
            raise BadRequestError("a durable subscriber has no name", '"as" in hello')
        self._subscriber = hello.name or self._subscriber
        self._is_durable = bool(self._subscriber) and hello.durable is not False
        self._credit = max(1, min(hello.credit, self._front.settings.limits.credit))
        self._is_greeted = True
        if self._subscriber:
            await self._attach(request_id)
        else:
            self._mailbox.put(self._welcome(self._front.core.head))

    async def _hear(self, message: wire.FromClient, request_id: int | None) -> None:
        assert self._principal is not None
        if message.publish is not UNSET:
            await self._publish(message.publish, message.wanted, request_id)
        elif message.subscribe is not UNSET:
            wanted = await self._front.wanted(self._principal, message.subscribe)
            start = await self._front.start(message.since)
            if not self._subscriber:
                self._subscriber = self._front.passing_name(self._principal)
            if not self._is_attached:
                await self._attach(None)
            number = self._number(request_id)
            await self._mailbox.hear(Subscribe(number, self._subscriber, wanted, self._is_durable, start))
        elif message.unsubscribe is not UNSET:
            request = Unsubscribe(self._number(request_id), self._named(), tuple(message.unsubscribe))
            await self._mailbox.hear(request)
        elif message.done_through or any(
            positions is not UNSET for positions in (message.done, message.again, message.never)
        ):
            await self._mailbox.hear(self._acknowledgement(message, request_id))
        else:
            raise BadRequestError(
                "a message says nothing", "hello, subscribe, unsubscribe, publish, done, done_through, again or never"
            )

    async def _attach(self, request_id: int | None) -> None:
        self._is_attached = True
        limits = self._front.settings.limits
        number = self._number(request_id)
        await self._mailbox.hear(
            Attach(number, self._subscriber, self._is_durable, self._credit, limits.credit_bytes, self._is_durable)
        )

    async def _publish(self, raw: list[msgspec.Raw], asks_wanted: bool, request_id: int | None) -> None:
        assert self._principal is not None
        limits = self._front.settings.limits
        with self._front.counted_refusals():
            contents = [read_json(bytes(event), f"event {index}: ") for index, event in enumerate(raw)]
            events = events_in(contents, limits, self._front.new_id(), source_of(self._principal.name))
            if not events:
                raise BadRequestError("there are no events", "at least one")
        await self._front.take(self._principal, len(events), sum(len(event.body) for event in events))
        await self._mailbox.hear(Publish(self._number(request_id), events, asks_wanted))

    def _acknowledgement(self, message: wire.FromClient, request_id: int | None) -> Acknowledge:
        def positions(texts: Any) -> tuple[Position, ...]:
            return () if texts is UNSET else tuple(read_position(text, epoch) for text in texts)

        epoch = self._front.core.epoch
        return Acknowledge(
            0 if request_id is None else self._number(request_id),
            self._named(),
            positions(message.done),
            read_position(message.done_through, epoch) if message.done_through else None,
            positions(message.again),
            message.in_s,
            positions(message.never),
            message.reason[:1_000],
        )

    def _named(self) -> str:
        if not self._is_attached:
            raise ConflictError("this connection has no subscriber", "hello with a name, or a subscription, first")
        return self._subscriber

    def _number(self, request_id: int | None) -> int:
        number = self._next_number
        self._next_number += 1
        self._ids[number] = request_id
        return number

    # -- Writing

    def _refuse(self, error: TamisError, request_id: int | None) -> None:
        self._mailbox.put(_refusal(error, request_id))

    async def _written(self) -> None:
        """Write until it is over; if that fails, nobody is left in the dark with an open connection."""
        try:
            await self._write()
        except (ConnectionError, ServiceError):
            await self.response.close()
        except Exception:
            _logger.exception("a connection of %s failed", self._principal)
            await self.response.close(code=WSCloseCode.INTERNAL_ERROR)

    async def _write(self) -> None:
        """Send everything that waits, again and again, as few frames as possible."""
        while True:
            items = await self._mailbox.take(3_600.0)
            pieces: list[bytes] = []
            is_over = False
            for item in items:
                if isinstance(item, Ended):
                    pieces.append(wire.encode({"bye": item.reason, "retry_s": 1.0}))
                    is_over = True
                elif item is None:
                    pieces.append(wire.encode({"bye": "the broker stops", "retry_s": 1.0}))
                    is_over = True
                elif (message := self._said(item)) is not None:
                    pieces.append(message)
            for frame in _frames(pieces):
                await self._send(frame)
            if is_over:
                await self.response.close(code=WSCloseCode.GOING_AWAY)
                return
            if not self._is_durable:
                for item in items:
                    if isinstance(item, Deliveries):
                        await self._mailbox.wrote(item)
            self._has_room.set()

    def _said(self, item: object) -> bytes | None:
        """Return the message for what the core said, or None if there is nothing to say."""
        epoch = self._front.core.epoch
        match item:
            case bytes():
                return item
            case Deliveries(_, deliveries):
                return deliveries_json(deliveries, epoch)
            case Lost() | CaughtUp():
                name, content = noted(item, epoch)
                return wire.encode({name: content})
            case Refused(number, error):
                return _refusal(error, self._ids.pop(number, None))
            case Attached(number, _, at):
                self._ids.pop(number, None)
                return self._welcome(at) if self._is_greeted else None
            case Published(number, last, positions, known, is_durable, wanted):
                content = {"position": Position.of(last).text(epoch), "known": known, "durable": is_durable}
                content["positions"] = [Position.of(position).text(epoch) for position in positions]
                if wanted is not None:
                    content["wanted"] = wanted
                return self._ok(number, content)
            case Subscribed(number, since, _, effective):
                content = {"since": Position.of(since).text(epoch), "settled": True, "effective": effective}
                return self._ok(number, content)
            case Accepted(number):
                return self._ok(number, {})
        return None

    def _ok(self, number: int, content: dict[str, Any]) -> bytes | None:
        request_id = self._ids.pop(number, None)
        return None if request_id is None else wire.encode({"ok": request_id, **content})

    def _welcome(self, at: int) -> bytes:
        limits, core = self._front.settings.limits, self._front.core
        told = {
            name: int(getattr(limits, name))
            for name in ("event_bytes", "batch_events", "batch_bytes", "credit", "texts")
        }
        welcome = wire.Welcome(self._front.settings.name, core.epoch, Position.of(at).text(core.epoch), told)
        return wire.encode({"welcome": welcome})

    async def _send(self, frame: bytes) -> None:
        await self.response.send_frame(frame, WSMsgType.TEXT)


def _messages(text: str | bytes) -> list[wire.FromClient]:
    """Return the messages of a frame. The parts of a list are counted before they are read: small ones grow."""
    try:
        frame = text.encode() if isinstance(text, str) else text
        if not frame.lstrip().startswith(b"["):
            return [_one.decode(frame)]
        parts = _several.decode(frame)
        if len(parts) > MESSAGES_MOST:
            raise TooLargeError(f"the frame has {len(parts)} messages", f"at most {MESSAGES_MOST} in a frame")
        return [_one.decode(part) for part in parts]
    except RecursionError:
        raise TooLargeError("the frame is nested too deeply to be read", "less") from None
    except (msgspec.MsgspecError, ValueError) as error:
        if isinstance(error, TamisError):
            raise
        raise BadRequestError(f"the frame cannot be read: {error!s:.500}", "messages of /asyncapi.json") from None


_one = msgspec.json.Decoder(wire.FromClient)
_several = msgspec.json.Decoder(list[msgspec.Raw])


def _refusal(error: TamisError, request_id: int | None) -> bytes:
    content: dict[str, Any] = {"error": problem_of(error)}
    return wire.encode(content if request_id is None else {**content, "id": request_id})


def _frames(pieces: list[bytes]) -> Iterator[bytes]:
    """Yield frames of about the same size that carry all messages, in order."""
    together: list[bytes] = []
    size = 0
    for piece in pieces:
        if together and size + len(piece) > FRAME_BYTES:
            yield wire.joined(together)
            together, size = [], 0
        together.append(piece)
        size += len(piece)
    if together:
        yield wire.joined(together)
