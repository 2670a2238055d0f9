from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.matching import Matcher
from tamis.workloads import WORKLOADS
from tests.spark.plain import collected, pairs_of

pytestmark = pytest.mark.spark
pipeline = pytest.importorskip("tamis.spark")


def table(spark, subscriptions):
    kind = "bigint" if all(isinstance(each, int) for each in subscriptions) else "string"
    return spark.createDataFrame(list(subscriptions.items()), f"subscription_id {kind}, condition string")


@pytest.fixture(scope="module", params=["auction", "expressions", "flights"])
def workload(request):
    """Events and subscriptions, as Arrow tables; an event has a number."""
    made = WORKLOADS[request.param]()
    events = made.events(2_000, seed=3)
    return events.append_column("number", pa.array(range(events.num_rows))), made.subscriptions(120, seed=4)


@pytest.mark.parametrize("few", [0, 1_000], ids=["compiled in parallel", "compiled by the driver"])
def test_the_pairs_are_those_of_the_local_matcher(spark, workload, few, monkeypatch):
    monkeypatch.setattr("tamis.spark.subscriptions.COMPILED_BY_DRIVER", few)
    events, subscriptions = workload
    local = Matcher()
    local.add_many(subscriptions)
    expected = local.match_batch(events)
    frame = spark.createDataFrame(events).repartition(3)
    found = pipeline.match(frame, spark.createDataFrame(subscriptions), keep=["number"])
    assert found.columns == ["number", "subscription_id"]
    assert collected(found) == set(zip(*(column.to_pylist() for column in expected.columns), strict=True))
    assert expected.num_rows > 50


def test_the_pairs_are_those_of_spark_sql(spark, workload):
    from pyspark.sql import functions

    events, subscriptions = workload
    frame = spark.createDataFrame(events.slice(0, 500))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    texts = subscriptions["condition"].to_pylist()
    truths = functions.array(*(functions.expr(text) for text in texts)).alias("truths")
    expected = {
        (row.number, number)
        for row in frame.select("number", truths).collect()
        for number, truth in enumerate(row.truths)
        if truth
    }
    found = pipeline.match(frame, spark.createDataFrame(subscriptions), keep=["number"])
    assert collected(found) == expected
    assert expected


EVENTS = [
    {"number": 1, "price": 12.0, "title": "The House"},
    {"number": 2, "price": None, "title": "Ölmühle"},
    {"number": 3, "price": float("nan"), "title": ""},
    {"number": 4, "price": float("inf"), "title": None},
    {"number": 5, "price": -0.0, "title": "a'b\\c%"},
]
SUBSCRIPTIONS = {
    "cheap": "price < 20",
    "not cheap": "NOT price < 20",
    "none": "price IS NULL OR title IS NULL",
    "zero": "price = 0",
    "umlaut": "title LIKE 'Ö%'",
    "all": "TRUE",
    "never": "FALSE",
}


@pytest.fixture
def frames(spark):
    return spark.createDataFrame(EVENTS, "number int, price double, title string"), table(spark, SUBSCRIPTIONS)


def test_ugly_values_match_as_the_definition_says(frames):
    events, subscriptions = frames
    found = collected(pipeline.match(events, subscriptions, keep=["number"]))
    assert found == pairs_of(EVENTS, SUBSCRIPTIONS, "number")


def test_without_keep_all_columns_of_the_event_come_out(frames):
    events, subscriptions = frames
    found = pipeline.match(events, subscriptions)
    assert found.columns == ["number", "price", "title", "subscription_id"]
    assert {(row.number, row.title) for row in found.collect() if row.subscription_id == "all"} == {
        (event["number"], event["title"]) for event in EVENTS
    }


def test_nothing_kept_leaves_the_ids(frames):
    events, subscriptions = frames
    found = pipeline.match(events, subscriptions, keep=[])
    assert found.columns == ["subscription_id"]
    assert sorted(row.subscription_id for row in found.collect()).count("all") == len(EVENTS)


@pytest.mark.parametrize("few", [0, 1_000], ids=["compiled in parallel", "compiled by the driver"])
def test_lists_have_a_row_for_every_event_and_the_highest_priority_first(spark, few, monkeypatch):
    monkeypatch.setattr("tamis.spark.subscriptions.COMPILED_BY_DRIVER", few)
    events = spark.createDataFrame([(1, 5), (2, 50)], "number int, price int")
    rows = [(3, "price < 10", 0), (1, "price < 20", 0), (2, "price < 20", 7)]
    subscriptions = spark.createDataFrame(rows, "subscription_id int, condition string, urgency int")
    found = pipeline.match(events, subscriptions, keep=["number"], priority="urgency", result="lists")
    assert sorted(map(tuple, found.collect())) == [(1, [2, 1, 3]), (2, [])]
    assert found.schema["subscription_ids"].dataType.simpleString() == "array<int>"


