"""What a post looks like: structured, binary, or several events in a batch."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.messages import Delivery
from tamis.service.positions import Position
from tamis.service.state import State
from tamis.service.tellings import Told
from tamis.service.webhooks import sending
from tamis.service.webhooks.forms import batches, written

from .http.brokers import eventually, running
from .test_webhooks import HERE, hooked, receiving

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(sending, "wait_s", lambda attempt, retry_after, chance: 0.01)
    monkeypatch.setattr(sending, "RETRY_S", 0.05)


def delivery(event, position=1, told=()):
    return Delivery(Position.of(position), ("cheap",), json.dumps(event).encode(), told=told)


def event(**members):
    return {"specversion": "1.0", "id": "7", "source": "/shop", "type": "offer", **members}


@pytest.mark.parametrize(
    ("members", "kind", "body"),
    [
        ({"data": {"price": 12}}, "application/json", b'{"price":12}'),
        ({"data": "text"}, "application/json", b'"text"'),
        ({"data": "text", "datacontenttype": "text/plain; charset=utf-8"}, "text/plain; charset=utf-8", b"text"),
        ({"data": "text", "datacontenttype": "application/vnd.shop+json"}, "application/vnd.shop+json", b'"text"'),
        ({"data": {"a": 1}, "datacontenttype": "text/plain"}, "text/plain", b'{"a":1}'),
        (
            {"data_base64": base64.b64encode(b"\x00\xff").decode(), "datacontenttype": "image/png"},
            "image/png",
            b"\x00\xff",
        ),
        ({"data": None}, "application/json", b"null"),
        ({}, None, b""),
    ],
)
def test_in_binary_mode_data_is_the_body_and_the_rest_stands_in_headers(members, kind, body):
    headers, found = written("binary", [delivery(event(subject="a b", flag=True, **members))])
    assert (headers.get("Content-Type"), found) == (kind, body)
    assert headers["ce-id"] == "7" and headers["ce-specversion"] == "1.0"
    assert (headers["ce-subject"], headers["ce-flag"]) == ("a%20b", "true")


def test_values_of_headers_are_escaped_as_the_specification_has_it():
    headers, _ = written("binary", [delivery(event(subject='Euro € 😀 100% "x"'))])
    assert headers["ce-subject"] == "Euro%20%E2%82%AC%20%F0%9F%98%80%20100%25%20%22x%22"


def test_a_trace_goes_on_in_headers_unless_it_would_break_them():
    for mode in ("structured", "binary"):
        headers, _ = written(mode, [delivery(event(traceparent=TRACE, tracestate="shop=1"))])
        assert (headers["traceparent"], headers["tracestate"]) == (TRACE, "shop=1")
        for wrong in ("a\r\nx: y", "é", "", "x" * 600):
            headers, _ = written(mode, [delivery(event(traceparent=wrong))])
            assert "traceparent" not in headers
    headers, body = written("structured", [delivery(event(data=1))])
    assert headers == {"Content-Type": "application/cloudevents+json"} and json.loads(body) == event(data=1)


def test_a_batch_is_a_list_of_events():
    events = [event(id=str(number)) for number in range(3)]
    headers, body = written("batch", [delivery(each, number) for number, each in enumerate(events)])
    assert headers == {"Content-Type": "application/cloudevents-batch+json"}
    assert json.loads(body) == events


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 400_000)), max_size=12), st.integers(1, 5))
def test_batches_are_all_events_in_order_within_their_limits_and_never_mix_what_failed_before(drawn, most):
    items = [Delivery(number, (), b"x" * size) for number, (_, size) in enumerate(drawn)]
    kept = {number: name for number, (name, _) in enumerate(drawn) if name}
    found = list(batches(items, most, kept))
    assert [item for batch in found for item in batch] == items
    for batch in found:
        assert 0 < len(batch) <= most
        assert len(batch) == 1 or sum(len(item.body) for item in batch) <= 1_000_000
        assert len({kept.get(item.position) for item in batch}) == 1


@eventually
async def test_a_batch_is_signed_and_comes_whole_and_under_one_id_until_it_is_taken(tmp_path):
    standard = pytest.importorskip("standardwebhooks")
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        await broker.publish(*({"price": number} for number in range(25)))
        receiver.answers = [500, 500, 204, 503]
        body = {"url": receiver.url, "mode": "batch", "most": 8}
        _, facts = await broker.ask("PUT", "/subscribers/ann/webhook", body, 201)
        assert facts["mode"] == "batch"
        prices = {}
        while sorted(price for batch in prices.values() for price in batch) != sorted(range(20)):
            await asyncio.sleep(0.02)
            taken = [post for number, post in enumerate(receiver.posts) if number not in (0, 1, 3)]
            prices = {
                headers["webhook-id"]: [each["data"]["price"] for each in json.loads(content)]
                for headers, content in taken
            }
        verifier, by_id = standard.Webhook(facts["secret"]), {}
        for headers, content in receiver.posts:
            verifier.verify(content, headers)
            assert headers["Content-Type"] == "application/cloudevents-batch+json"
            assert 1 <= len(json.loads(content)) <= 8
            by_id.setdefault(headers["webhook-id"], set()).add(content)
        assert all(len(contents) == 1 for contents in by_id.values()), "one id is one content"
        assert max(receiver.ids.count(each) for each in by_id) >= 2, "what failed came under its id again"
        _, ann = await broker.ask("GET", "/subscribers/ann", status=200)
        assert ann["dead"] == 0


@eventually
async def test_a_batch_that_is_never_taken_is_dead_letters_one_by_one(tmp_path):
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        await hooked(broker, receiver, mode="batch", most=10, attempts=2)
        receiver.answers = [400] * 40
        await broker.publish({"price": 1}, {"price": 2}, {"price": 3})
        while (await broker.ask("GET", "/subscribers/ann", status=200))[1]["dead"] < 3:
            await asyncio.sleep(0.02)
        _, dead = await broker.ask("GET", "/subscribers/ann/dead", status=200)
        assert len(dead["dead"] if isinstance(dead, dict) else dead) == 3


@eventually
async def test_a_binary_post_is_what_another_broker_takes_for_the_same_event(tmp_path):
    async with running(tmp_path / "two") as second, running(tmp_path / "one", webhooks=HERE) as first:
        await first.ask("PUT", "/subscribers/ann/subscriptions/all", status=201, data="TRUE")
        url = f"{second.url}/events"
        await first.ask("PUT", "/subscribers/ann/webhook", {"url": url, "mode": "binary"}, 201)
        events = [
            event(subject='für % "x" 😀', data={"price": 1.5}, traceparent=TRACE, time="2026-01-01T00:00:00Z"),
            event(id="8", data="plain", datacontenttype="text/plain"),
            event(id="9", data_base64="AP8=", datacontenttype="image/png"),
            event(id="10", data=[1, None, "x"]),
        ]
        headers = {"Content-Type": "application/cloudevents-batch+json"}
        await first.ask("POST", "/events", events, 200, headers=headers)
        while second.core.head < len(events):
            await asyncio.sleep(0.02)
        _, lines = await second.ask("GET", "/events", status=200)
        found = [json.loads(line)["event"] for line in lines.splitlines()]
        for expected, got in zip(events, found, strict=True):
            assert got.items() >= {name: value for name, value in expected.items() if name != "datacontenttype"}.items()


@eventually
async def test_the_mode_survives_a_restart_and_wrong_ones_are_refused(tmp_path):
    async with receiving() as receiver:
        async with running(tmp_path, webhooks=HERE) as broker:
            await hooked(broker, receiver, mode="batch", most=7)
            for wrong in ({"mode": "xml"}, {"most": 0}, {"most": 1_001}, {"most": "8"}):
                await broker.ask("PUT", "/subscribers/ann/webhook", {"url": receiver.url, **wrong}, 400)
        async with running(tmp_path, webhooks=HERE) as broker:
            _, facts = await broker.ask("GET", "/subscribers/ann/webhook", status=200)
            assert facts["mode"] == "batch"
            assert broker.service.webhooks.kept["ann"].most == 7


@eventually
async def test_the_list_of_subscribers_says_how_each_webhook_fares(tmp_path):
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        await hooked(broker, receiver)
        await broker.ask("PUT", "/subscribers/bob/subscriptions/cheap", status=201, data="price < 20")
        receiver.answers = [500] * 10_000
        await broker.publish({"price": 12})
        await receiver.count(1)
        found = {}
        while found.get("ann", {}).get("state") != "failing":
            await asyncio.sleep(0.02)
            _, content = await broker.ask("GET", "/subscribers", status=200)
            found = {each["name"]: each.get("webhook") for each in content["subscribers"]}
        assert "500" in found["ann"]["reason"]
        assert found["bob"] is None


def test_a_webhook_of_the_format_before_posts_as_it_did(tmp_path):
    path = tmp_path / "state.db"
    State(path, "k3f9", "north").close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE webhooks")
        connection.execute("DROP TABLE resumes")  # which came later
        connection.execute("ALTER TABLE dead DROP COLUMN told")
        connection.execute(
            "CREATE TABLE webhooks (subscriber TEXT PRIMARY KEY, url TEXT NOT NULL, secrets BLOB NOT NULL, made_by TEXT "
            "NOT NULL, roles BLOB NOT NULL, is_admin INTEGER NOT NULL) WITHOUT ROWID"
        )
        connection.execute("INSERT INTO webhooks VALUES ('ann', 'https://x.example/', x'90', 'ann', x'90', 0)")
        connection.execute("UPDATE meta SET value = '3' WHERE name = 'format'")
    state = State(path)
    (kept,) = state.load().webhooks
    assert (kept.mode, kept.most) == ("structured", 1)
    state.close()


TOLD = (
    Told("high", "change", 1_500_000, (2,), change=True),
    Told("pair", "sequence", 1_500_000, (1, 2), (b'{"id":"6"}', b'{"id":"7"}')),
)
WIRE = [
    {"key": "high", "kind": "change", "at": "1970-01-01T00:00:01.500000Z", "change": True},
    {
        "key": "pair", "kind": "sequence", "at": "1970-01-01T00:00:01.500000Z", "run": ["k3f9-1", "k3f9-2"],
        "events": [{"id": "6"}, {"id": "7"}],
    },
]  # fmt: skip


@pytest.mark.parametrize("mode", ["structured", "batch", "binary"])
def test_what_is_told_is_an_attribute_of_the_event_that_is_posted(mode):
    headers, body = written(mode, [delivery(event(data={"price": 1.0}), 2, TOLD)], "k3f9")
    if mode == "binary":
        told = json.loads(unquote(headers["ce-tamistold"]))
        assert told == [WIRE[0], {name: value for name, value in WIRE[1].items() if name != "events"}]
        assert body == b'{"price":1.0}'
        return
    posted = json.loads(body)
    posted = posted[0] if mode == "batch" else posted
    assert json.loads(posted.pop("tamistold")) == WIRE
    assert posted == event(data={"price": 1.0})


@pytest.mark.parametrize("told", [(), TOLD])
@pytest.mark.parametrize("mode", ["structured", "batch", "binary"])
def test_a_publisher_cannot_pretend_that_something_was_told(mode, told):
    forged = event(tamistold="[]", data={"tamistold": 1})
    headers, body = written(mode, [delivery(forged, 2, told)], "k3f9")
    if mode == "binary":
        assert ("ce-tamistold" in headers) == bool(told)
        assert body == b'{"tamistold":1}'
        return
    posted = json.loads(body)
    posted = posted[0] if mode == "batch" else posted
    assert posted["data"] == {"tamistold": 1}
    assert json.loads(posted.get("tamistold", "null")) == (WIRE if told else None)


@eventually
async def test_a_webhook_is_told_why_also_by_a_dead_letter_that_is_delivered_again(tmp_path):
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        await hooked(broker, receiver, attempts=1)
        await broker.ask("DELETE", "/subscribers/ann/subscriptions/cheap")
        await broker.ask("PUT", "/subscribers/ann/subscriptions/high", status=201, data="CHANGE OF price > 20")
        pair = "SEQUENCE price > 20 THEN price < 10 WITHIN 1 HOUR"
        await broker.ask("PUT", "/subscribers/ann/subscriptions/pair", status=201, data=pair)
        receiver.answers = [204, 500]
        await broker.publish({"price": 30})
        await broker.publish({"price": 5})
        await receiver.count(2)
        (first, second) = [json.loads(body) for _, body in receiver.posts]
        (told,) = json.loads(first["tamistold"])
        assert (told["key"], told["kind"], told["change"]) == ("high", "change", True)
        told = json.loads(second["tamistold"])
        assert [(each["key"], each.get("change")) for each in told] == [("high", False), ("pair", None)]
        assert [each["data"]["price"] for each in told[1]["events"]] == [30, 5]
        letters = []
        while not letters:
            _, page = await broker.ask("GET", "/subscribers/ann/dead")
            letters = page["dead"]
        assert letters[0]["told"] == told
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        await broker.ask("PUT", "/subscribers/ann/webhook", {"url": receiver.url})
        _, page = await broker.ask("GET", "/subscribers/ann/dead")
        assert page["dead"] == letters
        await broker.ask("POST", "/subscribers/ann/dead/again", {}, status=200)
        await receiver.count(1)
        assert json.loads(json.loads(receiver.posts[0][1])["tamistold"]) == told
