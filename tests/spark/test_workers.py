from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tools.java import LEAST_VERSION, java_version

import tamis.spark as pipeline
from tamis.spark import workers
from tamis.spark.session import java_options

PROGRAM = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
import tamis.spark
events = spark.createDataFrame([(1, 12.0), (2, 30.0)], "order_id int, price double")
rules = spark.createDataFrame([("cheap", "price < 20")], "subscription_id string, condition string")
print("found", tamis.spark.match(events, rules, keep="order_id").collect())
"""


@pytest.mark.spark
def test_a_session_of_the_users_works_where_python3_is_another_python(tmp_path):
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip("Spark needs Java")
    bare = tmp_path / "python3"  # as in an environment that is not activated: what is called python3 has no tamis
    bare.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    bare.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if name not in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    env |= {"PATH": f"{tmp_path}{os.pathsep}{env['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    env["JDK_JAVA_OPTIONS"] = java_options(quick=True)  # of the machine; the session stays as the user makes it
    assert not workers.has_tamis(str(bare))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env, timeout=300, check=False
    )
    assert "found [Row(order_id=1, subscription_id='cheap')]" in done.stdout, done.stderr[-2000:]


class Elsewhere:
    """A session of a cluster whose workers answer with an error of Spark's."""

    def __init__(self, told):
        self.told, self.sparkContext = told, type("Context", (), {"master": "spark://host:7077"})

    def range(self, _):
        return self

    def mapInArrow(self, *_):  # noqa: N802
        return self

    def collect(self):
        from pyspark.errors import PySparkException

        raise PySparkException(self.told)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("... ModuleNotFoundError: No module named 'tamis'\n\tat org.apache", "do not find tamis"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version", "run another Python than the driver"),
    ],
)
def test_a_cluster_whose_workers_have_no_tamis_is_told_what_to_set(told, expected):
    with pytest.raises(pipeline.WorkerError, match=expected) as caught:
        workers.require_workers(Elsewhere(told))
    assert "\n  export PYSPARK_PYTHON=" in str(caught.value)


def test_another_error_of_a_cluster_stays_what_it_is():
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="disk full"):
        workers.require_workers(Elsewhere("disk full"))


def test_the_python_of_this_process_has_tamis_whatever_its_name():
    assert workers.has_tamis(sys.executable)
    assert not workers.has_tamis(str(Path(sys.executable).with_name("no-such-python")))
