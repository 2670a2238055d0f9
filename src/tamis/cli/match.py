"""Which subscriptions match the events of a file, or those that a broker has?

Parquet, JSON lines or CSV in, and out; in this process, or on Spark for what is large (`engines`). What a stream of
NATS or a topic of Kafka holds is a table too.
"""

import os
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.text import Text

from tamis.cli.addresses import (
    EventsOption,
    JarsOption,
    SchemaOption,
    connector,
    events_of,
    is_stream,
    look_at_events,
    read_options,
)
from tamis.cli.engines import SPARK_FROM_BYTES, Engine, EngineOption, chosen, size_of
from tamis.cli.hosting import FunctionsOption, calling, show_failures
from tamis.cli.inputs import InputError
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, advancing, mistakes_shown, show, to_complain, to_people, to_programs
from tamis.cli.rejections import (
    RejectedOption,
    StrictOption,
    refuse,
    rejections_as_json,
    show_rejected,
    write_rejected,
)
from tamis.cli.unmet import show_unmet
from tamis.sources.disk import as_path, on_disk

if TYPE_CHECKING:
    from tamis.matching.rejections import Rejected

EXAMPLES = (
    Example("tamis workload auction --events 2000 --subscriptions 50 --out a", "Some events and subscriptions."),
    Example(
        "tamis match --events a/events.parquet --out pairs.csv --keep title \\\n"
        "      --subscriptions a/subscriptions.jsonl",
        "Which of them match? A table of pairs.",
    ),
)
NOTES = (
    "A path names a file or a folder of files; its extension tells the format: [cyan].parquet[/cyan], "
    "[cyan].jsonl[/cyan] (also .json, .ndjson) or [cyan].csv[/cyan] (with a line of names). What is written is a "
    "folder of files. Large tables are matched on Spark, which needs Java 17 or newer, and so are all if "
    "[cyan]--master[/cyan] is given; [cyan]--engine[/cyan] overrides both. On a cluster, give "
    "[cyan]tamis/cli/__main__.py[/cyan] to "
    "[cyan]spark-submit[/cyan].",
    "Rows that are not subscriptions (a text that does not parse, no id, an id that an earlier row has) are left "
    "out: the first three are shown with their reasons, and all go to [cyan]OUT.rejected.jsonl[/cyan] or where "
    "[cyan]--rejected[/cyan] says.",
    "With [cyan]--time COLUMN[/cyan] subscriptions may be of every kind (TOP, SEQUENCE, CHANGE, conditions): events "
    "are processed in order of time, and each result names the subscription, the events and the time.",
    "[bold]Events[/bold] may also be what a stream of NATS ([cyan]nats://host:4222/STREAM?subject=a.>[/cyan]) or a "
    "topic of Kafka ([cyan]kafka://host:9092/topic[/cyan]) holds as JSON. Kafka needs Spark's connector, which is "
    "fetched, or named with [cyan]--jars[/cyan].",
)


class MatchOutput(StrEnum):
    """What comes out."""

    pairs = "pairs"
    lists = "lists"
    counts = "counts"


