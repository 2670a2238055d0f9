"""How does a small Spark start quickly, and quietly?

A command line tool is used for seconds, so its Java machine is tuned to start rather than to last, and its Python
workers are forked from a process that has imported the matcher already. What Java and Spark say goes to a file; a
person who runs a command reads the command's own words.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.spark.java import require_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto"
"""Compile quickly rather than well; peak speed is the kernels' part, which are not Java."""


def is_remote(master: str | None) -> bool:
    """Is it the address of a Spark Connect server? Then Java is the server's business."""
    return master is not None and master.startswith("sc://")


def session(
    master: str | None = None,
    *,
    name: str = "tamis",
    log: str | os.PathLike[str] | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a Spark session, the present one if there is one.

    master    "local[*]" unless said otherwise; a session that `spark-submit` started keeps its own
    log       a file for what Java and Spark have to say; without it they say it on standard error
    config    further settings of Spark
    """
    if not is_remote(master):
        require_java()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    chosen = {"spark.sql.execution.arrow.maxRecordsPerBatch": "16384"}
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted and master is not None and is_remote(master):
        return builder.remote(master).getOrCreate()
    if not is_submitted:
        master = master or "local[*]"
        builder = builder.master(master)
        chosen |= {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            chosen |= {
                "spark.driver.extraJavaOptions": QUICK_START,
                "spark.driver.memory": "2g",
                "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
                "spark.python.daemon.module": "tamis.spark.daemon",
                "spark.sql.session.timeZone": "UTC",
            }
    for key, value in {**chosen, **(config or {})}.items():
        builder = builder.config(key, value)
    with _told_to(log):
        found = builder.getOrCreate()
    if log is not None:
        found.sparkContext.setLogLevel("WARN")
    return found


@contextmanager
def running(master: str | None = None, **options: Any) -> Iterator[SparkSession]:
    """Give a session for a while: the present one, or one that is stopped afterwards; options as for `session`."""
    from pyspark.sql import SparkSession

    present = SparkSession.getActiveSession()
    if present is not None:
        yield present
        return
    started = session(master, **options)
    try:
        yield started
    finally:
        started.stop()


@contextmanager
def _told_to(log: str | os.PathLike[str] | None) -> Iterator[None]:
    """Let what is started meanwhile write its complaints to a file: Java inherits standard error when it starts."""
    if log is None:
        yield
        return
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
