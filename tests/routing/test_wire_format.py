"""The wire format: a message of every kind, and its bytes as they have been since version 4.

If one of these fails, brokers of different versions no longer understand each other: give the format a new version.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import fields
from decimal import Decimal
from typing import get_args

import pytest

import tamis
from tamis.errors import LimitError
from tamis.routing import (
    Advertise,
    Ask,
    CellInterest,
    Deposit,
    Deposited,
    Entry,
    Flooded,
    Gossiped,
    HandOver,
    Hello,
    MessageError,
    Notified,
    Passed,
    Publish,
    Relayed,
    Renew,
    ResumeFiltering,
    Subscribe,
    TakeBack,
    TakenOver,
    Unadvertise,
    Unsubscribe,
    Withdraw,
    decode,
    encode,
)
from tamis.routing.acceptance import check_message
from tamis.routing.kinds import KINDS, NUMBERS
from tamis.routing.messages import Message

ENTRIES = (
    Entry(1, tamis.parse("price < 20")),
    Entry("k", tamis.parse("a = 'x'"), 0.125),
    Entry(3, tamis.parse("b"), 0.0, 2),
)
EVENT = {
    "price": 12,
    "d": Decimal("1.50"),
    "day": dt.date(2024, 2, 29),
    "at": dt.datetime(2024, 2, 29, 12, 0, 0, 5),
    "big": 10**40,
    "tags": ["a", None],
    "r": {"x": 1.5},
}
PASSED = Passed("e", {"x": 1}, 1.0, "A", 3)
BEST = tamis.Ranked("x", 1, "4 EVENTS")
ZONE = ((0.0, 0.5), (1.0, 1.0), 1)
GOLDEN = [
    (
        Hello(ENTRIES, (Entry(4, tamis.parse("c IS NULL")),), "ffff", 30.5, 2, True),
        "a7040096939201aa7072696365203c20323093a16ba761203d20277827cb3fc00000000000009403a162cb00"
        "0000000000000002919204a963204953204e554c4ca466666666cb403e80000000000002c3",
    ),
    (
        Subscribe(ENTRIES, (7, "old"), 5),
        "a7040193939201aa7072696365203c20323093a16ba761203d20277827cb3fc00000000000009403a162cb00"
        "00000000000000029207a36f6c6405",
    ),
    (
        Unsubscribe((7, "old"), ENTRIES),
        "a70402929207a36f6c64939201aa7072696365203c20323093a16ba761203d20277827cb3fc0000000000000"
        "9403a162cb000000000000000002",
    ),
    (
        Advertise(ENTRIES, (9,), None),
        "a7040393939201aa7072696365203c20323093a16ba761203d20277827cb3fc00000000000009403a162cb00"
        "00000000000000029109c0",
    ),
    (
        Unadvertise((9,), ENTRIES),
        "a70404929109939201aa7072696365203c20323093a16ba761203d20277827cb3fc00000000000009403a162cb000000000000000002",
    ),
    (
        Publish("auctions/17", EVENT),
        "a7040592ab61756374696f6e732f313787a570726963650ca164d602312e3530a3646179c70a03323032342d"
        "30322d3239a26174c71a04323032342d30322d32395431323a30303a30302e303030303035a3626967c72901"
        "3130303030303030303030303030303030303030303030303030303030303030303030303030303030a47461"
        "677392a161c0a17281a178cb3ff8000000000000",
    ),
    (
        ResumeFiltering(),
        "a7040690",
    ),
    (
        Renew(),
        "a7040790",
    ),
    (
        Ask(5, tamis.parse("price < 20")),
        "a704089205aa7072696365203c203230",
    ),
    (
        Passed("e", {"price": 12}, 2.5, "b1", 7, 2),
        "a7040996a16581a570726963650ccb4004000000000000a262310702",
    ),
    (
        Withdraw("e", 2.5),
        "a7040a92a165cb4004000000000000",
    ),
    (
        Flooded("A", 3, 0, (Entry(1, tamis.parse("x > 1")),), (4,)),
        "a7040b95a1410300919201a578203e20319104",
    ),
    (
        Relayed((1, 2), PASSED),
        "a7040c92920102c417a7040996a16581a17801cb3ff0000000000000a1410301",
    ),
    (
        Notified(PASSED, (("ann", 1),)),
        "a7040d92c417a7040996a16581a17801cb3ff0000000000000a14103019192a3616e6e01",
    ),
    (
        Gossiped(PASSED, 2, False),
        "a7040e93c417a7040996a16581a17801cb3ff0000000000000a141030102c2",
    ),
    (
        Deposit("A", "ann", "k", BEST, 2.5, 7),
        "a7040f96a141a3616e6ea16bbc544f502031204259207820415343204f5645522034204556454e5453cb400400000000000007",
    ),
    (
        TakeBack("A", "ann", 1, 7),
        "a7041094a141a3616e6e0107",
    ),
    (
        CellInterest("A", 1, ((3, 1),)),
        "a7041193a1410191920301",
    ),
    (
        HandOver(
            ZONE,
            (Deposited("A", "ann", 1, BEST, (1, (2.0, 10**30)), (PASSED,), 7),),
            (("A", 1, ((1, 2),)),),
            ((PASSED, ("B",)),),
            (PASSED,),
        ),
        "a70412959392cb0000000000000000cb3fe000000000000092cb3ff0000000000000cb3ff00000000000000191"
        "97a141a3616e6e01bc544f502031204259207820415343204f5645522034204556454e5453920192cb40000000"
        "00000000c71f013130303030303030303030303030303030303030303030303030303030303091c417a7040996"
        "a16581a17801cb3ff0000000000000a1410301079193a14101919201029192c417a7040996a16581a17801cb3f"
        "f0000000000000a141030191a14291c417a7040996a16581a17801cb3ff0000000000000a1410301",
    ),
    (
        TakenOver(ZONE),
        "a70413919392cb0000000000000000cb3fe000000000000092cb3ff0000000000000cb3ff000000000000001",
    ),
]


WITH_PRIORITY = (
    Subscribe((Entry(5, tamis.parse("a"), 0.0, 0, 7),)),
    "a7040193919505a161cb0000000000000000000790c0",
)
"""An entry says its priority only if it has one, so what has none is written as before there were any."""


RANKED = (
    Subscribe((Entry(5, tamis.Ranked("price", 5, "1 HOUR", "a")),)),
    "a7040193919205d926544f5020352042592070726963652041534320" + b"OVER 1 HOUR WHERE a".hex() + "90c0",
)
"""A client's ranked subscription travels as its text."""


