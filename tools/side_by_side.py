"""Has the code become slower? Two commits are measured in turns, in one run.

    python tools/side_by_side.py COMMIT                       this tree beside that commit, all rows
    python tools/side_by_side.py COMMIT --rows w1 topk        these rows; a row is named by its first word
    python tools/side_by_side.py COMMIT --subscriptions 100000 --rounds 15

Each tree has a process of its own, which registers the same subscriptions once and then does one pass of a row
whenever it is asked to. The processes take turns, pass by pass, so a busy moment hits both. A row is compared by the
best pass of each, in processor time, and by the median of the ratios of neighbouring passes, which shows how noisy the
run was. Only names that users import are used, because the other commit must have them as well.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Row = tuple[str, int, Callable[[], object]]
    """The name of a row, how many events or filters one pass of it handles, and the pass."""

TREE = Path(__file__).resolve().parent.parent
WORKLOADS = ("w1", "w2", "w3", "w4", "templates", "auction")
TOLERATED = 1.03
"""A row whose best pass takes more than so many times as long is marked."""
_BATCH, _SINGLES, _RANKED, _PRUNED = 8_192, 400, 1_000, 2_000


# -- The process of one tree


def matched(name: str, subscription_count: int) -> Iterator[Row]:
    """Match the events of a workload, by the batch and one by one."""
    from tamis import Matcher
    from tamis.workloads import WORKLOADS as MADE

    workload = MADE[name]()
    matcher = Matcher()
    matcher.add_many(workload.subscriptions(subscription_count, 1))
    matcher.learn(workload.events(2_048, 2))
    batch = workload.events(_BATCH, 3)
    singles = [
        {key: value for key, value in event.items() if value is not None}
        for event in batch.slice(0, _SINGLES).to_pylist()
    ]
    yield f"{name}, batch", _BATCH, lambda: matcher.match_batch(batch)
    yield f"{name}, single", _SINGLES, lambda: [matcher.match(event) for event in singles]


def ranked() -> Iterator[Row]:
    """Rank points by their distance, over windows of both kinds."""
    from random import Random

    from tamis import TopK

    random = Random(1)
    for window in ("1000 EVENTS", "1000 SECONDS"):
        processor = TopK()
        for number in range(_RANKED):
            x, y = random.random(), random.random()
            processor.add(number, f"TOP 9 BY euclidean(array(x, y), array({x}, {y})) OVER {window}")
        clock = iter(range(10**9))

        def points(count: int) -> list[dict[str, float]]:
            return [{"x": random.random(), "y": random.random()} for _ in range(count)]

        def batch(processor: Any = processor, clock: Any = clock) -> None:
            processor.process_batch(points(1_024), [float(next(clock)) for _ in range(1_024)])

        def single(processor: Any = processor, clock: Any = clock) -> None:
            for point in points(_SINGLES):
                processor.process(point, float(next(clock)))

        batch()
        batch()  # the windows are full
        yield f"topk {window.lower()}, batch", 1_024, batch
        yield f"topk {window.lower()}, single", _SINGLES, single


def pruned() -> Iterator[Row]:
    """Order the prunings of auction subscriptions."""
    import tamis
    from tamis.pruning import sequences
    from tamis.workloads import WORKLOADS as MADE

    texts = MADE["auction"]().subscriptions(_PRUNED, 1)["condition"].to_pylist()
    filters = [tamis.parse(text) for text in texts]
    for measure in ("accuracy", "memory"):
        yield (
            f"pruning by {measure}",
            _PRUNED,
            lambda measure=measure: sequences(filters, lambda _: 0.3, measure).ordered(),
        )


def work(subscription_count: int, wanted: list[str]) -> None:
    """Answer on standard output: the names of the rows, then the seconds of each pass that is asked for."""
    makers = {
        **{name: partial(matched, name, subscription_count) for name in WORKLOADS},
        "topk": ranked,
        "pruning": pruned,
    }
    passes = {name: (count, run) for each in wanted or makers for name, count, run in makers[each]()}
    for _, run in passes.values():
        run()  # compiles
    gc.collect()
    gc.freeze()
    print("\t".join(f"{name}\t{count}" for name, (count, _) in passes.items()), flush=True)
    for line in sys.stdin:
        run = passes[line.rstrip("\n")][1]
        start = process_time()
        run()
        print(process_time() - start, flush=True)


# -- Both processes, in turns


def started(tree: Path, arguments: list[str]) -> subprocess.Popen[str]:
    """Start the process of a tree, with its own packages in front of those that are installed."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, __file__, "--work", *arguments]
    return subprocess.Popen(
        command, cwd=tree, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def asked(process: subprocess.Popen[str], row: str) -> float:
    """Let a process do one pass, and return its seconds."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(row + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def compared(other: Path, rounds: int, arguments: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for everything that is measured: microseconds before and after, and their ratio."""
    before, after = started(other, arguments), started(TREE, arguments)
    try:
        headers = [process.stdout.readline().rstrip("\n").split("\t") for process in (before, after) if process.stdout]
        assert headers[0] == headers[1], f"the two commits do not have the same rows: {headers}"
        for name, count in zip(headers[0][::2], map(int, headers[0][1::2]), strict=True):
            pairs = [(asked(before, name), asked(after, name)) for _ in range(rounds)]
            best = [min(times) / count * 1e6 for times in zip(*pairs, strict=True)]
            yield {
                "row": name,
                "before_us": best[0],
                "after_us": best[1],
                "ratio": best[1] / best[0],
                "median": median(later / earlier for earlier, later in pairs),
            }
    finally:
        for process in (before, after):
            if process.stdin:
                process.stdin.close()
            process.wait()


def main() -> None:
    """Compare, and print a line for each row as it comes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="what this tree is compared with")
    parser.add_argument("--rows", nargs="*", default=[], help="only these: a workload, topk, pruning")
    parser.add_argument("--subscriptions", type=int, default=10_000, help="so many in each matcher (%(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="passes of each row in each tree (%(default)s)")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.subscriptions, given.rows)
        return
    if given.commit is None:
        parser.error("name the commit to compare with, for instance HEAD~10")
    arguments = ["--subscriptions", str(given.subscriptions), *(["--rows", *given.rows] if given.rows else [])]
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", other, given.commit], cwd=TREE, check=True)
        try:
            print(f"{'row':32}{'before, µs':>12}{'after, µs':>12}{'ratio':>8}{'median':>8}")
            for row in compared(other, given.rounds, arguments):
                mark = "  slower" if row["ratio"] > TOLERATED else ""
                print(
                    f"{row['row']:32}{row['before_us']:12.2f}{row['after_us']:12.2f}"
                    f"{row['ratio']:8.3f}{row['median']:8.3f}{mark}",
                    flush=True,
                )
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", other], cwd=TREE, check=True)


if __name__ == "__main__":
    main()
