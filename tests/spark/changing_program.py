"""A driver on a cluster whose rules change while executors are lost and others join. Run by `test_cluster`.

Beside the stream it compiles subscriptions for a table, which it matches only after the executors have changed. If it
is told to, it matches the same events once more, undisturbed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from tamis import spark as on_spark
from tamis.spark import forests

ROWS, EXECUTORS = 40, 2


def rules(version):
    """What a version adds."""
    return {version: f"id % {version + 2} = 0", 100 + version: f"id < {version}"}


def arrive(folder, version):
    """Let the events of a version arrive."""
    ids = pa.table({"id": list(range(version * ROWS, (version + 1) * ROWS))})
    parquet.write_table(ids, folder / f"{version}.parquet")


def executors(session):
    """How many executors there are, beside the driver."""
    return session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1


def same(batches):
    """Hand on what comes."""
    yield from batches


def wait_for(session, count):
    while executors(session) != count:
        time.sleep(0.1)


def streamed(session, folder, versions, disturbed):
    """Match events against rules that change before every batch, so many times; return the rows."""
    arriving = folder / "arriving"
    arriving.mkdir(parents=True)
    log = on_spark.SubscriptionLog(folder / "log")
    events = session.readStream.schema("id bigint").parquet(str(arriving))
    stream = None
    for version in range(versions):
        log.change(add=rules(version), remove=[version - 3])
        arrive(arriving, version)
        if stream is None:
            stream = on_spark.match_stream(
                events.repartition(2 * EXECUTORS), log, out=folder / "out", checkpoint=folder / "checkpoint",
                trigger={"processingTime": "0 seconds"},
            )  # fmt: skip
        stream.await_all()
        if disturbed and version == versions // 2:
            print("kill", flush=True)
            assert sys.stdin.readline() == "go on\n"
            wait_for(session, EXECUTORS)
    stream.stop()
    return sorted(map(tuple, on_spark.read_matches(session, folder / "out").collect()))


def main(master: str, folder: Path, versions: int, how: str) -> None:
    config = {
        "spark.driver.host": "127.0.0.1", "spark.executor.memory": "500m", "spark.executor.cores": "1",
        "spark.cores.max": str(EXECUTORS), "spark.sql.shuffle.partitions": "2", "spark.task.maxFailures": "8",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.python.daemon.module": "tamis.spark.daemon",
    }  # fmt: skip
    session = on_spark.session(master, log=folder / "driver.log", config=config, quick=True)
    wait_for(session, EXECUTORS)
    table = session.createDataFrame(list(rules(1).items()), "subscription_id int, condition string")
    compiled = on_spark.compiled(table)
    # Hosts share no disk with the driver: nothing of the forest is left on it once it is planted.
    assert compiled.forest.carrier is not None
    assert not os.listdir(forests.folder())
    disturbed = streamed(session, folder / "disturbed", versions, disturbed=True)
    assert session.range(100, numPartitions=8).mapInArrow(same, "id bigint").count() == 100
    pairs = sorted(map(tuple, on_spark.match(session.range(0, 60, 1, 8), compiled).collect()))
    assert pairs == sorted(
        (each, rule) for each in range(60) for rule in (1, 101) if (each % 3 == 0, each < 1)[rule > 1]
    )
    if how == "twice":
        assert disturbed == streamed(session, folder / "undisturbed", versions, disturbed=False)
    (folder / "rows.json").write_text(json.dumps(disturbed))
    print("done", flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
