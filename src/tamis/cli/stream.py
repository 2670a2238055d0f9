"""Which subscriptions match the events that arrive in a folder?

A stream on Spark: it goes on where it stopped, or was killed, and every match comes out exactly once.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tamis.cli.inputs import InputError
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain, to_people, to_programs

if TYPE_CHECKING:
    from tamis.spark import SubscriptionLog

EXAMPLES = (
    Example("tamis workload auction --events 2000 --subscriptions 50 --out a", "Some events and subscriptions."),
    Example("mkdir arriving && cp a/events.parquet arriving", "A folder in which events arrive."),
    Example(
        "tamis stream --events arriving --subscriptions a/subscriptions.parquet \\\n"
        "      --out matches --checkpoint checkpoint --keep title --once",
        "Match all that is there, and stop; next time, what came since.",
    ),
)
NOTES = (
    "[cyan]--subscriptions[/cyan] names a table (.parquet, .jsonl or .csv), which is read at the start, or the folder "
    "of a subscription log, whose changes are in force from the next micro-batch on. The matches are a folder for each "
    "micro-batch; those with a commit in [cyan]_tamis/commits[/cyan] are whole. It needs Java 17 or newer.",
)


def stream(
    events: Annotated[Path, typer.Option(metavar="DIR", help="The folder in which files of events arrive.")],
    subscriptions: Annotated[Path, typer.Option(metavar="PATH", help="A table, or the folder of a log.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the matches go.")],
    checkpoint: Annotated[Path, typer.Option(metavar="DIR", help="What lets the stream go on.")],
    kind: Annotated[str, typer.Option("--format", help="What arrives: parquet, json or csv.")] = "parquet",
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column of the events to keep; may be repeated.")
    ] = None,
    id_column: Annotated[str, typer.Option("--id", metavar="COLUMN", help="The ids.")] = "subscription_id",
    where: Annotated[str, typer.Option(metavar="COLUMN", help="The conditions.")] = "condition",
    once: Annotated[bool, typer.Option("--once", help="Stop when all that is there is matched.")] = False,
    every_s: Annotated[float, typer.Option("--every", min=0, help="Seconds between micro-batches.")] = 1.0,
    files: Annotated[int, typer.Option(min=1, help="The most files in a micro-batch.")] = 100,
    metrics: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where figures for Prometheus go, after every micro-batch.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve these figures on http://127.0.0.1:PORT/metrics; 0 takes any port."),
    ] = None,
    master: Annotated[str | None, typer.Option(metavar="URL", help="The Spark to run on.")] = None,
    log: Annotated[Path, typer.Option(metavar="FILE", help="Where Spark's own words go.")] = Path(os.devnull),
    as_json: AsJson = False,
) -> None:
    """Match the events that arrive in a folder, exactly once, on Spark."""
    with mistakes_shown(as_json):
        if kind not in ("parquet", "json", "csv"):
            raise InputError(f"what arrives is parquet, json or csv, not {kind}")
        for path in (events, subscriptions):
            if not path.exists():
                raise InputError(f"there is nothing at {path}")
        from tamis.spark.java import require_java

        require_java()
        trigger = {"availableNow": True} if once else {"processingTime": f"{int(1000 * every_s)} milliseconds"}
        naming = {"id": id_column, "where": where, "keep": keep or None, "trigger": trigger}
        figures = _run(events, subscriptions, out, checkpoint, kind, naming, files, metrics, metrics_port, master, log)
    if as_json:
        to_programs({"out": str(out), **figures})
        return
    told = f"{figures['events_total']:,.0f} events, {figures['rows_total']:,.0f} rows in {out}"
    show(to_people(), Text.assemble(("✓ ", "bold green"), told), below="  ")


def _run(
    events: Path,
    subscriptions: Path,
    out: Path,
    checkpoint: Path,
    kind: str,
    options: dict[str, Any],
    files: int,
    metrics: Path | None,
    metrics_port: int | None,
    master: str | None,
    log: Path,
) -> dict[str, float]:
    from tamis import spark as on_spark

    console = to_complain()
    quick = master is None and "availableNow" in options["trigger"]  # a stream without an end is a long job
    with on_spark.running(master, name="tamis stream", log=log, quick=quick) as session:
        reader = session.read.format(kind)
        if kind == "csv":
            reader = reader.option("header", "true").option("inferSchema", "true")
        if not any(events.iterdir()):
            raise InputError(f"{events} is empty: its first file says which columns events have")
        schema = reader.load(str(events)).schema
        arriving = session.readStream.format(kind).schema(schema).option("maxFilesPerTrigger", files)
        table = (arriving.option("header", "true") if kind == "csv" else arriving).load(str(events))
        asked = _asked(session, subscriptions, checkpoint, options["id"], options["where"])
        running = on_spark.match_stream(table, asked, out=out, checkpoint=checkpoint, **options)
        try:
            with _served(running.metrics, metrics_port), console.status("Matching what arrives; Ctrl-C stops"):
                while not running.await_end(timeout_s=1):
                    _write(metrics, running.metrics)
        except KeyboardInterrupt:
            pass
        finally:
            running.stop()
            _write(metrics, running.metrics)
        return running.metrics.as_dict()


def _asked(session: Any, path: Path, checkpoint: Path, id: str, where: str) -> "SubscriptionLog":
    """Return the log: that of a folder, or one beside the checkpoint that is brought to what a table says."""
    from tamis import spark as on_spark
    from tamis.spark.files import ENDINGS, read_table

    if path.suffix.lower() not in ENDINGS:
        return on_spark.SubscriptionLog(path)
    kept = on_spark.SubscriptionLog(checkpoint / "tamis" / "subscriptions")
    rows = read_table(session, str(path)).select(id, where).collect()
    wanted = {row[0]: row[1] for row in rows if row[0] is not None and row[1] is not None}
    known = kept.at(kept.version)
    changes: dict[Any, str | None] = dict.fromkeys(each for each in known if each not in wanted)
    changes |= {each: text for each, text in wanted.items() if known.get(each) != text}
    if changes:
        kept.append(changes)
    return kept


@contextmanager
def _served(metrics: Any, port: int | None) -> Iterator[None]:
    """Serve the figures meanwhile, if a port is named, and say where."""
    if port is None:
        yield
        return
    from tamis.spark.exposition import MetricsPage

    with MetricsPage(metrics, port) as page:
        show(to_complain(), Text.assemble("Figures for Prometheus: ", (page.url, "cyan")))
        yield


def _write(path: Path | None, metrics: Any) -> None:
    if path is not None:
        beside = path.with_name(f".{path.name}.part")
        beside.write_text(metrics.prometheus(), encoding="utf-8")
        beside.replace(path)
