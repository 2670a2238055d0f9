"""Functions of the host on Spark give what they give here: in tables, streams, ranked and standing subscriptions."""

from __future__ import annotations

import datetime as dt
import math
import os
import threading

import pyarrow as pa
import pytest
from pyarrow import parquet

import tamis
from tamis.errors import FunctionError, UnknownFunctionError
from tests.hosted import rules

pipeline = pytest.importorskip("tamis.spark")

from tamis.spark.subscription_log import SubscriptionLog, Terms  # noqa: E402
from tamis.spark.top_k import top_k  # noqa: E402

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
WANTED = {
    "worth": "score(price, category) > 30",
    "fragile": "fragile(a) >= 0",
    "not fragile": "fragile(a) IS NULL AND price > 1",
    "even": "is_even(a) AND NOT is_even(b)",
    "plain": "price < 20",
}
SCHEMA = pa.schema(
    [
        ("event_id", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("price", pa.float64()),
        ("category", pa.string()),
        ("a", pa.int64()),
        ("b", pa.int64()),
    ]
)
NAMES = ("price", "category", "a", "b")


def generated(count):
    prices = [None, math.nan, math.inf, 12.0, 20.5, 40.0]
    return [
        {
            "event_id": number,
            "time": START + dt.timedelta(seconds=number),
            "price": prices[number % 6],
            "category": ["Crime", None, "Poetry"][number % 3],
            "a": [None, 1, 2, 3, 4, 7][number * 5 % 6],
            "b": number // 6 % 4 or None,
        }
        for number in range(count)
    ]


def pairs_locally(events, functions, wanted=WANTED):
    trees = {key: tamis.parse(text, functions=functions) for key, text in wanted.items()}
    return {
        (event["event_id"], key)
        for event in events
        for key, tree in trees.items()
        if tamis.holds(tree, {name: event[name] for name in NAMES})
    }


def table_of(spark, wanted=WANTED, name="condition"):
    return spark.createDataFrame(list(wanted.items()), f"subscription_id string, {name} string")


def by_value():
    """Return functions that no module has, so that they travel by value."""
    factor = 2

    @tamis.function(takes=("number", "string"), gives="number", version=1)
    def score(price, category):
        return price * (factor if category == "Crime" else 1)

    @tamis.function(takes=("number",), gives="number", version=1)
    def fragile(number):
        return 1 // (number - 1) if number != 2 else "a text"

    is_even = tamis.function(takes=("number",), gives="boolean", version=2, name="is_even")(lambda each: each % 2 == 0)
    return tamis.Functions([score, fragile, is_even])


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["by import", "by value"])
def test_a_table_is_matched_as_here_and_as_spark_sql_does_with_the_function_registered(spark, kind):
    functions = rules.functions if kind == "by import" else by_value()
    events = generated(60)
    frame = spark.createDataFrame(pa.Table.from_pylist(events, SCHEMA)).repartition(3)
    found = pipeline.match(frame, table_of(spark), keep=["event_id"], functions=functions)
    wanted = pairs_locally(events, functions)
    assert {tuple(row) for row in found.collect()} == wanted
    assert {key for _, key in wanted} == set(WANTED)
    pipeline.register_functions(spark, functions)
    frame.createOrReplaceTempView("hosted_events")
    for key, text in WANTED.items():
        rows = spark.sql(f"SELECT event_id FROM hosted_events WHERE {text}").collect()
        assert {row[0] for row in rows} == {number for number, each in wanted if each == key}, text


@pytest.mark.spark
def test_failures_in_workers_are_counted_by_the_functions_of_the_driver_and_change_no_other_match(spark):
    functions = by_value()
    events = generated(12)
    frame = spark.createDataFrame(pa.Table.from_pylist(events, SCHEMA)).coalesce(1)
    before = pairs_locally(events, functions, {"plain": "price < 20"})
    found = pipeline.match(frame, table_of(spark), keep=["event_id"], functions=functions)
    assert {tuple(row) for row in found.where("subscription_id = 'plain'").collect()} == before
    local = by_value()
    matcher = tamis.Matcher(functions=local)
    matcher.add_many(WANTED)
    matcher.match_batch([{name: event[name] for name in NAMES} for event in events])
    assert functions.failures == local.failures
    assert set(local.failures["fragile@1"]) == {"raised", "other kind"}


@pytest.mark.spark
def test_shards_and_compilation_in_parallel_know_the_functions(spark, monkeypatch):
    monkeypatch.setattr("tamis.spark.subscriptions.COMPILED_BY_DRIVER", 2)
    functions = by_value()
    events = generated(40)
    frame = spark.createDataFrame(pa.Table.from_pylist(events, SCHEMA))
    wanted = {**WANTED, "crime": "category = 'Crime' AND score(price, category) > 1"}
    for shards in (1, 3):
        found = pipeline.match(
            frame, table_of(spark, wanted), keep=["event_id"], functions=functions, shards=shards, on_error="raise"
        )
        assert {tuple(row) for row in found.collect()} == pairs_locally(events, functions, wanted)


