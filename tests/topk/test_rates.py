"""Time windows: how many events there are is counted, and a rate that falls further than pruning can bear is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.topk import Ranked, TopK, candidate_limit
from tamis.topk.rates import WindowCount, probability_of_best, tolerated_share
from tamis.topk.windows import TimeWindow

SPAN, K, SIGMA = 100.0, 5, 1e-3


def played(processor, times, keys):
    """Return {event: when} as a processor with one subscription tells it, and its report if there is one."""
    processor.add("s", Ranked("x", K, TimeWindow(SPAN)))
    told = {}
    reports = []
    for place, (at, key) in enumerate(zip(times.tolist(), keys.tolist(), strict=True)):
        told |= {each.event: each.at for each in processor.process({"x": key}, at, place)}
        report = processor.order_reports().get("s")
        if report is not None and report not in reports:
            reports.append(report)
    return told, reports


def arrivals(chance, *phases):
    """Return times of random arrivals: for each (rate, seconds), so many a second for so long."""
    times, begin = [], 0.0
    for rate, seconds in phases:
        steps = chance.exponential(1 / rate, int(2 * rate * seconds) + 50).cumsum()
        times.append(begin + steps[steps < seconds])
        begin += seconds
    return np.concatenate(times)


@given(
    steps=st.lists(st.sampled_from([0.0, 0.001, 0.5, 1.0, 7.0, 64.0, 1e6]), min_size=1, max_size=60),
    span=st.sampled_from([1e-3, 1.0, 10.0, 64.0, 1e9]),
)
def test_the_number_of_events_in_a_window_errs_upwards_by_less_than_a_bucket(steps, span):
    count, times, now = WindowCount(span), [], 0.0
    for step in steps:
        now += step
        times.append(now)
        counted = count.add(now)
        assert sum(at > now - span for at in times) <= counted <= sum(at >= now - span * (1 + 2 / 64) for at in times)
        assert count.peak >= counted


def test_the_shortest_window_is_counted_too():
    count = WindowCount(5e-324)
    assert [count.add(1e300), count.add(1e300), count.add(1.5e300)][:2] == [1, 2]


@pytest.mark.parametrize("seed", range(4))
def test_when_the_rate_falls_from_ten_a_second_to_one_the_guard_says_since_when_answers_are_exact(seed):
    """Before the window's rate was watched, nothing was reported here, and some seven times sigma was wrong."""
    chance = np.random.default_rng(seed)
    falls_at = 6 * SPAN
    times = arrivals(chance, (10, falls_at), (1, 6 * SPAN))
    keys = chance.random(len(times))
    told, reports = played(TopK("probabilistic"), times, keys)
    expected, _ = played(TopK("naive"), times, keys)
    assert [report.statistic for report in reports] == ["rate"]
    assert falls_at < reports[0].at < falls_at + SPAN / 8
    assert reports[0].exact_from == reports[0].at + SPAN
    wrong = {event for event in told.keys() | expected.keys() if told.get(event) != expected.get(event)}
    moments = [min(told.get(event, np.inf), expected.get(event, np.inf)) for event in wrong]
    assert all(falls_at < at < reports[0].exact_from for at in moments)


def test_without_the_guard_the_promise_is_broken_when_the_rate_falls():
    wrong = count = 0
    for seed in range(4):
        chance = np.random.default_rng(seed)
        times = arrivals(chance, (10, 3 * SPAN), (1, 3 * SPAN))
        keys = chance.random(len(times))
        told, _ = played(TopK("probabilistic", guard=False), times, keys)
        expected, _ = played(TopK("naive"), times, keys)
        wrong += sum(told.get(event) != expected.get(event) for event in told.keys() | expected.keys())
        count += len(times)
    assert wrong / count > SIGMA


@pytest.mark.parametrize(
    "phases", [[(10, 10 * SPAN)], [(1, 4 * SPAN), (10, 4 * SPAN)], [(10, 5 * SPAN), (8, 5 * SPAN)]]
)
def test_while_the_rate_is_steady_or_rises_or_falls_a_little_the_error_is_within_sigma_and_nothing_is_reported(phases):
    chance = np.random.default_rng(9)
    times = arrivals(chance, *phases)
    keys = chance.random(len(times))
    processor = TopK("probabilistic")
    told, reports = played(processor, times, keys)
    expected, _ = played(TopK("strict"), times, keys)
    assert reports == []
    assert sum(told.get(event) != expected.get(event) for event in told.keys() | expected.keys()) <= SIGMA * len(times)


def test_silence_is_noticed_by_what_leaves():
    chance = np.random.default_rng(5)
    times = arrivals(chance, (10, 3 * SPAN))
    processor = TopK("probabilistic")
    _, reports = played(processor, times, chance.random(len(times)))
    assert reports == []
    processor.advance(5 * SPAN)
    report = processor.order_reports()["s"]
    assert report.statistic == "rate" and 3 * SPAN < report.at < 3.5 * SPAN


def test_after_the_rate_has_fallen_pruning_is_probabilistic_again_at_the_new_rate():
    chance = np.random.default_rng(3)
    times = arrivals(chance, (10, 4 * SPAN), (4, 6 * SPAN))
    processor = TopK("probabilistic")
    processor.add("s", Ranked("x", K, TimeWindow(SPAN)))
    sizes = []
    for place, at in enumerate(times.tolist()):
        processor.process({"x": float(chance.random())}, at, place)
        sizes.append(processor.candidates("s"))
    assert processor.order_reports()["s"].statistic == "rate"
    assert sizes[-1] <= K + candidate_limit(K, 500) < max(sizes)
    assert processor.threshold("s") < np.inf


@pytest.mark.parametrize(("k", "n"), [(1, 50), (3, 200), (5, 200)])
def test_with_the_tolerated_share_of_arrivals_an_event_beyond_the_limit_is_seldom_among_the_best(k, n):
    """By simulation: an event just beyond the limit, all older ones leaving in random order, a share of n coming."""
    chance = np.random.default_rng(k)
    sigma = 0.02
    share = tolerated_share(k, n, sigma)
    assert 0 < share < 1
    rank = k + candidate_limit(k, n, sigma) + 1

    def is_best_share(coming, trials=3_000):
        best = 0
        for _ in range(trials):
            keys = np.sort(chance.random(n))
            own = keys[rank - 1]
            others = chance.permutation(np.delete(keys, rank - 1)) < own
            come = chance.random(coming) < own
            left = np.concatenate([[0], np.cumsum(others)])
            at = (np.arange(len(left)) * coming) // len(others)
            better = others.sum() - left + np.concatenate([[0], np.cumsum(come)])[at]
            best += bool((better < k).any())
        return best / trials

    assert is_best_share(int(share * n) + 1) <= 1.5 * sigma
    assert is_best_share(int(0.5 * share * n)) > 2 * sigma


def test_the_probability_of_being_best_is_that_of_drawing_balls():
    assert probability_of_best(3, 10, 0, 1) == pytest.approx(1.0)
    total = sum(probability_of_best(4, 12, 9, k + 1) - probability_of_best(4, 12, 9, k) for k in range(10))
    assert total == pytest.approx(1.0)
    falling = [probability_of_best(4, 12, arrivals, 2) for arrivals in range(0, 30, 3)]
    assert falling == sorted(falling, reverse=True)
