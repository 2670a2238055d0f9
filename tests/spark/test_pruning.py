"""Pruning on Spark takes the steps of the local queue, in its order."""

from __future__ import annotations

import pytest

import tamis
from tamis.pruning import Goal, Pruner
from tamis.relations import covers
from tamis.selectivity import Sample
from tamis.workloads import Auction

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")


@pytest.fixture(scope="module")
def workload():
    made = Auction()
    texts = made.subscriptions(400, seed=1)["condition"].to_pylist()
    texts[7], texts[11] = "NOT (a = 1 OR contains(b, 'x'))", "at_least(2, a = 1, b = 2, c = 3)"
    return texts, Sample(made.events(500, seed=2).to_pylist())


def local(workload, measure):
    texts, sample = workload
    pruner = Pruner(sample.share, measure)
    pruner.add_many(enumerate(texts))
    return pruner


@pytest.mark.parametrize("measure", ["accuracy", "memory", "occurrence"])
def test_the_order_on_spark_is_that_of_the_queue(spark, workload, measure):
    from tamis.spark import pruning_order

    texts, sample = workload
    frame = spark.createDataFrame(list(enumerate(texts)), "subscription_id long, condition string").repartition(3)
    rows = pruning_order(frame, sample.share, measure).select("subscription_id", "leaf_count", "saved_leaves").collect()
    pruner = local(workload, measure)
    assert len(rows) == pruner.possible_count > 1_500
    for row in rows:
        before = pruner.leaf_count
        (key,) = pruner.prune(count=1)
        assert (key, before - pruner.leaf_count) == (row.subscription_id, row.saved_leaves)


@pytest.mark.parametrize(
    "goal",
    [Goal(count=333), Goal(threshold=0.01), Goal(reduction=0.4), Goal(memory_bytes=12_000)],
)
def test_every_goal_ends_where_it_ends_locally(spark, workload, goal):
    from tamis.spark import pruned

    texts, sample = workload
    frame = spark.createDataFrame(list(enumerate(texts)), "subscription_id long, condition string").repartition(3)
    found = {row.subscription_id: row for row in pruned(frame, sample.share, goal).collect()}
    pruner = local(workload, "accuracy")
    names = ("count", "share", "threshold", "reduction", "memory_bytes")
    pruner.prune(**{name: getattr(goal, name) for name in names})
    assert len(found) == len(texts)
    for number, text in enumerate(texts):
        assert found[number].steps == pruner.step_count(number)
        assert tamis.parse(found[number].condition) == pruner.expression(number)
        if number < 40:
            assert covers(found[number].condition, text)


def test_what_is_no_condition_is_left_alone(spark):
    from tamis.spark import pruned, pruning_order

    rows = [("a", "x = 1 AND y = 2"), ("b", "x = "), ("c", None)]
    frame = spark.createDataFrame(rows, "name string, text string")
    half = Sample([{"x": 1}, {"y": 2}]).share
    assert [row.name for row in pruning_order(frame, half, id="name", where="text").collect()] == ["a"]
    found = pruned(frame, half, Goal(share=1), id="name", where="text").collect()
    assert sorted((row.name, row.text, row.steps) for row in found if row.name != "c") == [
        ("a", "y = 2", 1),
        ("b", "x = ", 0),
    ]
    assert [row.text for row in found if row.name == "c"] == [None]
