"""Subscriptions of every kind end by themselves: told what is due before that time, and nothing at it or after."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Standing
from tamis.matching.errors import LifetimeError, UnknownIdError

KINDS = {
    "boolean": "a > 0",
    "ranked": "TOP 1 BY a OVER 1 HOUR",
    "sequence": "SEQUENCE a = 1 THEN a = 2 WITHIN 10 SECONDS",
    "every": "SEQUENCE a = 1 THEN a = 2 WITHIN 10 SECONDS TAKING EVERY",
    "absence": "SEQUENCE a = 1 THEN NOT a = 2 WITHIN 3 SECONDS",
    "change": "CHANGE OF a > 1",
}


def seen(processor, events, last):
    """What is told of events (time, value), and by the end."""
    told = []
    for number, (at, value) in enumerate(events):
        told += processor.process({"a": value}, now=at, id=number)
    return told + processor.advance(last)


@pytest.mark.parametrize("kind", KINDS)
def test_at_its_end_a_subscription_is_no_longer_there(kind):
    processor = Standing()
    processor.add("s", KINDS[kind], until=5)
    assert processor.until("s") == 5
    processor.process({"a": 1}, now=0.0, id="e1")
    told = processor.process({"a": 2}, now=5.0, id="e2")
    assert [each.at for each in told] == ([3.0] if kind == "absence" else [])
    assert "s" not in processor
    assert processor.statistics()["subscriptions"] == 0
    assert processor.advance(100.0) == []


def test_what_did_not_come_is_told_before_the_end_and_not_at_it():
    for until, count in ((3.0, 0), (math.nextafter(3.0, 4.0), 1)):
        processor = Standing()
        processor.add("s", KINDS["absence"], until=until)
        assert len(seen(processor, [(0.0, 1)], 9.0)) == count


@pytest.mark.parametrize("until", [math.nan, math.inf, True, "5"])
def test_what_is_no_time_is_refused_and_nothing_is_registered(until):
    processor = Standing()
    with pytest.raises(LifetimeError, match="finite number of seconds"):
        processor.add("s", "a > 0", until=until)
    assert "s" not in processor


def test_an_end_that_has_passed_is_refused():
    processor = Standing()
    processor.advance(10.0)
    with pytest.raises(LifetimeError, match=r"has passed: it is 10\.0"):
        processor.add("s", "a > 0", until=10.0)
    processor.add("s", "a > 0", until=11.0)
    with pytest.raises(LifetimeError):
        processor.extend("s", 9.0)
    with pytest.raises(UnknownIdError):
        processor.extend("t", 20.0)
    assert processor.until("s") == 11.0


def test_a_life_is_extended_and_a_removed_one_ends_nobody_else():
    processor = Standing()
    processor.add("s", KINDS["sequence"], until=5)
    processor.process({"a": 1}, now=0.0, id="e1")
    processor.extend("s", 8)
    assert [each.events for each in processor.process({"a": 2}, now=6.0, id="e2")] == [("e1", "e2")]
    processor.remove("s")
    processor.add("s", "a > 0")
    assert len(processor.process({"a": 2}, now=9.0)) == 1
    processor.extend("s", 12)
    processor.extend("s", None)
    assert len(processor.process({"a": 2}, now=13.0)) == 1


def test_late_events_count_by_their_own_time():
    processor = Standing(lateness=10.0)
    processor.add("s", "a > 0", until=5)
    processor.process({"a": 1}, now=7.0, id="after")
    processor.process({"a": 1}, now=4.0, id="before")
    assert [each.events for each in processor.advance(30.0)] == [("before",)]
    assert "s" not in processor


def test_an_end_survives_a_file(tmp_path):
    processor = Standing()
    processor.add("s", KINDS["sequence"], until=5)
    processor.add("t", KINDS["change"])
    processor.process({"a": 1}, now=0.0, id="e1")
    processor.save(tmp_path / "state.json")
    loaded = Standing.load(tmp_path / "state.json")
    assert (loaded.until("s"), loaded.until("t")) == (5.0, None)
    assert len(loaded.process({"a": 2}, now=4.0, id="e2")) == 2
    loaded.advance(5.0)
    assert "s" not in loaded


@given(
    events=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=10),
    ends=st.lists(st.none() | st.integers(1, 13), min_size=len(KINDS), max_size=len(KINDS)),
    is_batch=st.booleans(),
    lateness=st.sampled_from([0.0, 3.0]),
)
@settings(max_examples=60, deadline=None)
def test_with_an_end_all_is_told_that_is_told_without_one_before_it(events, ends, is_batch, lateness):
    events = sorted(events, key=lambda each: each[0])
    ending, endless = Standing(lateness=lateness), Standing(lateness=lateness)
    lives = dict(zip(KINDS, ends, strict=True))
    for kind, text in KINDS.items():
        ending.add(kind, text, until=lives[kind])
        endless.add(kind, text)
    expected = [
        each for each in seen(endless, events, 40.0)
        if lives[each.subscription] is None or each.at < lives[each.subscription]
    ]  # fmt: skip
    if is_batch:
        rows, times = [{"a": value} for _, value in events], [float(at) for at, _ in events]
        told = ending.process_batch(rows, times, list(range(len(rows)))) + ending.advance(40.0)
    else:
        told = seen(ending, events, 40.0)
    assert sorted(map(repr, told)) == sorted(map(repr, expected))
    assert [each for each, end in lives.items() if end is None] == [each for each in KINDS if each in ending]
