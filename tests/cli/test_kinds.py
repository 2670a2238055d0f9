"""The commands take every kind of subscription."""

from __future__ import annotations

import datetime as dt
import json
import os

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.conftest import tamis

EVERY_KIND = {
    "ranked": "TOP 5 BY price ASC OVER 1 HOUR",
    "sequence": "SEQUENCE price > 30 AS high THEN price < high.price WITHIN 1 HOUR PER symbol",
    "change": "CHANGE TO price > 30 UNTIL price < 28 PER symbol",
}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_good_text_of_every_kind_is_shown_as_it_is_printed(kind):
    result = tamis("check", EVERY_KIND[kind].lower())
    assert result.exit_code == 0 and result.stderr == ""
    assert result.stdout.startswith(f"✓ {EVERY_KIND[kind]}\n")
    (answer,) = json.loads(tamis("check", "--json", EVERY_KIND[kind]).stdout)["texts"]
    assert answer["ok"] and answer["kind"] == kind and answer["canonical"] == EVERY_KIND[kind]
    assert answer["predicates"] == {"ranked": 0, "sequence": 2, "change": 2}[kind], "those that were written"


def test_a_bad_text_of_every_kind_gets_a_caret_and_what_would_be_right():
    for text, column in (("TOP 5 BY price", 15), ("SEQUENCE price > 30", 20), ("CHANGE TO price > 30 TILL sold", 22)):
        result = tamis("check", text)
        assert result.exit_code == 2
        assert f"line 1, column {column}:" in result.stderr and "Write " in result.stderr


def test_an_explanation_shows_every_condition_of_a_subscription():
    result = tamis("explain", EVERY_KIND["change"], "--event", '{"price": 31}')
    assert result.exit_code == 0
    assert "it becomes true:" in result.stdout and "it becomes false:" in result.stdout
    result = tamis("explain", EVERY_KIND["sequence"], "--event", "{}", "--json")
    found = json.loads(result.stdout)
    assert found["kind"] == "sequence" and [part["part"] for part in found["parts"]] == [
        "step 1", "step 2, without what refers to earlier events",
    ]  # fmt: skip
    assert tamis("explain", EVERY_KIND["ranked"] + " WHERE sold", "--event", '{"sold": false}').exit_code == 1


def test_a_plan_shows_every_condition_of_a_subscription():
    result = tamis("explain", EVERY_KIND["change"], "--plan")
    assert "subscription 'it becomes true': price > 30" in result.stdout
    assert "subscription 'it becomes false': price < 28" in result.stdout


def table(folder, name, rows):
    parquet.write_table(pa.Table.from_pylist(rows), folder / name)
    return str(folder / name)


@pytest.fixture
def world(tmp_path):
    """Prices of one share, and subscriptions of every kind."""
    prices = [29, 31, 35, 27, 32]
    events = [{"name": f"e{n}", "at": float(n), "symbol": "IBM", "price": price} for n, price in enumerate(prices)]
    wanted = [{"subscription_id": key, "condition": text} for key, text in EVERY_KIND.items()]
    wanted += [
        {"subscription_id": "boolean", "condition": "price = 35"},
        {"subscription_id": "bad", "condition": "SEQUENCE a"},
    ]
    return tmp_path, table(tmp_path, "events.parquet", events[::-1]), table(tmp_path, "wanted.parquet", wanted)


def test_match_with_a_time_tells_what_the_processor_tells(world):
    folder, events, wanted = world
    result = tamis(
        "match", "--events", events, "--subscriptions", wanted, "--out", str(folder / "out.jsonl"), "--time", "at",
        "--event-id", "name", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] == 10
    (file,) = (folder / "out.jsonl").glob("part-*")
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert {(row["subscription_id"], tuple(row["events"]), row["at"], row.get("change")) for row in told} == {
        ("ranked", ("e0",), 0.0, None), ("ranked", ("e1",), 1.0, None), ("ranked", ("e2",), 2.0, None),
        ("ranked", ("e3",), 3.0, None), ("ranked", ("e4",), 4.0, None),
        ("sequence", ("e2", "e3"), 3.0, None), ("sequence", ("e2", "e4"), 4.0, None),
        ("change", ("e1",), 1.0, True), ("change", ("e4",), 4.0, True), ("boolean", ("e2",), 2.0, None),
    }  # fmt: skip
    rejected = [json.loads(line) for line in (folder / "out.rejected.jsonl").read_text().splitlines()]
    assert [row["subscription_id"] for row in rejected] == ["bad"]


def test_match_without_a_time_says_that_one_is_needed(world):
    folder, events, wanted = world
    out = str(folder / "pairs.jsonl")
    result = tamis("match", "--events", events, "--subscriptions", wanted, "--out", out, "--json")
    assert result.exit_code == 0
    rejected = [json.loads(line) for line in (folder / "pairs.rejected.jsonl").read_text().splitlines()]
    reasons = {row["subscription_id"]: json.dumps(row) for row in rejected}
    assert set(reasons) == {"ranked", "sequence", "change", "bad"}
    assert all("--time" in reasons[key] for key in ("ranked", "sequence", "change"))


def test_match_refuses_a_time_that_is_none(world):
    folder, events, wanted = world
    for options, said in ((("--time", "symbol"), "times"), (("--time", "att"), "no column"),
                          (("--time", "at", "--result", "counts"), "--time")):  # fmt: skip
        result = tamis(
            "match", "--events", events, "--subscriptions", wanted, "--out", str(folder / "o.jsonl"), *options
        )
        assert result.exit_code == 2 and said in result.output
        assert not (folder / "o.jsonl").exists()


@pytest.mark.spark
@pytest.mark.usefixtures("rocks")
def test_a_stream_with_a_time_tells_of_every_kind(tmp_path):
    start = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    (tmp_path / "arriving").mkdir()
    # The last events only say that time goes on: the watermark moves after a batch.
    for file, moments in enumerate([[29, 31, 35, 27, 32], [None], [None]]):
        rows = [
            {
                "event_id": 10 * file + n,
                "at": start + dt.timedelta(seconds=100_000 * file + n),
                "symbol": "IBM",
                "price": price,
            }
            for n, price in enumerate(moments)
        ]
        kinds = pa.schema(
            [
                ("event_id", pa.int64()),
                ("at", pa.timestamp("us", "UTC")),
                ("symbol", pa.string()),
                ("price", pa.int64()),
            ]
        )
        path = tmp_path / "arriving" / f"{file}.parquet"
        parquet.write_table(pa.Table.from_pylist(rows, kinds), path)
        os.utime(path, (1_700_000_000 + file,) * 2)  # Spark takes files in the order of their times, by the millisecond
    wanted = table(
        tmp_path, "wanted.parquet", [{"subscription_id": key, "condition": text} for key, text in EVERY_KIND.items()]
    )
    result = tamis(
        "stream", "--events", str(tmp_path / "arriving"), "--subscriptions", wanted, "--out", str(tmp_path / "out"),
        "--checkpoint", str(tmp_path / "checkpoint"), "--time", "at", "--once", "--files", "1", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told = parquet.read_table(tmp_path / "out").to_pylist()
    assert json.loads(result.stdout)["rows_total"] == len(told)
    assert {(row["subscription_id"], tuple(row["events"])) for row in told if row["subscription_id"] != "ranked"} == {
        ("sequence", (2, 3)), ("sequence", (2, 4)), ("change", (1,)), ("change", (4,)),
    }  # fmt: skip
    assert {row["events"][0] for row in told if row["subscription_id"] == "ranked"} >= {0, 1, 2, 3, 4}
