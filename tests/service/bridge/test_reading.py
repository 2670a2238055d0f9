"""The log of a real broker as tables, without Spark; and a log that waits for who reads it by himself."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language import holds, parse
from tamis.service.bridge.address import BrokerAddress, asked_address
from tamis.service.bridge.arriving import broker_batches, broker_table
from tamis.service.bridge.holding import Held
from tamis.service.bridge.reading import LogState, cut, guessed_columns, log_reading, require_source, rows
from tamis.service.client.events import Event
from tamis.service.cloud_events import record_of
from tamis.service.settings import KeepLimits, LogSettings, Size
from tamis.sources.arriving import BadLines
from tamis.sources.errors import AnotherLogError, BrokerError, LostEventsError, OptionError
from tamis.sources.schemes import BROKER
from tests.service.http.brokers import eventually, running


def address(broker):
    return broker.url.replace("http", "tamis")


def read(broker, **options):
    """Return what a table of a broker's events holds."""
    return broker_table(address(broker), options, None, ["_position"]).to_pylist()


def numbers(broker, **options):
    return [row["n"] for row in read(broker, **options)]


@st.composite
def logs(draw):
    """What a log holds, with gaps that do not touch."""
    first = draw(st.integers(1, 30))
    cuts = sorted(draw(st.sets(st.integers(1, 60), max_size=8)))
    gaps = [(low, high - 1) for low, high in zip(cuts[::2], cuts[1::2], strict=False)]
    return LogState("k", first, 60, tuple(gaps), first)


@given(logs(), st.integers(1, 61), st.integers(1, 61))
def test_what_is_missing_of_a_range_is_what_is_before_the_log_or_in_a_gap(state, start, end):
    gone = {n for n in range(start, end) if n < state.first or any(a <= n <= b for a, b in state.gaps)}
    parts = state.missing(start, end)
    assert [n for first, behind in parts for n in range(first, behind)] == sorted(gone)


@given(st.integers(1, 1_000), st.integers(0, 1_000), st.integers(1, 40))
def test_a_range_is_cut_into_parts_that_are_the_range(start, length, count):
    parts = cut(start, start + length, min(count, length))
    assert [n for first, behind in parts for n in range(first, behind)] == list(range(start, start + length))
    assert all(first < behind for first, behind in parts)


@eventually
async def test_a_filter_is_evaluated_at_the_broker_and_places_of_the_log_say_what_is_read(tmp_path):
    async with running(tmp_path) as broker:
        await broker.publish(*({"n": n} for n in range(20)))

        def look():
            assert numbers(broker) == list(range(20))
            assert numbers(broker, where="n % 2 = 0 AND n > 9") == [10, 12, 14, 16, 18]
            third, sixth = (f"{broker.core.epoch}-{n}" for n in (3, 6))
            assert numbers(broker, start=third, end=sixth) == [2, 3, 4]
            assert numbers(broker, start="-1h") == list(range(20))
            assert read(broker, start="now") == []
            assert [row["_position"] for row in read(broker, where="n >= 18")] == [19, 20]
            [batch] = broker_batches(address(broker), {"where": "n < 2"}, BadLines())
            assert [event["n"] for event in batch.events] == [0, 1] and len(set(batch.names)) == 2

        await asyncio.to_thread(look)


@eventually
async def test_columns_are_what_filters_see(tmp_path):
    """As the rule of the broker has it: the context wins, and what it hides is in `data`."""
    ugly = [
        {"n": 1, "type": "offer", "tags": ["a", None], "place": {"x": 1.5}},
        {"n": None, "price": 10**30, "text": "", "Ünï": "☃"},
        [1, "two"],
        "text",
        {"n": 2**62, "source": "a lie", "id": 7, "time": "noon", "_position": "mine"},
    ]
    moment = "2026-01-31T13:00:00.123456+01:00"
    async with running(tmp_path) as broker:
        cloud = [
            {"specversion": "1.0", "id": str(n), "source": "/shop", "type": "t", "time": moment, "level": 3, "data": each}
            for n, each in enumerate(ugly)
        ]  # fmt: skip
        await broker.publish(*cloud)
        found = await asyncio.to_thread(read, broker)
    assert {row["source"] for row in found} == {"/shop"}
    assert [row["id"] for row in found] == list("01234")
    assert [row["level"] for row in found] == [3] * 5
    assert {row["time"] for row in found} == {datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)}
    assert [row["n"] for row in found] == [1, None, None, None, 2**62]
    assert [row["_position"] for row in found] == [1, 2, 3, 4, 5]
    assert found[0]["tags"] == ["a", None] and found[0]["place"] == {"x": 1.5}
    assert int(found[1]["price"]) == 10**30 and found[1]["Ünï"] == "☃" and found[1]["text"] == ""
    assert found[2]["data"] == '[1,"two"]', "texts and objects in one column are texts"


