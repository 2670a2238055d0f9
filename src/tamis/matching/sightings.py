"""Which rules can never match what comes? Coverage of attributes by events.

A misspelt attribute and a number compared with texts are not mistakes of the language: without a schema the rule just
never matches, in silence. So it is noted which attributes events had, and with values of which kind; what rules ask
for and no event had is told (`Matcher.unmet`). Attributes are looked at, not rules: of a table its schema and which
columns have any value; of a single event its *shape*, the names and types in it, which is nearly always one that was
seen before. Single events that have long been of known shapes are looked at by turns only, and whenever one has more or
fewer attributes than the one before: to look at each would take as long as a tenth of its match.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.language.expressions import Attribute, Compare, IsNull, Like, RLike, Test
from tamis.matching.axes import BOOLEAN, DOUBLE, NUMBER, STRING, TIME, TRUTH, Axis, paths_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tamis.matching.columns import Events, Path
    from tamis.matching.scanning.lines import EventLines

ARRAY, RECORD, OTHER = "array", "record", "other"
_KINDS: dict[type, str] = {
    bool: BOOLEAN, int: NUMBER, float: NUMBER, Decimal: NUMBER, str: STRING, dt.datetime: TIME, dt.date: TIME,
    dict: RECORD, list: ARRAY, tuple: ARRAY,
}  # fmt: skip
_WITHOUT_RECORDS = frozenset({*_KINDS, type(None)} - {dict})
_PLURALS = {NUMBER: "numbers", STRING: "texts", TIME: "dates and times", BOOLEAN: "truth values", ARRAY: "arrays"}
_PLURALS |= {RECORD: "records", OTHER: "values of other types"}
_MOST_SHAPES = 1024
"""So many shapes of events are remembered; events of ever new shapes are looked at one by one."""
_STEADY = 512
"""After so many single events of known shapes, one behind the other,"""
_EVERY = 16
"""one of so many is looked at, until one has a new shape."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """What rules ask for, and no event had.

    >>> str(Unmet("prize"))
    'no event had the attribute prize'
    >>> str(Unmet("price", "number", ("string",)))
    'price is compared with numbers, and events had only texts'
    """

    attribute: str
    expected: str | None = None
    """The kind of value that rules compare it with; None where no event had the attribute at all."""
    met: tuple[str, ...] = ()
    """The kinds of values that events had."""

    def __str__(self) -> str:
        if self.expected is None:
            return f"no event had the attribute {self.attribute}"
        met = " and ".join(_PLURALS[kind] for kind in self.met)
        return f"{self.attribute} is compared with {_PLURALS[self.expected]}, and events had only {met}"


class Asked(NamedTuple):
    """What some predicate asks for: an attribute, and the kind of its values where only one can be compared with."""

    path: Path
    expected: str | None


def asked_by(axes: Iterable[Axis]) -> tuple[Asked, ...]:
    """Return what predicates on some axes ask for, each thing once."""
    return tuple(dict.fromkeys(asked for axis in axes for asked in _asked(axis)))


def unmet(asked: Iterable[Asked], kinds: Mapping[Path, set[str]]) -> list[Unmet]:
    """Return what is asked for and is not among the kinds of values that attributes of events had.

    >>> [str(each) for each in unmet([Asked(("price",), NUMBER), Asked(("bids",), NUMBER)], {("bids",): {NUMBER}})]
    ['no event had the attribute price']
    """
    missing: dict[Unmet, None] = {}
    for path, expected in asked:
        met = kinds.get(path)
        if not met:
            missing[Unmet(".".join(path))] = None
        elif expected is not None and expected not in met:
            missing[Unmet(".".join(path), expected, tuple(sorted(met)))] = None
    return sorted(missing, key=lambda each: (each.attribute, each.expected or ""))


class Sightings:
    """Which attributes events had, and which kinds of values.

    >>> sightings = Sightings()
    >>> sightings.look({"price": "12", "position": {"x": 1}})
    >>> sightings.kinds[("price",)], sightings.kinds[("position", "x")]
    ({'string'}, {'number'})
    """

    def __init__(self) -> None:
        self.event_count = 0
        self.kinds: dict[Path, set[str]] = {}
        self._shapes: set[tuple[Any, ...]] = set()
        self._documents: set[int] = set()
        """The shapes of events in JSON, as hashes."""
        self._known_in_a_row = 0
        self._skipped_until = 0
        """Events up to this one are passed over if they are as long as the one before; threads may lose a step."""
        self._length = -1

    def look(self, event: Mapping[str, Any]) -> None:
        """Look at an event, or pass it over where events have long looked alike."""
        self.event_count += 1
        if self.event_count < self._skipped_until and len(event) == self._length:
            return
        self._length = len(event)
        shape = _shape(event)
        if shape in self._shapes:
            self._known_in_a_row += 1
            if self._known_in_a_row >= _STEADY:
                self._skipped_until = self.event_count + _EVERY
            return
        self._known_in_a_row = self._skipped_until = 0
        self._note((), event)
        if len(self._shapes) < _MOST_SHAPES:
            self._shapes.add(shape)

    def look_at_json(self, shape: int, document: bytes) -> None:
        """Look at an event in JSON, given a hash of its names and kinds: it is decoded if there was none like it."""
        if shape in self._documents:
            self.event_count += 1
            return
        self.look(json.loads(document))
        if len(self._documents) < _MOST_SHAPES:
            self._documents.add(shape)

    def look_at_lines(self, shapes: npt.NDArray[np.uint64], lines: EventLines) -> None:
        """Look at events in JSON, one in each line; of those that were decoded the hash is 0."""
        values, firsts, counts = np.unique(shapes, return_index=True, return_counts=True)
        for shape, first, count in zip(values.tolist(), firsts.tolist(), counts.tolist(), strict=True):
            if shape:
                self.look_at_json(shape, lines.line(first))
                self.event_count += count - 1
        for number in np.flatnonzero(shapes == 0).tolist():
            self.look(lines.event(number))

    def look_at_all(self, events: Events) -> None:
        """Look at a batch."""
        table = events.table
        if table is None:
            for event in events.mappings():
                self.look(event)
            return
        self.event_count += events.count
        for name in dict.fromkeys(table.schema.names):  # the first of two columns of one name
            self._note_column((name,), table.column(table.schema.names.index(name)))

    def _note(self, above: Path, event: Mapping[str, Any]) -> None:
        """Note the attributes of a record, those of records in it included."""
        for name, value in event.items():
            if value is None or not isinstance(name, str):
                continue
            path = (*above, name)
            kind = _KINDS.get(type(value)) or _kind_of(value)
            self.kinds.setdefault(path, set()).add(kind)
            if kind == RECORD:
                self._note(path, value)

    def _note_column(self, path: Path, column: Any) -> None:
        kind = arrow_kind(column.type)
        known = self.kinds.get(path, set())
        if kind != RECORD and kind in known:
            return
        if column.null_count < len(column):
            self.kinds.setdefault(path, set()).add(kind)
            if kind == RECORD:
                chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
                for number, field in enumerate(column.type):
                    for chunk in chunks:
                        self._note_column((*path, field.name), chunk.flatten()[number])


def _shape(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the names and types of an event's values, those of records in it included: equal ones need one look.

    >>> _shape({"price": 12, "at": {"x": 1}}) == _shape({"price": 13, "at": {"x": 2}})
    True
    >>> _shape({"price": 12, "at": {"x": 1}}) == _shape({"price": 12, "at": {"x": "1"}})
    False
    """
    kinds = tuple(map(type, event.values()))
    if _WITHOUT_RECORDS.issuperset(kinds):
        return (*event, *kinds)
    return (*event, *kinds, *(_shape(value) for value in event.values() if isinstance(value, Mapping)))


