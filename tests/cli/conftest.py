"""How the tests use the command line: inside this process, or as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tamis.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = {"COLUMNS": "80", "TERM": "xterm", "FORCE_COLOR": None, "NO_COLOR": None, "PY_COLORS": None}
"""What a pipe of 80 columns looks like, whatever the tests are run in."""
TERMINAL = PLAIN | {"FORCE_COLOR": "1"}


def tamis(*arguments: str, terminal: bool = False, **options: Any) -> Any:
    """Run a command in this process; anything but an exit is raised, so no traceback stays unseen."""
    environment = (TERMINAL if terminal else PLAIN) | options.pop("env", {})
    return CliRunner(env=environment).invoke(
        app, list(arguments), catch_exceptions=False, prog_name="tamis", color=terminal, **options
    )


def program(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m tamis.cli` as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tamis.cli", *arguments],
        capture_output=True,
        timeout=120,
        check=False,
        env=environment(options.pop("env", {})),
        **options,
    )


def environment(changes: dict[str, str]) -> dict[str, str]:
    """Return the environment of a process, as plain as `PLAIN`."""
    kept = {name: value for name, value in os.environ.items() if name not in PLAIN and name != "GITHUB_ACTIONS"}
    return kept | {name: value for name, value in PLAIN.items() if value is not None} | changes


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text('{"price": "double", "title": "string", "day": "date", "tags": "array<string>"}', encoding="utf-8")
    return path
