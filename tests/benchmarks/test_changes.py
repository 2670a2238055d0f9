"""The benchmark of changes at toy size."""

from __future__ import annotations

from benchmarks.changes import PHASES, changes


def test_every_match_after_a_change_is_right():
    rows = list(changes(("w1", "auction"), subscription_count=300, steps=60))
    assert [(row["workload"], row["phase"]) for row in rows] == [
        (name, phase) for name in ("w1", "auction") for phase in PHASES
    ]
    assert all(row["wrong"] == 0 for row in rows)
