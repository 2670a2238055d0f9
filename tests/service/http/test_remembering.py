"""Ranked subscriptions, sequences and changes over sockets: asked for, told, refused, and the same after a restart."""

from __future__ import annotations

import pytest

import tamis
from tamis.service.settings import Duration, LimitSettings, LogSettings, Role
from tamis.service.settings.quantities import KeepLimits

from .brokers import Talk, eventually, running

TEXTS = {
    "best": "TOP 1 BY price OVER 1 HOUR",
    "pair": "SEQUENCE kind = 'order' THEN kind = 'payment' WITHIN 1 HOUR PER customer",
    "high": "CHANGE OF price > 20",
    "cheap": "price < 11",
}


@eventually
async def test_every_kind_is_told_over_a_websocket_and_again_after_a_restart(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        talk = Talk(socket)
        await talk.say({"hello": {"as": "ann", "durable": True}}, {"subscribe": TEXTS, "id": 1})
        answer = await talk.hear_until("ok")
        assert sorted(answer["remembering"]) == ["best", "high", "pair"]
        assert answer["effective"]["best"] == "TOP 1 BY price ASC OVER 1 HOUR"
        await broker.publish({"price": 10, "kind": "order", "customer": 7})
        await broker.publish({"price": 30})
        published = await broker.publish({"price": 15, "kind": "payment", "customer": 7})
        first, second, third = await talk.events(3)
        assert (sorted(first["for"]), first["told"][0]["rank"]) == (["best", "cheap"], 1)
        assert second["told"] == [{"key": "high", "kind": "change", "at": second["told"][0]["at"], "change": True}]
        by_key = {told["key"]: told for told in third["told"]}
        assert third["at"] == published["position"]
        assert by_key["high"]["change"] is False
        assert by_key["pair"]["run"] == [first["at"], third["at"]]
        assert [event["data"]["kind"] for event in by_key["pair"]["events"]] == ["order", "payment"]
        _, page = await broker.ask("GET", "/metrics", status=200)
        assert b"tamis_told_total" in page
    async with running(tmp_path) as broker, broker.connect() as socket:
        talk = Talk(socket)
        await talk.say({"hello": {"as": "ann", "durable": True}})
        repeated = await talk.events(3)
        assert repeated == [{**each, "again": True} for each in (first, second, third)]
        await broker.publish({"price": 9})
        (fourth,) = await talk.events(1)
        assert (sorted(fourth["for"]), fourth["told"][0]["rank"]) == (["best", "cheap"], 1)


@eventually
async def test_what_did_not_come_is_told_on_time_although_nothing_comes(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        talk = Talk(socket)
        text = "SEQUENCE kind = 'order' THEN NOT kind = 'payment' WITHIN 300 MILLISECONDS"
        await talk.say({"hello": {"as": "ann", "durable": True}}, {"subscribe": {"unpaid": text}, "id": 1})
        await talk.hear_until("ok")
        await broker.publish({"kind": "order"})
        (delivered,) = await talk.events(1)
        (told,) = delivered["told"]
        assert (told["key"], told["kind"], len(told["run"])) == ("unpaid", "sequence", 1)
        assert delivered["at"].endswith(".1")
        assert delivered["event"]["data"] == {"kind": "order"}
        _, read = await broker.ask("GET", "/events?from=first", status=200)
        assert b"tamis.time" not in read


@eventually
async def test_the_client_has_what_is_told(tmp_path):
    async with running(tmp_path) as broker, tamis.AsyncClient(broker.url) as client:
        async with client.subscribe(TEXTS, name="ann") as subscription:
            await client.publish({"price": 30})
            await client.publish({"price": 10})
            first = await anext(subscription)
            (best,) = [told for told in first.told if told.key == "best"]
            assert (best.kind, best.rank, best.change, best.run) == ("ranked", 1, None, ())
            second = await anext(subscription)
            assert {told.key: told.change for told in second.told} == {"best": None, "high": False}
            await first.done()
            await second.done()
        async with client.subscribe("CHANGE TO price > 20") as passing:
            await client.publish({"price": 25})
            assert (await anext(passing)).told[0].change is True


@eventually
async def test_put_check_why_and_try_know_them(tmp_path):
    async with running(tmp_path) as broker:
        _, said = await broker.ask("PUT", "/subscribers/ann/subscriptions/best", {"where": TEXTS["best"]}, 201)
        assert said["remembering"] == ["best"]
        _, checked = await broker.ask("POST", "/check", {"where": TEXTS["high"]}, 200)
        assert checked["json"]["change"]
        published = await broker.publish({"price": 10})
        _, why = await broker.ask("GET", f"/subscribers/ann/why?at={published['position']}", status=200)
        assert "remembers it" in why["verdict"]
        for path in ("/try", "/explain"):
            body = {"where": TEXTS["pair"]} | ({"event": {"price": 1}} if path == "/explain" else {})
            _, problem = await broker.ask("POST", path, body, 400)
            assert "takes no sequence" in problem["detail"]
        _, problem = await broker.ask("POST", "/relations", {"first": TEXTS["high"], "second": "a = 1"}, 400)
        assert "takes no change" in problem["detail"]
        await broker.ask("GET", "/subscribers/ann/shares", status=200)


BAD = {
    "TOP 0 BY price OVER 1 HOUR": 400,
    "TOP 5 BY price": 400,
    "TOP 5 BY price OVER 2 WEEKS": 413,
    "TOP 5 BY price OVER 5000000 EVENTS": 413,
    "TOP 5 BY lower(price) OVER 1 HOUR": 400,
    "SEQUENCE a = 1": 400,
    "SEQUENCE a = 1 THEN b = 2": 400,
    "SEQUENCE a = 1 THEN NOT b = 2": 400,
    "SEQUENCE a = 1 THEN b = 2 WITHIN 99 DAYS": 413,
    "SEQUENCE a AS x THEN b = y.c WITHIN x HOURS": 400,
    "CHANGE TO": 400,
    "CHANGE TO a > 1 PER": 400,
    "CHANGE TO a > 1 FORGET AFTER -1 SECONDS": 400,
    "SEQUENCE " + "a THEN " * 100 + "b WITHIN 1 HOUR": 400,
    "TOP 1 BY " + "(" * 500 + "a" + ")" * 500 + " OVER 1 HOUR": 413,
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:30])
def test_a_text_that_cannot_be_hosted_is_refused_with_what_would_be_right(text, tmp_path):
    @eventually
    async def run():
        async with running(tmp_path) as broker:
            status, problem = await broker.ask("PUT", "/subscribers/ann/subscriptions/x", {"where": text})
            assert status == BAD[text], problem
            assert problem["detail"]
            assert problem.get("expected") or problem.get("hint") or problem.get("where") or status == 400
            assert await broker.ask("POST", "/events", [{"price": 1}], 200)

    run()


@eventually
async def test_the_past_is_not_for_what_remembers_and_windows_have_limits(tmp_path):
    settings = {
        "limits": LimitSettings(window=Duration(7200)),
        "log": LogSettings(keep=KeepLimits(3600.0)),
    }
    async with running(tmp_path, **settings) as broker:
        path = "/subscribers/ann/subscriptions/best"
        _, problem = await broker.ask("PUT", f"{path}?from=first", {"where": "TOP 1 BY a OVER 1 SECOND"}, 400)
        assert "has no past" in problem["detail"]
        _, problem = await broker.ask("PUT", path, {"where": "TOP 1 BY a OVER 1 HOUR"}, 413)
        assert problem["expected"] == "at most 30 MINUTES (limits.window, and half of log.keep)"
        await broker.ask("PUT", path, {"where": "TOP 1 BY a OVER 30 MINUTES"}, 201)


@eventually
async def test_a_role_restricts_what_is_remembered(tmp_path):
    roles = {"shop": Role(receive="region = 'EU'"), "admin": Role(admin=True)}
    async with running(tmp_path, roles=roles, insecure=True) as broker:
        headers = {"Authorization": f"Bearer {broker.tokens.create('ann', ('shop',))}"}
        for key, text in TEXTS.items():
            _, said = await broker.ask(
                "PUT", f"/subscribers/ann/subscriptions/{key}", {"where": text}, 201, headers=headers
            )
            assert "region = 'EU'" in said["effective"][key]
