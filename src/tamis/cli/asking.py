"""What would a filter match, why did somebody get an event or not, and what was given up? Questions to a broker."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tamis.cli.brokers import DEFAULT_URL, NOTE, BrokerOption, CaOption, CertificateOption, TokenFileOption, talking_to
from tamis.cli.lessons import Example
from tamis.cli.output import NO, AsJson, mistakes_shown, show, to_people, to_programs, visible

if TYPE_CHECKING:
    from rich.console import Console

TRY_EXAMPLES = (
    Example(
        'tamis try "price < 20" --at localhost:1', "No broker answers there: the error comes at once.", exit_code=2
    ),
)
TRY_NOTES = (
    "A dry run: the broker reads its log, and nothing is subscribed. Shown are how many events match and when, the "
    "latest of them, events that only just do not match, and which of your own subscriptions say the same. "
    "Only events that you may receive count. The exit code is 0 if anything matches, and 1 if nothing does.",
    "[cyan]--from[/cyan] is [cyan]-1h[/cyan], a time, a position or [cyan]first[/cyan]. The broker looks at 200,000 "
    "events or for two seconds at once, and says how far it came: go on from there with another [cyan]--from[/cyan].",
    NOTE,
)
WHY_EXAMPLES = (
    Example(
        "tamis why ann k3f9-812 --at localhost:1", "No broker answers there: the error comes at once.", exit_code=2
    ),
)
WHY_NOTES = (
    "The event is named by its position, or by its id together with [cyan]--source[/cyan]. The exit code is 0 if the "
    "event matches a subscription of the subscriber that was in force, and 1 if it does not.",
    NOTE,
)
DEAD_EXAMPLES = (
    Example("tamis dead ann --at localhost:1", "No broker answers there: the error comes at once.", exit_code=2),
)
DEAD_NOTES = (
    "An event becomes a dead letter if a consumer says [cyan]never[/cyan], or if it was delivered as often as the "
    "subscriber's [cyan]attempts[/cyan] allow. [cyan]--again[/cyan] has them delivered once more, to a "
    "consumer that is connected.",
    NOTE,
)
_BARS = " ▁▂▃▄▅▆▇█"
_WIDEST = 60


def try_(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The condition to try.")],
    since: Annotated[
        str, typer.Option("--from", metavar="PLACE", help="Start here: -1h, first, or a position.")
    ] = "-1h",
    until: Annotated[
        str | None, typer.Option(metavar="PLACE", help="End before this place.", show_default=False)
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="NAME", help="Compare it with this subscriber's subscriptions.", show_default=False
        ),
    ] = None,
    most: Annotated[int, typer.Option(metavar="N", min=0, max=100, help="Examples of either kind.")] = 5,
    at: BrokerOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    as_json: AsJson = False,
) -> None:
    """Try a condition on a broker's past events, before anybody subscribes."""
    with mistakes_shown(as_json), talking_to(at, token_file, ca, certificate) as client:
        trial = client.try_filter(text, since, until, name, most)
    if as_json:
        to_programs(trial)
    else:
        _show_trial(to_people(), trial)
    if not trial["matched"]:
        raise typer.Exit(NO)


def _show_trial(console: "Console", trial: dict[str, Any]) -> None:
    mark = ("✓ ", "bold green") if trial["matched"] else ("✗ ", "bold red")
    share = f" ({trial['share']:.2%})" if trial["share"] else ""
    events = f"{trial['matched']:,} of {trial['seen']:,} events match{share}"
    show(console, Text.assemble(mark, events, (f", from {trial['first']} to {trial['through']}", "dim")), below="  ")
    if not trial["complete"]:
        show(console, Text(f"  There is more: go on behind {trial['through']}.", "yellow"))
    spans = trial["spans"]
    if len(spans) > 1:
        bars = _bars([span["matched"] for span in spans])
        show(console, Text.assemble("  ", (bars, "cyan"), (f"  {spans[0]['at']} … {spans[-1]['at']}", "dim")))
    for title, samples in (("The latest:", trial["examples"]), ("Only just not:", trial["near_misses"])):
        if samples:
            show(console, Text(f"\n{title}", "bold"))
        for sample in samples:
            _show_event(console, sample["at"], sample["event"])
            for line in sample.get("why", "").splitlines():
                show(console, Text(visible(line), "dim"), lead="    ", below="    ")
    for relation, words in (
        ("same", "says the same"),
        ("covered_by", "matches all of it"),
        ("covers", "is part of it"),
    ):
        for own in trial[relation]:
            line = Text.assemble((f"{own['subscriber']}/{own['key']} ", "cyan"), f"{words}: ", visible(own["text"]))
            show(console, line, lead="\n" if own is trial[relation][0] else "", below="  ")


