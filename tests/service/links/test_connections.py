"""How fast events are taken from a neighbour, and when a silent one is gone: in a loop whose time passes by itself."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from tamis.service.links import frames
from tamis.service.links.connections import PING_EVERY_S, SILENT_S, Connection
from tamis.service.links.frames import Kind, LinkError
from tamis.service.links.requests import Relay
from tamis.service.links.talking import LinkIdentity, Talk
from tamis.service.links.terms import LinkTerms
from tamis.service.messages import Session
from tests.service.links.tree import event, read_event


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in which time jumps to what is due next when there is nothing to do."""

    def __init__(self) -> None:
        super().__init__()
        self._virtual_s = 1_000.0

    def time(self) -> float:
        return self._virtual_s

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._virtual_s = max(self._virtual_s, self._scheduled[0]._when)
        super()._run_once()


def in_virtual_time(test):
    def run():
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test())

    run.__name__ = test.__name__
    return run


class Core:
    """Who takes requests, and notes when they came."""

    is_ready, is_full = True, False

    def __init__(self) -> None:
        self.heard: list[tuple[float, int]] = []
        self.is_closed = False

    def open(self, principal, hear):
        return Session(1, principal)

    def hear(self, session, request):
        self.heard.append((asyncio.get_running_loop().time() - 1_000.0, len(request.events)))

    def close(self, session):
        self.is_closed = True


class Wire:
    """What is written to the other end."""

    def __init__(self) -> None:
        self.data, self.is_over = b"", False

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        self.is_over = True

    def is_closing(self) -> bool:
        return self.is_over


def connection(rate: float = 0.0) -> tuple[Connection, Core, asyncio.StreamReader, Wire]:
    core, reader, wire = Core(), asyncio.StreamReader(), Wire()
    talk = Talk(LinkIdentity("net", "a"), bytes(16), lambda name: LinkTerms(), read_event)
    return Connection(core, talk, reader, wire, lambda name: rate), core, reader, wire


def relays(*sizes: int):
    numbers = count(1)
    for size in sizes:
        yield Relay(0, tuple(event("/shop", next(numbers)) for _ in range(size)))


@in_virtual_time
async def test_events_of_a_neighbour_are_taken_at_its_rate_with_a_second_saved_up():
    made, core, _, _ = connection(rate=10.0)
    for relay in relays(10, 5, 5, 20):
        await made._ask(relay)
    # taken at         0 s      0.5 s     1 s       3 s    10 events a second behind the first 10
    assert core.heard == [(0.0, 10), (0.5, 5), (1.0, 5), (3.0, 20)]
    await asyncio.sleep(100)  # no more is saved up than of a second
    for relay in relays(10, 10):
        await made._ask(relay)
    assert core.heard[-2:] == [(103.0, 10), (104.0, 10)]


@in_virtual_time
async def test_without_a_rate_nothing_waits():
    made, core, _, _ = connection()
    for relay in relays(1_000, 1_000):
        await made._ask(relay)
    assert core.heard == [(0.0, 1_000), (0.0, 1_000)]


@in_virtual_time
async def test_a_neighbour_that_is_silent_for_three_pings_is_gone_and_one_that_answers_is_not():
    made, core, reader, wire = connection()
    running = asyncio.create_task(made.run())
    for _ in range(40):  # it answers every ping but says nothing else
        await asyncio.sleep(PING_EVERY_S)
        reader.feed_data(frames.frame(Kind.PONG, b""))
    assert not running.done()
    begun = asyncio.get_running_loop().time()
    with pytest.raises(LinkError, match="silent for 15 s"):
        await running
    assert asyncio.get_running_loop().time() - begun == pytest.approx(SILENT_S)
    assert core.is_closed and wire.is_over
    assert wire.data.count(frames.frame(Kind.PING, b"")) >= 40
