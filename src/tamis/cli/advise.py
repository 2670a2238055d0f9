"""What are these subscriptions like, and which algorithm suits them?"""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tamis import literature
from tamis.cli.inputs import InputError, lines_of, schema_file, shown_name
from tamis.cli.kinds import read_subscription
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_people, to_programs
from tamis.errors import LanguageError
from tamis.language import Expression, Schema

EXAMPLES = (
    Example("""echo "title = 'Emma' AND (price < 9 OR bids = 0)" | tamis advise -""", "Texts, one a line."),
    Example(
        "tamis workload auction --subscriptions 500 --events 300 --out made\n"
        "tamis advise made/subscriptions.parquet --events made/events.parquet",
        "A table of subscriptions; a sample of events tells how often predicates hold.",
    ),
)
NOTES = (
    "Which of the published algorithms suits the subscriptions follows from their characteristics (Bittner 2008, "
    "chapter 5): memory from formulas, with the [bold]turning point[/bold] beyond which Boolean filtering takes less, "
    "and the steps of an event from how often predicates hold. Whoever only wants to match takes [bold]block[/bold], "
    "which is the default and faster than all of them.",
    "A file of texts has one a line; blank lines and lines that start with -- are skipped, and - is standard input. A "
    "table (.parquet, .csv, .jsonl, ...) has a column of conditions. What is no condition, such as a ranked "
    "subscription, is left out and counted.",
)
_TABLES = (".parquet", ".csv", ".jsonl", ".json", ".ndjson", ".arrow", ".feather", ".orc", ".avro")


def advise(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The subscriptions: texts, one a line, or a table.")],
    events: Annotated[
        str | None, typer.Option(metavar="PATH", help="A table of events, as a sample.", show_default=False)
    ] = None,
    where: Annotated[str, typer.Option(metavar="COLUMN", help="The conditions, of a table.")] = "condition",
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The types of the events.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure subscriptions, and say which of the published algorithms suits them."""
    with mistakes_shown(as_json):
        advice_of = literature.loaded("matching.advice", "this command").advise
        known = schema_file(schema) if schema else None
        conditions, others = _conditions(file, where, known)
        if not conditions:
            raise InputError(f"{shown_name(file)} has no condition", hint="Write one a line, such as price < 20.")
        sample = None
        if events is not None:
            from tamis.matching.columns import Events
            from tamis.sources.tables import read_table

            sample = Events(read_table(events))
        try:
            advice = advice_of(conditions, sample, known)
        except ValueError as error:
            raise InputError(f"{shown_name(file)}: {error}", hint="Write one a line, such as price < 20.") from None
    if as_json:
        to_programs(advice.as_dict() | {"subscriptions": len(conditions), "no_condition": others})
    else:
        _show(advice, len(conditions), others)


def _conditions(file: Path, where: str, schema: Schema | None) -> tuple[list[Expression], int]:
    """Return the conditions of a file, and how many of its texts are something else."""
    if file.suffix in _TABLES or file.is_dir():
        from tamis.sources.tables import read_table, require

        table = read_table(str(file))
        require(table, (where,), "subscriptions")
        texts = [(number, text) for number, text in enumerate(table[where].to_pylist(), start=1) if text is not None]
        place = "row"
    else:
        texts, place = list(lines_of(file)), "line"
    conditions, others = [], 0
    for number, text in texts:
        try:
            subscription = read_subscription(text, schema)
        except LanguageError as error:
            raise InputError(
                f"{shown_name(file)}, {place} {number}: {error}", hint="tamis check shows what is wrong with a text."
            ) from None
        if isinstance(subscription, Expression):
            conditions.append(subscription)
        else:
            others += 1
    return conditions, others


def _show(advice: Any, count: int, others: int) -> None:
    console = to_people()
    some = advice.characteristics
    show(console, Text(f"{count:,} subscription{'' if count == 1 else 's'}", "bold"))
    for left_out, why in (
        (others, "no conditions, and left out"),
        (advice.refused, "too large when they are written out, and left out"),
        (advice.constant, "the same for every event, and left out"),
    ):
        if left_out:
            show(console, Text(f"  {left_out:,} {'is' if left_out == 1 else 'are'} {why}", "yellow"))
    _table(
        ("characteristic", "average"),
        ("predicates", f"{some.predicates:.1f} each, {some.distinct_predicates:,} different ones"),
        ("ANDs and ORs", f"{some.operators:.1f} each"),
        ("conjunctions", f"{some.conjunctions:.1f} each, of {advice.boolean_share:.0%} more than one"),
        ("with an equality", f"{advice.with_equality:.0%} of the conjunctions"),
    )
    _table(
        ("algorithm", "bytes each", "steps an event", "turning point"),
        *(
            (
                name,
                f"{advice.bytes[name]:.0f}",
                f"{advice.steps[name]:,.1f}",
                f"{advice.turning_points[name]:.1f}" if name in advice.turning_points else "",
            )
            for name in advice.bytes
        ),
    )
    how = "counted over the events" if advice.is_sampled else "guessed from the operands; --events FILE tells better"
    show(console, Text(f"How often predicates hold is {how}.", "dim"))
    for sentence in advice.reasons:
        show(console, Text(f"· {sentence}"), below="  ")
    verdict = (
        f"Of the published algorithms {advice.quickest} takes the fewest steps"
        + (" and the least memory" if advice.quickest == advice.leanest else f", {advice.leanest} the least memory")
        + ". To match, take block, the default."
    )
    show(console, Text.assemble(("✓ ", "bold green"), verdict), below="  ")


def _table(heads: tuple[str, ...], *rows: tuple[str, ...]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold cyan", padding=(0, 3, 0, 2))
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place and len(heads) > 2 else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    to_people().print(table)
