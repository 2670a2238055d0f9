"""The log of a broker on Spark, each broker a process of its own."""

from __future__ import annotations

import json
import os
from collections import Counter
from random import Random

import pytest
import trustme

pipeline = pytest.importorskip("tamis.spark")

from tamis.errors import TamisError  # noqa: E402
from tamis.matching import Matcher  # noqa: E402
from tamis.service.bridge.reading import LogReading  # noqa: E402
from tamis.spark.sources.failures import plainly  # noqa: E402
from tests.cli.conftest import tamis as command  # noqa: E402
from tests.service.broker_processes import BrokerProcess, Forge, events, running  # noqa: E402
from tests.spark.killing import MortalStream  # noqa: E402
from tests.spark.worlds import ONCE, SCHEMA, World, crash_at_random_steps  # noqa: E402

pytestmark = pytest.mark.spark
QUIET = '[logging]\nlevel = "error"\n'


@pytest.fixture(scope="module")
def forge():
    forge = Forge()
    yield forge
    forge.close()


@pytest.fixture(scope="module", autouse=True)
def registered(spark):
    pipeline.register(spark)


@pytest.fixture(scope="module")
def broker(forge, tmp_path_factory):
    """A broker that some tests share: each publishes events of a source of its own."""
    with running(forge, tmp_path_factory.mktemp("broker"), config=QUIET) as broker:
        yield broker


def address(broker):
    return broker.url.replace("http", "tamis", 1).replace("tamiss", "tamis+tls")


def publish(broker, batch, **options):
    status, answer = broker.ask("POST", "/events", batch, **options)
    assert status == 200, answer
    return answer["positions"]


def read(spark, broker, schema=None, **options):
    reader = spark.read.format("tamis").options(**options)
    return (reader if schema is None else reader.schema(schema)).load(address(broker))


# -- Tables


UGLY = [
    {}, {"price": None}, {"price": 0}, {"price": -0.0}, {"price": 19.999999999}, {"price": "12"}, {"price": True},
    {"price": 1e300}, {"price": 10**30}, {"title": ""}, {"title": "The Ü", "price": 5}, {"title": "the ü"}, {"title": 7},
    {"tags": []}, {"tags": ["a", None]}, {"tags": ["b"], "price": 25}, {"tags": "a"}, {"pos": {"x": 1, "y": None}},
    {"pos": {"x": 2.5}, "price": 3}, {"pos": 5}, {"type": "a lie", "price": 1}, {"price": 20, "title": "%_"},
]  # fmt: skip
TYPED = "price double, title string, tags array<string>, pos struct<x: double, y: double>, type string, source string, time timestamp, level int, _position bigint"
TEXTS = (
    "price < 20", "NOT price < 20", "price IS NULL", "NOT (price IS NULL) AND NOT (title IS NULL)", "price BETWEEN 0 AND 5",
    "title LIKE 'The %'", "title = '' OR level >= 3", "array_contains(tags, 'a')", "pos.x > 1.5", "type = 'offer' AND price <> 5",
    "NOT type LIKE 'of%'", "time >= TIMESTAMP '2026-01-31 12:00:00'", "price IN (0, 25) OR title IN ('%_', 'the ü')", "TRUE",
    "level % 2 = 0 AND (price <=> NULL)",
)  # fmt: skip


def test_the_same_text_gives_the_same_rows_at_the_broker_and_in_spark(broker, spark):
    """Of events whose values have the types of their columns; the ugly ones among them are NULL or absent."""
    fits = [data for data in UGLY if _fits(data)]
    batch = [
        {
            "specversion": "1.0", "id": str(number), "source": "/same", "type": ("offer", "bid")[number % 2], "data": data,
            **({"time": f"2026-01-31T1{number % 5}:00:00Z"} if number % 3 else {}), **({"level": number} if number % 4 else {}),
        }
        for number, data in enumerate(fits * 3)
    ]  # fmt: skip
    publish(broker, batch)
    here = read(spark, broker, TYPED).where("source = '/same'").cache()
    assert here.count() == len(batch)
    for text in TEXTS:
        there = read(spark, broker, TYPED, where=f"source = '/same' AND ({text})")
        found = sorted(row._position for row in there.collect())
        assert found == sorted(row._position for row in here.where(text).collect()), text
    here.unpersist()


