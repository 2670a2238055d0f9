from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from tamis import AsyncClient
from tamis.errors import LanguageError
from tamis.service.errors import BadRequestError, ClosedError, UnreachableError
from tests.service.client.conftest import in_a_loop, taken, until
from tests.service.client.fake_broker import FakeBroker


def numbers(events):
    return [event.data["n"] for event in events]


@in_a_loop
async def test_a_subscriber_gets_what_it_wants_and_nothing_else():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        async with client.subscribe({"cheap": "price < 20", "odd": "price % 2 = 1"}, name="ann") as subscription:
            await client.publish_many({"price": price} for price in (30, 12, 25, 7))
            events = await taken(subscription, 3)
        assert [(event.data["price"], event.keys) for event in events] == [
            (12, ("cheap",)), (25, ("odd",)), (7, ("cheap", "odd"))
        ]  # fmt: skip
        assert [event.at for event in events] == ["k3f9-2", "k3f9-3", "k3f9-4"]


@in_a_loop
async def test_the_context_of_an_event_is_there_as_attributes():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("TRUE", name="ann").ready()
        moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        await client.publish({"price": 1}, type="auction", source="/shop", id="7", time=moment, region="EU")
        event = await anext(subscription)
        assert (event.type, event.source, event.id, event.region, event.time) == ("auction", "/shop", "7", "EU", moment)
        assert not event.is_again
        with pytest.raises(AttributeError, match=r"event.data\['price'\]"):
            _ = event.price


@in_a_loop
async def test_what_is_done_does_not_come_again_and_what_is_not_done_does():
    async with FakeBroker() as broker:
        async with AsyncClient(broker.url) as client:
            subscription = await client.subscribe("TRUE", name="ann").ready()
            await client.publish_many({"n": n} for n in range(4))
            events = await taken(subscription, 4)
            await events[0].done()
            await events[2].done()
        async with AsyncClient(broker.url) as client:
            events = await taken(client.subscribe("TRUE", name="ann"), 2)
            assert numbers(events) == [1, 3]
            assert all(event.is_again for event in events)


@in_a_loop
async def test_again_and_never_say_what_they_say():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("TRUE", name="ann").ready()
        await client.publish_many({"n": n} for n in range(2))
        first, second = await taken(subscription, 2)
        await first.again(in_s=5)
        await second.never("it is broken")
        assert numbers(await taken(subscription, 1)) == [0]
        assert broker.subscribers["ann"].dead == {2: "it is broken"}
        assert [message.in_s for message in broker.heard if isinstance(message.again, list)] == [5]


@in_a_loop
async def test_no_more_than_the_credit_is_delivered_before_something_is_done():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("TRUE", name="ann", credit=3).ready()
        await client.publish_many({"n": n} for n in range(10))
        for number in range(10):
            assert len(broker.subscribers["ann"].under_way) <= 3
            event = await anext(subscription)
            assert event.data["n"] == number
            await event.done()


@in_a_loop
async def test_verdicts_of_one_turn_travel_as_one_message():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("TRUE", name="ann").ready()
        await client.publish_many({"n": n} for n in range(50))
        for event in await taken(subscription, 50):
            await event.done()
        await until(lambda: len(broker.subscribers["ann"].done) == 50)
        assert len([message for message in broker.heard if isinstance(message.done, list)]) == 1


@pytest.mark.parametrize("place", ["subscribed", "deliver", "done"])
@in_a_loop
async def test_a_durable_subscriber_misses_nothing_when_connections_break(place):
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        broker.drops[place] = 3
        # With so little credit every few events need a *done* that arrives.
        subscription = client.subscribe("TRUE", name="ann", since="first", credit=2)
        publishing = asyncio.create_task(client.publish_many({"n": n} for n in range(30)))
        received = []
        for _ in range(30):
            event = await anext(subscription)
            received.append(event.data["n"])
            await event.done()
        await publishing
        assert broker.drops[place] == 0
        assert received == list(range(30)), "the program sees each once: it was there all the time"
        await until(lambda: len(broker.subscribers["ann"].done) == 30)


@in_a_loop
async def test_what_a_program_still_has_in_its_hands_is_not_handed_out_twice_after_a_break():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("TRUE", name="ann").ready()
        await client.publish_many({"n": n} for n in range(3))
        held = await anext(subscription)
        await broker.restart()
        await client.publish({"n": 3})
        assert numbers(await taken(subscription, 3)) == [1, 2, 3]
        assert broker.subscribers["ann"].sent[1] == 2, "the broker did deliver it again"
        await held.done()
        await until(lambda: 1 in broker.subscribers["ann"].done)


@in_a_loop
async def test_what_was_done_while_nobody_listened_is_said_on_the_next_connection():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("TRUE", name="ann").ready()
        await client.publish({"n": 0})
        event = await anext(subscription)
        await broker.stop()
        await event.done()
        await broker.start()
        await until(lambda: 1 in broker.subscribers["ann"].done)


@in_a_loop
async def test_a_delivery_that_still_waits_here_is_not_queued_twice():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("TRUE", name="ann").ready()
        await client.publish_many({"n": n} for n in range(3))
        first = await anext(subscription)
        ann = broker.subscribers["ann"]
        await until(lambda: len(ann.under_way) == 3)
        for number in (1, 2, 3):
            await broker.say_again(ann, number)
        events = await taken(subscription, 3)
        assert [(event.data["n"], event.is_again) for event in (first, *events)] == [
            (0, False), (1, False), (2, False), (0, True)
        ], "what was handed out and not done comes again; what waits does not"  # fmt: skip


