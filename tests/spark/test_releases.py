"""Which PySpark does what: every one from 4.0 on matches tables and streams, and says what it is too old for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.spark.killing import environment

pytestmark = pytest.mark.spark
pipeline = pytest.importorskip("tamis.spark")
NUMBERS = range(100)


def test_a_part_that_needs_a_newer_pyspark_says_so_when_it_is_imported(monkeypatch):
    from tamis.spark import releases

    monkeypatch.setattr(releases, "installed", lambda: "4.0.5")
    monkeypatch.delitem(vars(pipeline), "nats_events", raising=False)
    with pytest.raises(ImportError, match=r"tamis\.spark\.nats_events needs PySpark 4\.2 or newer, and 4\.0\.5 is"):
        pipeline.nats_events  # noqa: B018
    monkeypatch.setattr(releases, "installed", lambda: "3.5.9")
    with pytest.raises(pipeline.SparkVersionError, match=r"tamis\.spark needs PySpark 4\.0 or newer, and 3\.5\.9 is"):
        releases.require_release("tamis.spark", releases.LEAST)


def test_what_is_installed_is_known_without_importing_it():
    import pyspark

    from tamis.spark import releases

    assert releases.installed() == pyspark.__version__
    assert [releases.version_of(each) for each in ("4.0.5", "4.10.0.dev1")] == [(4, 0), (4, 10)]


@pytest.fixture(scope="module", params=["3.5", "4.0", "4.1", "4.2"])
def python(request, tmp_path_factory):
    """Yield a Python with another PySpark, and everything else that this one has."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("other versions of PySpark are installed with uv")
    folder = tmp_path_factory.mktemp("environment") / request.param
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, folder], check=True)
    program = folder / "bin" / "python"
    wanted = [f"pyspark=={request.param}.*", "py4j<0.11"]
    installing = subprocess.run([uv, "pip", "install", "-q", "-p", program, "--no-deps", *wanted], check=False)
    if installing.returncode != 0:
        pytest.skip(f"PySpark {request.param} cannot be had here")
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    return request.param, program


@pytest.mark.slow
def test_tables_statistics_and_streams_work_with_every_pyspark_from_4_0_on(python, tmp_path):
    version, program = python
    env = environment() | {"PYSPARK_PYTHON": str(program), "TAMIS_SPARK_ARCHIVE": "off"}
    command = [str(program), str(Path(__file__).with_name("release_program.py")), str(tmp_path / "work")]
    (tmp_path / "work").mkdir()
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=590, check=False)
    if version < "4":
        assert "SparkVersionError: tamis.spark needs PySpark 4.0 or newer, and 3.5" in done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    pairs = sorted([number, 1] for number in NUMBERS if number % 7 < 3)
    pairs = sorted([*pairs, *([number, 2] for number in NUMBERS if number >= 95), *([number, 4] for number in NUMBERS)])
    assert said["version"].startswith(version)
    assert said["frame"] == said["files"] == said["sharded"] == pairs
    assert said["counts"] == len(pairs)
    assert said["tally"] == [[1, 44], [2, 5], [4, 100]]
    assert said["rejected"] == [3]
    assert said["statistics"] == ["number", "price", "title"]
    assert said["stream"] == [number for number in NUMBERS if number % 7 < 3]
    needs = {"matches": "4.1", "matching_step": "4.1", "nats_events": "4.2", "broker_events": "4.2"}
    for name, least in needs.items():
        expected = "" if version >= least else f"tamis.spark.{name} needs PySpark {least} or newer, and {version}"
        assert said["refusals"][name].startswith(expected) and bool(said["refusals"][name]) == (version < least)
