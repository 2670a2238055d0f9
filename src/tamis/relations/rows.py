"""How are the reaches of many filters kept, so that a compiled loop can compare them?

A cut is too rich for a loop, so it is *sketched*: as a 64-bit integer that keeps the order of cuts, though close ones
may become equal. What the sketches exclude is excluded; the rest is compared exactly. Rows come and go, and the
room of one that went is given to the next of its size.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.language.ranges.lines import DOUBLE, NUMBER, TEXT, Cut, as_double, double_key
from tamis.relations import kernels
from tamis.relations.kernels import ReachTable, RowLimits

if TYPE_CHECKING:
    from collections.abc import Iterable

Ints = npt.NDArray[np.int64]
Reach = tuple[int, int, int, int]
"""An axis, the sketches between which values lie on it, and marks: of a point its own, of a set those of all in it."""

_BITS = 59
ALL_MARKS = -1
LEAST, GREATEST = -(2**63), 2**63 - 1


def sketch(cut: Cut) -> int:
    """Return an integer that is never greater for a smaller cut.

    >>> sketch((TEXT, "abc")) < sketch((TEXT, "abd")), sketch((TEXT, "a" * 20)) == sketch((TEXT, "a" * 30))
    (True, True)
    """
    base = int(cut[0]) << _BITS
    if len(cut) == 1:
        return base
    rank, key = cut
    if rank == TEXT:
        start = key[:8].encode("utf-8", "surrogatepass")[:8].ljust(8, b"\0")
        return base + (int.from_bytes(start, "big") >> (64 - _BITS))
    if rank in (DOUBLE, NUMBER):
        ordinal = int(key) if rank == DOUBLE else double_key(as_double(key))
        return base + ((ordinal + 2**63) >> (64 - _BITS))
    return base + int(key)


def marks_of(cut: Cut) -> int:
    """Return a few bits for a value: of a set of values, all bits of each of them are marked (a Bloom filter)."""
    code = hash(cut)
    marks = 1 << (code & 63) | 1 << (code >> 6 & 63) | 1 << (code >> 12 & 63)
    return marks - (marks >> 63 << 64)


class ReachRows:
    """Rows of reaches, by number."""

    def __init__(self) -> None:
        self._table = ReachTable(
            starts=np.zeros(64, np.int64),
            counts=np.zeros(64, np.int32),
            axes=np.zeros(256, np.int32),
            lows=np.zeros(256, np.int64),
            highs=np.zeros(256, np.int64),
            marks=np.zeros(256, np.int64),
        )
        self._used = 0
        self._free: dict[int, list[int]] = {}  # room that was given back, by its size

    def put(self, row: int, reaches: list[Reach]) -> None:
        """Write a row that is not there."""
        count = len(reaches)
        table = self._table
        if row >= len(table.starts):
            table = table._replace(starts=grown(table.starts, row + 1), counts=grown(table.counts, row + 1))
        free = self._free.get(count)
        if free:
            start = free.pop()
        else:
            start = self._used
            self._used += count
            if self._used > len(table.axes):
                table = ReachTable(table.starts, table.counts, *(grown(column, self._used) for column in table[2:]))
        self._table = table
        table.starts[row], table.counts[row] = start, count
        for entry, (axis, low, high, bits) in enumerate(reaches, start):
            table.axes[entry], table.lows[entry], table.highs[entry], table.marks[entry] = axis, low, high, bits

    def drop(self, row: int) -> None:
        """Give a row's room back."""
        table = self._table
        self._free.setdefault(int(table.counts[row]), []).append(int(table.starts[row]))
        table.counts[row] = 0

    def reaching_around(self, candidates: Ints, point: Iterable[Reach], defaults: Ints) -> Ints:
        """Return the candidates that reach around a point, which has the default on all axes it does not name."""
        places, marks = defaults.copy(), np.zeros(len(defaults), np.int64)
        for axis, at, _, bits in point:
            places[axis], marks[axis] = at, bits
        numbers: Ints = np.empty(len(candidates), np.int64)
        kept = kernels.reaching_around(candidates, self._table, places, marks, numbers)
        return numbers[:kept]

    def staying_within(self, candidates: Ints, outer: Iterable[Reach], needed: Iterable[bool], axis_count: int) -> Ints:
        """Return the candidates, all of them points, that lie within some reaches, and name all axes needed."""
        lows, highs = np.full(axis_count, LEAST), np.full(axis_count, GREATEST)
        marks, are_needed = np.full(axis_count, ALL_MARKS, np.int64), np.zeros(axis_count, np.bool_)
        for (axis, low, high, bits), is_needed in zip(outer, needed, strict=True):
            lows[axis], highs[axis], marks[axis], are_needed[axis] = low, high, bits, is_needed
        numbers: Ints = np.empty(len(candidates), np.int64)
        limits = RowLimits(lows, highs, marks, are_needed, int(are_needed.sum()))
        kept = kernels.staying_within(candidates, self._table, limits, numbers)
        return numbers[:kept]


Bag = array
"""Row numbers in no order: an array of 64-bit integers, which most of the time holds only a few."""


def new_bag() -> Bag[int]:
    """Return an empty bag."""
    return array("q")


def discard(bag: Bag[int], row: int) -> None:
    """Take a row out of a bag; the last one takes its place."""
    at = bag.index(row)
    bag[at] = bag[-1]
    bag.pop()


def contents(bags: Iterable[Bag[int]]) -> Ints:
    """Return the rows of some bags, one behind the other."""
    return np.concatenate([np.empty(0, np.int64), *(np.frombuffer(bag, np.int64) for bag in bags if bag)])


def grown(array: npt.NDArray[Any], least: int) -> npt.NDArray[Any]:
    """Return a larger array that begins with this one."""
    larger = np.zeros(max(least, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger
