"""How does a message become bytes, and bytes a message? The wire format.

A mark, the version of the format, the kind of message, and the fields in MessagePack, in the order of the table of
kinds (`kinds`). Filters and ranked subscriptions travel as text, which parses to an equal one, whatever version of
tamis reads it. Values that MessagePack does not know (large integers, decimals, dates, timestamps) carry a code of
their own. What comes from outside is never trusted: anything that is not exactly a message is a `MessageError`, a
filter that is too large a `LimitError`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgpack

from tamis.errors import LimitError
from tamis.language.expressions import Expression
from tamis.language.functions import Functions, functions_of
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.routing.acceptance import check_message
from tamis.routing.errors import MessageError
from tamis.routing.kinds import (
    DEPOSITS,
    ENTRIES,
    EVENT,
    FILTER,
    KEYS,
    KINDS,
    MESSAGE,
    MESSAGES,
    NUMBERS,
    SERVED,
    TUPLES,
    VERSIONS,
    WANTED,
    MessageKind,
)
from tamis.routing.messages import Deposited, Entry, Message
from tamis.topk.ranked import Ranked
from tamis.topk.text import is_ranked

MARK = 0xA7
VERSION = 4
_INTEGER, _DECIMAL, _DATE, _TIMESTAMP = range(1, 5)
_AS_DATETIME = 3
"""How MessagePack is told what to make of timestamps of its own."""


def encode(message: Message) -> bytes:
    """Write a message.

    >>> from tamis.routing import Unsubscribe
    >>> decode(encode(Unsubscribe((7, 9))))
    Unsubscribe(keys=(7, 9), instead=())
    """
    check_message(message)
    number = NUMBERS[type(message)]
    try:
        values = [_written(getattr(message, name), form) for name, form in KINDS[number].fields.items()]
        if VERSIONS in KINDS[number].fields.values() and not values[-1]:
            values.pop()  # what is not there is not written, as before there was any of it
        body = msgpack.packb(values, default=_extended, unicode_errors="surrogatepass", strict_types=True)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise MessageError(f"a value cannot travel: {error}", "values of the language, lists and records") from error
    return bytes((MARK, VERSION, number)) + bytes(body)


def _written(value: Any, form: str) -> Any:
    if form == MESSAGE:
        return encode(value)
    if form == MESSAGES:
        return list(map(encode, value))
    if form == DEPOSITS:
        return [
            [
                each.home,
                each.client,
                each.key,
                str(each.wanted),
                _plain(each.state),
                list(map(encode, each.held)),
                each.number,
            ]
            for each in value
        ]
    if form == SERVED:
        return [[encode(passed), list(names)] for passed, names in value]
    return _plain(value)


def _plain(value: Any) -> Any:
    match value:
        case Entry(key, filter_, imperfection, hops, priority):
            numbers: list[float] = [imperfection, hops, priority]
            while numbers and not numbers[-1]:  # what is 0 to the end is not written, as before there was any of it
                numbers.pop()
            return [key, str(filter_), *numbers]
        case Expression() | Ranked():
            return str(value)
        case tuple():
            return [_plain(each) for each in value]
        case Mapping():
            return _named(value)
    return value


def _named(record: Mapping[Any, Any]) -> dict[str, Any]:
    for name in record:
        if not isinstance(name, str):
            raise TypeError(f"the attribute {name!r:.60} has no text for a name")
    return dict(record)


def _extended(value: Any) -> Any:
    match value:
        case int():
            return msgpack.ExtType(_INTEGER, str(value).encode())
        case Decimal():
            return msgpack.ExtType(_DECIMAL, str(value).encode())
        case dt.datetime():
            return msgpack.ExtType(_TIMESTAMP, value.isoformat().encode())
        case dt.date():
            return msgpack.ExtType(_DATE, value.isoformat().encode())
        case tuple():
            return list(value)
        case Mapping():
            return _named(value)
    raise TypeError(f"{type(value).__name__} is not a value of an event")


_READERS: dict[int, Callable[[str], Any]] = {
    _INTEGER: int,
    _DECIMAL: Decimal,
    _DATE: dt.date.fromisoformat,
    _TIMESTAMP: dt.datetime.fromisoformat,
}


def _special(code: int, data: bytes) -> Any:
    if code not in _READERS:
        raise ValueError(f"a value of the unknown kind {code}")
    value = _READERS[code](data.decode("ascii"))
    if _extended(value).data != data:  # int() also reads " 1_000 ", and isoformat has twins
        raise ValueError(f"{data[:60]!r} is not how a value is written")
    return value


def _record(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str) or name in record:
            raise ValueError(f"an attribute's name is a text, and there once; found {name!r:.60}")
        record[name] = value
    return record


def decode(data: bytes, *, limits: Limits = DEFAULT_LIMITS, functions: Functions | None = None) -> Message:
    """Read a message; its filters may call these functions of the host, of those versions that a Hello agreed on.

    >>> decode(b"hello")
    Traceback (most recent call last):
        ...
    tamis.routing.errors.MessageError: the bytes begin with 0x68; expected 0xa7, the mark of a message
    """
    if len(data) < 3:
        raise MessageError(f"there are {len(data)} bytes", "a mark, a version and a kind at least")
    mark, version, number = data[:3]
    if mark != MARK:
        raise MessageError(f"the bytes begin with {mark:#04x}", f"{MARK:#04x}, the mark of a message")
    if version != VERSION:
        raise MessageError(f"the message is of version {version}", f"version {VERSION}")
    if number >= len(KINDS):
        raise MessageError(f"the message is of kind {number}", f"a kind below {len(KINDS)}")
    kind = KINDS[number]
    try:
        values = msgpack.unpackb(
            data[3:],
            ext_hook=_special,
            object_pairs_hook=_record,
            timestamp=_AS_DATETIME,
            unicode_errors="surrogatepass",
            strict_map_key=False,  # `_record` is stricter
        )
        with functions_of(functions).in_use():
            message = _made(kind, values, limits, functions)
        check_message(message)
        return message
    except (LimitError, MessageError):
        raise
    except (ValueError, TypeError, InvalidOperation, OverflowError, RecursionError, msgpack.UnpackException) as error:
        name = kind.message.__name__
        raise MessageError(f"the body of a {name} is broken: {error}", f"the fields of a {name}") from None


def _made(kind: MessageKind, values: Any, limits: Limits, functions: Functions | None) -> Message:
    fields = list(kind.fields.items())
    if isinstance(values, list) and len(values) == len(fields) - 1 and fields[-1][1] == VERSIONS:
        fields.pop()
    if not isinstance(values, list) or len(values) != len(fields):
        raise TypeError(f"{len(fields)} fields, found {values!r:.60}")
    return kind.message(
        **{
            name: _read(name, form, value, limits, functions)
            for (name, form), value in zip(fields, values, strict=True)
        }
    )


def _read(name: str, form: str, value: Any, limits: Limits, functions: Functions | None) -> Any:
    """Return a field in the form that the message has it in."""
    if form == EVENT:
        if not isinstance(value, dict):
            raise TypeError(f"an event is a record, found {value!r:.60}")
        return value
    if form == FILTER:
        if not isinstance(value, str):
            raise TypeError(f"a filter is a text, found {value!r:.60}")
        return parse(value, limits=limits)
    if form == WANTED:
        if not isinstance(value, str):
            raise TypeError(f"a subscription is a text, found {value!r:.60}")
        return _wanted(value, limits)
    if form == MESSAGE:
        if not isinstance(value, bytes):
            raise TypeError(f"{name} is a message in bytes, found {value!r:.60}")
        return decode(value, limits=limits, functions=functions)
    if form == TUPLES:
        return _tuples(value)
    if form in (MESSAGES, DEPOSITS, SERVED):
        if not isinstance(value, list):
            raise TypeError(f"{name} are a list, found {value!r:.60}")
        if form == MESSAGES:
            return _messages(value, limits, functions)
        if form == SERVED:
            return tuple(_served(each, limits, functions) for each in value)
        return tuple(_deposited(each, limits, functions) for each in value)
    if form == VERSIONS:
        if not isinstance(value, list) or not value or not all(isinstance(each, list) for each in value):
            raise TypeError(f"{name} are pairs of a name and a version, if there are any, found {value!r:.60}")
        return tuple(map(tuple, value))
    if form not in (ENTRIES, KEYS):
        return value
    if not isinstance(value, list):
        raise TypeError(f"{name} are a list, found {value!r:.60}")
    return tuple(_entry(each, limits) for each in value) if form == ENTRIES else tuple(value)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _messages(values: list[Any], limits: Limits, functions: Functions | None) -> tuple[Any, ...]:
    if not all(isinstance(each, bytes) for each in values):
        raise TypeError(f"messages in bytes, found {values!r:.60}")
    return tuple(decode(each, limits=limits, functions=functions) for each in values)


def _served(value: Any, limits: Limits, functions: Functions | None) -> tuple[Any, tuple[Any, ...]]:
    match value:
        case [bytes() as passed, list(names)]:
            return decode(passed, limits=limits, functions=functions), tuple(names)
    raise TypeError(f"an event and names, found {value!r:.60}")


def _deposited(value: Any, limits: Limits, functions: Functions | None) -> Deposited:
    match value:
        case [home, client, key, str(text), list(state), list(held), number]:
            wanted = _wanted(text, limits)
            return Deposited(home, client, key, wanted, _tuples(state), _messages(held, limits, functions), number)
    raise TypeError(
        f"a home, a client, a key, the text of a subscription, a ranking, events and a number, found {value!r:.60}"
    )


def _wanted(text: str, limits: Limits) -> Expression | Ranked:
    return Ranked.parse(text, limits=limits) if is_ranked(text) else parse(text, limits=limits)


def _entry(value: Any, limits: Limits) -> Entry:
    match value:
        case [key, str(text)]:
            return Entry(key, _wanted(text, limits))
        case [key, str(text), imperfection] if imperfection:  # it is written only if there is any
            return Entry(key, _wanted(text, limits), imperfection)
        case [key, str(text), imperfection, hops] if hops:
            return Entry(key, _wanted(text, limits), imperfection, hops)
        case [key, str(text), imperfection, hops, priority] if priority:
            return Entry(key, _wanted(text, limits), imperfection, hops, priority)
    raise TypeError(
        f"an entry is a key, the text of a filter, and its imperfection, hops and priority if any, found {value!r:.60}"
    )
