"""The benchmark of two phases in two threads, at toy size."""

from __future__ import annotations

from benchmarks.pipelining import WAYS, pipelining


def test_every_way_to_use_two_threads_finds_the_same():
    rows = list(pipelining(("auction",), ("atree", "counting"), count=60, event_count=3_000, passes=1))
    assert [(row["algorithm"], row["way"]) for row in rows] == [
        (algorithm, way) for algorithm in ("atree", "counting") for way in WAYS
    ]
    assert all(row["wrong"] == 0 and row["events/s"] > 0 for row in rows)
