"""Where does a curve of times bend upwards, and how far?

The thesis' curves rise slowly at first and faster from some number of subscriptions on, which it explains by the
counters: they no longer fit into the processor's cache. A conjunctive system has a counter for each conjunction, so
its knee should come so many times earlier as a subscription has conjunctions.

A *knee* is where two straight lines that meet there fit a curve best, by least squares, if the second is so much
steeper that it is not noise. One line may be as good: then there is no knee, and nothing that is said of one holds.

Source: Bittner 2008, section 5.7 (docs/bibliography.md), which reads knees off its figures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Judgement

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tamis_lab.experiments.base import Claim
    from tamis_lab.experiments.statements import Judge

    Numbers: TypeAlias = npt.NDArray[np.float64]

FEWEST_POINTS = 5
"""Two lines have four numbers: among fewer points everything is a knee."""
STEEPER = 1.25
"""So many times steeper is the second line at least."""
BETTER = 0.5
"""What is left of the squares of one line's errors, at most."""
_PLACES = 301


@dataclass(frozen=True, slots=True)
class Knee:
    """Where a curve bends upwards.

    >>> knee = knee_of([1, 2, 3, 4, 5, 6], [1.0, 2.0, 3.0, 6.0, 9.0, 12.0])
    >>> round(knee.at, 2), round(knee.steeper, 2)
    (3.0, 3.0)
    """

    at: float
    steeper: float
    """How many times steeper it is from there on."""


def knee_of(x: Sequence[float], y: Sequence[float]) -> Knee | None:
    """Return the knee of a curve; None if it has none, or too few points for one.

    >>> knee_of([1, 2, 3, 4, 5, 6], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    """
    if len(x) < FEWEST_POINTS:
        return None
    across, up = np.asarray(x, np.float64), np.asarray(y, np.float64)
    bends = np.linspace(across[1], across[-2], _PLACES)  # each line has two points at least
    left, lines = _fitted(across, up, np.append(bends, across[-1]))
    best, straight = int(np.argmin(left[:-1])), float(left[-1])
    if straight <= 1e-9 * float(np.sum(up**2)) or left[best] > BETTER * straight:
        return None
    before, after = float(lines[best, 1]), float(lines[best, 1] + lines[best, 2])
    if after <= STEEPER * max(before, 0.0):
        return None
    return Knee(float(bends[best]), after / max(before, 1e-9 * after))


def _fitted(x: Numbers, y: Numbers, bends: Numbers) -> tuple[Numbers, Numbers]:
    """Return the squares of the errors of two lines that meet at a bend, and their numbers, for each of some bends.

    At the last point of all the second line has no length: that is one straight line.
    """
    x, bends, scale = x / x[-1], bends / x[-1], x[-1]
    behind = np.maximum(x[None, :] - bends[:, None], 0.0)
    columns = np.stack([np.ones_like(behind), np.broadcast_to(x, behind.shape), behind], axis=2)
    lines = np.linalg.pinv(columns) @ y
    left = np.sum((np.einsum("bij,bj->bi", columns, lines) - y) ** 2, axis=1)
    return left, lines / np.array([1.0, scale, scale])


def judged_knee(judged: Judge, counts: Sequence[int], times: Sequence[float], published: int, name: str) -> Claim:
    """Judge where the knee of a curve is: not at all if the sizes of the run end before, or are too few."""
    knee = knee_of(counts, times)
    claim = judged("knee", knee.at if knee else float(published), name=name)
    if knee:
        return replace(claim, ours=f"{claim.ours}, from where it is {verdicts.rounded(knee.steeper)} times as steep")
    if len(counts) < FEWEST_POINTS or counts[-1] <= published:
        why = f"The run has {len(counts)} sizes up to {counts[-1]:,}, which cannot show it."
        return replace(claim, verdict=Judgement.UNMEASURED, ours="not reached", remark=why, figures=None)
    why = "One straight line fits as well."
    return replace(claim, verdict=Judgement.PREMISE, ours=f"none up to {counts[-1]:,}", remark=why, figures=None)


def judged_ratio(
    judged: Judge, counts: Sequence[int], slow: Sequence[float], fast: Sequence[float], name: str
) -> Claim:
    """Judge how many times later the second of two curves has its knee."""
    first, second = knee_of(counts, slow), knee_of(counts, fast)
    claim = judged("knee-ratio", second.at / first.at if first and second else 1.0, name=name)
    if first and second:
        return claim
    if len(counts) < FEWEST_POINTS:
        why = f"The run has {len(counts)} sizes, which cannot show a knee."
        return replace(claim, verdict=Judgement.UNMEASURED, ours="not reached", remark=why, figures=None)
    who = "neither curve has" if not first and not second else "one of the curves does not have"
    why = f"Up to {counts[-1]:,}, {who} a knee: one straight line fits as well."
    return replace(claim, verdict=Judgement.PREMISE, ours=f"{who} one", remark=why, figures=None)
