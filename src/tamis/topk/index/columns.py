"""Which subscriptions does an event concern? Ask all of them: bounds and numbers in columns, one loop.

No structure to keep, and few operations for a subscription, several at once. This is hard to beat where regions are
large, scores have many dimensions, or subscriptions are not that many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tamis.topk.index.base import Index

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.topk.kernels import Floats
    from tamis.topk.scoring import Group


class SlotColumns(Index):
    """All slots."""

    name: ClassVar[str] = "columns"

    def __init__(self, group: Group, bounds: Floats, sample: Floats) -> None:
        self._group = group

    def near(self, coordinates: Floats, place: int, bounds: Floats) -> npt.NDArray[np.int64]:
        return np.arange(self._group.slots)

    def grown(self, slots: npt.NDArray[np.int64], bounds: Floats) -> None:
        """Nothing is remembered of bounds."""

    def added(self, slots: npt.NDArray[np.int64], bounds: Floats) -> None:
        """All slots are looked at anyway."""
