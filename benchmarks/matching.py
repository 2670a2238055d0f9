"""How fast are events matched?

    throughput       events per second, in batches, beside the yardstick
    single_events    microseconds until one event is answered, beside the yardstick
    growth           both, as subscriptions become more
    threads          how much sooner a batch is matched by two threads

Every row has `matches`, and `wrong`: how many matches of its first events a judge finds wrong, missing or twice (see
`cases`). One thread but in the last. The yardstick is measured in the same run, because only ratios mean anything.
"""

from __future__ import annotations

from functools import partial
from statistics import fmean
from time import perf_counter, process_time, thread_time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.cases import (
    MEASURED,
    Case,
    best_times,
    built,
    differing_events,
    events_of,
    matches_of,
    percentile_us,
    yardstick_runs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

PROMISED_RATIOS = {"w1": 100, "w2": 100, "w3": 100, "w4": 60}
"""What we promise for 100,000 subscriptions and batches of 8,192 and more: so many times the yardstick's events per
second."""
PROMISED_SINGLE_RATIO = 10
"""And with one event at a time, on the same workloads."""
PROMISED_P50_US = {"w1": 30, "w2": 100, "w3": 30, "w4": 30, "templates": 8}
"""And so many microseconds for half of the single events, on a machine at rest; p99 at most three times that."""
PROMISED_TAIL = 3
PROMISED_SUBSCRIPTIONS, PROMISED_BATCH = 100_000, 8_192
PROMISED_THREADS = 1.8
"""Two threads match a large batch so many times as fast as one."""


def throughput(
    names: Sequence[str] = MEASURED,
    subscription_counts: Sequence[int] = (100_000,),
    batch_sizes: Sequence[int] = (8_192, 32_768),
    passes: int = 3,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many events per second are matched in batches?"""
    for name in names:
        for count in subscription_counts:
            case = built(name, count, max(batch_sizes), seed)
            yardsticks, yardstick_events = yardstick_runs(case)
            # Where matches are many, two batches may be cut to the same size.
            for size in dict.fromkeys(case.batch(size).num_rows for size in batch_sizes):
                batch = case.events.slice(0, size)
                matches, counts = case.matcher.match_batch(batch), case.matcher.count_batch(batch)
                runs = {
                    "match": partial(case.matcher.match_batch, batch),
                    "count": partial(case.matcher.count_batch, batch),
                }
                best = best_times(passes, runs | yardsticks)
                event_s = best["match"] / size
                counted = np.bincount(matches["event"].to_numpy(), minlength=size)
                is_promised = count >= PROMISED_SUBSCRIPTIONS and size >= PROMISED_BATCH
                yield {
                    "workload": name,
                    "subscriptions": count,
                    "batch": size,
                    "match_events_per_s": round(1 / event_s),
                    "count_events_per_s": round(size / best["count"]),
                    "event_us": event_s * 1e6,
                    "times_the_yardstick": best["plain"] / yardstick_events / event_s if yardsticks else None,
                    "promised": PROMISED_RATIOS.get(name) if is_promised else None,
                    "times_the_lean_one": best["lean"] / yardstick_events / event_s if yardsticks else None,
                    "times_the_sliced_one": best["sliced"] / yardstick_events / event_s if yardsticks else None,
                    "matches": matches.num_rows,
                    "wrong": case.wrong_in(matches_of(matches, size)) + int(np.abs(counts.to_numpy() - counted).sum()),
                }


def single_events(
    names: Sequence[str] = MEASURED,
    subscription_counts: Sequence[int] = (100_000,),
    event_count: int = 2_000,
    most_s: float = 10.0,
    passes: int = 4,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does one event take?

    p99_to_p50             of all that was measured first, whatever else the machine did meanwhile
    least_p99_to_p50       the same of the least time of each event in some passes: are there events that are slow
                           themselves? Whoever is interrupted finds cold caches, and pays a hundred microseconds or two
    """
    for name in names:
        for count in subscription_counts:
            case = built(name, count, event_count, seed)
            yardsticks, yardstick_events = yardstick_runs(case)
            before = best_times(2, yardsticks)
            times, found = _one_by_one(case, event_count, most_s)
            least = np.min([times, *(_one_by_one(case, len(times), np.inf)[0] for _ in range(passes - 1))], axis=0)
            after = best_times(2, yardsticks)
            ratios = {each: min(before[each], after[each]) / yardstick_events / fmean(times) for each in yardsticks}
            is_promised = name in PROMISED_RATIOS and count >= PROMISED_SUBSCRIPTIONS
            yield {
                "workload": name,
                "subscriptions": count,
                "events": len(times),
                "p50_us": percentile_us(times, 50),
                "p99_us": percentile_us(times, 99),
                "promised_p50_us": PROMISED_P50_US.get(name) if count >= PROMISED_SUBSCRIPTIONS else None,
                "p99_to_p50": percentile_us(times, 99) / percentile_us(times, 50),
                "least_p99_to_p50": percentile_us(least, 99) / percentile_us(least, 50),
                "promised_tail": PROMISED_TAIL if is_promised else None,
                "mean_us": fmean(times) * 1e6,
                "times_the_yardstick": ratios.get("plain"),
                "promised": PROMISED_SINGLE_RATIO if is_promised else None,
                "times_the_lean_one": ratios.get("lean"),
                "times_the_sliced_one": ratios.get("sliced"),
                "matches": sum(map(len, found)),
                "wrong": case.wrong_in(found),
            }


def growth(
    names: Sequence[str] = ("w1", "auction", "expressions", "expressions-rare", "flights"),
    subscription_counts: Sequence[int] = (1_000, 10_000, 100_000),
    batch_size: int = 8_192,
    passes: int = 3,
    single_event_count: int = 500,
    most_s: float = 5.0,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How does the time for an event grow with the number of subscriptions?"""
    for name in names:
        before_us: float | None = None
        for count in sorted(subscription_counts):
            case = built(name, count, batch_size, seed, with_yardstick=False)
            batch = case.batch(batch_size)
            matches = case.matcher.match_batch(batch)
            elapsed = best_times(passes, {"match": partial(case.matcher.match_batch, batch)})["match"]
            times, found = _one_by_one(case, min(single_event_count, batch.num_rows), most_s)
            event_us = elapsed / batch.num_rows * 1e6
            yield {
                "workload": name,
                "subscriptions": count,
                "batch": batch.num_rows,
                "events_per_s": round(batch.num_rows / elapsed),
                "event_us": event_us,
                "times_the_set_before": None if before_us is None else event_us / before_us,
                "single_p50_us": percentile_us(times, 50),
                "single_p99_us": percentile_us(times, 99),
                "matches": matches.num_rows,
                "wrong": case.wrong_in(found) + differing_events(found, matches_of(matches, len(found))),
            }
            before_us = event_us


def threads(
    names: Sequence[str] = ("w1", "w2", "w3", "w4", "templates", "auction"),
    subscription_counts: Sequence[int] = (100_000,),
    batch_sizes: Sequence[int] = (65_536,),
    passes: int = 4,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How much sooner is a batch matched by two threads?

    times_by_the_clock         needs a machine at rest: whoever else works there takes the second core, and Linux gives
                               a group of processes the same share of a busy machine however many threads it has
    times_by_processor_time    what it is where nobody else works, computed from processor times, which others hardly
                               change: what one thread needs, by what the calling thread needs while no other one works,
                               and half of what the two need. Waiting for one another is not in it.
    """
    for name in names:
        for count in subscription_counts:
            case = built(name, count, max(batch_sizes), seed, with_yardstick=False)
            for size in dict.fromkeys(case.batch(size).num_rows for size in batch_sizes):
                batch = case.events.slice(0, size)
                best: dict[int, npt.NDArray[np.float64]] = {}
                tables = []
                for _ in range(passes):
                    for thread_count in (1, 2):
                        before = np.array([perf_counter(), process_time(), thread_time()])
                        table = case.matcher.match_batch(batch, threads=thread_count)
                        spent = np.array([perf_counter(), process_time(), thread_time()]) - before
                        best[thread_count] = np.minimum(best.get(thread_count, spent), spent)
                        tables = [*tables[-1:], table]
                (one_s, one_cpu_s, _), (two_s, two_cpu_s, alone_s) = best[1].tolist(), best[2].tolist()
                yield {
                    "workload": name,
                    "subscriptions": count,
                    "batch": size,
                    "one_thread_ms": one_s * 1e3,
                    "two_threads_ms": two_s * 1e3,
                    "times_by_the_clock": one_s / two_s,
                    "promised": PROMISED_THREADS if count >= PROMISED_SUBSCRIPTIONS else None,
                    "one_thread_cpu_ms": one_cpu_s * 1e3,
                    "two_threads_cpu_ms": two_cpu_s * 1e3,
                    "of_that_alone_ms": alone_s * 1e3,
                    "times_by_processor_time": one_cpu_s / (alone_s + (two_cpu_s - alone_s) / 2),
                    "matches": tables[0].num_rows,
                    "wrong": case.wrong_in(matches_of(tables[-1], size)) + (not tables[0].equals(tables[-1])),
                }


def _one_by_one(case: Case, event_count: int, most_s: float) -> tuple[list[float], list[npt.NDArray[np.int64]]]:
    """Match events one by one; return the seconds and the matches of each. It stops early when it takes too long."""
    times: list[float] = []
    found: list[npt.NDArray[np.int64]] = []
    for event in events_of(case.events.slice(0, event_count)):
        start = perf_counter()
        ids = case.matcher.match(event)
        times.append(perf_counter() - start)
        found.append(np.sort(np.array(ids, np.int64)))
        if sum(times) > most_s:
            break
    return times, found
