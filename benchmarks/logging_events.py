"""What does it cost to keep events? The logs of the service, beside a bare file.

    bare file              one checksummed block and `fdatasync`: what a log of one's own format would cost
    sqlite                 `SqliteLog`, which waits for the disk
    sqlite, never          `SqliteLog` that does not
    jetstream, always      `JetStreamLog` with a server that waits for the disk
    jetstream              the same with a server as it comes, which does not

Each appends the same blocks, one after the other; they take turns, so that a busy moment hits all of them. `cpu_us` is
the processor time of an event, that of the server included; `times_the_file` compares it with the bare file of the same
row group. `wrong` counts blocks that are read back otherwise than they were written.
"""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median
from struct import Struct
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, process_time, sleep
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks.cases import percentile_us
from tamis.service.log.base import Block
from tamis.service.log.blocks import block_of, record_of
from tamis.service.log.sqlite import SqliteLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_BLOCKS_A_TURN = 4
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Log(Protocol):
    """What is measured."""

    def append(self, blocks: Sequence[Block]) -> object:
        """Keep blocks."""

    def read(self, first: int, last: int) -> Iterator[Block]:
        """Yield the blocks again."""

    def close(self) -> None:
        """End."""


def logging_events(
    block_events: Sequence[int] = (1, 16, 256, 1_024),
    event_bytes: int = 300,
    block_count: int = 400,
    most_events: int = 200_000,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many events a second does a log take, and what does an event cost?"""
    head = b'{"specversion":"1.0","id":"%d","source":"/benchmark","type":"t","data":"' % seed
    body = head.ljust(event_bytes - 2, b"x")
    for size in block_events:
        count = max(_BLOCKS_A_TURN, min(block_count, most_events // size))
        events = tuple(body + b'"}' for _ in range(size))
        blocks = [Block(1 + number * size, number, events, bytes(size)) for number in range(count)]
        with ExitStack() as stack:
            rows = list(_measured({name: make(stack) for name, make in MAKERS.items()}, blocks))
        yield from rows


def _measured(logs: dict[str, tuple[Log, NatsServer | None]], blocks: list[Block]) -> Iterator[dict[str, Any]]:
    times_s: dict[str, list[float]] = defaultdict(list)
    cpu_s: dict[str, float] = defaultdict(float)
    before = {name: server.cpu_s() if server else 0.0 for name, (_, server) in logs.items()}
    for first in range(0, len(blocks), _BLOCKS_A_TURN):
        for name, (log, _) in logs.items():
            start = process_time()
            for block in blocks[first : first + _BLOCKS_A_TURN]:
                begin = perf_counter()
                log.append((block,))
                times_s[name].append(perf_counter() - begin)
            cpu_s[name] += process_time() - start
    file_us = 0.0
    event_count = sum(len(block.events) for block in blocks)
    for name, (log, server) in logs.items():
        cpu_us = (cpu_s[name] + (server.cpu_s() - before[name] if server else 0.0)) / event_count * 1e6
        file_us = file_us or cpu_us
        start = perf_counter()
        kept = list(log.read(0, 1 << 60))
        read_s = perf_counter() - start
        wrong = sum(
            (one.time_us, one.events, one.flags) != (other.time_us, other.events, other.flags)
            for one, other in zip(kept, blocks, strict=False)
        )
        yield {
            "log": name,
            "block_events": len(blocks[0].events),
            "events": event_count,
            "events_per_s": event_count / sum(times_s[name]),
            "cpu_us": cpu_us,
            "times_the_file": cpu_us / file_us,
            "block_p50_us": median(times_s[name]) * 1e6,
            "block_p99_us": percentile_us(times_s[name], 99),
            "read_us": read_s / event_count * 1e6,
            "wrong": wrong + abs(len(kept) - len(blocks)),
        }


# -- What is compared


class BareFile:
    """Blocks in one file, each forced to the disk: no index, no recovery."""

    _HEAD = Struct("<QqIIII")

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND)

    def append(self, blocks: Sequence[Block]) -> None:
        """Write blocks, and wait for the disk."""
        parts: list[bytes] = []
        for block in blocks:
            first, time_us, count, crc, *contents = record_of(block)
            parts += (self._HEAD.pack(first, time_us, count, crc, *map(len, contents[::2])), *contents)
        os.writev(self._descriptor, parts)
        os.fdatasync(self._descriptor)

    def read(self, first: int, last: int) -> Iterator[Block]:
        """Yield all blocks."""
        content = Path(f"/proc/self/fd/{self._descriptor}").read_bytes()
        place = 0
        while place < len(content):
            first, time_us, count, crc, ends_bytes, events_bytes = self._HEAD.unpack_from(content, place)
            place += self._HEAD.size
            cuts = [place, place + ends_bytes, place + ends_bytes + count, place + ends_bytes + count + events_bytes]
            block = block_of((first, time_us, count, crc, *(content[begin:end] for begin, end in pairwise(cuts))))
            if block is not None:
                yield block
            place = cuts[-1]

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


class NatsServer:
    """A NATS server of its own, on a free port of this machine."""

    def __init__(self, folder: Path, sync: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        config = folder / "nats.conf"
        config.write_text(f'jetstream {{ store_dir: "{folder}"{f", sync_interval: {sync}" if sync else ""} }}\n')
        self._process = subprocess.Popen(
            [_server_path(), "-c", str(config), "-a", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert monotonic() < deadline, "nats-server does not start"
                sleep(0.02)

    def cpu_s(self) -> float:
        """Return the processor time that it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


def _server_path() -> str:
    return str(Path(sys.executable).parent / "nats-server")


def _folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(TemporaryDirectory()))


def _bare_file(stack: ExitStack) -> tuple[Log, None]:
    log = BareFile(_folder(stack) / "events")
    stack.callback(log.close)
    return log, None


def _sqlite(stack: ExitStack, sync_s: float = 0.0) -> tuple[Log, None]:
    log = SqliteLog(_folder(stack), sync_s=sync_s)
    stack.callback(log.close)
    return log, None


def _jetstream(stack: ExitStack, sync: str) -> tuple[Log, NatsServer]:
    from tamis.service.log.jetstream import JetStreamLog

    server = NatsServer(_folder(stack), sync)
    stack.callback(server.stop)
    log = JetStreamLog(f"nats://127.0.0.1:{server.port}/EVENTS")
    stack.callback(log.close)
    return log, server


_HAS_NATS = find_spec("nats") is not None and Path(_server_path()).exists() and Path("/proc/self/stat").exists()
MAKERS: dict[str, Callable[[ExitStack], tuple[Log, NatsServer | None]]] = {
    "bare file": _bare_file,
    "sqlite": _sqlite,
    "sqlite, never": lambda stack: _sqlite(stack, math.inf),
}
if _HAS_NATS:
    MAKERS |= {
        "jetstream, always": lambda stack: _jetstream(stack, "always"),
        "jetstream": lambda stack: _jetstream(stack, ""),
    }
