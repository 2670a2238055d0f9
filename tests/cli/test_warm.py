"""Everything is compiled ahead, and it is said where it lies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tamis import compilation
from tests.cli.conftest import tamis

WORK = """
import tamis
from tamis.workloads import WORKLOADS
for name in ("w2", "w3", "auction"):
    workload = WORKLOADS[name]()
    matcher = tamis.Matcher()
    matcher.add_many(workload.subscriptions(300, 5))
    events = workload.events(300, 6)
    rows = events.to_pylist()
    found = matcher.match_batch(events)
    assert [len(matcher.match(row)) for row in rows[:20]] == matcher.count_batch(events).to_pylist()[:20]
    matcher.match_json(b'{"number_1": 1, "word_1": "x"}')
    print(name, found.num_rows)
"""


def in_a_process(folder, *command):
    env = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, timeout=900, check=False)


def kept(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in folder.rglob("*.nbc")}


def test_it_says_how_many_kernels_lie_where():
    result = tamis("warm", "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["folder"] == str(compilation.kernel_cache())
    assert told["kernels"] >= 40
    again = json.loads(tamis("warm", "--json").stdout)
    assert (again["kernels"], again["new"]) == (told["kernels"], 0)


def test_without_a_folder_it_says_how_to_name_one(monkeypatch):
    monkeypatch.setattr(compilation, "kernel_cache", lambda: None)
    result = tamis("warm")
    assert result.exit_code == 1
    assert "NUMBA_CACHE_DIR" in result.stderr


@pytest.mark.slow
def test_whoever_starts_later_compiles_nothing(tmp_path):
    done = in_a_process(tmp_path, "-m", "tamis", "warm")
    assert done.returncode == 0, done.stderr
    before = kept(tmp_path)
    assert before
    done = in_a_process(tmp_path, "-c", WORK)
    assert done.returncode == 0, done.stderr
    assert kept(tmp_path) == before


@pytest.mark.slow
def test_two_processes_that_start_cold_together_both_match_and_leave_one_whole_cache(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: in_a_process(tmp_path, "-c", WORK), range(2)))
    assert [done.returncode for done in both] == [0, 0], both[0].stderr + both[1].stderr
    assert both[0].stdout == both[1].stdout
    before = kept(tmp_path)
    assert in_a_process(tmp_path, "-c", WORK).stdout == both[0].stdout
    assert kept(tmp_path) == before, "what they left is read, not compiled again"
