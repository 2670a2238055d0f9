"""Ranked subscriptions on Spark are told what the local processor tells them."""

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
from tamis.spark.session import ROCKS_DB, STATE_STORE  # noqa: E402

pytestmark = pytest.mark.spark
START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
RANKED = {
    "fresh": "TOP 2 BY price DESC HALF LIFE 7 SECONDS OVER 25 SECONDS WHERE kind IN ('flat', 'house')",
    "cheapest": "TOP 2 BY price ASC OVER 30 SECONDS",
    "dearest flats": "TOP 1 BY price DESC OVER 20 SECONDS WHERE kind = 'flat'",
    "latest": "TOP 3 BY price OVER 5 EVENTS WHERE kind IN ('flat', 'house')",
    "near": "TOP 2 BY euclidean(array(x, y), array(5, 5)) ASC OVER 8 EVENTS",
    "worth": "TOP 1 BY price - 2 * x ASC OVER 15 SECONDS WHERE y > 3",
    "of nothing": "TOP 4 BY price OVER 10 SECONDS WHERE kind = 'castle'",
    "more than there are": "TOP 50 BY price DESC OVER 12 SECONDS",
}
SCHEMA = pa.schema(
    [("event_id", pa.int64()), ("time", pa.timestamp("us", "UTC")), ("kind", pa.string())]
    + [(name, pa.float64()) for name in ("price", "x", "y")]
)


def generated(count, seed):
    """Events in order of time: bursts at one instant, equal scores, NULL and NaN among them."""
    chance = Random(seed)
    events, moment = [], START
    for number in range(count):
        moment += dt.timedelta(milliseconds=chance.choice([0, 0, 250, 1000, 1500, 7000]))
        price = chance.choice([None, math.nan, *map(float, range(8))])
        kind = chance.choice(["flat", "house", "tent", None])
        events.append({"event_id": number, "time": moment, "kind": kind, "price": price, "x": float(chance.randrange(10)), "y": float(chance.randrange(10))})  # fmt: skip
    return events


def told_locally(events, ranked=RANKED, until=math.inf):
    processor = tamis.TopK(algorithm="naive")
    for subscription_id, text in ranked.items():
        processor.add(subscription_id, text)
    told = []
    for event in sorted(events, key=lambda event: (event["time"], event["event_id"])):
        attributes = {
            name: value for name, value in event.items() if name not in ("time", "event_id") and value is not None
        }
        told += processor.process(attributes, now=event["time"].timestamp(), id=event["event_id"])
    if until == math.inf:
        until = max(event["time"] for event in events).timestamp() + 10_000
    told += processor.advance(now=until)
    return {(each.subscription, each.event, round(each.at * 1e6)) for each in told}


def subscriptions_of(spark, ranked=RANKED):
    return spark.createDataFrame(list(ranked.items()), "subscription_id string, ranked string")


def told_by(frame):
    rows = frame.selectExpr("subscription_id", "event_id", "unix_micros(at) AS at").collect()
    found = [tuple(row) for row in rows]
    assert len(found) == len(set(found)), "told twice"
    return set(found)


@pytest.mark.parametrize("seed", range(2))
def test_all_deliveries_of_history_are_those_of_the_local_processor(spark, seed):
    events = generated(150, seed)
    frame = spark.createDataFrame(pa.Table.from_pylist(Random(seed).sample(events, len(events)), SCHEMA)).repartition(3)
    found = told_by(pipeline.top_k(frame, subscriptions_of(spark)))
    assert found == told_locally(events)
    assert len({subscription_id for subscription_id, _, _ in found}) == len(RANKED) - 1


def test_history_may_end_before_everything_has_left(spark):
    events = generated(60, 7)
    frame = spark.createDataFrame(pa.Table.from_pylist(events, SCHEMA))
    until = events[-1]["time"] + dt.timedelta(seconds=5)
    found = told_by(pipeline.top_k(frame, subscriptions_of(spark), until=until))
    assert found == told_locally(events, until=until.timestamp())


def streamed(spark, folder, files, *, stop_after=None, lateness="5 seconds", ranked=RANKED):
    """Let files of events arrive one micro-batch at a time, perhaps with a stop in between; return the deliveries."""
    arriving, out = folder / "events", folder / "out"
    arriving.mkdir()
    for number, events in enumerate(files):
        path = arriving / f"{number:04}.parquet"
        parquet.write_table(pa.Table.from_pylist(events, SCHEMA), path)
        os.utime(
            path, (1_700_000_000 + number,) * 2
        )  # Spark takes files in the order of their times, by the millisecond
        if number in (stop_after, len(files) - 1):
            stream = spark.readStream.schema(
                "event_id bigint, time timestamp, kind string, price double, x double, y double"
            )
            arriving_events = stream.option("maxFilesPerTrigger", 1).parquet(str(arriving))
            told = pipeline.top_k(arriving_events, subscriptions_of(spark, ranked), lateness=lateness)
            writer = told.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
            query = writer.trigger(availableNow=True).start(str(out))
            query.awaitTermination()
    return told_in(spark.read.parquet(str(out)))