def test_counts_have_a_row_for_every_event(frames):
    events, subscriptions = frames
    expected = dict.fromkeys((event["number"] for event in EVENTS), 0)
    for number, _ in pairs_of(EVENTS, SUBSCRIPTIONS, "number"):
        expected[number] += 1
    found = pipeline.match(events, subscriptions, keep=["number"], result="counts")
    assert dict(map(tuple, found.collect())) == expected


def test_it_is_a_step_for_transform(frames):
    events, subscriptions = frames
    found = events.transform(pipeline.matching(subscriptions, keep=["number"])).where("subscription_id = 'zero'")
    assert collected(found) == {(5, "zero")}


def test_no_event_is_read_before_somebody_asks(spark, frames):
    from pyspark.sql import functions

    _, subscriptions = frames
    events = spark.range(3).select(functions.raise_error(functions.lit("read")).cast("double").alias("price"))
    matches = pipeline.match(events, subscriptions.where("subscription_id = 'cheap'"))
    assert matches.columns == ["price", "subscription_id"]
    with pytest.raises(Exception, match="read"):
        matches.collect()


def test_only_mentioned_columns_enter(spark):
    from pyspark.sql import functions

    broken = functions.raise_error(functions.lit("read")).cast("int")
    events = spark.range(3).select(
        "id",
        broken.alias("unmentioned"),
        functions.struct(functions.col("id").alias("x"), broken.alias("y")).alias("at"),
    )
    found = pipeline.match(events, table(spark, {1: "at.x > 0"}), keep=["id"])
    assert collected(found) == {(1, 1), (2, 1)}


# -- Rejected rows


@pytest.mark.parametrize("few", [0, 1_000], ids=["compiled in parallel", "compiled by the driver"])
def test_bad_rows_are_rejected_with_the_parsers_message_and_the_others_match(spark, frames, few, monkeypatch):
    monkeypatch.setattr("tamis.spark.subscriptions.COMPILED_BY_DRIVER", few)
    events, _ = frames
    rows = [
        ("good", "price < 20"),
        ("broken", "price <"),
        ("unknown", "prize < 20"),
        ("mismatch", "title < 3"),
        ("null", None),
        (None, "price < 20"),
        ("twice", "price <"),
        ("twice", "price < 20"),
        ("twice", "price < 30"),
    ]
    subscriptions = spark.createDataFrame(rows, "subscription_id string, condition string")
    compiled = pipeline.compiled(subscriptions, schema=tamis.Schema.from_spark(events))
    rejected = {(row.subscription_id, row.condition): row for row in compiled.rejected.collect()}
    assert list(rejected) == [*rows[1:7], rows[8]], "in the order of the table"
    assert rejected["twice", "price < 30"].error == "DuplicateIdError"
    assert "line 1, column 8" in rejected["broken", "price <"].message
    assert rejected["broken", "price <"].error == "ExpressionSyntaxError"
    assert "Did you mean price?" in rejected["unknown", "prize < 20"].message
    assert compiled.rejected.columns == ["subscription_id", "condition", "error", "message"]
    assert compiled.count == 2
    found = collected(pipeline.match(events, compiled, keep=["number"]))
    assert {number for number, each in found if each == "twice"} == {number for number, each in found if each == "good"}
    assert {each for _, each in found} == {"good", "twice"}


def test_what_is_rejected_is_told(spark, frames):
    events, _ = frames
    with pytest.warns(pipeline.RejectedSubscriptionsWarning, match="1 subscriptions cannot be used"):
        found = pipeline.match(events, table(spark, {1: "price <", 2: "price < 20"}), keep=["number"])
    assert {each for _, each in collected(found)} == {2}


def test_what_is_rejected_raises_when_asked(spark, frames):
    events, _ = frames
    with pytest.raises(pipeline.RejectedSubscriptionsError, match="1 of 2 subscriptions"):
        pipeline.match(events, table(spark, {1: "price <", 2: "price < 20"}), on_error="raise")


def test_no_subscriptions_match_nothing(spark, frames):
    events, subscriptions = frames
    assert not pipeline.match(events, subscriptions.limit(0), keep=["number"]).collect()
    counts = pipeline.match(events, table(spark, {}).selectExpr("1 AS subscription_id", "condition"), result="counts")
    assert {row.matches for row in counts.collect()} == {0}


