"""How many candidates are enough?

In a stream of random order only ranks matter. An event that arrives at rank l of a window of n can be one of the best k
later only if enough better ones leave before enough better ones come; the probability of that falls steeply with l. The
limit is the number of ranks behind the best k for which a bound on that probability is still σ or more.

    p_b(l) = n² / (4n − 2) · Σ_{l' = 1..k} C(n−1, l'−1) · C(n−1, l−1) / C(2n−2, l+l'−2)

Source: Pripužić 2010, section 3.4.1, theorem 3.8 and table 3.2 (docs/bibliography.md).
Departs: the last binomial is printed with l+l'; algebra gives l+l'−2, and only that gives the published table.
"""

from __future__ import annotations

from functools import lru_cache
from math import lgamma

import numpy as np
import numpy.typing as npt

from tamis.topk.errors import SettingError


@lru_cache(maxsize=4096)
def candidate_limit(k: int, n: int, sigma: float = 1e-3) -> int:
    """Return how many candidates behind the best `k` to keep of a window of `n`, for an error of `sigma` an event.

    >>> candidate_limit(k=9, n=40_000, sigma=1e-3)
    37
    >>> [candidate_limit(k, n=1_000) for k in (1, 10, 100)]
    [17, 31, 70]
    """
    for name, number in (("k", k), ("n", n)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise SettingError(f"{name} must be a whole number of at least 1, not {number!r}")
    if not 0 < sigma < 1:
        raise SettingError(f"sigma must be a probability between 0 and 1, not {sigma!r}")
    if k >= n:
        return 0  # all of the window is among the best k
    # The bound falls with the rank from k on, so the last rank that is good enough is found by halving.
    good, poor = k, n + 1
    if error_bound(good, n, k) < sigma:
        return 0
    while poor - good > 1:
        middle = (good + poor) // 2
        good, poor = (middle, poor) if error_bound(middle, n, k) >= sigma else (good, middle)
    return good - k


def error_bound(rank: int, n: int, k: int) -> float:
    """Return a bound on the probability that an event that arrives at `rank` of `n` becomes one of the best k later.

    >>> error_bound(46, 40_000, 9) >= 1e-3 > error_bound(47, 40_000, 9)
    True
    """
    others = np.arange(1, min(k, n) + 1)
    logarithms = (
        _log_binomials(n - 1, others - 1)
        + _log_binomials(n - 1, np.array([rank - 1]))
        - _log_binomials(2 * n - 2, rank + others - 2)
    )
    return float(n * n / (4 * n - 2) * np.exp(logarithms).sum())


def _log_binomials(n: int, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.array([lgamma(n + 1) - lgamma(each + 1) - lgamma(n - each + 1) for each in chosen.tolist()])
