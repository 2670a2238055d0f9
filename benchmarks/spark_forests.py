"""What does it cost to bring a forest to a host?

    spark_forests    seconds to hand a forest to Spark, and of the first task on a host that writes it down, beside
                     those of a task that finds it there and beside a plain copy of the file

The host is this machine, so nothing crosses a network: what is left is what a forest costs in any case. The bytes are
random, which no compression makes fewer.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis import spark as on_spark
from tamis.spark.carriers import VersionLine, carried

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TASKS = 4


def spark_forests(megabytes: Sequence[float] = (1, 10, 100), master: str = "local[2]") -> Iterator[dict[str, Any]]:
    """How long does a forest travel, and what does a task pay that finds it there?"""
    with on_spark.running(master, log=os.devnull) as session:
        session.range(1).mapInArrow(_same, "id bigint").count()  # workers are there
        for size in megabytes:
            content = os.urandom(int(size * 1e6))
            digest = blake2b(content).hexdigest()
            with TemporaryDirectory() as folder:
                path = Path(folder) / "forest"
                path.write_bytes(content)
                start = perf_counter()
                (Path(folder) / "copy").write_bytes(path.read_bytes())
                copy_s = perf_counter() - start
                start = perf_counter()
                carrier = carried(session, path, VersionLine())
                hand_over_s = perf_counter() - start
            tasks = session.range(0, _TASKS, 1, _TASKS).mapInArrow(_Opening(carrier, digest).run, _Opening.columns)
            waited = sorted(row.seconds for row in tasks.collect())
            again = [row.seconds for row in tasks.collect()]
            wrong = sum(row.wrong for row in tasks.collect())
            carrier.drop()
            yield {
                "megabytes": size,
                "copy_s": copy_s,
                "hand_over_s": hand_over_s,
                "first_task_s": waited[-1],
                "next_task_s": max(again),
                "first_of_copy": waited[-1] / copy_s,
                "wrong": wrong,
            }


class _Opening:
    """What a task does: see that the file is there, and is what was sent."""

    columns = "seconds double, wrong int"

    def __init__(self, carrier: Any, digest: str) -> None:
        self._carrier, self._digest = carrier, digest

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            start = perf_counter()
            path = self._carrier.local_path()
            seconds = perf_counter() - start
            is_wrong = blake2b(Path(path).read_bytes()).hexdigest() != self._digest
            yield pa.RecordBatch.from_arrays(
                [pa.array([seconds]), pa.array([int(is_wrong)], pa.int32())], ["seconds", "wrong"]
            )


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
