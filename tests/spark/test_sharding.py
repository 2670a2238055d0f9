from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.meaning import attribute_value
from tamis.spark.access_keys import key_of, keys_of
from tests.spark.plain import collected, pairs_of
from tests.spark.test_batch import table
from tests.strategies import conditions, events

pipeline = pytest.importorskip("tamis.spark")


@settings(max_examples=300)
@given(condition=conditions, batch=st.lists(events(), min_size=1, max_size=10))
def test_an_event_that_matches_has_a_value_of_every_key(condition, batch):
    for event in batch:
        if tamis.holds(condition, event):
            for path, values in keys_of(condition).items():
                assert key_of(attribute_value(event, path)) in values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", {("a",): {1.0}}),
        ("'x' = b", {("b",): {"x"}}),
        ("a IN (1, 2.5) AND c > 3", {("a",): {1.0, 2.5}}),
        ("a = 1 OR a = 2 AND b = 'x'", {("a",): {1.0, 2.0}}),
        ("a = 1 OR b = 'x'", {}),
        ("NOT a = 1", {}),
        ("NOT a != 1", {("a",): {1.0}}),
        ("b LIKE 'x'", {("b",): {"x"}}),
        ("b NOT LIKE 'x'", {}),
        ("b LIKE 'x%'", {}),
        ("a NOT IN (1, 2)", {}),
        ("a <=> 1", {}),
        ("a = -0.0", {("a",): {0.0}}),
        ("r.x = 'y' AND flag = TRUE", {("r", "x"): {"y"}}),
        ("at_least(1, a = 1, b = 'x')", {}),
    ],
)
def test_keys_are_what_must_be_equal(text, expected):
    assert keys_of(tamis.parse(text)) == expected


EVENTS = [
    {"number": number, "city": city, "size": size, "at": {"x": x}}
    for number, (city, size, x) in enumerate(
        [("Zagreb", 1.0, 7), ("Wien", -0.0, 8), (None, 2.5, None), ("", None, 7), ("Berlin", float("nan"), 9)] * 40
    )
]
SUBSCRIPTIONS = {
    **{
        number: f"city = '{city}' AND size < {number}"
        for number, city in enumerate(("Zagreb", "Wien", "Graz", "") * 10)
    },
    **{100 + number: f"size IN ({number}, 2.5) AND at.x = {7 + number % 3}" for number in range(20)},
    **{200 + number: f"size > {number} OR city IS NULL" for number in range(5)},
    300: "TRUE",
    301: "city IN ('Wien', 'Zagreb') OR city = 'Berlin' AND at.x = 9",
    302: "size = 0",
}


@pytest.fixture(scope="module")
def frame(spark):
    rows = [(event["number"], event["city"], event["size"], (event["at"]["x"],)) for event in EVENTS]
    return spark.createDataFrame(rows, "number int, city string, size double, at struct<x bigint>").repartition(3)


@pytest.fixture(scope="module")
def expected():
    return pairs_of(EVENTS, SUBSCRIPTIONS, "number")


@pytest.mark.spark
def test_shards_find_what_one_forest_finds(spark, frame, expected):
    compiled = pipeline.compiled(table(spark, SUBSCRIPTIONS), shards=6)
    assert len(compiled.shards.forests) > 3
    assert compiled.shards.unkeyed
    assert {route.path for route in compiled.shards.routes} >= {("city",), ("size",)}
    assert compiled.count == len(SUBSCRIPTIONS)
    assert sum(forest.count for forest in compiled.shards.forests.values()) >= len(SUBSCRIPTIONS)
    assert collected(pipeline.match(frame, compiled, keep=["number"])) == expected


@pytest.mark.spark
def test_lists_and_counts_of_shards_have_every_event_once(spark, frame, expected):
    keyed = {each: text for each, text in SUBSCRIPTIONS.items() if each < 200}  # so that some events go nowhere
    compiled = pipeline.compiled(table(spark, keyed), shards=4)
    wanted = {event["number"]: [] for event in EVENTS}
    for number, each in sorted(expected):
        if each < 200:
            wanted[number].append(each)
    lists = pipeline.match(frame, compiled, keep=["number", "city"], result="lists").collect()
    assert {row.number: row.subscription_ids for row in lists} == wanted
    assert len(lists) == len(EVENTS)
    counts = pipeline.match(frame, compiled, keep=["number"], result="counts").collect()
    assert {row.number: row.matches for row in counts} == {number: len(each) for number, each in wanted.items()}


@pytest.mark.spark
def test_bad_rows_are_rejected_from_shards_too(spark, frame):
    rows = [(1, "city = 'Wien'"), (2, "city ="), (3, "city = 'a'"), (3, "city = 'b'"), (None, "TRUE"), (4, None)]
    frame_of_rows = spark.createDataFrame(rows, "subscription_id int, condition string")
    compiled = pipeline.compiled(frame_of_rows, shards=3, schema=tamis.Schema.from_spark(frame))
    rejected = [(row.subscription_id, row.condition) for row in compiled.rejected.collect()]
    assert rejected == [rows[1], *rows[3:]], "the first row of an id stays"
    assert compiled.count == 2
    with pytest.raises(pipeline.RejectedSubscriptionsError, match="4 of 6"):
        pipeline.compiled(frame_of_rows, shards=3, on_error="raise")


@pytest.mark.spark
def test_a_set_that_is_too_large_for_one_forest_is_cut_by_itself(spark, frame, expected, monkeypatch):
    monkeypatch.setattr("tamis.spark.subscriptions.MOST_IN_ONE", 20)
    monkeypatch.setattr("tamis.spark.subscriptions.COMPILED_BY_DRIVER", 10)
    compiled = pipeline.compiled(table(spark, SUBSCRIPTIONS))
    assert len(compiled.shards.forests) > 1
    assert collected(pipeline.match(frame, compiled, keep=["number"])) == expected


@pytest.mark.spark
def test_shards_serve_a_stream_of_pairs_and_refuse_lists_and_counts_of_one_at_once(spark, frame, expected, tmp_path):
    compiled = pipeline.compiled(table(spark, SUBSCRIPTIONS), shards=4)
    frame.write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "events"))
    for result in ("lists", "counts"):
        with pytest.raises(pipeline.OptionError, match=rf"{result} of a stream.*shards=1.*match_stream"):
            pipeline.match(stream, compiled, result=result)
    pairs = pipeline.match(stream, compiled, keep=["number"])
    writer = pairs.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(str(tmp_path / "pairs")).awaitTermination()
    assert collected(spark.read.parquet(str(tmp_path / "pairs"))) == expected
