"""How is a broker started, changed while it runs, and stopped? The service: everything put together.

Start: settings, log, state, node, kernels warmed, threads, sockets; then it is ready. A reload takes roles, limits and
certificates without touching a connection. Stop: no new connections, a goodbye on those that last, everything that was
taken on disk, how far everybody has come kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import secrets
import signal
import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.routing import Broker
from tamis.service.cloud_events import record_of
from tamis.service.core_thread import Core
from tamis.service.edges import EdgePlace, EdgeProcesses, check_edges, placed
from tamis.service.errors import LogError, ServiceError, SettingsError
from tamis.service.figures import Figures
from tamis.service.hosting import demand_functions
from tamis.service.http.server import HttpServer
from tamis.service.links.server import LinkServer, check_log
from tamis.service.log.memory import MemoryLog
from tamis.service.log.retention import Retention
from tamis.service.log.sqlite import SqliteLog
from tamis.service.log_lines import change_logging
from tamis.service.node import WARMED_WITH, LogFacts, Node, NodeLimits
from tamis.service.permissions import Permissions
from tamis.service.principals import Authenticator
from tamis.service.quotas import Quotas
from tamis.service.settings import differences, is_loopback, renewed
from tamis.service.state import State
from tamis.service.tls import TlsDoor, reload_doors
from tamis.service.tokens import Tokens
from tamis.service.webhooks.sending import Webhooks
from tamis.service.windows import WindowLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.service.edges import EdgeCommand
    from tamis.service.issuers.verifying import Issuers
    from tamis.service.log.base import EventLog
    from tamis.service.settings import Differences, LimitSettings, Settings
    from tamis.service.tracing import Tracing

IN_MEMORY = ":memory:"
"""The data folder of a broker that forgets everything at its end."""
FAILED = 70
"""The exit code of a broker whose disk has failed (EX_SOFTWARE)."""
RETENTION_EVERY_S = 60.0
LAG_EVERY_S = 0.1
RECHECK_EVERY_S = 1.0
_LOGGER = logging.getLogger("tamis.service")


class Service:
    """A broker on real sockets.

    `read_settings` is asked again at a reload. `place` is where the process stands among those behind one address.
    """

    def __init__(
        self,
        settings: Settings,
        read_settings: Callable[[], Settings] | None = None,
        place: EdgePlace | None = None,
    ) -> None:
        self._place, self._data = place, settings.data
        self._given = settings
        """The settings of all processes behind one address; `settings` are those of this one."""
        self.settings = placed(settings, place)
        self._read_settings = read_settings or (lambda: settings)
        self.edges: EdgeProcesses | None = None
        """The edge brokers of this one, if it has any."""
        self.figures = Figures()
        self.first_token: str | None = None
        """The token of an admin, at the first start with roles; nobody can see it again."""
        self.failure: ServiceError | None = None
        self.failed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._reloading = asyncio.Lock()
        self._collecting_since = time.perf_counter()

    @property
    def addresses(self) -> list[str]:
        """Where the broker listens."""
        return self.http.addresses

    # -- Start

    async def start(self) -> None:
        """Start everything; the broker is ready when this returns."""
        settings = self.settings
        check_log(settings)
        async with contextlib.AsyncExitStack() as undo:
            with _usable(settings.data):
                self.log = await asyncio.to_thread(_opened_log, settings)
                undo.push_async_callback(asyncio.to_thread, self.log.close)  # which may have a loop of its own
                folder = Path(settings.data)
                in_memory = settings.data == IN_MEMORY
                self.state = State(IN_MEMORY if in_memory else folder / "state.db", self.log.epoch, settings.name)
                undo.callback(self.state.close)
                self.tokens = Tokens(IN_MEMORY if in_memory else Path(self._data) / "tokens.db")  # one for all edges
                undo.callback(self.tokens.close)
            place = self._place or EdgePlace("")
            if settings.roles and not place.number:
                self.first_token = self.tokens.create_first()
            self.permissions = _permissions(settings, settings)
            # Everything that is made now stays, and to look through it for garbage takes half as long as to make it.
            gc.collect()
            gc.disable()
            undo.callback(gc.enable)
            node = await asyncio.to_thread(self._made_node)
            self.core = Core(
                node, self.log, self.state, self.figures, settings.limits,
                catch_up_share=settings.catch_up.share, on_failure=self._fail, tracing=_tracing(settings),
            )  # fmt: skip
            self.authenticator = Authenticator(settings, self.tokens, issuers=await _issuers(settings))
            self.quotas = Quotas(settings.limits)
            self._doors = [None if each.tls is None else TlsDoor(each.tls) for each in settings.listeners]
            self.http = HttpServer(
                self.core, settings, self.authenticator, self.quotas, self.permissions, self.reload,
                place.http_socket if place.number else None,
            )  # fmt: skip
            self.core.start()
            self.links = LinkServer(self.core, settings)
            self.http.front.links = self.links
            await self.links.start()
            self.webhooks = Webhooks(self.http.front)
            self.http.front.webhooks = self.webhooks
            await self.http.start([None if door is None else door.context for door in self._doors])
            if place.sockets and not place.number:
                await self.http.listen_to_edges(place.http_socket)
            undo.pop_all()
        self.webhooks.start(self.state.load().webhooks)
        self._tasks = [
            asyncio.create_task(work)
            for work in (self._retain(), self._measure_lag(), self._recheck(), self._refresh_keys())
        ]
        gc.freeze()  # the objects of all subscriptions would be walked again and again, for a second each time
        gc.set_threshold(50_000, 20, 1_000)
        gc.enable()
        gc.callbacks.append(self._time_collections)
        if settings.insecure and not all(is_loopback(listener.host) for listener in settings.listeners):
            _LOGGER.warning("others can reach this broker without TLS or without roles (insecure)")

    def _made_node(self) -> Node:
        settings, log = self.settings, self.log
        schema = settings.event_schema()
        functions, stored = settings.host_functions(), self.state.load()
        demand_functions(stored, self.state.functions, functions)
        broker = Broker(settings.name, settings.strategy, schema=schema, functions=functions)
        # Of a log that lies on a server, `sync` is not ours to say.
        is_durable = settings.data != IN_MEMORY and (log.is_shared or not settings.log.sync)
        facts = LogFacts(
            log.first, log.last, log.last_time_us, log.is_shared, is_durable, log.gaps(), log.block_positions
        )
        node = Node(
            broker, self.permissions, record_of, stored, facts,
            now=time.time(), schema=schema, limits=_node_limits(settings.limits),
            windows=_window_limits(settings), life=secrets.token_hex(8),
            reroute_after_s=float(settings.reroute_after) if settings.topology == "graph" else None,
            steps_while_open=settings.steps == "while open",
        )  # fmt: skip
        self.state.keep_functions(functions.versions)
        node.remember(log.read(max(log.first, self._oldest_key(node.remembers_from)), log.last))
        node.warm(log.read(max(log.first, log.last - WARMED_WITH + 1), log.last))
        return node

    def _oldest_key(self, remembers_from: int | None) -> int:
        """Return the position from which on events are recognised if they come again.

        A shared log may have an event twice. Whoever goes through it once more, because of subscriptions that remember
        earlier events, has to leave out the same ones as before.
        """
        limits, log = self.settings.limits, self.log
        moment_us = int(time.time() * 1e6)
        if log.is_shared and remembers_from is not None:
            block = next(iter(log.read(remembers_from + 1, log.last)), None)
            moment_us = moment_us if block is None else min(moment_us, block.time_us)
        oldest = log.position_at(moment_us - int(limits.keys_age * 1e6))
        # In a shared log positions are far apart, so nothing can be said of a number of events.
        return oldest if log.is_shared else min(oldest, log.last - limits.keys)

    # -- While it runs

    async def reload(self) -> Differences:
        """Read the settings again and take what can change; return what has changed, and what waits for a start."""
        async with self._reloading:  # or settings that were read first could be taken last
            return await self._taken_over()

    async def _taken_over(self) -> Differences:
        read = await asyncio.to_thread(self._read_settings)
        changed = differences(self._given, read)
        given = renewed(self._given, read)
        settings = placed(given, self._place)
        permissions = _permissions(settings, self.settings)
        pairs = zip(self._doors, settings.listeners, strict=True)
        issuers = await _issuers(settings, self.authenticator.issuers)
        doors = [(door, each.tls) for door, each in pairs if door is not None and each.tls is not None]
        reload_doors([*doors, *self.links.doors])
        self._given, self.settings, self.permissions = given, settings, permissions
        self.authenticator.reload(settings, issuers)
        self.quotas.change(settings.limits)
        self.http.front.renew(settings, permissions)
        self.core.catch_up_share = settings.catch_up.share
        # Before the core parts subscribers from those who may not have them: it has less to say.
        await self.http.front.recheck()
        self.core.permit(permissions, settings.limits)
        await self.links.reload(settings)
        change_logging(settings.logging)
        if changed.at_start:
            _LOGGER.warning("these settings count from the next start on: %s", ", ".join(changed.at_start))
        if self.edges is not None:
            self.edges.reload()
        return changed

    async def _retain(self) -> None:
        """Drop what is old, now and then."""
        while True:
            await asyncio.sleep(RETENTION_EVERY_S)
            await asyncio.to_thread(self._drop_old)

    def _drop_old(self) -> None:
        keep = self.settings.log.keep
        retention = Retention(keep.age_s, keep.size_bytes, float(self.settings.log.hold))
        before = retention.drop_before(self.log.extents(), time.time_ns() // 1_000, self.core.needed())
        if before > self.log.first:
            self.core.drop(before)

    async def _recheck(self) -> None:
        """End the connections of revoked tokens, soon."""
        while True:
            await asyncio.sleep(RECHECK_EVERY_S)
            try:
                await self.http.front.recheck()
            except sqlite3.Error as error:  # tokens cannot be read now; nobody new is let in either
                _LOGGER.error("tokens cannot be read: %s", error)

    async def _refresh_keys(self) -> None:
        """Fetch the keys of issuers again, when it is time."""
        while True:
            await asyncio.sleep(RECHECK_EVERY_S)
            if self.authenticator.issuers is not None:
                await self.authenticator.issuers.refresh()

    async def _measure_lag(self) -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(LAG_EVERY_S)
            self.figures.loop_lag_seconds.observe(max(0.0, time.perf_counter() - begun - LAG_EVERY_S))

    def _time_collections(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since = time.perf_counter()
        else:
            self.figures.gc_seconds.observe(time.perf_counter() - self._collecting_since)

    def _fail(self, error: ServiceError) -> None:
        self.failure = self.failure or error
        self.failed.set()

    # -- Stop

    async def start_edges(self, command: EdgeCommand) -> None:
        """Start the edge brokers that the settings ask for; return when they are ready."""
        assert self._place is not None
        ports = tuple(int(address.rpartition(":")[2]) for address in self.http.addresses)
        hosts = len(self.settings.listeners)
        if len(ports) != hosts:  # a name may stand for several addresses, and port 0 for another port at each
            ports = tuple(listener.port for listener in self.settings.listeners)
        place = msgspec.structs.replace(self._place, ports=ports)
        edges = EdgeProcesses(place, self.settings.edges, command)
        await edges.start()
        self.edges = edges

    async def stop(self) -> None:
        """Stop; nothing that was acknowledged is lost, and nothing that was taken is left unwritten."""
        if self.edges is not None:
            await self.edges.stop()
        if self._time_collections in gc.callbacks:
            gc.callbacks.remove(self._time_collections)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.webhooks.stop()
        await self.http.stop()
        await self.links.stop()
        await self.core.stop()
        if self.core.tracing is not None:
            await asyncio.to_thread(self.core.tracing.close)
        await asyncio.to_thread(self.log.close)
        self.state.close()
        self.tokens.close()


@contextlib.contextmanager
def _usable(folder: str) -> Iterator[None]:
    """Say which folder it is that cannot be read or written."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LogError(
            f"the data folder {folder} cannot be used: {reason}", "a folder that can be written to, with room in it"
        ) from error


def _opened_log(settings: Settings) -> EventLog:
    log = settings.log
    if settings.data == IN_MEMORY:
        return MemoryLog()
    if log.jetstream is not None:
        from tamis.service.log.jetstream import JetStreamLog  # whose library is in an extra

        return JetStreamLog(log.jetstream.url, log.jetstream.stream, replicas=log.jetstream.replicas)
    return SqliteLog(
        Path(settings.data) / "log", sync_s=float(log.sync), segment_bytes=log.segment_bytes,
        segment_s=float(log.segment_age), check=log.check,
    )  # fmt: skip


async def _issuers(settings: Settings, previous: Issuers | None = None) -> Issuers | None:
    """Return whose JSON Web Tokens count; None if nobody's do, and nothing is imported then."""
    if not settings.issuers:
        return None
    try:
        from tamis.service.issuers.verifying import Issuers  # whose library is in an extra
    except ImportError as error:
        raise SettingsError(f"issuers: JSON Web Tokens need {error.name}", "pip install 'tamis[jwt]'") from None
    return await Issuers.started(settings, previous)


def _tracing(settings: Settings) -> Tracing | None:
    """Return who makes spans; None if nobody is to get them, and nothing is imported then."""
    if not settings.tracing.endpoint:
        return None
    try:
        from tamis.service.tracing import Tracing  # whose libraries are in an extra
    except ImportError as error:
        raise SettingsError(f"tracing: spans need {error.name}", "pip install 'tamis[otel]'") from None
    return Tracing(settings.name, settings.tracing.endpoint)


