"""The benchmark of destinations at toy size."""

from __future__ import annotations

from benchmarks.destinations import ONE_NEIGHBOUR, destinations


def test_both_ways_find_the_same_destinations():
    rows = list(
        destinations((ONE_NEIGHBOUR, "w1"), subscription_count=300, batch_size=200, single_event_count=20, passes=1)
    )
    assert [(row["scene"], row["destinations"], row["wrong"]) for row in rows] == [(ONE_NEIGHBOUR, 1, 0), ("w1", 10, 0)]
    assert rows[0]["matches_per_event"] == rows[0]["subscriptions"] == 300
