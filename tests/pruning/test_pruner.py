"""Entries come, go, and are pruned together; a pruned entry is the same as in bulk, and local ones are nobody's business."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.rewrites.monotone import leaf_count
from tamis.pruning import (
    MEASURES,
    DuplicateEntryError,
    Goal,
    GoalError,
    Pruner,
    UnknownEntryError,
    prune_many,
    sequence,
)
from tamis.pruning.trees import memory_bytes, pruning_form
from tamis.relations import covers
from tests.pruning.test_sequencing import filters, occurrence, share

goals = st.one_of(
    st.builds(lambda count: {"count": count}, st.integers(0, 12)),
    st.builds(lambda part: {"share": part}, st.sampled_from([0, 0.25, 0.5, 0.8, 1])),
    st.builds(lambda bound: {"threshold": bound}, st.sampled_from([0.0, 0.05, 0.2, 1.0, -7.0, 7.0])),
    st.builds(lambda part: {"reduction": part}, st.sampled_from([0, 0.2, 0.5, 0.9, 1])),
    st.builds(lambda size: {"memory_bytes": size}, st.integers(0, 200)),
    st.just({"count": 5, "threshold": 0.3, "reduction": 0.4}),
)
names = st.sampled_from(list(MEASURES))


def filled(conditions, measure="accuracy", **options):
    pruner = Pruner(share, measure, **options)
    pruner.add_many(enumerate(conditions))
    return pruner


@given(conditions=st.lists(filters, max_size=6), measure=names, goal=goals, is_lexicographic=st.booleans())
@settings(max_examples=150)
def test_the_queue_and_the_bulk_prune_alike_for_every_measure_and_goal(conditions, measure, goal, is_lexicographic):
    pruner = filled(conditions, measure, occurrence=occurrence, is_lexicographic=is_lexicographic)
    changed = pruner.prune(**goal)
    expected = prune_many(
        conditions, share, Goal(**goal), measure, occurrence=occurrence, is_lexicographic=is_lexicographic
    )
    assert [pruner.expression(number) for number in range(len(conditions))] == expected
    assert {number for number in pruner if pruner.step_count(number)} == set(changed)
    for number, condition in enumerate(conditions):
        assert covers(expected[number], condition) and pruner.original(number) == condition


@given(conditions=st.lists(filters, min_size=1, max_size=6), measure=names, goal=goals)
@settings(max_examples=100)
def test_a_goal_is_reached_and_not_passed(conditions, measure, goal):
    pruner = filled(conditions, measure)
    before = [leaf_count(pruning_form(each)) for each in conditions]
    pruner.prune(**goal)
    trees = [pruning_form(pruner.expression(number)) for number in range(len(conditions))]
    assert pruner.leaf_count == sum(map(leaf_count, trees)) and pruner.memory_bytes == sum(map(memory_bytes, trees))
    assert pruner.reduction == pytest.approx(1 - pruner.leaf_count / sum(before))
    match goal:
        case {"count": count} if len(goal) == 1:
            assert pruner.pruned_count == min(count, pruner.possible_count)
        case {"share": part}:
            assert pruner.share <= part and (pruner.pruned_count + 1 > part * pruner.possible_count)
        case {"reduction": part} if len(goal) == 1:
            assert pruner.reduction >= part - 1e-9 or pruner.pruned_count == pruner.possible_count
        case {"memory_bytes": size}:
            assert pruner.memory_bytes <= size or pruner.pruned_count == pruner.possible_count
        case {"threshold": bound} if MEASURES[measure].dimensions[0] != "memory":
            for number, condition in enumerate(conditions):
                steps = pruner.step_count(number)
                keys = [step.key[0] for step in sequence(condition, share, measure)]
                assert measure == "occurrence" or all(key <= bound for key in keys[:steps])


@given(conditions=st.lists(filters, min_size=1, max_size=6), measure=names, data=st.data())
@settings(max_examples=60)
def test_pruning_bit_by_bit_ends_where_pruning_at_once_does(conditions, measure, data):
    one, two = filled(conditions, measure), filled(conditions, measure)
    one.prune(count=7)
    for part in data.draw(st.sampled_from([(3, 4), (1,) * 7, (0, 7)])):
        two.prune(count=part)
    assert [one.expression(number) for number in one] == [two.expression(number) for number in two]


@given(conditions=st.lists(filters, min_size=2, max_size=6), measure=names)
@settings(max_examples=60)
def test_after_the_last_deregistration_nothing_is_left(conditions, measure):
    pruner = filled(conditions, measure)
    pruner.prune(share=0.5)
    for number in range(1, len(conditions)):
        pruner.remove(number)
    assert len(pruner) == 1 and pruner.original(0) == conditions[0]
    pruner.prune(share=1.0)
    pruner.remove(0)
    assert (len(pruner), pruner.leaf_count, pruner.memory_bytes, pruner.pruned_count, pruner.possible_count) == (0,) * 5
    assert not pruner._by_serial and not +pruner._occurrences


def test_a_queue_does_not_grow_with_those_who_left():
    pruner = Pruner(share)
    for number in range(500):
        pruner.add(number, "a = 1 AND b = 1")
        pruner.prune(count=0)
        pruner.remove(number)
    assert len(pruner._queue) < 100
    pruner.add("last", "a = 1 AND b = 1")
    assert pruner.prune(share=1) == ["last"]


def test_an_entry_that_came_later_is_pruned_as_if_it_had_always_been_there():
    pruner = Pruner(share)
    pruner.add("old", "a = 1 AND b = 1 AND c = 2")
    pruner.prune(count=1)
    pruner.add("new", "d = 1 AND e = 1")
    pruner.prune(share=1.0)
    for key in ("old", "new"):
        assert pruner.expression(key) == sequence(pruner.original(key), share)[-1].expression


def test_the_second_step_is_measured_against_the_original_by_accuracy_and_against_the_current_by_memory():
    steps = sequence("a = 1 AND b = 1 AND c = 1", lambda _: 0.5)
    assert [step.key[0] for step in steps] == [
        0.125,
        0.5,
    ]  # most stays 0.5; least: 0 -> 0 -> 0.5, average: 0.125 -> 0.5
    steps = sequence("a = 1 AND b = 1 AND c = 1", lambda _: 0.5, "memory")
    assert [-step.key[0] for step in steps] == [5, 7]  # 17 -> 12 -> 5, not 17 -> 5


def test_what_is_learned_later_ranks_anew_and_keeps_what_is_done():
    pruner = Pruner(lambda leaf: 0.9 if "a" in str(leaf) else 0.1)
    pruner.add(1, "a = 1 AND b = 1 AND c = 1")
    pruner.prune(count=1)
    assert str(pruner.expression(1)) == "b = 1 AND c = 1"
    pruner.learn(lambda leaf: 0.9 if "b" in str(leaf) else 0.1)
    assert str(pruner.expression(1)) == "b = 1 AND c = 1" and pruner.pruned_count == 1
    assert pruner.prune(share=1.0) == [1] and str(pruner.expression(1)) == "c = 1"
    assert pruner.reduction == pytest.approx(2 / 3) and pruner.step_count(1) == 2


@pytest.mark.parametrize(("staleness", "first"), [("strict", "one"), ("static", "two"), ("dynamic", "two")])
def test_stale_ranks_are_taken_as_they_are_or_looked_at_again(staleness, first):
    shares = {"a = 1": 0.99, "b = 1": 0.1, "c = 1": 0.7, "d = 1": 0.1}
    pruner = Pruner(lambda leaf: shares[str(leaf)])
    pruner.add("one", "a = 1 AND b = 1")
    pruner.add("two", "c = 1 AND d = 1")
    pruner.prune(count=0)
    later = {"a = 1": 0.5, "b = 1": 0.5, "c = 1": 0.99, "d = 1": 0.1}
    pruner.learn(lambda leaf: later[str(leaf)], is_ranked=False)
    assert pruner.prune(count=1, staleness=staleness) == [first]
    assert pruner.pruned_count == 1 and pruner.possible_count == 2


def test_an_entry_is_not_put_back_forever():
    pruner = Pruner(lambda _: 0.5)
    pruner.add(1, "a = 1 AND b = 1 AND c = 1")
    drifting = iter(range(1, 10_000))
    pruner.learn(lambda _: 1 / (next(drifting) + 1), is_ranked=False)
    assert pruner.prune(share=1.0, staleness="static", most_returns=2) == [1]
    assert pruner.pruned_count == pruner.possible_count == 2


def test_common_predicates_stay_where_occurrences_count():
    pruner = Pruner(lambda _: 0.5, "occurrence")
    for number in range(20):
        pruner.add(number, f"common = 1 AND rare = {number}")
    pruner.prune(share=1.0)
    assert {str(pruner.expression(number)) for number in pruner} == {"common = 1"}


def test_the_farthest_are_pruned_first_where_distance_counts():
    pruner = Pruner(lambda _: 0.5, "distance")
    for hops in (1, 4, 2):
        pruner.add(hops, "a = 1 AND b = 1", distance=hops)
    assert pruner.prune(count=2) == [4, 2]


@pytest.mark.parametrize(
    "wrong",
    [{}, {"count": -1}, {"count": 1.5}, {"share": 1.1}, {"reduction": -0.1}, {"threshold": float("nan")}, {"memory_bytes": -1},
     {"count": 1, "staleness": "sometimes"}],
)  # fmt: skip
def test_a_goal_that_says_nothing_is_refused(wrong):
    with pytest.raises(GoalError):
        Pruner(share).prune(**wrong)


def test_keys_are_known_once():
    pruner = Pruner(share)
    pruner.add(1, "a = 1")
    with pytest.raises(DuplicateEntryError, match="1"):
        pruner.add(1, "a = 1")
    for ask in (pruner.remove, pruner.expression, pruner.original, pruner.step_count):
        with pytest.raises(UnknownEntryError, match="2"):
            ask(2)
    with pytest.raises(GoalError, match="distance"):
        pruner.add(3, "a = 1", distance=0)
    assert 1 in pruner and 2 not in pruner and list(pruner) == [1]
    with pytest.raises(tamis.errors.ExpressionSyntaxError):
        pruner.add(4, "a = ")
    assert 4 not in pruner


def test_a_filter_that_is_too_large_stays_as_it_is_and_is_named():
    wide = tamis.at_least(2, *(tamis.attr(f"a{number}") == 1 for number in range(301)))
    pruner = Pruner(share)
    pruner.add("small", "a = 1 AND b = 2")
    pruner.add("wide", wide)
    assert pruner.too_large == ["wide"]
    assert pruner.prune(share=1) == ["small"]
    assert pruner.expression("wide") == wide and pruner.step_count("wide") == 0
    pruner.remove("wide")
    assert pruner.too_large == []
