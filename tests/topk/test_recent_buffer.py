"""Filters over the recent buffer keep most arrivals from the rankings, and lose none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.matching.errors import UnknownAlgorithmError
from tamis.topk import BufferSizeError, Ranked, SettingError, TopK, UnknownFilterError
from tamis.topk.base import Arrival, Candidate
from tamis.topk.probabilistic import Probabilistic
from tamis.topk.recent_buffer import BufferSize, Filtered, RecentBuffer, buffer_size
from tamis.topk.strict import Strict
from tamis.topk.windows import CountWindow, TimeWindow
from tests.topk.streams import definition


def test_a_buffer_longer_than_half_the_window_is_refused():
    for events, is_fine in ((3, True), (4, False)):
        size = BufferSize(events, math.inf)
        if is_fine:
            Filtered(Strict(1), Strict(1), CountWindow(5), size)
        else:
            with pytest.raises(BufferSizeError, match="too long for a window of 5"):
                Filtered(Strict(1), Strict(1), CountWindow(5), size)
    with pytest.raises(BufferSizeError):
        Filtered(Strict(1), Strict(1), TimeWindow(10), BufferSize(99, 5.1))


@given(
    window=st.one_of(st.integers(1, 99).map(CountWindow), st.floats(0.1, 99).map(TimeWindow)), most=st.integers(1, 50)
)
def test_the_longest_buffer_is_never_refused(window, most):
    size = buffer_size(window, most)
    Filtered(Strict(1), Strict(1), window, size)
    assert 1 <= size.events <= most


def played(keys, k, n, b):
    """Play a stream through a filtered ranking by hand, with a buffer that may be too long."""
    filtered = Filtered(Strict(k), Strict(k), CountWindow(2 * b), BufferSize(b, math.inf))
    found, buffer = {}, []
    for place, key in enumerate(keys):
        entering = []
        if len(buffer) == b:
            old, candidate = buffer.pop(0)
            filtered.expel(old)
            entering += filtered.try_again(candidate)
        candidate = Candidate(float(key), -place, float(place + n))
        buffer.append((place, candidate))
        entering += filtered.insert(candidate)
        if filtered.due <= place:
            entering += filtered.leave(float(place))
        found |= dict.fromkeys(entering, float(place))
    return found


@given(keys=st.lists(st.integers(0, 9), max_size=60), k=st.integers(1, 4), n=st.integers(1, 15))
def test_half_a_window_is_short_enough_for_a_buffer(keys, k, n):
    expected = definition(keys, [float(place) for place in range(len(keys))], k, CountWindow(n))
    assert played(keys, k, n, (n + 1) // 2) == expected


def test_a_longer_buffer_would_lose_events():
    chance = np.random.default_rng(1)
    lost = 0
    for _ in range(100):
        keys = chance.random(60).tolist()
        expected = definition(keys, [float(place) for place in range(60)], 2, CountWindow(9))
        lost += played(keys, 2, 9, 7) != expected
    assert lost > 30


@given(keys=st.lists(st.integers(0, 9), max_size=60), k=st.integers(1, 4), limit=st.integers(0, 2))
def test_a_filter_that_forgets_nearly_everything_still_loses_nothing(keys, k, limit):
    window = CountWindow(11)
    forgetful = Probabilistic(k, 6)
    forgetful.limit = limit
    filtered = Filtered(Strict(k), forgetful, window, BufferSize(6, math.inf))
    processor = TopK("strict", filter="probabilistic", buffer=6)
    processor.add("s", Ranked("x", k, window))
    processor._engine._queries[0].ranking = filtered
    found = {}
    for place, key in enumerate(keys):
        found |= {each.event: each.at for each in processor.process({"x": key}, float(place), place)}
    assert found == definition(keys, [float(place) for place in range(len(keys))], k, window)


def test_most_arrivals_never_reach_the_ranking():
    chance = np.random.default_rng(2)
    processors = {name: TopK("strict", filter=name, buffer=100) for name in ("strict", "relaxed", "probabilistic")}
    plain = TopK("strict")
    for processor in (plain, *processors.values()):
        processor.add("s", Ranked("x", 5, "1000 EVENTS"))
    for place, key in enumerate(chance.random(4_000).tolist()):
        for processor in (plain, *processors.values()):
            processor.process({"x": key}, float(place))
    for processor in processors.values():
        filtered = processor._engine._queries[0].ranking
        assert len(filtered.ranking) < 0.8 * plain.candidates("s")
        assert math.isfinite(processor.threshold("s"))
    assert plain.threshold("s") == math.inf


def test_a_recent_buffer_is_first_in_first_out_by_number_and_by_age():
    buffer = RecentBuffer(BufferSize(2, 10.0))
    nobody = np.zeros(0, np.int64)
    for number, at in enumerate((0.0, 1.0, 2.0)):
        assert [each.number for each in buffer.expelled(at, makes_room=True)] == ([0] if number == 2 else [])
        buffer.push(Arrival(number, at, {}, nobody))
    assert buffer.next_expulsion() == 11.0
    assert [each.number for each in buffer.expelled(11.5, makes_room=False)] == [1]
    assert [each.number for each in buffer] == [2]


def test_settings_that_make_no_sense_are_refused():
    for algorithm, filter_ in (
        ("naive", "strict"),
        ("block", "relaxed"),
        ("probabilistic", "strict"),
        ("strict", "none"),
    ):
        with pytest.raises(UnknownFilterError):
            TopK(algorithm, filter=filter_)
    with pytest.raises(UnknownAlgorithmError):
        TopK("fastest")
    for wrong in ({"gamma": -1}, {"sigma": 0}, {"sigma": 1}, {"buffer": 0}, {"buffer": True}, {"index": "hash"},
                  {"lateness": -1}, {"lateness": math.inf}, {"colour": "red"}):  # fmt: skip
        with pytest.raises(SettingError):
            TopK("strict", **wrong)