@pytest.mark.parametrize(("message", "written"), [*GOLDEN, WITH_PRIORITY, RANKED], ids=lambda each: type(each).__name__)
def test_a_message_has_the_bytes_it_always_had(message, written):
    assert encode(message).hex() == written
    assert repr(decode(bytes.fromhex(written))) == repr(message)


def test_there_are_golden_bytes_of_every_kind():
    assert [type(message) for message, _ in GOLDEN] == [kind.message for kind in KINDS]
    assert set(NUMBERS) == set(get_args(Message))


def test_the_table_names_all_fields_of_every_kind():
    for kind in KINDS:
        assert set(kind.fields) == {field.name for field in fields(kind.message)}


BETWEEN_NODES = [message for message, _ in GOLDEN[11:]]


@pytest.mark.parametrize("message", BETWEEN_NODES, ids=lambda each: type(each).__name__)
def test_what_nodes_say_to_each_other_no_client_and_no_neighbour_of_a_broker_says(message):
    check_message(message, "node")
    for sender in ("client", "neighbour"):
        with pytest.raises(MessageError, match=f"a {sender} said {type(message).__name__}; expected"):
            check_message(message, sender)


HOSTILE = [
    Flooded("A", 3, 3, ()),
    Flooded("", 3, 0, ()),
    Flooded("A", True, 0, ()),
    Flooded("A", 3, 0, (Entry("text", tamis.parse("x")),)),
    Flooded("A", 3, 0, (Entry(1, BEST),)),
    Relayed((), PASSED),
    Relayed((-1,), PASSED),
    Relayed("", PASSED),
    Relayed("B", Renew()),
    Relayed("B", Relayed("C", PASSED)),
    Notified(Publish("e", {}), (("ann", 1),)),
    Notified(PASSED, (("ann",),)),
    Notified(PASSED, (("", 1),)),
    Notified(PASSED, (("ann", 1.5),)),
    Gossiped(PASSED, -1, False),
    Gossiped(PASSED, 1, 1),
    Gossiped(Renew(), 1, True),
    Deposit("A", "", 1, BEST),
    Deposit("A", "ann", None, BEST),
    Deposit("A", "ann", 1, "x > 1"),
    Deposit("A", "ann", 1, BEST, float("nan")),
    Deposit("A", "ann", 1, BEST, "now"),
    Deposit("A", "ann", 1, BEST, 1.0, -1),
    TakeBack("A", 5, 1),
    TakeBack("A", "ann", 1, 2.5),
    TakeBack("A", "ann", 1, True),
    CellInterest("A", -1, ()),
    CellInterest("A", 1, ((0, 1),)),
    CellInterest("A", 1, ((1, 1), (1,))),
    CellInterest("A", 1, ((1 << 2000, 1),)),
    CellInterest("A", 1, ((True, 1),)),
    HandOver(((0.0,), (1.0, 1.0), 0)),
    HandOver(((0.0,), (float("nan"),), 0)),
    HandOver(ZONE, (PASSED,)),
    HandOver(ZONE, (), (("A", 1),)),
    HandOver(ZONE, (), (), ((Renew(), ()),)),
    HandOver(ZONE, (), (), (), (Renew(),)),
    HandOver(ZONE, (Deposited("A", "ann", 1, BEST, (), (Renew(),)),)),
    HandOver(ZONE, (Deposited("A", "ann", 1, BEST, (), (), -1),)),
    TakenOver(((0.0,), (2.0,), 0)),
    TakenOver(()),
]


