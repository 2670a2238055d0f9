"""Publishing, history and listening over HTTP, on a real broker."""

from __future__ import annotations

import asyncio
import gc
import json
import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tamis.service.settings import LimitSettings, read_settings

from .brokers import Talk, eventually, running

OFFER = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "offer", "data": {"price": 12}}


async def lines(response):
    """Yield the JSON lines of an answer that goes on."""
    async for line in response.content:
        if line.strip():
            yield json.loads(line)


@eventually
async def test_three_commands_are_enough_to_see_an_event(tmp_path):
    async with running(tmp_path) as broker, broker.session.get(f"{broker.url}/listen?where=price<20") as listening:
        assert listening.status == 200
        assert listening.content_type == "application/x-ndjson"
        status, answer = await broker.ask("POST", "/events", {"price": 12})
        assert status == 200
        assert answer["events"] == 1
        assert answer["durable"] is True
        line = await anext(lines(listening))
        assert line["at"] == answer["position"]
        assert line["event"]["data"] == {"price": 12}


@eventually
async def test_an_event_that_is_sent_again_is_known(tmp_path):
    async with running(tmp_path) as broker:
        headers = {"Content-Type": "application/cloudevents+json"}
        first = await broker.ask("POST", "/events", status=200, data=json.dumps(OFFER), headers=headers)
        second = await broker.ask("POST", "/events", status=200, data=json.dumps(OFFER), headers=headers)
        assert (first[1]["known"], second[1]["known"]) == (0, 1)
        assert first[1]["position"] == second[1]["position"]
        for _ in range(2):
            key = {"Idempotency-Key": "k1"}
            _, answer = await broker.ask("POST", "/events", {"price": 1}, status=200, headers=key)
        assert answer["known"] == 1


@eventually
async def test_an_idempotency_key_that_is_too_long_is_refused_and_not_cut_off(tmp_path):
    async with running(tmp_path) as broker:
        for length, status in ((200, 200), (201, 400)):
            headers = {"Idempotency-Key": "k" * length}
            _, content = await broker.ask("POST", "/events", {"price": 1}, status=status, headers=headers)
        assert "Idempotency-Key" in content["detail"]
        assert broker.core.head == 1


@eventually
async def test_the_context_of_a_trace_goes_with_an_event(tmp_path):
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "rojo=00f067aa"}
    async with running(tmp_path) as broker:
        headers = {"Content-Type": "application/cloudevents+json"}
        await broker.ask("POST", "/events", status=200, data=json.dumps(OFFER | trace), headers=headers)
        context = {"ce-specversion": "1.0", "ce-id": "8", "ce-source": "/shop", "ce-type": "offer"}
        headers = {"Content-Type": "application/json"} | context | {f"ce-{name}": trace[name] for name in trace}
        await broker.ask("POST", "/events", status=200, data=b"{}", headers=headers)
        _, body = await broker.ask("GET", "/events?where=tracestate='rojo=00f067aa'", status=200)
        read = [json.loads(line)["event"] for line in body.splitlines()]
        assert [{name: event[name] for name in trace} for event in read] == [trace, trace]


@eventually
async def test_one_bad_event_of_a_batch_and_nothing_is_taken(tmp_path):
    async with running(tmp_path) as broker:
        headers = {"Content-Type": "application/cloudevents-batch+json"}
        batch = [OFFER, OFFER | {"id": "8", "type": ""}]
        status, problem = await broker.ask("POST", "/events", data=json.dumps(batch), headers=headers)
        assert status == 400
        assert problem["detail"].startswith("event 1: ")
        assert broker.core.head == 0


@eventually
async def test_a_publisher_learns_how_many_want_its_events(tmp_path):
    async with running(tmp_path) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        await broker.ask("PUT", "/subscribers/bob/subscriptions/any", status=201, data="price IS NOT NULL")
        _, answer = await broker.ask("POST", "/events?wanted=true", [{"price": 12}, {"price": 30}, {}], status=200)
        assert answer["wanted"] == [2, 1, 0]


@eventually
async def test_history_is_what_the_filter_wants_of_the_range(tmp_path):
    async with running(tmp_path) as broker:
        published = await broker.publish(*({"price": price} for price in range(200)))
        third, sixth = published["positions"][2], published["positions"][5]

        async def prices(options):
            _, body = await broker.ask("GET", f"/events?{options}", status=200)
            return [json.loads(line)["event"]["data"]["price"] for line in body.splitlines()]

        assert await prices("most=500") == list(range(200))
        assert await prices("") == list(range(200))
        assert await prices(f"from={third}&until={sixth}") == [2, 3, 4]
        assert await prices("where=price<20 AND price>=17") == [17, 18, 19]
        assert await prices("from=-1h&where=price>=0&most=3") == [0, 1, 2]
        assert await prices("from=-1h&until=-59m") == []
        assert await prices("from=now") == []
        assert await prices("from=2020-01-01T00:00:00Z&most=1") == [0]