def test_what_is_not_a_value_of_its_column_is_null_and_times_of_the_last_day_do_no_harm():
    bodies = [
        b'{"specversion":"1.0","id":"1","source":"/a","type":"t","data":{"price":"x","n":1.5}}',
        b'{"specversion":"1.0","id":"2","source":"/a","type":"t","time":"9999-12-31T23:30:00-01:00","data":{"price":3}}',
    ]
    events = [Event(f"k-{n}", body) for n, body in enumerate(bodies, 1)]
    columns = pa.schema([("price", pa.float64()), ("n", pa.int64()), ("time", pa.string()), ("_position", pa.int32())])
    assert rows(events, columns).to_pylist() == [
        {"price": None, "n": None, "time": None, "_position": 1}, {"price": 3.0, "n": None, "time": None, "_position": 2},
    ]  # fmt: skip
    assert "_position" in guessed_columns(events).names


@eventually
async def test_the_same_text_says_the_same_at_the_broker_and_of_its_rows(tmp_path):
    """The rows that a table has are the records that filters saw: the definition picks the same of them."""
    chance = Random(5)
    values = [None, True, 0, -1, 3, 2.5, 10**20, "", "a", "The Ü", [], ["a", "b"], {"x": 1}]
    texts = (
        "a = 3", "a > 1 OR b < 2", "NOT a = 'a'", "a IS NULL", "b IS NOT NULL AND NOT b <=> 3", "a LIKE 'The %'",
        "array_contains(b, 'a')", "type = 't1'", "data.type = 't1'", "a IN (3, -1)", "pos.x BETWEEN 0 AND 1", "TRUE",
    )  # fmt: skip
    events = []
    for number in range(300):
        names = chance.sample(["a", "b", "type", "pos"], chance.randrange(5))
        data = {name: chance.choice(values) for name in names}
        events.append({"specversion": "1.0", "id": str(number), "source": "/s", "type": f"t{number % 3}", "data": data})
    async with running(tmp_path) as broker:
        await broker.publish(*events)

        def look():
            for text in texts:
                reading = log_reading(address(broker), {"where": text})
                with reading.connection() as connection:
                    state, end = reading.range(connection)
                wanted = [each for part in reading.events(state.epoch, state.start, end) for each in part]
                expression = parse(text)
                expected = [
                    each
                    for part in log_reading(address(broker), {}).events(state.epoch, 1, end)
                    for each in part
                    if holds(expression, record_of(each.body))
                ]
                assert [each.at for each in wanted] == [each.at for each in expected], text

        await asyncio.to_thread(look)


@eventually
async def test_what_retention_has_taken_is_an_error_or_left_out_if_that_is_asked_for(tmp_path):
    async with running(tmp_path) as broker:
        await broker.publish(*({"n": n} for n in range(3)))
        broker.core.drop(4)
        while broker.core.first == 1:
            await asyncio.sleep(0.01)
        await broker.publish(*({"n": n} for n in range(3, 6)))
        second = f"{broker.core.epoch}-2"

        def look():
            assert numbers(broker) == [3, 4, 5], "from the first event that there is"
            with pytest.raises(LostEventsError, match=r"no longer has the events \w+-2 to \w+-3, which were not read"):
                read(broker, start=second)
            assert numbers(broker, start=second, on_loss="report") == [3, 4, 5]
            # What goes while a part is read is seen by the part.
            reading = log_reading(address(broker), {})
            with pytest.raises(LostEventsError):
                list(reading.events(broker.core.epoch, 2, 7))
            with pytest.raises(AnotherLogError, match="of another log"):
                list(reading.events("other", 2, 7))
            with pytest.raises(AnotherLogError, match="has not come yet"):
                list(reading.events(broker.core.epoch, 2, 99))

        await asyncio.to_thread(look)


