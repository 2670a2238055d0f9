"""How do many lists of different lengths lie in two arrays? One behind the other: compressed sparse rows (CSR).

Whatever has a few of something for each of many (the trees of a forest and their rows, predicates and the trees that
use them, subscriptions and the events that wait for them) is kept so, and goes into compiled loops as one value.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Value = TypeVar("Value", bound=np.generic)
Integers = npt.NDArray[np.int64]


class Ragged(NamedTuple, Generic[Value]):
    """Lists by number: list n is `values[starts[n] : starts[n + 1]]`.

    starts  int64[:]       one more than there are lists; the first is 0, none is less than the one before, and the last
                           is how many values there are. Narrower integers where a table is kept and saved
    values  any[:] or [:, :]    the members of all lists, a place or a row each

    The lists are counted by `list_count`, not by `len`, which is that of a tuple.

    >>> lists = Ragged.of_counts([2, 0, 1], np.array([7, 8, 9]))
    >>> lists.starts.tolist(), lists.members(0).tolist(), lists.members(1).tolist()
    ([0, 2, 2, 3], [7, 8], [])
    """

    starts: npt.NDArray[Any]
    values: npt.NDArray[Value]

    @classmethod
    def of_counts(
        cls, counts: npt.ArrayLike, values: npt.NDArray[Value], starts_type: npt.DTypeLike = np.int64
    ) -> Ragged[Value]:
        """Return lists of so many members each, which lie one behind the other already."""
        starts = starts_of(counts, starts_type)
        assert starts[-1] == len(values), "every member is in a list"
        return cls(starts, values)

    @classmethod
    def grouped(cls, owners: npt.NDArray[Any], values: npt.NDArray[Value], list_count: int) -> Ragged[Value]:
        """Return lists by owner, a number below `list_count`; in each the values keep their order.

        >>> Ragged.grouped(np.array([1, 0, 1]), np.array([7, 8, 9]), 3).values.tolist()
        [8, 7, 9]
        """
        counts = np.bincount(owners, minlength=list_count)
        return cls.of_counts(counts, values[np.argsort(owners, kind="stable")])

    @property
    def list_count(self) -> int:
        """How many lists there are."""
        return len(self.starts) - 1

    @property
    def counts(self) -> npt.NDArray[Any]:
        """How many members each list has."""
        return np.diff(self.starts)

    def chosen(self, numbers: npt.NDArray[Any]) -> Ragged[Value]:
        """Return some of the lists, by number or by a flag for each.

        >>> Ragged.of_counts([2, 0, 1], np.array([7, 8, 9])).chosen(np.array([2, 0])).values.tolist()
        [9, 7, 8]
        """
        counts = self.counts[numbers]
        return Ragged(starts_of(counts, self.starts.dtype), self.values[places_of(self.starts[:-1][numbers], counts)])

    def members(self, number: int) -> npt.NDArray[Value]:
        """Return the members of a list."""
        return self.values[self.starts[number] : self.starts[number + 1]]


def starts_of(counts: npt.ArrayLike, starts_type: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """Return where lists of these lengths begin, one behind the other, and at last where they end.

    >>> starts_of([2, 0, 1]).tolist()
    [0, 2, 2, 3]
    """
    lengths = np.asarray(counts)
    starts = np.zeros(len(lengths) + 1, starts_type)
    np.cumsum(lengths, out=starts[1:])
    return starts


def places_of(begins: npt.NDArray[Any], counts: npt.NDArray[Any]) -> Integers:
    """Return where the members of slices lie: those of the first slice, from its begin on, then those of the second.

    >>> places_of(np.array([10, 3]), np.array([2, 3])).tolist()
    [10, 11, 3, 4, 5]
    """
    starts = starts_of(counts)
    places: Integers = np.repeat(begins - starts[:-1], counts) + np.arange(int(starts[-1]))
    return places
