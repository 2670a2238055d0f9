"""Enemies of the real process: broken requests, frames, JSON and tokens, and connections that say nothing.

Whatever they send, the process goes on and serves others, never answers with a mistake of its own (500), and keeps what
it has promised to a subscriber who was there before.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
from random import Random

import pytest

from tests.lengths import so_many
from tests.service.broker_processes import events, in_a_loop, running

CONFIG = '[limits]\nheader = "1s"\nidle = "4s"\nconnections_each = 400\n[logging]\nlevel = "error"\n'
ROLES = "[roles.eu]\nreceive = \"region = 'EU'\"\npublish = {}\n"

REQUESTS = (
    b'POST /events HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"price": 12}',
    b"GET /events?from=-1h&where=price%3C20&most=5 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
    b"PUT /subscribers/eve/subscriptions/k?from=first HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 10\r\n\r\nprice < 20",
    b'POST /subscribers/eve/take HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 24\r\n\r\n{"most": 1, "wait_s": 0 }',
    b"GET /listen?where=price%3C20&most=1&from=first HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept: text/event-stream\r\n"
    b"Last-Event-ID: k3f9-1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer tamis_xyz\r\n\r\n",
    b"POST /events HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nce-id: 1\r\nce-source: /x\r\nce-type: t\r\nce-specversion: 1.0\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
)  # fmt: skip
PIECES = (
    b"\x00", b"\r\n", b"\r\n\r\n", b"%00", b"%ff%fe", b"../..", b"A" * 9_000, b"-1", b"1e999", b"[" * 500, b"{" * 500,
    b"\xff\xfe", b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n",
    b"Content-Encoding: gzip\r\n", b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"\xf0\x9f\x92\xa9", b"'; DROP TABLE",
)  # fmt: skip
MESSAGES = (
    {"hello": {"as": "eve", "durable": True, "credit": 5}},
    {"subscribe": {"k": "price < 20"}, "from": "first", "id": 1},
    {"publish": [{"specversion": "1.0", "id": "1", "source": "/x", "type": "t", "data": {"price": 1}}], "id": 2},
    {"done": ["k3f9-1"]},
    {"again": ["k3f9-1.7"], "in_s": 1e308},
    {"never": ["x"], "reason": "y" * 2_000},
    {"unsubscribe": ["k"], "id": 3},
)
VALUES = (
    None, True, -1, 0, 2**63, 2**200, 1e308, "", "x" * 3_000, "\x00", "k3f9-", "-1-1", [], [[]], {}, {"": ""}, "TRUE AND",
    "price < " * 300, "((" * 400, {"and": []}, {"hello": {}}, ["price < 20"],
)  # fmt: skip


def mutated(request: bytes, chance: Random) -> bytes:
    """Return a request with some of it changed, removed, or put in."""
    content = bytearray(request)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(content) + 1)
        match chance.randrange(4):
            case 0:
                content[place:place] = chance.choice(PIECES)
            case 1:
                del content[place : place + chance.randrange(20)]
            case 2:
                content[place : place + 1] = bytes([chance.randrange(256)])
            case 3:
                content[place:place] = content[: chance.randrange(100)]
    return bytes(content)


def twisted(message, chance: Random):
    """Return a message with one of its values replaced."""
    copy = json.loads(json.dumps(message))
    part = copy
    while True:
        name = chance.choice(list(part)) if isinstance(part, dict) else chance.randrange(len(part))
        if isinstance(part[name], dict | list) and part[name] and chance.random() < 0.7:
            part = part[name]
            continue
        part[name] = chance.choice(VALUES)
        return copy


async def exchanged(port, sent: bytes, wait_s=0.3) -> bytes:
    """Send bytes and return what comes back, at once or soon."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        writer.write(sent)
        async with asyncio.timeout(wait_s):
            while piece := await reader.read(65_536):
                answer += piece
    except (TimeoutError, OSError):
        pass
    finally:
        writer.transport.abort()
    return answer


def statuses(answer: bytes):
    """Return the statuses of HTTP answers in some bytes."""
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]


