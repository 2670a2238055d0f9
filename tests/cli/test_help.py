from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len
from rich.text import Text

from tamis.cli import (
    app,
    asking,
    backup,
    check,
    demo,
    doctor,
    explain,
    lab,
    language,
    links,
    match,
    network,
    pipeline,
    publish,
    repair,
    run,
    serve,
    stream,
    subscribe,
    token,
    warm,
    workload,
)
from tests.cli.conftest import environment, tamis

if TYPE_CHECKING:
    from pathlib import Path

    from tamis.cli.lessons import Example

EXAMPLES = {
    (): app.EXAMPLES,
    ("check",): check.EXAMPLES,
    ("explain",): explain.EXAMPLES,
    ("language",): language.EXAMPLES,
    ("demo",): demo.EXAMPLES,
    ("doctor",): doctor.EXAMPLES,
    ("warm",): warm.EXAMPLES,
    ("match",): match.EXAMPLES,
    ("run",): run.EXAMPLES,
    ("stream",): stream.EXAMPLES,
    ("pipeline",): pipeline.EXAMPLES,
    ("workload",): workload.EXAMPLES,
    ("lab",): lab.EXAMPLES,
    ("serve",): serve.EXAMPLES,
    ("publish",): publish.EXAMPLES,
    ("subscribe",): subscribe.EXAMPLES,
    ("token",): token.EXAMPLES,
    ("try",): asking.TRY_EXAMPLES,
    ("why",): asking.WHY_EXAMPLES,
    ("dead",): asking.DEAD_EXAMPLES,
    ("repair",): repair.EXAMPLES,
    ("backup",): backup.EXAMPLES,
    ("restore",): backup.RESTORE_EXAMPLES,
    ("links",): links.EXAMPLES,
    ("top",): links.TOP_EXAMPLES,
    ("network",): network.EXAMPLES,
}
ON_SPARK = [("match",), ("stream",), ("pipeline",)]
"""Each example of these starts a Java machine of its own."""
_NEEDS_SHELL = set("|&;$*?<>`")
"""What only a shell understands; inside of quotes it may mean nothing, and then a shell does no harm."""
of_every_command = pytest.mark.parametrize("command", EXAMPLES, ids=lambda command: " ".join(command) or "tamis")


def help_of(command: tuple[str, ...]) -> str:
    return Text.from_ansi(tamis(*command, "--help").stdout).plain


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=[pytest.mark.spark, pytest.mark.slow] if command in ON_SPARK else [])
        for command in EXAMPLES
    ],
    ids=lambda command: " ".join(command) or "tamis",
)
def test_every_example_of_a_help_runs(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Examples build on each other, so they run in their order and in one directory."""
    program = tmp_path / "bin" / "tamis"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tamis.cli "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    env = environment({"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"})
    for example in EXAMPLES[command]:
        words = shlex.split(example.command.replace("\\\n", " "))
        if words[0] == "tamis" and command not in ON_SPARK and not _NEEDS_SHELL & set(example.command):
            result = tamis(*words[1:])  # in this process: a program of its own would import everything anew
            assert result.exit_code == example.exit_code, f"{example.command}\n{result.output}"
            continue
        done = subprocess.run(
            ["sh", "-c", example.command], cwd=tmp_path, env=env, capture_output=True, check=False, timeout=120
        )
        assert done.returncode == example.exit_code, f"{example.command}\n{done.stderr.decode()}"
        assert b"Traceback" not in done.stderr


@of_every_command
def test_every_example_stands_in_its_help(command: tuple[str, ...]):
    shown = help_of(command)
    for example in EXAMPLES[command]:
        for line in _lines(example):
            assert any(row.strip() == line for row in shown.splitlines()), "an example is never broken by the terminal"
        assert example.shows in shown


@of_every_command
def test_no_example_of_a_help_is_left_untested(command: tuple[str, ...]):
    written = [line.strip() for line in help_of(command).splitlines() if line.strip().startswith("$ ")]
    assert written == [_lines(example)[0] for example in EXAMPLES[command]]


@of_every_command
def test_a_help_fits_eighty_columns(command: tuple[str, ...]):
    assert max(map(cell_len, help_of(command).splitlines())) <= 80


@of_every_command
def test_every_command_answers_in_json(command: tuple[str, ...]):
    assert "--json" in help_of(command)


@of_every_command
def test_flags_are_shown_as_people_write_them(command: tuple[str, ...]):
    assert "<bool>" not in help_of(command).lower()


def test_the_short_option_helps_too():
    assert tamis("check", "-h").stdout == tamis("check", "--help").stdout


def test_without_a_command_there_is_help():
    assert "Usage: tamis" in tamis().output


def test_a_misspelt_command_gets_a_hint():
    result = tamis("chek")
    assert result.exit_code == 2
    assert "check" in result.stderr


def _lines(example: Example) -> list[str]:
    return [line.strip() for line in f"$ {example.command}".split("\n")]
