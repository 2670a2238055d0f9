"""Relations at scale: the same answer as comparing each rule with each other one."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

import pytest

import tamis
from tamis.relations import covers, satisfiable
from tamis.relations.forms import Context
from tamis.relations.parts import part_of
from tamis.workloads import WORKLOADS

pytestmark = pytest.mark.spark
pipeline = pytest.importorskip("tamis.spark")


def table(spark, rules):
    kind = "bigint" if all(isinstance(each, int) for each in rules) else "string"
    rows = spark.createDataFrame(list(rules.items()), f"subscription_id {kind}, condition string")
    return rows.repartition(3)


def plainly(rules, schema=None):
    """Return what is to be found, by asking about each pair."""
    never = {each for each, text in rules.items() if not (verdict := satisfiable(text, schema)) and verdict.proven}
    asked = {each: text for each, text in rules.items() if each not in never}
    above = {(one, two) for one in asked for two in asked if one != two and covers(asked[one], asked[two], schema)}
    found = dict.fromkeys(never, ("never", None))
    for each in asked:
        same = [one for one in asked if (one, each) in above and (each, one) in above and one < each]
        more = [one for one in asked if (one, each) in above and (each, one) not in above]
        if same:
            found[each] = ("identical", min(same))
        elif more:
            found[each] = ("covered", min(more))
    return found


def found_by(reduction):
    rows = reduction.relations.collect()
    assert len({row.subscription_id for row in rows}) == len(rows)
    return {row.subscription_id: (row.relation, row.by) for row in rows}


def merging_plainly(rules, gone, schema=None):
    """Return the groups of the rules that stay, each rule in the largest that it can be in."""
    context = Context(schema)
    files = defaultdict(set)
    for each, text in rules.items():
        if each not in gone:
            for axis, place in part_of(context.form(text), 0).files():
                files[axis, place].add(each)
    largest = {each: max((len(file) for file in files.values() if each in file), default=0) for each in rules}
    return {each for each in rules if each not in gone and largest[each] > 1}


UGLY = {
    "a": "x = 1",
    "b": "x = 1.0",
    "c": "x IN (1, 2)",
    "d": "x = 1 AND y > 3",
    "e": "NOT (x <> 1)",
    "f": "x = 1 AND x = 2",
    "g": "TRUE",
    "h": "FALSE",
    "i": "name = ''",
    "j": "name = 'Öl' AND x BETWEEN 1 AND 1",
    "k": "name LIKE 'Ö%'",
    "l": "x >= 1 AND x <= 1",
    "m": "big = 123456789012345678901234567890",
    "n": "big >= 123456789012345678901234567890 AND big <= 123456789012345678901234567890",
    "o": "x = 1 OR y = 2",
    "p": "at.x = 5 AND at.y = 6",
    "q": "at.x = 5",
    "r": "name IS NULL",
    "s": "array_contains(tags, 'a')",
    "t": "array_contains(tags, 'a') AND x = 9",
    "u": "x = -0.0 AND y = 0",
    "v": "x = 0 AND y = 0.0",
    "w": "flag",
    "x": "flag = TRUE AND name = 'z'",
}


def test_ugly_rules_are_related_as_pairs_say(spark):
    without_all = {each: text for each, text in UGLY.items() if text != "TRUE"}
    for rules in (UGLY, without_all):
        assert found_by(pipeline.reduce(table(spark, rules))) == plainly(rules)


def generated(seed, count):
    """Return rules of few values, so that many are identical to others, covered by others, or never match."""
    chance = Random(seed)

    def condition():
        name, value = chance.choice("abc"), chance.randrange(4)
        return chance.choice([
            f"{name} = {value}", f"{name} IN ({value}, {value + 1})", f"{name} < {value}", f"{name} >= {value}",
            f"{name} BETWEEN {value - 1} AND {value}", f"NOT {name} = {value}", f"t = '{'xyz'[value % 3]}'",
        ])  # fmt: skip

    def text():
        parts = [condition() for _ in range(chance.randrange(1, 4))]
        if len(parts) == 3 and chance.random() < 0.4:
            return f"{parts[0]} AND ({parts[1]} OR {parts[2]})"
        return " AND ".join(parts)

    return {number: text() for number in chance.sample(range(10 * count), count)}


@pytest.mark.parametrize("seed", range(3))
def test_generated_rules_are_related_as_pairs_say(spark, seed, monkeypatch):
    monkeypatch.setattr("tamis.spark.reducing._TOGETHER", 10)  # many places
    rules = generated(seed, 90)
    reduction = pipeline.reduce(table(spark, rules))
    expected = plainly(rules)
    assert found_by(reduction) == expected
    assert {"identical", "covered", "never"} == {relation for relation, _ in expected.values()}
    merging = {row.subscription_id for row in reduction.merging.collect()}
    assert merging <= merging_plainly(rules, set(expected))
    assert reduction.counts["kept"] == len(rules) - len(expected)


def test_a_schema_makes_answers_sharper(spark):
    rules = {1: "n > 4", 2: "n >= 5", 3: "n > 4 AND n < 5"}
    schema = tamis.Schema({"n": "int"})
    reduction = pipeline.reduce(table(spark, rules), schema=schema)
    assert found_by(reduction) == plainly(rules, schema) == {2: ("identical", 1), 3: ("never", None)}
    assert found_by(pipeline.reduce(table(spark, rules))) == plainly(rules)


def test_rules_of_a_workload_are_related_as_pairs_say(spark):
    subscriptions = WORKLOADS["auction"]().subscriptions(150, seed=5)
    rules = dict(
        zip(*(subscriptions.column(name).to_pylist() for name in ("subscription_id", "condition")), strict=True)
    )
    assert found_by(pipeline.reduce(table(spark, rules))) == plainly(rules)


def test_what_stays_matches_whatever_all_of_them_match(spark):
    rules = generated(7, 60)
    gone = found_by(pipeline.reduce(table(spark, rules)))
    whole, left = tamis.Matcher(), tamis.Matcher()
    whole.add_many(rules)
    left.add_many({each: text for each, text in rules.items() if each not in gone})
    events = [
        {"a": a, "b": b, "c": c, "t": t} for a in (None, 0, 1, 3) for b in (None, 0, 2) for c in (1, 5) for t in "xq"
    ]
    for event in events:
        assert bool(whole.match(event)) == bool(left.match(event))
    assert gone


def test_rules_that_differ_in_one_set_are_in_one_group(spark):
    rules = {1: "x = 1 AND y = 2", 2: "x = 1 AND y = 3", 3: "x = 1 AND y = 9", 4: "x = 5 AND z > 0", 5: "x = 7 AND z > 0", 6: "w = 1 AND v = 2"}  # fmt: skip
    reduction = pipeline.reduce(table(spark, rules))
    groups = defaultdict(set)
    for row in reduction.merging.collect():
        groups[bytes(row.group)].add(row.subscription_id)
    assert sorted(map(sorted, groups.values())) == [[1, 2, 3], [4, 5]]
    assert reduction.counts == {
        "rules": 6, "identical": 0, "covered": 0, "never": 0, "kept": 6, "merged": 3, "rejected": 0,
    }  # fmt: skip
    mergers = tamis.relations.mergers(rules.values())
    assert reduction.counts["merged"] == len(mergers)


def test_rows_that_are_no_rules_are_returned_with_their_reasons(spark):
    rows = [("a", "x = 1"), ("a", "x = 2"), ("b", "x ="), (None, "x = 3"), ("c", None), ("d", "x = 1 AND y = 2")]
    frame = spark.createDataFrame(rows, "rule string, text string").coalesce(1)
    reduction = pipeline.reduce(frame, id="rule", where="text")
    assert {row.rule: (row.relation, row.by) for row in reduction.relations.collect()} == {"d": ("covered", "a")}
    rejected = reduction.rejected.collect()
    assert reduction.rejected.columns == ["rule", "text", "error", "message"]
    assert Counter((row.rule, row.error) for row in rejected) == Counter(
        [("a", "DuplicateIdError"), ("b", "ExpressionSyntaxError"), (None, "BadTableError"), ("c", "BadTableError")]
    )
    assert [row.text for row in rejected] == ["x = 2", "x =", "x = 3", None]
    assert (reduction.counts["rules"], reduction.counts["rejected"]) == (2, 4)


def test_no_rules_are_related_to_none(spark):
    reduction = pipeline.reduce(table(spark, {1: "x = 1"}).limit(0))
    assert (reduction.relations.count(), reduction.merging.count(), reduction.counts["kept"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("columns", "words"),
    [("1.5D AS subscription_id, 'x' AS condition", "ids must be integers or strings"), ("1 AS subscription_id, 2 AS condition", "conditions must be strings"), ("1 AS subscription_id", "have no column 'condition'")],
)  # fmt: skip
def test_a_table_that_has_no_rules_is_refused(spark, columns, words):
    with pytest.raises(pipeline.ColumnError, match=words):
        pipeline.reduce(spark.range(1).selectExpr(columns.split(", ")[0], *columns.split(", ")[1:]))
