"""How fast is the pipeline, beside plain Spark and beside the matcher alone?

    spark            events per second of `tamis.spark.match`, of the Spark that one would write without it, and of the
                     local matcher on one thread, on the same Parquet files
    spark_growth     the same by cores and by the size of Arrow's batches; memory of a worker
    spark_start      seconds until a session has matched its first events, setting by setting

Plain Spark is written in two ways, and the faster one counts: one pass over the events with an expression for each
rule, as many rules at once as its compiler takes well, or one filter for each rule. More rules are more passes or
filters, so their time is computed from that of those that were run (`plain_rules`); nobody waits for 100,000 filters.
"""

from __future__ import annotations

import os
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from benchmarks.cases import CASES
from tamis import spark as on_spark
from tamis.matching.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PROMISED_OF_LOCAL = 0.5
"""From 100,000 subscriptions on, the pipeline keeps this share of the local matcher's events per second."""
PROMISED_TIMES_PLAIN = 50
"""From 1,000 subscriptions on."""
_FILES = 8
_FILTERS = 10


def spark(
    name: str = "auction",
    subscription_counts: Sequence[int] = (100, 1_000, 10_000, 100_000),
    event_count: int = 1_000_000,
    plain_rules: int = 100,
    master: str = "local[2]",
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many events per second does the pipeline match, beside plain Spark and the matcher alone?"""
    with TemporaryDirectory() as folder, on_spark.running(master, log=os.devnull, quick=False) as session:
        events, path = _events(name, event_count, seed, Path(folder))
        frame = session.read.parquet(path)
        for count in subscription_counts:
            subscriptions = CASES[name]().subscriptions(count, seed)
            local = Matcher()
            local.add_many(subscriptions)
            local_s, expected = _local(local, events)
            start = perf_counter()
            compiled = on_spark.compiled(session.createDataFrame(subscriptions))
            compile_s = perf_counter() - start
            matches = on_spark.match(frame, compiled, keep=["number"])
            found = matches.count()  # and lays the forest out
            spark_s = _timed(lambda matches=matches: matches.write.format("noop").mode("overwrite").save())
            texts = subscriptions["condition"].to_pylist()[:plain_rules]
            rule_s = {"one pass": _pass(frame, texts), "filters": _filters(frame, texts[:_FILTERS])}
            plain, plain_s = min(rule_s.items(), key=lambda pair: pair[1])
            plain_s *= count
            filters_s = rule_s["filters"] * count
            yield {
                "workload": name,
                "subscriptions": count,
                "events_per_s": round(event_count / spark_s),
                "local_events_per_s": round(event_count / local_s),
                "of_local": local_s / spark_s,
                "promised_of_local": PROMISED_OF_LOCAL if count >= 100_000 else None,
                "plain": plain,
                "plain_rules": len(texts),
                "plain_events_per_s": event_count / plain_s,
                "times_plain": plain_s / spark_s,
                "times_filters": filters_s / spark_s,
                "promised_times_plain": PROMISED_TIMES_PLAIN if count >= 1_000 else None,
                "compile_s": compile_s,
                "matches": found,
                "wrong": abs(found - expected),
            }


def spark_growth(
    name: str = "auction",
    subscription_count: int = 20_000,
    event_count: int = 400_000,
    cores: Sequence[int] = (1, 2),
    batch_sizes: Sequence[int] = (1_000, 10_000, 65_536),
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How does the pipeline grow with cores and with the size of batches, and what does a worker hold?"""
    with TemporaryDirectory() as folder:
        _, path = _events(name, event_count, seed, Path(folder))
        for core_count in cores:
            with get_context("spawn").Pool(1) as process:  # a Java that was started stays where it is
                yield from process.apply(
                    _grown, (name, subscription_count, event_count, core_count, batch_sizes, path, seed)
                )


def _grown(
    name: str,
    subscription_count: int,
    event_count: int,
    core_count: int,
    batch_sizes: Sequence[int],
    path: str,
    seed: int,
) -> list[dict[str, Any]]:
    """Return the rows for some cores of this machine, on which this process, Java and the workers stay.

    A task of Spark's and its worker overlap on two cores: without that, one core would be two.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:core_count]))
    rows = []
    with on_spark.running(f"local[{core_count}]", log=os.devnull, quick=False) as session:
        compiled = on_spark.compiled(session.createDataFrame(CASES[name]().subscriptions(subscription_count, seed)))
        for size in batch_sizes:
            session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(size))
            matches = on_spark.match(session.read.parquet(path), compiled, keep=["number"])
            found = matches.count()
            seconds = _timed(lambda matches=matches: matches.write.format("noop").mode("overwrite").save())
            rows.append(
                {
                    "workload": name,
                    "subscriptions": subscription_count,
                    "cores": core_count,
                    "batch": size,
                    "events_per_s": round(event_count / seconds),
                    "worker_mb": _worker_mb(session, compiled),
                    "forest_mb": compiled.forest.bytes / 1e6 if compiled.forest else None,
                    "matches": found,
                }
            )
    return rows


def spark_start(repeats: int = 3) -> Iterator[dict[str, Any]]:
    """How long does it take until a new session has matched its first events, and what does each setting save?"""
    from tamis.spark import archive

    archive.made()
    best: dict[str, list[float]] = {}
    for _ in range(repeats):  # in turn, so that a busy moment hits all of them
        for told, (java, python) in _STARTS.items():
            start = perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", _START, java, python], capture_output=True, text=True, check=True, timeout=600
            )
            found = [*map(float, done.stdout.split()[-4:]), perf_counter() - start]
            best[told] = [min(pair) for pair in zip(found, best.get(told, found), strict=True)]
    slowest = best[next(iter(_STARTS))]
    for told, (session_s, first_s, second_s, java_cpu_s, process_s) in best.items():
        yield {
            "session": told,
            "session_s": session_s,
            "first_match_s": first_s,
            "second_match_s": second_s,
            "process_s": process_s,
            "java_cpu_s": java_cpu_s,
            "java_cpu_saved": 1 - java_cpu_s / slowest[3],
        }


_STARTS = {
    "Spark as it comes": ("", ""),
    "workers preloaded": ("", "daemon"),
    "and a quick Java": ("quick", "daemon"),
    "and the class archive": ("quick archive", "daemon"),
    "the archive, a lasting Java": ("archive", "daemon"),
}
"""What is set for Java, and for Python's workers; the fourth is for the command line, the last for long jobs."""
_START = """
import os, sys, time
java, python = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pathlib import Path
from tamis import spark as on_spark
from tamis.spark import archive
from tamis.spark.session import QUICK_START
from pyspark.sql import SparkSession

start = time.perf_counter()
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
options = [QUICK_START] if "quick" in java else []
if "archive" in java:
    path = archive.found()
    assert path is not None, "there is no archive"
    options.append(archive.java_options(path))
builder = builder.config("spark.driver.extraJavaOptions", " ".join(options))
if python:
    builder = builder.config("spark.python.daemon.module", "tamis.spark.daemon")
session = builder.getOrCreate()
ready = time.perf_counter()
# Not from a list, for which Spark would start other workers.
rules = session.range(1).selectExpr("1 AS subscription_id", "'id % 2 = 0' AS condition")
assert on_spark.match(session.range(1000), rules).count() == 500
first = time.perf_counter()
assert on_spark.match(session.range(1000), rules).count() == 500
second = time.perf_counter()
ticks = Path(f"/proc/{session.sparkContext._gateway.proc.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
print(ready - start, first - ready, second - first, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"))
session.stop()
"""


def _events(name: str, count: int, seed: int, folder: Path) -> tuple[pa.Table, str]:
    """Write events to files; return them, and where they are."""
    made = CASES[name]().events(count, seed + 2)
    events = made.append_column("number", pa.array(range(count)))
    size = -(-count // _FILES)
    for number in range(_FILES):
        parquet.write_table(events.slice(number * size, size), folder / f"{number}.parquet")
    return events, str(folder)


def _local(matcher: Matcher, events: pa.Table, size: int = 32_768) -> tuple[float, int]:
    """Match on one thread of this process; return the seconds, and the number of pairs."""
    parts = [events.slice(start, size) for start in range(0, events.num_rows, size)]
    matcher.match_batch(parts[0])  # lays itself out
    start = perf_counter()
    found = sum(matcher.match_batch(part).num_rows for part in parts)
    return perf_counter() - start, found


def _pass(events: Any, texts: list[str]) -> float:
    """Let Spark evaluate rules without us, in one pass; return the seconds for each rule."""
    from pyspark.sql import functions

    ids = (functions.when(functions.expr(text), functions.lit(number)) for number, text in enumerate(texts))
    pairs = events.select("number", functions.explode(functions.array_compact(functions.array(*ids))))
    return _timed(lambda: pairs.write.format("noop").mode("overwrite").save()) / len(texts)


def _filters(events: Any, texts: list[str]) -> float:
    """Let Spark run one filter for each rule; return the seconds for each."""

    def run() -> None:
        for text in texts:
            events.where(text).select("number").write.format("noop").mode("overwrite").save()

    return _timed(run) / len(texts)


def _timed(run: Callable[[], object]) -> float:
    """Return the best of three runs, in seconds: Java compiles during the first."""
    best = float("inf")
    for _ in range(3):
        start = perf_counter()
        run()
        best = min(best, perf_counter() - start)
    return best


def _worker_mb(session: Any, compiled: Any) -> float:
    """Return the memory that a worker has of its own once it has the forest open: what is mapped is not in it."""

    def measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compiled_forest.matcher()
        own = 0
        for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
            if line.startswith(("Private_Dirty", "Private_Clean")):
                own += int(line.split()[1])
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"mb": [own / 1e3] * batch.num_rows})

    compiled_forest = compiled.forest
    return float(session.range(1).mapInArrow(measured, "mb double").collect()[0][0])