@eventually
async def test_history_from_a_position_that_retention_has_taken_begins_with_a_gap(tmp_path):
    async with running(tmp_path) as broker:
        positions = (await broker.publish(*({"n": n} for n in range(3))))["positions"]
        broker.core.drop(4)
        while broker.core.first == 1:
            await asyncio.sleep(0.01)
        positions += (await broker.publish({"n": 3}, {"n": 4}))["positions"]

        async def read(begin):
            _, body = await broker.ask("GET", f"/events?from={begin}", status=200)
            return [json.loads(line) for line in body.splitlines()]

        for first in (0, 1):
            gap, *events = await read(positions[first])
            assert gap == {"gap": {"first": positions[first], "last": positions[2], "reason": "retention"}}
            assert [event["at"] for event in events] == positions[3:]
        for begin in ("first", "-1h", positions[3]):  # all that there is, from a time, and behind what is gone
            assert [event["at"] for event in await read(begin)] == positions[3:]
        gone = {"Accept": "text/event-stream"}
        until = f"{broker.url}/events?from={positions[0]}&until={positions[3]}"
        async with broker.session.get(until, headers=gone) as response:
            assert "event: gap" in await response.text()


@eventually
async def test_listening_from_the_past_goes_on_with_what_comes(tmp_path):
    async with running(tmp_path) as broker:
        await broker.publish({"price": 1}, {"price": 50}, {"price": 2})
        async with broker.session.get(f"{broker.url}/listen?where=price<20&from=first&most=3") as listening:
            seen, told = [], []
            async for line in lines(listening):
                if "caught_up" in line:
                    told.append(line)
                    await broker.publish({"price": 60}, {"price": 3})
                else:
                    seen.append(line["event"]["data"]["price"])
        assert seen == [1, 2, 3]
        assert len(told) == 1


@eventually
async def test_server_sent_events_resume_behind_the_last_one_that_was_seen(tmp_path):
    async with running(tmp_path) as broker:
        published = await broker.publish({"price": 1}, {"price": 2}, {"price": 3})
        headers = {"Accept": "text/event-stream", "Last-Event-ID": published["positions"][0]}
        async with broker.session.get(f"{broker.url}/events?where=price<20&most=2", headers=headers) as stream:
            assert stream.content_type == "text/event-stream"
            body = await stream.read()
        data = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
        assert [item["event"]["data"]["price"] for item in data] == [2, 3]
        assert b"id: " + data[-1]["at"].encode() in body


WRONG = [
    ("/listen?where=price <", 400, "caret"),
    ("/listen?where=price<20&from=yesterday", 400, "expected"),
    ("/listen?from=a7x2-5", 410, "expected"),
    ("/events?most=0", 400, "expected"),
    ("/events?until=nonsense", 400, "expected"),
    ("/events?where=foo(", 400, "caret"),
    ("/nothing", 404, "expected"),
]


@eventually
async def test_wrong_questions_are_answered_with_a_problem(tmp_path):
    async with running(tmp_path) as broker:
        for path, status, member in WRONG:
            async with broker.session.get(broker.url + path) as response:
                assert response.status == status, path
                assert response.content_type == "application/problem+json"
                problem = await response.json(content_type=None)
                assert problem["status"] == status
                assert problem[member]


@eventually
async def test_the_log_survives_and_positions_stay(tmp_path):
    async with running(tmp_path) as broker:
        published = await broker.publish({"price": 1})
    async with running(tmp_path) as broker:
        _, body = await broker.ask("GET", "/events", status=200)
        assert json.loads(body)["at"] == published["position"]


