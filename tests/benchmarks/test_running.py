"""Tables, options and plots of the benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.__main__ import BENCHMARKS, FULL, _arguments, _options, _table
from rich.console import Console

from benchmarks import __main__ as running

GROWTH = [
    {"workload": name, "subscriptions": count, "event_us": scale * count**power}
    for name, scale, power in (("w1", 0.1, 0.3), ("auction", 0.1, 0.31), ("expressions", 0.01, 1.0))
    for count in (1_000, 10_000, 100_000)
]
STAGES = ("encoding", "partitioning", "narrow", "bitmaps", "grouping", "table", "rest")
SHARES = [
    {"workload": name, "subscriptions": count, "event_us": 1.5, **dict.fromkeys(STAGES, 1 / 7)}
    for name in ("w1", "auction")
    for count in (1_000, 10_000)
]


def arguments(name, *words):
    return _arguments(name, _options([name, *words]))


def test_options_reach_the_benchmarks_that_ask_for_them():
    assert arguments("growth") == {}
    assert arguments("growth", "--full") == FULL["growth"]
    assert arguments("warm_up", "--full", "--subscriptions", "10") == {}
    assert arguments("churn", "--subscriptions", "10", "20", "--workloads", "w2") == {
        "subscription_count": 20,
        "name": "w2",
    }
    assert arguments("throughput", "--subscriptions", "10", "--workloads", "w1", "w2") == {
        "subscription_counts": (10,),
        "names": ("w1", "w2"),
    }


@pytest.mark.parametrize("words", [["no_such"], ["growth", "--workloads", "no_such"]])
def test_an_unknown_name_is_answered_with_the_known_ones(words, capsys):
    with pytest.raises(SystemExit):
        _options(words)
    assert "there are:" in capsys.readouterr().err


def test_a_table_of_wide_numbers_fits_into_120_columns():
    row = {
        "workload": "expressions-rare",
        "subscriptions": 1_000_000,
        "batch": 32_768,
        "match_events_per_s": 12_345_678,
        "count_events_per_s": 12_345_678,
        "event_us": 12_345.6,
        "times_the_yardstick": 123.45,
        "promised": None,
        "times_the_sliced_one": 123.45,
        "matches": 123_456_789,
        "wrong": 0,
    }
    console = Console(width=120)
    with console.capture() as printed:
        console.print(_table("throughput", [row]))
    assert "…" not in printed.get()
    assert printed.get().rstrip().splitlines()[-1].split() == [
        "expressions-rare", "1,000,000", "32,768", "12,345,678", "12,345,678", "12,346", "123.45", "123.45", "123,456,789", "0",
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", [0, 2])
def test_a_wrong_row_is_written_down_and_fails(wrong, tmp_path, monkeypatch, capsys):
    def toy(subscription_count=5, seed=1):
        """How many?"""
        yield {"subscriptions": subscription_count, "matches": 7, "wrong": wrong}

    monkeypatch.setitem(BENCHMARKS, "toy", toy)
    monkeypatch.setattr(running, "RESULTS", tmp_path / "results")
    assert running.main(["toy", "--subscriptions", "9"]) == bool(wrong)
    told = json.loads((tmp_path / "results" / "toy.json").read_text())
    assert told["rows"] == [{"subscriptions": 9, "matches": 7, "wrong": wrong}]
    assert told["arguments"] == {"subscription_count": 9, "seed": 1}
    assert "toy" in capsys.readouterr().out


def test_growth_is_drawn_with_a_label_at_each_line(tmp_path):
    plots = pytest.importorskip("benchmarks.plots", exc_type=ImportError)
    assert plots.draw(tmp_path) is None
    for name, rows in (("growth", GROWTH), ("shares_of_time", SHARES)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"rows": rows}))
    path = plots.draw(tmp_path)
    assert path.read_bytes().startswith(b"\x89PNG")
    left, right = plots.picture(GROWTH, SHARES).axes
    assert {"w1", "auction", "expressions"} <= {text.get_text() for text in left.texts}
    assert [label.get_text() for label in right.get_yticklabels()] == [
        "w1  1k",
        "w1  10k",
        "auction  1k",
        "auction  10k",
    ]


def test_labels_that_would_overlap_are_pushed_apart():
    plots = pytest.importorskip("benchmarks.plots", exc_type=ImportError)
    places = plots._apart([1.0, 1.01, 50.0], least=0.1, greatest=100)
    assert places[0] == 1.0
    assert places[1] > 1.2
    assert places[2] == 50.0


LINES = [
    {"algorithm": name, "subscriptions": count, "event_us": count / per, "note": "as hoped", "wrong": 0}
    for name, per in (("block", 1_000), ("naive", 1))
    for count in (1_000, 10_000, 100_000)
]
BARS = [
    {"what": "frames", "events": 100, "per_s": 1_234.5, "note": "", "wrong": 0},
    {"what": "single", "events": 100, "per_s": 834.5, "note": "", "wrong": 0},
]


def test_every_table_is_drawn_next_to_it(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")

    def toy():
        """Is it drawn?"""
        yield from LINES

    monkeypatch.setitem(BENCHMARKS, "toy", toy)
    monkeypatch.setattr(running, "RESULTS", tmp_path)
    assert running.main(["toy"]) == 0
    assert (tmp_path / "toy.svg").read_text().count("<path") > 10
    assert f"drawn: {tmp_path / 'toy.svg'}" in capsys.readouterr().out.replace("\n", "")


def test_many_sizes_are_lines_and_few_are_bars():
    charts = pytest.importorskip("benchmarks.charts", exc_type=ImportError)
    (lines,) = charts.chart("lines", LINES).axes
    assert [(line.get_label(), *line.get_ydata()) for line in lines.lines] == [
        ("block", 1, 10, 100),
        ("naive", 1_000, 10_000, 100_000),
    ]
    (bars,) = charts.chart("bars", BARS).axes
    assert [bar.get_width() for bar in bars.patches] == [1_234.5, 834.5]
    assert [label.get_text() for label in bars.get_yticklabels()] == ["frames", "single"]


def test_a_table_without_figures_is_not_drawn(tmp_path):
    charts = pytest.importorskip("benchmarks.charts", exc_type=ImportError)
    assert charts.draw_rows("words", [{"what": "a", "wrong": 0}, {"what": "b", "wrong": 0}], tmp_path) is None
    assert charts.draw_rows("none", [], tmp_path) is None


@pytest.mark.parametrize("name", ["otherwise", "algorithm"])
def test_a_chart_of_the_docs_is_of_the_table_beside_it(name):
    """Otherwise: `python -m benchmarks.plots` draws it again."""
    plots = pytest.importorskip("benchmarks.plots", exc_type=ImportError)
    docs = Path(__file__).parents[2] / "docs"
    rows = getattr(plots, f"{name}_rows")((docs / "measurements.md").read_text("utf-8"))
    assert len(rows) > 3
    (picture,) = (docs / "images").glob(f"{name}*.svg")
    assert plots.digest(rows) in picture.read_text("utf-8")
