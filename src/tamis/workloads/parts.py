"""How is traffic made that is larger than one machine's memory? In parts, of which each needs nothing of the others.

A part has so many rows, and a seed of its own that follows from the seed and the part's number; the first has the seed
itself. So a file is the same whoever makes which part, and whether they are made in one process or by many. What a
workload steers over all its subscriptions, the pools of `Expressions`, it steers in each part: expressions of two parts
have predicates in common, and no larger expressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.workloads.errors import ParameterError
from tamis.workloads.timed import timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.workloads.base import Workload

PART_ROWS = 200_000
KINDS = ("events", "subscriptions", "advertisements")


@dataclass(frozen=True)
class TrafficOrder:
    """So many events, subscriptions or advertisements of a workload.

    >>> from tamis.workloads import WORKLOADS
    >>> order = TrafficOrder(WORKLOADS["auction"](), "advertisements", count=5, seed=1, part_rows=2)
    >>> [part["advertisement_id"].to_pylist() for part in order.parts()]
    [[0, 1], [2, 3], [4]]
    """

    workload: Workload
    kind: str
    """One of `KINDS`."""
    count: int
    seed: int
    rate_per_s: float | None = None
    """How many events are published a second; None if nothing is known of their times."""
    part_rows: int = PART_ROWS

    def __post_init__(self) -> None:
        if not hasattr(self.workload, self.kind):
            raise ParameterError("advertisements", self.count, f"0: the workload {self.workload.name!r} has none")

    @property
    def part_count(self) -> int:
        """How many parts there are; nothing at all is one part, so that it has columns."""
        return max(1, -(-self.count // self.part_rows))

    def parts(self) -> Iterator[pa.Table]:
        """Make one part after the other."""
        return map(self.part, range(self.part_count))

    def part(self, number: int) -> pa.Table:
        """Make one part."""
        before = number * self.part_rows
        count = min(self.part_rows, self.count - before)
        seed = self.seed + (number << 32)  # no seed that people choose
        make: Any = getattr(self.workload, self.kind)
        table: pa.Table = make(count, seed)
        if self.kind == "events":
            return table if self.rate_per_s is None else timed(table, self.rate_per_s, seed, before)
        identifiers = pa.array(np.arange(before, before + count, dtype=np.int64))
        return table.set_column(0, table.column_names[0], identifiers)