def _permissions(settings: Settings, started: Settings) -> Permissions:
    """Return what roles may do; schema and functions stay those of the start."""
    with started.host_functions().in_use():
        return Permissions(settings.roles, started.event_schema())


def _window_limits(settings: Settings) -> WindowLimits:
    limits, keep_s = settings.limits, settings.log.keep.age_s
    window_s = float(limits.window) if keep_s is None else min(float(limits.window), keep_s / 2)
    return WindowLimits(window_s, limits.window_events)


def _node_limits(limits: LimitSettings) -> NodeLimits:
    return NodeLimits(
        subscriptions=limits.subscriptions, subscribers=limits.subscribers, waiting_bytes=limits.waiting_bytes,
        queue_events=limits.passing_events, queue_bytes=limits.passing_bytes,
        recent_bytes=limits.ring_bytes, keys=limits.keys, keys_s=float(limits.keys_age),
    )  # fmt: skip


async def serve(
    settings: Settings,
    read_settings: Callable[[], Settings] | None = None,
    on_ready: Callable[[Service], None] = lambda service: None,
    edge_command: EdgeCommand | None = None,
    place: EdgePlace | None = None,
) -> int:
    """Run a broker until it is told to stop (SIGINT, SIGTERM) or fails; return the exit code. SIGHUP is a reload.

    `edge_command` says how its edge brokers are started, if the settings ask for any; one of those has a `place`.
    """
    check_edges(settings)
    if edge_command is None or not settings.edges or place is not None:
        return await _served(Service(settings, read_settings, place), on_ready, place=place)
    with tempfile.TemporaryDirectory(prefix="tamis-") as sockets:  # paths of sockets must be short
        service = Service(settings, read_settings, EdgePlace(sockets))
        return await _served(service, on_ready, edge_command)