def told_in(frame):
    """The deliveries of a result, in order; one may come as often as its event does."""
    return sorted(map(tuple, frame.selectExpr("subscription_id", "event_id", "unix_micros(at) AS at").collect()))


def ends_of_time(events):
    """What tells the time to the end: two events, since the watermark moves after a batch."""
    last = max(event["time"] for event in events)
    quiet = {"kind": "tent", "price": None, "x": 0.0, "y": 0.0}
    return [[quiet | {"event_id": 1000 + n, "time": last + dt.timedelta(seconds=1_000 * (n + 1))}] for n in range(2)]


def test_events_of_one_instant_in_different_batches_and_repeated_ids_are_told_as_in_a_table(rocks, tmp_path):
    chance = Random(11)
    events, moment = [], START
    for number in range(48):
        # Two or three batches have events of one instant, to the microsecond; every third id comes twice or more.
        moment += dt.timedelta(microseconds=chance.choice([0, 0, 0, 1, 999, 1_500_000]))
        price = chance.choice([None, math.nan, 1.0, 2.0, 3.0])
        id = number if number % 3 else chance.randrange(4)
        events.append({"event_id": id, "time": moment, "kind": chance.choice(["flat", "house"]), "price": price, "x": 1.0, "y": 5.0})  # fmt: skip
    files = [events[start : start + 12] for start in range(0, 48, 12)]
    assert any(former[-1]["time"] == later[0]["time"] for former, later in pairwise(files)), "that is not a test"
    for file in files:
        chance.shuffle(file)  # within a batch there is no order
    ranked = {"cheapest": "TOP 2 BY price ASC OVER 2 SECONDS", "latest": "TOP 1 BY price OVER 4 EVENTS"}
    files += ends_of_time(events)
    found = streamed(rocks, tmp_path, files, lateness="0 seconds", ranked=ranked, stop_after=1)
    table = rocks.createDataFrame(pa.Table.from_pylist([event for file in files for event in file], SCHEMA))
    expected = told_in(pipeline.top_k(table.repartition(3), subscriptions_of(rocks, ranked)))
    assert [each for each in found if each[1] < 1000] == [each for each in expected if each[1] < 1000]
    assert len(found) > 20


def test_an_event_without_a_time_is_in_no_window(spark):
    events = [*generated(20, 5), generated(1, 6)[0] | {"event_id": 99, "time": None, "price": 0.0}]
    frame = spark.createDataFrame(pa.Table.from_pylist(events, SCHEMA))
    assert told_by(pipeline.top_k(frame, subscriptions_of(spark))) == told_locally(events[:-1])


def test_the_state_store_of_the_session_is_left_as_it_is(spark):
    before = spark.conf.get(STATE_STORE)
    assert before != ROCKS_DB
    stream = spark.readStream.format("rate").load().selectExpr("value AS event_id", "timestamp AS time")
    with pytest.raises(OptionError, match=rf"RocksDB.*spark\.conf\.set\('{STATE_STORE}'"):
        pipeline.top_k(stream, subscriptions_of(spark, {"a": "TOP 1 BY event_id OVER 3 EVENTS"}))
    assert spark.conf.get(STATE_STORE) == before


def test_a_stream_tells_what_the_local_processor_tells_though_events_come_late_and_it_is_stopped(rocks, tmp_path):
    events = generated(60, 3)
    chance = Random(3)
    # An event comes up to four seconds after its time: among those that come then.
    late = sorted(events, key=lambda event: event["time"].timestamp() + chance.uniform(0, 4))
    files = [late[:25], late[25:]]
    files += ends_of_time(events)
    found = streamed(rocks, tmp_path, files, stop_after=0)
    expected = told_locally(events + files[2] + files[3])
    assert {each for each in found if each[1] < 1000} == {each for each in expected if each[1] < 1000}


def test_what_cannot_be_is_said(spark):
    events = spark.createDataFrame(pa.Table.from_pylist(generated(3, 1), SCHEMA))
    with pytest.raises(RejectedSubscriptionsError, match=r"'bad'.*TOP"):
        pipeline.top_k(events, subscriptions_of(spark, {"bad": "price < 3"}))
    with pytest.raises(RejectedSubscriptionsError, match="pric"):
        pipeline.top_k(events, subscriptions_of(spark, {"bad": "TOP 1 BY pric OVER 3 EVENTS"}))
    with pytest.raises(ColumnError, match="'when'"):
        pipeline.top_k(events, subscriptions_of(spark), time="when")
    with pytest.raises(ColumnError, match="timestamps"):
        pipeline.top_k(events, subscriptions_of(spark), time="price")
    stream = spark.readStream.format("rate").load().selectExpr("value AS event_id", "timestamp AS time")
    with pytest.raises(OptionError, match="until"):
        pipeline.top_k(stream, subscriptions_of(spark, {"a": "TOP 1 BY event_id OVER 3 EVENTS"}), until=START)


