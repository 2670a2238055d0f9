"""The loops that turn values and operands into codes, beside plain versions of themselves."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tamis.matching import kernels
from tamis.matching.columns import Texts

doubles = st.one_of(st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan")]), st.floats())
words = st.text("aäb\U0001f600", max_size=3)


@given(
    values=st.lists(st.one_of(st.integers(-20, 20), st.sampled_from([-(2**63), 2**63 - 1]))),
    base=st.one_of(st.integers(-10, 10), st.sampled_from([-(2**63), 2**63 - 9])),
    size=st.integers(1, 9),
)
def test_codes_by_table_is_a_look_into_a_table_whose_ends_stand_for_all_beyond(values, base, size):
    table = np.arange(100, 100 + size, dtype=np.uint32)
    codes = np.empty(len(values), np.uint32)
    kernels.codes_by_table(np.array(values, np.int64), base, table, codes)
    assert codes.tolist() == [table[min(max(value - base, 0), size - 1)] for value in values]


@given(values=st.lists(doubles), operands=st.lists(doubles.filter(lambda value: value == value), unique=True))
def test_codes_of_doubles_count_smaller_operands_twice_and_an_equal_one_once(values, operands):
    operands = sorted({operand + 0.0 for operand in operands})
    padded = np.full(1 << len(operands).bit_length(), np.nan)
    padded[: len(operands)] = operands
    codes = np.empty(len(values), np.uint32)
    kernels.codes_of_doubles(np.array(values, np.float64), padded, 1_000, codes)
    assert codes.tolist() == [
        1 + bisect_left(operands, value) + bisect_right(operands, value) if value == value else 1_000
        for value in values
    ]


@given(texts=st.lists(words), operands=st.lists(words, unique=True))
def test_ranks_of_texts_count_smaller_operands_twice_and_an_equal_one_once(texts, operands):
    operands = sorted(operands)
    ranks = np.empty(len(texts), np.uint32)
    mine, theirs = Texts.of(texts), Texts.of(operands)
    kernels.ranks_of_texts(mine.data, mine.offsets, theirs.data, theirs.offsets, ranks)
    assert ranks.tolist() == [bisect_left(operands, text) + bisect_right(operands, text) for text in texts]


@given(one=words, two=words)
def test_texts_are_ordered_by_their_characters(one, two):
    mine, theirs = (np.frombuffer(text.encode(), np.uint8) for text in (one, two))
    order = kernels.order_of_texts(mine, 0, len(mine), theirs, 0, len(theirs))
    assert np.sign(order) == (one > two) - (one < two)


@given(sets=st.lists(st.lists(st.integers(0, 9))))
def test_sort_sets_keeps_each_member_once_and_in_order(sets):
    starts = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    members = np.array([member for each in sets for member in each], np.int64)
    sorted_starts, sorted_members = np.empty(len(starts), np.int64), np.empty(len(members), np.int32)
    count = kernels.sort_sets(starts, members, sorted_starts, sorted_members)
    expected = [sorted(set(each)) for each in sets]
    assert sorted_starts.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert sorted_members[:count].tolist() == [member for each in expected for member in each]


def test_rename_puts_ids_in_the_place_of_handles():
    handles = np.array([2, 0, 2], np.int64)
    kernels.rename(handles, np.array([10, 20, 30], np.int64))
    assert handles.tolist() == [30, 10, 30]
