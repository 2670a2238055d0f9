"""What is registered? The catalogue of subscriptions, by handle.

Algorithms know subscriptions by *handles*; this is what people know of them, by handle: ids, conditions, priorities,
metadata. Handles are given out in order and never given out again, so a match that began before a change still finds
the names of what it found. What was removed leaves its place behind; when most places are such, the living move to a
new register with new handles, and whoever still matches goes on with the old one:

    handle    0      1      2      3                    handle    0      1
    id        a      -      -      d      becomes       id        a      d       in the order of registration, as before
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.matching import kernels
from tamis.matching.destinations import Destinations
from tamis.matching.errors import BadTableError, DuplicateIdError, UnknownIdError
from tamis.matching.leases import Leases
from tamis.matching.sources import Sources
from tamis.matching.tables import Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping

    from tamis.matching.base import Handles

_FREE_PLACES_KEPT = 1024
"""So many places that nobody has any more are no reason for a new register."""
_HANDLE_BITS = 32
"""A handle needs no more: each has an id and a text, and so many texts fit into no memory."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What was registered under an id."""

    id: Any
    text: str
    priority: int = 0
    metadata: Any = None
    destination: Any = None
    until: float | None = None
    """When it ends by itself; None if it does not."""


class Register:
    """Subscriptions by handle. `Matcher` changes it under its lock; whoever has handles may read their names without.

    >>> from tamis.matching.tables import Rows
    >>> register = Register()
    >>> register.enter(Rows(["cheap", "signed"], ["price < 20", "signed"], [0, 1]))
    >>> register.in_order(np.array([0, 1])).tolist()
    [1, 0]
    >>> register.names(np.array([1, 0]))
    ['signed', 'cheap']
    """

    def __init__(self) -> None:
        self.handles: dict[Hashable, int] = {}
        """Of the living, in the order of registration."""
        self.ids: list[Any] = []
        """By handle, those of the dead included."""
        self.sources = Sources()
        self.metadata: dict[int, Any] = {}
        """Of those who have any; it stays as long as the place."""
        self.destinations = Destinations()
        """Whoever matches by destination takes it along with the snapshot: it is replaced when it is worn."""
        self.priorities: npt.NDArray[np.int64] | None = None
        """By handle, with room for more; None as long as all of them are 0."""
        self.leases: Leases[Any] = Leases()
        """When subscriptions end, by id, of those who do."""
        self._integers: npt.NDArray[np.int64] | None = np.zeros(0, np.int64)
        """By handle, with room for more; None once an id is not an integer of 64 bits."""
        self.is_numbered = False
        """Whether ids were integers so far: the column of no matches at all has their type too."""
        self._types: set[type] = set()
        """Of which types ids were so far."""
        self._objects: npt.NDArray[Any] | None = None
        self._held_count = 0
        """How many places of the dead the last renumbering could not free."""

    def __len__(self) -> int:
        """How many places there are, those of the dead included."""
        return len(self.ids)

    # -- Coming and going

    def check_new(self, ids: list[Any], leaving: Collection[Any] = ()) -> None:
        """Raise if ids are there twice, or taken by others than those who leave."""
        new = set(ids)
        taken = self.handles.keys() & new  # as many steps as there are new ones: those that are there may be a million
        if len(new) == len(ids) and all(each in leaving for each in taken):
            return
        seen = {each for each in taken if each not in leaving}
        for each in ids:
            if each in seen:
                raise DuplicateIdError(each)
            seen.add(each)

    def enter(self, rows: Rows) -> None:
        """Take new subscriptions, whose ids are free."""
        first, ids = len(self.ids), rows.ids
        new = dict(zip(ids, range(first, first + len(ids)), strict=True))
        if self.handles:
            self.handles |= new
        else:
            self.handles = new
        self.ids += ids
        self._note_integers(first, ids)
        self.sources.extend(rows.conditions)
        if rows.metadata is not None:
            self.metadata |= {first + at: each for at, each in enumerate(rows.metadata) if each is not None}
        if self.priorities is not None or any(rows.priorities or ()):
            self._note_priorities(first, np.array(rows.priorities or [0] * len(ids), np.int64))
        if rows.destinations is not None:
            self.destinations.extend(first, rows.destinations)
        if rows.untils is not None:
            for each, until in zip(ids, rows.untils, strict=True):
                self.leases.lease(each, until)
        self._objects = None

    def leave(self, ids: Iterable[Hashable]) -> None:
        """Let subscriptions go, which are there."""
        for each in ids:
            handle = self.handles.pop(each)
            self.leases.forget(each)
            self.sources.forget(handle)
            self.destinations.forget(handle)
        if self.destinations.is_worn:
            self.destinations = self.destinations.renewed(self.sources.alive)

    def handles_of(self, ids: Iterable[Hashable]) -> dict[Hashable, int]:
        """Return the handles of some, each asked for once; raise if one is not there."""
        handles: dict[Hashable, int] = {}
        for each in ids:
            handle = self.handles.get(each)
            if handle is None or each in handles:
                raise UnknownIdError(each)
            handles[each] = handle
        return handles

    def _note_integers(self, first: int, ids: list[Any]) -> None:
        types = set(map(type, ids))
        self._types |= types
        if self._integers is None or not ids:
            return
        if types - {int}:
            self._integers, self.is_numbered = None, False
            return
        try:
            new = np.fromiter(ids, np.int64, len(ids))
        except OverflowError:
            self._integers, self.is_numbered = None, False
            return
        # A little room only: at a million subscriptions every byte counts.
        integers = self._integers
        if len(integers) < first + len(ids):
            integers = np.zeros(first + len(ids) + (first >> 2), np.int64)
            integers[:first] = self._integers[:first]
        integers[first : first + len(ids)] = new
        self._integers, self.is_numbered = integers, True

    def _note_priorities(self, first: int, priorities: npt.NDArray[np.int64]) -> None:
        known = np.zeros(0, np.int64) if self.priorities is None else self.priorities
        if len(known) < len(self.ids):
            grown = np.zeros(max(1024, 2 * len(self.ids)), np.int64)
            grown[: len(known)] = known
            known = grown
        known[first : first + len(priorities)] = priorities
        self.priorities = known

    def rows(self) -> Rows:
        """Return all that is there as rows, where nobody has left."""
        priorities = None if self.priorities is None else self.all_priorities().tolist()
        metadata = list(map(self.metadata.get, range(len(self)))) if self.metadata else None
        destinations = list(map(self.destinations.name_of, range(len(self))))
        untils = list(map(self.leases.end_of, self.ids)) if len(self.leases) else None
        return Rows(self.ids, list(self.sources), priorities, metadata, destinations, untils)

    # -- New handles for old

    @property
    def is_worn(self) -> bool:
        """Do most places belong to nobody any more, as far as new handles could free them?

        What a segment holds of the dead is free only when the segment is merged. To try again before as many others
        have died would cost all places at every removal.
        """
        free = len(self.ids) - len(self.handles) - self._held_count
        return free > max(_FREE_PLACES_KEPT, len(self.handles), self._held_count)

    def living(self) -> Handles:
        """Return the handles of those who are registered, in order."""
        return np.fromiter(self.handles.values(), np.int64, len(self.handles))

    def renumbered(self, kept: Handles) -> Register:
        """Return a register of some places, all of the living among them; this one stays as it is."""
        fresh = Register()
        places = kept.tolist()
        fresh.ids = [self.ids[place] for place in places]
        fresh.handles = dict(zip(self.handles, np.searchsorted(kept, self.living()).tolist(), strict=True))
        fresh.sources = self.sources.chosen(kept)
        fresh.leases = self.leases  # which go by id
        fresh.destinations = self.destinations.renumbered(self.sources.alive, kept)
        if self.metadata:
            fresh.metadata = {new: self.metadata[old] for new, old in enumerate(places) if old in self.metadata}
        if self.priorities is not None:
            fresh._note_priorities(0, self.priorities[kept])
        fresh._integers = None if self._integers is None else self._integers[kept]
        fresh.is_numbered, fresh._types = self.is_numbered, set(self._types)
        fresh._held_count = len(kept) - len(self.handles)
        return fresh

    def all_priorities(self) -> npt.NDArray[np.int64]:
        """Return the priority of every place."""
        count = len(self.ids)
        return np.zeros(count, np.int64) if self.priorities is None else self.priorities[:count].copy()

    def urgent(self, first: int = 0) -> tuple[list[int], npt.NDArray[np.int64]]:
        """Return the handles from some one on whose priority is not 0, and their priorities."""
        if self.priorities is None:
            return [], np.zeros(0, np.int64)
        priorities = self.all_priorities()[first:]
        places = np.flatnonzero(priorities)
        return (first + places).tolist(), priorities[places]

    # -- Names of what was found

    def in_order(self, handles: Handles) -> Handles:
        """Return handles in the order in which people see them: the highest priority first, then by registration."""
        handles = np.sort(handles)
        priorities = self.priorities
        return handles if priorities is None else handles[np.argsort(-priorities[handles], kind="stable")]

    def in_order_by_event(self, events: Handles, handles: Handles) -> tuple[Handles, Handles]:
        """Return matches by event, and those of each event in the order in which people see them."""
        if self.priorities is not None:
            order = np.lexsort((handles, -self.priorities[handles], events))
            return events[order], handles[order]
        both = (events << _HANDLE_BITS) | handles  # one sort of numbers takes a tenth of the time of a sort by two
        both.sort()
        return both >> _HANDLE_BITS, both & ((1 << _HANDLE_BITS) - 1)

    def ranks(self, handles: Handles) -> npt.NDArray[np.int64]:
        """Return priorities."""
        return 0 * handles if self.priorities is None else self.priorities[handles]

    def names(self, handles: Handles) -> list[Any]:
        """Return the ids of handles."""
        integers, ids = self._integers, self.ids
        if integers is not None:  # new integers cost less than looking for the registered ones all over the memory
            return integers[handles].tolist()  # type: ignore[no-any-return]
        return [ids[handle] for handle in handles.tolist()]

    def column(self, handles: Handles) -> pa.Array:
        """Return the ids of handles, in the same memory where they are numbers: matches may be many."""
        integers = self._integers
        if integers is not None and self.is_numbered:
            if len(handles) <= _RENAMED_WITHOUT_KERNEL:  # a call of a kernel takes longer
                return integer_column(integers[handles])
            kernels.rename(handles, integers)
            return integer_column(handles)
        values = self._all_objects()[handles].tolist()
        types = self._types
        return union_of(values, types) if is_union(types) else column_of(values, "ids")

    def array(self, handles: Handles) -> npt.NDArray[Any]:
        """Return the ids of handles: numbers where all ids are, and objects otherwise."""
        integers = self._integers
        return self._all_objects()[handles] if integers is None else integers[handles]

    def _all_objects(self) -> npt.NDArray[Any]:
        count, objects = len(self.ids), self._objects
        if objects is None or len(objects) < count:
            objects = self._objects = np.fromiter(islice(self.ids, count), object, count)
        return objects

    def record(self, subscription_id: Hashable, handle: int) -> Subscription:
        """Return what is registered under a handle."""
        source = self.sources[handle]
        priority = 0 if self.priorities is None else int(self.priorities[handle])
        destination = self.destinations.name_of(handle)
        until = self.leases.end_of(subscription_id)
        return Subscription(subscription_id, str(source), priority, self.metadata.get(handle), destination, until)

    def memory(self) -> int:
        """Return the bytes of ids, texts and priorities, roughly; metadata is not counted."""
        ids = sys.getsizeof(self.handles) + sys.getsizeof(self.ids) + sum(map(sys.getsizeof, self.handles))
        arrays = sum(array.nbytes for array in (self.priorities, self._integers) if array is not None)
        return ids + arrays + self.sources.memory() + self.destinations.memory()

    def restore(
        self,
        ids: list[Any],
        sources: Sources,
        priorities: npt.NDArray[np.int64],
        metadata: Mapping[int, Any],
        destinations: Destinations,
        untils: Mapping[int, float],
    ) -> None:
        """Take back what was saved."""
        living = np.flatnonzero(sources.alive).tolist()
        self.ids, self.sources, self.metadata, self.destinations = ids, sources, dict(metadata), destinations
        self.handles = {ids[handle]: handle for handle in living}
        if len(self.handles) < len(living):
            raise BadTableError("two subscriptions have one id")
        for handle, until in untils.items():
            self.leases.lease(ids[handle], until)
        if priorities.any():
            self._note_priorities(0, priorities)
        self._note_integers(0, ids)


