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
        return [(field.name, str(field.type)) for field in fields], Counter(map(repr, table.to_pylist()))
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
        assert [told["local"][name] for name in ("rows", "subscriptions", "rejected", "first_rejected")] == [
            told["spark"][name] for name in ("rows", "subscriptions", "rejected", "first_rejected")
        ]
        assert told["local"]["rejected"] == 0


@pytest.mark.spark
def test_lines_that_are_no_json_are_refused_by_both(tmp_path, spark):
    write(tmp_path, "jsonl")
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write("{no json\n")
    for engine in ("local", "spark"):
        refused = json.loads(run(tmp_path, "jsonl", engine, "pairs", tmp_path / f"{engine}.csv").stdout)
        assert "no JSON object" in refused["error"]["message"]
        more = ("--events-option", "mode=DROPMALFORMED")
        assert (
            json.loads(run(tmp_path, "jsonl", engine, "counts", tmp_path / f"{engine}.csv", *more).stdout)["rows"] == 4
        )


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
        (("--schema", "price double"), "--schema is written in Spark's words"),
        (("--events-option", "quote='"), "the option 'quote' is one of Spark's readers"),
    ],
)
def test_what_only_spark_can_do_is_refused_by_the_local_engine(more, told, tmp_path):
    write(tmp_path, "csv")
    result = run(tmp_path, "csv", "local", "pairs", tmp_path / "out.csv", *more)
    assert result.exit_code == 2
    assert told in json.loads(result.stdout)["error"]["message"]


def test_auto_takes_spark_by_size(tmp_path, monkeypatch):
    from tamis.cli import engines

    write(tmp_path, "csv")
    places = str(tmp_path / "events.csv"), str(tmp_path / "rules.csv"), str(tmp_path / "out.csv")
    assert engines.chosen(engines.Engine.auto, *places, {}, None, names_spark=False) is engines.Engine.local
    assert engines.chosen(engines.Engine.auto, *places, {}, None, names_spark=True) is engines.Engine.spark
    monkeypatch.setattr(engines, "LARGE", 100)
    assert engines.chosen(engines.Engine.auto, *places, {}, None, names_spark=False) is engines.Engine.spark