def _asked(axis: Axis) -> list[Asked]:
    """Return the attributes that an axis asks about, and the kind that their values must have, as far as one is known.

    What is asked whether it is missing at all is satisfied either way.
    """
    term, kind = axis.key.term, axis.key.kind
    if kind != TRUTH:
        expected = (NUMBER if kind == DOUBLE else kind) if isinstance(term, Attribute) else None
        return [Asked(path, expected) for path in axis.paths]
    match term:
        case IsNull() | Compare("<=>"):
            return []
        case Like(Attribute()) | RLike(Attribute()):
            return [Asked(path, STRING) for path in axis.paths]
        case Test("array_contains", (Attribute(path), element)):
            return [Asked(path, ARRAY), *(Asked(other, None) for other in paths_of(element))]
        case Test("arrays_overlap", arrays):
            return [
                Asked(path, ARRAY if isinstance(array, Attribute) else None)
                for array in arrays
                for path in paths_of(array)
            ]
    return [Asked(path, None) for path in axis.paths]


def _kind_of(value: Any) -> str:
    if isinstance(value, Mapping):
        return RECORD
    if isinstance(value, bool):
        return BOOLEAN
    for types, kind in (((int, float, Decimal), NUMBER), (str, STRING), (dt.date, TIME)):
        if isinstance(value, types):
            return kind
    return ARRAY if isinstance(value, Sequence) and not isinstance(value, bytes) else OTHER


def arrow_kind(kind: Any) -> str:
    """Return the kind of the values of an Arrow type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        (pa.types.is_boolean, BOOLEAN),
        (lambda each: pa.types.is_integer(each) or pa.types.is_floating(each) or pa.types.is_decimal(each), NUMBER),
        (lambda each: any(is_one(each) for is_one in _TEXTS), STRING),
        (lambda each: pa.types.is_date(each) or pa.types.is_timestamp(each), TIME),
        (pa.types.is_struct, RECORD),
        (lambda each: any(is_one(each) for is_one in _LISTS), ARRAY),
    )
    return next((name for is_such, name in tests if is_such(kind)), OTHER)


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
