"""How does what a processor remembers outlive its process? A JSON document.

    {"tamis": 1, "standing": {"settings": ..., "subscriptions": [[id, text, state], ...], "waiting": [...], ...}}

Everything that is kept is written as values of the language: what JSON has no form for is an object with one member
that says its type (`{"date": "2024-02-29"}`). The document is data alone: reading it runs nothing that it says.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from tamis.language.values import value_of
from tamis.standing.errors import SavedStateError

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1


def encoded(value: Any) -> Any:
    """Return what stands for a value, a group or an id in a document.

    >>> encoded(("a", 1.5, Decimal("0.10"), dt.date(2024, 2, 29)))
    {'tuple': ['a', {'double': 1.5}, {'decimal': '0.10'}, {'date': '2024-02-29'}]}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"double": value if math.isfinite(value) else repr(value)}
        case Decimal():
            return {"decimal": str(value)}
        case dt.datetime():
            return {"timestamp": value.isoformat()}
        case dt.date():
            return {"date": value.isoformat()}
        case tuple():
            return {"tuple": [encoded(each) for each in value]}
        case list():
            return {"array": [encoded(each) for each in value]}
        case frozenset():
            return {"set": [encoded(each) for each in value]}
        case Mapping():
            return {"record": [[str(name), encoded(value_of(each))] for name, each in value.items()]}
    raise SavedStateError(f"{value!r:.80} is a {type(value).__name__}, which a file cannot hold")


def decoded(data: Any) -> Any:
    """Return the value that stands in a document.

    >>> decoded({"tuple": ["a", {"double": "nan"}]})
    ('a', nan)
    """
    match data:
        case None | bool() | int() | str():
            return data
        case {"double": int() | float() | str() as number}:
            return float(number)
        case {"decimal": str(digits)}:
            return Decimal(digits)
        case {"timestamp": str(moment)}:
            return dt.datetime.fromisoformat(moment)
        case {"date": str(day)}:
            return dt.date.fromisoformat(day)
        case {"tuple": list(members)}:
            return tuple(decoded(each) for each in members)
        case {"array": list(members)}:
            return [decoded(each) for each in members]
        case {"set": list(members)}:
            return frozenset(decoded(each) for each in members)
        case {"record": list(members)}:
            return {name: decoded(each) for name, each in members}
    raise SavedStateError(f"{data!r:.80} stands for no value")


def write(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write a document; one that is there already is replaced at once, or not at all."""
    content = json.dumps({"tamis": VERSION, "standing": state}, ensure_ascii=False, separators=(",", ":"))
    beside = f"{os.fspath(path)}.{os.getpid()}.new"
    try:
        with open(beside, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def read(path: str | os.PathLike[str] | Path) -> dict[str, Any]:
    """Read a document, or raise a `SavedStateError` that says what it is instead."""
    try:
        with open(path, encoding="utf-8", errors="surrogatepass") as file:
            data = json.load(file)
    except (ValueError, RecursionError) as error:
        raise SavedStateError(f"{os.fspath(path)} is not a JSON document: {error}") from None
    match data:
        case {"tamis": int(version), "standing": dict(state)}:
            if version == VERSION:
                return state
            raise SavedStateError(f"{os.fspath(path)} is of version {version}; this program reads version {VERSION}")
    raise SavedStateError(f"{os.fspath(path)} does not hold the state of a processor")


BROKEN = (AttributeError, IndexError, KeyError, TypeError, ValueError, InvalidOperation, OverflowError)
"""What goes wrong where a document is JSON, and not what it should be."""
