from __future__ import annotations

import asyncio
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import AsyncClient
from tamis.service.client.events import Event, encoded
from tamis.service.client.publishing import BATCH_EVENTS, Largest, batches_of
from tamis.service.errors import BadRequestError, ClosedError, TooLargeError, UnauthenticatedError, UnreachableError
from tests.service.client.conftest import in_a_loop, until
from tests.service.client.fake_broker import FakeBroker


@in_a_loop
async def test_an_event_is_published_and_its_position_returned():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        assert await client.publish({"price": 12}, type="auction", source="/shop", subject="book") == "k3f9-1"
        event = msgspec.json.decode(broker.log[0])
        assert event.pop("id")
        assert event == {"specversion": "1.0", "source": "/shop", "type": "auction", "subject": "book",
                         "data": {"price": 12}}  # fmt: skip


@in_a_loop
async def test_a_cloud_event_is_published_as_it_is():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        event = {"specversion": "1.0", "id": "7", "source": "/a", "type": "t", "data": [1, None], "region": "EU"}
        assert await client.publish(event) == await client.publish(event) == "k3f9-1"
        assert [msgspec.json.decode(body) for body in broker.log] == [event]


@in_a_loop
async def test_many_events_keep_their_order_and_get_their_positions():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        progress = []
        positions = await client.publish_many(({"n": n} for n in range(5000)), on_progress=progress.append)
        assert positions == [f"k3f9-{n + 1}" for n in range(5000)]
        assert [event["n"] for event in broker.events] == list(range(5000))
        assert sum(progress) == 5000


@in_a_loop
async def test_events_that_come_slowly_are_published_when_they_come():
    async def slowly(broker):
        for number in range(3):
            yield {"n": number}
            await until(lambda number=number: len(broker.log) == number + 1)

    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        assert await client.publish_many(slowly(broker)) == ["k3f9-1", "k3f9-2", "k3f9-3"]


@in_a_loop
async def test_an_iterable_that_fails_in_the_middle_raises_its_own_error():
    async def failing():
        yield {"n": 1}
        raise LookupError("no more")

    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        with pytest.raises(LookupError, match="no more"):
            await client.publish_many(failing())


@pytest.mark.parametrize("place", ["publish", "taken"])
@in_a_loop
async def test_what_was_not_acknowledged_is_sent_again_under_the_same_ids(place):
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        broker.drops[place] = 3
        positions = await client.publish_many({"n": n} for n in range(4 * BATCH_EVENTS))
        assert [event["n"] for event in broker.events] == list(range(4 * BATCH_EVENTS)), "nothing lost, nothing twice"
        assert positions == [f"k3f9-{n + 1}" for n in range(4 * BATCH_EVENTS)]
        assert broker.connections == 4


@in_a_loop
async def test_publications_survive_a_restart_of_the_broker():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        await client.publish({"n": 0})
        await broker.stop(says_bye=True)
        waiting = asyncio.create_task(client.publish({"n": 1}))
        await asyncio.sleep(0)
        await broker.start()
        assert await waiting == "k3f9-2"


@in_a_loop
async def test_concurrent_publications_are_all_answered_with_their_own_positions():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        broker.drops["taken"] = 1
        positions = await asyncio.gather(*(client.publish({"n": n}) for n in range(200)))
        assert [broker.events[int(at.partition("-")[2]) - 1]["n"] for at in positions] == list(range(200))


@in_a_loop
async def test_a_refusal_is_the_error_that_the_broker_raised():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        broker.refusals = [{"status": 413, "title": "Larger than the limit", "detail": "257 kB", "expected": "256 kB"}]
        with pytest.raises(TooLargeError, match="257 kB; expected 256 kB"):
            await client.publish({"n": 1})
        assert await client.publish({"n": 2}) == "k3f9-1", "the conversation goes on"


@in_a_loop
async def test_a_refused_batch_stops_those_behind_it_and_says_what_was_published():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        broker.refusals = [{"status": 413, "title": "Larger than the limit", "detail": "too large"}]
        with pytest.raises(TooLargeError) as caught:
            await client.publish_many({"n": n} for n in range(100 * BATCH_EVENTS))
        assert f"{len(broker.log)} events of the others are published" in caught.value.__notes__[0]
        assert len(broker.log) < 99 * BATCH_EVENTS


@in_a_loop
async def test_a_busy_broker_is_asked_again_later():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        broker.refusals = [{"status": 503, "title": "The broker is busy", "detail": "busy", "retry_s": 0.01}] * 2
        assert await client.publish({"n": 1}) == "k3f9-1"
        assert broker.refusals == []


