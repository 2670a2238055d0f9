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

from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, show, to_people, to_programs
from tamis.language.functions import FUNCTIONS

EXAMPLES = (
    Example("tamis language", "Everything, by topic."),
    Example("tamis language --json | head -20", "The same for programs."),
)
NOTES = ("Every example shown is a text of the language: try it with [cyan]tamis check[/cyan].",)

BINDING = "Binding, tightest first: signs, * / %, + -, comparisons and predicates, NOT, AND, XOR, OR."
UNKNOWN = "An absent attribute is NULL; a predicate over NULL is unknown, and only true matches."


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that can be written: its form, a text that uses it, and what it means."""

    form: str
    example: str
    meaning: str
    is_extension: bool = False
    """Whether Spark SQL lacks it."""


SYNTAX: dict[str, tuple[Entry, ...]] = {
    "Logic": (
        Entry("AND", "price < 20 AND bids > 3", "both are true"),
        Entry("OR", "price < 20 OR signed", "one is true, or both"),
        Entry("NOT  !", "NOT (sold OR price > 20)", "the condition is false"),
        Entry("XOR", "signed XOR price < 20", "an odd number of them is true", is_extension=True),
        Entry("xor", "xor(signed, rare, sold)", "the same as a function", is_extension=True),
        Entry("at_least", "at_least(2, signed, rare, sold)", "at least so many are true", is_extension=True),
        Entry("IS TRUE", "signed IS NOT TRUE", "never unknown; also IS FALSE, IS UNKNOWN"),
    ),
    "Comparison": (
        Entry("=  ==", "category = 'Poetry'", "equal"),
        Entry("<>  !=", "condition <> 'poor'", "not equal"),
        Entry("<  <=  >  >=", "price <= 20.5", "by size, time or alphabet"),
        Entry("BETWEEN", "year BETWEEN 1800 AND 1899", "both ends included; also NOT BETWEEN"),
        Entry("IN", "language IN ('fr', 'hr')", "one of them; also NOT IN"),
        Entry("IS NULL", "reserve IS NOT NULL", "absent or NULL"),
        Entry("<=>", "reserve <=> estimate", "equal, or both NULL; never unknown"),
        Entry("IS DISTINCT", "reserve IS DISTINCT FROM 0", "the opposite of <=>"),
    ),
    "Patterns": (
        Entry("LIKE", "title LIKE 'The % of %'", "% is any text, _ one character; also NOT LIKE"),
        Entry("ESCAPE", "code LIKE '50!%' ESCAPE '!'", "what follows the escape is itself"),
        Entry("RLIKE  REGEXP", "title RLIKE '^(The|A) '", "a regular expression is found in it"),
    ),
    "Text": (),
    "Arrays": (),
    "Numbers": (),
    "Places and networks": (),
    "Names and types": (
        Entry("a.b", "seller.rating > 4.5", "an attribute of a record"),
        Entry("`…`", "`2nd price` < 20", "a name that is none otherwise"),
        Entry("IS A", "type IS A 'StockQuote'", "of this event type or, by a schema, below it", is_extension=True),
    ),
    "Literals": (
        Entry("text", "title = 'it''s' OR title = \"it's\"", "in either quotes, with escapes such as \\u00e9"),
        Entry("r'…'", r"path RLIKE r'\d+'", "a text without escapes"),
        Entry("5", "bids = 5", "an integer; 5L, 5S, 5Y say how wide"),
        Entry("5.0", "price = 5.0", "a decimal, exact; also 5BD"),
        Entry("5e0  5D", "price < 5e3", "a double"),
        Entry("double", "price <> double('NaN')", "also 'Infinity' and '-Infinity'"),
        Entry("TRUE  FALSE", "signed = TRUE", "a Boolean; an attribute can stand alone"),
        Entry("NULL", "reserve <=> NULL", "no value"),
        Entry("DATE", "day >= DATE '2024-02-29'", "a day"),
        Entry("TIMESTAMP", "t < TIMESTAMP '2024-02-29 12:00:00'", "a moment, in UTC unless it has an offset"),
        Entry("--  /* */", "price < 20 /* or so */", "a comment"),
    ),
}


def topics() -> dict[str, tuple[Entry, ...]]:
    """Return everything that can be written, by topic: the syntax, and behind it the functions."""
    functions: dict[str, list[Entry]] = {topic: [] for topic in SYNTAX}
    for row in FUNCTIONS.values():
        entry = Entry(row.symbol or row.name, row.example, row.summary, is_extension=row.spark is None)
        functions.setdefault(row.topic, []).append(entry)
    return {topic: (*SYNTAX.get(topic, ()), *entries) for topic, entries in functions.items()}


def language(as_json: AsJson = False) -> None:
    """List the operators and functions, each with an example."""
    if as_json:
        to_programs({topic: [asdict(entry) for entry in entries] for topic, entries in topics().items()})
        return
    console = to_people()
    by_topic = topics()
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


def _table(entries: tuple[Entry, ...], width: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=width, no_wrap=True)
    table.add_column(min_width=26, no_wrap=True)
    table.add_column()
    for entry in entries:
        form = Text.assemble((entry.form, "cyan"), (" +" if entry.is_extension else "", "bold yellow"))
        table.add_row(form, Text(entry.example, "green"), Text(entry.meaning))
    return table
