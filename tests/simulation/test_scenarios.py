"""Every strategy in every topology, while clients come and go and messages are under way: what was promised holds."""

from __future__ import annotations

import pytest

from tamis.pruning import Goal
from tamis.routing import STRATEGIES, Broker, Pruned, strategy_of
from tamis.simulation import TOPOLOGIES, Scenario, simulate

SEEDS = range(2)


def promise_kept(run):
    assert run.problems == [], f"replay with simulate({run.scenario})"


@pytest.mark.parametrize("advertisements", [None, "covering"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_client_gets_exactly_its_events_and_no_link_is_crossed_twice_or_in_vain(
    topology, strategy, advertisements
):
    expected = calm = 0
    for seed in SEEDS:
        scenario = Scenario.of_seed(
            seed, topology=topology, strategies=(strategy,), advertisements=advertisements, has_faults=False
        )
        run = simulate(scenario)
        promise_kept(run)
        expected += run.checker.expected_count
        calm += run.checker.calm_count
    assert calm > 12 and (expected > 0 or advertisements), "otherwise nothing was checked"


@pytest.mark.parametrize("seed", range(20))
def test_brokers_of_different_strategies_get_along(seed):
    promise_kept(
        simulate(Scenario.of_seed(seed, strategies=("covering", "flooding", "merging", "simple"), has_faults=False))
    )


@pytest.mark.parametrize("seed", range(40))
def test_after_faults_nothing_is_lost_once_it_is_quiet_and_nothing_ever_comes_twice_or_unasked(seed):
    promise_kept(simulate(Scenario.of_seed(1_000 + seed, has_faults=True)))


@pytest.mark.parametrize("inner", ["simple", "covering", "merging"])
def test_pruning_on_links_loses_nothing(inner):
    def make(scenario, number, name):
        strategy = strategy_of(inner)
        if number % 2:  # chosen per broker
            strategy = Pruned(strategy, Goal(count=1), lambda _: 0.5)
        return Broker(name, strategy, advertisements=scenario.advertisements, algorithm="naive")

    for seed in range(5):
        promise_kept(simulate(Scenario.of_seed(seed), make))


def test_a_seed_decides_everything():
    for seed in (3, 4, 9):
        scenario = Scenario.of_seed(seed, has_faults=seed == 4)
        one, two = [], []
        for log in (one, two):
            run = simulate(scenario)
            log += [run.counters, run.network.now, run.network.used]
        assert one == two


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_ten_thousand_runs_with_faults_keep_their_promises(part):
    for seed in range(part * 500, (part + 1) * 500):
        promise_kept(simulate(Scenario.of_seed(seed, has_faults=True)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_two_thousand_runs_without_faults_keep_their_promises(part):
    for seed in range(part * 500, (part + 1) * 500):
        promise_kept(simulate(Scenario.of_seed(seed, has_faults=False)))
