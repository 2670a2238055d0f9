"""Subscribers over HTTP: settings, subscriptions, long poll, acknowledgements, dead letters, server-sent events."""

from __future__ import annotations

import asyncio
import json
import time

from tamis.service.settings import Publishing, Role
from tamis.service.starting_points import rfc3339

from .brokers import Talk, eventually, running


def prices(taken):
    return [item["event"]["data"]["price"] for item in taken["events"]]


@eventually
async def test_a_durable_subscriber_takes_its_events_and_says_done(tmp_path):
    async with running(tmp_path) as broker:
        _, subscribed = await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        assert subscribed["settled"] is True
        assert subscribed["effective"] == {"cheap": "price < 20"}
        await broker.publish({"price": 12}, {"price": 30}, {"price": 13})
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=200, data="price < 20")
        _, taken = await broker.ask("POST", "/subscribers/ann/take", {"most": 10, "wait_s": 5}, status=200)
        assert prices(taken) == [12, 13]
        assert taken["events"][0]["for"] == ["cheap"]
        await broker.ask("POST", "/subscribers/ann/done", {"done": [taken["events"][0]["at"]]}, status=204)
        await broker.ask("POST", "/subscribers/ann/done", {"done_through": taken["events"][1]["at"]}, status=204)
        _, facts = await broker.ask("GET", "/subscribers/ann", status=200)
        assert facts["unacknowledged"] == 0
        assert facts["done_through"] == taken["events"][1]["at"]
        _, taken = await broker.ask("POST", "/subscribers/ann/take", {"most": 10}, status=200)
        assert taken == {"events": []}


@eventually
async def test_a_long_poll_is_answered_when_an_event_comes(tmp_path):
    async with running(tmp_path) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        polling = asyncio.ensure_future(broker.ask("POST", "/subscribers/ann/take", {"wait_s": 60}, status=200))
        while True:  # until the poll is known to the node
            _, facts = await broker.ask("GET", "/subscribers/ann", status=200)
            if facts["state"] != "far":
                break
        await broker.publish({"price": 12})
        assert prices((await polling)[1]) == [12]


@eventually
async def test_settings_subscriptions_and_subscribers_come_and_go(tmp_path):
    async with running(tmp_path) as broker:
        settings = {"wait_s": 5.0, "attempts": 3, "ordered": True, "forget_after_s": 60.0, "backoff_s": 2.0}
        _, facts = await broker.ask("PUT", "/subscribers/ann", settings, status=200)
        assert facts["settings"] == settings
        assert facts["durable"] is True
        several = {"cheap": "price < 20", "new": {"exact": {"type": "offer"}}, "sql": {"where": "price>1"}}
        _, answer = await broker.ask("POST", "/subscribers/ann/subscriptions", several, status=201)
        assert answer["effective"] == {"cheap": "price < 20", "new": "type = 'offer'", "sql": "price > 1"}
        _, one = await broker.ask("GET", "/subscribers/ann/subscriptions/sql", status=200)
        assert one["text"] == "price>1"
        await broker.ask("DELETE", "/subscribers/ann/subscriptions/sql", status=204)
        await broker.ask("GET", "/subscribers/ann/subscriptions/sql", status=404)
        await broker.ask("PUT", "/subscribers/ann/subscriptions", {"only": "price > 5"}, status=201)
        _, all_facts = await broker.ask("GET", "/subscribers", status=200)
        assert [facts["name"] for facts in all_facts["subscribers"]] == ["ann"]
        assert list(all_facts["subscribers"][0]["subscriptions"]) == ["only"]
        await broker.ask("DELETE", "/subscribers/ann", status=204)
        await broker.ask("GET", "/subscribers/ann", status=404)


