"""Real threads: the core under random load delivers what the same node delivers when one thread does everything."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from itertools import count
from random import Random

import pytest

from tamis.language import parse
from tamis.routing import Broker
from tamis.service import core_thread
from tamis.service.changes import Stored
from tamis.service.cloud_events import record_of
from tamis.service.content_modes import events_in
from tamis.service.core_thread import Core
from tamis.service.errors import LogError, OverloadedError, StorageFullError
from tamis.service.figures import Figures
from tamis.service.links.frames import GraphSaid
from tamis.service.links.requests import LinkAcked, LinkFlood, Relay
from tamis.service.log.memory import MemoryLog
from tamis.service.log.sqlite import SqliteLog
from tamis.service.messages import (
    Acknowledge,
    Append,
    Attach,
    Attached,
    Deliveries,
    Describe,
    Keep,
    LinkAsked,
    Principal,
    Publish,
    Published,
    Read,
    Say,
    Session,
    Subscribe,
    Subscribed,
    Wanted,
)
from tamis.service.node import LogFacts, Node, NodeLimits
from tamis.service.permissions import Permissions
from tamis.service.settings import LimitSettings
from tamis.service.state import State
from tests.lengths import so_many
from tests.service.broker_processes import events, in_a_loop

ANYBODY = Principal("ann", is_admin=True)
SUBSCRIBERS = ("quick", "slow", "fickle")
LIMITS = NodeLimits(queue_events=20, recent_bytes=20_000)
"""So small that subscribers fall behind, and are served from the log."""


def node_of(log, node_type=Node) -> Node:
    return node_type(
        Broker("test"),
        Permissions({}),
        record_of,
        Stored(),
        LogFacts(log.first, log.last),
        now=time.time(),
        limits=LIMITS,
    )


def wanted(text: str):
    return {"key": Wanted(text, parse(text))}


def incoming(*records):
    return events_in(list(records), LimitSettings(), "x", "/test")


# -- One thread


class OneThread:
    """A node, its log and its disks, all at once."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.node = node_of(self.log)
        self.delivered = defaultdict(list)
        self._sessions = count(1)
        self._consumers = {}
        self._do(self.node.start())
        for name in SUBSCRIBERS:
            session = self._consumers[name] = Session(next(self._sessions), ANYBODY)
            self._do(self.node.hear(Attach(1, name, credit=5), session, time.time()))

    def subscribe(self, name, text) -> None:
        session = Session(next(self._sessions), ANYBODY)
        self._do(self.node.hear(Subscribe(1, name, wanted(text)), session, time.time()))

    def publish(self, event) -> None:
        session = Session(next(self._sessions), ANYBODY)
        self._do(self.node.take([(session, Publish(1, (event,)))], time.time()))

    def _do(self, outputs) -> None:
        waiting = list(outputs)
        while waiting or self.node.has_work:
            if not waiting:
                waiting += self.node.work(time.time())
                continue
            output = waiting.pop(0)
            if isinstance(output, Append):
                self.log.append([output.block])
                waiting += self.node.on_disk(output.block.last, time.time())
            elif isinstance(output, Keep):
                waiting += self.node.kept(output.number)
            elif isinstance(output, Read):
                blocks = list(self.log.read(output.first, output.last))
                waiting += self.node.take_read(blocks, output.last, self.log.first, time.time())
            elif isinstance(output, Say) and isinstance(output.answer, Deliveries):
                name = output.answer.subscriber
                self.delivered[name] += output.answer.items
                done = Acknowledge(0, name, tuple(delivery.position for delivery in output.answer.items))
                waiting += self.node.hear(done, self._consumers[name], time.time())


# -- Real threads


