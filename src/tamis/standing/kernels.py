"""The compiled loops: who is new among those that match, and who is missing; which second events follow a first one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.compilation import kernel

Numbers = npt.NDArray[np.int64]


@kernel
def compare_sorted(
    matching: Numbers,
    held: Numbers,
    entering: Numbers,
    missing: Numbers,
) -> tuple[int, int]:
    """Find what is in one sorted list and not in the other; return how many of each there are.

    matching   int64[:]  who matches now, sorted, each once
    held       int64[:]  who matched before, sorted, each once
    entering   int64[:]  written: who matches now and did not; at least as long as `matching`
    missing    int64[:]  written: who did and does not now; at least as long as `held`
    """
    entering_count = missing_count = 0
    place = 0
    for index in range(len(matching)):
        wanted = matching[index]
        while place < len(held) and held[place] < wanted:
            missing[missing_count] = held[place]
            missing_count += 1
            place += 1
        if place < len(held) and held[place] == wanted:
            place += 1
        else:
            entering[entering_count] = wanted
            entering_count += 1
    while place < len(held):
        missing[missing_count] = held[place]
        missing_count += 1
        place += 1
    return entering_count, missing_count


@kernel
def merge_sorted(
    held: Numbers,
    entering: Numbers,
    leaving: Numbers,
    merged: Numbers,
) -> None:
    """Write who is held from now on: those who were, without those who leave, and those who enter; all sorted."""
    count = gone = place = 0
    for index in range(len(entering)):
        while place < len(held) and held[place] < entering[index]:
            if gone < len(leaving) and leaving[gone] == held[place]:
                gone += 1
            else:
                merged[count] = held[place]
                count += 1
            place += 1
        merged[count] = entering[index]
        count += 1
    while place < len(held):
        if gone < len(leaving) and leaving[gone] == held[place]:
            gone += 1
        else:
            merged[count] = held[place]
            count += 1
        place += 1


@kernel
def follow(
    rows: Numbers,
    handles: Numbers,
    slots: Numbers,
    is_last: npt.NDArray[np.bool_],
    times: npt.NDArray[np.float64],
    order: int,
    within: npt.NDArray[np.float64],
    latest_at: npt.NDArray[np.float64],
    latest_order: Numbers,
    told: npt.NDArray[np.int64],
) -> int:
    """Let sequences of two steps take the matches of a batch; return how many runs end.

    rows, handles    int64[:]     the matches, sorted by both: an event of the batch, and a step
    slots, is_last   by handle    whose step it is, and whether it is the last of the two
    times            float64[:]   by row: when the event came; its order is `order` and the row
    within           float64[:]   by slot: the most seconds between the two events
    latest_at        float64[:]   by slot: when the latest first event came; updated
    latest_order     int64[:]     by slot: its order; updated
    told             int64[:, 3]  written: row, slot and order of the first event of each run; a row for every match
    """
    count = 0
    for index in range(len(rows)):
        row, slot = rows[index], slots[handles[index]]
        if not is_last[handles[index]]:
            latest_at[slot] = times[row]
            latest_order[slot] = order + row
        elif times[row] <= latest_at[slot] + within[slot]:
            told[count, 0], told[count, 1], told[count, 2] = row, slot, latest_order[slot]
            count += 1
    return count
