"""How is an event matched against the trees of its own type only?

A subscription that asks for one event type (`type = 'StockQuote' AND ...`, or `type IS A 'Quote' AND ...`) belongs to
that type: its tree is kept in the type's *grove*, without the predicate that named the type, and events of other types
touch neither its predicates nor its counters. Everybody else is in the grove that all events visit.

    event of type StockQuote   ──▶  type = 'StockQuote'     ──▶  type IS A 'StockQuote', 'Quote'     ──▶  no type

A subscription may have a *destination*, a neighbour broker or a subscriber who only wants to know of the event: once
one of those who match for a destination is found, the others need not be evaluated (the filtering shortcut).

Source: Bittner 2008, chapter 4; event types 4.5.6, the shortcut 4.5.4 (docs/bibliography.md).
Departs: the event type is a predicate like any other in the language, so it is looked for among the operands of the
  topmost AND. A type may be a supertype.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import And, Attribute, Expression, IsA
from tamis.language.meaning import attribute_value
from tamis.language.ranges.simple import SimplePredicate, simple
from tamis.language.rewrites.junctions import conjunction
from tamis.matching.base import Algorithm, Handles, Pairs, Snapshot
from tamis_lab.matching.boolean.grove import Grove, GroveOptions, GroveSnapshot, Prepared, prepared
from tamis_lab.matching.roll import Scratch
from tamis_lab.matching.shapes import shaped
from tamis_lab.matching.snapshots import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.matching.columns import Events
    from tamis.matching.destinations import Destinations

EventType = tuple[str, str]
"""What a subscription asks of the event type: "=" or "is a", and a name."""
_SAMPLE = 2048
_SAMPLED_FROM = 256
"""The first batch of so many events is taken as a sample."""
_LARGEST_MAP = 1 << 26
"""So many bytes a map of the events and destinations of a batch may take; beyond that all matches are listed."""


class Boolean(Algorithm):
    """BoP: count hits, then evaluate the trees that have enough."""

    name: ClassVar[str] = "boolean"

    def __init__(self, schema: Schema | None = None, options: GroveOptions | None = None) -> None:
        super().__init__(schema)
        self.options = options or GroveOptions()
        self._type_path = ("type" if schema is None else schema.type_attribute,)
        self._groves: dict[EventType | None, Grove] = {None: Grove(schema, self.options)}
        self._typed: dict[int, EventType] = {}
        """The event types of the subscriptions that ask for one, by handle."""
        self._sample: Events | None = None
        self._scratch = Scratch()
        self._snapshot: BooleanSnapshot | None = None
        self._lock = threading.RLock()

    # -- Registration

    def prepare(self, expressions: Iterable[Expression]) -> list[tuple[EventType | None, Prepared]]:
        results = []
        for expression in expressions:
            event_type, rest = self._apart(expression)
            results.append((event_type, prepared(shaped(rest, self.name), self.options, self.name)))
        return results

    def _apart(self, expression: Expression) -> tuple[EventType | None, Expression]:
        """Return the event type that a condition asks for, if any, and what else it asks."""
        operands = expression.operands if type(expression) is And else (expression,)
        for place, operand in enumerate(operands):
            event_type = self._event_type(operand)
            if event_type is not None:
                return event_type, conjunction(operands[:place] + operands[place + 1 :])
        return None, expression

    def _event_type(self, predicate: Expression) -> EventType | None:
        match predicate:
            case IsA(Attribute(path), name) if path == self._type_path:
                return "is a", name
        match simple(predicate):
            case SimplePredicate("=", Attribute(path), (str(name),)) if path == self._type_path:
                return "=", name
        return None

    def add(self, handles: Sequence[int], prepared: Sequence[tuple[EventType | None, Prepared]]) -> None:
        with self._lock:
            self._snapshot = None
            by_type: dict[EventType | None, tuple[list[int], list[Prepared]]] = {}
            for handle, (event_type, tree) in zip(handles, prepared, strict=True):
                some_handles, some = by_type.setdefault(event_type, ([], []))
                some_handles.append(handle)
                some.append(tree)
                if event_type is not None:
                    self._typed[handle] = event_type
            for event_type, (some_handles, some) in by_type.items():
                grove = self._groves.get(event_type)
                if grove is None:
                    grove = self._groves[event_type] = Grove(self.schema, self.options)
                    if self._sample is not None:
                        grove.learn(self._events_of(event_type, self._sample))
                grove.add(some_handles, some)

    def remove(self, handle: int) -> None:
        with self._lock:
            self._snapshot = None
            event_type = self._typed.pop(handle, None)
            grove = self._groves[event_type]
            grove.remove(handle)
            if event_type is not None and not len(grove):
                del self._groves[event_type]

    @property
    def locks(self) -> Sequence[Any]:
        return (self._lock,)

    def emptied(self) -> Boolean:
        fresh = type(self)(self.schema, self.options)
        if self._sample is not None:
            fresh.learn(self._sample)
        return fresh

    # -- Layout

    def learn(self, events: Events) -> None:
        """Remember a sample of the events, and put the children of all trees in order by it."""
        with self._lock:
            self._snapshot = None
            self._sample = events.slice(0, _SAMPLE)
            for event_type, grove in self._groves.items():
                grove.learn(self._events_of(event_type, self._sample))

    def _events_of(self, event_type: EventType | None, events: Events) -> Events:
        return events.take(_rows(event_type, events, self._type_path, self.schema))

    def observe(self, events: Events) -> None:
        if self._sample is None and events.count >= _SAMPLED_FROM:
            self.learn(events)

    def compile(self) -> bool:
        """Lay groves out anew in which something is left to be evaluated unasked; return whether there were any."""
        with self._lock:
            groves = [grove for grove in self._groves.values() if grove.is_open]
            for grove in groves:
                grove.compile()
            if groves:
                self._snapshot = None
            return bool(groves)

    def snapshot(self) -> BooleanSnapshot:
        with self._lock:
            if self._snapshot is None:
                groves = {event_type: grove.snapshot(self._scratch) for event_type, grove in self._groves.items()}
                self._snapshot = BooleanSnapshot(groves, self._type_path, self.schema)
            return self._snapshot

    # -- Told to others

    def memory(self) -> int:
        with self._lock:
            return sum(grove.memory() for grove in self._groves.values())

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            payload: dict[str, int] = {}
            for grove in self._groves.values():
                for structure, count in grove.payload_bytes().items():
                    payload[structure] = payload.get(structure, 0) + count
            return {
                "predicates": sum(len(grove.predicates) for grove in self._groves.values()),
                "event_types": len(self._groves) - 1,
                "payload_bytes": payload,
            }


class BooleanSnapshot(Snapshot):
    """The groves at one moment."""

    def __init__(
        self, groves: Mapping[EventType | None, GroveSnapshot], type_path: tuple[str, ...], schema: Schema | None
    ) -> None:
        self.groves = groves
        self._type_path = type_path
        self._schema = schema

    def match_event(self, event: Mapping[str, Any], among: Handles | None = None) -> Handles:
        visited = self._visited(event)
        if len(visited) == 1:
            return visited[0].match_event(event, among)
        return np.concatenate([grove.match_event(event, among) for grove in visited])

    def _visited(self, event: Mapping[str, Any]) -> list[GroveSnapshot]:
        if len(self.groves) == 1:
            return [self.groves[None]]
        types: list[EventType | None] = [None, *_types_of(attribute_value(event, self._type_path), self._schema)]
        return [self.groves[each] for each in types if each in self.groves]

    def match_events(self, events: Events, among: Handles | None = None, threads: int = 1) -> Pairs:
        if len(self.groves) == 1:
            return self.groves[None].match_events(events, among, threads)
        pieces: list[Pairs] = []
        for event_type, grove in self.groves.items():
            rows = _rows(event_type, events, self._type_path, self._schema)
            if len(rows):
                some = events if len(rows) == events.count else events.take(rows)
                numbers, handles = grove.match_events(some, among, threads)
                pieces.append((rows[numbers], handles))
        numbers, handles = joined(pieces)
        order = np.argsort(numbers, kind="stable")
        return numbers[order], handles[order]

    def reach_event(
        self, event: Mapping[str, Any], destinations: Destinations, among: Handles | None = None
    ) -> tuple[Handles, Handles]:
        if among is not None:
            return super().reach_event(event, destinations, among)
        reached = np.zeros(len(destinations), np.uint8)
        handles = [grove.reach(event, destinations, reached) for grove in self._visited(event)]
        return np.concatenate(handles), np.flatnonzero(reached)

    def reach_events(
        self, events: Events, destinations: Destinations, among: Handles | None = None, threads: int = 1
    ) -> tuple[Pairs, Pairs]:
        if among is not None or events.count * len(destinations) > _LARGEST_MAP:
            return super().reach_events(events, destinations, among, threads)
        reached = np.zeros((events.count, len(destinations)), np.uint8)
        pieces: list[Pairs] = []
        for event_type, grove in self.groves.items():
            rows = _rows(event_type, events, self._type_path, self._schema)
            if len(rows):
                there = reached[rows]
                some = events if len(rows) == events.count else events.take(rows)
                pairs = grove.reach_many(some, destinations, there)
                pieces += [(rows[numbers], handles) for numbers, handles in pairs]
                reached[rows] = there
        numbers, handles = joined(pieces)
        order = np.argsort(numbers, kind="stable")
        reaching, names = reached.nonzero()
        return (numbers[order], handles[order]), (reaching, names)

    def counts(self) -> dict[str, int]:
        """Return what was done so far: candidates, trees evaluated, and predicates looked at."""
        total = np.sum([grove.counts for grove in self.groves.values()], axis=0)
        return dict(zip(("candidates", "evaluated", "leaves"), map(int, total), strict=True))


def _types_of(name: Any, schema: Schema | None) -> list[EventType]:
    """Return all event types that an event of a type has."""
    if not isinstance(name, str):
        return []
    types: list[EventType] = [("=", name)]
    at: str | None = name
    while at is not None:
        types.append(("is a", at))
        at = None if schema is None else schema.hierarchy.get(at)
    return types


def _rows(
    event_type: EventType | None, events: Events, type_path: tuple[str, ...], schema: Schema | None
) -> npt.NDArray[np.int64]:
    """Return which events of a batch have an event type."""
    if event_type is None:
        return np.arange(events.count)
    column = events.column(type_path)
    if column is None or column.kind not in ("string", "object"):
        return np.zeros(0, np.int64)
    if column.kind == "string":
        assert column.texts is not None
        is_asked = np.array([event_type in _types_of(name, schema) for name in column.texts.tolist()] + [False])
        rows: npt.NDArray[np.int64] = np.flatnonzero(is_asked[column.values])
        return rows
    return np.flatnonzero([event_type in _types_of(name, schema) for name in column.values])
