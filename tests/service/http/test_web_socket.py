"""The WebSocket: everything that can be said, in order, joined, slow and hostile."""

from __future__ import annotations

import asyncio
import json
import random
import time

import aiohttp
import pytest

from tamis.service.asyncapi import FROM_CLIENT
from tamis.service.http.web_socket import WebSocket
from tamis.service.settings import Duration, LimitSettings, Publishing, Role, Size

from .brokers import Talk, eventually, running


@eventually
async def test_publish_subscribe_deliver_and_done(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as one, broker.connect() as other:
        ann, shop = Talk(one), Talk(other)
        assert one.protocol == "tamis.v1"
        await ann.say({"hello": {"as": "ann", "durable": True}})
        welcome = (await ann.hear_until("welcome"))["welcome"]
        assert welcome["epoch"] == broker.core.epoch
        assert welcome["limits"]["batch_events"] == 1_000
        await ann.say({"subscribe": {"cheap": "price < 20"}, "id": 1})
        answer = await ann.hear_until("ok")
        assert (answer["ok"], answer["settled"]) == (1, True)
        await shop.say({"publish": [{"price": 12}, {"price": 30}, {"price": 13}], "id": 2, "wanted": True})
        published = await shop.hear_until("ok")
        assert published["wanted"] == [1, 0, 1]
        events = await ann.events(2)
        assert [event["at"] for event in events] == [published["positions"][0], published["positions"][2]]
        assert [event["for"] for event in events] == [["cheap"], ["cheap"]]
        await ann.say({"done_through": events[1]["at"], "id": 3})
        assert await ann.hear_until("ok") == {"ok": 3}
        _, facts = await broker.ask("GET", "/subscribers/ann", status=200)
        assert facts["unacknowledged"] == 0


@eventually
async def test_without_hello_a_connection_is_a_passing_subscriber(tmp_path):
    async with running(tmp_path) as broker:
        async with broker.connect() as socket:
            talk = Talk(socket)
            await talk.say({"subscribe": {"cheap": "price < 20"}, "id": 1}, {"publish": [{"price": 1}], "id": 2})
            assert (await talk.hear_until("ok"))["ok"] == 1
            assert (await talk.events(1))[0]["event"]["data"] == {"price": 1}
            await talk.say({"unsubscribe": ["cheap"], "id": 3})
            assert (await talk.hear_until("ok"))["ok"] in (2, 3)
        while (await broker.ask("GET", "/subscribers", status=200))[1]["subscribers"]:
            pass  # until the node has heard that the connection is gone


@eventually
async def test_who_comes_back_gets_what_it_has_not_done_marked_again(tmp_path):
    async with running(tmp_path) as broker:
        async with broker.connect() as socket:
            talk = Talk(socket)
            await talk.say({"hello": {"as": "ann"}}, {"subscribe": {"all": "TRUE"}, "id": 1})
            await talk.hear_until("ok")
            await broker.publish({"n": 1}, {"n": 2})
            events = await talk.events(2)
            await talk.say({"done": [events[0]["at"]], "id": 2})
            await talk.hear_until("ok")
        async with broker.connect("/subscribers/ann/events") as socket:
            talk = Talk(socket)
            await talk.say({"hello": {}})
            [event] = await talk.events(1)
            assert event["event"]["data"] == {"n": 2}
            assert event["again"] is True


@eventually
async def test_again_and_never_are_heard(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        talk = Talk(socket)
        await talk.say({"hello": {"as": "ann"}}, {"subscribe": {"all": "TRUE"}, "id": 1})
        await talk.hear_until("ok")
        await broker.publish({"n": 1}, {"n": 2})
        first, second = await talk.events(2)
        await talk.say({"again": [first["at"]]}, {"never": [second["at"]], "reason": "odd", "id": 2})
        [event] = await talk.events(1)
        assert (event["at"], event["again"]) == (first["at"], True)
        _, dead = await broker.ask("GET", "/subscribers/ann/dead", status=200)
        assert [letter["at"] for letter in dead["dead"]] == [second["at"]]


@eventually
async def test_events_of_the_past_come_first_and_caught_up_says_where_they_end(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        await broker.publish(*({"n": number} for number in range(50)))
        talk = Talk(socket)
        await talk.say({"subscribe": {"late": "n >= 40"}, "from": "first", "id": 1})
        events = await talk.events(10)
        assert [event["event"]["data"]["n"] for event in events] == list(range(40, 50))
        assert (await talk.hear_until("caught_up"))["caught_up"].startswith(broker.core.epoch)


@eventually
async def test_everything_that_waits_goes_out_in_few_frames(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        talk = Talk(socket)
        await talk.say({"subscribe": {"all": "TRUE"}, "id": 1})
        await talk.hear_until("ok")
        await broker.publish(*({"n": number} for number in range(200)))
        frames, events = 0, []
        while len(events) < 200:
            frame = json.loads((await socket.receive()).data)
            frames += 1
            for message in frame if isinstance(frame, list) else [frame]:
                events += message.get("events", [])
        assert [event["event"]["data"]["n"] for event in events] == list(range(200))
        assert frames < 100


@eventually
async def test_every_example_of_the_description_is_understood(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        await broker.publish({"price": 1}, {"price": 2})
        talk = Talk(socket)
        await talk.say(*json.loads(json.dumps([*FROM_CLIENT.values()]).replace("k3f9", broker.core.epoch)))
        expected = {message["id"] for message in FROM_CLIENT.values() if "id" in message}
        while expected:
            message = await talk.hear()
            assert "error" not in message, message
            expected.discard(message.get("ok"))


WRONG_FRAMES = [
        "", "nonsense", "{", "[]", "[[]]", "7", "null", '"hello"', "{}", '[{}, {"publish": 7}]', '{"publish": []}', '{"publish": [7]}',
        '{"publish": [{"specversion": "1.0"}]}', '{"subscribe": {"a": "price <"}, "id": 1}', '{"subscribe": {"a": 7}}',
        '{"done": ["nonsense"]}', '{"done": [7]}', '{"again": ["a7x2-1"]}', '{"unsubscribe": ["x"]}', '{"hello": {"credit": "x"}}',
        '{"hello": {"durable": true}}', '{"subscribe": {"a": "TRUE"}, "from": "yesterday"}', '{"id": 99999999999999999999999999}',
        "[" * 100_000, '{"publish": [' + "[" * 50_000, '{"in_s": 1e999}', '{"publish": [{"a": NaN}]}', '{"publish": ["\\ud800"]}',
    ]  # fmt: skip


@eventually
async def test_a_frame_that_is_wrong_is_answered_and_the_connection_goes_on(tmp_path):
    async with running(tmp_path) as broker:
        for frame in WRONG_FRAMES:
            async with broker.connect() as socket:
                talk = Talk(socket)
                await socket.send_str(frame)
                await talk.say({"publish": [{"price": 1}], "id": 77})
                errors = 0
                while (message := await talk.hear()).get("ok") != 77:
                    errors += "error" in message
                    if "error" in message:
                        assert message["error"]["status"] in (400, 403, 404, 409, 410, 413)
                        assert message["error"]["detail"]
                assert errors or frame == "[]", frame[:50]


@eventually
async def test_a_frame_of_a_million_empty_messages_is_refused(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        await socket.send_str("[" + ",".join(["{}"] * 500_000) + "]")
        message = await Talk(socket).hear()
        assert message["error"]["status"] == 413
        assert "500000 messages" in message["error"]["detail"]


@eventually
async def test_a_frame_beyond_the_limit_ends_the_connection_and_nothing_else(tmp_path):
    limits = LimitSettings(event_bytes=Size(1_000), batch_bytes=Size(2_000))
    async with running(tmp_path, limits=limits) as broker:
        async with broker.connect() as socket:
            await socket.send_bytes(b"x" * 500_000)
            frame = await socket.receive()
            assert frame.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
        await broker.publish({"price": 1})


@eventually
async def test_random_bytes_never_harm_anybody_else(tmp_path):
    chance = random.Random(1)
    seeds = [json.dumps(message) for message in FROM_CLIENT.values()]
    async with running(tmp_path) as broker, broker.connect() as socket:
        for _ in range(300):
            text = list(chance.choice(seeds))
            for _ in range(chance.randint(1, 6)):
                text[chance.randrange(len(text))] = chr(
                    chance.choice([0x22, 0x7B, 0x7D, 0x2C, 0x30, 0x5B, 0x100, 0x1F600])
                )
            await socket.send_str("".join(text))
        talk = Talk(socket)
        await talk.say({"publish": [{"price": 1}], "id": 424242})
        while (await talk.hear()).get("ok") != 424242:
            pass
        assert broker.core.is_ready


@eventually
async def test_who_does_not_read_is_not_read_either_and_others_go_on(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as deaf, broker.connect() as other:
        # More errors than any buffer holds: the broker stops reading this connection.
        async def shout():
            for _ in range(20_000):
                await deaf.send_str('{"nonsense"' + " " * 200)

        shouting = asyncio.ensure_future(shout())
        talk = Talk(other)
        await talk.say({"subscribe": {"all": "TRUE"}, "id": 1})
        await talk.hear_until("ok")
        await broker.publish({"n": 1})
        assert (await talk.events(1))[0]["event"]["data"] == {"n": 1}
        shouting.cancel()


@eventually
async def test_a_token_in_hello_says_who_it_is(tmp_path):
    roles = {"shop": Role(receive="TRUE", publish=Publishing())}
    async with running(tmp_path, roles=roles) as broker:
        secret = broker.tokens.create("ann", ("shop",))
        async with broker.connect() as socket:
            talk = Talk(socket)
            await talk.say({"hello": {"as": "ann", "token": secret}}, {"publish": [{"n": 1}], "id": 1})
            assert "welcome" in await talk.hear()
            assert (await talk.hear_until("ok"))["ok"] == 1
        for first in ({"publish": [{"n": 1}]}, {"hello": {"token": "wrong"}}, {"hello": {"as": "ann"}}):
            async with broker.connect() as socket:
                talk = Talk(socket)
                await talk.say(first)
                assert (await talk.hear())["error"]["status"] == 401
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await broker.session.ws_connect(f"{broker.url}/ws", headers={"Authorization": "Bearer wrong"})
        assert caught.value.status == 401


@eventually
async def test_who_never_says_who_it_is_is_cut_off(tmp_path):
    limits, roles = LimitSettings(header=Duration(0.2)), {"shop": Role(receive="TRUE")}
    async with running(tmp_path, roles=roles, limits=limits) as broker, broker.connect() as socket:
        problem = (await Talk(socket).hear())["error"]
        assert problem["status"] == 401 and "in time" in problem["detail"]
        farewell = await socket.receive()
        assert (farewell.type, farewell.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.POLICY_VIOLATION)


@eventually
async def test_welcome_comes_before_every_answer_however_slow_the_state_is(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        write = broker.service.state.write

        def slowly(changes, *, is_urgent):
            time.sleep(0.2)
            write(changes, is_urgent=is_urgent)

        broker.service.state.write = slowly
        talk = Talk(socket)
        await talk.say({"hello": {"as": "ann"}}, {"publish": [{"n": 1}], "id": 1})
        assert "welcome" in await talk.hear()
        assert (await talk.hear())["ok"] == 1


@eventually
async def test_goodbye_is_said_when_the_broker_stops(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        talk = Talk(socket)
        await talk.say({"hello": {"as": "ann"}})
        await talk.hear_until("welcome")
        stopping = asyncio.ensure_future(broker.server.stop())
        assert "retry_s" in await talk.hear_until("bye")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        await stopping


@eventually
async def test_a_quota_that_is_used_up_slows_a_connection_down_and_refuses_nothing(tmp_path):
    limits = LimitSettings(events_per_s=100.0, batch_events=10, burst=Duration(0.1))
    async with running(tmp_path, limits=limits) as broker, broker.connect() as socket:
        talk = Talk(socket)
        for number in range(5):
            await talk.say({"publish": [{"n": number}] * 10, "id": number})
        for number in range(5):
            message = await talk.hear()
            assert message["ok"] == number, message
        assert broker.core.head == 50


@eventually
async def test_subscriptions_beyond_a_quota_come_later_over_a_connection_and_are_refused_in_a_request(tmp_path):
    limits = LimitSettings(subscriptions_per_s=10.0, texts=2, burst=Duration(0.1))
    async with running(tmp_path, limits=limits) as broker, broker.connect() as socket:
        talk = Talk(socket)
        for number in range(4):
            await talk.say({"subscribe": {f"{number}a": "TRUE", f"{number}b": "TRUE"}, "id": number})
        for number in range(4):
            assert (await talk.hear_until("ok"))["ok"] == number
        path = "/subscribers/ann/subscriptions"
        statuses = [(await broker.ask("POST", path, {"a": "TRUE", "b": "TRUE"}))[0] for _ in range(2)]
        assert statuses[1] == 429


@eventually
async def test_one_connection_too_many_is_told_so_in_words(tmp_path):
    limits = LimitSettings(connections_each=1)
    async with running(tmp_path, limits=limits) as broker, broker.connect() as first, broker.connect() as second:
        talk, late = Talk(first), Talk(second)
        await talk.say({"publish": [{"n": 1}], "id": 1})
        await talk.hear_until("ok")
        assert (await late.hear())["error"]["status"] == 429
        farewell = await second.receive()
        assert (farewell.type, farewell.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.TRY_AGAIN_LATER)


@eventually
async def test_deliveries_are_written_at_once_or_by_the_task_that_waits_always_in_order(tmp_path, monkeypatch):
    ways = set()
    whole = WebSocket._written_at_once

    def written_at_once(socket, answers):
        is_written = whole(socket, answers)
        ways.add(is_written)
        return is_written

    monkeypatch.setattr(WebSocket, "_written_at_once", written_at_once)
    async with running(tmp_path) as broker, broker.connect() as one, broker.connect() as other:
        passing, durable = Talk(one), Talk(other)
        await durable.say({"hello": {"as": "ann"}})
        for talk in (passing, durable):
            await talk.say({"subscribe": {"all": "TRUE"}, "id": 1})
            await talk.hear_until("ok")
        numbers = range(200)
        for number in numbers:  # more than the credit that is left unsaid
            await broker.publish({"n": number})
        for talk in (passing, durable):
            events = await talk.events(len(numbers))
            assert [event["event"]["data"]["n"] for event in events] == list(numbers)
    assert ways == {True, False}