@in_a_loop
async def test_a_durable_subscriber_asks_for_the_past_once():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        await client.publish_many({"n": n} for n in range(3))
        subscription = client.subscribe("TRUE", name="ann", since="first")
        assert numbers(await taken(subscription, 3)) == [0, 1, 2]
        await broker.restart()
        await client.publish({"n": 3})
        assert numbers(await taken(subscription, 1)) == [3]
        asked = [message.since for message in broker.heard if isinstance(message.subscribe, dict)]
        assert asked == ["first", ""]


@in_a_loop
async def test_a_listener_goes_on_behind_the_last_event_after_a_break():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        listening = await client.listen("TRUE").ready()
        await client.publish_many({"n": n} for n in range(3))
        assert numbers(await taken(listening, 2)) == [0, 1]
        await until(lambda: len(listening._waiting) == 1)
        await broker.stop()
        broker.subscribers.clear()
        await broker.start()
        await client.publish_many({"n": n} for n in range(3, 6))
        assert numbers(await taken(listening, 4)) == [2, 3, 4, 5]


@in_a_loop
async def test_a_listener_misses_nothing_although_its_connection_breaks_before_the_first_event():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        await client.publish({"n": 0})
        listening = await client.listen("TRUE").ready()
        await broker.stop()
        broker.subscribers.clear()
        await broker.start()
        await client.publish_many({"n": n} for n in range(1, 4))
        assert numbers(await taken(listening, 3)) == [1, 2, 3]


@in_a_loop
async def test_a_listener_needs_no_acknowledgement():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        listening = await client.subscribe("TRUE", credit=2).ready()
        await client.publish_many({"n": n} for n in range(20))
        assert numbers(await taken(listening, 20)) == list(range(20))
        assert not any(isinstance(message.done, list) for message in broker.heard)


@in_a_loop
async def test_a_listener_that_takes_nothing_reads_no_more_than_a_few_frames():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        listening = await client.subscribe("TRUE", credit=2).ready()
        await client.publish_many({"n": n} for n in range(500))
        await until(lambda: not listening._has_room.is_set())
        assert len(listening._waiting) == 8
        assert numbers(await taken(listening, 500)) == list(range(500))


@in_a_loop
async def test_a_broker_with_another_log_is_told_and_its_events_are_taken():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        gaps = []
        subscription = await client.subscribe("TRUE", name="ann", on_gap=gaps.append).ready()
        await client.publish({"n": 0})
        held = await anext(subscription)
        await broker.stop()
        broker.epoch, broker.log, broker.positions, broker.subscribers = "a7x2", [], {}, {}
        await broker.start()
        await until(lambda: "ann" in broker.subscribers and broker.subscribers["ann"].filters)
        await client.publish({"n": 1})
        event = await anext(subscription)
        assert event.at == "a7x2-1"
        await held.done()  # nobody knows it any more
        await event.done()
        await until(lambda: broker.subscribers["ann"].done == {1})
        assert gaps[0].facts["was"] == "k3f9"


@in_a_loop
async def test_a_text_that_has_no_meaning_raises_the_error_of_the_language_with_its_caret():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        with pytest.raises(LanguageError) as caught:
            await client.subscribe("price < 20 AND", name="ann").ready()
        assert str(caught.value) == (
            "line 1, column 15: found the end of the text, expected a condition\n  price < 20 AND\n                ^"
        )
        with pytest.raises(LanguageError):
            await anext(client.subscribe("price <", name="ann"))


@in_a_loop
async def test_nobody_there_ends_the_iteration_with_an_error():
    broker = await FakeBroker().start()
    await broker.stop()
    async with AsyncClient(broker.url) as client:
        with pytest.raises(UnreachableError):
            async for _ in client.subscribe("TRUE"):
                pass


@in_a_loop
async def test_closing_ends_the_iteration():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("TRUE").ready()

        async def received():
            return [event async for event in subscription]

        receiving = asyncio.create_task(received())
        await asyncio.sleep(0)
        await subscription.close()
        assert await receiving == []
        await client.close()
        with pytest.raises(ClosedError):
            client.subscribe("TRUE")


@in_a_loop
async def test_a_durable_subscriber_needs_a_name():
    async with AsyncClient("localhost:1") as client:
        with pytest.raises(ValueError, match="name"):
            client.subscribe("TRUE", durable=True)


# -- Requests


@in_a_loop
async def test_history_is_read_to_its_end_although_the_connection_breaks():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        await client.publish_many({"n": n} for n in range(20))
        broker.drops["history"] = 3
        assert numbers([event async for event in client.read("n % 2 = 0")]) == list(range(0, 20, 2))
        assert broker.drops["history"] == 0
        assert numbers([event async for event in client.read(since="k3f9-18", most=2)]) == [17, 18]


@in_a_loop
async def test_a_bad_text_in_a_request_raises_with_its_caret():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        with pytest.raises(LanguageError, match="column 8"):
            await client.check("price <")
        with pytest.raises(LanguageError, match="column 8"):
            [event async for event in client.read("price <")]
        assert await client.check("price<20") == {"canonical": "price < 20"}


@in_a_loop
async def test_match_says_who_would_want_an_event_and_publishes_nothing():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        await client.subscribe({"cheap": "price < 20"}, name="ann").ready()
        assert await client.match({"price": 12}) == [{"subscriber": "ann", "key": "cheap"}]
        assert await client.match([{"price": 12}, {"price": 30}]) == [[{"subscriber": "ann", "key": "cheap"}], []]
        assert broker.log == []


@in_a_loop
async def test_what_is_no_broker_is_said_to_be_none():
    async with FakeBroker() as broker, AsyncClient(f"{broker.url}/elsewhere") as client:
        with pytest.raises(UnreachableError, match="is not a broker"):
            await client.publish({"n": 1})
        with pytest.raises((BadRequestError, LookupError)):
            await client.check("TRUE")
