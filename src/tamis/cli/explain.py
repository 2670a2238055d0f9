"""Does this event match, and why? How would the matcher find that out?"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.text import Text

from tamis.cli.hosting import FunctionsOption, calling
from tamis.cli.inputs import SCHEMA_HELP, InputError, event_file, event_from, schema_file
from tamis.cli.kinds import kind_of, parts_of, read_subscription
from tamis.cli.lessons import Example
from tamis.cli.output import COLOURS, NO, YES, AsJson, mistakes_shown, show, show_explanation, to_people, to_programs
from tamis.language import Expression, Schema
from tamis.language import explain as explained
from tamis.language.explanation import TRUTHS

if TYPE_CHECKING:
    from tamis.matching import AccessPlan
    from tamis.standing import Change, Sequence
    from tamis.topk import Ranked

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
        """tamis explain "SEQUENCE price > 30 THEN sold" --event '{"sold": true}'""",
        "Which steps this event can stand for.",
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
    "Of a ranked subscription, a sequence or a change one event alone decides little: each of its conditions is shown, "
    "and the exit code is 0 if the event matters to one of them.",
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
    functions: FunctionsOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the truth of every condition of a text for one event, and the values that decided."""
    if plan:
        with mistakes_shown(as_json), calling(functions):
            plans = _access_plans(text, among, sample, schema_file(schema) if schema else None)
        if as_json:
            to_programs(plans[0].as_dict() if len(plans) == 1 else {"parts": [plan.as_dict() for plan in plans]})
        else:
            print("\n\n".join(map(str, plans)))
        return
    with mistakes_shown(as_json), calling(functions):
        if among or sample:
            raise InputError("--among and --sample apply to a plan only", hint="Add --plan, or leave them out.")
        known = schema_file(schema) if schema else None
        expression = read_subscription(text, known)
        given_event = _event(event, event_file_)
        if not isinstance(expression, Expression):
            _explain_parts(expression, known.conform(given_event) if known else given_event, known, as_json)
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


def _explain_parts(
    subscription: "Ranked | Sequence | Change", event: Mapping[str, Any], schema: Schema | None, as_json: bool
) -> NoReturn:
    """Show what one event is to a subscription that remembers others: the truth of each of its conditions."""
    explanations = [(name, explained(condition, event, schema)) for name, condition in parts_of(subscription)]
    matters = any(explanation.truth is True for _, explanation in explanations)
    if as_json:
        to_programs(
            {
                "kind": kind_of(subscription),
                "matters": matters,
                "parts": [
                    {"part": name, "truth": TRUTHS[each.truth], "explanation": each.as_dict()}
                    for name, each in explanations
                ],
            }
        )
    else:
        console = to_people()
        said = (
            "The event matters; whether it leads to a notification depends on other events, too."
            if matters
            else "The event does not matter."
        )
        show(console, Text(said, f"bold {COLOURS[matters]}"))
        for name, explanation in explanations:
            console.print()
            show(console, Text(f"{name}:", "bold"))
            show_explanation(console, explanation)
    raise typer.Exit(YES if matters else NO)


def _access_plans(text: str, among: str | None, sample: str | None, schema: Schema | None) -> "list[AccessPlan]":
    """Return how a matcher finds each condition of a text, registered among others, laid out by what events show."""
    from tamis.cli.local import Rules  # here, so that an explanation waits for no compiler
    from tamis.matching import Matcher
    from tamis.sources.tables import read_table

    matcher = Matcher(schema=schema)
    subscription = read_subscription(text, schema)
    if isinstance(subscription, Expression):
        names = ["this text"]
        matcher.add("this text", text)
    else:
        names = [name for name, _ in parts_of(subscription)]
        matcher.add_many(parts_of(subscription))
    if among:
        rules = Rules(read_table(among), "subscription_id", "condition", schema).matcher
        matcher.add_many((("rule", each), rules.expression(each)) for each in rules)
    if sample:
        matcher.learn(read_table(sample))
    matcher.compile()
    return [matcher.plan(name) for name in names]


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
