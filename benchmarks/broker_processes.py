"""How is a broker measured from outside? A process of its own, filled beforehand, and clients that only count.

Subscriptions are written into the state of the broker before it starts, as if they had been made over the wire before.
Processor time is that of the broker's process alone (user and system), so that what the clients do in this process does
not count.
"""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import urlopen

import msgspec

from benchmarks.cases import CASES, events_of
from tamis.matching import Matcher
from tamis.service.changes import FloorKept, SubscriberKept, SubscriptionKept
from tamis.service.log.base import Block
from tamis.service.log.sqlite import SqliteLog
from tamis.service.positions import START
from tamis.service.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import aiohttp

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_PATIENCE_S = 300.0


class BrokerProcess:
    """A broker in a process of its own, on a free port of this machine."""

    def __init__(self, folder: Path, **settings: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        variables = {f"TAMIS_{name.upper()}": value for name, value in settings.items()}
        begun = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tamis", "serve", "--data", str(folder), "--port", str(self.port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **variables},
        )  # fmt: skip
        self.url = f"http://127.0.0.1:{self.port}"
        while not self._is_ready():
            if self._process.poll() is not None or time.perf_counter() - begun > _PATIENCE_S:
                raise RuntimeError(f"the broker did not start: {self._process.poll()}")
            time.sleep(0.05)
        self.start_s = time.perf_counter() - begun

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/ready", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def cpu_s(self) -> float:
        """Return the processor time that it has used."""
        return cpu_s(self._process.pid)

    def resident_bytes(self) -> int:
        """Return the memory that it has."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE_BYTES

    def figure(self, name: str) -> float:
        """Return one of its figures."""
        with urlopen(f"{self.url}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def __enter__(self) -> BrokerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(60)


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


# -- What it is filled with


class Filling(NamedTuple):
    """What a broker starts with."""

    folder: Path
    texts: list[str]
    subscriber_count: int
    """The text with the number n is a subscription of the subscriber n modulo this."""

    def deliveries(self, records: list[dict[str, Any]], connected_count: int) -> int:
        """Return how many deliveries the first subscribers get of these events, as a matcher says."""
        matcher = Matcher()
        numbers = [number for number in range(len(self.texts)) if number % self.subscriber_count < connected_count]
        matcher.add_many((number, self.texts[number]) for number in numbers)
        pairs = matcher.match_batch(records)
        subscribers = (number % self.subscriber_count for number in pairs["subscription"].to_pylist())
        return len(set(zip(pairs["event"].to_pylist(), subscribers, strict=True)))


def filled(
    folder: Path, subscription_count: int, subscriber_count: int, seed: int, logged: Sequence[bytes] = ()
) -> Filling:
    """Write subscriptions of auctions, dealt out to subscribers, and a log of events, as a broker leaves them."""
    log = SqliteLog(folder / "log", sync_s=math.inf)
    for first in range(0, len(logged), 512):
        events = tuple(logged[first : first + 512])
        log.append([Block(log.last + 1, time.time_ns() // 1_000, events, bytes(len(events)))])
    state = State(folder / "state.db", log.epoch, "tamis")
    texts = []
    if subscription_count:
        texts = CASES["auction"]().subscriptions(subscription_count, seed)["condition"].to_pylist()
    names = [f"s{number}" for number in range(subscriber_count)]
    changes: list[Any] = [SubscriberKept(name, "local", 30.0, 0, False, 0.0) for name in names]
    changes += [FloorKept(name, START, (), 0) for name in names]
    changes += [
        SubscriptionKept(names[number % subscriber_count], f"k{number}", number, text, text, 0, 0, "local", (), True)
        for number, text in enumerate(texts)
    ]
    state.write(changes, is_urgent=True)
    state.close()
    log.close()
    return Filling(folder, texts, subscriber_count)


def auction_records(count: int, seed: int) -> list[dict[str, Any]]:
    """Return auctions as filters see them."""
    return events_of(CASES["auction"]().events(count, seed))


def auction_events(count: int, seed: int, tag: str = "") -> list[bytes]:
    """Return auctions as CloudEvents, each with an id of its own."""
    return [
        msgspec.json.encode(
            {"specversion": "1.0", "id": f"{tag}{number}", "source": "/benchmark", "type": "auction", "data": record},
            enc_hook=str,
        )
        for number, record in enumerate(auction_records(count, seed))
    ]


# -- Clients


class Socket:
    """A WebSocket that publishes frames, or consumes and acknowledges."""

    def __init__(self, connection: aiohttp.ClientWebSocketResponse) -> None:
        self._connection = connection
        self._number = self._unanswered = 0
        self.count = 0
        """How many deliveries came."""
        self.is_caught_up = False

    @classmethod
    async def opened(cls, http: aiohttp.ClientSession, url: str, **hello: Any) -> Socket:
        """Connect and say hello."""
        connection = await http.ws_connect(f"{url}/ws", protocols=("tamis.v1",), max_msg_size=0, compress=0)
        await connection.send_str(json.dumps({"hello": hello}))
        socket = cls(connection)
        messages = json.loads((await connection.receive()).data)
        # With a short log, everything may come together with the welcome.
        await socket._take(messages if isinstance(messages, list) else [messages])
        return socket

    async def publish(self, events: Sequence[bytes], frame: int, window: int, *, is_waited_for: bool = True) -> None:
        """Publish everything in frames of so many events, with at most `window` events unanswered."""
        for first in range(0, len(events), frame):
            body = b",".join(events[first : first + frame])
            self._number += 1
            await self._connection.send_str(f'{{"publish":[{body.decode()}],"id":{self._number}}}')
            self._unanswered += 1
            while self._unanswered * frame >= window:
                await self._take_answers()
        if is_waited_for:
            await self.answered()

    async def answered(self) -> None:
        """Wait until everything that was published is on disk."""
        while self._unanswered:
            await self._take_answers()

    async def _take_answers(self) -> None:
        messages = json.loads((await self._connection.receive()).data)
        for message in messages if isinstance(messages, list) else [messages]:
            if "error" in message:
                raise RuntimeError(message["error"])
            self._unanswered -= "ok" in message

    async def consume(self, arrived: dict[str, float] | None = None) -> None:
        """Take and acknowledge deliveries until the connection ends; write down when each event came."""
        async for frame in self._connection:
            now = time.perf_counter()
            messages = json.loads(frame.data)
            delivered = await self._take(messages if isinstance(messages, list) else [messages])
            if arrived is not None:
                for each in delivered:
                    arrived.setdefault(each["event"]["id"], now)

    async def _take(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Acknowledge and return the deliveries among some messages."""
        self.is_caught_up |= any("caught_up" in message for message in messages)
        delivered = [each for message in messages for each in message.get("events", ())]
        self.count += len(delivered)
        if delivered:
            await self._connection.send_str(json.dumps({"done": [each["at"] for each in delivered]}))
        return delivered

    async def close(self) -> None:
        """Go away."""
        await self._connection.close()
