"""How does a stream go through one ranking?

In random order only ranks matter, so one subscription with independent scores stands for all. A recent buffer, where
there is one, is played here: what leaves it tries again before the next arrival is inserted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tamis.topk.algorithms import ranking_for
from tamis.topk.base import Candidate
from tamis.topk.closed_form import entering_times
from tamis.topk.ranked import Ranked
from tamis.topk.recent_buffer import Filtered
from tamis.topk.settings import FILTERED, FILTERS, TopKSettings
from tamis.topk.windows import CountWindow
from tamis_lab.experiments.errors import DisagreementError
from tamis_lab.experiments.measuring import cpu_s

if TYPE_CHECKING:
    from tamis.topk.base import Ranking
    from tamis_lab.experiments.topk.points import Points

SHORT = {"strict": "S", "relaxed": "R", "probabilistic": "P"}
VARIANTS: dict[str, tuple[str, str | None]] = {
    **{f"{SHORT[name]}A": (name, None) for name in SHORT},
    **{f"{SHORT[name]}A{SHORT[each]}F": (name, each) for name in FILTERED for each in FILTERS},
}
"""The nine algorithms by the names of the thesis: SA, RA, PA, SASF, SARF, SAPF, RASF, RARF, RAPF."""


def ranking_of(name: str, k: int, n: int, buffer: int) -> Ranking:
    """Return a new ranking of one of the nine kinds."""
    algorithm, filter_ = VARIANTS[name]
    return ranking_for(algorithm, TopKSettings(filter_, buffer=buffer, guard=False), Ranked("x", k, CountWindow(n)))


@dataclass(frozen=True, slots=True)
class Played:
    """What became of a stream."""

    entered: dict[int, int]
    """The place at which each event entered the best k."""
    size: float
    """How many events were kept on average, once the window was full; behind a filter, without the filter's own."""
    filter_size: float
    threshold: float
    """The average threshold while there was one."""
    event_s: float


def play(ranking: Ranking, keys: Points, n: int) -> Played:
    """Let a stream go through a ranking."""
    entered: dict[int, int] = {}
    sizes, filter_sizes, thresholds = [], [], []
    behind = ranking.ranking if isinstance(ranking, Filtered) else ranking
    before = ranking.filter if isinstance(ranking, Filtered) else None
    buffer = ranking.size.events if isinstance(ranking, Filtered) else 0
    values = keys.tolist()

    def all_of_it() -> None:
        for place, key in enumerate(values):
            entering: list[int] = []
            if isinstance(ranking, Filtered) and place >= buffer:
                old = place - buffer
                ranking.expel(old)
                entering = ranking.try_again(Candidate(values[old], -old, float(old + n)))
            entering = entering + ranking.insert(Candidate(key, -place, float(place + n)))
            if ranking.due <= place:
                entering = entering + ranking.leave(float(place))
            for each in entering:
                entered[each] = place
            if place >= n and place % 16 == 0:
                sizes.append(len(behind))
                filter_sizes.append(0 if before is None else len(before))
                if ranking.threshold < math.inf:
                    thresholds.append(ranking.threshold)

    elapsed_s = cpu_s(all_of_it)
    return Played(
        entered,
        float(np.mean(sizes)),
        float(np.mean(filter_sizes)),
        float(np.mean(thresholds)) if thresholds else math.inf,
        elapsed_s / len(values),
    )


def exact(keys: Points, k: int, n: int) -> dict[int, int]:
    """Return when each event of a stream enters, by the closed form."""
    at = entering_times(keys, np.arange(len(keys), dtype=float), k, CountWindow(n))
    return {int(place): int(at[place]) for place in np.flatnonzero(~np.isnan(at))}


def checked(name: str, played: Played, expected: dict[int, int]) -> Played:
    """Return what was played, if it is right: a fast wrong answer is not a result."""
    if played.entered != expected:
        differing = [each for each in expected | played.entered if expected.get(each) != played.entered.get(each)]
        raise DisagreementError(name, "the closed form", min(differing))
    return played