@eventually
async def test_a_leased_subscription_ends_unless_it_is_subscribed_to_again(tmp_path):
    async with running(tmp_path) as broker:
        cheap = "/subscribers/ann/subscriptions/cheap"
        await broker.ask("PUT", f"{cheap}?lease=1d", status=201, data="price < 20")
        await broker.ask("PUT", "/subscribers/ann/subscriptions/dear", status=201, data="price > 20")
        _, facts = await broker.ask("GET", "/subscribers/ann", status=200)
        assert facts["subscriptions"]["cheap"]["ends"] > facts_time()
        assert "ends" not in facts["subscriptions"]["dear"]
        await broker.ask("PUT", cheap, status=200, data="price < 20")
        _, facts = await broker.ask("GET", cheap, status=200)
        assert "ends" not in facts, "subscribed to again, without a lease"
        await broker.ask("PUT", f"{cheap}?lease=100ms", status=200, data="price < 20")
        while True:
            _, facts = await broker.ask("GET", "/subscribers/ann", status=200)
            if "cheap" not in facts["subscriptions"]:
                break
            await asyncio.sleep(0.02)
        await broker.publish({"price": 12}, {"price": 30})
        _, taken = await broker.ask("POST", "/subscribers/ann/take", {"most": 10, "wait_s": 5}, status=200)
        assert prices(taken) == [30]
        await broker.ask("GET", cheap, status=404)


@eventually
async def test_leases_survive_a_restart_and_end_where_nobody_runs(tmp_path):
    async with running(tmp_path) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/long?lease=1d", status=201, data="price < 20")
        await broker.ask("PUT", "/subscribers/ann/subscriptions/ended?lease=1ms", status=201, data="price > 20")
        await broker.ask("PUT", "/subscribers/ann/subscriptions/short?lease=300ms", status=201, data="price = 20")
    await asyncio.sleep(0.3)
    async with running(tmp_path) as broker:
        while True:
            _, facts = await broker.ask("GET", "/subscribers/ann", status=200)
            if set(facts["subscriptions"]) == {"long"}:
                break
            await asyncio.sleep(0.02)
        assert facts["subscriptions"]["long"]["ends"] > facts_time()


@eventually
async def test_a_lease_of_no_length_is_refused(tmp_path):
    async with running(tmp_path) as broker:
        for written in ("0s", "soon", "-1s", "1000000d"):
            path = f"/subscribers/ann/subscriptions/cheap?lease={written}"
            _, problem = await broker.ask("PUT", path, status=400, data="price < 20")
            assert "lease" in problem["detail"]
            assert problem["expected"]


