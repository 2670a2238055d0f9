"""The benchmarks of pruning at toy size: every row is right, and a wrong one would be noticed."""

from __future__ import annotations

import pytest
from benchmarks.pruning import advertised, any_overlap, bulk_pruning, overlap, pruning_on_spark

from benchmarks import pruning as module
from tamis.pruning.pruner import Pruner
from tamis.relations.advertisements import OverlapIndex


def test_sort_and_queue_prune_alike_for_every_measure():
    rows = list(bulk_pruning(names=("auction", "expressions"), subscription_counts=(150,)))
    assert [(row["workload"], row["measure"]) for row in rows] == [
        (name, measure) for name in ("auction", "expressions") for measure in ("accuracy", "memory", "occurrence")
    ]
    assert [row["wrong"] for row in rows] == [0] * 6
    assert rows[0]["reduction"] == pytest.approx(0.84, abs=0.03)


def test_a_queue_that_prunes_too_little_would_be_noticed(monkeypatch):
    honest = Pruner.prune
    monkeypatch.setattr(Pruner, "prune", lambda self, **goal: honest(self, share=goal["share"] / 2))
    (row,) = bulk_pruning(names=("auction",), subscription_counts=(100,), measures=("accuracy",))
    assert row["wrong"] > 0


def test_overlaps_are_found_in_both_directions():
    rows = list(overlap(subscription_counts=(120,), asked_count=12))
    assert [row["registered"] for row in rows] == ["subscriptions", "advertisements"]
    assert [row["wrong"] for row in rows] == [0, 0]
    assert all(0.2 < row["overlapping"] < 0.8 for row in rows)


def test_an_index_that_misses_overlaps_is_caught(monkeypatch):
    honest = OverlapIndex.overlapping
    monkeypatch.setattr(OverlapIndex, "overlapping", lambda self, given: honest(self, given)[::2])
    assert next(iter(overlap(subscription_counts=(60,), asked_count=12)))["wrong"] > 0


@pytest.mark.spark
def test_spark_sorts_as_one_process_does(spark, monkeypatch):
    pipeline = pytest.importorskip("tamis.spark")
    monkeypatch.setattr(pipeline, "session", lambda: spark)
    (row,) = pruning_on_spark(subscription_counts=(60,))
    assert row["wrong"] == 0 and row["steps"] > 200 and module.pruning_on_spark is pruning_on_spark


def test_one_proven_overlap_is_as_right_as_all_of_them():
    (row,) = any_overlap(advertisement_counts=(120,), asked_count=12, proven_count=2)
    assert row["wrong"] == 0 and 0.3 < row["overlapping"] < 0.6 and row["any_ms"] > 0
    rows = list(advertised(advertisement_count=60, subscription_count=12, change_count=10, proven_count=4))
    assert [(row["overlaps"], row["subscriptions"]) for row in rows] == [("all proven", 4), ("one proven", 12)]
    assert all(row["wrong"] == 0 and row["told"] > 0 and row["relying"] > 0 for row in rows)


def test_an_index_that_sees_overlaps_everywhere_is_caught(monkeypatch):
    monkeypatch.setattr(OverlapIndex, "_one_of", lambda self, given: [0])
    (row,) = any_overlap(advertisement_counts=(60,), asked_count=12, proven_count=2)
    assert row["wrong"] > 0
