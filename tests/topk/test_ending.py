"""Subscriptions with a known end: they are told the same until then, and less is kept for them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import EventError
from tamis.topk import Ranked, TopK
from tamis.topk.windows import CountWindow, TimeWindow


@settings(max_examples=60)
@given(
    keys=st.lists(
        st.tuples(st.one_of(st.integers(0, 9), st.none()), st.sampled_from([0.0, 0.5, 1.0, 3.0])), max_size=40
    ),
    k=st.integers(1, 3),
    window=st.sampled_from([TimeWindow(4.0), TimeWindow(9.0), CountWindow(4)]),
    end=st.sampled_from([0.0, 3.0, 7.5, 12.0, 40.0]),
    algorithm=st.sampled_from(["naive", "strict", "relaxed", "block"]),
)
def test_a_subscription_with_a_known_end_is_told_the_same_until_then_and_nothing_later(keys, k, window, end, algorithm):
    endless, ending = TopK("naive"), TopK(algorithm)
    endless.add("s", Ranked("x", k, window))
    ending.add("s", Ranked("x", k, window), until=end)
    ending.add("other", Ranked("x", 1, "2 SECONDS"))
    told, expected, now = [], [], 0.0
    for place, (x, step) in enumerate(keys):
        now += step
        told += ending.process({"x": x}, now, place)
        expected += endless.process({"x": x}, now, place)
    told += ending.advance(now + 50)
    expected += endless.advance(now + 50)
    assert [each for each in told if each.subscription == "s"] == [each for each in expected if each.at <= end]
    assert "s" not in ending and "other" in ending


@pytest.mark.parametrize("algorithm", ["strict", "relaxed"])
def test_towards_its_end_less_and_less_is_kept(algorithm):
    chance = np.random.default_rng(1)
    ending, endless = TopK(algorithm), TopK(algorithm)
    ending.add("s", "TOP 5 BY x OVER 200 SECONDS", until=400.0)
    endless.add("s", "TOP 5 BY x OVER 200 SECONDS")
    sizes = {}
    for at, x in enumerate(chance.random(399).tolist()):
        for processor in (ending, endless):
            processor.process({"x": x}, float(at), at)
        if at in (190, 395):
            sizes[at] = ending.candidates("s"), endless.candidates("s")
    assert sizes[190][0] == sizes[190][1]
    assert sizes[395][0] < 0.5 * sizes[395][1]
    assert ending.threshold("s") < math.inf == endless.threshold("s")


def test_conditions_and_resting_subscriptions_end_too():
    processor = TopK()
    processor.add("c", "x > 0", until=2.0)
    processor.add_many({"r": "TOP 1 BY x OVER 1 HOUR"}, until=3.0, is_active=False)
    assert [len(processor.process({"x": 1}, at, at)) for at in (1.0, 2.0, 2.5)] == [1, 1, 0]
    assert "c" not in processor and "r" in processor
    processor.advance(3.0)
    assert "r" in processor
    processor.advance(3.5)
    assert len(processor) == 0
    processor.add("c", "x > 0", until=9.0)
    processor.remove("c")
    processor.add("c", "x > 0")
    processor.advance(20.0)
    assert "c" in processor


def test_an_end_that_is_no_time_is_refused():
    processor = TopK()
    for wrong in (math.nan, -math.inf, "tomorrow", True):
        with pytest.raises(EventError):
            processor.add("s", "x > 0", until=wrong)
    assert len(processor) == 0