def match(
    events: Annotated[str, typer.Option(metavar="PATH|URL", help="The events: files, nats://... or kafka://...")],
    subscriptions: Annotated[str, typer.Option(metavar="PATH", help="The subscriptions: ids and conditions.")],
    out: Annotated[str, typer.Option(metavar="PATH", help="Where the matches go.")],
    result: Annotated[MatchOutput, typer.Option(help="Pairs, a list for each event, or a count.")] = MatchOutput.pairs,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column of the events to keep; may be repeated.")
    ] = None,
    id_column: Annotated[str, typer.Option("--id", metavar="COLUMN", help="The ids.")] = "subscription_id",
    where: Annotated[str, typer.Option(metavar="COLUMN", help="The conditions.")] = "condition",
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="When events happened (timestamps or seconds): then ranked subscriptions, sequences and changes are "
            "evaluated, too, in order of time.",
        ),
    ] = None,
    event_id: Annotated[
        str | None, typer.Option("--event-id", metavar="COLUMN", help="With --time: the events' ids, else row numbers.")
    ] = None,
    schema: SchemaOption = None,
    events_option: EventsOption = None,
    rejected: RejectedOption = None,
    strict: StrictOption = False,
    engine: EngineOption = Engine.auto,
    master: Annotated[str | None, typer.Option(metavar="URL", help="The Spark master to run on.")] = None,
    jars: JarsOption = None,
    functions: FunctionsOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Overwrite existing output.")] = False,
    log: Annotated[Path, typer.Option(metavar="FILE", help="The file for Spark's own log.")] = Path(os.devnull),
    as_json: AsJson = False,
) -> None:
    """Match the events of files, or of a broker, against the subscriptions of files, here or on Spark."""
    with mistakes_shown(as_json), calling(functions) as hosted:
        source = read_options(events_option, "--events-option")
        _look_first((events, subscriptions), (out, rejected), overwrite)
        look_at_events(events, source, streaming=False)
        is_on_spark = master is not None or jars is not None
        taken = chosen(engine, events, subscriptions, out, source, names_spark=is_on_spark, rejected=rejected)
        naming: dict[str, Any] = {"id": id_column, "where": where}
        if time is not None:
            from tamis.cli.notifying import require_pairs

            require_pairs(result.value)
            if taken is not Engine.local:
                raise InputError(
                    "--time is for the local engine", hint="On Spark call tamis.spark.notify and tamis.spark.top_k."
                )
            kept = rejected or _beside(out)
            places = as_path(events), source, schema, as_path(subscriptions), as_path(out)
            summary, bad = _notified_here(*places, naming, time, event_id, strict)
            if summary is not None:
                write_rejected(bad, kept, **naming)
        elif taken is Engine.local:
            kept = rejected or _beside(out)
            places = as_path(events), source, schema, as_path(subscriptions), as_path(out)
            summary, bad = _matched_here(*places, naming, keep or None, result.value, strict)
            if summary is not None:
                write_rejected(bad, kept, **naming)
        else:
            _look_for_java(master)
            kept = _kept(rejected, out, master)
            targets = _Targets(out, kept, () if overwrite else (out, *([rejected] if rejected else [])))
            read = partial(_read, events=events, options=source, schema=schema, keep=keep)
            quick = master is None and size_of((events, subscriptions)) < SPARK_FROM_BYTES and not is_stream(events)
            options = {
                "master": master,
                "name": "tamis match",
                "log": log,
                "quick": quick,
                "config": connector(events, jars),
            }
            summary, bad = _matched(read, subscriptions, targets, naming, keep or None, result.value, options, strict)
    if summary is None:
        refuse(bad, as_json)
        return
    summary["out"] = out
    if hosted.failures:
        summary["functions"] = hosted.failures
    if as_json:
        to_programs(summary | rejections_as_json(bad, kept))
        return
    rows = f"{summary['rows']:,} {'notifications' if time else 'pairs' if result is MatchOutput.pairs else 'events'}"
    on_spark = " on Spark" if summary["engine"] == "spark" else ""
    done = Text.assemble(("✓ ", "bold green"), f"{rows} in {out}, in {summary['seconds']:.1f} s{on_spark}")
    show(to_people(), done, below="  ")
    show_rejected(bad, kept)
    show_failures(hosted)
    show_unmet(summary["unmet"])


def _beside(out: str) -> str:
    """Return where rejected rows go if nobody says: beside what is written.

    >>> _beside("results/pairs.parquet"), _beside("s3a://bucket/pairs.csv/")
    ('results/pairs.rejected.jsonl', 's3a://bucket/pairs.rejected.jsonl')
    """
    folder, slash, name = out.rstrip("/").rpartition("/")
    return f"{folder}{slash}{Path(name).stem}.rejected.jsonl"


def _kept(rejected: str | None, out: str, master: str | None) -> str:
    """Return where rejected rows go on Spark; a client of Spark Connect has no Java machine to reach an address with.

    >>> _kept(None, "s3a://bucket/pairs.csv", None), _kept(None, "s3a://bucket/pairs.csv", "sc://host")
    ('s3a://bucket/pairs.rejected.jsonl', 'pairs.rejected.jsonl')
    """
    from tamis.spark.session import is_remote

    kept = rejected or _beside(out)
    if not is_remote(master) or on_disk(kept) is not None:
        return kept
    if rejected:
        raise InputError(f"rejected rows cannot go to {rejected} by Spark Connect", hint="Name a file on this machine.")
    return kept.rpartition("/")[2]


class _Targets(NamedTuple):
    """Where Spark writes: the matches, the rejected rows, and what of it must not be there yet."""

    out: str
    rejected: str
    new: tuple[str, ...]

    def require_new(self, session: Any) -> None:
        """Raise if something is there, or a file system does not answer; on this machine that has been looked at."""
        from tamis.spark.folders import file_at
        from tamis.spark.forests import is_connect

        for place in self.new:
            if on_disk(place) is None and not is_connect(session):
                folder, name = file_at(place.rstrip("/"), session)
                if name in folder.names():
                    raise _taken(place)


def _taken(place: str) -> InputError:
    return InputError(f"{place} already exists", hint="Name another, or add --overwrite.")


def _look_first(read: tuple[str, ...], written: tuple[str | None, ...], overwrite: bool) -> None:
    """Say what is wrong before anything takes time."""
    from tamis.sources.tables import format_of

    for path in read:
        place = on_disk(path)
        if place is not None and not place.exists():
            raise InputError(f"{path} does not exist")
    for target in written:
        place = on_disk(target) if target else None
        if target and place is not None and place.exists() and not overwrite:
            raise _taken(target)
    for each in (*read, *written):
        if each and not (each == read[0] and is_stream(each)):
            format_of(each)


