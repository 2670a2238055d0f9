"""A schema, if the broker has one, is kept at the door: for events, for filters, and over every way in."""

from __future__ import annotations

import pytest

from tamis import AsyncClient
from tamis.service.errors import MisfitError, SettingsError
from tamis.service.serving import Service
from tamis.service.settings import Listener, Settings

from .brokers import Talk, eventually, running

SCHEMA = {"price": "double", "title": "string"}
GOOD = {"price": 12.5, "title": "The House"}
BAD = [{"price": "cheap"}, {"price": [1]}, {"title": 7}]


@pytest.mark.parametrize("misfit", BAD)
@eventually
async def test_an_event_that_misfits_is_refused_with_all_that_came_with_it(tmp_path, misfit):
    async with running(tmp_path, schema=SCHEMA) as broker, AsyncClient(broker.url) as client:
        status, problem = await broker.ask("POST", "/events", [GOOD, misfit])
        assert status == MisfitError.status == 422
        assert next(iter(misfit)) in problem["detail"]
        async with broker.connect() as socket:
            talk = Talk(socket)
            await talk.say({"publish": [misfit], "id": 1}, {"publish": [GOOD], "id": 2})
            assert (await talk.hear_until("error"))["error"]["status"] == 422
            assert (await talk.hear_until("ok"))["ok"] == 2
        with pytest.raises(MisfitError):
            await client.publish(misfit)
        assert [event.data for event in [each async for each in client.read()]] == [GOOD], "nothing else is in the log"


@eventually
async def test_an_event_is_matched_as_the_schema_reads_it(tmp_path):
    async with running(tmp_path, schema=SCHEMA) as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("price < 20 AND type = 'offer'", name="ann").ready()
        await client.publish({"price": 12}, type="offer")
        assert (await anext(subscription)).data == {"price": 12}


@eventually
async def test_a_filter_that_misfits_is_refused_with_its_place(tmp_path):
    async with running(tmp_path, schema=SCHEMA) as broker:
        for path in ("/subscribers/ann/subscriptions/it", "/check"):
            method = "POST" if path == "/check" else "PUT"
            text = {"data": "prise < 20", "headers": {"Content-Type": "text/plain"}}
            _, problem = await broker.ask(method, path, status=400, **text)
            assert "prise" in problem["detail"]
            assert problem["where"]["column"] == 1
        assert (await broker.ask("GET", "/subscribers"))[1] == {"subscribers": []}, "nothing half-happened"


@pytest.mark.parametrize("texts", [["price < 20"], ["price < 20", "title = 'The House'"]])
@eventually
async def test_a_broker_does_not_start_with_a_schema_that_a_kept_subscription_does_not_fit(tmp_path, texts):
    async with running(tmp_path, schema=SCHEMA) as broker:
        for text in texts:
            await broker.ask("PUT", "/subscribers/ann/subscriptions/it", text, status=201)
            await broker.publish(GOOD)
    other = Service(Settings(data=str(tmp_path), listeners=(Listener(port=0),), schema={**SCHEMA, "price": "string"}))
    with pytest.raises(SettingsError, match="the subscription 'it' of 'ann' does not fit"):
        await other.start()
    async with running(tmp_path, schema={**SCHEMA, "weight": "double"}) as broker:
        _, taken = await broker.ask("POST", "/subscribers/ann/take", {"most": 10, "wait_s": 10}, status=200)
        assert len(taken["events"]) == len(texts)
