"""Which subscriptions does an event concern? Those that are listed in its cell of a grid.

The space of the events is cut into cells of equal size, between the least and the greatest coordinates of a sample; the
cells at the rim reach to infinity. Every cell lists the subscriptions whose regions reach into it, by bounds that are a
little larger than they are, so that a region may grow somewhat before its list is wrong. A region that grows beyond
that is looked at for every event until the lists are made anew.

Source: Pripužić 2010, section 3.6.1 (docs/bibliography.md).
Departs: lists are not changed when a bound moves, but made anew from time to time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.ragged import Ragged, starts_of
from tamis.topk.index import kernels
from tamis.topk.index.base import Index, is_indexable, shape_of

if TYPE_CHECKING:
    from tamis.topk.kernels import Floats
    from tamis.topk.scoring import Group

_LINEAR_CELLS = 256
"""A half-space reaches into a good part of all cells, so there are fewer of them."""
_MOST_ROWS = 6
_OUTER_SHARE = 1.25
"""Regions are listed in the cells of a larger one, so that they are not listed anew whenever they grow a little."""
_TINY = 1e-300
"""Squares so small may have become nothing."""
_STALE_SHARE = 16
_STALE_QUERIES = 8192


class Grid(Index):
    """Lists of slots by cells."""

    name: ClassVar[str] = "grid"
    most_cells: ClassVar[int] = 4096
    """Along each axis there are as many as make up so many at most, and two at least."""

    def __init__(self, group: Group, bounds: Floats, sample: Floats) -> None:
        self._shape = shape = shape_of(group)
        rows, numbers = shape.rows, shape.numbers
        cells = _LINEAR_CELLS if shape.form == kernels.SUM else self.most_cells
        resolution = max(2, int(cells ** (1 / rows) + 1e-9))
        sampled = sample[shape.first : shape.first + rows]
        points = sampled[:, np.isfinite(sampled).all(axis=0)]
        if not points.shape[1]:
            points = np.zeros((rows, 1))
        origin = points.min(axis=1)
        step = np.maximum((points.max(axis=1) - origin) / resolution, 1e-300)
        self._cells = kernels.Cells(shape.form, resolution, origin, step)
        slots = np.flatnonzero(~np.isnan(group.numbers[0, : group.slots]))
        self._count = len(slots)
        self._known = np.full(group.numbers.shape[1], -np.inf)
        self._known[slots] = self._roomy(numbers[:, slots], bounds[slots])
        listed = slots[np.isfinite(self._known[slots])]
        self._loose = np.setdiff1d(slots, listed)
        # Count first, then list: a cell's slots lie one behind the other.
        counts = np.zeros(resolution**rows, np.int64)
        nobody = np.zeros(0, np.int64)
        kernels.cells_of_regions(self._cells, numbers, listed, self._known, counts, nobody, True)
        starts = starts_of(counts)
        self._slots: Ragged[np.int64] = Ragged(starts, np.zeros(int(starts[-1]), np.int64))
        kernels.cells_of_regions(
            self._cells, numbers, listed, self._known, starts[:-1].copy(), self._slots.values, False
        )
        self._queries = 0
        self._fresh: list[int] = []
        """Loose ones that are not among them yet."""

    def _roomy(self, numbers: Floats, bounds: Floats) -> Floats:
        if self._cells.form != kernels.SUM:
            return bounds * _OUTER_SHARE + _TINY
        reach = np.abs(numbers[: self._shape.rows]).T @ (self._cells.step * self._cells.resolution)
        roomy: Floats = bounds + (_OUTER_SHARE - 1) / 4 * reach
        return roomy

    @staticmethod
    def takes(group: Group) -> bool:
        return is_indexable(group) and group.width <= _MOST_ROWS

    def near(self, coordinates: Floats, place: int, bounds: Floats) -> npt.NDArray[np.int64]:
        self._queries += 1
        if self._fresh:
            self._loose = np.union1d(self._loose, self._fresh)
            self._fresh = []
        x = self._shape.point(coordinates, place)
        cell = kernels.cell_of(self._cells, x)
        if cell < 0:
            return self._loose
        return np.concatenate([self._slots.members(cell), self._loose])

    def grown(self, slots: npt.NDArray[np.int64], bounds: Floats) -> None:
        beyond = slots[bounds[slots] > self._known[slots]]
        if len(beyond):
            self._known[beyond] = np.inf
            self._loose = np.union1d(self._loose, beyond)

    def added(self, slots: npt.NDArray[np.int64], bounds: Floats) -> None:
        if len(bounds) > len(self._known):
            self._known = np.append(self._known, np.full(len(bounds) - len(self._known), -np.inf))
        # What stands here was listed by other numbers, or nowhere.
        self._known[slots] = np.inf
        self._fresh += slots.tolist()

    @property
    def is_stale(self) -> bool:
        is_loose = len(self._loose) + len(self._fresh) > max(64, self._count // _STALE_SHARE)
        return (is_loose and self._queries > 64) or self._queries > _STALE_QUERIES
