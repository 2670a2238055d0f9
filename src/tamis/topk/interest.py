"""Which rankings does an event interest, by their thresholds? An index over moving filters.

An algorithm with a threshold ignores what is beyond it. So a subscription's region of interest is a ball, a half-space,
a cone, that moves with the threshold, and an index over these regions finds for an event the few that have to look at
it; the same search finds who tries an event again that leaves the recent buffer. The index is told at once of a
threshold that has become looser; of one that has become tighter it may learn later.

Source: Pripužić 2010, section 3.6.1 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tamis.topk import kernels as scores
from tamis.topk.index import kernels as searching
from tamis.topk.index.choice import INDEXES
from tamis.topk.index.columns import SlotColumns

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.language.meaning import Event
    from tamis.topk.index.base import Index
    from tamis.topk.scoring import Group

_SAMPLE = 256
_FIRST_INDEX = 64
"""After so many events, which show where events are, the first index is made."""


class ThresholdIndex:
    """The thresholds of a group's subscriptions, and an index over them."""

    def __init__(self, group: Group, index: str) -> None:
        self._group = group
        self._kind = INDEXES[index] if INDEXES[index].takes(group) else SlotColumns
        self._index: Index | None = None
        self._handles = np.full(0, -1, np.int64)
        self._bounds = np.full(0, -math.inf)
        self._is_sought = np.zeros(0, np.bool_)
        self._stamps = np.zeros(0, np.int64)
        self._stamp = 0
        self._coordinates = np.full((group.coordinate_rows, _SAMPLE + 1), math.nan)
        self._place = 0
        self._seen = 0
        self._key = np.empty(1)
        self._bound = np.empty(1)

    def add(self, slot: int, handle: int, *, is_sought: bool) -> None:
        """Take a subscription, which at first everything interests, or which nobody seeks by its threshold."""
        capacity = self._group.numbers.shape[1]
        if capacity > len(self._bounds):
            missing = capacity - len(self._bounds)
            self._handles = np.append(self._handles, np.full(missing, -1, np.int64))
            self._bounds = np.append(self._bounds, np.full(missing, -math.inf))
            self._is_sought = np.append(self._is_sought, np.zeros(missing, np.bool_))
            self._stamps = np.append(self._stamps, np.zeros(missing, np.int64))
        self._handles[slot], self._bounds[slot] = handle, math.inf if is_sought else -math.inf
        self._is_sought[slot] = is_sought
        if self._index is not None and is_sought:
            self._index.added(np.array([slot]), self._bounds)

    def remove(self, slot: int) -> None:
        """Forget a subscription."""
        self._handles[slot], self._bounds[slot] = -1, -math.inf
        self._is_sought[slot] = False

    def moved(self, slot: int, key: float) -> None:
        """Set a subscription's threshold, as a key."""
        self._key[0] = key
        scores.measure_bounds(self._group.scores, self._key, self._bound)
        is_looser = self._bound[0] > self._bounds[slot]
        self._bounds[slot] = self._bound[0]
        if is_looser and self._index is not None:
            self._index.grown(np.array([slot]), self._bounds)

    def read(self, event: Event, *, is_sampled: bool) -> None:
        """Look at an event, of which the next questions are; where sampled ones are, indexes are finer."""
        self._place = self._seen % _SAMPLE if is_sampled else _SAMPLE
        self._group.read(event, self._coordinates, self._place)
        if not is_sampled:
            return
        self._seen += 1
        if self._seen % _FIRST_INDEX == 0 and (self._index is None or self._index.is_stale):
            self._index = self._kind(self._group, self._bounds, self._coordinates[:, : min(self._seen, _SAMPLE)])

    def interested(self) -> dict[int, float]:
        """Return the handles of the subscriptions that the event interests, each with the event's key for it."""
        slots = self._near()
        concerned = np.empty(len(slots), np.int64)
        self._stamp += 1
        event = self._group.scores, self._coordinates, self._place
        count = searching.concerned_slots(slots, *event, self._bounds, self._stamps, self._stamp, concerned)
        sought = concerned[:count][self._is_sought[concerned[:count]]]
        keys = np.empty(len(sought))
        scores.keys_of_slots(event[0], sought, *event[1:], keys)
        return dict(zip(self._handles[sought].tolist(), keys.tolist(), strict=True))

    def key(self, slot: int) -> float:
        """Return the key of the event for one subscription."""
        scores.keys_of_slots(self._group.scores, np.array([slot]), self._coordinates, self._place, self._key)
        return float(self._key[0])

    def _near(self) -> npt.NDArray[np.int64]:
        group = self._group
        if self._index is None or not group.is_plain(self._coordinates, self._place):
            return np.arange(group.slots)
        return self._index.near(self._coordinates, self._place, self._bounds)
