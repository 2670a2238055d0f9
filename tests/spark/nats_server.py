"""A real NATS server with JetStream, on a free port of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tamis.sources.jetstream import JetStreamClient, OutgoingMessage
from tamis.sources.nats_address import nats_address
from tests.ports import free_port


class NatsServer:
    """The process, and what tests do with its streams."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [
                str(Path(sys.executable).parent / "nats-server"), "-js", "-sd", str(self.folder), "-a", "127.0.0.1",
                "-p", str(self.port),
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("nats-server does not start")

    def stop(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        self.process.wait(timeout=10)

    def kill(self):
        """End it without a word, as a power cut would."""
        self.process.kill()
        self.process.wait(timeout=10)

    def url(self, stream, subject=None):
        return f"nats://127.0.0.1:{self.port}/{stream}" + (f"?subject={subject}" if subject else "")

    def connected(self, stream):
        return JetStreamClient(nats_address(self.url(stream)))

    def api(self, stream, what, **request):
        with self.connected(stream) as connection:
            return connection.ask(f"{what}.{stream}", request)

    def make(self, stream, subjects=None, **config):
        """Make a stream, and return its URL."""
        asked = {
            "name": stream, "subjects": subjects or [stream.lower()], "retention": "limits", "storage": "file",
            "discard": "old", "num_replicas": 1, "max_msgs": -1, "max_bytes": -1, "max_age": 0,
        }  # fmt: skip
        self.api(stream, "STREAM.CREATE", **(asked | config))
        return self.url(stream)

    def publish(self, stream, bodies, subject=None, headers=None):
        with self.connected(stream) as connection:
            first = connection.state().next
            connection.publish(
                [
                    OutgoingMessage(subject or stream.lower(), f"test-{first + number}", body, headers or {})
                    for number, body in enumerate(bodies)
                ]
            )

    def messages(self, stream):
        with self.connected(stream) as connection:
            state = connection.state()
            return [message for part in connection.messages(state.first, state.next) for message in part]

    def state(self, stream):
        with self.connected(stream) as connection:
            return connection.state()
