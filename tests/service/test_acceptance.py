"""What a broker must do to be accepted, each thing a test by name, on the real process."""

from __future__ import annotations

import asyncio
import csv
import json
import signal
import ssl
import time

import aiohttp
import jsonschema
import pytest
import trustme
from prometheus_client.parser import text_string_to_metric_families

import tamis
from tests.service.broker_processes import BrokerProcess, events, in_a_loop, running, until

QUIET = '[logging]\nlevel = "error"\n'


def command(forge, folder, *arguments):
    """Run a command of `tamis` to its end; return its exit code and what it said."""
    output = folder / f"command-{time.monotonic_ns()}"
    output.touch()
    return forge.wait(forge.run(arguments, output)), output.read_text()


def publish(broker, batch, **options):
    """Publish events; return their positions."""
    status, answer = broker.ask("POST", "/events", batch, **options)
    assert status == 200, answer
    return answer["positions"]


def subscribe(broker, subscriber, text, query="", key="all", **options):
    """Have a subscription in force."""
    status, answer = broker.ask("PUT", f"/subscribers/{subscriber}/subscriptions/{key}{query}", text, **options)
    assert status in (200, 201), answer
    return answer


def take_all(broker, subscriber, count, **options):
    """Take so many deliveries, and say that they are done."""
    got = []
    while len(got) < count:
        status, answer = broker.ask("POST", f"/subscribers/{subscriber}/take", {"most": 1_000, "wait_s": 30}, **options)
        assert status == 200, answer
        assert answer["events"], f"{len(got)} of {count} have come"
        got += answer["events"]
        done = {"done": [delivery["at"] for delivery in answer["events"]]}
        assert broker.ask("POST", f"/subscribers/{subscriber}/done", done, **options)[0] == 204
    return got


def nothing_more(broker, subscriber, **options):
    """Is there nothing to take?"""
    return (
        broker.ask("POST", f"/subscribers/{subscriber}/take", {"most": 10, "wait_s": 0.3}, **options)[1]["events"] == []
    )


# -- 4: damage


@pytest.mark.parametrize("check", ["last", "all"])
def test_acceptance_04_a_flipped_bit_stops_the_start_and_repair_leaves_out_exactly_that(forge, tmp_path, check):
    # The damage is among the events whose keys are remembered, so they are read at the start whatever `check` says.
    config = f'[log]\nsegment_bytes = "20kB"\ncheck = "{check}"\n{QUIET}'
    with running(forge, tmp_path, config=config) as broker:
        subscribe(broker, "ann", "TRUE")
        positions = []
        for first in range(0, 400, 4):
            positions += publish(broker, events(4, first, text="x" * 200))
        assert broker.stop() == 0
        segments = sorted((broker.data / "log").glob("*.db"))
        assert len(segments) > 3
        content = bytearray(segments[1].read_bytes())
        place = content.index(b"x" * 200) + 100
        content[place] ^= 0x10
        segments[1].write_bytes(content)

        broker.spawn()
        assert broker.wait() not in (0, -9)
        said = " ".join(broker.said().split())
        assert segments[1].name in said and "repair" in said, said
        assert "Traceback" not in said

        code, told = command(forge, tmp_path, "repair", "--data", broker.data, "--dry-run", "--json")
        assert code == 1, told
        code, told = command(forge, tmp_path, "repair", "--data", broker.data, "--json")
        assert code == 0, told
        (gap,) = json.loads(told)["segments"][0]["gaps"]
        lost = list(range(gap["first"], gap["last"] + 1))
        assert 1 <= len(lost) <= 4, "the block of the flipped bit, and nothing else"

        broker.start()
        _, kept = broker.ask("GET", "/events?from=first&most=10000")
        numbers = {int(at.partition("-")[2]) for at in positions}
        assert {int(entry["at"].partition("-")[2]) for entry in kept if "event" in entry} == numbers - set(lost)
        got, gaps = asyncio.run(_all_and_gaps(broker, len(positions) - len(lost)))
        epoch = positions[0].partition("-")[0]
        assert [(gap["first"], gap["last"]) for gap in gaps] == [(f"{epoch}-{lost[0]}", f"{epoch}-{lost[-1]}")]
        assert {int(at.partition("-")[2]) for at in got} == numbers - set(lost)


