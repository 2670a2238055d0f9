"""One process and Spark read the same files, give the same answers and write the same tables."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.cli.conftest import tamis
from tests.cli.test_program import without_pyspark

CSV = """number,small,large,huge,price,day,at,is,name,empty
1,007,5,1,1,2024-01-31,2024-01-31T10:00:00Z,true,"say ""hi"", twice",
2,-3,99999999999,123456789012345678901234567890,2.5,2023-12-01,2024-02-01 11:30:00.25,False,"two
lines",
3,,+7,,NaN,,2024-02-01,,"",
4,12,8,3,-Infinity,2024-03-01,,TRUE,Größe 世界,
"""
JSON = [
    {"number": 1, "price": 5, "name": "a", "day": "2024-01-31", "tags": ["x", "y"], "seller": {"id": 7, "r": 1.5}},
    {"number": 2, "price": 2.5, "name": 5, "mixed": [1, "a"], "seller": {"id": 8}},
    {"number": 3, "name": None, "tags": [], "mixed": [], "nothing": None, "seller": None},
    {"number": 4, "price": 10**25, "name": {"b": 1, "a": [True, None]}, "tags": ["Ü", None], "deep": {"in": {"x": -1}}},
]
TABLE = pa.table(
    {
        "number": pa.array([1, 2, 3, 4], pa.int16()),
        "price": pa.array([Decimal("1.50"), None, Decimal("-7.25"), Decimal("0.00")], pa.decimal128(10, 2)),
        "at": pa.array(
            [datetime(2024, 1, 31, 10, tzinfo=UTC), None, datetime(1969, 1, 1, tzinfo=UTC), None],
            pa.timestamp("us", "UTC"),
        ),
        "day": [date(2024, 1, 31), None, date(1, 1, 1), date(9999, 12, 31)],
        "name": pa.array(["a", None, "", 'Größe, "世界"']).dictionary_encode(),
        "tags": [["x"], None, [], [None, "y"]],
        "seller": [{"id": 7}, None, {"id": None}, {"id": 8}],
        "half": pa.array([0.5, float("nan"), float("inf"), None], pa.float32()),
    }
)
RULES = {
    "csv": ["small < 10", "large > 6", "huge > 2", "price < 2", "price > 2", "day < DATE '2024-02-01'", "at > TIMESTAMP '2024-02-01 00:00:00'",
            "`is`", "name = 'say \"hi\", twice'", "name LIKE 'two%lines'", "name = ''", "empty IS NULL", "at = TIMESTAMP '2024-02-01 00:00:00'"],
    "jsonl": ["price > 3", "price >= 10", "name = '5'", "name LIKE '%true%'", "day = '2024-01-31'", "array_contains(tags, 'Ü')",
              "seller.id = 7", "seller.r IS NULL", "array_contains(mixed, '1')", "nothing IS NULL", "deep.`in`.x < 0", "size(tags) = 0"],
    "parquet": ["number < 3", "price > 1", "at > TIMESTAMP '2000-01-01 00:00:00'", "day > DATE '2000-01-01'", "name LIKE '%世%'", "name = ''",
                "array_contains(tags, 'y')", "seller.id = 7", "half > 1", "half IS NULL", "size(tags) = 0"],
}  # fmt: skip


def write(folder, ending):
    events = folder / f"events.{ending}"
    if ending == "csv":
        events.write_text(CSV)
    elif ending == "jsonl":
        events.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in JSON))
    else:
        parquet.write_table(TABLE, events)
    texts = RULES[ending]
    csv.write_csv(pa.table({"rule": [f"r{n:02}" for n in range(len(texts))], "text": texts}), folder / "rules.csv")


def run(folder, ending, engine, result, out, *more):
    return tamis(
        "match", "--events", str(folder / f"events.{ending}"), "--subscriptions", str(folder / "rules.csv"), "--id", "rule",
        "--where", "text", "--out", str(out), "--result", result, "--engine", engine, "--json", *more,
    )  # fmt: skip


def rows(out):
    """What a folder of matches holds: rows in any order, and for Parquet the types too."""
    kind = out.suffix
    files = sorted(each for each in out.iterdir() if each.name[0] not in "._")
    assert (out / "_SUCCESS").exists()
    if kind == ".parquet":
        table = pa.concat_tables([parquet.read_table(file) for file in files])
        # Spark writes instants as it did in its youth, which says neither UTC nor microseconds, and knows what is no NULL.
        instants = {name: pa.timestamp("us", "UTC") for name in ("at",) if name in table.schema.names}
        fields = [pa.field(field.name, instants.get(field.name, field.type)) for field in table.schema]
        table = table.cast(pa.schema(fields))
        return [(field.name, str(field.type).replace(" not null", "")) for field in fields], Counter(
            map(repr, table.to_pylist())
        )
    if kind == ".csv":
        options = csv.ParseOptions(newlines_in_values=True)
        tables = [csv.read_csv(file, parse_options=options) for file in files]
        return tables[0].schema.names, Counter(repr(row) for table in tables for row in table.to_pylist())
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    # Spark's JSON has milliseconds, ours all that there is.
    return [], Counter(repr(json.loads(re.sub(r"(\.\d{3})000Z", r"\1Z", line))) for line in lines)


@pytest.mark.spark
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_both_engines_write_equal_tables(ending, tmp_path, spark):
    write(tmp_path, ending)
    for number, (result, out) in enumerate(
        [("pairs", "parquet"), ("lists", "jsonl"), ("counts", "csv"), ("pairs", "csv")]
    ):
        told = {}
        for engine in ("local", "spark"):
            path = tmp_path / f"{number}{engine}.{out}"
            keep = ("--keep", "number", "--keep", "name") if number == 3 else ()
            told[engine] = json.loads(run(tmp_path, ending, engine, result, path, *keep).stdout)
            assert "error" not in told[engine], told[engine]
            assert told[engine].pop("engine") == engine
        (names, here), (their_names, there) = (rows(tmp_path / f"{number}{engine}.{out}") for engine in told)
        assert names == their_names
        assert (here - there, there - here) == (Counter(), Counter())
        same = ("rows", "subscriptions", "rejected", "first_rejected", "unmet")
        assert [told["local"][name] for name in same] == [told["spark"][name] for name in same]
        assert told["local"]["rejected"] == 0


NEVER = {
    "never < 3": "never",
    "b.never LIKE 'x%'": "b.never",
    "`a.b` = 1": "a.b",
    "never > 0 AND number > 1": "never",
    "size(none) > 1": "none",
    "late > 1": None,
    "b.late = 1": None,
    "never IS NULL": None,
    "array_contains(tags, 'x')": None,
    "number <=> 5": None,
}
"""Rules, and which of their attributes no event has a value of."""


@pytest.mark.spark
@pytest.mark.parametrize(("result", "shown"), [("pairs", "to people"), ("counts", "as JSON")])
def test_both_engines_warn_alike_of_rules_that_can_never_match(result, shown, tmp_path, spark):
    columns = {
        "number": [1, 2, 3],
        "never": pa.array([None] * 3, pa.int64()),
        "none": pa.array([None] * 3, pa.list_(pa.int64())),
        "late": [None, None, 2],
        "a.b": pa.array([None] * 3, pa.int32()),
        "b": [None, {"never": None, "late": None}, {"never": None, "late": 1}],
        "tags": [[], ["x"], None],
    }
    kinds = pa.struct([("never", pa.string()), ("late", pa.int64())])
    table = pa.table({name: pa.array(each, kinds) if name == "b" else each for name, each in columns.items()})
    parquet.write_table(table, tmp_path / "events.parquet", row_group_size=1)
    parquet.write_table(table.slice(0, 0), tmp_path / "nothing.parquet")
    wrong = ["number = 'one'", "tags < 3", "lost = 1"]  # another type, and no such column: rejected, by both
    texts = [*NEVER, *wrong]
    csv.write_csv(pa.table({"rule": list(range(len(texts))), "text": texts}), tmp_path / "rules.csv")
    expected = [f"no event had the attribute {name}" for name in sorted({name for name in NEVER.values() if name})]
    told = {}
    for engine in ("local", "spark"):
        named = ("--id", "rule", "--where", "text", "--result", result, "--engine", engine)
        files = ("match", "--subscriptions", str(tmp_path / "rules.csv"), *named)
        more = ("--json",) if shown == "as JSON" else ()
        told[engine] = tamis(*files, "--events", str(tmp_path / "events.parquet"), "--out", str(tmp_path / f"{engine}.csv"), *more)  # fmt: skip
        empty = tamis(*files, "--events", str(tmp_path / "nothing.parquet"), "--out", str(tmp_path / f"{engine}0.csv"))
        assert "could match nothing" not in empty.stderr, "there was no event"
    if shown == "as JSON":
        here, there = (json.loads(each.stdout) for each in told.values())
        assert here["unmet"] == there["unmet"] == expected
        assert here["first_rejected"] == there["first_rejected"]
        assert here["rejected"] == there["rejected"] == len(wrong)
    else:
        here, there = (each.stderr.partition("! some rules")[2] for each in told.values())
        assert here == there
        assert all(line in here for line in expected)


@pytest.mark.spark
def test_lines_that_are_no_json_are_refused_by_both(tmp_path, spark):
    write(tmp_path, "jsonl")
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write("{no json\n")
    for engine in ("local", "spark"):
        refused = json.loads(run(tmp_path, "jsonl", engine, "pairs", tmp_path / f"{engine}.csv").stdout)
        assert re.search("not (a )?JSON object", refused["error"]["message"])
        more = ("--events-option", "mode=DROPMALFORMED")
        assert (
            json.loads(run(tmp_path, "jsonl", engine, "counts", tmp_path / f"{engine}.csv", *more).stdout)["rows"] == 4
        )


SCHEMAS = {
    "csv": "n bigint, price double, name string, day date, at timestamp, sure boolean, cost decimal(6,1), beyond int",
    "jsonl": "name string, n int, price double, day date, at timestamp, sure boolean, cost decimal(6,1), tags array<int>, "
             "seller struct<id: bigint, city: string>, absent string",
    "parquet": "number bigint, name string, absent double, tags array<string>, seller struct<id: bigint>",
}  # fmt: skip
SAID = {
    "csv": """number,price,name,day,at,sure,cost