_INTEGER = pa.int64()
_RENAMED_WITHOUT_KERNEL = 256
_UNITED: dict[type, pa.DataType] = {
    bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary(),
}  # fmt: skip
"""What ids of several types become together, in the order of a union's members."""


def is_union(types: Collection[type]) -> bool:
    """Do values of these types need a column of several types, and have one? Integers and doubles are both numbers.

    >>> is_union({int, str}), is_union({int, float}), is_union({str, tuple})
    (True, False, False)
    """
    return len(types) > 1 and not set(types) <= {int, float} and set(types) <= _UNITED.keys()


def union_of(values: list[Any], types: Collection[type]) -> pa.Array:
    """Return values of several types as a column, a dense union, which gives each of them back as it was.

    >>> column = union_of([7, "seven", 8], {str, int})
    >>> str(column.type), column.to_pylist()
    ('dense_union<int: int64=0, str: string=1>', [7, 'seven', 8])
    """
    members = [each for each in _UNITED if each in types]
    numbers = {each: number for number, each in enumerate(members)}
    codes = np.fromiter((numbers[type(value)] for value in values), np.int8, len(values))
    places = np.zeros(len(values), np.int32)
    children = []
    for number, member in enumerate(members):
        rows = np.flatnonzero(codes == number)
        places[rows] = np.arange(len(rows))
        try:
            children.append(pa.array([values[row] for row in rows.tolist()], _UNITED[member]))
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as error:
            raise BadTableError(f"an id of type {member.__name__} has no column: {error}; use others") from None
    names = [member.__name__ for member in members]
    return pa.UnionArray.from_dense(pa.array(codes), pa.array(places), children, names)


def integer_column(values: Handles) -> pa.Array:
    """Return integers as a column, in the same memory; `pa.array` does that too, and takes twice as long to find out.

    >>> integer_column(np.array([3, 1])).to_pylist()
    [3, 1]
    """
    return pa.Array.from_buffers(_INTEGER, len(values), [None, pa.py_buffer(values)])


def column_of(values: list[Any], what: str) -> pa.Array:
    """Return values that people gave as a column."""
    try:
        return pa.array(values, None if values else pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        raise BadTableError(
            f"{what} of several types cannot share a column; match events one by one, or use one type"
        ) from None
