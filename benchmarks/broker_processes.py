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
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import Request, urlopen

import msgspec

from benchmarks.cases import CASES, events_of
from tamis.matching import Matcher
from tamis.service.changes import FloorKept, SubscriberKept, SubscriptionKept
from tamis.service.log.base import Block
from tamis.service.log.sqlite import SqliteLog
from tamis.service.positions import START
from tamis.service.state import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    import aiohttp

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_PATIENCE_S = 300.0
_MADE_AT_ONCE = 20_000


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class BrokerProcess:
    """A broker in a process of its own, on a free port of this machine.

    `is_waited_for` says whether it is ready when it is made; if not, `wait` waits. `config` is the text of its
    `tamis.toml`.
    """

    def __init__(self, folder: Path, *, config: str = "", is_waited_for: bool = True, **settings: str) -> None:
        self.port = free_port()
        variables = {f"TAMIS_{name.upper()}": value for name, value in settings.items()}
        arguments = ["serve", "--data", str(folder), "--port", str(self.port)]
        if config:
            file = folder / "benchmark.toml"
            file.write_text(config)
            arguments += ["--config", str(file)]
        self._begun = time.perf_counter()
        self._spawn(arguments, variables)
        self.url = f"http://127.0.0.1:{self.port}"
        self.start_s = 0.0
        if is_waited_for:
            self.wait()

    def wait(self) -> None:
        """Wait until it is ready."""
        while not self._is_ready():
            if self._exit_code() is not None or time.perf_counter() - self._begun > _PATIENCE_S:
                raise RuntimeError(f"the broker did not start: {self._exit_code()}")
            time.sleep(0.05)
        self.start_s = time.perf_counter() - self._begun

    def _spawn(self, arguments: list[str], variables: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tamis", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **variables},
        )  # fmt: skip
        self.pid = self._process.pid

    def _exit_code(self) -> int | None:
        return self._process.poll()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/ready", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def cpu_s(self) -> float:
        """Return the processor time that it has used."""
        return cpu_s(self.pid)

    def cpu_by_part(self) -> dict[str, float]:
        """Return the processor time of its threads, by what they do; the main thread is the loop of the sockets."""
        parts: dict[str, float] = {}
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            try:
                name = (task / "comm").read_text().strip()
                seconds = _cpu_s(task / "stat")
            except OSError:  # it has just ended
                continue
            part = "loop" if task.name == str(self.pid) else name.removeprefix("tamis ")
            part = part if name.startswith("tamis ") or part == "loop" else "others"
            parts[part] = parts.get(part, 0.0) + seconds
        return parts

    def resident_bytes(self) -> int:
        """Return the memory that it has."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE_BYTES

    def figure(self, name: str) -> float:
        """Return one of its figures, of all labels together."""
        return sum(value for line, value in self.figures().items() if line == name or line.startswith(f"{name}{{"))

    def figures(self) -> dict[str, float]:
        """Return all of its figures, by name and label."""
        with urlopen(f"{self.url}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def ask(self, method: str, path: str, body: str | None = None, content_type: str = "application/json") -> Any:
        """Ask it something; return its answer."""
        content = None if body is None else body.encode()
        request = Request(f"{self.url}{path}", content, {"Content-Type": content_type}, method=method)
        with urlopen(request, timeout=_PATIENCE_S) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def __enter__(self) -> BrokerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    return _cpu_s(Path(f"/proc/{pid}/stat"))


def _cpu_s(stat: Path) -> float:
    fields = stat.read_text().rpartition(")")[2].split()
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
        return len(self.pairs(records, connected_count))

    def pairs(self, records: list[dict[str, Any]], connected_count: int) -> set[tuple[int, int]]:
        """Return which of these events which of the first subscribers get, by their numbers, as a matcher says."""
        matcher = Matcher()
        numbers = [number for number in range(len(self.texts)) if number % self.subscriber_count < connected_count]
        matcher.add_many((number, self.texts[number]) for number in numbers)
        pairs = matcher.match_batch(records)
        subscribers = (number % self.subscriber_count for number in pairs["subscription"].to_pylist())
        return set(zip(pairs["event"].to_pylist(), subscribers, strict=True))


def filled(
    folder: Path, subscription_count: int, subscriber_count: int, seed: int, logged: Iterable[bytes] = ()
) -> Filling:
    """Write subscriptions of auctions, dealt out to subscribers, and a log of events, as a broker leaves them."""
    return filled_with(folder, auction_texts(subscription_count, seed), subscriber_count, logged=logged)


def auction_texts(count: int, seed: int) -> list[str]:
    """Return subscriptions to auctions."""
    texts: list[str] = CASES["auction"]().subscriptions(count, seed)["condition"].to_pylist() if count else []
    return texts


def filled_with(
    folder: Path,
    texts: list[str],
    subscriber_count: int,
    name: str = "tamis",
    logged: Iterable[bytes] = (),
    also: Sequence[tuple[str, str]] = (),
) -> Filling:
    """Write these subscriptions, dealt out to subscribers, and a log of events, as a broker leaves them.

    `also` are subscriptions of others, each with its subscriber.
    """
    log = SqliteLog(folder / "log", sync_s=math.inf)
    waiting = iter(logged)
    while events := tuple(islice(waiting, 512)):
        log.append([Block(log.last + 1, time.time_ns() // 1_000, events, bytes(len(events)))])
    state = State(folder / "state.db", log.epoch, name)
    names = [f"s{number}" for number in range(subscriber_count)]
    everybody = list(dict.fromkeys([*names, *(owner for owner, _ in also)]))
    changes: list[Any] = [SubscriberKept(name, "local", 30.0, 0, False, 0.0) for name in everybody]
    changes += [FloorKept(name, START, (), 0) for name in everybody]
    changes += [
        SubscriptionKept(names[number % subscriber_count], f"k{number}", number, text, text, 0, 0, "local", (), True)
        for number, text in enumerate(texts)
    ]
    changes += [
        SubscriptionKept(owner, f"k{number}", number, text, text, 0, 0, "local", (), True)
        for number, (owner, text) in enumerate(also)
    ]
    state.write(changes, is_urgent=True)
    state.close()
    log.close()
    return Filling(folder, texts, subscriber_count)


def auction_records(count: int, seed: int) -> list[dict[str, Any]]:
    """Return auctions as filters see them."""
    return events_of(CASES["auction"]().events(count, seed))


def auctions(count: int, seed: int, tag: str) -> Iterator[bytes]:
    """Yield auctions for a long log, as `auction_events` returns them: the same over and over, with other ids."""
    place = "the id"
    bodies = [
        cloud_event(record, place).partition(place.encode())
        for record in auction_records(min(count, _MADE_AT_ONCE), seed)
    ]
    prefix = tag.encode()
    for number in range(count):
        head, _, rest = bodies[number % len(bodies)]
        yield b"%b%b%d%b" % (head, prefix, number, rest)


def auction_events(count: int, seed: int, tag: str = "", source: str = "/benchmark") -> list[bytes]:
    """Return auctions as CloudEvents, each with an id of its own."""
    return [cloud_event(record, f"{tag}{number}", source) for number, record in enumerate(auction_records(count, seed))]


def cloud_event(record: dict[str, Any], key: str, source: str = "/benchmark") -> bytes:
    """Return an auction as a CloudEvent."""
    content = {"specversion": "1.0", "id": key, "source": source, "type": "auction", "data": record}
    return msgspec.json.encode(content, enc_hook=str)


# -- Clients


class Socket:
    """A WebSocket that publishes frames, or consumes and acknowledges."""

    def __init__(self, connection: aiohttp.ClientWebSocketResponse) -> None:
        self._connection = connection
        self._number = self._unanswered = 0
        self.count = 0
        """How many deliveries came."""
        self.is_caught_up = False
        self.acknowledges = True

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

    async def subscribe(self, texts: dict[str, str]) -> None:
        """Subscribe, and wait until that is in force."""
        self._number += 1
        self._unanswered += 1
        await self._connection.send_str(json.dumps({"subscribe": texts, "id": self._number}))
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
        if delivered and self.acknowledges:
            await self._connection.send_str(json.dumps({"done": [each["at"] for each in delivered]}))
        return delivered

    async def close(self) -> None:
        """Go away."""
        await self._connection.close()
