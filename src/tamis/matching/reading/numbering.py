"""Which lists were there before? Interning: equal lists have one number, counted from 0 as they come.

Source: hashing with open addressing and linear probing (Knuth, The Art of Computer Programming 3, section 6.4); a table
  is never more than half full.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.matching.reading import kernels
from tamis.matching.reading.kernels import NumberedLists
from tamis.ragged import Ragged

Ints = npt.NDArray[np.int64]


class KeyNumbers:
    """Lists of one sort, numbered as they come.

    >>> numbering = KeyNumbers(np.int64)
    >>> numbering.numbers(np.array([7, 8, 7, 8, 9]), np.array([0, 2, 4]), np.array([2, 4, 5])).tolist()
    [0, 0, 1]
    >>> numbering.lists.members(0).tolist(), len(numbering)
    ([7, 8], 2)
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self.table = NumberedLists(
            np.zeros(2, np.int64),
            np.full(1 << 13, -1, np.int64),
            np.zeros(1 << 12, np.uint64),
            np.zeros(1 << 12, np.int64),
            np.zeros(1 << 14, dtype),
        )

    def numbers(self, values: npt.NDArray[Any], begins: Ints, ends: Ints) -> Ints:
        """Return the number of each of some lists."""
        numbers, done = np.empty(len(begins), np.int64), 0
        while True:
            done = kernels.number_lists(values, begins, ends, done, self.table, numbers)
            if done == len(begins):
                return numbers
            self._make_room(int(ends[done] - begins[done]))

    def _make_room(self, least: int) -> None:
        counts, slots, hashes, starts, values = self.table
        if counts[1] + least > len(values):
            values = _grown(values, 2 * len(values) + least)
        if counts[0] + 1 >= len(hashes):
            hashes, starts = _grown(hashes, 2 * len(hashes)), _grown(starts, 2 * len(starts))
            slots = np.empty(2 * len(slots), np.int64)
            kernels.fill_slots(hashes, counts[0], slots)
        self.table = NumberedLists(counts, slots, hashes, starts, values)

    @property
    def lists(self) -> Ragged[Any]:
        """All lists by number."""
        counts, _, _, starts, values = self.table
        return Ragged(starts[: counts[0] + 1], values[: counts[1]])

    def __len__(self) -> int:
        return int(self.table.counts[0])


def _grown(column: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    grown = np.zeros(size, column.dtype)
    grown[: len(column)] = column
    return grown
