"""How does a message become bytes, and bytes a message?

A mark, the version of the format, the kind of message, and the fields in MessagePack. Filters travel as text, which
parses to an equal expression, whatever version of tamis reads it. Values that MessagePack does not know (large
integers, decimals, dates, timestamps) carry a code of their own. What comes from outside is never trusted: anything
that is not exactly a message is a `MessageError`, a filter that is too large a `LimitError`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import msgpack

from tamis.errors import LimitError
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.routing.errors import MessageError
from tamis.routing.messages import (
    Advertise,
    Entry,
    Filter,
    Hello,
    Key,
    Message,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)

if TYPE_CHECKING:
    from tamis.language.expressions import Expression

MARK = 0xA7
VERSION = 1
KINDS: tuple[type[Message], ...] = (Hello, Subscribe, Unsubscribe, Advertise, Unadvertise, Publish, Filter)
_INTEGER, _DECIMAL, _DATE, _TIMESTAMP = range(1, 5)


def encode(message: Message) -> bytes:
    """Write a message.

    >>> from tamis.routing import Unsubscribe
    >>> decode(encode(Unsubscribe((7, 9))))
    Unsubscribe(keys=(7, 9), instead=())
    """
    kind = KINDS.index(type(message))
    values = [_plain(getattr(message, field.name)) for field in fields(message)]
    try:
        body = msgpack.packb(values, default=_extended, unicode_errors="surrogatepass", strict_types=True)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise MessageError(f"a value cannot travel: {error}", "values of the language, lists and records") from error
    return bytes((MARK, VERSION, kind)) + bytes(body)


def _plain(value: Any) -> Any:
    match value:
        case Entry(key, filter_):
            return [key, str(filter_)]
        case tuple():
            return [_plain(each) for each in value]
        case Mapping():
            return dict(value)
    return value


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
            return dict(value)
    raise TypeError(f"{type(value).__name__} is no value of an event")


_READERS: dict[int, Callable[[str], Any]] = {
    _INTEGER: int,
    _DECIMAL: Decimal,
    _DATE: dt.date.fromisoformat,
    _TIMESTAMP: dt.datetime.fromisoformat,
}


def _special(code: int, data: bytes) -> Any:
    if code not in _READERS:
        raise ValueError(f"a value of the unknown kind {code}")
    return _READERS[code](data.decode())


def decode(data: bytes, *, limits: Limits = DEFAULT_LIMITS) -> Message:
    """Read a message.

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
        values = msgpack.unpackb(data[3:], ext_hook=_special, unicode_errors="surrogatepass", strict_map_key=True)
        return _made(kind, values, limits)
    except LimitError:
        raise
    except (ValueError, TypeError, InvalidOperation, RecursionError, msgpack.UnpackException) as error:
        raise MessageError(
            f"the body of a {kind.__name__} is broken: {error}", f"the fields of a {kind.__name__}"
        ) from None


def _made(kind: type[Message], values: Any, limits: Limits) -> Message:
    if not isinstance(values, list) or len(values) != len(fields(kind)):
        raise TypeError(f"{len(fields(kind))} fields, found {values!r:.60}")
    if kind is Publish:
        key, event = values
        if not isinstance(event, dict):
            raise TypeError(f"an event is a record, found {event!r:.60}")
        return Publish(_key(key), event)
    found = {field.name: value for field, value in zip(fields(kind), values, strict=True)}
    for name, value in found.items():
        if name in ("entries", "advertisements", "instead"):
            found[name] = tuple(_entry(each, limits) for each in value)
        elif name in ("keys", "replaces"):
            found[name] = tuple(_key(each) for each in value)
        elif value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
            raise TypeError(f"a lease is a number of seconds, found {value!r:.60}")
    return kind(**found)


def _entry(value: Any, limits: Limits) -> Entry:
    key, text = value
    if not isinstance(text, str):
        raise TypeError(f"a filter is a text, found {text!r:.60}")
    expression: Expression = parse(text, limits=limits)
    return Entry(_key(key), expression)


def _key(value: Any) -> Key:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f"a key is a number or a text, found {value!r:.60}")
    return value
