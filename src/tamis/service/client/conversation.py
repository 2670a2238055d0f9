"""How does a conversation outlive its connection? A WebSocket that is made again, with backoff.

A `Conversation` holds what both publishers and subscriptions need: it connects, says hello, waits for the welcome,
reads messages until the connection breaks, and begins anew. What is to be said waits in an outbox that is written once
per turn of the loop, many messages a frame. On a new connection the outbox is empty: whoever stands behind the
conversation says again what still has to be said (`opened`), because only the answers decide what has arrived.

    connecting ──welcome──▶ open ──broken, bye──▶ waiting ──backoff──▶ connecting
         └──────────── refused for good, or out of patience ──────────────▶ over
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from tamis.errors import TamisError
from tamis.service import wire
from tamis.service.client.backoff import Backoff
from tamis.service.client.problems import rebuilt
from tamis.service.errors import (
    ClosedError,
    ConflictError,
    GoneError,
    NotFoundError,
    ServiceError,
    TooLargeError,
    TooManyError,
    UnreachableError,
)

if TYPE_CHECKING:
    from tamis.service.client.dialling import Dialler

logger = logging.getLogger("tamis.service.client")

_FRAME_BYTES = 256_000
_FRAME_MESSAGES = 256
_WELCOME_S = 30.0


class Broken(Exception):  # noqa: N818 — no error: it is how a connection ends
    """The connection is over; `retry_s` is how long the broker wants to be left alone."""

    def __init__(self, reason: str, retry_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_s = retry_s


class Conversation(ABC):
    """A connection that comes back. `start` begins it, `close` ends it; `over` is set when it has ended."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler
        self._backoff = Backoff()
        self._outbox: deque[bytes] = deque()
        self._has_outgoing = asyncio.Event()
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._task: asyncio.Task[None] | None = None
        self._was_open = False
        self._was_connected_now = False
        self._bye: Broken | None = None
        self.failure: TamisError | None = None
        """Why the conversation is over, if it is."""

    # -- What the two kinds of conversation say and hear

    @abstractmethod
    def hello(self) -> wire.Hello:
        """Return how to introduce ourselves."""

    @abstractmethod
    def opened(self, welcome: wire.Welcome) -> None:
        """Say what has to be said on a new connection."""

    @abstractmethod
    def hear(self, message: wire.FromBroker) -> None:
        """Take a message in."""

    @abstractmethod
    def ended(self, failure: TamisError) -> None:
        """Tell whoever waits that the conversation is over."""

    @abstractmethod
    def before_writing(self) -> None:
        """Say what was collected, as one message."""

    async def wait_for_room(self) -> None:
        """Wait until more may be read."""
        return

    # -- Its life

    @property
    def is_open(self) -> bool:
        """Whether there is a connection at the moment."""
        return self._socket is not None

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._task is None:
            self._task = asyncio.create_task(self._live())

    async def close(self) -> None:
        """Say what is left in the outbox, then end."""
        if self._socket is not None:
            try:
                async with asyncio.timeout(2.0):
                    await self._write_all(self._socket)
                    await self._socket.close()
            except (TimeoutError, aiohttp.ClientError, OSError):
                pass  # what was not said is repeated by the broker, or was not acknowledged
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._end(ClosedError("the client was closed"))

    def say(self, message: wire.FromClient) -> None:
        """Put a message into the outbox; it is lost with the connection."""
        if self._socket is not None:
            self._outbox.append(wire.encode(message))
            self._has_outgoing.set()

    def wake(self) -> None:
        """Have `before_writing` called in this turn of the loop, or when there is a connection."""
        self._has_outgoing.set()

    def _end(self, failure: TamisError) -> None:
        if self.failure is None:
            self.failure = failure
            self.ended(failure)

    async def _live(self) -> None:
        lost_at_s = monotonic()
        while True:
            retry_s, is_there = 0.0, self._was_open
            failure: UnreachableError
            try:
                await self._connection()
            except Broken as broken:
                failure, retry_s = UnreachableError(str(broken), "a broker; `tamis serve` starts one"), broken.retry_s
            except UnreachableError as error:
                failure = error
            except TooManyError as error:
                failure, retry_s = UnreachableError(str(error)), error.retry_s
                is_there = True
            except TamisError as error:
                self._end(error)
                return
            except Exception as error:  # a mistake of ours must not leave anybody waiting for ever
                logger.exception("a conversation with %s failed", self._dialler.url)
                self._end(ServiceError(f"the client failed: {type(error).__name__}: {error}"))
                return
            patience_s = self._dialler.patience_s
            if patience_s is None and not (is_there or self._was_open):
                self._end(failure)
                return
            if self._was_connected_now:
                lost_at_s = monotonic()
            wait_s = self._backoff.next_s(retry_s)
            if patience_s is not None and monotonic() + wait_s - lost_at_s > patience_s:
                self._end(UnreachableError(f"{failure.detail}; tried for {patience_s:g} s", failure.expected))
                return
            logger.info("%s; trying %s again in %.1f s", failure.detail, self._dialler.url, wait_s)
            await asyncio.sleep(wait_s)

    async def _connection(self) -> None:
        """Connect, and stay until the connection breaks; always raises."""
        self._was_connected_now = False
        self._bye = None
        socket = await self._dialler.web_socket()
        try:
            hello = wire.FromClient(hello=self.hello())
            await socket.send_frame(wire.encode(hello), aiohttp.WSMsgType.TEXT)
            try:
                async with asyncio.timeout(_WELCOME_S):
                    messages = await self._read(socket)
            except TimeoutError:
                raise Broken("the broker does not answer") from None
            welcome = messages[0].welcome if messages else msgspec.UNSET
            if isinstance(welcome, msgspec.UnsetType):
                self._hear_refusal(messages)
                raise Broken("the broker did not say welcome")
            self._outbox.clear()
            self._has_outgoing.set()
            self._socket, self._was_open, self._was_connected_now = socket, True, True
            self._backoff.reset()
            self.opened(welcome)
            self._hear_all(messages[1:])
            writer = asyncio.create_task(self._write(socket))
            try:
                while True:
                    await self.wait_for_room()
                    self._hear_all(await self._read(socket))
            finally:
                writer.cancel()
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(f"the connection broke: {error}") from None
        finally:
            self._socket = None
            try:
                async with asyncio.timeout(1.0):
                    await socket.close()
            except (TimeoutError, aiohttp.ClientError, OSError):
                pass

    # -- Reading and writing

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> list[wire.FromBroker]:
        message = await socket.receive()
        if message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            try:
                return wire.decode_broker(message.data)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise Broken(f"the broker sent a message that cannot be read: {error}") from None
        if socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
            # It would be refused again; whoever waits learns why.
            raise TooLargeError("a message was larger than the broker accepts", "events within the broker's limits")
        raise self._bye or Broken(f"the connection was closed ({socket.close_code})")

    def _hear_all(self, messages: list[wire.FromBroker]) -> None:
        for message in messages:
            if isinstance(message.bye, str):
                # Answers may still come until the broker closes; then we come back when it said.
                self._bye = Broken(f"the broker said bye: {message.bye}", message.retry_s)
            elif isinstance(message.error, dict) and not isinstance(message.id, int):
                self._hear_objection(rebuilt(message.error, message.retry_s))
            else:
                self.hear(message)

    def _hear_objection(self, error: TamisError) -> None:
        """Take in what the broker says of no request in particular."""
        if isinstance(error, NotFoundError | GoneError | ConflictError):
            logger.warning("%s says: %s", self._dialler.url, error)  # of a verdict that came too late, for example
            return
        raise error

    def _hear_refusal(self, messages: list[wire.FromBroker]) -> None:
        for message in messages:
            if isinstance(message.error, dict):
                raise rebuilt(message.error, message.retry_s)
            if isinstance(message.bye, str):
                raise Broken(f"the broker said bye: {message.bye}", message.retry_s)

    async def _write(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        try:
            while True:
                await self._has_outgoing.wait()
                self._has_outgoing.clear()
                await self._write_all(socket)
        except (aiohttp.ClientError, OSError):
            pass  # the reader sees that the connection is over

    async def _write_all(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.before_writing()
        while self._outbox:
            messages = [self._outbox.popleft()]
            size_bytes = len(messages[0])
            while self._outbox and len(messages) < _FRAME_MESSAGES:
                size_bytes += len(self._outbox[0])
                if size_bytes > _FRAME_BYTES:
                    break
                messages.append(self._outbox.popleft())
            await socket.send_frame(wire.joined(messages), aiohttp.WSMsgType.TEXT)
