"""A driver on a cluster: a batch and a stream, slow enough to kill a worker meanwhile. Run by `test_cluster`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from tamis import spark as on_spark
from tamis.spark import subscriptions

TASKS, FILES, ROWS = 24, 5, 500
SUBSCRIPTIONS = {number: f"id % 97 = {number} OR id = {number * 31}" for number in range(97)}


def slowly(batches):
    """Take a while over every partition."""
    time.sleep(0.5)
    yield from batches


def main(master: str, folder: Path) -> None:
    config = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "700m", "spark.task.maxFailures": "8"}
    session = on_spark.session(master, log=folder / "driver.log", config=config)
    rules = session.createDataFrame(list(SUBSCRIPTIONS.items()), "subscription_id int, condition string")
    subscriptions.COMPILED_BY_DRIVER = 10  # so that the cluster compiles them
    compiled = on_spark.compiled(rules)
    assert compiled.forest is not None and compiled.forest.carrier is not None
    events = session.range(0, TASKS * ROWS, 1, TASKS).mapInArrow(slowly, "id bigint")
    print("batch", flush=True)
    pairs = on_spark.match(events, compiled)
    pairs.write.parquet(str(folder / "pairs"))

    log = on_spark.SubscriptionLog(folder / "log")
    log.add(SUBSCRIPTIONS)
    (folder / "arriving").mkdir()
    for number in range(FILES):
        ids = pa.table({"id": list(range(number * ROWS, (number + 1) * ROWS))})
        parquet.write_table(ids, folder / "arriving" / f"{number}.parquet")
    source = session.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).parquet(str(folder / "arriving"))
    print("stream", flush=True)
    assert sys.stdin.readline() == "go on\n"  # there are two workers again
    stream = on_spark.match_stream(
        source.repartition(8).mapInArrow(slowly, "id bigint"),
        log,
        out=folder / "out",
        checkpoint=folder / "checkpoint",
        trigger={"availableNow": True},
        on_batch=lambda record: print("batch", record["batch"], flush=True),
    )
    stream.await_end()
    on_spark.read_matches(session, folder / "out").select("id", "subscription_id").write.parquet(
        str(folder / "streamed")
    )
    print("done", flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
