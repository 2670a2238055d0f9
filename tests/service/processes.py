"""A real broker, as a process of its own on loopback; and commands beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

START_S = 240.0
"""The first start compiles kernels; this ends a test that hangs."""


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("TAMIS_URL", "TAMIS_TOKEN")}
    return kept | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200"} | changes


def tamis(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tamis.cli", *arguments]


class BrokerProcess:
    """`tamis serve`, ended by its id."""

    def __init__(self, data: Path, *flags: str, port: int = 0) -> None:
        self.data, self.flags, self.port = data, flags, port
        self.facts: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> BrokerProcess:
        command = tamis("serve", "--data", str(self.data), "--port", str(self.port), "--json", *self.flags)
        self._errors = (self.data.parent / f"{self.data.name}.err").open("a+")
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment()
        )
        watch = threading.Timer(START_S, self._process.kill)
        watch.start()
        written = ""
        try:
            while line := self._process.stdout.readline():
                written += line
                if line.startswith("}"):
                    break
        finally:
            watch.cancel()
        assert written, f"the broker did not start:\n{self.errors()}"
        self.facts = json.loads(written)
        assert "addresses" in self.facts, self.facts
        self.port = int(self.url.rpartition(":")[2])
        return self

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-5000:]

    @property
    def url(self) -> str:
        return self.facts["addresses"][0]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def put(self, path: str, content: Any) -> Any:
        body, headers = json.dumps(content).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers, method="PUT")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self._process.send_signal(how)
        code = self._process.wait(60)
        self._process.stdout.close()
        self._errors.close()
        return code

    def __enter__(self) -> BrokerProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.end()
