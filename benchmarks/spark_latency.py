"""How long does a micro-batch take, and what of the processor time is there before the first event?

spark_latency    p50 and p99 of a micro-batch of `match_stream`, from Spark's trigger to its commit, by the events of a
                 batch, while rules stay and while they change with every batch
spark_scaling    processor time of Spark by the number of events: what is there anyway, and what each further event
                 costs, beside the local matcher
spark_compiling  processor time of each step by which a table of rules becomes a forest that workers have laid out

Processor time is Java's and that of all processes below it.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from pyarrow import parquet

from benchmarks.cases import CASES
from benchmarks.spark_keeping import least_spent, wide_events, wide_rules
from benchmarks.spark_keeping import locally as matched_locally
from tamis import spark as on_spark
from tamis.matching.admission import CandidateRow, admitted
from tamis.matching.matcher import Matcher
from tamis.matching.uniting import united

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_WARM = 0.2
"""This share of the batches is not counted: Java still compiles."""


def spark_latency(
    batch_sizes: Sequence[int] = (100, 10_000),
    subscription_count: int = 1_000,
    batches: int = 60,
    master: str = "local[2]",
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does a micro-batch take, with and without a change of rules?"""
    chance = np.random.default_rng(seed)
    rules = dict(wide_rules(subscription_count, chance))
    with on_spark.running(master, log=os.devnull) as session:
        for size in batch_sizes:
            for is_changing in (False, True):
                with TemporaryDirectory() as folder:
                    yield _latency(session, Path(folder), rules, size, batches, chance, is_changing=is_changing)


def _latency(
    session: Any, folder: Path, rules: dict[int, str], size: int, batches: int, chance: Any, *, is_changing: bool
) -> dict[str, Any]:
    (folder / "events").mkdir()
    for number in range(batches):
        parquet.write_table(wide_events(size, chance).select(range(4)), folder / "events" / f"{number:06}.parquet")
    log = on_spark.SubscriptionLog(folder / "log")
    log.add(rules)
    records: list[dict[str, Any]] = []

    def seen(record: dict[str, Any]) -> None:
        records.append(record)
        if is_changing:
            log.add({1: f"price < {len(records)}"})

    columns = session.read.parquet(str(folder / "events")).schema
    events = session.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
    stream = on_spark.match_stream(
        events, log, out=folder / "out", checkpoint=folder / "checkpoint", keep=["number"],
        trigger={"availableNow": True}, on_batch=seen,
    )  # fmt: skip
    stream.await_end()
    counted = records[int(len(records) * _WARM) :]
    whole_ms = [1e3 * record["trigger_s"] for record in counted]
    return {
        "batch_events": size,
        "subscriptions": len(rules),
        "rules_change": is_changing,
        "batches": len(counted),
        "p50_ms": float(np.percentile(whole_ms, 50)),
        "p99_ms": float(np.percentile(whole_ms, 99)),
        "ours_p50_ms": float(np.percentile([1e3 * record["batch_s"] for record in counted], 50)),
        "compile_p50_ms": float(np.percentile([1e3 * record["compile_s"] for record in counted], 50)),
        "versions": len({record["version"] for record in counted}),
        "events": sum(record["rows_in"] for record in records),
    }


def spark_scaling(
    subscription_counts: Sequence[int] = (1_000, 10_000),
    event_counts: Sequence[int] = (400_000, 3_200_000),
    runs: int = 3,
    master: str = "local[2]",
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """What of Spark's processor time is there anyway, and what does each further event cost?"""
    chance = np.random.default_rng(seed)
    with TemporaryDirectory() as folder, on_spark.running(master, log=os.devnull, quick=False) as session:
        gateway: Any = session.sparkContext._gateway
        tables = {count: wide_events(count, chance).select(range(4)) for count in event_counts}
        for count, table in tables.items():
            (Path(folder) / str(count)).mkdir()
            for number, start in enumerate(range(0, count, -(-count // 8))):
                parquet.write_table(table.slice(start, -(-count // 8)), f"{folder}/{count}/{number}.parquet")
        for rule_count in subscription_counts:
            rules = wide_rules(rule_count, chance)
            compiled = on_spark.compiled(session.createDataFrame(rules, "subscription_id bigint, condition string"))
            spent: dict[int, tuple[float, float]] = {}
            for count, table in tables.items():
                local_s, expected = matched_locally(rules, table, runs)
                matches = on_spark.match(session.read.parquet(f"{folder}/{count}"), compiled, keep=["number"])
                wrong = abs(matches.count() - expected)
                spent[count] = sum(least_spent(gateway.proc.pid, matches, runs)), local_s
                few = min(spent)
                further = count - few
                yield {
                    "subscriptions": rule_count,
                    "events": count,
                    "spark_cpu_s": spent[count][0],
                    "local_cpu_s": local_s,
                    "of_local": spent[count][0] / local_s,
                    "us_each_further": 1e6 * (spent[count][0] - spent[few][0]) / further if further else None,
                    "local_us_each_further": 1e6 * (local_s - spent[few][1]) / further if further else None,
                    "matches": expected,
                    "wrong": wrong,
                }


def spark_compiling(
    name: str = "auction", subscription_counts: Sequence[int] = (10_000, 100_000), tasks: int = 2, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """What does each step of compiling cost, from texts to a forest that is laid out? The steps, without Spark."""
    events = CASES[name]().events(2_048, seed)
    for count in subscription_counts:
        table = CASES[name]().subscriptions(count, seed)
        rows = [CandidateRow(*row) for row in zip(*(table.column(each).to_pylist() for each in range(2)), strict=True)]
        rows.sort(key=lambda row: row.id)
        with TemporaryDirectory() as folder:
            row: dict[str, Any] = {"workload": name, "subscriptions": count}
            share = -(-count // tasks)

            def timed(step: str, run: Callable[[], Any], row: dict[str, Any] = row) -> Any:
                start = process_time()
                value = run()
                row[step] = row.get(step, 0.0) + process_time() - start
                return value

            paths = [Path(folder) / str(number) for number in range(tasks)]
            for number, path in enumerate(paths):
                part = rows[number * share : (number + 1) * share]
                matcher, _ = timed("read_s", lambda part=part: admitted(part, None))
                timed("save_s", lambda matcher=matcher, path=path: matcher.save(path))
            parts = [timed("load_s", lambda path=path: Matcher.load(path)) for path in paths]
            whole = timed("unite_s", lambda parts=parts: united(parts, None))
            forest = Path(folder) / "forest"
            timed("save_s", lambda whole=whole, forest=forest: whole.save(forest))
            matcher = timed("load_s", lambda forest=forest: Matcher.load(forest))
            timed("lay_out_s", lambda matcher=matcher: matcher.learn(events))
            timed("save_s", lambda matcher=matcher, forest=forest: matcher.save(f"{forest}.informed"))
            yield row | {"whole_s": sum(value for key, value in row.items() if key.endswith("_s"))}
