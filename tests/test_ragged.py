"""Many lists in two arrays: what goes in comes out, in Python and in compiled loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tamis.compilation import kernel
from tamis.ragged import Ragged, places_of, starts_of

lists = st.lists(st.lists(st.integers(-9, 9), max_size=5), max_size=6)


@kernel
def sums(ragged, found):
    for number in range(len(ragged.starts) - 1):
        for place in range(ragged.starts[number], ragged.starts[number + 1]):
            found[number] += ragged.values[place]


@given(members=lists)
def test_lists_come_out_as_they_went_in(members):
    values = np.array([each for some in members for each in some], np.int64)
    ragged = Ragged.of_counts([len(some) for some in members], values)
    assert ragged.list_count == len(members) and ragged.counts.tolist() == [len(some) for some in members]
    assert [ragged.members(number).tolist() for number in range(ragged.list_count)] == members
    found = np.zeros(len(members), np.int64)
    sums(ragged, found)
    assert found.tolist() == [sum(some) for some in members]


@given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9))))
def test_values_are_grouped_by_owner_and_keep_their_order(pairs):
    owners, values = (np.array([pair[part] for pair in pairs], np.int64) for part in (0, 1))
    ragged = Ragged.grouped(owners, values, 5)
    for owner in range(5):
        assert ragged.members(owner).tolist() == [value for own, value in pairs if own == owner]


@given(slices=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5)), max_size=6))
def test_places_are_those_of_the_slices_one_behind_the_other(slices):
    begins, counts = (np.array([each[part] for each in slices], np.int64) for part in (0, 1))
    assert places_of(begins, counts).tolist() == [
        begin + step for begin, count in slices for step in range(count)
    ]  # fmt: skip
    assert starts_of(counts).tolist() == [int(counts[:number].sum()) for number in range(len(slices) + 1)]
