"""How many messages ranked subscriptions cost in the network of the thesis's examples: every count that concerns brokers.

The tree A–C, B–C, C–D, D–E, D–F with one client each (Pripužić 2010, examples 6.1 to 6.9). E wants more than D, A
publishes. Time stands still for messages, so that what is told is what one who sees everything tells.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

import tamis
from tamis.routing import Broker
from tamis.simulation import Network, TrafficCounters
from tamis.simulation.occurrences import EventDelivered, MessageCarried
from tamis.topk import Ranked, TopK
from tamis.topk.policies import BoxCells, EveryChange, ExactCells, Hysteresis

LINKS = [("A", "C"), ("B", "C"), ("C", "D"), ("D", "E"), ("D", "F")]
CLIENTS = {"a": "A", "b": "B", "c": "C", "d": "D", "e": "E", "f": "F"}


class Tree:
    """The network, and what is counted in it, step by step."""

    def __init__(self, strategy, **options):
        self.told = []
        self.ways = []
        self.counters = TrafficCounters()
        self.network = Network(
            "ABCDEF", LINKS, lambda name: Broker(name, strategy, **options), Random(1), delays_s=(0.0, 0.0),
            observers=[self.counters, self],
        )  # fmt: skip
        for client, home in CLIENTS.items():
            self.network.attach(client, home)
        self.network.run()
        assert self.counters.messages["Hello"] == 10, "everybody greets everybody once"
        self.step()

    def __call__(self, occurrence):
        if isinstance(occurrence, EventDelivered):
            self.told.append((occurrence.client, occurrence.publication.key, self.network.now))
        if isinstance(occurrence, MessageCarried):
            self.ways.append(f"{occurrence.source}{occurrence.target}")

    def step(self):
        """Let everything arrive; return how many messages that took since the last time."""
        self.network.run()
        count = self.counters.messages.total()
        self.counters.messages.clear()
        return count

    def ways_of(self):
        ways, self.ways = sorted(self.ways), []
        return ways

    def subscribe(self, client, wanted):
        self.ways.clear()
        self.network.subscribe(client, "s", Ranked.parse(wanted) if wanted.startswith("TOP") else tamis.parse(wanted))
        return self.step()

    def unsubscribe(self, client):
        self.ways.clear()
        self.network.unsubscribe(client, "s")
        return self.step()

    def publish(self, key, event, client="a"):
        self.network.publish(client, key, event)
        return self.step()


@pytest.mark.parametrize(
    ("strategy", "e_subscribes", "d_subscribes", "a_publishes"),
    [("flooding", 0, 0, 5), ("simple", 5, 5, 3), ("covering", 5, 1, 3)],
)
def test_boolean_subscriptions_of_the_example_cost_what_the_thesis_counts(
    strategy, e_subscribes, d_subscribes, a_publishes
):
    tree = Tree(strategy)
    assert tree.subscribe("e", "x > 10") == e_subscribes
    assert tree.subscribe("d", "x > 15") == d_subscribes
    assert tree.publish("p", {"x": 20}) == a_publishes
    assert sorted(client for client, *_ in tree.told) == ["d", "e"]


def ball(radius):
    return f"euclidean(array(x, y), array(0.5D, 0.5D)) <= {radius}D"


def test_a_filter_that_moves_costs_with_covering_what_example_6_8_counts():
    tree = Tree("covering")
    assert tree.subscribe("e", ball(0.3)) == 5
    assert (tree.subscribe("d", ball(0.1)), tree.ways_of()) == (1, ["DE"]), "it is covered"
    assert (tree.subscribe("d", ball(0.2)), tree.ways_of()) == (1, ["DE"]), "it still is"
    assert (tree.subscribe("d", ball(0.4)), tree.ways_of()) == (5, ["CA", "CB", "DC", "DE", "DF"])
    assert (tree.subscribe("d", ball(0.1)), tree.ways_of()) == (5, ["CA", "CB", "DC", "DE", "DF"])
    assert (tree.subscribe("e", ball(0.05)), tree.ways_of()) == (5, ["CA", "CB", "DC", "DF", "ED"])
    assert tree.unsubscribe("e") == 1
    assert tree.unsubscribe("d") == 5


def test_a_filter_that_moves_costs_with_simple_routing_five_messages_each_time():
    tree = Tree("simple")
    for client, radius in (("e", 0.3), ("d", 0.1), ("d", 0.2), ("d", 0.4), ("d", 0.1), ("e", 0.05)):
        assert tree.subscribe(client, ball(radius)) == 5
    assert tree.unsubscribe("e") == tree.unsubscribe("d") == 5


STREAM = (5, 3, 4, 6, 7, 1, 2)
"""A publishes one a second; who wants the best of four is told 5, 3, 1."""


def played(tree, wanted="TOP 1 BY x ASC OVER 4.25 SECONDS"):
    """Let E want the best of a second's event and the three before; return what subscribing, moves and events cost."""
    subscribing = tree.subscribe("e", wanted)
    control = events = 0
    for second, x in enumerate(STREAM, 1):
        tree.network.wait(second - tree.network.now)
        tree.network.publish("a", f"e{x}", {"x": x})
        tree.network.run()
        control += tree.counters.control_count
        events += tree.counters.event_count
        tree.counters.messages.clear()
    return subscribing, control, events


