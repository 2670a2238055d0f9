"""The rows that are no subscriptions, as a DataFrame, wherever a table of subscriptions comes in."""

from __future__ import annotations

import pytest

import tamis

pytestmark = pytest.mark.spark
pipeline = pytest.importorskip("tamis.spark")

ROWS = [
    (1, "price < 20"),
    (2, "price <"),
    (2, "price < 30"),
    (1, "price < 40"),
    (None, "price < 3"),
    (3, None),
    (4, "prise < 3"),
    (5, "TOP 2 BY price OVER 1 HOUR"),
    (6, "SEQUENCE price < 3 AS a THEN price > a.price WITHIN 1 HOUR"),
    (7, "TOP 2 BY price OVER"),
]


@pytest.fixture(scope="module")
def table(spark):
    return spark.createDataFrame(ROWS, "subscription_id int, condition string").coalesce(1)


SCHEMA = tamis.Schema({"price": "double"})


def rows_of(frame):
    return [tuple(row) for row in frame.collect()]


def test_they_are_those_that_compiling_rejects(table):
    found = pipeline.rejected(table, schema=SCHEMA)
    compiled = pipeline.compiled(table, schema=SCHEMA)
    assert found.columns == compiled.rejected.columns
    assert [row[:3] for row in rows_of(found)] == [row[:3] for row in rows_of(compiled.rejected)]
    assert [row[0] for row in rows_of(found)] == [2, 1, None, 3, 4, 5, 6, 7]


def test_of_all_kinds_only_what_is_none_is_rejected(table):
    found = pipeline.rejected(table, schema=SCHEMA, kinds="all")
    assert [row[0] for row in rows_of(found)] == [2, 1, None, 3, 4, 7]
    with pytest.raises(pipeline.OptionError, match="kinds must be one of"):
        pipeline.rejected(table, kinds="some")


def test_ranked_subscriptions_that_are_none_are_left_out_if_asked(spark):
    events = spark.sql("SELECT 1 AS event_id, 3.0D AS price, TIMESTAMP '2024-01-01 00:00:00' AS time")
    texts = [("a", "TOP 1 BY price OVER 1 HOUR"), ("b", "TOP"), (None, "TOP 1 BY price OVER 1 HOUR"), ("a", "TOP")]
    ranked = spark.createDataFrame(texts, "subscription_id string, ranked string")
    with pytest.raises(pipeline.RejectedSubscriptionsError, match=r"3 of 4 subscriptions cannot be used.*'b'"):
        pipeline.top_k(events, ranked)
    with pytest.warns(pipeline.RejectedSubscriptionsWarning, match="3 subscriptions cannot be used"):
        told = pipeline.top_k(events, ranked, on_error="reject")
    assert [row.subscription_id for row in told.collect()] == ["a"]
    told_of = pipeline.rejected(ranked, where="ranked", kinds="ranked")
    assert [row.subscription_id for row in told_of.collect()] == ["b", None, "a"]
    with pytest.raises(pipeline.OptionError, match="on_error must be"):
        pipeline.top_k(events, ranked, on_error="skip")


def test_notify_leaves_out_what_is_none_if_asked(spark):
    events = spark.sql("SELECT 1 AS event_id, 3.0D AS price, TIMESTAMP '2024-01-01 00:00:00' AS time")
    texts = [("a", "price < 20"), ("b", "CHANGE"), ("c", "TOP 1 BY price OVER 1 HOUR")]
    rules = spark.createDataFrame(texts, "subscription_id string, condition string")
    with pytest.warns(pipeline.RejectedSubscriptionsWarning, match="1 subscriptions cannot be used"):
        told = pipeline.notify(events, rules, on_error="reject")
    assert {row.subscription_id for row in told.collect()} == {"a", "c"}


def test_a_stream_of_a_log_tells_what_does_not_fit_its_events(spark, tmp_path):
    spark.range(3).selectExpr("id", "CAST(id AS double) AS price").write.parquet(str(tmp_path / "events"))
    log = pipeline.SubscriptionLog(tmp_path / "log")
    log.add({"good": "price < 20", "other": "colour = 'red'"})
    events = spark.readStream.schema("id bigint, price double").parquet(str(tmp_path / "events"))
    stream = pipeline.match_stream(
        events, log, out=tmp_path / "out", checkpoint=tmp_path / "c", trigger={"availableNow": True}
    )
    stream.await_end()
    ((each, text, error, _),) = rows_of(stream.rejected)
    assert (each, text, error) == ("other", "colour = 'red'", "UnknownAttributeError")


def test_rules_that_are_registered_are_returned_with_what_is_rejected(spark):
    own = spark.newSession()
    rules = own.createDataFrame([("a", "n ="), ("b", "n = 1")], "subscription_id string, condition string")
    with pytest.warns(pipeline.RejectedSubscriptionsWarning):
        registered = pipeline.register(own, rules={"rules": rules})
    assert [row.subscription_id for row in registered["rules"].rejected.collect()] == ["a"]
    assert pipeline.register(own).keys() == {"rules"}
