"""A small honest broker, in memory, that breaks connections where a test wants it.

It keeps the promises of the protocol (same key: same event; whatever is not done comes again, marked) and asks the
reference meaning what matches. Its disk is a list; it has no permissions and no retention.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

import tamis
from tamis.errors import LanguageError
from tamis.service import wire


@dataclass
class Subscriber:
    name: str
    is_durable: bool
    filters: dict[str, Any] = field(default_factory=dict)
    pairs: dict[int, list[str]] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    sent: Counter = field(default_factory=Counter)
    dead: dict[int, str] = field(default_factory=dict)
    consumer: Any = None
    credit: int = 256
    under_way: set[int] = field(default_factory=set)


class FakeBroker:
    def __init__(self, token: str = "") -> None:
        self.token = token
        self.epoch = "k3f9"
        self.log: list[bytes] = []
        self.positions: dict[str, int] = {}
        self.subscribers: dict[str, Subscriber] = {}
        self.sockets: set[web.WebSocketResponse] = set()
        self.heard: list[wire.FromClient] = []
        self.connections = 0
        self.port = 0
        self.batch_events = 1000
        self.drops: Counter = Counter()
        """How often a connection breaks at a place: `hello`, `publish` (before it is taken), `taken` (before it is
        acknowledged), `subscribed`, `deliver` (after an event was sent), `done` (before it counts), `history`."""
        self.refusals: list[dict[str, Any]] = []
        """What the next publications are refused with."""
        self._runner: web.AppRunner | None = None

    # -- Its life

    async def start(self, ssl_context=None) -> FakeBroker:
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/ws", self._conversation)
        app.router.add_get("/events", self._history)
        app.router.add_post("/match", self._match)
        app.router.add_post("/check", self._check)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=ssl_context)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]
        return self

    async def stop(self, says_bye: bool = False) -> None:
        for socket in list(self.sockets):
            if says_bye:
                await self._say(socket, bye="restarting", retry_s=0.05)
            await socket.close(code=WSCloseCode.GOING_AWAY)
        await self._runner.cleanup()

    async def restart(self) -> None:
        await self.stop(says_bye=True)
        await self.start()

    async def __aenter__(self) -> FakeBroker:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def events(self) -> list[Any]:
        return [msgspec.json.decode(body).get("data") for body in self.log]

    # -- The conversation

    async def _conversation(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=(wire.SUBPROTOCOL,), max_msg_size=2**20)
        await socket.prepare(request)
        assert socket.ws_protocol == wire.SUBPROTOCOL
        self.sockets.add(socket)
        self.connections += 1
        socket.subscriber = None
        try:
            async for frame in socket:
                if frame.type == WSMsgType.TEXT:
                    for message in wire.decode_client(frame.data):
                        await self._hear(socket, message)
        except ConnectionError:
            pass
        finally:
            self.sockets.discard(socket)
            subscriber = socket.subscriber
            if subscriber is not None and subscriber.consumer is socket:
                subscriber.consumer = None
                subscriber.under_way.clear()
                if not subscriber.is_durable:
                    self.subscribers.pop(subscriber.name, None)
        return socket

    async def _say(self, socket: web.WebSocketResponse, **members: Any) -> None:
        await socket.send_str(wire.encode(wire.FromBroker(**members)).decode())

    def _drop(self, socket: web.WebSocketResponse, place: str) -> None:
        if self.drops[place] > 0:
            self.drops[place] -= 1
            socket._req.transport.abort()
            raise ConnectionResetError(place)

    def _at(self, number: int) -> str:
        return f"{self.epoch}-{number}"

    async def _hear(self, socket: web.WebSocketResponse, message: wire.FromClient) -> None:
        self.heard.append(message)
        if isinstance(message.hello, wire.Hello):
            await self._hello(socket, message.hello)
        elif isinstance(message.publish, list):
            await self._publish(socket, message)
        elif isinstance(message.subscribe, dict):
            await self._subscribe(socket, message)
        else:
            self._drop(socket, "done")
            subscriber = socket.subscriber
            for kind in ("done", "again", "never"):
                numbers = getattr(message, kind)
                for at in numbers if isinstance(numbers, list) else ():
                    epoch, _, number = at.partition("-")
                    assert epoch == self.epoch
                    subscriber.under_way.discard(int(number))
                    if kind == "done":
                        subscriber.done.add(int(number))
                    elif kind == "never":
                        subscriber.dead[int(number)] = message.reason
            await self._deliver(subscriber)

    async def _hello(self, socket: web.WebSocketResponse, hello: wire.Hello) -> None:
        self._drop(socket, "hello")
        if self.token and hello.token != self.token:
            problem = {"status": 401, "title": "Say who you are", "detail": "the token is unknown"}
            await self._say(socket, error=problem)
            await socket.close()
            return
        if isinstance(hello.durable, bool):
            name = hello.name or f"passing-{self.connections}"
            subscriber = self.subscribers.setdefault(name, Subscriber(name, hello.durable))
            subscriber.consumer, subscriber.credit = socket, hello.credit
            subscriber.under_way.clear()
            socket.subscriber = subscriber
        limits = {"batch_events": self.batch_events}
        welcome = wire.Welcome("fake", self.epoch, self._at(len(self.log)), limits)
        await self._say(socket, welcome=welcome)

    async def _publish(self, socket: web.WebSocketResponse, message: wire.FromClient) -> None:
        self._drop(socket, "publish")
        if self.refusals:
            await self._say(socket, error=self.refusals.pop(0), id=message.id)
            return
        if len(message.publish) > self.batch_events:
            problem = {"status": 413, "title": "Larger than the limit", "detail": "too many", "expected": "fewer"}
            await self._say(socket, error=problem, id=message.id)
            return
        numbers = []
        for raw in message.publish:
            members = msgspec.json.decode(raw)
            key = f"{members['source']}\n{members['id']}"
            if key not in self.positions:
                self.log.append(bytes(raw))
                self.positions[key] = len(self.log)
                for subscriber in self.subscribers.values():
                    self._judge(subscriber, len(self.log))
            numbers.append(self.positions[key])
        self._drop(socket, "taken")
        await self._say(
            socket, ok=message.id, position=self._at(numbers[-1]), positions=[self._at(number) for number in numbers]
        )
        for subscriber in list(self.subscribers.values()):
            await self._deliver(subscriber)

    async def _subscribe(self, socket: web.WebSocketResponse, message: wire.FromClient) -> None:
        subscriber = socket.subscriber
        try:
            filters = {key: tamis.parse(text) for key, text in message.subscribe.items()}
        except LanguageError as error:
            where = {"line": error.line, "column": error.column}
            problem = {"status": 400, "title": "The filter has no meaning", "detail": error.message, "where": where,
                       "expected": " or ".join(error.expected)}  # fmt: skip
            await self._say(socket, error=problem, id=message.id)
            return
        is_new = subscriber.filters != filters
        subscriber.filters = filters
        if message.since:
            first = 1 if message.since == "first" else int(message.since.partition("-")[2])
            for number in range(first, len(self.log) + 1):
                self._judge(subscriber, number)
        self._drop(socket, "subscribed")
        await self._say(socket, ok=message.id, since=self._at(len(self.log)), settled=is_new)
        await self._deliver(subscriber)

    def _judge(self, subscriber: Subscriber, number: int) -> None:
        members = msgspec.json.decode(self.log[number - 1])
        data = members.get("data")
        record = {**(data if isinstance(data, dict) else {}), "data": data, **members}
        keys = [key for key, text in subscriber.filters.items() if tamis.holds(text, record)]
        if keys:
            subscriber.pairs[number] = keys

    async def _deliver(self, subscriber: Subscriber) -> None:
        socket = subscriber.consumer
        if socket is None or socket.closed:
            return
        for number in sorted(subscriber.pairs):
            if len(subscriber.under_way) >= subscriber.credit:
                break
            if number in subscriber.done | subscriber.under_way | set(subscriber.dead):
                continue
            subscriber.under_way.add(number)
            subscriber.sent[number] += 1
            delivered = wire.Delivered(
                self._at(number),
                subscriber.pairs[number],
                subscriber.sent[number] > 1,
                event=msgspec.Raw(self.log[number - 1]),
            )
            await self._say(socket, events=[delivered])
            if not subscriber.is_durable:
                subscriber.under_way.discard(number)
                subscriber.done.add(number)
            if self.drops["deliver"]:
                await asyncio.sleep(0.05)  # so that it arrives before the connection breaks
                self._drop(socket, "deliver")

    async def say_again(self, subscriber: Subscriber, number: int) -> None:
        """Deliver an event once more, as a broker does whose patience with *done* is over."""
        raw = msgspec.Raw(self.log[number - 1])
        delivered = wire.Delivered(self._at(number), subscriber.pairs[number], True, event=raw)
        await self._say(subscriber.consumer, events=[delivered])

    # -- Requests

    async def _history(self, request: web.Request) -> web.StreamResponse:
        text = request.query.get("where")
        try:
            wanted = tamis.parse(text) if text else None
        except LanguageError as error:
            problem = {"title": "The filter has no meaning", "status": 400, "detail": error.message,
                       "where": {"line": error.line, "column": error.column}}  # fmt: skip
            return web.json_response(problem, status=400, content_type="application/problem+json")
        since = request.query.get("from", "first")
        first = 1 if since == "first" else int(since.partition("-")[2])
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        left = int(request.query.get("most", 10**9))
        for number, body in enumerate(self.log[first - 1 :], start=first):
            if left and (wanted is None or tamis.holds(wanted, msgspec.json.decode(body).get("data"))):
                left -= 1
                await response.write(wire.encode(wire.Delivered(self._at(number), event=msgspec.Raw(body))) + b"\n")
                if self.drops["history"] and number >= first + 2:
                    await asyncio.sleep(0.05)
                    self.drops["history"] -= 1
                    request.transport.abort()
                    raise ConnectionResetError
        return response

    async def _match(self, request: web.Request) -> web.Response:
        matches = []
        for members in await request.json():
            record = {**members["data"], **members}
            matches.append([
                {"subscriber": subscriber.name, "key": key}
                for subscriber in self.subscribers.values()
                for key, text in subscriber.filters.items()
                if tamis.holds(text, record)
            ])  # fmt: skip
        return web.json_response({"matches": matches})

    async def _check(self, request: web.Request) -> web.Response:
        text = await request.json()
        try:
            return web.json_response({"canonical": str(tamis.parse(text))})
        except LanguageError as error:
            problem = {"title": "The filter has no meaning", "status": 400, "detail": error.message,
                       "expected": " or ".join(error.expected), "where": {"line": error.line, "column": error.column}}  # fmt: skip
            return web.Response(status=400, body=json.dumps(problem), content_type="application/problem+json")
