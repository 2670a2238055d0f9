"""What a fresh ranked subscription reaches for, if its peer guesses: fewer messages, and some losses at the beginning."""

from __future__ import annotations

from random import Random

import pytest

from tamis.routing.distributed import RankingSettings
from tamis.routing.dzalaps import Peer, Space
from tamis.routing.dzalaps.zones import Zones
from tamis.routing.errors import ZoneError
from tamis.simulation.peers import PeerNetwork
from tamis.topk import Ranked, TopK
from tamis.topk.settings import TopKSettings

SPACE = Space(("x", "y"), 8)
FOUR = [("P0", ()), ("P1", (0.75, 0.25)), ("P2", (0.25, 0.75)), ("P3", (0.75, 0.75))]
SASF = RankingSettings("strict", TopKSettings(filter="strict", buffer=4), 4.0)
BEST = Ranked.parse("TOP 2 BY euclidean(array(x, y), array(0.2, 0.2)) OVER 20 SECONDS")


def network_of(initial, settings=SASF, **options):
    network = PeerNetwork(
        FOUR, SPACE, Random(1), delays_s=(0.0, 0.0), settings=settings, initial=initial, **options
    )  # fmt: skip
    network.told = []
    network.observers.append(
        lambda each: network.told.append((each.publication.key, network.now)) if hasattr(each, "hop_count") else None
    )
    network.attach("ann", "P0"), network.attach("shop", "P3")
    network.run()
    return network


def publish(network, name, x, y, seconds=0.5):
    network.wait(seconds)
    network.publish("shop", name, {"x": x, "y": y})
    network.run()


def interests(network):
    return {name: tuple(peer.interests()) for name, peer in network.peers.items() if peer.interests()}


@pytest.mark.parametrize(("initial", "reached"), [("whole", {"P1", "P2", "P3"}), ("preset", set())])
def test_a_fresh_subscription_reaches_as_far_as_the_best_of_the_recent_buffer(initial, reached):
    network = network_of(initial)
    for name, x in (("a", 0.25), ("b", 0.3), ("c", 0.45)):
        publish(network, name, x, 0.2)
    network.subscribe("ann", 1, BEST)
    network.run()
    assert set(interests(network)) == reached
    assert network.told == [], "what was published before is no result"
    publish(network, "near", 0.29, 0.2)
    publish(network, "far", 0.9, 0.9)
    publish(network, "own cell, beyond", 0.4, 0.4)
    told = [key for key, _ in network.told]
    assert told == (["near", "far", "own cell, beyond"] if initial == "whole" else ["near", "own cell, beyond"])


def test_without_as_many_events_as_it_wants_it_reaches_for_all_of_space():
    network = network_of("preset")
    publish(network, "a", 0.25, 0.2)
    network.subscribe("ann", 1, BEST)
    network.run()
    assert set(interests(network)) == {"P1", "P2", "P3"}


@pytest.mark.parametrize("seconds", [19.9, 20.1])
def test_a_guess_that_was_too_near_for_a_whole_window_is_dropped(seconds):
    network = network_of("preset")
    publish(network, "a", 0.21, 0.2), publish(network, "b", 0.22, 0.2)
    network.subscribe("ann", 1, BEST)
    network.run()
    assert interests(network) == {}
    network.wait(seconds)
    assert set(interests(network)) == ({"P1", "P2", "P3"} if seconds > 20 else set())


def test_it_ends_as_soon_as_enough_has_come_and_the_threshold_is_the_ranking_s_own():
    network = network_of("preset")
    publish(network, "a", 0.45, 0.2), publish(network, "b", 0.47, 0.2)
    network.subscribe("ann", 1, BEST)
    network.run()
    peer = network.peers["P0"]
    (who,) = peer.residents
    assert peer._threshold(who) == pytest.approx(0.27)
    publish(network, "c", 0.3, 0.2), publish(network, "d", 0.31, 0.2)
    assert peer._threshold(who) == peer.residents.threshold(who) == pytest.approx(0.11)
    assert peer._presets.due == float("inf")


@pytest.mark.parametrize("seed", range(3))
def test_two_windows_later_everybody_is_told_what_a_centre_tells(seed):
    chance, network, centre = Random(seed), network_of("preset"), TopK("naive")
    for number in range(8):
        publish(network, f"before{number}", chance.random(), chance.random())
    network.wait(0.5)
    network.subscribe("ann", 1, BEST)
    network.run()
    centre.add("best", BEST)
    begin, expected = network.now, []
    for number in range(120):
        network.wait(chance.uniform(0.1, 1.0))
        event = {"x": chance.random(), "y": chance.random()}
        network.publish("shop", number, event)
        network.run()
        expected += [(each.event, each.at) for each in centre.process(event, network.now, number)]
    keys = [key for key, _ in network.told]
    assert len(keys) == len(set(keys)) and set(keys) <= set(range(120))
    later = [(key, pytest.approx(at)) for key, at in expected if at > begin + 40]
    assert [(key, at) for key, at in network.told if at > begin + 40] == later and len(later) > 3


def test_settings_that_mean_nothing_are_refused():
    for initial, settings in (("guess", SASF), ("preset", RankingSettings())):
        with pytest.raises(ZoneError, match="expected"):
            Peer("A", settings, space=SPACE, zones=Zones.of_one("A", 2), initial=initial)


def test_numbered_windows_drop_the_guess_by_number_and_rankings_without_a_filter_try_nothing_twice():
    settings = RankingSettings("probabilistic", TopKSettings(), 4, is_numbered=True)
    network = network_of("preset", settings, numbers=True)
    publish(network, "a", 0.21, 0.2), publish(network, "b", 0.22, 0.2)
    network.subscribe("ann", 1, Ranked(BEST.score, 2, "6 EVENTS"))
    network.run()
    assert interests(network) == {}
    for number in range(5):
        publish(network, number, 0.9, 0.9)
        assert interests(network) == {}
    publish(network, 5, 0.9, 0.9)
    assert set(interests(network)) == {"P1", "P2", "P3"}
    assert sum(peer.tally["interested"] for peer in network.peers.values()) == 0
