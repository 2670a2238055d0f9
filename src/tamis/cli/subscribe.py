"""What comes, that I want? Events of a broker, printed as they come.

Without a name one listens: what comes is printed, and nobody remembers. With `--as` the subscriber is durable: the
broker remembers what was not printed yet, and sends it next time.
"""

import json
import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tamis.cli.brokers import DEFAULT_URL, NOTE, BrokerOption, CaOption, CertificateOption, TokenFileOption, talking_to
from tamis.cli.lessons import Example
from tamis.cli.output import mistakes_shown, show, to_complain, to_people, visible

if TYPE_CHECKING:
    from rich.console import Console

    from tamis.service.client import BlockingDelivery, Gap, Told

EXAMPLES = (
    Example(
        'tamis subscribe "price < 20" --at localhost:1',
        "No broker answers there: the error comes at once.",
        exit_code=2,
    ),
)
NOTES = (
    "[cyan]tamis subscribe 'price < 20'[/cyan] listens from now on. With [cyan]--as ann[/cyan] the broker remembers "
    "the subscriber ann, and whatever ann has not seen yet comes the next time; each event is acknowledged when it is "
    "printed. [cyan]--from[/cyan] asks for the past first: [cyan]-1h[/cyan], a time, a position, "
    "[cyan]first[/cyan]. When the broker goes away, the command waits for it and goes on. Ctrl-C ends it.",
    NOTE,
)


def subscribe(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The condition that events have to meet.")],
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="The name of a durable subscriber to act as.", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="PLACE", help="Start in the past: -1h, first, or a position.", show_default=False
        ),
    ] = None,
    most: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Stop after this many events.", show_default=False)
    ] = None,
    at: BrokerOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines, for programs.")] = False,
) -> None:
    """Subscribe to a broker with a text, and print the matching events as they come."""
    console = to_people()
    with (
        mistakes_shown(as_json),
        talking_to(at, token_file, ca, certificate) as client,
        client.subscribe(text, name=name, since=since, on_gap=_tell_of_gap) as subscription,
    ):
        if not as_json:
            _say_hello(client.url, name)
        try:
            for event in islice(subscription, most):
                _print(event, console, as_json)
                if name:
                    event.done()
        except KeyboardInterrupt:
            return  # how people end it


def _say_hello(url: str, name: str | None) -> None:
    who = f"Subscribed as {name}" if name else "Listening"
    show(to_complain(), Text(f"{who} at {url}; Ctrl-C ends it.", "dim"))


def _print(event: "BlockingDelivery", console: "Console", as_json: bool) -> None:
    if as_json:
        again = {"again": True} if event.is_again else {}
        reasons = {"told": [_told(each) for each in event.told]} if event.told else {}
        typer.echo(json.dumps({"at": event.at, "for": event.keys, **again, **reasons, "event": event.cloud_event}))
        return
    data = json.dumps(event.data, ensure_ascii=False, default=repr)
    again_mark = (" again", "yellow") if event.is_again else ""
    line = Text.assemble((event.at, "dim"), " ", (visible(str(event.type)), "cyan"), again_mark, " ", visible(data))
    for each in event.told:
        line.append(f" ({_in_words(each)})", "magenta")
    show(console, line, below="    ")
    sys.stdout.flush()


def _tell_of_gap(gap: "Gap") -> None:
    facts = ", ".join(f"{name} {value}" for name, value in gap.facts.items())
    show(to_complain(), Text.assemble(("! ", "bold yellow"), f"events are missing here: {visible(facts)}"), below="  ")


def _told(told: "Told") -> dict[str, Any]:
    """Return what a subscription has to tell that remembers earlier events, as JSON has it."""
    content: dict[str, Any] = {"key": told.key, "kind": told.kind, "at": told.at.isoformat()}
    if told.change is not None:
        content["change"] = told.change
    if told.rank is not None:
        content["rank"] = told.rank
    if told.run:
        content |= {"run": [each.at for each in told.run], "events": [each.cloud_event for each in told.run]}
    return content


def _in_words(told: "Told") -> str:
    if told.kind == "ranked":
        return "among the best" if told.rank is None else f"number {told.rank}"
    if told.kind == "change":
        return "begins" if told.change else "ends"
    return f"a sequence of {len(told.run)}" if len(told.run) > 1 else "nothing followed"