@pytest.mark.parametrize(
    ("strategy", "subscribing", "events"), [("covering", 5, 21), ("simple", 5, 21), ("flooding", 0, 35)]
)
@pytest.mark.parametrize("window", ["4.25 SECONDS", "4 EVENTS"])
def test_by_default_a_ranked_subscription_never_moves_and_is_told_the_best(strategy, subscribing, events, window):
    tree = Tree(strategy)
    assert played(tree, f"TOP 1 BY x ASC OVER {window}") == (subscribing, 0, events)
    assert [key for _, key, _ in tree.told] == ["e5", "e3", "e1"]


def test_a_strict_filter_moves_six_times_with_covering_and_asks_twice():
    tree = Tree("covering", ranked={"algorithm": "strict", "filter": "strict"}, policy=EveryChange, buffer_s=2.0)
    subscribing, control, events = played(tree)
    assert (subscribing, control / 5, events / 3) == (5, 6, 4 + 3)
    assert [key for _, key, _ in tree.told] == ["e5", "e3", "e1"]


def test_a_probabilistic_threshold_is_told_after_a_window_and_moves_then():
    tree = Tree("covering", ranked={"algorithm": "probabilistic"}, policy=EveryChange)
    subscribing, control, events = played(tree)
    assert [key for _, key, _ in tree.told] == ["e5", "e3", "e1"]
    # Its threshold loosens when one of its candidates leaves, a quarter of a second before the next event tightens it.
    # So of a time window there are five changes behind the first one, where the same count window has three.
    assert thresholds_of_one_who_sees_everything() == [7.0, 8.0, 7.0, 8.0, 7.0]
    assert (subscribing, control, events) == (5, 5 * 5, 21), "every event of the first window is sent"


def thresholds_of_one_who_sees_everything():
    """Return the thresholds that a processor by itself has behind the first window, as they change."""
    span, one, thresholds = 4.25, TopK("probabilistic", guard=False), [0.0]
    one.add("e", f"TOP 1 BY x ASC OVER {span} SECONDS")
    moments = sorted([(float(second), x) for second, x in enumerate(STREAM, 1)] + [(n + span, None) for n in (1, 2)])
    for moment, x in moments:
        if x is None:
            one.advance(moment)
        else:
            one.process({"x": x}, moment, x)
        if moment > span and one.threshold("e") != thresholds[-1]:
            thresholds.append(one.threshold("e"))
    return thresholds[1:]


POLICIES = {
    "every change": EveryChange,
    "hysteresis": partial(Hysteresis, share=0.2),
    "cells": partial(ExactCells, resolution=6),
    "boxes of cells": partial(BoxCells, resolution=6),
}
ALGORITHMS = {
    "a probabilistic ranking": ({"algorithm": "probabilistic"}, None),
    "a strict filter": ({"algorithm": "strict", "filter": "strict"}, 1.0),
    "a relaxed filter before a strict ranking": ({"algorithm": "strict", "filter": "relaxed"}, 1.0),
}
WANTED = {
    "a": "TOP 2 BY {0} ASC OVER 3 SECONDS",
    "d": "TOP 1 BY {1} ASC OVER 2 SECONDS WHERE kind = 1",
    "e": "TOP 3 BY {2} DESC OVER 4 SECONDS",
    "f": "TOP 1 BY {0} ASC OVER 2.5 SECONDS",
}
LINES = ("x", "x + y", "y")
POINTS = tuple(f"euclidean(array(x, y), array({x}D, {y}D))" for x, y in ((0.2, 0.3), (0.7, 0.6), (0.5, 0.5)))
CASES = [
    ("simple", "every change", "lines"),
    ("covering", "every change", "lines"),
    ("merging", "hysteresis", "lines"),
    ("identity", "hysteresis", "points"),
    ("simple", "cells", "points"),
    ("covering", "boxes of cells", "points"),
    ("flooding", "every change", "points"),
]
"""With covering, balls around several points are compared at great length: boxes are what it is for."""


