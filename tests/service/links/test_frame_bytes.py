"""The wire format of links: a frame of every kind, and its bytes as they have been since version 1.

If one of these fails, brokers of different versions no longer understand each other: give the format a new version
(`frames.VERSION`), or add what is new behind what is there, with a default, so that the older bytes are still read.
"""

from __future__ import annotations

import msgspec
import pytest

from tamis.routing import LinkState
from tamis.service.links.frames import (
    Ack,
    FrameReader,
    GraphSaid,
    Greeting,
    Join,
    Kind,
    LinkClose,
    LinkEvent,
    Pieces,
    ack_frame,
    control_frames,
    event_frames,
    frame,
    read,
    read_ack,
    read_events,
    told,
)

GREETING = Greeting(1, "tests", "north", bytes(range(8)), True, "ffff", {"price": "double"})
JOIN = Join("s1", "s2", 3, 2**40, ("north", "west"))
CLOSE = LinkClose("another schema", True)
FLOOD = GraphSaid((LinkState("north", 2, (("west", 5.0),)),), "ffff", 3, is_complete=True)
EVENTS = [LinkEvent(7, 1, b"{}"), LinkEvent(2**40, 0, b"[]")]
BEHIND = ("north", "west")
GOLDEN = {
    Kind.GREETING: (
        told(Kind.GREETING, GREETING),
        "0000002f019901a57465737473a56e6f727468c4080001020304050607c3a46666666681a57072696365a6646f75626c6580c2",
    ),
    Kind.PROOF: (
        frame(Kind.PROOF, bytes(range(32))),
        "0000002102000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    ),
    Kind.JOIN: (
        told(Kind.JOIN, JOIN),
        "000000210396a27331a2733203cf000001000000000092a56e6f727468a477657374920000",
    ),
    Kind.CONTROL: (
        b"".join(control_frames([(4, b"abc")])),
        "0000000d04000000000000000401616263",
    ),
    Kind.PING: (
        frame(Kind.PING, b""),
        "0000000105",
    ),
    Kind.PONG: (
        frame(Kind.PONG, b""),
        "0000000106",
    ),
    Kind.EVENTS: (
        b"".join(event_frames(EVENTS)),
        "000000230700000002000000000000000701000000027b7d000001000000000000000000025b5d",
    ),
    Kind.ACK: (
        ack_frame(Ack(2**40, 3, 2)),
        "0000001908000001000000000000000000000000030000000000000002",
    ),
    Kind.BEHIND: (
        frame(Kind.BEHIND, msgspec.msgpack.encode(BEHIND)),
        "0000000d0992a56e6f727468a477657374",
    ),
    Kind.CLOSE: (
        told(Kind.CLOSE, CLOSE),
        "000000120a92ae616e6f7468657220736368656d61c3",
    ),
    Kind.FLOOD: (
        told(Kind.FLOOD, FLOOD),
        "000000220b949193a56e6f727468029192a477657374cb4014000000000000a46666666603c3",
    ),
}
BEFORE_GRAPHS = {
    Kind.GREETING: "0000002d019701a57465737473a56e6f727468c4080001020304050607c3a46666666681a57072696365a6646f75626c65",
    Kind.JOIN: "0000001e0395a27331a2733203cf000001000000000092a56e6f727468a477657374",
}
"""Bytes of brokers that knew nothing of graphs."""
READ = {
    Kind.GREETING: lambda body: read(body, Greeting) == GREETING,
    Kind.PROOF: lambda body: body == bytes(range(32)),
    Kind.JOIN: lambda body: read(body, Join) == JOIN,
    Kind.CONTROL: lambda body: Pieces().feed(body) == (4, b"abc"),
    Kind.PING: lambda body: body == b"",
    Kind.PONG: lambda body: body == b"",
    Kind.EVENTS: lambda body: read_events(body) == EVENTS,
    Kind.ACK: lambda body: read_ack(body) == Ack(2**40, 3, 2),
    Kind.BEHIND: lambda body: read(body, tuple[str, ...]) == BEHIND,
    Kind.CLOSE: lambda body: read(body, LinkClose) == CLOSE,
    Kind.FLOOD: lambda body: read(body, GraphSaid) == FLOOD,
}


@pytest.mark.parametrize("kind", list(GOLDEN), ids=lambda kind: kind.name)
def test_a_frame_has_the_bytes_it_always_had(kind):
    made, written = GOLDEN[kind]
    assert made.hex() == written


@pytest.mark.parametrize("kind", list(GOLDEN), ids=lambda kind: kind.name)
def test_bytes_of_an_earlier_broker_are_read(kind):
    (only,) = FrameReader().feed(bytes.fromhex(GOLDEN[kind][1]))
    assert only.kind is kind
    assert READ[kind](only.body)
    (before,) = FrameReader().feed(bytes.fromhex(BEFORE_GRAPHS.get(kind, GOLDEN[kind][1])))
    assert READ[kind](before.body)


def test_there_are_golden_bytes_of_every_kind_of_frame():
    assert list(GOLDEN) == list(READ) == list(Kind)
