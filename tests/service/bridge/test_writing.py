"""Rows as events of a real broker, without Spark: what they become, and that what is said again is taken once."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.service.bridge.writing import event_writing, filled, require_sink
from tamis.sources.errors import BrokerError, ColumnError, OptionError
from tamis.sources.place import TaskPlace
from tests.service.http.brokers import eventually, running

PLACE = TaskPlace("query", 7, 0)


def address(broker):
    return broker.url.replace("http", "tamis")


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


async def written(broker, rows, place=PLACE, **options):
    writing = event_writing(address(broker), options, rows.schema.names)
    return await asyncio.to_thread(writing.write, [rows], place)


async def kept(broker):
    _, body = await broker.ask("GET", "/events?from=first", status=200)
    return [json.loads(line)["event"] for line in body.splitlines()]


@eventually
async def test_rows_are_the_data_of_events_and_what_is_said_again_is_taken_once(tmp_path):
    rows = batch(n=[1, None, 3], text=["Ü", "", None], exact=[Decimal("1.50"), None, Decimal("2.25")])
    async with running(tmp_path) as broker:
        first = await written(broker, rows, batch_rows=2)
        again = await written(broker, rows)  # cut in another way, by a batch that is run again
        assert (first.events, first.known, again.events, again.known) == (3, 0, 3, 3)
        events = await kept(broker)
        assert [event["data"] for event in events] == [
            {"n": 1, "text": "Ü", "exact": 1.5}, {"text": ""}, {"n": 3, "exact": 2.25},
        ]  # fmt: skip
        assert {(event["type"], event["source"]) for event in events} == {("tamis.event", "/tamis")}
        assert len({event["id"] for event in events}) == 3 and events[0]["id"].startswith("query-7-0-0-")
        other = await written(broker, rows, TaskPlace("query", 8, 0))
        assert other.known == 0, "another batch says it again, and means it"


@eventually
async def test_attributes_are_texts_with_columns_in_them_and_ids_may_be_columns(tmp_path):
    moment = datetime(2026, 1, 31, 12, 0, 0, 5, UTC)
    rows = batch(kind=["offer", "bid"], order=[17, 18], happened=pa.array([moment, None], pa.timestamp("us", "UTC")))
    options = {
        "type": "shop.{kind}",
        "source": "/shop/{kind}",
        "subject": "{order}",
        "time": "{happened}",
        "id": "kind, order",
    }
    async with running(tmp_path) as broker:
        await written(broker, rows, **options)
        one, two = await kept(broker)
        assert (one["id"], one["type"], one["source"], one["subject"]) == (
            "offer-17",
            "shop.offer",
            "/shop/offer",
            "17",
        )
        assert one["time"].startswith("2026-01-31T12:00:00.000005") and "time" not in two
        assert (await written(broker, rows, TaskPlace("other", 1, 1), **options)).known == 2


@eventually
async def test_a_column_type_is_the_type_where_nobody_says_another(tmp_path):
    async with running(tmp_path) as broker:
        await written(broker, batch(type=["offer", None, ""], n=[1, 2, 3]))
        assert [event["type"] for event in await kept(broker)] == ["offer", "tamis.event", "tamis.event"]


@eventually
async def test_what_the_broker_refuses_is_told_in_one_line_and_nothing_of_its_request_is_taken(tmp_path):
    async with running(tmp_path) as broker:
        with pytest.raises(BrokerError, match="event_bytes") as raised:
            await written(broker, batch(text=["a", "x" * 300_000]))
        assert "\n" not in str(raised.value)
        assert await kept(broker) == []
        await asyncio.to_thread(require_sink, address(broker), {})


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"type": "{kidn}"}, ColumnError, "Did you mean kind"), ({"id": "no"}, ColumnError, "no column 'no'"), ({"tpye": "a"}, OptionError, "Did you mean type"),
        ({"source": ""}, OptionError, "source of tamis is empty"), ({"batch_rows": "0"}, OptionError, "at least 1"),
    ],
)  # fmt: skip
def test_options_are_refused_before_anything_is_written(options, error, told):
    with pytest.raises(error, match=told):
        event_writing("tamis://127.0.0.1:1", options, ("kind", "n"))


def test_nobody_at_the_address_is_told_soon():
    with pytest.raises(BrokerError, match="no broker answers"):
        require_sink("tamis://127.0.0.1:1", {})


def test_values_are_put_into_texts_as_json_has_them():
    rows = batch(a=[1, None, 3], b=[True, False, None], t=["x", None, "{a}"])
    assert filled("{a}", rows) == ["1", None, "3"]
    assert filled("{t}-{b}", rows) == ["x-true", "-false", "{a}-"]
    assert filled("plain", rows) == ["plain"] * 3
