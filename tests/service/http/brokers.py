"""A whole broker for the tests of the wire, on a free port of loopback."""

from __future__ import annotations

import asyncio
import functools
import json
from contextlib import asynccontextmanager

import aiohttp

from tamis.service.serving import Service
from tamis.service.settings import Listener, Settings

PATIENCE_S = 120
"""A test that hangs ends after this; none asserts how long anything takes."""


def eventually(test):
    """Run a test that is a coroutine."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), PATIENCE_S))

    return run


class Running:
    """A broker that runs, and a client of it."""

    def __init__(self, service, session):
        self.service, self.session = service, session
        self.core, self.server, self.tokens = service.core, service.http, service.tokens
        self.url = service.addresses[0]

    async def ask(self, method, path, content=None, status=None, **options):
        """Send a request; return status and content."""
        if content is not None:
            options["json"] = content
        async with self.session.request(method, self.url + path, **options) as response:
            body = await response.read()
            if status is not None:
                assert response.status == status, (response.status, body)
            if response.content_type in ("application/json", "application/problem+json"):
                return response.status, json.loads(body)
            return response.status, body

    async def publish(self, *events):
        return (await self.ask("POST", "/events", list(events), status=200))[1]

    def connect(self, path="/ws", **options):
        return self.session.ws_connect(self.url + path, protocols=("tamis.v1",), **options)


@asynccontextmanager
async def running(folder, **settings):
    """Start a broker with the data of a folder; stop it at the end."""
    service = Service(Settings(data=str(folder), listeners=(Listener(port=0),), **settings))
    await service.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Running(service, session)
    finally:
        await service.stop()


async def said(socket):
    """Return the next messages of a WebSocket, as a list."""
    frame = await socket.receive()
    assert frame.type is aiohttp.WSMsgType.TEXT, frame
    messages = json.loads(frame.data)
    return messages if isinstance(messages, list) else [messages]


class Talk:
    """A WebSocket whose messages are asked for one by one."""

    def __init__(self, socket):
        self.socket, self._waiting = socket, []

    async def say(self, *messages):
        await self.socket.send_str(json.dumps(messages[0] if len(messages) == 1 else messages))

    async def hear(self):
        """Return the next message."""
        while not self._waiting:
            self._waiting = await said(self.socket)
        return self._waiting.pop(0)

    async def hear_until(self, name):
        """Return the next message with a member of this name; the others are forgotten."""
        while name not in (message := await self.hear()):
            pass
        return message

    async def events(self, count):
        """Return so many deliveries, as they come."""
        events = []
        while len(events) < count:
            events += (await self.hear_until("events"))["events"]
        return events
