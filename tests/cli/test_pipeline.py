from __future__ import annotations

import json
import re

import pytest
from pyarrow import parquet
from rich.cells import cell_len

from tamis.cli.pipeline import _kind
from tamis.cli.pipeline_page import Busy, Story, bars, written
from tests.cli.conftest import tamis


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_report_counts_what_the_files_hold_and_the_page_shows_it(tmp_path):
    result = tamis("pipeline", "--events", "4000", "--subscriptions", "300", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert result.stderr == "", "Spark's words do not reach the user"
    assert max(map(cell_len, result.stdout.splitlines()[:-1])) <= 80, "but for the path of the page"
    report = json.loads((tmp_path / "report.json").read_text())
    pairs = parquet.read_table(tmp_path / "pairs.parquet")
    assert report["pairs"] == pairs.num_rows > 0
    assert report["wrong"] == 0 < report["judged_pairs"]
    assert report["explanation"]["truth"] == "true"
    busiest = report["busiest"][0]
    assert busiest["matches"] == pairs["subscription_id"].to_pylist().count(busiest["id"])
    page = (tmp_path / "index.html").read_text()
    assert f"{report['pairs']:,}" in page
    assert page.count("<svg") == 4
    assert "events a second" in result.stdout
    assert report["seconds"]["match again"] > 0, "a second pass, with workers and kernels ready"
    assert 0 < report["latencies_us"]["p50"] <= report["latencies_us"]["p99"]
    assert set(report["surroundings"]) == {"date", "machine", "versions"}
    assert all(text in page for text in report["surroundings"].values())
    kinds = [busy["condition"] for busy in report["busiest"]]
    assert len(kinds) == len({_kind(condition) for condition in kinds}), "one of each kind"
    assert sum(busy["matches_alike"] for busy in report["busiest"]) <= report["pairs"]


def test_bars_on_a_logarithmic_scale_show_what_is_rare():
    widths = [
        float(width)
        for width in re.findall(r'width="([\d.]+)" height', bars({"a": 100_000, "b": 10, "c": 0}, is_logarithmic=True))
    ]
    assert len(widths) == 2, "nothing is drawn for nothing"
    assert 0.15 < widths[1] / widths[0] < 0.25


def test_what_stands_on_the_page_is_escaped():
    story = Story(
        1, 1, 1, [Busy(1, "title = '<b>'", 1)], {1: 1}, {1: 1}, {"<i>": 1}, "", events=1, subscriptions=1, seconds={"match": 1.0}
    )  # fmt: skip
    page = written(story)
    assert "<b>'" not in page
    assert "<i>" not in page