def facts_time():
    """Return the time now as facts have it."""
    return rfc3339(time.time_ns() // 1_000)


@eventually
async def test_a_subscription_with_a_mistake_changes_nothing_and_shows_the_place(tmp_path):
    async with running(tmp_path) as broker:
        status, problem = await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", data="price <\n 20 AND")
        assert status == 400
        assert problem["where"] == {"line": 2, "column": 8}
        assert problem["caret"].endswith("^")
        status, problem = await broker.ask("POST", "/subscribers/ann/subscriptions", {"good": "TRUE", "bad": "price <"})
        assert status == 400
        assert "'bad'" in problem["about"]
        await broker.ask("GET", "/subscribers/ann", status=404)


@eventually
async def test_what_comes_never_is_a_dead_letter_until_it_comes_again(tmp_path):
    async with running(tmp_path) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        await broker.publish({"price": 12}, {"price": 13})
        _, taken = await broker.ask("POST", "/subscribers/ann/take", {"wait_s": 30}, status=200)
        if len(taken["events"]) == 1:
            _, more = await broker.ask("POST", "/subscribers/ann/take", {"wait_s": 30}, status=200)
            taken["events"] += more["events"]
        at = [item["at"] for item in taken["events"]]
        await broker.ask("POST", "/subscribers/ann/done", {"never": at, "reason": "odd"}, status=204)
        _, dead = await broker.ask("GET", "/subscribers/ann/dead", status=200)
        assert [(letter["at"], letter["reason"]) for letter in dead["dead"]] == [(at[0], "odd"), (at[1], "odd")]
        assert dead["count"] == 2
        missing = {"at": [f"{broker.core.epoch}-99"]}
        await broker.ask("POST", "/subscribers/ann/dead/again", missing, status=404)
        async with broker.connect("/subscribers/ann/events") as socket:
            talk = Talk(socket)
            await talk.say({"hello": {}})
            await talk.hear_until("welcome")
            _, answer = await broker.ask("POST", "/subscribers/ann/dead/again", {"at": [at[0]]}, status=200)
            assert answer == {"again": 1}
            assert prices({"events": await talk.events(1)}) == [12]
            await talk.say({"done": [at[0]], "id": 1})
            await talk.hear_until("ok")
        _, dead = await broker.ask("GET", "/subscribers/ann/dead", status=200)
        assert [letter["at"] for letter in dead["dead"]] == [at[1]]


@eventually
async def test_server_sent_events_of_a_durable_subscriber_count_as_done_when_it_comes_back(tmp_path):
    async with running(tmp_path) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        await broker.publish({"price": 1}, {"price": 2}, {"price": 3})

        async def read(count, **headers):
            events = []
            async with broker.session.get(f"{broker.url}/subscribers/ann/events", headers=headers) as stream:
                assert stream.content_type == "text/event-stream"
                async for line in stream.content:
                    if line.startswith(b"data: {"):
                        events.append(json.loads(line[6:]))
                        if len(events) == count:
                            return events
            return events

        events = await read(3)
        assert prices({"events": events}) == [1, 2, 3]
        again = await read(2, **{"Last-Event-ID": events[0]["at"]})
        assert prices({"events": again}) == [2, 3]
        assert all(item["again"] for item in again)


WRONG = [
    ("PUT", "/subscribers/ann", {"wait_s": -1}, 400),
    ("PUT", "/subscribers/ann", {"wait": 1}, 400),
    ("PUT", "/subscribers/tamis%2Fown", {}, 403),
    ("PUT", "/subscribers/ann/subscriptions/k", 7, 400),
    ("PUT", "/subscribers/ann/subscriptions/k", {"exact": {}}, 400),
    ("PUT", "/subscribers/ann/subscriptions/k", {"tamis": 1, "expression": {}}, 400),
    ("POST", "/subscribers/ann/subscriptions", [], 400),
    ("POST", "/subscribers/ann/take", {"most": 0}, 400),
    ("POST", "/subscribers/nobody/take", {}, 404),
    ("POST", "/subscribers/ann/done", {"done": ["nonsense"]}, 400),
    ("POST", "/subscribers/ann/done", {"done": ["a7x2-5"]}, 410),
    ("DELETE", "/subscribers/nobody", None, 404),
    ("PATCH", "/subscribers/ann", {}, 405),
]


@eventually
async def test_wrong_requests_are_problems(tmp_path):
    async with running(tmp_path) as broker:
        for method, path, content, status in WRONG:
            answered, problem = await broker.ask(method, path, content)
            assert answered == status, (method, path, problem)
            assert problem["status"] == status
            assert problem["title"]


@eventually
async def test_who_may_receive_only_a_part_never_sees_more(tmp_path):
    roles = {"eu": Role(receive="region = 'EU'"), "all": Role(receive="TRUE", publish=Publishing())}
    async with running(tmp_path, roles=roles) as broker:
        headers = {"Authorization": f"Bearer {broker.tokens.create('ann', ('eu',))}"}
        every = {"Authorization": f"Bearer {broker.tokens.create('bob', ('all',))}"}
        await broker.ask("GET", "/subscribers", status=401)
        await broker.ask("PUT", "/subscribers/bob", {}, status=403, headers=headers)
        _, subscribed = await broker.ask(
            "PUT", "/subscribers/ann/subscriptions/a", status=201, data="TRUE", headers=headers
        )
        assert "region = 'EU'" in subscribed["effective"]["a"]
        events = [{"region": region, "price": price} for price, region in enumerate(["EU", "US", "EU"])]
        await broker.ask("POST", "/events", events, status=200, headers=every)
        _, taken = await broker.ask("POST", "/subscribers/ann/take", {"wait_s": 30}, status=200, headers=headers)
        assert {item["event"]["data"]["region"] for item in taken["events"]} == {"EU"}
        for path in ("/events?from=first", "/events?from=first&where=price >= 0"):
            _, body = await broker.ask("GET", path, status=200, headers=headers)
            assert [json.loads(line)["event"]["data"]["price"] for line in body.splitlines()] == [0, 2]
        _, body = await broker.ask("GET", "/events", status=200, headers=every)
        assert len(body.splitlines()) == 3
        _, checked = await broker.ask("POST", "/check", status=200, data="price < 20", headers=headers)
        assert checked["effective"] == "price < 20 AND region = 'EU'"
        _, facts = await broker.ask("GET", "/subscribers", status=200, headers=every)
        assert facts["subscribers"] == [], "subscribers of others are not shown"
