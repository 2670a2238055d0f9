"""The pipeline through Spark Connect, where the packages that it needs are installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = """
from pyspark.sql import SparkSession

session = SparkSession.builder.remote("local[2]").getOrCreate()
from tamis import spark as on_spark

rows = [(1, "id % 2 = 0"), (2, "id < 10"), (3, "id <")]
ready = on_spark.compiled(session.createDataFrame(rows, "subscription_id int, condition string"))
assert ready.forest.is_shipped
assert [row.subscription_id for row in ready.rejected.collect()] == [3]
assert on_spark.match(session.range(1000), ready).count() == 510
session.stop()
"""


def test_pairs_come_through_spark_connect(spark):
    pytest.importorskip("grpc", reason="Spark Connect needs pyspark's extra `connect`")
    env = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    env = {name: value for name, value in env.items() if not name.startswith("PYSPARK_GATEWAY")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
