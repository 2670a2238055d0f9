from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tamis.matching import Matcher
from tamis.workloads import WORKLOADS
from tests.cli.conftest import tamis

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]  # the command takes the session that is there


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Events and subscriptions in every format, and the pairs."""
    folder = tmp_path_factory.mktemp("files")
    made = WORKLOADS["auction"]()
    events = made.events(400, seed=1).append_column("number", pa.array(range(400)))
    events = events.cast(
        pa.schema([(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in events.schema])
    )
    subscriptions = made.subscriptions(300, seed=1).select(["subscription_id", "condition"])
    for name, table in (("events", events), ("subscriptions", subscriptions)):
        parquet.write_table(table, folder / f"{name}.parquet")
        csv.write_csv(table, folder / f"{name}.csv")
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    local = Matcher()
    local.add_many(subscriptions)
    pairs = local.match_batch(events)
    return folder, set(zip(*(column.to_pylist() for column in pairs.columns), strict=True))


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_every_format_gives_the_same_pairs_in_every_engine(files, ending, engine, tmp_path, spark):
    folder, expected = files
    out = tmp_path / f"pairs.{ending}"
    result = tamis(
        "match", "--events", str(folder / f"events.{ending}"), "--subscriptions", str(folder / f"subscriptions.{ending}"),
        "--out", str(out), "--keep", "number", "--json", "--engine", engine,
    )  # fmt: skip
    document = json.loads(result.stdout)
    assert (document["rows"], document["rejected"], document["subscriptions"]) == (len(expected), 0, 300)
    if ending == "parquet":
        rows = parquet.read_table(out).to_pylist()
    elif ending == "jsonl":
        rows = [json.loads(line) for path in out.glob("*.json") for line in path.read_text().splitlines()]
    else:
        rows = [row for path in out.glob("*.csv") for row in csv.read_csv(path).to_pylist()]
    assert {(row["number"], row["subscription_id"]) for row in rows} == expected
    assert spark.range(1).count() == 1, "a session that was there stays"


def test_what_is_rejected_is_told_and_kept(files, tmp_path):
    folder, _ = files
    rules = tmp_path / "rules.csv"
    rules.write_text("name,rule\ngood,price < 20\nbad,prize < 20\n")
    result = tamis(
        "match", "--events", str(folder / "events.parquet"), "--subscriptions", str(rules), "--id", "name", "--where", "rule",
        "--engine", "spark", "--out", str(tmp_path / "counts.csv"), "--result", "counts", "--rejected", str(tmp_path / "rejected.jsonl"),
    )  # fmt: skip
    assert result.exit_code == 0
    assert "400 events" in result.stdout
    assert "1 row is no subscription, and left out" in result.stderr
    (rejected,) = [json.loads(line) for line in (tmp_path / "rejected.jsonl").open()]
    assert rejected["name"] == "bad"
    assert "Did you mean price?" in rejected["message"]


def test_mistakes_are_told_before_anything_takes_time(files, tmp_path):
    folder, _ = files
    events, subscriptions = str(folder / "events.parquet"), str(folder / "subscriptions.parquet")
    for arguments, told in (
        (("--events", "nowhere.csv", "--subscriptions", subscriptions, "--out", "x.csv"), "nothing at nowhere.csv"),
        (("--events", events, "--subscriptions", subscriptions, "--out", events), "is there already"),
        (("--events", events, "--subscriptions", subscriptions, "--out", str(tmp_path / "x.xlsx")), "says nothing"),
    ):
        result = tamis("match", *arguments)
        assert result.exit_code == 2
        assert told in " ".join(result.stderr.split())
    assert not list(Path(tmp_path).iterdir())


def test_without_java_there_is_one_clear_message(files, tmp_path, monkeypatch):
    folder, _ = files
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = tamis(
        "match", "--events", str(folder / "events.csv"), "--subscriptions", str(folder / "subscriptions.csv"), "--out", "x.csv",
        "--engine", "spark",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "Spark needs Java 17 or newer" in result.stderr
    assert "Traceback" not in result.stderr


def test_java_is_quick_only_for_small_files_and_where_no_master_is_named(files, tmp_path, monkeypatch):
    from tamis import spark as on_spark
    from tamis.cli import engines, match

    folder, _ = files
    seen = []
    whole = on_spark.running

    def noted(master=None, **options):
        seen.append(options["quick"])
        return whole(master, **options)

    monkeypatch.setattr(on_spark, "running", noted)
    arguments = ("match", "--events", str(folder / "events.csv"), "--subscriptions", str(folder / "subscriptions.csv"))
    arguments = (*arguments, "--out", str(tmp_path / "x.csv"), "--overwrite")
    tamis(*arguments, "--engine", "spark")
    tamis(*arguments, "--master", "local[2]")
    for module in (engines, match):
        monkeypatch.setattr(module, "LARGE", 1)
    tamis(*arguments)
    assert seen == [True, False, False]
