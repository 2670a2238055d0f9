"""A real cluster on this machine, of which executors and whole workers are killed in the middle of a job."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from pyarrow import parquet

from tamis.spark.java import LEAST_VERSION, java_version
from tests.spark import changing_program, cluster_program

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")


@pytest.fixture
def cluster(tmp_path):
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip("Spark needs Java")
    from tests.spark.cluster import Cluster

    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()


def say(driver, line):
    driver.stdin.write(f"{line}\n")
    driver.stdin.flush()


def check_changes(folder, versions):
    """Look at what came out of `changing_program`: the plain meaning of the rules, version by version."""
    expected = []
    for version in range(versions):
        in_force = {}
        for number in range(version + 1):
            in_force |= changing_program.rules(number)
            in_force.pop(number - 3, None)
        rows = changing_program.ROWS
        for each in range(version * rows, (version + 1) * rows):
            fitting = [rule for rule in in_force if (each < rule - 100 if rule >= 100 else each % (rule + 2) == 0)]
            expected += [[each, rule, version + 1, version] for rule in fitting]
    assert json.loads((folder / "rows.json").read_text()) == sorted(expected)


@pytest.mark.parametrize("versions", [6, pytest.param(10, marks=pytest.mark.slow)])
def test_a_stream_of_many_versions_goes_on_when_an_executor_is_killed_and_so_does_the_session(
    cluster, tmp_path, versions
):
    worker = cluster.worker(cores=2)
    driver = cluster.driver(changing_program.__file__, tmp_path, versions, "once")
    assert driver.stdout.readline() == "kill\n"
    first, *_ = cluster.executors(worker)
    os.kill(first, signal.SIGKILL)  # the master has another one started, which joins late
    while first in cluster.executors(worker) or len(cluster.executors(worker)) < changing_program.EXECUTORS:
        time.sleep(0.1)
    say(driver, "go on")
    assert driver.stdout.readline() == "done\n"
    # The host keeps what the stream still uses and what was compiled for the table: not all versions.
    assert 1 < len(list(tmp_path.glob("work-local/**/*.forest"))) < 6
    assert driver.wait(timeout=120) == 0
    check_changes(tmp_path, versions)


@pytest.mark.slow
def test_a_worker_is_lost_with_all_that_it_had_and_another_joins_and_nothing_differs(cluster, tmp_path):
    workers = [cluster.worker(), cluster.worker()]
    driver = cluster.driver(changing_program.__file__, tmp_path, 10, "twice")
    assert driver.stdout.readline() == "kill\n"
    os.killpg(workers[0].pid, signal.SIGKILL)
    cluster.worker()
    say(driver, "go on")
    assert driver.stdout.readline() == "done\n"
    assert driver.wait(timeout=120) == 0
    check_changes(tmp_path, 10)


@pytest.mark.slow
def test_a_batch_and_a_stream_are_exact_though_a_worker_is_killed_in_the_middle_of_each(cluster, tmp_path):
    workers = [cluster.worker(), cluster.worker()]
    driver = cluster.driver(cluster_program.__file__, tmp_path)
    assert driver.stdout.readline() == "batch\n"
    time.sleep(4)
    os.killpg(workers[0].pid, signal.SIGKILL)
    assert driver.stdout.readline() == "stream\n"
    workers.append(cluster.worker())
    say(driver, "go on")
    assert driver.stdout.readline() == "batch 0\n"
    time.sleep(1)
    os.killpg(workers[1].pid, signal.SIGKILL)
    told = [driver.stdout.readline() for _ in range(cluster_program.FILES)]
    assert told == [*(f"batch {number}\n" for number in range(1, cluster_program.FILES)), "done\n"]
    assert driver.wait(timeout=120) == 0
    for name, count in (("pairs", cluster_program.TASKS), ("streamed", cluster_program.FILES)):
        ids = range(count * cluster_program.ROWS)
        expected = {
            (each, number) for each in ids for number in range(97) if each % 97 == number or each == number * 31
        }
        table = parquet.read_table(tmp_path / name)
        found = list(zip(table["id"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))
        assert len(found) == len(set(found))
        assert set(found) == expected
