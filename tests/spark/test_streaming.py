from __future__ import annotations

import os
import time
from contextlib import suppress
from random import Random

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis.matching import Matcher

pipeline = pytest.importorskip("tamis.spark")

from tamis.spark import durable, sink, streaming  # noqa: E402
from tamis.spark.metrics import Metrics  # noqa: E402

pytestmark = pytest.mark.spark
SCHEMA = "number bigint, price bigint"
ONCE = {"availableNow": True}


class World:
    """A folder in which events arrive, a log of subscriptions, and where the matches go."""

    def __init__(self, spark, folder):
        self.spark, self.folder = spark, folder
        self.arriving, self.out, self.checkpoint = folder / "events", folder / "out", folder / "checkpoint"
        self.arriving.mkdir()
        self.log = pipeline.SubscriptionLog(folder / "log")
        self.files = 0
        self.start_s = time.time() - 10_000

    def arrive(self, files=1, rows=10):
        """Let events arrive: file f has the numbers from f * rows on, and the price is the number modulo 7."""
        for _ in range(files):
            numbers = list(range(self.files * rows, (self.files + 1) * rows))
            table = pa.table({"number": numbers, "price": [number % 7 for number in numbers]})
            beside = self.folder / "beside.parquet"
            parquet.write_table(table, beside)
            # Spark takes files in the order of their times, which must not be equal.
            os.utime(beside, (self.start_s + self.files, self.start_s + self.files))
            beside.rename(self.arriving / f"{self.files:06}.parquet")
            self.files += 1

    def start(self, subscriptions=None, **options):
        events = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.arriving))
        options = {"keep": ["number", "price"], "trigger": ONCE} | options
        subscriptions = self.log if subscriptions is None else subscriptions
        return pipeline.match_stream(events, subscriptions, out=self.out, checkpoint=self.checkpoint, **options)

    def run(self, **options):
        stream = self.start(**options)
        stream.await_end()
        return stream

    def rows(self):
        found = [tuple(row) for row in pipeline.read_matches(self.spark, self.out).collect()]
        assert len(found) == len(set(found)), "doubled"
        return set(found)

    def check(self, rows_per_file=10):
        """Every event was matched once, against the version that its batch recorded, and nothing else came out."""
        expected, seen = set(), 0
        for commit in pipeline.commits(self.out):
            matcher = Matcher()
            matcher.add_many(self.log.at(commit["version"]))
            numbers = range(commit["batch"] * rows_per_file, commit["batch"] * rows_per_file + commit["rows_in"])
            seen += commit["rows_in"]
            for number in numbers:
                for each in matcher.match({"number": number, "price": number % 7}):
                    expected.add((number, number % 7, each, commit["version"], commit["batch"]))
        assert seen == self.files * rows_per_file
        assert self.rows() == expected
        return expected


@pytest.fixture
def world(spark, tmp_path):
    return World(spark, tmp_path)


def test_a_stream_matches_every_event_once_and_goes_on_where_it_stopped(world):
    world.log.add({"cheap": "price < 3", "even": "number % 2 = 0"})
    world.arrive(files=2)
    stream = world.run()
    assert world.check()
    assert stream.metrics.as_dict()["events_total"] == 20
    assert stream.metrics.last["kernel_s"] > 0
    world.arrive(files=1)
    world.run()
    world.check()
    assert len(pipeline.commits(world.out)) == 3


def test_a_change_is_in_force_in_the_next_micro_batch(world):
    world.log.add({1: "price < 3"})
    world.arrive()
    stream = world.start(trigger={"processingTime": "0 seconds"})
    try:
        stream.await_all()
        world.log.change(add={2: "price >= 3"}, remove=[1])
        world.arrive()
        stream.await_all()
        world.log.add({2: "price = 6", 3: "TRUE"})
        world.arrive()
        stream.await_all()
    finally:
        stream.stop()
    world.check()
    assert [commit["version"] for commit in pipeline.commits(world.out)] == [1, 2, 3]
    assert [commit["subscriptions"] for commit in pipeline.commits(world.out)] == [1, 1, 2]


