"""Probabilistic pruning keeps its error bound where the order is random; where it is not, the guard notices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tamis.topk import Ranked, TopK, candidate_limit
from tamis.topk.base import Candidate
from tamis.topk.closed_form import entering_times
from tamis.topk.guard import FAR_OFF, Guarded, OrderTest
from tamis.topk.probabilistic import Probabilistic
from tamis.topk.windows import CountWindow

N, COUNT = 400, 6_000


def entered(ranking, keys, n):
    """Return {place: the position at which it entered} for one ranking over a count window of n."""
    found = {}
    for place, key in enumerate(keys.tolist()):
        if isinstance(ranking, Guarded):
            ranking.see(float(place), key)
        entering = ranking.insert(Candidate(key, -place, float(place + n)))
        if ranking.due <= place:
            entering = entering + ranking.leave(float(place))
        found |= dict.fromkeys(entering, place)
    return found


def exact(keys, k, n):
    at = entering_times(keys, np.arange(len(keys), dtype=float), k, CountWindow(n))
    return {place: int(when) for place, when in enumerate(at.tolist()) if when == when}


def wrong(found, expected):
    return {place for place in found.keys() | expected.keys() if found.get(place) != expected.get(place)}


STREAMS = {
    "falling": lambda chance: -np.arange(COUNT, dtype=float),
    "rising": lambda chance: np.arange(COUNT, dtype=float),
    "random walk": lambda chance: np.cumsum(chance.normal(size=COUNT)),
    "waves": lambda chance: np.sin(np.arange(COUNT) * 2 * math.pi / N) + 0.1 * chance.normal(size=COUNT),
    "drift": lambda chance: 4 * np.arange(COUNT) / N + chance.normal(size=COUNT),
}


@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("sigma", [1e-3, 0.1])
def test_the_error_bound_holds_on_random_order_streams(k, sigma):
    chance = np.random.default_rng(k)
    errors = 0
    for draw in (chance.random, chance.normal, lambda size: chance.integers(0, 50, size).astype(float)):
        keys = draw(size=COUNT)
        errors += len(wrong(entered(Probabilistic(k, N, sigma), keys, N), exact(keys, k, N)))
    assert errors / (3 * COUNT) <= sigma


def test_a_tenth_of_the_candidates_would_not_do():
    keys = np.random.default_rng(1).random(COUNT)
    ranking = Probabilistic(9, N)
    ranking.limit //= 10
    expected = exact(keys, 9, N)
    assert len(wrong(entered(ranking, keys, N), expected)) / len(expected) > 0.01


def test_never_more_are_kept_than_k_and_the_limit():
    chance = np.random.default_rng(2)
    for k in (1, 5):
        for draw in STREAMS.values():
            ranking = Probabilistic(k, N)
            for place, key in enumerate(draw(chance)[:1_500].tolist()):
                ranking.insert(Candidate(key, -place, float(place + N)))
                ranking.leave(float(place))
                assert len(ranking) <= k + candidate_limit(k, N)


def test_on_streams_that_get_better_and_better_nothing_is_lost():
    keys = STREAMS["falling"](None)
    assert wrong(entered(Probabilistic(3, N), keys, N), exact(keys, 3, N)) == set()


def test_on_streams_that_get_worse_without_a_guard_much_is_lost():
    keys = STREAMS["rising"](None)
    expected = exact(keys, 3, N)
    assert len(wrong(entered(Probabilistic(3, N), keys, N), expected)) > len(expected) / 2


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "falling"])
def test_on_ordered_streams_the_guard_triggers_and_the_answers_are_exact_from_the_moment_it_reports(name):
    keys = STREAMS[name](np.random.default_rng(3))
    guarded = Guarded(9, N, float(N), 1e-3, 0.2)
    found = entered(guarded, keys, N)
    report = guarded.report
    assert report is not None
    assert report.deviations > FAR_OFF
    assert report.at < COUNT / 2
    late = {place for place in wrong(found, exact(keys, 9, N)) if place >= report.exact_from}
    assert late == set()


def test_an_ordered_stream_is_found_out_before_anything_is_lost():
    keys = STREAMS["rising"](None)
    guarded = Guarded(9, N, float(N), 1e-3, 0.2)
    assert wrong(entered(guarded, keys, N), exact(keys, 9, N)) == set()
    assert guarded.report is not None
    assert guarded.report.exact_from == guarded.report.at


def test_a_stream_that_turns_is_found_out_and_the_report_says_from_when_on_answers_are_exact():
    chance = np.random.default_rng(4)
    keys = np.concatenate([chance.random(3 * N), np.arange(COUNT, dtype=float)])
    guarded = Guarded(9, N, float(N), 1e-3, 0.2)
    found = entered(guarded, keys, N)
    assert guarded.report is not None
    assert guarded.report.exact_from == guarded.report.at + N
    assert not [place for place in wrong(found, exact(keys, 9, N)) if place >= guarded.report.exact_from]


def test_on_random_order_streams_the_guard_stays_quiet_and_lets_candidates_be_few():
    chance = np.random.default_rng(5)
    for _ in range(5):
        keys = chance.random(COUNT)
        guarded = Guarded(9, N, float(N), 1e-3, 0.2)
        found = entered(guarded, keys, N)
        assert guarded.report is None
        assert guarded.is_probabilistic
        assert len(guarded) <= 9 + candidate_limit(9, N)
        assert len(wrong(found, exact(keys, 9, N))) / COUNT <= 1e-3


def test_a_stream_of_equal_keys_is_in_no_order():
    test = OrderTest(100.0)
    for clock in range(500):
        test.see(float(clock), 7.0)
    assert test.verdict() == ("trend", 0.0)


def test_the_processor_reports_which_subscriptions_have_no_random_order():
    processor = TopK("probabilistic")
    processor.add("rising", Ranked("x", 2, "100 EVENTS"))
    processor.add("random", Ranked("y", 2, "100 EVENTS"))
    chance = np.random.default_rng(6)
    for place, y in enumerate(chance.random(1_000).tolist()):
        processor.process({"x": place, "y": y}, float(place))
    assert list(processor.order_reports()) == ["rising"]
    assert processor.statistics()["order_reports"] == 1


def test_time_windows_need_no_count_beforehand():
    chance = np.random.default_rng(7)
    times = np.cumsum(chance.exponential(size=COUNT))
    keys = chance.random(COUNT)
    found = {}
    processor = TopK("probabilistic", guard=False)
    processor.add("s", Ranked("x", 5, f"{N} SECONDS"))
    naive = TopK("relaxed")
    naive.add("s", Ranked("x", 5, f"{N} SECONDS"))
    expected = {}
    for place, (at, key) in enumerate(zip(times.tolist(), keys.tolist(), strict=True)):
        found |= {each.event: each.at for each in processor.process({"x": key}, at, place)}
        expected |= {each.event: each.at for each in naive.process({"x": key}, at, place)}
    assert len(wrong(found, expected)) / COUNT <= 1e-3
    assert processor.candidates("s") <= 5 + candidate_limit(5, 3 * N)