def _look_for_java(master: str | None) -> None:
    from tamis.spark.java import require_java
    from tamis.spark.session import is_remote

    if not is_remote(master):
        require_java()


def _matched_here(
    events: str,
    source: dict[str, str],
    schema: str | None,
    subscriptions: str,
    out: str,
    naming: dict[str, Any],
    keep: list[str] | None,
    result: str,
    strict: bool,
) -> tuple[dict[str, Any] | None, list["Rejected"]]:
    """Match in this process; return what there is to tell, and the rejected rows."""
    from tamis.cli.local import read_events, rules_for, write_matches
    from tamis.cli.notifying import with_hints

    start = perf_counter()
    with to_complain().status("Reading"):
        table = read_events(events, source, schema, keep)
        rules = rules_for(table, subscriptions, **naming)
    if rules.rejected and strict:
        return None, with_hints(rules.rejected)
    with advancing("Matching", table.num_rows) as advance:
        rows = write_matches(table, rules, keep, result, out, advance)
    summary = _summary("local", out, result, rows, len(rules.matcher), perf_counter() - start)
    summary["unmet"] = [str(each) for each in rules.matcher.unmet()]
    return summary, with_hints(rules.rejected)


def _notified_here(
    events: str,
    source: dict[str, str],
    schema: str | None,
    subscriptions: str,
    out: str,
    naming: dict[str, Any],
    time: str,
    event_id: str | None,
    strict: bool,
) -> tuple[dict[str, Any] | None, list["Rejected"]]:
    """Notify subscriptions of every kind in this process; return a summary, and the rejected rows."""
    from tamis.cli.local import read_events
    from tamis.cli.notifying import notified, write_notifications
    from tamis.sources.tables import read_table

    start = perf_counter()
    with to_complain().status("Reading"):
        table = read_events(events, source, schema, None)
        processor, bad, ordered = notified(table, subscriptions, **naming, time=time, event_id=event_id)
        id_type = read_table(subscriptions).schema.field(naming["id"]).type
        time_type = table.schema.field(time).type
    if bad and strict:
        return None, bad
    with advancing("Matching", ordered.num_rows) as advance:
        rows = write_notifications(processor, ordered, naming["id"], id_type, time_type, out, advance)
    summary = _summary("local", out, "notifications", rows, len(processor), perf_counter() - start)
    return summary | {"unmet": []}, bad


def _summary(engine: str, out: str, result: str, rows: int, subscriptions: int, seconds: float) -> dict[str, Any]:
    return {
        "engine": engine,
        "out": out,
        "result": result,
        "rows": rows,
        "subscriptions": subscriptions,
        "seconds": round(seconds, 3),
    }


def _read(session: Any, events: str, options: dict[str, str], schema: str | None, keep: list[str] | None) -> Any:
    """Return the table of the events."""
    return events_of(session, events, options, schema, keep, streaming=False)


def _matched(
    read: Callable[[Any], Any],
    subscriptions: str,
    targets: _Targets,
    naming: dict[str, Any],
    keep: list[str] | None,
    result: str,
    options: dict[str, Any],
    strict: bool,
) -> tuple[dict[str, Any] | None, list["Rejected"]]:
    """Match on Spark; return what there is to tell, and the rejected rows. If these forbid it, nothing is written."""
    from tamis import spark as on_spark
    from tamis.language import Schema
    from tamis.matching.rejections import Rejected
    from tamis.spark.files import read_in_order, read_table, write_table
    from tamis.spark.sightings import Sighted

    console = to_complain()
    start = perf_counter()
    with console.status("Matching on Spark"), on_spark.running(**options) as session:
        targets.require_new(session)
        table = read(session)
        rules = read_in_order(session, subscriptions)
        has_priorities = result == "lists" and "priority" in rules.columns  # which only lists are in the order of
        priority = "priority" if has_priorities else None
        compiled = on_spark.compiled(rules, schema=Schema.from_spark(table), priority=priority, **naming)
        bad = [Rejected(*row) for row in compiled.rejected.collect()] if compiled.rejected_count else []
        if bad and strict:
            return None, bad
        sighted = Sighted(table, compiled)
        matches = on_spark.match(sighted.events, compiled, keep=keep, result=result)
        write_table(matches, targets.out, replaces=targets.out not in targets.new)
        write_rejected(bad, targets.rejected, **naming)  # while the session is there that may have to do it
        rows = read_table(session, targets.out).count() if compiled.count or result != "pairs" else 0
        summary = _summary("spark", targets.out, result, rows, compiled.count, perf_counter() - start)
        summary["unmet"] = [str(each) for each in sighted.unmet()]
    return summary, bad
