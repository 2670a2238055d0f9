"""A neighbour is told what it may have an answer to, however advertisements come and go."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.relations.advertisements import OverlapIndex
from tamis.routing import Broker
from tamis.routing.messages import NO_SCHEMA, Advertise, Entry, Hello, Subscribe, Unadvertise, Unsubscribe
from tests.relations.worlds import WORLDS


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_a_neighbour_knows_just_the_filters_that_overlap_what_it_advertises(world):
    chance = Random(5)
    broker = Broker("middle", "simple", advertisements="simple", schema=world.schema)
    broker.attach("client")
    broker.connect("north", 0.0)
    broker.receive(Hello((), (), NO_SCHEMA if world.schema is None else world.schema.digest), "north", 0.0)
    wanted, offered = {}, {}
    changes = 0
    for number in range(150):
        before = {entry.filter for entry in broker.told("north")}
        match chance.randrange(5):
            case 0 | 1:
                wanted[number] = world.conjunction(chance, chance.randint(1, 4))
                broker.receive(Subscribe((Entry(number, wanted[number]),)), "client", 0.0)
            case 2:
                offered[number] = world.conjunction(chance, chance.randint(2, 4))
                broker.receive(Advertise((Entry(number, offered[number]),)), "north", 0.0)
            case 3 if wanted:
                key = chance.choice(list(wanted))
                del wanted[key]
                broker.receive(Unsubscribe((key,)), "client", 0.0)
            case 4 if offered:
                key = chance.choice(list(offered))
                del offered[key]
                broker.receive(Unadvertise((key,)), "north", 0.0)
        expected = {each for each in wanted.values() if any(world.overlaps(each, other) for other in offered.values())}
        assert {entry.filter for entry in broker.told("north")} == expected
        changes += expected != before
    assert changes > 10


def test_the_end_of_an_advertisement_asks_anew_only_for_the_filters_that_relied_on_it(monkeypatch):
    broker = Broker("middle", "simple", advertisements="simple")
    broker.attach("client")
    broker.connect("north", 0.0)
    broker.receive(Hello((), (Entry(0, _price(100)), Entry(1, _price(50)), Entry(2, _price(70)))), "north", 0.0)
    for number in range(20):
        broker.receive(Subscribe((Entry(number, _price(10 + number)),)), "client", 0.0)
    asked = []
    honest = OverlapIndex.witness
    monkeypatch.setattr(OverlapIndex, "witness", lambda index, given: asked.append(given) or honest(index, given))
    reasons = dict(broker._links["north"]._reasons)
    for key in (0, 1, 2):
        asked.clear()
        relying = [source for source, reason in broker._links["north"]._reasons.items() if reason == key]
        broker.receive(Unadvertise((key,)), "north", 0.0)
        assert len(asked) == len(relying)
    assert len(reasons) == 20 and broker.told("north") == ()


def test_a_neighbour_that_leaves_is_not_searched_for_reasons(monkeypatch):
    broker = Broker("middle", "simple", advertisements="simple")
    broker.attach("client")
    broker.connect("north", 0.0)
    broker.receive(Hello((), tuple(Entry(key, _price(key + 50)) for key in range(30))), "north", 0.0)
    for number in range(20):
        broker.receive(Subscribe((Entry(number, _price(10 + number)),)), "client", 0.0)
    monkeypatch.setattr(OverlapIndex, "witness", None)
    broker.disconnect("north", 0.0)
    assert broker.neighbours == ()


def _price(limit):
    return tamis.parse(f"price < {limit} OR sold AND bids > {limit}")
