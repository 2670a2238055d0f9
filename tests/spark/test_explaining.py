"""Why rules match some rows, and how often each of them matches."""

from __future__ import annotations

import pytest

import tamis
from tests.spark.test_sql import COLUMNS, EVENTS, EXPECTED, RULES

pytestmark = pytest.mark.spark
pipeline = pytest.importorskip("tamis.spark")


@pytest.fixture(scope="module")
def events(spark):
    return spark.createDataFrame(EVENTS, COLUMNS).repartition(2)


@pytest.fixture(scope="module")
def rules(spark):
    return spark.createDataFrame(list(RULES.items()), "subscription_id string, condition string")


# -- Explanations


def test_an_explanation_is_true_where_the_rule_matches_and_for_every_pair_there_is_one(events, rules):
    rows = pipeline.explain(events, rules, keep="number").collect()
    assert {(row.number, row.subscription_id) for row in rows if row.truth} == EXPECTED
    assert len(rows) == len(EVENTS) * len(RULES)
    assert {row.truth for row in rows} == {True, False, None}


def test_an_explanation_is_that_of_the_language(events, rules):
    (row,) = pipeline.explain(events.where("number = 2"), rules, of="none", keep=["number", "title"]).collect()
    said = tamis.explain(RULES["none"], {"price": None, "title": "Ölmühle"})
    assert tuple(row) == (2, "Ölmühle", "none", said.truth, str(said))
    assert "price is NULL" in row.why


def test_an_attribute_that_the_events_do_not_have_is_absent(spark, events):
    rules = spark.createDataFrame([(7, "price < 20 AND colour = 'red'")], "rule int, text string")
    compiled = pipeline.compiled(rules, id="rule", where="text")
    (row,) = pipeline.explain(events.where("number = 1"), compiled, of=[7], keep="number").collect()
    assert (row.rule, row.truth) == (7, None)
    assert "colour is absent" in row.why


def test_all_columns_are_kept_if_nobody_says_which(events, rules):
    frame = pipeline.explain(events, rules, of=["zero"])
    assert frame.columns == [*events.columns, "subscription_id", "truth", "why"]
    (row,) = frame.where("number = 5").collect()
    (event,) = events.where("number = 5").collect()
    assert tuple(row)[:-3] == tuple(event)


def test_rules_in_shards_are_explained_each_once(events, rules):
    compiled = pipeline.compiled(rules, shards=3)
    rows = pipeline.explain(events, compiled, keep="number").collect()
    assert {(row.number, row.subscription_id) for row in rows if row.truth} == EXPECTED
    assert len(rows) == len(EVENTS) * len(RULES)


def test_files_that_workers_read_are_explained(spark, events, rules, tmp_path):
    events.select("number", "price").write.parquet(str(tmp_path / "events"))
    files = spark.read.parquet(str(tmp_path / "events"))
    rows = pipeline.explain(files, rules, of="cheap", keep="number").collect()
    assert {row.number: row.truth for row in rows} == {1: True, 2: None, 3: False, 4: False, 5: True}


def test_rules_that_mention_nothing_are_explained_without_columns(spark, events):
    rules = spark.createDataFrame([(1, "TRUE")], "subscription_id int, condition string")
    rows = pipeline.explain(events, rules, keep=[]).collect()
    assert [tuple(row)[:2] for row in rows] == [(1, True)] * len(EVENTS)


def test_what_cannot_be_explained_is_said(spark, events, rules):
    with pytest.raises(pipeline.OptionError, match=r"no rule has the subscription_id 'chaep'. Did you mean cheap"):
        pipeline.explain(events, rules, of="chaep")
    bad = spark.createDataFrame([("a", "price <"), ("b", "price < 3")], "subscription_id string, condition string")
    with pytest.raises(pipeline.RejectedSubscriptionsError, match="'a': ExpressionSyntaxError"):
        pipeline.explain(events, bad, of=["b", "a"])
    compiled = pipeline.compiled(bad)
    with pytest.raises(pipeline.RejectedSubscriptionsError, match="'a': ExpressionSyntaxError"):
        pipeline.explain(events, compiled, of="a")
    with pytest.raises(Exception, match="no rule has the id 'c'"):
        pipeline.explain(events, compiled, of="c").collect()
    with pytest.warns(pipeline.RejectedSubscriptionsWarning):
        assert pipeline.explain(events, bad).count() == len(EVENTS)
    with pytest.raises(pipeline.OptionError, match="are a stream"):
        pipeline.explain(spark.readStream.format("rate").load(), rules)


# -- Counts by rule


def counts_of(frame):
    rows = [tuple(row) for row in frame.collect()]
    assert len(rows) == len(dict(rows))
    return dict(rows)


def expected_counts():
    return {rule: sum(1 for _, each in EXPECTED if each == rule) for rule in RULES}


@pytest.mark.parametrize("shards", [1, 3])
def test_every_rule_has_the_number_of_events_that_it_matches(events, rules, shards):
    counted = pipeline.tally(events, rules, shards=shards)
    assert counted.schema.simpleString() == "struct<subscription_id:string,matches:bigint>"
    assert counts_of(counted) == expected_counts()
    assert expected_counts()["never"] == 0


def test_rules_with_several_access_keys_are_counted_once(spark):
    events = spark.range(60).selectExpr("id % 6 AS kind")
    texts = {1: "kind IN (1, 2, 3)", 2: "kind = 4 OR kind = 5", 3: "kind > 2", 4: "kind = 9"}
    rules = spark.createDataFrame(list(texts.items()), "subscription_id int, condition string")
    for shards in (1, 4):
        assert counts_of(pipeline.tally(events, rules, shards=shards)) == {1: 30, 2: 20, 3: 30, 4: 0}


def test_counts_are_folded_while_they_grow(spark, events, rules, monkeypatch):
    from tamis.spark import tallying

    task = tallying.Tallying(pipeline.compiled(rules).forest, tuple(events.columns), "string")
    batches = events.toArrow().to_batches(2) * 5
    monkeypatch.setattr(tallying, "_FOLDED", 1)
    monkeypatch.setattr("tamis.spark.worker.GATHERED", 2)
    (batch,) = task.run(iter(batches))
    counted = dict(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    assert counted == {rule: 5 * count for rule, count in expected_counts().items() if count}


def test_of_no_events_every_rule_has_none(spark, events, rules):
    assert counts_of(pipeline.tally(events.limit(0), rules)) == dict.fromkeys(RULES, 0)


def test_rules_that_mention_nothing_are_counted(spark, events):
    rules = spark.createDataFrame([(1, "TRUE"), (2, "FALSE")], "subscription_id int, condition string")
    assert counts_of(pipeline.tally(events, rules)) == {1: len(EVENTS), 2: 0}


def test_a_stream_is_not_counted(spark, rules):
    with pytest.raises(pipeline.OptionError, match="has no end to count to"):
        pipeline.tally(spark.readStream.format("rate").load(), rules)
