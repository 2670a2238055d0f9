"""Rules in SQL: column functions, the table function, and how a session gets to know rules."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from tests.spark.plain import pairs_of

pytestmark = pytest.mark.spark
pipeline = pytest.importorskip("tamis.spark")

UTC = dt.UTC
COLUMNS = "number int, price double, title string, at timestamp, noon timestamp_ntz, amount decimal(12,4), place struct<x: double>, tags array<string>"
EVENTS = [
    (1, 12.0, "The House", dt.datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC), dt.datetime(2001, 2, 3, 4, 5, 6), Decimal("1.5"), (1.0,), ["a"]),
    (2, None, "Ölmühle", None, None, None, None, None),
    (3, float("nan"), "", dt.datetime(1600, 1, 1, tzinfo=UTC), dt.datetime(1600, 1, 1), Decimal("99999999.9999"), (None,), []),
    (4, float("inf"), None, None, dt.datetime(2024, 1, 1), None, (float("-inf"),), [None, "b"]),
    (5, -0.0, "a'b\\c%日本", dt.datetime(2001, 2, 3, 4, 5, 5, 999_999, tzinfo=UTC), None, Decimal("-1"), (0.0,), ["a", "b"]),
]  # fmt: skip
RULES = {
    "cheap": "price < 20",
    "not cheap": "NOT price < 20",
    "none": "price IS NULL OR title IS NULL",
    "zero": "price = 0",
    "umlaut": "title LIKE 'Ö%' OR title = ''",
    "instant": "at >= TIMESTAMP '2001-02-03 04:05:06'",
    "local": "noon <= TIMESTAMP '2001-02-03 04:05:06'",
    "rich": "amount > 99999999.9998 OR amount < 0",
    "placed": "place.x <= 0",
    "tagged": "array_contains(tags, 'b')",
    "all": "TRUE",
    "never": "FALSE",
}
EXPECTED = pairs_of(
    [
        {"number": n, "price": p, "title": t, "at": a, "noon": None if o is None else o.replace(tzinfo=UTC), "amount": m,
         "place": None if x is None else {"x": x[0]}, "tags": g}
        for n, p, t, a, o, m, x, g in EVENTS
    ],
    RULES,
    "number",
)  # fmt: skip


@pytest.fixture
def session(spark):
    """A session of its own: what is registered in it is unknown to the others."""
    own = spark.newSession()
    for name in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions"):
        own.conf.set(name, spark.conf.get(name))
    own.createDataFrame(EVENTS, COLUMNS).repartition(2).createOrReplaceTempView("events")
    rules = own.createDataFrame(list(RULES.items()), "subscription_id string, condition string")
    rules.createOrReplaceTempView("rules_table")
    return own


def pairs_in(frame):
    rows = [tuple(row) for row in frame.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


def test_the_column_function_finds_what_the_definition_says(session):
    pipeline.register(session, rules={"rules": "rules_table"})
    rows = session.sql("SELECT number, tamis_matches(struct(*), 'rules') AS ids FROM events").collect()
    assert {(number, each) for number, ids in rows for each in ids} == EXPECTED
    assert all(ids == sorted(ids) for _, ids in rows)
    counts = dict(session.sql("SELECT number, tamis_matching(struct(*), 'rules') FROM events").collect())
    assert counts == {number: len(ids) for number, ids in rows}
    assert len(rows) == len(EVENTS)


def test_the_lists_may_be_opened_filtered_and_counted_in_sql(session):
    pipeline.register(session, rules={"rules": "rules_table"})
    pairs = session.sql("SELECT number, explode(tamis_matches(struct(*), 'rules')) AS id FROM events")
    assert pairs_in(pairs) == EXPECTED
    shown = ", ".join(session.table("events").columns)  # Spark takes no star there
    lateral = f"LATERAL VIEW explode(tamis_matches(struct({shown}), 'rules')) AS id WHERE id = 'zero'"
    assert pairs_in(session.sql(f"SELECT number, id FROM events {lateral}")) == {p for p in EXPECTED if p[1] == "zero"}
    matched = session.sql("SELECT number FROM events WHERE array_contains(tamis_matches(struct(*), 'rules'), 'none')")
    assert {row.number for row in matched.collect()} == {number for number, each in EXPECTED if each == "none"}
    grouped = (
        "SELECT id, count(*) FROM (SELECT explode(tamis_matches(struct(*), 'rules')) AS id FROM events) GROUP BY id"
    )
    assert dict(session.sql(grouped).collect())["all"] == len(EVENTS)


def test_only_what_is_shown_is_seen(session):
    pipeline.register(session, rules={"rules": "rules_table"})
    rows = session.sql("SELECT number, tamis_matches(struct(price), 'rules') AS ids FROM events").collect()
    seen = pairs_of([{"number": event[0], "price": event[1]} for event in EVENTS], RULES, "number")
    assert {(number, each) for number, ids in rows for each in ids} == seen


def test_the_table_function_gives_the_columns_of_the_events_and_the_id(session):
    pipeline.register(session, rules={"rules": "rules_table"})
    found = session.sql("SELECT * FROM tamis_match(TABLE(events), 'rules')")
    assert found.columns == [*session.table("events").columns, "subscription_id"]
    rows = found.collect()
    assert {(row.number, row.subscription_id) for row in rows} == EXPECTED
    assert len(rows) == len(EXPECTED)
    (one,) = (row for row in rows if (row.number, row.subscription_id) == (5, "zero"))
    (event,) = session.table("events").where("number = 5").collect()
    assert tuple(one)[:-1] == tuple(event)


def test_the_table_function_takes_a_query_and_gathers_rows(session, monkeypatch):
    rules = session.createDataFrame([(1, "id % 3 = 0"), (2, "id >= 19990")], "subscription_id int, condition string")
    pipeline.register(session, rules={"numbers": rules})
    found = session.sql(
        "SELECT * FROM tamis_match(TABLE(SELECT id FROM range(0, 20000, 1, 2) WHERE id > 9), 'numbers')"
    )
    expected = {(n, 1) for n in range(10, 20_000) if n % 3 == 0} | {(n, 2) for n in range(19_990, 20_000)}
    assert pairs_in(found) == expected
    assert found.schema["subscription_id"].dataType.simpleString() == "bigint"


def test_settings_name_the_tables_of_rules(session):
    session.conf.set("spark.tamis.rules.cheap", "cheap_rules")
    session.sql("CREATE TEMP VIEW cheap_rules AS SELECT 'one' AS subscription_id, 'price < 20' AS condition")
    pipeline.register(session)
    rows = session.sql("SELECT number FROM events WHERE tamis_matching(struct(price), 'cheap') > 0").collect()
    assert {row.number for row in rows} == {1, 5}


def test_rules_that_are_registered_again_take_the_place_of_those_before_and_leave_others(session):
    def ids(name):
        rows = session.sql(f"SELECT number, tamis_matches(struct(*), '{name}') AS ids FROM events").collect()
        return {row.number: row.ids for row in rows}

    first = session.createDataFrame([("a", "number = 1")], "subscription_id string, condition string")
    pipeline.register(session, rules={"changing": first, "lasting": first})
    assert ids("changing")[1] == ["a"]
    second = session.createDataFrame([("b", "number = 2")], "rule string, text string")
    pipeline.register(session, rules={"changing": second}, id="rule", where="text")
    assert (ids("changing")[1], ids("changing")[2]) == ([], ["b"])
    assert ids("lasting")[1] == ["a"]


def test_sessions_do_not_share_rules(session, spark):
    rules = session.createDataFrame([("a", "number = 1")], "subscription_id string, condition string")
    pipeline.register(session, rules={"rules": rules})
    other = spark.newSession()
    with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
        other.sql("SELECT tamis_matching(struct(1 AS number), 'rules')").collect()


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ("SELECT tamis_matches(struct(*), 'rule') FROM events", "OptionError", "no rules are registered as 'rule', only rules"),
        ("SELECT tamis_matches(price, 'rules') FROM events", "ColumnError", "the events must be records, not double"),
        ("SELECT tamis_matches(struct(*), title) FROM events", "OptionError", "must be one text, the same for all rows"),
        ("SELECT * FROM tamis_match(TABLE(events), 'rule')", "OptionError", "no rules are registered as 'rule', only rules"),
        ("SELECT * FROM tamis_match(1, 'rules')", "OptionError", "the events must be a table"),
        ("SELECT * FROM tamis_match(TABLE(SELECT 1 AS Subscription_ID), 'rules')", "ColumnError", "have a column 'subscription_id' already"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_call_is_said(session, query, error, words):
    pipeline.register(session, rules={"rules": "rules_table"})
    with pytest.raises(Exception, match=rf"(?s){error}.*{words}|{words}"):
        session.sql(query).collect()


def test_rules_whose_ids_have_two_types_are_refused_and_change_nothing(session):
    numbers = session.createDataFrame([(1, "number = 1")], "subscription_id int, condition string")
    pipeline.register(session, rules={"rules": "rules_table"})
    with pytest.raises(pipeline.OptionError, match="must all be integers or all be strings"):
        pipeline.register(session, rules={"numbers": numbers})
    assert session.sql("SELECT tamis_matching(struct(*), 'rules') AS n FROM events WHERE number = 2").collect()[0].n > 0


def test_rules_in_shards_are_refused(session):
    rules = pipeline.compiled(session.table("rules_table"), shards=2)
    with pytest.raises(pipeline.OptionError, match="all subscriptions in one place"):
        pipeline.register(session, rules={"rules": rules})


def test_rules_that_are_none_are_told_of(session):
    rules = session.createDataFrame(
        [("a", "number ="), ("b", "number = 1")], "subscription_id string, condition string"
    )
    with pytest.warns(pipeline.RejectedSubscriptionsWarning, match="1 subscriptions cannot be used"):
        pipeline.register(session, rules={"rules": rules})


# -- The function as a column


def test_the_column_of_compiled_rules_finds_what_the_definition_says(session):
    compiled = pipeline.compiled(session.table("rules_table"))
    rows = session.table("events").select("number", pipeline.matches(compiled).alias("ids")).collect()
    assert {(number, each) for number, ids in rows for each in ids} == EXPECTED
    counts = session.table("events").select("number", pipeline.matches(compiled, result="counts").alias("n")).collect()
    assert {row.number: row.n for row in counts} == {number: len(ids) for number, ids in rows}


@pytest.mark.parametrize("columns", [["price"], ["price", "title"]])
def test_the_column_shows_only_the_columns_that_are_named(session, columns):
    compiled = pipeline.compiled(session.table("rules_table"))
    rows = session.table("events").select("number", pipeline.matches(compiled, *columns).alias("ids")).collect()
    shown = [dict(zip(("number", "price", "title"), event[:3], strict=True)) for event in EVENTS]
    shown = [{name: event[name] for name in ("number", *columns)} for event in shown]
    seen = {(n, each) for n, each in pairs_of(shown, RULES, "number")}
    assert {(number, each) for number, ids in rows for each in ids} == seen


def test_the_column_of_rules_that_mention_nothing_and_of_integer_ids(session):
    rules = session.createDataFrame([(1, "TRUE"), (2, "FALSE")], "subscription_id tinyint, condition string")
    found = session.table("events").select(pipeline.matches(pipeline.compiled(rules)).alias("ids"))
    assert found.schema["ids"].dataType.simpleString() == "array<tinyint>"
    assert [row.ids for row in found.collect()] == [[1]] * len(EVENTS)


def test_the_column_stands_in_a_stream(session, tmp_path):
    session.table("events").select("number", "price").write.parquet(str(tmp_path / "events"))
    compiled = pipeline.compiled(session.table("rules_table"))
    stream = session.readStream.schema("number int, price double").parquet(str(tmp_path / "events"))
    matched = stream.select("number", pipeline.matches(compiled, "price").alias("ids"))
    query = matched.writeStream.format("memory").queryName("found").trigger(availableNow=True).start()
    query.awaitTermination()
    found = {(row.number, each) for row in session.table("found").collect() for each in row.ids}
    assert found == pairs_of([{"number": event[0], "price": event[1]} for event in EVENTS], RULES, "number")


def test_an_unknown_result_is_refused(session):
    with pytest.raises(pipeline.OptionError, match="result must be one of 'lists', 'counts', not 'pairs'"):
        pipeline.matches(pipeline.compiled(session.table("rules_table")), result="pairs")


# -- The column as a step of a pipeline


def test_the_step_of_a_pipeline_gives_what_match_gives(session):
    compiled = pipeline.compiled(session.table("rules_table"))
    events = session.table("events")
    pairs = events.transform(pipeline.matching_step(compiled, keep="number"))
    assert pairs.columns == ["number", "subscription_id"]
    assert pairs_in(pairs) == EXPECTED
    counts = events.transform(pipeline.matching_step(compiled, keep=["number"], result="counts"))
    matched = pipeline.match(events, compiled, keep=["number"], result="counts")
    assert pairs_in(counts) == pairs_in(matched)
    lists = events.transform(pipeline.matching_step(compiled, "price", result="lists"))
    assert lists.columns == [*events.columns, "subscription_ids"]
    with pytest.raises(pipeline.OptionError, match="result must be one of 'pairs', 'lists', 'counts', not 'list'"):
        pipeline.matching_step(compiled, result="list")
