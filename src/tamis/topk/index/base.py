"""What does every index promise?

It returns the slots of all subscriptions whose bound an event's measure does not exceed, and perhaps a few more, or
some of them twice. It may know bounds that are too large: those of regions that have shrunk meanwhile, or of
subscriptions that have gone. It may not know one that is too small, so it is told at once of those that have changed,
and of subscriptions that have come (`added`). Once too many have come or grown, it is stale, and a new one is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tamis.topk import kernels as scores
from tamis.topk.ageing import AGED
from tamis.topk.index import kernels

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.topk.kernels import Floats
    from tamis.topk.scoring import Group


class Shape(NamedTuple):
    """What an index knows of the scores of a group.

    The numbers of a weighted sum are its weights, of all other forms the centre, and behind it the weights.
    """

    form: int
    rows: int
    """How many coordinates of an event count, and how many numbers of a subscription say where it is."""
    numbers: Floats
    first: int
    """The row of an event's coordinates with which they begin."""

    def point(self, coordinates: Floats, place: int) -> Floats:
        """Return the coordinates of an event that count."""
        point: Floats = coordinates[self.first : self.first + self.rows, place].copy()
        return point


def shape_of(group: Group) -> Shape:
    """Return what an index knows of the scores of a group."""
    numbers, width = group.numbers, group.width
    match group.kind:
        case scores.LINEAR:
            return Shape(kernels.SUM, width, numbers, 0)
        case scores.EUCLIDEAN:
            return Shape(kernels.SQUARES, width, numbers, 0)
        case scores.GEOGRAPHIC:  # its squares have no weights
            return Shape(kernels.SQUARES, 3, np.concatenate([numbers[:3], np.ones((3, numbers.shape[1]))]), 0)
        case scores.COSINE:
            return Shape(kernels.SUM, width, group.sign * numbers[width + 1 :], width + 1)
        case kind:
            return Shape(kernels.GREATEST if kind == scores.BOX else kernels.GAPS, width, numbers, 0)


def is_indexable(group: Group) -> bool:
    """Has such a score regions that an index can tell apart: is the nearest best, and is there something near?"""
    return group.kind == scores.COSINE or (group.sign > 0 and group.family.kind not in ("shared", AGED))


class Index(ABC):
    """A way to find the subscriptions that an event concerns."""

    name: ClassVar[str]

    @abstractmethod
    def __init__(self, group: Group, bounds: Floats, sample: Floats) -> None:
        """Make an index of a group's slots; `sample` has the coordinates of some events, a column each."""

    @staticmethod
    def takes(group: Group) -> bool:
        """Can it index such scores?"""
        return True

    @abstractmethod
    def near(self, coordinates: Floats, place: int, bounds: Floats) -> npt.NDArray[np.int64]:
        """Return the slots that the event at this place may concern."""

    @abstractmethod
    def grown(self, slots: npt.NDArray[np.int64], bounds: Floats) -> None:
        """Take note that the bounds of some slots have changed."""

    @abstractmethod
    def added(self, slots: npt.NDArray[np.int64], bounds: Floats) -> None:
        """Take subscriptions that have come since: the index takes them in, or looks at them for every event.

        A slot may have been that of another subscription, with other numbers.
        """

    @property
    def is_stale(self) -> bool:
        """Should it be made anew?"""
        return False
