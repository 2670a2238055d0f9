"""Where does the time of a batch go?

A block of events goes through stages: values become codes, events are sorted by them, narrow clauses are checked event
by event and broad ones with bitmaps, the matches are sorted by event, and ids become an Arrow table. The stages are
calls from Python to kernels, so they are timed from outside; a profiler would cost more than some of them take.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.cases import built, matches_of
from tamis.matching.block import kernels
from tamis.matching.block.algorithm import BlockSnapshot
from tamis.matching.block.maps import Maps
from tamis.matching.block.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tamis.matching.matcher import Matcher

STAGES: dict[str, tuple[tuple[Any, str], ...]] = {
    "encoding": ((Segment, "codes"),),
    "partitioning": ((kernels, "sort_by_code"),),
    "narrow": ((kernels, "match_keys"),),
    "bitmaps": ((Maps, "filled"), (kernels, "match_maps")),
    "grouping": ((kernels, "count_events"), (kernels, "place_matches")),
}
"""What Python calls while a block is matched, in order, and none of them inside another."""


def shares_of_time(
    names: Sequence[str] = ("w1", "w2", "auction", "expressions", "flights"),
    subscription_counts: Sequence[int] = (1_000, 10_000, 100_000),
    batch_size: int = 8_192,
    passes: int = 3,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """Which share of the time of a batch does each stage take?"""
    for name in names:
        for count in subscription_counts:
            case = built(name, count, batch_size, seed, with_yardstick=False)
            batch = case.batch(batch_size)
            matches = case.matcher.match_batch(batch)
            best = min((stage_times(case.matcher, batch) for _ in range(passes)), key=lambda times: times["all"])
            yield {
                "workload": name,
                "subscriptions": count,
                "batch": batch.num_rows,
                "event_us": best["all"] / batch.num_rows * 1e6,
                **{stage: best[stage] / best["all"] for stage in (*STAGES, "table", "rest")},
                "matches": matches.num_rows,
                "wrong": case.wrong_in(matches_of(matches, batch.num_rows)),
            }


def stage_times(matcher: Matcher, batch: pa.Table) -> dict[str, float]:
    """Match a batch; return the seconds of each stage, of the table of ids, of the rest, and of all.

    The batch must have been matched before: a kernel must not be compiled while watched.
    """
    stages = {**STAGES, "matching": ((BlockSnapshot, "match_events"),)}
    with _watched(stages) as times:
        start = perf_counter()
        matcher.match_batch(batch)
        times["all"] = perf_counter() - start
    known = {stage: times[stage] for stage in STAGES}
    matching = times["matching"]
    return known | {"table": times["all"] - matching, "rest": matching - sum(known.values()), "all": times["all"]}


@contextmanager
def _watched(stages: Mapping[str, tuple[tuple[Any, str], ...]]) -> Iterator[dict[str, float]]:
    """Time calls from outside, and leave no trace."""
    times: dict[str, float] = defaultdict(float)

    def watching(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            start = perf_counter()
            result = function(*arguments, **named)
            times[stage] += perf_counter() - start
            return result

        return call

    with ExitStack() as stack:
        for stage, places in stages.items():
            for owner, name in places:
                stack.enter_context(patch.object(owner, name, watching(stage, getattr(owner, name))))
        yield times
