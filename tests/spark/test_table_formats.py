"""Rules in tables of Delta and Iceberg, which a log follows: with the newest PySpark that each has jars for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.spark.killing import environment
from tests.spark.maven import fetched, require_maven

pytestmark = [pytest.mark.spark, pytest.mark.slow]
pytest.importorskip("tamis.spark")
FORMATS = {
    "delta": ("4.2", "io.delta:delta-spark_4.2_2.13:4.4.0", ("delta-", "unitycatalog-")),
    "iceberg": ("4.1", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", ("iceberg-",)),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_log_follows_a_table_that_has_versions(kind, tmp_path):
    release, artifact, names = FORMATS[kind]
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("other versions of PySpark are installed with uv")
    require_maven("the jars of table formats")
    whole = fetched(tmp_path / "maven", (artifact,), alone=False)
    if whole is None:
        pytest.skip(f"{artifact} cannot be had here")
    jars = ",".join(str(path) for path in whole if path.name.startswith(names))  # the others are Spark's own
    folder = tmp_path / "environment"
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, folder], check=True)
    python = folder / "bin" / "python"
    wanted = [f"pyspark=={release}.*", "py4j<0.11"]
    installing = subprocess.run([uv, "pip", "install", "-q", "-p", python, "--no-deps", *wanted], check=False)
    if installing.returncode != 0:
        pytest.skip(f"PySpark {release} cannot be had here")
    (next(folder.glob("lib/python*/site-packages")) / "others.pth").write_text(sysconfig.get_path("purelib"))
    (tmp_path / "work").mkdir()
    program = Path(__file__).with_name("formats_program.py")
    env = environment() | {"PYSPARK_PYTHON": str(python), "TAMIS_SPARK_ARCHIVE": "off"}
    command = [str(python), str(program), kind, str(tmp_path / "work"), jars]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=590, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert [each for each in said["first"] if any(each)] == [[2, 0, 0, 1]]
    assert said["then"] == [[0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1]]
    assert said["again"] == []
    assert said["rules"] == {"1": "price < 2", "4": "price = 4"}
    assert said["before"] == [[0, 1], [1, 1], [2, 1], [6, 3]]
    assert said["after"] == [[0, 1], [1, 1], [4, 4]]