1,5,a,2024-01-31,2024-01-31 10:00:00,true,1.25
x,x,,x,x,x,x
+7,NaN,"""
    """\"\",2024-13-01,2024-01-31,FALSE,99999.94
99999999999999999999,-Infinity,Ü,,,,99999.95
2,1
3,2,b,2024-02-01,2024-02-01T00:00:00Z,true,-0.05,one,more
""",
    "jsonl": """{"n":1,"price":5,"name":"a","day":"2024-01-31","at":"2024-01-31T10:00:00Z","sure":true,"cost":1.25,"tags":[1,2]}
{"n":2.5,"price":"x","name":5,"day":"x","at":"x","sure":"true","cost":"x","tags":["x"],"seller":7}
{"n":"1","price":"NaN","name":{"a":[1,null]},"day":5,"sure":0,"cost":123456.7,"tags":7,"seller":{"id":"x","city":"Ü"}}
{no json
[1]
{"n":99999999999,"price":10,"name":true,"cost":2,"tags":[],"seller":{"id":7},"more":1}
{}
""",
}
SAID_RULES = {
    "csv": ["n = 1", "n IS NULL", "price > 1", "price IS NULL", "name IS NULL", "day < DATE '2024-02-01'", "day IS NULL",
            "at >= TIMESTAMP '2024-02-01 00:00:00'", "at IS NULL", "sure", "NOT sure", "cost > 1.2", "cost IS NULL",
            "beyond IS NULL", "number = 1"],
    "jsonl": ["n = 1", "n IS NULL", "price > 1", "price IS NULL", "name = '5'", "name LIKE '%null%'", "day IS NULL", "sure",
              "at IS NULL", "cost > 1", "cost IS NULL", "array_contains(tags, 1)", "tags IS NULL", "size(tags) = 0",
              "seller.id = 7", "seller.city = 'Ü'", "seller IS NULL", "absent IS NULL", "more = 1"],
    "parquet": ["number < 3", "name = ''", "absent IS NULL", "array_contains(tags, 'y')", "seller.id = 7", "price > 1"],
}  # fmt: skip


def both(folder, ending, result, out, *more):
    """What both engines write, and say."""
    told, found = {}, {}
    for engine in ("local", "spark"):
        path = folder / f"{engine}.{out}"
        told[engine] = json.loads(run(folder, ending, engine, result, path, "--overwrite", *more).stdout)
        assert "error" not in told[engine], told[engine]
        found[engine] = rows(path)
    assert found["local"][0] == found["spark"][0]
    here, there = found["local"][1], found["spark"][1]
    assert (here - there, there - here) == (Counter(), Counter())
    said = [[each[name] for name in ("rows", "subscriptions", "rejected", "first_rejected")] for each in told.values()]
    assert said[0] == said[1]
    return told["local"], here


def write_rules(folder, texts):
    csv.write_csv(pa.table({"rule": [f"r{n:02}" for n in range(len(texts))], "text": texts}), folder / "rules.csv")


@pytest.mark.spark
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_both_engines_take_the_columns_that_a_schema_says(ending, tmp_path, spark):
    write(tmp_path, ending)
    if ending in SAID:
        (tmp_path / f"events.{ending}").write_text(SAID[ending])
    write_rules(tmp_path, SAID_RULES[ending])
    told, _ = both(tmp_path, ending, "lists", "parquet", "--schema", SCHEMAS[ending])
    assert told["rejected"] == 1, "one rule asks for a column that only the file has"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("content", "more", "rules"),
    [
        ("a,b\n1,2\n3\n4,5,6\n,,\n7,\"x\ny\"\n", (), ["a > 1", "b IS NULL", "b = '5'", "b LIKE 'x%y'"]),
        ("1;'a;b'\n2;NA\n3;'it''s'\n", ("sep=;", "header=false", "quote='", "escape='", "nullValue=NA"),
         ["_c0 > 1", "_c1 = 'a;b'", "_c1 IS NULL", "_c1 = 'it''s'"]),
        ('a\tb\n1\t"x \\"y\\""\n2\tÜ\n', ("delimiter=\\t", "escape=\\", "encoding=UTF-8"), ["b = 'x \"y\"'", "b = 'Ü'", "a = 2"]),
        ("a,,A,b\n1,2,3,4\n", ("inferSchema=false",), ["a0 = '1'", "_c1 = '2'", "A2 = '3'", "b = '4'"]),
        ('a,b\n1,"x\ny"\n2,z\n', ("multiLine=false",), ["a = '2'", "b = 'x'", "b IS NULL"]),
    ],
    ids=["ragged", "quote", "escape", "names", "lines"],
)  # fmt: skip
def test_both_engines_take_the_options_of_csv_and_rows_of_any_length(content, more, rules, tmp_path, spark):
    (tmp_path / "events.csv").write_text(content)
    write_rules(tmp_path, rules)
    options = [word for each in more for word in ("--events-option", each)]
    _, found = both(tmp_path, "csv", "lists", "parquet", *options)
    assert any("r0" in row for row in found)


def test_one_process_needs_neither_java_nor_pyspark(tmp_path):
    write(tmp_path, "csv")
    done = without_pyspark(
        "match", "--events", "events.csv", "--subscriptions", "rules.csv", "--id", "rule", "--where", "text",
        "--out", "pairs.parquet", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    document = json.loads(done.stdout)
    assert document["engine"] == "local"
    assert document["rows"] == parquet.read_table(tmp_path / "pairs.parquet").num_rows > 0


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--master", "local[2]"), "a master or jars are named"),
        (("--events-option", "comment=#"), "the option 'comment' is one of Spark's readers"),
    ],
)
def test_what_only_spark_can_do_is_refused_by_the_local_engine(more, told, tmp_path):
    write(tmp_path, "csv")
    result = run(tmp_path, "csv", "local", "pairs", tmp_path / "out.csv", *more)
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert told in error["message"]
    assert "--engine spark" in error["hint"]


def test_auto_takes_spark_by_size(tmp_path, monkeypatch):
    from tamis.cli import engines

    write(tmp_path, "csv")
    places = str(tmp_path / "events.csv"), str(tmp_path / "rules.csv"), str(tmp_path / "out.csv")
    assert engines.chosen(engines.Engine.auto, *places, {}, names_spark=False) is engines.Engine.local
    assert engines.chosen(engines.Engine.auto, *places, {}, names_spark=True) is engines.Engine.spark
    monkeypatch.setattr(engines, "SPARK_FROM_BYTES", 100)
    assert engines.chosen(engines.Engine.auto, *places, {}, names_spark=False) is engines.Engine.spark
