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
from contextlib import ExitStack
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
    OverloadedError,
    ServiceError,
    TooManyError,
    UnauthenticatedError,
)
from tamis.service.http.consuming import Mailbox
from tamis.service.http.correspondence import Correspondence
from tamis.service.http.frames import FRAME_BYTES, frames_of, messages_in, refusal_message
from tamis.service.http.handing_over import needs_first
from tamis.service.http.leasing import checked_lease
from tamis.service.messages import (
    Acknowledge,
    Attach,
    Attached,
    Deliveries,
    Ended,
    Publish,
    Refused,
    Subscribe,
    Unsubscribe,
)
from tamis.service.positions import Position, read_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.service.http.front import Front
    from tamis.service.http.holding import Caller
    from tamis.service.messages import Answer, Principal

_logger = logging.getLogger("tamis.service.http")

WAITING_MOST = 512
"""So many answers may wait to be written, and so many requests to be answered, before no more are read."""


class WebSocket:
    """One connection: what it is, what it has asked and what it waits for."""

    def __init__(self, front: Front, request: web.Request, caller: Caller | None, subscriber: str = "") -> None:
        limits = front.settings.limits
        self._front = front
        self._request = request
        self._caller = caller
        self._subscriber = subscriber
        """Whose deliveries come here; empty until there are any to come."""
        self._is_durable = bool(subscriber)
        self._is_attached = False
        self._credit, self._ends_when_slow = limits.credit, False
        self._is_greeted = False
        self._is_handed_over = False
        """Whether the first broker talks to it, or nobody, where this is an edge broker."""
        self._requests = Correspondence(front.core.epoch)
        self._refused_ids: set[int] = set()
        """Publications that were refused for now; those behind them are, too, until one of them comes again."""
        self._has_room = asyncio.Event()
        self._is_answered = asyncio.Event()
        """Set when the greeting has its answer; nothing else is heard before, so that this comes first."""
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
        with ExitStack() as stack:
            try:
                messages = await self._introduced() if self._caller is None or self._front.first is not None else []
                if self._caller is None or self._is_handed_over:
                    return self.response
                hold = stack.enter_context(self._front.connected(self._caller))
            except TamisError as error:
                await self._send(refusal_message(error))
                is_late = isinstance(error, TooManyError)
                await self.response.close(code=WSCloseCode.TRY_AGAIN_LATER if is_late else WSCloseCode.POLICY_VIOLATION)
                return self.response
            self._mailbox = stack.enter_context(Mailbox(self._front, self._principal, hold))
            self._mailbox.write_at_once = self._written_at_once
            await self._talk(messages)
        return self.response

    async def _talk(self, messages: list[wire.FromClient]) -> None:
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

    @property
    def _principal(self) -> Principal:
        assert self._caller is not None
        return self._caller.principal

    async def _introduced(self) -> list[wire.FromClient]:
        """Wait for the first frame: of somebody unknown, who must say who that is, and soon; or at an edge broker."""
        first = self._front.first
        try:
            frame = await self.response.receive(self._front.settings.limits.header if self._caller is None else None)
        except TimeoutError:
            raise UnauthenticatedError(
                "there was no hello in time", "hello with a token, as the first message"
            ) from None
        if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            self._is_handed_over = self._is_handed_over or first is not None  # there is nobody to talk to
            return []
        if first is not None and needs_first(frame.data):
            self._is_handed_over = True
            await first.converse(self._request, self.response, frame.data)
            return []
        messages = messages_in(frame.data)
        if self._caller is not None:
            return messages
        hello = messages[0].hello if messages else UNSET
        if hello is UNSET or not hello.token:
            raise UnauthenticatedError("the client is not authenticated", "hello with a token, as the first message")
        self._caller = await self._front.caller(self._request, f"Bearer {hello.token}")
        return messages

    # -- Reading

    async def _read(self) -> None:
        async for frame in self.response:
            if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return
            try:
                messages = messages_in(frame.data)
            except TamisError as error:
                self._refuse(error, None)
                messages = []
            await self._hear_all(messages)
            await self._room()

    async def _room(self) -> None:
        """Wait until not too much waits, to be answered or to be written."""
        while len(self._mailbox) + len(self._requests) > WAITING_MOST:
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
        if hello.token:
            caller = await self._front.caller(self._request, f"Bearer {hello.token}")
            if caller.principal != self._principal:
                raise ForbiddenError(f"this connection is of {self._principal.name!r:.80}", "a token of the same name")
        if self._subscriber and hello.name not in ("", self._subscriber):
            raise ForbiddenError(f"this connection is for {self._subscriber!r:.80}", "no other name")
        if hello.durable is True and not (hello.name or self._subscriber):
            raise BadRequestError("a durable subscriber needs a name", '"as" in hello')
        self._subscriber = hello.name or self._subscriber
        self._is_durable = bool(self._subscriber) and hello.durable is not False
        self._credit = max(1, min(hello.credit, self._front.settings.limits.credit))
        self._ends_when_slow = hello.when_slow == "close"
        self._is_greeted = True
        if self._subscriber:
            await self._attach(request_id)
            await self._is_answered.wait()
        else:
            self._mailbox.put(self._welcome(self._front.core.head))

    async def _hear(self, message: wire.FromClient, request_id: int | None) -> None:
        if message.publish is not UNSET:
            try:
                with self._front.counted_refusals(len(message.publish)):
                    self._check_order(request_id)
                await self._publish(message.publish, message.wanted, request_id)
            except TooManyError:
                if request_id is not None:
                    self._refused_ids.add(request_id)
                raise
        elif message.subscribe is not UNSET:
            lease_s = checked_lease(message.lease_s)
            wanted = await self._front.wanted(self._principal, message.subscribe, waits=True)
            start = await self._front.start(message.since)
            if not self._subscriber:
                self._subscriber = self._front.passing_name(self._principal)
            if not self._is_attached:
                await self._attach(None)
            number = self._requests.number(request_id)
            settle_s = min(max(0.0, message.settle_s), 300.0)
            request = Subscribe(
                number, self._subscriber, wanted, self._is_durable, start, settle_s=settle_s, lease_s=lease_s
            )
            await self._mailbox.hear(request)
        elif message.unsubscribe is not UNSET:
            number = self._requests.number(request_id)
            await self._mailbox.hear(Unsubscribe(number, self._named(), tuple(message.unsubscribe)))
        elif message.done_through or any(
            positions is not UNSET for positions in (message.done, message.again, message.never)
        ):
            await self._mailbox.hear(self._acknowledgement(message, request_id))
        else:
            raise BadRequestError(
                "a message has no known field",
                "hello, subscribe, unsubscribe, publish, done, done_through, again or never",
            )

    async def _attach(self, request_id: int | None) -> None:
        self._is_attached = True
        limits = self._front.settings.limits
        number = self._requests.number(request_id)
        await self._mailbox.hear(
            Attach(
                number,
                self._subscriber,
                self._is_durable,
                self._credit,
                limits.credit_bytes,
                self._is_durable,
                ends_when_slow=self._ends_when_slow,
            )
        )

    def _check_order(self, request_id: int | None) -> None:
        """Refuse a publication behind one that was refused for now, so that a publisher's order is kept.

        Whoever sends one of those again has heard of all of them, and begins with the first.
        """
        if request_id in self._refused_ids:
            self._refused_ids.clear()
        elif self._refused_ids and request_id is not None:
            raise OverloadedError(
                "a publication before this one was refused", "the refused publication first, then this one", 0.1
            )

    async def _publish(self, raw: list[msgspec.Raw], asks_wanted: bool, request_id: int | None) -> None:
        limits = self._front.settings.limits
        with self._front.counted_refusals(len(raw)):
            contents = [read_json(bytes(event), f"event {index}: ") for index, event in enumerate(raw)]
            events = events_in(contents, limits, self._front.new_id(), source_of(self._principal.name))
            if not events:
                raise BadRequestError("there are no events", "at least one")
        await self._front.take(self._principal, len(events), sum(len(event.body) for event in events))
        is_counted = asks_wanted and self._front.first is None  # an edge broker does not know who wants what
        with self._front.counted_refusals(len(events), OverloadedError):
            await self._mailbox.hear(Publish(self._requests.number(request_id), events, is_counted))

    def _acknowledgement(self, message: wire.FromClient, request_id: int | None) -> Acknowledge:
        def positions(texts: Any) -> tuple[Position, ...]:
            return () if texts is UNSET else tuple(read_position(text, epoch) for text in texts)

        epoch = self._front.core.epoch
        return Acknowledge(
            0 if request_id is None else self._requests.number(request_id),
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

    # -- Writing

    def _refuse(self, error: TamisError, request_id: int | None) -> None:
        self._mailbox.put(refusal_message(error, request_id))

    async def _written(self) -> None:
        """Write until it is over; if that fails, nobody is left in the dark with an open connection."""
        try:
            await self._write()
        except (ConnectionError, ServiceError):
            await self.response.close()
        except Exception:
            _logger.exception("a connection of %s failed", self._principal)
            await self.response.close(code=WSCloseCode.INTERNAL_ERROR)
        finally:
            self._is_answered.set()

    def _written_at_once(self, answers: Sequence[Answer]) -> bool:
        """Write deliveries to a connection that has taken all before; return whether that was so.

        To wake a task for each of a thousand connections costs as much as the system calls that write to them.
        """
        transport = self._request.transport
        if transport is None or self.response.closed or transport.is_closing() or transport.get_write_buffer_size():
            return False
        if len(answers) != 1 or not isinstance(deliveries := answers[0], Deliveries):
            return False
        message = self._requests.message(deliveries)
        if message is None or len(message) > FRAME_BYTES:
            return False
        if not self._is_durable and not self._mailbox.note_written(deliveries):
            return False  # the core is to be told, which may have to wait
        sending = self.response.send_frame(message, WSMsgType.TEXT)
        try:
            sending.send(None)
        except StopIteration:
            pass
        except ConnectionError:
            return True  # whoever reads is told that the connection is gone
        else:
            sending.close()  # all of it is with the transport, which would like to be waited for
        return True

    async def _write(self) -> None:
        """Send everything that waits, again and again, as few frames as possible."""
        while True:
            items = await self._mailbox.take()
            pieces: list[bytes] = []
            is_over, code = False, WSCloseCode.GOING_AWAY
            for item in items:
                if isinstance(item, Ended):
                    pieces.append(wire.encode({"bye": item.reason, "retry_s": 1.0}))
                    is_over = True
                elif isinstance(item, OverloadedError):
                    pieces.append(wire.encode({"bye": item.detail, "retry_s": item.retry_s}))
                    is_over = True
                elif isinstance(item, ServiceError):
                    pieces.append(refusal_message(item))
                    is_over, code = True, WSCloseCode.POLICY_VIOLATION
                elif item is None:
                    pieces.append(wire.encode({"bye": "the broker stops", "retry_s": 1.0}))
                    is_over = True
                elif (message := self._requests.message(item)) is not None:
                    pieces.append(message)
                elif isinstance(item, Attached) and self._is_greeted:
                    pieces.append(self._welcome(item.at))
            for frame in frames_of(pieces):
                await self._send(frame)
            if is_over:
                await self.response.close(code=code)
                return
            if not self._is_durable:
                for item in items:
                    if isinstance(item, Deliveries):
                        await self._mailbox.wrote(item)
            self._has_room.set()
            if any(isinstance(item, Attached | Refused) for item in items):
                self._is_answered.set()

    def _welcome(self, at: int) -> bytes:
        settings = self._front.settings
        return self._requests.welcome(settings.name, at, settings.limits)

    async def _send(self, frame: bytes) -> None:
        await self.response.send_frame(frame, WSMsgType.TEXT)
