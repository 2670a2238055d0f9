"""Two processors and two phases: a thread for each phase, or a thread for each block of events?

Jewel proposes to let events follow one another through the phases, and did not measure it. What is measured is the time
that passes, because that is what a second thread may save; so it says something on a machine with two idle processors
only.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from benchmarks.cases import CASES
from tamis.language import parse
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.columns import Events
from tamis_lab.matching.pipelining import match_pipelined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.matching.base import Pairs

WAYS = ("one thread", "a thread for each phase", "threads over blocks")
THREADS = 2


def pipelining(
    names: tuple[str, ...] = ("auction", "expressions-rare"),
    algorithms: tuple[str, ...] = ("atree", "atree-published", "counting", "boolean"),
    count: int = 20_000,
    event_count: int = 32_768,
    passes: int = 3,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does a batch take with a thread for each phase, and with threads over blocks?"""
    for name in names:
        workload = CASES[name]()
        expressions = [parse(text) for text in workload.subscriptions(count, seed)["condition"].to_pylist()]
        events = Events(workload.events(event_count, seed + 1))
        for algorithm in algorithms:
            engine = ALGORITHMS[algorithm]()
            engine.add(range(count), engine.prepare(expressions))
            yield from _ways(name, algorithm, engine.compiled_snapshot(), events, passes)


def _ways(name: str, algorithm: str, snapshot: Any, events: Events, passes: int) -> Iterator[dict[str, Any]]:
    ways: dict[str, Callable[[], Pairs]] = {
        WAYS[0]: partial(snapshot.match_events, events),
        WAYS[1]: partial(match_pipelined, snapshot, events),
        WAYS[2]: partial(snapshot.match_events, events, threads=THREADS),
    }
    wanted = _sorted(ways[WAYS[0]]())
    best = dict.fromkeys(ways, (float("inf"), float("inf")))
    wrong = {way: int(_sorted(match()) != wanted) for way, match in ways.items()}
    for _ in range(passes):
        for way, match in ways.items():
            start, started = perf_counter(), process_time()
            match()
            best[way] = min(best[way], (perf_counter() - start, process_time() - started))
    for way, (elapsed_s, cpu_s) in best.items():
        yield {
            "workload": name,
            "algorithm": algorithm,
            "way": way,
            "events/s": events.count / elapsed_s,
            "times": best[WAYS[0]][0] / elapsed_s,
            "cpu times": cpu_s / best[WAYS[0]][1],
            "matches": len(wanted),
            "wrong": wrong[way],
        }


def _sorted(pairs: Pairs) -> list[tuple[int, int]]:
    return sorted(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True))
