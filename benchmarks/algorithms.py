"""How do the published algorithms compare with the block matcher, and with one another?

    algorithms           events, registrations and removals per second, and bytes, of every algorithm
    against_published    the block matcher beside the better of `boolean` and `counting`
    phases               where the time of each published algorithm goes

Slow algorithms get fewer events, as many as fit into a few seconds: their time per event does not depend on the size of
the batch. Processor time throughout, because the machine is not quiet; two that are compared take turns.
"""

from __future__ import annotations

from functools import partial
from time import process_time, thread_time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.cases import CASES, events_of, matches_of, parsed, wrong_matches
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.columns import Events
from tamis.matching.matcher import Matcher
from tamis_lab.matching import kernels
from tamis_lab.matching.boolean.algorithm import BooleanSnapshot
from tamis_lab.matching.boolean.grove import GroveIndex
from tamis_lab.matching.counting import CountingIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from tamis.language.expressions import Expression
    from tamis_lab.matching.predicates import Fulfilled
    from tamis_lab.matching.snapshots import PhasedSnapshot

WORKLOADS = ("auction", "expressions", "flights", "storms")
PUBLISHED = ("counting", "cluster", "gryphon", "boolean")
PROMISED_RATIO = {"batch": 20, "single": 1}
"""What we promise for a million auction subscriptions: the block matcher has so many times the events per second of the
better of `boolean` and `counting`."""
PROMISED_SUBSCRIPTIONS = 1_000_000
MOST_MATCHES = 20_000_000
_JUDGED = 3
_LEARNED = 2_048
_MOST_REMOVED = 10_000
_MOST_ASKED = {"naive": 10_000}
"""The definition asks every subscription in turn, in Python: a million of them would take minutes for an event."""


