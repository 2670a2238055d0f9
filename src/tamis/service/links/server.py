"""Who calls whom, who may call, and what becomes of it? The links of a broker on real sockets.

A broker listens for neighbours on addresses of their own, and calls those whose address it was given, again and again
with growing waits. Either end may be the caller; if both call, the newer connection takes the place of the older. A
reload begins, changes and ends links by name, and touches no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import ssl
import time
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.errors import TamisError
from tamis.language.schema import NO_SCHEMA
from tamis.service.cloud_events import record_of
from tamis.service.errors import NotFoundError, ServiceError, SettingsError
from tamis.service.event_keys import event_key
from tamis.service.links.certificates import calling_context, is_named
from tamis.service.links.connections import PING_EVERY_S, SILENT_S, Connection
from tamis.service.links.dialling import Waits, address_of
from tamis.service.links.frames import LinkError
from tamis.service.links.rates import LinkRates
from tamis.service.links.requests import LinkChange, LinkForget, LinksDescribe, LinksDescribed
from tamis.service.links.talking import LinkIdentity, RefusedError, Talk
from tamis.service.links.terms import AdaptationTerms, LinkTerms, PruningTerms
from tamis.service.messages import Incoming, Principal
from tamis.service.settings import ADMIN
from tamis.service.tls import TlsDoor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.service.core_thread import Core
    from tamis.service.links.requests import LinkFacts
    from tamis.service.settings import LinkSettings, LinkTls, Settings, Tls

CONNECT_WITHIN_S = 10.0
_OPERATOR = Principal("tamis", (ADMIN,), True)
_LOGGER = logging.getLogger("tamis.service.links")


def incoming_of(body: bytes, flags: int) -> Incoming:
    """Return an event that a neighbour sent: the bytes as they are stored, and what filters see of them."""
    try:
        return Incoming(event_key(body), body, record_of(body, flags), flags)
    except (TamisError, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from None


def terms_of(link: LinkSettings | None) -> LinkTerms:
    """Return the terms that settings say; without any, everything passes."""
    if link is None:
        return LinkTerms()
    pruning, adaptation = link.pruning, link.adaptation
    return LinkTerms(
        link.may_send, link.may_receive, link.rate, float(link.patience), link.strategy or "",
        None if pruning is None else PruningTerms(
            pruning.count, pruning.share, pruning.threshold, pruning.reduction, pruning.memory_bytes, pruning.measure
        ),
        None if adaptation is None else AdaptationTerms(
            adaptation.stop_above, adaptation.ask_above, adaptation.events, float(adaptation.wait)
        ),
    )  # fmt: skip


def check_log(settings: Settings) -> None:
    """Refuse links of a broker whose log is shared.

    A broker knows only its own subscribers: neighbours would not be asked for what those of the other brokers on the
    stream want. And two brokers of a stream that have links into one network close a cycle which neither can see.
    """
    if settings.log.jetstream is not None and (settings.links or settings.link_listeners or settings.neighbours):
        raise SettingsError(
            "links: a broker with log.jetstream has no neighbours, because they would not be asked for what the "
            "subscribers of the other brokers on the stream want",
            "files as the log, or no links; a durable subscriber can carry events between a stream and a network "
            "(docs/service.md)",
        )


class LinkServer:
    """The sockets of all links."""

    def __init__(
        self,
        core: Core,
        settings: Settings,
        *,
        ping_s: float = PING_EVERY_S,
        silent_s: float = SILENT_S,
        chance: Callable[[], float] | None = None,
    ) -> None:
        self._core, self._settings = core, settings
        self._ping_s, self._silent_s = ping_s, silent_s
        self._chance = chance or SystemRandom().random
        self._servers: list[asyncio.Server] = []
        self.doors: list[tuple[TlsDoor, Tls]] = []
        """The encryption of the listeners, and where their certificates are, which a reload reads again."""
        self._connections: dict[Connection, asyncio.Task[None] | None] = {}
        self._callers: dict[str, tuple[str, asyncio.Task[None]]] = {}
        """By what is called (the name of a broker, or an address of whoever answers): the address, and the task."""
        self._refusals: dict[str, str] = {}
        """Why links were refused last, by name or address."""
        self._ordered: dict[str, tuple[str, LinkTerms]] = {}
        """Links that an admin has ordered while the broker ran."""
        self.addresses: list[str] = []
        self._rates = LinkRates(settings.name)
        self._counting: asyncio.Task[None] | None = None

    # -- Start and stop

    async def start(self) -> None:
        """Listen on all addresses for neighbours, and call those that are to be called."""
        for listener in self._settings.link_listeners:
            context = None
            if listener.tls is not None:
                door = TlsDoor(listener.tls)
                self.doors.append((door, listener.tls))
                context = door.context
            if listener.path:
                with contextlib.suppress(FileNotFoundError):
                    Path(listener.path).unlink()
                server = await asyncio.start_unix_server(self._called, listener.path)
                os.chmod(listener.path, 0o600)
                self.addresses.append(f"unix://{listener.path}")
            else:
                server = await asyncio.start_server(
                    self._called, listener.host, listener.port, ssl=context,
                    ssl_handshake_timeout=None if context is None else CONNECT_WITHIN_S,
                )  # fmt: skip
                scheme = "tamis" if context is None else "tamis+tls"
                for socket in server.sockets:
                    host, port = socket.getsockname()[:2]
                    self.addresses.append(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
            self._servers.append(server)
        for facts in (await self._described()).links:
            if facts.url:
                self._ordered[facts.name] = facts.url, facts.terms
        self._call_all()
        self._counting = asyncio.create_task(self._count_rates())

    async def stop(self) -> None:
        """Say goodbye to all neighbours."""
        for server in self._servers:
            server.close()
        tasks = [task for _, task in self._callers.values()]
        if self._counting is not None:
            tasks.append(self._counting)
        for task in tasks:
            task.cancel()
        for connection in list(self._connections):
            connection.close("the broker stops")
        tasks += [task for task in self._connections.values() if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        for listener in self._settings.link_listeners:
            if listener.path and self._servers:
                with contextlib.suppress(OSError):
                    Path(listener.path).unlink()

    # -- Changes

    async def reload(self, settings: Settings) -> None:
        """Begin, change and end links as other settings say."""
        before, self._settings = self._settings, settings
        known = {facts.name for facts in (await self._described()).links}
        for name in before.links.keys() - settings.links.keys():
            self._hang_up(name)
            if name in known and name not in self._ordered:
                await self._core.ask(_OPERATOR, LinkForget(1, name))
        for name, link in settings.links.items():
            if name in known and link != before.links.get(name):
                await self._core.ask(_OPERATOR, LinkChange(1, name, terms_of(link)))
        self._call_all()

    async def put(self, name: str, url: str, terms: LinkTerms) -> None:
        """Begin or change a link by order of an admin; it is remembered."""
        if url:
            address_of(url)
        await self._core.ask(_OPERATOR, LinkChange(1, name, terms, url))
        self._ordered[name] = url, terms
        self._call_all()

    async def delete(self, name: str) -> None:
        """End a link for good."""
        is_called = name in self._callers
        self._hang_up(name)
        self._ordered.pop(name, None)
        try:
            await self._core.ask(_OPERATOR, LinkForget(1, name))
        except NotFoundError:
            if not is_called:
                raise

    # -- Calling

    def _wanted_calls(self) -> dict[str, str]:
        """Return whom to call where."""
        calls = {url: url for url in self._settings.neighbours}
        calls |= {name: url for name, (url, _) in self._ordered.items() if url}
        calls |= {name: link.url for name, link in self._settings.links.items() if link.url}
        return calls

    def _call_all(self) -> None:
        wanted = self._wanted_calls()
        for name, (url, _) in list(self._callers.items()):
            if wanted.get(name) != url:
                self._hang_up(name)
        for name, url in wanted.items():
            if name not in self._callers:
                self._callers[name] = url, asyncio.create_task(self._call(name, url))

    def _hang_up(self, name: str) -> None:
        if name in self._callers:
            self._callers.pop(name)[1].cancel()

    async def _call(self, name: str, url: str) -> None:
        """Call a neighbour, again and again."""
        waits = Waits(self._chance)
        expected = "" if name == url else name
        while True:
            wait_s = None
            connection: Connection | None = None
            try:
                async with asyncio.timeout(CONNECT_WITHIN_S):
                    reader, writer = await self._connected(name, url)
                connection = self._made(reader, writer, expected)
                await self._run(connection)
            except (OSError, ServiceError, TimeoutError) as error:
                if isinstance(error, RefusedError) or (connection is not None and connection.talk.is_refused):
                    wait_s = waits.longest_s()
                self._refusals[name] = str(error) or type(error).__name__
                _LOGGER.info("the link to %s: %s", name, self._refusals[name])
            if connection is not None and connection.talk.is_joined and wait_s is None:
                waits.reset()
            await asyncio.sleep(waits.next_s() if wait_s is None else wait_s)

    async def _connected(self, name: str, url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = address_of(url)
        if address.path:
            return await asyncio.open_unix_connection(address.path)
        context = None
        if address.is_encrypted:
            tls = self._tls_for(name)
            context = calling_context(tls) if tls is not None else ssl.create_default_context()
        return await asyncio.open_connection(
            address.host, address.port, ssl=context, server_hostname=address.host if context else None
        )

    def _tls_for(self, name: str) -> LinkTls | None:
        link = self._settings.links.get(name)
        return self._settings.link_tls if link is None or link.tls is None else link.tls

    # -- Both

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._made(reader, writer, "")
        try:
            await self._run(connection)
        except (OSError, ServiceError) as error:
            who = connection.talk.peer or "somebody"
            if connection.talk.peer:
                self._refusals[who] = str(error)
            _LOGGER.info("%s called: %s", who, error)
        except asyncio.CancelledError:
            if not self._core.is_ready:
                return  # the broker stops
            raise

    def _made(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, expected: str) -> Connection:
        settings = self._settings
        certificate = writer.get_extra_info("peercert")
        needs_name = writer.get_extra_info("ssl_object") is not None and (certificate or not settings.link_secret)

        def may_be(name: str) -> bool:
            return not needs_name or is_named(certificate, name)

        schema = settings.event_schema()
        identity = LinkIdentity(
            settings.network, settings.name, settings.link_secret or "", NO_SCHEMA if schema is None else schema.digest,
            None if settings.schema is None else {name: _typed(kind) for name, kind in settings.schema.items()},
            settings.host_functions().versions, settings.topology == "graph",
        )  # fmt: skip
        talk = Talk(identity, secrets.token_bytes(16), self._terms_for, incoming_of, expected=expected, may_be=may_be)
        return Connection(
            self._core, talk, reader, writer, self._rate_of, ping_s=self._ping_s, silent_s=self._silent_s,
            rates=self._rates,
        )  # fmt: skip

    async def _run(self, connection: Connection) -> None:
        self._connections[connection] = asyncio.current_task()
        try:
            await connection.run()
        finally:
            del self._connections[connection]
            figures, peer = self._core.figures, connection.talk.peer or "unknown"
            figures.link_bytes_in[peer] += connection.bytes_in
            figures.link_bytes_out[peer] += connection.bytes_out
            connection.bytes_in = connection.bytes_out = 0

    def count_bytes(self) -> None:
        """Add to the figures what open connections have carried since they were asked last."""
        figures = self._core.figures
        for connection in self._connections:
            peer = connection.talk.peer or "unknown"
            figures.link_bytes_in[peer] += connection.bytes_in
            figures.link_bytes_out[peer] += connection.bytes_out
            connection.bytes_in = connection.bytes_out = 0

    def _terms_for(self, name: str) -> LinkTerms:
        if name in self._settings.links:
            return terms_of(self._settings.links[name])
        return self._ordered[name][1] if name in self._ordered else LinkTerms()

    def _rate_of(self, name: str) -> float:
        return self._terms_for(name).rate

    # -- What is known

    async def _count_rates(self) -> None:
        """Count what the links carry, so that a ping can say it."""
        while True:
            if self._connections:
                with contextlib.suppress(ServiceError):  # of a core that is busy; it is asked again
                    links = (await self._described()).links
                    self._rates.count([(facts.name, facts.sent, facts.received) for facts in links], time.time())
            await asyncio.sleep(self._ping_s)

    async def _described(self) -> LinksDescribed:
        described = await self._core.ask(_OPERATOR, LinksDescribe(1))
        assert isinstance(described, LinksDescribed)
        return described

    async def describe(self) -> dict[str, Any]:
        """Return what is known of all links, as JSON: those that are there, and those that are called in vain."""
        described = await self._described()
        calls = self._wanted_calls()
        links = [self._link_json(facts, calls.get(facts.name, "")) for facts in described.links]
        known = {facts.name for facts in described.links}
        called = {connection.talk.peer for connection in self._connections}
        for name, url in calls.items():
            if name not in known and name != url:
                links.append(
                    {
                        "name": name,
                        "state": "calling",
                        "url": url,
                        "carries": False,
                        "refusal": self._refusals.get(name, ""),
                    }
                )
            elif name == url and not (called & known):
                links.append(
                    {
                        "name": "",
                        "state": "calling",
                        "url": url,
                        "carries": False,
                        "refusal": self._refusals.get(url, ""),
                    }
                )
        elsewhere = self._rates.elsewhere(time.time())
        return {"broker": described.broker, "network": self._settings.network, "links": links, "elsewhere": elsewhere}

    def _link_json(self, facts: LinkFacts, url: str) -> dict[str, Any]:
        content: dict[str, Any] = msgspec.to_builtins(facts)
        content["settled"] = content.pop("is_settled")
        content["url"] = content["url"] or url
        if facts.state == "away" and not facts.refusal:
            content["refusal"] = self._refusals.get(facts.name, "")
        return content


def _typed(kind: Any) -> str:
    return kind if isinstance(kind, str) else msgspec.json.encode(kind).decode()


__all__ = ["LinkError", "LinkServer", "incoming_of", "terms_of"]
