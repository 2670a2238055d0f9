"""Brokers forward fewer filters about networks and places, because relations know which cover which."""

from __future__ import annotations

from random import Random

import pytest

from tamis import parse
from tamis.routing import Broker
from tamis.simulation import Network
from tamis.simulation.occurrences import EventDelivered

NESTED = [f"in_cidr(ip, '10.{number}.0.0/{length}')" for number in range(4) for length in (16, 20, 24)]
"""In each of four networks two smaller ones."""
PLACES = [
    f"distance(lat, lon, {45 + 2 * number + step}, 16) < {reach}"
    for number in range(4)
    for step, reach in ((0, 60), (0.1, 30), (-0.2, 20))
]
"""Around each of four places a circle with two smaller ones in it, each about a place of its own."""


def entries(strategy, filters):
    """Return how many filters the neighbour of a broker has whose clients have these, and what clients are sent."""
    sent = []
    network = Network(
        ["b0", "b1"],
        [("b0", "b1")],
        lambda name: Broker(name, strategy, algorithm="naive"),
        Random(1),
        observers=[sent.append],
    )
    network.attach("ann", "b0")
    network.attach("bob", "b1")
    network.subscribe_many("ann", {number: parse(text) for number, text in enumerate(filters)})
    network.run()
    count = len(network.brokers["b1"].table)
    chance = Random(7)
    for number in range(60):
        event = {"ip": f"10.{chance.randrange(6)}.{chance.randrange(32)}.1", "lat": chance.uniform(44, 52), "lon": 16.2}
        network.publish("bob", f"e{number}", event)
    network.run()
    return count, {each.publication.key for each in sent if isinstance(each, EventDelivered)}


@pytest.mark.parametrize("filters", [NESTED, PLACES], ids=["networks", "places"])
@pytest.mark.parametrize("strategy", ["covering", "merging"])
def test_a_neighbour_is_sent_the_outermost_networks_and_circles_and_nothing_is_lost(strategy, filters):
    everything, expected = entries("identity", filters)
    fewer, delivered = entries(strategy, filters)
    assert delivered == expected and expected
    assert everything == 12
    # Four networks of equal length that lie side by side are one network, and merge; circles do not.
    assert fewer == (1 if strategy == "merging" and filters is NESTED else 4)
