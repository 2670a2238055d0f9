"""How does a conversation run over a socket? Reading, writing once a turn, asking whether the other is there.

One task reads a connection. What the node says comes by a callback in the loop's thread and is written at once, all of
a turn together. Events of the neighbour are handed to the core as fast as it takes them, and not faster than the link's
rate; meanwhile nothing is read, and the other end, which may have so many events under way, waits. An end that was
silent for three pings is gone, whatever the socket says.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from tamis.service.errors import ServiceError, TooManyError
from tamis.service.links.frames import LinkError
from tamis.service.links.requests import Relay
from tamis.service.messages import Principal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.service.core_thread import Core
    from tamis.service.links.rates import LinkRates
    from tamis.service.links.talking import Talk
    from tamis.service.messages import Answer, Session

PING_EVERY_S = 5.0
SILENT_S = 15.0
READ_BYTES = 262_144
_NOBODY = Principal("")


class Connection:
    """One connection of a link, from its greeting to its end."""

    def __init__(
        self,
        core: Core,
        talk: Talk,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        rate_of: Callable[[str], float],
        *,
        ping_s: float = PING_EVERY_S,
        silent_s: float = SILENT_S,
        rates: LinkRates | None = None,
    ) -> None:
        self.talk = talk
        self._rates = rates
        self._core, self._reader, self._writer = core, reader, writer
        self._rate_of, self._ping_s, self._silent_s = rate_of, ping_s, silent_s
        self._session: Session = core.open(_NOBODY, self._hear)
        self._ahead_s = 0.0
        """When, at the link's rate, the events that were taken are through."""
        self.bytes_in = self.bytes_out = 0

    async def run(self) -> None:
        """Talk until the connection ends; raise a `LinkError` or an `OSError` that says why."""
        pings = asyncio.create_task(self._ping())
        try:
            self._flush()
            while not self.talk.is_over:
                async with asyncio.timeout(self._silent_s):
                    data = await self._reader.read(READ_BYTES)
                if not data:
                    raise LinkError("the other end has closed the connection")
                self.bytes_in += len(data)
                for request in self.talk.receive(data):
                    await self._ask(request)
                if self.talk.pinged and self._rates is not None:
                    self._rates.hear(self.talk.peer, self.talk.pinged, time.time())
                    self.talk.pinged = b""
                self._flush()
            raise LinkError(self.talk.refusal or "the connection was closed here")
        except TimeoutError:
            raise LinkError(f"the other end was silent for {self._silent_s:g} s") from None
        except ServiceError as error:
            self.talk.close(str(error))
            raise
        finally:
            pings.cancel()
            self._core.close(self._session)
            self._flush()
            self._writer.close()

    def close(self, reason: str) -> None:
        """Say goodbye; `run` ends soon."""
        self.talk.close(reason)
        self._flush()
        self._writer.close()

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self._ping_s)
            self.talk.ping(b"" if self._rates is None else self._rates.said_to(self.talk.peer, time.time()))
            self._flush()

    async def _ask(self, request: Any) -> None:
        """Hand a request to the core, when it takes it."""
        if isinstance(request, Relay) and (rate := self._rate_of(self.talk.peer)) > 0:
            now = asyncio.get_running_loop().time()
            self._ahead_s = max(self._ahead_s, now) + len(request.events) / rate
            await asyncio.sleep(max(0.0, self._ahead_s - now - 1.0))  # a second is saved up
        while True:
            try:
                self._core.hear(self._session, request)
                return
            except TooManyError as error:
                if not self._core.is_ready and not self._core.is_full:
                    raise
                await asyncio.sleep(min(error.retry_s, 0.1))

    def _hear(self, answers: list[Answer]) -> None:
        for request in self.talk.hear(answers):
            self._core.hear(self._session, request)
        self._flush()
        if self.talk.is_over:
            self._writer.close()

    def _flush(self) -> None:
        data = self.talk.take_written()
        if data and not self._writer.is_closing():
            self.bytes_out += len(data)
            self._writer.write(data)
