from __future__ import annotations

import json
import os
from datetime import UTC, datetime

import pytest

pipeline = pytest.importorskip("tamis.spark")
pytest.importorskip("nats")

from tamis.errors import TamisError  # noqa: E402
from tamis.matching import Matcher  # noqa: E402
from tamis.sources.jetstream import JetStreamClient, OutgoingMessage  # noqa: E402
from tamis.sources.nats_address import nats_address  # noqa: E402
from tamis.sources.nats_reading import NatsReading  # noqa: E402
from tamis.sources.options import Options  # noqa: E402
from tamis.spark.sources.failures import plainly  # noqa: E402
from tests.spark.nats_server import NatsServer  # noqa: E402
from tests.spark.worlds import NatsWorld, crash_at_random_steps  # noqa: E402

pytestmark = pytest.mark.spark
ONCE = {"availableNow": True}
SCHEMA = "number bigint, price bigint"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    found = NatsServer(tmp_path_factory.mktemp("nats"))
    yield found
    found.stop()


@pytest.fixture
def names(request):
    """Names of streams that no other test uses: one for what comes, one for what goes."""
    number = abs(hash(request.node.name)) % 10**9
    return f"IN{number}", f"OUT{number}"


@pytest.fixture(scope="module", autouse=True)
def registered(spark):
    pipeline.register(spark)


def bodies(numbers):
    return [json.dumps({"number": number, "price": number % 7}).encode() for number in numbers]


def read(spark, url, **options):
    return spark.read.format("nats").options(**options).load(url)


def run_once(frame, checkpoint, out, **options):
    """Copy a stream into a stream, all that is there."""
    query = (
        frame.writeStream.format("nats").options(url=out, checkpointLocation=str(checkpoint), **options)
        .trigger(**ONCE).start()
    )  # fmt: skip
    with plainly():
        query.awaitTermination()
    return query


# -- Without Spark


def test_a_range_of_sequences_gives_what_is_there_and_ends(server, names):
    server.make(names[0])
    server.publish(names[0], bodies(range(2_500)))
    server.api(names[0], "STREAM.PURGE", seq=100)  # 1 to 99 are gone
    server.api(names[0], "STREAM.MSG.DELETE", seq=2_500)  # and so is the last
    with server.connected(names[0]) as connection:
        for start, end, expected in (
            (1, 2_501, range(100, 2_500)), (1, 100, ()), (100, 101, [100]), (2_499, 9_999, [2_499]), (2_500, 2_501, ()),
            (3_000, 4_000, ()), (7, 7, ()),
        ):  # fmt: skip
            found = [message for part in connection.messages(start, end) for message in part]
            assert [message.sequence for message in found] == list(expected)
        assert json.loads(found[0].body)["number"] == 2_498 if found else True
    assert server.api(names[0], "STREAM.INFO")["state"]["consumer_count"] == 0, "consumers stay behind"


def test_reading_and_publishing_outlive_a_restart_of_the_server(tmp_path):
    server = NatsServer(tmp_path)
    try:
        server.make("S")
        server.publish("S", bodies(range(3_000)))
        with server.connected("S") as connection:
            parts = connection.messages(1, 3_001)
            found = list(next(parts))
            server.stop()
            server.start()
            found += [message for part in parts for message in part]
            assert [message.sequence for message in found] == list(range(1, 3_001))
            server.stop()
            server.start()
            again = [OutgoingMessage("s", "one", b"1", {}), OutgoingMessage("s", "two", b"2", {})]
            assert connection.publish(again) == 0
            assert connection.publish(again) == 2, "the ids are known"
        assert len(server.messages("S")) == 3_002
    finally:
        server.stop()


def test_a_server_that_is_not_there_is_told_in_one_line():
    address = nats_address("nats://anna:secret@127.0.0.1:1/EVENTS")
    with pytest.raises(pipeline.NatsError) as raised, JetStreamClient(address, timeout_s=1) as connection:
        connection.state()
    assert "no NATS server answers at nats://127.0.0.1:1/EVENTS" in str(raised.value)
    assert "secret" not in str(raised.value) and "\n" not in str(raised.value)


def test_a_stream_that_is_not_there_is_told(server):
    with pytest.raises(pipeline.NatsError, match="stream not found"), server.connected("NOWHERE") as connection:
        connection.state()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://host/EVENTS", "not a NATS address"), ("nats://host", "names no stream"), ("nats://host/a.b", "not the name of a stream"),
        ("nats:///EVENTS", "names no server"), ("nats://host:port/EVENTS", "names no server"), ("", "no NATS server was named"),
        ("nats://host/EVENTS?subjet=a", "Did you mean subject"),
    ],
)  # fmt: skip
def test_a_bad_address_is_refused_with_a_reason(url, told):
    with pytest.raises(pipeline.OptionError, match=told):
        nats_address(url)


