"""Time, links and faults of a simulated network, one at a time."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.routing import Adaptation, Broker, ImperfectMerging, Send, Subscribe, Unsubscribe
from tamis.simulation import Checker, Counters, Network, Scenario, measured, simulate
from tamis.simulation.errors import RestlessError

RING = [("a", "b"), ("b", "c"), ("a", "c")]


def ring(seed=1, make=lambda name: Broker(name, algorithm="naive")):
    network = Network("abc", RING, make, Random(seed))
    for name in "abc":
        network.attach(f"client {name}", name)
    network.subscribe("client c", "s", tamis.parse("x > 1"))
    network.run()
    return network


def test_when_a_link_fails_a_waiting_one_takes_its_place_and_nothing_comes_twice():
    network = ring()
    checker = Checker(network)
    checker.knows("client c", "s", tamis.parse("x > 1"))
    assert network.used == [("a", "b"), ("b", "c")]
    network.fail_link(("b", "c"))
    network.run()
    assert network.used == [("a", "b"), ("a", "c")]
    network.publish("client b", "e1", {"x": 5})
    network.run()
    network.mend_link(("b", "c"))
    network.publish("client b", "e2", {"x": 5})
    network.run()
    assert network.used == [("a", "b"), ("a", "c")], "what works stays in use"
    assert network.delivered_count == 2 and checker.problems == []


def test_a_restarted_broker_learns_what_its_clients_and_neighbours_want():
    network = ring()
    network.crash("b")
    network.run()
    assert network.used == [("a", "c")] and not network.is_online("client b")
    network.publish("client b", "lost", {"x": 5})
    network.subscribe("client b", "t", tamis.parse("x < 0"))
    network.restart("b")
    network.run()
    network.publish("client b", "e1", {"x": 5})
    network.publish("client a", "e2", {"x": -5})
    network.run()
    assert network.delivered_count == 2
    assert measured(network)["entries"] == 4


def test_what_is_under_way_on_a_link_that_fails_is_lost_and_only_that():
    network = ring()
    network.publish("client a", "e1", {"x": 5})
    network.fail_link(("a", "b"))
    network.run()
    network.publish("client a", "e2", {"x": 5})
    network.run()
    assert network.delivered_count == 1


def test_messages_of_one_link_keep_their_order():
    for seed in range(20):
        network = ring(seed)
        for number in range(10):
            network.subscribe("client a", "s", tamis.parse(f"x = {number}"))
        network.run()
        assert [str(each) for each in network.brokers["b"].table.of("a").values()] == ["x = 9"]


def test_adaptive_filtering_saves_matching_and_loses_nothing():
    settings = Adaptation(stop_above=0.6, ask_above=0.5, event_count=4, wait_s=0.01)

    def make(scenario, number, name):
        return Broker(
            name, ImperfectMerging(), advertisements=scenario.advertisements, algorithm="naive", adaptation=settings
        )

    stopped = asked = 0
    for seed in range(25):
        run = simulate(Scenario.of_seed(seed), make)
        assert run.problems == [], f"replay with {run.scenario}"
        asked += run.counters.messages["Filter"]
        stopped += sum(
            not broker.is_filtering(each) for broker in run.network.brokers.values() for each in broker.neighbours
        )
    assert stopped > 0 and asked > 0


def test_a_network_that_answers_in_circles_is_stopped():
    class Echo(Broker):
        def receive(self, message, source, now):
            return [Send(source, message)] if source in self.neighbours else super().receive(message, source, now)

    with pytest.raises(RestlessError, match="answering in circles"):
        Network("ab", [("a", "b")], Echo, Random(1)).run(most_steps=100)


def test_counters_tell_messages_items_bytes_hops_and_delays():
    network = ring()
    counters = Counters(counts_bytes=True)
    network.observers.append(counters)
    network.subscribe("client c", "t", tamis.parse("x > 0"))
    network.run()
    network.publish("client a", "e", {"x": 3})
    network.run()
    assert counters.messages == {Subscribe.__name__: 2, "Publish": 2}
    assert counters.items[Subscribe.__name__] == 4, "each brings a filter and replaces one"
    assert counters.hop_count == 2 and 0.002 <= counters.delay_s <= 0.2
    assert counters.message_bytes["Publish"] > 10 and counters.messages[Unsubscribe.__name__] == 0
