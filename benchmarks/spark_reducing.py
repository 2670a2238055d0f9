"""What does it take to find the rules that say nothing new?

spark_reducing    seconds and processor time of `tamis.spark.reduce`, beside one index of all rules in one process,
                  which must find the same
"""

from __future__ import annotations

import os
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.cases import CASES
from benchmarks.spark_keeping import processes
from tamis import spark as on_spark
from tamis.language.functions import NO_FUNCTIONS
from tamis.relations.deciding import DEFAULT_BUDGET
from tamis.spark.reducing_tasks import Comparing, Preparing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_LOCALLY = 20_000


def spark_reducing(
    name: str = "auction",
    subscription_counts: Sequence[int] = (1_000, 10_000),
    master: str = "local[2]",
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does it take to relate rules, and how many could go?"""
    with on_spark.running(master, log=os.devnull, quick=False) as session:
        gateway: Any = session.sparkContext._gateway
        for count in subscription_counts:
            rules = CASES[name]().subscriptions(count, seed).select(["subscription_id", "condition"])
            frame = session.createDataFrame(rules).repartition(4).cache()
            frame.count()
            start, before = perf_counter(), sum(processes(gateway.proc.pid).values())
            reduction = on_spark.reduce(frame)
            seconds, cpu_s = perf_counter() - start, sum(processes(gateway.proc.pid).values()) - before
            found = {row[0]: tuple(row)[1:] for row in reduction.relations.collect()}
            local_s, wrong = None, 0
            if count <= _MOST_LOCALLY:
                begin = process_time()
                expected = _locally(rules)
                local_s = process_time() - begin
                wrong = sum(found.get(each) != expected.get(each) for each in {*found, *expected})
            frame.unpersist()
            yield {
                "workload": name,
                "subscriptions": count,
                "seconds": seconds,
                "cpu_s": cpu_s,
                "local_cpu_s": local_s,
                **reduction.counts,
                "wrong": wrong,
            }


def _locally(rules: pa.Table) -> dict[Any, tuple[str, Any]]:
    """Relate rules in one place of this process."""
    numbered = rules.append_column("place", pa.array(range(rules.num_rows)))
    preparing = Preparing(None, NO_FUNCTIONS, "int64", DEFAULT_BUDGET)
    prepared = pa.Table.from_batches(list(preparing.run(iter(numbered.combine_chunks().to_batches())))).to_pylist()
    related: dict[Any, tuple[str, Any]] = {row["id"]: ("never", None) for row in prepared if row["never"]}
    asked = [row for row in prepared if not row["never"]]
    both = pa.table(
        {
            "id": [row["id"] for row in asked] * 2,
            "condition": [row["condition"] for row in asked] * 2,
            "is_general": [True] * len(asked) + [False] * len(asked),
        }
    )
    for row in Comparing(None, NO_FUNCTIONS, "int64", DEFAULT_BUDGET).run(both).to_pylist():
        if row["identical"] is not None:
            related[row["id"]] = ("identical", row["identical"])
        elif row["covered"] is not None:
            related[row["id"]] = ("covered", row["covered"])
    return related