# -- Clients, withdrawals, and what starts and ends

CLIENTS = {"fresh": "ann", "cheapest": "ann", "latest": "ann", "near": "bob", "worth": "bob", "dearest flats": None}


def seconds(count):
    return START + dt.timedelta(seconds=count)


def terms_of(events, seed):
    """When some events expire or are withdrawn, and when some subscriptions start and end."""
    chance = Random(seed)
    expires = {each["event_id"]: each["time"] + dt.timedelta(seconds=chance.choice([0, 3, 9])) for each in events[::4]}
    withdrawn = [
        (each["event_id"], each["time"] + dt.timedelta(seconds=chance.choice([0, 1, 6]))) for each in events[::3]
    ]
    last = (events[-1]["time"] - START).total_seconds()
    lasting = {
        "cheapest": (seconds(last / 4), None),
        "near": (None, seconds(last / 2)),
        "fresh": (seconds(3), seconds(last * 0.8)),
    }
    return expires, withdrawn, lasting


def told_locally_by_terms(events, ranked, clients, expires, withdrawn, lasting):
    """Return what the local processor tells, if it hears of everything in order: starts, events, withdrawals."""
    processor = tamis.TopK(algorithm="naive")
    happenings = []
    for number, (each, text) in enumerate(sorted(ranked.items())):
        first, last = lasting.get(each, (None, None))
        happenings.append((first or START - dt.timedelta(days=1), 0, number, each, text, last))
    happenings += [(event["time"], 1, event["event_id"], event, None, None) for event in events]
    happenings += [(at, 2, each, None, None, None) for each, at in withdrawn]
    told = []
    for at, kind, each, what, text, last in sorted(happenings, key=lambda row: row[:3]):
        now = at.timestamp()
        if kind == 0:
            until = math.inf if last is None else last.timestamp()
            told += processor.advance(now) if now > 0 else []
            processor.add(what, text, client=clients.get(what), until=until)
        elif kind == 1:
            attributes = {
                name: value for name, value in what.items() if name not in ("time", "event_id") and value is not None
            }
            limit = expires[each].timestamp() if each in expires else math.inf
            told += processor.process(attributes, now=now, id=each, expires=limit)
        else:
            told += processor.withdraw(each, now)
    told += processor.advance(events[-1]["time"].timestamp() + 10_000)
    return [(each.subscription, each.event, round(each.at * 1e6)) for each in told]


def ranked_by_terms(spark, events, ranked, clients, expires, withdrawn, lasting, **options):
    rows = [(each, text, clients.get(each), *lasting.get(each, (None, None))) for each, text in ranked.items()]
    table = spark.createDataFrame(
        rows, "subscription_id string, ranked string, owner string, first timestamp, last timestamp"
    )
    limits = [{**event, "until": expires.get(event["event_id"])} for event in events]
    frame = spark.createDataFrame(
        pa.Table.from_pylist(limits, SCHEMA.append(pa.field("until", pa.timestamp("us", "UTC"))))
    )
    gone = spark.createDataFrame(withdrawn, "event_id bigint, time timestamp")
    named = {"starts": "first", "ends": "last", "expires": "until", "withdrawn": gone}
    return pipeline.top_k(frame, table, **named, **options)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_withdrawn_and_expired_events_and_subscriptions_that_start_and_end_are_told_as_locally(spark, seed):
    events = generated(120, seed)
    terms = terms_of(events, seed)
    told = told_by(ranked_by_terms(spark, events, RANKED, {}, *terms))
    expected = told_locally_by_terms(events, RANKED, {}, *terms)
    assert told == set(expected)
    assert len(expected) == len(set(expected)) < len(told_locally(events))


def test_a_client_is_told_of_an_event_once(spark):
    events = generated(120, 4)
    terms = terms_of(events, 4)
    told = told_by(ranked_by_terms(spark, events, RANKED, CLIENTS, *terms, client="owner"))
    expected = told_locally_by_terms(events, RANKED, CLIENTS, *terms)

    def by_client(rows):
        return sorted((CLIENTS.get(each) or each, event, at) for each, event, at in rows)

    assert by_client(told) == by_client(expected)
    pairs = [row[:2] for row in by_client(told)]
    assert len(pairs) == len(set(pairs))


def test_a_stream_knows_when_subscriptions_start_and_end_and_nothing_of_clients(spark):
    stream = spark.readStream.format("rate").load().selectExpr("value AS event_id", "timestamp AS time")
    for options in ({"client": "ranked"}, {"expires": "time"}, {"withdrawn": subscriptions_of(spark)}):
        with pytest.raises(OptionError, match="for tables only"):
            pipeline.top_k(stream, subscriptions_of(spark), **options)
    with pytest.raises(ColumnError, match="times must be timestamps, but 'ranked' is string"):
        pipeline.top_k(
            spark.createDataFrame(pa.Table.from_pylist(generated(1, 1), SCHEMA)),
            subscriptions_of(spark),
            starts="ranked",
        )