@eventually
async def test_a_listener_that_does_not_read_loses_events_and_is_told_which(tmp_path):
    async with running(tmp_path) as broker:
        host, port = broker.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=2**16)
        writer.write(b"GET /listen?where=n%3E=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        async with broker.session.get(f"{broker.url}/listen?where=last&most=1") as other:
            for batch in range(12):  # 24 MB: more than the sockets and the queue hold
                await broker.publish(*({"n": batch * 1_000 + number, "text": "x" * 2_000} for number in range(1_000)))
            await broker.publish({"n": 12_000, "last": True})
            assert (await anext(lines(other)))["event"]["data"]["n"] == 12_000, "others get theirs meanwhile"
        numbers, gaps = [], []
        while not numbers or numbers[-1] != 12_000:
            size = int(await reader.readline(), 16)
            for line in (await reader.readexactly(size + 2)).splitlines():
                if line.strip():
                    message = json.loads(line)
                    gaps += [message["gap"]] if "gap" in message else []
                    numbers += [message["event"]["data"]["n"]] if "event" in message else []
        writer.close()
        assert numbers == sorted(set(numbers))
        assert gaps
        assert {gap["reason"] for gap in gaps} == {"slow"}
        positions = [range(int(gap["first"].split("-")[1]), int(gap["last"].split("-")[1]) + 1) for gap in gaps]
        missing = set(range(12_001)) - set(numbers)
        assert all(any(number + 1 in lost for lost in positions) for number in missing), "whatever is missing was told"


@pytest.mark.parametrize(
    ("data", "sync", "is_durable"),
    [("data", "always", True), ("data", "0.2s", False), ("data", "never", False), (":memory:", "always", False)],
)
def test_an_answer_says_durable_only_if_the_events_are_on_disk(tmp_path, data, sync, is_durable):
    @eventually
    async def check():
        log = read_settings(overrides={"log.sync": sync}).log
        async with running(data if data == ":memory:" else tmp_path, log=log) as broker:
            assert (await broker.publish({"n": 1}))["durable"] is is_durable
            assert (await broker.publish())["durable"] is is_durable, "also of no events"
            async with broker.connect() as socket:
                await socket.send_json({"publish": [{"n": 2}], "id": 1})
                assert (await socket.receive_json())["durable"] is is_durable

    check()


@eventually
async def test_a_batch_of_questions_is_answered_as_each_of_them_and_nothing_is_published(tmp_path):
    async with running(tmp_path) as broker:
        for number in range(6):
            name, text = f"s{number % 3}", f"n % {number + 2} = 0 OR colour = 'c{number}'"
            await broker.ask("PUT", f"/subscribers/{name}/subscriptions/k{number}", status=201, data=text)
        questions = [{"n": n} for n in range(40)] + [{}, {"n": None}, {"colour": "c3"}, {"n": "two"}, {"n": 2.0}]
        _, together = await broker.ask("POST", "/match", questions, status=200)
        for question, matches in zip(questions, together["matches"], strict=True):
            _, alone = await broker.ask("POST", "/match", question, status=200)
            assert alone["matches"] == matches
        assert together["matches"][12], "something is wanted"
        assert together["matches"][40] == []
        assert broker.core.head == 0


@eventually
async def test_figures_say_how_events_came_and_why_others_did_not(tmp_path):
    async with running(tmp_path, schema={"n": "bigint"}) as broker:
        await broker.publish({"n": 1}, {"n": 2})
        await broker.ask("POST", "/events", [{"n": "many"}], status=422)
        await broker.ask("POST", "/events", data=b"{", headers={"Content-Type": "application/json"}, status=400)
        gc.collect()

        async def figures():
            _, text = await broker.ask("GET", "/metrics", status=200)
            families = text_string_to_metric_families(text.decode())
            return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}

        while (read := await figures()).get(("tamis_events_taken_total", "client")) != 2:
            await asyncio.sleep(0.05)
        assert read["tamis_events_taken_total", "link"] == 0
        refused = {key[1]: count for key, count in read.items() if key[0] == "tamis_events_refused_total"}
        assert refused == {"Misfit": 1, "BadRequest": 1}
        assert read["tamis_gc_seconds_count",] >= 1


@eventually
async def test_a_full_inbox_refuses_requests_for_a_second_and_holds_web_sockets_up(tmp_path):
    async with running(tmp_path, limits=LimitSettings(inbox_events=2, batch_events=2)) as broker:
        begun, ends = threading.Event(), threading.Event()

        def stall(now):
            begun.set()
            ends.wait(60)
            return []

        broker.core._post(stall)
        while not begun.is_set():
            await asyncio.sleep(0.01)
        first = asyncio.ensure_future(broker.publish({"n": 1}, {"n": 2}))
        while not broker.core.inbox.publication_count:
            await asyncio.sleep(0.01)
        async with broker.session.post(f"{broker.url}/events", json=[{"n": 3}, {"n": 4}]) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert "limits.inbox_events" in (await response.json(content_type=None))["expected"]
        assert broker.core.figures.events_refused == {"Overloaded": 2}
        async with broker.connect() as socket:
            talk = Talk(socket)
            await talk.say({"publish": [{"n": 5}], "id": 1})
            await talk.say({"publish": [{"n": 6}], "id": 2})
            await asyncio.sleep(0.1)
            assert broker.core.inbox.publication_count == 1
            ends.set()
            assert [(await talk.hear())["ok"] for _ in range(2)] == [1, 2]
        assert (await first)["events"] == 2
        assert broker.core.figures.events_refused == {"Overloaded": 2}
        assert broker.core.head == 4


@eventually
async def test_a_position_of_another_log_is_refused_and_told_apart(tmp_path):
    async with running(tmp_path) as broker:
        await broker.publish({"price": 1})
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE", status=201)
        headers = {"Accept": "text/event-stream", "Last-Event-ID": "a7x2-1"}
        for path in ("/listen", "/subscribers/ann/events", "/events"):
            _, problem = await broker.ask("GET", path, status=410, headers=headers)
            assert broker.core.epoch in problem["expected"]
        for message in ({"done": ["a7x2-1"]}, {"done_through": "a7x2-1"}, {"again": ["a7x2-1"]}):
            await broker.ask("POST", "/subscribers/ann/done", message, status=410)
