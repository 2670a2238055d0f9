from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.conftest import environment, tamis
from tests.cli.test_program import without_pyspark

EVENTS = [{"number": number, "price": number, "name": "Ü"} for number in range(10)]
LINES = "".join(json.dumps(event) + "\n" for event in EVENTS)


@pytest.fixture
def rules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.csv").write_text("subscription_id,condition\ncheap,price < 3\ncheap,price < 9\nbad,price <\n")
    return tmp_path


def test_events_of_a_pipe_become_matches_without_java_and_without_pyspark(rules):
    done = without_pyspark("run", "--subscriptions", "rules.csv", "--keep", "number", cwd=rules, input=LINES.encode())
    assert done.returncode == 0, done.stderr.decode()
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows == [{"number": number, "subscription_id": "cheap"} for number in range(3)]
    told = done.stderr.decode()
    assert "2 rows are no subscriptions, and left out" in told
    assert "10 events, 3 matches" in told
    assert len((rules / "rules.rejected.jsonl").read_text().splitlines()) == 2


def test_strict_exits_with_1_and_writes_nothing(rules):
    result = tamis("run", "--subscriptions", "rules.csv", "--strict", input=LINES)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert [path.name for path in rules.iterdir()] == ["rules.csv"]


def test_whoever_writes_slowly_is_answered_at_once(rules):
    program = subprocess.Popen(
        [sys.executable, "-m", "tamis", "run", "--subscriptions", "rules.csv"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=rules, env=environment({}),
    )  # fmt: skip
    for price in (1, 2):
        program.stdin.write(b'{"price": %d}\n' % price)
        program.stdin.flush()
        assert json.loads(program.stdout.readline())["price"] == price, "before the input has ended"
    program.stdin.close()
    assert program.wait(60) == 0


def test_lines_that_are_no_events_are_left_out_and_told(rules):
    result = tamis("run", "--subscriptions", "rules.csv", input='{"price": 1}\n[1]\n{no\n\n{"price": 2}')
    assert len(result.stdout.splitlines()) == 2
    assert "2 lines are no JSON objects, and left out" in result.stderr


def test_rules_that_could_match_nothing_are_named(rules):
    (rules / "rules.csv").write_text("subscription_id,condition\n1,prize < 3\n2,name > 5\n3,price < 3\n")
    result = tamis("run", "--subscriptions", "rules.csv", input=LINES)
    assert "no event had the attribute prize" in result.stderr
    assert "name is compared with numbers, and events had only texts" in result.stderr


def test_a_table_is_matched_into_a_folder_and_the_same_by_match(rules):
    parquet.write_table(pa.Table.from_pylist(EVENTS), "events.parquet")
    arguments = ("--subscriptions", "rules.csv", "--events", "events.parquet")
    assert tamis("run", *arguments, "--out", "out.jsonl").exit_code == 0
    assert tamis("match", *arguments, "--out", "pairs.jsonl").exit_code == 0
    rows = [
        [json.loads(line) for file in (rules / name).glob("part*") for line in file.read_text().splitlines()]
        for name in ("out.jsonl", "pairs.jsonl")
    ]
    assert rows[0] == rows[1] and len(rows[0]) == 3


def test_matches_go_to_a_webhook(rules):
    from tests.spark.webhook_receiver import Receiver

    with closing(Receiver()) as receiver:
        result = tamis("run", "--subscriptions", "rules.csv", "--keep", "number", "--out", receiver.url, input=LINES)
        assert result.exit_code == 0, result.stderr
        assert [row["number"] for row in receiver.rows()[0]] == [0, 1, 2]


def test_events_of_nats_become_messages_of_nats(rules):
    pytest.importorskip("nats")
    from tests.spark.nats_server import NatsServer

    server = NatsServer(rules / "nats")
    try:
        events, matches = server.make("IN", subjects=["in.a"]), server.make("OUT", subjects=["out.>"])
        server.publish("IN", [line.encode() for line in LINES.splitlines()], subject="in.a")
        result = tamis(
            "run", "--subscriptions", "rules.csv", "--events", events, "--keep", "number",
            "--out", f"{matches}?subject=out.{{subscription_id}}",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert "10 events, 3 matches" in result.stderr
        found = [(message.subject, json.loads(message.body)["number"]) for message in server.messages("OUT")]
        assert found == [("out.cheap", number) for number in range(3)]
    finally:
        server.stop()


def test_file_addresses_are_paths_and_what_spark_reaches_is_refused(rules):
    (rules / "events.jsonl").write_text(LINES)
    for place, name in (("file:", "one"), ("file://", "two")):
        result = tamis(
            "run", "--subscriptions", f"{place}{rules}/rules.csv", "--events", f"{place}{rules}/events.jsonl",
            "--out", f"{place}{rules}/{name}.parquet", "--rejected", f"{place}{rules}/{name}.jsonl",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert parquet.read_table(rules / f"{name}.parquet").num_rows == 3
        assert len((rules / f"{name}.jsonl").read_text().splitlines()) == 2
    before = sorted(path.name for path in rules.iterdir())
    for given in (("--out", "hdfs:/a/pairs.csv"), ("--rejected", "s3a://b/bad.csv"), ("--events", "s3a://b/a.csv")):
        result = tamis("run", "--subscriptions", "rules.csv", *given, input="")
        assert result.exit_code == 2
        assert "is reached by Spark" in result.stderr
    assert sorted(path.name for path in rules.iterdir()) == before
