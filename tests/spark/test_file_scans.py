"""Tables that workers read themselves: the same answers as when Spark reads them, or Spark reads them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

pytestmark = pytest.mark.spark
pipeline = pytest.importorskip("tamis.spark")

from tamis.spark.file_scans import SETTING, file_scan  # noqa: E402

RULES = {
    "cheap": "price < 20",
    "not cheap": "NOT price < 20",
    "none": "price IS NULL OR title IS NULL",
    "zero": "price = 0",
    "umlaut": "title LIKE 'Ö%' OR title = ''",
    "late": "at >= TIMESTAMP '2001-02-03 04:05:06' AND day < DATE '2010-01-01'",
    "local": "noon = TIMESTAMP '1600-01-01 12:00:00'",
    "rich": "amount > 99999999.99 OR small = -128",
    "sold": "sold",
    "later": "only_later = 7",
}
PRICES = [12.0, None, float("nan"), float("inf"), float("-inf"), -0.0, 19.999]
TITLES = ["The House", "Ölmühle", "", None, "a'b\\c%", "日本", "x" * 300]
UTC = dt.UTC
TIMES = [dt.datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC), None, dt.datetime(1600, 1, 1, tzinfo=UTC)]
NOONS = [dt.datetime(1600, 1, 1, 12), None, dt.datetime(2024, 1, 1, 12)]
DAYS = [dt.date(1582, 10, 4), None, dt.date(2009, 12, 31)]
AMOUNTS = [Decimal("99999999.98"), None, Decimal("99999999.9999"), Decimal("-1.0000")]


def ugly(first, rows, *, later=False):
    numbers = range(first, first + rows)

    def turn(values, kind):
        return pa.array([values[number % len(values)] for number in numbers], kind)

    columns = {
        "number": pa.array(numbers, pa.int64()),
        "price": turn(PRICES, pa.float64()),
        "title": turn(TITLES, pa.string()).dictionary_encode() if later else turn(TITLES, pa.string()),
        "at": turn(TIMES, pa.timestamp("ms" if later else "us", "UTC")),
        "noon": turn(NOONS, pa.timestamp("us")),
        "day": turn(DAYS, pa.date32()),
        "amount": turn(AMOUNTS, pa.decimal128(12, 4)),
        "small": turn([-128, 127, None], pa.int8()),
        "sold": turn([True, None, False], pa.bool_()),
    }
    return pa.table(columns | ({"only_later": pa.array([7] * rows, pa.int32())} if later else {}))


@pytest.fixture
def rules(spark):
    return spark.createDataFrame(list(RULES.items()), "subscription_id string, condition string")


@pytest.fixture
def folder(tmp_path):
    parquet.write_table(ugly(0, 50), tmp_path / "a.parquet", row_group_size=7)
    parquet.write_table(ugly(50, 40, later=True), tmp_path / "b c%20.parquet", row_group_size=40)
    parquet.write_table(ugly(90, 0), tmp_path / "empty.parquet")
    return tmp_path


@pytest.fixture
def by_spark(spark):
    """Call with a function, and Spark reads meanwhile."""

    def call(done):
        spark.conf.set(SETTING, "spark")
        try:
            return done()
        finally:
            spark.conf.unset(SETTING)

    return call


def rows_of(frame):
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize("result", ["pairs", "lists", "counts"])
@pytest.mark.parametrize("keep", [None, ["number"], ["title", "at"]], ids=["all", "one", "two"])
def test_what_workers_read_matches_as_what_spark_reads(spark, folder, rules, by_spark, result, keep):
    events = spark.read.option("mergeSchema", "true").parquet(str(folder))
    assert file_scan(events, events.columns) is not None

    def matches():
        return rows_of(pipeline.match(events, rules, keep=keep, result=result))

    found = matches()
    assert found == by_spark(matches)
    assert len(found) >= 90


def test_each_row_group_is_read_by_one_task(spark, folder):
    scan = file_scan(spark.read.option("mergeSchema", "true").parquet(str(folder)), ["number"])
    parts = [part for task in scan.tasks for part in task]
    assert len(parts) == len(set(parts)) == 8 + 1 + 1  # a file without rows has a group without rows
    assert len(scan.tasks) == spark.sparkContext.defaultParallelism


def test_a_selection_of_columns_and_a_table_by_name_are_read_by_workers(spark, folder):
    events = spark.read.parquet(str(folder / "a.parquet"))
    assert file_scan(events.select("number", "price"), ["price"]) is not None
    assert file_scan(events.alias("e"), ["price"]) is not None


def nested(spark, folder):
    parquet.write_table(pa.table({"number": [1], "price": pa.array([{"x": 1.0}])}), folder / "n.parquet")
    return spark.read.parquet(str(folder / "n.parquet"))


def partitioned(spark, folder):
    (folder / "p" / "shop=1").mkdir(parents=True)
    parquet.write_table(pa.table({"number": [1], "price": [2.0]}), folder / "p" / "shop=1" / "x.parquet")
    return spark.read.parquet(str(folder / "p"))


def as_json(spark, folder):
    (folder / "x.json").write_text('{"number": 1, "price": 2.0}\n')
    return spark.read.json(str(folder / "x.json"))


def narrower(spark, folder):
    parquet.write_table(pa.table({"number": pa.array([1], pa.int32()), "price": [2.0]}), folder / "w.parquet")
    return spark.read.schema("number bigint, price double").parquet(str(folder / "w.parquet"))


def in_other_case(spark, folder):
    parquet.write_table(pa.table({"Number": [1], "PRICE": [2.0]}), folder / "c.parquet")
    return spark.read.schema("number bigint, price double").parquet(str(folder / "c.parquet"))


def of_an_old_calendar(spark, folder):
    table = pa.table({"number": [1], "price": [2.0]}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    parquet.write_table(table, folder / "o.parquet")
    return spark.read.parquet(str(folder / "o.parquet"))


OTHERS = {
    "nested": nested,
    "partitioned": partitioned,
    "json": as_json,
    "of narrower numbers": narrower,
    "in another case": in_other_case,
    "of an old calendar": of_an_old_calendar,
    "filtered": lambda spark, folder: spark.read.parquet(str(folder / "a.parquet")).where("number < 9"),
    "renamed": lambda spark, folder: spark.read.parquet(str(folder / "a.parquet")).withColumnRenamed("day", "price2"),
    "computed": lambda spark, folder: spark.read.parquet(str(folder / "a.parquet")).selectExpr("number", "price * 2 AS price"),
    "united": lambda spark, folder: spark.read.parquet(str(folder / "a.parquet")).union(spark.read.parquet(str(folder / "a.parquet"))),
    "limited": lambda spark, folder: spark.read.parquet(str(folder / "a.parquet")).limit(9),
    "made here": lambda spark, folder: spark.range(9).selectExpr("id AS number", "1.5D AS price"),
}  # fmt: skip


@pytest.mark.parametrize("made", OTHERS.values(), ids=OTHERS)
def test_whatever_else_a_table_is_spark_reads(spark, folder, rules, by_spark, made):
    events = made(spark, folder)
    assert file_scan(events, ["number", "price"]) is None
    some = rules.where("subscription_id IN ('cheap', 'none')" if made is not nested else "subscription_id = 'none'")
    some = some.selectExpr("subscription_id", "replace(condition, ' OR title IS NULL', '') AS condition")
    if made is nested:
        some = some.selectExpr("subscription_id", "'price.x < 20' AS condition")
    found = rows_of(pipeline.match(events, some, keep=["number"]))
    assert found == by_spark(lambda: rows_of(pipeline.match(events, some, keep=["number"])))
    assert found


def test_a_table_that_is_cached_is_not_read_again(spark, folder):
    events = spark.read.parquet(str(folder / "a.parquet")).cache()
    try:
        assert file_scan(events, ["price"]) is None
    finally:
        events.unpersist()
    assert file_scan(events, ["price"]) is not None


def test_settings_that_change_what_spark_reads_leave_it_to_spark(spark, folder):
    events = spark.read.parquet(str(folder / "a.parquet"))
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        assert file_scan(events, ["price"]) is None
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    assert (
        file_scan(spark.read.option("ignoreCorruptFiles", "true").parquet(str(folder / "a.parquet")), ["price"]) is None
    )


def test_an_unknown_reader_is_refused(spark, folder):
    spark.conf.set(SETTING, "java")
    try:
        with pytest.raises(
            pipeline.OptionError, match=r"spark.tamis.parquet must be one of 'workers', 'spark', not 'java'"
        ):
            file_scan(spark.read.parquet(str(folder / "a.parquet")), ["price"])
    finally:
        spark.conf.unset(SETTING)


def test_a_file_that_went_away_meanwhile_is_named(spark, folder, rules):
    matches = pipeline.match(spark.read.parquet(str(folder / "a.parquet")), rules.where("subscription_id = 'cheap'"))
    (folder / "a.parquet").unlink()
    with pytest.raises(Exception, match=r"ParquetError.*a\.parquet cannot be read any more"):
        matches.collect()
