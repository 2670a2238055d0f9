"""The example of a declarative pipeline, run by Spark's own command: through Spark Connect, as it does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tamis.spark.java import LEAST_VERSION, java_version
from tests.spark.killing import environment

pytestmark = [pytest.mark.spark, pytest.mark.slow]
pyspark = pytest.importorskip("pyspark")
EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_pipeline"
TIDES = {(1, "tides"), (1, "cheap"), (2, "busy"), (3, "busy"), (3, "cheap"), (4, "tides")}


@pytest.fixture
def project(tmp_path):
    pytest.importorskip("grpc", reason="pipelines run through Spark Connect")
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip("Spark needs Java")
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project)
    spec = project / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/tamis-alerts", (tmp_path / "storage").as_uri()))
    return project


def prepared(project, first):
    subprocess.run([sys.executable, "prepare.py", str(first)], cwd=project, env=environment(), check=True)


def ran(project):
    """Run the pipeline with Spark's command; return what it printed."""
    program = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": java, "spark.sql.shuffle.partitions": "1"}
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [str(program), "run", "--remote", "local[2]", *options],
        cwd=project, env=environment() | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True, text=True, timeout=590, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    return done.stdout


def rows(project, table):
    folder = project / "spark-warehouse" / table
    return [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_the_example_of_a_pipeline_matches_what_has_arrived(project):
    prepared(project, 1)
    prepared(project, 5)
    assert "3 rules are used, 1 are not" in ran(project)
    pairs = [(row["auction_id"], row["subscription_id"]) for row in rows(project, "alerts")]
    assert sorted(pairs) == sorted(TIDES | {(number + 4, rule) for number, rule in TIDES})
    counts = {row["subscription_id"]: row["count"] for row in rows(project, "busiest_rules")}
    assert counts == {"cheap": 4, "tides": 4, "busy": 4}
    assert (project.parent / "storage").is_dir()
