"""The benchmarks of the pipeline at toy size."""

from __future__ import annotations

import pytest
from benchmarks.spark import spark as spark_benchmark
from benchmarks.spark import spark_growth, spark_start
from benchmarks.spark_forests import spark_forests
from benchmarks.spark_latency import spark_compiling, spark_latency, spark_scaling

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def test_the_pipeline_is_measured_beside_plain_spark_and_the_local_matcher():
    rows = list(spark_benchmark(subscription_counts=(40,), event_count=2_000, plain_rules=20))
    (row,) = rows
    assert row["wrong"] == 0 < row["matches"]
    assert row["plain_rules"] == 20
    assert row["times_plain"] > 0 < row["of_local"]


def test_growth_is_measured():
    rows = list(spark_growth(subscription_count=40, event_count=2_000, cores=(2,), batch_sizes=(500, 1_000)))
    assert len({row["matches"] for row in rows}) == 1
    assert all(row["worker_mb"] > 0 for row in rows)


@pytest.mark.slow
def test_starting_is_measured_setting_by_setting():
    rows = list(spark_start(repeats=1))
    assert len(rows) == 5
    assert rows[0]["java_cpu_saved"] == 0
    by_name = {row["session"]: row["java_cpu_s"] for row in rows}
    assert by_name["and the class archive"] < by_name["Spark as it comes"]


def test_the_way_of_a_forest_to_a_host_is_measured():
    rows = list(spark_forests(megabytes=(0.1, 2)))
    assert [row["megabytes"] for row in rows] == [0.1, 2]
    assert all(row["wrong"] == 0 and row["first_of_copy"] > 0 for row in rows)


def test_micro_batches_are_measured_with_and_without_a_change_of_rules():
    rows = list(spark_latency(batch_sizes=(20,), subscription_count=10, batches=4))
    assert [row["rules_change"] for row in rows] == [False, True]
    assert all(2 <= row["batches"] <= 4 for row in rows)  # of the last ones Spark may be too busy to speak in time
    assert all(0 < row["p50_ms"] <= row["p99_ms"] and row["events"] == 20 * row["batches"] for row in rows)
    assert rows[0]["versions"] == 1 < rows[1]["versions"]


def test_what_is_fixed_and_what_grows_with_events_is_told_apart():
    few, many = spark_scaling(subscription_counts=(20,), event_counts=(1_000, 2_000), runs=1)
    assert few["wrong"] == many["wrong"] == 0 < few["matches"] < many["matches"]
    assert few["us_each_further"] is None is not many["us_each_further"]


def test_the_steps_of_compiling_are_measured():
    (row,) = spark_compiling(subscription_counts=(200,))
    assert row["whole_s"] == pytest.approx(
        sum(row[each] for each in ("read_s", "save_s", "load_s", "unite_s", "lay_out_s"))
    )
