"""What happens to a batch of events inside a worker?

Arrow batches come in and Arrow batches go out: the columns to keep, and beside them what was found. Small batches are
gathered, because a block of some thousand events costs little more than one of a hundred; large results are cut,
because an event can match all of a million subscriptions.

Pairs go out as lists, one row for each event that matches anything, which Spark opens (`columns.opened`): its compiled
loop makes a row of each id in a fraction of the time that it takes to receive one from here, and what is kept
of an event is sent once, not with every match.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.spark.clock import Times
from tamis.spark.hosting import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.matching.matcher import Matcher
    from tamis.spark.forests import ForestFile

RESULTS = ("pairs", "lists", "counts")
GATHERED = 32_768
"""So many events are gathered before they are matched."""
_FIRST = 2_048
_MOST_PAIRS = 2_000_000
"""So many pairs are expected of one slice of the events at most."""
_OUT = 65_536
"""So many rows go out together."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to do with the events of a partition."""

    forest: ForestFile
    names: tuple[str, ...]
    """What the columns are called."""
    keep: int
    """The first so many columns come out again."""
    result: str
    id_type: str
    """Arrow's name for it."""
    clock: Any = None
    """An accumulator for where the time goes (`tamis.spark.clock`), or None."""
    failures: Any = None
    """An accumulator for what functions of the host could not do (`tamis.spark.hosting`), or None."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the batches of a partition."""
        first, start = time(), perf_counter()
        watch = TaskClock()
        forest_s = 0.0
        try:
            for numbered in gathered(batches):
                table = numbered.rename_columns(list(self.names))
                begin = perf_counter()
                matcher = self.forest.matcher(table)
                forest_s += perf_counter() - begin
                with counted(self.failures, matcher.functions):
                    yield from matched(matcher, table, self.keep, self.result, self.id_type, watch)
        finally:
            if self.clock is not None:
                whole = perf_counter() - start
                left = whole - watch.seconds - forest_s
                self.clock.add(Times(watch.seconds, forest_s, left, first, first + whole))


@dataclass(slots=True)
class TaskClock:
    """How long the kernel ran, and how many events it may take at once."""

    seconds: float = 0.0
    rows: int = _FIRST

    def took(self, seconds: float, events: int, pairs: int) -> None:
        """Note what so many events took, and how many to take next: results are to stay small."""
        self.seconds += seconds
        self.rows = int(np.clip(_MOST_PAIRS * events / max(pairs, 1), 64, GATHERED))


def gathered(batches: Iterator[pa.RecordBatch], size: int = GATHERED) -> Iterator[pa.Table]:
    """Put small batches together."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= size:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)


def matched(
    matcher: Matcher, events: pa.Table, keep: int, result: str, id_type: str, watch: TaskClock
) -> Iterator[pa.RecordBatch]:
    """Match events, as many at once as the matches of those before allow; the watch runs meanwhile."""
    for part in slices(events, watch):
        begin = perf_counter()
        values, pairs = answers(matcher, part, result, pa.type_for_alias(id_type))
        kept = part.select(range(keep))
        if result == "pairs":  # what nothing matches is not sent
            matching = pc.greater(pc.list_value_length(values), 0)
            kept, values = kept.filter(matching), values.filter(matching)
        rows = _beside(kept, values)
        watch.took(perf_counter() - begin, part.num_rows, pairs)
        yield from rows.to_batches(_OUT)


def slices(events: pa.Table, watch: TaskClock) -> Iterator[pa.Table]:
    """Cut events, as many at once as the matches of those before allow."""
    start = 0
    while start < events.num_rows:
        part = events.slice(start, watch.rows)
        start += part.num_rows
        yield part


def answers(matcher: Matcher, events: pa.Table, result: str, kind: Any) -> tuple[pa.Array, int]:
    """Return an answer for each event, a count or a list of ids, and how many pairs they stand for."""
    if result == "counts":
        counts = matcher.count_batch(events)
        return counts, int(np.sum(counts.to_numpy()))
    if result == "lists":
        lists = matcher.list_batch(events)
        return pa.ListArray.from_arrays(lists.offsets, lists.values.cast(kind)), len(lists.values)
    pairs = matcher.match_batch(events)  # event by event, and the ids of one in no order that matters
    counts = np.bincount(pairs.column("event").to_numpy(), minlength=events.num_rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pairs.column("subscription").cast(kind).combine_chunks()), pairs.num_rows


def _beside(kept: pa.Table, answers: Any) -> pa.Table:
    """Put what was found beside what is kept; a table without columns knows not how many rows it has."""
    return kept.append_column("found", answers) if kept.num_columns else pa.table({"found": answers})
