"""How does an event get to a broker from a terminal?

Events are arguments, or JSON lines from standard input. The command ends when all of them are on the broker's disk.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tamis.cli.brokers import DEFAULT_URL, NOTE, BrokerOption, CaOption, CertificateOption, TokenFileOption, talking_to
from tamis.cli.inputs import STANDARD_INPUT, InputError, event_from, lines_of
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain, to_people, to_programs

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = (
    Example("""tamis publish '{"price": 12}' --dry-run""", "What would be sent? A CloudEvent."),
    Example(
        """tamis publish '{"price": 12}' --to localhost:1""",
        "No broker answers there: the error comes at once.",
        exit_code=2,
    ),
)
NOTES = (
    "An event is a JSON object: the data of an event, or with [cyan]specversion[/cyan] a whole CloudEvent. Without "
    "arguments, or with [cyan]-[/cyan], events are read from standard input, one per line, and sent as they come: "
    "[cyan]tail -f log.jsonl | tamis publish[/cyan]. The command ends when all events are on the broker's disk, and "
    "sends again what was not acknowledged when a connection broke.",
    NOTE,
)


def publish(
    events: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EVENT", help="Events as JSON; - reads one per line from standard input.", show_default=False
        ),
    ] = None,
    to: BrokerOption = DEFAULT_URL,
    type_: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="What kind of event it is.", show_default=False)
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Where it comes from.", show_default=False)
    ] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="What it is about.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent.")] = False,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    as_json: AsJson = False,
) -> None:
    """Publish events to a broker, and wait until they are on its disk."""
    with mistakes_shown(as_json):
        given = _given(events or [])
        context = {"type": type_, "source": source, "subject": subject}
        if dry_run:
            _show_only(given, context, as_json)
            return
        positions = _published(given, context, as_json, (to, token_file, ca, certificate))
    if as_json:
        to_programs({"events": len(positions), "position": positions[-1] if positions else None})
    elif positions:
        count = "1 event is" if len(positions) == 1 else f"{len(positions):,} events are"
        line = Text.assemble(("✓ ", "bold green"), f"{count} on disk, ", ("the last at ", "dim"), positions[-1])
        show(to_people(), line, below="  ")
    else:
        show(to_complain(), Text("There was nothing to publish."))


def _given(arguments: list[str]) -> Iterator[dict[str, Any]]:
    if not arguments and sys.stdin.isatty():
        raise InputError(
            "there is nothing to publish",
            hint="""Give an event: tamis publish '{"price": 12}', or pipe in one event per line.""",
        )
    return _read(arguments or ["-"])


def _read(arguments: list[str]) -> Iterator[dict[str, Any]]:
    for number, argument in enumerate(arguments, start=1):
        if argument == "-":
            for line_number, line in lines_of(STANDARD_INPUT):
                yield event_from(line, f"line {line_number}")
        else:
            yield event_from(argument, "the event" if len(arguments) == 1 else f"event {number}")


def _show_only(events: Iterator[dict[str, Any]], context: dict[str, str | None], as_json: bool) -> None:
    import json

    from tamis.service.client.events import encoded

    documents = [json.loads(encoded(event, "/cli", **context)) for event in events]
    if as_json:
        to_programs({"events": documents})
    else:
        for document in documents:
            typer.echo(json.dumps(document))


def _published(
    events: Iterator[dict[str, Any]],
    context: dict[str, str | None],
    as_json: bool,
    broker: "tuple[str, Path | None, Path | None, Path | None]",
) -> list[str]:
    from rich.progress import Progress, SpinnerColumn, TextColumn

    console = to_complain()
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} events on disk"))
    is_shown = console.is_terminal and not as_json
    with (
        talking_to(*broker) as client,
        Progress(*columns, console=console, transient=True, disable=not is_shown) as progress,
    ):
        task = progress.add_task("", total=None)
        return client.publish_many(events, on_progress=lambda count: progress.advance(task, count), **context)
