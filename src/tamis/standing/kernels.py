"""The compiled loop of changes: who is new among those that match, and who is missing."""

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
