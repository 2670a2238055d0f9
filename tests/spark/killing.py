"""A stream as a process of its own that is killed, with all that it started, at moments that chance chooses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path


def environment():
    """The environment of a process that starts a Spark of its own."""
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")}
    return env | {"PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


class MortalStream:
    """A module that matches all that is there; `tamis stream`, if none is named.

    `commits` tells what is done: the folder, or folders, in which it is written down, or a function that counts.
    """

    def __init__(self, *arguments, commits, module=("tamis.cli", "stream", "--once"), env=None):
        self._command = [sys.executable, "-m", *module, *map(str, arguments)]
        self._committed = commits if callable(commits) else partial(_files, commits)
        self._environment = environment() | (env or {})

    def run(self):
        """Let it come to its end."""
        process = self._started()
        try:
            assert process.wait(timeout=300) == 0
        finally:
            _kill(process)

    def is_killed(self, chance):
        """Start it, and kill it in a batch or, more rarely, on its way there; False if it was done before."""
        process = self._started()
        try:
            if chance.random() < 0.7:
                last = self._committed() + chance.randrange(2)
                while self._committed() <= last and process.poll() is None:
                    time.sleep(0.01)
                time.sleep(chance.random() * 0.5)
            else:
                time.sleep(chance.uniform(4, 9))
            status = process.poll()
        finally:
            _kill(process)
        assert status in (None, 0), f"it failed by itself: {status}"
        return status is None

    def _started(self):
        return subprocess.Popen(self._command, start_new_session=True, env=self._environment)


def _files(folders):
    """How many files there are in a folder, or in several."""
    there = [Path(each) for each in (folders if isinstance(folders, tuple) else (folders,)) if Path(each).exists()]
    return sum(name[0] != "." for folder in there for name in os.listdir(folder))


def _kill(process):
    """Kill a process that we started, and its group, which has its number."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
