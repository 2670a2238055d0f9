from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pipeline = pytest.importorskip("tamis.spark")

from tamis.sources.json_rows import json_rows  # noqa: E402
from tamis.sources.posting import Posting, checked_url, pause_s, verdict  # noqa: E402
from tamis.sources.webhook import portions  # noqa: E402
from tamis.spark.sources.failures import plainly  # noqa: E402
from tests.spark.webhook_receiver import Receiver  # noqa: E402


@pytest.fixture
def receiver():
    found = Receiver()
    yield found
    found.close()


def posting(url, pauses, **options):
    return Posting(url, chance=lambda: 1.0, wait=pauses.append, **options)


def test_what_is_taken_is_posted_once_with_its_key(receiver):
    assert posting(receiver.url, [], headers={"X-Token": "t"}).post(b"[1]", "key-1") == 1
    ((headers, body),) = receiver.requests
    assert (headers["Idempotency-Key"], headers["X-Token"], headers["Content-Type"], body) == (
        "key-1", "t", "application/json", b"[1]",
    )  # fmt: skip


def test_failures_are_tried_again_with_pauses_that_grow_and_the_same_key(receiver):
    receiver.answers = [500, "hang up", 503, (429, {"Retry-After": "3"}), "take and hang up"]
    pauses = []
    assert posting(receiver.url, pauses).post(b"[1]", "key") == 6
    assert pauses == [0.1, 0.2, 0.4, 3.0, 1.6]
    assert {headers["Idempotency-Key"] for headers, _ in receiver.requests} == {"key"}
    assert receiver.rows() == ([1], 1)


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, (302, {"Location": "https://a:b@elsewhere/x?t=1"})])
def test_a_refusal_is_final_and_says_url_status_and_the_beginning_of_the_answer(receiver, status):
    receiver.answers = [status]
    with pytest.raises(pipeline.WebhookError) as raised:
        posting(receiver.url + "?token=secret", []).post(b"[1]", "key")
    number = status if isinstance(status, int) else status[0]
    assert (raised.value.url, raised.value.status) == (receiver.url, number)
    told = str(raised.value)
    assert told.startswith(f"{receiver.url} answered {number}: ")
    assert ("no, says the server" in told) if number != 302 else ("https://elsewhere/x" in told)
    assert "\n" not in told and "\x1b" not in told and "secret" not in told and len(told) < 400
    assert len(receiver.requests) == 1


def test_patience_ends(receiver):
    receiver.answers = [503, (503, {"Retry-After": "3600"})]
    with pytest.raises(pipeline.WebhookError, match=r"answered 503: .*after 2 attempts"):
        posting(receiver.url, [], patience_s=10).post(b"[1]", "key")
    receiver.close()
    with pytest.raises(pipeline.WebhookError, match=r"does not answer: .*refused"):
        posting(receiver.url, [], patience_s=0.05).post(b"[1]", "key")


@given(
    attempt=st.integers(0, 2_000),
    chance=st.floats(0, 1),
    written=st.none() | st.text() | st.integers(0, 10**6).map(str),
)
def test_a_pause_is_never_negative_and_never_shorter_than_the_server_asks(attempt, chance, written):
    pause = pause_s(attempt, written, 1e9, chance)
    assert pause >= 0
    if written and written.isascii() and written.isdecimal():
        assert pause >= float(written)
    elif written is None:
        assert pause <= 30


def test_every_status_has_a_verdict():
    assert {verdict(status) for status in range(100, 600)} == {"taken", "again", "refused"}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/x",
        "http://",
        "http://host:port/",
        "http://a b/",
        "http://a\n/",
        "https://u:p@host/",
    ],
)
def test_a_bad_address_is_refused(url):
    with pytest.raises(pipeline.OptionError) as raised:
        checked_url(url)
    assert "u:p" not in str(raised.value)


@given(rows=st.lists(st.text(max_size=20)), most_rows=st.integers(1, 5), most_bytes=st.integers(1, 60))
def test_portions_are_the_rows_in_order_and_within_their_limits(rows, most_rows, most_bytes):
    rows = [row.encode(errors="replace").decode() for row in rows]
    parts = list(portions(rows, most_rows, most_bytes))
    assert [row.decode() for part in parts for row in part] == rows
    for part in parts:
        assert 1 <= len(part) <= most_rows
        assert len(part) == 1 or len(b"[" + b",".join(part) + b"]") <= most_bytes


VALUES = {
    "n": (pa.int64(), st.none() | st.integers(-(2**63), 2**63 - 1)),
    "x": (pa.float64(), st.none() | st.floats()),
    "t": (pa.string(), st.none() | st.text(st.characters(codec="utf-8"))),
    "b": (pa.bool_(), st.none() | st.booleans()),
    "d": (pa.decimal128(20, 2), st.none() | st.decimals(min_value=-(10**9), max_value=10**9, places=2)),
    "raw": (pa.binary(), st.none() | st.binary()),
    "l": (pa.list_(pa.float64()), st.none() | st.lists(st.none() | st.floats())),
    "r": (pa.struct([("a.b", pa.int32()), ("s", pa.string())]), st.none() | st.fixed_dictionaries({"a.b": st.none() | st.integers(0, 9), "s": st.none() | st.text(st.characters(codec="utf-8"))})),
}  # fmt: skip


