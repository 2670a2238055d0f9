"""Rules that live in a table that changes: a log that follows it, and history by the rules of its day."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis

pytestmark = pytest.mark.spark
pipeline = pytest.importorskip("tamis.spark")
UTC = dt.UTC

SNAPSHOTS = [
    [(1, "price < 20", 0), (2, "price <", 0), (3, "bids > 3", 5)],
    [(1, "price < 20", 0), (2, "price < 5", 0), (3, "bids > 3", 0), (4, "TRUE", 0), (4, "FALSE", 0)],
    [(1, "price < 15", 0), (2, "price <", 0), (None, "TRUE", 0), (4, None, 0), (4, "FALSE", 0), (5, "bids IS NULL", 1)],
    [],
    [(1, "price < 15", 2)],
]
"""Tables as they stood one after the other: ids and conditions that are none, repeated, changed, gone and back."""


def table(spark, rows):
    return spark.createDataFrame(rows, "subscription_id int, condition string, rank int").coalesce(1)


def state(log):
    return log.at(log.version), {each: terms.priority for each, terms in log.terms(log.version).items()}


def test_a_log_that_follows_snapshots_is_what_loading_each_of_them_makes(spark, tmp_path):
    followed, loaded = (pipeline.SubscriptionLog(tmp_path / name) for name in ("followed", "loaded"))
    for number, rows in enumerate(SNAPSHOTS):
        taken = pipeline.follow(followed, table(spark, rows), version=number, priority="rank")
        bad = loaded.load(rows)
        assert state(followed) == state(loaded), number
        assert taken.version == followed.version
        assert taken.rejected_count == len(bad)
        assert {row.error for row in taken.rejected.collect()} == {row.error for row in bad}


def test_only_what_is_different_is_read_and_written(spark, tmp_path, monkeypatch):
    read = []
    from tamis.spark import following

    whole = following.admitted

    def noting(rows, schema):
        read.extend(row.id for row in rows)
        return whole(rows, schema)

    monkeypatch.setattr(following, "admitted", noting)
    log = pipeline.SubscriptionLog(tmp_path / "log")
    first = pipeline.follow(
        log, spark.range(2_000).selectExpr("id AS subscription_id", "'price < ' || id AS condition")
    )
    assert (first.version, first.added, first.changed, first.removed) == (1, 2_000, 0, 0)
    read.clear()
    later = spark.range(1, 2_001).selectExpr("id AS subscription_id", "'price < ' || if(id = 7, 8, id) AS condition")
    second = pipeline.follow(log, later)
    assert (second.version, second.added, second.changed, second.removed) == (2, 1, 1, 1)
    assert sorted(read) == [7, 2_000]
    assert log.changes(2) == {0: None, 7: "price < 8", 2_000: "price < 2000"}
    assert pipeline.follow(log, later).version == 2


def test_a_version_of_a_table_is_taken_once(spark, tmp_path):
    log = pipeline.SubscriptionLog(tmp_path / "log")
    pipeline.follow(log, table(spark, [(1, "price < 3", 0)]), version="a")
    pipeline.follow(log, table(spark, [(1, "price < 4", 0)]), version="b")
    again = pipeline.follow(log, table(spark, [(1, "price < 3", 0)]), version="a")
    assert (again.version, again.added, log.at(log.version)) == (1, 0, {1: "price < 4"})


def test_what_cannot_be_followed_is_said(spark, tmp_path):
    log = pipeline.SubscriptionLog(tmp_path / "log")
    log.add({"one": "price < 3"})
    with pytest.raises(pipeline.ColumnError, match="are texts; cast those of the table"):
        pipeline.follow(log, table(spark, [(1, "price < 3", 0)]))
    with pytest.raises(pipeline.ColumnError, match="no column 'rule'"):
        pipeline.follow(log, table(spark, []), id="rule")
    with pytest.raises(pipeline.OptionError, match="format must be one of 'delta', 'iceberg', not 'hudi'"):
        pipeline.catch_up(log, "rules", spark, format="hudi")


class Versioned:
    """Answers what `catch_up` asks of a table of Delta; `test_table_formats` asks a real one."""

    def __init__(self, spark, snapshots):
        self.spark, self.snapshots = spark, snapshots

    def sql(self, query):
        if query == "DESCRIBE HISTORY rules":
            rows = [(number, minute(number)) for number in reversed(range(len(self.snapshots)))]
            return self.spark.createDataFrame(rows, "version bigint, timestamp timestamp")
        assert query.startswith("SELECT * FROM rules VERSION AS OF ")
        return table(self.spark, self.snapshots[int(query.rpartition(" ")[2])])


def test_versions_are_taken_in_their_order_and_none_before_the_last_one_again(spark, tmp_path):
    log = pipeline.SubscriptionLog(tmp_path / "log")
    snapshots = [[], [(1, "price < 20", 0)], [(1, "price < 20", 0)], [(1, "price < 5", 0)]]
    for count, taken in ((1, 1), (3, 3), (3, 0), (4, 1)):
        assert len(pipeline.catch_up(log, "rules", Versioned(spark, snapshots[:count]))) == taken
        assert log.at(log.version) == {each: text for each, text, _ in snapshots[count - 1]}
    assert [log.since(version) for version in (1, 2, 3)] == [minute(number).timestamp() for number in (1, 2, 3)]


# -- History


def minute(number):
    return dt.datetime(2024, 1, 1, 0, 0, tzinfo=UTC) + dt.timedelta(minutes=number)


@pytest.fixture
def log(tmp_path):
    log = pipeline.SubscriptionLog(tmp_path / "log")
    log.change(
        add={"cheap": "price < 20", "sale": "price < 5"},
        untils={"sale": minute(12).timestamp()},
        since=minute(3).timestamp(),
    )
    log.change(add={"cheap": "price < 10", "odd": "price % 2 = 1"}, since=minute(10).timestamp())
    log.change(remove=["cheap"], since=minute(20).timestamp())
    return log


def rules_at(number):
    """What is in force in a minute, by the definition."""
    rules = {}
    if number >= 3:
        rules = {"cheap": "price < 20", "sale": "price < 5"}
    if number >= 10:
        rules |= {"cheap": "price < 10", "odd": "price % 2 = 1"}
    if number >= 12:
        rules.pop("sale")
    if number >= 20:
        rules.pop("cheap")
    return rules


def history(spark, count=30, kind="timestamp"):
    return spark.range(count).selectExpr(
        "id AS number", "CAST(id * 7 % 25 AS double) AS price",
        f"CAST(TIMESTAMP_SECONDS(unix_seconds(TIMESTAMP '2024-01-01 00:00:00Z') + id * 60) AS {kind}) AS time",
    )  # fmt: skip


def expected(count=30):
    return {
        (number, each)
        for number in range(count)
        for each, text in rules_at(number).items()
        if tamis.holds(text, {"price": float(number * 7 % 25)})
    }


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_history_is_matched_by_the_rules_of_its_day(spark, log, kind):
    events = history(spark, kind=kind).repartition(2)
    pairs = pipeline.match_history(events, log, keep="number")
    assert pairs.columns == ["number", "subscription_id"]
    rows = [tuple(row) for row in pairs.collect()]
    assert len(rows) == len(set(rows))
    assert set(rows) == expected()
    counts = pipeline.match_history(events, log, keep="number", result="counts").collect()
    assert {row.number: row.matches for row in counts} == {
        number: sum(1 for pair in expected() if pair[0] == number) for number in range(30)
    }


def test_events_without_a_time_or_before_the_rules_match_nothing(spark, log):
    events = spark.sql("SELECT 1 AS number, 1.0D AS price, CAST(NULL AS timestamp) AS time")
    assert pipeline.match_history(events, log).collect() == []
    (row,) = pipeline.match_history(events, log, result="lists", keep="number").collect()
    assert row.subscription_ids == []
    assert pipeline.match_history(history(spark, 3), log).count() == 0


def test_a_log_that_does_not_say_when_is_refused(spark, tmp_path):
    log = pipeline.SubscriptionLog(tmp_path / "other")
    log.add({"cheap": "price < 20"})
    with pytest.raises(pipeline.OptionError, match=r"version 1 of .* does not say since when"):
        pipeline.match_history(history(spark), log)
    log = pipeline.SubscriptionLog(tmp_path / "backwards")
    log.change(add={"cheap": "price < 20"}, since=90.0)
    with pytest.raises(pipeline.OptionError, match=r"in force since 90.0, later than 60.0"):
        log.change(remove=["cheap"], since=60.0)


def test_a_table_that_is_followed_has_a_history(spark, tmp_path):
    log = pipeline.SubscriptionLog(tmp_path / "log")
    pipeline.follow(log, table(spark, [(1, "price < 20", 0)]), since=minute(0))
    pipeline.follow(log, table(spark, [(1, "price < 1", 0)]), since=minute(15))
    pairs = pipeline.match_history(history(spark), log, keep="number").collect()
    assert {row.number for row in pairs} == {n for n in range(30) if n * 7 % 25 < (20 if n < 15 else 1)}


ROWS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3, None]),
        st.sampled_from(["price < 1", "price < 2", "price <", None]),
        st.sampled_from([0, 1]),
    ),
    max_size=5,
    unique=True,
)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(ROWS, min_size=1, max_size=4))
def test_any_tables_are_followed_as_they_are_loaded(spark, tmp_path_factory, snapshots):
    folder = tmp_path_factory.mktemp("logs")
    followed, loaded = (pipeline.SubscriptionLog(folder / name) for name in ("followed", "loaded"))
    for rows in snapshots:
        pipeline.follow(followed, table(spark, rows), priority="rank")
        loaded.load(rows)
        assert state(followed) == state(loaded)
