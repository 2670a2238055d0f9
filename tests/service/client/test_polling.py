"""Long polls: deliveries, verdicts and gaps, as over a WebSocket."""

from __future__ import annotations

import asyncio

import pytest

from tamis import AsyncClient, Client
from tamis.service.errors import NotFoundError
from tamis.service.settings import LogSettings, Size
from tests.service.http.brokers import eventually, running

FINE = LogSettings(segment_bytes=Size(1))
"""A file for each block, so that retention can take one."""


async def overtaken(broker, client, name):
    """Let retention take the first two of four events before a subscriber has had them."""
    await (await client.subscribe("price < 20", name=name).ready()).close()
    positions = [await client.publish({"price": price}) for price in (1, 2, 3, 4)]
    broker.core.drop(int(positions[2].rpartition("-")[2]))
    while broker.core._node.first < 3:
        await asyncio.sleep(0.01)
    return positions


@eventually
async def test_gaps_of_long_polls_are_shown_as_those_over_a_web_socket(tmp_path):
    async with running(tmp_path, log=FINE) as broker, AsyncClient(broker.url) as client:
        gaps, others = [], []
        positions = await overtaken(broker, client, "ann/phone")
        taken = await client.take("ann/phone", wait_s=5, on_gap=gaps.append)
        assert [(each.at, each.data["price"], each.keys) for each in taken] == [
            (positions[2], 3, ("default",)), (positions[3], 4, ("default",))
        ]  # fmt: skip
        assert [(gap.facts["first"], gap.facts["last"], gap.facts["reason"]) for gap in gaps] == [
            (positions[0], positions[1], "retention")
        ]
        await overtaken_over_a_web_socket(broker, client, others)
        assert {type(gap) for gap in gaps} == {type(gap) for gap in others}
        assert gaps[0].facts.keys() == others[0].facts.keys()


async def overtaken_over_a_web_socket(broker, client, gaps):
    await (await client.subscribe("price < 20", name="bob").ready()).close()
    positions = [await client.publish({"price": price}) for price in (5, 6)]
    broker.core.drop(int(positions[1].rpartition("-")[2]))
    while broker.core._node.first < int(positions[1].rpartition("-")[2]):
        await asyncio.sleep(0.01)
    subscription = client.subscribe("price < 20", name="bob", on_gap=gaps.append)
    assert (await anext(subscription)).data["price"] == 6


@eventually
async def test_who_does_not_ask_for_gaps_of_long_polls_has_a_warning_in_the_log(tmp_path, caplog):
    async with running(tmp_path, log=FINE) as broker, AsyncClient(broker.url) as client:
        await overtaken(broker, client, "ann")
        await client.take("ann", wait_s=5)
        assert "events were lost to this subscriber" in caplog.text


@eventually
async def test_verdicts_of_what_a_poll_took_are_heard(tmp_path):
    async with running(tmp_path) as broker, AsyncClient(broker.url) as client:
        await (await client.subscribe("price < 20", name="ann").ready()).close()
        await client.publish_many([{"price": price} for price in (1, 2, 3)])
        first, second, third = await client.take("ann", wait_s=5)
        await first.done()
        await second.never("not mine")
        await third.again()
        (again,) = await client.take("ann", wait_s=5)
        assert (again.data["price"], again.is_again) == (3, True)
        await again.done()
        assert await client.take("ann") == []
        assert (await broker.ask("GET", "/subscribers/ann/dead"))[1]["count"] == 1
        with pytest.raises(NotFoundError):
            await client.take("nobody")


@eventually
async def test_a_program_without_a_loop_polls_alike(tmp_path):
    async with running(tmp_path, log=FINE) as broker, AsyncClient(broker.url) as client:
        await overtaken(broker, client, "ann")
        gaps = []

        def program():
            with Client(broker.url) as blocking:
                taken = blocking.take("ann", wait_s=5, on_gap=gaps.append)
                for delivery in taken:
                    delivery.done()
                return [delivery.data["price"] for delivery in taken], blocking.take("ann")

        assert await asyncio.to_thread(program) == ([3, 4], [])
        assert len(gaps) == 1