def test_nothing_kept_of_many_events_leaves_counts_and_lists(spark):
    events = spark.range(5_000).coalesce(1)
    subscriptions = table(spark, {1: "id < 10", 2: "id < 20"})
    counts = [row.matches for row in pipeline.match(events, subscriptions, keep=[], result="counts").collect()]
    assert sorted(counts) == [0] * 4_980 + [1] * 10 + [2] * 10
    lists = [row.subscription_ids for row in pipeline.match(events, subscriptions, keep=[], result="lists").collect()]
    assert sorted(map(len, lists)) == sorted(counts)


# -- Mistakes


def test_mistakes_name_the_column(spark, frames):
    events, subscriptions = frames
    with pytest.raises(pipeline.ColumnError, match="no column 'rule'"):
        pipeline.match(events, subscriptions, where="rule")
    with pytest.raises(pipeline.ColumnError, match=r"no column 'prize'.*Did you mean price"):
        pipeline.match(events, subscriptions, keep=["prize"])
    with pytest.raises(pipeline.ColumnError, match="column 'subscription_id' already"):
        pipeline.match(events.withColumnRenamed("number", "subscription_id"), subscriptions)
    with pytest.raises(pipeline.ColumnError, match="ids must be integers or strings"):
        pipeline.match(events, subscriptions.selectExpr("1.5D AS subscription_id", "condition"))
    with pytest.raises(pipeline.OptionError, match="'pairs', 'lists', 'counts'"):
        pipeline.match(events, subscriptions, result="sets")


# -- Shapes of tables


def test_a_table_of_500_columns(spark):
    from pyspark.sql import functions

    events = spark.range(300).select(
        "id", *((functions.col("id") % number).alias(f"c{number}") for number in range(1, 501))
    )
    subscriptions = {number: f"c{number} = 3 AND c{501 - number} < 5" for number in range(1, 501, 7)}
    rows = [{"id": each} | {f"c{number}": each % number for number in range(1, 501)} for each in range(300)]
    found = pipeline.match(events, table(spark, subscriptions), keep=["id"])
    assert collected(found) == pairs_of(rows, subscriptions, "id")


def test_nested_columns_dotted_names_and_arrays(spark):
    events = [
        {"number": 1, "at": {"place": {"x": 1.5}, "tags": ["a"]}, "a.b": 7},
        {"number": 2, "at": {"place": None, "tags": []}, "a.b": None},
        {"number": 3, "at": None, "a.b": 8},
    ]
    frame = spark.createDataFrame(
        [(1, ((1.5,), ["a"]), 7), (2, (None, []), None), (3, None, 8)],
        "number int, at struct<place struct<x double>, tags array<string>>, `a.b` int",
    )
    subscriptions = {
        "deep": "at.place.x > 1",
        "missing": "at.place.x IS NULL",
        "tags": "array_contains(at.tags, 'a')",
        "quoted": "`a.b` >= 7",
    }
    assert collected(pipeline.match(frame, table(spark, subscriptions), keep=["number"])) == pairs_of(
        events, subscriptions, "number"
    )


def test_columns_of_dictionaries_decimals_dates_and_every_integer(spark):
    money = pa.array([Decimal("1.10"), None, Decimal("12345678901234567890.12")], pa.decimal128(38, 2))
    events = pa.table(
        {
            "number": [0, 1, 2],
            "colour": pa.array(["red", None, "blue"]).dictionary_encode(),
            "money": money,
            "cents": pa.array([Decimal("0.10"), Decimal("0.20"), None], pa.decimal128(9, 2)),
            "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]),
            "tiny": pa.array([1, None, -128], pa.int8()),
            "real": pa.array([0.1, None, 1e30], pa.float32()),
            "flag": pa.array([True, None, False]),
        }
    )
    subscriptions = {
        1: "colour IN ('red', 'green')",
        2: "money = 1.10 OR money > 12345678901234567890.11",
        3: "cents BETWEEN 0.10 AND 0.15",
        4: "day < DATE '2024-03-01'",
        5: "tiny <= -128",
        6: "real > 1e29",
        7: "NOT flag",
        8: "cents + tiny > 1",
    }
    frame = spark.createDataFrame(events)
    found = collected(pipeline.match(frame, table(spark, subscriptions), keep=["number"]))
    local = Matcher()
    local.add_many(subscriptions)
    pairs = local.match_batch(events)
    assert found == set(zip(*(column.to_pylist() for column in pairs.columns), strict=True))
    assert {each for _, each in found} == set(subscriptions)