def _bars(counts: list[int]) -> str:
    """Return a row of bars as high as the counts, at most some dozens of them.

    >>> _bars([0, 1, 4, 8])
    ' ▁▄█'
    """
    width = -(-len(counts) // _WIDEST)
    sums = [sum(counts[begin : begin + width]) for begin in range(0, len(counts), width)]
    most = max(sums) or 1
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in sums)


def _show_event(console: "Console", at: str, event: dict[str, Any]) -> None:
    data = json.dumps(event.get("data"), ensure_ascii=False)
    line = Text.assemble((at, "dim"), " ", (visible(str(event.get("type"))), "cyan"), " ", visible(data))
    show(console, line, lead="  ", below="    ")


def why(
    subscriber: Annotated[str, typer.Argument(metavar="SUBSCRIBER", help="The name of the subscriber.")],
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Its position; with --source its id.")],
    source: Annotated[str, typer.Option(metavar="SOURCE", help="The source of the event.", show_default=False)] = "",
    at: BrokerOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    as_json: AsJson = False,
) -> None:
    """Say why a subscriber got an event, or why not."""
    with mistakes_shown(as_json), talking_to(at, token_file, ca, certificate) as client:
        reasons = client.why(subscriber, event, source=source)
    if as_json:
        to_programs(reasons)
    else:
        console = to_people()
        matches = reasons["delivery"] != "none"
        show(console, Text.assemble(("✓ " if matches else "✗ ", "bold"), visible(reasons["verdict"])), below="  ")
        if reasons.get("reason"):
            show(console, Text(visible(reasons["reason"])), lead="  ", below="  ")
        _show_event(console, reasons["at"], reasons["event"])
        for each in reasons["subscriptions"]:
            remark = "" if each["in_force"] else ", not in force when it came"
            remark += ", kept from its owner" if each["withheld"] else ""
            title = (visible(each["key"]), "cyan")
            show(console, Text.assemble(title, (f"   since {each['since']}{remark}", "dim")), lead="\n")
            for line in each["explanation"].splitlines():
                show(console, Text(visible(line)), lead="  ", below="    ")
    if reasons["delivery"] == "none":
        raise typer.Exit(NO)


def dead(
    subscriber: Annotated[str, typer.Argument(metavar="SUBSCRIBER", help="Whose dead letters.")],
    again: Annotated[bool, typer.Option("--again", help="Have them delivered once more.")] = False,
    letters: Annotated[
        list[str] | None,
        typer.Option("--letter", metavar="POSITION", help="Only this one; may be repeated.", show_default=False),
    ] = None,
    at: BrokerOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the events that a subscriber has given up, or have them delivered once more."""
    with mistakes_shown(as_json), talking_to(at, token_file, ca, certificate) as client:
        if again:
            count = client.revive(subscriber, letters)
        else:
            given_up = [each for each in client.dead_letters(subscriber) if not letters or each["at"] in letters]
    console = to_people()
    if again:
        if as_json:
            to_programs({"again": count})
        else:
            what = "1 dead letter comes" if count == 1 else f"{count:,} dead letters come"
            show(console, Text.assemble(("✓ ", "bold green"), f"{what} again."))
    elif as_json:
        to_programs({"dead": given_up})
    elif not given_up:
        show(console, Text(f"{visible(subscriber)} has no dead letters."))
    else:
        for letter in given_up:
            _show_event(console, letter["at"], letter["event"])
            reason = f"{visible(letter['reason'])} ({letter['attempts']} deliveries)"
            show(console, Text(reason, "dim"), lead="    ", below="    ")
