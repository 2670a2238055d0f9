"""What every exact algorithm promises: it tells what the definition tells, at the same moment, in the same order."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.topk import Delivery, Ranked, TopK
from tamis.topk.algorithms import ALGORITHMS
from tamis.topk.closed_form import entering_times
from tamis.topk.windows import CountWindow, TimeWindow
from tests.topk.stories import VARIANTS, hurried, made, stories, told, told_by_definition
from tests.topk.streams import definition, timed_keys, windows

EVERY = pytest.mark.parametrize("variant", VARIANTS)
ALL = pytest.mark.parametrize("variant", ["naive", *VARIANTS])


def processor_of(variant):
    return TopK("naive") if variant == "naive" else made(**VARIANTS[variant])


@pytest.fixture(autouse=True, scope="module")
def _soon():
    with pytest.MonkeyPatch.context() as patch:
        hurried(patch)
        yield


def test_the_example_of_the_issue_is_answered_as_it_says():
    processor = tamis.TopK(algorithm="strict")
    processor.add("s1", "TOP 2 BY price ASC OVER 5 EVENTS WHERE category = 'flat'")
    assert processor.process({"price": 10, "category": "flat"}, now=1.0, id="e1") == [
        Delivery(subscription="s1", event="e1", at=1.0)
    ]
    assert processor.advance(now=60.0) == []
    assert tamis.topk.candidate_limit(k=9, n=40_000, sigma=1e-3) == 37


# -- The naive algorithm is the definition: it agrees with the formulas, and with the closed form


def entered(processor, keys, times, k, window, until):
    """Return {place: when it is told} of a stream of keys, NaN for none."""
    processor.add("s", Ranked("x", k, window))
    found = []
    for place, (key, time) in enumerate(zip(keys, times, strict=True)):
        found += processor.process({"x": None if math.isnan(key) else key}, time, place)
    found += processor.advance(until)
    assert len({each.event for each in found}) == len(found)
    return {each.event: each.at for each in found}


@given(stream=timed_keys(), k=st.integers(1, 8), window=windows, more=st.sampled_from([0.0, 1.0, 100.0]))
def test_the_naive_algorithm_the_formulas_and_the_closed_form_agree(stream, k, window, more):
    keys, times = stream
    until = (times[-1] if times else 0.0) + more
    expected = definition(keys, times, k, window, until)
    assert entered(TopK("naive"), keys, times, k, window, until) == expected
    closed = entering_times(keys, times, k, window, until)
    assert {place: at for place, at in enumerate(closed.tolist()) if at == at} == expected


# -- All others agree with the naive one


@EVERY
@settings(max_examples=25)
@given(story=stories())
def test_every_exact_algorithm_tells_what_the_definition_tells(variant, story):
    assert told(processor_of(variant), story) == told_by_definition(story)


@pytest.mark.slow
@EVERY
@settings(max_examples=200)
@given(story=stories(most=60))
def test_long_stories_are_told_as_the_definition_tells_them(variant, story):
    assert told(processor_of(variant), story) == told_by_definition(story)


@EVERY
@settings(max_examples=8)
@given(story=stories(lateness=2.0))
def test_event_times_may_be_out_of_order_within_the_watermark(variant, story):
    processor = made(**VARIANTS[variant], lateness=2.0)
    assert told(processor, story) == told_by_definition(story, 2.0)


@given(stream=timed_keys(), window=windows, k=st.integers(1, 4), swaps=st.lists(st.integers(0, 38), max_size=20))
def test_what_comes_late_is_told_as_if_it_had_come_in_time(stream, window, k, swaps):
    keys, times = stream
    order = list(range(len(keys)))
    for place in swaps:  # neighbours change places, where that is not too late
        if place + 1 < len(order) and 0 < times[order[place + 1]] - times[order[place]] <= 1.0:
            order[place], order[place + 1] = order[place + 1], order[place]
    processor = TopK("block", lateness=50.0)
    processor.add("s", Ranked("x", k, window))
    found = [processor.process({"x": keys[place]}, times[place], place) for place in order]
    found.append(processor.advance((times[-1] if times else 0.0) + 500.0))
    expected = definition(keys, times, k, window)
    assert {each.event: each.at for some in found for each in some} == expected


@EVERY
@settings(max_examples=8)
@given(stream=timed_keys(), k=st.sampled_from([1, 2, 5]), window=windows)
def test_sorted_reversed_and_tied_streams_are_told_exactly(variant, stream, k, window):
    keys, times = stream
    until = (times[-1] if times else 0.0) + 50.0
    assert entered(processor_of(variant), keys, times, k, window, until) == definition(keys, times, k, window, until)


@ALL
def test_an_event_is_told_when_better_ones_leave(variant):
    # arrival    1  2  3  4  5  6
    # score      1  2  5  8  9  3     k = 2, window of 4 events, the lowest first
    # told       1  2        5  3     5 waits for 1 to leave
    processor = processor_of(variant)
    processor.add("s", "TOP 2 BY score ASC OVER 4 EVENTS")
    found = [processor.process({"score": score}, at, at) for at, score in enumerate([1, 2, 5, 8, 9, 3], 1)]
    assert [(each.at, each.event) for some in found for each in some] == [(1, 1), (2, 2), (5, 3), (6, 6)]


@ALL
def test_time_alone_makes_an_event_one_of_the_best(variant):
    processor = processor_of(variant)
    processor.add("s", "TOP 1 BY score DESC OVER 10 SECONDS")
    assert processor.process({"score": 5}, 0.0, "high") == [Delivery("s", "high", 0.0)]
    assert processor.process({"score": 3}, 4.0, "low") == []
    assert processor.advance(9.9) == []
    assert processor.advance(10.0) == [Delivery("s", "low", 10.0)]
    assert processor.advance(100.0) == []


@ALL
def test_arrival_comes_before_departure_at_the_same_instant(variant):
    processor = processor_of(variant)
    processor.add("s", "TOP 1 BY score DESC OVER 10 SECONDS")
    processor.process({"score": 5}, 0.0, "high")
    processor.process({"score": 3}, 4.0, "low")
    # The new one comes before the old one leaves, so nobody else is the best in between.
    assert processor.process({"score": 4}, 10.0, "middle") == []
    assert processor.advance(10.0) == [Delivery("s", "middle", 10.0)]
    assert processor.advance(14.5) == []


@ALL
def test_of_two_equal_scores_the_younger_is_better(variant):
    processor = processor_of(variant)
    processor.add("s", "TOP 1 BY score OVER 3 EVENTS")
    assert [len(processor.process({"score": 7}, float(at), at)) for at in range(6)] == [1] * 6


@ALL
def test_a_k_larger_than_the_window_lets_everything_through_that_has_a_score(variant):
    processor = processor_of(variant)
    processor.add("s", "TOP 9 BY score OVER 3 EVENTS")
    scores = [5, None, 6, math.nan, 4, "x", 7, 7]
    found = [processor.process({"score": score}, float(at), at) for at, score in enumerate(scores)]
    assert [each.event for some in found for each in some] == [0, 2, 4, 6, 7]


@ALL
def test_an_event_without_a_score_takes_its_place_in_a_count_window(variant):
    processor = processor_of(variant)
    processor.add("s", "TOP 1 BY score OVER 2 EVENTS")
    processor.process({"score": 1}, 1.0, "best")
    assert processor.process({"score": 2}, 2.0, "second") == []
    assert processor.process({"score": math.nan}, 3.0, "none") == [Delivery("s", "second", 3.0)]
    assert processor.process({}, 4.0, "absent") == []
    assert processor.process({"score": 9}, 5.0, "last") == [Delivery("s", "last", 5.0)]


@ALL
def test_what_is_below_a_minimal_score_stays_in_a_count_window_and_is_told_to_nobody(variant):
    processor = processor_of(variant)
    processor.add("all", "TOP 1 BY x DESC OVER 4 EVENTS")
    processor.add("good", "TOP 1 BY CASE WHEN x >= 5 THEN x END DESC OVER 4 EVENTS")
    processor.add("where", "TOP 1 BY x DESC OVER 4 EVENTS WHERE x >= 5")
    told = {"all": [], "good": [], "where": []}
    for at, x in enumerate([9, 6, 1, 2, 3, 4, 4, 4, 5]):
        for each in processor.process({"x": x}, float(at), at):
            told[each.subscription].append((each.event, int(each.at)))
    # The 9 leaves with the fifth event, and the 6 follows; when that leaves, nobody is good enough.
    assert told["good"] == [(0, 0), (1, 4), (8, 8)]
    # A filter would keep both as long as nothing else passes it.
    assert told["where"] == [(0, 0)]
    assert [event for event, _ in told["all"]] == [0, 1, 5, 6, 7, 8]


@ALL
def test_a_count_window_counts_the_events_that_pass_the_filter(variant):
    processor = processor_of(variant)
    processor.add("s", "TOP 1 BY price OVER 2 EVENTS WHERE category = 'flat'")
    processor.process({"price": 1, "category": "flat"}, 1.0, "cheap")
    assert processor.process({"price": 2, "category": "flat"}, 2.0, "dear") == []
    for at in range(5):
        assert processor.process({"price": 0, "category": "house"}, 3.0 + at, f"house {at}") == []
    assert processor.process({"price": 3, "category": "flat"}, 9.0, "dearer") == [Delivery("s", "dear", 9.0)]


@ALL
def test_a_late_subscription_starts_with_an_empty_window(variant):
    processor = processor_of(variant)
    processor.add("early", "TOP 1 BY score OVER 5 EVENTS")
    processor.process({"score": 1}, 1.0, "first")
    processor.add("late", "TOP 1 BY score OVER 5 EVENTS")
    assert processor.process({"score": 2}, 2.0, "second") == [Delivery("late", "second", 2.0)]
    processor.deactivate("late")
    assert processor.process({"score": 3}, 3.0, "third") == []
    processor.activate("late")
    assert processor.process({"score": 4}, 4.0, "fourth") == [Delivery("late", "fourth", 4.0)]


@ALL
def test_a_withdrawn_or_expired_event_is_told_no_more_but_keeps_its_place(variant):
    processor = processor_of(variant)
    processor.add("s", "TOP 1 BY score OVER 10 SECONDS")
    assert len(processor.process({"score": 1}, 0.0, "best")) == 1
    processor.process({"score": 2}, 1.0, "withdrawn")
    processor.process({"score": 3}, 2.0, "expired", expires=10.9)
    processor.process({"score": 4}, 3.0, "last", expires=12.0)
    processor.withdraw("withdrawn", 4.0)
    assert processor.advance(10.0) == []  # the withdrawn one is the best now, and nobody learns of it
    assert processor.advance(11.9) == []  # nor of the one that has expired
    assert processor.advance(12.0) == [Delivery("s", "last", 12.0)]  # it expires then, and not before


@ALL
def test_a_burst_at_one_instant_is_taken_in_order(variant):
    processor = processor_of(variant)
    processor.add("s", "TOP 2 BY score OVER 1 SECOND")
    found = processor.process_batch([{"score": score} for score in (5, 4, 3, 9, 2, 2)], 7.0, list("abcdef"))
    assert [each.event for each in found] == ["a", "b", "c", "e", "f"]
    assert processor.advance(8.0) == []  # they all leave at once: nobody follows


@ALL
def test_an_event_that_comes_again_is_left_out(variant):
    processor = processor_of(variant)
    processor.add("s", "TOP 1 BY score OVER 2 EVENTS")
    assert len(processor.process({"score": 2}, 1.0, "once")) == 1
    assert processor.process({"score": 1}, 2.0, "once") == []
    assert processor.process({"score": 3}, 3.0, "other") == []
    assert processor.statistics()["repeated"] == 1


@ALL
def test_a_time_window_of_n_seconds_on_a_steady_stream_is_a_count_window_of_n(variant):
    scores = [9, 8, 5, 3, 1, 2, 7, 7, 6, 0, 4, 4, 5, 9, 1, 1]
    counted, timed = processor_of(variant), processor_of(variant)
    counted.add("s", Ranked("x", 2, CountWindow(4)))
    timed.add("s", Ranked("x", 2, TimeWindow(4.0)))
    for at, score in enumerate(scores):
        expected = counted.process({"x": score}, float(at), at)
        found = timed.process({"x": score}, float(at), at) + timed.advance(float(at))
        assert found == expected


def test_every_algorithm_stands_in_the_table():
    assert set(ALGORITHMS) == {"naive", "strict", "relaxed", "probabilistic", "block"}
