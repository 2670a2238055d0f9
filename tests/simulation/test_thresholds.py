"""Homes that tell their thresholds, while links break and brokers crash; and mutants that do it wrong."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tamis.routing import Broker, Desk
from tamis.simulation import Scenario, simulate_thresholds
from tamis.topk.policies import EveryChange
from tests.lengths import so_many

FAULTY = {"has_faults": True, "renews": True, "roams": True}


@pytest.mark.parametrize("wants", ["ranked", "mixed"])
@pytest.mark.parametrize("part", range(4))
def test_after_faults_thresholds_are_right_again_and_clients_are_told_what_one_who_sees_everything_tells(wants, part):
    compared = promoted = 0
    for seed in range(15 * part, 15 * part + 15):
        checker = simulate_thresholds(Scenario.of_seed(seed, wants=wants, round_count=1, **FAULTY))
        assert checker.problems == [], f"seed {seed}"
        compared, promoted = compared + checker.delivered, promoted + checker.promoted
    assert compared > 40 and promoted > 0, "there was something to compare"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_000 + so_many(3_000), 100))
def test_thousands_of_runs_with_thresholds_and_faults(first):
    for seed in range(first, first + 100):
        scenario = Scenario.of_seed(seed, wants="ranked" if seed % 2 else "mixed")
        assert simulate_thresholds(scenario).problems == [], f"seed {seed}"


class TightensOnly(EveryChange):
    """Does not tell that a threshold has become looser."""

    def moved(self, key):
        return super().moved(key) if key < self._known else False


class TellsLess(EveryChange):
    """Tells a threshold that is tighter than it is."""

    def moved(self, key):
        return super().moved(key - 1.0)


class GoesOnAfterACrash(EveryChange):
    """Begins with the threshold that the same subscription had before, wherever that was."""

    latest: ClassVar = {}

    def __init__(self, ranked, schema=None):
        super().__init__(ranked, schema)
        self._known = self.latest.get(str(ranked), self._known)

    def moved(self, key):
        moved = super().moved(key)
        self.latest[str(self._ranked)] = self._known
        return moved


class KeepsMovesToItself(Broker):
    """Takes note of a threshold that has moved, and tells nobody."""

    def _moves(self, now):
        super()._moves(now)
        return []


class SendsNothingTwice(Broker):
    """Does not try again what leaves the recent buffer."""

    def _second_attempts(self, now):
        self._recent.expired(now)
        return []


class TakesItForAnother(Desk):
    """Does not recognise an event that comes for the second time."""

    def _known(self, passed):
        self._numbers.pop(passed.key, None)
        return super()._known(passed)


def by_policy(policy):
    return lambda name, strategy, **given: Broker(name, strategy, **{**given, "policy": policy})


def by_desk(name, strategy, **given):
    broker = Broker(name, strategy, **given)
    broker.desk = TakesItForAnother(None, broker.functions, given["ranked"], given["policy"], given["buffer_s"])
    return broker


MUTANTS = {
    "tightens only": ("was not notified", by_policy(TightensOnly)),
    "tells less": ("thresholds", by_policy(TellsLess)),
    "goes on after a crash": ("thresholds", by_policy(GoesOnAfterACrash)),
    "keeps moves to itself": ("tables", KeepsMovesToItself),
    "sends nothing twice": ("was not notified", SendsNothingTwice),
    "takes it for another": ("uniqueness", by_desk),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_home_that_is_broken_on_purpose_is_found_and_its_whole_twin_is_not(name):
    says, make = MUTANTS[name]
    for seed in range(80):
        scenario = Scenario.of_seed(seed, wants="ranked", round_count=1, action_count=40, **FAULTY)
        if any(says in problem for problem in simulate_thresholds(scenario, make).problems):
            assert simulate_thresholds(scenario).problems == []
            return
    raise AssertionError(f"{name} was not found in 80 runs")
