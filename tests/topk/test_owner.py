"""One ranked subscription where not every event comes by: it answers what a processor that sees all would answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.matching.errors import UnknownIdError
from tamis.topk import BufferSizeError, Ranked, SettingError, TopK, UnusedSettingError
from tamis.topk.numbering import Numbering
from tamis.topk.owner import Owner
from tamis.topk.settings import TopKSettings
from tamis.topk.windows import TimeWindow

SPAN = 8.0
BUFFERED = {"strict": "strict", "relaxed": "probabilistic"}


def told_by_owner(events, k, algorithm, filter_, buffer_s, *, is_told_all):
    """Return {event: when} as an owner answers it that is sent what passes its threshold, at once or after the buffer."""
    owner = Owner(Ranked("x", k, TimeWindow(SPAN)), algorithm, TopKSettings(filter_, buffer_s=buffer_s))
    told, waiting = {}, []

    def elapse(until):
        while True:
            expulsion = waiting[0][1] + buffer_s if waiting else math.inf
            if min(owner.due, expulsion) >= until and not (expulsion <= until):
                return
            if expulsion <= owner.due:
                number, at, x = waiting.pop(0)
                owner.expel(number)
                if is_told_all or x <= owner.threshold:
                    told.update(dict.fromkeys(owner.retry(number, x, at), at + buffer_s))
            else:
                due = owner.due
                told.update(dict.fromkeys(owner.leave(due), due))

    now = 0.0
    for number, (x, step) in enumerate(events):
        now += step
        elapse(now)
        if is_told_all or x <= owner.threshold:
            told.update(dict.fromkeys(owner.take(number, x, now), now))
        waiting.append((number, now, x))
    elapse(now + 3 * SPAN)
    return told


@settings(max_examples=60)
@given(
    events=st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.5, 1.0, 3.0])), max_size=40),
    k=st.integers(1, 3),
    algorithm=st.sampled_from(sorted(BUFFERED)),
)
def test_an_owner_that_is_sent_what_passes_its_threshold_answers_as_if_it_saw_all(events, k, algorithm):
    processor = TopK("naive")
    processor.add("s", Ranked("x", k, TimeWindow(SPAN)))
    defined, now = {}, 0.0
    for number, (x, step) in enumerate(events):
        now += step
        defined |= {each.event: each.at for each in processor.process({"x": x}, now, number)}
    defined |= {each.event: each.at for each in processor.advance(now + 3 * SPAN)}
    for is_told_all in (True, False):
        told = told_by_owner(events, k, algorithm, BUFFERED[algorithm], SPAN / 2, is_told_all=is_told_all)
        assert told == defined


@settings(max_examples=60)
@given(
    events=st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.5, 1.0, 3.0])), max_size=40),
    k=st.integers(1, 3),
    algorithm=st.sampled_from(sorted(BUFFERED)),
)
def test_a_processor_that_is_sent_what_passes_a_threshold_answers_as_if_it_saw_all(events, k, algorithm):
    """The events that a threshold keeps back come again when they have left the publisher's recent buffer (`retry`)."""
    ranked, beta = Ranked("x", k, TimeWindow(SPAN)), SPAN / 4
    everything = TopK("naive")
    home = TopK(algorithm, filter=BUFFERED[algorithm], buffer_s=beta)
    for processor in (everything, home):
        processor.add("s", ranked)
    waiting, now = [], 0.0
    defined, told = {}, {}

    def note(into, deliveries):
        into.update({each.event: each.at for each in deliveries})

    def elapse(until):
        while waiting and waiting[0][1] + beta <= until:
            number, at, x = waiting.pop(0)
            # Whether it was sent at first or not: one that came before is tried again by the buffer here.
            note(told, home.retry({"x": x}, at + beta, number, published=at))

    for number, (x, step) in enumerate(events):
        now += step
        elapse(now)
        note(defined, everything.process({"x": x}, now, number))
        if x <= home.threshold("s"):
            note(told, home.process({"x": x}, now, number))
        waiting.append((number, now, x))
    elapse(now + beta)
    for into, processor in ((defined, everything), (told, home)):
        note(into, processor.advance(now + 3 * SPAN))
    assert told == defined


@given(
    moments=st.lists(st.floats(0, 100), min_size=1, max_size=30),
    places=st.lists(st.tuples(st.floats(0, 100), st.integers(0, 30)), max_size=30),
)
def test_numbers_of_what_comes_late_are_in_order_of_publication(moments, places):
    numbering = Numbering()
    given_numbers = [(at, numbering.next(at)) for at in sorted(moments)]
    assert [number for _, number in given_numbers] == list(range(len(moments)))
    for at, _ in places:
        given_numbers.append((at, numbering.late(at)))
        given_numbers.append((100.0, numbering.next(100.0)))
    numbers = [number for _, number in given_numbers]
    assert len(set(numbers)) == len(numbers)
    by_number = [at for at, number in sorted(given_numbers, key=lambda each: each[1])]
    assert by_number == sorted(by_number)


def test_numbers_are_forgotten_once_nothing_as_late_can_come():
    numbering = Numbering()
    for at in range(100):
        numbering.next(float(at))
    numbering.forget(before=90.0)
    assert len(numbering) == 10
    assert 94 < numbering.late(94.5) < 95


