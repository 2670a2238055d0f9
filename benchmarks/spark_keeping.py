"""What do the columns cost that only come out again?

    spark_keeping    processor time of Java and of the workers to match a table of 20 columns: keeping one of them,
                     keeping all, read by Spark and by workers; beside Spark's scan of the same columns, and beside the
                     local matcher

Processor time, not time: Java's and that of all processes below it, the least of some runs. It is told apart from what
others do on the machine, though not from what they do to its caches.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tamis import spark as on_spark
from tamis.matching.matcher import Matcher
from tamis.spark.file_scans import SETTING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COLUMNS = 20
_FILES = 8
_CATEGORIES = 500
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def spark_keeping(
    subscription_counts: Sequence[int] = (1_000, 10_000),
    event_count: int = 400_000,
    runs: int = 4,
    master: str = "local[2]",
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How much processor time does it take to keep 20 columns, beside a scan and beside the local matcher?"""
    chance = np.random.default_rng(seed)
    with TemporaryDirectory() as folder, on_spark.running(master, log=os.devnull, quick=False) as session:
        events = wide_events(event_count, chance)
        size = -(-event_count // _FILES)
        for number in range(_FILES):
            parquet.write_table(events.slice(number * size, size), f"{folder}/{number}.parquet")
        frame = session.read.parquet(folder)
        gateway: Any = session.sparkContext._gateway
        java = gateway.proc.pid

        scan = least_spent(java, frame, runs)
        for count in subscription_counts:
            rules = wide_rules(count, chance)
            compiled = on_spark.compiled(session.createDataFrame(rules, "subscription_id bigint, condition string"))
            local_s, expected = locally(rules, events, runs)
            for reader in ("spark", "workers"):
                session.conf.set(SETTING, reader)
                for kept in (1, COLUMNS):
                    keep = events.column_names[:kept]
                    matches = on_spark.match(frame, compiled, keep=keep)
                    wrong = abs(matches.count() - expected)
                    java_s, workers_s = least_spent(java, matches, runs)
                    yield {
                        "subscriptions": count,
                        "reader": reader,
                        "columns_kept": kept,
                        "java_cpu_s": java_s,
                        "workers_cpu_s": workers_s,
                        "of_scan": (java_s + workers_s) / sum(scan),
                        "of_local": (java_s + workers_s) / local_s,
                        "scan_cpu_s": sum(scan),
                        "local_cpu_s": local_s,
                        "matches": expected,
                        "wrong": wrong,
                    }
            session.conf.unset(SETTING)


def wide_events(count: int, chance: np.random.Generator) -> pa.Table:
    """Return events of 20 columns, half of the others texts; rules ask for three of them."""
    columns = {
        "number": pa.array(range(count)),
        "price": pa.array(chance.integers(0, 1_000_000, count)),
        "category": pa.array([f"category {each}" for each in chance.integers(0, _CATEGORIES, count)]),
        "bids": pa.array(chance.integers(0, 100, count)),
    }
    while len(columns) < COLUMNS:
        numbers = chance.integers(0, 1_000_000, count)
        texts = [f"text {each}" for each in numbers] if len(columns) % 2 else numbers
        columns[f"other_{len(columns)}"] = pa.array(texts)
    return pa.table(columns)


def wide_rules(count: int, chance: np.random.Generator) -> list[tuple[int, str]]:
    """Return rules, each about one category."""
    draws = zip(
        chance.integers(0, _CATEGORIES, count).tolist(),
        chance.integers(0, 1_000_000, count).tolist(),
        chance.integers(0, 100, count).tolist(),
        strict=True,
    )
    return [
        (number, f"category = 'category {category}' AND price < {price} AND bids > {bids}")
        for number, (category, price, bids) in enumerate(draws)
    ]


def locally(rules: list[tuple[int, str]], events: pa.Table, runs: int) -> tuple[float, int]:
    """Return the least processor time in which the local matcher matches events, and how many pairs there are."""
    matcher = Matcher()
    matcher.add_many(rules)
    parts = [events.slice(start, 32_768) for start in range(0, events.num_rows, 32_768)]
    found = sum(matcher.match_batch(part).num_rows for part in parts)  # lays itself out
    best = float("inf")
    for _ in range(runs):
        start = process_time()
        for part in parts:
            matcher.match_batch(part)
        best = min(best, process_time() - start)
    return best, found


def least_spent(java: int, frame: Any, runs: int) -> tuple[float, float]:
    """Read a DataFrame some times; return the seconds that Java and the workers spent when it was least."""
    times: list[tuple[float, float]] = []
    while len(times) < runs:
        once = _spent(java, frame)
        if once is not None:
            times.append(once)
    return min(times, key=sum)


def _spent(java: int, frame: Any) -> tuple[float, float] | None:
    """Read a DataFrame to its end; return the seconds that Java and the workers spent.

    None if a process ended meanwhile: nobody knows what it had spent.
    """
    before = processes(java)
    frame.write.format("noop").mode("overwrite").save()
    after = processes(java)
    if before.keys() - after.keys():
        return None
    own = after.pop(java) - before.pop(java)
    return own, sum(after.values()) - sum(before.values())


def processes(root: int) -> dict[int, float]:
    """Return a process and all below it, with the seconds of each."""
    seconds: dict[int, float] = {}
    below: dict[int, list[int]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        seconds[int(entry)] = sum(map(int, fields[11:13])) / _TICKS
        below.setdefault(int(fields[1]), []).append(int(entry))
    found, waiting = {}, [root]
    while waiting:
        each = waiting.pop()
        found[each] = seconds[each]
        waiting += below.get(each, ())
    return found
