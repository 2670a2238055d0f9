"""A real Kafka broker, and Spark's connector to it, from their published jars.

Maven fetches them, with whatever mirrors and settings its user has; where it cannot, the tests say so and are skipped. The
connector of the very Spark that is installed is taken if it can be had, and the newest one before it otherwise.
"""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tamis.spark.java import java_program
from tests.ports import free_port
from tests.spark.maven import fetched, require_maven

if TYPE_CHECKING:
    from pathlib import Path

BROKER = ("org.apache.kafka:kafka_2.13:4.1.0",)
OLDER = (("4.2.0", "4.2.0"), ("4.2.0", "4.1.0-preview1"), ("4.0.0", "4.0.0"))
"""Versions of the connector, and of its part that handles tokens."""
CLIENTS = ("org.apache.kafka:kafka-clients:3.9.2", "org.apache.commons:commons-pool2:2.13.1")


def jars(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the jars of the broker and of the connector; skip the test if there are none."""
    import pyspark

    require_maven("Kafka's jars")
    of_broker = fetched(folder / "broker", BROKER, alone=False)
    if of_broker is None:
        pytest.skip("Maven cannot get Kafka's jars here")
    for number, (connector, tokens) in enumerate(((pyspark.__version__, pyspark.__version__), *OLDER)):
        wanted = (
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{connector}",
            f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{tokens}",
        )
        found = fetched(folder / f"connector{number}", wanted + CLIENTS, alone=True)
        if found is not None:
            return of_broker, found
    pytest.skip("Maven cannot get Spark's connector to Kafka here")


class Broker:
    """One node that is broker and controller, on this machine alone."""

    def __init__(self, folder: Path, of_broker: list[Path]) -> None:
        self.folder = folder
        self.port, controller = free_port(), free_port()
        options = ["-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        self._java = [str(java_program()), *options, "-cp", os.pathsep.join(map(str, of_broker))]
        self._properties = folder / "server.properties"
        self._properties.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder / "data"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
num.partitions=3
"""
        )
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        form = ["kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(self._properties)]
        subprocess.run([*self._java, *form], capture_output=True, timeout=120, check=True)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self.folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._properties)], stdout=log, stderr=log, start_new_session=True
            )
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            assert self._process.poll() is None, (self.folder / "broker.log").read_text()[-2000:]
            time.sleep(0.1)
        raise AssertionError("Kafka does not start")

    def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
