"""Without delays every strategy but gossip tells everybody what one service would, at the same moments."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.routing import Entry, Reject, Subscribe
from tamis.routing.distributed import (
    DISTRIBUTED,
    BasicGossiper,
    ByValue,
    InformedGossiper,
    OneNode,
    RankingSettings,
    RendezvousNode,
    SubscriptionFlooder,
)
from tamis.routing.dzalaps import Space
from tamis.simulation import Network
from tamis.simulation.peers import PeerNetwork
from tamis.topk import Ranked
from tamis.topk.policies import BoxCells, EveryChange, Hysteresis
from tamis.topk.settings import TopKSettings
from tests.lengths import so_many
from tests.routing.distributed.worlds import NODES, at_a_centre, play, story, tree

ALGORITHMS = {
    "strict": ("strict", TopKSettings(), None),
    "relaxed": ("relaxed", TopKSettings(), None),
    "SASF": ("strict", TopKSettings(filter="strict", buffer=4), 4),
    "RAPF": ("relaxed", TopKSettings(filter="probabilistic", buffer=4), 4),
    "PA": ("probabilistic", TopKSettings(), None),
}


def settings_of(algorithm, kind):
    name, ranking, buffer = ALGORITHMS[algorithm]
    return RankingSettings(name, ranking, buffer, is_numbered="count" in kind)


def expected(steps, algorithm):
    if algorithm == "PA":
        return at_a_centre(steps, "probabilistic", guard=False)
    return at_a_centre(steps)


def network_of(nodes, settings, seed, **options):
    chance = Random(seed)
    numbers = {"numbers": settings.is_numbered, "delays_s": (0.0, 0.0)}
    if nodes == "D-ZaLaPS":
        points = [(name, (chance.random(), chance.random())) for name in NODES]
        space = Space(("x", "y"), chance.choice([3, 5, 8]))
        border, boxes = chance.choice(["clip", "wrap"]), chance.choice([1, 1, 2])
        return PeerNetwork(points, space, chance, settings=settings, border=border, boxes=boxes, **numbers, **options)
    links = tree(chance)
    given = {"meeting": OneNode("n3"), **options} if nodes == "rendezvous" else options
    return Network(NODES, links, lambda name: DISTRIBUTED[nodes](name, settings, **given), chance, **numbers)


CASES = [
    (strategy, algorithm, kind)
    for strategy in ("subscription flooding", "rendezvous", "D-ZaLaPS")
    for algorithm in ALGORITHMS
    for kind in ("count", "time", "count mixed", "time mixed", "boolean")
    if not (algorithm == "PA" and "time" in kind)  # how many events a window holds is estimated in another way
    and not (kind == "boolean" and algorithm != "strict")
]


@pytest.mark.parametrize(("strategy", "algorithm", "kind"), CASES, ids=" ".join)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_strategy_tells_what_a_centre_tells_at_the_same_moments(strategy, algorithm, kind, seed):
    steps = story(100 + seed, kind)
    settings = settings_of(algorithm, kind)
    told = play(network_of(strategy, settings, seed), steps)
    assert told == expected(steps, algorithm)
    assert told, "and somebody is told of something"


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "algorithm", "kind"), CASES, ids=" ".join)
def test_every_strategy_tells_what_a_centre_tells_in_hundreds_of_runs(strategy, algorithm, kind):
    for seed in range(1000, 1000 + so_many(30)):
        steps = story(seed, kind)
        told = play(network_of(strategy, settings_of(algorithm, kind), seed), steps)
        assert told == expected(steps, algorithm), f"seed {seed}"


THRESHOLDS = ["SASF", "RAPF", "PA"]
POLICIES = [EveryChange, Hysteresis, BoxCells]


@pytest.mark.parametrize(
    ("algorithm", "policy", "strategy"),
    [
        # The quick suite takes every pair of an algorithm and a policy, with one of the strategies.
        pytest.param(algorithm, policy, strategy, marks=[] if (one + two) % 2 == three else [pytest.mark.slow])
        for one, algorithm in enumerate(THRESHOLDS)
        for two, policy in enumerate(POLICIES)
        for three, strategy in enumerate(("covering", "simple"))
    ],
)
def test_what_others_know_of_thresholds_changes_nothing_but_messages(algorithm, policy, strategy):
    steps = story(7, "count mixed")
    network = network_of("subscription flooding", settings_of(algorithm, "count"), 7, policy=policy, strategy=strategy)
    assert play(network, steps) == expected(steps, algorithm)


@pytest.mark.parametrize("algorithm", ["SASF", "RAPF"])
@pytest.mark.parametrize("kind", ["count mixed", "time mixed"])
def test_second_attempts_made_on_the_spot_tell_the_same_as_the_thesis_and_post_less(algorithm, kind):
    posted = {}
    for second in ("thesis", "local"):
        steps = story(11, kind, length=120)
        network = network_of("D-ZaLaPS", settings_of(algorithm, kind), 11, second=second)
        assert play(network, steps) == expected(steps, algorithm)
        posted[second] = sum(peer.tally["interested"] for peer in network.peers.values())
    assert posted["local"] < 0.75 * posted["thesis"]


@pytest.mark.parametrize("kind", [BasicGossiper, InformedGossiper], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("algorithm", ["strict", "SASF", "PA"])
def test_gossiping_with_full_fan_out_on_a_tree_tells_what_flooding_tells(kind, algorithm):
    steps = story(21, "count mixed")
    chance = Random(21)
    settings = settings_of(algorithm, "count")
    network = Network(
        NODES, tree(chance), lambda name: kind(name, settings, fan_out=9, rounds=9), chance,
        delays_s=(0.0, 0.0), numbers=True, uses="all",
    )  # fmt: skip
    assert play(network, steps) == expected(steps, algorithm)


@pytest.mark.parametrize("seed", range(2))
def test_boolean_subscriptions_may_meet_their_events_at_many_nodes(seed):
    steps = story(seed, "boolean")
    steps = [
        step._replace(what=tamis.parse(f"z = {chance.choice('012')} AND {step.what}"))
        if step.does == "subscribe" and chance.random() < 0.7
        else step._replace(what={**step.what, "z": chance.choice([0, 1.0, 2])})
        if step.does == "publish"
        else step
        for chance in [Random(seed)]
        for step in steps
    ]
    network = network_of("rendezvous", RankingSettings(), seed, meeting=ByValue("z", NODES))
    assert play(network, steps) == at_a_centre(steps)


def test_the_best_of_events_that_meet_at_several_nodes_cannot_be_had():
    node = RendezvousNode("a", meeting=ByValue("city", ["a", "b"]))
    node.attach("ann")
    for where, is_refused in (("", True), (" WHERE city = 'Graz'", False)):
        entry = Entry("k", Ranked.parse(f"TOP 1 BY x OVER 1 HOUR{where}"))
        assert any(isinstance(each, Reject) for each in node.receive(Subscribe((entry,)), "ann", 0.0)) == is_refused


def test_informed_gossiping_has_a_better_recall_than_basic_gossiping():
    recalls = {}
    for kind in (BasicGossiper, InformedGossiper):
        told = wanted = 0
        for seed in range(12):
            steps = story(seed, "boolean")
            chance = Random(seed)
            network = Network(
                NODES, tree(chance), lambda name, kind=kind: kind(name, fan_out=1, rounds=3), chance,
                delays_s=(0.0, 0.0), uses="all",
            )  # fmt: skip
            there = play(network, steps)
            everybody = at_a_centre(steps)
            assert set(there) <= set(everybody)
            told, wanted = told + len(there), wanted + len(everybody)
        recalls[kind] = told / wanted
    assert recalls[BasicGossiper] < recalls[InformedGossiper] < 1


def test_messages_that_travel_as_bytes_are_understood_alike():
    for strategy in ("subscription flooding", "rendezvous", "D-ZaLaPS"):
        steps = story(31, "count mixed")
        network = network_of(strategy, settings_of("SASF", "count"), 31)
        network._encodes = True
        assert play(network, steps) == expected(steps, "SASF")


def test_subscription_flooders_know_of_others_what_these_know_themselves():
    steps = story(41, "count mixed")
    network = network_of("subscription flooding", settings_of("PA", "count"), 41)
    play(network, steps)
    for name, node in network.brokers.items():
        assert isinstance(node, SubscriptionFlooder)
        own = sorted(str(node.residents.filter(who)) for who in node.residents)
        for other in network.brokers.values():
            if other is not node:
                assert sorted(map(str, other.known(name).values())) == own
    assert any(len(node.residents) for node in network.brokers.values())
    assert isinstance(DISTRIBUTED["rendezvous"]("x", meeting=OneNode("x")), RendezvousNode)
