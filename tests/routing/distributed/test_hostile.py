"""Whatever comes to a node from elsewhere: it is done or refused, and the node goes on as before."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.errors import TamisError
from tamis.routing import (
    CellInterest,
    Deliver,
    Deposit,
    Deposited,
    Entry,
    Flooded,
    Gossiped,
    HandOver,
    Notified,
    Passed,
    Publish,
    Relayed,
    Subscribe,
    TakeBack,
    TakenOver,
    Withdraw,
    decode,
    encode,
)
from tamis.routing.distributed import InformedGossiper, OneNode, RankingSettings, RendezvousNode, SubscriptionFlooder
from tamis.routing.dzalaps import Peer, Space
from tamis.routing.dzalaps.zones import Zones
from tamis.topk import Ranked
from tamis.topk.settings import TopKSettings
from tests.routing.test_wire_format import BETWEEN_NODES, HOSTILE

NEAR = tamis.parse("euclidean(array(x, y), array(0.1, 0.1)) <= 0.5D")
BEST = Ranked.parse("TOP 1 BY euclidean(array(x, y), array(0.1, 0.1)) OVER 10 SECONDS")
FAR = Passed("far", {"x": 0.9, "y": 0.9}, 1e9, "Z", 2**50)
PASSED = Passed("e", {"x": 0.2, "y": 0.2}, 1.0, "B", 1)
ZONE = ((0.0, 0.0), (0.5, 1.0), 1)
ODD = [
    FAR,
    Passed("old", {"x": 0.2, "y": 0.2}, -1e9, "Z", 1),
    Passed("second", {"x": 0.2}, 1.0, "A", 1, 2),
    Withdraw("unknown", 1e9),
    Relayed("nowhere", PASSED),
    Relayed((7, 7, 7), PASSED),
    Relayed((99, 99), PASSED),
    Relayed((0, 0), Deposit("A", "ann", "k", BEST, 1e9, 2**50)),
    Relayed((0, 0), TakeBack("A", "ann", "unknown", 3)),
    Relayed("A", Deposit("Z", "zoe", "k", Ranked.parse("TOP 1 BY length(x) OVER 3 EVENTS"))),
    Relayed("A", Deposit("Z", "zoe", "k", tamis.parse("x > 'text'"))),
    Notified(PASSED, (("ann", "unknown"), ("nobody", 1))),
    Gossiped(PASSED, 1_000_000, True),
    Flooded("A", 9, 0, (Entry(1, NEAR),)),
    Flooded("Z", 9, 4, (), (1, 2)),
    Flooded("Z", 2**50, 0, (Entry(1, tamis.parse("x > 'text'")),)),
    CellInterest("A", 5, ((1, 1),)),
    CellInterest("Z", 5, ((1 << 1000, 1),)),
    CellInterest("Z", 5, ((1,),)),
    CellInterest("Z", 5, ((1, 1, 1),)),
    HandOver(ZONE),
    *(
        HandOver(ZONE, (Deposited("A", "ann", "k", BEST, state, (PASSED,)),))
        for state in (
            (),
            (1.0,),
            (float("nan"), 0, 0, (), (), ()),
            (10**400, 0, 0, (), (), ()),
            (1.0, 0, 0, ((1.0, "x"),), (), ()),
            (1.0, 0, 0, (), ((), (), ()), ((float("nan"), 0),)),
            (1.0, 0, 0, (), ((), (), ()), ((1.0, 77),)),
        )
    ),
    TakenOver(ZONE),
    Subscribe((Entry(1, NEAR),)),
]


def nodes():
    zones = Zones.joined([("A", ()), ("B", (0.9, 0.9))], 2)
    peer = Peer("A", space=Space(("x", "y"), 4), zones=zones)
    waiting = Peer("A", space=Space(("x", "y"), 4), zones=zones)
    waiting.rezone(zones, 0.0, awaits=zones.of("A"))
    late = RankingSettings("strict", TopKSettings(filter="strict", buffer=2), 2.0, lateness_s=0.5)
    made = {
        "subscription flooding": SubscriptionFlooder("A", late),
        "rendezvous": RendezvousNode("A", late, meeting=OneNode("A")),
        "informed gossiping": InformedGossiper("A", late),
        "D-ZaLaPS": peer,
        "D-ZaLaPS that waits": waiting,
    }
    for name, node in made.items():
        if "D-ZaLaPS" not in name:
            node.connect("B", 0.0)
        node.attach("ann"), node.attach("shop")
    return made


def told(outputs):
    return [each.publication.key for each in outputs if isinstance(each, Deliver)]


def test_the_zone_that_is_handed_over_is_the_one_that_is_awaited():
    node = nodes()["D-ZaLaPS that waits"]
    assert node.is_moving
    node.receive(HandOver(ZONE), "B", 1.0)
    assert not node.is_moving and works(node, 2.0)


def works(node, now):
    """Is a client still told what it wants?"""
    node.receive(Subscribe((Entry("near", NEAR), Entry("best", BEST))), "ann", now)
    return "still there" in told(node.receive(Publish("still there", {"x": 0.1, "y": 0.1}), "shop", now))


def heard(node, message, now):
    """Let a node hear something from a neighbour and from a stranger; whatever it says can be written."""
    for source in ("B", "stranger"):
        try:
            outputs = node.receive(message, source, now)
        except TamisError:
            continue
        for output in outputs:
            if hasattr(output, "message"):
                encode(output.message)


@pytest.mark.parametrize("name", nodes())
def test_what_makes_no_sense_is_refused_and_harms_nobody(name):
    for message in (*BETWEEN_NODES, *HOSTILE, *ODD):
        node = nodes()[name]
        heard(node, message, 1.0)
        node.advance(2.0)
        assert name == "D-ZaLaPS that waits" or works(node, 3.0), message


@pytest.mark.parametrize("name", nodes())
def test_all_of_it_one_after_the_other_with_some_bytes_changed(name):
    chance, node = Random(7), nodes()[name]
    data = [encode(message) for message in (*BETWEEN_NODES, *(each for each in ODD if not isinstance(each, Subscribe)))]
    for step in range(600):
        broken = bytearray(chance.choice(data))
        for _ in range(chance.choice((0, 1, 1, 2))):
            broken[chance.randrange(3, len(broken))] = chance.randrange(256)
        try:
            message = decode(bytes(broken))
        except TamisError:
            continue
        heard(node, message, float(step))
        if step % 50 == 0:
            node.advance(float(step))
    assert name == "D-ZaLaPS that waits" or works(node, 1e10)