def algorithms(
    names: Sequence[str] = WORKLOADS,
    subscription_counts: Sequence[int] = (1_000, 10_000, 100_000),
    batch_size: int = 8_192,
    most_s: float = 2.0,
    chosen: Sequence[str] | None = None,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many events, registrations and removals per second does each algorithm do, and what does it take?"""
    for name in names:
        workload = CASES[name]()
        sample = workload.events(_LEARNED, seed + 1)
        events = workload.events(batch_size, seed + 2)
        for count in subscription_counts:
            table = workload.subscriptions(count, seed)
            expressions = parsed(table)
            for algorithm in chosen or ALGORITHMS:
                if count > _MOST_ASKED.get(algorithm, count):
                    continue
                yield {
                    "workload": name,
                    "subscriptions": count,
                    "algorithm": algorithm,
                    **_measured(algorithm, table, expressions, sample, events, most_s, seed),
                }


def _measured(
    algorithm: str,
    table: pa.Table,
    expressions: list[Expression],
    sample: pa.Table,
    events: pa.Table,
    most_s: float,
    seed: int,
) -> dict[str, Any]:
    """Measure one algorithm on one set of subscriptions."""
    single = events_of(events)
    _compile(algorithm, expressions[:100], sample)
    matcher = Matcher(algorithm)

    def register() -> None:
        matcher.add_many(enumerate(expressions))
        matcher.match(single[0])  # what is not laid out yet is laid out now

    register_s = _cpu_s(register)
    matcher.learn(sample)
    matcher.match_batch(events.slice(0, 1))
    size = _affordable(lambda size: matcher.match_batch(events.slice(0, size)), events.num_rows, most_s)
    batch = events.slice(0, size)
    found = matcher.match_batch(batch)
    batch_s = min(_cpu_s(partial(matcher.match_batch, batch)) for _ in range(2)) / size
    times, one_by_one = [], []
    for event in single:
        start = process_time()
        ids = matcher.match(event)
        times.append(process_time() - start)
        one_by_one.append(np.sort(np.array(ids, np.int64)))
        if sum(times) > most_s / 2:
            break
    by_event = matches_of(found, size)
    judged = min(_JUDGED, size, len(one_by_one))
    wrong = wrong_matches(table, single[:judged], by_event[:judged])
    wrong += sum(not np.array_equal(one, two) for one, two in zip(by_event, one_by_one[: len(by_event)], strict=False))
    bytes_each = matcher._engine.memory() / len(matcher)
    gone = np.random.default_rng(seed).choice(
        len(expressions), min(len(expressions) // 10, _MOST_REMOVED), replace=False
    )

    def remove() -> None:
        for number in gone.tolist():
            matcher.remove(number)
        matcher.match(single[0])

    remove_s = _cpu_s(remove)
    left = np.setdiff1d(by_event[0], gone)
    wrong += int(not np.array_equal(np.sort(np.array(matcher.match(single[0]), np.int64)), left))
    matcher._engine.settle()
    return {
        "batch": size,
        "batch_events_per_s": 1 / batch_s,
        "single_event_us": float(np.mean(times)) * 1e6,
        "registered_per_s": round(len(expressions) / register_s),
        "removed_per_s": round(len(gone) / max(remove_s, 1e-9)),
        "bytes_each": round(bytes_each),
        "matches": found.num_rows,
        "wrong": wrong,
    }


def against_published(
    name: str = "auction",
    subscription_counts: Sequence[int] = (100_000,),
    batch_size: int = 8_192,
    passes: int = 3,
    most_s: float = 5.0,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many times the events per second of the better of `boolean` and `counting` does the block matcher do?"""
    workload = CASES[name]()
    sample, events = workload.events(_LEARNED, seed + 1), workload.events(batch_size, seed + 2)
    single = events_of(events)
    for count in subscription_counts:
        table = workload.subscriptions(count, seed)
        matchers = {algorithm: Matcher(algorithm) for algorithm in ("block", "boolean", "counting")}
        for matcher in matchers.values():
            matcher.add_many(table)
            matcher.learn(sample)
            matcher.match_batch(events.slice(0, 64))
            matcher.match(single[0])
            matcher._engine.settle()
        sizes = {
            algorithm: batch_size
            if algorithm == "block"
            else _affordable(lambda size, m=matcher: m.match_batch(events.slice(0, size)), batch_size, most_s)  # type: ignore[misc]
            for algorithm, matcher in matchers.items()
        }
        asked = {algorithm: single[: min(len(single), max(50, size // 4))] for algorithm, size in sizes.items()}
        runs: dict[str, dict[str, Callable[[], object]]] = {
            "batch": {a: partial(m.match_batch, events.slice(0, sizes[a])) for a, m in matchers.items()},
            "single": {a: partial(_each, m, asked[a]) for a, m in matchers.items()},
        }
        counts = {"batch": sizes, "single": {algorithm: len(some) for algorithm, some in asked.items()}}
        shared = min(sizes.values())
        found = {a: matches_of(m.match_batch(events.slice(0, shared)), shared) for a, m in matchers.items()}
        wrong = wrong_matches(table, single[:_JUDGED], found["block"][:_JUDGED])
        for other in ("boolean", "counting"):
            wrong += sum(not np.array_equal(*pair) for pair in zip(found["block"], found[other], strict=True))
        for how, some in runs.items():
            best = _best_cpu_s(passes, some)
            rates = {algorithm: counts[how][algorithm] / best[algorithm] for algorithm in matchers}
            better = max("boolean", "counting", key=rates.__getitem__)
            is_promised = name == "auction" and count >= PROMISED_SUBSCRIPTIONS
            yield {
                "workload": name,
                "subscriptions": count,
                "events": how,
                **{f"{algorithm}_per_s": rate for algorithm, rate in rates.items()},
                "better": better,
                "block_times_the_better": rates["block"] / rates[better],
                "promised": PROMISED_RATIO[how] if is_promised else None,
                "matches": sum(map(len, found["block"])),
                "wrong": wrong,
            }


def phases(
    names: Sequence[str] = WORKLOADS,
    subscription_counts: Sequence[int] = (100_000,),
    event_count: int = 200,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """Which share of an event's time does each phase of the published algorithms take?

    The predicate phase is everybody's first. `boolean` and `counting` then count hits and compare them with what is
    needed, and `boolean` evaluates candidates; the second phase of the others is one walk.
    """
    for name in names:
        workload = CASES[name]()
        sample, events = workload.events(_LEARNED, seed + 1), workload.events(event_count, seed + 2)
        for count in subscription_counts:
            expressions = parsed(workload.subscriptions(count, seed))
            for algorithm in PUBLISHED:
                matcher = Matcher(algorithm)
                matcher.add_many(enumerate(expressions))
                matcher.learn(sample)
                matches = matcher.match_batch(events)
                matcher._engine.compile()  # type: ignore[attr-defined]
                times = phase_times(matcher, events)
                total = sum(times[phase] for phase in _PHASES)
                yield {
                    "workload": name,
                    "subscriptions": count,
                    "algorithm": algorithm,
                    "event_us": total / event_count * 1e6,
                    **{phase: times[phase] / total for phase in _PHASES},
                    "increments_each": times["increments"] / event_count / count,
                    "candidates_each": times["candidates"] / event_count / count,
                    "matches": matches.num_rows,
                    "wrong": int(times["found"] != matches.num_rows),
                }


_PHASES = ("predicates", "hits", "candidates_listed", "second_phase")


def phase_times(matcher: Matcher, events: pa.Table, passes: int = 3) -> dict[str, float]:
    """Match events one phase after the other; return the best seconds of each, and what was counted on the way."""
    snapshot: Any = matcher._engine.compiled_snapshot()
    phased: PhasedSnapshot = snapshot.groves[None] if isinstance(snapshot, BooleanSnapshot) else snapshot
    tries = [_one_try(phased, events) for _ in range(passes)]
    best = {phase: min(times[phase] for times in tries) for phase in tries[0]}
    # What it does behind the predicate phase is all of it, and what is neither hits nor candidates is the second phase.
    best["second_phase"] = max(0.0, best.pop("all") - best["hits"] - best["candidates_listed"])
    return best


def _one_try(phased: PhasedSnapshot, events: pa.Table) -> dict[str, float]:
    index: Any = phased.index  # type: ignore[attr-defined]
    times = dict.fromkeys(("predicates", "hits", "candidates_listed", "all", "increments", "candidates", "found"), 0.0)
    parts = phased.view.fulfilled(Events(events))
    while True:
        start = thread_time()
        part = next(parts, None)
        times["predicates"] += thread_time() - start
        if part is None:
            return times
        start = thread_time()
        times["found"] += len(phased.match_part(part)[1])
        times["all"] += thread_time() - start
        if isinstance(index, CountingIndex | GroveIndex):
            for phase, measured in _hit_times(index, part).items():
                times[phase] += measured


def _hit_times(index: CountingIndex | GroveIndex, part: Fulfilled) -> dict[str, float]:
    least: npt.NDArray[Any] = index.needs if isinstance(index, CountingIndex) else index.least
    hits, candidates = np.zeros_like(least), np.empty(len(least) + 64, np.uint32)
    lengths = np.diff(index.associations.starts)
    hits_s = listed_s = 0.0
    count = 0
    starts, numbers = part.lists
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        start = thread_time()
        kernels.count_hits(numbers, begin, end, index.associations, hits)
        between = thread_time()
        count += kernels.list_candidates(hits, least, candidates)
        listed_s += thread_time() - between
        hits_s += between - start
    increments = float(lengths[numbers].sum())
    return {"hits": hits_s, "candidates_listed": listed_s, "increments": increments, "candidates": count}


# -- Clocks


def _compile(algorithm: str, expressions: list[Expression], events: pa.Table) -> None:
    """Use every kernel of an algorithm once, so that no clock runs while one is compiled."""
    matcher = Matcher(algorithm)
    few = events.slice(0, 64)
    matcher.add_many(enumerate(expressions))
    matcher.learn(few)
    matcher.match_batch(few)
    matcher.match(events_of(few)[0])
    matcher.remove(0)
    matcher.match_batch(few)
    matcher._engine.settle()


def _cpu_s(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return process_time() - start


def _best_cpu_s(passes: int, runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(passes):
        for name, run in runs.items():
            best[name] = min(best[name], _cpu_s(run))
    return best


def _affordable(run: Callable[[int], pa.Table], most: int, most_s: float) -> int:
    """Return how many events can be matched in so many seconds, and in so much memory."""
    size = 1
    while size < most:
        start = process_time()
        matches = run(size).num_rows
        elapsed = process_time() - start
        if elapsed * 4 > most_s or matches * 4 > MOST_MATCHES:
            break
        size = min(most, 4 * size)
    return size


def _each(matcher: Matcher, events: Sequence[dict[str, Any]]) -> None:
    for event in events:
        matcher.match(event)
