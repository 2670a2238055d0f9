"""How does somebody do what a page says? Its commands are run in their order, and have to show what the page shows.

A line with `$` in a `console` block is a command, and what follows is what it shows; `…` stands for anything. A command with `&`
at its end runs on, as it would in a terminal of its own, when it has shown its lines, and perhaps others between them.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PATIENCE_S = 120


def steps(page: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a page, each with the lines that it is to show."""
    result: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                result.append((line[2:], []))
            elif result[-1][0].endswith("\\"):
                result[-1] = (result[-1][0][:-1] + line.lstrip(), [])
            elif line.strip():
                result[-1][1].append(line)
    return result


def is_shown(expected: str, line: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), line.rstrip()) is not None


@contextmanager
def terminal(folder: Path, variables: dict[str, str]):
    """Yield a function that runs a command in a folder that has the examples, and returns what it shows.

    Beside it stand the commands that run on, each with what it shows from then on.
    """
    names = {path.name for path in EXAMPLES.glob("*.py")}
    for name in names:
        shutil.copy(EXAMPLES / name, folder / name)
    binaries = folder / "bin"
    binaries.mkdir()
    for name, call in {"python": "", "tamis": " -m tamis.cli"}.items():
        (binaries / name).write_text(f'#!/bin/sh\nexec {sys.executable}{call} "$@"\n', encoding="utf-8")
        (binaries / name).chmod(0o755)
    environment = {
        **os.environ,
        **variables,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "120",
    }
    running: list[subprocess.Popen[str]] = []
    kept: list[tuple[subprocess.Popen[str], queue.Queue[str | None]]] = []

    def run(command: str, expected: list[str]) -> list[str]:
        is_kept = command.endswith("&")
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command.removesuffix('&')}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        running.append(process)
        arrived = _arriving(process)
        lines = _lines(arrived, expected if is_kept else None)
        if is_kept:
            kept.append((process, arrived))
        else:
            assert process.wait(PATIENCE_S) == 0, f"{command}\n" + "\n".join(lines)
        return lines

    try:
        yield run, kept
    finally:
        for process in running:
            process.terminate()
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


def _arriving(process: subprocess.Popen[str]) -> queue.Queue[str | None]:
    """Return a queue into which a thread puts what a process shows, and None at its end."""
    arrived: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            arrived.put(line.rstrip("\n"))
        arrived.put(None)

    threading.Thread(target=read, daemon=True).start()
    return arrived


def _lines(arrived: queue.Queue[str | None], wanted: list[str] | None = None) -> list[str]:
    """Return what a process shows: all of it; or of what is wanted what comes, in its order, and then it runs on."""
    lines: list[str] = []
    others: list[str] = []
    end = time.monotonic() + PATIENCE_S
    while wanted is None or len(lines) < len(wanted):
        line = arrived.get(timeout=max(0.1, end - time.monotonic()))
        if line is None:
            assert wanted is None, "it ended, and had shown:\n" + "\n".join(lines + others)
            break
        if line.strip() and (wanted is None or is_shown(wanted[len(lines)], line)):
            lines.append(line)
        else:
            others.append(line)
    return lines


def follow(page: str, run: Callable[[str, list[str]], list[str]]) -> None:
    """Do what a page says in a terminal; each command has to show what the page shows."""
    for command, expected in steps(page):
        lines = run(command, expected)
        shown = "\n".join(lines)
        assert len(lines) == len(expected), f"$ {command}\n{shown}"
        for wanted, line in zip(expected, lines, strict=True):
            assert is_shown(wanted, line), f"$ {command}\n{shown}\n\nexpected: {wanted}"


def do(page: str, folder: Path, variables: dict[str, str] | None = None) -> list[str]:
    """Do what a page says; return what commands that ran on have shown when they ended by themselves."""
    with terminal(folder, variables or {}) as (run, kept):
        follow(page, run)
        return [line for process, arrived in kept if process.poll() is not None for line in _lines(arrived)]
