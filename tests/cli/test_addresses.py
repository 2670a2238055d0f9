"""Events from a real NATS server, matches to it and to a real web server; and addresses at which nobody is."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("nats")
pytest.importorskip("tamis.spark")

from tests.cli.conftest import tamis
from tests.spark.nats_server import NatsServer
from tests.spark.webhook_receiver import Receiver

CHEAP = [(number, 1) for number in range(50) if number % 7 < 3]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    found = NatsServer(tmp_path_factory.mktemp("nats"))
    found.make("EVENTS", subjects=["events.>"])
    found.make("EMPTY")
    bodies = [json.dumps({"number": number, "price": number % 7}).encode() for number in range(50)]
    found.publish("EVENTS", bodies, subject="events.books")
    found.publish("EVENTS", [b'{"colour": "red"}'], subject="events.cars")
    yield found
    found.stop()


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "rules.csv").write_text("subscription_id,condition\n1,price < 3\n")
    return str(tmp_path / "rules.csv")


def stream(folder, rules, *, events, out=None, checkpoint="checkpoint", more=()):
    return tamis(
        "stream", "--events", events, "--subscriptions", rules, "--out", out or str(folder / "out"),
        "--checkpoint", str(folder / checkpoint), "--once", *more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"events": "nats://127.0.0.1:1/EVENTS"}, "no NATS server answers at nats://127.0.0.1:1/EVENTS"),
        ({"events": "nats://{server}/NOWHERE"}, "stream not found"),
        ({"events": "nats://{server}"}, "names no stream"),
        ({"events": "nats://{server}/EVENTS", "more": ["--events-option", "max_mesages=1"]}, "Did you mean max_messages"),
        ({"events": "nats://{server}/EVENTS", "more": ["--events-option", "end=3"]}, "no option 'end'"),
        ({"events": "nats://{server}/EVENTS", "more": ["--events-option", "start"]}, "takes NAME=VALUE"),
        ({"events": "kafka://localhost"}, "names no topic"),
        ({"events": "https://example.org/events.json"}, "not fetched from web servers"),
        ({"out": "nats://127.0.0.1:1/OUT"}, "no NATS server answers"),
        ({"out": "nats://{server}/EVENTS"}, "say which one"),
        ({"out": "nats://{server}/EMPTY", "more": ["--out-option", "subjet=x"]}, "Did you mean subject"),
        ({"out": "http://a b/"}, "not a webhook address"),
        ({"out": "https://anna:secret@example.org/"}, "go into a header"),
        ({"out": "http://localhost/hook", "more": ["--out-option", "batch_rows=0"]}, "of at least 1"),
        ({"out": "kafka://localhost/matches"}, "kafka_messages"),
        ({"out": "redis://host/matches"}, "cannot go to redis://host/matches"),
        ({"out": "matches", "more": ["--out-option", "mode=append"]}, "has no option 'mode'"),
        ({"more": ["--format", "xml"]}, "There are parquet, json, csv"),
    ],
)  # fmt: skip
def test_a_wrong_address_is_told_before_spark_starts(server, tmp_path, rules, monkeypatch, given, told):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tamis.spark.running", lambda **_: pytest.fail("Spark starts"))
    given = {name: value.format(server=f"127.0.0.1:{server.port}") if isinstance(value, str) else value for name, value in given.items()}  # fmt: skip
    result = stream(tmp_path, rules, **({"events": str(tmp_path)} | given))
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert "secret" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["rules.csv"], "nothing is left behind"


def test_a_table_of_nats_is_looked_at_first_too(tmp_path, rules, monkeypatch):
    monkeypatch.setattr("tamis.spark.running", lambda **_: pytest.fail("Spark starts"))
    result = tamis(
        "match", "--events", "nats://127.0.0.1:1/EVENTS", "--subscriptions", rules, "--out", str(tmp_path / "pairs.csv")
    )
    assert result.exit_code == 2
    assert "no NATS server answers" in result.stderr


@pytest.mark.spark
def test_what_a_stream_of_nats_holds_is_a_table(server, spark, tmp_path, rules):
    url = f"{server.url('EVENTS')}?subject=events.books"
    result = tamis(
        "match", "--events", url, "--subscriptions", rules, "--out", str(tmp_path / "pairs.parquet"),
        "--keep", "number", "--keep", "sequence", "--json",
    )  # fmt: skip
    assert json.loads(result.stdout)["rows"] == len(CHEAP)
    rows = spark.read.parquet(str(tmp_path / "pairs.parquet")).collect()
    assert sorted((row.number, row.subscription_id) for row in rows) == CHEAP
    assert all(row.sequence == row.number + 1 for row in rows)


@pytest.mark.spark
def test_from_nats_into_a_folder_and_on_with_the_columns_that_were_seen(server, spark, tmp_path, rules):
    from tamis.spark import read_matches

    server.make("GROWING")
    url = server.url("GROWING")
    server.publish("GROWING", [b'{"number": 0, "price": 2}'])
    more = ("--keep", "number", "--events-option", "max_messages=10", "--json")
    assert json.loads(stream(tmp_path, rules, events=url, more=more).stdout)["events_total"] == 1
    # What comes now has other columns and types: it is read as the first was.
    server.publish(
        "GROWING", [b'{"number": 1, "price": "cheap"}', b'{"number": 2, "price": 1, "new": true}', b"no JSON"]
    )
    assert json.loads(stream(tmp_path, rules, events=url, more=more).stdout)["events_total"] == 3
    rows = read_matches(spark, tmp_path / "out").collect()
    assert sorted((row.number, row.subscription_id) for row in rows) == [(0, 1), (2, 1)]


@pytest.mark.spark
def test_from_nats_to_nats_and_to_a_webhook(server, tmp_path, rules):
    url = f"{server.url('EVENTS')}?subject=events.books"
    out = server.make("MATCHES", subjects=["matches.>"])
    keep = ("--keep", "number", "--schema", "number bigint, price bigint")
    result = stream(
        tmp_path, rules, events=url, out=out, checkpoint="a", more=(*keep, "--out-option", "subject=matches.{subscription_id}")
    )  # fmt: skip
    assert f"50 events, {len(CHEAP)} rows in {out}" in result.stdout
    told = [(message.subject, json.loads(message.body)) for message in server.messages("MATCHES")]
    assert sorted((body["number"], body["subscription_id"]) for _, body in told) == CHEAP
    assert {subject for subject, _ in told} == {"matches.1"}
    receiver = Receiver()
    try:
        options = ("--out-option", "batch_rows=4", "--out-option", "header.X-Team=blue")
        result = stream(tmp_path, rules, events=url, out=receiver.url, checkpoint="b", more=(*keep, *options))
        assert result.exit_code == 0
        rows, passed_over = receiver.rows()
        assert sorted((row["number"], row["subscription_id"]) for row in rows) == CHEAP
        assert passed_over == 0
        assert all(len(json.loads(body)) <= 4 for _, body in receiver.requests)
        assert {headers["X-Team"] for headers, _ in receiver.requests} <= {"blue"}
        # Nothing new: nothing is sent. And what a receiver refuses ends the stream with one line.
        assert "0 events" in stream(tmp_path, rules, events=url, out=receiver.url, checkpoint="b", more=keep).stdout
        receiver.answers = [410] * 20
        result = stream(tmp_path, rules, events=url, out=receiver.url, checkpoint="c", more=keep)
        assert result.exit_code == 2
        assert f"{receiver.url} answered 410: no, says the server" in " ".join(result.stderr.split())
    finally:
        receiver.close()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("stream_name", "more", "told"),
    [
        ("EMPTY", (), "is empty: its first messages say which columns"),
        ("EVENTS", ("--schema", "price dubble"), "a schema is written as 'price double, title string'"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_columns_that_nobody_knows_are_told(server, tmp_path, rules, stream_name, more, told):
    result = stream(tmp_path, rules, events=server.url(stream_name), more=more)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())


@pytest.mark.spark
def test_a_folder_that_workers_read_themselves_and_options_of_a_reader(spark, tmp_path, rules):
    from tamis.spark import read_matches

    for kind, name in (("parquet_folder", "one.parquet"), ("json", "one.json")):
        folder = tmp_path / kind
        (folder / "arriving").mkdir(parents=True)
        written = spark.range(50).selectExpr("id AS number", "id % 7 AS price").coalesce(1).toPandas()
        path = folder / "arriving" / name
        written.to_parquet(path) if kind != "json" else path.write_text(written.to_json(orient="records", indent=1))
        more = ["--format", kind, "--keep", "number"]
        more += ["--events-option", "multiLine=true"] if kind == "json" else ["--events-option", "partition_bytes=1"]
        assert stream(folder, rules, events=str(folder / "arriving"), more=more).exit_code == 0
        rows = read_matches(spark, folder / "out").collect()
        assert sorted((row.number, row.subscription_id) for row in rows) == CHEAP
