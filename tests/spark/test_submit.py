"""The commands given to `spark-submit`, as on a cluster that has its own way of starting programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import tamis.cli
from tamis.spark.java import LEAST_VERSION, java_version
from tests.spark.killing import environment

pytestmark = [pytest.mark.spark, pytest.mark.slow]
pyspark = pytest.importorskip("pyspark")


def submitted(*arguments):
    """Run a command through spark-submit; return the document it answers with."""
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [
        str(program),
        "--master",
        "local[2]",
        str(Path(tamis.cli.__file__).parent / "__main__.py"),
        *map(str, arguments),
    ]
    env = environment() | {"PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run([*command, "--json"], env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_match_and_stream_run_under_spark_submit(tmp_path):
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip("Spark needs Java")
    (tmp_path / "rules.csv").write_text("subscription_id,condition\n1,price < 3\n2,price <\n")
    (tmp_path / "arriving").mkdir()
    events = tmp_path / "arriving" / "events.parquet"
    parquet.write_table(pa.table({"number": range(100), "price": [number % 7 for number in range(100)]}), events)
    cheap = sorted((number, 1) for number in range(100) if number % 7 < 3)

    told = submitted("match", "--events", events, "--subscriptions", tmp_path / "rules.csv", "--out", tmp_path / "pairs.parquet", "--keep", "number")  # fmt: skip
    assert (told["rows"], told["rejected"]) == (len(cheap), 1)
    rows = parquet.read_table(tmp_path / "pairs.parquet").to_pylist()
    assert sorted((row["number"], row["subscription_id"]) for row in rows) == cheap

    told = submitted(
        "stream", "--events", tmp_path / "arriving", "--subscriptions", tmp_path / "rules.csv", "--out", tmp_path / "out",
        "--checkpoint", tmp_path / "checkpoint", "--keep", "number", "--once",
    )  # fmt: skip
    assert (told["events_total"], told["rows_total"]) == (100, len(cheap))