@given(rows=st.lists(st.fixed_dictionaries({name: values for name, (_, values) in VALUES.items()}), max_size=5))
def test_a_row_is_valid_json_with_every_value_in_it(rows):
    batch = pa.RecordBatch.from_pylist(rows, pa.schema([(name, kind) for name, (kind, _) in VALUES.items()]))

    def strict(constant):
        raise AssertionError(constant)

    for row, written in zip(rows, json_rows(batch), strict=True):
        found = json.loads(written, parse_float=Decimal, parse_constant=strict)
        assert set(found) == {name for name, value in row.items() if value is not None}
        for name in ("n", "t", "b"):
            assert found.get(name) == row[name]
        if row["d"] is not None:
            assert Decimal(found["d"]) == row["d"]
        if row["x"] is not None:
            assert repr(float(found["x"])) == repr(row["x"])  # "NaN" and "Infinity" are texts that a double reads
        if row["r"] is not None:
            assert found["r"] == {name: value for name, value in row["r"].items() if value is not None}


@pytest.mark.spark
def test_spark_reads_the_same_row_again(spark):
    rows = spark.sql(
        """SELECT * FROM VALUES
        (1L, CAST('NaN' AS DOUBLE), TIMESTAMP'2026-02-03 04:05:06.000007Z', DATE'2026-02-03', 12.50BD, X'00FF', array(1, NULL),
         CAST(named_struct('a', 'ü', 'b', NULL) AS STRUCT<a STRING, b STRING>), map('k', 1.5D), TIMESTAMP_NTZ'1969-12-31 23:59:59.5'),
        (NULL, DOUBLE('-Infinity'), TIMESTAMP'1901-01-01 00:00:00Z', DATE'9999-12-31', -0.01BD, X'', array(),
         NULL, map(), NULL)
        AS t(n, x, at, day, price, raw, list, record, pairs, local)"""
    )
    written = [row for batch in rows.toArrow().to_batches() for row in json_rows(batch)]
    texts = spark.createDataFrame([(row.encode(),) for row in written], "body binary")
    back = texts.transform(pipeline.json_events(rows.schema))
    assert [repr(row) for row in back.collect()] == [repr(row) for row in rows.collect()]


# -- On Spark


@pytest.mark.spark
def test_a_table_arrives_at_a_server_that_fails_at_random(spark, receiver):
    pipeline.register(spark)
    receiver.chance = Random(3)
    frame = spark.range(1_000, numPartitions=3).selectExpr("id", "concat('ü', id) AS text")
    frame.write.format("webhook").option("batch_rows", 40).option("header.X-Team", "blue").mode("append").save(
        receiver.url
    )
    rows, passed_over = receiver.rows()
    assert sorted(row["id"] for row in rows) == list(range(1_000))
    assert {row["text"] for row in rows} == {f"ü{number}" for number in range(1_000)}
    assert all(len(json.loads(body)) <= 40 for _, body in receiver.taken)
    assert {headers["X-team"] if "X-team" in headers else headers["X-Team"] for headers, _ in receiver.requests} == {
        "blue"
    }
    assert passed_over > 0, "the server has lost no answer: take another seed"


@pytest.mark.spark
def test_a_refusal_ends_the_job_with_one_line(spark, receiver):
    pipeline.register(spark)
    receiver.answers = [404]
    with pytest.raises(pipeline.WebhookError, match="answered 404: no, says the server") as raised, plainly():
        spark.range(3, numPartitions=1).write.format("webhook").mode("append").save(receiver.url)
    assert (raised.value.url, raised.value.status) == (receiver.url, 404)
    for mode, format_options, told in (
        ("overwrite", {}, "append"), ("append", {"batch_row": "2"}, "Did you mean batch_rows"), ("append", {"url": "ftp://x"}, "is not a webhook address"),
    ):  # fmt: skip
        with pytest.raises(pipeline.OptionError, match=told), plainly():
            spark.range(1).write.format("webhook").options(**({"url": receiver.url} | format_options)).mode(mode).save()


@pytest.mark.spark
def test_a_stream_that_is_replayed_sends_the_same_keys(spark, receiver, tmp_path):
    pipeline.register(spark)
    (tmp_path / "in").mkdir()
    spark.range(100).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))

    def run(checkpoint):
        stream = spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
        writer = stream.writeStream.format("webhook").options(url=receiver.url, batch_rows=30)
        writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()

    run(tmp_path / "c")
    (tmp_path / "c" / "commits" / "0").unlink()  # Spark does not know that the batch is done
    (tmp_path / "c" / "commits" / ".0.crc").unlink(missing_ok=True)
    run(tmp_path / "c")
    rows, passed_over = receiver.rows()
    assert sorted(row["id"] for row in rows) == list(range(100))
    assert passed_over == len(receiver.taken) // 2 == 4
    assert set(Counter(key for key, _ in receiver.taken).values()) == {2}
