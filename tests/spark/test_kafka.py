from __future__ import annotations

import os
import signal
import subprocess
import sys
from random import Random

import pytest
from pyarrow import parquet

pipeline = pytest.importorskip("tamis.spark")

from tamis.spark.java import LEAST_VERSION, java_version  # noqa: E402
from tamis.spark.kafka import kafka_address  # noqa: E402
from tests.cli.conftest import tamis  # noqa: E402
from tests.spark import kafka_broker, kafka_program  # noqa: E402
from tests.spark.killing import MortalStream, environment  # noqa: E402

KILLS = 4


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("kafka://localhost", "names no topic"),
        ("kafka://localhost/", "names no topic"),
        ("kafka://localhost/a,,b", "names no topic"),
        ("kafka:///events", "must name its brokers"),
        ("kafka://localhost:x/events", "'x' is not a port"),
        ("kafka://localhost:70000/events", "'70000' is not a port"),
        ("nats://localhost/events", "not a Kafka address"),
    ],
)
def test_an_address_that_is_none_is_told(url, told):
    with pytest.raises(pipeline.OptionError, match=told):
        kafka_address(url)


def test_an_address_shows_no_secrets():
    found = kafka_address("kafka://a:1,[::1]:2,[::1]/t?kafka.sasl.jaas.config=secret%3D1&startingOffsets=latest")
    assert found.brokers == "a:1,[::1]:2,[::1]:9092"
    assert found.options == {"kafka.sasl.jaas.config": "secret=1", "startingOffsets": "latest"}
    assert "secret" not in f"{found} {found!r}"


@pytest.mark.spark
def test_a_spark_without_the_connector_is_told_how_to_get_it(spark, tmp_path):
    with pytest.raises(pipeline.KafkaError, match=r"--packages org\.apache\.spark:spark-sql-kafka-0-10_2\.13:"):
        pipeline.kafka_events(spark, "kafka://127.0.0.1:1/events")
    (tmp_path / "rules.csv").write_text("subscription_id,condition\n1,price < 3\n")
    result = tamis(
        "stream", "--events", "kafka://127.0.0.1:1/events", "--subscriptions", str(tmp_path / "rules.csv"),
        "--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint"), "--once",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "no connector to Kafka" in result.stderr


@pytest.mark.slow
def test_a_connector_that_cannot_be_fetched_is_told_in_one_line(tmp_path):
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip("Spark needs Java")
    program = "import sys; from tamis import spark; from tamis.spark.kafka import kafka_packages\n"
    program += "try: spark.session(config=kafka_packages('0.0.0'), log=sys.argv[1])\n"
    program += "except spark.StartError as error: print(error)"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "spark.log")], capture_output=True, text=True, timeout=300, check=False,
        env=environment(),
    )  # fmt: skip
    assert "cannot fetch org.apache.spark:spark-sql-kafka-0-10_2.13:0.0.0" in done.stdout, done.stderr
    assert "Traceback" not in done.stderr
    assert "UNRESOLVED" in (tmp_path / "spark.log").read_text().upper()


class OtherEnd:
    """Who produces events, in a process that has the connector."""

    def __init__(self, url, jars, folder):
        self._process = subprocess.Popen(
            [sys.executable, kafka_program.__file__, url, jars, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment(),
        )  # fmt: skip
        assert self._process.stdout.readline() == "ready\n"

    def ask(self, *words):
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def end(self):
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()


@pytest.fixture
def world(tmp_path):
    """Yield the address of a topic, the connector's jars, who produces, and the broker."""
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip("Kafka and Spark need Java")
    of_broker, connector = kafka_broker.jars(tmp_path / "maven")
    (tmp_path / "kafka").mkdir()
    broker = kafka_broker.Broker(tmp_path / "kafka", of_broker)
    broker.start()
    url, jars = f"kafka://127.0.0.1:{broker.port}/events", ",".join(map(str, connector))
    try:
        other_end = OtherEnd(url, jars, tmp_path)
        try:
            yield url, jars, other_end, broker
        finally:
            other_end.end()
    finally:
        broker.kill()


@pytest.mark.spark
@pytest.mark.slow
def test_a_topic_is_matched_as_a_table_and_as_a_stream_and_kills_change_nothing(spark, world, tmp_path):
    url, jars, other_end, broker = world
    chance = Random(3)
    other_end.ask("produce", 0, 600)
    other_end.ask("match", tmp_path / "pairs")
    table = parquet.read_table(tmp_path / "pairs")
    pairs = list(zip(table["number"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {(n, 1) for n in range(600) if n % 7 < 3} | {(n, 2) for n in range(0, 600, 2)}
    assert len(set(table["partition"].to_pylist())) == 3

    log = pipeline.SubscriptionLog(tmp_path / "log")
    log.add({1: "price < 3", 2: "number % 2 = 0 AND title LIKE 'Ü%'"})
    last, kills = 600, 0
    stream = MortalStream(
        "--events", url, "--events-option", "maxOffsetsPerTrigger=60", "--jars", jars, "--subscriptions", log.path,
        "--out", tmp_path / "out", "--checkpoint", tmp_path / "checkpoint", "--keep", "number", "--keep", "offset",
        "--log", tmp_path / "spark.log", commits=tmp_path / "out" / "_tamis" / "commits",
    )  # fmt: skip
    while kills < KILLS:
        kills += stream.is_killed(chance)
        if kills == KILLS // 2:  # the world goes on while the stream is dead, and the broker has a bad day too
            broker.kill()
            broker.start()
            log.change(add={3: "price = 6"}, remove=[2])
        other_end.ask("produce", last, last + 200)
        last += 200
    stream.run()

    versions = {commit["batch"]: commit["version"] for commit in pipeline.commits(tmp_path / "out")}
    rows = pipeline.read_matches(spark, tmp_path / "out").collect()
    found = [(row.number, row.subscription_id) for row in rows]
    assert len(found) == len(set(found)), "nothing is doubled"
    assert sum(commit["rows_in"] for commit in pipeline.commits(tmp_path / "out")) == last, "nothing is lost"
    cheap = {(number, 1) for number in range(last) if number % 7 < 3}
    assert {pair for pair in found if pair[1] == 1} == cheap, "what every version asks for is found for every event"
    assert set(versions.values()) == {1, 2}
    for row in rows:
        assert row.version == versions[row.batch]
        assert row.subscription_id == 1 or row.subscription_id == (2 if row.version == 1 else 3)
