from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.topk import SettingError, candidate_limit
from tamis.topk.candidate_limits import error_bound

KS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
PUBLISHED = {  # Pripužić 2010, table 3.2: limits for sigma = 0.001
    1_000: (17, 20, 25, 31, 39, 54, 70, 88, 103),
    2_000: (18, 21, 26, 32, 41, 57, 75, 99, 135),
    5_000: (20, 22, 28, 34, 43, 61, 80, 107, 157),
    10_000: (21, 24, 29, 36, 45, 63, 84, 112, 167),
    20_000: (22, 25, 30, 37, 46, 65, 86, 116, 175),
    50_000: (23, 26, 32, 39, 48, 68, 90, 121, 183),
    100_000: (24, 27, 33, 40, 50, 70, 92, 124, 188),
    200_000: (25, 28, 34, 41, 51, 72, 95, 128, 193),
    500_000: (26, 29, 36, 43, 53, 74, 98, 132, 199),
    1_000_000: (27, 31, 37, 44, 55, 76, 100, 135, 203),
}


def test_the_candidate_limits_equal_the_published_table():
    for n, limits in PUBLISHED.items():
        assert tuple(candidate_limit(k, n, 1e-3) for k in KS) == limits


def test_the_limit_of_the_defaults_of_the_thesis():
    assert candidate_limit(k=9, n=40_000, sigma=1e-3) == 37


@given(k=st.integers(1, 30), n=st.integers(1, 60), sigma=st.sampled_from([0.9, 0.1, 1e-3, 1e-9]))
def test_the_limit_is_the_last_rank_whose_bound_reaches_sigma(k, n, sigma):
    def bound(rank):  # in whole numbers, as it is printed but for the corrected binomial
        ways = sum(
            comb(n - 1, at - 1) * comb(n - 1, rank - 1) / comb(2 * n - 2, rank + at - 2) for at in range(1, k + 1)
        )
        return n * n / (4 * n - 2) * ways

    good = [rank for rank in range(k, n + 1) if bound(rank) >= sigma] if k < n else []
    first_poor = next((rank for rank in range(k, n + 1) if rank not in good), n + 1)
    assert candidate_limit(k, n, sigma) == (max(0, first_poor - 1 - k) if k < n else 0)
    for rank in range(k, n + 1):
        assert error_bound(rank, n, k) == pytest.approx(bound(rank), rel=1e-9)


@given(k=st.integers(1, 50), n=st.integers(2, 5_000), sigma=st.floats(1e-9, 0.5))
def test_a_longer_window_and_a_smaller_error_need_no_fewer_candidates(k, n, sigma):
    limit = candidate_limit(k, n, sigma)
    assert limit <= candidate_limit(k, 2 * n, sigma)
    assert limit <= candidate_limit(k, n, sigma / 10)
    assert 0 <= limit <= max(0, n - k)


def test_the_bound_is_above_the_probability_that_is_seen():
    # A newcomer of some rank, then n - 1 arrivals in random order while all older ones leave: how often is it among the best k?
    chance = np.random.default_rng(1)
    n, k, trials = 60, 3, 800
    for rank in (5, 8, 12, 20):
        entered = 0
        for _ in range(trials):
            older = chance.permutation(np.delete(np.arange(1, n + 1), rank - 1)).astype(float)
            # Where an arrival falls among those there were is uniform over the gaps, including those made by earlier arrivals.
            order = sorted([*older, float(rank)])
            better_old = older < rank
            better_new = 0
            for step in range(n - 1):
                place = chance.integers(0, len(order) + 1)
                low = order[place - 1] if place else order[0] - 1
                high = order[place] if place < len(order) else order[-1] + 1
                value = (low + high) / 2
                order.insert(place, value)
                better_new += value < rank
                better = better_new + better_old[step + 1 :].sum()
                if better < k:
                    entered += 1
                    break
        assert entered / trials <= error_bound(rank, n, k) + 3 * (0.25 / trials) ** 0.5


@pytest.mark.parametrize(
    "arguments", [(0, 5), (1, 0), (1.0, 5), (1, 5, 0.0), (1, 5, 1.0), (True, 5), (1, 5, float("nan"))]
)
def test_limits_of_nothing_are_refused(arguments):
    with pytest.raises(SettingError):
        candidate_limit(*arguments)
