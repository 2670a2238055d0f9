"""Clients who want the best k, in random networks: told what the definition says, and mutants of brokers that are not."""

from __future__ import annotations

import pytest

from tamis.routing import Broker, Desk, Passed
from tamis.routing.rankers import Ranker
from tamis.simulation import Scenario, simulate_ranked
from tamis.simulation.scenarios import broker_maker
from tests.lengths import so_many

CALM = {"has_faults": False, "renews": False, "roams": False, "broker_count": 4, "round_count": 1}


@pytest.mark.parametrize("wants", ["ranked", "mixed", "conditions"])
@pytest.mark.parametrize("part", range(3))
def test_clients_are_told_what_one_who_sees_everything_tells(wants, part):
    compared = promoted = 0
    for seed in range(15 * part, 15 * part + 15):
        checker = simulate_ranked(Scenario.of_seed(seed, wants=wants, action_count=20, round_count=1))
        assert checker.problems == []
        compared, promoted = compared + checker.delivered, promoted + checker.promoted
    if wants != "conditions":
        assert compared > 20 and promoted > 0, "there was something to compare"


@pytest.mark.parametrize("algorithm", ["naive", "block", "strict", "relaxed"])
def test_every_exact_algorithm_tells_the_same_in_a_network(algorithm):
    for seed in range(200, 210):
        scenario = Scenario.of_seed(seed, wants="ranked", ranked=algorithm, action_count=20, round_count=1)
        assert simulate_ranked(scenario).problems == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_000 + so_many(3_000), 100))
def test_thousands_of_runs_with_ranked_clients(first):
    for seed in range(first, first + 100):
        assert simulate_ranked(Scenario.of_seed(seed)).problems == []


# -- Desks that are broken on purpose


class TellsNobodyLater(Desk):
    """Forgets those who come up when something leaves."""

    def advance(self, now):
        super().advance(now)
        return []


class TellsTwice(Desk):
    """Does not remember what a client has been told for another subscription."""

    def _telling(self, entrances):
        told = super()._telling(entrances)
        self._told.clear()
        return told


class GoesByItsOwnClock(Desk):
    """Takes events as published when they come."""

    def take_many(self, group, now, served, withdrawn=()):
        group = [Passed.of(each, now, each.origin, each.number, each.attempt) for each in group]
        return super().take_many(group, now, served, withdrawn)


class DoesNotWait(Desk):
    """Ranks what comes at once, whatever may still be under way."""

    def __init__(self, *args):
        super().__init__(*args)
        self._lateness_s = 0.0


class CountsAtOnce(Desk):
    """Lets subscriptions count before they have spread."""

    def __init__(self, *args):
        super().__init__(*args)
        self._spread_s = 0.0


class TellsWhatIsWithdrawn(Desk):
    """Does not hear of withdrawals."""

    def withdraw(self, key, at, now):
        return []


MUTANTS = {
    "tells nobody later": ("was not notified", TellsNobodyLater, {"wants": "ranked"}),
    "tells twice": ("uniqueness", TellsTwice, {"wants": "mixed"}),
    "goes by its own clock": ("and it was due at", GoesByItsOwnClock, {"wants": "ranked"}),
    "does not wait": ("and it was due at", DoesNotWait, {"wants": "ranked"}),
    "counts at once": ("never due", CountsAtOnce, {"wants": "ranked"}),
    "tells what is withdrawn": ("validity", TellsWhatIsWithdrawn, {"wants": "ranked", "action_count": 60}),
}


def made_with(desk):
    whole = broker_maker()

    def make(scenario, number, name):
        broker = whole(scenario, number, name)
        own = broker.desk
        broker.desk = desk(None, broker.functions, {"algorithm": scenario.ranked}, None, None,
                           own._lateness_s, own._spread_s)  # fmt: skip
        return broker

    return make


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_desk_is_found_and_its_whole_twin_is_not(name):
    says, broken, fixed = MUTANTS[name]
    for seed in range(80):
        scenario = Scenario.of_seed(seed, **{"ranked": "naive", "action_count": 30, **CALM, **fixed})
        assert simulate_ranked(scenario, made_with(Desk)).problems == []
        if any(says in problem for problem in simulate_ranked(scenario, made_with(broken)).problems):
            return
    raise AssertionError(f"{name} was not found in 80 runs")


class ForgetsWindows(Broker):
    """Sends what a ranked subscription wants nowhere: others do not hear of it."""

    def _let_count(self, source, entry, expression):
        if self.desk.wanted(source, entry.key) is None:
            super()._let_count(source, entry, expression)
        else:
            self.table.add(source, entry.key, expression, is_matched=False)
            self._interests.add(source, entry.key, expression)


def test_a_broker_that_tells_nobody_of_ranked_subscriptions_is_found():
    def make(scenario, number, name):
        return ForgetsWindows(name, "simple", ranked={"algorithm": "naive"}, lateness_s=scenario.lateness_s,
                              spread_s=scenario.lateness_s)  # fmt: skip

    problems = [
        problem
        for seed in range(10)
        for problem in simulate_ranked(Scenario.of_seed(seed, **CALM, wants="ranked"), make).problems
    ]
    assert any("was not notified" in problem for problem in problems)
    assert any("tables" in problem for problem in problems)


def test_a_ranker_has_nothing_to_say_of_what_it_does_not_know():
    ranker = Ranker(None, None, {}, None, None)
    assert ranker.moved() == [] and ranker.held() == set() and ranker.advance(5.0) == []
