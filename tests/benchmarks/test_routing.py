"""The benchmarks of routing at toy size: every row is right, and a wrong one would be noticed."""

from __future__ import annotations

from benchmarks.routing import routing_events, routing_tables

from tamis.routing import table

SMALL = (("line", 3), ("balanced tree", 6))


def test_strategies_cost_what_they_are_said_to_cost():
    rows = list(routing_tables(networks=SMALL, subscription_counts=(60,)))
    assert [row["wrong"] for row in rows] == [0] * len(rows) and len(rows) == 20
    for start in range(0, 20, 5):
        flooding, simple, identity, covering, merging = rows[start : start + 5]
        brokers = int(simple["network"].split()[-1])
        assert flooding["subscribe_messages"] == 0 and simple["subscribe_messages"] == 60 * (brokers - 1)
        assert simple["entries"] >= identity["entries"] >= covering["entries"] >= merging["entries"] > 0
    assert rows[4]["workload"] == "similar" and rows[4]["entries"] < 0.7 * rows[1]["entries"]


def test_events_take_no_more_messages_than_flooding():
    rows = list(routing_events(networks=SMALL, subscription_count=40, event_count=30))
    assert [row["wrong"] for row in rows] == [0] * len(rows)
    assert len({row["delivered"] for row in rows if row["network"] == "line of 3"}) == 1
    assert all(row["load"] <= 1 for row in rows) and rows[0]["load"] == 1


def test_a_table_that_forgets_is_noticed(monkeypatch):
    monkeypatch.setattr(table.RoutingTable, "match", lambda self, event: {})
    row = next(iter(routing_tables(networks=SMALL[:1], subscription_counts=(60,), strategies=("simple",))))
    assert row["wrong"] == row["matches"] > 0
