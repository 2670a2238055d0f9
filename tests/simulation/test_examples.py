"""Published example networks, message by message."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.routing import Broker
from tamis.simulation import Network, TrafficCounters, measured
from tamis.simulation.occurrences import MessageCarried
from tamis.simulation.topologies import TOPOLOGIES, names

EXAMPLE = [("A", "C"), ("B", "C"), ("C", "D"), ("D", "E"), ("D", "F")]
"""The example network of Pripužić 2010, section 6.3."""


def network_of(links, strategy, **options):
    brokers = sorted({name for link in links for name in link})
    network = Network(brokers, links, lambda name: Broker(name, strategy, algorithm="naive", **options), Random(1))
    for name in brokers:
        network.attach(name.lower(), name)
    network.run()
    ways = []

    def note(occurrence):
        if isinstance(occurrence, MessageCarried):
            ways.append(f"{occurrence.source}{occurrence.target}")

    counters = TrafficCounters()
    network.observers += [note, counters]
    return network, ways, counters


def ways_of(network, ways, action, *arguments):
    ways.clear()
    action(*arguments)
    network.run()
    return sorted(ways)


@pytest.mark.parametrize(
    ("strategy", "first", "second", "published"),
    [
        ("flooding", [], [], ["AC", "CB", "CD", "DE", "DF"]),
        ("simple", ["CA", "CB", "DC", "DF", "ED"], ["CA", "CB", "DC", "DE", "DF"], ["AC", "CD", "DE"]),
        ("identity", ["CA", "CB", "DC", "DF", "ED"], ["CA", "CB", "DC", "DE", "DF"], ["AC", "CD", "DE"]),
        ("covering", ["CA", "CB", "DC", "DF", "ED"], ["DE"], ["AC", "CD", "DE"]),
        ("merging", ["CA", "CB", "DC", "DF", "ED"], ["DE"], ["AC", "CD", "DE"]),
    ],
)
def test_the_example_network_sends_exactly_the_published_messages(strategy, first, second, published):
    network, ways, counters = network_of(EXAMPLE, strategy)
    assert ways_of(network, ways, network.subscribe, "e", "s", tamis.parse("x > 10")) == first
    assert ways_of(network, ways, network.subscribe, "d", "s", tamis.parse("x > 15")) == second
    assert ways_of(network, ways, network.publish, "a", "e1", {"x": 20}) == published
    assert counters.delivered_count == 2
    assert counters.hop_count == 2 + 3  # D is two links away from A, E three


def test_when_a_broad_subscription_leaves_the_narrow_one_spreads_to_where_it_must():
    network, ways, _ = network_of(EXAMPLE, "covering")
    network.subscribe("e", "s", tamis.parse("x > 10"))
    network.run()
    network.subscribe("d", "s", tamis.parse("x > 15"))
    network.run()
    assert ways_of(network, ways, network.unsubscribe, "e", "s") == ["CA", "CB", "DC", "DF", "ED"]
    for name, beside in (("A", "C"), ("B", "C"), ("C", "D"), ("F", "D"), ("E", "D")):
        assert [str(each) for each in network.brokers[name].table.of(beside).values()] == ["x > 15"]


@pytest.mark.parametrize("topology", ["line", "star", "balanced tree", "random tree"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_simple_routing_costs_one_message_for_each_link_and_an_entry_in_every_other_broker(topology, count):
    links = TOPOLOGIES[topology](count, Random(2))
    counters = TrafficCounters()
    network = Network(names(count), links, lambda name: Broker(name, "simple", algorithm="naive"), Random(1))
    network.run()  # brokers greet each other
    network.observers.append(counters)
    network.attach("ann", "b0")
    for number in range(5):
        network.subscribe("ann", number, tamis.parse("x = 1"))
        network.run()
    assert counters.control_count == 5 * (count - 1) == measured(network)["entries"]
    network.unsubscribe("ann", 3)
    network.run()
    assert counters.control_count == 6 * (count - 1)


def test_flooding_sends_no_control_messages_and_every_event_over_every_link():
    network, _, counters = network_of(EXAMPLE, "flooding")
    network.subscribe("a", "s", tamis.parse("x = 1"))
    for number in range(4):
        network.publish("f", number, {"x": 0})
    network.run()
    assert (counters.control_count, counters.event_count, counters.delivered_count) == (0, 4 * 5, 0)


def test_a_merger_for_each_neighbour_asks_nobody_for_what_he_alone_wants():
    # B1 wants F1, B2 wants F2; a merger of both that went to both would fetch F2's events from B1 for nobody
    network, ways, _ = network_of([("1", "3"), ("2", "3")], "merging")
    network.subscribe("1", "s", tamis.parse("x = 1 AND y = 0"))
    network.subscribe("2", "s", tamis.parse("x = 2 AND y = 0"))
    network.run()
    assert ways_of(network, ways, network.publish, "1", "e1", {"x": 2, "y": 0}) == ["13", "32"]
    assert ways_of(network, ways, network.publish, "1", "e2", {"x": 1, "y": 0}) == []


def test_advertisements_keep_subscriptions_away_from_where_nothing_comes_from():
    network, ways, counters = network_of(EXAMPLE, "covering", advertisements="covering")
    assert ways_of(network, ways, network.advertise, "a", "a", tamis.parse("x BETWEEN 0 AND 30")) == [
        "AC",
        "CB",
        "CD",
        "DE",
        "DF",
    ]
    assert ways_of(network, ways, network.subscribe, "e", "s", tamis.parse("x > 10")) == ["CA", "DC", "ED"]
    assert ways_of(network, ways, network.subscribe, "f", "s", tamis.parse("x > 100")) == []
    assert ways_of(network, ways, network.publish, "a", "e1", {"x": 20}) == ["AC", "CD", "DE"]
    assert counters.delivered_count == 1


def test_a_lease_that_ends_takes_its_entries_off_the_whole_way():
    network, _, _ = network_of(EXAMPLE, "covering")
    network.subscribe("e", "s", tamis.parse("x > 10"), lease_s=60)
    network.wait(30)
    assert measured(network)["entries"] == 5
    network.subscribe("e", "s", tamis.parse("x > 10"), lease_s=60)
    network.wait(59)
    assert measured(network)["entries"] == 5
    network.wait(2)
    assert measured(network)["entries"] == 0


def test_announcements_reach_who_asks_for_them_and_cause_no_others():
    network, _, counters = network_of(EXAMPLE, "covering", announces=True)
    network.subscribe("a", "watch", tamis.parse("type = 'tamis.Subscribed' AND client = 'f'"))
    network.run()
    network.subscribe("f", "s", tamis.parse("x = 1"))
    network.run()
    assert counters.delivered_count == 1
