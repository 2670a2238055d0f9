"""Which conjunctions have as many hits as predicates?

The counting algorithm. Each predicate has the list of the conjunctions that ask for it. For every predicate that an
event fulfils, the counters of those on its list go up by one; afterwards a conjunction matches whose counter has
reached its number of predicates.

    fulfilled        p3             p5           p8
    lists            c0 c1 c4       c0 c1        c0 c2          one counter up for each entry
    hits             c0 3    c1 2    c2 1    c4 1
    needs               3       3       2       4               c0 matches

Its time goes into the lists: that of a popular predicate is as long as there are conjunctions that ask for it, and each
entry is a counter somewhere in memory. Comparing the counters is cheap, 64 of them at a time.

Source: Yan and Garcia-Molina 1994, as described in Bittner 2008, section 2.3.3 (docs/bibliography.md).
Departs: two conjunctions of one subscription are reported once. Counters have 16 bits once somebody has more than 255
  predicates. The lists are written in one go, and what came since is asked directly (see `conjunctive`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.ragged import Ragged
from tamis_lab.matching import kernels
from tamis_lab.matching.conjunctive import Conjunctive, Pages

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis_lab.matching.predicates import Fulfilled, Numbers, PredicateView
    from tamis_lab.matching.roll import Scratch


class Counting(Conjunctive):
    """Hits against numbers of predicates."""

    name: ClassVar[str] = "counting"

    def __init__(self, schema: Schema | None = None, *, is_shuffled: bool = False) -> None:
        super().__init__(schema)
        self.is_shuffled = is_shuffled
        """Whether lists are in random order, as they would be after a long life of removals; by default they ascend."""

    def _laid_out(self, pages: Pages, view: PredicateView) -> CountingIndex:
        return CountingIndex(pages, view.number_count, self.is_shuffled)

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            figures = super().statistics()
            index = self._index
            if isinstance(index, CountingIndex):
                figures["payload_bytes"] = {
                    "fulfilled predicates": (self._predicates.number_count + 7) // 8,
                    "hits": index.conjunction_count * index.needs.itemsize,
                    "predicate counts": index.conjunction_count * index.needs.itemsize,
                    "predicate-subscription associations": index.associations.values.nbytes,
                    "subscription-predicate associations": self._book.pages.predicates.nbytes,
                }
            return figures


class CountingIndex:
    """The lists of the predicates, and what each conjunction needs."""

    def __init__(self, pages: Pages, number_count: int, is_shuffled: bool) -> None:
        self.conjunction_count = len(pages.ends)
        self.associations = associations(pages.predicates, pages.ends, number_count, is_shuffled)
        lengths = np.diff(pages.ends, prepend=np.uint32(0))
        self.needs = counters(lengths, int(lengths.max(initial=0)))

    def match(
        self, part: Fulfilled, begin: int, pages: kernels.LastPages, scratch: Scratch, out: kernels.Outlet
    ) -> tuple[int, int]:
        room = (
            scratch.zeros("hits", len(self.needs), self.needs.dtype),
            scratch.empty("candidates", len(self.needs) + 64, np.uint32),
            scratch.zeros("bits", part.word_count, np.uint32),
        )
        at, written = kernels.match_counts_of_columns(
            begin, (*part.lists, *self.associations, self.needs, *pages, *room, *out)
        )
        return at, written

    def memory(self) -> int:
        return sum(array.nbytes for array in (*self.associations, self.needs))


def associations(
    predicates: Numbers, ends: npt.NDArray[np.uint32], number_count: int, is_shuffled: bool = False
) -> Ragged[np.uint32]:
    """Return the predicate-subscription association table: for each predicate the list of those who ask for it.

    A record that has a predicate twice is on its list twice: hits are counted by occurrence.

    >>> starts, lists = associations(np.array([2, 0, 2, 2], np.uint32), np.array([2, 4], np.uint32), 3)
    >>> starts.tolist(), lists.tolist()
    ([0, 1, 1, 4], [0, 0, 1, 1])
    """
    starts = np.zeros(number_count + 1, np.int64)
    kernels.count_associations(predicates, starts)
    lists = np.empty(len(predicates), np.uint32)
    kernels.write_associations(predicates, ends, starts.copy(), lists)
    if is_shuffled:
        chance = np.random.default_rng(len(lists))
        groups = np.repeat(np.arange(number_count), np.diff(starts))
        lists = lists[np.lexsort((chance.random(len(lists)), groups))]
    return Ragged(starts, lists)


def counters(needed: npt.NDArray[Any], most: int) -> npt.NDArray[Any]:
    """Return how many hits each needs, in bytes if the `most` hits fit, filled up to a whole block of 64.

    >>> counters(np.array([3, 1]), most=300)[:4].tolist()
    [3, 1, 65535, 65535]
    """
    dtype = np.uint8 if most < 256 else np.uint16
    padded = np.full(-(-len(needed) // 64) * 64, np.iinfo(dtype).max, dtype)
    padded[: len(needed)] = needed
    return padded