class RealThreads:
    """A core with its threads and disks; consumers of several speeds, and what they got."""

    def __init__(self, core: Core, chance: Random) -> None:
        self.core, self.chance = core, chance
        self.delivered = defaultdict(list)
        self.changes = []
        """The position behind which a text counts, the subscriber, and the text, as they were answered."""
        self._tasks = set()

    async def attach(self, name) -> None:
        attached = asyncio.get_running_loop().create_future()

        def listen(answers):
            for answer in answers:
                if isinstance(answer, Attached):
                    attached.set_result(None)
                elif isinstance(answer, Deliveries):
                    self.delivered[name] += answer.items
                    self._later(self._done(session, name, answer.items))

        session = self.core.open(ANYBODY, listen)
        self.core.hear(session, Attach(1, name, credit=5))
        await attached

    def _later(self, work) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _done(self, session, name, items) -> None:
        if name == "slow":
            await asyncio.sleep(self.chance.random() * 0.02)
        self.core.hear(session, Acknowledge(0, name, tuple(delivery.position for delivery in items)))

    async def subscribe(self, name, text) -> None:
        answer = await self.core.ask(ANYBODY, Subscribe(1, name, wanted(text)))
        assert isinstance(answer, Subscribed)
        self.changes.append((answer.since, name, text))

    async def publish(self, source, event_count) -> None:
        number = 0
        while number < event_count:
            size = min(self.chance.randint(1, 12), event_count - number)
            batch = events(size, number, source, size=self.chance.randrange(100))
            number += size
            answer = await self.core.ask(ANYBODY, Publish(1, incoming(*batch)))
            assert isinstance(answer, Published)

    async def change_mind(self, change_count) -> None:
        for _ in range(change_count):
            await self.subscribe("fickle", f"size < {self.chance.randrange(100)}")
            await asyncio.sleep(self.chance.random() * 0.01)


async def compared(folder, seed, event_count) -> None:
    chance = Random(seed)
    log, state = SqliteLog(folder / "log", segment_bytes=50_000), State(folder / "state.db", "")
    core = Core(node_of(log), log, state, Figures(), LimitSettings(group_events=32))
    core.start()
    threads = RealThreads(core, chance)
    try:
        for name in SUBSCRIBERS:
            await threads.attach(name)
        await threads.subscribe("quick", "TRUE")
        await threads.subscribe("slow", "size >= 20")
        await asyncio.gather(
            *(threads.publish(f"/publisher/{number}", event_count // 3) for number in range(3)),
            threads.change_mind(20),
        )

        alone = OneThread()
        changes = list(threads.changes)
        stored = [body for block in log.read(1, log.last) for body in block.events]
        for position in range(len(stored) + 1):
            if position:
                record = record_of(stored[position - 1])
                alone.publish(
                    incoming({name: record[name] for name in ("specversion", "id", "source", "type", "data")})[0]
                )
            while changes and changes[0][0] == position:
                _, name, text = changes.pop(0)
                alone.subscribe(name, text)
        assert not changes
        for name in SUBSCRIBERS:
            while len(threads.delivered[name]) < len(alone.delivered[name]):
                await asyncio.sleep(0.01)
            assert threads.delivered[name] == alone.delivered[name], name
        assert len(alone.delivered["quick"]) == len(stored) == event_count // 3 * 3
    finally:
        await core.stop()
        log.close()
        state.close()


@pytest.mark.parametrize("seed", range(3))
@in_a_loop
async def test_threads_deliver_what_one_thread_delivers(tmp_path, seed):
    await compared(tmp_path, seed, 900)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 3 + so_many(10)))
@in_a_loop
async def test_threads_deliver_what_one_thread_delivers_for_long(tmp_path, seed):
    await compared(tmp_path, seed, 6_000)


@in_a_loop
async def test_a_group_is_what_waits_up_to_a_limit_and_control_comes_before_events(tmp_path):
    log, state = SqliteLog(tmp_path / "log"), State(tmp_path / "state.db", "")
    core = Core(node_of(log), log, state, Figures(), LimitSettings(group_events=25))
    heard = []
    session = core.open(ANYBODY, heard.extend)  # the core is not started: what waits, waits
    for number in range(6):
        core.hear(session, Publish(number, incoming(*events(10, 10 * number))))
    core.hear(session, Subscribe(7, "ann", {"all": Wanted("TRUE", parse("TRUE"))}))
    core.start()
    while len(heard) < 7:
        await asyncio.sleep(0.01)
    assert [answer.since for answer in heard if isinstance(answer, Subscribed)] == [0]
    assert [len(block.events) for block in log.read(1, 60)] == [20, 20, 20]
    await core.stop()
    log.close()
    state.close()