POINTS = {
    "before the version is written down": (durable, "put_record", 0),
    "between the version and the rows": (streaming, "matched", 0),
    "after the rows, before the commit": (sink.ParquetSink, "commit", 0),
    "after the commit, before Spark knows": (Metrics, "count", 1),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_step_of_a_batch_changes_nothing_in_the_result(world, monkeypatch, point):
    owner, name, is_after = POINTS[point]
    world.log.add({1: "price < 3", 2: "number % 2 = 0"})
    world.arrive(files=1)
    world.run()
    world.arrive(files=1)
    whole = getattr(owner, name)

    def crashing(*arguments, **options):
        if is_after:
            whole(*arguments, **options)
        raise RuntimeError("crash")

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, crashing)
        with pytest.raises(Exception, match="crash"):
            world.run()
    # What is changed between the crash and the replay is not seen by the replayed batch, if its version was known.
    was_known = point != "before the version is written down"
    world.log.add({3: "TRUE"})
    world.arrive(files=1)
    world.run()
    world.check()
    assert [commit["version"] for commit in pipeline.commits(world.out)] == [1, 1 if was_known else 2, 2]


def test_twenty_crashes_at_random_steps_change_nothing_in_the_result(world, monkeypatch):
    chance = Random(7)
    steps = (
        (durable, "put_record"), (durable, "record"), (streaming, "matched"), (sink.ParquetSink, "write"),
        (sink.ParquetSink, "commit"), (sink.ParquetSink, "commit_of"), (Metrics, "count"),
    )  # fmt: skip
    waiting = chance.randrange(1, 12)
    crashes = 0

    def crashing(whole):
        def step(*arguments, **options):
            nonlocal waiting, crashes
            is_after = chance.random() < 0.5
            waiting -= 1
            if waiting != 0:
                return whole(*arguments, **options)
            if is_after:
                whole(*arguments, **options)
            crashes += 1
            waiting = chance.randrange(1, 12) if crashes < 20 else -1
            raise RuntimeError("crash")

        return step

    for owner, name in steps:
        monkeypatch.setattr(owner, name, crashing(getattr(owner, name)))
    world.log.add({1: "price < 3", 2: "number % 2 = 0"})
    world.arrive(files=12)
    while crashes < 20:
        before = crashes
        with suppress(Exception):
            world.run()
        if crashes == before:
            world.arrive(files=4)  # it came to the end: give it more
        world.log.add({10 + crashes: f"price = {crashes % 7}"})
    world.run()
    world.check()


def test_subscriptions_may_come_as_a_stream_of_changes(world):
    changes = world.folder / "changes"
    changes.mkdir()
    kind = "operation string, subscription_id string, condition string"

    def say(number, *rows):
        table = pa.table(dict(zip(("operation", "subscription_id", "condition"), zip(*rows, strict=True), strict=True)))
        parquet.write_table(table, changes / f"{number}.parquet")

    say(0, ("add", "cheap", "price < 3"), ("add", "broken", "price <"))
    stream = world.start(
        world.spark.readStream.schema(kind).parquet(str(changes)), trigger={"processingTime": "0 seconds"}
    )
    try:
        stream.await_all()
        world.arrive()
        stream.await_all()
        say(1, ("remove", "cheap", None), ("add", "all", "TRUE"))
        stream.await_all()
        world.arrive()
        stream.await_all()
    finally:
        stream.stop()
    found = {(number, each) for number, _, each, _, _ in world.rows()}
    assert found == {(n, "cheap") for n in range(10) if n % 7 < 3} | {(n, "all") for n in range(10, 20)}
    assert [commit["rejected"] for commit in pipeline.commits(world.out)] == [1, 1]


def test_lists_and_counts_stream_too(world):
    world.log.add({1: "price < 3", 2: "TRUE"})
    world.arrive()
    world.run(result="lists", keep=["number"])
    rows = pipeline.read_matches(world.spark, world.out).collect()
    assert {row.number: row.subscription_ids for row in rows} == {n: [1, 2] if n % 7 < 3 else [2] for n in range(10)}


def test_a_folder_of_another_stream_is_refused(world):
    world.log.add({1: "TRUE"})
    world.arrive()
    world.run()
    world.checkpoint = world.folder / "another"
    with pytest.raises(pipeline.OptionError, match="another stream"):
        world.start()


def test_a_table_is_no_stream(spark, tmp_path):
    with pytest.raises(pipeline.OptionError, match=r"tamis\.spark\.match"):
        pipeline.match_stream(spark.range(1), tmp_path / "log", out=tmp_path / "out", checkpoint=tmp_path / "c")
