"""A bad network on loopback: a proxy that delays, cuts, resets, and falls silent.

Each connection gets the next fault of a list; when the list is used up, connections are good. A fault that does not end
its connection by itself ends it after a number of bytes, so that every fault of the list has its turn.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Fault:
    """What is wrong with a connection."""

    end: str = "cut"
    """How it ends: cut (both ends see it), reset, silence (nobody is told), deaf (the broker alone is told), or
    abandoned (the client alone is told)."""
    after_bytes: int = 5_000
    """When it ends, counted in both directions."""
    delay_s: float = 0.0
    jitter_s: float = 0.0
    piece_bytes: int = 65_536
    """So much goes through at a time."""


class Proxy:
    """A way to a broker, with faults; a context manager."""

    def __init__(self, port: int, faults, seed: int = 1) -> None:
        self._target, self._faults = port, list(faults)
        self._chance = Random(seed)
        self._tasks: set[asyncio.Task] = set()
        self._faulty: set[asyncio.Task] = set()
        """Connections that have a fault, whether it has come about or not."""
        self.ended: list[str] = []
        """How connections were ended by their faults."""

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *error) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def is_good(self) -> bool:
        """Has every fault had its turn?"""
        return not self._faults

    async def mend(self) -> None:
        """Let every connection be good from now on, and end those that are not; return when there is one again."""
        self._faults.clear()
        faulty = list(self._faulty)
        for task in faulty:
            task.cancel()
        await asyncio.gather(*faulty, return_exceptions=True)
        while not self._tasks:
            await asyncio.sleep(0.01)

    def _connected(self, reader, writer) -> None:
        fault = self._faults.pop(0) if self._faults else None
        task = asyncio.ensure_future(self._carry(reader, writer, fault))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if fault is not None:
            self._faulty.add(task)
            task.add_done_callback(self._faulty.discard)

    async def _carry(self, reader, writer, fault) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        left = [fault.after_bytes if fault else -1]
        ways = [
            asyncio.ensure_future(self._pump(source, sink, fault, left))
            for source, sink in ((reader, to_broker), (from_broker, writer))
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if fault is not None and left[0] <= 0:
                self.ended.append(fault.end)
                await self._end(fault.end, writer, to_broker)
        finally:
            for way in ways:
                way.cancel()
            for end in (writer, to_broker):
                end.close()

    async def _pump(self, source, sink, fault, left) -> None:
        while piece := await source.read(fault.piece_bytes if fault else 65_536):
            if fault is not None:
                if fault.delay_s or fault.jitter_s:
                    await asyncio.sleep(fault.delay_s + self._chance.random() * fault.jitter_s)
                piece = piece[: left[0]]
                left[0] -= len(piece)
            sink.write(piece)
            await sink.drain()
            if fault is not None and left[0] <= 0:
                return

    async def _end(self, how: str, client, broker) -> None:
        if how == "reset":
            for end in (client, broker):
                linger = struct.pack("ii", 1, 0)
                end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                end.transport.abort()
        elif how == "deaf":
            broker.close()
        elif how == "abandoned":
            client.close()
        if how in ("silence", "deaf", "abandoned"):
            await asyncio.Event().wait()  # what comes is not read any more, and nobody is told
