"""What does every index promise?

It returns the slots of all subscriptions whose bound an event's measure does not exceed, and perhaps a few more, or
some of them twice. It may know bounds that are too large: those of regions that have shrunk meanwhile, or of
subscriptions that have gone. It may not know one that is too small, so it is told at once of those that have changed,
and of subscriptions that have come (`added`). Once too many have come or grown, it is stale, and a new one is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tamis.topk.kernels import Floats
    from tamis.topk.scoring import Group


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
