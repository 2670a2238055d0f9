"""Which words does the prose avoid, and where does it use them nevertheless? `tools/words.txt` lists them.

    python tools/words.py            README, docs, help texts and messages; exits with 1 if one of the words is used

In Markdown everything but code is prose. In Python, prose is what users get to see: the docstrings of commands, which
are their help, and every string of more than one word that is not a docstring. Fields of an f-string are an ellipsis.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parent.parent
WORDS = ROOT / "tools" / "words.txt"
ARROW = re.compile(r"\s+->\s+")
CODE = re.compile(r"^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]*(?:\n[^`\n]+)?`", re.MULTILINE | re.DOTALL)
GAP = r"(?:[ \t]+|[ \t]*\n[ \t]*)"
"""What stands between two words: blanks, or the end of a line; never an empty line."""


class Rule(NamedTuple):
    """An expression that is not used, and what to write instead."""

    pattern: re.Pattern[str]
    advice: str


class Use(NamedTuple):
    """A place that uses what it should not."""

    path: Path
    line: int
    words: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words!r}; write: {self.advice}"


def rules(text: str) -> list[Rule]:
    r"""Read the list.

    >>> (rule,) = rules("# comment\n\\bis no (?!longer)  ->  is not a\n")
    >>> bool(rule.pattern.search("This IS\nno list")), bool(rule.pattern.search("It is no longer there"))
    (True, False)
    """
    read = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match ARROW.split(line.strip()):
            case [expression, advice] if expression and advice:
                read.append(Rule(_compiled(expression, number), advice))
            case _:
                raise ValueError(f"{WORDS.name}:{number}: {line!r} should be an expression, '  ->  ', and the advice")
    return read


def _compiled(expression: str, number: int) -> re.Pattern[str]:
    # A look-behind has a fixed length, so a space in it is one character; a class of characters stays as it is.
    parts = re.split(r"(\(\?<!.*?\)|\[.*?\])", expression)
    between = [GAP if index % 2 == 0 else r"\s" if part.startswith("(") else " " for index, part in enumerate(parts)]
    flexible = "".join(part.replace(" ", gap) for part, gap in zip(parts, between, strict=True))
    try:
        return re.compile(flexible, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{WORDS.name}:{number}: {expression!r} is not a regular expression: {error}") from None


def of_markdown(text: str) -> str:
    r"""Return the text with its code struck out, every line in its place.

    >>> of_markdown("It `is no` list.\n\n    is no prose\n")
    'It ####### list.\n\n###############\n'
    """
    return CODE.sub(lambda code: re.sub(r"[^\n]", "#", code[0]), text)


def of_python(source: str) -> Iterator[tuple[int, str]]:
    r"""Yield the strings of more than one word that are not docstrings, with their lines.

    >>> list(of_python('def f(x):\n    "Docs here."\n    raise ValueError(f"{x} is no " "list", "key")'))
    [(3, '… is no list')]
    """
    tree = ast.parse(source)
    skipped = {id(part) for node in ast.walk(tree) for part in _not_shown(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        else:
            continue
        if len(text.split()) > 1:
            yield node.lineno, text


def _not_shown(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is not a message of its own: docstrings, also of attributes, and the pieces of an f-string."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from (part for part in node.values if isinstance(part, ast.Constant))


def of_commands() -> Iterator[tuple[Path, int, str]]:
    """Yield the help of every command, with the place of its function."""
    import inspect

    from tamis.cli.app import app

    callback = app.registered_callback
    functions = [callback.callback] if callback else []
    for function in (*functions, *(command.callback for command in app.registered_commands)):
        if function is not None and function.__doc__:
            yield Path(inspect.getfile(function)), function.__code__.co_firstlineno, function.__doc__


def uses(texts: Iterable[tuple[Path, int, str]], listed: list[Rule]) -> Iterator[Use]:
    r"""Yield every use of a word that is not used. `texts` are a path, the line of the beginning, and prose.

    >>> print(*uses([(Path("a.md"), 3, "Good.\nIt is\nno list.")], rules(r"\bis no  ->  is not a")))
    a.md:4: 'is no'; write: is not a
    """
    for path, start, text in texts:
        for rule in listed:
            for match in rule.pattern.finditer(text):
                line = start + text.count("\n", 0, match.start())
                yield Use(path, line, " ".join(match[0].split()), rule.advice)


def everything(root: Path = ROOT) -> Iterator[tuple[Path, int, str]]:
    """Yield all prose that people get to see."""
    for path in sorted((*root.glob("*.md"), *root.glob("docs/**/*.md"))):
        if path.name != "CHANGELOG.md":  # history is not written again
            yield path.relative_to(root), 1, of_markdown(path.read_text("utf-8"))
    for path in sorted(root.glob("src/**/*.py")):
        for line, text in of_python(path.read_text("utf-8")):
            yield path.relative_to(root), line, text
    for path, line, text in of_commands():
        yield path.relative_to(root), line, text


def main() -> int:
    """Print every use, and return the exit code."""
    listed = rules(WORDS.read_text("utf-8"))
    everywhere = sorted(set(uses(everything(), listed)))
    for use in everywhere:
        print(use)
    return 1 if everywhere else 0


if __name__ == "__main__":
    sys.exit(main())
