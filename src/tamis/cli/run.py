"""Which subscriptions match the events that come in a pipe?

A small pipeline in one process, without Spark and without Java: events come as JSON lines from standard input, from
files or from a stream of NATS (`arrivals`), and matches go as JSON lines to standard output, to a folder of files, to
NATS or to a webhook (`deliveries`). A batch of events is done when its matches have arrived, so every match comes at
least once, whenever the process dies; and a match has the same name in every run. It ends when the input does.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tamis.cli.addresses import EventsOption, OutOption, look_at_events, look_at_out, read_options
from tamis.cli.hosting import FunctionsOption, calling, show_failures
from tamis.cli.inputs import InputError
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain
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
from tamis.sources.schemes import Source, scheme_at, table

if TYPE_CHECKING:
    from tamis.cli.local import Rules
    from tamis.sources.arriving import ArrivedBatch

EXAMPLES = (
    Example("printf 'subscription_id,condition\\ncheap,price < 20\\n' > rules.csv", "A table of subscriptions."),
    Example(
        """echo '{"price": 12}' | tamis run --subscriptions rules.csv""",
        "Events in, matches out, one per line.",
    ),
)
NOTES = (
    "[cyan]--events[/cyan] is standard input (-), files (.jsonl, .csv, .parquet) or "
    "[cyan]nats://host:4222/STREAM[/cyan]; [cyan]--out[/cyan] is standard output (-), a folder of files (.jsonl, .csv, "
    ".parquet), [cyan]nats://...[/cyan] or [cyan]https://host/hook[/cyan]. It ends when the input does.",
    "[bold]Every match is written at least once.[/bold] If a run was killed, start it again: a match has the same id "
    "as before ([cyan]Nats-Msg-Id[/cyan], and what [cyan]--match-id[/cyan] adds), so its receiver can ignore it. With "
    "[cyan]--durable[/cyan] NATS remembers what was done. Lines of a pipe have lasting ids only if "
    "[cyan]--event-id[/cyan] names an attribute. For streams that never end, use [cyan]tamis stream[/cyan].",
    "Lines that are not JSON objects are left out and counted. With [cyan]--json[/cyan] the summary, on standard "
    "error, is JSON.",
)


def run(
    subscriptions: Annotated[str, typer.Option(metavar="PATH", help="The subscriptions: ids and conditions.")],
    events: Annotated[str, typer.Option(metavar="PATH|URL", help="The events: - is standard input.")] = "-",
    out: Annotated[str, typer.Option(metavar="PATH|URL", help="Where the matches go: - is standard output.")] = "-",
    events_option: EventsOption = None,
    out_option: OutOption = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="ATTRIBUTE", help="An attribute of the events to keep; may be repeated.")
    ] = None,
    id_column: Annotated[str, typer.Option("--id", metavar="COLUMN", help="The ids.")] = "subscription_id",
    where: Annotated[str, typer.Option(metavar="COLUMN", help="The conditions.")] = "condition",
    event_id: Annotated[
        str | None,
        typer.Option(metavar="ATTRIBUTE", help="The attribute that identifies an event; the default is its position."),
    ] = None,
    match_id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Add a column with an identifier of each match that is the same in every run."
        ),
    ] = None,
    durable: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Resume where the last run of this name stopped (NATS events only)."),
    ] = None,
    ack_wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long NATS waits for an acknowledgement.")
    ] = 30.0,
    rejected: RejectedOption = None,
    strict: StrictOption = False,
    functions: FunctionsOption = None,
    as_json: AsJson = False,
) -> None:
    """Match events as they come in a pipe, from files or from NATS, in this process."""
    with mistakes_shown(as_json), calling(functions) as hosted:
        source, sink = read_options(events_option, "--events-option"), read_options(out_option, "--out-option")
        events, subscriptions, out = as_path(events), as_path(subscriptions), as_path(out)
        _look_first(events, source, subscriptions, out, sink, rejected, durable)
        from tamis.cli.arrivals import arriving, show_bad_lines
        from tamis.cli.deliveries import delivering
        from tamis.cli.local import Rules
        from tamis.sources.arriving import BadLines
        from tamis.sources.tables import read_table

        rules = Rules(read_table(subscriptions), id_column, where, None)
        kept = rejected or f"{Path(subscriptions).stem}.rejected.jsonl"
        if rules.rejected and strict:
            refuse(rules.rejected, as_json)
        write_rejected(rules.rejected, kept, id_column, where)
        if not as_json:
            show_rejected(rules.rejected, kept)
        bad_lines = BadLines()
        with delivering(out, sink) as take:
            batches = arriving(events, source, bad_lines, event_id, durable, ack_wait)
            counts = _matched(batches, rules, keep, match_id, take)
    unmet = [str(each) for each in rules.matcher.unmet()]
    if as_json:
        if hosted.failures:
            counts |= {"functions": hosted.failures}
        document = {**counts, "bad_lines": bad_lines.count, "unmet": unmet, **rejections_as_json(rules.rejected, kept)}
        typer.echo(json.dumps(document), err=True)
        return
    show_bad_lines(bad_lines)
    show_failures(hosted)
    show_unmet(unmet)
    totals = f"{counts['events']:,} events, {counts['matches']:,} matches"
    show(to_complain(), Text.assemble(("✓ ", "bold green"), totals), below="  ")


def _look_first(
    events: str,
    source: dict[str, str],
    subscriptions: str,
    out: str,
    sink: dict[str, str],
    rejected: str | None,
    durable: str | None,
) -> None:
    from tamis.sources.tables import format_of

    for place in (events, subscriptions, out, rejected):
        if place and on_disk(place) is None and not scheme_at(place).is_server:
            raise InputError(f"{place} can only be reached by Spark", hint="Use tamis stream or tamis match.")
    scheme = scheme_at(events)
    if durable is not None and not (isinstance(scheme.source, Source) and scheme.source.durable is not None):
        able = [each for each in table.SCHEMES if isinstance(each.source, Source) and each.source.durable is not None]
        raise InputError(
            f"--durable is for events of {' or '.join(each.title for each in able)}, which remembers what was done",
            hint=" or ".join(each.form for each in able),
        )
    is_folder = out != "-" and not scheme_at(out).is_server
    if durable is not None and is_folder and format_of(out) != "json":
        raise InputError(
            f"--durable cannot append to {out}: its columns are known only when all matches are", hint="Name .jsonl."
        )
    for path in (events, subscriptions):
        if path != "-" and not scheme_at(path).is_server and not Path(path).exists():
            raise InputError(f"{path} does not exist")
    format_of(subscriptions)
    if isinstance(scheme.source, Source) and scheme.source.arriving is None:
        raise InputError(f"{scheme.title} can only be read by Spark", hint="Use tamis stream.")
    if events != "-":
        look_at_events(events, source, streaming=False)
        if not scheme.is_server:
            format_of(events)
    if is_folder:
        format_of(out)
        if Path(out).exists() and durable is None:
            raise InputError(f"{out} already exists", hint="Name another.")
    if out != "-":
        look_at_out(out, sink)


def _matched(
    batches: Iterator["ArrivedBatch"],
    rules: "Rules",
    keep: list[str] | None,
    match_id: str | None,
    take: Callable[[list[dict[str, Any]], list[str]], None],
) -> dict[str, Any]:
    """Match batch after batch; one is done, and the next one asked for, when its matches have been taken."""
    from tamis.sources.match_names import match_name

    counts: dict[str, Any] = {"events": 0, "matches": 0}
    for batch in batches:
        pairs = rules.matcher.match_batch(batch.events)
        rows, names = [], []
        for index, subscription_id in zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True):
            event = batch.events[index]
            name = match_name(batch.names[index], subscription_id, rules.matcher.text(subscription_id))
            shown = event if keep is None else {each: event[each] for each in keep if each in event}
            rows.append({**shown, rules.id: subscription_id, **({match_id: name} if match_id else {})})
            names.append(name)
        if rows:
            take(rows, names)
        batch.done()
        counts["events"] += len(batch.events)
        counts["matches"] += len(rows)
    return counts