@eventually
async def test_the_log_is_held_for_a_reader_that_has_a_name_and_let_go_as_it_goes_on(tmp_path):
    log = LogSettings(keep=KeepLimits(size_bytes=1), segment_bytes=Size(4_096))
    async with running(tmp_path, log=log) as broker:

        async def publish(first, count):
            for number in range(first, first + count):
                await broker.publish({"n": number, "text": "x" * 1_000})

        async def needed():
            return await asyncio.to_thread(broker.core.needed)

        await publish(0, 30)
        reading = log_reading(address(broker), {"name": "query"})
        epoch = broker.core.epoch
        with await asyncio.to_thread(reading.connection) as connection:
            held = Held("query", None)
            await asyncio.to_thread(held.begin, connection, epoch, 5)
            assert await needed() == 5, "what was before the subscription is held, too"
            await publish(30, 30)
            assert await needed() == 5
            await asyncio.to_thread(held.move, connection, epoch, 19)
            assert await needed() == 20
            again = Held("query", None)  # the query was started again
            await asyncio.to_thread(again.begin, connection, epoch, 20)
            assert await needed() == 20
            await asyncio.to_thread(again.move, connection, epoch, 30)
            assert await needed() == 31, "where the subscription began"
            await asyncio.to_thread(again.move, connection, epoch, 44)
            assert await needed() == 45
            broker.service._drop_old()
            while not 30 < broker.core.first <= 45:
                await asyncio.sleep(0.01)
            other = Held("query", "n > 3")  # the query has another filter now
            await asyncio.to_thread(other.begin, connection, epoch, 50)
            _, facts = await broker.ask("GET", "/subscribers/query")
            assert facts["subscriptions"]["read"]["text"] == "n > 3"
            assert await needed() == 50
            await asyncio.to_thread(other.move, connection, epoch, 60)
            assert await needed() == 61
            assert await asyncio.to_thread(connection.find, "/subscribers/nobody") is None


@eventually
async def test_a_floor_is_refused_while_deliveries_are_under_way(tmp_path):
    async with running(tmp_path) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE", status=201)
        last = (await broker.publish({"n": 1}, {"n": 2}))["position"]
        taken = await broker.ask("POST", "/subscribers/ann/take", {"most": 1, "wait_s": 5}, status=200)
        status, told = await broker.ask("POST", "/subscribers/ann/done", {"floor": last})
        assert (status, told["title"]) == (409, "Contradicts what is there")
        done = [delivery["at"] for delivery in taken[1]["events"]]
        await broker.ask("POST", "/subscribers/ann/done", {"done": done}, status=204)
        ahead = f"{broker.core.epoch}-3"
        await broker.ask("POST", "/subscribers/ann/done", {"floor": ahead}, status=400)
        await broker.ask("POST", "/subscribers/ann/done", {"floor": last}, status=204)
        _, facts = await broker.ask("GET", "/subscribers/ann", status=200)
        assert facts["done_through"] == last
        more = await broker.ask("POST", "/subscribers/ann/take", {"most": 9, "wait_s": 0}, status=200)
        assert more[1]["events"] == []


@eventually
async def test_mistakes_are_told_in_one_line(tmp_path):
    async with running(tmp_path) as broker:
        url = address(broker)

        def refused(kind, told, **options):
            with pytest.raises(kind, match=told) as raised:
                require_source(url, options, streaming=True)
            assert "\n" not in str(raised.value)

        def look():
            refused(OptionError, r"the filter has no meaning: .* \(column 8\)", where="price <")
            refused(OptionError, "Did you mean where", wheer="TRUE")
            refused(OptionError, "end", end="now")  # a stream has none
            refused(OptionError, "one of fail, report", on_loss="cry")
            refused(BrokerError, "is not a place to begin", start="yesterday")
            refused(AnotherLogError, "of another log", start="other-5")
            refused(OptionError, "goes to the broker in an address", where=" OR ".join(["price < 20"] * 400))
            refused(OptionError, "give the option certificate", key="a.pem")
            with pytest.raises(OptionError, match="has no event yet"):
                log_reading(url, {}).guessed()

        await asyncio.to_thread(look)
    with pytest.raises(BrokerError, match=r"no broker answers at http://127.0.0.1:\d+"):
        await asyncio.to_thread(require_source, url, {}, streaming=False)


def test_a_token_is_an_option_or_a_variable_and_is_never_shown(monkeypatch):
    monkeypatch.setenv("TAMIS_TOKEN", "from-outside")
    asked = asked_address(BROKER.source_options({"url": "tamis://north"}))
    assert asked == BrokerAddress("http://north:7410", "from-outside") and "from-outside" not in repr(asked)
    asked = asked_address(BROKER.source_options({"url": "tamis+tls://north:1", "token": "mine"}))
    assert (asked.url, asked.token) == ("https://north:1", "mine")
    with pytest.raises(OptionError, match="expected the option token") as raised:
        asked_address(BROKER.source_options({"url": "tamis://ann:secret@north"}))
    assert "secret" not in str(raised.value)
