"""Whose entries does a matched filter stand for? Lists that grow in one array: compressed rows with room to spare.

Equal filters of clients are matched once. Beside the number under which a filter is matched stands the list of the
entries that want it, in the order in which they came. Lists change with every subscription, and are read for thousands
of matches at once. So all of them lie in one array; a list that has no more room moves to the end, with room for twice
as many, and when half of the array lies waste, all are moved together:

    starts      0     2     3               list 1 grows:      starts     0     4     3
    counts      2     1     1                                  counts     2     2     1
    members     a b | c | d                                    members    a b | - | d | c e
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_FIRST_LENGTH = 64
"""Arrays have at least so many places."""


class Holders:
    """Lists of entries, by the number of a filter.

    >>> holders = Holders()
    >>> holders.add(2, 70), holders.add(0, 71), holders.add(2, 72)
    (None, None, None)
    >>> counts, entries = holders.of(np.array([2, 0]))
    >>> counts.tolist(), entries.tolist(), holders.remove(2, 70), len(holders)
    ([2, 1], [70, 72, 71], 1, 2)
    """

    def __init__(self) -> None:
        self._starts: Integers = np.zeros(_FIRST_LENGTH, np.int64)
        self._counts: Integers = np.zeros(_FIRST_LENGTH, np.int64)
        self._rooms: Integers = np.zeros(_FIRST_LENGTH, np.int64)
        self._members: Integers = np.zeros(_FIRST_LENGTH, np.int64)
        self._end = 0
        self._waste = 0
        """How many places before the end belong to no list."""
        self._held = 0

    def __len__(self) -> int:
        """How many members all lists have."""
        return self._held

    def add(self, number: int, entry: int) -> None:
        """Put an entry at the end of a list."""
        if number >= len(self._starts):
            self._starts, self._counts, self._rooms = (
                _longer(array, number + 1) for array in (self._starts, self._counts, self._rooms)
            )
        count = int(self._counts[number])
        if count == self._rooms[number]:
            self._move(number, count)
        self._members[self._starts[number] + count] = entry
        self._counts[number] = count + 1
        self._held += 1

    def _move(self, number: int, count: int) -> None:
        room = max(1, 2 * count)
        if self._waste + count > max(_FIRST_LENGTH, self._end // 2):
            self._compact()
        if self._end + room > len(self._members):
            self._members = _longer(self._members, self._end + room)
        begin = self._starts[number]
        self._members[self._end : self._end + count] = self._members[begin : begin + count]
        self._waste += int(self._rooms[number])
        self._starts[number], self._rooms[number] = self._end, room
        self._end += room

    def _compact(self) -> None:
        """Move all lists together, each without room to spare."""
        numbers = np.flatnonzero(self._counts)
        counts, members = self.of(numbers)
        self._rooms[:] = 0
        self._rooms[numbers] = counts
        self._starts[numbers] = np.cumsum(counts) - counts
        self._members = _longer(members, max(_FIRST_LENGTH, 2 * len(members)))
        self._end, self._waste = len(members), 0

    def remove(self, number: int, entry: int) -> int:
        """Take an entry out of a list; return how many are left in it."""
        begin, count = int(self._starts[number]), int(self._counts[number])
        members = self._members[begin : begin + count]
        place = int(np.flatnonzero(members == entry)[0]) if count > 1 else 0
        assert members[place] == entry
        members[place:-1] = members[place + 1 :].copy()
        self._counts[number] = count - 1
        self._held -= 1
        if count == 1:  # nobody may ever come back to this list
            self._waste += int(self._rooms[number])
            self._rooms[number] = 0
        return count - 1

    def of(self, numbers: Integers) -> tuple[Integers, Integers]:
        """Return how many members some lists have, and the members of all of them, list after list."""
        counts, starts = self._counts[numbers], self._starts[numbers]
        total = int(counts.sum())
        if total == len(numbers) and (counts == 1).all():  # as most are
            return counts, self._members[starts]
        firsts = np.cumsum(counts) - counts
        places = np.arange(total) - np.repeat(firsts - starts, counts)
        return counts, self._members[places]


def _longer(array: Integers, least: int) -> Integers:
    grown = np.zeros(max(least, 2 * len(array)), np.int64)
    grown[: len(array)] = array
    return grown
