"""The benchmarks of routing at toy size: every row is right, and a wrong one would be noticed."""

from __future__ import annotations

import pytest
from benchmarks.imperfection import routing_imperfection
from benchmarks.routing import routing_costs, routing_events, routing_slices, routing_tables

from benchmarks import routing
from tamis.routing import table

SMALL = (("line", 3), ("balanced tree", 6))


@pytest.fixture(autouse=True)
def few_events(monkeypatch):
    monkeypatch.setattr(routing, "_EVENTS", 60)


@pytest.mark.parametrize(
    ("network", "name"),
    [
        (SMALL[0], "similar"),
        pytest.param(SMALL[1], "similar", marks=pytest.mark.slow),
        pytest.param(SMALL[0], "auction", marks=pytest.mark.slow),
    ],
)
def test_strategies_cost_what_they_are_said_to_cost(network, name):
    rows = list(routing_tables(networks=(network,), subscription_counts=(60,), names=(name,)))
    assert [row["wrong"] for row in rows] == [0] * 11
    flooding, simple, identity, covering, merging, imperfect, *pruned = rows
    assert imperfect["entries"] <= merging["entries"]
    assert pruned[0]["entries"] == simple["entries"] and pruned[0]["table_bytes"] < simple["table_bytes"]
    brokers = network[1]
    assert flooding["subscribe_messages"] == 0 and simple["subscribe_messages"] == 60 * (brokers - 1)
    assert simple["entries"] >= identity["entries"] >= covering["entries"] >= merging["entries"] > 0
    if name == "similar":
        assert merging["entries"] < 0.7 * simple["entries"]


def test_what_a_neighbour_is_told_is_decided_by_each_strategy_and_nothing_is_told_twice():
    rows = list(routing_costs(subscription_counts=(80,), names=("auction",)))
    assert [row["strategy"] for row in rows] == ["simple", "identity", "covering"]
    assert [row["wrong"] for row in rows] == [0, 0, 0] and rows[2]["of_covering"] == 1
    assert rows[0]["told"] == 80 >= rows[1]["told"] >= rows[2]["told"] > 0


@pytest.mark.parametrize("strategy", routing.COMPUTED)
@pytest.mark.parametrize("one_by_one", [1_000, 50])
def test_what_is_computed_is_what_a_simulation_counts(strategy, one_by_one, monkeypatch):
    monkeypatch.setattr(routing, "_ONE_BY_ONE", one_by_one)
    monkeypatch.setattr(routing, "_BATCHES", 7)
    networks = (("line", 4), ("balanced tree", 9), ("star", 5))
    options = {"networks": networks, "subscription_counts": (140,), "strategies": (strategy,), "names": ("similar",)}
    simulated, computed = list(routing_tables(**options)), list(routing_tables(**options, most_entries=0))
    for one, two in zip(simulated, computed, strict=True):
        assert (one["stopped"], two["stopped"]) == ("", "computed")
        for column in ("subscribe_messages", "subscribe_items", "entries", "largest_table", "table_bytes"):
            assert one[column] == two[column] > 0, column


def test_events_take_no_more_messages_than_flooding():
    rows = list(routing_events(networks=SMALL, subscription_count=40, event_count=30))
    assert [row["wrong"] for row in rows] == [0] * len(rows)
    assert len({row["delivered"] for row in rows if row["network"] == "line of 3"}) == 1
    assert all(row["load"] <= 1 for row in rows) and rows[0]["load"] == 1


def test_on_a_line_of_eight_the_share_in_vain_stays_within_the_budget_on_every_link_and_would_not_by_itself():
    rows = list(routing_imperfection(filter_count=4, event_count=250, budgets=(0.5,)))
    assert [row["wrong"] for row in rows] == [0] * 14
    local = [row["in_vain"] for row in rows if row["kept"] == "local"]
    whole = [row["in_vain"] for row in rows if row["kept"] == "end to end"]
    assert len(local) == len(whole) == 7 and min(row["events"] for row in rows) > 10
    assert max(local) > 0.6, "it adds up where brokers know nothing of each other's mergers"
    assert 0.2 < max(whole) <= 0.5


def test_a_table_that_forgets_is_noticed(monkeypatch):
    monkeypatch.setattr(table.RoutingTable, "match", lambda self, event: {})
    row = next(iter(routing_tables(networks=SMALL[:1], subscription_counts=(60,), strategies=("simple",))))
    assert row["wrong"] == row["matches"] > 0


def test_many_subscriptions_come_in_batches_and_a_case_without_end_is_stopped_and_says_so(monkeypatch):
    monkeypatch.setattr(routing, "_ONE_BY_ONE", 50)
    monkeypatch.setattr(routing, "_BATCHES", 6)
    options = {"networks": SMALL[:1], "subscription_counts": (60,), "strategies": ("covering",), "names": ("similar",)}
    (whole,) = routing_tables(**options)
    (stopped,) = routing_tables(**options, most_s=0.0)
    assert (whole["registered"], whole["stopped"], whole["at_once"], whole["wrong"]) == (60, "", 10, 0)
    assert (stopped["registered"], stopped["stopped"], stopped["wrong"]) == (10, "after 0 s", 0)
    (too_large,) = routing_tables(**options, most_gb=0.0)
    assert too_large["stopped"] in ("above 0 GB", "")


def test_slices_are_counted_and_tell_what_one_piece_tells():
    come, leave = routing_slices(subscription_counts=(60,), strategies=("covering",))
    assert (come["filters"], leave["filters"]) == ("come", "leave")
    assert come["units"] > 60 > leave["units"] > 0
    for row in (come, leave):
        assert row["wrong"] == 0 and row["longest_ms"] >= row["p50_ms"]
