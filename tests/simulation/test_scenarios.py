"""Every strategy in every topology, while clients come and go and messages are under way: what was promised holds."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields

import pytest

from tamis.routing import STRATEGIES, Flooding, comparisons, coverage, mergers
from tamis.simulation import TOPOLOGIES, Scenario, simulate
from tamis.simulation.tables import floods
from tests.lengths import so_many

NAMES = list(STRATEGIES)


def promise_kept(run):
    assert run.problems == [], f"replay with simulate({run.scenario})"
    return run


def other(strategy, topology):
    """Advertisements spread by another strategy in every topology, so that each is seen with others."""
    return NAMES[(NAMES.index(strategy) + list(TOPOLOGIES).index(topology)) % len(NAMES)]


@pytest.mark.parametrize("prunes", [False, True], ids=["whole", "pruned"])
@pytest.mark.parametrize("forwards", ["subscriptions", "advertisements"])
@pytest.mark.parametrize("strategy", NAMES)
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_client_gets_exactly_its_events_and_no_link_is_crossed_twice_or_in_vain(
    topology, strategy, forwards, prunes
):
    scenario = Scenario(
        9,
        topology=topology,
        strategies=(strategy,),
        prunes=prunes,
        advertisements=other(strategy, topology) if forwards == "advertisements" else None,
        prunes_advertisements=prunes,
    )
    run = promise_kept(simulate(scenario))
    assert len(run.network.brokers) == 5
    assert run.checker.expected_count > 3 and run.checker.calm_count > 5, "otherwise nothing was checked"
    assert run.counters.hop_count > 3, "otherwise nobody was far away"


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 30))])
def test_brokers_of_different_strategies_get_along(seed):
    promise_kept(
        simulate(Scenario.of_seed(seed, strategies=("covering", "flooding", "merging", "simple"), has_faults=False))
    )


@pytest.mark.parametrize("strategy", NAMES)
def test_brokers_with_and_without_advertisements_get_along(strategy):
    expected = 0
    for seed in range(3):
        scenario = Scenario(seed, strategies=(strategy,), advertisements="covering", has_plain_brokers=True)
        expected += promise_kept(simulate(scenario)).checker.expected_count
    assert expected > 10


@pytest.mark.parametrize("seed", range(20))
def test_without_faults_nothing_is_lost_whatever_clients_do(seed):
    promise_kept(simulate(Scenario.of_seed(2_000 + seed, has_faults=False)))


@pytest.mark.parametrize("seed", range(20))
def test_after_faults_nothing_is_lost_once_it_is_quiet_and_nothing_ever_comes_twice_or_unasked(seed):
    promise_kept(simulate(Scenario.of_seed(1_000 + seed, has_faults=True)))


@pytest.mark.parametrize("strategy", ["covering", "merging", "imperfect merging"])
def test_a_crowd_of_filters_is_told_by_an_index(strategy):
    run = promise_kept(
        simulate(Scenario(2, broker_count=3, strategies=(strategy,), is_crowded=True, shares_strategies=True))
    )
    assert run.counters.items["Subscribe"] > 2 * coverage._COMPARED_PAIRWISE


@pytest.mark.parametrize("strategy", ["covering", "merging", "imperfect merging"])
def test_an_index_of_few_filters_keeps_the_promises_too(strategy, monkeypatch):
    monkeypatch.setattr(mergers, "_COMPARED_ONE_BY_ONE", 1)
    for module in (coverage, comparisons):
        monkeypatch.setattr(module, "_COMPARED_PAIRWISE", 1)
    for seed in range(8):
        fixed = {"strategies": (strategy,), "shares_strategies": seed % 2 == 0, "is_crowded": False}
        promise_kept(simulate(Scenario.of_seed(seed, action_count=60, **fixed)))


def test_seeds_draw_everything_that_a_scenario_has():
    drawn = [Scenario.of_seed(seed) for seed in range(600)]
    for field in fields(Scenario):
        if field.name not in ("round_count", "action_count", "lateness_s"):  # runs with ranked clients draw the last
            found = [getattr(each, field.name) for each in drawn]
            assert len(set(found)) > 1, f"{field.name} is always the same"
            if field.type == "bool":
                assert 0.01 < found.count(True) / len(found) < 0.5
    for prunes in (True, False):
        assert {each.strategies[0] for each in drawn if each.prunes == prunes} == set(STRATEGIES)
        advertised = {each.advertisements for each in drawn if each.prunes_advertisements == prunes}
        assert advertised == {None, *STRATEGIES}
    assert {(each.strategies[0], each.advertisements) for each in drawn} > {
        (one, two) for one in STRATEGIES for two in STRATEGIES
    }


def test_a_flooding_broker_is_excused_for_what_it_always_wants_and_nobody_else():
    run = promise_kept(simulate(Scenario(3, strategies=("flooding", "simple"), topology="line", broker_count=3)))
    assert [floods(each.strategy) for each in run.network.brokers.values()] == [True, False, True]
    assert all(isinstance(run.network.brokers[name].strategy, Flooding) for name in ("b0", "b2"))
    run.network.brokers["b1"].table.add("b2", 99, next(iter(run.network.brokers["b1"].table.of("b2").values())))
    run.checker.check_empty()
    assert run.problems == [], "it is an entry of a broker that floods"
    run.network.brokers["b1"].table.add("c0", "s", next(iter(run.network.brokers["b1"].table.of("b2").values())))
    run.checker.check_empty()
    assert run.problems == ["tables: b1 still knows s, TRUE of c0"]


def test_a_seed_decides_everything():
    for seed in (3, 4, 9):
        scenario = Scenario.of_seed(seed, has_faults=seed == 4)
        one, two = [], []
        for log in (one, two):
            run = simulate(scenario)
            log += [run.counters, run.network.now, run.network.used]
        assert one == two


TELL = """
from tamis.simulation import Scenario, simulate
for seed in range(3):
    for strategy in ("covering", "merging", "imperfect merging"):
        scenario = Scenario.of_seed(
            seed, strategies=(strategy,), broker_count=4, algorithm="naive", is_crowded=False, has_faults=seed % 2 == 0
        )
        run = simulate(scenario)
        print(seed, strategy, run.problems, run.counters, run.network.now, run.network.used)
"""


def test_a_seed_decides_the_same_in_every_process():
    told = [
        subprocess.run(
            [sys.executable, "-c", TELL],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert told[0] == told[1] and len(told[0].splitlines()) == 9


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, so_many(10_000), 200))
def test_up_to_ten_thousand_runs_with_faults_keep_their_promises(first):
    for seed in range(first, first + 200):
        promise_kept(simulate(Scenario.of_seed(seed, has_faults=True)))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, so_many(2_000), 200))
def test_up_to_two_thousand_runs_without_faults_keep_their_promises(first):
    for seed in range(first, first + 200):
        promise_kept(simulate(Scenario.of_seed(seed, has_faults=False)))
