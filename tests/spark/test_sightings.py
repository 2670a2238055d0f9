"""What Spark tells of events that no rule could match is what a matcher tells that has seen them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

pipeline = pytest.importorskip("tamis.spark")

from tamis.matching import Matcher  # noqa: E402
from tamis.spark.sightings import Sighted  # noqa: E402

pytestmark = pytest.mark.spark

EVENTS = pa.table(
    {
        "count": [1, None, 3],
        "text": ["a", None, "b"],
        "never": pa.array([None] * 3, pa.float64()),
        "day": [None, None, dt.date(2026, 1, 1)],
        "is": [True, False, None],
        "tags": [["x"], [], None],
        "a.b": pa.array([None] * 3, pa.int64()),
        "seller": pa.array(
            [None, {"id": 1, "name": None}, {"id": None, "name": None}],
            pa.struct([("id", pa.int64()), ("name", pa.string())]),
        ),
    }
)
RULES = [
    "count < 3", "count = 'one'", "text = 'a'", "text > 5", "text LIKE 'a%'", "count LIKE '1%'", "never > 0.5", "never IS NULL", "day > DATE '2026-01-01'",
    "day = 5", "`is`", "text = TRUE", "array_contains(tags, 'x')", "array_contains(text, 'x')", "`a.b` = 1", "a.b = 1", "seller.id = 1", "seller.name = 'x'",
    "seller.none = 1", "lost = 1 OR count = 1", "lost.deep < 3", "seller.id <=> 5", "length(text) > 3", "size(tags) = 1", "count + never > 3",
]  # fmt: skip
"""Rules that no schema has checked: of some no event has the attribute, of others only values of another kind."""


@pytest.mark.parametrize("shards", [1, 3])
def test_spark_tells_of_unmet_rules_what_a_matcher_tells(spark, shards):
    rows = spark.createDataFrame(list(enumerate(RULES)), "subscription_id int, condition string")
    compiled = pipeline.compiled(rows, shards=shards, on_error="raise")
    matcher = Matcher()
    matcher.add_many(dict(enumerate(RULES)))
    matcher.match_batch(EVENTS)
    sighted = Sighted(spark.createDataFrame(EVENTS).repartition(3), compiled)
    pairs = pipeline.match(sighted.events, compiled, keep=["count"])
    assert pairs.count() == matcher.match_batch(EVENTS).num_rows
    assert sighted.unmet() == matcher.unmet()
    told = {str(each) for each in sighted.unmet()}
    assert told >= {
        "no event had the attribute lost", "text is compared with numbers, and events had only texts", "no event had the attribute seller.name"
    }  # fmt: skip


def test_of_no_events_nothing_is_told(spark):
    compiled = pipeline.compiled(spark.createDataFrame([(1, "lost = 1")], "subscription_id int, condition string"))
    sighted = Sighted(spark.createDataFrame(EVENTS).limit(0), compiled)
    assert pipeline.match(sighted.events, compiled, keep=["count"], result="counts").collect() == []
    assert sighted.unmet() == []
