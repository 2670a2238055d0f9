"""A matcher that is watched knows how often each of its predicates was true."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching import Matcher, WatchError
from tamis.matching.kernels import tally_codes
from tamis.selectivity import Counters
from tests.strategies import conditions, events

PREDICATES = [
    tamis.parse(text)
    for text in (
        "x < 3", "x >= 3", "x = 5", "x <> 5", "7 > x", "x BETWEEN 2 AND 6", "x NOT BETWEEN 2 AND 6", "x IN (1, 5, 8)",
        "x NOT IN (1, 5)", "x < 2.5D", "s = 'b'", "s <> 'b'", "s LIKE 'b%'", "startswith(s, 'c')", "s LIKE '%b'",
        "NOT s LIKE '%b'", "flag", "NOT flag", "x IS NULL", "x IS NOT NULL", "x > y", "NOT x > y", "x + y > 7", "s IN ('a')",
    )
]  # fmt: skip
small_events = st.fixed_dictionaries(
    {},
    optional={
        "x": st.none() | st.integers(0, 9),
        "y": st.integers(0, 9),
        "s": st.none() | st.sampled_from(["", "a", "b", "bb", "cb", "ü"]),
        "flag": st.none() | st.booleans(),
    },
)


@pytest.mark.parametrize("algorithm", ["block", "naive", "counting"])
@given(asked=st.lists(st.sampled_from(PREDICATES), min_size=1, max_size=6), seen=st.lists(small_events, min_size=1))
@settings(max_examples=40, deadline=None)
def test_what_a_watched_matcher_tells_of_its_predicates_is_what_counting_each_of_them_tells(algorithm, asked, seen):
    matcher, counters, plain = Matcher(algorithm), Counters(), Counters()
    matcher.add_many(dict(enumerate(asked)))
    matcher.watch(every=1)
    if algorithm == "block":
        matcher.compile()
        matcher.match_batch(seen[:1])
        for event in seen[1:]:
            matcher.match(event)
    else:
        matcher.match_batch(seen)
    assert matcher.watched_count == len(seen)
    counters.take(*matcher.watched())
    plain.observe(seen, asked)
    assert matcher.watched_count == 0 and counters.event_count == len(seen)
    for predicate in asked:
        assert counters.share(predicate) == pytest.approx(plain.share(predicate)), str(predicate)
    if tamis.parse("flag") in asked:
        negated, plain = tamis.parse("NOT flag"), Counters()
        plain.observe(seen, [negated])
        assert counters.share(negated) == pytest.approx(plain.share(negated))


@given(wanted=st.lists(conditions, max_size=5), seen=st.lists(events(), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_ugly_predicates_and_events_are_watched_like_all_others(wanted, seen):
    matcher, counters = Matcher(), Counters(half_life=3)
    matcher.add_many(dict(enumerate(wanted)))
    matcher.watch(every=1)
    for event in seen:
        matcher.match(event)
    matcher.match_batch(seen)
    counters.take(*matcher.watched())
    assert all(0 <= counters.share(each) <= 1 for each in wanted)


def test_what_was_counted_before_subscriptions_change_is_kept():
    matcher, counters = Matcher(), Counters()
    matcher.add("a", "x < 5")
    matcher.watch(every=1)
    matcher.match_batch([{"x": x} for x in range(10)])
    matcher.add("b", "x < 7")
    matcher.match_batch([{"x": x} for x in range(10)])
    matcher.remove("a")
    matcher.match_batch([{"x": x} for x in range(10)])
    counters.take(*matcher.watched())
    assert counters.event_count == 30 and counters.share(tamis.parse("x < 7")) == pytest.approx(0.7)


def test_one_of_so_many_events_is_looked_at_whatever_turns_they_come_in():
    matcher, counters = Matcher(), Counters()
    matcher.add("a", "x = 0")
    matcher.watch(every=16)
    for number in range(16_000):
        matcher.match({"x": number % 16})
    assert 800 < matcher.watched_count < 1_200
    counters.take(*matcher.watched())
    assert counters.share(tamis.parse("x = 0")) == pytest.approx(1 / 16, abs=0.03)
    matcher.match_batch(pa.table({"x": pa.array(np.arange(2_000) % 16)}))
    assert matcher.watched_count == 125
    for bad in (0, -1, 1.5, "often"):
        with pytest.raises(WatchError, match="whole number of at least 1"):
            matcher.watch(every=bad)


def test_nobody_who_does_not_ask_pays():
    matcher = Matcher()
    matcher.add("a", "x = 0")
    matcher.match({"x": 0})
    assert matcher.watched() == (0, []) and matcher.watched_count == 0


@given(rows=st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_compiled_tally_counts_every_code(rows):
    codes = np.array(rows, np.uint32)
    starts = np.arange(len(rows) + 1) * 4
    counts = np.zeros(4 * len(rows), np.int64)
    tally_codes(codes, starts, counts)
    assert counts.reshape(-1, 4).tolist() == [[row.count(code) for code in range(4)] for row in rows]