@pytest.mark.spark
def test_ranked_and_standing_subscriptions_of_a_table_are_told_what_the_local_processor_tells(spark):
    functions = by_value()
    wanted = {
        "best": "TOP 2 BY score(price, category) OVER 5 SECONDS WHERE NOT is_even(b)",
        "steps": "SEQUENCE is_even(a) AS x THEN score(price, category) > 30 AND b <> x.b WITHIN 9 SECONDS",
        "turns": "CHANGE OF fragile(a) >= 0",
        "plain": "price < 20",
    }
    events = generated(50)
    processor = tamis.Standing(functions=functions, retention=math.inf)
    processor.add_many(wanted)
    told = []
    for event in events:
        attributes = {name: event[name] for name in NAMES}
        told += processor.process(attributes, now=event["time"].timestamp(), id=event["event_id"])
    told += processor.advance(events[-1]["time"].timestamp() + 10_000)
    assert {each.subscription for each in told} == set(wanted)
    frame = spark.createDataFrame(pa.Table.from_pylist(events, SCHEMA)).repartition(2)
    rows = pipeline.notify(frame, table_of(spark, wanted), functions=functions).collect()
    assert sorted((row[0], tuple(row[1])) for row in rows) == sorted((each.subscription, each.events) for each in told)
    best = top_k(frame, table_of(spark, {"best": wanted["best"]}, "ranked"), functions=functions).collect()
    assert sorted(row[1] for row in best) == sorted(each.events[0] for each in told if each.subscription == "best")


def arriving(spark, folder):
    fields = "event_id bigint, time timestamp, price double, category string, a bigint, b bigint"
    return spark.readStream.schema(fields).option("maxFilesPerTrigger", 1).parquet(str(folder))


def put(folder, number, events):
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:04}.parquet"
    parquet.write_table(pa.Table.from_pylist(events, SCHEMA), path)
    os.utime(path, (1_700_000_000 + number,) * 2)


@pytest.mark.spark
def test_a_stream_is_matched_as_here_and_the_log_keeps_names_and_versions(spark, tmp_path):
    functions = by_value()
    log = SubscriptionLog(tmp_path / "log", functions=functions)
    log.add(WANTED, priorities={"plain": 2})
    assert log.terms(1)["worth"] == Terms(0, None, ("score@1",))
    assert log.terms(1)["plain"] == Terms(2)
    events = generated(30)
    put(tmp_path / "events", 0, events[:15])
    put(tmp_path / "events", 1, events[15:])

    def stream(own):
        return pipeline.match_stream(
            arriving(spark, tmp_path / "events"),
            tmp_path / "log",
            out=tmp_path / "out",
            checkpoint=tmp_path / "checkpoint",
            keep=["event_id"],
            trigger={"availableNow": True},
            functions=own,
        )

    with pytest.raises(UnknownFunctionError, match="score@1 is not registered, but score@2 is"):
        stream(rules.newer)
    with pytest.raises(UnknownFunctionError, match="score@1 is not registered"):
        stream(None)
    assert not (tmp_path / "out").exists(), "nothing was half begun"
    stream(functions).await_end()
    found = pipeline.read_matches(spark, tmp_path / "out").select("event_id", "subscription_id").collect()
    assert {tuple(row) for row in found} == pairs_locally(events, functions)


@pytest.mark.spark
@pytest.mark.slow
def test_a_stream_of_standing_subscriptions_is_told_what_the_local_processor_tells(rocks, tmp_path):
    functions = by_value()
    wanted = {"steps": "SEQUENCE is_even(a) THEN score(price, category) > 30 WITHIN 9 SECONDS", "turns": "CHANGE OF fragile(a) >= 0"}  # fmt: skip
    events = generated(30)
    put(tmp_path / "events", 0, events[:15])
    put(tmp_path / "events", 1, events[15:])
    told = pipeline.notify(arriving(rocks, tmp_path / "events"), table_of(rocks, wanted), functions=functions)
    writer = told.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    found = sorted((row[0], tuple(row[1])) for row in rocks.read.parquet(str(tmp_path / "out")).collect())
    processor = tamis.Standing(functions=functions)
    processor.add_many(wanted)
    local = []
    for event in events[:-1]:  # what is of the last instant waits for the watermark
        attributes = {name: event[name] for name in NAMES}
        local += processor.process(attributes, now=event["time"].timestamp(), id=event["event_id"])
    assert found == sorted((each.subscription, each.events) for each in local)


def test_a_table_brings_a_log_to_another_version_of_a_function_and_to_none_if_nothing_changed(tmp_path):
    log = SubscriptionLog(tmp_path, functions=rules.functions)
    rows = [("worth", "score(price, category) > 30"), ("plain", "price < 20")]
    assert log.load(rows) == []
    assert log.load(rows) == [] and log.version == 1
    newer = SubscriptionLog(tmp_path, functions=rules.newer)
    with pytest.raises(UnknownFunctionError, match="score@1 is not registered, but score@2 is") as error:
        newer.demand(1, rules.newer)
    assert "the subscription 'worth'" in error.value.__notes__[0]
    assert newer.load(rows) == []
    assert newer.version == 2 and newer.changes(2) == {"worth": "score(price, category) > 30"}
    newer.demand(2, rules.newer)
    log.remove(["worth"])
    log.demand(3, tamis.Functions())


def test_a_text_that_calls_what_is_not_registered_is_not_added_to_a_log(tmp_path):
    log = SubscriptionLog(tmp_path)
    with pytest.raises(UnknownFunctionError, match="score"):
        log.add({"worth": "score(price, category) > 30"})
    assert log.version == 0


def test_a_function_that_gives_an_array_has_no_form_in_spark_sql():
    pieces = tamis.function(takes=("string",), gives="array", version=1, name="pieces")(str.split)
    with pytest.raises(FunctionError, match="pieces@1 gives an array"):
        pipeline.register_functions(None, tamis.Functions([pieces]))


def test_functions_that_cannot_be_pickled_say_so_before_anything_runs():
    lock = threading.Lock()
    locked = tamis.function(takes=(), gives="boolean", version=1, name="locked")(lambda: lock.locked())
    from pyspark import cloudpickle

    with pytest.raises(TypeError, match="pickle"):
        cloudpickle.dumps(tamis.Functions([locked]))
