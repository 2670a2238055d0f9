"""How are all cores of a machine used? Edge brokers: more processes behind the same address, linked to the first.

    clients ──┬──▶ first   durable subscribers, history, everything that needs state
              ├──▶ edge 1 ──link──▶ first      publications, passing subscribers; the rest is handed over to the first
              └──▶ edge 2 ──link──▶ first

Every process listens on the same address (`SO_REUSEPORT`): the kernel spreads connections, there is nobody in the
middle who could fail or be slow, and each process does its own TLS. Each edge broker is a neighbour of the first over a
Unix socket, by the protocol of all links. It has a log of its own, from which it hands on what it has taken; the first
tells it that it wants everything (flooding), so the log of the first has all events, and history and durable
subscribers are complete. An edge broker is sent by the first only what its passing subscribers want.

The first is the parent: it starts an edge broker again that has ended, and when the first ends, however that happens,
its edge brokers stop too, because their standard input ends. What they have acknowledged and not handed on lies on
their disks, and is handed on after the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.service.errors import LogError, SettingsError
from tamis.service.settings import Duration, KeepLimits, LinkListener, LinkSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.service.settings import Settings

    EdgeCommand = Callable[["EdgePlace"], Sequence[str]]

READY = b"ready\n"
"""What an edge broker writes when it is."""
PATIENCE = Duration(30 * 86_400)
KEPT_S = 3_600.0
"""So long an edge broker keeps events that it has handed on."""
AGAIN_S, LONGEST_AGAIN_S = 0.2, 10.0
_LOGGER = logging.getLogger("tamis.service.edges")


class EdgePlace(msgspec.Struct, frozen=True):
    """Where a process has its place among those behind one address."""

    sockets: str
    """The folder of the sockets on which the first listens for its edge brokers."""
    number: int = 0
    """0 is for the first."""
    ports: tuple[int, ...] = ()
    """Those of the listeners, where the settings ask for any."""

    @property
    def link_socket(self) -> Path:
        """Where edge brokers are linked to the first."""
        return Path(self.sockets) / "link.sock"

    @property
    def http_socket(self) -> Path:
        """Where edge brokers hand requests over."""
        return Path(self.sockets) / "http.sock"


def edge_name(name: str, number: int) -> str:
    """Return what the edge brokers of a broker are called.

    >>> edge_name("north", 1)
    'north.edge-1'
    """
    return f"{name}.edge-{number}"


def check_edges(settings: Settings) -> None:
    """Refuse edge brokers where they cannot be."""
    if not settings.edges:
        return
    if settings.log.jetstream is not None:
        raise SettingsError(
            "edges: brokers on one JetStream stream share all events already",
            "several brokers with the same log.jetstream; a listener that they share is for publishers and passing "
            "subscribers",
        )
    if settings.data == ":memory:":
        raise SettingsError("edges: edge brokers keep what they have not handed on in the data folder", "a folder")
    if len(edge_name(settings.name, settings.edges)) > 63:
        raise SettingsError(f"name: {settings.name!r} is too long for a broker with edges", "at most 55 characters")
    for number in range(1, settings.edges + 1):
        if edge_name(settings.name, number) in settings.links:
            raise SettingsError(f"links.{edge_name(settings.name, number)} is an edge broker's", "another name")


def placed(settings: Settings, place: EdgePlace | None) -> Settings:
    """Return the settings of the process at a place; `settings` are those of all of them."""
    if place is None:
        return settings
    replace = msgspec.structs.replace
    if place.number == 0:
        edges = {
            edge_name(settings.name, number): LinkSettings(strategy="flooding", patience=PATIENCE)
            for number in range(1, settings.edges + 1)
        }
        return replace(
            settings,
            listeners=tuple(replace(listener, shared=True) for listener in settings.listeners),
            link_listeners=(*settings.link_listeners, LinkListener(path=str(place.link_socket))),
            links={**settings.links, **edges},
        )
    keep = settings.log.keep
    age_s = KEPT_S if keep.age_s is None else min(KEPT_S, keep.age_s)
    log = replace(
        settings.log, keep=KeepLimits(age_s, keep.size_bytes), segment_age=Duration(min(settings.log.segment_age, 600))
    )
    ports = place.ports or tuple(listener.port for listener in settings.listeners)
    return replace(
        settings,
        name=edge_name(settings.name, place.number),
        data=str(Path(settings.data) / "edges" / str(place.number)),
        listeners=tuple(
            replace(listener, shared=True, port=port) for listener, port in zip(settings.listeners, ports, strict=True)
        ),
        link_listeners=(),
        neighbours=(),
        links={settings.name: LinkSettings(url=f"unix://{place.link_socket}", patience=PATIENCE)},
        log=log,
    )


class EdgeProcesses:
    """The edge brokers of a first broker, which starts and stops them."""

    def __init__(self, place: EdgePlace, count: int, command: EdgeCommand) -> None:
        self._place, self._count, self._command = place, count, command
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._watchers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all of them; return when they are ready."""
        started = [self._started(number) for number in range(1, self._count + 1)]
        try:
            are_ready = await asyncio.gather(*started)
        except BaseException:
            await self.stop()
            raise
        if not all(are_ready):
            await self.stop()
            raise LogError("an edge broker did not start", "see the reason in the log lines before this one")
        self._watchers = [asyncio.create_task(self._watch(number)) for number in self._processes]

    async def _started(self, number: int) -> bool:
        """Start one of them; return whether it is ready, or has ended before."""
        place = msgspec.structs.replace(self._place, number=number)
        process = self._processes[number] = await asyncio.create_subprocess_exec(
            *self._command(place), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the first, who stops the others
        )  # fmt: skip
        assert process.stdout is not None
        return await process.stdout.readline() == READY

    async def _watch(self, number: int) -> None:
        """Start an edge broker again whenever it ends."""
        wait_s = AGAIN_S
        while True:
            code = await self._processes[number].wait()
            _LOGGER.warning("edge broker %d has ended with %s, and is started again", number, code)
            await asyncio.sleep(wait_s)
            wait_s = AGAIN_S if await self._started(number) else min(2 * wait_s, LONGEST_AGAIN_S)

    @property
    def processes(self) -> dict[int, int]:
        """The ids of their processes, by number."""
        return {number: process.pid for number, process in self._processes.items()}

    def reload(self) -> None:
        """Let all of them read the settings again."""
        for process in self._processes.values():
            if process.returncode is None:
                process.send_signal(signal.SIGHUP)

    async def stop(self) -> None:
        """Stop all of them, and wait for that."""
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self._processes.values():
            await process.wait()
