"""How many messages do four peers need? The table of the plan, row by row, with either border."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import tamis
from tamis.routing.dzalaps import Space
from tamis.simulation.counting import TrafficCounters
from tamis.simulation.peers import PeerNetwork
from tamis.topk import Ranked

FOUR = [("P0", ()), ("P1", (0.75, 0.25)), ("P2", (0.25, 0.75)), ("P3", (0.75, 0.75))]


class Table:
    """Four peers, a client at each; every step says what it took."""

    def __init__(self, **settings):
        self.counters = TrafficCounters()
        self.network = PeerNetwork(
            FOUR, Space(("x", "y"), 4), Random(1), delays_s=(0.0, 0.0), observers=[self.counters], **settings
        )
        for name, _ in FOUR:
            self.network.attach(name.lower(), name)
        self.step()

    def step(self):
        self.network.run()
        tally: Counter[str] = Counter()
        for peer in self.network.peers.values():
            tally += peer.tally
            peer.tally.clear()
        hops = self.counters.messages["Relayed"]
        posts = dict(self.counters.posted)
        self.counters.messages, self.counters.posted = Counter(), Counter()
        assert set(posts) <= {"CellInterest", "Passed", "Notified"}
        assert posts.get("CellInterest", 0) == tally["interest"] and posts.get("Passed", 0) == tally["interested"]
        return {**tally, "hops": hops}

    def subscribe(self, peer, key, x, y, radius=0.1):
        near = f"euclidean(array(x, y), array({x}, {y}))"
        wanted = Ranked.parse(f"TOP 1 BY {near} OVER 1 HOUR") if radius is None else tamis.parse(f"{near} <= {radius}")
        self.network.subscribe(peer.lower(), key, wanted)
        assert not self.network.rejected
        return self.step()

    def unsubscribe(self, peer, key):
        self.network.unsubscribe(peer.lower(), key)
        return self.step()

    def publish(self, peer, x, y):
        self.network.now += 1
        self.network.publish(peer.lower(), f"{x} {y}", {"x": x, "y": y})
        return self.step()


@pytest.mark.parametrize(("border", "round_the_border"), [("clip", 0), ("wrap", 1)])
def test_boolean_subscriptions_of_four_peers(border, round_the_border):
    table = Table(border=border)
    assert table.subscribe("P3", 1, 0.3, 0.3) == {"subscribe": 1, "hops": 2}
    assert table.subscribe("P3", 2, 0.45, 0.3) == {"subscribe": 1, "interest": 1, "hops": 2}
    more = {"interest": 1} if round_the_border else {}
    assert table.subscribe("P2", 1, 0.05, 0.3) == {"subscribe": 1, **more, "hops": 1}
    assert table.publish("P2", 0.52, 0.3) == {"rendezvous": 1, "interested": 1, "owner": 1, "hops": 2}
    assert table.publish("P2", 0.6, 0.45) == {"rendezvous": 1, "interested": 1, "hops": 2}  # in vain
    assert table.publish("P2", 0.7, 0.7) == {"rendezvous": 1, "hops": 1}
    assert table.publish("P1", 0.3, 0.25) == {"rendezvous": 1, "owner": 1, "hops": 1}
    assert table.network.delivered_count == 2
    assert table.unsubscribe("P3", 2) == {"unsubscribe": 1, "interest": 1, "hops": 2}
    assert table.unsubscribe("P2", 1) == {"unsubscribe": 1, **more, "hops": 1}
    assert table.unsubscribe("P3", 1) == {"unsubscribe": 1, "hops": 2}
    assert not any(peer.interests() for peer in table.network.peers.values())


@pytest.mark.parametrize("border", ["clip", "wrap"])
def test_a_fresh_ranked_subscription_wants_the_whole_space(border):
    table = Table(border=border)
    assert table.subscribe("P3", 1, 0.3, 0.3, radius=None) == {"subscribe": 1, "interest": 3, "hops": 2}
    assert table.unsubscribe("P3", 1) == {"unsubscribe": 1, "interest": 3, "hops": 2}


def test_an_event_in_a_cell_of_the_own_merger_counts_as_interested_if_that_is_asked_for():
    table = Table(border="wrap", counts_own=True)
    table.subscribe("P3", 1, 0.3, 0.3)
    table.network.publish("p0", "e", {"x": 0.3, "y": 0.3})
    table.network.run()
    assert table.network.peers["P0"].tally["interested"] == 1
    table.network.publish("p0", "f", {"x": 0.7, "y": 0.7})
    table.network.run()
    assert [peer.tally["interested"] for peer in table.network.peers.values()] == [1, 0, 0, 0]


def test_what_has_no_place_in_space_is_refused():
    table = Table()
    for wanted in ("x > 0.5", "euclidean(array(x, z), array(0.5, 0.5)) < 1", "euclidean(array(x), array(0.5)) < 1"):
        table.network.subscribe("p1", "k", tamis.parse(wanted))
    for ranked in ("TOP 1 BY x OVER 1 HOUR", "TOP 1 BY euclidean(array(x, y), array(0.5, 0.5)) DESC OVER 1 HOUR"):
        table.network.subscribe("p1", "k", Ranked.parse(ranked))
    assert len(table.network.rejected) == 5
    assert all("place in space" in each.reason for each in table.network.rejected)
    assert all(not peer.wanted_by(peer.clients[0]) for peer in table.network.peers.values())


def test_an_event_without_a_place_goes_nowhere():
    table = Table()
    table.subscribe("P3", 1, 0.3, 0.3, radius=None)
    for event in ({}, {"x": 0.3}, {"x": 0.3, "y": None}, {"x": 0.3, "y": float("nan")}, {"x": "a", "y": 1}):
        table.network.publish("p1", f"{event}", event)
    assert table.step() == {"hops": 0} and table.network.delivered_count == 0


def test_events_and_subscriptions_outside_of_the_bounds_of_space_meet_in_its_outermost_cells():
    table = Table()
    table.subscribe("P3", 1, 1.25, -0.5, radius=0.5)
    assert table.publish("P1", 1.5, -0.25)["owner"] == 1
    assert "owner" not in table.publish("P1", 0.6, 0.1)
