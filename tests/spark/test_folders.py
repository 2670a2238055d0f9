"""Every folder may be a path, a `file:` address, or a folder of a Hadoop file system that is not the disk."""

from __future__ import annotations

import os
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pipeline = pytest.importorskip("tamis.spark")

import tamis  # noqa: E402
from tamis.spark.folders import DiskFolder, HadoopFolder, disk_path, folder_at  # noqa: E402
from tests.spark.worlds import World, crash_at_random_steps  # noqa: E402

pytestmark = pytest.mark.spark
KINDS = ("path", "file:/", "file:///", "viewfs")
quick_on_paths = [pytest.param(kind, marks=[] if kind == "path" else [pytest.mark.slow]) for kind in KINDS]
"""Folders of every kind, of which the quick suite takes plain paths: for what is slow and was seen to be alike."""


def address(spark, folder, kind):
    """A folder of this machine, in the words of each kind; viewfs is Hadoop's federation of file systems."""
    if kind == "viewfs":
        settings = spark.sparkContext._jsc.hadoopConfiguration()
        name = re.sub(
            "[^a-z0-9]+", "-", "-".join(folder.parts[-2:]).lower()
        )  # a file system is opened once for each name
        settings.set(f"fs.viewfs.mounttable.{name}.link./data", f"file://{folder}")
        return f"viewfs://{name}/data"
    return {"path": "", "file:/": "file:", "file:///": "file://"}[kind] + str(folder)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder of its own to stand in, in which nothing may appear that is called like a scheme."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield tmp_path / "there"
    assert os.listdir(tmp_path / "here") == []


@pytest.mark.parametrize("kind", KINDS)
def test_files_appear_whole_and_once_in_folders_of_every_kind(spark, elsewhere, kind):
    folder = folder_at(address(spark, elsewhere, kind)).below("deep", "er")
    assert (folder.names(), folder.read("a"), folder.record("a")) == ([], None, None)
    assert folder.put_new("a", b"[1]")
    assert not folder.put_new("a", b"[2]")
    assert folder.record("a") == [1]
    folder.put("a", b"[3]")
    folder.put_record("b", {"ü": None})
    assert (folder.names(), folder.read("a"), folder.record("b")) == (["a", "b"], b"[3]", {"ü": None})
    again = pickle.loads(pickle.dumps(folder))
    assert again.names() == ["a", "b"]
    left = [path.name for path in (elsewhere / "deep" / "er").iterdir() if not path.name.endswith(".crc")]
    assert sorted(left) == ["a", "b"], "something half-written was left"


