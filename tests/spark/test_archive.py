"""The archive of Spark's classes: used where it is whole and ours, and never in the way."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tamis.spark import archive
from tamis.spark.java import LEAST_VERSION, java_program, java_version
from tamis.spark.session import QUICK_START, java_options

needs_java = pytest.mark.skipif((java_version() or 0) < LEAST_VERSION, reason="there is no Java")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(archive.SWITCH, raising=False)
    return tmp_path / "tamis"


@pytest.fixture
def whole(cache):
    """Put something there that could be an archive."""
    path = archive.place()
    path.parent.mkdir()
    path.write_bytes(b"classes" * 1000)
    archive.durable.put_record(path.with_suffix(".json"), archive._sum(path))
    assert archive.whole_archive() == path
    return path


@needs_java
def test_an_archive_that_is_missing_or_changed_or_cut_is_not_used(whole):
    content = whole.read_bytes()
    for damaged in (content[:-1], b"C" + content[1:], b"", content + b"s"):
        whole.write_bytes(damaged)
        assert archive.whole_archive() is None
        assert "SharedArchiveFile" not in java_options(quick=True)
    whole.write_bytes(content)
    assert archive.whole_archive() == whole
    for mark in (b"{", b"[1, 2]", b""):
        whole.with_suffix(".json").write_bytes(mark)
        assert archive.whole_archive() is None
    whole.unlink()
    assert archive.whole_archive() is None


@needs_java
def test_another_java_another_spark_or_another_jar_has_another_archive(whole, monkeypatch):
    import pyspark

    with monkeypatch.context() as patch:
        patch.setattr(archive, "java_says", lambda _: 'openjdk version "99" OpenJDK')
        assert archive.whole_archive() is None and archive.place() != whole
    with monkeypatch.context() as patch:
        patch.setattr(pyspark, "__version__", "9.9.9")
        assert archive.whole_archive() is None
    with monkeypatch.context() as patch:
        glob = Path.glob
        patch.setattr(Path, "glob", lambda self, pattern: list(glob(self, pattern))[1:])
        assert archive.whole_archive() is None
    assert archive.whole_archive() == whole


def test_there_is_none_where_it_is_switched_off_or_java_is_not_known(cache, monkeypatch):
    monkeypatch.setattr(archive, "java_says", lambda _: "Eclipse OpenJ9 VM")
    assert archive.place() is None and archive.made() is None
    monkeypatch.undo()
    monkeypatch.setenv(archive.SWITCH, "off")
    assert archive.place() is None and archive.whole_archive() is None and archive.made() is None


@needs_java
@pytest.mark.parametrize(
    "content",
    [None, b"", b"no archive at all" * 1000, b"\xa8\xba\x0b\xf0" * 1000],
    ids=["nothing", "no bytes", "a text", "numbers"],
)
def test_java_starts_and_is_silent_with_whatever_lies_in_the_place_of_an_archive(tmp_path, content):
    path = tmp_path / "a b.jsa"
    if content is not None:
        path.write_bytes(content)
    options = shlex.split(archive.java_options(path))
    assert f"-XX:SharedArchiveFile={path}" in options
    done = subprocess.run([java_program(), *options, "-version"], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert "cds" not in done.stderr


@needs_java
def test_java_is_quick_for_who_names_no_master_and_lasting_for_others(cache):
    assert QUICK_START in java_options(quick=True)
    assert "TieredStopAtLevel" not in java_options(quick=False)
    assert "SerialGC" not in java_options(quick=False)


@needs_java
def test_what_others_left_unfinished_is_swept_away_and_nothing_else(whole):
    old, new = whole.with_name(".1.part"), whole.with_name(".2.part")
    for path in (old, new):
        path.write_bytes(b"")
    os.utime(old, (1e9, 1e9))
    archive._sweep(whole.parent)
    assert not old.exists() and new.exists() and whole.exists()


PROGRAM = """
import os, sys
from pathlib import Path
from tamis import spark as on_spark

with on_spark.running(log=os.devnull) as session:
    maps = Path(f"/proc/{session.sparkContext._gateway.proc.pid}/maps").read_text()
    rules = session.range(1).selectExpr("1 AS subscription_id", "'id % 2 = 0' AS condition")
    print(on_spark.match(session.range(1000), rules).count(), "tamis/spark-" in maps)
"""


@needs_java
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what is mapped")
def test_an_archive_is_made_once_and_mapped_from_then_on(cache):
    def answer():
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[-2:]

    path = archive.made()
    assert path is not None and archive.whole_archive() == path
    assert list(cache.glob(".*.part")) == []
    made = path.stat()
    assert archive.made() == path and path.stat().st_mtime_ns == made.st_mtime_ns, "once"
    assert answer() == ["500", "True"]
    path.chmod(0o644)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert answer() == ["500", "False"], "Spark starts without it"
