"""Bands of priority follow the range in use: few that differ share one, and answers keep their order."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Matcher
from tamis_lab.matching.atree.bands import Bands, chosen_bounds

ATREES = ("atree", "atree-zero", "atree-general")


def shared(counts, cuts):
    """The sum of squares of what bands hold that begin at these places, and at 0."""
    edges = [0, *cuts, len(counts)]
    return sum(sum(counts[begin:end]) ** 2 for begin, end in pairwise(edges))


@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=9), band_count=st.integers(1, 5))
def test_no_other_bounds_have_fewer_pairs_in_one_band(counts, band_count):
    values = np.arange(len(counts)) * 7 - 20
    bounds = chosen_bounds(values, np.array(counts), band_count)
    cuts = np.searchsorted(values, bounds).tolist()
    assert 0 not in cuts
    assert len(cuts) < band_count
    places = range(1, len(counts))
    least = min(
        shared(counts, each) for size in range(min(band_count, len(counts))) for each in combinations(places, size)
    )
    assert shared(counts, cuts) == least


def test_many_priorities_are_first_taken_together_and_a_frequent_one_stays_alone():
    counts = np.ones(50_000, np.int64)
    counts[31_000] = 400_000
    bands = np.searchsorted(chosen_bounds(np.arange(50_000), counts, 8), np.arange(50_000), "right")
    sizes = np.bincount(bands, counts)
    assert len(sizes) == 8
    assert sizes.max() == 400_000 or sizes.max() < 402_000
    assert np.delete(sizes, sizes.argmax()).max() < 10_000


def test_bounds_are_chosen_again_when_as_many_came_as_there_were():
    bands = Bands(8)
    chosen = 0
    for handle in range(1000):
        bands.note([handle], [handle + 1])
        if bands.is_outgrown:
            bands.choose(handle + 1)
            chosen += 1
    assert chosen <= 11


@pytest.mark.parametrize("algorithm", ATREES)
@pytest.mark.parametrize("is_one_by_one", [False, True])
def test_a_skewed_range_spreads_over_bands(algorithm, is_one_by_one):
    # Most of the priorities lie above 64, where the bands used to end: 1,881 of 2,000 matches fell into one of them.
    rows = [(number, f"a > {number % 40}", 1 + number * number % 1009) for number in range(400)]
    matcher = Matcher(algorithm)
    if is_one_by_one:
        for number, text, priority in rows:
            matcher.add(number, text, priority=priority)
    else:
        matcher.add_many(rows)
    sizes = [len(group) for group in matcher.match_in_order({"a": 100})]
    assert len(sizes) == 8
    assert max(sizes) <= 2 * 400 / 8
    assert [each for group in matcher.match_in_order({"a": 100}) for each in group] == matcher.match({"a": 100})


def test_priorities_below_zero_have_bands_and_those_without_one_lie_above_them():
    matcher = Matcher("atree")
    matcher.add_many([("none", "a > 0", 0), ("low", "a > 0", -5), ("lower", "a > 0", -6)])
    matcher.add("late", "a > 1")
    assert list(matcher.match_in_order({"a": 3})) == [["none", "late"], ["low"], ["lower"]]


changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 11), st.sampled_from([0, 0, 1, 2, 90, 91, 10_000, -7, -8, 2**31 - 1])),
        st.tuples(st.just("remove"), st.integers(0, 11), st.just(0)),
    ),
    max_size=30,
)


@pytest.mark.parametrize("algorithm", ATREES)
@given(changes=changes, cut=st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_whatever_came_and_went_groups_are_the_answer_in_order(algorithm, changes, cut):
    matcher = Matcher(algorithm)
    for kind, number, priority in changes:
        if kind == "add":
            matcher.upsert(number, f"a > {number % 4} OR b = {number % 3}", priority=priority)
        elif number in matcher:
            matcher.remove(number)
    for event in ({"a": cut, "b": 1}, {"b": 2}, {}):
        assert [each for group in matcher.match_in_order(event) for each in group] == matcher.match(event)
    kept = Counter(matcher.get(each).priority for each in matcher)
    kept.pop(0, None)
    known = matcher._engine._bands.priorities
    assert Counter(known[handle] for handle in matcher._register.handles.values() if handle in known) == kept


@pytest.mark.parametrize("algorithm", ATREES)
def test_who_is_half_through_an_event_sees_the_order_of_its_beginning(algorithm):
    matcher = Matcher(algorithm)
    matcher.add_many([(number, "a > 0", number) for number in range(1, 9)])
    groups = matcher.match_in_order({"a": 1})
    seen = next(groups)
    matcher.add_many([(number, "a > 0", 1000 * number) for number in range(100, 140)])  # all bands are others now
    for group in groups:
        seen += group
    assert seen == [8, 7, 6, 5, 4, 3, 2, 1]
