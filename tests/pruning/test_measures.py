"""Every measure reproduces the worked numbers of the literature, the corrected ones."""

from __future__ import annotations

import pytest

import tamis
from tamis.pruning import MEASURES, FilterVersions, Measure, UnknownMeasureError, figures, options, pruning_form
from tamis.pruning.measures import measure_of
from tests.pruning.classes import S3, occurrence, share

DROPS = ["p1 OR p2", "p3 AND (p6 OR p7) OR p4 AND p5", "p6 OR p7", "p3", "p4", "p5"]
"""The six options, numbered as in the literature."""


def changes(rule="any"):
    tree = pruning_form(S3)
    original = figures(tree, share, occurrence)
    found = {
        str(option.branch).replace(" = TRUE", ""): FilterVersions(
            original, original, figures(option.tree, share, occurrence)
        )
        for option in options(tree, rule)
    }
    return {number: found[each] for number, each in enumerate(DROPS, start=1) if each in found}


def order(name):
    measure = MEASURES[name]
    found = changes(measure.rule)
    return sorted(found, key=lambda number: measure.key(found[number]))


def test_accuracy_is_as_in_the_worked_example():
    found = [change.accuracy for change in changes().values()]
    assert found == pytest.approx([0.154000, 0.015000, 0.000349, 0.012402, 0.000137, 0.002166], abs=1e-6)
    assert order("accuracy") == [5, 3, 6, 4, 2, 1] == order("network")


def test_efficiency_is_as_in_the_worked_example():
    assert [change.efficiency for change in changes().values()] == [1, 2, 1, 1, 1, 1]
    assert [change.throughput for change in changes().values()] == [-1, -2, -1, -1, -1, -1]
    assert order("efficiency") == [5, 3, 6, 4, 1, 2] == order("throughput")


def test_memory_is_as_in_the_worked_example():
    found = changes("innermost")
    assert {number: change.memory for number, change in found.items()} == {1: 14, 3: 14, 4: 9, 5: 7, 6: 7}
    assert order("memory") == [3, 1, 4, 5, 6]


def test_accuracy_with_occurrence_is_as_in_the_worked_example_with_its_errors_corrected():
    found = changes()
    assert found[1].original.occurrences == 1220
    assert [change.after.occurrences for change in found.values()] == [1090, 130, 760, 720, 1150, 1160]
    exact = [0.172367, 0.140769, 0.000559, 0.021014, 0.000145, 0.002279]
    assert [change.occurrence for change in found.values()] == pytest.approx(exact, abs=1e-6)
    assert order("occurrence") == [5, 3, 6, 4, 2, 1]


def test_accuracy_with_distance_prefers_subscribers_far_away():
    change = changes()[1]
    far = FilterVersions(change.original, change.before, change.after, distance=4)
    assert far.by_distance == pytest.approx(change.accuracy / 4) and change.by_distance == change.accuracy
    assert MEASURES["distance"].key(far) < MEASURES["distance"].key(change)


def test_the_next_dimension_decides_between_equals():
    tree = pruning_form("a = 1 AND b = 1 AND (c = 1 OR d = 1)")
    shares = {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.0}
    original = figures(tree, lambda leaf: shares[str(leaf.left)])
    found = {
        str(option.branch): FilterVersions(
            original, original, figures(option.tree, lambda leaf: shares[str(leaf.left)])
        )
        for option in options(tree)
    }
    one, two = found["a = 1"], found["c = 1 OR d = 1"]
    assert one.accuracy == two.accuracy == 0.125 and one.efficiency == two.efficiency  # so it is memory that decides
    assert min(found, key=lambda each: MEASURES["accuracy"].key(found[each])) == "c = 1 OR d = 1"


def test_accuracy_counts_from_the_original_and_memory_from_the_current_filter():
    first = figures(pruning_form("a = 1 AND b = 1 AND c = 1"), lambda _: 0.5)
    second = figures(pruning_form("a = 1 AND b = 1"), lambda _: 0.5)
    third = figures(pruning_form("a = 1"), lambda _: 0.5)
    change = FilterVersions(first, second, third)
    assert change.accuracy == pytest.approx(0.5 - 0.0) and change.efficiency == 2  # least: 0.5 against 0
    assert change.memory == 12 - 5


def test_a_threshold_means_what_the_measure_states():
    assert MEASURES["memory"].bound(7) == -7 and MEASURES["accuracy"].bound(0.1) == 0.1
    assert MEASURES["memory"].value((-7, 0, 0)) == 7 and MEASURES["accuracy"].value((0.1, 0, 0)) == 0.1


def test_an_unknown_measure_is_answered_with_the_known_ones():
    with pytest.raises(
        UnknownMeasureError, match="accuracy, efficiency, memory, occurrence, distance, network, throughput, overlap"
    ):
        measure_of("speed")
    own = Measure("own", ("memory", "efficiency", "accuracy"))
    assert measure_of(own) is own and issubclass(UnknownMeasureError, tamis.errors.TamisError)
