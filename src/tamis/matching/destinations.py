"""Where do the matches of a subscription go? Destinations, numbered.

A subscription may have a *destination*: the neighbour, the subscriber, the queue that wants to know of an event, no
matter by which of its subscriptions. Destinations are numbered as they come, from 1 on; a subscription without one has
the number 0. A number stays what it is as long as the table lives. When most destinations have lost their last
subscription, the rest moves to a new table, and whoever still matches with the old one goes on with that.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tamis.matching.errors import BadTableError

Numbers: TypeAlias = npt.NDArray[np.uint32]

_UNUSED_KEPT = 64
"""So many destinations that nobody has any more are no reason for a new table."""


class Destinations:
    """The destinations of subscriptions, by handle.

    >>> destinations = Destinations()
    >>> destinations.extend(0, ["north", None, "north", "south"])
    >>> destinations.of(np.arange(4)).tolist(), destinations.names[1:]
    ([1, 0, 1, 2], ['north', 'south'])
    """

    def __init__(self) -> None:
        self.names: list[Any] = [None]
        """By number."""
        self._numbers: dict[Hashable, int] = {}
        self._counts: list[int] = [0]
        """How many living subscriptions each has."""
        self._unused = 0
        """How many destinations have none."""
        self._by_handle: Numbers = np.zeros(0, np.uint32)
        """With room for more; those behind its end have none."""

    def __len__(self) -> int:
        """How many numbers there are, 0 included."""
        return len(self.names)

    def extend(self, first: int, given: Sequence[Hashable]) -> None:
        """Take the destinations of new subscriptions, handle after handle; None for none."""
        numbers = np.zeros(len(given), np.uint32)
        for place, name in enumerate(given):
            if name is None:
                continue
            number = self._numbers.setdefault(name, len(self.names))
            if number == len(self.names):
                self.names.append(name)
                self._counts.append(0)
            elif not self._counts[number]:
                self._unused -= 1
            self._counts[number] += 1
            numbers[place] = number
        if not numbers.any():
            return
        end = first + len(given)
        if len(self._by_handle) < end:
            grown = np.zeros(max(64, end + (end >> 2)), np.uint32)
            grown[: len(self._by_handle)] = self._by_handle
            self._by_handle = grown
        self._by_handle[first:end] = numbers

    @classmethod
    def restored(cls, names: list[Any], numbers: npt.NDArray[np.int64]) -> Destinations:
        """Return what `saved` gave."""
        table = cls()
        table.names, table._by_handle = [None, *names], numbers.astype(np.uint32)
        table._numbers = {name: number for number, name in enumerate(names, 1)}
        table._counts = np.bincount(numbers, minlength=len(table.names)).tolist()
        table._unused = table._counts[1:].count(0)
        if len(table._counts) > len(table.names) or len(table._numbers) < len(names) or None in names:
            raise ValueError("destinations of other subscriptions")
        return table

    def saved(self, alive: npt.NDArray[np.bool_]) -> tuple[list[Any], npt.NDArray[np.int64]]:
        """Return the destinations of the living, and of each handle the number of its own among them, from 1 on."""
        numbers = np.where(alive, self.of(np.arange(len(alive))), 0)
        used, places = np.unique(numbers, return_inverse=True)
        is_none_used = len(used) > 0 and used[0] == 0
        names = [self.names[number] for number in used.tolist() if number]
        return names, places.astype(np.int64) + (not is_none_used)

    def of(self, handles: npt.NDArray[np.int64]) -> Numbers:
        """Return the number of each handle's destination."""
        by_handle = self._by_handle
        if not len(by_handle):
            return np.zeros(len(handles), np.uint32)
        numbers = by_handle[np.minimum(handles, len(by_handle) - 1)]
        numbers[handles >= len(by_handle)] = 0
        return numbers

    def name_of(self, handle: int) -> Any:
        """Return the destination of a subscription; None if it has none."""
        return self.names[self._by_handle[handle]] if handle < len(self._by_handle) else None

    def forget(self, handle: int) -> None:
        """Let a removed subscription go. Its number stays, for whoever is matching with it."""
        number = int(self._by_handle[handle]) if handle < len(self._by_handle) else 0
        if number:
            self._counts[number] -= 1
            self._unused += not self._counts[number]

    def living(self) -> list[Any]:
        """Return the destinations that a living subscription has, in the order in which they came."""
        return [name for name, count in zip(self.names[1:], self._counts[1:], strict=True) if count]

    @property
    def is_worn(self) -> bool:
        """Have most of its destinations lost their last subscription?"""
        return self._unused > max(_UNUSED_KEPT, len(self.names) // 2)

    def renewed(self, alive: npt.NDArray[np.bool_]) -> Destinations:
        """Return a table of the living; this one stays as it is, for whoever is matching with it."""
        return Destinations.restored(*self.saved(alive))

    def renumbered(self, alive: npt.NDArray[np.bool_], kept: npt.NDArray[np.int64]) -> Destinations:
        """Return a table of the living under other handles: the n-th that is kept is n; this one stays as it is."""
        names, numbers = self.saved(alive)
        return Destinations.restored(names, numbers[kept])

    def copy(self) -> Destinations:
        """Return the present table, whatever is registered and removed later."""
        copied = Destinations()
        copied.names, copied._counts, copied._unused = self.names.copy(), self._counts.copy(), self._unused
        copied._numbers, copied._by_handle = self._numbers.copy(), self._by_handle.copy()
        return copied

    def memory(self) -> int:
        """Return its bytes, roughly."""
        return self._by_handle.nbytes + 100 * len(self.names)


def named(given: Mapping[Any, Hashable] | Iterable[Hashable], ids: Sequence[Any]) -> list[Any] | None:
    """Return the destination of each of some subscriptions, None where it has none; None too where nobody has one.

    >>> named({"cheap": "north"}, ["cheap", "signed"]), named(["north", None], ["cheap", "signed"])
    (['north', None], ['north', None])
    """
    if isinstance(given, Mapping):
        ids = [each if _is_hashable(each) else None for each in ids]  # a bad id is refused elsewhere
        unknown = given.keys() - set(ids)
        if unknown:
            raise BadTableError(
                f"destinations of subscriptions that are not registered here: {', '.join(map(repr, unknown))}"
            )
        names = [given.get(each) for each in ids]
    elif isinstance(given, str | bytes):
        raise BadTableError(f"destinations must be a list, or a mapping from ids, not the text {given!r}")
    else:
        names = list(given)
        if not names:
            return None
        if len(names) != len(ids):
            raise BadTableError(
                f"{len(ids)} subscriptions and {len(names)} destinations; use None for a subscription without one"
            )
    for name in names:
        if not _is_hashable(name):
            raise BadTableError(
                f"a destination must be a text, a number or anything else that is hashable, not {name!r}"
            )
    return names


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
