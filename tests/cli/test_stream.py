from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.conftest import tamis

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "arriving").mkdir()
    arrive(tmp_path, 0)
    (tmp_path / "rules.csv").write_text("subscription_id,condition\n1,price < 3\n2,price <\n")
    return tmp_path


def arrive(folder, first):
    table = pa.table({"number": list(range(first, first + 10)), "price": list(range(10))})
    parquet.write_table(table, folder / "arriving" / f"{first}.parquet")


def once(folder, *more):
    return tamis(
        "stream", "--events", str(folder / "arriving"), "--subscriptions", str(folder / "rules.csv"),
        "--out", str(folder / "out"), "--checkpoint", str(folder / "checkpoint"), "--keep", "number", "--once", *more,
    )  # fmt: skip


def test_a_second_run_matches_what_came_since_against_what_the_table_says_now(folder, spark):
    from tamis.spark import commits, read_matches

    assert json.loads(once(folder, "--json").stdout)["events_total"] == 10
    arrive(folder, 100)
    (folder / "rules.csv").write_text("subscription_id,condition\n3,price > 8\n")
    result = once(folder, "--metrics", str(folder / "figures.prom"))
    assert "10 events, 1 rows" in result.stdout
    found = {(row.number, row.subscription_id) for row in read_matches(spark, folder / "out").collect()}
    assert found == {(0, 1), (1, 1), (2, 1), (109, 3)}
    seen = [(commit["version"], commit["rejected"]) for commit in commits(folder / "out")]
    assert seen == [(1, 0), (2, 0)], "a bad row of a table stays out of the log"
    assert "tamis_stream_rows_total 1\n" in (folder / "figures.prom").read_text()


def test_mistakes_are_told(folder):
    result = tamis(
        "stream", "--events", "nowhere", "--subscriptions", "x", "--out", str(folder / "o"), "--checkpoint", "c", "--once"
    )  # fmt: skip
    assert result.exit_code == 2
    assert "nowhere does not exist" in result.stderr


def test_figures_are_served_on_a_port_while_the_stream_runs(folder, monkeypatch):
    from urllib.request import urlopen

    from tamis.spark.exposition import MetricsPage
    from tests.spark.prometheus_text import figures

    pages = []
    whole = MetricsPage.close

    def looked_at(page):
        with urlopen(page.url) as answer:
            pages.append((page.url, figures(answer.read().decode())))
        whole(page)

    monkeypatch.setattr(MetricsPage, "close", looked_at)
    result = once(folder, "--metrics-port", "0")
    ((url, found),) = pages
    assert url in result.stderr
    assert found["tamis_stream_events_total"] == 10
    assert found["tamis_stream_trigger_seconds_total"] > found["tamis_stream_spark_seconds_total"] > 0


def test_a_port_that_is_taken_is_told(folder):
    from tamis.spark.exposition import MetricsPage
    from tamis.spark.metrics import Metrics

    with MetricsPage(Metrics(), port=0) as page:
        result = once(folder, "--metrics-port", str(page.port))
    assert result.exit_code == 2
    assert f"port {page.port}" in result.stderr


def test_a_file_is_no_folder_in_which_events_arrive(folder):
    result = tamis(
        "stream", "--events", str(folder / "arriving" / "0.parquet"), "--subscriptions", str(folder / "rules.csv"),
        "--out", str(folder / "out"), "--checkpoint", str(folder / "checkpoint"), "--once",
    )  # fmt: skip
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert "is a file, but events arrive in a folder" in told
    assert "tamis match" in told


def test_what_spark_cannot_read_is_told_in_a_line(folder):
    (folder / "arriving" / "0.parquet").write_text("this is not Parquet")
    result = once(folder)
    assert result.exit_code == 2
    assert "Spark says: " in result.stderr
    assert "Traceback" not in result.stderr
    assert "\tat " not in result.stderr


@pytest.mark.parametrize("kind", ["file:/", "file:///", "viewfs"])
def test_every_folder_of_a_stream_may_be_an_address(folder, spark, monkeypatch, kind):
    from tamis.spark import commits, read_matches
    from tests.spark.test_folders import address

    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    place = address(spark, folder, kind)
    result = tamis(
        "stream", "--events", f"{place}/arriving", "--subscriptions", f"{place}/rules.csv", "--out", f"{place}/out",
        "--checkpoint", f"{place}/checkpoint", "--rejected", f"{place}/bad.jsonl", "--keep", "number", "--once",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert {row.number for row in read_matches(spark, f"{place}/out").collect()} == {0, 1, 2}
    assert len(commits(f"{place}/out")) == 1
    (line,) = (folder / "bad.jsonl").read_text().splitlines()
    assert json.loads(line)["subscription_id"] == 2
    assert (folder / "checkpoint" / "tamis" / "subscriptions").is_dir()
    assert not list((folder / "here").iterdir()), "something lies in a folder that is called like a scheme"