async def _served(
    service: Service,
    on_ready: Callable[[Service], None],
    edge_command: EdgeCommand | None = None,
    place: EdgePlace | None = None,
) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    if place is not None:
        _when_input_ends(lambda: loop.call_soon_threadsafe(stopping.set))
    await service.start()
    if edge_command is not None:
        try:
            await service.start_edges(edge_command)
        except BaseException:
            await service.stop()
            raise
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = asyncio.create_task(_reloaded(service))
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, reload)
    on_ready(service)
    ends = [asyncio.create_task(event.wait()) for event in (stopping, service.failed)]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await service.stop()
    if service.failure is not None:
        _LOGGER.error("the broker has stopped: %s", service.failure)
        return FAILED
    return 0


def _when_input_ends(work: Callable[[], object]) -> None:
    """Do something when nobody holds the other end of the standard input any more: the parent has ended."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 1_024):
                pass
        with contextlib.suppress(RuntimeError):  # the loop has ended before
            work()

    threading.Thread(target=wait, name="parent", daemon=True).start()


async def _reloaded(service: Service) -> None:
    try:
        changed = await service.reload()
        _LOGGER.info("reloaded: %s", ", ".join(changed.at_once) or "nothing has changed")
    except ServiceError as error:
        _LOGGER.error("not reloaded, everything stays as it was: %s", error)
