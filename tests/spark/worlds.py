"""A stream, what arrives for it, and what must come out, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from random import Random

import pyarrow as pa
from pyarrow import parquet

from tamis import spark as pipeline
from tamis.matching import Matcher
from tamis.sources import durable
from tamis.spark import sink, streaming
from tamis.spark.metrics import Metrics

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

    def move(self, place):
        """Keep log, matches and checkpoint in a folder that is named in other words."""
        self.log = pipeline.SubscriptionLog(f"{place}/log")
        self.out, self.checkpoint = f"{place}/out", f"{place}/checkpoint"

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

    def events(self):
        """The stream of what arrives, ten events in a batch."""
        return self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.arriving))

    def start(self, subscriptions=None, **options):
        options = {"keep": ["number", "price"], "trigger": ONCE} | options
        subscriptions = self.log if subscriptions is None else subscriptions
        return pipeline.match_stream(self.events(), subscriptions, out=self.out, checkpoint=self.checkpoint, **options)

    def run(self, **options):
        stream = self.start(**options)
        stream.await_end()
        return stream

    def rows(self):
        found = [tuple(row) for row in pipeline.read_matches(self.spark, self.out).collect()]
        assert len(found) == len(set(found)), "doubled"
        return set(found)

    def check(self, rows_per_file=10):
        """Every event was matched once, against the version that its batch recorded, and nothing else came out.

        Batches go on where the one before ended. Most have one file; Spark's own source puts two into a batch if it is
        killed after it has chosen a file and before it has written down that it did.
        """
        expected, seen = set(), 0
        for commit in pipeline.commits(self.out):
            matcher = Matcher()
            matcher.add_many(self.log.at(commit["version"]))
            numbers = range(seen, seen + commit["rows_in"])
            seen += commit["rows_in"]
            for number in numbers:
                for each in matcher.match({"number": number, "price": number % 7}):
                    expected.add((number, number % 7, each, commit["version"], commit["batch"]))
        assert seen == self.files * rows_per_file
        assert self.rows() == expected
        return expected


class FolderWorld(World):
    """The same through the data source in Python."""

    def events(self):
        pipeline.register(self.spark)
        reader = self.spark.readStream.format("parquet_folder").schema(SCHEMA)
        return reader.option("max_files", 1).load(str(self.arriving))


class NatsWorld(World):
    """The same as messages of a stream of NATS; a server that runs is given."""

    def __init__(self, spark, folder, server, stream):
        super().__init__(spark, folder)
        self.server, self.stream = server, stream
        self.url = server.make(stream)

    def arrive(self, files=1, rows=10):
        numbers = range(self.files * rows, (self.files + files) * rows)
        self.server.publish(self.stream, [json.dumps({"number": n, "price": n % 7}).encode() for n in numbers])
        self.files += files

    def events(self):
        pipeline.register(self.spark)
        messages = self.spark.readStream.format("nats").option("max_messages", 10).load(self.url)
        return messages.transform(pipeline.json_events(SCHEMA))


class ChangingWorld(World):
    """A world whose rules come as a stream."""

    kind = "operation string, subscription_id string, condition string, sequence bigint"

    def __init__(self, spark, folder):
        super().__init__(spark, folder)
        self.changes = folder / "changes"
        self.changes.mkdir()
        self.told = 0

    def say(self, *rows):
        """Let changes arrive, each in a file of its own: Spark reads files in an order of its own."""
        for row in rows:
            names = ("operation", "subscription_id", "condition", "sequence")
            types = (pa.string(), pa.string(), pa.string(), pa.int64())
            columns = {
                name: pa.array([value], kind) for name, value, kind in zip(names, (*row, None)[:4], types, strict=True)
            }
            parquet.write_table(pa.table(columns), self.changes / f"{self.told:04}.parquet")
            self.told += 1

    def begin(self, **options):
        stream = self.spark.readStream.schema(self.kind).parquet(str(self.changes))
        return self.start(stream, **options)

    def pairs(self):
        return {(number, each) for number, _, each, _, _ in self.rows()}


def crash_at_random_steps(world, monkeypatch, crashes, files=12, more=()):
    """Let a stream fail at random steps of the driver, start it again each time, and look at all that came out."""
    chance = Random(7)
    steps = (
        (durable, "put_record"), (durable, "record"), (streaming, "matched"), (sink.ParquetSink, "write"),
        (sink.ParquetSink, "commit"), (sink.ParquetSink, "commit_of"), (Metrics, "count"), *more,
    )  # fmt: skip
    waiting = chance.randrange(1, 12)
    done = 0

    def crashing(whole):
        def step(*arguments, **options):
            nonlocal waiting, done
            is_after = chance.random() < 0.5
            waiting -= 1
            if waiting != 0:
                return whole(*arguments, **options)
            if is_after:
                whole(*arguments, **options)
            done += 1
            waiting = chance.randrange(1, 12) if done < crashes else -1
            raise RuntimeError("crash")

        return step

    for owner, name in steps:
        monkeypatch.setattr(owner, name, crashing(getattr(owner, name)))
    world.log.add({1: "price < 3", 2: "number % 2 = 0"})
    world.arrive(files=files)
    while done < crashes:
        before = done
        with suppress(Exception):
            world.run()
        if done == before:
            world.arrive(files=4)  # it came to the end: give it more
        world.log.add({10 + done: f"price = {done % 7}"})
    world.run()
    world.check()
