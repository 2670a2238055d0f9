"""A cluster makes the traffic that one process makes."""

from __future__ import annotations

import pytest

from tamis.spark.generating import generated
from tamis.workloads import WORKLOADS
from tamis.workloads.parts import TrafficOrder

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("name", "kind", "rate"),
    [
        ("auction", "events", 24.61),
        ("auction", "advertisements", None),
        ("w2", "events", None),
        ("w1", "subscriptions", None),
    ],
)
def test_every_part_is_the_one_that_one_process_makes(spark, name, kind, rate):
    order = TrafficOrder(WORKLOADS[name](), kind, 50, seed=4, rate_per_s=rate, part_rows=12)
    frame = generated(spark, order.part, order.part_count)
    assert frame.rdd.getNumPartitions() == order.part_count == 5
    rows = [row for part in order.parts() for row in part.to_pylist()]
    made = [row.asDict() for row in frame.collect()]
    if rate:  # Spark shows times without their zone
        rows = [row | {"published_at": row["published_at"].replace(tzinfo=None)} for row in rows]
    assert made == rows


def test_of_nothing_there_are_columns(spark):
    frame = generated(spark, TrafficOrder(WORKLOADS["auction"](), "subscriptions", 0, seed=1).part, 1)
    assert frame.columns == ["subscription_id", "condition", "class"] and frame.count() == 0
