"""A shell completes commands, options and names, by the lines that docs/command-line.md says how to get."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import environment, program

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")
SHELLS = re.findall(r"_TAMIS_COMPLETE=source_(\w+) tamis", PAGE)


def test_the_page_names_the_three_shells():
    assert SHELLS == ["bash", "zsh", "fish"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_lines_of_a_shell_are_printed_without_that_shell(shell):
    printed = program(env={"_TAMIS_COMPLETE": f"source_{shell}", "SHELL": ""})
    assert printed.returncode == 0
    assert f"_TAMIS_COMPLETE=complete_{shell}" in printed.stdout.decode()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [(["tamis", "wor"], ["workload"]), (["tamis", "lab", "fil"], ["filtering"]), (["tamis", "doctor", "--js"], ["--json"])],
)  # fmt: skip
def test_bash_completes_with_the_lines_that_are_printed(words, completed, tmp_path):
    starter = tmp_path / "tamis"
    starter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tamis.cli "$@"\n')
    starter.chmod(0o755)
    lines = program(env={"_TAMIS_COMPLETE": "source_bash"}).stdout.decode()
    typed = " ".join(f"'{word}'" for word in words)
    script = f"""{lines}
COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}
_tamis_completion tamis
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    env = environment({"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=env, timeout=60)
    assert done.stdout.split() == completed
