"""A real broker, as a process of its own on loopback; and commands beside it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any

from tests.service.broker_processes import is_there

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.broker_processes import Forge

START_S = 240.0
"""The first start compiles kernels; this ends a test that hangs."""


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("TAMIS_URL", "TAMIS_TOKEN")}
    return kept | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200"} | changes


def tamis(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tamis.cli", *arguments]


class BrokerProcess:
    """`tamis serve`, started by the forge as a process of its own, and ended by its id."""

    def __init__(self, forge: Forge, data: Path, *flags: str, port: int = 0) -> None:
        self.forge, self.data, self.flags, self.port = forge, data, flags, port
        self.facts: dict[str, Any] = {}
        self.process = 0
        self._starts = 0

    def start(self) -> BrokerProcess:
        self._starts += 1
        self._output.write_text("")
        command = ["serve", "--data", self.data, "--port", self.port, "--json", *self.flags]
        self.process = self.forge.run(command, self._output)
        ends = time.monotonic() + START_S
        while not (facts := re.search(r"^\{.*?^\}$", self._output.read_text(), re.MULTILINE | re.DOTALL)):
            assert is_there(self.process), f"the broker has ended:\n{self._output.read_text()}"
            assert time.monotonic() < ends, f"the broker did not start:\n{self._output.read_text()}"
            time.sleep(0.005)
        self.facts = json.loads(facts[0])
        assert "addresses" in self.facts, self.facts
        self.port = int(self.url.rpartition(":")[2])
        return self

    @property
    def _output(self) -> Path:
        return self.data.parent / f"{self.data.name}-{self._starts}.output"

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
        process, self.process = self.process, 0
        os.kill(process, how)
        return self.forge.wait(process)

    def __enter__(self) -> BrokerProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process:
            self.end()
