"""A broker as its users meet it: a process of its own, on a port of loopback, with a folder of its own."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port

PATIENCE_S = 240
"""A test that hangs ends after this; none asserts how long anything takes."""
_OURS = {name: value for name, value in os.environ.items() if not name.startswith("TAMIS_")}


def in_a_loop(test):
    """Run a test that is a coroutine."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), kwargs.pop("patience_s", PATIENCE_S)))

    return run


async def until(condition, what="a condition", patience_s=100):
    """Wait until something holds, and return it."""
    ends = time.monotonic() + patience_s
    while not (value := condition()):
        assert time.monotonic() < ends, f"{what} did not come true"
        await asyncio.sleep(0.02)
    return value


def is_there(process: int) -> bool:
    """Is a process there, and no zombie?"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Forge:
    """Starts the command `tamis` in a moment (see `forge`)."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.service.forge"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_OURS,
        )  # fmt: skip
        self._one_at_a_time = threading.Lock()
        self._answer()

    def run(self, arguments, output: Path, file_bytes: int = 0, disk=None) -> int:
        """Start the command, perhaps with a limit to its files, or a small disk at a folder; return its process."""
        arguments = [str(each) for each in arguments]
        return self._ordered({"run": arguments, "output": str(output), "file_bytes": file_bytes, "disk": disk})[
            "process"
        ]

    def wait(self, process: int) -> int:
        """Wait for the end of a process; return its exit code."""
        return self._ordered({"wait": process})["exit"]

    def close(self) -> None:
        """End the forge, and everything that it has started."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ordered(self, order):
        with self._one_at_a_time:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        assert line, "the forge has ended"
        return json.loads(line)


class BrokerProcess:
    """`tamis serve` in a process, which can be killed and started again with the same folder and port."""

    def __init__(
        self, forge: Forge, folder: Path, *options, config: str = "", file_bytes: int = 0, disk_bytes: int = 0
    ) -> None:
        self.forge, self.folder, self.file_bytes, self.disk_bytes = forge, folder, file_bytes, disk_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self.data, self.output, self.config = folder / "data", folder / "output", folder / "tamis.toml"
        self.port = free_port()
        self.config.write_text(config)
        self.options = options
        self.process = 0
        self._starts = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        scheme = "https" if "[listeners.tls]" in self.config.read_text() else "http"
        return f"{scheme}://127.0.0.1:{self.port}"

    @property
    def arguments(self):
        """What the command is called with."""
        return ["serve", "--data", self.data, "--port", self.port, "--config", self.config, "--json", *self.options]

    def said(self) -> str:
        """Return what the process has written since its last start."""
        return (self.folder / f"output-{self._starts}").read_text()

    def spawn(self) -> None:
        """Start the process, and do not wait for it."""
        assert not self.process
        self._starts += 1
        output = self.folder / f"output-{self._starts}"
        output.write_text("")
        disk = None
        if self.disk_bytes:
            self.data.mkdir(exist_ok=True)
            disk = [str(self.data), self.disk_bytes]
        self.process = self.forge.run(self.arguments, output, self.file_bytes, disk)

    def start(self) -> BrokerProcess:
        """Start the process; return when it says that it is ready."""
        self.spawn()
        while '"token"' not in self.said():
            assert self.is_running, f"the broker has ended: {self.said()}"
            time.sleep(0.005)
        return self

    @property
    def is_running(self) -> bool:
        """Is the process there, and no zombie?"""
        return is_there(self.process)

    @property
    def first_token(self) -> str:
        """The token that the first start with roles has shown."""
        return re.search(r'"token": "([^"]+)"', self.said())[1]

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.process, number)

    def kill(self) -> None:
        """End the process as a power cut would, but for the disk."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """Ask it to stop; return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end; return the exit code."""
        process, self.process = self.process, 0
        return self.forge.wait(process)

    @property
    def own_disk(self) -> Path:
        """Where its small disk is for us, if it has one."""
        return Path(f"/proc/{self.process}/root{self.data}")

    def resident_bytes(self) -> int:
        """Return how much memory it has."""
        fields = Path(f"/proc/{self.process}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def ask(self, method, path, content=None, token=None, **headers):
        """Send a request; return its status and its content."""
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        request = urllib.request.Request(self.url + path, body, method=method)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
                return response.status, _content(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _content(error)


def _content(response):
    body = response.read()
    kind = response.headers.get_content_type()
    if kind in ("application/json", "application/problem+json"):
        return json.loads(body)
    if kind == "application/x-ndjson":
        return [json.loads(line) for line in body.splitlines() if line.strip()]
    return body.decode()


@contextmanager
def running(forge, folder, *options, **settings):
    """Give a broker that runs; end it, if it still does."""
    broker = BrokerProcess(forge, folder, *options, **settings)
    try:
        yield broker.start()
    finally:
        if broker.process:
            broker.kill()


def events(count, first=0, source="/test", **members):
    """Return CloudEvents with ids and numbers one after the other."""
    return [
        {"specversion": "1.0", "id": str(number), "source": source, "type": "test", "data": {"n": number, **members}}
        for number in range(first, first + count)
    ]
