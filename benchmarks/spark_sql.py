"""What does it cost to match in SQL?

    spark_sql    processor time of Java and of the workers for the same pairs, found by `match` (a step over Arrow
                 batches), by the column function with the columns that rules mention and with all, and by the table
                 function

All of them read the events by Spark and keep one column, so that what is compared is the way into Python and back.
"""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from pyarrow import parquet

from benchmarks.spark_keeping import least_spent, wide_events, wide_rules
from tamis import spark as on_spark
from tamis.spark.file_scans import SETTING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MENTIONED = "struct(category, price, bids)"


def spark_sql(
    subscription_counts: Sequence[int] = (1_000, 10_000),
    event_count: int = 100_000,
    runs: int = 3,
    master: str = "local[2]",
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How much processor time do the functions of SQL take beside `match`?"""
    chance = np.random.default_rng(seed)
    with TemporaryDirectory() as folder, on_spark.running(master, log=os.devnull, quick=False) as session:
        events = wide_events(event_count, chance)
        for number in range(4):
            parquet.write_table(events.slice(number * event_count // 4, event_count // 4), f"{folder}/{number}.parquet")
        frame = session.read.parquet(folder)
        frame.createOrReplaceTempView("events")
        session.conf.set(SETTING, "spark")
        gateway: Any = session.sparkContext._gateway
        for count in subscription_counts:
            rules = session.createDataFrame(wide_rules(count, chance), "subscription_id bigint, condition string")
            compiled = on_spark.compiled(rules)
            on_spark.register(session, rules={"rules": compiled})
            ways = {
                "match": on_spark.match(frame, compiled, keep=["number"]),
                "column function": session.sql(
                    f"SELECT number, explode(tamis_matches({_MENTIONED}, 'rules')) AS id FROM events"
                ),
                "column function, struct(*)": session.sql(
                    "SELECT number, explode(tamis_matches(struct(*), 'rules')) AS id FROM events"
                ),
                "table function": session.sql(
                    "SELECT number, subscription_id FROM "
                    "tamis_match(TABLE(SELECT number, category, price, bids FROM events), 'rules')"
                ),
            }
            pairs = ways["match"].count()
            first: float | None = None
            for way, matches in ways.items():
                wrong = abs(matches.count() - pairs)
                java_s, workers_s = least_spent(gateway.proc.pid, matches, runs)
                first = java_s + workers_s if first is None else first
                yield {
                    "subscriptions": count,
                    "way": way,
                    "java_cpu_s": java_s,
                    "workers_cpu_s": workers_s,
                    "of_match": (java_s + workers_s) / first,
                    "matches": pairs,
                    "wrong": wrong,
                }
