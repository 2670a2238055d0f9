"""Clients behind a bad network: everything comes, and once in effect."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

import tamis
from tamis.service.client import backoff, conversation, dialling
from tests.lengths import so_many
from tests.service.broker_processes import events, in_a_loop, running, until
from tests.service.proxies import Fault, Proxy
from tests.service.watching import Watch

CONFIG = '[limits]\nidle = "2s"\n[logging]\nlevel = "error"\n'
ENDS = ("cut", "reset", "silence", "deaf", "abandoned")
UNNOTICED = ("silence", "abandoned")
"""How connections end of which the broker learns late: meanwhile it has two consumers, and two have no order."""


@pytest.fixture(autouse=True)
def clients_notice_soon(monkeypatch):
    """Let clients ask a silent connection soon whether it is there, and come back soon."""
    monkeypatch.setattr(dialling, "_HEARTBEAT_S", 1.0)
    monkeypatch.setattr(dialling, "_CONNECT_S", 2.0)
    monkeypatch.setattr(conversation, "_WELCOME_S", 2.0)
    monkeypatch.setattr(backoff, "LONGEST_S", 0.2)


async def through(broker, faults, count=300):
    """Publish and receive through a proxy; check that everything came, and return the proxy."""
    watch = Watch()
    sent = events(count, text="x" * 50)
    watch.sends(sent)
    status, _ = await asyncio.to_thread(broker.ask, "PUT", "/subscribers/ann/subscriptions/all", "TRUE")
    assert status == 201
    async with Proxy(broker.port, faults) as proxy:
        async with tamis.AsyncClient(proxy.url, patience_s=600) as client:

            async def publish():
                for first in range(0, count, 10):
                    batch = sent[first : first + 10]
                    watch.was_acknowledged(batch, await client.publish_many(batch))

            async def receive():
                async for event in client.subscribe({"all": "TRUE"}, name="ann", credit=64):
                    watch.got("ann", event.at, event.cloud_event, event.is_again)
                    await event.done()

            receiving = asyncio.create_task(receive())
            await publish()
            await until(lambda: not watch.missing("ann", "TRUE") or receiving.done(), "everything to come")
            receiving.cancel()
            await asyncio.wait([receiving])
        watch.check("ann", "TRUE", is_ordered=not any(fault.end in UNNOTICED for fault in faults))
        watch.conclude()
        assert len(watch.acknowledged) == count
        positions = [at for at, _, is_again in watch.deliveries["ann"]]
        assert len(positions) - len(set(positions)) <= sum(is_again for _, _, is_again in watch.deliveries["ann"])
        status, kept = await asyncio.to_thread(broker.ask, "GET", "/events?from=first&most=100000")
        assert [entry["event"]["id"] for entry in kept] == [event["id"] for event in sent], "taken once, in order"
        return proxy


@pytest.mark.parametrize("end", ENDS)
@in_a_loop
async def test_everything_comes_once_in_effect_though_connections_end(forge, tmp_path, end):
    faults = [Fault(end, after_bytes) for after_bytes in (0, 40, 700, 3_000, 9_000)]
    with running(forge, tmp_path, config=CONFIG) as broker:
        proxy = await through(broker, faults)
    assert len(proxy.ended) >= 4
    assert set(proxy.ended) == {end}


@in_a_loop
async def test_everything_comes_one_byte_at_a_time(forge, tmp_path):
    with running(forge, tmp_path, config=CONFIG) as broker:
        proxy = await through(broker, [Fault("cut", 6_000, piece_bytes=1)] * 4, count=100)
    assert proxy.ended


@in_a_loop
async def test_everything_comes_with_delay_and_jitter(forge, tmp_path):
    faults = [Fault("cut", 20_000, delay_s=0.005, jitter_s=0.02, piece_bytes=997)] * 4
    with running(forge, tmp_path, config=CONFIG) as broker:
        proxy = await through(broker, faults)
    assert proxy.ended


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(so_many(20)))
def test_everything_comes_whatever_the_network_does(forge, tmp_path, seed):
    chance = Random(seed)
    faults = [
        Fault(
            chance.choice(ENDS), chance.randrange(20_000), chance.choice((0.0, 0.002)), chance.choice((0.0, 0.01)),
            chance.choice((7, 100, 65_536)),
        )
        for _ in range(30)
    ]  # fmt: skip

    async def run():
        with running(forge, tmp_path, config=CONFIG) as broker:
            await through(broker, faults, count=1_500)

    asyncio.run(asyncio.wait_for(run(), 1_200))
