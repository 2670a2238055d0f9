"""Acceptance 3: `kill -9` of the real process, again and again, while publishers and subscribers work."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from math import inf
from random import Random

import aiohttp
import pytest

import tamis
from tamis.service.client import backoff
from tamis.service.cloud_events import record_of
from tamis.service.log.sqlite import SqliteLog
from tamis.service.positions import Position
from tamis.standing import Standing
from tests.lengths import so_many
from tests.service.broker_processes import BrokerProcess, in_a_loop
from tests.service.remembering import reference
from tests.service.watching import Watch

BROKEN = (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError)
TEXTS = {
    "ann": "kind < 3",
    "team": "kind >= 1",
    "stream": "kind = 0 OR kind = 4",
    "poll": "kind <> 2",
    "listener": "kind = 1",
}
"""What each subscriber wants; all of them but the listener are durable."""
DURABLE = ("ann", "team", "stream", "poll")
REMEMBERING = {
    "best": "TOP 2 BY n DESC OVER 2 SECONDS WHERE kind = 3",
    "pair": "SEQUENCE kind = 0 THEN kind = 4 WITHIN 2 SECONDS PER text",
    "quiet": "SEQUENCE kind = 2 THEN NOT kind = 2 WITHIN 300 MILLISECONDS",
    "once": "SEQUENCE kind = 1 THEN kind = 2 WITHIN 2 SECONDS TAKING EACH ONCE",
    "odd": "CHANGE OF kind >= 3 PER text",
}
"""What the durable subscriber `mind` wants: it is all told of more than one event."""
SOURCES = ("/socket/1", "/socket/2", "/batch", "/single")
REPEATED_EVERY_S = 1.0
"""Deliveries of the durable subscribers come again if they are not done so soon."""


class Crowd:
    """Four publishers and six consumers of one broker."""

    def __init__(self, broker: BrokerProcess, session: aiohttp.ClientSession, seed: int) -> None:
        self.broker, self.session, self.watch = broker, session, Watch()
        self.chance = Random(seed)
        self.is_publishing = True
        self.told: dict[str, set] = {}
        """What `mind` was told, by position."""
        self.repetitions = 0
        self.since: dict[str, int] = {}

    def batch(self, source: str, first: int, count: int):
        """Return the next events of a publisher."""
        batch = [
            {"specversion": "1.0", "id": str(number), "source": source, "type": "t",
             "data": {"n": number, "kind": self.chance.randrange(5), "text": "é" * self.chance.randrange(40)}}
            for number in range(first, first + count)
        ]  # fmt: skip
        self.watch.sends(batch)
        return batch

    async def progress(self) -> None:
        """Wait until every publisher was answered, and every durable subscriber was told something."""
        begun = {source: self.watch.counts[source] for source in SOURCES}
        heard = {name: len(self.watch.deliveries[name]) for name in DURABLE}
        while any(self.watch.counts[source] == count for source, count in begun.items()) or any(
            len(self.watch.deliveries[name]) == count for name, count in heard.items()
        ):
            await asyncio.sleep(0.02)

    async def pause(self):
        """Rest a little, so that the test and not the publishers has the processor."""
        await asyncio.sleep(self.chance.uniform(0.01, 0.06))

    # -- Publishers

    async def publish_by_client(self, source: str) -> None:
        """Publish over a WebSocket, several events under way."""
        async with tamis.AsyncClient(self.broker.url, patience_s=600) as client:
            first = 0

            async def one(event):
                self.watch.was_acknowledged([event], [await client.publish(event)])

            async with asyncio.TaskGroup() as under_way:
                while self.is_publishing:
                    if first - self.watch.counts[source] < 60:
                        for event in self.batch(source, first, 3):
                            under_way.create_task(one(event))
                        first += 3
                    await self.pause()

    async def publish_by_post(self, source: str, most: int) -> None:
        """Publish by POST; repeat, under the same ids, what was not answered."""
        first = 0
        while self.is_publishing:
            count = self.chance.randint(1, most)
            batch = self.batch(source, first, count)
            first += count
            kind = "application/cloudevents-batch+json" if most > 1 else "application/cloudevents+json"
            body = json.dumps(batch if most > 1 else batch[0])
            answer = await self.insist("POST", "/events", data=body, headers={"Content-Type": kind})
            self.watch.was_acknowledged(batch, answer["positions"])
            await self.pause()

    async def insist(self, method, path, **options):
        """Ask until there is an answer; return its content."""
        while True:
            with suppress(*BROKEN):
                async with self.session.request(method, self.broker.url + path, **options) as response:
                    body = await response.read()
                    if response.status < 400:
                        return json.loads(body) if body else None
                    assert response.status in (429, 503), (response.status, body)
            await asyncio.sleep(0.05)

    # -- Subscribers

    async def subscribe(self) -> None:
        """Have all durable subscriptions in force before anything is published."""
        for name in DURABLE:
            await self.insist("PUT", f"/subscribers/{name}", json={"wait_s": REPEATED_EVERY_S})
            await self.insist("PUT", f"/subscribers/{name}/subscriptions/all", json=TEXTS[name])
        await self.insist("PUT", "/subscribers/mind", json={"wait_s": REPEATED_EVERY_S})
        for key, text in REMEMBERING.items():
            answer = await self.insist("PUT", f"/subscribers/mind/subscriptions/{key}", json={"where": text})
            self.since[key] = int(answer["since"].rpartition("-")[2])

    async def consume_by_client(self) -> None:
        """Be `ann`: one durable consumer, by the library."""
        async with tamis.AsyncClient(self.broker.url, patience_s=600) as client:
            async for event in client.subscribe({"all": TEXTS["ann"]}, name="ann", credit=32):
                self.watch.got("ann", event.at, event.cloud_event, event.is_again)
                await event.done()

    async def consume_in_a_team(self) -> None:
        """Be one of those who share the work of `team`: sometimes it is done, sometimes once more, sometimes never."""
        while True:
            with suppress(*BROKEN):
                async with self.session.ws_connect(self.broker.url + "/ws", protocols=("tamis.v1",)) as talk:
                    await talk.send_json({"hello": {"as": "team", "durable": True, "credit": 16}})
                    async for frame in talk:
                        messages = json.loads(frame.data)
                        for message in messages if isinstance(messages, list) else [messages]:
                            await self._judge(talk, message.get("events", []))
            await asyncio.sleep(0.05)

    async def _judge(self, talk, deliveries) -> None:
        for delivery in deliveries:
            self.watch.got("team", delivery["at"], delivery["event"], delivery.get("again", False))
            chance = self.chance.random()
            if chance < 0.05:
                await talk.send_json({"again": [delivery["at"]], "in_s": 0.1})
            elif chance < 0.95:
                await talk.send_json({"done": [delivery["at"]]})

    async def consume_a_stream(self) -> None:
        """Be `stream`: server-sent events, which go on behind the last one that was seen."""
        last = ""
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
            with suppress(*BROKEN):
                async with self.session.get(
                    self.broker.url + "/subscribers/stream/events", headers=headers
                ) as response:
                    assert response.status in (200, 503), response.status
                    async for name, content in server_sent(response):
                        if name.startswith("id: "):
                            last = name[4:]
                            delivery = json.loads(content)
                            self.watch.got("stream", last, delivery["event"], delivery.get("again", False))
            await asyncio.sleep(0.05)

    async def consume_by_polls(self) -> None:
        """Be `poll`: take some, work, say that they are done."""
        while True:
            taken = await self.insist("POST", "/subscribers/poll/take", json={"most": 20, "wait_s": 0.5})
            for delivery in taken["events"]:
                self.watch.got("poll", delivery["at"], delivery["event"], delivery.get("again", False))
            if taken["events"]:
                done = {"done": [delivery["at"] for delivery in taken["events"]]}
                await self.insist("POST", "/subscribers/poll/done", json=done)

    async def remember(self) -> None:
        """Be `mind`: a durable consumer of what remembers earlier events."""
        async with tamis.AsyncClient(self.broker.url, patience_s=600) as client:
            async for event in client.subscribe(REMEMBERING, name="mind", credit=32):
                told = {
                    (each.key, tuple(run.at for run in each.run), round(each.at.timestamp() * 1e6), each.change)
                    for each in event.told
                }
                if event.at in self.told:
                    self.repetitions += 1
                    assert event.is_again, f"{event.at} comes again, and is not marked"
                    assert told == self.told[event.at], f"{event.at} tells something else when it comes again"
                self.told[event.at] = told
                if self.chance.random() < 0.9:  # the others come again
                    await event.done()

    def check_told(self, blocks: list) -> None:
        """Compare what was told with what processors tell of the log, as it is on the disk."""
        epoch = next(iter(self.told)).partition("-")[0]
        expected: dict[str, set] = {}
        for key, text in REMEMBERING.items():
            processor = Standing()
            for position, rows in reference(text, self.since[key], inf, blocks, record_of, processor).items():
                for events, at_us, change in rows:
                    is_run = text.startswith("SEQUENCE")
                    run = tuple(Position.of(each).text(epoch) for each in events) if is_run else ()
                    expected.setdefault(position.text(epoch), set()).add((key, run, at_us, change))
        wrong = {at: (told, expected.get(at)) for at, told in self.told.items() if told != expected.get(at)}
        assert not wrong, wrong
        missing = expected.keys() - self.told.keys()
        assert not missing, sorted(missing)[:5]
        assert {key for told in self.told.values() for key, *_ in told} == REMEMBERING.keys()

    async def listen(self) -> None:
        """Be a listener: JSON lines, for as long as the connection lasts; what happens in between is lost to it."""
        connection = 0
        while True:
            connection += 1
            with suppress(*BROKEN):
                async with self.session.get(
                    self.broker.url + "/listen", params={"where": TEXTS["listener"]}
                ) as response:
                    async for line in response.content:
                        if line.strip():
                            delivery = json.loads(line)
                            if "event" in delivery:
                                self.watch.got(f"listener {connection}", delivery["at"], delivery["event"])
            await asyncio.sleep(0.05)

    async def is_done(self, name: str) -> bool:
        """Has a subscriber done everything up to the end of the log?"""
        facts = await self.insist("GET", f"/subscribers/{name}")
        return facts["state"] == "live" and not facts["unacknowledged"]

    # -- A run

    @asynccontextmanager
    async def at_work(self):
        """Publish and consume; at the end publish no more, and stay until everybody has what is due."""
        await self.subscribe()
        async with asyncio.TaskGroup() as consumers:
            consuming = [
                consumers.create_task(work)
                for work in (
                    self.consume_by_client(), self.consume_in_a_team(), self.consume_in_a_team(),
                    self.consume_a_stream(), self.consume_by_polls(), self.listen(), self.remember(),
                )
            ]  # fmt: skip
            async with asyncio.TaskGroup() as publishers:
                for work in (
                    self.publish_by_client("/socket/1"), self.publish_by_client("/socket/2"),
                    self.publish_by_post("/batch", 7), self.publish_by_post("/single", 1),
                ):  # fmt: skip
                    publishers.create_task(work)
                yield
                self.is_publishing = False
            with suppress(TimeoutError):  # then the checks say what is missing
                async with asyncio.timeout(100):
                    while any(self.watch.missing(name, TEXTS[name]) for name in DURABLE):
                        await asyncio.sleep(0.05)
                    await asyncio.sleep(3.0)  # until nothing is due any more, for want of events
                    while not await self.is_done("mind"):
                        await asyncio.sleep(0.2)
            for task in consuming:
                task.cancel()

    async def conclude(self) -> None:
        """Check everything that was seen, also against the log as it is now."""
        watch = self.watch
        async with self.session.get(self.broker.url + "/events", params={"from": "first", "most": 10**6}) as response:
            async for line in response.content:
                entry = json.loads(line)
                watch.got("the log", entry["at"], entry["event"])
        watch.check("the log", "TRUE")
        for name in DURABLE:
            watch.check(name, TEXTS[name], is_ordered=name in ("ann", "stream"))
        for name in [name for name in watch.deliveries if name.startswith("listener")]:
            watch.check(name, TEXTS["listener"], is_durable=False)
        watch.conclude()


async def server_sent(response):
    """Yield the first line of each server-sent event, and its data."""
    first = ""
    async for line in response.content:
        text = line.decode().rstrip("\n")
        if text.startswith(("id: ", "event: ")):
            first = text
        elif text.startswith("data: "):
            yield first, text[6:]


def blocks_of(folder) -> list:
    """Return the whole log of a broker that has ended."""
    log = SqliteLog(folder / "data" / "log")
    try:
        return list(log.read(1, log.last))
    finally:
        log.close()


async def run(forge, folder, seed: int, kills: int) -> None:
    broker = BrokerProcess(forge, folder, config='[log]\nsegment_bytes = "64kB"\n[logging]\nlevel = "error"\n')
    chance = Random(seed)
    try:
        await asyncio.to_thread(broker.start)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
            crowd = Crowd(broker, session, seed)
            async with crowd.at_work():
                for _ in range(kills):
                    if chance.random() < 0.5:
                        await crowd.progress()
                    await asyncio.sleep(chance.uniform(0.05, 0.5))
                    await asyncio.to_thread(broker.kill)
                    if chance.random() < 0.2:  # also while it starts
                        await asyncio.to_thread(broker.spawn)
                        await asyncio.sleep(chance.uniform(0.0, 0.5))
                        await asyncio.to_thread(broker.kill)
                    await asyncio.to_thread(broker.start)
            await crowd.conclude()
            await asyncio.to_thread(broker.kill)
            crowd.check_told(blocks_of(folder))
            print(
                f"{len(crowd.told)} deliveries tell of several events, {crowd.repetitions} of them came again;", end=" "
            )
            print(f"seed {seed}: {kills} kills, {len(crowd.watch.acknowledged)} events acknowledged,", end=" ")
            print({name: len(got) for name, got in crowd.watch.deliveries.items() if not name.startswith("listener")})
    finally:
        if broker.process:
            broker.kill()


@pytest.fixture(autouse=True)
def clients_are_impatient(monkeypatch):
    """Let clients come back soon: the broker does not live long."""
    monkeypatch.setattr(backoff, "LONGEST_S", 0.2)


@in_a_loop
async def test_acceptance_03_nothing_acknowledged_is_missing_after_20_kills(forge, tmp_path):
    await run(forge, tmp_path, seed=1, kills=20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_acceptance_03_nothing_acknowledged_is_missing_after_up_to_500_kills(forge, tmp_path, seed):
    asyncio.run(asyncio.wait_for(run(forge, tmp_path, seed, kills=so_many(100)), 3600))
