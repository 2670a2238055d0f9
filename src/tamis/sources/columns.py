"""Which columns does a text name, in Spark's words?

`price double, tags array<string>, seller struct<id: bigint>`: names and types with commas, as `--schema` takes them.
What has no counterpart in an event's columns (intervals, variants) is refused with what would be right.
"""

from __future__ import annotations

import re

import pyarrow as pa

from tamis.errors import did_you_mean
from tamis.sources.errors import OptionError

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.)*')|(\w+)|([<>(),:]))", re.DOTALL)
_SIMPLE = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "byte": pa.int8(), "smallint": pa.int16(), "short": pa.int16(),
    "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(), "long": pa.int64(), "float": pa.float32(),
    "real": pa.float32(), "double": pa.float64(), "string": pa.string(), "varchar": pa.string(), "char": pa.string(),
    "character": pa.string(), "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
_DECIMALS = ("decimal", "dec", "numeric")
_DEEPEST = 50


def columns_of(text: str) -> pa.Schema:
    """Return the columns that a text names.

    >>> columns_of("price decimal(10, 2), tags array<string>, `is new` boolean NOT NULL").types
    [Decimal128Type(decimal128(10, 2)), ListType(list<element: string>), DataType(bool)]
    >>> columns_of("price duoble")
    Traceback (most recent call last):
        ...
    tamis.sources.errors.OptionError: the columns 'price duoble' name no type that there is: 'duoble'. Did you mean \
double?
    """
    reading = _ColumnsText(text)
    fields = reading.fields(end="", depth=0)
    names = [field.name.lower() for field in fields]
    for field in fields:
        if names.count(field.name.lower()) > 1:
            raise OptionError(f"the columns {text!r} name {field.name!r} twice")
    return pa.schema(fields)


class _ColumnsText:
    """A text, from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens, place = text, list[str](), 0
        while text[place:].strip():
            token = _TOKEN.match(text, place)
            if token is None:
                raise self._wrong(f"{text[place:].strip()[:20]!r} cannot be read")
            self._tokens.append(token[0].strip())
            place = token.end()
        self._tokens.reverse()

    def _wrong(self, reason: str) -> OptionError:
        return OptionError(f"the columns {self._text!r} are not written as 'price double, title string': {reason}")

    def _next(self) -> str:
        return self._tokens.pop() if self._tokens else ""

    def _peek(self) -> str:
        return self._tokens[-1].lower() if self._tokens else ""

    def _expect(self, token: str) -> None:
        there = self._next()
        if there != token:
            raise self._wrong(f"expected {token!r}, found {there or 'the end'!r}")

    def fields(self, end: str, depth: int) -> list[pa.Field]:
        """Read names with types up to a bracket, or to the end."""
        fields = []
        while True:
            name = self._next()
            if not name or not (name[0] == "`" or name[0].isalnum() or name[0] == "_"):
                raise self._wrong(f"expected a name, found {name or 'the end'!r}")
            if self._peek() == ":":
                self._next()
            fields.append(pa.field(name[1:-1].replace("``", "`") if name[0] == "`" else name, self._type(depth)))
            if self._peek() == "not":  # rows of files are never trusted to keep it, neither here nor in Spark
                self._next()
                if self._next().lower() != "null":
                    raise self._wrong("expected NULL after NOT")
            if self._peek() == "comment":
                self._next()
                self._next()
            if self._peek() == end:
                self._next()
                return fields
            self._expect(",")

    def _type(self, depth: int) -> pa.DataType:
        written = self._next()
        name = written.lower()
        if depth > _DEEPEST:
            raise self._wrong("it is nested too deep")
        if name in _DECIMALS:
            precision, scale = [*self._sizes(), 0, 0][:2] if self._peek() == "(" else (10, 0)
            if not (1 <= precision <= 38 and 0 <= scale <= precision):
                raise self._wrong(f"a decimal has 1 to 38 digits, not ({precision}, {scale})")
            return pa.decimal128(precision, scale)
        if name in _SIMPLE:
            if self._peek() == "(":
                self._sizes()
            return _SIMPLE[name]
        if name == "array":
            self._expect("<")
            kind = pa.list_(pa.field("element", self._type(depth + 1)))
            self._expect(">")
            return kind
        if name == "map":
            self._expect("<")
            key = self._type(depth + 1)
            self._expect(",")
            kind = pa.map_(key, self._type(depth + 1))
            self._expect(">")
            return kind
        if name == "struct":
            self._expect("<")
            return pa.struct(self.fields(">", depth + 1))
        known = [*_SIMPLE, "decimal", "array", "struct", "map"]
        hint = did_you_mean(name, known)
        message = f"the columns {self._text!r} name no type that there is: {written!r}"
        raise OptionError(message + (f". {hint}" if hint else f", only {', '.join(known)}"))

    def _sizes(self) -> list[int]:
        self._expect("(")
        sizes = []
        while True:
            size = self._next()
            if not size.isdecimal():
                raise self._wrong(f"expected a number, found {size or 'the end'!r}")
            sizes.append(int(size))
            if self._peek() == ")":
                self._next()
                return sizes
            self._expect(",")
