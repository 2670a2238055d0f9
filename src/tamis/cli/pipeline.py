"""What does the whole pipeline look like at work?

The main job of tamis on this machine: auction events and subscriptions go to Parquet files, a local Spark matches
them, and a report says what came of it, here and as a page with plots. The first pass starts Python workers and loads
kernels; a second one over the same events shows what a job that runs on gets, and a matcher in this process how long a
single event takes.
"""

import json
import os
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import datetime
from importlib import metadata
from pathlib import Path
from textwrap import wrap
from threading import Thread
from time import perf_counter, perf_counter_ns, sleep
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis import __version__
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, show_explanation, to_complain, to_people, to_programs
from tamis.cli.pipeline_page import Busy, Story, written
from tamis.language import explain, holds, parse

if TYPE_CHECKING:
    import pyarrow as pa

EXAMPLES = (
    Example("tamis pipeline --events 20000 --subscriptions 500 --out run", "A small one; run/index.html has plots."),
)
NOTES = (
    "The folder gets [cyan]index.html[/cyan] (the report), [cyan]report.json[/cyan], [cyan]events.parquet[/cyan], "
    "[cyan]subscriptions.parquet[/cyan], [cyan]pairs.parquet[/cyan] (the matches) and [cyan]spark.log[/cyan] (what "
    "Spark had to say). It needs Java 17 or newer; [bold]tamis demo[/bold] does not.",
)

T = TypeVar("T")

_FILES = 16
"""The events are so many tasks: enough to see progress, few enough to be quick."""
_RUN_FAST = 5_000_000
"""With more events than that Java is to run fast rather than to start soon."""
_JUDGED, _MOST_JUDGED = 3, 2_000
"""So many events are asked about so many subscriptions, one by one."""
_SHOWN = 12
_SINGLE_EVENTS = 2_000
"""So many events are matched one by one, for the time that a single one takes."""
_WARM_UP = 200


