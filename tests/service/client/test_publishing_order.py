"""The order of a publisher's events, when a busy broker refuses some of them for now."""

from __future__ import annotations

import asyncio
from random import Random

from tamis import AsyncClient
from tamis.service.client.publishing import BATCH_EVENTS
from tamis.service.errors import OverloadedError, TooManyError
from tests.service.client.conftest import in_a_loop, until
from tests.service.http.brokers import running


@in_a_loop
async def test_the_order_of_a_publisher_is_kept_when_batches_are_refused_for_now(tmp_path):
    async with running(tmp_path) as broker, AsyncClient(broker.url) as client:
        chance, whole = Random(3), broker.server.front.take
        refused = []

        async def take(principal, events, size_bytes):
            if chance.random() < 0.3:
                refused.append(chance.choice((TooManyError, OverloadedError))("busy", "later", 0.01))
                raise refused[-1]
            await whole(principal, events, size_bytes)

        broker.server.front.take = take
        await asyncio.gather(
            client.publish_many({"n": n} for n in range(40 * BATCH_EVENTS)),
            *(client.publish({"alone": n}) for n in range(20)),
        )
        events = [event.data async for event in client.read()]
        assert [event["n"] for event in events if "n" in event] == list(range(40 * BATCH_EVENTS))
        assert sorted(event["alone"] for event in events if "alone" in event) == list(range(20))
        assert {type(error).__name__ for error in refused} == {"TooManyError", "OverloadedError"}


@in_a_loop
async def test_a_refused_batch_that_is_given_up_holds_nobody_back(tmp_path):
    async with running(tmp_path) as broker, AsyncClient(broker.url) as client:
        whole, is_busy, refusals = broker.server.front.take, [True], []

        async def take(principal, events, size_bytes):
            if is_busy[0]:
                refusals.append(events)
                raise TooManyError("busy", "later", 0.01)
            await whole(principal, events, size_bytes)

        broker.server.front.take = take
        given_up = asyncio.ensure_future(client.publish({"n": 1}))
        others = [asyncio.ensure_future(client.publish({"n": n})) for n in (2, 3)]
        await until(lambda: len(refusals) > 6)
        given_up.cancel()
        is_busy[0] = False
        await asyncio.gather(*others)
        await client.publish({"n": 4})
        numbers = [event.data["n"] async for event in client.read()]
        assert numbers[-3:] == [2, 3, 4]
