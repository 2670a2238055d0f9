"""The stream as a process of its own, killed again and again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from random import Random

import pytest

from tests.spark.test_streaming import World, pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = 20
FILES = 40


def started(world):
    """Start `tamis stream` in a process group of its own."""
    return subprocess.Popen(
        [
            sys.executable, "-m", "tamis.cli", "stream", "--events", str(world.arriving),
            "--subscriptions", str(world.log.path), "--out", str(world.out), "--checkpoint", str(world.checkpoint),
            "--keep", "number", "--keep", "price", "--once", "--files", "1", "--master", "local[2]",
        ],
        start_new_session=True,
    )  # fmt: skip


def committed(world):
    folder = world.out / "_tamis" / "commits"
    return len([name for name in os.listdir(folder) if name[0] != "."]) if folder.exists() else 0


def test_twenty_kills_at_random_moments_change_nothing_in_the_result(spark, tmp_path):
    chance = Random(5)
    world = World(spark, tmp_path)
    world.log.add({number: f"price < {number % 8} OR number = {number}" for number in range(40)})
    world.arrive(files=FILES)
    kills = 0
    while kills < KILLS:
        process = started(world)
        try:
            before = committed(world)
            # Half of the kills hit somewhere in the start, the others in the middle of a batch.
            if chance.random() < 0.7:
                while committed(world) <= before + chance.randrange(2) and process.poll() is None:
                    time.sleep(0.01)
                time.sleep(chance.random() * 0.5)
            else:
                time.sleep(chance.uniform(4, 9))
            if process.poll() is not None:
                world.arrive(files=10)  # it was done: give it more
                continue
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            process.wait()
        if kills % 5 == 0:  # the world goes on while the stream is dead
            world.log.change(add={1000 + kills: f"price = {kills % 7}"}, remove=[kills])
    assert started(world).wait(timeout=300) == 0
    assert len(world.check()) > 1_000
    assert len({commit["version"] for commit in pipeline.commits(world.out)}) > 1
