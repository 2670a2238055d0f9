"""How is an answer shown?

To people on a terminal: in colour and wrapped to its width. To people who look through a pipe or a log: the same
words, plain, one thing a line. To programs (`--json`): one JSON document on standard output, mistakes included.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tamis.errors import LanguageError, TamisError
from tamis.language.explanation import MARKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.language import Explanation

AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON document, for programs.")]

YES, NO, MISTAKE = 0, 1, 2
"""The exit codes, which are grep's."""

COLOURS = {True: "green", False: "red", None: "yellow"}
_LEAST_WIDTH = 24  # narrower than this, wrapped words are harder to read than long lines


def to_people() -> Console:
    """Return the console of standard output."""
    return Console(highlight=False, markup=False, emoji=False)


def to_complain() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def to_programs(document: dict[str, Any]) -> None:
    """Write the JSON document."""
    typer.echo(json.dumps(document, indent=2))


def visible(text: str) -> str:
    r"""Write what no terminal should get (control characters, broken Unicode) as the language's escapes.

    A text comes from strangers, and an escape sequence in it could repaint the screen of who looks at it.

    >>> print(visible("price < 20 AND title = '\x1b[2J'"))
    price < 20 AND title = '\u001b[2J'
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(ord(character)) for character in text)


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def show(console: Console, text: Text, lead: str = "", below: str = "") -> None:
    """Print a text behind `lead` and, where a terminal is too narrow for it, go on behind `below`."""
    width = console.width - max(cell_len(lead), cell_len(below))
    is_wrapped = console.is_terminal and width >= _LEAST_WIDTH and cell_len(text.plain) > width
    lines = text.wrap(console, width, overflow="fold") if is_wrapped else [text]
    for index, line in enumerate(lines):
        line.rstrip()
        console.print(Text.assemble((below if index else lead, "dim"), line), soft_wrap=True)


# -- Long work


@contextmanager
def advancing(activity: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show how far long work is, on a terminal only; yield a function that is called with the size of every step."""
    from rich.progress import Progress  # here, so that commands without long work do not wait for it

    console = to_complain()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(activity, total=total)
        yield lambda count: progress.advance(task, count)


# -- Explanations


def show_explanation(console: Console, explanation: Explanation) -> None:
    """Print the tree of an explanation: what is true, what is false, what is unknown, and why."""
    for lead, part in explanation.lines():
        colour = COLOURS[part.truth]
        label = (part.operator, f"bold {colour}") if part.operator else (visible(part.text), colour)
        line = Text.assemble((f"{MARKS[part.truth]} ", f"bold {colour}"), label)
        if part.reason:
            line.append(f"   ({visible(part.reason)})", "dim")
        stem = lead.replace("├─ ", "│  ").replace("└─ ", "   ")
        show(console, line, lead, stem + ("│ " if part.parts else "  "))


# -- Mistakes


@contextmanager
def mistakes_shown(as_json: bool) -> Iterator[None]:
    """Turn an error of the user's into a message and exit code 2; an error of ours stays a traceback."""
    try:
        yield
    except Exception as error:
        mistake = error if isinstance(error, TamisError) else _of_spark(error)
        if mistake is None:
            raise
        if as_json:
            to_programs({"error": error_data(mistake)})
        else:
            show_error(mistake)
        raise typer.Exit(MISTAKE) from None


def _of_spark(error: Exception) -> TamisError | None:
    """Return in a line what Spark says about a file or a table that it cannot use; the stack of Java is for its log."""
    library = type(error).__module__.partition(".")[0]
    if library not in ("pyspark", "py4j"):
        return None
    words = (line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("An error occ"))
    first = next(words, type(error).__name__).removeprefix(": ").partition(" SQLSTATE:")[0]
    return LanguageError(f"Spark says: {first}", hint="--log FILE keeps its whole output.")


def error_data(error: TamisError) -> dict[str, Any]:
    """Return an error as data, of the same shape for every kind of it."""
    if isinstance(error, LanguageError):
        return error.as_dict()
    return LanguageError(str(error)).as_dict() | {"error": type(error).__name__}


def show_error(error: TamisError, place: str = "") -> None:
    """Print what is wrong, a caret under the place, and what would be right.

    `place` says where the text stands if there are many; otherwise line and column are enough.
    """
    console = to_complain()
    if not isinstance(error, LanguageError):
        first, *more = str(error).splitlines() or [type(error).__name__]
        show(console, Text.assemble(("✗ ", "bold red"), (visible(first), "bold")), below="  ")
        for line in more:
            show(console, Text(visible(line)), "  ", "  ")
        return
    if error.line is not None:
        place = place or f"line {error.line}, column {error.column}"
    told_place = f"{visible(place)}: " if place else ""
    message = str(LanguageError(error.message, expected=error.expected))
    show(console, Text.assemble(("✗ ", "bold red"), told_place, (visible(message), "bold")), below="  ")
    if error.text is not None and error.position is not None:
        line, caret_column = _window(error.text, error.position, max(console.width - 6, _LEAST_WIDTH))
        console.print(Text(f"    {line}", "cyan"), soft_wrap=True)
        console.print(Text(f"    {' ' * caret_column}^", "bold red"), soft_wrap=True)
    if error.hint:
        show(console, Text(visible(error.hint), "yellow"), "  ", "  ")


def _window(text: str, position: int, width: int) -> tuple[str, int]:
    """Cut what fits into `width` out of the line around a position; return it, and the column of the position.

    >>> _window("price < 20 AND AND bids > 3", 15, 16)
    ('… < 20 AND AND …', 11)
    """
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    room = width - 2  # an ellipsis may be needed on either side
    before = _blanked(text[max(start, position - room) : position])
    behind = _blanked(text[position : min(end, position + room)])
    while cell_len(before) > max(room * 3 // 4, room - cell_len(behind)):
        before = before[1:]
    while cell_len(behind) > room - cell_len(before):
        behind = behind[:-1]
    before = f"…{before}" if len(before) < position - start else before
    behind = f"{behind}…" if len(behind) < end - position else behind
    return before + behind, cell_len(before)


def _blanked(piece: str) -> str:
    # As wide as a character each, unlike tabs and other control characters: the caret has to stand right.
    return "".join(character if character.isprintable() else " " for character in piece)
