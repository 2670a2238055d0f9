"""A lab is run and written down."""

from __future__ import annotations

import json

import pytest

from tamis_lab.experiments import (
    LABS,
    Claim,
    Experiment,
    Judgement,
    LabError,
    MissingPlotsError,
    Report,
    Result,
    run,
    running,
    write,
)
from tamis_lab.experiments.base import SCALES


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
    assert document["counts"] == report.counts and sum(report.counts.values()) == len(report.claims)
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


def test_agreement_is_counted_apart_from_rough_agreement():
    verdicts = [Judgement.AGREES] * 4 + [Judgement.DIRECTION] * 3 + [Judgement.SAME, Judgement.TURNED]
    claims = tuple(Claim("s", "p", "o", verdict, "5") for verdict in verdicts)
    experiment = Experiment("key", "Is it so?", "Somebody", lambda *_: None)
    outcomes = ((experiment, Result("setup", claims), 1.0),)
    report = Report("routing", SCALES["quick"], 1, outcomes)
    assert report.summary == "Of 9 published statements 4 agree, 3 roughly, 2 do not"
    more = Claim("s", "p", "o", Judgement.UNMEASURED, "5"), Claim("s", "p", "o", Judgement.PREMISE, "5")
    report = Report("routing", SCALES["quick"], 1, ((experiment, Result("setup", claims + more), 1.0),))
    assert report.summary == "Of 11 published statements 4 agree, 3 roughly, 3 do not, 1 not measured"


def test_the_processor_is_named_if_the_system_names_it(tmp_path):
    described = tmp_path / "cpuinfo"
    described.write_text("processor\t: 0\nmodel name\t: Abacus 9000\n")
    assert running.processor(described) == "Abacus 9000"
    assert running.processor(tmp_path / "nothing")


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
