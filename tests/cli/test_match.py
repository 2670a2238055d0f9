from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tamis.matching import Matcher
from tamis.workloads import WORKLOADS
from tests.cli.conftest import program, tamis

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


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_lists_are_in_the_order_of_the_priorities_of_the_rules(engine, tmp_path, spark):
    assert spark is not None
    (tmp_path / "rules.csv").write_text(
        "subscription_id,condition,priority\nlow,price < 20,1\nhigh,price < 30,5\nnone,price < 40,\n"
    )
    (tmp_path / "events.jsonl").write_text('{"price": 12}\n{"price": 25}\n')
    result = tamis(
        "match", "--events", str(tmp_path / "events.jsonl"), "--subscriptions", str(tmp_path / "rules.csv"),
        "--out", str(tmp_path / "lists.jsonl"), "--result", "lists", "--engine", engine,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = [line for part in (tmp_path / "lists.jsonl").glob("part-*") for line in part.read_text().splitlines()]
    found = {row["price"]: row["subscription_ids"] for row in map(json.loads, lines)}
    assert found == {12: ["high", "low", "none"], 25: ["high", "none"]}


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
    assert "1 row is not a subscription, and left out" in result.stderr
    (rejected,) = [json.loads(line) for line in (tmp_path / "rejected.jsonl").open()]
    assert rejected["name"] == "bad"
    assert "Did you mean price?" in rejected["message"]


def test_mistakes_are_told_before_anything_takes_time(files, tmp_path):
    folder, _ = files
    events, subscriptions = str(folder / "events.parquet"), str(folder / "subscriptions.parquet")
    for arguments, told in (
        (("--events", "nowhere.csv", "--subscriptions", subscriptions, "--out", "x.csv"), "nowhere.csv does not exist"),
        (("--events", events, "--subscriptions", subscriptions, "--out", events), "already exists"),
        (
            ("--events", events, "--subscriptions", subscriptions, "--out", str(tmp_path / "x.xlsx")),
            "does not tell its format",
        ),
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
        monkeypatch.setattr(module, "SPARK_FROM_BYTES", 1)
    tamis(*arguments)
    assert seen == [True, False, False]


@pytest.fixture
def addressed(tmp_path, monkeypatch):
    """A folder with events and rules, one of which is bad; we stand in another, which has to stay empty."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    parquet.write_table(pa.table({"number": range(10)}), tmp_path / "there" / "events.parquet")
    rules = "subscription_id,condition\nfew,number < 3\nbad,number <\n"
    (tmp_path / "there" / "rules.csv").write_text(rules)
    yield tmp_path / "there"
    assert not list((tmp_path / "here").iterdir()), "something lies in a folder that is called like a scheme"


def match_at(place, *more, rejected=None):
    aside = ("--rejected", rejected) if rejected else ()
    return (
        "match", "--events", f"{place}/events.parquet", "--subscriptions", f"{place}/rules.csv",
        "--out", f"{place}/pairs.parquet", "--json", *aside, *more,
    )  # fmt: skip


@pytest.mark.parametrize("engine", ["auto", "local", "spark"])
@pytest.mark.parametrize("kind", ["path", "file:/", "file:///", "viewfs"])
def test_every_place_may_be_an_address_of_every_kind_in_every_engine_that_reaches_it(addressed, spark, kind, engine):
    from tests.spark.test_folders import address

    place = address(spark, addressed, kind)
    result = tamis(*match_at(place, "--engine", engine, rejected=f"{place}/aside/bad.jsonl"))
    if (kind, engine) == ("viewfs", "local"):
        assert result.exit_code == 2
        message = json.loads(result.stdout)["error"]["message"]
        assert message == "the local engine cannot do this: viewfs: addresses are read and written by Spark"
        assert len(list(addressed.iterdir())) == 2
        return
    document = json.loads(result.stdout)
    assert document["engine"] == ("local" if engine != "spark" and kind != "viewfs" else "spark")
    assert (document["rows"], document["out"]) == (3, f"{place}/pairs.parquet")
    assert document["rejected_file"] == f"{place}/aside/bad.jsonl"
    assert sorted(parquet.read_table(addressed / "pairs.parquet")["number"].to_pylist()) == [0, 1, 2]
    (line,) = (addressed / "aside" / "bad.jsonl").read_text().splitlines()
    assert json.loads(line)["subscription_id"] == "bad"
    # What is there is replaced only if somebody says so; rejected rows lie beside the matches if nobody says where.
    again = tamis(*match_at(place, "--engine", engine))
    assert (again.exit_code, "already exists" in again.stdout) == (2, True)
    document = json.loads(tamis(*match_at(place, "--engine", engine, "--overwrite")).stdout)
    assert (document["rows"], document["rejected_file"]) == (3, f"{place}/pairs.rejected.jsonl")
    assert (addressed / "pairs.rejected.jsonl").is_file()


@pytest.mark.parametrize("given", ["events", "subscriptions", "out", "rejected"])
def test_one_address_that_only_spark_reaches_is_enough_to_take_spark(addressed, spark, given):
    from tests.spark.test_folders import address

    names = {"events": "events.parquet", "subscriptions": "rules.csv", "out": "pairs.csv", "rejected": "bad.csv"}
    far = address(spark, addressed, "viewfs")
    places = {name: f"{far if name == given else addressed}/{file}" for name, file in names.items()}
    arguments = [word for name, place in places.items() for word in (f"--{name}", place)]
    refused = tamis("match", *arguments, "--engine", "local", "--json")
    assert "viewfs: addresses are read and written by Spark" in json.loads(refused.stdout)["error"]["message"]
    document = json.loads(tamis("match", *arguments, "--json").stdout)
    assert (document["engine"], document["rows"], document["rejected"]) == ("spark", 3, 1)
    assert (addressed / "pairs.csv" / "_SUCCESS").is_file()
    assert (addressed / "bad.csv").is_file()


def test_a_program_of_its_own_writes_rejected_rows_to_an_address_before_its_spark_ends(addressed, tmp_path):
    (tmp_path / "conf").mkdir()
    settings = f"spark.hadoop.fs.viewfs.mounttable.far.link./data file://{addressed}\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(settings)
    done = program(*match_at("viewfs://far/data"), env={"SPARK_CONF_DIR": str(tmp_path / "conf")})
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["rejected_file"] == "viewfs://far/data/pairs.rejected.jsonl"
    assert len((addressed / "pairs.rejected.jsonl").read_text().splitlines()) == 1


def test_addresses_that_mean_nothing_are_told(addressed):
    for place, told in (
        (f"file://host{addressed}", "a file: address cannot name a host"),
        ("file:events", "a file: address needs an absolute path"),
        (f"file:{addressed}/none", f"file:{addressed}/none/events.parquet does not exist"),
        ("nope://bucket", "nope"),
    ):
        result = tamis(*match_at(place))
        assert result.exit_code == 2, result.stdout
        assert told in json.loads(result.stdout)["error"]["message"]
    result = tamis(*match_at(str(addressed), "--master", "sc://localhost:1", rejected="s3a://bucket/bad.csv"))
    assert "by Spark Connect" in json.loads(result.stdout)["error"]["message"]
