"""A service and its clients: all strategies deliver the same, and cost the messages that were counted for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import TamisError
from tamis.topk import Ranked, SettingError, TopK
from tamis.topk.windows import CountWindow, TimeWindow
from tamis_lab.topk.central import (
    STRATEGIES,
    BoxCells,
    ClientDelivery,
    EveryChange,
    ExactCells,
    Hysteresis,
    PublicationFlooding,
    SelectiveRouting,
    SubscriptionFlooding,
)

CLIENTS = "ABCDEF"


@pytest.mark.parametrize(
    ("strategy", "subscribing", "publishing"),
    [("publication flooding", 0, 6), ("subscription flooding", 12, 2), ("selective routing", 2, 3)],
)
def test_the_running_example_takes_as_many_messages_as_in_the_thesis(strategy, subscribing, publishing):
    system = STRATEGIES[strategy](CLIENTS)
    system.subscribe("E", "s1", "x > 10")
    system.subscribe("D", "s2", "x > 15")
    assert system.message_count == subscribing
    assert system.publish("A", {"x": 20}, 0.0, "p") == [ClientDelivery("E", "p", 0.0), ClientDelivery("D", "p", 0.0)]
    assert system.message_count == subscribing + publishing
    system.unsubscribe("E", "s1")
    assert system.publish("A", {"x": 20}, 1.0, "q") == [ClientDelivery("D", "q", 1.0)]


def near(chance, k=3, window=CountWindow(40)):
    x, y = chance.random(2).tolist()
    return Ranked(f"euclidean(array(x, y), array({x}D, {y}D))", k, window)


def test_floods_of_publications_and_selective_routing_cost_what_the_formulas_say():
    chance = np.random.default_rng(1)
    m = count = 5
    systems = [PublicationFlooding(range(m)), SelectiveRouting(range(m))]
    subscriptions = [near(chance) for _ in range(count)]
    for system in systems:
        for owner, ranked in enumerate(subscriptions):
            system.subscribe(owner, f"s{owner}", ranked)
    told = 0
    for place, (x, y) in enumerate(chance.random((300, 2)).tolist()):
        answers = [system.publish(place % m, {"x": x, "y": y}, float(place), place) for system in systems]
        assert answers[0] == answers[1]
        told += len(answers[0])
    flooding, routing = systems
    assert flooding.message_count == 300 * m  # publishing alone costs anything
    assert dict(routing.messages) == {"subscribe": m, "publish": 300, "notify": told}


windows = st.sampled_from([CountWindow(4), CountWindow(9), TimeWindow(5.0), TimeWindow(20.0)])
POLICIES = (EveryChange, Hysteresis)
FILTERED = [("strict", {}), ("relaxed", {"filter": "strict", "buffer": 3}), ("strict", {"filter": "probabilistic"})]


@settings(max_examples=40)
@given(
    rankeds=st.lists(st.tuples(st.integers(1, 3), windows, st.sampled_from(["TRUE", "c = 1"])), min_size=1, max_size=4),
    events=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1), st.sampled_from([0.0, 1.0, 4.0])), max_size=40),
    choice=st.sampled_from(FILTERED),
    policy=st.sampled_from(POLICIES),
)
def test_matching_at_the_publishers_delivers_what_the_service_would_deliver(rankeds, events, choice, policy):
    algorithm, settings_ = choice
    publishers = SubscriptionFlooding(CLIENTS, algorithm, policy, **settings_)
    service = SelectiveRouting(CLIENTS, "naive")
    for place, (k, window, where) in enumerate(rankeds):
        for system in (publishers, service):
            system.subscribe(CLIENTS[place % 3], place, Ranked("x", k, window, where))
    now = 0.0
    for place, (x, c, step) in enumerate(events):
        now += step
        told = [system.publish("F", {"x": x, "c": c}, now, place) for system in (publishers, service)]
        assert sorted(told[0]) == sorted(told[1])
    assert sorted(publishers.advance(now + 100)) == sorted(service.advance(now + 100))


@pytest.mark.parametrize("policy", [EveryChange, Hysteresis, ExactCells, BoxCells])
def test_whatever_others_know_of_thresholds_nothing_is_lost(policy):
    chance = np.random.default_rng(2)
    systems = [SubscriptionFlooding(CLIENTS, "strict", policy, filter="strict", buffer=20), SelectiveRouting(CLIENTS)]
    rankeds = [near(chance, window=CountWindow(60)) for _ in range(4)]
    for system in systems:
        for owner, ranked in zip(CLIENTS, rankeds, strict=False):
            system.subscribe(owner, owner, ranked)
    for place, (x, y) in enumerate(chance.random((400, 2)).tolist()):
        told = [system.publish("F", {"x": x, "y": y}, float(place), place) for system in systems]
        assert sorted(told[0]) == sorted(told[1])


def updates(policy, count=700):
    chance = np.random.default_rng(3)
    system = SubscriptionFlooding(range(10), "probabilistic", policy)
    for owner in range(10):
        system.subscribe(owner, owner, near(chance, k=3, window=CountWindow(300)))
    for place, (x, y) in enumerate(chance.random((count, 2)).tolist()):
        system.publish(0, {"x": x, "y": y}, float(place), place)
    assert system.messages["subscribe"] == 10 * 10  # m subscriptions to C clients
    assert system.messages["update"] % 10 == 0  # every update goes to the service, and from there to all others
    return system


def test_updates_of_thresholds_are_most_of_the_messages_and_fewer_with_cells_or_hysteresis():
    every, loose, cells, boxes = (updates(policy) for policy in (EveryChange, Hysteresis, ExactCells, BoxCells))
    assert every.messages["update"] > 5 * (every.messages["subscribe"] + every.messages["notify"])
    for system in (loose, cells, boxes):
        assert system.messages["update"] < every.messages["update"]
        assert system.wasted >= every.wasted
    assert boxes.messages["update"] < cells.messages["update"]


@settings(max_examples=30)
@given(
    rankeds=st.lists(st.tuples(st.integers(1, 3), windows), min_size=1, max_size=3),
    steps=st.lists(
        st.tuples(
            st.integers(0, 9),
            st.sampled_from([0.0, 1.0, 4.0]),
            st.sampled_from([None, None, 0.0, 3.0]),
            st.integers(0, 30),
        ),
        max_size=30,
    ),
    choice=st.sampled_from(FILTERED),
)
def test_what_is_withdrawn_or_expires_is_told_to_nobody_under_any_strategy(rankeds, steps, choice):
    algorithm, settings_ = choice
    systems = [
        SubscriptionFlooding(CLIENTS, algorithm, **settings_),
        PublicationFlooding(CLIENTS, "strict"),
        SelectiveRouting(CLIENTS, "naive"),
    ]
    for place, (k, window) in enumerate(rankeds):
        for system in systems:
            system.subscribe(CLIENTS[place % 2], place, Ranked("x", k, window))
    now, ended = 0.0, {}
    for place, (x, step, lasts, withdrawn) in enumerate(steps):
        now += step
        expires = float("inf") if lasts is None else now + lasts
        ended[place] = expires
        told = [sorted(system.publish("F", {"x": x}, now, place, expires=expires)) for system in systems]
        assert told[0] == told[1] == told[2]
        if withdrawn < place:
            told = [sorted(system.unpublish("F", withdrawn, now)) for system in systems]
            assert told[0] == told[1] == told[2]
            ended[withdrawn] = min(ended[withdrawn], now)
    told = [sorted(system.advance(now + 100)) for system in systems]
    assert told[0] == told[1] == told[2]
    assert all(each.at <= ended[each.event] for each in told[0])


def test_a_withdrawal_costs_the_messages_that_an_event_costs():
    counts = {}
    for name, strategy in STRATEGIES.items():
        system = strategy(CLIENTS)
        system.subscribe("E", "s1", "TOP 1 BY x OVER 2 EVENTS")
        system.publish("A", {"x": 1}, 0.0, "p")
        before = system.message_count
        assert system.unpublish("A", "p", 1.0) == []
        counts[name] = system.message_count - before
    assert counts == {"publication flooding": 6, "subscription flooding": 6, "selective routing": 1}


def told_with_delays(expansion_s, contraction_s, algorithm="strict", **settings_):
    chance = np.random.default_rng(7)
    system = SubscriptionFlooding(CLIENTS, algorithm, expansion_s=expansion_s, contraction_s=contraction_s, **settings_)
    for owner in CLIENTS[:4]:
        system.subscribe(owner, owner, near(chance, window=TimeWindow(40.0)))
    told = []
    for place, (x, y) in enumerate(chance.random((400, 2)).tolist()):
        told += system.publish("F", {"x": x, "y": y}, float(place), place)
    return {(each.client, each.event): each.at for each in told + system.advance(500.0)}


@pytest.mark.parametrize(
    "choice", [("strict", {"filter": "strict"}), ("relaxed", {"filter": "probabilistic", "shared": "rank"})]
)
def test_a_late_expansion_loses_events_and_a_late_contraction_does_not(choice):
    algorithm, settings_ = choice
    in_time = told_with_delays(0.0, 0.0, algorithm, **settings_)
    assert told_with_delays(0.0, 15.0, algorithm, **settings_) == in_time
    assert told_with_delays(0.0, float("inf"), algorithm, **settings_) == in_time
    late = told_with_delays(15.0, 0.0, algorithm, **settings_)
    assert set(in_time) - set(late)


def test_floods_of_publications_and_selective_routing_are_two_systems():
    assert not issubclass(SelectiveRouting, PublicationFlooding)
    assert not issubclass(PublicationFlooding, SelectiveRouting)


def test_mistakes_are_refused():
    for strategy in STRATEGIES.values():
        with pytest.raises(SettingError):
            strategy("AA")
        system = strategy("AB")
        system.subscribe("A", "s", "x > 1")
        with pytest.raises(TamisError):
            system.subscribe("A", "s", "x > 2")
    with pytest.raises(TamisError):
        SubscriptionFlooding("AB", "block")
    with pytest.raises(SettingError):
        ExactCells(Ranked("x", 1, "1 HOUR"))
    with pytest.raises(SettingError):
        Hysteresis(Ranked("x", 1, "1 HOUR"), share=0)


def test_a_client_is_told_once_by_whichever_of_its_subscriptions_is_first():
    for system in (PublicationFlooding("AB"), SubscriptionFlooding("AB"), SelectiveRouting("AB")):
        system.subscribe("A", "s1", "x > 1")
        system.subscribe("A", "s2", Ranked("x", 1, "5 EVENTS"))
        assert system.publish("B", {"x": 2}, 0.0, "p") == [ClientDelivery("A", "p", 0.0)]
    processor = TopK("strict")
    processor.add("s1", Ranked("x", 1, "2 EVENTS"), client="A")
    processor.add("s2", Ranked("x", 1, "1 EVENT"), client="A")
    assert [len(processor.process({"x": x}, float(x), x)) for x in (1, 2, 3)] == [1, 1, 1]
