"""The door: time-outs, limits, origins, hosts, TLS, and what hostile requests do (nothing)."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import ssl

import aiohttp
import pytest
import trustme

from tamis.service.http.server import HttpServer
from tamis.service.settings import Differences, Duration, LimitSettings, Listener, Publishing, Role, Settings, Size

from .brokers import Talk, eventually, running


async def raw(broker, data, *, ends=True):
    """Send bytes on a connection of their own; return all that comes back until it is closed."""
    host, port = broker.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(data)
        await writer.drain()
        if ends:
            writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


@eventually
async def test_a_client_that_never_finishes_its_request_is_cut_off(tmp_path):
    async with running(tmp_path, limits=LimitSettings(header=Duration(0.2))) as broker:
        slow = [raw(broker, b"GET /live HTTP/1.1\r\nHost: localhost\r\nX: ", ends=False) for _ in range(20)]
        assert await asyncio.gather(*slow) == [b""] * 20
        await broker.ask("GET", "/live", status=200)


@eventually
async def test_a_connection_that_has_asked_may_be_silent(tmp_path):
    async with running(tmp_path, limits=LimitSettings(header=Duration(0.5))) as broker, broker.connect() as socket:
        await asyncio.sleep(0.7)
        talk = Talk(socket)
        await talk.say({"publish": [{"n": 1}], "id": 1})
        assert (await talk.hear_until("ok"))["ok"] == 1


@pytest.mark.parametrize("begun", [b"", b"GET /live HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_connection_that_is_idle_between_requests_is_closed(tmp_path, begun):
    @eventually
    async def check():
        async with running(tmp_path, limits=LimitSettings(idle=Duration(0.3))) as broker:
            answered = await raw(broker, b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n" + begun, ends=False)
            assert answered.startswith(b"HTTP/1.1 200") and answered.count(b"HTTP/1.1") == 1

    check()


@eventually
async def test_a_web_socket_that_does_not_answer_is_closed(tmp_path):
    async with (
        running(tmp_path, limits=LimitSettings(idle=Duration(0.4))) as broker,
        broker.connect(autoping=False) as socket,
    ):
        await Talk(socket).say({"hello": {}})
        frames = [frame.type async for frame in socket]
        assert aiohttp.WSMsgType.PING in frames
        while broker.server.front.connections.count:
            await asyncio.sleep(0.01)


@eventually
async def test_beyond_the_limit_of_connections_there_is_a_clear_answer(tmp_path):
    async with running(tmp_path, limits=LimitSettings(connections=3, connections_each=2)) as broker:
        async with broker.connect() as one, broker.connect() as two:
            for socket in (one, two):
                await Talk(socket).say({"hello": {}})
                await Talk(socket).hear()
            async with broker.session.get(f"{broker.url}/listen") as response:
                assert response.status == 429
                assert "connections_each" in (await response.json(content_type=None))["expected"]
                assert int(response.headers["Retry-After"]) >= 1
        host, port = broker.url.removeprefix("http://").split(":")
        held = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        while not (answered := await raw(broker, b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")).startswith(
            b"HTTP/1.1 503"
        ):
            held.append(await asyncio.open_connection(host, int(port)))
        problem = json.loads(answered.partition(b"\r\n\r\n")[2])
        assert (problem["status"], problem["retry_s"]) == (503, 5)
        assert "limits.connections" in problem["expected"]
        for _, writer in held:
            writer.close()


@eventually
async def test_every_limit_that_is_exceeded_is_named(tmp_path):
    limits = LimitSettings(
        event_bytes=Size(300), batch_events=2, batch_bytes=Size(2_000), depth=3, attributes=12, subscriptions=3,
        subscribers=2, texts=2, text_length=40,
    )  # fmt: skip
    two = {"a": "TRUE", "b": "TRUE"}
    cases = [
        ("event_bytes", "POST", "/events", {"a": "x" * 400}),
        ("batch_events", "POST", "/events", [{}, {}, {}]),
        ("batch_bytes", "POST", "/events", {"a": "x" * 4_000}),
        ("depth", "POST", "/events", {"a": [[[1]]]}),
        ("attributes", "POST", "/events", {f"a{number}": 1 for number in range(12)}),
        ("texts", "POST", "/subscribers/ann/subscriptions", two | {"c": "TRUE"}),
        ("text_length", "POST", "/subscribers/ann/subscriptions", {"a": "TRUE OR " * 5 + "TRUE"}),
        ("subscriptions", "POST", "/subscribers/ann/subscriptions", {"c": "TRUE", "d": "TRUE"}),
        ("subscribers", "PUT", "/subscribers/cid", {}),
    ]
    async with running(tmp_path, limits=limits) as broker:
        await broker.ask("POST", "/subscribers/ann/subscriptions", two, status=201)
        await broker.ask("PUT", "/subscribers/bob", {}, status=200)
        for name, method, path, content in cases:
            _, problem = await broker.ask(method, path, content, status=413)
            assert name in problem["detail"] + problem.get("expected", ""), problem
        assert broker.core.head == 0
        assert len((await broker.ask("GET", "/subscribers/ann"))[1]["subscriptions"]) == 2


@eventually
async def test_requests_beyond_a_quota_are_told_when_to_come_back(tmp_path):
    limits = LimitSettings(events_per_s=1.0, batch_events=2, burst=Duration(1))
    async with running(tmp_path, limits=limits) as broker:
        await broker.ask("POST", "/events", [{}, {}], status=200)
        async with broker.session.post(f"{broker.url}/events", json={}) as response:
            assert response.status == 429
            assert int(response.headers["Retry-After"]) >= 1
            assert (await response.json(content_type=None))["retry_s"] > 0
        await broker.ask("POST", "/events", [{}, {}], status=429)
        assert broker.core.figures.events_refused == {"TooMany": 1 + 2}


@eventually
async def test_who_reads_the_past_again_and_again_is_told_when_to_come_back(tmp_path):
    async with running(tmp_path, limits=LimitSettings(subscriptions_per_s=1.0, texts=2, burst=Duration(1))) as broker:
        for _ in range(2):
            await broker.ask("GET", "/events?where=price%3C0", status=200)
        async with broker.session.get(f"{broker.url}/events?where=price%3C0") as response:
            assert response.status == 429
            assert int(response.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://page.example"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:7410", "Origin": "http://evil.example:7410"}, 403),
        ({"Host": "localhost:7410", "Origin": "http://localhost:7410"}, 200),
        ({"Host": "[::1]:7410"}, 200),
    ],
)
def test_pages_of_other_origins_and_other_names_of_the_host_are_refused(tmp_path, headers, status):
    @eventually
    async def check():
        async with running(tmp_path, origins=("https://page.example",)) as broker:
            async with broker.session.post(f"{broker.url}/events", json={}, headers=headers) as response:
                assert response.status == status
                is_page = status == 200 and "Origin" in headers
                assert response.headers.get("Access-Control-Allow-Origin") == (headers["Origin"] if is_page else None)
            if status == 403:
                with pytest.raises(aiohttp.WSServerHandshakeError):
                    await broker.session.ws_connect(f"{broker.url}/ws", headers=headers)

    check()


@eventually
async def test_a_browser_that_asks_first_is_told_what_a_listed_page_may_do(tmp_path):
    async with running(tmp_path, origins=("https://page.example",)) as broker:
        for origin, status in (("https://page.example", 204), ("https://evil.example", 403)):
            headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            async with broker.session.options(f"{broker.url}/events", headers=headers) as response:
                assert response.status == status
                assert ("POST" in response.headers.get("Access-Control-Allow-Methods", "")) is (status == 204)


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_what_a_form_on_any_page_can_send_publishes_nothing(tmp_path, content_type):
    @eventually
    async def check():
        async with running(tmp_path) as broker:
            headers = {"Content-Type": content_type}
            await broker.ask("POST", "/events", status=415, data=b'{"price": 1}', headers=headers)
            assert broker.core.head == 0

    check()


@eventually
async def test_every_answer_has_the_headers_that_keep_browsers_from_guessing(tmp_path):
    async with running(tmp_path) as broker:
        for path in ("/", "/live", "/nothing", "/events", "/metrics"):
            async with broker.session.get(broker.url + path) as response:
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.headers["Cache-Control"] == "no-store"
                assert response.headers["Content-Security-Policy"] == "default-src 'self'"
                assert response.headers["Server"] == "tamis"


@eventually
async def test_a_small_body_that_unpacks_to_a_large_one_is_refused(tmp_path):
    limits = LimitSettings(event_bytes=Size(10_000), batch_bytes=Size(10_000))
    async with running(tmp_path, limits=limits) as broker:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        bomb = gzip.compress(b'{"a":"' + b"x" * 50_000_000 + b'"}')
        async with broker.session.post(f"{broker.url}/events", data=bomb, headers=headers) as response:
            assert response.status == 413
        small = gzip.compress(b'{"a":1}')
        await broker.ask("POST", "/events", status=200, data=small, headers=headers)
        headers["Content-Encoding"] = "gzip"
        async with broker.session.post(f"{broker.url}/events", data=b"no gzip", headers=headers) as response:
            assert response.status == 400


@eventually
async def test_a_body_that_stops_coming_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.service.http.front.SLOWEST_BYTES_PER_S", 1e12)
    async with running(tmp_path, limits=LimitSettings(header=Duration(0.2))) as broker:
        request = (
            b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
        )
        host, port = broker.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        writer.close()


BROKEN = [
        b"\x00" * 1_000, b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100_000, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 10_000 + b"\r\n",
        b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZZ\r\n",
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
        b"GET /%ff%00/../.. HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /events?from=%00&most=%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]  # fmt: skip


@eventually
async def test_broken_requests_harm_nobody(tmp_path):
    async with running(tmp_path) as broker:
        for data in BROKEN:
            answered = await raw(broker, data)
            assert b" 200 " not in answered.split(b"\r\n")[0], data[:50]
            assert b"Traceback" not in answered
            await broker.publish({"n": 1})


@pytest.mark.parametrize("path", ["/live", "/nowhere"])
def test_who_expects_something_else_than_to_go_on_is_told_so(tmp_path, path):
    @eventually
    async def check():
        async with running(tmp_path) as broker:
            for expected, status in ((b"100-c\xf3ntinue", b"417"), (b"200-ok", b"417"), (b"100-Continue", b"100")):
                head = b"GET %b HTTP/1.1\r\nHost: localhost\r\nExpect: %b\r\nConnection: close\r\n\r\n" % (
                    path.encode(),
                    expected,
                )
                answered = await raw(broker, head, ends=False)
                assert answered.startswith(b"HTTP/1.1 " + status), answered
                assert status == b"100" or b'"expected":"100-continue"' in answered

    check()


@eventually
async def test_random_requests_are_answered_and_never_with_our_own_mistake(tmp_path):
    chance = random.Random(2)
    paths = [
        "/events",
        "/listen",
        "/subscribers/a",
        "/subscribers/a/subscriptions/k",
        "/subscribers/a/take",
        "/subscribers/a/done",
        "/check",
        "/match",
        "/subscribers/a/dead/again",
    ]
    contents = [
        None,
        7,
        "price <",
        [],
        {},
        {"where": "price < 20"},
        {"most": -1},
        {"done": [None]},
        {"tamis": 1},
        [{"specversion": 1}],
        {"not": {"not": {}}},
        {"all": []},
    ]
    types = [
        "application/json",
        "application/cloudevents+json",
        "application/cloudevents-batch+json",
        "application/x-ndjson",
        "text/plain",
        "nonsense",
        "application/json; charset=latin-1",
    ]
    async with running(tmp_path) as broker:
        for _ in range(300):
            method, path = chance.choice(["GET", "PUT", "POST", "DELETE"]), chance.choice(paths)
            if (method, path) in (("GET", "/listen"), ("GET", "/subscribers/a/events")):
                path += "?where=("
            headers = {"Content-Type": chance.choice(types)}
            if chance.random() < 0.3:
                headers["ce-" + chance.choice(["id", "source", "x y", "é", "time"])] = chance.choice(
                    ["%ff", "", "a", '"', "%"]
                )
            body = json.dumps(chance.choice(contents)).encode()[: chance.choice([None, 3])]
            async with broker.session.request(method, broker.url + path, data=body, headers=headers) as response:
                content = await response.read()
                assert response.status < 500, (method, path, headers, body, content)
        assert broker.core.is_ready


@eventually
async def test_tls_certificates_and_tickets_say_who_asks(tmp_path):
    authority = trustme.CA()
    certificate, own = authority.issue_cert("localhost"), authority.issue_cert("ann.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    roles = {"shop": Role(receive="TRUE", publish=Publishing())}
    async with running(tmp_path, roles=roles, principals={"ann.example": ("shop",)}) as broker:
        front = broker.server.front
        settings = Settings(
            listeners=(Listener(host="localhost", port=0),), roles=roles, principals={"ann.example": ("shop",)}
        )
        front.authenticator.reload(settings)
        server = HttpServer(broker.core, settings, front.authenticator, front.quotas, front.permissions)
        await server.start([context])
        url = server.addresses[0].replace("127.0.0.1", "localhost").replace("[::1]", "localhost")
        assert url.startswith("https://")
        client = ssl.create_default_context()
        authority.configure_trust(client)
        async with broker.session.get(f"{url}/subscribers", ssl=client) as response:
            assert response.status == 401
            assert response.headers["WWW-Authenticate"].startswith("Bearer")
        own.configure_cert(client)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=client)) as session:
            async with session.get(f"{url}/subscribers") as response:
                assert response.status == 200
            async with session.ws_connect(f"{url}/ws") as socket:
                talk = Talk(socket)
                await talk.say({"publish": [{"n": 1}], "id": 1})
                assert (await talk.hear_until("ok"))["ok"] == 1
            async with session.post(f"{url}/tickets") as response:
                ticket = (await response.json())["ticket"]
        anonymous = ssl.create_default_context()
        authority.configure_trust(anonymous)
        for status in (200, 401):
            async with broker.session.get(f"{url}/subscribers?ticket={ticket}", ssl=anonymous) as response:
                assert response.status == status, "a ticket is good for once"
        await server.stop()


@eventually
async def test_a_tls_handshake_that_does_not_go_on_is_cut_off(tmp_path):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    async with running(tmp_path) as broker:
        front = broker.server.front
        settings = Settings(listeners=(Listener(port=0),), limits=LimitSettings(header=Duration(0.2)))
        server = HttpServer(broker.core, settings, front.authenticator, front.quotas, front.permissions)
        await server.start([context])
        host, port = server.addresses[0].removeprefix("https://").split(":")
        silent, garbled = [await asyncio.open_connection(host, int(port)) for _ in range(2)]
        garbled[1].write(b"\x16\x03\x01\x02\x00")  # a record of 512 bytes, of which nothing comes
        for reader, writer in (silent, garbled):
            assert await reader.read() == b""
            writer.close()
        await server.stop()


@eventually
async def test_a_reload_is_for_admins(tmp_path):
    roles = {"shop": Role(receive="TRUE")}
    async with running(tmp_path, roles=roles) as broker:
        reloads = []

        async def reload():
            reloads.append(1)
            return Differences(("limits.depth",), ("name",))

        broker.server.front.reload = reload
        for role, status in (("shop", 403), ("admin", 200)):
            headers = {"Authorization": f"Bearer {broker.tokens.create('ann-' + role, (role,))}"}
            _, content = await broker.ask("POST", "/reload", status=status, headers=headers)
        assert reloads == [1]
        assert content == {"reloaded": True, "at_once": ["limits.depth"], "at_start": ["name"]}


@eventually
async def test_live_ready_and_metrics_say_how_the_broker_fares(tmp_path):
    from prometheus_client.parser import text_string_to_metric_families

    async with running(tmp_path) as broker:
        await broker.publish({"n": 1}, {"n": 2})
        assert await broker.ask("GET", "/live") == (200, {"live": True})
        assert await broker.ask("GET", "/ready") == (200, {"ready": True})
        _, body = await broker.ask("GET", "/metrics", status=200)
        families = {family.name: family for family in text_string_to_metric_families(body.decode())}
        assert families["tamis_log_head"].samples[0].value == 2
        assert families["tamis_requests"].samples
        broker.core.is_full = True
        status, content = await broker.ask("GET", "/ready")
        assert (status, content["why"]) == (503, "the disk is full")
        broker.core.is_full = False
        _, text = await broker.ask("GET", "/", status=200)
        assert text.count(b"curl") == 3
