"""How far to prune is seen on a sample of events, and the curve is what the events do."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import choose_cut_off, prune_many
from tamis.pruning.cut_off import Point, knee, load_curve
from tamis.pruning.goals import Goal
from tamis.pruning.sequencing import sequences
from tamis.selectivity import Sample
from tamis.workloads import Auction
from tests.pruning.test_sequencing import filters, share

small_events = st.lists(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 2), max_size=8), min_size=1, max_size=5
)


@given(conditions=st.lists(filters, min_size=1, max_size=5), events=small_events, data=st.data())
@settings(max_examples=60)
def test_the_load_is_that_of_the_pruned_filters(conditions, events, data):
    neighbours = data.draw(st.lists(st.sampled_from("nsw"), min_size=len(conditions), max_size=len(conditions)))
    curve = load_curve(sequences(conditions, share), neighbours, events)
    point = data.draw(st.sampled_from(curve))
    pruned = prune_many(conditions, share, Goal(count=point.step_count))
    sent = sum(
        any(tamis.holds(each, event) for each, where in zip(pruned, neighbours, strict=True) if where == neighbour)
        for neighbour in set(neighbours)
        for event in events
    )
    assert point.load == pytest.approx(sent / len(events) / len(set(neighbours)))
    assert [each.load for each in curve] == sorted(each.load for each in curve)
    assert [each.reduction for each in curve] == sorted(each.reduction for each in curve)


def curve(loads):
    return [Point(step, step / (len(loads) - 1) * 0.84, load, 0.0) for step, load in enumerate(loads)]


@pytest.mark.parametrize(
    ("loads", "best"),
    [
        ([0.08, 0.08, 0.09, 0.1, 0.5, 0.98], 3),  # flat, then a sharp bend
        ([0.08, 0.09, 0.1, 0.11, 0.115, 0.12], 5),  # no bend at all: everything is pruned
        ([0.1, 0.9, 0.95, 1.0, 1.0, 1.0], 5),  # lost at once, so memory is all that is left to save
        ([1.0, 1.0, 1.0], 2),
        ([0.0, 0.0], 1),
    ],
)
def test_the_knee_lies_before_the_load_explodes(loads, best):
    assert knee(curve(loads)).step_count == best


def test_dearer_load_means_less_pruning():
    found = curve([0.08, 0.08, 0.12, 0.2, 0.4, 0.98])
    steps = [knee(found, weight).step_count for weight in (0.1, 1, 3, 100)]
    assert steps == sorted(steps, reverse=True) and steps[0] == 5 and steps[-1] == 1


def test_on_the_auctions_the_cut_off_lies_where_the_literature_saw_it():
    # With few titles there are subscribers to all of them at every neighbour, as there are among very many subscriptions.
    # By accuracy the load explodes at two thirds of the predicates, after three quarters of the prunings; with
    # occurrences it never does.
    workload = Auction(auctions_per_book=2_000, swap_signed_and_first_edition=True)
    conditions = workload.subscriptions(800, seed=1)["condition"].to_pylist()
    events = workload.events(200, seed=2).to_pylist()
    chance = Random(1)
    neighbours = [chance.choice("nesw") for _ in conditions]
    measured = Sample(workload.events(1_000, seed=3).to_pylist()).share
    accuracy = choose_cut_off(conditions, neighbours, measured, events)
    assert accuracy.best.reduction == pytest.approx(0.66, abs=0.05)
    assert accuracy.best.step_count / accuracy.curve[-1].step_count == pytest.approx(0.75, abs=0.06)
    assert accuracy.curve[-1].reduction == pytest.approx(0.84, abs=0.01)
    assert accuracy.best.load < 0.15 < 0.7 < accuracy.curve[-1].load
    occurrence = choose_cut_off(conditions, neighbours, measured, events, "occurrence")
    assert occurrence.best == occurrence.curve[-1] and occurrence.best.load < 0.2


def test_nothing_to_prune_is_a_curve_of_one_point():
    found = choose_cut_off(["a = 1"], ["n"], share, [{"a": 1}, {"a": 2}])
    assert found.best == Point(0, 0.0, 0.5, 0.0) and len(found.curve) == 1
    assert choose_cut_off([], [], share, []).best.step_count == 0
