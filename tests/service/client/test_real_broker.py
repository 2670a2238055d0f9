"""The clients and the commands beside a real broker, as processes on loopback."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import threading
import time
from itertools import islice

import pytest
from typer.testing import CliRunner

import tamis as library
from tamis.cli.app import app
from tamis.errors import LanguageError
from tamis.service.errors import UnauthenticatedError
from tests.cli.conftest import PLAIN
from tests.service.client.conftest import in_a_loop, taken
from tests.service.processes import BrokerProcess, environment, tamis


@pytest.fixture(scope="module")
def broker(forge, tmp_path_factory):
    with BrokerProcess(forge, tmp_path_factory.mktemp("broker") / "data") as running:
        yield running


def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in this process: as a program of its own each would import everything anew."""
    runner = CliRunner(env=PLAIN | {"COLUMNS": "200", "TAMIS_URL": None, "TAMIS_TOKEN": None})
    done = runner.invoke(app, list(arguments), input=stdin, catch_exceptions=False, prog_name="tamis")
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a program of its own."""
    return subprocess.run(
        tamis(*arguments), capture_output=True, text=True, timeout=120, env=environment(), check=False
    )


def first_line(process: subprocess.Popen[str]) -> str:
    """Return the first line that is not empty, or what came when a process that hangs was ended."""
    watch = threading.Timer(120, process.kill)
    watch.start()
    try:
        return next((line for line in process.stdout if line.strip()), "")
    finally:
        watch.cancel()


def wait_for_listener(broker: BrokerProcess, text: str) -> None:
    """Wait until a passing subscriber with a text is in force."""
    for _ in range(3000):
        for subscriber in broker.get("/subscribers")["subscribers"]:
            if not subscriber["durable"] and any(
                known["text"] == text for known in subscriber["subscriptions"].values()
            ):
                return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens for {text}")


def test_acceptance_1_three_commands_in_three_processes_and_the_event_appears(broker):
    text = "price<20.25"
    if shutil.which("curl"):
        command = ["curl", "-sN", f"{broker.url}/listen?where={text}"]
    else:
        command = tamis("subscribe", text, "--json", "--at", broker.url)
    listening = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        wait_for_listener(broker, text)
        published = program("publish", '{"price": 12}', "--to", broker.url)
        assert published.returncode == 0, published.stderr
        assert "1 event is on disk" in published.stdout
        delivered = json.loads(first_line(listening))
        assert delivered["event"]["data"] == {"price": 12}
        assert delivered["at"] in published.stdout
    finally:
        listening.kill()
        listening.wait()
        listening.stdout.close()


def test_commands_publish_lines_and_print_what_a_durable_subscriber_has_not_seen(broker):
    lines = "".join(f'{{"lot": {n}}}\n' for n in range(5))
    published = run("publish", "--type", "lot", "--json", "--to", broker.url, stdin=lines)
    assert json.loads(published.stdout)["events"] == 5
    first = run("subscribe", "lot < 4", "--as", "cli", "--from", "first", "--most", "2", "--json", "--at", broker.url)
    events = [json.loads(line) for line in first.stdout.splitlines()]
    assert [event["event"]["data"]["lot"] for event in events] == [0, 1], first.stderr
    rest = run("subscribe", "lot < 4", "--as", "cli", "--most", "2", "--at", broker.url)
    assert [json.loads(line.partition(" lot ")[2].removeprefix("again ")) for line in rest.stdout.splitlines()] == [
        {"lot": 2}, {"lot": 3}
    ], rest.stderr  # fmt: skip


@pytest.mark.parametrize("text", ["price <", "price < 20 AND"])
def test_a_mistake_in_a_text_is_shown_with_its_caret(broker, text):
    result = run("subscribe", text, "--at", broker.url)
    assert result.returncode == 2
    assert f"{' ' * (4 + len(text))}^" in result.stderr.splitlines()


def test_a_bad_line_says_which_and_what_came_before_is_published(broker):
    result = run("publish", "--to", broker.url, stdin='{"bad": 1}\n{"bad": \n')
    assert result.returncode == 2
    assert "line 2 is not JSON" in result.stderr


@in_a_loop
async def test_the_asynchronous_client_does_everything_with_a_real_broker(broker):
    async with library.AsyncClient(broker.url) as client:
        async with client.subscribe({"cheap": "euro < 20", "odd": "euro % 2 = 1"}, name="async") as subscription:
            positions = await client.publish_many({"euro": euro} for euro in (30, 12, 25, 7))
            events = await taken(subscription, 3)
            assert [(event.data["euro"], set(event.keys)) for event in events] == [
                (12, {"cheap"}), (25, {"odd"}), (7, {"cheap", "odd"})
            ]  # fmt: skip
            assert [event.at for event in events] == positions[1:]
            await events[0].done()
            await events[1].never("too odd")
            await events[2].again()
            again = await anext(subscription)
            assert (again.data["euro"], again.is_again) == (7, True)
            await again.done()
        history = [event.data["euro"] async for event in client.read("euro > 10", since=positions[0])]
        assert history == [30, 12, 25]
        assert {"subscriber": "async", "key": "cheap"} in await client.match({"euro": 5})
        assert (await client.check("euro<20"))["text"] == "euro < 20"
        with pytest.raises(LanguageError, match="column 7"):
            await client.check("euro <")
        dead = broker.get("/subscribers/async/dead")
        assert "too odd" in json.dumps(dead)


@in_a_loop
async def test_a_listener_that_is_too_slow_is_told_exactly_what_it_missed(broker):
    gaps = []

    async def received(listening):
        events = []
        async for event in listening:
            events.append(event)
            if event.data["many"] < 0:
                return events
        return None

    async with (
        library.AsyncClient(broker.url) as client,
        client.subscribe("many IS NOT NULL", credit=16, on_gap=lambda gap: gaps.append(gap.facts)) as listening,
    ):
        receiving = asyncio.create_task(received(listening))
        positions = await client.publish_many({"many": n, "text": "x" * 200} for n in range(5_000))
        while not receiving.done():
            await client.publish({"many": -1})
            await asyncio.wait([receiving], timeout=0.2)
    numbers = [int(event.at.rpartition("-")[2]) for event in receiving.result()]
    assert numbers == sorted(set(numbers)), "in order, none twice"
    missed = {
        number
        for gap in gaps
        for number in range(int(gap["first"].rpartition("-")[2]), int(gap["last"].rpartition("-")[2]) + 1)
    }
    assert missed.isdisjoint(numbers)
    assert {int(at.rpartition("-")[2]) for at in positions} <= missed | set(numbers)


def test_a_killed_broker_is_waited_for_and_nothing_is_lost_or_published_twice(forge, tmp_path):
    with BrokerProcess(forge, tmp_path / "data") as running, library.Client(running.url) as client:
        subscription = client.subscribe("TRUE", name="ann").ready()
        positions = []
        publishing = threading.Thread(
            target=lambda: positions.extend(client.publish_many({"n": n} for n in range(3000)))
        )
        publishing.start()
        received = []
        for event in islice(subscription, 1000):
            received.append(event.data["n"])
            event.done()
        running.end(signal.SIGKILL)
        running.start()
        for event in subscription:
            received.append(event.data["n"])
            event.done()
            if len(set(received)) == 3000:
                break
        publishing.join()
        assert len(set(positions)) == 3000
        assert [event.data["n"] for event in client.read()] == list(range(3000)), "each once, in order"
        assert received == sorted(received)
        assert len(received) == 3000, "the program was there all the time, and saw each once"
        assert running.end() == 0


def test_the_past_is_whole_for_who_was_there_before_it_and_can_be_asked_for_again_and_again(forge, tmp_path):
    with BrokerProcess(forge, tmp_path / "data") as running, library.Client(running.url) as client:
        running.put("/subscribers/ann", {})
        client.publish({"n": 0})
        running.end()
        running.start()
        client.publish_many([{"n": 1}, {"n": 2}])
        for name in ("ann", "bob", "cleo", "dan"):
            with client.subscribe("n >= 0", name=name, since="first") as subscription:
                events = list(islice(subscription, 3))
                assert [event.data["n"] for event in events] == [0, 1, 2]
                for event in events:
                    event.done()
        for name in ("ann", "bob", "cleo", "dan"):
            with client.subscribe("n >= 0", name=name) as subscription:
                client.publish({"n": 3})
                assert next(iter(subscription)).data["n"] == 3, "everything of the past is done"


def test_a_feed_of_auctions_is_there_to_be_seen(forge, tmp_path):
    with BrokerProcess(forge, tmp_path / "data", "--demo") as running:
        result = run("subscribe", "price > 0", "--most", "2", "--json", "--at", running.url)
        events = [json.loads(line)["event"] for line in result.stdout.splitlines()]
        assert [event["type"] for event in events] == ["auction", "auction"], result.stderr
        assert running.end(signal.SIGINT) == 0


def test_tokens_of_the_command_open_a_broker_with_roles(forge, tmp_path):
    (tmp_path / "tamis.toml").write_text('[roles.shop]\nreceive = "region = \'EU\'"\nsubscribers = ["shop-*"]\n'
                                         'publish = { source = ["/*"] }\n')  # fmt: skip
    with BrokerProcess(forge, tmp_path / "data", "--config", str(tmp_path / "tamis.toml")) as running:
        assert running.facts["token"].startswith("tamis_")
        made = run("token", "create", "ann", "--role", "shop", "--data", str(tmp_path / "data"))
        token = made.stdout.strip()
        refused = run("publish", '{"region": "EU"}', "--to", running.url)
        assert refused.returncode == 2
        assert "not authenticated" in refused.stderr
        with (
            library.Client(running.url, token=token) as client,
            client.subscribe("TRUE", name="shop-1") as subscription,
        ):
            client.publish_many([{"region": "US"}, {"region": "EU"}])
            assert next(iter(subscription)).data == {"region": "EU"}
        listed = json.loads(run("token", "list", "--json", "--data", str(tmp_path / "data")).stdout)["tokens"]
        (name,) = [row["token"] for row in listed if row["principal"] == "ann"]
        assert run("token", "remove", name, "--data", str(tmp_path / "data")).returncode == 0
        with library.Client(running.url, token=token) as client, pytest.raises(UnauthenticatedError):
            client.publish({"region": "EU"})


def test_two_brokers_at_one_port_are_told_apart(broker, tmp_path):
    result = program("serve", "--data", str(tmp_path / "other"), "--port", str(broker.port))
    assert result.returncode == 2
    assert "cannot listen" in result.stderr
    assert "--port" in result.stderr


def test_two_brokers_do_not_share_a_folder(broker):
    result = program("serve", "--data", str(broker.data), "--port", "0")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_a_log_that_is_whole_needs_no_repair(forge, tmp_path):
    with BrokerProcess(forge, tmp_path / "data") as running:
        run("publish", '{"n": 1}', "--to", running.url)
    result = run("repair", "--data", str(tmp_path / "data"), "--json")
    assert json.loads(result.stdout) == {"repaired": True, "segments": []}


def test_a_filter_is_tried_explained_and_compared_by_the_client_and_the_commands(broker):
    with library.Client(broker.url) as client:
        positions = client.publish_many([{"depth": depth, "asked": True} for depth in range(40)], type="dive")
        with client.subscribe({"deep": "depth >= 30"}, name="diver", since="now"):
            pass
        trial = client.try_filter("asked AND depth >= 35", since="first")
        assert (trial["matched"], trial["near_misses"][0]["event"]["data"]["depth"]) == (5, 34)
        assert [each["key"] for each in trial["covered_by"]] == ["deep"]
        explained = client.explain("depth >= 35", at=positions[0])
        assert explained["matches"] is False and "depth is 0" in explained["text"]
        assert client.explain("depth >= 35", {"depth": 36})["matches"] is True
        assert client.relations("depth >= 30", "depth >= 35")["covers"]["holds"] is True
        later = client.publish({"depth": 33}, type="dive", id="d1", source="/sea")
        assert client.why("diver", later)["at"] == client.why("diver", "d1", source="/sea")["at"] == later
        [delivery] = client.take("diver", wait_s=30)
        delivery.never("too deep")
        assert [letter["reason"] for letter in client.dead_letters("diver")] == ["too deep"]
    shown = run("try", "asked AND depth >= 35", "--from", "first", "--at", broker.url)
    assert shown.returncode == 0 and "5 of" in shown.stdout and "diver/deep matches all of it" in shown.stdout
    nothing = run("try", "depth < 0", "--from", "first", "--at", broker.url)
    assert nothing.returncode == 1
    reason = run("why", "diver", later, "--at", broker.url)
    assert reason.returncode == 0 and "dead letter" in reason.stdout and "too deep" in reason.stdout
    assert run("why", "diver", positions[0], "--at", broker.url).returncode == 1
    assert "too deep" in run("dead", "diver", "--at", broker.url).stdout
    with library.Client(broker.url) as client, client.subscribe({"deep": "depth >= 30"}, name="diver") as deliveries:
        assert "1 dead letter comes again" in run("dead", "diver", "--again", "--at", broker.url).stdout
        delivery = next(iter(deliveries))
        assert delivery.data == {"depth": 33}
        delivery.done()
        assert client.why("diver", later)["delivery"] == "done"
    assert "no dead letters" in run("dead", "diver", "--at", broker.url).stdout


@in_a_loop
async def test_a_leased_subscription_lasts_as_long_as_somebody_listens(broker):
    def known() -> set[str]:
        """Return the keys of the subscriber's subscriptions."""
        return {
            key for each in broker.get("/subscribers")["subscribers"] if each["name"] == "lessee"
            for key in each["subscriptions"]
        }  # fmt: skip

    async with library.AsyncClient(broker.url) as client:
        async with client.subscribe("lessor = 7", name="lessee", lease_s=0.6):
            begun = time.monotonic()
            while time.monotonic() - begun < 1.5:
                assert await asyncio.to_thread(known) == {"default"}
                await asyncio.sleep(0.1)
        while await asyncio.to_thread(known):
            await asyncio.sleep(0.05)
        with pytest.raises(ValueError, match="a lease of -1"):
            client.subscribe("lessor = 7", name="lessee", lease_s=-1)