def test_what_is_tried_again_is_refused_where_it_means_nothing():
    for processor in (TopK(), TopK("strict"), TopK("probabilistic")):
        with pytest.raises(SettingError):
            processor.retry({"x": 1}, 1.0, "e", published=0.0)
    filtered = TopK("strict", filter="strict")
    filtered.add("s", "TOP 1 BY x OVER 5 EVENTS")
    with pytest.raises(SettingError, match="count window"):
        filtered.retry({"x": 1}, 1.0, "e", published=0.0)
    for wrong in ({"now": 1.0, "id": None, "published": 0.0}, {"now": 1.0, "id": "e", "published": 2.0}):
        with pytest.raises(SettingError):
            filtered.retry({"x": 1}, **wrong)
    assert filtered.process({"x": 1}, 1.0, "f") != []


def test_a_probabilistic_ranking_is_told_how_many_events_it_does_not_see():
    ranked, chance = Ranked("x", 1, TimeWindow(100.0)), np.random.default_rng(4)
    kept = {}
    for n in (None, 10_000):
        processor = TopK("probabilistic", guard=False)
        processor.add("s", ranked)
        if n is not None:
            processor.expect("s", n)
        for number, x in enumerate(chance.random(60).tolist()):
            processor.process({"x": x}, float(number), number)
        kept[n] = processor.candidates("s")
    assert kept[10_000] > kept[None] > 1
    owner = Owner(ranked)
    owner.expect(10_000)
    for number, x in enumerate(chance.random(60).tolist()):
        owner.take(number, x, float(number))
    assert len(owner) == kept[10_000]
    exact = TopK()
    exact.add("s", ranked)
    exact.expect("s", 5)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(SettingError):
            exact.expect("s", wrong)
    with pytest.raises(UnknownIdError):
        exact.expect("t", 5)


def test_a_processor_shows_which_events_it_holds_and_which_it_keeps_for_whom():
    for algorithm in ("naive", "strict", "relaxed", "block"):
        processor = TopK(algorithm)
        processor.add("s", "TOP 1 BY x OVER 10 SECONDS WHERE y > 0")
        processor.add("b", "x > 1")
        for number, x in enumerate([3, 1, 2]):
            processor.process({"x": x, "y": 1}, float(number), f"e{number}")
        processor.process({"x": 0, "y": 0}, 3.0, "outside")
        assert processor.kept("s")[0] == "e1"
        assert set(processor.kept("s")) <= processor.held() <= {"e0", "e1", "e2", "outside"}
        assert {"e1", "e2"} <= processor.held()
        assert processor.kept("b") == []
        processor.advance(11.0)
        assert processor.kept("s") == ["e2"]
        with pytest.raises(UnknownIdError):
            processor.kept("t")
    naive = TopK("naive")
    naive.add("s", "TOP 1 BY x OVER 2 EVENTS")
    for number, x in enumerate([3, 1, 2]):
        naive.process({"x": x}, float(number), number)
    assert naive.kept("s") == [1, 2] and naive.held() == {1, 2}


def test_settings_that_mean_nothing_to_an_algorithm_are_refused():
    for algorithm, given_settings in (
        ("naive", {"index": "grid"}),
        ("block", {"gamma": 0.1}),
        ("block", {"sigma": 0.1}),
        ("block", {"guard": False}),
        ("block", {"buffer": 10}),
        ("strict", {"gamma": 0.1}),
        ("strict", {"sigma": 0.1}),
        ("strict", {"index": "grid"}),
        ("strict", {"buffer": 10}),
        ("strict", {"buffer_s": 1.0}),
        ("relaxed", {"sigma": 0.1}),
        ("relaxed", {"guard": True}),
        ("strict", {"filter": "strict", "sigma": 0.1}),
        ("strict", {"filter": "strict", "gamma": 0.1}),
        ("probabilistic", {"guard": False, "gamma": 0.1}),
        ("naive", {"index": "columns"}),
    ):
        with pytest.raises(SettingError):
            TopK(algorithm, **given_settings)
    with pytest.raises(UnusedSettingError, match="gamma means nothing to the algorithm 'block'; it is for 'relaxed'"):
        TopK(gamma=0.1)
    for algorithm, given_settings in (
        ("probabilistic", {"sigma": 0.1, "guard": True, "gamma": 0.1}),
        ("relaxed", {"gamma": 0.1}),
        ("strict", {"filter": "relaxed", "gamma": 0.1, "buffer": 5}),
        ("relaxed", {"filter": "probabilistic", "gamma": 0.1, "sigma": 0.1, "buffer_s": 5.0}),
        ("block", {"index": "grid"}),
    ):
        TopK(algorithm, **given_settings)


def test_a_window_too_short_for_the_buffer_is_refused_and_nothing_is_registered():
    processor = TopK("strict", filter="strict", buffer_s=10.0)
    with pytest.raises(BufferSizeError):
        processor.add_many({"long": "TOP 1 BY x OVER 20 SECONDS", "short": "TOP 1 BY x OVER 19 SECONDS"})
    assert len(processor) == 0
    processor.add("long", "TOP 1 BY x OVER 20 SECONDS")
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(SettingError):
            TopK("strict", filter="strict", buffer_s=wrong)


def test_owners_are_made_of_rankings_alone():
    for wrong in ("block", "fastest"):
        with pytest.raises(SettingError):
            Owner(Ranked("x", 1, "5 EVENTS"), wrong)
    assert Owner(Ranked("x", 1, "5 EVENTS"), "strict").take(0, math.nan, 0.0) == []
    assert Owner(Ranked("x", 1, "5 EVENTS"), "strict").retry(0, 1.0, 0.0) == []
