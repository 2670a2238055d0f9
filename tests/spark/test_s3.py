"""A real connector to S3, and a server that speaks S3: every folder may be in a bucket, and a stream may be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import pytest

pipeline = pytest.importorskip("tamis.spark")

from tamis.spark.java import LEAST_VERSION, java_version  # noqa: E402
from tests.spark import s3_program, s3_server  # noqa: E402
from tests.spark.killing import MortalStream, environment  # noqa: E402
from tests.spark.test_killing import SUBSCRIPTIONS, arguments, killed  # noqa: E402
from tests.spark.worlds import World  # noqa: E402

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def store(tmp_path):
    """A bucket, and in `env` what makes a Spark of its own reach it."""
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip("Spark needs Java")
    jars = s3_server.jars(tmp_path / "maven")
    store = s3_server.Store(tmp_path)
    (tmp_path / "conf").mkdir()
    settings = "".join(f"{name} {value}\n" for name, value in store.settings(jars).items())
    (tmp_path / "conf" / "spark-defaults.conf").write_text(settings)
    store.env = {"SPARK_CONF_DIR": str(tmp_path / "conf")}
    yield store
    store.stop()


def test_every_folder_may_be_in_a_bucket_and_of_writers_at_once_one_wins(store, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    done = subprocess.run(
        [sys.executable, s3_program.__file__, store.place], cwd=here, env=environment() | store.env, capture_output=True, text=True,
        timeout=1500, check=False,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr[-3000:]
    assert os.listdir(here) == []
    above = {key.partition("/")[0] for key in store.names()}
    assert above >= {"rules", "out", "checkpoint", "fed", "feeding", "rejected", "statistics.parquet"}


def test_kills_change_nothing_where_checkpoint_matches_and_log_are_in_a_bucket(store, spark, tmp_path):
    world = World(spark, tmp_path)

    def known():
        """Bring the bucket's log to what the world's own says."""
        for path in sorted(world.log.folder.path.glob("*.parquet")):
            store.put(f"log/{path.name}", path.read_bytes())

    def change(world, done):
        world.log.change(add={1000 + done: f"price = {done % 7}"}, remove=[done])
        known()

    world.log.add(SUBSCRIPTIONS)
    known()
    world.arrive(files=8)
    places = {name: f"{store.place}/{name}" for name in ("out", "checkpoint")}
    given = arguments(world, subscriptions=f"{store.place}/log", **places)
    stream = MortalStream(*given, commits=lambda: len(store.names("out/_tamis/commits/")), env=store.env)
    killed(world, stream, kills=3, chance=Random(13), every=2, change=change)
    world.out = store.copied(tmp_path / "copied") / "out"
    assert len(world.check()) > 500
    assert len({commit["version"] for commit in pipeline.commits(world.out)}) > 1