@pytest.mark.parametrize("message", HOSTILE, ids=lambda each: type(each).__name__)
def test_what_makes_no_sense_between_nodes_is_refused_on_both_sides_of_the_wire(message):
    with pytest.raises(MessageError):
        check_message(message, "node")
    with pytest.raises(MessageError):
        encode(message)


@pytest.mark.parametrize("message", BETWEEN_NODES, ids=lambda each: type(each).__name__)
def test_a_broken_message_between_nodes_is_a_message_error(message):
    data = encode(message)
    for place in range(3, len(data)):
        for byte in (0x00, 0x90, 0xC0, 0xFF, data[place] ^ 1):
            try:
                decode(data[:place] + bytes([byte]) + data[place + 1 :])
            except (MessageError, LimitError):
                continue
        with pytest.raises(MessageError):
            decode(data[:place])


@pytest.mark.parametrize("sender", ["client", "neighbour"])
def test_a_sender_says_what_the_table_lets_it_say(sender):
    said = {
        Hello: Hello(),
        Subscribe: Subscribe(()),
        Unsubscribe: Unsubscribe(()),
        Advertise: Advertise(()),
        Unadvertise: Unadvertise(()),
        Publish: Publish(1, {}),
        ResumeFiltering: ResumeFiltering(),
        Renew: Renew(),
        Ask: Ask(1, tamis.parse("a = 1")),
        Passed: Passed(1, {}, 0.0, "b"),
        Withdraw: Withdraw(1, 0.0 if sender == "neighbour" else None),
    }
    never = {"client": {Hello, ResumeFiltering, Renew, Passed}, "neighbour": {Ask}}
    for kind, message in said.items():
        if kind in never[sender]:
            with pytest.raises(MessageError, match=f"a {sender} said {kind.__name__}; expected"):
                check_message(message, sender)
        else:
            check_message(message, sender)
