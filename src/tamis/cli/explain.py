"""Does this event match, and why? How would the matcher find that out?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tamis.cli.inputs import SCHEMA_HELP, InputError, event_file, event_from, schema_file
from tamis.cli.lessons import Example
from tamis.cli.output import COLOURS, NO, YES, AsJson, mistakes_shown, show, show_explanation, to_people, to_programs
from tamis.language import Schema, parse
from tamis.language import explain as explained
from tamis.language.explanation import TRUTHS

if TYPE_CHECKING:
    from tamis.matching import AccessPlan

EXAMPLES = (
    Example("""tamis explain "price < 20 OR bids > 3" --event '{"price": 12}'""", "One true part is enough for OR."),
    Example(
        """tamis explain "NOT bids > 3" --event '{"price": 12}'""",
        "What is absent is unknown, and so is NOT of it.",
        exit_code=1,
    ),
    Example("""echo '{"ends": "2024-02-29"}' > event.json""", "JSON has no dates: they are texts,"),
    Example("""echo '{"ends": "date"}' > schema.json""", "until a schema says otherwise."),
    Example(
        """tamis explain "ends < DATE '2024-03-01'" --event-file event.json \\\n      --schema schema.json""",
        "So this event matches.",
    ),
    Example(
        """tamis explain "price < 20 AND (signed OR bids > 3)" --plan""",
        "How the matcher would find it: its clauses and keys.",
    ),
)
NOTES = (
    "[green]✓[/green] is true, [red]✗[/red] is false, [yellow]?[/yellow] is unknown; an event matches only if "
    "the whole is true. The exit code is 0 if it matches, 1 if it does not, and 2 if the text, the event or the "
    "schema is bad.",
    "--plan needs no event. Which key is best depends on what else is registered and on the events, so --among FILE "
    "and --sample FILE take tables of rules and of past events, as `tamis match` does.",
    SCHEMA_HELP,
)

_VERDICTS = {
    True: "The event matches.",
    False: "The event does not match.",
    None: "The event does not match: whether it should is unknown.",
}


def explain(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text of a subscription.", show_default=False)],
    event: Annotated[
        str | None, typer.Option(metavar="JSON", help="The event, a JSON object.", show_default=False)
    ] = None,
    event_file_: Annotated[
        Path | None,
        typer.Option(
            "--event-file", metavar="FILE", help="Read the event from a file; - is standard input.", show_default=False
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The schema: names and types are checked, and the event is read accordingly.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the access plan of the matcher, like EXPLAIN in a database.")
    ] = False,
    among: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --plan: the other subscriptions of the matcher.", show_default=False),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --plan: sample events, from which selectivities are estimated.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the truth of every condition of a text for one event, and the values that decided."""
    if plan:
        with mistakes_shown(as_json):
            access = _access_plan(text, among, sample, schema_file(schema) if schema else None)
        if as_json:
            to_programs(access.as_dict())
        else:
            print(access)
        return
    with mistakes_shown(as_json):
        if among or sample:
            raise InputError("--among and --sample apply to a plan only", hint="Add --plan, or leave them out.")
        known = schema_file(schema) if schema else None
        expression = parse(text, known)
        given_event = _event(event, event_file_)
        explanation = explained(expression, known.conform(given_event) if known else given_event, known)
    if as_json:
        to_programs(
            {
                "matches": explanation.truth is True,
                "truth": TRUTHS[explanation.truth],
                "explanation": explanation.as_dict(),
            }
        )
    else:
        console = to_people()
        show(console, Text(_VERDICTS[explanation.truth], f"bold {COLOURS[explanation.truth]}"))
        console.print()
        show_explanation(console, explanation)
    raise typer.Exit(YES if explanation.truth is True else NO)


def _access_plan(text: str, among: str | None, sample: str | None, schema: Schema | None) -> "AccessPlan":
    """Return how a matcher finds a text that is registered among others, and laid out by what events show."""
    from tamis.cli.local import Rules  # here, so that an explanation waits for no compiler
    from tamis.matching import Matcher
    from tamis.sources.tables import read_table

    matcher = Matcher(schema=schema)
    matcher.add("this text", text)
    if among:
        rules = Rules(read_table(among), "subscription_id", "condition", schema).matcher
        matcher.add_many((("rule", each), rules.expression(each)) for each in rules)
    if sample:
        matcher.learn(read_table(sample))
    matcher.compile()
    return matcher.plan("this text")


def _event(written: str | None, path: Path | None) -> dict[str, object]:
    match written, path:
        case str(), None:
            return event_from(written)
        case None, Path():
            return event_file(path)
    raise InputError(
        "only one event can be explained at a time" if written else "there is no event",
        hint="""Give --event '{"price": 12}' or --event-file FILE.""",
    )
