"""How many messages does each strategy need? The tree of the thesis's chapter 6, message by message."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import tamis
from tamis.routing import Broker
from tamis.routing.distributed import (
    BasicGossiper,
    InformedGossiper,
    OneNode,
    RankingSettings,
    RendezvousNode,
    SubscriptionFlooder,
)
from tamis.simulation import Network
from tamis.simulation.counting import TrafficCounters
from tamis.simulation.occurrences import EventDelivered
from tamis.topk import Ranked
from tamis.topk.settings import TopKSettings

NODES = "ABCDEF"
LINKS = [("A", "C"), ("B", "C"), ("C", "D"), ("D", "E"), ("D", "F")]


class Story:
    """One client at each node, and what happens is counted step by step."""

    def __init__(self, make, seed=1, **options):
        self.counters = TrafficCounters()
        self.delivered: list[tuple[str, object]] = []
        self.network = Network(
            NODES, LINKS, make, Random(seed), delays_s=(0.0, 0.0), observers=[self.counters, self._see], **options
        )
        for name in NODES:
            self.network.attach(name.lower(), name)
        self.network.run()
        self.step()

    def _see(self, occurrence):
        if isinstance(occurrence, EventDelivered):
            self.delivered.append((occurrence.client, occurrence.publication.key))

    def step(self):
        """Return how many messages went along links and by post since this was asked last."""
        self.network.run()
        links, posts = self.counters.messages.total(), self.counters.posted.total()
        self.counters.messages, self.counters.posted = Counter(), Counter()
        return links, posts

    def subscribe(self, client, wanted):
        wanted = Ranked.parse(wanted) if wanted.startswith("TOP") else tamis.parse(wanted)
        self.network.subscribe(client, 1, wanted)
        assert not self.network.rejected, self.network.rejected
        return self.step()

    def publish(self, *values):
        for x in values:
            self.network.now += 1.0
            self.network.publish("a", f"x{x}", {"x": x})
        return self.step()


def strategies(**settings):
    given = RankingSettings(**settings) if settings else None
    return {
        "publication flooding": (lambda name: Broker(name, "flooding")),
        "subscription flooding": (lambda name: SubscriptionFlooder(name, given)),
        "simple": (lambda name: Broker(name, "simple")),
        "covering": (lambda name: Broker(name, "covering")),
        "rendezvous": (lambda name: RendezvousNode(name, given, meeting=OneNode("B"))),
    }


@pytest.mark.parametrize(
    ("strategy", "first", "second", "published"),
    [
        ("publication flooding", (0, 0), (0, 0), (5, 0)),
        ("subscription flooding", (5, 0), (5, 0), (0, 2)),
        ("simple", (5, 0), (5, 0), (3, 0)),
        ("covering", (5, 0), (1, 0), (3, 0)),
        ("rendezvous", (3, 0), (2, 0), (2, 2)),
    ],
)
def test_messages_of_the_running_example(strategy, first, second, published):
    story = Story(strategies()[strategy])
    assert story.subscribe("e", "x > 10") == first
    assert story.subscribe("d", "x > 15") == second
    assert story.publish(20) == published
    assert sorted(story.delivered) == [("d", "x20"), ("e", "x20")]
    assert story.publish(5)[1] == 0 and len(story.delivered) == 2


def gossip(kind, seed):
    story = Story(lambda name: kind(name, fan_out=1, rounds=3), seed=seed, uses="all")
    subscribed = story.subscribe("e", "x > 10")[0], story.subscribe("d", "x > 15")[0]
    sent = story.publish(20)
    assert sent[1] == 0
    return subscribed, sent[0], "".join(sorted(client for client, _ in story.delivered))


def test_basic_gossiping_reaches_whom_chance_reaches():
    runs = [gossip(BasicGossiper, seed) for seed in range(400)]
    assert {subscribed for subscribed, _, _ in runs} == {(0, 0)}
    outcomes = Counter((sent, told) for _, sent, told in runs)
    assert set(outcomes) == {(2, ""), (3, "d"), (3, "de")}
    assert outcomes[2, ""] / 400 == pytest.approx(0.5, abs=0.1)
    assert outcomes[3, "d"] / 400 == outcomes[3, "d"] / 400 == pytest.approx(0.25, abs=0.1)
    recall = sum(len(told) for _, _, told in runs) / (2 * len(runs))
    assert recall == pytest.approx(3 / 8, abs=0.07)


def test_informed_gossiping_always_reaches_neighbours_of_neighbours():
    runs = [gossip(InformedGossiper, seed) for seed in range(400)]
    assert {(subscribed, told) for subscribed, _, told in runs} == {((1, 3), "de")}
    outcomes = Counter(sent for _, sent, _ in runs)
    assert set(outcomes) == {3, 4, 5}
    for sent, share in ((3, 0.25), (4, 0.5), (5, 0.25)):
        assert outcomes[sent] / 400 == pytest.approx(share, abs=0.1)


# -- One ranked stream


SASF = {"algorithm": "strict", "ranking": TopKSettings(filter="strict", buffer=2), "buffer": 2, "is_numbered": True}
STREAM = (5, 3, 4, 6, 7, 1, 2)


def ranked_story(make, **options):
    story = Story(make, numbers=True, **options)
    subscribed = story.subscribe("e", "TOP 1 BY x ASC OVER 4 EVENTS")
    links, posts = Counter(), Counter()
    for x in STREAM:
        before = dict(story.counters.messages), dict(story.counters.posted)
        assert before == ({}, {})
        story.network.now += 1.0
        story.network.publish("a", f"x{x}", {"x": x})
        story.network.run()
        links.update(story.counters.messages)
        posts.update(story.counters.posted)
        story.step()
    assert [key for _, key in story.delivered] == ["x5", "x3", "x1"]
    return subscribed, dict(links), dict(posts)


def test_a_ranked_stream_with_subscription_flooding_floods_every_change_of_the_threshold():
    subscribed, links, posts = ranked_story(lambda name: SubscriptionFlooder(name, RankingSettings(**SASF)))
    assert subscribed == (5, 0)
    assert links == {"Flooded": 6 * 5}
    assert posts == {"Passed": 5}


def test_a_ranked_stream_at_a_rendezvous_costs_what_a_boolean_one_costs():
    subscribed, links, posts = ranked_story(
        lambda name: RendezvousNode(name, RankingSettings(**SASF), meeting=OneNode("B"))
    )
    assert subscribed == (3, 0)
    assert links == {"Relayed": 14}
    assert posts == {"Notified": 3}


def test_a_ranked_stream_with_informed_gossiping_tells_neighbours_alone_of_changes():
    story = Story(
        lambda name: InformedGossiper(name, RankingSettings(**SASF), fan_out=9, rounds=9), numbers=True, uses="all"
    )
    assert story.subscribe("e", "TOP 1 BY x ASC OVER 4 EVENTS") == (1, 0)
    for x in STREAM:
        story.network.now += 1.0
        story.network.publish("a", f"x{x}", {"x": x})
    story.network.run()
    assert story.counters.messages["Subscribe"] == 6
    assert [key for _, key in story.delivered] == ["x5", "x3", "x1"]


@pytest.mark.parametrize(
    ("example", "make", "said", "each_time", "options"),
    [
        ("6.7", lambda name: SubscriptionFlooder(name, RankingSettings(**SASF)), "Flooded", 5, {}),
        (
            "6.9",
            lambda name: InformedGossiper(name, RankingSettings(**SASF), fan_out=9, rounds=9),
            "Subscribe",
            3,
            {"uses": "all"},
        ),
    ],
)
def test_a_threshold_in_the_middle_of_the_tree_is_told_to_all_or_to_neighbours(example, make, said, each_time, options):
    story = Story(make, numbers=True, **options)
    assert story.subscribe("d", "TOP 1 BY x ASC OVER 4 EVENTS") == (each_time, 0), example
    changes = []
    for x in STREAM:
        story.network.now += 1.0
        story.network.publish("a", f"x{x}", {"x": x})
        story.network.run()
        changes.append(story.counters.messages[said])
        story.step()
    assert sum(changes) == 6 * each_time and all(each % each_time == 0 for each in changes)


@pytest.mark.parametrize(
    ("algorithm", "ranking", "changes", "posts"),
    [
        ("probabilistic", TopKSettings(sigma=1e-3), 3, 6),
        ("relaxed", TopKSettings(filter="probabilistic", buffer=2), 11, 7),
    ],
)
def test_other_algorithms_change_their_thresholds_as_often_as_the_plan_says(algorithm, ranking, changes, posts):
    buffer = None if ranking.filter is None else 2
    settings = RankingSettings(algorithm, ranking, buffer, is_numbered=True)
    _, links, posted = ranked_story(lambda name: SubscriptionFlooder(name, settings))
    assert (links, posted) == ({"Flooded": changes * 5}, {"Passed": posts})
