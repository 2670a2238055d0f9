"""What if the counters lay in slices?

The bit-sliced counting array: bit 0 of 64 counters is one word, bit 1 of them another. Each predicate has a row with a
bit for each conjunction that asks for it; a hit adds the row to the counters with a carry from slice to slice, 64
conjunctions at a time, and at the end the slices are compared with those of what is needed.

    conjunctions  c3 c2 c1 c0         p3 and p5 hold
    row of p3      0  1  1  1         slice 0    0  1  0  0      hits of c2: 01, of c1 and c0: 10
    row of p5      0  0  1  1         slice 1    0  0  1  1

The array is as large as predicates times conjunctions, a bit each: that is why the source did not use it.

Source: Jewel 2004, section 2.1, on the two ways to count (docs/bibliography.md).
Departs: of a row only the words that are not empty are kept, so that it can be had at any size; `statistics` tells how
  many bytes the whole rows would take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tamis_lab.matching.conjunctive import Conjunctive, Pages
from tamis_lab.matching.surveyed import kernels

if TYPE_CHECKING:
    from tamis_lab.matching.kernels import LastPages, Outlet
    from tamis_lab.matching.predicates import Fulfilled, PredicateView
    from tamis_lab.matching.roll import Scratch


class CountingSliced(Conjunctive):
    """Hits against numbers of predicates, 64 at a time."""

    name: ClassVar[str] = "counting-sliced"

    def _laid_out(self, pages: Pages, view: PredicateView) -> SlicedIndex:
        return SlicedIndex(pages, view.number_count)

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            figures = super().statistics()
            index = self._index
            if isinstance(index, SlicedIndex):
                figures |= {"slices": index.table.needs.shape[1], "whole_rows_bytes": index.whole_rows_bytes}
            return figures


class SlicedIndex:
    """The rows of the predicates, and what each conjunction needs."""

    def __init__(self, pages: Pages, number_count: int) -> None:
        self.conjunction_count = len(pages.ends)
        lengths = np.diff(pages.ends, prepend=np.uint32(0)).astype(np.uint64)
        word_count = -(-self.conjunction_count // 64)
        owners = np.repeat(np.arange(self.conjunction_count), lengths.astype(np.int64))
        # Sorted by predicate and word; what falls together is one entry.
        places = pages.predicates.astype(np.int64) * max(1, word_count) + owners // 64
        order = np.argsort(places, kind="stable")
        entries, first = np.unique(places[order], return_index=True)
        bits = np.left_shift(np.uint64(1), (owners[order] % 64).astype(np.uint64))
        masks = np.bitwise_or.reduceat(bits, first) if len(first) else np.zeros(0, np.uint64)
        starts = np.searchsorted(entries // max(1, word_count), np.arange(number_count + 1))
        slice_count = max(1, int(lengths.max(initial=0)).bit_length())
        # Where there is no conjunction any more, all bits are needed: as many hits as there are nowhere.
        needed = np.full(word_count * 64, 2**slice_count - 1, np.uint64)
        needed[: self.conjunction_count] = lengths
        shifts = np.arange(64, dtype=np.uint64)
        needs = np.zeros((word_count, slice_count), np.uint64)
        for index in range(slice_count):
            ones = (needed >> np.uint64(index)) & np.uint64(1)
            needs[:, index] = (ones.reshape(word_count, 64) << shifts).sum(axis=1, dtype=np.uint64)
        self.table = kernels.SlicedTable(
            starts.astype(np.int64), (entries % max(1, word_count)).astype(np.uint32), masks, needs
        )
        self.whole_rows_bytes = number_count * word_count * 8

    def match(self, part: Fulfilled, begin: int, pages: LastPages, scratch: Scratch, out: Outlet) -> tuple[int, int]:
        words, slices = self.table.needs.shape
        counters = scratch.zeros("slices", words * slices, np.uint64).reshape(words, slices)
        room = (counters, scratch.zeros("bits", part.word_count, np.uint32))
        at, written = kernels.match_slices_of_columns(begin, (*part.lists, *self.table, *pages, *room, *out))
        return at, written

    def memory(self) -> int:
        return sum(array.nbytes for array in self.table)
