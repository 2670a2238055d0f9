"""Subscriptions of a log have priorities and ends: saved with their versions, and in force in streams."""

import math

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis import spark as pipeline
from tamis.matching.errors import BadTableError
from tamis.spark.subscription_log import SubscriptionLog, Terms
from tamis.spark.versions import Versions


def test_terms_are_kept_with_the_version_and_go_with_the_subscription(tmp_path):
    log = SubscriptionLog(tmp_path)
    log.add({1: "a > 0", 2: "b > 0", 3: "c > 0"}, priorities={2: 5}, untils={3: 60.0})
    log.add({2: "b > 1"})  # says all anew
    log.change(add={4: "d > 0"}, remove=[3], priorities={4: -1})
    again = SubscriptionLog(tmp_path)
    assert again.terms(1) == {2: Terms(5), 3: Terms(0, 60.0)}
    assert again.terms(3) == {4: Terms(-1)}
    assert again.terms(2) == {3: Terms(0, 60.0)}
    assert log.at(3) == {1: "a > 0", 2: "b > 1", 4: "d > 0"}


def test_a_version_without_terms_has_the_columns_it_always_had(tmp_path):
    log = SubscriptionLog(tmp_path)
    log.add({1: "a > 0"})
    assert parquet.read_schema(tmp_path / "000000000001.parquet").names == ["operation", "id", "condition"]
    parquet.write_table(  # of a log that knew of none
        pa.table({"operation": ["add"], "id": [2], "condition": ["b > 0"]}), tmp_path / "000000000002.parquet"
    )
    assert (log.terms(2), log.at(2)) == ({}, {1: "a > 0", 2: "b > 0"})


@pytest.mark.parametrize("until", [math.nan, math.inf, None, True, "60"])
def test_an_end_that_is_no_time_is_refused(tmp_path, until):
    log = SubscriptionLog(tmp_path)
    with pytest.raises(BadTableError, match="the subscription 1"):
        log.add({1: "a > 0"}, untils={1: until})
    with pytest.raises(BadTableError, match="integer of 32 bits"):
        log.add({1: "a > 0"}, priorities={1: 2**31})
    with pytest.raises(BadTableError, match="not among what is added"):
        log.add({1: "a > 0"}, priorities={2: 1})
    assert log.version == 0


def test_what_has_ended_is_removed_by_a_version_and_once(tmp_path):
    log, other = SubscriptionLog(tmp_path), SubscriptionLog(tmp_path)
    log.add({"a": "x > 0", "b": "x > 0", "c": "x > 0"}, untils={"a": 60, "b": 70})
    assert log.advance(math.nextafter(60, 0)) == 1
    assert log.advance(60) == 2
    assert other.advance(60) == 2
    assert log.at(2) == {"b": "x > 0", "c": "x > 0"}
    other.add({"b": "x > 0"}, untils={"b": 90})  # a longer life, by somebody else
    assert log.advance(75) == 3
    assert log.advance(90) == 4
    assert log.at(4) == {"c": "x > 0"}


def test_a_table_brings_priorities_and_another_one_is_a_change(tmp_path):
    log = SubscriptionLog(tmp_path)
    assert log.load([(1, "a > 0", 3), (2, "a > 0", None), (3, "a > 0", 0)]) == []
    assert log.terms(1) == {1: Terms(3)}
    log.load([(1, "a > 0", 3), (2, "a > 0", None), (3, "a > 0", 0)])
    assert log.version == 1
    log.load([(1, "a > 0"), (2, "a > 0", 7), (3, "a > 0")])
    assert (log.version, log.terms(2)) == (2, {2: Terms(7)})


def test_matchers_of_versions_have_the_priorities_whether_built_or_changed(tmp_path, spark):
    log = SubscriptionLog(tmp_path)
    log.add({1: "a > 0", 2: "a > 0", 3: "a > 0"}, priorities={3: 5})
    changing = Versions(log, None, "id", "condition")
    changing.at(1, spark)
    assert changing._succession.matcher.match({"a": 1}) == [3, 1, 2]
    log.change(add={2: "a > 0", 4: "a > 9"}, priorities={2: 9, 4: 1})
    built = Versions(log, None, "id", "condition")
    for versions in (changing, built):
        versions.at(2, spark)
        assert versions._succession.matcher.match({"a": 10}) == [2, 3, 4, 1]


def test_a_stream_gives_lists_in_the_order_of_priority_without_what_has_ended(tmp_path, spark):
    events = tmp_path / "events"
    spark.createDataFrame([(5,)], "a int").write.parquet(str(events))
    log = SubscriptionLog(tmp_path / "rules")
    log.add({1: "a > 0", 2: "a > 0", 3: "a > 0"}, priorities={2: 1}, untils={3: 1.0})  # it ended in 1970
    stream = pipeline.match_stream(
        spark.readStream.schema("a int").parquet(str(events)),
        log,
        out=tmp_path / "out",
        checkpoint=tmp_path / "checkpoint",
        result="lists",
        trigger={"availableNow": True},
    )
    stream.await_end()
    assert [row.subscription_ids for row in pipeline.read_matches(spark, tmp_path / "out").collect()] == [[2, 1]]
    assert log.at(log.version) == {1: "a > 0", 2: "a > 0"}