async def _all_and_gaps(broker, count):
    gaps, got = [], []
    async with tamis.AsyncClient(broker.url) as client:
        subscription = client.subscribe({"all": "TRUE"}, name="ann", on_gap=lambda gap: gaps.append(gap.facts))
        async for event in subscription:
            got.append(event.at)
            await event.done()
            if len(got) == count:
                break
        await until(lambda: gaps, "the gap to be told")
    return got, gaps


# -- 5: slow readers


async def _slow_reader(forge, folder, event_count, bound_bytes):
    with running(forge, folder, config=QUIET) as broker:
        subscribe(broker, "slow", "TRUE")
        async with aiohttp.ClientSession() as session, tamis.AsyncClient(broker.url) as client:
            async with session.ws_connect(broker.url + "/ws", protocols=("tamis.v1",), max_msg_size=0) as sleeper:
                await sleeper.send_json({"hello": {"as": "slow", "durable": True}})
                await sleeper.receive()
                # It asks for everything without acknowledging, and reads nothing from here on.
                listener = await session.get(broker.url + "/listen")
                heard = []

                quick = await client.subscribe({"all": "n % 100 = 0"}, name="quick").ready()

                async def hear():
                    async for event in quick:
                        heard.append(event.data["n"])
                        await event.done()

                hearing = asyncio.create_task(hear())
                await client.publish_many(events(2_000, text="x" * 300))
                before = broker.resident_bytes()
                for first in range(2_000, event_count, 2_000):
                    await client.publish_many(events(2_000, first, text="x" * 300))
                await until(lambda: len(heard) == event_count // 100, "the others to go on")
                after = broker.resident_bytes()
                hearing.cancel()
                listener.close()
            assert after - before < bound_bytes, f"{(after - before) / 1e6:.0f} MB more"
            got = 0
            async for event in client.subscribe({"all": "TRUE"}, name="slow"):
                assert event.data["n"] == got
                got += 1
                await event.done()
                if got == event_count:
                    break
    return before, after


@in_a_loop
async def test_acceptance_05_a_subscriber_that_reads_nothing_costs_no_memory(forge, tmp_path):
    await _slow_reader(forge, tmp_path, 20_000, 60_000_000)


@pytest.mark.slow
def test_acceptance_05_a_subscriber_that_reads_nothing_for_a_million_events(forge, tmp_path):
    # 64 MB of it is the memory for recent events, 32 MB are the keys of a million.
    before, after = asyncio.run(asyncio.wait_for(_slow_reader(forge, tmp_path, 1_000_000, 120_000_000), 3_600))
    print(f"{before / 1e6:.0f} MB before, {after / 1e6:.0f} MB after a million events")


# -- 6: catching up


def _caught_up(forge, folder, event_count):
    with running(forge, folder, config=QUIET) as broker:
        texts = {f"away-{number}": f"n % 10 = {number}" for number in range(10)}
        for name, text in texts.items():
            subscribe(broker, name, text)

        async def fill():
            async with tamis.AsyncClient(broker.url) as client:
                await client.publish_many(events(event_count))

        asyncio.run(asyncio.wait_for(fill(), 3_600))
        broker.kill()  # after a start everybody is far behind
        broker.start()
        for number, name in enumerate(texts):
            got = take_all(broker, name, event_count // 10)
            assert [delivery["event"]["data"]["n"] for delivery in got] == list(range(number, event_count, 10))
            assert nothing_more(broker, name)


def test_acceptance_06_ten_subscribers_who_were_away_catch_up(forge, tmp_path):
    _caught_up(forge, tmp_path, 5_000)


@pytest.mark.slow
def test_acceptance_06_ten_subscribers_who_were_away_for_a_million_events_catch_up(forge, tmp_path):
    _caught_up(forge, tmp_path, 1_000_000)


# -- 7: filters that change


def test_acceptance_07_every_event_is_judged_by_the_filter_of_its_position(forge, tmp_path):
    with running(forge, tmp_path, config=QUIET) as broker:
        changes = []  # (the position behind which a text counts, the text)
        published = {}
        number = 0
        for step in range(12):
            text = f"n % {step % 4 + 2} = 0"
            since = subscribe(broker, "ann", text)["since"]
            changes.append((int(since.partition("-")[2]), text))
            batch = events(7, number)
            number += 7
            for event, at in zip(batch, publish(broker, batch), strict=True):
                published[int(at.partition("-")[2])] = event["data"]
            if step in (3, 8):
                broker.kill()
                broker.start()
        expected = {
            position
            for position, record in published.items()
            if tamis.holds(tamis.parse([text for since, text in changes if since < position][-1]), record)
        }
        got = take_all(broker, "ann", len(expected))
        assert [int(delivery["at"].partition("-")[2]) for delivery in got] == sorted(expected)
        assert nothing_more(broker, "ann")


# -- 8: the past


def test_acceptance_08_what_comes_from_the_past_is_what_match_finds_in_the_export(forge, tmp_path):
    text = "price < 20 AND (region = 'EU' OR name LIKE '%a%')"
    with running(forge, tmp_path, config=QUIET) as broker:
        batch = [
            {"price": number * 7 % 50, "region": ("EU", "US", "JP")[number % 3], "name": f"n{'abc'[number % 3 - 1]}"}
            for number in range(500)
        ]
        publish(broker, batch)
        _, exported = broker.ask("GET", "/events?from=-1h&most=100000")
        (tmp_path / "events.jsonl").write_text(
            "".join(json.dumps({"at": entry["at"], **entry["event"]["data"]}) + "\n" for entry in exported)
        )
        with (tmp_path / "rules.csv").open("w") as file:
            csv.writer(file).writerows([("subscription_id", "condition"), ("cheap", text)])
        code, said = command(
            forge, tmp_path, "match", "--events", tmp_path / "events.jsonl", "--subscriptions", tmp_path / "rules.csv",
            "--out", tmp_path / "matches.jsonl", "--result", "pairs", "--keep", "at", "--engine", "local",
        )  # fmt: skip
        assert code == 0, said
        matches = [
            json.loads(line)["at"]
            for file in _files(tmp_path / "matches.jsonl")
            for line in file.read_text().splitlines()
        ]
        assert 20 < len(matches) < 400
        subscribe(broker, "ann", text, "?from=-1h")
        got = take_all(broker, "ann", len(matches))
        assert sorted(_event(delivery["at"]) for delivery in got) == sorted(map(_event, matches))
        assert nothing_more(broker, "ann")


def _event(at):
    """Return the number of the event of a position."""
    return int(at.partition("-")[2].rpartition(".")[2])


def _files(path):
    return [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.is_file()]


# -- 11: permissions

ROLES = """
[roles.eu]
receive = "region = 'EU'"
subscribers = ["eu-*"]
[roles.all]
receive = "TRUE"
publish = {}
subscribers = ["*"]
"""


def token(forge, broker, name, *roles):
    """Make a token for somebody."""
    options = [part for role in roles for part in ("--role", role)]
    code, said = command(forge, broker.folder, "token", "create", name, *options, "--data", broker.data, "--json")
    assert code == 0, said
    return json.loads(said)["token"]


@in_a_loop
async def test_acceptance_11_a_principal_never_sees_another_region(forge, tmp_path):
    with running(forge, tmp_path, config=QUIET + ROLES) as broker:
        ann, bob = token(forge, broker, "ann", "eu"), token(forge, broker, "bob", "all")
        mixed = [
            event for pair in zip(events(30, region="EU"), events(30, 100, region="US"), strict=True) for event in pair
        ]
        assert broker.ask("GET", "/events")[0] == 401

        subscribe(broker, "eu-live", "TRUE", token=ann)
        seen = []

        async def listen():
            async with tamis.AsyncClient(broker.url, token=ann) as client:
                async for event in client.listen("TRUE"):
                    seen.append(event.cloud_event)

        listening = asyncio.create_task(listen())
        await until(
            lambda: "tamis_subscriptions 2" in broker.ask("GET", "/metrics", token=broker.first_token)[1],
            "the listener to be there",
        )
        await asyncio.to_thread(publish, broker, mixed, token=bob)

        live = await asyncio.to_thread(take_all, broker, "eu-live", 30, token=ann)
        seen += [delivery["event"] for delivery in live]
        assert nothing_more(broker, "eu-live", token=ann)
        subscribe(broker, "eu-replay", "TRUE", "?from=first", token=ann)
        replayed = await asyncio.to_thread(take_all, broker, "eu-replay", 30, token=ann)
        seen += [delivery["event"] for delivery in replayed]
        assert nothing_more(broker, "eu-replay", token=ann)
        for query in ("", "&where=TRUE", "&where=region='US'", "&where=region<>'EU'%20OR%20region='EU'"):
            status, entries = broker.ask("GET", f"/events?from=first&most=1000{query}", token=ann)
            assert status == 200
            seen += [entry["event"] for entry in entries]
        await until(lambda: len([each for each in seen if each["data"]["n"] < 30]) >= 30 * 6, "the listener's events")
        listening.cancel()

        # Of others: their subscribers, what they want, their dead letters.
        subscribe(broker, "bobs", "region = 'US'", token=bob)
        status, answer = broker.ask("POST", "/match", {"region": "US"}, token=ann)
        assert status in (200, 403) and "bobs" not in json.dumps(answer)
        for method, path, content in (
            ("GET", "/subscribers/bobs", None), ("GET", "/subscribers/bobs/dead", None),
            ("POST", "/subscribers/bobs/take", {"most": 1}), ("POST", "/subscribers/bobs/dead/again", {}),
            ("PUT", "/subscribers/bobs/subscriptions/mine", "TRUE"), ("DELETE", "/subscribers/bobs", None),
        ):  # fmt: skip
            assert broker.ask(method, path, content, token=ann)[0] in (403, 404), path
        _, answer = broker.ask("GET", "/subscribers", token=ann)
        names = {each["name"] for each in answer["subscribers"]}
        assert {name for name in names if not name.startswith("ann/")} == {"eu-live", "eu-replay"}

        # Dead letters of a subscriber that both may use: bob's are of all regions.
        subscribe(broker, "eu-shared", "TRUE", token=bob)
        await asyncio.to_thread(publish, broker, events(3, 500, region="EU") + events(3, 600, region="US"), token=bob)
        _, taken = broker.ask("POST", "/subscribers/eu-shared/take", {"most": 10, "wait_s": 10}, token=bob)
        never = {"never": [delivery["at"] for delivery in taken["events"]]}
        assert len(never["never"]) == 6
        assert broker.ask("POST", "/subscribers/eu-shared/done", never, token=bob)[0] == 204
        status, answer = broker.ask("GET", "/subscribers/eu-shared/dead", token=ann)
        if status == 200:
            seen += [letter["event"] for letter in answer["dead"]]
        assert broker.ask("GET", "/subscribers/eu-shared/dead", token=bob)[1]["count"] == 6
        assert {event["data"]["region"] for event in seen} == {"EU"}


# -- 13: changes while it runs


@in_a_loop
async def test_acceptance_13_roles_certificates_and_limits_change_without_a_dropped_connection(forge, tmp_path):
    authorities = trustme.CA(), trustme.CA()

    def serve_certificate(authority):
        issued = authority.issue_cert("127.0.0.1", "localhost")
        issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
        issued.cert_chain_pems[0].write_to_path(str(tmp_path / "certificate.pem"))

    def config(port, receive, batch_events):
        return (
            f"{QUIET}\n[limits]\nbatch_events = {batch_events}\n[[listeners]]\nport = {port}\n[listeners.tls]\n"
            f'certificate = "{tmp_path}/certificate.pem"\nkey = "{tmp_path}/key.pem"\n'
            f'[roles.reader]\nreceive = "{receive}"\nsubscribers = ["*"]\n[roles.writer]\npublish = {{}}\n'
        )

    serve_certificate(authorities[0])
    broker = BrokerProcess(forge, tmp_path / "broker")
    broker.config.write_text(config(broker.port, "region = 'EU'", 100))
    try:
        await asyncio.to_thread(broker.start)
        reader = await asyncio.to_thread(token, forge, broker, "ann", "reader")
        writer = await asyncio.to_thread(token, forge, broker, "bob", "writer")
        trust = ssl.create_default_context()
        authorities[0].configure_trust(trust)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, limit=0)) as session:

            async def post(batch):
                headers = {"Authorization": f"Bearer {writer}"}
                async with session.post(broker.url + "/events", json=batch, headers=headers) as response:
                    return response.status

            talk = await session.ws_connect(broker.url + "/ws", protocols=("tamis.v1",))
            await talk.send_json({"hello": {"as": "ann", "durable": True, "token": reader}})
            assert "welcome" in await talk.receive_json()
            await talk.send_json({"subscribe": {"all": "TRUE"}, "id": 1})
            assert (await talk.receive_json())["ok"] == 1
            assert await post(events(2, region="EU") + events(2, 10, region="US")) == 200
            assert [event["data"]["n"] for event in await heard(talk, 2)] == [0, 1]

            serve_certificate(authorities[1])
            broker.config.write_text(config(broker.port, "region = 'US'", 3))
            broker.signal(signal.SIGHUP)
            batch = events(4, 20, region="US")
            while (status := await post(batch)) == 200:  # until the new limit counts
                batch = events(4, int(batch[-1]["id"]) + 1, region="EU")
            assert status == 413
            assert await post(events(2, 9_000, region="US") + events(1, 9_100, region="EU")) == 200
            while 9_001 not in (numbers := [event["data"]["n"] for event in await heard(talk, 1)]):
                assert 9_100 not in numbers
            assert not talk.closed

        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection("127.0.0.1", broker.port, ssl=trust)
        renewed = ssl.create_default_context()
        authorities[1].configure_trust(renewed)
        _, newcomer = await asyncio.open_connection("127.0.0.1", broker.port, ssl=renewed)
        newcomer.close()

        broker.config.write_text("[roles.reader]\nreceive = 'region ='\n")  # a mistake changes nothing
        broker.signal(signal.SIGHUP)
        await until(lambda: "not reloaded" in broker.said(), "the mistake to be told")
        _, newcomer = await asyncio.open_connection("127.0.0.1", broker.port, ssl=renewed)
        newcomer.close()
    finally:
        if broker.process:
            broker.kill()


