"""How many events are there in a time window, and has their rate fallen?

Probabilistic pruning forgets what ranks too low among the `n` events of a window. Of a count window n is known; of a
time window it is counted, in buckets of a small part of the window. The count errs upwards, by less than one bucket.

The bound behind the pruning presumes that as many events come as leave. Where fewer come, an event rises faster than
was reckoned with, and what was forgotten may be among the best after all. How far the number may fall before that
matters follows from the probability that an event just beyond the limit is among the best when all older ones have
left and only a share of their number has come (`tolerated_share`). A larger fall is noticed in the window itself, or,
sooner, in its last eighth.

Source: the probability is lemma 3.7 of Pripužić 2010 (docs/bibliography.md). Time windows are not treated there; that
an event is among the best at some time about twice as often as at the last moment is our measurement.
"""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache
from math import lgamma

from tamis.topk.candidate_limits import candidate_limit

_BUCKETS = 64
_RECENT_BUCKETS = _BUCKETS // 8
_AT_SOME_TIME = 2.0
"""So many times as often an event is among the best at some time as at the last moment of its stay."""
FAR_OFF = 5.5
"""So many standard deviations fewer events than expected are not seen by chance."""


class WindowCount:
    """Counts the events of a time window.

    >>> count = WindowCount(span=64.0)
    >>> [count.add(float(at)) for at in (0, 0, 10, 70, 200)]
    [1, 2, 3, 2, 1]
    """

    __slots__ = ("_buckets", "_peaks", "_width", "total")

    def __init__(self, span: float) -> None:
        self._width = max(span / _BUCKETS, 5e-324)
        self._buckets: deque[tuple[float, int]] = deque()
        """The buckets that the window reaches into: their places, and how many events came in each."""
        self._peaks: deque[tuple[float, int]] = deque()
        """How many there were in the window at the end of some buckets; falling, so that the first is the most."""
        self.total = 0
        """How many events there are in the window, as it was last looked at."""

    def add(self, at: float) -> int:
        """Count an event; return how many there are in the window that ends with it."""
        self.look(at)
        place = _place(at, self._width)
        if self._buckets and self._buckets[-1][0] >= place:
            last, events = self._buckets[-1]
            self._buckets[-1] = last, events + 1
        else:
            self._buckets.append((place, 1))
        self.total += 1
        while self._peaks and self._peaks[-1][1] <= self.total:
            self._peaks.pop()
        self._peaks.append((place, self.total))
        return self.total

    def look(self, at: float) -> int:
        """Return how many there are in the window that ends now."""
        oldest = _place(at, self._width) - _BUCKETS
        while self._buckets and self._buckets[0][0] < oldest:
            self.total -= self._buckets.popleft()[1]
        while self._peaks and self._peaks[0][0] < oldest:
            self._peaks.popleft()
        return self.total

    @property
    def peak(self) -> int:
        """The most that there were in a window that ended within the present one."""
        return max(self._peaks[0][1], self.total) if self._peaks else self.total

    def recent(self, at: float) -> int:
        """Return how many came in the last eighth of the window."""
        oldest = _place(at, self._width) - _RECENT_BUCKETS
        count = 0
        for place, events in reversed(self._buckets):
            if place < oldest:
                break
            count += events
        return count

    def fall(self, at: float, k: int, sigma: float) -> float:
        """Return by how many standard deviations fewer events come than pruning can bear; 0: it can bear them."""
        total, peak = self.look(at), self.peak
        if peak <= k:
            return 0.0
        worst = 0.0
        share = tolerated_share(k, _rounded(peak), sigma)
        for expected, got in ((peak, total), (peak * _RECENT_BUCKETS / _BUCKETS, self.recent(at))):
            if got < share * expected:
                worst = max(worst, (expected - got) / math.sqrt(expected))
        return worst if worst > FAR_OFF else 0.0


def with_room(events: int) -> int:
    """Return a quarter more events, so that not every arrival is news for those who keep candidates for so many."""
    return events + events // 4 + 1


def _place(at: float, width: float) -> float:
    # A double, because a bucket may be so short that there are more of them than any whole number of the machine.
    return math.floor(place) if math.isfinite(place := at / width) else place


def _rounded(n: int) -> int:
    """Round to two digits, so that few shares are computed."""
    unit: int = 10 ** max(0, len(str(n)) - 2)
    return max(1, n // unit * unit)


@lru_cache(maxsize=4096)
def tolerated_share(k: int, n: int, sigma: float) -> float:
    """Return the share of `n` that must come, while all n leave, for an error of at most `sigma` an event.

    >>> 0.5 < tolerated_share(9, 1_000, 1e-3) < 0.8
    True
    """
    if k >= n:
        return 0.0
    rank = k + candidate_limit(k, n, sigma) + 1
    if rank > n:
        return 0.0
    enough, few = n, 0
    if _AT_SOME_TIME * probability_of_best(rank, n, few, k) <= sigma:
        return 0.0
    while enough - few > max(1, n // 1000):
        middle = (enough + few) // 2
        is_enough = _AT_SOME_TIME * probability_of_best(rank, n, middle, k) <= sigma
        enough, few = (middle, few) if is_enough else (enough, middle)
    return enough / n


def probability_of_best(rank: int, n: int, arrivals: int, k: int) -> float:
    """Return how probably an event of this rank among n is one of the best k of itself and so many arrivals.

    >>> round(probability_of_best(1, 10, 0, 1), 6), round(probability_of_best(3, 10, 20, k=21), 6)
    (1.0, 1.0)
    """
    return sum(_arrived_better(rank, n, arrivals, better) for better in range(min(k, arrivals + 1)))


def _arrived_better(rank: int, n: int, arrivals: int, better: int) -> float:
    """Return the probability that so many of the arrivals are better than an event of this rank among n."""
    return math.exp(
        _log_binomial(rank - 1 + better, better)
        + _log_binomial(n - rank + arrivals - better, arrivals - better)
        - _log_binomial(n + arrivals, arrivals)
    )


def _log_binomial(n: int, chosen: int) -> float:
    return lgamma(n + 1) - lgamma(chosen + 1) - lgamma(n - chosen + 1)
