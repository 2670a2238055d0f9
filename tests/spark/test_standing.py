"""Sequences and changes on Spark are told what the local processor tells them."""

from __future__ import annotations

import datetime as dt
import math
import os
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest
from pyarrow import parquet

import tamis

pipeline = pytest.importorskip("tamis.spark")

from tamis.spark.errors import ColumnError, OptionError, RejectedSubscriptionsError  # noqa: E402

pytestmark = pytest.mark.spark
START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
WANTED = {
    "latest": "SEQUENCE kind = 'a' THEN kind = 'b' WITHIN 10 SECONDS PER user",
    "every": "SEQUENCE kind = 'a' THEN kind = 'b' WITHIN 4 SECONDS TAKING EVERY",
    "once": "SEQUENCE kind = 'a' THEN kind = 'b' THEN kind = 'c' WITHIN 20 SECONDS PER user TAKING EACH ONCE",
    "higher": "SEQUENCE kind = 'a' AS x THEN price > x.price AFTER 1 SECOND WITHIN 30 SECONDS PER user",
    "missing": "SEQUENCE kind = 'a' THEN NOT kind = 'b' WITHIN 3 SECONDS PER user",
    "high": "CHANGE OF price > 4 PER user",
    "hysteresis": "CHANGE TO price > 5 UNTIL price < 2 WHERE kind <> 'c'",
    "forgets": "CHANGE OF kind = 'a' PER user FORGET AFTER 2 SECONDS",
    "plain": "price = 7",
    "best": "TOP 2 BY price OVER 3 SECONDS WHERE kind <> 'c'",
    "never": "SEQUENCE kind = 'x' THEN kind = 'y' WITHIN 1 HOUR",
}
SCHEMA = pa.schema(
    [("event_id", pa.int64()), ("time", pa.timestamp("us", "UTC")), ("kind", pa.string()), ("user", pa.int64()),
     ("price", pa.float64())]
)  # fmt: skip


def generated(count, seed):
    """Events in order of time: bursts at one instant, NULL and NaN among them."""
    chance = Random(seed)
    events, moment = [], START
    for number in range(count):
        moment += dt.timedelta(milliseconds=chance.choice([0, 0, 250, 1000, 1500, 5000]))
        price = chance.choice([None, math.nan, *map(float, range(8))])
        kind, user = chance.choice(["a", "b", "c", None]), chance.choice([1, 2, None])
        events.append({"event_id": number, "time": moment, "kind": kind, "user": user, "price": price})
    return events


def told_locally(events, wanted=WANTED, until=None):
    processor = tamis.Standing(retention=math.inf)
    processor.add_many(wanted)
    told = []
    for event in sorted(events, key=lambda event: (event["time"], event["event_id"])):
        attributes = {name: event[name] for name in ("kind", "user", "price")}
        told += processor.process(attributes, now=event["time"].timestamp(), id=event["event_id"])
    end = max(event["time"] for event in events).timestamp() + 10_000 if until is None else until.timestamp()
    told += processor.advance(now=end)
    return sorted((each.subscription, each.events, round(each.at * 1e6), str(each.change)) for each in told)


def subscriptions_of(spark, wanted=WANTED):
    return spark.createDataFrame(list(wanted.items()), "subscription_id string, condition string")


def told_by(frame):
    rows = frame.selectExpr("subscription_id", "events", "unix_micros(at) AS at", "change").collect()
    return sorted((row[0], tuple(row[1]), row[2], str(row[3])) for row in rows)


@pytest.mark.parametrize("seed", range(2))
def test_a_table_is_told_what_the_local_processor_tells(spark, seed):
    events = generated(150, seed)
    frame = spark.createDataFrame(pa.Table.from_pylist(Random(seed).sample(events, len(events)), SCHEMA)).repartition(3)
    found = told_by(pipeline.notify(frame, subscriptions_of(spark)))
    assert found == told_locally(events)
    assert {subscription_id for subscription_id, *_ in found} == WANTED.keys() - {"never"}


def test_a_table_may_end_before_everything_is_due(spark):
    events = generated(60, 7)
    frame = spark.createDataFrame(pa.Table.from_pylist(events, SCHEMA))
    until = events[-1]["time"] + dt.timedelta(seconds=1)
    found = told_by(pipeline.notify(frame, subscriptions_of(spark), until=until))
    assert found == told_locally(events, until=until)


def streamed(spark, folder, files, *, stops=(), wanted=WANTED, lateness="5 seconds"):
    """Let files of events arrive one micro-batch at a time, perhaps with stops in between; return what is told."""
    arriving, out = folder / "events", folder / "out"
    arriving.mkdir()
    for number, events in enumerate(files):
        path = arriving / f"{number:04}.parquet"
        parquet.write_table(pa.Table.from_pylist(events, SCHEMA), path)
        os.utime(
            path, (1_700_000_000 + number,) * 2
        )  # Spark takes files in the order of their times, by the millisecond
        if number in (*stops, len(files) - 1):
            stream = spark.readStream.schema("event_id bigint, time timestamp, kind string, user bigint, price double")
            arriving_events = stream.option("maxFilesPerTrigger", 1).parquet(str(arriving))
            told = pipeline.notify(arriving_events, subscriptions_of(spark, wanted), lateness=lateness)
            writer = told.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
            query = writer.trigger(availableNow=True).start(str(out))
            query.awaitTermination()
    return told_by(spark.read.parquet(str(out)))


def ends_of_time(events):
    """What tells the time to the end: two events, since the watermark moves after a batch."""
    last = max(event["time"] for event in events)
    quiet = {"kind": None, "user": None, "price": None}
    return [[quiet | {"event_id": 1000 + n, "time": last + dt.timedelta(seconds=1_000 * (n + 1))}] for n in range(2)]


def test_a_stream_that_stops_and_starts_again_tells_what_the_local_processor_tells(rocks, tmp_path):
    events = generated(60, 3)
    files = [events[start : start + 20] for start in range(0, 60, 20)]
    # Neighbouring files overlap in time: an event of each comes one file later.
    for earlier, later in pairwise(files):
        late = earlier[-1]
        if later[0]["time"] - late["time"] < dt.timedelta(seconds=2):
            earlier.remove(late)
            later.append(late)
    found = streamed(rocks, tmp_path, [*files, *ends_of_time(events)], stops=(1,))
    assert found == told_locally(events)


def test_what_cannot_be_is_refused_with_its_reason(spark, rocks):
    events = spark.createDataFrame(pa.Table.from_pylist(generated(3, 0), SCHEMA))
    stream = (
        spark.readStream.format("rate").load().selectExpr("timestamp AS time", "value AS event_id", "value AS price")
    )
    for wanted, said in (
        ({"r": "TOP 1 BY prize OVER 1 HOUR"}, "price"), ({"s": "SEQUENCE kind = 'a' THEN"}, "condition"),
        ({"s": "CHANGE TO prize > 1"}, "price"),
    ):  # fmt: skip
        with pytest.raises(RejectedSubscriptionsError, match=said):
            pipeline.notify(events, subscriptions_of(spark, wanted))
    with pytest.raises(RejectedSubscriptionsError, match="WITHIN"):
        pipeline.notify(stream, subscriptions_of(spark, {"s": "SEQUENCE price > 1 THEN price > 2"}))
    with pytest.raises(ColumnError):
        pipeline.notify(events, subscriptions_of(spark), time="price")
    with pytest.raises(OptionError):
        pipeline.notify(stream, subscriptions_of(spark, {"s": "price > 1"}), until=START)
