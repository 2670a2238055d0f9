"""How do the tables of rankings begin, and how do they grow?

Tables are tuples of arrays that go into compiled loops whole (`kernels`). A slice of the pool that becomes too small is
given up for a larger one behind all others, and once there is no more room, the slices are laid out anew: amortised
growth, as of a list.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.ragged import places_of, starts_of
from tamis.topk.block.kernels import Candidates, RankingWorkspace, Reports, SlotTable
from tamis.topk.kernels import Edges, Integers

if TYPE_CHECKING:
    import numpy.typing as npt

_FIRST_POOL = 1024
_FIRST_REPORTS = 4096


def slot_table(capacity: int, waiting: int) -> SlotTable:
    """Return a table with room for so many slots, all of them free, for each of which so many events can wait."""
    return SlotTable(
        handles=np.full(capacity, -1, np.int64),
        ks=np.ones(capacity, np.int64),
        spans=np.zeros(capacity),
        positions=np.zeros(capacity, np.int64),
        cursors=np.zeros(capacity, np.int64),
        checked=np.zeros(capacity, np.int64),
        offsets=np.zeros(capacity, np.int64),
        sizes=np.zeros(capacity, np.int64),
        rooms=np.zeros(capacity, np.int64),
        limits=np.zeros(capacity, np.int64),
        counts=np.zeros(capacity, np.int64),
        waiting=np.zeros((capacity, waiting), np.int32),
        edges=Edges(
            bounds=np.full(capacity, -math.inf),
            dues=np.full(capacity, math.inf),
            is_timed=np.zeros(capacity, np.bool_),
        ),
    )


def grown(table: SlotTable, capacity: int) -> SlotTable:
    """Return a table with more room, which begins with this one."""
    larger = slot_table(capacity, table.waiting.shape[1])
    columns: list[npt.NDArray[Any]] = [*table[:-1], *table.edges]
    larger_columns: list[npt.NDArray[Any]] = [*larger[:-1], *larger.edges]
    for column, larger_column in zip(columns, larger_columns, strict=True):
        larger_column[: len(column)] = column
    return larger


def candidates(room: int = _FIRST_POOL) -> Candidates:
    """Return room for so many candidates."""
    return Candidates(np.zeros(room), np.zeros(room, np.int64), np.zeros(room), np.zeros(room, np.bool_))


def laid_out(table: SlotTable, pool: Candidates, room: int) -> Candidates:
    """Move the slices of all rankings, one behind the other, to a pool with so much room; return that."""
    offsets = starts_of(table.rooms)[:-1]
    old, new = places_of(table.offsets, table.sizes), places_of(offsets, table.sizes)
    larger = candidates(room)
    for column, larger_column in zip(pool, larger, strict=True):
        larger_column[new] = column[old]
    table.offsets[:] = offsets
    return larger


def held_places(table: SlotTable) -> Integers:
    """Return where in the pool there are candidates."""
    return places_of(table.offsets, table.sizes)


def workspace(log_length: int, room: int, most_k: int) -> RankingWorkspace:
    """Return a workspace for rankings with a room of so many candidates at most, and a k of `most_k`."""
    return RankingWorkspace(
        ranking=candidates(room + log_length + 1),
        measures=np.zeros(log_length),
        best=np.zeros(most_k),
        youngest=np.zeros(most_k, np.int64),
        kept_keys=np.zeros(log_length),
        kept_places=np.zeros(log_length, np.int64),
    )


def reports(room: int = _FIRST_REPORTS) -> Reports:
    """Return room for so many reports."""
    return Reports(
        steps=np.zeros(room, np.int64),
        ats=np.zeros(room),
        owners=np.zeros(room, np.int64),
        numbers=np.zeros(room, np.int64),
        state=np.zeros(2, np.int64),
    )


def with_more_room(written: Reports) -> Reports:
    """Return reports with twice the room, which begin with these."""
    larger = reports(2 * len(written.steps))
    for column, larger_column in zip(written, larger, strict=True):
        larger_column[: len(column)] = column
    return larger
