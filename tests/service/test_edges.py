"""Edge brokers: several real processes behind one address. Publish at any, receive at any, kill any, stop all."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from tamis.service.client import Client
from tamis.service.edges import EdgePlace, check_edges, edge_name, placed
from tamis.service.errors import SettingsError
from tamis.service.http.handing_over import is_answered_here, needs_first
from tamis.service.settings import JetStream, LinkSettings, Listener, LogSettings, Settings
from tests.service.broker_processes import BrokerProcess, events, is_there

PATIENCE_S = 120


def wait(condition, what):
    ends = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < ends, f"{what} did not come true"
        time.sleep(0.02)
    return value


@contextmanager
def group(forge, folder, count=1, config=""):
    """Give a first broker with edge brokers, all linked; end them, if they still run."""
    broker = BrokerProcess(forge, folder, "--edges", count, config=config)
    try:
        yield started(broker, count)
    finally:
        if broker.process:
            broker.kill()
        are_gone(edges_of(broker))


def are_gone(processes):
    wait(lambda: not any(map(is_there, processes)), "the end of all edge brokers")


def started(broker, count=1):
    broker.start()
    wait(lambda: live_edges(broker) == count, "links to all edge brokers")
    return broker


def live_edges(broker):
    return [link["state"] for link in asked(broker, "GET", "/links")[1]["links"]].count("live")


def asked(broker, *arguments, **more):
    """Ask whoever takes the connection, again and again while nobody does."""
    ends = time.monotonic() + PATIENCE_S
    while True:
        try:
            status, content = broker.ask(*arguments, **more)
            if status < 500:
                return status, content
        except OSError:
            pass
        assert time.monotonic() < ends, "nobody answers"
        time.sleep(0.02)


def edges_of(broker):
    """Return the processes of the edge brokers that the first has named at its start."""
    said = broker.said()
    return json.loads(said[said.index("{") : said.rindex("}") + 1])["edges"]


def subscribe(broker, name, text):
    path = f"/subscribers/{name}/subscriptions/it?settle=60s"
    status, content = asked(broker, "PUT", path, text, Content_Type="text/plain")
    assert (status, content["settled"]) in ((201, True), (200, True)), content


def taken(broker, name, count):
    """Take so many different events, each request on a connection of its own, and say that they are done."""
    ids = {}
    ends = time.monotonic() + PATIENCE_S
    while len(ids) < count:
        assert time.monotonic() < ends, f"{len(ids)} of {count} events"
        items = asked(broker, "POST", f"/subscribers/{name}/take", {"most": 100, "wait_s": 1})[1]["events"]
        for item in items:
            assert item["event"]["id"] not in ids or item.get("again"), f"{item} came twice without a mark"
            ids[item["event"]["id"]] = item["event"]["source"]
        asked(broker, "POST", f"/subscribers/{name}/done", {"done": [item["at"] for item in items]})
    return sorted(ids, key=int)


class Listening:
    """`curl -N /listen` in a thread: lines as they come."""

    def __init__(self, port, where="TRUE"):
        self.lines = []
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self._socket.sendall(f"GET /listen?where={where} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self._file = self._socket.makefile("rb")
        assert b" 200 " in self._file.readline()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for line in self._file:
                if line.startswith(b"{"):
                    self.lines.append(json.loads(line))
        except (OSError, ValueError):
            return

    def close(self):
        self._socket.close()


def test_publish_at_any_process_and_receive_at_any_and_stop_all(forge, tmp_path):
    with group(forge, tmp_path / "first") as broker:
        subscribe(broker, "ann", b"n % 2 = 0")
        epochs = set()
        for event in events(24):  # on a connection each
            status, content = asked(broker, "POST", "/events", event, Content_Type="application/cloudevents+json")
            assert (status, content["durable"]) == (200, True)
            epochs.add(content["position"].partition("-")[0])
        assert len(epochs) == 2, "one of the processes took everything"
        assert taken(broker, "ann", 12) == [str(n) for n in range(0, 24, 2)]
        # The first has everything, whoever took it.
        wait(lambda: len(asked(broker, "GET", "/events?from=first")[1]) == 24, "the whole history")
        listening = [Listening(broker.port, "n>=100") for _ in range(12)]
        number = 100

        def heard():
            nonlocal number
            asked(broker, "POST", "/events", events(1, number))
            number += 1
            time.sleep(0.1)
            return all(each.lines for each in listening)

        wait(heard, "an event for everybody who listens")
        assert len({line["at"].partition("-")[0] for each in listening for line in each.lines}) == 2
        for each in listening:
            each.close()
        with Client(broker.url) as client:  # a durable subscriber over a WebSocket, wherever that arrives
            with client.subscribe("n = 7", name="bob", since="first") as subscription:
                event = next(iter(subscription))
                assert event.id == "7"
                event.done()
            with client.subscribe("n = 9", since="first") as subscription:  # a passing one who asks for the past
                assert next(iter(subscription)).id == "9"
        processes = edges_of(broker)
        assert broker.stop() == 0
        assert not any(map(is_there, processes))


@pytest.mark.slow
def test_an_edge_broker_that_is_killed_comes_back_and_nothing_acknowledged_is_lost(forge, tmp_path):
    with group(forge, tmp_path / "first", 2) as broker:
        subscribe(broker, "ann", b"TRUE")
        for number in range(60):
            if number in (20, 40):
                os.kill(edges_of(broker)[number // 40], signal.SIGKILL)
            assert asked(broker, "POST", "/events", events(1, number))[0] == 200
        assert taken(broker, "ann", 60) == [str(n) for n in range(60)]
        wait(lambda: live_edges(broker) == 2, "both edge brokers again")
        assert broker.stop() == 0


@pytest.mark.slow
def test_the_first_that_is_killed_takes_its_edge_brokers_along_and_nothing_acknowledged_is_lost(forge, tmp_path):
    with group(forge, tmp_path / "first", 2) as broker:
        subscribe(broker, "ann", b"TRUE")
        number = 0
        for _ in range(3):
            for _ in range(20):
                assert asked(broker, "POST", "/events", events(1, number))[0] == 200
                number += 1
            broker.kill()
            are_gone(edges_of(broker))
            started(broker, 2)
        assert taken(broker, "ann", number) == [str(n) for n in range(number)]


@pytest.mark.slow
def test_tokens_and_roles_count_at_every_process_and_a_reload_reaches_all(forge, tmp_path):
    roles = '[roles.shop]\nreceive = "n < 5"\nsubscribers = ["ann"]\n[roles.shop.publish]\nwhere = "n < {}"\n'
    broker = BrokerProcess(forge, tmp_path / "first", "--edges", 1, config=roles.format(10))
    try:
        broker.start()
        admin = broker.first_token
        made = forge.run(["token", "create", "ann", "--role", "shop", "--data", broker.data], tmp_path / "token")
        assert forge.wait(made) == 0
        token = next(word for word in (tmp_path / "token").read_text().split() if word.startswith("tamis_"))
        for _ in range(12):
            assert broker.ask("POST", "/events", events(1, 3))[0] == 401
            assert broker.ask("POST", "/events", events(1, 3), token=token)[0] == 200
            assert broker.ask("POST", "/events", events(1, 30), token=token)[0] == 403
            assert broker.ask("GET", "/links", token=token)[0] == 403
            assert broker.ask("GET", "/links", token=admin)[0] == 200
        broker.config.write_text(roles.format(100))
        assert asked(broker, "POST", "/reload", {}, token=admin)[0] == 200
        wait(
            lambda: all(broker.ask("POST", "/events", events(1, 30), token=token)[0] == 200 for _ in range(12)),
            "the new role everywhere",
        )
    finally:
        broker.kill()


def test_who_answers_what():
    here, first = True, False
    for method, path, query, headers, expected in (
        ("POST", "/events", {}, {}, here),
        ("POST", "/events", {"wanted": "true"}, {}, first),
        ("GET", "/events", {"from": "-1h"}, {}, first),
        ("GET", "/listen", {"where": "TRUE"}, {}, here),
        ("GET", "/listen", {"from": "-1h"}, {}, first),
        ("GET", "/listen", {"ticket": "x"}, {}, first),
        ("GET", "/listen", {}, {"Last-Event-ID": "a-1"}, first),
        ("PUT", "/subscribers/ann", {}, {}, first),
        ("GET", "/metrics", {}, {}, first),
        ("OPTIONS", "/subscribers/ann", {}, {}, here),
        ("GET", "/nothing", {}, {}, first),
    ):
        assert is_answered_here(method, path, query, headers) is expected, (method, path)
    assert needs_first('[{"hello": {}}, {"subscribe": {"a": "TRUE"}, "from": "-1h"}]')
    assert needs_first('{"hello": {"past": true}}')
    assert not needs_first('{"publish": [{"n": 1}]}')
    assert not needs_first("[[[")


def test_the_settings_of_all_processes_come_from_those_of_the_first():
    settings = Settings(name="north", data="d", edges=2, listeners=(Listener(port=0),), links={"x": LinkSettings()})
    place = EdgePlace("/s", ports=(4711,))
    first, edge = placed(settings, place), placed(settings, EdgePlace("/s", 2, (4711,)))
    assert placed(settings, None) is settings
    assert first.listeners[0].shared
    assert set(first.links) == {"x", "north.edge-1", "north.edge-2"}
    assert first.links[edge_name("north", 1)].strategy == "flooding"
    assert (edge.name, edge.data, edge.listeners[0].port) == ("north.edge-2", "d/edges/2", 4711)
    assert edge.links["north"].url == "unix:///s/link.sock"
    assert len(edge.links) == 1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(edges=1, data=":memory:"), "data folder"),
        (Settings(edges=1, log=LogSettings(jetstream=JetStream(url="nats://x"))), "log.jetstream"),
        (Settings(edges=1, name="n" * 60), "too long"),
        (Settings(edges=1, links={"tamis.edge-1": LinkSettings()}), "another name"),
    ],
)
def test_edge_brokers_that_cannot_be_are_refused(settings, reason):
    with pytest.raises(SettingsError, match=reason):
        check_edges(settings)
