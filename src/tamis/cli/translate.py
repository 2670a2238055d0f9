"""What is a rule of another system in this language, and under which assumptions about the events?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from tamis.cli.inputs import content_of, lines_of, require_known, schema_file, shown_name
from tamis.cli.lessons import Example
from tamis.cli.output import (
    MISTAKE,
    AsJson,
    error_data,
    mistakes_shown,
    show,
    show_error,
    to_complain,
    to_programs,
)
from tamis.errors import LanguageError
from tamis.language import Schema, Translation, translate

SYSTEMS = ("eventbridge", "cloudevents")
EXAMPLES = (
    Example(
        """echo '{"source": ["shop"], "price": [{"numeric": ["<", 20]}]}' > pattern.json
tamis translate --from eventbridge pattern.json""",
        "An event pattern of EventBridge.",
    ),
    Example(
        """echo "type = 'offer' AND subject LIKE 'book%'" | tamis translate --from cloudevents -""",
        "An expression of CloudEvents SQL; or a filter in a dialect, as JSON.",
    ),
    Example(
        """echo '{"type": [{"prefx": "a"}]}' | tamis translate --from eventbridge -""",
        "What is not a rule is an error with its place.",
        exit_code=2,
    ),
)
NOTES = (
    "The condition is written to standard output. If it is exact only under assumptions "
    "about events, these are written to standard error: a condition cannot tell NULL from absent, and finds only whole "
    "values in arrays. [cyan]--strict[/cyan] makes an assumption an error; [cyan]--schema[/cyan] needs fewer.",
    "A file holds one rule; with [cyan]--lines[/cyan] each line does. The exit code is 2 if a rule cannot be "
    "translated.",
)


def translate_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of the rule; - reads standard input.")],
    source: Annotated[
        str, typer.Option("--from", metavar="SYSTEM", help=f"The system of the rule: {' or '.join(SYSTEMS)}.")
    ],
    below: Annotated[
        str,
        typer.Option(
            metavar="PATH", help="The attribute of events to which the names of the rule are relative, such as data."
        ),
    ] = "",
    lines: Annotated[bool, typer.Option("--lines", help="Each line is a rule; blank lines are skipped.")] = False,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The types of the events.", show_default=False)
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a rule whose translation is not exact for all events.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Translate rules of EventBridge, or filters of CloudEvents, into conditions."""
    with mistakes_shown(as_json):
        require_known(source, SYSTEMS, "system")
        known = schema_file(schema) if schema else None
        answers: list[dict[str, Any]] = []
        bad_count = 0
        for place, rule in _rules(file, lines):
            try:
                answers.append(_translated(rule, source, below, known, strict, place, as_json))
            except LanguageError as error:
                bad_count += 1
                answers.append({"ok": False, "place": place, "error": error_data(error)})
                if not as_json:
                    show_error(error, place)
        if as_json:
            to_programs({"rules": answers, "good": len(answers) - bad_count, "bad": bad_count})
        if bad_count:
            raise typer.Exit(MISTAKE)


def _translated(
    rule: str, source: str, below: str, schema: Schema | None, strict: bool, place: str, as_json: bool
) -> dict[str, Any]:
    """Translate a rule, and show it to people; return what programs are told."""
    translation = translate(rule, source, below=below, schema=schema, strict=strict)
    if not as_json:
        typer.echo(str(translation))
        for assumption in translation.assumes:
            show(to_complain(), Text.assemble(("  if ", "yellow"), str(assumption)), below="     ")
    return {"ok": True, "place": place, **told(translation)}


def told(translation: Translation) -> dict[str, Any]:
    """Return a translation for programs.

    >>> told(translate({"a": ["x"]}))["assumes"]
    [{'attribute': 'a', 'never': ['an array of arrays']}]
    """
    assumes = [{"attribute": each.attribute, "never": list(each.shapes)} for each in translation.assumes]
    return {"condition": str(translation), "json": translation.condition.to_json(), "assumes": assumes}


def _rules(file: Path, is_by_line: bool) -> Iterator[tuple[str, str]]:
    name = shown_name(file)
    if is_by_line:
        yield from ((f"{name}:{number}", text) for number, text in lines_of(file))
    else:
        yield name, content_of(file).strip()