def test_content_of_every_byte_and_of_some_size_comes_back(spark, elsewhere):
    folder = folder_at(address(spark, elsewhere, "viewfs"))
    for content in (b"", bytes(range(256)), os.urandom(3 << 20)):
        folder.put("a", content)
        assert folder.read("a") == content


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_keeps_everything_in_folders_of_every_kind(spark, elsewhere, kind):
    world = World(spark, elsewhere)
    world.move(address(spark, elsewhere, kind))
    world.log.add({"cheap": "price < 3"})
    world.arrive(files=2)
    world.run()
    world.log.change(add={"dear": "price > 4"}, remove=["cheap"])
    world.arrive()
    world.run()
    world.check()
    written = {path.name for path in elsewhere.iterdir()}
    assert {"log", "out", "checkpoint"} <= written
    assert (elsewhere / "checkpoint" / "tamis" / "versions").is_dir()
    assert [commit["version"] for commit in pipeline.commits(world.out)] == [1, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_kept_in_folders_of_every_kind(spark, elsewhere, kind):
    found = tamis.selectivity.Statistics.of([{"price": 5}, {"price": 7}])
    place = f"{address(spark, elsewhere, kind)}/auctions.parquet"
    pipeline.save_statistics(found, place)
    assert (elsewhere / "auctions.parquet").is_file()
    assert pipeline.load_statistics(place).to_json() == found.to_json()
    with pytest.raises(pipeline.OptionError, match="no statistics"):
        pipeline.load_statistics(f"{place}.not")


def test_a_plain_path_lies_where_it_lies_for_spark(spark, elsewhere):
    place = address(spark, elsewhere, "viewfs")
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set("fs.defaultFS", place.removesuffix("/data"))
    try:
        log = pipeline.SubscriptionLog("/data/rules")
        assert log.path == f"{place}/rules"
        log.add({1: "TRUE"})
    finally:
        settings.set("fs.defaultFS", "file:///")
    assert (elsewhere / "rules" / f"{1:012}.parquet").is_file()


def test_crashes_at_random_steps_change_nothing_in_a_folder_that_is_not_on_the_disk(spark, elsewhere, monkeypatch):
    world = World(spark, elsewhere)
    world.move(address(spark, elsewhere, "viewfs"))
    steps = [(HadoopFolder, name) for name in ("put", "put_new", "read", "names")]
    crash_at_random_steps(world, monkeypatch, crashes=4, files=3, more=steps)


BUCKET = """
package tamis.tests;

import java.io.*;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** An object store: no rename, and an object appears when its stream is closed. */
public class Bucket extends RawLocalFileSystem {
    public static int renames = 0;
    private URI uri;

    public String getScheme() { return "bucket"; }
    public URI getUri() { return uri == null ? URI.create("bucket:///") : uri; }
    public void initialize(URI name, Configuration conf) throws IOException {
        super.initialize(URI.create("file:///"), conf);
        uri = URI.create("bucket://" + name.getAuthority());
        setWorkingDirectory(new Path(uri.toString() + "/"));
    }
    public File pathToFile(Path path) { return new File(System.getProperty("tamis.bucket") + path.toUri().getPath()); }
    protected void checkPath(Path path) { }
    public boolean hasPathCapability(Path path, String capability) throws IOException {
        return capability.equals("fs.capability.outputstream.abortable") || super.hasPathCapability(path, capability);
    }
    public boolean rename(Path from, Path to) throws IOException {
        renames++;
        throw new IOException("an object store has no rename");
    }
    public FSDataOutputStream create(Path path, boolean overwrite, int buffer, short copies, long block, Progressable told)
            throws IOException {
        final File file = pathToFile(path);
        if (!overwrite && file.exists()) throw new FileAlreadyExistsException(path.toString());
        return new FSDataOutputStream(new Upload(file), null);
    }
    static class Upload extends ByteArrayOutputStream {
        private final File file;
        Upload(File file) { this.file = file; }
        public void close() throws IOException {
            file.getParentFile().mkdirs();
            File whole = File.createTempFile("upload", null);
            FileOutputStream out = new FileOutputStream(whole);
            out.write(toByteArray());
            out.close();
            if (!whole.renameTo(file)) throw new IOException("cannot move to " + file);
        }
    }
}
"""


@pytest.fixture
def bucket(spark, elsewhere):
    """The address of a bucket, and its class; the compiler is the one that Spark compiles its queries with."""
    jvm = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(BUCKET)
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    before = settings.getClassLoader()
    settings.setClassLoader(compiler.getClassLoader())
    settings.set("fs.bucket.impl", "tamis.tests.Bucket")
    settings.set("fs.bucket.impl.disable.cache", "true")
    jvm.System.setProperty("tamis.bucket", str(elsewhere))
    yield "bucket://auctions", compiler.getClassLoader().loadClass("tamis.tests.Bucket").getField("renames")
    settings.setClassLoader(before)


def test_nothing_is_renamed_in_an_object_store_and_a_name_is_taken_once(bucket, elsewhere):
    place, renames = bucket
    log = pipeline.SubscriptionLog(f"{place}/rules")
    assert log.add({1: "price < 20"}) == 1
    assert log.change(add={2: "signed"}, remove=[1]) == 2
    assert log.at(2) == {2: "signed"}
    folder = folder_at(place).below("records")
    assert folder.put_new("a", b"1")
    assert not folder.put_new("a", b"2")
    folder.put_record("a", [3])
    assert folder.record("a") == [3]
    assert renames.getInt(None) == 0
    assert sorted(os.listdir(elsewhere / "rules")) == [f"{1:012}.parquet", f"{2:012}.parquet"]


def test_writers_of_a_log_that_is_not_on_the_disk_follow_one_another(spark, elsewhere):
    place = f"{address(spark, elsewhere, 'viewfs')}/rules"
    with ThreadPoolExecutor(1) as pool:
        versions = list(pool.map(lambda number: pipeline.SubscriptionLog(place).add({number: "TRUE"}), range(4)))
    assert versions == [1, 2, 3, 4]


def test_what_cannot_be_reached_is_said_and_nothing_is_written(spark, elsewhere):
    with pytest.raises(pipeline.FolderError, match=r"s3a://bucket/rules cannot be reached.*S3AFileSystem.*spark\.jars"):
        pipeline.SubscriptionLog("s3a://bucket/rules").add({1: "TRUE"})
    with pytest.raises(pipeline.FolderError, match='No FileSystem for scheme "nope"'):
        folder_at("nope://bucket/x").names()
    with pytest.raises(pipeline.OptionError, match="as a text"):
        pipeline.SubscriptionLog(Path("s3a://bucket/rules"))
    with pytest.raises(pipeline.OptionError, match="cannot name a host"):
        folder_at("file://host/x")
    with pytest.raises(pipeline.OptionError, match="absolute path"):
        folder_at("file:x")
    with pytest.raises(pipeline.OptionError, match="on a disk"):
        disk_path("s3a://bucket/x", "this")
    world = World(spark, elsewhere)
    world.arrive()
    for given in ({"out": "nope://x/out"}, {"checkpoint": "nope://x/checkpoint"}):
        for name, value in given.items():
            setattr(world, name, value)
        with pytest.raises(pipeline.FolderError, match="nope"):
            world.run()
    pipeline.register(spark)
    with pytest.raises(Exception, match="on a disk"):
        spark.read.format("parquet_folder").load("s3a://bucket/x").count()


def test_without_a_session_an_address_says_that_it_needs_one(monkeypatch):
    monkeypatch.setattr("tamis.spark.folders._session", lambda spark: None)
    assert isinstance(folder_at("rules"), DiskFolder)
    with pytest.raises(pipeline.OptionError, match="start a session first"):
        folder_at("hdfs://host/rules").names()