def _fits(data):
    """Have all values the types of the columns?"""
    kinds = {"price": (int, float), "title": str, "tags": list, "pos": dict, "type": str}
    return all(
        value is None or (isinstance(value, kinds[name]) and not isinstance(value, bool))
        for name, value in data.items()
    )


def test_columns_are_seen_from_the_first_events_and_what_fits_no_column_is_null(broker, spark):
    publish(broker, [{**each, "source": "/ugly"} for each in events(len(UGLY))])
    batch = [{**event, "id": f"u{event['id']}", "data": data} for event, data in zip(events(len(UGLY), source="/ugly"), UGLY, strict=True)]  # fmt: skip
    publish(broker, batch)
    seen = read(spark, broker, where="source = '/ugly' AND pos IS NOT NULL").schema
    assert {"price", "pos", "type", "source", "id", "data", "_position"} <= set(seen.names)
    assert "title" not in seen.names, "no event that is wanted has one"
    rows = read(spark, broker, TYPED, where="source = '/ugly' AND id LIKE 'u%'").orderBy("_position").collect()
    assert [row.price for row in rows[:9]] == [None, None, 0.0, 0.0, 19.999999999, None, None, 1e300, 1e30]
    assert rows[14].tags == ["a", None] and rows[16].tags is None and rows[19].pos is None
    assert {row.type for row in rows} == {"test"}, "no payload pretends to another type"


def test_a_range_is_read_in_parts(broker, spark):
    publish(broker, events(50, source="/parts"))
    frame = read(spark, broker, "n bigint", where="source = '/parts'", partitions=3, partition_events=10)
    assert frame.rdd.getNumPartitions() == 3
    assert sorted(row.n for row in frame.collect()) == list(range(50))
    assert read(spark, broker, "n bigint", start="now").collect() == []
    assert frame.limit(2).count() == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"where": "price <"}, "the filter has no meaning"), ({"wher": "TRUE"}, "Did you mean where"),
        ({"url": "tamis://127.0.0.1:1", "patience_s": "0.1"}, "no broker answers at http://127.0.0.1:1"),
        ({"start": "yesterday"}, "is not a place to begin"), ({"start": "other-1"}, "of another log"),
        ({"url": "nats://north/S"}, "not the address of a broker"), ({"partitions": "0"}, "at least 1"),
    ],
)  # fmt: skip
def test_mistakes_in_a_worker_come_back_as_what_they_are(broker, spark, options, told):
    given = {"url": address(broker)} | options
    with pytest.raises(TamisError, match=told) as raised, plainly():
        spark.read.format("tamis").schema("n bigint").options(**given).load().collect()
    assert "\n" not in str(raised.value)


def test_history_is_matched_on_spark_and_in_this_process_alike(broker, spark, tmp_path):
    publish(broker, events(40, source="/history"))
    (tmp_path / "rules.csv").write_text("subscription_id,condition\n1,n % 3 = 0\n2,n > 35\n")
    answers = []
    for engine in ("local", "spark"):
        out = tmp_path / f"{engine}.parquet"
        ran = command(
            "match", "--events", address(broker), "--events-option", "where=source = '/history'", "--engine", engine,
            "--subscriptions", str(tmp_path / "rules.csv"), "--keep", "n", "--keep", "_position", "--out", str(out), "--json",
        )  # fmt: skip
        assert ran.exit_code == 0, ran.stderr + ran.stdout
        answers.append({tuple(row.asDict().items()) for row in spark.read.parquet(str(out)).collect()})
    assert answers[0] == answers[1]
    assert Counter(dict(row)["subscription_id"] for row in answers[0]) == {"1": 14, "2": 4} or len(answers[0]) == 18


# -- Streams


