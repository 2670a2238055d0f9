"""Why does an event not fit a schema? Schema validation.

Relations between filters conclude from types and from what is mandatory, so a value that only looks like its type is no
small thing: with `x` an int, `x > 4` and `x >= 5` are one filter, and 4.5 would be wanted by half of it. Here a value
is of a type only if it is one of the values that relations count on: an int is not a double, though both are numbers.
`Schema.conform` reads values as their types (a 12 as a double, a text as a date); what it returns fits.

The event is looked at in place, and nothing is copied. Any Python value is answered, with a reason if it does not fit.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from tamis.errors import did_you_mean
from tamis.language.types import ArrayType, AttributeType, RecordType, ScalarType
from tamis.language.values import value_of

Path: TypeAlias = tuple[str, ...]

_PLAIN: dict[str, type[Any]] = {"string": str, "bool": bool, "int": int, "double": float}
"""The Python types whose values nearly all are of a type of the language."""
_KINDS: dict[str, tuple[type[Any], ...]] = {
    "string": (str,),
    "bool": (bool,),
    "int": (int,),
    "double": (float,),
    "decimal": (int, Decimal),
    "date": (dt.date,),
    "timestamp": (dt.datetime,),
}


def misfit(event: Any, record: RecordType, needed: Iterable[Path]) -> str | None:
    """Return why an event is none of these records with all that is needed; None if it is one.

    >>> from tamis.language.types import attribute_type
    >>> misfit({"x": 4.5}, attribute_type({"x": "int"}), [])
    'x is int, and 4.5 is not'
    """
    try:
        reason = _record_misfit(event, record, "")
        if reason is not None:
            return reason
        missing = [".".join(path) for path in needed if _lacks(event, path)]
    except Exception as error:  # a value of somebody else's class may do anything when it is looked at
        return f"the event cannot be read: {type(error).__name__}"
    return f"the event lacks the mandatory {', '.join(missing)}" if missing else None


def _record_misfit(candidate: Any, record: RecordType, prefix: str) -> str | None:
    if not isinstance(candidate, Mapping):
        return f"{prefix.rstrip('.') or 'an event'} is a record, not {type(candidate).__name__}"
    attributes = record.attributes
    for name, value in candidate.items():
        kind = attributes.get(name) if isinstance(name, str) else None
        if kind is None:
            near = did_you_mean(name, attributes) if isinstance(name, str) else ""
            return f"the schema has no attribute {prefix}{_plain(name)}{f'. {near}' if near else ''}"
        if value is None or (type(value) is float and type(kind) is ScalarType and kind.name == "double"):
            continue
        reason = _value_misfit(value, kind, f"{prefix}{name}")
        if reason is not None:
            return reason
    return None


def _value_misfit(value: Any, kind: AttributeType, name: str) -> str | None:
    if isinstance(kind, RecordType):
        return _record_misfit(value, kind, f"{name}.")
    if isinstance(kind, ArrayType):
        elements = value if isinstance(value, list | tuple) else value_of(value)
        if not isinstance(elements, list | tuple):
            return f"{name} is {kind}, and {shown(value)} is not an array"
        wrong = next((each for each in elements if each is not None and not _is_of(each, kind.element)), None)
        return None if wrong is None else f"{name} is {kind}, and {shown(wrong)} is not of type {kind.element}"
    return None if _is_of(value, kind) else f"{name} is {kind}, and {shown(value)} is not"


def _is_of(raw: Any, kind: ScalarType) -> bool:
    """Is a value that is not NULL of this very type?"""
    name = kind.name
    if type(raw) is not _PLAIN.get(name) or name in ("int", "string"):
        raw = value_of(raw)  # half a pair of surrogates is not a text, and a wide integer is a decimal
    if isinstance(raw, bool) or (isinstance(raw, dt.datetime) and name == "date"):
        return name == "bool"
    return isinstance(raw, _KINDS[name])


def _lacks(event: Mapping[str, Any], path: Path) -> bool:
    value: Any = event
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value is None


def _plain(name: Any) -> str:
    """Return a name as a message shows it: as it is written in a condition, if it can be."""
    return name if isinstance(name, str) and name.isidentifier() else shown(name)


def shown(value: Any) -> str:
    """Return a value as a message may show it, whatever it is."""
    try:
        return f"{value!r:.60}"
    except Exception:
        return f"a {type(value).__name__}"
