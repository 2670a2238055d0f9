"""Two real brokers, each a process of its own, joined over loopback."""

from __future__ import annotations

import time

import pytest

from tests.ports import free_port
from tests.service.broker_processes import BrokerProcess, Forge, events

PATIENCE_S = 120


@pytest.fixture(scope="module")
def forge():
    forge = Forge()
    yield forge
    forge.close()


def wait(condition, what):
    ends = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < ends, f"{what} did not come true"
        time.sleep(0.02)
    return value


def link_of(broker, name):
    links = broker.ask("GET", "/links")[1]["links"]
    return next((link for link in links if link["name"] == name), {"state": "none"})


def is_live(broker, name):
    return link_of(broker, name)["state"] == "live"


@pytest.fixture
def pair(forge, tmp_path):
    """North listens, south calls."""
    port = free_port()
    north = BrokerProcess(forge, tmp_path / "north", "--name", "north", "--link-port", port)
    south = BrokerProcess(forge, tmp_path / "south", "--name", "south", "--link", f"tamis://127.0.0.1:{port}")
    north.start()
    south.start()
    wait(lambda: is_live(north, "south") and is_live(south, "north"), "a link")
    yield north, south
    for broker in (north, south):
        if broker.process:
            broker.kill()


def taken(broker, subscriber, count):
    """Take so many events, and say that they are done."""
    ids = []
    while len(ids) < count:
        status, content = broker.ask("POST", f"/subscribers/{subscriber}/take", {"most": 100, "wait_s": 10})
        assert status == 200, content
        items = content["events"]
        ids += [item["event"]["id"] for item in items]
        broker.ask("POST", f"/subscribers/{subscriber}/done", {"done": [item["at"] for item in items]})
    return ids


def test_events_cross_a_link_settled_killed_and_resumed(pair):
    north, south = pair
    status, content = south.ask(
        "PUT", "/subscribers/ann/subscriptions/few?settle=30s", b"n < 10", Content_Type="text/plain"
    )
    assert (status, content["settled"]) == (201, True)
    assert link_of(north, "south")["wants"] == 1
    assert north.ask("POST", "/events", events(20))[0] == 200
    assert sorted(taken(south, "ann", 10), key=int) == [str(number) for number in range(10)]
    assert link_of(north, "south")["sent"] == 10

    north.kill()
    assert south.ask("POST", "/events", events(1, 100))[0] == 200
    north.start()
    assert north.ask("POST", "/events", events(5, 0, source="/later"))[0] == 200
    assert sorted(taken(south, "ann", 5), key=int) == [str(number) for number in range(5)]
    assert north.ask("POST", "/events", events(5, 0, source="/later"))[1]["known"] == 5
    brokers = south.ask("GET", "/brokers")[1]["brokers"]
    assert [broker["name"] for broker in brokers] == ["south", "north"]
    metrics = south.ask("GET", "/metrics")[1]
    assert 'tamis_link_bytes_in_total{link="north"}' in metrics


def test_acceptance_14_what_nobody_in_the_network_wants_is_told_to_who_asks_for_that(pair):
    north, south = pair
    for broker, name, text in ((north, "odd", b"unwanted"), (south, "ann", b"n < 3"), (north, "bob", b"n = 7")):
        path = f"/subscribers/{name}/subscriptions/it?settle=60s"
        status, content = broker.ask("PUT", path, text, Content_Type="text/plain")
        assert (status, content["settled"]) == (201, True)
    for number, broker in enumerate((north, south)):  # unwanted or not, wherever it is published
        _, content = broker.ask("POST", "/events?wanted=true", events(10, 0, source=f"/{number}"))
        assert [bool(count) for count in content["wanted"]] == [n < 3 or n == 7 for n in range(10)]
    assert sorted(taken(north, "odd", 12), key=int) == [str(n) for n in (3, 4, 5, 6, 8, 9) for _ in range(2)]
    assert sorted(taken(south, "ann", 6), key=int) == [str(n) for n in (0, 1, 2) for _ in range(2)]
    assert north.ask("POST", "/events?wanted=true", events(2, 0, source="/0"))[1]["wanted"] == [None, None]


REMEMBERED = {
    "best": "TOP 1 BY n OVER 1 HOUR",
    "pair": "SEQUENCE n = 3 THEN n = 7 WITHIN 1 HOUR",
    "high": "CHANGE OF n >= 8 WHERE n <> 9",
}


def told(broker, subscriber, count):
    """Take what is told, up to so many events; say that they are done."""
    rows = []
    while len({at for at, *_ in rows}) < count:
        content = broker.ask("POST", f"/subscribers/{subscriber}/take", {"most": 100, "wait_s": 10})[1]
        for item in content["events"]:
            if item.get("again"):  # the broker was killed before it had kept that this is done
                continue
            for each in item["told"]:
                run = tuple(int(event["id"]) for event in each.get("events", ()))
                rows.append((item["at"], each["key"], int(item["event"]["id"]), run, each.get("change")))
        broker.ask("POST", f"/subscribers/{subscriber}/done", {"done": [item["at"] for item in content["events"]]})
    return {row[1:] for row in rows}


def test_what_remembers_earlier_events_lives_at_one_broker_and_takes_events_from_the_other(pair):
    north, south = pair
    status, content = south.ask("PUT", "/subscribers/ann/subscriptions?settle=60s", REMEMBERED)
    assert status in (200, 201), content
    assert content["settled"] is True
    assert sorted(content["remembering"]) == ["best", "high", "pair"]
    assert link_of(north, "south")["wants"] == 3  # conditions; what is remembered does not travel
    assert north.ask("POST", "/events", events(10, 1))[0] == 200  # 1 to 10
    expected = {("best", 1, (), None), ("pair", 7, (3, 7), None), ("high", 8, (), True)}
    assert told(south, "ann", 3) == expected

    south.kill()
    assert north.ask("POST", "/events", events(3, 1, source="/later"))[0] == 200
    south.start()
    wait(lambda: is_live(north, "south") and is_live(south, "north"), "the link again")
    assert north.ask("POST", "/events", events(1, 0, source="/last"))[0] == 200
    # The sequence that had come to 3 goes on, the change that was true ends, and nothing is told once more.
    # Of equal scores the later is the better.
    assert told(south, "ann", 2) == {("high", 1, (), False), ("best", 1, (), None), ("best", 0, (), None)}
