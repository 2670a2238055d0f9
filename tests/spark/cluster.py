"""A standalone cluster on this machine: a master, and workers that can be started and killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

from tests.ports import free_port

CORES = ("--host", "127.0.0.1", "--memory", "2g")


class Cluster:
    """Processes of Spark's: all of them are ours, and end with us."""

    def __init__(self, folder):
        self._folder, self._started = folder, []
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")}
        self.env = env | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
        self.env |= {"SPARK_WORKER_DIR": str(folder / "work"), "SPARK_DAEMON_MEMORY": "256m"}
        self.env |= {"SPARK_LOCAL_DIRS": str(folder / "work-local")}
        self.env |= {"SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
        self._start("Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()))
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.2)
        raise AssertionError("the master did not start")

    def worker(self, cores=1):
        """Start a worker; its executors belong to its group of processes."""
        return self._start("Worker", *CORES, "--cores", str(cores), "--webui-port", str(free_port()), self.url)

    def driver(self, program, *arguments):
        """Start a program on the cluster, that reads from us and writes to us."""
        command = [sys.executable, program, self.url, *map(str, arguments)]
        process = subprocess.Popen(
            command, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._started.append(process)
        return process

    def executors(self, worker):
        """The process ids of the executors of a worker."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes()
                    group = os.getpgid(int(entry.name))
                except OSError:
                    continue
                is_worker = b"org.apache.spark.deploy" in words
                if b"CoarseGrainedExecutorBackend" in words and not is_worker and group == worker.pid:
                    found.append(int(entry.name))
        return found

    def _start(self, name, *arguments):
        program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
        with open(self._folder / f"{name}{len(self._started)}.log", "wb") as log:
            kind = f"org.apache.spark.deploy.{name.lower()}.{name}"
            process = subprocess.Popen(
                [program, kind, *arguments], stdout=log, stderr=log, env=self.env, start_new_session=True
            )
        self._started.append(process)
        return process

    def stop(self):
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