@in_a_loop
async def test_batches_are_no_larger_than_the_broker_allows():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        broker.batch_events = 7
        assert len(await client.publish_many({"n": n} for n in range(100))) == 100


@in_a_loop
async def test_a_message_larger_than_the_broker_takes_fails_and_is_not_sent_for_ever():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        with pytest.raises(TooLargeError):
            await client.publish({"text": "x" * 2**21})
        assert await client.publish({"n": 1}) == "k3f9-1"


@in_a_loop
async def test_a_broker_that_was_never_there_is_an_error_that_says_the_address_and_the_command():
    broker = await FakeBroker().start()
    await broker.stop()
    async with AsyncClient(broker.url) as client:
        with pytest.raises(UnreachableError, match=rf"no broker answers at {broker.url} .*tamis serve"):
            await client.publish({"n": 1})
        await broker.start()
        assert await client.publish({"n": 1}) == "k3f9-1", "it may come later"
        await broker.stop()


@in_a_loop
async def test_who_never_says_welcome_is_no_broker_but_one_that_did_is_waited_for():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        broker.drops["hello"] = 1
        with pytest.raises(UnreachableError, match="the connection"):
            await client.publish({"n": 1})
        assert await client.publish({"n": 1}) == "k3f9-1"
        await broker.restart()
        broker.drops["hello"] = 2
        assert await client.publish({"n": 2}) == "k3f9-2"


@in_a_loop
async def test_patience_ends():
    broker = await FakeBroker().start()
    await broker.stop()
    async with AsyncClient(broker.url, patience_s=0.3) as client:
        with pytest.raises(UnreachableError, match=r"tried for 0.3 s"):
            await client.publish({"n": 1})


@in_a_loop
async def test_a_wrong_token_is_refused_for_good():
    async with FakeBroker(token="secret") as broker:
        async with AsyncClient(broker.url, token="secret") as client:
            await client.publish({"n": 1})
        async with AsyncClient(broker.url, token="guess") as client:
            with pytest.raises(UnauthenticatedError, match="the token is unknown"):
                await client.publish({"n": 1})


@in_a_loop
async def test_a_closed_client_says_so():
    async with FakeBroker() as broker:
        client = AsyncClient(broker.url)
        await client.publish({"n": 1})
        await broker.stop()
        waiting = asyncio.create_task(client.publish({"n": 2}))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(ClosedError):
            await waiting
        with pytest.raises(ClosedError):
            await client.publish({"n": 3})
        await broker.start()


@in_a_loop
async def test_a_publication_that_was_given_up_is_not_sent_again():
    async with FakeBroker() as broker, AsyncClient(broker.url) as client:
        await client.publish({"n": 0})
        await broker.stop()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await client.publish({"n": 1})
        await broker.start()
        await client.publish({"n": 2})
        assert [event["n"] for event in broker.events] == [0, 2]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(data=JSON)
def test_data_comes_back_as_it_was(data):
    try:
        body = encoded(data)
    except BadRequestError:
        text = repr(data)
        assert "\\ud" in text, "only half surrogate pairs are no JSON"
        return
    if isinstance(data, dict) and "specversion" in data:
        return
    assert Event("k3f9-1", body).data == data


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_does_not_have_are_refused_instead_of_becoming_null(number):
    with pytest.raises(BadRequestError, match="NaN or infinite"):
        encoded({"a": [None, {"b": number}]})


def test_what_is_no_json_is_refused():
    with pytest.raises(BadRequestError, match="not JSON"):
        encoded({"a": object()})


def test_decimals_are_numbers_and_bytes_are_binary_data():
    assert Event("k3f9-1", encoded({"price": Decimal("12.50")})).data == {"price": 12.5}
    assert Event("k3f9-1", encoded(b"\x00\xff")).data == b"\x00\xff"


@given(sizes=st.lists(st.integers(0, 50)), events=st.integers(1, 5), size_bytes=st.integers(1, 60), slow=st.booleans())
def test_batches_hold_every_event_once_in_order_within_the_limits(sizes, events, size_bytes, slow):
    given_events = [bytes([index % 256]) * size for index, size in enumerate(sizes)]

    async def as_they_come():
        for event in given_events:
            yield event

    async def collected():
        source = as_they_come() if slow else given_events
        return [batch async for batch in batches_of(source, lambda event: event, Largest(events, size_bytes))]

    batches = asyncio.run(collected())
    assert [event for batch in batches for event in batch] == given_events
    for batch in batches:
        assert 1 <= len(batch) <= events
        assert len(batch) == 1 or sum(map(len, batch)) <= size_bytes
