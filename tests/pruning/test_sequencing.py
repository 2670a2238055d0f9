"""The compiled sequences are those of the definition, and sorting them is what a queue does."""

from __future__ import annotations

from dataclasses import replace
from heapq import heapify, heappop, heappush

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import BudgetError
from tamis.language.expressions import Attribute, Compare, Literal
from tamis.pruning import MEASURES, GoalError, sequence, sequences
from tamis.pruning.layout import laid_out
from tamis.pruning.sequencing import sequence_by_definition
from tamis.pruning.trees import options, pruning_form
from tamis.relations import covers
from tests.lengths import so_many
from tests.pruning.classes import CLASSES, S3
from tests.pruning.classes import share as worked_share
from tests.strategies import conditions, conditions_over

NAMES = "abcdefgh"
leaves = st.builds(
    lambda name, value: Compare("=", Attribute((name,)), Literal(value)), st.sampled_from(NAMES), st.integers(0, 2)
)
filters = conditions_over(leaves, max_leaves=9)
measures = st.sampled_from(
    [*MEASURES.values(), replace(MEASURES["memory"], rule="any"), replace(MEASURES["memory"], rule="lowest")]
)


def share(predicate):
    """Some share or other, the same for the same predicate, with plenty of equals."""
    return (sum(map(ord, str(predicate))) * 37 % 21) / 20


def occurrence(predicate):
    return float(sum(map(ord, str(predicate))) * 17 % 9)


@given(condition=filters, measure=measures, distance=st.sampled_from([1.0, 2.0, 5.0]))
@settings(max_examples=250)
def test_the_compiled_sequence_is_the_one_of_the_definition(condition, measure, distance):
    expected = sequence_by_definition(condition, share, measure, occurrence=occurrence, distance=distance)
    assert sequence(condition, share, measure, occurrence=occurrence, distance=distance) == expected


@given(condition=conditions, measure=measures)
@settings(max_examples=50)
def test_sequences_of_any_filter_are_those_of_the_definition(condition, measure):
    assert sequence(condition, share, measure) == sequence_by_definition(condition, share, measure)


@given(condition=filters, measure=measures)
@settings(max_examples=80)
def test_each_filter_of_a_sequence_covers_the_one_before(condition, measure):
    before = pruning_form(condition)
    for step in sequence(condition, share, measure):
        assert covers(step.expression, before)
        before = step.expression
    assert not options(before)  # it ends with a leaf, or an OR of leaves


@given(condition=filters)
@settings(max_examples=100)
def test_damage_never_shrinks_along_a_sequence(condition):
    for name in ("accuracy", "efficiency"):
        firsts = [step.key[0] for step in sequence(condition, share, name)]
        assert all(two >= one - 1e-12 for one, two in zip([0.0, *firsts], firsts, strict=False))


@pytest.mark.parametrize(("name", "steps", "left"), [("S1", 4, 1), ("S2", 8, 1), ("S3", 3, 2)])
def test_the_classes_of_the_literature_take_as_many_prunings_as_printed(name, steps, left):
    found = sequence(CLASSES[name][0], lambda leaf: {"p1": 0.001, "p2": 0.1}.get(str(leaf.left), 0.3))
    assert (len(found), found[-1].leaf_count) == (steps, left)


def test_the_worked_example_begins_with_option_5():
    assert (
        str(sequence(S3, worked_share)[0].expression).replace(" = TRUE", "")
        == "(p1 OR p2) AND (p3 AND (p6 OR p7) OR p5)"
    )


@given(conditions_=st.lists(filters, max_size=8), measure=measures, is_lexicographic=st.booleans())
@settings(max_examples=100)
def test_one_sort_of_all_sequences_gives_the_order_of_a_queue(conditions_, measure, is_lexicographic):
    found = sequences(conditions_, share, measure)
    width = 3 if is_lexicographic else 1
    steps = [[step.key for step in found.steps(number)] for number in range(len(found))]
    queue = [(*keys[0][:width], number) for number, keys in enumerate(steps) if keys]
    heapify(queue)
    expected, done = [], [0] * len(steps)
    while queue:
        number = heappop(queue)[-1]
        expected.append((number, int(found.table.starts[number]) + done[number]))
        done[number] += 1
        if done[number] < len(steps[number]):
            heappush(queue, (*steps[number][done[number]][:width], number))
    ordered = found.ordered(is_lexicographic=is_lexicographic)
    assert list(zip(ordered.filters.tolist(), ordered.places.tolist(), strict=True)) == expected
    assert (np.diff(ordered.firsts) >= 0).all()


@given(condition=filters, measure=measures, data=st.data())
def test_a_sequence_goes_on_where_another_ended(condition, measure, data):
    layout = laid_out([condition])
    whole = sequences(layout, share, measure, occurrence=occurrence)
    count = data.draw(st.integers(0, whole.step_count))
    gone = np.zeros(layout.row_count, np.bool_)
    gone[whole.rows(0, count)] = True
    rest = sequences(layout, share, measure, occurrence=occurrence, gone=gone)
    assert rest.rows(0) == whole.rows(0)[count:]
    assert rest.table.keys[: rest.step_count].tolist() == whole.table.keys[count : whole.step_count].tolist()


@pytest.mark.slow
@given(condition=conditions_over(leaves, max_leaves=25), measure=measures, distance=st.sampled_from([1.0, 3.0]))
@settings(max_examples=so_many(3_000))
def test_the_compiled_sequence_is_the_one_of_the_definition_on_many_more_filters(condition, measure, distance):
    expected = sequence_by_definition(condition, share, measure, occurrence=occurrence, distance=distance)
    assert sequence(condition, share, measure, occurrence=occurrence, distance=distance) == expected


def test_nothing_to_prune_is_an_empty_sequence():
    for text in ("TRUE", "FALSE", "a = 1", "a = 1 OR b = 2", "a = NULL AND b = 1"):
        assert sequence(text, share) == []
    assert len(sequences([], share)) == 0 and len(sequences([], share).ordered().filters) == 0


def test_a_filter_that_is_too_large_is_left_as_it_is():
    wide = tamis.all_of(*(tamis.attr(f"a{number}") == 1 for number in range(1_200)))
    found = sequences([wide, "a = 1 AND b = 2"], share)
    assert found.table.step_counts.tolist() == [0, 1] and found.layout.too_large == [0]


@pytest.mark.parametrize(("count", "allowed"), [(300, True), (301, False)])
def test_the_sequence_of_a_filter_that_is_too_large_is_refused_and_not_empty(count, allowed):
    counting = tamis.at_least(count - 1, *(tamis.attr(f"a{number}") == 1 for number in range(count)))
    if allowed:
        assert sequence(counting, share)
        return
    with pytest.raises(BudgetError, match="pruning"):
        sequence(counting, share)


def test_strange_shares_are_kept_between_0_and_1():
    for strange in (float("nan"), float("inf"), -3.0):
        assert all(
            0 <= step.key[0] <= 1 for step in sequence("a = 1 AND b = 2 AND c = 3", lambda _, value=strange: value)
        )


def test_a_distance_of_nothing_is_refused():
    with pytest.raises(GoalError, match="distance"):
        sequence("a = 1 AND b = 1", share, "distance", distance=0)
