"""What do real brokers take? A line of them, each a process of its own, with sockets and queues in between.

A broker is `tamis serve`. Its clients subscribe over its WebSocket and then leave: they are remembered, and delivering
is not measured, as in the source. Brokers are not joined before they have seen events, because what a link prunes first
depends on how often conditions were true; then their settings get links, and they read them again.

Messages are what links say they have sent. Time is the clock's, from the first event until nothing is on the way, and
the processors' of all brokers together; memory is what their processes have resident.

Source: Bittner 2008, section 8.1 and table 8.1 (docs/bibliography.md).
Departs: all brokers share one machine, so their times by the clock are not those of machines side by side.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from tamis.service.ports import occupant
from tamis_lab.experiments.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

_FIRST_PORT, _PORTS = 21_000, 30_000
_ROOM = "[limits]\nsubscriptions = 10000000\nsubscribers = 1000000\nconnections_each = 10000\n"
_PATIENCE_S = 300.0
_SETTLED_S = 0.4
"""Nothing is on the way any more if nothing was sent for so long."""
_SUBSCRIBED_AT_ONCE, _PUBLISHED_AT_ONCE = 500, 64


class LineOfProcesses:
    """Brokers in a line, b0 to b4 for example, with these subscriptions; not joined yet.

    `strategy` is that of all links, and `pruning` the text of the settings by which filters are pruned for a neighbour.
    """

    def __init__(self, texts: Sequence[Sequence[str]], strategy: str, pruning: str = "") -> None:
        if not Path("/proc/self/statm").exists():
            raise LabError("processor time and memory of brokers are read from /proc, which is not on this system")
        self.names = [f"b{number}" for number in range(len(texts))]
        self._texts, self._strategy, self._pruning = texts, strategy, pruning
        self._folder = TemporaryDirectory(prefix="tamis-lab-")
        self._ports: list[int] = []
        self._links: list[int] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> LineOfProcesses:
        try:
            taken = _free_ports(2 * len(self.names))
            self._ports, self._links = taken[::2], taken[1::2]
            for number in range(len(self.names)):
                self._settings(number, is_joined=False)
                self._processes.append(self._started(number))
            for number in range(len(self.names)):
                self._wait_for(number)
            asyncio.run(self._subscribe())
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(60)
        self._folder.cleanup()

    # -- What is done with them

    def join(self) -> None:
        """Join neighbours, and wait until every broker knows what it has to."""
        for number, process in enumerate(self._processes):
            self._settings(number, is_joined=True)
            process.send_signal(signal.SIGHUP)
        begun = time.perf_counter()
        while not self._is_at_rest():
            if time.perf_counter() - begun > _PATIENCE_S:
                raise LabError(f"the links of {len(self.names)} brokers are not settled after {_PATIENCE_S:.0f} s")
            time.sleep(0.1)

    def publish(self, events: Sequence[Mapping[str, Any]], tag: str) -> float:
        """Publish events, the brokers taking turns; return after how many seconds nothing is on the way any more."""
        shares = [events[number :: len(self.names)] for number in range(len(self.names))]
        begun = time.perf_counter()
        with ThreadPoolExecutor(len(self.names)) as publishers:
            for done in [publishers.submit(self._publish, *each, tag) for each in enumerate(shares)]:
                done.result()
        sent, last = -1, time.perf_counter()
        while time.perf_counter() - last < _SETTLED_S:
            links = self.links()
            now = sum(link["sent"] for link in links)
            if now != sent or any(link["unacknowledged"] for link in links):
                sent, last = now, time.perf_counter()
            if last - begun > _PATIENCE_S:
                raise LabError(f"events are still on the way after {_PATIENCE_S:.0f} s")
            time.sleep(0.02)
        return last - begun

    # -- What is known of them

    def links(self) -> list[dict[str, Any]]:
        """Return what brokers know of their links."""
        return [link for number in range(len(self.names)) for link in self._ask(number, "GET", "/links")["links"]]

    def sent(self) -> int:
        """Return how many events went over links so far."""
        return sum(int(link["sent"]) for link in self.links())

    def entries(self) -> int:
        """Return how many filters of neighbours all brokers know."""
        return sum(int(link["wants"]) for link in self.links())

    def cpu_s(self) -> float:
        """Return the processor time of all brokers."""
        fields = [Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split() for each in self._processes]
        return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        """Return the memory of all brokers."""
        pages = sum(int(Path(f"/proc/{each.pid}/statm").read_text().split()[1]) for each in self._processes)
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _is_at_rest(self) -> bool:
        links = self.links()
        return len(links) == 2 * (len(self.names) - 1) and all(
            link["state"] == "live" and link["settled"] and not link["unacknowledged"] and not link["waiting_control"]
            for link in links
        )

    # -- How they are spoken to

    def _settings(self, number: int, *, is_joined: bool) -> None:
        folder = Path(self._folder.name) / self.names[number]
        folder.mkdir(exist_ok=True)
        lines = [f'name = "{self.names[number]}"', f'strategy = "{self._strategy}"']
        lines += ["[[link_listeners]]", f"port = {self._links[number]}", _ROOM, '[log]\nsync = "1s"']
        for other in (number - 1, number + 1):
            if is_joined and 0 <= other < len(self.names):
                name = self.names[other]
                lines += [
                    f"[links.{name}]",
                    f'url = "tamis://127.0.0.1:{self._links[other]}"' if other < number else "",
                ]
                lines += [f"[links.{name}.pruning]\n{self._pruning}"] if self._pruning else []
        (folder / "tamis.toml").write_text("\n".join(lines) + "\n", "utf-8")

    def _started(self, number: int) -> subprocess.Popen[bytes]:
        folder = Path(self._folder.name) / self.names[number]
        arguments = ["serve", "--data", str(folder / "data"), "--port", str(self._ports[number])]
        return subprocess.Popen(
            [sys.executable, "-m", "tamis", *arguments, "--config", str(folder / "tamis.toml")],
            stdout=subprocess.DEVNULL,
            stderr=(folder / "log").open("wb"),
        )

    def _wait_for(self, number: int) -> None:
        begun = time.perf_counter()
        while True:
            try:
                self._ask(number, "GET", "/ready")
                return
            except OSError:
                if self._processes[number].poll() is not None or time.perf_counter() - begun > _PATIENCE_S:
                    said = (Path(self._folder.name) / self.names[number] / "log").read_text("utf-8", "replace")[-500:]
                    raise LabError(f"the broker {self.names[number]} did not start: {said}") from None
            time.sleep(0.05)

    def _ask(self, number: int, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        headers = {"Content-Type": kind} if kind else {}
        request = Request(f"http://127.0.0.1:{self._ports[number]}{path}", body, headers, method=method)
        with urlopen(request, timeout=_PATIENCE_S) as answer:
            text = answer.read()
        try:
            return json.loads(text) if text else None
        except ValueError:  # /ready speaks to people
            return None

    def _publish(self, number: int, events: Sequence[Mapping[str, Any]], tag: str) -> None:
        for first in range(0, len(events), _PUBLISHED_AT_ONCE):
            batch = [
                {
                    "specversion": "1.0",
                    "id": f"{tag}-{number}-{first + place}",
                    "source": "/lab",
                    "type": "auction",
                    "data": dict(event),
                }
                for place, event in enumerate(events[first : first + _PUBLISHED_AT_ONCE])
            ]
            self._ask(number, "POST", "/events", json.dumps(batch).encode(), "application/cloudevents-batch+json")

    async def _subscribe(self) -> None:
        import aiohttp

        async with aiohttp.ClientSession() as http:
            for number, texts in enumerate(self._texts):
                url = f"http://127.0.0.1:{self._ports[number]}/ws"
                async with http.ws_connect(url, protocols=("tamis.v1",), max_msg_size=0) as socket:
                    await socket.send_str(json.dumps({"hello": {"as": "clients", "durable": True}}))
                    await socket.receive()
                    for first in range(0, len(texts), _SUBSCRIBED_AT_ONCE):
                        some = texts[first : first + _SUBSCRIBED_AT_ONCE]
                        asked = {"subscribe": {f"k{first + at}": text for at, text in enumerate(some)}, "id": first}
                        await socket.send_str(json.dumps(asked))
                        await _answered(socket)


async def _answered(socket: Any) -> None:
    while True:
        messages = json.loads((await socket.receive()).data)
        for message in messages if isinstance(messages, list) else [messages]:
            if "error" in message:
                raise LabError(f"a broker refused a subscription: {message['error']}")
            if "ok" in message:
                return


def _free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on."""
    chosen: list[int] = []
    port = _FIRST_PORT + os.getpid() % _PORTS
    while len(chosen) < count:
        port = _FIRST_PORT + (port + 1 - _FIRST_PORT) % _PORTS
        if not occupant(port):
            chosen.append(port)
    return chosen
