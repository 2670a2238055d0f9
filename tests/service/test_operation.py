"""What an operator meets: full disks, clean ends, and starts that cannot be."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys

import aiohttp
import pytest

from tests.service.broker_processes import BrokerProcess, events, in_a_loop, running, until

ROOT = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root mounts a small disk")
QUIET = '[logging]\nlevel = "error"\n'


def refused_start(forge, folder, **settings):
    """Start a broker that cannot start; return its exit code and what it says."""
    broker = BrokerProcess(forge, folder, **settings)
    broker.spawn()
    code = broker.wait()
    return code, broker.said()


def kept(broker):
    """Return the ids of all events in the log."""
    _, entries = broker.ask("GET", "/events?from=first&most=100000")
    return [entry["event"]["id"] for entry in entries]


# -- A full disk


@ROOT
def test_a_full_disk_answers_507_and_reading_goes_on(forge, tmp_path):
    with running(forge, tmp_path, config=QUIET, disk_bytes=12_000_000) as broker:
        ballast = broker.own_disk / "ballast"
        ballast.write_bytes(b"x" * 4_000_000)
        assert broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE")[0] == 201
        taken = []
        for number in range(1_000):
            status, answer = broker.ask("POST", "/events", events(1, number, text="x" * 50_000))
            if status != 200:
                break
            taken.append(str(number))
        assert status == 507, (status, answer)
        assert answer["title"] == "The disk is full"
        assert taken
        status, answer = broker.ask("GET", "/ready")
        assert (status, answer["ready"]) == (503, False) and "full" in answer["why"]
        assert broker.ask("GET", "/live")[0] == 200
        assert kept(broker) == taken
        status, answer = broker.ask("POST", "/subscribers/ann/take", {"most": 10, "wait_s": 5})
        assert status == 200
        assert [delivery["event"]["id"] for delivery in answer["events"]] == taken[:10]

        ballast.unlink()
        status = 507
        while status == 507:  # it tries again now and then
            status, answer = broker.ask("POST", "/events", events(1, 2_000))
        assert status == 200, answer
        assert broker.ask("GET", "/ready") == (200, {"ready": True})
        assert kept(broker) == [*taken, "2000"]


def test_a_disk_that_fails_is_said_and_ends_the_broker_with_70(forge, tmp_path):
    """A file may not become larger: for the library of the log that is no full disk, but one that fails."""
    with running(forge, tmp_path, config=QUIET, file_bytes=400_000) as broker:
        taken = []
        for number in range(1_000):
            status, answer = broker.ask("POST", "/events", events(1, number, text="x" * 20_000))
            if status != 200:
                break
            taken.append(str(number))
        assert taken
        assert status == 500 and "cannot be written to" in answer["detail"]
        assert broker.wait() == 70
        assert "cannot be written to" in one_line(broker.said())
    with running(forge, tmp_path, config=QUIET) as broker:  # what is on disk decides
        assert kept(broker)[: len(taken)] == taken
        assert broker.ask("POST", "/events", events(1, 2_000))[0] == 200


# -- The end


@in_a_loop
async def test_sigterm_loses_nothing_and_says_bye(forge, tmp_path):
    broker = BrokerProcess(forge, tmp_path, config=QUIET)
    broker.start()
    said = []
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(broker.url + "/ws", protocols=("tamis.v1",)) as talk,
        ):
            await talk.send_json({"hello": {"as": "ann", "durable": True}})
            assert "welcome" in (await talk.receive_json())
            await talk.send_json({"subscribe": {"all": "TRUE"}, "id": 1})
            assert (await talk.receive_json())["ok"] == 1
            acknowledged = []

            async def publish(first):
                for number in range(first, first + 1_000):
                    try:
                        async with session.post(broker.url + "/events", json=events(1, number)) as response:
                            if response.status == 200:
                                acknowledged.append(str(number))
                    except (aiohttp.ClientError, OSError):
                        return

            publishing = [asyncio.create_task(publish(first)) for first in (0, 1_000, 2_000)]
            await until(lambda: len(acknowledged) > 50, "some events to be acknowledged")
            broker.signal(signal.SIGTERM)
            while (frame := await talk.receive()).type is aiohttp.WSMsgType.TEXT:
                messages = json.loads(frame.data)
                said += messages if isinstance(messages, list) else [messages]
            await asyncio.gather(*publishing)
        assert await asyncio.to_thread(broker.wait) == 0, broker.said()
    finally:
        if broker.process:
            broker.kill()
    assert "bye" in said[-1] and said[-1]["retry_s"] > 0
    assert (frame.type, frame.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.GOING_AWAY)
    delivered = {delivery["event"]["id"] for message in said for delivery in message.get("events", [])}
    broker.start()
    try:
        stored = kept(broker)
        assert set(acknowledged) <= set(stored)
        assert delivered <= set(stored)
        assert len(stored) == len(set(stored))
    finally:
        broker.kill()


@in_a_loop
async def test_what_was_done_stays_done_behind_a_clean_end(forge, tmp_path):
    with running(forge, tmp_path, config=QUIET) as broker:
        broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE")
        broker.ask("POST", "/events", events(10))
        _, taken = broker.ask("POST", "/subscribers/ann/take", {"most": 10, "wait_s": 5})
        done = [delivery["at"] for delivery in taken["events"] if delivery["event"]["data"]["n"] != 4]
        broker.ask("POST", "/subscribers/ann/done", {"done": done})
        assert broker.stop() == 0
        broker.start()
        _, taken = broker.ask("POST", "/subscribers/ann/take", {"most": 10, "wait_s": 5})
        assert [(delivery["event"]["data"]["n"], delivery["again"]) for delivery in taken["events"]] == [(4, True)]


@in_a_loop
async def test_server_sent_events_and_json_lines_end_with_the_broker(forge, tmp_path):
    with running(forge, tmp_path, config=QUIET) as broker:
        async with aiohttp.ClientSession() as session:
            lines = await session.get(broker.url + "/listen")
            stream = await session.get(broker.url + "/listen", headers={"Accept": "text/event-stream"})
            broker.signal(signal.SIGTERM)
            assert "bye" in (await stream.text())
            await lines.text()  # ends, and not by a reset
        assert await asyncio.to_thread(broker.wait) == 0


# -- Starts that cannot be


def test_a_second_broker_on_the_same_folder_is_refused_clearly(forge, tmp_path):
    with running(forge, tmp_path, config=QUIET) as broker:
        second = BrokerProcess(forge, tmp_path / "second", config=QUIET)
        second.data = broker.data
        second.spawn()
        code = second.wait()
        assert code not in (0, -9)
        assert f"in use by the process {broker.process}" in one_line(second.said())
        assert "Traceback" not in second.said()
        assert broker.ask("POST", "/events", events(1))[0] == 200, "the first one is not disturbed"


def test_a_folder_that_cannot_be_written_is_named(forge, tmp_path):
    (tmp_path / "data").write_text("a file, not a folder")
    code, said = refused_start(forge, tmp_path, config=QUIET)
    assert code not in (0, -9)
    assert str(tmp_path / "data") in one_line(said)
    assert "Traceback" not in said


@ROOT
@pytest.mark.parametrize("disk_bytes", [30_000, 120_000, 200_000])
def test_a_disk_that_is_full_at_the_first_start_is_named(forge, tmp_path, disk_bytes):
    code, said = refused_start(forge, tmp_path, config=QUIET, disk_bytes=disk_bytes)
    assert code not in (0, -9)
    assert str(tmp_path / "data") in one_line(said)
    assert "full" in said or "room" in said
    assert "Traceback" not in said


def test_a_port_in_use_is_named(forge, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        broker = BrokerProcess(forge, tmp_path, config=QUIET)
        broker.port = taken.getsockname()[1]
        broker.spawn()
        code = broker.wait()
    assert code not in (0, -9)
    assert "cannot listen" in one_line(broker.said()) and "--port" in broker.said()
    assert "Traceback" not in broker.said()
    with running(forge, tmp_path, config=QUIET) as broker:  # and the folder is as before
        assert broker.ask("POST", "/events", events(1))[0] == 200


def one_line(said: str) -> str:
    """Return text without the breaks that a terminal has put into it."""
    return " ".join(said.split())
