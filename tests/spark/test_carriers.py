"""A forest reaches hosts that share no disk with the driver, is written there once, and goes again."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pipeline = pytest.importorskip("tamis.spark")

from tamis.spark import carriers, forests  # noqa: E402
from tamis.spark.carriers import SharedBytes, VersionLine, carried, host_folder  # noqa: E402
from tests.spark.plain import collected  # noqa: E402
from tests.spark.worlds import World  # noqa: E402


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with a folder of its own."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "spark-1" / "executor-2" / "blockmgr-3"))
    return tmp_path / "spark-1" / "executor-2" / "site"


def test_a_host_writes_a_forest_once_however_many_workers_ask(host, monkeypatch):
    written = []
    whole = carriers._write

    def slowly(path, content):
        time.sleep(0.05)
        written.append(path)
        whole(path, content)

    monkeypatch.setattr(carriers, "_write", slowly)
    forest = SharedBytes(b"content", "d1", "site", VersionLine("line"))
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: forest.local_path(), range(8)))
    assert paths == {str(host / "line-d1.forest")}
    assert len(written) == 1
    assert (host / "line-d1.forest").read_bytes() == b"content"
    assert host.stat().st_mode & 0o077 == 0, "nobody else may change what workers map"


def test_versions_that_a_stream_has_no_use_for_leave_the_host_and_come_again_if_they_must(host):
    line = VersionLine("line")
    for number in range(6):
        used = tuple(f"d{each}" for each in range(max(0, number - 2), number))
        SharedBytes(b"%d" % number, f"d{number}", "site", VersionLine(line.name, used)).local_path()
    SharedBytes(b"x", "e", "site", VersionLine("another")).local_path()
    assert {path.name for path in host.glob("*.forest")} == {"line-d3.forest", "line-d4.forest", "line-d5.forest", "another-e.forest"}  # fmt: skip
    late = SharedBytes(b"1", "d1", "site", VersionLine("line", ("d3", "d4", "d5")))  # a task of long ago
    assert Path(late.local_path()).read_bytes() == b"1"


def test_a_forest_that_nobody_has_opened_for_a_day_leaves_the_host(host):
    old = Path(SharedBytes(b"old", "old", "site", VersionLine("a")).local_path())
    new = Path(SharedBytes(b"new", "new", "site", VersionLine("b")).local_path())
    long_ago = time.time() - 2 * carriers.UNUSED_S
    os.utime(old, (long_ago, long_ago))
    SharedBytes(b"next", "next", "site", VersionLine("c")).local_path()
    assert (old.exists(), new.exists()) == (False, True)


def test_what_a_writer_left_half_written_is_in_nobodys_way(host, monkeypatch):
    forest = SharedBytes(b"content", "d1", "site", VersionLine("line"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", _failing)
        with pytest.raises(OSError, match="no room"):
            forest.local_path()
    assert not list(host.glob("*.forest")) and not [name for name in os.listdir(host) if name.startswith(".line")]
    assert Path(forest.local_path()).read_bytes() == b"content"


def _failing(*arguments):
    raise OSError("no room")


@pytest.mark.spark
def test_matching_by_a_broadcast_finds_the_same_and_leaves_nothing_with_the_driver(spark, monkeypatch):
    monkeypatch.setattr(forests, "shares_disk", lambda session: False)
    rules = spark.createDataFrame([(1, "id % 3 = 0"), (2, "id < 2")], "subscription_id int, condition string")
    before = set(os.listdir(forests.folder()))
    compiled = pipeline.compiled(rules)
    assert isinstance(compiled.forest.carrier, SharedBytes)
    assert compiled.forest.bytes > 0
    assert set(os.listdir(forests.folder())) == before
    expected = {(each, 1) for each in range(0, 600, 3)} | {(0, 2), (1, 2)}
    assert collected(pipeline.match(spark.range(0, 600, 1, 4), compiled)) == expected
    again = pipeline.match(spark.range(0, 600, 1, 2), compiled, result="counts")
    assert sum(row.matches for row in again.collect()) == len(expected)


@pytest.mark.spark
def test_a_stream_whose_rules_change_often_keeps_few_versions_anywhere(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(forests, "shares_disk", lambda session: False)
    dropped = []
    whole = SharedBytes.drop
    monkeypatch.setattr(SharedBytes, "drop", lambda self: (dropped.append(self.digest), whole(self)))
    world = World(spark, tmp_path)
    stream = None
    try:
        for number in range(6):
            world.log.change(add={number: f"price = {number}"}, remove=[number - 2])
            world.arrive()
            stream = stream or world.start(trigger={"processingTime": "0 seconds"})
            stream.await_all()
    finally:
        stream.stop()
    world.check()
    assert len(set(dropped)) == 3, "six versions, of which three may still be asked for"


@pytest.mark.spark
def test_a_small_forest_travels_in_the_plan_of_a_session_without_broadcasts_and_a_large_one_as_an_artifact(tmp_path):
    class Client:
        """As much of a client of Spark Connect as a forest sees of it."""

        def addArtifacts(self, path, file):  # noqa: N802 - Spark's name
            self.sent = Path(path).name, Path(path).read_bytes(), file

    path = tmp_path / "small"
    path.write_bytes(b"small")
    assert carried(Client(), path, VersionLine()).source == b"small"
    client = Client()
    for _ in range(2):  # the same content has the same name: nothing is sent under two
        path.write_bytes(bytes(carriers.MOST_IN_PLAN + 1))
        large = carried(client, path, VersionLine())
        assert client.sent == (large.name, bytes(carriers.MOST_IN_PLAN + 1), True)
    assert os.listdir(tmp_path) == []


def test_a_host_without_folders_of_sparks_uses_its_own(monkeypatch, tmp_path):
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert host_folder("site") == tmp_path / "site"
