"""What can be written in a text?

A page to look things up on. What a function means stands in the table of the functions, so only the topic and
an example are added here; the tests parse every example and miss no function.
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


def _function(name: str, example: str) -> Entry:
    function = FUNCTIONS[name]
    return Entry(function.symbol or name, example, function.summary, not function.in_spark)


TOPICS: dict[str, tuple[Entry, ...]] = {
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
        _function("least", "price < least(estimate, buy_now)"),
        _function("greatest", "greatest(bid, price) > 100"),
    ),
    "Patterns": (
        Entry("LIKE", "title LIKE 'The % of %'", "% is any text, _ one character; also NOT LIKE"),
        Entry("ESCAPE", "code LIKE '50!%' ESCAPE '!'", "what follows the escape is itself"),
        Entry("RLIKE  REGEXP", "title RLIKE '^(The|A) '", "a regular expression is found in it"),
        _function("startswith", "startswith(title, 'The ')"),
        _function("endswith", "endswith(title, '!')"),
        _function("contains", "contains(title, 'castle')"),
    ),
    "Text": (
        _function("lower", "lower(author) = 'ivo andrić'"),
        _function("upper", "upper(country) = 'HR'"),
        _function("trim", "trim(title) <> ''"),
        _function("length", "length(title) < 30"),
    ),
    "Arrays": (
        _function("array_contains", "array_contains(tags, 'rare')"),
        _function("arrays_overlap", "arrays_overlap(tags, array('map'))"),
        _function("array", "array_contains(array(1, 2), grade)"),
        _function("size", "size(tags) >= 3"),
    ),
    "Numbers": (
        _function("add", "price + shipping <= 25"),
        _function("subtract", "estimate - price > 10"),
        _function("multiply", "price * 1.25 < 30"),
        _function("divide", "price / estimate < 0.5"),
        _function("remainder", "year % 100 = 0"),
        _function("negate", "-balance > 10"),
        _function("abs", "abs(price - estimate) <= 5"),
        _function("avg", "avg(score_a, score_b) >= 4"),
        _function("euclidean", "euclidean(array(x, y), array(3, 4)) < 5"),
        _function("cosine", "cosine(words, array(0.6, 0, 0.8)) > 0.9"),
    ),
    "Places and networks": (
        _function("distance", "distance(lat, lon, 45.8, 16) < 10"),
        _function("in_cidr", "in_cidr(address, '10.0.0.0/8')"),
    ),
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


def language(as_json: AsJson = False) -> None:
    """List the operators and functions, each with an example."""
    if as_json:
        to_programs({topic: [asdict(entry) for entry in entries] for topic, entries in TOPICS.items()})
        return
    console = to_people()
    for topic, entries in TOPICS.items():
        console.print(Group(Text(topic, "bold"), Padding(_table(entries), (0, 0, 1, 2))))
    show(
        console,
        Text.assemble(("+", "bold yellow"), " goes beyond Spark SQL; everything else is Spark SQL's."),
    )
    console.print(Text(BINDING))
    console.print(Text(UNKNOWN))


def _table(entries: tuple[Entry, ...]) -> Table:
    # Forms are as wide in every topic, so that the page has one edge; the meaning gets what the examples leave.
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=max(len(entry.form) for others in TOPICS.values() for entry in others), no_wrap=True)
    table.add_column(min_width=26, no_wrap=True)
    table.add_column()
    for entry in entries:
        form = Text.assemble((entry.form, "cyan"), (" +" if entry.is_extension else "", "bold yellow"))
        table.add_row(form, Text(entry.example, "green"), Text(entry.meaning))
    return table
