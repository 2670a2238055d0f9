"""The benchmarks of pruning in brokers at toy size: nothing is lost, and what would be is noticed."""

from __future__ import annotations

import pytest
from benchmarks.pruned_brokers import one_neighbour, pruned_brokers

from tamis.language import parse
from tamis.matching import Matcher
from tamis.routing.table import RoutingTable


def measured(filter_count, seen_count):
    scene = {"subscription_counts": (filter_count,), "measures": ("accuracy",), "shares": (0.0, 0.5, 1.0)}
    return list(pruned_brokers(**scene, event_count=40, passes=1, seen_count=seen_count))


def test_a_broker_that_prunes_loses_nothing_and_keeps_less():
    rows = measured(200, seen_count=150)
    assert [row["prunings"] for row in rows] == [0.0, 0.5, 1.0] and [row["wrong"] for row in rows] == [0, 0, 0]
    assert rows[0]["reduction"] == 0 < rows[1]["reduction"] < rows[2]["reduction"] < 1
    assert all(row["is_at_rest"] for row in rows)
    assert rows[0]["forwarded"] <= rows[1]["forwarded"] <= rows[2]["forwarded"]
    # Counted, not measured: of few filters, what any broker takes is most of the memory.
    assert rows[0]["clauses"] >= rows[1]["clauses"] > rows[2]["clauses"] > 0
    assert all(row["memory_mb"] > 0 and row["memory_ratio"] > 0 for row in rows)


@pytest.mark.slow
def test_a_broker_that_prunes_many_filters_takes_less_memory():
    assert measured(2_000, seen_count=300)[2]["memory_ratio"] < 1


def test_a_table_that_matches_less_than_was_said_would_be_noticed(monkeypatch):
    honest = RoutingTable.add
    narrower = parse("price < 0")
    monkeypatch.setattr(
        RoutingTable,
        "add",
        lambda self, peer, key, expression, hops=0, **options: honest(
            self, peer, key, expression if key == "mine" else narrower, **options
        ),
    )
    options = {"subscription_counts": (100,), "measures": ("accuracy",), "shares": (0.0,)}
    (row,) = pruned_brokers(**options, event_count=40, passes=1, seen_count=100)
    assert row["wrong"] > 0


def test_many_entries_of_one_neighbour_are_one_answer(monkeypatch):
    (row,) = one_neighbour(entry_counts=(500,), passes=2)
    assert row["wrong"] == 0 and row["ratio"] > 0
    monkeypatch.setattr(Matcher, "match_shortcut", lambda self, event: ([], []))
    assert next(iter(one_neighbour(entry_counts=(100,), passes=1)))["wrong"] == 1
