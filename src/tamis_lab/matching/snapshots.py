"""How do events pass through the two phases?

First the predicates that they fulfil, then what the algorithm makes of them. A batch goes through in blocks, and a
block in as many pieces as the predicate phase hands on; a single event is a batch of one.
"""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.matching.base import Handles, Pairs, Snapshot
from tamis_lab.matching.kernels import Outlet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.matching.columns import Events
    from tamis_lab.matching.predicates import Fulfilled, PredicateView
    from tamis_lab.matching.roll import Roll, Scratch

BLOCK = 8192
"""How many events are encoded at once."""
ROOM = 1 << 16


class PhasedSnapshot(Snapshot):
    """What an algorithm knows at one moment, behind the predicate phase."""

    def __init__(self, view: PredicateView, roll: Roll, scratch: Scratch) -> None:
        self.view = view
        self._handles, self._deaths, self._version = roll.handles, roll.deaths, roll.version
        self._scratch = scratch

    @abstractmethod
    def write(self, part: Fulfilled, begin: int, out: Outlet) -> tuple[int, int]:
        """Write the events and slots of all matches, from event `begin` on, each once, and of the dead if it likes.

        Return the next event and how many were written. It ends early where there might be no room for all slots.
        """

    def match_event(self, event: Mapping[str, Any], among: Handles | None = None) -> Handles:
        handles = self.match_part(self.view.fulfilled_by_one(event))[1]
        return handles if among is None else handles[np.isin(handles, among)]

    def match_events(self, events: Events, among: Handles | None = None, threads: int = 1) -> Pairs:
        starts = range(0, events.count, BLOCK)

        def block(start: int) -> list[Pairs]:
            some = events if events.count <= BLOCK else events.slice(start, BLOCK)
            pairs = (self.match_part(part) for part in self.view.fulfilled(some))
            return [(numbers + start, handles) for numbers, handles in pairs]

        if threads > 1 and len(starts) > 1:
            with ThreadPoolExecutor(threads) as pool:
                pieces = list(chain(*pool.map(block, starts)))
        else:
            pieces = list(chain(*map(block, starts)))
        numbers, handles = joined(pieces)
        if among is None:
            return numbers, handles
        is_asked = np.isin(handles, among)
        return numbers[is_asked], handles[is_asked]

    def match_part(self, part: Fulfilled) -> Pairs:
        """Return the matches of some events, given the predicates that they fulfil."""
        room = len(self._handles) + ROOM
        out = Outlet(self._scratch.empty("events", room, np.uint32), self._scratch.empty("slots", room, np.uint32))
        events, all_slots = out
        pieces: list[Pairs] = []
        at, event_count = 0, part.event_count
        while at < event_count:
            at, written = self.write(part, at, out)
            slots = all_slots[:written]
            is_alive = self._deaths[slots] > self._version
            numbers = events[:written][is_alive].astype(np.int64) + part.first
            pieces.append((numbers, self._handles[slots[is_alive]]))
        return joined(pieces)


def joined(pairs: list[Pairs]) -> Pairs:
    """Join matches, one behind the other."""
    if len(pairs) == 1:
        return pairs[0]
    empty = np.zeros(0, np.int64)
    return (
        np.concatenate([empty, *(numbers for numbers, _ in pairs)]),
        np.concatenate([empty, *(handles for _, handles in pairs)]),
    )
