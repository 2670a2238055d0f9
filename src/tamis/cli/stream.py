"""Which subscriptions match the events that arrive in a folder, or from a broker?

A stream on Spark: it goes on where it stopped, or was killed, and no match is lost.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tamis.cli.addresses import (
    EventsOption,
    JarsOption,
    OutOption,
    SchemaOption,
    connector,
    events_of,
    is_stream,
    look_at_events,
    look_at_out,
    options_help,
    read_options,
)
from tamis.cli.figures import served, write_figures
from tamis.cli.hosting import FunctionsOption, calling
from tamis.cli.inputs import InputError, require_known
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain, to_people, to_programs
from tamis.cli.rejections import (
    RejectedOption,
    StrictOption,
    refuse,
    rejections_as_json,
    show_rejected,
    write_rejected,
)
from tamis.sources.addresses import without_secrets
from tamis.sources.disk import on_disk
from tamis.sources.schemes import scheme_at

if TYPE_CHECKING:
    from tamis.language import Schema
    from tamis.matching.rejections import Rejected
    from tamis.spark import SubscriptionLog

EXAMPLES = (
    Example("tamis workload auction --events 2000 --subscriptions 50 --out a", "Some events and subscriptions."),
    Example("mkdir arriving && cp a/events.parquet arriving", "A folder in which events arrive."),
    Example(
        "tamis stream --events arriving --subscriptions a/subscriptions.parquet \\\n"
        "      --out matches --checkpoint checkpoint --keep title --once",
        "Match all that has arrived, and stop; the next run matches what came since.",
    ),
    Example(
        "tamis stream --events arriving --subscriptions a/subscriptions.parquet \\\n"
        "      --out nats://localhost:1/MATCHES --checkpoint another --once",
        "No server answers there: the error comes at once, before Spark starts.",
        exit_code=2,
    ),
)
NOTES = (
    "[cyan]--subscriptions[/cyan] names a table (.parquet, .jsonl or .csv), which is read at the start, or the folder "
    "of a subscription log, whose changes are in force from the next micro-batch on. The matches are a folder for each "
    "micro-batch; those with a commit in [cyan]_tamis/commits[/cyan] are whole. It needs Java 17 or newer.",
    "Rows of a table that are not subscriptions (a text that does not parse, no id, an id that an earlier row has) are "
    "left out: the first three are shown with their reasons, and all go to [cyan]CHECKPOINT/rejected.jsonl[/cyan] or "
    "where [cyan]--rejected[/cyan] says.",
    "[bold]Events[/bold] may also come as JSON from [cyan]nats://host:4222/STREAM?subject=a.>[/cyan] or "
    "[cyan]kafka://host:9092/topic[/cyan], and [bold]matches[/bold] go as JSON to "
    "[cyan]nats://host:4222/STREAM?subject=m.{subscription_id}[/cyan] or [cyan]https://host/hook[/cyan]. A stream that "
    "was killed resumes where it stopped: a folder receives each match once; NATS and webhooks may receive a match "
    "again, with the same id (Nats-Msg-Id, Idempotency-Key). Kafka needs Spark's connector, which is fetched, or "
    "named with [cyan]--jars[/cyan].",
    f"[bold]Options[/bold], as [cyan]--events-option max_messages=5000[/cyan]. {options_help()} Of Kafka and of files: "
    "those of Spark's sources.",
)
_NOT_HERE = "it remembers earlier events, and this stream matches conditions: give --time COLUMN and --event-id COLUMN"
_FORMATS = ("parquet", "json", "csv", "parquet_folder")


def stream(
    events: Annotated[
        str, typer.Option(metavar="DIR|URL", help="Where events arrive: a folder, nats://... or kafka://...")
    ],
    subscriptions: Annotated[str, typer.Option(metavar="PATH", help="A table, or the folder of a log.")],
    out: Annotated[
        str, typer.Option(metavar="DIR|URL", help="Where the matches go: a folder, nats://... or https://...")
    ],
    checkpoint: Annotated[
        str, typer.Option(metavar="DIR", help="The checkpoint folder, from which the stream resumes.")
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--format",
            help="What arrives in a folder: parquet, json or csv; or parquet_folder, "
            "which is Parquet that workers read themselves, in the order in which it came.",
        ),
    ] = "parquet",
    schema: SchemaOption = None,
    events_option: EventsOption = None,
    out_option: OutOption = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column of the events to keep; may be repeated.")
    ] = None,
    id_column: Annotated[str, typer.Option("--id", metavar="COLUMN", help="The ids.")] = "subscription_id",
    where: Annotated[str, typer.Option(metavar="COLUMN", help="The conditions.")] = "condition",
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column of the times of events. TOP, SEQUENCE and CHANGE need it, and results come in its order.",
        ),
    ] = None,
    event_id: Annotated[
        str, typer.Option("--event-id", metavar="COLUMN", help="With --time: the events' ids.")
    ] = "event_id",
    lateness: Annotated[
        str, typer.Option(metavar="SPAN", help="With --time: how late events may come, such as '5 seconds'.")
    ] = "0 seconds",
    rejected: RejectedOption = None,
    strict: StrictOption = False,
    once: Annotated[bool, typer.Option("--once", help="Stop when everything that has arrived is matched.")] = False,
    every_s: Annotated[float, typer.Option("--every", min=0, help="Seconds between micro-batches.")] = 1.0,
    files: Annotated[int, typer.Option(min=1, help="The most files in a micro-batch.")] = 100,
    metrics: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file for Prometheus metrics, written after every micro-batch."),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Serve the same metrics on http://127.0.0.1:PORT/metrics; 0 chooses a free port."
        ),
    ] = None,
    master: Annotated[str | None, typer.Option(metavar="URL", help="The Spark master to run on.")] = None,
    jars: JarsOption = None,
    functions: FunctionsOption = None,
    log: Annotated[Path, typer.Option(metavar="FILE", help="The file for Spark's own log.")] = Path(os.devnull),
    as_json: AsJson = False,
) -> None:
    """Match the events that arrive in a folder or from a broker, on Spark, and go on after any crash."""
    with mistakes_shown(as_json), calling(functions):
        source, sink = read_options(events_option, "--events-option"), read_options(out_option, "--out-option")
        require_known(kind, _FORMATS, "format")
        _look_first(events, source, subscriptions, out, sink, master)
        trigger: dict[str, Any] = (
            {"availableNow": True} if once else {"processingTime": f"{int(1000 * every_s)} milliseconds"}
        )
        matching: dict[str, Any] = {"id": id_column, "where": where, "keep": keep or None, "trigger": trigger}
        matching |= {"out": out, "out_options": sink, "checkpoint": checkpoint}
        starting: dict[str, Any] = {
            "master": master,
            "name": "tamis stream",
            "log": log,
            "config": connector(events, jars),
        }
        arriving = partial(
            _arriving, events=events, options=source, kind=kind, schema=schema, files=files, checkpoint=checkpoint
        )
        starting |= {"quick": master is None and once}  # a stream without an end is a long job
        if time is not None:
            columns = {"time": time, "event": event_id, "id": id_column, "where": where, "lateness": lateness}
            rows = _notify(arriving, subscriptions, out, checkpoint, trigger, starting, columns)
            if as_json:
                to_programs({"out": out, "rows_total": rows})
            else:
                done = Text.assemble(("✓ ", "bold green"), f"{rows:,} notifications in {out}")
                show(to_people(), done, below="  ")
            return
        kept = rejected or f"{checkpoint.rstrip('/')}/rejected.jsonl"
        figures, bad = _run(
            arriving, subscriptions, matching, starting, metrics, metrics_port, None if strict else kept, as_json
        )
    if figures is None:
        refuse(bad, as_json)
        return
    shown = without_secrets(out) if scheme_at(out).is_server else out
    if as_json:
        to_programs({"out": shown, **figures, **rejections_as_json(bad, kept)})
        return
    totals = f"{figures['events_total']:,.0f} events, {figures['rows_total']:,.0f} rows in {shown}"
    show(to_people(), Text.assemble(("✓ ", "bold green"), totals), below="  ")


def _look_first(
    events: str, source: dict[str, str], subscriptions: str, out: str, sink: dict[str, str], master: str | None
) -> None:
    """Say what is wrong before Spark starts."""
    from tamis.sources.tables import ENDINGS
    from tamis.spark.java import require_java
    from tamis.spark.session import is_remote

    arriving = None if is_stream(events) else on_disk(events)
    asked = on_disk(subscriptions)
    for path in (arriving, asked):
        if path is not None and not path.exists():
            raise InputError(f"{path} does not exist")
    if arriving is not None and not arriving.is_dir():
        raise InputError(
            f"{events} is a file, but events arrive in a folder",
            hint="Name its folder; or match the file as it is: tamis match.",
        )
    if asked is not None and asked.is_file() and asked.suffix.lower() not in ENDINGS:
        raise InputError(
            f"{subscriptions} is neither a table nor the folder of a log", hint=f"Tables end with {', '.join(ENDINGS)}."
        )

    if not is_remote(master):
        require_java()
    look_at_events(events, source, streaming=True)
    look_at_out(out, sink)


def _run(
    arriving: Callable[..., Any],
    subscriptions: str,
    matching: dict[str, Any],
    starting: dict[str, Any],
    metrics: Path | None,
    metrics_port: int | None,
    kept: str | None,
    as_json: bool,
) -> tuple[dict[str, float] | None, list["Rejected"]]:
    """Run the stream; return its figures, and the rejected rows. No file to keep these: then they forbid it."""
    from tamis import spark as on_spark
    from tamis.language import Schema

    console = to_complain()
    with on_spark.running(**starting) as session:
        table = arriving(session, keep=matching["keep"])
        naming = matching["id"], matching["where"]
        asked, bad = _asked(
            session, subscriptions, matching["checkpoint"], *naming, Schema.from_spark(table), kept is None
        )
        if asked is None:
            return None, bad
        if kept is not None:
            write_rejected(bad, kept, *naming)
            if not as_json:
                show_rejected(bad, kept)  # now, because a stream may run for months
        running = on_spark.match_stream(table, asked, **matching)
        try:
            with served(running.metrics, metrics_port), console.status("Matching what arrives; Ctrl-C stops"):
                while not running.await_end(timeout_s=1):
                    write_figures(metrics, running.metrics)
        except KeyboardInterrupt:
            pass
        finally:
            running.stop()
            write_figures(metrics, running.metrics)
        return running.metrics.as_dict(), bad


def _notify(
    arriving: Callable[..., Any],
    subscriptions: str,
    out: str,
    checkpoint: str,
    trigger: dict[str, Any],
    starting: dict[str, Any],
    naming: dict[str, Any],
) -> int:
    """Run a stream for subscriptions of every kind; return how many notifications there are in its folder."""
    from tamis import spark as on_spark
    from tamis.sources.tables import ENDINGS
    from tamis.spark.files import read_in_order

    if PurePosixPath(subscriptions).suffix.lower() not in ENDINGS:
        raise InputError(
            "with --time subscriptions are a table, not a log", hint=f"Tables end with {', '.join(ENDINGS)}."
        )
    if scheme_at(out).is_server:
        raise InputError(
            "with --time notifications go to a folder of Parquet files", hint="Name a folder behind --out."
        )
    with on_spark.running(**starting) as session:
        table = arriving(session, keep=None)
        notifications = on_spark.notify(table, read_in_order(session, subscriptions), **naming)
        writer = notifications.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        query = writer.trigger(**trigger).start(out)
        try:
            with to_complain().status("Matching what arrives; Ctrl-C stops"):
                while not query.awaitTermination(1):
                    pass
        except KeyboardInterrupt:
            pass
        finally:
            query.stop()
        count: int = session.read.parquet(out).count()
        return count


def _arriving(
    session: Any,
    *,
    events: str,
    options: dict[str, str],
    kind: str,
    schema: str | None,
    files: int,
    keep: list[str] | None,
    checkpoint: str,
) -> Any:
    """Return the stream of events: of a broker, or of the files of a folder."""
    if not is_stream(events) and (local := on_disk(events)) is not None and not any(local.iterdir()):
        raise InputError(f"{events} is empty, but its first file decides which columns events have")
    remembered = f"{checkpoint.rstrip('/')}/tamis/columns.json"
    return events_of(session, events, options, schema, keep, remembered, streaming=True, kind=kind, files=files)


def _asked(
    session: Any, path: str, checkpoint: str, id: str, where: str, schema: "Schema", strict: bool
) -> tuple["SubscriptionLog | None", list["Rejected"]]:
    """Return the log: that of a folder, or one beside the checkpoint that is brought to what a table says.

    And the rows of the table that are not subscriptions; if these forbid the whole there is no log.
    """
    from tamis import spark as on_spark
    from tamis.cli.notifying import with_hints
    from tamis.matching.admission import CandidateRow, admitted
    from tamis.sources.tables import ENDINGS
    from tamis.spark.columns import column, require
    from tamis.spark.files import read_in_order

    if PurePosixPath(path).suffix.lower() not in ENDINGS:
        return on_spark.SubscriptionLog(path, spark=session), []
    table = read_in_order(session, path)
    require(table, (id, where), "subscriptions")
    priority = [column("priority").cast("bigint")] if "priority" in table.columns else []
    rows = [tuple(row) for row in table.select(column(id), column(where), *priority).collect()]
    if strict:
        _, bad = admitted((CandidateRow(*row) for row in rows), schema)
        if bad:
            return None, with_hints(bad, _NOT_HERE)
    log = on_spark.SubscriptionLog(f"{checkpoint.rstrip('/')}/tamis/subscriptions", spark=session)
    return log, with_hints(log.load(rows, schema), _NOT_HERE)
