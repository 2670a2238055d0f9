from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import tamis
from tamis.selectivity import Statistics
from tamis.selectivity.files import load, save
from tamis.selectivity.likely_events import likely_events
from tamis.workloads import WORKLOADS

pytestmark = pytest.mark.spark
pipeline = pytest.importorskip("tamis.spark")

EVENTS = [
    {"price": Decimal("1.50"), "title": "a", "at": {"x": 1}, "tags": ["a"], "day": dt.date(2024, 1, 1), "new": True},
    {"price": None, "title": "ä'", "at": None, "tags": ["a"], "day": None, "new": False},
    {"price": Decimal("1.50"), "title": "", "at": {"x": None}, "tags": None, "day": dt.date(2024, 1, 1), "new": True},
]
KINDS = "price decimal(10,2), title string, at struct<x int>, tags array<string>, day date, new boolean"


def told(statistics):
    return {
        name: (about.absent, dict(about.frequent), about.distinct, sum(about.counts))
        for name, about in statistics.attributes.items()
    }


def test_the_statistics_of_a_table_are_those_of_its_events(spark):
    frame = spark.createDataFrame([tuple(event.values()) for event in EVENTS], KINDS).repartition(2)
    found = pipeline.statistics(frame)
    assert found.event_count == 3
    assert told(found) == told(Statistics.of(EVENTS))


def test_saved_as_parquet_and_loaded_they_say_the_same(spark, tmp_path):
    made = WORKLOADS["flights"]()
    events = made.events(3_000, seed=1)
    found = pipeline.statistics(spark.createDataFrame(events).repartition(3), frequent_count=20, bucket_count=10)
    save(found, tmp_path / "flights.parquet")
    again = load(tmp_path / "flights.parquet")
    assert told(again) == told(found)
    local = Statistics.of(events.to_pylist(), frequent_count=20, bucket_count=10)
    for text in ("dep_delay > 30", "carrier = 'UA'", "dest IN ('SEA', 'LAX')", "tailnum IS NULL", "distance < 500"):
        predicate = tamis.parse(text)
        assert again.share(predicate) == pytest.approx(local.share(predicate), abs=0.01)


def test_no_events_have_no_attributes(spark, tmp_path):
    found = pipeline.statistics(spark.createDataFrame([], KINDS))
    save(found, tmp_path / "none.parquet")
    assert load(tmp_path / "none.parquet").event_count == 0


def test_subscriptions_are_laid_out_by_statistics_before_the_first_event(spark):
    made = WORKLOADS["auction"]()
    events = made.events(3_000, seed=1)
    statistics = Statistics.of(events.to_pylist())
    subscriptions = spark.createDataFrame(made.subscriptions(300, seed=1))
    plain, informed = pipeline.compiled(subscriptions), pipeline.compiled(subscriptions, statistics=statistics)
    assert informed.forest.matcher().statistics()["is_informed"]
    frame = spark.createDataFrame(events)
    counts = [
        pipeline.match(frame, each, keep=[], result="counts").groupBy().sum().head()[0] for each in (plain, informed)
    ]
    assert counts[0] == counts[1] > 0


def test_events_that_are_made_up_fit_the_statistics():
    events = [{"price": number % 100, "kind": "a" if number % 10 else "b"} for number in range(1_000)]
    statistics = Statistics.of(events, frequent_count=5, bucket_count=10)
    again = Statistics.of(likely_events(statistics, 4_000))
    for text in ("price < 20", "price BETWEEN 30 AND 60", "kind = 'b'"):
        predicate = tamis.parse(text)
        assert again.share(predicate) == pytest.approx(statistics.share(predicate), abs=0.05)
