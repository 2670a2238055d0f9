"""What can be written in a text?

A page to look things up on. A function's topic, example and meaning stand in its row of the table of functions, so
only the rest of the syntax is listed here; the tests parse every example and miss no keyword.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tamis.cli.hosting import FunctionsOption, calling
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_people, to_programs
from tamis.language.functions import FUNCTIONS, in_use

EXAMPLES = (
    Example("tamis language", "Everything, by topic."),
    Example("tamis language --json | head -20", "The same for programs."),
)
NOTES = ("Every example shown is a text of the language: try it with [cyan]tamis check[/cyan].",)

BINDING = "Binding, tightest first: signs, * / %, + -, comparisons and predicates, NOT, AND, XOR, OR."
UNKNOWN = "An absent attribute is NULL; a predicate over NULL is unknown, and only true matches."


@dataclass(frozen=True, slots=True)
class Phrase:
    """Something that can be written: its form, a text that uses it, and what it means."""

    form: str
    example: str
    meaning: str
    is_extension: bool = False
    """Whether Spark SQL lacks it."""


SYNTAX: dict[str, tuple[Phrase, ...]] = {
    "Logic": (
        Phrase("AND", "price < 20 AND bids > 3", "both are true"),
        Phrase("OR", "price < 20 OR signed", "one is true, or both"),
        Phrase("NOT  !", "NOT (sold OR price > 20)", "the condition is false"),
        Phrase("XOR", "signed XOR price < 20", "an odd number of them is true", is_extension=True),
        Phrase("xor", "xor(signed, rare, sold)", "the same as a function", is_extension=True),
        Phrase("at_least", "at_least(2, signed, rare, sold)", "at least so many are true", is_extension=True),
        Phrase("IS TRUE", "signed IS NOT TRUE", "never unknown; also IS FALSE, IS UNKNOWN"),
    ),
    "Comparison": (
        Phrase("=  ==", "category = 'Poetry'", "equal"),
        Phrase("<>  !=", "condition <> 'poor'", "not equal"),
        Phrase("<  <=  >  >=", "price <= 20.5", "by size, time or alphabet"),
        Phrase("BETWEEN", "year BETWEEN 1800 AND 1899", "both ends included; also NOT BETWEEN"),
        Phrase("IN", "language IN ('fr', 'hr')", "one of them; also NOT IN"),
        Phrase("IS NULL", "reserve IS NOT NULL", "absent or NULL"),
        Phrase("<=>", "reserve <=> estimate", "equal, or both NULL; never unknown"),
        Phrase("IS DISTINCT", "reserve IS DISTINCT FROM 0", "the opposite of <=>"),
    ),
    "Choice": (),
    "Patterns": (
        Phrase("LIKE", "title LIKE 'The % of %'", "% is any text, _ one character; also NOT LIKE"),
        Phrase("ESCAPE", "code LIKE '50!%' ESCAPE '!'", "what follows the escape is itself"),
        Phrase("RLIKE  REGEXP", "title RLIKE '^(The|A) '", "a regular expression is found in it"),
    ),
    "Text": (),
    "Arrays": (),
    "Numbers": (),
    "Places and networks": (),
    "Names and types": (
        Phrase("a.b", "seller.rating > 4.5", "an attribute of a record"),
        Phrase("`…`", "`2nd price` < 20", "a name that is none otherwise"),
        Phrase("IS A", "type IS A 'StockQuote'", "of this event type or, by a schema, below it", is_extension=True),
    ),
    "Literals": (
        Phrase("text", "title = 'it''s' OR title = \"it's\"", "in either quotes, with escapes such as \\u00e9"),
        Phrase("r'…'", r"path RLIKE r'\d+'", "a text without escapes"),
        Phrase("5", "bids = 5", "an integer; 5L, 5S, 5Y say how wide"),
        Phrase("5.0", "price = 5.0", "a decimal, exact; also 5BD"),
        Phrase("5e0  5D", "price < 5e3", "a double"),
        Phrase("double", "price <> double('NaN')", "also 'Infinity' and '-Infinity'"),
        Phrase("TRUE  FALSE", "signed = TRUE", "a Boolean; an attribute can stand alone"),
        Phrase("NULL", "reserve <=> NULL", "no value"),
        Phrase("DATE", "day >= DATE '2024-02-29'", "a day"),
        Phrase("TIMESTAMP", "t < TIMESTAMP '2024-02-29 12:00:00'", "a moment, in UTC unless it has an offset"),
        Phrase("--  /* */", "price < 20 /* or so */", "a comment"),
    ),
}


def topics() -> dict[str, tuple[Phrase, ...]]:
    """Return everything that can be written, by topic: the syntax, and behind it the functions, the host's, too."""
    functions: dict[str, list[Phrase]] = {topic: [] for topic in SYNTAX}
    for row in (*FUNCTIONS.values(), *(each.row for each in in_use().values())):
        entry = Phrase(row.symbol or row.name, row.example, row.summary, is_extension=row.spark is None)
        functions.setdefault(row.topic, []).append(entry)
    return {topic: (*SYNTAX.get(topic, ()), *entries) for topic, entries in functions.items()}


def language(functions: FunctionsOption = None, as_json: AsJson = False) -> None:
    """List the operators and functions, each with an example."""
    with mistakes_shown(as_json), calling(functions):
        by_topic = topics()
    if as_json:
        to_programs({topic: [asdict(entry) for entry in entries] for topic, entries in by_topic.items()})
        return
    console = to_people()
    # Forms are as wide in every topic, so that the page has one edge.
    width = max(len(entry.form) for entries in by_topic.values() for entry in entries)
    for topic, entries in by_topic.items():
        console.print(Group(Text(topic, "bold"), Padding(_table(entries, width), (0, 0, 1, 2))))
    show(
        console,
        Text.assemble(("+", "bold yellow"), " goes beyond Spark SQL; everything else is Spark SQL's."),
    )
    console.print(Text(BINDING))
    console.print(Text(UNKNOWN))


def _table(entries: tuple[Phrase, ...], width: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=width, no_wrap=True)
    table.add_column(min_width=26, no_wrap=True)
    table.add_column()
    for entry in entries:
        form = Text.assemble((entry.form, "cyan"), (" +" if entry.is_extension else "", "bold yellow"))
        table.add_row(form, Text(entry.example, "green"), Text(entry.meaning))
    return table