@in_a_loop
async def test_what_a_neighbour_says_is_heard_in_its_order_and_others_do_not_wait_for_it(tmp_path):
    class Listening(Node):
        def hear(self, request, session, now):
            heard.append((session.number, type(request).__name__))
            return [] if isinstance(request, LinkAsked) else super().hear(request, session, now)

        def accept(self, publications, now):
            heard.extend((session.number, type(request).__name__) for session, request in publications)
            return super().accept([(session, Publish(1, request.events)) for session, request in publications], now)

    heard = []
    log, state = MemoryLog(), State(tmp_path / "state.db", "")
    core = Core(node_of(log, Listening), log, state, Figures(), LimitSettings())
    one, two, client = (core.open(ANYBODY, lambda answers: None) for _ in range(3))
    said = GraphSaid((), "a tree", 1, is_complete=True)
    core.hear(one, Relay(1, incoming(*events(2))))  # the core is not started: what waits, waits
    core.hear(one, LinkAcked(1, 0, 0))
    core.hear(one, LinkFlood(said))
    core.hear(one, LinkAcked(2, 0, 0))
    core.hear(one, Relay(2, incoming(*events(2, 2))))
    core.hear(two, LinkFlood(said))
    core.hear(client, Publish(1, incoming(*events(2, 4))))
    core.hear(client, Describe(1))
    core.start()
    while len(heard) < 8:
        await asyncio.sleep(0.01)
    await core.stop()
    state.close()
    assert [kind for session, kind in heard if session == one.number] == [
        "LinkAcked", "Relay", "LinkFlood", "LinkAcked", "Relay"
    ]  # fmt: skip
    assert heard.index((two.number, "LinkFlood")) < heard.index((one.number, "Relay"))
    assert heard.index((client.number, "Describe")) < heard.index((client.number, "Publish"))


# -- When it cannot go on


@in_a_loop
async def test_an_inbox_that_is_full_refuses_at_once_and_takes_again_later(tmp_path):
    log, state = SqliteLog(tmp_path / "log"), State(tmp_path / "state.db", "")
    core = Core(node_of(log), log, state, Figures(), LimitSettings(inbox_events=10))
    heard = []
    session = core.open(ANYBODY, heard.extend)  # the core is not started: what waits, waits
    core.hear(session, Publish(1, incoming(*events(10))))
    with pytest.raises(OverloadedError, match="wait"):
        core.hear(session, Publish(2, incoming(*events(1, 10))))
    core.start()
    while not heard:
        await asyncio.sleep(0.01)
    answer = await core.ask(ANYBODY, Publish(3, incoming(*events(1, 10))))
    assert answer.positions == (11,)
    await core.stop()
    log.close()
    state.close()


@in_a_loop
async def test_requests_that_are_no_events_are_refused_when_too_many_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(core_thread, "MOST_CONTROL", 3)
    log, state = MemoryLog(), State(tmp_path / "state.db", "")
    core = Core(node_of(log), log, state, Figures(), LimitSettings())
    heard = []
    session = core.open(ANYBODY, heard.extend)  # the core is not started: what waits, waits
    for number in range(3):
        core.hear(session, Describe(number))
    with pytest.raises(OverloadedError):
        core.hear(session, Describe(3))
    core.hear(session, Publish(4, incoming(*events(1))))
    core.start()
    while len(heard) < 4:
        await asyncio.sleep(0.01)
    await core.ask(ANYBODY, Describe(5))
    await core.stop()
    state.close()


@in_a_loop
async def test_everybody_who_waits_is_told_that_the_disk_has_failed(tmp_path):
    class Failing(MemoryLog):
        def append(self, blocks):
            raise LogError("the disk has gone", "another one")

    failures = []
    log, state = Failing(), State(tmp_path / "state.db", "")
    core = Core(node_of(log), log, state, Figures(), LimitSettings(), on_failure=failures.append)
    core.start()
    publications = [core.ask(ANYBODY, Publish(1, incoming(*events(1, number)))) for number in range(5)]
    answers = await asyncio.gather(*publications, return_exceptions=True)
    assert all(isinstance(answer, LogError) for answer in answers), answers
    assert failures and not core.is_ready and "the disk has gone" in core.why_not_ready
    with pytest.raises(LogError, match="the disk has gone"):
        await core.ask(ANYBODY, Publish(1, incoming(*events(1, 9))))
    await core.stop()
    state.close()


@in_a_loop
async def test_a_broker_is_ready_again_some_time_after_its_disk_was_full(tmp_path, monkeypatch):
    monkeypatch.setattr(core_thread, "FULL_FOR_S", 0.3)
    monkeypatch.setattr(core_thread, "GAUGES_EVERY_S", 0.05)

    class Full(MemoryLog):
        def append(self, blocks):
            raise StorageFullError("the disk is full", "room")

    log, state = Full(), State(tmp_path / "state.db", "")
    core = Core(node_of(log), log, state, Figures(), LimitSettings())
    core.start()
    with pytest.raises(StorageFullError):
        await core.ask(ANYBODY, Publish(1, incoming(*events(1))))
    assert core.why_not_ready == "the disk is full"
    while not core.is_ready:  # though nobody sends it anything, because it is not
        await asyncio.sleep(0.02)
    await core.stop()
    state.close()
