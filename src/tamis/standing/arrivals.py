"""What do the states need to know of a batch? Its events by columns: when they came, their ids, and their groups.

What is done for each event in Python is what a batch costs, where few events lead to a notification; so everything here
is asked for all events at once, and made only if somebody asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.standing.groups import groups_of
from tamis.standing.sequences import Arrived

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.matching.columns import Events
    from tamis.standing.groups import Group, Paths
    from tamis.standing.kernels import Numbers


class StandingBatch:
    """Events in order, each for the first time.

    >>> from tamis.matching.columns import Events
    >>> batch = StandingBatch(Events([{"user": "ann"}, {"user": "bob"}]), [0.0, 1.0], ["e1", "e2"], 7)
    >>> batch.groups((("user",),)), batch.single_ids[1]
    ([('ann',), ('bob',)], ('e2',))
    """

    def __init__(self, events: Events, times: list[float], ids: list[Any], order: int) -> None:
        self.events = events
        self.times = times
        self.ids = ids
        self.order = order
        """The place of the first among all events."""
        self.moments = np.array(times, np.float64)
        self._groups: dict[Paths, list[Group]] = {}
        self._mappings: Sequence[Mapping[str, Any]] | None = None
        self._single_ids: list[tuple[Any]] | None = None

    def __len__(self) -> int:
        return len(self.times)

    @property
    def has_ties(self) -> bool:
        """Do two of the events have one time?"""
        return bool((self.moments[1:] == self.moments[:-1]).any())

    @property
    def mappings(self) -> Sequence[Mapping[str, Any]]:
        """The events as mappings."""
        if self._mappings is None:
            self._mappings = self.events.mappings()
        return self._mappings

    @property
    def single_ids(self) -> list[tuple[Any]]:
        """The ids, as a notification of one event has them."""
        if self._single_ids is None:
            self._single_ids = list(zip(self.ids, strict=True))
        return self._single_ids

    def arrived(self, row: int) -> Arrived:
        """Return one of the events, as states take it that take them one by one."""
        groups = {per: groups[row] for per, groups in self._groups.items()}
        return Arrived(self.times[row], self.order + row, self.ids[row], self.mappings[row], groups)

    def one(self, row: int) -> StandingBatch:
        """Return one of the events, as a batch."""
        return StandingBatch(self.events.slice(row, 1), [self.times[row]], [self.ids[row]], self.order + row)

    def bounds(self, rows: Numbers) -> Numbers:
        """Return where each event's part of some sorted rows begins, and behind the last where it ends."""
        if len(self) == 1:
            return np.array([0, len(rows)], np.int64)
        return np.searchsorted(rows, np.arange(len(self) + 1))

    def groups(self, per: Paths) -> list[Group]:
        """Return the group of every event by some attributes."""
        groups = self._groups.get(per)
        if groups is None:
            groups = self._groups[per] = groups_of(self.events, per)
        return groups
