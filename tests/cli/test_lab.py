from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tamis.cli import lab
from tamis_lab.experiments import LABS
from tests.cli.conftest import tamis

if TYPE_CHECKING:
    from pathlib import Path

QUICK = ("lab", "filtering", "--quick", "--only", "normal forms")


def test_without_a_name_the_labs_and_their_questions_are_listed():
    shown = tamis("lab").stdout
    for name, experiments in LABS.items():
        assert name in shown
        for experiment in experiments:
            assert experiment.key in shown
    assert lab.DESCRIPTIONS.keys() == LABS.keys()
    document = json.loads(tamis("lab", "--json").stdout)
    assert [each["key"] for each in document["labs"][0]["experiments"]] == [each.key for each in LABS["filtering"]]


def test_a_run_writes_a_page_and_tells_the_verdicts(tmp_path: Path):
    result = tamis(*QUICK, "--out", str(tmp_path / "lab"))
    assert result.exit_code == 0, result.output
    assert result.stderr == "", "without a terminal there is no progress bar"
    assert "✓ Three factors of two need eight subscriptions" in result.stdout
    assert "Of 2 published statements 2 agree, 0 roughly, 0 do not" in result.stdout
    assert sorted(path.name for path in (tmp_path / "lab").iterdir()) == ["index.html", "results.json"]


def test_a_terminal_sees_the_progress(tmp_path: Path):
    result = tamis(*QUICK, "--out", str(tmp_path), terminal=True)
    assert result.exit_code == 0
    assert "normal forms" in result.stderr


def test_programs_get_everything(tmp_path: Path):
    document = json.loads(tamis(*QUICK, "--out", str(tmp_path), "--seed", "5", "--json").stdout)
    assert document["seed"] == 5
    assert document["page"] == str(tmp_path / "index.html")
    assert document["experiments"][0]["claims"][0]["verdict"] == "agrees"
    assert json.loads((tmp_path / "results.json").read_text("utf-8"))["experiments"] == document["experiments"]


def test_mistakes_are_told(tmp_path: Path):
    for arguments, told in (
        (("lab", "filterin"), "Did you mean filtering?"),
        (("lab", "filtering", "--quick", "--full"), "quick or full, not both"),
        (("lab", "filtering", "--quick", "--only", "nothing"), "no experiment 'nothing'"),
        ((*QUICK, "--out", "/dev/null/lab"), "cannot write to /dev/null/lab"),
    ):
        result = tamis(*arguments)
        assert result.exit_code == 2, arguments
        assert told in " ".join(result.stderr.split()), result.stderr
