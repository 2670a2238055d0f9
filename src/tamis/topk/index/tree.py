"""Which subscriptions does an event concern? Search a tree of boxes around their numbers.

Subscriptions with like numbers share a leaf. A node knows the box around the numbers below it, and the greatest bound;
so from an event's coordinates follows how small a measure can be there at best, and where that is still too large,
nobody below is concerned. The boxes never change, because the numbers do not; bounds that grow are passed up at once,
those that shrink are gathered from time to time. For distances this is a ball tree, for weighted sums the same over
their weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.ragged import Ragged
from tamis.topk.index import kernels
from tamis.topk.index.base import Index, is_indexable, shape_of

if TYPE_CHECKING:
    from tamis.topk.kernels import Floats
    from tamis.topk.scoring import Group

_LEAF = 16
_GATHERED_EVERY = 256
_STALE_SHARE = 16


class MedianTree(Index):
    """A complete binary tree over the slots, split at the median of the widest dimension."""

    name: ClassVar[str] = "tree"

    def __init__(self, group: Group, bounds: Floats, sample: Floats) -> None:
        self._shape = shape = shape_of(group)
        rows, numbers = shape.rows, shape.numbers
        slots = np.flatnonzero(~np.isnan(group.numbers[0, : group.slots]))
        self._known = np.full(group.numbers.shape[1], -np.inf)
        levels = max(0, int(np.ceil(np.log2(max(1, len(slots)) / _LEAF))))
        nodes = 2 ** (levels + 1) - 1
        leaves = _split(numbers[:rows], slots, levels)
        self._leaves = np.full(group.numbers.shape[1], -1, np.int64)
        lows, highs = np.full((rows, nodes), np.inf), np.full((rows, nodes), -np.inf)
        least = np.ones((rows, nodes))
        weights = numbers[rows : 2 * rows] if shape.form != kernels.SUM else None
        first_leaf = nodes >> 1  # a complete tree: half of its nodes, and one more, are leaves
        for node in range(nodes - 1, -1, -1):
            if node >= first_leaf:
                here = leaves.members(node - first_leaf)
                self._leaves[here] = node
                if len(here):
                    lows[:, node] = numbers[:rows, here].min(axis=1)
                    highs[:, node] = numbers[:rows, here].max(axis=1)
                    if weights is not None:
                        least[:, node] = weights[:, here].min(axis=1)
            else:
                below = [2 * node + 1, 2 * node + 2]
                lows[:, node] = lows[:, below].min(axis=1)
                highs[:, node] = highs[:, below].max(axis=1)
                least[:, node] = least[:, below].min(axis=1)
        self._boxes = kernels.Boxes(shape.form, lows, highs, least, np.full(nodes, -np.inf), leaves)
        self._stack = np.zeros(2 * levels + 4, np.int64)
        self._found = np.zeros(len(slots), np.int64)
        self._queries = 0
        self._count = len(slots)
        self._loose = slots[:0]
        """Those that came later: they are looked at for every event."""
        self._fresh: list[int] = []
        kernels.gather_bounds(self._boxes, bounds, self._known)

    def added(self, slots: npt.NDArray[np.int64], bounds: Floats) -> None:
        if len(bounds) > len(self._known):
            missing = len(bounds) - len(self._known)
            self._known = np.append(self._known, np.full(missing, -np.inf))
            self._leaves = np.append(self._leaves, np.full(missing, -1, np.int64))
        # They belong to no leaf: one that was in another's place is looked for where the other one stood.
        self._known[slots] = np.inf
        self._fresh += slots.tolist()

    @property
    def is_stale(self) -> bool:
        return len(self._loose) + len(self._fresh) > max(64, self._count // _STALE_SHARE)

    @staticmethod
    def takes(group: Group) -> bool:
        return is_indexable(group)

    def near(self, coordinates: Floats, place: int, bounds: Floats) -> npt.NDArray[np.int64]:
        self._queries += 1
        if self._queries % _GATHERED_EVERY == 0:
            kernels.gather_bounds(self._boxes, bounds, self._known)
        x = self._shape.point(coordinates, place)
        if self._fresh:
            self._loose = np.union1d(self._loose, self._fresh)
            self._fresh = []
        if np.isnan(x).any():
            return self._loose
        count = kernels.tree_search(self._boxes, x, self._stack, self._found)
        return np.concatenate([self._found[:count], self._loose]) if len(self._loose) else self._found[:count]

    def grown(self, slots: npt.NDArray[np.int64], bounds: Floats) -> None:
        kernels.raise_bounds(self._boxes, slots, bounds, self._known, self._leaves)


def _split(numbers: Floats, slots: npt.NDArray[np.int64], levels: int) -> Ragged[np.int64]:
    """Order slots so that each node of a complete tree has a run of them; return those of the leaves."""
    order = slots.copy()
    nodes = 2 ** (levels + 1) - 1
    starts, ends = np.zeros(nodes + 1, np.int64), np.zeros(nodes + 1, np.int64)
    ends[0] = len(slots)
    for node in range(nodes >> 1):
        begin, end = starts[node], ends[node]
        middle = (begin + end) // 2
        here = numbers[:, order[begin:end]]
        if end - begin > 1:
            widest = int(np.argmax(here.max(axis=1) - here.min(axis=1)))
            order[begin:end] = order[begin:end][np.argpartition(here[widest], middle - begin)]
        for child, low, high in ((2 * node + 1, begin, middle), (2 * node + 2, middle, end)):
            starts[child], ends[child] = low, high
    # The runs of the leaves lie one behind the other, so a leaf ends where the next begins.
    starts[nodes] = len(slots)
    return Ragged(starts[nodes >> 1 :], order)
