"""A lab is run and written down."""

from __future__ import annotations

import json

import pytest

from tamis.lab import LABS, LabError, MissingPlotsError, run, running, write


def test_a_quick_run_is_written_as_a_page_and_as_data(tmp_path):
    heard = []
    report = run(
        "filtering",
        scale="quick",
        seed=3,
        only=["normal forms", "deregistration"],
        tell=lambda *told: heard.append(told),
    )
    page, results = write(report, tmp_path / "made" / "here")
    document = json.loads(results.read_text("utf-8"))
    assert document["lab"] == "filtering" and document["seed"] == 3
    assert document["scale"]["name"] == "quick"
    assert [each["key"] for each in document["experiments"]] == ["deregistration", "normal forms"]
    for experiment in document["experiments"]:
        assert experiment["claims"] and experiment["rows"] and experiment["seconds"] > 0
        assert {"statement", "published", "ours", "verdict", "where", "remark"} <= experiment["claims"][0].keys()
    text = page.read_text("utf-8")
    for claim in report.claims:
        assert claim.verdict in text
    assert "quick run at toy size" in text
    assert heard[0][:2] == (0, 2) and heard[-1] == (2, 2, "")
    assert any("deregistration: " in doing for _, _, doing in heard)


def test_an_unknown_experiment_is_told_with_those_there_are():
    with pytest.raises(LabError, match=r"no experiment 'nothing', only turning points, commonality"):
        run("filtering", only=["nothing"])


def test_without_the_package_that_draws_nothing_is_begun(monkeypatch):
    monkeypatch.setattr(running, "find_spec", lambda name: None)
    with pytest.raises(MissingPlotsError, match=r"pip install 'tamis\[lab\]'"):
        run("filtering", only=["normal forms"])


def test_every_lab_has_experiments():
    assert LABS.keys() >= {"filtering", "topk"}
    assert len(LABS["filtering"]) >= 15
    assert len(LABS["topk"]) >= 8


@pytest.mark.slow
def test_the_whole_lab_runs_quickly(tmp_path):
    report = run("filtering", scale="quick")
    write(report, tmp_path)
    assert len(report.claims) > 50
