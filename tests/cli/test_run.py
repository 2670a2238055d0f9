from __future__ import annotations

import json
import subprocess
import sys
import time
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
    assert "2 rows are not subscriptions, and left out" in told
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
    assert "2 lines are not JSON objects, and left out" in result.stderr


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
        assert "can only be reached by Spark" in result.stderr
    assert sorted(path.name for path in rules.iterdir()) == before


# -- Killed, and run again


@pytest.fixture
def nats(rules):
    pytest.importorskip("nats")
    from tests.spark.nats_server import NatsServer

    (rules / "rules.csv").write_text("subscription_id,condition\nall,number >= 0\neven,number % 2 = 0\n")
    server = NatsServer(rules / "nats")
    server.make("IN", subjects=["in.a"])
    server.publish("IN", [b'{"number": %d}' % number for number in range(COUNT)], subject="in.a")
    yield server
    server.stop()


COUNT = 400
EXPECTED = {("all", number) for number in range(COUNT)} | {("even", number) for number in range(0, COUNT, 2)}


def started(rules, nats, out):
    return subprocess.Popen(
        [sys.executable, "-m", "tamis", "run", "--subscriptions", "rules.csv", "--events", nats.url("IN"), "--events-option",
         "max_messages=10", "--out", out, "--durable", "d1", "--ack-wait", "2", "--match-id", "match"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=rules, env=environment({}),
    )  # fmt: skip


def run_again(nats, out):
    """Run the same in this process, to its end; return what it says."""
    result = tamis(
        "run", "--subscriptions", "rules.csv", "--events", nats.url("IN"), "--events-option", "max_messages=10",
        "--out", out, "--durable", "d1", "--ack-wait", "2", "--match-id", "match",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return result.stderr


def test_a_run_that_was_killed_and_started_again_loses_nothing_and_repeats_have_the_ids_they_had(rules, nats):
    from tests.spark.webhook_receiver import Receiver

    class Killing(Receiver):
        """Take the tenth request, and kill who sent it before it hears of that."""

        victim = None

        def next_answer(self):
            if self.victim is None or len(self.taken) < 10:
                return 200
            self.victim.kill()
            self.victim = None
            return "take and hang up"

    with closing(Killing()) as receiver:
        first = receiver.victim = started(rules, nats, receiver.url)
        assert first.wait(120) == -9
        first.stderr.close()
        run_again(nats, receiver.url)
        rows = [row for _, body in receiver.taken for row in json.loads(body)]
    assert {(row["subscription_id"], row["number"]) for row in rows} == EXPECTED, "nothing is lost"
    assert len(rows) > len(EXPECTED), "what was under way came again"
    assert len(rows) < 2 * len(EXPECTED), "what was done did not"
    names = {(row["subscription_id"], row["number"], row["match"]) for row in rows}
    assert len(names) == len({row["match"] for row in rows}) == len(EXPECTED), "one id for one match"


def test_a_run_from_nats_to_nats_that_was_killed_and_started_again_gives_every_match_once(rules, nats):
    out = nats.make("OUT", subjects=["out"])
    first = started(rules, nats, out)
    for _ in range(12_000):
        if first.poll() is not None or nats.state("OUT").next >= 100:
            break
        time.sleep(0.01)
    first.kill()
    first.communicate()
    before = nats.state("OUT").next - 1
    assert 0 < before < len(EXPECTED), "killed in the middle"
    run_again(nats, out)
    rows = [json.loads(message.body) for message in nats.messages("OUT")]
    assert len(rows) == len(EXPECTED), "the stream has dropped what came twice"
    assert {(row["subscription_id"], row["number"]) for row in rows} == EXPECTED
    assert "0 events, 0 matches" in run_again(nats, out), "all is done"


def test_a_second_run_of_a_table_or_a_stream_gives_the_same_ids(rules, nats):
    (rules / "events.jsonl").write_text(LINES)
    (rules / "rules.csv").write_text("subscription_id,condition\ncheap,price < 3\n")
    nats.make("OUT", subjects=["out"])
    for events in ("events.jsonl", "-"):
        more = ("--event-id", "number") if events == "-" else ()
        for _ in range(2):
            result = tamis(
                "run", "--subscriptions", "rules.csv", "--events", events, "--out", nats.url("OUT"), *more, input=LINES
            )
            assert result.exit_code == 0, result.stderr
    assert len(nats.messages("OUT")) == 6, "each of three matches once by its place and once by its attribute"
    (rules / "rules.csv").write_text("subscription_id,condition\ncheap,price < 2\n")
    tamis("run", "--subscriptions", "rules.csv", "--events", "events.jsonl", "--out", nats.url("OUT"))
    assert len(nats.messages("OUT")) == 8, "another rule gives other matches"


def test_matches_are_written_to_a_folder_in_parts(rules, monkeypatch):
    from tamis.sources import arriving

    monkeypatch.setattr(arriving, "BATCH_EVENTS", 4)
    (rules / "events.jsonl").write_text(LINES)
    (rules / "rules.csv").write_text("subscription_id,condition\nall,number >= 0\n")
    for ending in ("jsonl", "parquet", "csv"):
        arguments = ("--subscriptions", "rules.csv", "--events", "events.jsonl", "--out", f"out.{ending}")
        assert tamis("run", *arguments).exit_code == 0
        assert (rules / f"out.{ending}" / "_SUCCESS").exists()
    parts = list((rules / "out.jsonl").glob("part*"))
    assert len(parts) == 3
    rows = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    assert sorted(row["number"] for row in rows) == list(range(10))
    assert parquet.read_table("out.parquet").num_rows == 10
    assert [path.name for path in rules.iterdir() if path.name.startswith(".")] == []


def test_durable_is_refused_where_it_cannot_be_kept(rules):
    assert "events of NATS" in tamis("run", "--subscriptions", "rules.csv", "--durable", "d").stderr
