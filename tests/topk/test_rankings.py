"""What each algorithm keeps: the k-skyband, a little more, or no more than a limit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tamis.topk.base import Candidate
from tamis.topk.naive import NaiveRankings
from tamis.topk.relaxed import Relaxed, undominated
from tamis.topk.strict import Strict

streams = st.lists(st.integers(0, 12), max_size=60)


def skyband(candidates, k):
    """Those with fewer than k others that rank higher and are younger."""
    return [one for one in candidates if sum(two < one and two.number > one.number for two in candidates) < k]


@given(keys=streams, k=st.integers(1, 5), n=st.integers(1, 20))
def test_strict_pruning_keeps_exactly_the_skyband_of_the_window(keys, k, n):
    strict, window = Strict(k), NaiveRankings(k)
    for place, key in enumerate(keys):
        candidate = Candidate(float(key), -place, float(place + n))
        for ranking in (strict, window):
            ranking.insert(candidate)
            ranking.leave(float(place))
        assert strict.items == skyband(sorted(window.items), k)
        assert strict.entered <= {item.number for item in strict.items}


@given(keys=streams, k=st.integers(1, 5), n=st.integers(1, 20), gamma=st.sampled_from([0.0, 0.2, 2.0]))
def test_relaxed_pruning_keeps_the_skyband_and_after_each_pruning_nothing_else(keys, k, n, gamma):
    relaxed, window = Relaxed(k, gamma), NaiveRankings(k)
    for place, key in enumerate(keys):
        candidate = Candidate(float(key), -place, float(place + n))
        before = len(relaxed)
        for ranking in (relaxed, window):
            ranking.insert(candidate)
        if len(relaxed) <= before:
            assert relaxed.items == skyband(relaxed.items, k)
        for ranking in (relaxed, window):
            ranking.leave(float(place))
        assert set(skyband(window.items, k)) <= set(relaxed.items)


@given(keys=streams, k=st.integers(1, 5))
def test_one_walk_finds_all_that_are_dominated(keys, k):
    candidates = sorted(Candidate(float(key), -place, 0.0) for place, key in enumerate(keys))
    assert undominated(candidates, k) == skyband(candidates, k)


def test_in_random_order_the_skyband_is_as_large_as_expected():
    # k + k (H_n - H_k): the event of age i is in it with probability min(1, k / i)
    chance = np.random.default_rng(1)
    n, k = 500, 5
    ranking, sizes = Strict(k), []
    for place, key in enumerate(chance.random(6_000).tolist()):
        ranking.insert(Candidate(key, -place, float(place + n)))
        if ranking.due <= place:
            ranking.leave(float(place))
        if place >= n:
            sizes.append(len(ranking))
    expected = k + k * sum(1 / i for i in range(k + 1, n + 1))
    assert abs(np.mean(sizes) / expected - 1) < 0.05


def test_in_random_order_the_best_of_n_is_told_of_two_in_n_and_one_events():
    from tamis.topk.closed_form import entering_times
    from tamis.topk.windows import CountWindow

    keys = np.random.default_rng(2).random(200_000)
    at = entering_times(keys, np.arange(len(keys), dtype=float), 1, CountWindow(99))
    assert abs(np.isfinite(at).mean() / (2 / 100) - 1) < 0.05
