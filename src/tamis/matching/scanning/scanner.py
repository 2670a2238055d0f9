"""Which codes does the JSON of an event have? The scanner of single events.

It does for bytes what `encoder` does for dictionaries. Attributes that are compared with numbers, texts and Booleans go
through a compiled loop (`kernels`). Of what functions, patterns and paths ask about, only the values that they mention
are decoded, each by itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.errors import EventError
from tamis.language.expressions import Attribute
from tamis.language.values import value_of
from tamis.matching.axes import BOOLEAN, DOUBLE, NUMBER, STRING, TRUTH
from tamis.matching.distances import Distances
from tamis.matching.scanning import kernels
from tamis.ragged import starts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.matching.axes import Axis, Codes
    from tamis.matching.scanning.lines import EventLines

_KINDS = {
    NUMBER: kernels.INTEGERS_AND_DOUBLES, DOUBLE: kernels.DOUBLES, STRING: kernels.TEXTS, BOOLEAN: kernels.BOOLEANS
}  # fmt: skip
"""Times are none of them: a date in JSON is a text."""
_LINES_AT_A_TIME = 512
"""Of so many events it is written down at a time where their values stand."""


def decoded(document: bytes | str) -> Any:
    """Return what `json.loads` does; what it refuses is an `EventError`.

    >>> decoded(b'{"a": 1,}')
    Traceback (most recent call last):
    tamis.errors.EventError: an event must be a JSON object: Expecting property name enclosed in double quotes: ...
    """
    try:
        return json.loads(document)
    except (ValueError, RecursionError, TypeError) as error:
        raise EventError(f"an event must be a JSON object: {error}") from error


class Scanner:
    """Turns events in JSON into codes, one for each of some axes.

    >>> from tamis.language.parser import parse
    >>> from tamis.matching.leaves import Leaves
    >>> leaves = Leaves()
    >>> _ = [leaves.leaf(parse(text)) for text in ("price < 20", "price > 10", "format = 'audio'")]
    >>> _, codes = Scanner(leaves.finished().axes, None).codes(b'{"price": 15, "pages": null, "format": "audio"}')
    >>> codes.tolist()
    [3, 2]
    """

    __slots__ = (
        "_axes",
        "_axes_of_names",
        "_columns",
        "_count",
        "_distances",
        "_is_mentioned",
        "_names",
        "_others",
        "_schema",
    )

    def __init__(
        self, axes: Sequence[Axis], schema: Schema | None, distances: Sequence[Distances] | None = None
    ) -> None:
        self._schema = schema
        self._axes = list(axes)
        self._count = len(axes)
        self._distances = Distances.among(axes) if distances is None else distances
        together = {row for each in self._distances for row in each.rows.tolist()}
        plain: dict[str, list[tuple[int, Axis]]] = {}
        mentioned: set[str] = set()
        self._others: list[tuple[int, Axis]] = []
        for position, axis in enumerate(axes):
            term = axis.key.term
            if isinstance(term, Attribute) and len(term.path) == 1 and axis.key.kind != TRUTH:
                plain.setdefault(term.path[0], []).append((position, axis))
                continue
            mentioned.update(path[0] for path in axis.paths)
            if position not in together:
                self._others.append((position, axis))
        self._names = list(dict.fromkeys([*plain, *sorted(mentioned)]))
        self._axes_of_names = [plain.get(name, []) for name in self._names]
        self._is_mentioned = [(number, name) for number, name in enumerate(self._names) if name in mentioned]
        self._columns = (*_names(self._names, self._axes_of_names), *_operands(self._axes_of_names))

    def codes(self, document: bytes) -> tuple[int, Codes] | None:
        """Return a hash of the names and kinds of an event's values, and its code on every axis.

        None if the document is none, or not an everyday one: then a decoder has to say what it is.
        """
        if not document.isascii() and not _is_utf8(document):
            return None
        spans = np.zeros((len(self._names) + 1, 3), np.int64)
        codes = np.zeros(self._count, np.uint32)
        shape = int(kernels.read_event(np.frombuffer(document, np.uint8), self._columns, spans, codes))
        if shape == 0:
            return None
        self._complete(document, spans, codes)
        return shape, codes

    def codes_of_lines(self, lines: EventLines) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Return the same of many events: a hash of each, and a row of codes. They have to be UTF-8.

        What is not everyday is decoded; what is wrong raises. Of such events the hash is 0.
        """
        count = len(lines)
        shapes, codes = np.empty(count, np.uint64), np.zeros((count, self._count), np.uint32)
        for first in range(0, count, _LINES_AT_A_TIME):
            some = slice(first, first + _LINES_AT_A_TIME)
            starts, ends = lines.starts[some], lines.ends[some]
            spans = np.zeros((len(starts), len(self._names) + 1, 3), np.int64)
            kernels.read_events(lines.data, starts, ends, self._columns, spans, codes[some], shapes[some])
            is_read = shapes[some] != 0
            for place in np.flatnonzero(~is_read).tolist():
                self._decode(lines.event(first + place), codes[first + place])
            if not self._others and not self._distances:
                is_read &= spans[:, -1, kernels.IS_LEFT] != 0
            for place in np.flatnonzero(is_read).tolist():
                self._complete(lines.line(first + place), spans[place], codes[first + place])
        return shapes, codes

    def _decode(self, event: Mapping[str, Any], codes: Codes) -> None:
        """Write the codes of an event that was not read."""
        for position, axis in enumerate(self._axes):
            codes[position] = axis.event_code(event, self._schema)

    def _complete(self, document: bytes, spans: npt.NDArray[np.int64], codes: Codes) -> None:
        """Write the codes that the loops have left to others."""
        if spans[-1, kernels.IS_LEFT]:
            for number in spans[:-1, kernels.IS_LEFT].nonzero()[0].tolist():
                value = value_of(_value(document, spans[number]))
                for position, axis in self._axes_of_names[number]:
                    codes[position] = axis.code(value)
        if self._others or self._distances:
            event = {
                name: _value(document, spans[number])
                for number, name in self._is_mentioned
                if spans[number, kernels.END]
            }
            self._write_others(event, codes)

    def _write_others(self, event: Mapping[str, Any], codes: Codes) -> None:
        for position, axis in self._others:
            codes[position] = axis.event_code(event, self._schema)
        for distances in self._distances:
            codes[distances.rows] = distances.event_codes(event, self._schema)


