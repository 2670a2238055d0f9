"""What of the subscriptions that came last, and are not compiled yet?

They lie in an *open part*: an index that takes a subscription in microseconds, and that snapshots share while it grows.
Most subscriptions ask for a value that an attribute must have, `title = 'Tamis'` and something else; they lie under
that value, and an event asks those under its own values only. Who asks for several values lies where the fewest lie so
far: what many ask for many events have. The others are asked one by one. Each is asked by a function made for it
(`closures`). It is counted how many events ask, so that a segment is made when that is more than a segment would cost.

Nothing is ever taken out. Handles only grow, and each removal has a number; so a snapshot, which is a *view*, is no
copy but two numbers: from which handle on it sees nothing, and up to which removal it knows.

    handle       7      8      9      10
    removed at   -      2      -      -          the view (10, 1) sees 7, 8 and 9; the view (10, 2) sees 7 and 9
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.language.expressions import And, Attribute, Or
from tamis.language.ranges.simple import IN, SimplePredicate, simple
from tamis.matching.closures import Closure, holding, is_small

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema

_EXACT_IN_DOUBLES = 2**53
"""Integers up to here are equal to whatever number Python says they are equal to, doubles included."""
_MOST_VALUES = 16
"""A subscription lies under so many values at most."""
_KNOWN = 16
"""After so many events it is known how many they ask."""
Key: TypeAlias = "tuple[tuple[str, tuple[Any, ...]], ...]"
"""Attributes, each with values: whoever matches has one of these values."""
_LOOKED_UP = frozenset({str, int, float, bool})
"""Types of which all values that the language calls equal are equal in Python; a decimal of many digits is rounded.
Where a value is of another type, everybody who asks for a value of its attribute is asked."""


class OpenSubscription:
    """An open subscription."""

    __slots__ = ("_closure", "_schema", "expression", "handle", "is_small", "keys")

    def __init__(self, handle: int, expression: Expression, schema: Schema | None) -> None:
        self.handle = handle
        self.expression = expression
        self.is_small = is_small(expression)
        self.keys = keys_of(expression) if self.is_small else []
        self._schema = schema
        self._closure: Closure | None = None

    def make_closure(self) -> Closure:
        """Return the function that says whether an event matches, made once."""
        if self._closure is None:
            self._closure = holding(self.expression, self._schema)
        return self._closure

    def holds(self, event: Mapping[str, Any]) -> bool:
        """Does an event match?"""
        return (self._closure or self.make_closure())(event) is True

    def renumbered(self, handle: int) -> OpenSubscription:
        """Return the same under another handle."""
        other = OpenSubscription.__new__(OpenSubscription)
        other.handle, other.expression, other.keys = handle, self.expression, self.keys
        other.is_small, other._schema, other._closure = self.is_small, self._schema, self._closure
        return other


class _Values:
    """The entries that lie under values of one attribute."""

    __slots__ = ("attribute", "entries", "places")

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self.places: dict[Any, list[OpenSubscription]] = {}
        self.entries: list[OpenSubscription] = []

    def add(self, entry: OpenSubscription, values: Iterable[Any]) -> None:
        self.entries.append(entry)
        for value in values:
            self.places.setdefault(value, []).append(entry)


class OpenPart:
    """Subscriptions that are not compiled yet. It is changed under a lock; views are used without.

    >>> import tamis
    >>> part = OpenPart(None)
    >>> for handle, text in enumerate(["title = 'Tamis' AND price < 20", "price < 10", "title IN ('Sieve', 'Mesh')"]):
    ...     _ = part.add(handle, tamis.parse(text))
    >>> before = part.view()
    >>> part.remove(1)
    True
    >>> event = {"title": "Tamis", "price": 5}
    >>> before.matches(event), part.view().matches(event)
    ([0, 1], [0])
    """

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self._entries: dict[int, OpenSubscription] = {}
        """Of the living, in the order of their handles."""
        self.everybody: list[OpenSubscription] = []
        """Those who are removed included, for the sake of older views."""
        self.by_value: list[_Values] = []
        """A list, because lists may grow while others walk along them."""
        self._attributes: dict[str, _Values] = {}
        self.unkeyed: list[OpenSubscription] = []
        """Those who do not ask for a value."""
        self.removals: dict[int, int] = {}
        """The number of the removal of each who is removed."""
        self.look_count = 0
        """How many events were matched, and how often somebody was asked; threads may lose some, which nobody minds."""
        self.asked_count = 0
        self._end = 0

    def __len__(self) -> int:
        """How many there are, without those who are removed."""
        return len(self._entries)

    def __contains__(self, handle: int) -> bool:
        return handle in self._entries

    @property
    def entries(self) -> Iterable[OpenSubscription]:
        """Those who are there, in the order of their handles."""
        return self._entries.values()

    def add(self, handle: int, expression: Expression) -> OpenSubscription:
        """Take a subscription, whose handle is greater than all before."""
        entry = OpenSubscription(handle, expression, self._schema)
        self.put(entry)
        return entry

    def put(self, entry: OpenSubscription) -> None:
        """Take an entry, whose handle is greater than all before."""
        self._entries[entry.handle] = entry
        self._end = entry.handle + 1
        self.everybody.append(entry)
        if not entry.keys:
            self.unkeyed.append(entry)
            return
        for attribute, values in entry.keys[0] if len(entry.keys) == 1 else min(entry.keys, key=self._crowd):
            known = self._attributes.get(attribute)
            if known is None:
                known = self._attributes[attribute] = _Values(attribute)
                self.by_value.append(known)
            known.add(entry, values)

    def _crowd(self, key: Key) -> tuple[int, int]:
        """Return how many lie under the values of a key already, and how many values these are."""
        crowd = value_count = 0
        for attribute, values in key:
            value_count += len(values)
            known = self._attributes.get(attribute)
            if known is not None:
                crowd += sum(len(known.places.get(value, ())) for value in values)
        return crowd, value_count

    def asked_by(self, event: Mapping[str, Any]) -> list[list[OpenSubscription]]:
        """Return who is asked about an event: those under its values, and those who lie under none."""
        asked = [self.unkeyed]
        get = event.get
        for values in self.by_value:
            value = get(values.attribute)
            if value is not None:
                entries = values.places.get(value) if type(value) in _LOOKED_UP else values.entries
                if entries:
                    asked.append(entries)
        return asked

    def asks_more_than(self, most: int) -> bool:
        """Do events ask more than so many on average, as far as can be told?"""
        return len(self.unkeyed) > most or (self.look_count >= _KNOWN and self.asked_count > most * self.look_count)

    def remove(self, handle: int) -> bool:
        """Remove a subscription; return whether it was here."""
        if self._entries.pop(handle, None) is None:
            return False
        self.removals[handle] = len(self.removals) + 1
        return True

    def view(self) -> OpenView:
        """Return the present set."""
        return OpenView(self, len(self), self._end, len(self.removals))

    def without(self, handles: Iterable[int]) -> OpenPart:
        """Return a new part of the others; this one stays as it is."""
        gone = frozenset(handles)
        return OpenPart.of(self._schema, (entry for entry in self.entries if entry.handle not in gone))

    @classmethod
    def of(cls, schema: Schema | None, entries: Iterable[OpenSubscription]) -> OpenPart:
        """Return a part of some entries, which come in the order of their handles."""
        part = cls(schema)
        for entry in entries:
            part.put(entry)
        return part


class OpenView:
    """What was open at one moment."""

    __slots__ = ("_count", "_end", "_part", "_removal_count")

    def __init__(self, part: OpenPart, count: int, end: int, removal_count: int) -> None:
        self._part = part
        self._count = count
        self._end = end
        self._removal_count = removal_count

    def __len__(self) -> int:
        return self._count

    def _sees(self, handle: int) -> bool:
        # Handles that came later are greater, and removals that came later have greater numbers.
        if handle >= self._end:
            return False
        removal = self._part.removals.get(handle)
        return removal is None or removal > self._removal_count

    def entries(self) -> Iterator[OpenSubscription]:
        """Yield what it sees, in the order of the handles."""
        return (entry for entry in list(self._part.everybody) if self._sees(entry.handle))

    def matches(self, event: Mapping[str, Any]) -> list[int]:
        """Return the handles of those that an event matches, in order."""
        part = self._part
        asked = part.asked_by(event)
        part.look_count += 1
        part.asked_count += sum(map(len, asked))
        candidates = {  # a set, because one may lie under several values of the event
            entry.handle for entries in asked for entry in entries if self._sees(entry.handle) and entry.holds(event)
        }
        return sorted(candidates)


def keys_of(expression: Expression) -> list[Key]:
    """Return the keys that an expression has; each of them would do.

    >>> import tamis
    >>> for key in keys_of(tamis.parse("price < 20 AND title IN ('a', 'b') AND (bids = 3 OR author = 'c' AND sold)")):
    ...     print(key)
    (('title', ('a', 'b')),)
    (('bids', (3,)), ('author', ('c',)))
    """
    match expression:
        case And(operands):
            return [key for operand in operands for key in keys_of(operand)]
        case Or(operands):
            keys = [min(keys_of(operand), key=_value_count, default=None) for operand in operands]
            joined = tuple(pair for key in keys if key is not None for pair in key)
            return [joined] if None not in keys and _value_count(joined) <= _MOST_VALUES else []
    match simple(expression):
        case SimplePredicate(operator, Attribute((name,)), values, False) if operator in ("=", IN):
            if len(values) <= _MOST_VALUES and all(map(_is_key, values)):
                return [((name, tuple(dict.fromkeys(values))),)]
    return []


def _value_count(key: Key) -> int:
    return sum(len(values) for _, values in key)


def _is_key(value: Any) -> bool:
    return type(value) is str or (type(value) is int and -_EXACT_IN_DOUBLES <= value <= _EXACT_IN_DOUBLES)
