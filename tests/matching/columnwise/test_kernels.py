"""The loops over columns, beside plain versions of themselves."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.matching.columns import Texts
from tamis.matching.columnwise import kernels

words = st.text("aäb\0\U0001f600", max_size=3)
coordinates = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])
points = st.tuples(coordinates, coordinates, coordinates)
# The square of a distance of such points is a multiple of 1/16, so limits lie on squares and between them.
limits = st.integers(0, 200).map(lambda sixteenths: sixteenths / 16)


def squared(one, two):
    return sum((mine - theirs) ** 2 for mine, theirs in zip(one, two, strict=True))


def plain_code(square, lows, highs):
    """One plus twice the limits that are surely passed, and whether the next one is too close to say."""
    passed = bisect_left(highs, square)
    return 1 + 2 * passed, passed < len(highs) and square >= lows[passed]


@st.composite
def centres(draw, most_limits):
    point = draw(points)
    highs = sorted(draw(st.lists(limits, max_size=most_limits, unique=True)))
    lows = [high - draw(st.sampled_from([0.0, 1 / 16])) for high in highs]
    return point, lows, highs


def laid_out(found):
    stacked = np.array([point for point, _, _ in found], np.float64).reshape(-1, 3).T.copy()
    starts = np.cumsum([0, *(len(highs) for _, _, highs in found)])
    lows = np.array([low for _, each, _ in found for low in each], np.float64)
    highs = np.array([high for _, _, each in found for high in each], np.float64)
    return kernels.CentreTable(stacked, starts, lows, highs)


@given(data=st.data(), strings=st.lists(words, min_size=1), others=st.lists(words, min_size=1))
def test_orders_of_texts_are_those_of_their_characters(data, strings, others):
    pairs = data.draw(st.lists(st.tuples(st.integers(-1, len(strings) - 1), st.integers(-1, len(others) - 1))))
    orders = np.empty(len(pairs), np.int8)
    one, two = Texts.of(strings), Texts.of(others)
    places = np.array(pairs, np.int32).reshape(-1, 2)
    kernels.orders_of_texts(
        kernels.TextColumn(one.data, one.offsets, places[:, 0].copy()),
        kernels.TextColumn(two.data, two.offsets, places[:, 1].copy()),
        orders,
    )
    for (mine, theirs), order in zip(pairs, orders, strict=True):
        text, other = strings[mine], others[theirs]
        assert order == (0 if min(mine, theirs) < 0 else (text > other) - (text < other))


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@given(
    events=st.lists(points, min_size=1),
    found=st.lists(st.one_of(centres(2), centres(3 * kernels.FEW_LIMITS)), min_size=1, max_size=4),
)
def test_codes_of_events_count_the_limits_that_each_event_passes(dtype, events, found):
    here = np.array(events, np.float64).T.copy()
    codes = np.full((2 * len(found), len(events)), 7, dtype)
    rows = np.arange(1, 2 * len(found), 2)
    near = np.empty(len(found), np.uint32)
    kernels.codes_of_events(here, laid_out(found), rows, codes, near)
    for number, (point, lows, highs) in enumerate(found):
        expected = [plain_code(squared(event, point), lows, highs) for event in events]
        assert codes[2 * number + 1].tolist() == [code for code, _ in expected]
        assert (near[number] > 0) == any(is_near for _, is_near in expected)
    assert (codes[::2] == 7).all()


@given(event=points, found=st.lists(st.one_of(centres(2), centres(20)), min_size=1, max_size=8))
def test_codes_of_centres_count_the_limits_that_one_event_passes(event, found):
    codes, near = np.empty(len(found), np.uint32), np.empty(len(found), np.int64)
    count = kernels.codes_of_centres(event, laid_out(found), codes, near)
    expected = [plain_code(squared(event, point), lows, highs) for point, lows, highs in found]
    assert codes.tolist() == [code for code, _ in expected]
    assert near[:count].tolist() == [number for number, (_, is_near) in enumerate(expected) if is_near]