def _is_utf8(document: bytes) -> bool:
    try:
        document.decode()
    except UnicodeDecodeError:
        return False
    return True


def _value(document: bytes, spans: npt.NDArray[np.int64]) -> Any:
    return json.loads(document[spans[kernels.BEGIN] : spans[kernels.END]].decode())


def _names(names: Sequence[str], axes: Sequence[Sequence[object]]) -> kernels.MentionedNames:
    starts, content = _joined(names)
    slots = np.full(1 << (2 * len(names) + 1).bit_length(), -1, np.int32)
    kernels.put_names(starts, content, slots)
    behind = np.full(len(names) + 1, -1, np.int32)
    return kernels.MentionedNames(slots, starts, content, starts_of(np.array(list(map(len, axes)), np.int64)), behind)


def _operands(axes_of_names: Sequence[Sequence[tuple[int, Axis]]]) -> kernels.AxisOperands:
    rows: list[tuple[int, ...]] = []
    integers: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)]
    tables: list[npt.NDArray[np.uint32]] = [np.zeros(0, np.uint32)]
    doubles: list[npt.NDArray[np.float64]] = [np.zeros(0, np.float64)]
    texts: list[str] = []
    integer_count = double_count = table_count = 0
    for position, axis in (each for axes in axes_of_names for each in axes):
        kind = _KINDS.get(axis.key.kind, kernels.NOTHING)
        first = last = first_double = last_double = base = width = 0
        if kind in (kernels.INTEGERS_AND_DOUBLES, kernels.DOUBLES):
            if kind == kernels.INTEGERS_AND_DOUBLES:
                integers.append(axis.integer_bounds())
                first, last = integer_count, integer_count + len(integers[-1])
                integer_count = last
                table = axis.table_of_integers()
                if table is not None:
                    base, width = table[0], len(table[1])
                    tables.append(np.asarray(table[1], np.uint32))
            doubles.append(axis.doubles())
            first_double, last_double = double_count, double_count + len(doubles[-1])
            double_count = last_double
        elif kind == kernels.TEXTS:
            first, last = len(texts), len(texts) + len(axis.operands)
            texts += axis.operands
        elif kind == kernels.BOOLEANS:
            first, last = axis.code(False), axis.code(True)
        rows.append((position, kind, first, last, first_double, last_double, table_count, base, width))
        table_count += width
    starts, content = _joined(texts)
    prefixes = np.empty(len(texts), np.uint64)
    kernels.put_prefixes(starts, content, prefixes)
    columns = np.array(rows, np.int64).reshape(-1, 9)
    numbers = np.concatenate(integers), np.concatenate(tables), np.concatenate(doubles)
    return kernels.AxisOperands(columns, *numbers, prefixes, starts, content)


def _joined(texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return where each text starts, and the bytes of all. Half a surrogate pair is like no text that is ever read."""
    pieces = [text.encode("utf-8", "surrogatepass") for text in texts]
    starts = starts_of(np.array(list(map(len, pieces)), np.int64))
    return starts, np.frombuffer(b"".join(pieces), np.uint8)
