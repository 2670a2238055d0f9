"""What is done once, so that no later start waits for it? Compiling all kernels ahead, for an image or a cluster.

Kernels are compiled when they are first called, and kept in a folder. This calls those of matching, ranking and
standing subscriptions with rules and events of every kind, as made-up workloads have them, and says where that folder
is: an image is built with it, and the machines of a cluster are given it as `NUMBA_CACHE_DIR`.
"""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from tamis.cli.lessons import Example
from tamis.cli.output import NO, AsJson, to_complain, to_people, to_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLES = (
    Example("tamis warm", "Compile everything now, and say where it is kept."),
    Example("tamis warm --json", "The same for a program."),
)
NOTES = (
    "The folder is chosen as [cyan]tamis doctor[/cyan] shows it; [cyan]NUMBA_CACHE_DIR[/cyan] names another. What "
    "is compiled serves this processor, this version and these libraries only. It exits with 1 "
    "if there is no folder to write to.",
)
_SUBSCRIPTIONS, _BATCH = 400, 600


def warm(as_json: AsJson = False) -> None:
    """Compile everything ahead, as for an image, and say where it is kept."""
    from tamis.compilation import kernel_cache

    start = perf_counter()
    folder = kernel_cache()
    if folder is None:
        to_complain().print("There is no folder for compiled kernels; name one that can be written to: NUMBA_CACHE_DIR")
        raise typer.Exit(NO)
    before = _kept(folder)
    with to_complain().status("Compiling") as status:
        for name, exercise in _exercises():
            status.update(f"Compiling what {name} needs")
            exercise()
    kept = _kept(folder)
    report: dict[str, Any] = {
        "folder": str(folder),
        "kernels": len(kept),
        "new": len(kept - before),
        "seconds": round(perf_counter() - start, 1),
    }
    if as_json:
        to_programs(report)
    else:
        to_people().print(
            f"{report['kernels']} compiled kernels in {folder}, {report['new']} of them new, in {report['seconds']} s",
            soft_wrap=True,
            highlight=False,
        )


def _kept(folder: Path) -> set[Path]:
    return set(folder.rglob("*.nbc"))


def _exercises() -> "Iterator[tuple[str, Callable[[], None]]]":
    yield "matching", _match
    yield "ranking", _rank
    yield "standing subscriptions", _stand


def _match() -> None:
    """Match all workloads that need no data of others, in every way."""
    from tamis import Matcher
    from tamis.workloads import WORKLOADS

    for name in ("w1", "w2", "w4", "auction", "templates"):
        workload = WORKLOADS[name]()
        matcher = Matcher()
        subscriptions = workload.subscriptions(_SUBSCRIPTIONS, 1)
        matcher.add_many(subscriptions)
        events = workload.events(_BATCH, 2)
        _match_all_ways(matcher, events)
        matcher.learn(events)
        _match_all_ways(matcher, events)
    everything = Matcher()
    everything.add_many(_RULES, destinations={number: f"to {number % 3}" for number in range(0, len(_RULES), 2)})
    everything.add_many({f"twin {number}": text for number, text in enumerate(_RULES.values())})
    everything.warm()
    everything.match_destinations({"a": 1})
    everything.match_shortcut_batch([{"a": number, "s": "x"} for number in range(_BATCH)])


_RULES = dict(
    enumerate(
        (
            "a = 1 AND b = 2 AND x < 1.5",
            "a IN (1, 2, 3) AND s IN ('x', 'y') OR b BETWEEN 3 AND 9",
            f"s IN ({', '.join(repr(f'word {number}') for number in range(100))})",
            "s LIKE 'wor%' AND NOT t LIKE '%end' AND u",
            "at >= TIMESTAMP '2026-01-01 00:00:00' AND day < DATE '2026-06-01'",
            "d > 1.25 AND d <= 100.75 AND a <> 7",
            "(a = 1 OR b = 2) AND (s = 'x' OR t = 'y') AND x > 0.5",
            "a + b > 3 AND a < b",
            "a IS NULL OR s IS NOT NULL",
        )
    )
)


def _match_all_ways(matcher: Any, events: Any) -> None:
    matcher.warm()
    matcher.match_batch(events)
    matcher.list_batch(events.slice(0, 3))
    matcher.count_batch(events.slice(0, 64).to_pylist())
    for event in events.slice(0, 20).to_pylist():
        matcher.match({name: value for name, value in event.items() if value is not None})
    matcher.match_json(b'{"a": 1}')
    matcher.match_json_lines(b'{"a": 1}\n{"a": 2}')


def _rank() -> None:
    from tamis import TopK

    for window in ("100 EVENTS", "100 SECONDS"):
        processor = TopK()
        for number in range(64):
            processor.add(number, f"TOP 3 BY euclidean(array(x, y), array(0.{number}, 0.5)) OVER {window}")
        points = [{"x": number / 300, "y": number % 7 / 7} for number in range(300)]
        processor.process_batch(points, [float(number) for number in range(300)])


def _stand() -> None:
    from tamis import Standing

    standing = Standing()
    standing.add_many({
        1: "a = 1", 2: "CHANGE TO a > 2 PER s", 3: "SEQUENCE a = 1 THEN a = 2 WITHIN 60 SECONDS",
    })  # fmt: skip
    standing.process_batch([{"a": number % 4, "s": "x"} for number in range(300)], [float(n) for n in range(300)])
