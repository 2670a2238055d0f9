"""The runs that are kept are whole, and the page about them says what is in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tamis_lab.experiments import LABS
from tamis_lab.experiments.base import SCALES
from tamis_lab.experiments.statements import statements

FOLDER = Path(__file__).parents[3] / "docs" / "results"
KEPT = sorted(path.stem for path in FOLDER.glob("*.json"))
INDEX = (FOLDER / "index.md").read_text("utf-8")


def test_every_run_has_a_page_and_every_page_a_run():
    assert KEPT and sorted(path.stem for path in FOLDER.glob("*.html")) == KEPT
    assert re.findall(r"^\| \[([\w-]+)\]\(\1\.html\) \(\[JSON\]\(\1\.json\)\)", INDEX, re.MULTILINE) == KEPT


@pytest.mark.parametrize("name", KEPT)
def test_a_run_is_about_experiments_and_statements_that_there_are(name):
    run = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    page = (FOLDER / f"{name}.html").read_text("utf-8")
    assert run["scale"]["name"] in SCALES and run["scale"]["name"] != "quick"
    questions = {experiment.key: experiment.question for experiment in LABS[run["lab"]]}
    counts = 0
    for experiment in run["experiments"]:
        assert experiment["question"] == questions[experiment["key"]] and experiment["rows"]
        known = statements(run["lab"])[experiment["key"]]
        assert {claim["key"].partition(" (")[0] for claim in experiment["claims"]} <= known.keys()
        counts += len(experiment["claims"])
    assert sum(run["counts"].values()) == counts
    assert f"Of {counts} published statements" in page and run["when"] in page


@pytest.mark.parametrize("name", KEPT)
def test_the_row_of_a_run_has_its_command_its_size_and_its_counts(name):
    run = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    (row,) = [line for line in INDEX.splitlines() if line.startswith(f"| [{name}]")]
    _, _, command, size, *counts, _ = (cell.strip() for cell in row.split("|"))
    assert [int(count) for count in counts] == list(run["counts"].values())
    assert size == run["scale"]["name"] and ("--full" in command) is (size == "full")
    asked = re.findall(r'--only (?:"([^"]+)"|(\w+))', command)
    keys = {experiment["key"] for experiment in run["experiments"]}
    assert command.startswith(f"`tamis lab {run['lab']}") and {one or other for one, other in asked} == keys
