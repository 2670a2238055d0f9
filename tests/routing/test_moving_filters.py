"""Filters that move, as neighbours of brokers with a policy tell them, are matched as all others are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import Goal
from tamis.routing import Broker, Entry, Publish, RoutingTable, Send, Subscribe
from tamis.topk import Ranked
from tamis.topk.policies import EveryChange, Hysteresis

NEIGHBOURS, CLIENTS = ("north", "south"), ("ann", "bob")
TEXTS = (
    "euclidean(array(x, y), array(0, 0)) <= 1",
    "euclidean(array(x, y), array(0, 0)) <= 2.5D",
    "z = 1 AND euclidean(array(x, y), array(0, 0)) <= 1",
    "2 * x - y >= 1",
    "z = 1 AND x = 1",
    "x + y <= 3 OR z = 2",
)
FILTERS = [tamis.parse(text) for text in TEXTS]
WORLD = [{"x": x, "y": y, "z": z} for x in (0, 1, 2, None) for y in (0, 1.5) for z in (1, 2)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["toggle", "toggle", "replace", "replace", "mute", "unmute", "prune", "match", "match"]),
        st.sampled_from((*NEIGHBOURS, *NEIGHBOURS, *CLIENTS)),
        st.integers(0, len(FILTERS) - 1),
        st.integers(0, 2),
    ),
    max_size=30,
)


def wanted(table, event):
    return dict(sorted(table.match(event).items()))


@given(steps=STEPS)
@settings(max_examples=40)
def test_a_table_with_proxies_matches_what_one_without_matches(steps):
    plain, keeping = RoutingTable(), RoutingTable(keeps_proxies=True)
    for table in (plain, keeping):
        for neighbour in NEIGHBOURS:
            table.connect(neighbour)
    for what, peer, number, key in [*steps, ("match", "north", 0, 0)]:
        if what == "match":
            expected = [wanted(plain, event) for event in WORLD]
            assert [wanted(keeping, event) for event in WORLD] == expected
            named = keeping.named(keeping.match_many(WORLD), len(WORLD))
            assert [dict(sorted(each.items())) for each in named] == expected
            plain.match_many(WORLD)
            assert keeping.match_count == plain.match_count
            continue
        for table in (plain, keeping):
            is_there = (peer, key) in table
            if what in ("toggle", "replace"):
                if is_there:
                    table.remove(peer, key)
                if not is_there or what == "replace":
                    table.add(peer, key, FILTERS[number])
            elif what == "prune":
                table.prune(Goal(share=number / 6), lambda _: 0.5)
            elif peer in NEIGHBOURS:
                getattr(table, what)(peer)
    assert all(set(keeping.of(peer)) == set(plain.of(peer)) for peer in (*NEIGHBOURS, *CLIENTS))


def moving(name, policy=EveryChange):
    return Broker(name, ranked={"algorithm": "strict", "filter": "strict"}, policy=policy, buffer_s=5.0)


def test_a_neighbour_s_threshold_that_moves_is_not_registered_with_the_matcher_again():
    broker = moving("middle")
    broker.connect("north", 0.0), broker.attach("shop")
    near = "euclidean(array(x, y), array(0, 0)) <= {}"
    assert broker.receive(Subscribe((Entry(1, tamis.parse(near.format(3))),)), "north", 0.0) == []
    registered = broker.table.figures()
    key = 0
    for place, radius in enumerate((2, 1, 4, 0.5, 3)):
        broker.receive(Subscribe((Entry(place + 2, tamis.parse(near.format(radius))),), (place + 1,)), "north", 1.0)
        for x in (0.4, 0.9, 1.5, 2.5, 3.5):
            key += 1
            sent = broker.receive(Publish(key, {"x": x, "y": 0.0}), "shop", 1.0)
            assert [each.peer for each in sent if isinstance(each, Send)] == (["north"] if x <= radius else [])
    assert broker.table.figures()["subscriptions"] == registered["subscriptions"] == 0


@pytest.mark.parametrize("policy", [EveryChange, Hysteresis])
@settings(max_examples=8)
@given(points=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=5, max_size=60), k=st.integers(1, 3))
def test_what_a_broker_sends_on_is_the_same_with_proxies_and_without(policy, points, k):
    told = []
    for keeps in (True, False):
        home, first = moving("home", policy), moving("first", policy)
        if not keeps:
            first.table = RoutingTable()
        hellos = [(first, first.connect("home", 0.0)), (home, home.connect("first", 0.0))]
        first.attach("shop"), home.attach("ann")
        carried, log = [], []

        def carry(broker, outputs, now, carried=carried, log=log, home=home, first=first):
            for each in outputs:
                if isinstance(each, Send):
                    other = home if broker is first else first
                    carried.append(type(each.message).__name__)
                    carry(other, other.receive(each.message, broker.name, now), now)
                else:
                    log.append((each.client, each.publication.key, now))

        for broker, hello in hellos:
            carry(broker, hello, 0.0)
        best = Ranked.parse(f"TOP {k} BY euclidean(array(x, y), array(4, 4)) OVER 12 SECONDS")
        carry(home, home.receive(Subscribe((Entry("best", best),)), "ann", 0.0), 0.0)
        for number, (x, y) in enumerate(points, start=1):
            now = float(number)
            carry(first, first.advance(now), now)
            carry(home, home.advance(now), now)
            carry(first, first.receive(Publish(number, {"x": x, "y": y}), "shop", now), now)
        told.append((log, carried))
    assert told[0] == told[1] and told[0][0]
    assert "Subscribe" in told[0][1] and "Passed" in told[0][1]
