"""Is this a text of the language, and what does it come to?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.text import Text

from tamis.cli.hosting import FunctionsOption, calling
from tamis.cli.inputs import SCHEMA_HELP, STANDARD_INPUT, InputError, lines_of, schema_file, shown_name
from tamis.cli.kinds import expressions_of, kind_of, parts_of, read_subscription
from tamis.cli.lessons import Example
from tamis.cli.output import (
    MISTAKE,
    AsJson,
    error_data,
    mistakes_shown,
    show,
    show_error,
    to_complain,
    to_people,
    to_programs,
    visible,
)
from tamis.errors import LanguageError
from tamis.language import Expression, Schema
from tamis.language.measures import depth, least_hits, predicate_count, size
from tamis.language.rewrites import canonical

EXAMPLES = (
    Example('tamis check "price < 20 AND bids > 3"', "A good text."),
    Example('tamis check "price < 20 AND" "prize LIKE 5"', "Two mistakes, each with its place.", exit_code=2),
    Example('tamis check "TOP 5 BY price OVER 1 HOUR"', "Ranked subscriptions, sequences and changes, too."),
    Example("""echo "NOT (sold OR bids < 3)" | tamis check -""", "One text per line, from standard input."),
    Example("""echo '{"price": "double", "title": "string"}' > schema.json""", "A schema has the names and types."),
    Example('tamis check --schema schema.json "prize < 20"', "Now a misspelt name is an error.", exit_code=2),
)
NOTES = (
    "A good text is shown in its [bold]canonical form[/bold], which is the same for many ways to write it, with its "
    "size and depth in nodes, its predicates, and its [bold]least hits[/bold]: how many predicates must be true for a "
    "match. Ranked subscriptions, sequences and changes are shown as they are printed, with the measures of their "
    "conditions. The exit code is 2 if a text is bad. Put [cyan]--[/cyan] before a text that starts with a minus.",
    SCHEMA_HELP,
)

_CONSTANTS = {
    "TRUE": "Every event matches this.",
    "FALSE": "No event can match this.",
    "NULL": "No event can match this.",
}


_KINDS = {
    "ranked": "a ranked subscription: the best events of a window",
    "sequence": "a sequence: events that follow one another",
    "change": "a change: the moments at which a condition becomes true",
}


class Written(NamedTuple):
    """A text, and where it stood: as one of several arguments, or in a line of a file."""

    text: str
    source: str | None = None
    line: int | None = None

    def place_of(self, error: LanguageError) -> str:
        """Return where the error is; in a file as editors and compilers write it."""
        if self.line is not None:
            column = "" if error.column is None else f":{error.column}"
            return f"{self.source}:{self.line}{column}"
        if self.source is None or error.line is None:
            return self.source or ""
        return f"{self.source}, line {error.line}, column {error.column}"


def check(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT", help="Texts to check; - reads one per line from standard input.", show_default=False
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read one text per line; blank lines and lines that start with -- are skipped.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check names and types against a schema.", show_default=False)
    ] = None,
    functions: FunctionsOption = None,
    as_json: AsJson = False,
) -> None:
    """Parse texts: show the canonical form of a valid one, and the error of another."""
    with mistakes_shown(as_json), calling(functions):
        known = schema_file(schema) if schema else None
        answers = []
        good_count = bad_count = 0
        for written in _written(texts or [], file):
            answer: dict[str, Any] = written._asdict()
            try:
                answer |= {"ok": True, **measured(written.text, known)}
                good_count += 1
                if not as_json:
                    _show_good(answer)
            except LanguageError as error:
                answer |= {"ok": False, "error": error_data(error)}
                bad_count += 1
                if not as_json:
                    show_error(error, written.place_of(error))
            if as_json:
                answers.append(answer)
        if as_json:
            to_programs({"texts": answers, "good": good_count, "bad": bad_count})
        elif good_count + bad_count > 1 and bad_count:
            show(
                to_complain(),
                Text(f"{bad_count} of {good_count + bad_count} texts {'is' if bad_count == 1 else 'are'} bad.", "bold"),
            )
        if bad_count:
            raise typer.Exit(MISTAKE)


def measured(text: str, schema: Schema | None = None) -> dict[str, Any]:
    """Return what is to be said of a good text, or raise what is wrong with it.

    >>> measured("price<20 AND NOT sold")
    {'canonical': 'price < 20 AND sold = FALSE', 'size': 6, 'depth': 3, 'predicates': 2, 'least_hits': 2}
    >>> measured("TOP 5 BY price OVER 1 HOUR")["kind"]
    'ranked'
    """
    expression = read_subscription(text, schema)
    if not isinstance(expression, Expression):
        parts = expressions_of(expression)
        score = getattr(expression, "score", None)  # a number and no predicate
        return {
            "canonical": str(expression),
            "kind": kind_of(expression),
            "size": sum(map(size, parts)),
            "depth": max(map(depth, parts)),
            "predicates": sum(predicate_count(each) for each in parts if each is not score),
            "parts": {name: str(condition) for name, condition in parts_of(expression)},
        }
    return {
        "canonical": str(canonical(expression, schema)),
        "size": size(expression),
        "depth": depth(expression),
        "predicates": predicate_count(expression),
        "least_hits": least_hits(expression),
    }


def _written(texts: list[str], file: Path | None) -> Iterator[Written]:
    if not texts and file is None:
        raise InputError("there is nothing to check", hint="""Give a text: tamis check "price < 20", or --file FILE.""")
    for number, text in enumerate(texts, start=1):
        if text == "-":
            yield from _lines(STANDARD_INPUT)
        else:
            yield Written(text, f"text {number}" if len(texts) > 1 else None)
    if file is not None:
        yield from _lines(file)


def _lines(path: Path) -> Iterator[Written]:
    for number, text in lines_of(path):
        yield Written(text, shown_name(path), number)


def _show_good(answer: dict[str, Any]) -> None:
    console = to_people()
    show(console, Text.assemble(("✓ ", "bold green"), visible(answer["canonical"])), below="  ")
    predicates = f"{answer['predicates']:,} predicate{'' if answer['predicates'] == 1 else 's'}"
    if "kind" in answer:
        facts = f"{_KINDS[answer['kind']]}; size {answer['size']:,}, depth {answer['depth']}, {predicates}"
        show(console, Text(facts, "dim"), "  ", "  ")
        return
    facts = f"size {answer['size']:,}, depth {answer['depth']}, {predicates}, least hits {answer['least_hits']:,}"
    show(console, Text(facts, "dim"), "  ", "  ")
    if answer["canonical"] in _CONSTANTS:
        show(console, Text(_CONSTANTS[answer["canonical"]], "yellow"), "  ", "  ")
