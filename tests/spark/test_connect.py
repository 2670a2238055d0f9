"""The commands through Spark Connect: a real server, and clients without a Java of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis.spark.java import LEAST_VERSION, java_version
from tests.ports import free_port
from tests.spark.killing import environment

pytestmark = [pytest.mark.spark, pytest.mark.slow]
pyspark = pytest.importorskip("pyspark")
CHEAP = sorted((number, 1) for number in range(100) if number % 7 < 3)
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield the address of a server that this test has started."""
    pytest.importorskip("grpc", reason="Spark Connect needs pyspark's extra `connect`")
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip("Spark needs Java")
    port = free_port()
    folder = tmp_path_factory.mktemp("server")
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    settings |= {"spark.sql.warehouse.dir": folder / "warehouse"}
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [program, "--master", "local[2]", *options, "--class", SERVER, "spark-internal"]
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment(), cwd=folder, start_new_session=True
        )
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "server.log").read_text()[-3000:]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rules.csv").write_text("subscription_id,condition\n1,price < 3\n2,price <\n")
    (tmp_path / "arriving").mkdir()
    arrive(tmp_path, 0)
    return tmp_path


def arrive(folder, first):
    numbers = range(first, first + 50)
    table = pa.table({"number": numbers, "price": [number % 7 for number in numbers]})
    parquet.write_table(table, folder / "arriving" / f"{first}.parquet")


def client(*arguments):
    """Run a command that has no Java; return the document it answers with."""
    env = environment() | {"JAVA_HOME": "/nowhere"}
    command = [sys.executable, "-m", "tamis.cli", *map(str, arguments), "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return json.loads(done.stdout)


def test_tables_are_matched_through_spark_connect(server, folder):
    arrive(folder, 50)
    told = client(
        "match", "--events", folder / "arriving" / "0.parquet", "--subscriptions", folder / "rules.csv",
        "--out", folder / "pairs.parquet", "--keep", "number", "--master", server,
    )  # fmt: skip
    assert (told["subscriptions"], told["rejected"]) == (1, 1)
    rows = parquet.read_table(folder / "pairs.parquet").to_pylist()
    assert sorted((row["number"], row["subscription_id"]) for row in rows) == [pair for pair in CHEAP if pair[0] < 50]


def test_streams_are_matched_through_spark_connect_and_go_on(server, folder):
    from tamis.spark import commits

    def once():
        return client(
            "stream", "--events", folder / "arriving", "--subscriptions", folder / "rules.csv", "--out", folder / "out",
            "--checkpoint", folder / "checkpoint", "--keep", "number", "--once", "--master", server,
        )  # fmt: skip

    assert once()["events_total"] == 50
    arrive(folder, 50)
    (folder / "rules.csv").write_text("subscription_id,condition\n1,price < 3\n3,number = 60\n")
    told = once()
    assert (told["events_total"], told["version"], told["subscriptions"]) == (50, 2, 2)
    assert told["trigger_seconds_total"] > 0
    found = [row for record in commits(folder / "out") for row in parquet.read_table(folder / "out" / f"batch={record['batch']}").to_pylist()]  # fmt: skip
    assert sorted((row["number"], row["subscription_id"]) for row in found) == sorted([*CHEAP, (60, 3)])


IN_SQL = """
import json, sys
from pyspark.sql import SparkSession
from tamis import spark as pipeline

session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
session.range(100).selectExpr("id AS number", "id % 7 AS price").createOrReplaceTempView("events")
session.createDataFrame([("cheap", "price < 3")], "subscription_id string, condition string").createOrReplaceTempView("rules_table")
pipeline.register(session, rules={"rules": "rules_table"})
queries = {
    "column": "SELECT number FROM events WHERE array_contains(tamis_matches(struct(*), 'rules'), 'cheap')",
    "count": "SELECT number FROM events WHERE tamis_matching(struct(price), 'rules') = 1",
    "table": "SELECT number FROM tamis_match(TABLE(events), 'rules') WHERE subscription_id = 'cheap'",
}
found = {name: sorted(row.number for row in session.sql(query).collect()) for name, query in queries.items()}
compiled = pipeline.compiled(session.table("rules_table"))
matched = session.table("events").select("number", pipeline.matches(compiled).alias("ids")).where("size(ids) = 1")
found["matches"] = sorted(row.number for row in matched.collect())
print(json.dumps(found))
"""


def test_rules_are_asked_in_sql_through_spark_connect(server):
    env = environment() | {"JAVA_HOME": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", IN_SQL, server], env=env, capture_output=True, text=True, timeout=590, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    expected = [number for number, _ in CHEAP]
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(("column", "count", "table", "matches"), expected)
