"""Which subscriptions match the events that come in a pipe?

A small pipeline in one process, without Spark and without Java: events come as JSON lines from standard input, from
files or from a stream of NATS, and matches go as JSON lines to standard output, to a folder of files, to NATS or to a
webhook. A batch of events is taken from the input when the matches of the one before have arrived, so every match comes
at least once; it ends when the input does.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer
from rich.text import Text

from tamis.cli.addresses import EventsOption, OutOption, look_at_events, look_at_out, read_options
from tamis.cli.inputs import InputError
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain, visible
from tamis.cli.rejections import (
    RejectedOption,
    StrictOption,
    refuse,
    show_rejected,
    told_in_json,
    write_rejected,
)
from tamis.cli.unmet import show_unmet
from tamis.sources.disk import as_path, on_disk
from tamis.sources.nats_address import is_nats, scheme_of

if TYPE_CHECKING:
    from tamis.cli.local import Rules

EXAMPLES = (
    Example("printf 'subscription_id,condition\\ncheap,price < 20\\n' > rules.csv", "A table of subscriptions."),
    Example(
        """echo '{"price": 12}' | tamis run --subscriptions rules.csv""",
        "Events in, matches out, one a line.",
    ),
)
NOTES = (
    "[cyan]--events[/cyan] is standard input (-), files (.jsonl, .csv, .parquet) or "
    "[cyan]nats://host:4222/STREAM[/cyan]; [cyan]--out[/cyan] is standard output (-), a folder of files (.jsonl, .csv, "
    ".parquet), [cyan]nats://...[/cyan] or [cyan]https://host/hook[/cyan]. It ends when the input does. Every match "
    "comes at least once. For what never ends, or is to go on after a crash, there is [cyan]tamis stream[/cyan].",
    "Lines that are no JSON object are left out and counted. With [cyan]--json[/cyan] the summary, on standard error, "
    "is JSON.",
)
_BATCH = 4_096
_SHOWN = 3

Event = dict[str, Any]


def run(
    subscriptions: Annotated[str, typer.Option(metavar="PATH", help="The subscriptions: ids and conditions.")],
    events: Annotated[str, typer.Option(metavar="PATH|URL", help="The events: - is standard input.")] = "-",
    out: Annotated[str, typer.Option(metavar="PATH|URL", help="Where the matches go: - is standard output.")] = "-",
    events_option: EventsOption = None,
    out_option: OutOption = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="ATTRIBUTE", help="What to keep of the events; may be repeated.")
    ] = None,
    id_column: Annotated[str, typer.Option("--id", metavar="COLUMN", help="The ids.")] = "subscription_id",
    where: Annotated[str, typer.Option(metavar="COLUMN", help="The conditions.")] = "condition",
    rejected: RejectedOption = None,
    strict: StrictOption = False,
    as_json: AsJson = False,
) -> None:
    """Match events as they come in a pipe, from files or from NATS, in this process."""
    with mistakes_shown(as_json):
        source, sink = read_options(events_option, "--events-option"), read_options(out_option, "--out-option")
        events, subscriptions, out = as_path(events), as_path(subscriptions), as_path(out)
        _look_first(events, source, subscriptions, out, sink, rejected)
        from tamis.cli.local import Rules
        from tamis.sources.tables import read_table

        rules = Rules(read_table(subscriptions), id_column, where, None)
        kept = rejected or f"{Path(subscriptions).stem}.rejected.jsonl"
        if rules.rejected and strict:
            refuse(rules.rejected, as_json)
        write_rejected(rules.rejected, kept, id_column, where)
        if not as_json:
            show_rejected(rules.rejected, kept)
        bad_lines = _Bad()
        with _taking(out, sink) as take:
            counts = _matched(_events(events, source, bad_lines), rules, keep, take)
    unmet = [str(each) for each in rules.matcher.unmet()]
    if as_json:
        document = {**counts, "bad_lines": bad_lines.count, "unmet": unmet, **told_in_json(rules.rejected, kept)}
        typer.echo(json.dumps(document), err=True)
        return
    bad_lines.show()
    show_unmet(unmet)
    told = f"{counts['events']:,} events, {counts['matches']:,} matches"
    show(to_complain(), Text.assemble(("✓ ", "bold green"), told), below="  ")


def _look_first(
    events: str, source: dict[str, str], subscriptions: str, out: str, sink: dict[str, str], rejected: str | None
) -> None:
    from tamis.sources.places import is_url
    from tamis.sources.tables import format_of

    for place in (events, subscriptions, out, rejected):
        if place and on_disk(place) is None and not is_url(place) and scheme_of(place) != "kafka":
            raise InputError(f"{place} is reached by Spark", hint="tamis stream and tamis match take it.")
    for path in (events, subscriptions):
        if path != "-" and not scheme_of(path) and not Path(path).exists():
            raise InputError(f"there is nothing at {path}")
    format_of(subscriptions)
    if scheme_of(events) == "kafka":
        raise InputError("Kafka is read by Spark", hint="tamis stream takes it.")
    if events != "-":
        look_at_events(events, source, streaming=False)
        if not is_nats(events):
            format_of(events)
    if out != "-":
        if not scheme_of(out):
            format_of(out)
            if Path(out).exists():
                raise InputError(f"{out} is there already", hint="Name another.")
        look_at_out(out, sink)


class _Bad:
    """Lines that are no events: how many, and the first of them."""

    def __init__(self) -> None:
        self.count, self.first = 0, list[str]()

    def note(self, line: bytes) -> None:
        self.count += 1
        if self.count <= _SHOWN:
            self.first.append(line[:80].decode(errors="replace").strip())

    def show(self) -> None:
        if self.count:
            lines = "1 line is no JSON object" if self.count == 1 else f"{self.count:,} lines are no JSON objects"
            show(to_complain(), Text.assemble(("✗ ", "bold red"), (f"{lines}, and left out:", "bold")), below="  ")
            for line in self.first:
                show(to_complain(), Text(f"  {visible(line)}"), below="    ")


def _events(events: str, options: dict[str, str], bad: _Bad) -> Iterator[list[Event]]:
    """Yield events in batches: of a pipe, what is there of it."""
    if events == "-":
        for lines in _arriving(sys.stdin.buffer):
            yield from _batches(_parsed(lines, bad))
    elif is_nats(events):
        from tamis.cli.local import nats_messages

        for messages in nats_messages(events, options):
            yield from _batches(_parsed(messages.column("body").to_pylist(), bad))
    else:
        from tamis.sources.tables import read_table

        for batch in read_table(events, options).to_batches(_BATCH):
            yield [{name: value for name, value in row.items() if value is not None} for row in batch.to_pylist()]


def _arriving(stream: Any) -> Iterator[list[bytes]]:
    """Yield the lines of a pipe as they come, as many as are there: whoever writes slowly is answered at once."""
    rest = b""
    while chunk := stream.read1(1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _parsed(lines: Iterable[bytes], bad: _Bad) -> Iterator[Event]:
    for line in lines:
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict):
            yield event
        else:
            bad.note(line)


def _batches(events: Iterator[Event]) -> Iterator[list[Event]]:
    while batch := list(islice(events, _BATCH)):
        yield batch


def _matched(
    batches: Iterator[list[Event]], rules: "Rules", keep: list[str] | None, take: Callable[[list[Event], int], None]
) -> dict[str, int]:
    """Match batch after batch; the next one is asked for when the matches of the last have been taken."""
    counts = {"events": 0, "matches": 0}
    for number, batch in enumerate(batches):
        pairs = rules.matcher.match_batch(batch)
        rows = []
        for index, each in zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True):
            event = batch[index]
            shown = event if keep is None else {name: event[name] for name in keep if name in event}
            rows.append({**shown, rules.id: each})
        if rows:
            take(rows, number)
        counts["events"] += len(batch)
        counts["matches"] += len(rows)
    return counts


@contextmanager
def _taking(out: str, options: dict[str, str]) -> Iterator[Callable[[list[Event], int], None]]:
    """Give what takes the matches of a batch, and returns when they have arrived."""
    if out == "-":
        yield _to_pipe
    elif scheme_of(out):
        yield _to_address(out, options)
    else:
        from tamis.sources.inferring import json_table
        from tamis.sources.tables import written_table

        rows: list[Event] = []
        yield lambda more, _: rows.extend(more)
        with written_table(out) as add:
            add(json_table(_plain(rows)))


def _plain(rows: list[Event]) -> list[Event]:
    """Return rows as JSON has them: dates and exact numbers of files are texts there."""
    plain: list[Event] = json.loads(json.dumps(rows, default=str))
    return plain


def _to_pipe(rows: list[Event], _: int) -> None:
    lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    sys.stdout.buffer.write("".join(lines).encode(errors="backslashreplace"))
    sys.stdout.buffer.flush()


def _to_address(out: str, options: dict[str, str]) -> Callable[[list[Event], int], None]:
    from tamis.sources.inferring import json_table
    from tamis.sources.place import Place
    from tamis.sources.places import writing_to

    query = str(uuid4())

    def take(rows: list[Event], number: int) -> None:
        table = json_table(_plain(rows))
        writing_to(out, options, table.schema.names).write(table.to_batches(), Place(query, number, 0))

    return take
