"""Where do texts, events and schemas come from?

From arguments, files and standard input. What cannot be read is an `InputError`; like a mistake in a text,
it says where and what would be right. Bytes that are no UTF-8 are kept as they are, so that the parser refuses
them at their place instead of reading a text that nobody wrote.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import LanguageError, SchemaError, did_you_mean
from tamis.language import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

STANDARD_INPUT = Path("-")

SCHEMA_HELP = """\
[bold]Schema files[/bold]

  A schema is a JSON file of attributes and their types:
  [cyan]{"price": "double", "tags": "array<string>", "seller": {"id": "int"}}[/cyan]
  Types: string, int, double, decimal(10,2), bool, date, timestamp, array<…>.

  Beside the attributes it may have these keys, as tamis.Schema takes them:
  [cyan]"mandatory": ["price"][/cyan]                                what every event has
  [cyan]"hierarchy": {"Quote": null, "StockQuote": "Quote"}[/cyan]   event types, for IS A
  [cyan]"mandatory_by_type": {"Quote": ["price"]}[/cyan], [cyan]"type_attribute": "type"[/cyan]
  Attributes of such names go into an object of their own, [cyan]"attributes"[/cyan].

  A file with an object [cyan]"properties"[/cyan] is read as JSON Schema."""

_OPTIONS = {"mandatory": list, "hierarchy": dict, "mandatory_by_type": dict, "type_attribute": str}
_JSON_WORDS = {dict: "an object", list: "a list", str: "a text", bool: "a Boolean", type(None): "null"}


class InputError(LanguageError):
    """An argument or a file that holds something else than it should."""


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file, one a line, with the number of the line; blank and comment lines are passed over."""
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            text = line.rstrip("\r\n")
            if text.strip() and not text.lstrip().startswith("--"):
                yield number, text


def event_from(written: str, name: str = "the event") -> dict[str, Any]:
    """Read an event; `name` says what it stood in."""
    event = _loaded(written, name, hint="""An event is JSON, in single quotes for the shell: '{"price": 12}'.""")
    if not isinstance(event, dict):
        raise InputError(f"{name} is {_word(event)}, not an event", hint="""An event is an object: {"price": 12}.""")
    return event


def event_file(path: Path) -> dict[str, Any]:
    """Read the event of a file."""
    return event_from(content_of(path), shown_name(path))


def schema_file(path: Path) -> Schema:
    """Read a schema, ours or a JSON Schema."""
    name = shown_name(path)
    written = _loaded(content_of(path), name, hint="""A schema is JSON: {"price": "double", "title": "string"}.""")
    if not isinstance(written, dict):
        raise InputError(f"{name} is {_word(written)}, not a schema", hint="A schema is an object.")
    try:
        if isinstance(written.get("properties"), dict):
            return Schema.from_json_schema(written)
        return _own_schema(written)
    except SchemaError as error:
        raise InputError(f"{name}: {error}") from None
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise InputError(f"{name} is JSON, but not a schema", hint="`tamis check --help` shows an example.") from None


def _own_schema(written: dict[str, Any]) -> Schema:
    for key, kind in _OPTIONS.items():
        if key in written and not isinstance(written[key], kind):
            raise SchemaError(f"{key} is {_JSON_WORDS[kind]}, not {_word(written[key])}")
    options = {key: written[key] for key in _OPTIONS if key in written}
    attributes = {key: kind for key, kind in written.items() if key not in _OPTIONS}
    if isinstance(attributes.get("attributes"), dict) and len(attributes) == 1:
        attributes = attributes["attributes"]
    return Schema(attributes, **options)


def shown_name(path: Path) -> str:
    """Name a file as a message does."""
    return "standard input" if path == STANDARD_INPUT else str(path)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Open a file, or standard input, as text in which only a line feed ends a line."""
    try:
        if path == STANDARD_INPUT:
            stream = TextIOWrapper(sys.stdin.buffer, "utf-8-sig", errors="surrogateescape", newline="\n")
            try:
                yield stream
            finally:
                stream.detach()  # the buffer is not ours to close
        else:
            with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
                yield file
    except OSError as error:
        raise InputError(f"cannot read {shown_name(path)}: {error.strerror or error}") from None


def content_of(path: Path) -> str:
    """Return the text of a file, or of standard input."""
    with _opened(path) as file:
        return file.read()


def _loaded(written: str, name: str, hint: str) -> Any:
    try:
        return json.loads(written)
    except json.JSONDecodeError as error:
        raise InputError(f"{name} is not JSON: {error.msg}", text=written, position=error.pos, hint=hint) from None
    except RecursionError:
        raise InputError(f"{name} is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise InputError(f"{name} cannot be read: {error}") from None


def _word(document: Any) -> str:
    return _JSON_WORDS.get(type(document), "a number")


def require_known(name: str, known: Iterable[str], what: str) -> None:
    """Raise unless a name is one of those that there are."""
    names = tuple(known)
    if name not in names:
        near = did_you_mean(name, names)
        all_of_them = f"There are {', '.join(names)}."
        raise InputError(f"there is no {what} {name!r}", hint=f"{near} {all_of_them}" if near else all_of_them)
