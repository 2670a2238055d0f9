"""Does every row of the network's benchmark run, and is nothing wrong in it? At toy size, with real brokers."""

import os
import signal
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.network import ROWS, STRATEGIES, behind, crossings, lags_ms, links_of, network, parent_of, way
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import broker_processes
from benchmarks import network as module
from tests.service.broker_processes import Forge, is_there

pytestmark = pytest.mark.xdist_group("network's benchmark")  # so that one process has a forge, and not both

TOY = {
    "subscription_counts": (60,), "broker_count": 3, "subscriber_count": 2, "event_count": 300, "steady_s": 0.2,
    "settled_count": 5, "fanned_count": 10, "fanned_events": 5, "told_count": 100,
}  # fmt: skip


@pytest.fixture(scope="module")
def forge():
    """Start brokers in a moment."""
    forge = Forge()
    yield forge
    forge.close()


@pytest.fixture
def forged(forge, monkeypatch, tmp_path):
    """Let the benchmark start its brokers by the forge: the same command in the same process of its own."""

    class ForgedBroker(broker_processes.BrokerProcess):
        def _spawn(self, arguments, variables):
            assert not variables
            self.pid = forge.run(arguments, tmp_path / f"output-{self.port}")

        def _exit_code(self):
            return None if is_there(self.pid) else 1

        def _end(self):
            os.kill(self.pid, signal.SIGTERM)
            forge.wait(self.pid)

    monkeypatch.setattr(module, "BrokerProcess", ForgedBroker)


# -- The shape of a tree


def test_the_way_between_two_brokers_follows_links_and_never_turns():
    for start in range(7):
        for end in range(7):
            stops = way(start, end)
            assert (stops[0], stops[-1]) == (start, end)
            assert len(set(stops)) == len(stops)
            assert set(pairwise(stops)) <= set(links_of(7))


def test_a_link_parts_a_tree_in_two():
    for link in links_of(7):
        near, far = behind(link[::-1], 7), behind(link, 7)
        assert (link[0] in near, link[1] in far) == (True, True)
        assert near | far == set(range(7))
        assert not near & far


@given(st.data())
def test_an_event_crosses_the_links_on_its_ways_to_who_wants_it(data):
    brokers = data.draw(st.integers(1, 9))
    count = data.draw(st.integers(1, 6))
    rows = st.lists(st.booleans(), min_size=count, max_size=count)
    wanted = np.array(data.draw(st.lists(rows, min_size=brokers, max_size=brokers)), np.bool_)
    publishers = np.array(data.draw(st.lists(st.integers(0, brokers - 1), min_size=count, max_size=count)), np.int64)
    by_ways = sum(
        len({link for home in np.flatnonzero(wanted[:, event]) for link in pairwise(way(int(source), int(home)))})
        for event, source in enumerate(publishers)
    )
    assert crossings(wanted, publishers, is_flooded=False) == by_ways
    assert crossings(wanted, publishers, is_flooded=True) == count * (brokers - 1)
    assert parent_of(0) == -1


def test_lags_are_those_between_two_readings():
    name = 'tamis_loop_lag_seconds_bucket{le="%s"}'
    before = {name % "0.001": 90.0, name % "0.01": 95.0, name % "+Inf": 95.0}
    after = {name % "0.001": 91.0, name % "0.01": 99.0, name % "+Inf": 99.0}
    assert lags_ms(before, after) == (10.0, 10.0, 4)


# -- Real brokers


def _checked(rows):
    measured = list(rows)
    assert [(row["what"], row["strategy"]) for row in measured if row["wrong"]] == []
    return measured


def test_a_tree_of_brokers_is_measured_and_nothing_is_wrong(forged):
    seen = []
    measured = _checked(network(("trees",), strategies=("covering",), progress=seen.append, **TOY))
    names = [row["what"].removeprefix("trees ") for row in measured]
    assert names == ["filters", "first events", "events", "0 hops", "1 hops", "2 hops", "settled"]
    assert measured[2]["deliveries"] > 0
    assert 0 < measured[2]["link_events"] < TOY["event_count"]
    assert any("events" in text for text in seen)


@pytest.mark.parametrize("row", [row for row in ROWS if row != "trees"])
def test_every_other_row_of_the_network_runs_with_one_strategy(forged, row):
    assert _checked(network((row,), strategies=("covering",), **TOY))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_every_row_of_the_network_runs_with_every_strategy(forged, row):
    measured = _checked(network((row,), **TOY | {"broker_count": 7}))
    if row != "S6":
        assert {each["strategy"] for each in measured} == set(STRATEGIES)
    if row in ("S11", "trees"):
        assert {each["what"] for each in measured} >= {f"{row} first events", f"{row} events"}
        shares = {each["strategy"]: each["of_flooding"] for each in measured if each["what"].endswith("events")}
        assert shares.pop("flooding") == 1.0
        assert max(shares.values()) < 1.0


@pytest.mark.slow
def test_of_a_tree_that_does_not_come_to_rest_it_is_measured_what_it_does_meanwhile(forged, monkeypatch):
    whole = module.Tree.rest

    def impatient(tree, say, *, is_all_told=True):
        if is_all_told:  # of filters; events are waited for
            raise module.RestlessTreeError("0 of 4 links at rest after 0 s")
        return whole(tree, say, is_all_told=is_all_told)

    monkeypatch.setattr(module.Tree, "rest", impatient)
    strategies = ("simple", "covering")
    measured = _checked(network(("trees",), strategies=strategies, **TOY))
    assert [(row["what"], row["strategy"]) for row in measured] == [
        (f"trees {what}, unfinished", strategy)
        for strategy in strategies
        for what in ("filters", "first events", "events")
    ]
    assert all(row["deliveries"] for row in measured if "events" in row["what"])


@pytest.mark.slow
def test_a_tree_in_which_events_are_stuck_is_given_up_and_the_next_is_measured(forged):
    strategies = ("simple", "covering")
    measured = list(network(("trees",), strategies=strategies, patience_s=0.0, **TOY))
    assert [(row["what"], row["strategy"], row["wrong"]) for row in measured if row["wrong"]] == [
        ("trees given up", strategy, 1) for strategy in strategies
    ]


def test_a_strategy_that_is_not_there_is_refused_before_anything_is_started():
    with pytest.raises(ValueError, match="there are no strategies covring; there are: flooding"):
        next(network(strategies=("covring",)))


def test_a_row_that_is_not_there_is_refused_before_anything_is_started():
    with pytest.raises(ValueError, match="there are no rows S3; there are: S6"):
        next(network(("S3",)))