@pytest.mark.parametrize(("start", "end"), [(1, 1), (1, 2), (1, 10_001), (5, 100_123), (1, 10**9)])
def test_a_range_is_cut_into_parts_that_are_the_range(start, end):
    reading = NatsReading.asked(Options("nats", {"url": "nats://host/S"}, ("url",)))
    parts = reading.ranges(start, end)
    assert len(parts) <= 8
    assert [last for _, last in parts[:-1]] == [first for first, _ in parts[1:]]
    assert not parts or (parts[0][0], parts[-1][1]) == (start, end)
    assert all(last > first for first, last in parts)


# -- Tables


def test_messages_are_rows(server, names, spark):
    url = server.make(names[0], subjects=[f"{names[0]}.>"])
    before = datetime.now(UTC)
    ugly = [b"", "Grüße, 世界".encode(), b"\xff\x00\xfe", b"x" * 900_000]
    server.publish(names[0], ugly, subject=f"{names[0]}.a", headers={"Kind": "Ü", "Other": "2"})
    server.publish(names[0], [b"{}"], subject=f"{names[0]}.b.c")
    rows = read(spark, url).orderBy("sequence").collect()
    assert [bytes(row.body) for row in rows] == [*ugly, b"{}"]
    assert [row.sequence for row in rows] == [1, 2, 3, 4, 5]
    assert {row.subject for row in rows} == {f"{names[0]}.a", f"{names[0]}.b.c"}
    assert rows[0].headers["Kind"] == "Ü" and rows[0].headers["Other"] == "2"
    times = [row.published.replace(tzinfo=UTC) for row in rows]
    assert before <= times[0] <= times[-1] <= datetime.now(UTC)
    assert read(spark, f"{url}?subject={names[0]}.b.>").count() == 1
    assert [row.sequence for row in read(spark, url, start=2, end=3).collect()] == [2, 3]
    assert read(spark, url, start=2, end=3, partition_messages=1).rdd.getNumPartitions() == 2


def test_an_empty_stream_is_an_empty_table_and_rows_are_written_as_json(server, names, spark):
    url = server.make(names[0])
    assert read(spark, url).collect() == []
    rows = spark.range(3).selectExpr("id", "if(id = 1, NULL, 'ü') AS text", "CAST(id AS DECIMAL(20, 2)) AS price")
    rows.write.format("nats").mode("append").save(url)
    assert sorted(message.body.decode() for message in server.messages(names[0])) == [
        '{"id":0,"text":"ü","price":0.00}', '{"id":1,"price":1.00}', '{"id":2,"text":"ü","price":2.00}',
    ]  # fmt: skip
    rows.write.format("nats").mode("append").save(url)
    assert len(server.messages(names[0])) == 6, "another job says it again, and means it"
    back = read(spark, url).transform(pipeline.json_events(rows.schema, keep=["sequence"]))
    assert back.select("price").distinct().count() == 3


def test_bad_bodies_are_null_or_dropped_or_fail(server, names, spark):
    url = server.make(names[0])
    server.publish(names[0], [b'{"number": 1}', b"not json", b'{"number": "x", "price": 2}', b"[]"])
    messages = read(spark, url)
    step = pipeline.json_events
    assert [row.number for row in messages.transform(step(SCHEMA)).collect()] == [1, None, None, None]
    assert [row.number for row in messages.transform(step(SCHEMA, bad="drop")).collect()] == [1]
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        messages.transform(step(SCHEMA, bad="fail")).collect()
    for wrong in ({"schema": SCHEMA, "bad": "no"}, {"schema": "bigint"}):
        with pytest.raises(pipeline.OptionError):
            step(**wrong)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"url": "nats://127.0.0.1:1/S", "timeout_s": "1"}, "no NATS server answers"), ({"max_mesages": "1"}, "Did you mean max_messages"),
        ({"start": "yesterday"}, "start of nats must be"), ({"timeout_s": "soon"}, "number of seconds"), ({"partitions": "0"}, "whole number of at least 1"),
        ({"on_loss": "cry"}, "one of report, fail"),
    ],
)  # fmt: skip
def test_mistakes_in_a_worker_come_back_as_what_they_are(server, spark, options, told):
    with pytest.raises(TamisError, match=told) as raised, plainly():
        spark.read.format("nats").options(**({"url": server.url("NOWHERE")} | options)).load().collect()
    assert "\n" not in str(raised.value)


def test_columns_that_are_not_there_are_refused_before_anything_is_written(server, names, spark):
    url = server.make(names[0], subjects=[f"{names[0]}.>"])
    frame = spark.range(2)
    for options, told in (
        ({"subject": "x.{idd}"}, "Did you mean id"),
        ({"id": "no"}, "no column 'no'"),
        ({}, "say which one"),
    ):
        with pytest.raises(TamisError, match=told), plainly():
            frame.write.format("nats").options(**options).mode("append").save(url)
    assert server.messages(names[0]) == []
    frame.write.format("nats").option("subject", names[0] + ".{id}").option("id", "id").mode("append").save(url)
    assert {message.subject for message in server.messages(names[0])} == {f"{names[0]}.0", f"{names[0]}.1"}


# -- Streams


