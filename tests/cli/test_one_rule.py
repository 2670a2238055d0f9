"""The same rules give the same answer wherever they come in: duplicates and bad rows included."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import tamis as library
from tamis.matching.admission import CandidateRow, admitted
from tests.cli.conftest import tamis

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

RULES = """subscription_id,condition
3,price < 4
1,price < 3
1,price < 9
2,price <
2,price > 7
,price > 1
4,
5,prize > 3
5,prize > 4
6,"title = 'a ""b"", c' OR
price = 6"
6,price < 100
"""
EVENTS = pa.table({"number": list(range(10)), "price": list(range(10)), "title": ['a "b", c', *"bcdefghij"]})
REJECTED = [
    (1, "price < 9", "DuplicateIdError"),
    (2, "price <", "ExpressionSyntaxError"),
    (None, "price > 1", "BadTableError"),
    (4, None, "BadTableError"),
    (5, "prize > 3", "UnknownAttributeError"),
    (5, "prize > 4", "UnknownAttributeError"),
    (6, "price < 100", "DuplicateIdError"),
]
PAIRS = {
    *((number, 3) for number in range(4)),
    *((number, 1) for number in range(3)),
    *((number, 2) for number in (8, 9)),
    (0, 6),
    (6, 6),
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "arriving").mkdir()
    parquet.write_table(EVENTS, tmp_path / "arriving" / "events.parquet")
    (tmp_path / "rules.csv").write_text(RULES)
    return tmp_path


def match(place, *more):
    return tamis(
        "match", "--events", str(place / "arriving" / "events.parquet"), "--subscriptions", str(place / "rules.csv"),
        "--out", str(place / "pairs.parquet"), "--keep", "number", *more,
    )  # fmt: skip


def stream(place, *more):
    return tamis(
        "stream", "--events", str(place / "arriving"), "--subscriptions", str(place / "rules.csv"), "--once",
        "--out", str(place / "out"), "--checkpoint", str(place / "checkpoint"), "--keep", "number", *more,
    )  # fmt: skip


def rejected_in(path):
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [(row["subscription_id"], row["condition"], row["error"]) for row in rows]


def rows_of(path):
    parsing = csv.ParseOptions(newlines_in_values=True)
    converting = csv.ConvertOptions(strings_can_be_null=True)
    table = csv.read_csv(path, parse_options=parsing, convert_options=converting)
    return list(zip(table["subscription_id"].to_pylist(), table["condition"].to_pylist(), strict=True))


def pairs_of(table):
    return set(zip(table["number"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))


def test_a_matcher_takes_the_first_usable_row_of_an_id(place):
    schema = library.Schema.from_arrow(EVENTS.schema)
    matcher, rejected = admitted((CandidateRow(*row) for row in rows_of(place / "rules.csv")), schema)
    pairs = matcher.match_batch(EVENTS)
    assert set(zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True)) == PAIRS
    assert [row[:3] for row in rejected] == REJECTED


def test_a_matcher_that_skips_bad_rows_gives_the_same_answer(place):
    matcher = library.Matcher(schema=library.Schema.from_arrow(EVENTS.schema))
    rejected = matcher.add_many(rows_of(place / "rules.csv"), on_error="skip")
    pairs = matcher.match_batch(EVENTS)
    assert set(zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True)) == PAIRS
    assert [row[:3] for row in rejected] == REJECTED


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_table_takes_the_first_usable_row_of_an_id_in_every_engine(place, engine):
    result = match(place, "--engine", engine)
    assert result.exit_code == 0
    assert pairs_of(parquet.read_table(place / "pairs.parquet")) == PAIRS
    assert rejected_in(place / "pairs.rejected.jsonl") == REJECTED


def test_a_stream_takes_the_first_usable_row_of_an_id(place, spark):
    from tamis.spark import read_matches

    result = stream(place)
    assert result.exit_code == 0
    found = read_matches(spark, place / "out").collect()
    assert {(row.number, row.subscription_id) for row in found} == PAIRS
    assert rejected_in(place / "checkpoint" / "rejected.jsonl") == REJECTED


def test_a_log_takes_the_first_usable_row_of_an_id_and_a_later_table_is_a_change(place):
    from tamis.spark import SubscriptionLog

    log = SubscriptionLog(place / "log", library.Schema.from_arrow(EVENTS.schema))
    rejected = log.load(rows_of(place / "rules.csv"))
    assert [row[:3] for row in rejected] == REJECTED
    assert log.at(1).keys() == {1, 2, 3, 6}
    assert log.load([(1, "price < 9"), (1, "price < 1")])[0].error == "DuplicateIdError"
    assert log.at(2) == {1: "price < 9"}
    assert log.load([(1, "price < 9")]) == []
    assert log.version == 2, "nothing changed"


@pytest.mark.parametrize("command", [match, stream], ids=["match", "stream"])
def test_the_first_three_are_shown_with_reasons_and_the_file_is_named(place, command):
    told = command(place).stderr
    assert "7 rows are not subscriptions, and left out; the first 3" in told
    assert "1: an earlier row has this id, and the first one stays" in told
    assert "2: line 1, column 8: found the end of the text" in told
    assert "a row without an id: a subscription has an id" in told
    assert "prize" not in told, "three are enough"
    assert "rejected.jsonl" in told.replace("\n", "")
    document = json.loads(command(place, "--json", *(["--overwrite"] if command is match else [])).stdout)
    assert document["rejected"] == 7
    assert [row["id"] for row in document["first_rejected"]] == [1, 2, None]


@pytest.mark.parametrize("command", [match, stream], ids=["match", "stream"])
def test_strict_exits_with_1_and_writes_nothing(place, command):
    before = sorted(path.name for path in place.iterdir())
    result = command(place, "--strict")
    assert result.exit_code == 1
    assert "7 rows are not subscriptions, so nothing is done" in result.stderr
    assert "and 4 more" in result.stderr
    assert sorted(path.name for path in place.iterdir()) == before
    (place / "rules.csv").write_text("subscription_id,condition\n1,price < 3\n")
    assert command(place, "--strict").exit_code == 0


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_folder_of_rules_is_read_in_the_order_of_names(place, engine):
    (place / "rules.csv").unlink()
    (place / "rules.csv").mkdir()
    (place / "rules.csv" / "b.csv").write_text("subscription_id,condition\n1,price < 9\n" + "2,price < 1\n" * 50)
    (place / "rules.csv" / "a.csv").write_text("subscription_id,condition\n1,price < 3\n")
    match(place, "--engine", engine)
    assert pairs_of(parquet.read_table(place / "pairs.parquet")) == {(0, 1), (1, 1), (2, 1), (0, 2)}