async def heard(talk, count):
    """Return the next events of a WebSocket, at least so many; they are done."""
    got = []
    while len(got) < count:
        frame = await talk.receive()
        assert frame.type is aiohttp.WSMsgType.TEXT, frame
        messages = json.loads(frame.data)
        for message in messages if isinstance(messages, list) else [messages]:
            for delivery in message.get("events", []):
                got.append(delivery["event"])
                await talk.send_json({"done": [delivery["at"]]})
    return got


# -- 15: descriptions


def test_acceptance_15_metrics_parse_and_openapi_validates(forge, tmp_path):
    with running(forge, tmp_path, config=QUIET) as broker:
        subscribe(broker, "ann", "n < 5")
        publish(broker, events(10))
        take_all(broker, "ann", 5)
        deadline = time.monotonic() + 60
        while True:
            families = {
                family.name: family for family in text_string_to_metric_families(broker.ask("GET", "/metrics")[1])
            }
            taken = sum(
                sample.value for sample in families["tamis_events_taken"].samples if sample.name.endswith("_total")
            )
            if taken == 10:
                break
            assert time.monotonic() < deadline
        assert {"tamis_deliveries", "tamis_disk_seconds", "tamis_subscribers", "tamis_loop_lag_seconds"} <= set(
            families
        )
        assert all(family.documentation for family in families.values())
        _, document = broker.ask("GET", "/openapi.json")
        assert document["openapi"].startswith("3.1")
        for name, schema in document["components"]["schemas"].items():
            jsonschema.Draft202012Validator.check_schema(schema), name
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if method in ("get", "put", "post", "delete"):
                    assert operation["responses"], path
        for reference in _references(document):
            part = document
            for step in reference.removeprefix("#/").split("/"):
                part = part[step.replace("~1", "/").replace("~0", "~")]
        _, asyncapi = broker.ask("GET", "/asyncapi.json")
        assert asyncapi["asyncapi"].startswith("3.")


def _references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)