def test_a_stream_goes_on_where_it_stopped(server, names, spark, tmp_path):
    url, out = server.make(names[0]), server.make(names[1])
    frame = spark.readStream.format("nats").option("max_messages", 40).load(url)
    frame = frame.transform(pipeline.json_events(SCHEMA, keep=["sequence"]))
    run_once(frame, tmp_path / "c", out)
    assert server.messages(names[1]) == [], "nothing came"
    for first, count in ((0, 1), (1, 99), (100, 0)):
        server.publish(names[0], bodies(range(first, first + count)))
        query = run_once(frame, tmp_path / "c", out)
        found = [json.loads(message.body) for message in server.messages(names[1])]
        assert [row["number"] for row in found] == list(range(first + count))
    assert query.exception() is None
    offsets = sorted(int(name) for name in os.listdir(tmp_path / "c" / "offsets") if name.isdecimal())
    assert len(offsets) >= 4, "a micro-batch takes at most 40"


def test_what_has_expired_is_counted_and_not_waited_for(server, names, spark, tmp_path):
    url, out = server.make(names[0]), server.make(names[1])
    server.publish(names[0], bodies(range(10)))
    frame = spark.readStream.format("nats").option("max_messages", 15).load(url)
    run_once(frame.select("sequence"), tmp_path / "c", out)
    server.publish(names[0], bodies(range(10, 50)))
    server.api(names[0], "STREAM.PURGE", seq=31)  # 11 to 30 are gone, unread
    server.api(names[0], "STREAM.MSG.DELETE", seq=40)
    query = run_once(frame.select("sequence"), tmp_path / "c", out)
    found = [json.loads(message.body)["sequence"] for message in server.messages(names[1])]
    assert found == [*range(1, 11), *range(31, 40), *range(41, 51)]
    ends = [
        json.loads(progress.sources[0].endOffset) for progress in query.recentProgress if progress.sources[0].endOffset
    ]
    assert (ends[-1]["sequence"], ends[-1]["missed"]) == (51, 20)
    server.publish(names[0], bodies(range(50, 60)))
    server.api(names[0], "STREAM.PURGE", seq=56)
    with pytest.raises(pipeline.LostMessagesError, match="messages 51 to 55"):
        run_once(
            spark.readStream.format("nats").option("on_loss", "fail").load(url).select("sequence"), tmp_path / "c", out
        )


def test_a_stream_that_was_made_anew_is_not_taken_for_the_old_one(server, names, spark, tmp_path):
    url, out = server.make(names[0]), server.make(names[1])
    server.publish(names[0], bodies(range(5)))
    frame = spark.readStream.format("nats").load(url).select("sequence")
    run_once(frame, tmp_path / "c", out)
    server.api(names[0], "STREAM.DELETE")
    server.make(names[0])
    server.publish(names[0], bodies(range(9)))
    with pytest.raises(pipeline.NatsError, match="is not the stream that the checkpoint belongs to"):
        run_once(frame, tmp_path / "c", out)


def test_events_of_one_stream_are_matched_into_another_and_a_replay_doubles_nothing(server, names, spark, tmp_path):
    url = server.make(names[0])
    out = server.make(names[1], subjects=[f"{names[1]}.>"]) + f"?subject={names[1]}.{{subscription_id}}"
    server.publish(names[0], bodies(range(100)))
    log = pipeline.SubscriptionLog(tmp_path / "log")
    log.add({"cheap": "price < 2", "even": "number % 2 = 0"})

    def matched():
        events = spark.readStream.format("nats").option("max_messages", 30).load(url)
        events = events.transform(pipeline.json_events(SCHEMA, keep=["sequence"]))
        stream = pipeline.match_stream(events, log, out=out, checkpoint=tmp_path / "c", keep=["sequence"], trigger=ONCE)
        stream.await_end()
        return stream

    first = matched().metrics.as_dict()
    local = Matcher()
    local.add_many(log.at(1))
    expected = {(n + 1, each) for n in range(100) for each in local.match({"number": n, "price": n % 7})}
    told = server.messages(names[1])
    found = [(json.loads(message.body)["sequence"], json.loads(message.body)["subscription_id"]) for message in told]
    assert sorted(found) == sorted(expected)
    assert all(message.subject.endswith(f".{each}") for message, (_, each) in zip(told, found, strict=True))
    assert first["events_total"] == 100
    # The crash came before anything was written down: the last batch is delivered again, under the same ids.
    number = max(int(name) for name in os.listdir(tmp_path / "c" / "commits") if name.isdecimal())
    (tmp_path / "c" / "commits" / str(number)).unlink()
    for name in os.listdir(tmp_path / "c" / "commits"):
        if name.endswith(".crc") and f".{number}." in name:
            (tmp_path / "c" / "commits" / name).unlink()
    (tmp_path / "c" / "tamis" / "commits" / f"{number:012}.json").unlink()
    again = matched().metrics.last
    assert again["delivered"]["known"] == again["delivered"]["messages"] > 0
    assert len(server.messages(names[1])) == len(expected)


@pytest.mark.parametrize("crashes", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_crashes_at_random_steps_lose_and_double_no_message(server, names, spark, tmp_path, monkeypatch, crashes):
    crash_at_random_steps(NatsWorld(spark, tmp_path, server, names[0]), monkeypatch, crashes, files=4)
