from __future__ import annotations

import threading
import time
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pipeline = pytest.importorskip("tamis.spark")

from tamis.spark.exposition import CONTENT_TYPE, MetricsPage  # noqa: E402
from tamis.spark.metrics import Metrics  # noqa: E402
from tests.spark.prometheus_text import figures  # noqa: E402
from tests.spark.test_streaming import World  # noqa: E402

RECORD = {"batch": 3, "rows_in": 10, "rows_out": 4, "version": 2, "subscriptions": 5, "rejected": 1, "compile_s": 0.1,
          "kernel_s": 0.2, "arrow_s": 0.3, "forest_s": 0.05, "workers_s": 0.4, "batch_s": 1.0, "committed": 1e9}  # fmt: skip


def test_counters_add_up_and_gauges_show_the_last_batch():
    metrics = Metrics()
    metrics.count(RECORD)
    metrics.complete(3, {"triggerExecution": 1500})
    metrics.count(RECORD | {"batch": 4, "rows_in": 1, "version": 3})
    found = figures(metrics.prometheus())
    assert found["tamis_stream_events_total"] == 11
    assert found["tamis_stream_rows_total"] == 8
    assert found["tamis_stream_batches_total"] == 2
    assert found["tamis_stream_kernel_seconds_total"] == pytest.approx(0.4)
    assert found["tamis_stream_spark_seconds_total"] == pytest.approx(1.0)
    assert found["tamis_stream_last_batch_events"] == 1
    assert found["tamis_stream_version"] == 3
    assert found["tamis_stream_last_batch_spark_seconds"] == 0, "Spark has not told of it yet"


def test_what_spark_says_late_of_a_batch_does_not_pass_for_the_last():
    metrics = Metrics()
    metrics.count(RECORD)
    metrics.count(RECORD | {"batch": 4})
    assert metrics.complete(3, {"triggerExecution": 1500})["batch"] == 3
    assert metrics.last["batch"] == 4
    assert metrics.as_dict()["last_batch"] == 4
    assert metrics.complete(9, {"triggerExecution": 1500}) is None


def test_labels_are_escaped():
    text = Metrics().prometheus({"stream": 'a "b" \\ c\nd'})
    assert 'tamis_stream_version{stream="a \\"b\\" \\\\ c\\nd"} 0' in text
    assert len(figures(text)) == len(figures(Metrics().prometheus()))


def test_the_text_parses_with_the_parser_of_prometheus_own_client():
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus_client is not installed")
    metrics = Metrics()
    metrics.count(RECORD)
    families = parser.text_string_to_metric_families(metrics.prometheus({"stream": 'a"b'}))
    found = {sample.name: sample.value for family in families for sample in family.samples}
    assert found["tamis_stream_events_total"] == 10
    assert len(found) == len(metrics.as_dict())


def test_a_page_of_figures_is_served_here_alone_and_closes():
    with MetricsPage(Metrics(), port=0, labels={"stream": "x"}) as page:
        assert page.url.startswith("http://127.0.0.1:")
        with urlopen(page.url) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert figures(answer.read().decode())['tamis_stream_version{stream="x"}'] == 0
        with pytest.raises(HTTPError, match="404"):
            urlopen(page.url.replace("/metrics", "/"))
        with pytest.raises(pipeline.OptionError, match=f"port {page.port} of 127.0.0.1"):
            MetricsPage(Metrics(), port=page.port)
    with pytest.raises(OSError, match="refused"):
        urlopen(page.url)


@pytest.mark.spark
def test_every_micro_batch_is_told_with_its_rows_its_version_and_where_its_time_went(spark, tmp_path):
    world = World(spark, tmp_path)
    world.log.add({1: "price < 3", 2: "number % 2 = 0"})
    world.arrive(files=2)
    told = []
    stream = world.start(on_batch=told.append, name="auctions")
    stream.await_end()
    assert [record["batch"] for record in told] == [0, 1]
    assert [record["rows_in"] for record in told] == [10, 10]
    expected = world.check()
    for record in told:
        assert record["rows_out"] == sum(row[-1] == record["batch"] for row in expected)
        assert record["version"] == 1
        assert record["kernel_s"] > 0 and record["arrow_s"] > 0
        assert record["spark_s"] > 0 and record["durations_ms"]["addBatch"] > 0
        # What workers, compiling and Spark took makes up the trigger.
        parts = record["compile_s"] + record["workers_s"] + record["spark_s"]
        assert parts == pytest.approx(record["trigger_s"], abs=0.01)
    found = stream.metrics.as_dict()
    assert found["events_total"] == 20 and found["rows_total"] == len(expected)
    assert found["trigger_seconds_total"] == pytest.approx(sum(record["trigger_s"] for record in told))
    assert stream.metrics.last == told[-1]
    assert not [each for each in threading.enumerate() if each.name == "tamis metrics"]


@pytest.mark.spark
def test_a_running_stream_is_watched_over_http_and_outlives_a_watcher_that_fails(spark, tmp_path, capsys):
    world = World(spark, tmp_path)
    world.log.add({"cheap": "price < 3"})
    world.arrive()

    def failing(_):
        raise ValueError("no")

    stream = world.start(on_batch=failing, trigger={"processingTime": "0 seconds"})
    try:
        with MetricsPage(stream.metrics, port=0) as page:
            for events in (10, 20):
                stream.await_all()
                for _ in range(100):
                    with urlopen(page.url) as answer:
                        found = figures(answer.read().decode())
                    if found["tamis_stream_events_total"] == events and found["tamis_stream_last_batch_spark_seconds"]:
                        break
                    time.sleep(0.1)
                assert found["tamis_stream_events_total"] == events
                assert found["tamis_stream_last_batch_spark_seconds"] > 0
                assert found["tamis_stream_last_batch_kernel_seconds"] > 0
                world.log.add({"all": "TRUE"})
                world.arrive()
            assert found["tamis_stream_version"] == 2 and found["tamis_stream_subscriptions"] == 2
    finally:
        stream.stop()
    assert "on_batch failed: ValueError: no" in capsys.readouterr().err


@pytest.mark.spark
def test_another_stream_of_the_session_is_not_told(spark, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = World(spark, tmp_path / "one"), World(spark, tmp_path / "two")
    told = {1: [], 2: []}
    for world in (one, two):
        world.log.add({1: "TRUE"})
    one.arrive(files=1)
    two.arrive(files=2)
    streams = [one.start(on_batch=told[1].append), two.start(on_batch=told[2].append)]
    for stream in streams:
        stream.await_end()
    assert [record["batch"] for record in told[1]] == [0]
    assert [record["batch"] for record in told[2]] == [0, 1]