@pytest.mark.parametrize(
    ("algorithm", "strategy", "policy", "scores"),
    [
        # The quick suite shares the networks out among the algorithms, and gives two of three to each network.
        pytest.param(algorithm, *case, marks=[] if (one + two) % 3 else [pytest.mark.slow])
        for one, algorithm in enumerate(ALGORITHMS)
        for two, case in enumerate(CASES)
    ],
)
def test_without_delays_thresholds_change_nothing_of_what_is_told_and_when(strategy, policy, scores, algorithm):
    settings, buffer_s = ALGORITHMS[algorithm]
    tree = Tree(strategy, ranked=settings, policy=POLICIES[policy], buffer_s=buffer_s)
    one = TopK("naive") if "filter" in settings else TopK("probabilistic", guard=False)
    for client, text in WANTED.items():
        wanted = text.format(*(LINES if scores == "lines" else POINTS))
        if scores == "points":
            wanted = wanted.replace("DESC", "ASC")
        tree.subscribe(client, wanted)
        one.add(client, wanted)
    chance, expected, times = Random(7), [], []
    for number in range(30):
        tree.network.wait(chance.uniform(0.01, 0.3))
        now, event = tree.network.now, {"x": chance.random(), "y": chance.random(), "kind": chance.randrange(2)}
        tree.publish(f"p{number}", event, chance.choice("abcdef"))
        times.append(now)
        if algorithm == "a probabilistic ranking":  # which goes by how many events there are, whoever wants them
            for client in WANTED:
                one.expect(client, sum(at > now - one.wanted(client).window.span for at in times))
        expected += one.process(event, now, f"p{number}")
        _see_that_no_known_threshold_is_too_tight(tree.network)
    tree.network.wait(6.0)
    expected += one.advance(tree.network.now)
    assert [each[:2] for each in sorted(tree.told)] == sorted(each[:2] for each in expected)
    for (_, _, at), each in zip(sorted(tree.told), sorted(expected), strict=True):
        assert at == pytest.approx(each.at)


def _see_that_no_known_threshold_is_too_tight(network):
    """At rest, everybody is sent what is within the threshold of a subscription's ranking."""
    for client, home in CLIENTS.items():
        desk = network.brokers[home].desk
        for key, ranked in desk.of(client).items():
            policy = desk._ranker._policies[client, key]
            threshold = desk._ranker._processor.threshold((client, key))
            assert policy.known >= (threshold if ranked.is_ascending else -threshold)
            assert network.brokers[home].table.of(client)[key] == policy.filter()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_thresholds_spare_events_and_a_hysteresis_spares_moves(algorithm):
    settings, buffer_s = ALGORITHMS[algorithm]
    costs = {}
    for name, policy in ((None, None), ("every change", EveryChange), ("hysteresis", partial(Hysteresis, share=0.5))):
        tree = Tree("covering", ranked=settings, policy=policy, buffer_s=buffer_s if policy else None)
        tree.subscribe("e", "TOP 1 BY x ASC OVER 2 SECONDS")
        chance, control, events = Random(3), 0, 0
        for number in range(80):
            tree.network.wait(0.06)
            tree.network.publish("a", number, {"x": chance.random()})
            tree.network.run()
            control, events = control + tree.counters.control_count, events + tree.counters.event_count
            tree.counters.messages.clear()
        costs[name] = control, events
    assert costs[None] == (0, 240), "no moves, and every event is sent"
    assert costs["every change"][1] < costs["hysteresis"][1] < 240
    assert costs["every change"][0] > costs["hysteresis"][0] > 0