class Bystander:
    """Somebody honest who was there before, and must not notice anything."""

    def __init__(self, broker) -> None:
        self.broker, self.published = broker, 0
        assert broker.ask("PUT", "/subscribers/honest/subscriptions/all", "source = '/honest'")[0] == 201
        self.works()

    def works(self) -> None:
        """Publish, and get exactly that."""
        batch = events(3, self.published, "/honest")
        self.published += 3
        assert self.broker.ask("POST", "/events", batch)[0] == 200
        got = []
        while len(got) < 3:
            status, taken = self.broker.ask("POST", "/subscribers/honest/take", {"most": 10, "wait_s": 20})
            assert status == 200 and taken["events"]
            done = {"done": [delivery["at"] for delivery in taken["events"]]}
            assert self.broker.ask("POST", "/subscribers/honest/done", done)[0] == 204
            # Behind a kill, what was done shortly before may come again, and says so.
            is_new = [not delivery.get("again") or delivery["event"] in batch for delivery in taken["events"]]
            got += [delivery["event"] for delivery, each in zip(taken["events"], is_new, strict=True) if each]
        assert got == batch
        assert self.broker.is_running
        assert "Traceback" not in self.broker.said()


async def broken_requests(broker, seed, request_count) -> None:
    chance = Random(seed)
    host = f"127.0.0.1:{broker.port}".encode()
    for _ in range(request_count // 10):
        batch = [mutated(chance.choice(REQUESTS).replace(b"{host}", host), chance) for _ in range(10)]
        for sent, answer in zip(
            batch, await asyncio.gather(*(exchanged(broker.port, each) for each in batch)), strict=True
        ):
            assert not {status for status in statuses(answer) if status >= 500 and status != 503}, (sent, answer)


async def broken_messages(broker, seed, message_count) -> None:
    """Send messages with wrong values over good frames, and broken frames; every connection ends or goes on."""
    chance = Random(seed)
    for _ in range(message_count // 20):
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        key = base64.b64encode(chance.randbytes(16)).decode()
        writer.write(
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{broker.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: tamis.v1\r\n\r\n".encode()
        )
        assert b"101" in await reader.readline()
        writer.write(frame(json.dumps(MESSAGES[0]).encode()))
        for _ in range(18):
            message = chance.choice(MESSAGES)
            content = json.dumps(twisted(message, chance) if chance.random() < 0.8 else [message] * 3).encode()
            if chance.random() < 0.1:
                content = mutated(content, chance)
            writer.write(frame(content, opcode=chance.choice((1, 1, 1, 1, 2, 9))))
        end = chance.randrange(4)
        if end == 0:
            writer.write(chance.randbytes(50))
        elif end == 1:
            writer.write(frame(b"x" * 20, opcode=chance.choice((3, 7, 11, 15)), bits=0x40))
        elif end == 2:
            writer.write(struct.pack("!BBQ", 0x81, 0x80 | 127, 2**62))  # a frame of four exabytes follows
        answer = b""
        try:
            async with asyncio.timeout(0.3):
                while piece := await reader.read(65_536):
                    answer += piece
        except (TimeoutError, OSError):
            pass
        writer.transport.abort()
        assert b'"status":500' not in answer, answer


def frame(content: bytes, opcode: int = 1, bits: int = 0) -> bytes:
    """Return a WebSocket frame of a client, masked with nothing."""
    if len(content) < 126:
        length = struct.pack("!B", 0x80 | len(content))
    elif len(content) < 65_536:
        length = struct.pack("!BH", 0x80 | 126, len(content))
    else:
        length = struct.pack("!BQ", 0x80 | 127, len(content))
    return bytes([0x80 | bits | opcode]) + length + bytes(4) + content


async def attacked(forge, folder, seed, count) -> None:
    with running(forge, folder, config=CONFIG) as broker:
        honest = await asyncio.to_thread(Bystander, broker)
        await broken_requests(broker, seed, count)
        await asyncio.to_thread(honest.works)
        await broken_messages(broker, seed, count)
        await asyncio.to_thread(honest.works)
        await asyncio.to_thread(broker.kill)
        await asyncio.to_thread(broker.start)  # what they have left in the log and in the state can be read
        await asyncio.to_thread(honest.works)


@in_a_loop
async def test_broken_requests_and_messages_harm_nobody(forge, tmp_path):
    await attacked(forge, tmp_path, 1, 400)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_broken_requests_and_messages_harm_nobody(forge, tmp_path, seed):
    asyncio.run(asyncio.wait_for(attacked(forge, tmp_path, seed, so_many(10_000)), 1_800))


@in_a_loop
async def test_headers_that_are_no_text_or_no_address_are_refused(forge, tmp_path):
    with running(forge, tmp_path, config=CONFIG) as broker:
        host = f"Host: 127.0.0.1:{broker.port}\r\nConnection: close\r\n".encode()
        for sent, status in (
            (b"GET /live HTTP/1.1\r\nHost: [x\r\nConnection: close\r\n\r\n", 400),
            (b"GET /live HTTP/1.1\r\n" + host + b"Origin: http://[x\r\n\r\n", 400),
            (b"POST /events HTTP/1.1\r\n" + host + b"Content-Type: a/\xb5\r\nContent-Length: 2\r\n\r\n{}", 415),
        ):
            answer = await exchanged(broker.port, sent, wait_s=60)
            assert statuses(answer) == [status], answer
        assert "ERROR" not in broker.said()


@in_a_loop
async def test_a_slow_loris_is_cut_off_and_others_are_served(forge, tmp_path):
    with running(forge, tmp_path, config=CONFIG) as broker:
        honest = await asyncio.to_thread(Bystander, broker)
        beginnings = (b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b"POST /events HTTP/1.1\r\n")
        connections = [await asyncio.open_connection("127.0.0.1", broker.port) for _ in range(200)]

        async def drip(reader, writer, beginning):
            """Send a byte now and then, until the connection is ended."""
            try:
                writer.write(beginning)
                while True:
                    await asyncio.sleep(0.2)
                    writer.write(b"a")
                    async with asyncio.timeout(0.01):
                        if not await reader.read(1_000):
                            return
            except TimeoutError:
                await drip(reader, writer, b"")
            except OSError:
                return

        dripping = [asyncio.create_task(drip(*ends, beginnings[n % 4])) for n, ends in enumerate(connections)]
        await asyncio.to_thread(honest.works)
        await asyncio.gather(*dripping)  # all of them are cut off
        for _, writer in connections:
            writer.transport.abort()
        await asyncio.to_thread(honest.works)


def test_tokens_that_are_none_open_nothing(forge, tmp_path):
    chance = Random(1)
    with running(forge, tmp_path, config=CONFIG + ROLES) as broker:
        good = broker.first_token
        assert broker.ask("GET", "/subscribers", token=good)[0] == 200
        bad = [
            good[:-1], good + "a", good.swapcase(), good[::-1], "", "tamis_", "x" * 5_000, "' OR 1=1 --", "é", good + "\t",
            *(f"tamis_{base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip('=')}" for _ in range(20)),
            *(good[: (place := chance.randrange(6, len(good)))] + "x" + good[place + 1 :] + "x" for _ in range(20)),
        ]  # fmt: skip
        for token in bad:
            for header in (f"Bearer {token}", f"Basic {token}", token):
                if header.strip() == f"Bearer {good}":
                    continue  # white space behind a header is not part of it
                header = header.encode().decode("latin-1")
                status, _ = broker.ask("GET", "/subscribers", Authorization=header)
                assert status in (400, 401), (status, header)
        assert broker.ask("GET", "/subscribers", token=good)[0] == 200
        assert good not in broker.said().replace(f'"token": "{good}"', ""), "nobody reads it in the log"


def test_huge_and_deep_json_is_refused_and_costs_no_memory(forge, tmp_path):
    with running(forge, tmp_path, config=CONFIG) as broker:
        honest = Bystander(broker)
        before = broker.resident_bytes()
        bodies = {
            b"[" * 1_000_000: (400, 413),
            b'{"a":' * 200_000 + b"1" + b"}" * 200_000: (400, 413),
            b'{"a":"' + b"x" * 8_000_000 + b'"}': (413,),
            b'{"a":' + b"9" * 300_000 + b"}": (400, 413),
            json.dumps([{}] * 50_000).encode(): (413,),
            json.dumps({f"a{number}": number for number in range(20_000)}).encode(): (400, 413),
            b'{"a": 1, "a": 2}': (200, 400),
            b'{"a": NaN}': (400,),
            b'{"a": "\xff"}': (400,),
            b"\xef\xbb\xbf{}": (200, 400),
        }
        for body, allowed in bodies.items():
            try:
                status, answer = broker.ask("POST", "/events", body)
            except OSError:
                continue  # it stopped reading in the middle
            assert status in allowed, (status, answer, body[:40])
        honest.works()
        assert broker.resident_bytes() - before < 80_000_000