def test_a_condition_means_the_same_whatever_the_sessions_time_zone(spark):
    subscriptions = {
        "noon": "ends = TIMESTAMP '2024-07-01 12:00:00'",
        "noon in Zagreb": "ends = TIMESTAMP '2024-07-01 12:00:00+02:00'",
        "wall clock": "wall = TIMESTAMP '2024-07-01 12:00:00'",
    }
    found = {}
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for name in ("UTC", "America/New_York", "Asia/Kolkata"):
            spark.conf.set("spark.sql.session.timeZone", name)
            events = spark.sql(
                "SELECT 1 AS number, TIMESTAMP '2024-07-01 12:00:00Z' AS ends, TIMESTAMP_NTZ '2024-07-01 12:00:00' AS wall"
                " UNION ALL SELECT 2, TIMESTAMP '2024-07-01 10:00:00Z', TIMESTAMP_NTZ '2024-07-01 10:00:00'"
            )
            found[name] = collected(pipeline.match(events, table(spark, subscriptions), keep=["number"]))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert set(map(frozenset, found.values())) == {frozenset({(1, "noon"), (2, "noon in Zagreb"), (1, "wall clock")})}


def test_tiny_and_empty_batches(spark):
    events = spark.range(20).repartition(16)
    found = pipeline.match(events, table(spark, {1: "id % 2 = 0"}))
    assert collected(found) == {(number, 1) for number in range(0, 20, 2)}


def test_a_skewed_key_and_an_event_that_matches_everything(spark):
    events = spark.range(3_000).selectExpr("id", "IF(id < 2990, 'hot', concat('k', id)) AS key")
    subscriptions = {number: "key = 'hot'" if number < 700 else f"key = 'k{2000 + number}'" for number in range(1000)}
    found = pipeline.match(events, table(spark, subscriptions), keep=["id"], result="counts")
    counts = dict(map(tuple, found.collect()))
    assert all(counts[number] == 700 for number in range(2990))
    assert all(counts[number] == 1 for number in range(2990, 3000))
    pairs = pipeline.match(events, table(spark, subscriptions), keep=["id"])
    assert pairs.count() == 2990 * 700 + 10


def test_integer_ids_keep_their_type(spark):
    events = spark.range(1)
    for kind in ("tinyint", "smallint", "int", "bigint"):
        subscriptions = spark.createDataFrame([(7, "id = 0")], f"subscription_id {kind}, condition string")
        found = pipeline.match(events, subscriptions)
        assert found.schema["subscription_id"].dataType.simpleString() == kind
        assert found.head().subscription_id == 7


def test_compiled_subscriptions_serve_many_tables(spark):
    compiled = pipeline.compiled(table(spark, {1: "id < 2", 2: "other = 'x'"}))
    assert compiled.attributes == (("id",), ("other",))
    assert collected(pipeline.match(spark.range(3), compiled)) == {(0, 1), (1, 1)}
    assert collected(pipeline.match(spark.sql("SELECT 'x' AS other"), compiled)) == {("x", 2)}


def test_workers_map_one_informed_forest_of_the_host(spark, workload):
    events, subscriptions = workload
    compiled = pipeline.compiled(spark.createDataFrame(subscriptions))
    counts = pipeline.match(spark.createDataFrame(events).repartition(2), compiled, keep=["number"], result="counts")
    before = np.sort([row.matches for row in counts.collect()])
    local = Matcher.load(f"{compiled.forest.path}.informed")
    assert local.statistics()["is_informed"]
    assert (np.sort(local.count_batch(events).to_numpy()) == before).all()


@pytest.mark.parametrize("sql", ["make_interval(1)", "array()", "map()", "struct(make_interval(1) AS inner)"])
def test_a_column_of_a_type_that_workers_do_not_take_is_refused_when_it_is_to_be_kept(spark, sql):
    compiled = pipeline.compiled(table(spark, {1: "id < 2"}))
    events = spark.range(3).selectExpr("id", f"{sql} AS odd")
    with pytest.raises(pipeline.ColumnError, match=r"'odd' cannot be kept: workers do not take .*keep=\["):
        pipeline.match(events, compiled)
    assert collected(pipeline.match(events, compiled, keep=["id"])) == {(0, 1), (1, 1)}


def test_a_column_that_differs_from_that_of_the_result_only_in_case_is_refused(spark):
    compiled = pipeline.compiled(table(spark, {1: "id < 2"}))
    with pytest.raises(pipeline.ColumnError, match="'subscription_id' already"):
        pipeline.match(spark.range(3).selectExpr("id", "1 AS Subscription_ID"), compiled)


def test_times_are_kept(spark):
    compiled = pipeline.compiled(table(spark, {1: "id < 2"}))
    events = spark.range(1).selectExpr("id", "TIMESTAMP'2026-01-01 00:00:00' AS at", "array(DATE'2026-01-01') AS days")
    assert [row.asDict() for row in pipeline.match(events, compiled).drop("subscription_id").collect()] == [
        row.asDict() for row in events.collect()
    ]
