"""How does a small Spark start quickly, and quietly?

A command line tool is used for seconds, so its Java machine is tuned to start rather than to last, and its Python
workers are forked from a process that has imported the matcher already. What Java and Spark say goes to a file; a
person who runs a command reads the command's own words.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from tamis.spark import archive
from tamis.spark.errors import StartError
from tamis.spark.java import require_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

ARROW_BATCHES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
"""How Spark cuts rows into Arrow batches: by their number alone. With a limit on bytes it adds up the sizes of all
columns after each row, which takes longer than copying the row. A text then has room for 262 kB on average."""
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""What `top_k` needs to keep of a stream; a session that we start has it, one that runs is left as it is."""
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compile quickly rather than well; peak speed is the kernels' part, which are not Java."""


def java_options(quick: bool) -> str:
    """Return the options of a local Java machine: one that is there soon, or one that is fast in the long run."""
    return f"{QUICK_START + ' ' if quick else ''}-XX:-UsePerfData {archive.java_options(archive.whole_archive())}"


_JAVA = "spark.driver.extraJavaOptions"


def is_remote(master: str | None) -> bool:
    """Is it the address of a Spark Connect server? Then Java is the server's business."""
    return master is not None and master.startswith("sc://")


def session(
    master: str | None = None,
    *,
    name: str = "tamis",
    log: str | os.PathLike[str] | None = None,
    config: Mapping[str, str] | None = None,
    quick: bool | None = None,
) -> SparkSession:
    """Return a Spark session, the present one if there is one.

    master    "local[*]" unless said otherwise; a session that `spark-submit` started keeps its own
    log       a file for what Java and Spark have to say; without it they say it on standard error
    config    further settings of Spark
    quick     whether Java is to start soon rather than to run fast; so it is if no master is named
    """
    if not is_remote(master):
        require_java()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    chosen = dict(ARROW_BATCHES)
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted and master is not None and is_remote(master):
        return builder.remote(master).config(map={**ARROW_BATCHES}).getOrCreate()
    if not is_submitted:
        quick = master is None if quick is None else quick
        master = master or "local[*]"
        builder = builder.master(master)
        chosen |= {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        if SparkSession.getActiveSession() is None:
            chosen |= {STATE_STORE: ROCKS_DB}
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            chosen |= {
                _JAVA: "" if config and _JAVA in config else java_options(quick),
                "spark.driver.memory": "2g",
                "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
                "spark.python.daemon.module": "tamis.spark.daemon",
                "spark.sql.session.timeZone": "UTC",
            }
    for key, value in {**chosen, **(config or {})}.items():
        builder = builder.config(key, value)
    try:
        with _logging_to(log):
            spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise _not_started(log, (config or {}).get("spark.jars.packages")) from None
    if log is not None:
        spark.sparkContext.setLogLevel("WARN")
    return spark


def _not_started(log: str | os.PathLike[str] | None, packages: str | None) -> StartError:
    """Return the error that says where to look, and what most likely was missing."""
    message = "Spark did not start"
    if packages:
        message += f": most likely it cannot fetch {packages}; where it may not, name the jars (--jars, spark.jars)"
    if log is not None:
        seen = "a log would show it (--log FILE)" if str(log) == os.devnull else f"{os.fspath(log)} has its own words"
        message += f"; {seen}"
    return StartError(message)


@contextmanager
def running(master: str | None = None, **options: Any) -> Iterator[SparkSession]:
    """Give a session for a while: the present one, or one that is stopped afterwards; options as for `session`."""
    from pyspark.sql import SparkSession

    present = SparkSession.getActiveSession()
    if present is not None:
        yield present
        return
    if not is_remote(master):
        Thread(target=_import, name="tamis importing", daemon=True).start()  # while Java starts
    started = session(master, **options)
    try:
        yield started
    finally:
        started.stop()
        if master is None:
            archive.made_later()


def _import() -> None:
    """Import what the driver will need: the matcher, and its kernels."""
    with suppress(Exception):  # whoever needs it will say so
        from tamis.spark.daemon import warm_up

        warm_up()


@contextmanager
def _logging_to(log: str | os.PathLike[str] | None) -> Iterator[None]:
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
