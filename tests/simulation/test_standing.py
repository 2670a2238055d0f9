"""Only the stateless part of a sequence or a change travels; whoever is at home keeps the state, and misses nothing."""

from __future__ import annotations

from random import Random

import pytest

from tamis.routing import STRATEGIES, Broker
from tamis.routing.messages import Deliver
from tamis.simulation import Network, Scenario, simulate_stateful
from tamis.simulation.occurrences import EventDelivered
from tamis.standing import Standing, interest, parse_subscription
from tests.lengths import so_many

WANTED = {
    "ann": {
        "guess": "SEQUENCE kind = 'bad' THEN kind = 'good' WITHIN 3 SECONDS PER user",
        "higher": "SEQUENCE kind = 'bid' AS x THEN kind = 'bid' AND price > x.price AFTER 1 SECOND WITHIN 4 SECONDS",
    },
    "bob": {
        "silent": "SEQUENCE kind = 'bad' THEN NOT kind = 'good' WITHIN 0.3 SECONDS PER user",
        "dear": "CHANGE OF price > 5 PER user WHERE kind = 'bid'",
        "recent": "CHANGE TO price > 5 PER user FORGET AFTER 2 SECONDS",
    },
}
LINKS = [("b0", "b1"), ("b1", "b2"), ("b1", "b3"), ("b3", "b4")]
LATENESS_S = 1.0
"""Longer than any way through the network takes: four links of a tenth of a second."""


class Homes:
    """The states of all clients, each at its home: told of what reaches the client, and of nothing else."""

    def __init__(self, wanted):
        self.states = {client: Standing(lateness=LATENESS_S) for client in wanted}
        self.told = {client: [] for client in wanted}
        self.delivered = 0
        for client, texts in wanted.items():
            self.states[client].add_many(texts)

    def __call__(self, occurrence):
        if isinstance(occurrence, EventDelivered) and occurrence.client in self.states:
            self.delivered += 1
            event = dict(occurrence.publication.event)
            state = self.states[occurrence.client]
            self.told[occurrence.client] += state.process(event, event["at"], occurrence.publication.key)

    def rest(self, now):
        for client, state in self.states.items():
            self.told[client] += state.advance(now)


def played(strategy, seed, wanted=WANTED):
    """Let clients publish all over a network; return what the homes told, and what one who sees everything tells."""
    chance, homes = Random(seed), Homes(wanted)
    network = Network(
        [f"b{n}" for n in range(5)], LINKS, lambda name: Broker(name, strategy), chance, observers=[homes]
    )
    for client, home in (("ann", "b0"), ("bob", "b4"), ("cem", "b2"), ("dia", "b3")):
        network.attach(client, home)
    for client, texts in wanted.items():
        network.subscribe_many(client, {key: interest(parse_subscription(text)) for key, text in texts.items()})
    network.run()
    everything = {client: Standing() for client in wanted}
    expected = {client: [] for client in wanted}
    for client, texts in wanted.items():
        everything[client].add_many(texts)
    start = network.now
    for number in range(120):
        at = round(start + 0.07 * number, 6)
        network.wait(max(0.0, at - network.now))
        event = {"kind": chance.choice(["bad", "good", "bid", "noise"]), "user": chance.choice([1, 2, None]),
                 "price": chance.choice([1, 4, 6, 9, None]), "at": at}  # fmt: skip
        network.publish(chance.choice(["cem", "dia", "ann"]), f"e{number}", event)
        for client, state in everything.items():
            expected[client] += state.process(event, at, f"e{number}")
    network.run()
    end = network.now + 100
    homes.rest(end)
    for client, state in everything.items():
        expected[client] += state.advance(end)
    return homes, expected


def ordered(told):
    return sorted(map(repr, told))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(2))
def test_homes_tell_what_one_who_sees_all_events_tells(strategy, seed):
    homes, expected = played(strategy, seed)
    for client in WANTED:
        assert ordered(homes.told[client]) == ordered(expected[client])
        assert {each.subscription for each in expected[client]} == WANTED[client].keys()


def test_what_no_step_can_use_does_not_reach_a_home():
    wanted = {"ann": {"guess": WANTED["ann"]["guess"]}}
    homes, expected = played("covering", 3, wanted)
    assert ordered(homes.told["ann"]) == ordered(expected["ann"]) and expected["ann"]
    assert homes.delivered < 90, "bids and noise stay away"


def test_a_home_that_misses_a_step_is_found_out():
    """The check can fail: without the interest in its second step a home tells less."""
    wanted = {"ann": {"guess": "SEQUENCE kind = 'bad' THEN kind = 'good' WITHIN 3 SECONDS PER user"}}
    homes, expected = Homes(wanted), Standing()
    expected.add_many(wanted["ann"])
    network = Network(["b0", "b1"], [("b0", "b1")], lambda name: Broker(name, "simple"), Random(1), observers=[homes])
    network.attach("ann", "b0")
    network.attach("cem", "b1")
    first = parse_subscription(wanted["ann"]["guess"]).steps[0].condition
    network.subscribe("ann", "guess", first)
    network.run()
    told = []
    for number, kind in enumerate(["bad", "good"]):
        event = {"kind": kind, "user": 1, "at": float(number)}
        network.publish("cem", f"e{number}", event)
        told += expected.process(event, event["at"], f"e{number}")
    network.run()
    homes.rest(100.0)
    assert told and not homes.told["ann"]


# -- Scenarios: strategies, delays, duplicates, crashes, restarts, cut links, roaming clients


def stateful(seed, strategy):
    return Scenario.of_seed(seed, strategies=(strategy,), has_faults=True, algorithm="naive")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_after_faults_clients_are_sent_what_one_who_sees_all_events_reports(strategy):
    for seed in range(2):
        clients = simulate_stateful(stateful(seed, strategy))
        assert clients.problems == []
        assert clients.reported > 10


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_after_faults_clients_are_sent_everything_in_many_more_scenarios(strategy):
    for seed in range(100, 100 + so_many(200)):
        assert simulate_stateful(stateful(seed, strategy)).problems == [], seed


class _Forgetful(Broker):
    """A broker that delivers every third event to nobody."""

    def receive(self, message, source, now):
        outputs = super().receive(message, source, now)
        self.count = getattr(self, "count", 0) + 1
        return [each for each in outputs if not isinstance(each, Deliver) or self.count % 3]


def test_a_broker_that_loses_deliveries_is_found_out():
    runs = [
        simulate_stateful(
            stateful(seed, "simple"), lambda scenario, number, name: _Forgetful(name, "simple", algorithm="naive")
        )
        for seed in range(2)
    ]
    assert any("expected" in problem for run in runs for problem in run.problems)
