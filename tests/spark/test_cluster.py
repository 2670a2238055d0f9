"""A real cluster on this machine: a master and two workers, one of which is killed in the middle of a job."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyarrow import parquet

from tamis.spark.java import LEAST_VERSION, java_version
from tests.spark import cluster_program

pytestmark = [pytest.mark.spark, pytest.mark.slow]
pyspark = pytest.importorskip("pyspark")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """Yield the master's address, what starts a worker, and the environment of all."""
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip("Spark needs Java")
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    env |= {"SPARK_WORKER_DIR": str(tmp_path / "work"), "SPARK_DAEMON_MEMORY": "256m"}
    started = []

    def start(name, *arguments):
        with open(tmp_path / f"{name}{len(started)}.log", "wb") as log:
            kind = f"org.apache.spark.deploy.{name.lower()}.{name}"
            process = subprocess.Popen(
                [program, kind, *arguments], stdout=log, stderr=log, env=env, start_new_session=True
            )
        started.append(process)
        return process

    start("Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()))
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.2)
    options = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
    try:
        yield url, lambda: start("Worker", *options, "--webui-port", str(free_port()), url), env
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_batch_and_a_stream_are_exact_though_a_worker_is_killed_in_the_middle_of_each(cluster, tmp_path):
    url, worker, env = cluster
    workers = [worker(), worker()]
    driver = subprocess.Popen(
        [sys.executable, cluster_program.__file__, url, str(tmp_path)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert driver.stdout.readline() == "batch\n"
        time.sleep(4)
        os.killpg(workers[0].pid, signal.SIGKILL)
        assert driver.stdout.readline() == "stream\n"
        workers.append(worker())
        driver.stdin.write("go on\n")
        driver.stdin.flush()
        assert driver.stdout.readline() == "batch 0\n"
        time.sleep(1)
        os.killpg(workers[1].pid, signal.SIGKILL)
        told = [driver.stdout.readline() for _ in range(cluster_program.FILES)]
        assert told == [*(f"batch {number}\n" for number in range(1, cluster_program.FILES)), "done\n"]
        assert driver.wait(timeout=120) == 0
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    for name, count in (("pairs", cluster_program.TASKS), ("streamed", cluster_program.FILES)):
        ids = range(count * cluster_program.ROWS)
        expected = {
            (each, number) for each in ids for number in range(97) if each % 97 == number or each == number * 31
        }
        table = parquet.read_table(tmp_path / name)
        found = list(zip(table["id"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))
        assert len(found) == len(set(found))
        assert set(found) == expected
