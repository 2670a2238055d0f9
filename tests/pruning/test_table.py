"""What a broker keeps of others' filters: as small as if all were pruned together, whatever came and went in between."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import Goal, GoalError, PrunedTable, UnknownEntryError, prune_many
from tamis.pruning.packing import Packed
from tests.pruning.test_sequencing import filters, share
from tests.strategies import conditions

GOALS = st.one_of(
    st.builds(lambda count: Goal(count=count), st.integers(0, 12)),
    st.builds(lambda each: Goal(share=each), st.sampled_from([0.0, 0.3, 0.5, 1.0])),
    st.builds(lambda each: Goal(threshold=each), st.sampled_from([0.0, 0.1, 0.4])),
    st.builds(lambda each: Goal(reduction=each), st.sampled_from([0.1, 0.5])),
)


@pytest.mark.parametrize("measure", ["accuracy", "memory", "occurrence", "distance"])
@given(steps=st.lists(st.one_of(filters, GOALS, st.integers(0, 9)), max_size=12), last=GOALS)
@settings(max_examples=60, deadline=None)
def test_a_table_is_pruned_as_all_that_is_left_would_be_at_once(measure, steps, last):
    table, kept, distances = PrunedTable(share, measure), {}, {}
    versions = {}
    for step in steps:
        if isinstance(step, Goal):
            versions |= table.prune(step)
        elif isinstance(step, int):
            if kept:
                number = list(kept)[step % len(kept)]
                assert table.remove(number) == kept.pop(number)
                versions.pop(number, None)
        else:
            distance = 1.0 + len(kept) % 3
            number = table.add(step, distance=distance)
            kept[number], distances[number] = step, distance
            versions[number] = step
    versions |= table.prune(last, is_ranked_anew=measure == "occurrence")  # how many use a predicate has changed
    numbers = sorted(kept)
    expected = prune_many(
        [kept[number] for number in numbers], share, last, measure, distances=[distances[number] for number in numbers]
    )
    assert list(table) == numbers and len(table) == len(kept)
    assert [table.original(number) for number in numbers] == [kept[number] for number in numbers]
    assert [table.expression(number) for number in numbers] == expected == [versions[number] for number in numbers]


@given(first=st.lists(filters, min_size=1, max_size=5), later=filters, threshold=st.sampled_from([0.0, 0.1, 0.3, 0.6]))
@settings(max_examples=60, deadline=None)
def test_what_comes_later_is_pruned_as_it_comes_up_to_the_same_threshold(first, later, threshold):
    table = PrunedTable(share)
    for each in first:
        table.add(each)
    table.prune(Goal(threshold=threshold))
    number = table.add(later)
    changed = dict(table.prune_new())
    (expected,) = prune_many([later], share, Goal(threshold=threshold))
    assert changed.get(number, later) == expected == table.expression(number) and changed.keys() <= {number}
    assert table.is_pruned(number) == bool(changed)


def test_new_shares_change_what_goes_when_all_is_ranked_anew():
    table = PrunedTable(lambda predicate: 0.9 if "a" in str(predicate) else 0.1)
    number = table.add(tamis.parse("a = 1 AND b = 1 AND c = 1"))
    assert [str(each) for _, each in table.prune(Goal(count=1))] == ["b = 1 AND c = 1"]
    table.share = lambda predicate: 0.9 if "b" in str(predicate) else 0.1
    assert table.prune(Goal(count=1)) == []
    assert [str(each) for _, each in table.prune(Goal(count=1), is_ranked_anew=True)] == ["a = 1 AND c = 1"]
    assert dict(table.prune(Goal(count=0), is_ranked_anew=True)) == {number: tamis.parse("a = 1 AND b = 1 AND c = 1")}


def test_numbers_are_used_again_and_room_is_made_again():
    table, chance = PrunedTable(share), Random(3)
    living = {}
    for round_number in range(30):
        for _ in range(20):
            text = " AND ".join(f"{name} = {chance.randrange(3)}" for name in chance.sample("abcdef", 4))
            living[table.add(tamis.parse(text))] = text
        for number in chance.sample(sorted(living), 15 if round_number < 20 else 25):
            assert table.remove(number) == tamis.parse(living.pop(number))
        table.prune(Goal(share=0.5))
    assert len(table) == len(living) and max(table) < 200 and len(table._steps.rows) < 2_000
    assert all(table.original(number) == tamis.parse(text) for number, text in living.items())
    assert table.pruned_count == table.possible_count // 2 and 0.3 < table.reduction < 0.6


def test_what_is_not_there_and_what_is_no_distance_is_refused():
    table = PrunedTable(share)
    for ask in (table.remove, table.original, table.expression):
        with pytest.raises(UnknownEntryError):
            ask(3)
    with pytest.raises(GoalError, match="more than 0 hops"):
        table.add(tamis.parse("a = 1"), distance=0)
    assert table.prune(Goal(share=1)) == table.prune_new() == [] and table.reduction == 0


@given(st.lists(conditions, max_size=8))
@settings(deadline=None, max_examples=60)
def test_packed_filters_come_back_equal(wanted):
    packed = Packed()
    numbers = [packed.add(each) for _ in range(80) for each in wanted]
    assert all(packed[number] == wanted[place % len(wanted)] for place, number in enumerate(numbers))


def test_a_page_of_packed_filters_that_are_gone_is_gone():
    packed = Packed()
    numbers = [packed.add(tamis.parse(f"a = 'zero\0one\1two\2{number}'")) for number in range(600)]
    assert str(packed[300]) == str(tamis.parse("a = 'zero\0one\1two\2" + "300'"))
    for number in numbers[:599]:
        packed.forget(number)
    assert packed._packed == [None, None] and str(packed[599]).endswith("599'")