def pipeline(
    event_count: Annotated[int, typer.Option("--events", min=1, max=10**8, help="How many events to match.")] = 200_000,
    subscription_count: Annotated[
        int, typer.Option("--subscriptions", min=1, max=10**7, help="How many subscriptions to match them against.")
    ] = 10_000,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write to; it is created if necessary.")
    ] = Path("artifacts/run"),
    seed: Annotated[int, typer.Option(min=0, help="The random seed of the traffic.")] = 1,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="The Spark master to run on; the default is this machine.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Match a table of book auctions against a table of subscriptions on Spark, and report."""
    with mistakes_shown(as_json):
        story = _run(event_count, subscription_count, out, seed, master)
    page = out / "index.html"
    page.write_text(written(story), encoding="utf-8")
    document = asdict(story) | {"explanation": story.explanation.as_dict() if story.explanation else None}
    (out / "report.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if as_json:
        to_programs(document)
        return
    _report(to_people(), story, page)


def _run(event_count: int, subscription_count: int, out: Path, seed: int, master: str | None) -> Story:
    """Do the job, and remember what happened."""
    from tamis.spark.java import require_java

    require_java()  # before anything that takes time
    out.mkdir(parents=True, exist_ok=True)
    clock: dict[str, float] = {}
    with _step("Making auctions and bidders", clock, "traffic"):
        subscriptions = _traffic(event_count, subscription_count, seed, out)
    from tamis import spark as on_spark

    quick = master is None and event_count <= _RUN_FAST
    with ExitStack() as stack:
        with _step("Starting Spark", clock, "start Spark"):
            running = on_spark.running(master, name="tamis pipeline", log=out / "spark.log", quick=quick)
            session = stack.enter_context(running)
        events = session.read.parquet(str(out / "events.parquet"))
        asked = session.read.parquet(str(out / "subscriptions.parquet"))
        with _step(f"Compiling {subscription_count:,} subscriptions", clock, "compile"):
            compiled = on_spark.compiled(asked)
        pairs = on_spark.match(events, compiled, keep=["event", "category"])
        for name in ("match", "match again"):  # the second pass has its workers and kernels ready
            _with_progress(
                session,
                f"Matching {event_count:,} events" + (" once more" if name == "match again" else ""),
                clock,
                name,
                lambda: pairs.write.mode("overwrite").parquet(str(out / "pairs.parquet")),
            )
        with _step("Matching events one by one", clock, "single events"):
            latencies_us = _latencies_us(subscriptions, out)
        with _step("Counting", clock, "report"):
            story = _story(session.read.parquet(str(out / "pairs.parquet")), events, subscriptions, out)
    story.seconds.update(clock)
    story.events, story.subscriptions, story.seed = event_count, subscription_count, seed
    story.master = master or "local[*]"
    story.latencies_us = latencies_us
    story.surroundings = _surroundings()
    return story


def _traffic(event_count: int, subscription_count: int, seed: int, out: Path) -> "pa.Table":
    """Write events and subscriptions; return the subscriptions."""
    import shutil

    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    from tamis.workloads import WORKLOADS

    made = WORKLOADS["auction"]()
    events = made.events(event_count, seed)
    events = events.append_column("event", pa.array(np.arange(event_count)))
    folder = out / "events.parquet"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    size = -(-event_count // _FILES)
    for number in range(0, event_count, size):
        parquet.write_table(events.slice(number, size), folder / f"{number // size:03}.parquet")
    subscriptions = made.subscriptions(subscription_count, seed)
    parquet.write_table(subscriptions, out / "subscriptions.parquet")
    return subscriptions


def _story(pairs: Any, events: Any, subscriptions: "pa.Table", out: Path) -> Story:
    """Ask the result what is worth telling."""
    by_subscription = {row[0]: row[1] for row in pairs.groupBy("subscription_id").count().collect()}
    per_event = dict(map(tuple, pairs.groupBy("event").count().groupBy("count").count().collect()))
    categories = {row[0]: row[1] for row in pairs.groupBy("category").count().collect()}
    conditions = subscriptions["condition"].to_pylist()
    story = Story(
        pairs=sum(by_subscription.values()),
        matched_events=sum(per_event.values()),
        matched_subscriptions=len(by_subscription),
        busiest=_busiest(by_subscription, conditions),
        matches_per_event=per_event,
        matches_per_subscription=dict(Counter(by_subscription.values())),
        categories=categories,
        folder=str(out),
    )
    _judge(story, pairs, events, conditions)
    return story


def _busiest(matches: dict[int, int], conditions: list[str]) -> list[Busy]:
    """Return the busiest subscription of each kind: those that differ in their constants only are of one kind."""
    kinds: dict[str, list[int]] = {}
    for subscription in sorted(matches, key=lambda id: (-matches[id], id)):
        kinds.setdefault(_kind(conditions[subscription]), []).append(subscription)
    return [
        Busy(alike[0], conditions[alike[0]], matches[alike[0]], len(alike), sum(map(matches.__getitem__, alike)))
        for alike in list(kinds.values())[:_SHOWN]
    ]


def _kind(condition: str) -> str:
    """Return a condition without its constants.

    >>> _kind("title = 'It''s 5' AND price < 17.23")
    "title = '…' AND price < 0"
    """
    return re.sub(r"\b\d+(\.\d+)?\b", "0", re.sub(r"'(?:[^']|'')*'", "'…'", condition))


def _latencies_us(subscriptions: "pa.Table", out: Path) -> dict[str, float]:
    """Return how long single events take in a matcher of this process: half of them at most p50, 99 % at most p99."""
    from itertools import islice

    import numpy as np
    from pyarrow import parquet

    from tamis.matching import Matcher

    matcher = Matcher()
    matcher.add_many(dict(enumerate(subscriptions["condition"].to_pylist())))
    files = sorted((out / "events.parquet").iterdir())
    rows = (row for file in files for row in parquet.read_table(file).to_pylist())
    events = list(islice(rows, _SINGLE_EVENTS))
    matcher.compile()
    for event in events[:_WARM_UP]:
        matcher.match(event)
    times_ns = []
    for event in events:
        start = perf_counter_ns()
        matcher.match(event)
        times_ns.append(perf_counter_ns() - start)
    p50, p99 = np.percentile(times_ns, (50, 99)) / 1e3
    return {"p50": float(p50), "p99": float(p99)}


def _surroundings() -> dict[str, str]:
    """Return when and where this ran, for whoever finds the page later."""
    from tamis.spark.java import java_version

    return {
        "date": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": f"tamis {__version__}, Python {platform.python_version()}, PySpark {metadata.version('pyspark')}, "
        f"Java {java_version()}, numba {metadata.version('numba')}",
    }


def _judge(story: Story, pairs: Any, events: Any, conditions: list[str]) -> None:
    """Check some events by the definition, and explain the match of the longest condition among some."""
    some = [(row.event, row.subscription_id) for row in pairs.select("event", "subscription_id").limit(1000).collect()]
    chosen = sorted({event for event, _ in some})[:_JUDGED]
    if not chosen:
        return
    number, subscription = max(sorted(some), key=lambda pair: len(conditions[pair[1]]))
    wanted = ", ".join(map(str, {*chosen, number}))
    rows = {row.event: row.asDict() for row in events.where(f"event IN ({wanted})").collect()}
    all_found = pairs.where(f"event IN ({wanted})").select("event", "subscription_id").collect()
    trees = [parse(text) for text in conditions[:_MOST_JUDGED]]
    expected = {(event, each) for event in chosen for each, tree in enumerate(trees) if holds(tree, rows[event])}
    story.judged_pairs = len(chosen) * len(trees)
    story.wrong = len(expected ^ {(e, s) for e, s in map(tuple, all_found) if e in chosen and s < len(trees)})
    story.explained_event, story.explained_subscription = rows[number], subscription
    story.explanation = explain(parse(conditions[subscription]), rows[number])


# -- Progress


@contextmanager
def _step(activity: str, clock: dict[str, float], name: str) -> Iterator[None]:
    """Show what is going on, on a terminal only, and how long it took."""
    console = to_complain()
    start = perf_counter()
    if console.is_terminal:
        with console.status(activity):
            yield
    else:
        yield
    clock[name] = perf_counter() - start


def _with_progress(session: Any, activity: str, clock: dict[str, float], name: str, action: Callable[[], T]) -> None:
    """Run an action of Spark, and show how many of its tasks are done."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    failed: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:  # to be raised where people are waiting
            failed.append(error)

    console = to_complain()
    start = perf_counter()
    thread = Thread(target=run, name="tamis pipeline", daemon=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        shown = progress.add_task(activity, total=_FILES)
        thread.start()
        tracker = session.sparkContext.statusTracker()
        while thread.is_alive():
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    progress.update(shown, total=info.numTasks, completed=info.numCompletedTasks)
            sleep(0.1)
    if failed:
        raise failed[0]
    clock[name] = perf_counter() - start


# -- The report


def _report(console: Console, story: Story, page: Path) -> None:
    rate = story.events / story.seconds["match"]
    show(console, Text(f"{story.events:,} events met {story.subscriptions:,} subscriptions", "bold"))
    show(console, Text(f"{story.pairs:,} pairs, read, matched and written in {story.seconds['match']:.1f} s on Spark"))
    warm = story.events / story.seconds["match again"]
    show(console, Text(f"{rate:,.0f} events a second ({story.master}); {warm:,.0f} in a second pass", "bold green"))
    single = story.latencies_us
    show(console, Text(f"a single event in this process: p50 {single['p50']:.0f} µs, p99 {single['p99']:.0f} µs"))
    times = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in story.seconds.items())
    for line in wrap(times, 80):
        show(console, Text(line, "dim"))
    console.print()
    show(console, Text("The busiest subscriptions, one of each kind", "bold"))
    console.print()
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(width=12)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    most = max((each.matches for each in story.busiest), default=1)
    for each in story.busiest[:8]:
        bar = Bar(most, 0, each.matches, color="green")
        table.add_row(Text(f"#{each.id}", "cyan"), f"{each.matches:,}", bar, each.condition)
    console.print(table)
    console.print()
    if story.explanation is not None and story.explained_event is not None:
        summary = Text.assemble(
            (f"Event {story.explained_event['event']:,}", "bold"),
            f", “{story.explained_event['title']}”, matches ",
            (f"#{story.explained_subscription}", "cyan"),
        )
        show(console, summary)
        console.print()
        show_explanation(console, story.explanation)
        console.print()
    verdict = "all as found" if not story.wrong else f"{story.wrong} not as found"
    show(console, Text(f"The definition, asked about {story.judged_pairs:,} pairs one by one: {verdict}."))
    show(console, Text.assemble("The page with plots: ", (str(page), "cyan")))
