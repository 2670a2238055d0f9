"""What the how-to guides say holds: their tables of equivalents, and the settings and commands that they show."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

import tamis
from tests.cli.conftest import tamis as run_tamis
from tests.ports import free_port
from tests.walkthrough import do

HOW_TO = Path(__file__).parent.parent / "docs" / "how-to"


def equivalents():
    for line in (HOW_TO / "moving.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and "`" in cells[1]:
            yield pytest.param(*(cell.strip("`") for cell in cells), id=cells[1].strip("`"))


EQUIVALENTS = list(equivalents())
assert len(EQUIVALENTS) > 25, "the tables are there to be tried"


@pytest.mark.parametrize(("other", "condition", "matching", "not_matching"), EQUIVALENTS)
def test_an_equivalent_of_another_system_matches_what_it_says(other, condition, matching, not_matching):
    assert other
    assert tamis.holds(tamis.parse(condition), json.loads(matching))
    assert not tamis.holds(tamis.parse(condition), json.loads(not_matching))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (HOW_TO / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_settings_of_the_guide_to_containers_are_read(tmp_path):
    from tamis.service.settings import read_settings

    (text,) = blocks("containers.md", "toml")
    file = tmp_path / "tamis.toml"
    file.write_text(text)
    settings = read_settings(file)
    assert settings.listeners[0].host == tomllib.loads(text)["listeners"][0]["host"]
    assert list(settings.roles) == ["shop"]


def test_the_commands_of_the_guides_are_accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (text,) = blocks("containers.md", "console")
    assert run_tamis(*shlex.split(text.removeprefix("$ tamis "))).exit_code == 0
    (image,) = blocks("containers.md", "dockerfile")
    program, command, *options = json.loads(image.partition("\nCMD ")[2])
    assert (program, command) == ("tamis", "serve")
    (tmp_path / "tamis.toml").write_text("")
    changed = ["tamis.toml" if option == "/etc/tamis.toml" else option for option in options]
    assert run_tamis("serve", *changed, "--check").exit_code == 0


@pytest.mark.skipif(shutil.which("curl") is None, reason="the guide uses curl")
def test_the_commands_of_the_guide_to_changes_run(tmp_path):
    port = str(free_port())
    broker = f"```console\n$ tamis serve --port {port} --data :memory: &\n✓ The broker is ready.\n```\n"
    do(broker + (HOW_TO / "changing-rules.md").read_text("utf-8").replace("7410", port), tmp_path)


def test_the_commands_of_the_guide_to_measuring_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (text,) = blocks("measuring.md", "console")
    for command in text.replace("\\\n", " ").splitlines():
        result = run_tamis(*shlex.split(command.removeprefix("$ tamis ")))
        assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] > 0