def run_once(frame, folder):
    """Copy a stream into a folder of Parquet, all that is there; return the query."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "c"))
    query = writer.trigger(**ONCE).start(str(folder / "out"))
    with plainly():
        query.awaitTermination()
    return query


def stream(spark, broker, **options):
    return (
        spark.readStream.format("tamis").schema("n bigint, _position bigint").options(**options).load(address(broker))
    )


def found(spark, folder):
    return sorted(row.n for row in spark.read.parquet(str(folder / "out")).collect())


def test_a_stream_goes_on_where_it_stopped_while_its_broker_is_killed(forge, spark, tmp_path):
    with running(forge, tmp_path / "broker", config=QUIET) as broker:
        frame = stream(spark, broker, where="n % 2 = 0", max_events=20, partition_events=5)
        for first, count in ((0, 0), (0, 1), (1, 60), (61, 0)):
            publish(broker, events(count, first)) if count else None
            query = run_once(frame, tmp_path)
            assert query.exception() is None
            assert found(spark, tmp_path) == list(range(0, first + count, 2))
            broker.kill()
            broker.start()
        offsets = sorted(int(name) for name in os.listdir(tmp_path / "c" / "offsets") if name.isdecimal())
        assert len(offsets) >= 4, "a micro-batch takes at most 20 positions"
        ends = [json.loads(each.sources[0].endOffset) for each in query.recentProgress if each.sources[0].endOffset]
        assert not ends or (ends[-1]["position"], ends[-1]["missed"]) == (62, 0)


def test_what_the_log_has_lost_stops_a_query_or_is_counted(forge, spark, tmp_path):
    config = f'{QUIET}[log]\nsegment_bytes = "4kB"\n'
    with running(forge, tmp_path / "broker", config=config) as broker:
        publish(broker, events(1))
        run_once(stream(spark, broker), tmp_path)
        for number in range(1, 31):
            publish(broker, events(1, number, text="x" * 900))
        assert broker.stop() == 0
        segments = sorted((broker.data / "log").glob("*.db"))
        assert len(segments) > 3
        for segment in segments[:2]:  # what retention does
            segment.unlink()
        broker.start()
        first = int(broker.ask("GET", "/log")[1]["first"].rpartition("-")[2])
        assert 2 < first < 30
        with pytest.raises(pipeline.LostEventsError, match=rf"no longer has the events \w+-2 to \w+-{first - 1}"):
            run_once(stream(spark, broker), tmp_path)
        query = run_once(stream(spark, broker, on_loss="report"), tmp_path)
        assert found(spark, tmp_path) == [0, *range(first - 1, 31)]
        ends = [json.loads(each.sources[0].endOffset) for each in query.recentProgress if each.sources[0].endOffset]
        assert (ends[-1]["position"], ends[-1]["missed"]) == (32, first - 2)


def test_a_log_that_was_made_anew_is_not_taken_for_the_old_one(forge, spark, tmp_path):
    broker = BrokerProcess(forge, tmp_path / "broker", config=QUIET)
    try:
        broker.start()
        publish(broker, events(5))
        run_once(stream(spark, broker), tmp_path)
        broker.kill()
        broker.data.rename(tmp_path / "old")
        broker.start()
        publish(broker, events(9))
        with pytest.raises(pipeline.AnotherLogError, match="does not have the log that the checkpoint belongs to"):
            run_once(stream(spark, broker), tmp_path)
    finally:
        if broker.process:
            broker.kill()


def test_a_query_with_a_name_is_a_subscriber_whose_floor_follows_it(forge, spark, tmp_path):
    with running(forge, tmp_path / "broker", config=QUIET) as broker:
        publish(broker, events(30))
        frame = stream(spark, broker, name="query", where="n >= 3", max_events=10)
        run_once(frame, tmp_path)
        _, facts = broker.ask("GET", "/subscribers/query")
        assert facts["subscriptions"]["read"]["text"] == "n >= 3"
        floors = [int(facts["done_through"].replace(".", "-").split("-")[-1])]
        for first in (30, 60):
            publish(broker, events(30, first))
            run_once(frame, tmp_path)
            floors.append(
                int(broker.ask("GET", "/subscribers/query")[1]["done_through"].replace(".", "-").split("-")[-1])
            )
        assert found(spark, tmp_path) == list(range(3, 90))
        # Spark says that a batch is done when it plans the next one, so the last of a run may be held.
        assert floors == sorted(floors) and floors[0] < floors[1] < floors[2] <= 90


def test_tokens_certificates_and_roles_are_for_spark_what_they_are_for_clients(forge, spark, tmp_path):
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "certificate.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    broker = BrokerProcess(forge, tmp_path / "broker")
    broker.config.write_text(
        f"{QUIET}\n[[listeners]]\nport = {broker.port}\n[listeners.tls]\n"
        f'certificate = "{tmp_path}/certificate.pem"\nkey = "{tmp_path}/key.pem"\n'
        '[roles.reader]\nreceive = "n < 3"\nsubscribers = ["*"]\n'
    )
    broker.options = ()
    try:
        broker.start()
        made = tmp_path / "token"
        made.touch()
        arguments = ["token", "create", "ann", "--role", "reader", "--data", broker.data, "--json"]
        assert forge.wait(forge.run(arguments, made)) == 0, made.read_text()
        token = json.loads(made.read_text())["token"]
        url, ca = address(broker), str(tmp_path / "ca.pem")
        (tmp_path / "admin").write_text(broker.first_token)
        asking = ["--to", broker.url, "--ca", ca, "--token-file", str(tmp_path / "admin")]
        ran = command("publish", *asking, *(json.dumps(each) for each in events(6)))
        assert ran.exit_code == 0, ran.stderr

        def numbers(**options):
            reader = spark.read.format("tamis").schema("n bigint").options(patience_s="1", **options)
            with plainly():
                return sorted(row.n for row in reader.load(url).collect())

        assert numbers(token=token, ca=ca) == [0, 1, 2], "a role is a filter"
        assert numbers(token=broker.first_token, ca=ca) == list(range(6))
        for options, told in (
            ({"ca": ca}, "not authenticated"),
            ({"ca": ca, "token": "wrong"}, "token"),
            ({"token": token}, "could not be verified"),
            ({"token": token, "ca": str(tmp_path / "nowhere.pem")}, "certificates cannot be read"),
        ):
            with pytest.raises(TamisError, match=told):
                numbers(**options)
    finally:
        if broker.process:
            broker.kill()


# -- Crashes


class BrokerWorld(World):
    """Events of a broker that is killed now and then."""

    def __init__(self, spark, folder, broker, chance=None):
        super().__init__(spark, folder)
        self.broker, self.chance = broker, chance or Random(3)

    def arrive(self, files=1, rows=10):
        numbers = range(self.files * rows, (self.files + files) * rows)
        batch = [
            {"specversion": "1.0", "id": str(n), "source": "/w", "type": "t", "data": {"number": n, "price": n % 7}}
            for n in numbers
        ]
        publish(self.broker, batch)
        self.files += files
        if self.chance.random() < 0.5:
            self.broker.kill()
            self.broker.start()

    def events(self):
        reader = self.spark.readStream.format("tamis").schema(SCHEMA).option("max_events", 10)
        return reader.options(partition_events=4, name="world").load(address(self.broker))

    def run(self, **options):
        if self.chance.random() < 0.5:
            self.broker.kill()
            self.broker.start()
        return super().run(**options)


@pytest.mark.parametrize("crashes", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_crashes_of_the_query_and_of_its_broker_lose_and_double_no_row(forge, spark, tmp_path, monkeypatch, crashes):
    with running(forge, tmp_path / "broker", config=QUIET) as broker:
        steps = ((LogReading, "state"),)
        crash_at_random_steps(BrokerWorld(spark, tmp_path, broker), monkeypatch, crashes, files=4, more=steps)


@pytest.mark.slow
def test_a_stream_that_is_killed_at_random_moments_takes_every_event_of_a_broker_once(forge, spark, tmp_path):
    chance = Random(11)
    with running(forge, tmp_path / "broker", config=QUIET) as broker:
        world = BrokerWorld(spark, tmp_path, broker, chance)
        world.log.add({number: f"price < {number % 8} OR number = {number}" for number in range(40)})
        world.arrive(files=20)
        mortal = MortalStream(
            "--events", address(broker), "--subscriptions", world.log.path, "--out", world.out, "--checkpoint", world.checkpoint,
            "--schema", SCHEMA, "--events-option", "max_events=10", "--events-option", "partition_events=4", "--master", "local[2]",
            "--keep", "number", "--keep", "price", commits=world.out / "_tamis" / "commits",
        )  # fmt: skip
        kills = 0
        while kills < 6:
            if not mortal.is_killed(chance):
                world.arrive(files=10)
                continue
            kills += 1
            if chance.random() < 0.5:
                broker.kill()
                broker.start()
        mortal.run()
        world.check()


def test_the_matches_of_a_stream_are_those_of_a_local_matcher(broker, spark, tmp_path):
    publish(broker, events(60, source="/stream"))
    log = pipeline.SubscriptionLog(tmp_path / "log")
    log.add({"low": "n < 5", "even": "n % 2 = 0"})
    arriving = pipeline.broker_events(
        spark, address(broker), schema="n bigint", streaming=True, keep=["_position"],
        options={"where": "source = '/stream'", "max_events": 40},
    )  # fmt: skip
    running_stream = pipeline.match_stream(
        arriving, log, out=tmp_path / "out", checkpoint=tmp_path / "c", keep=["n"], trigger=ONCE
    )
    running_stream.await_end()
    local = Matcher()
    local.add_many(log.at(1))
    expected = {(n, each) for n in range(60) for each in local.match({"n": n})}
    rows = pipeline.read_matches(spark, tmp_path / "out").select("n", "subscription_id").collect()
    assert sorted(map(tuple, rows)) == sorted(expected)


# -- Writing


def sent(broker, source="/tamis"):
    """Return the data of the events of a source, in the order of the log."""
    _, entries = broker.ask("GET", f"/events?from=first&most=100000&where=source%20=%20'{source}'")
    return [entry["event"]["data"] for entry in entries]


def test_rows_of_a_table_become_events(broker, spark):
    rows = spark.range(5).selectExpr("id AS n", "if(id = 1, NULL, 'ü') AS text", "concat('kind', id % 2) AS kind")
    writer = rows.write.format("tamis").options(source="/table", type="made.{kind}").mode("append")
    writer.save(address(broker))
    assert sorted(each["n"] for each in sent(broker, "/table")) == list(range(5))
    assert {"n": 1, "kind": "kind1"} in sent(broker, "/table")
    with pytest.raises(TamisError, match="can only be appended to"), plainly():
        rows.write.format("tamis").mode("overwrite").save(address(broker))
    with pytest.raises(TamisError, match="no column 'no'"), plainly():
        rows.write.format("tamis").options(id="no").mode("append").save(address(broker))


def forget_last_commit(folder):
    """Make a query believe that its last batch was not done, as after a crash."""
    number = max(int(name) for name in os.listdir(folder / "commits") if name.isdecimal())
    for name in os.listdir(folder / "commits"):
        if name in (str(number), f".{number}.crc"):
            (folder / "commits" / name).unlink()


def test_a_micro_batch_that_is_run_again_is_taken_once_and_its_events_go_from_broker_to_broker(forge, spark, tmp_path):
    with (
        running(forge, tmp_path / "a", config=QUIET) as first,
        running(forge, tmp_path / "b", config=QUIET) as second,
    ):
        publish(first, events(50))
        frame = stream(spark, first, max_events=20, partition_events=5)
        for again in range(3):
            writer = frame.writeStream.format("tamis").option("checkpointLocation", str(tmp_path / "c"))
            with plainly():
                writer.trigger(**ONCE).start(address(second)).awaitTermination()
            assert sorted(each["n"] for each in sent(second)) == list(range(50)), again
            second.kill()
            second.start()
            forget_last_commit(tmp_path / "c")


def test_matches_of_a_stream_go_to_a_broker_once_whatever_crashes(forge, spark, tmp_path):
    with running(forge, tmp_path / "a", config=QUIET) as broker:
        publish(broker, events(60))
        log = pipeline.SubscriptionLog(tmp_path / "log")
        log.add({"low": "n < 5", "even": "n % 2 = 0"})
        arriving = stream(spark, broker, where="source = '/test'", max_events=25)
        for _ in range(2):
            matched = pipeline.match_stream(
                arriving, log, out=address(broker), checkpoint=tmp_path / "c", keep=["n"], trigger=ONCE,
                out_options={"source": "/matches"},
            )  # fmt: skip
            matched.await_end()
            forget_last_commit(tmp_path / "c")
            done = tmp_path / "c" / "tamis" / "commits"
            (done / max(os.listdir(done))).unlink()
        found = sorted((each["n"], each["subscription_id"]) for each in sent(broker, "/matches"))
        local = Matcher()
        local.add_many(log.at(1))
        assert found == sorted((n, each) for n in range(60) for each in local.match({"n": n}))
