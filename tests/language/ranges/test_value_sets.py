"""Sets of values behave like sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.ranges.value_sets import (
    EVERYTHING,
    NONE,
    complement,
    difference,
    intersection,
    intersection_of,
    is_disjoint,
    is_member,
    is_subset,
    stretches,
    union,
    union_of,
    without_gaps,
)

# Eight ranks without keys are eight values: enough to see every way in which stretches can meet.
ALL = range(8)


def as_values(members):
    cuts = []
    for number in sorted(members):
        if cuts and cuts[-1] == (number,):
            cuts[-1] = (number + 1,)
        else:
            cuts += [(number,), (number + 1,)]
    return tuple(cuts)


def as_set(values):
    return {number for number in ALL if is_member((number,), values)}


sets = st.sets(st.sampled_from(ALL))


@given(one=sets, two=sets, three=sets)
def test_operations_on_values_are_those_on_sets(one, two, three):
    first, second = as_values(one), as_values(two)
    assert as_set(first) == one
    assert intersection(first, second) == as_values(one & two)
    assert union(first, second) == as_values(one | two)
    assert union_of(first, second, as_values(three)) == as_values(one | two | three)
    assert intersection_of(first, second, as_values(three), first) == as_values(one & two & three)
    assert intersection_of(first, second, as_values(three)) == as_values(one & two & three)
    assert difference(first, second) == as_values(one - two)
    assert complement(first) == as_values(set(ALL) - one)
    assert is_subset(first, second) is (one <= two)
    assert is_disjoint(first, second) is one.isdisjoint(two)
    assert without_gaps(first) == first  # every value is a rank of its own here


@given(members=sets)
def test_a_set_is_the_union_of_its_stretches_none_of_which_crosses_a_rank(members):
    found = list(stretches(as_values(members)))
    assert union_of(*found) == as_values(members)
    assert [low[0] for low, _ in found] == sorted(members)


def test_stretches_within_a_rank_stay_whole():
    assert list(stretches(((1,), (2, 5), (2, 7), (3,)))) == [((1,), (2,)), ((2,), (2, 5)), ((2, 7), (3,))]


@pytest.mark.parametrize("values", [NONE, EVERYTHING])
def test_nothing_and_everything_are_complements(values):
    assert complement(complement(values)) == values
    assert union_of() == NONE
