"""How do very many sequences of two steps take events, where the latest run is wanted? One event each, in arrays.

A sequence of two steps without PER, AFTER, references and absence, TAKING LATEST, needs the latest event of its first
step and nothing else. So all of them are three columns, and the matches of a whole batch go through one loop.

Source: one event per node is Jewel 2004, section 4.3 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.standing.kernels import follow
from tamis.standing.storage import decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Sequence as Listed

    from tamis.standing.kernels import Numbers
    from tamis.standing.runs import Plan

_FEW_IDS = 65_536
"""Below so many events it does not pay to look which of them are still needed."""


def fits(plan: Plan) -> bool:
    """Is a sequence one of these?"""
    return plan.is_simple and plan.length == 2 and not plan.is_absence and not plan.sequence.per


class LatestPairs:
    """The latest first events of all such sequences, by slot."""

    def __init__(self) -> None:
        self._slot_of: dict[int, int] = {}
        """By the number of a sequence."""
        self._numbers = np.zeros(0, np.int64)
        """By slot, the number; -1 where it is free."""
        self._free: list[int] = []
        self._within = np.zeros(0)
        self._at = np.zeros(0)
        self._order = np.zeros(0, np.int64)
        self._slots = np.zeros(0, np.int64)
        """By the matcher's handle."""
        self._is_last = np.zeros(0, np.bool_)
        self._ids: dict[int, Any] = {}
        """The ids of events, by their order."""
        self._most_ids = _FEW_IDS

    def __len__(self) -> int:
        return len(self._slot_of)

    def add(self, number: int, plan: Plan) -> None:
        """Let a sequence take events from now on; its two handles are its number and the next."""
        if not self._free:
            size = max(64, len(self._numbers))
            self._free = list(range(len(self._numbers) + size - 1, len(self._numbers) - 1, -1))
            self._numbers = np.append(self._numbers, np.full(size, -1))
            self._within, self._at = np.append(self._within, np.zeros(size)), np.append(self._at, np.zeros(size))
            self._order = np.append(self._order, np.zeros(size, np.int64))
        slot = self._free.pop()
        if number + 2 > len(self._slots):
            room = number + 2
            self._slots = np.append(self._slots, np.full(room, -1))
            self._is_last = np.append(self._is_last, np.zeros(room, np.bool_))
        self._slot_of[number] = slot
        self._numbers[slot], self._within[slot], self._at[slot] = number, plan.within, -math.inf
        for turn, step in enumerate(plan.turns):
            self._slots[number + turn], self._is_last[number + turn] = slot, step == 1

    def remove(self, number: int) -> None:
        """Forget a sequence."""
        slot = self._slot_of.pop(number)
        self._numbers[slot], self._at[slot] = -1, -math.inf
        self._free.append(slot)

    def take(
        self, rows: Numbers, handles: Numbers, times: Listed[float], ids: Listed[Any], order: int
    ) -> list[tuple[int, int, Any]]:
        """Take the matches of a batch, sorted; return of each run the row of its last event, whose it is, its first."""
        if not len(rows):
            return []
        told = np.empty((len(rows), 3), np.int64)
        count = follow(
            rows, handles, self._slots, self._is_last, np.array(times, np.float64), order,
            self._within, self._at, self._order, told,
        )  # fmt: skip
        firsts = np.unique(rows[~self._is_last[handles]]).tolist()
        self._ids |= {order + row: ids[row] for row in firsts}
        runs = told[:count]
        numbers = self._numbers[runs[:, 1]].tolist()
        ended = [
            (row, number, self._ids[first])
            for row, number, first in zip(runs[:, 0].tolist(), numbers, runs[:, 2].tolist(), strict=True)
        ]
        if len(self._ids) > self._most_ids:
            self._forget(times[-1])
        return ended

    def _forget(self, now: float) -> None:
        """Forget the ids of events that no sequence has any more."""
        kept = self._order[self._is_open(now)].tolist()
        self._ids = {order: self._ids[order] for order in kept}
        self._most_ids = max(_FEW_IDS, 2 * len(self._ids))

    def _is_open(self, now: float) -> Any:
        return (self._numbers >= 0) & (self._at > -math.inf) & (self._at + self._within >= now)

    # -- Saving

    def saved(self, number: int) -> list[Any]:
        """Return the state of a sequence, as `Sequences` writes it."""
        slot = self._slot_of[number]
        at, order = float(self._at[slot]), int(self._order[slot])
        if at == -math.inf or order not in self._ids:
            return []
        return [[encoded(()), [[[at, order, encoded(self._ids[order]), None]]], []]]

    def restore(self, number: int, data: list[Any]) -> None:
        """Take up the state of a sequence."""
        slot = self._slot_of[number]
        for _, ((run,),), _ in [(group, tuple(runs), alarms) for group, runs, alarms in data]:
            at, order, id, _ = run
            self._at[slot], self._order[slot] = float(at), int(order)
            self._ids[int(order)] = decoded(id)

    def open_count(self, now: float) -> int:
        """Return how many sequences have a first event that is not too old."""
        return int(self._is_open(now).sum())
