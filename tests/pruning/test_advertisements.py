"""Advertisements are pruned by what they keep out, and never keep out more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import (
    Characteristics,
    FilterVersions,
    advertisement_pruner,
    figures,
    options,
    pruning_form,
    sequence,
)
from tamis.pruning.characteristics import characteristic
from tamis.relations import covers
from tamis.relations.advertisements import OverlapIndex, overlaps_by_predicates
from tamis.selectivity import Sample
from tamis.workloads import Auction
from tests.pruning.test_sequencing import filters

# The worked example: advertisement a3, of which the leaves are n1 to n5, and the only subscription s1.
A3 = "title = 'Goblet of Fire' AND (condition = 'Used' AND price > 11 OR price > 14 AND condition = 'New')"
S1 = "contains(title, 'Goblet') AND ending < 1440 AND (condition = 'New' AND price < 15 OR price < 12 AND condition = 'Used')"
FULFILLED = {"condition = 'New'": 500, "price < 12": 1500, "condition = 'Used'": 2000}


def values():
    return Characteristics([S1], lambda predicate: FULFILLED.get(str(predicate), 0))


def test_the_characteristics_of_the_worked_example_are_reproduced():
    found = values()
    texts = ["title = 'Goblet of Fire'", "condition = 'Used'", "price > 11", "price > 14", "condition = 'New'"]
    assert [found(tamis.parse(text)) for text in texts] == pytest.approx([0, 0.00745, 0, 0.00430, 0.00373], abs=5e-6)
    for text, expected in (
        ("condition = 'Used' AND price > 11", (0.00745, 0.00745, 0.00745)),
        ("price > 14 AND condition = 'New'", (0.00430, 0.00801, 0.00803)),
        (A3, (0.00430, 0.0154, 0.01548)),
    ):
        assert characteristic(pruning_form(text), found) == pytest.approx(expected, abs=1e-5)


def test_the_degradations_of_the_worked_example_are_reproduced_with_the_error_corrected():
    found, tree = values(), pruning_form(A3)
    original = figures(tree, found, estimator=characteristic)
    losses = {
        str(option.branch): FilterVersions(
            original, original, figures(option.tree, found, estimator=characteristic)
        ).overlap
        for option in options(tree)
    }
    assert losses["title = 'Goblet of Fire'"] == 0
    assert losses["price > 14"] == pytest.approx(0.2780, abs=1e-4)  # printed as .276, from rounded numbers
    assert losses["condition = 'Used'"] == pytest.approx(1.0)  # the OR has an operand that keeps nothing out by then


def test_what_keeps_nothing_out_goes_first():
    pruner = advertisement_pruner([S1], lambda predicate: FULFILLED.get(str(predicate), 0))
    pruner.add("a3", A3)
    pruner.prune(threshold=0.0)
    # n1 keeps nothing out, nor does price > 11; both go without loss
    assert pruner.expression("a3") == pruning_form("condition = 'Used' OR price > 14 AND condition = 'New'")
    assert pruner.reduction == pytest.approx(2 / 5)


@given(
    advertisements=st.lists(filters, min_size=1, max_size=4), subscriptions=st.lists(filters, min_size=1, max_size=4)
)
@settings(max_examples=40)
def test_a_pruned_advertisement_overlaps_whatever_the_original_overlaps(advertisements, subscriptions):
    pruner = advertisement_pruner(subscriptions, lambda predicate: len(str(predicate)) % 5)
    pruner.add_many(enumerate(advertisements))
    index = OverlapIndex()
    for number, each in enumerate(subscriptions):
        index.add(number, each)
    for part in (0.3, 1.0):
        pruner.prune(share=part)
        for number, each in enumerate(advertisements):
            pruned = pruner.expression(number)
            assert covers(pruned, each)
            assert set(index.overlapping(each)) <= set(index.overlapping(pruned))


@given(condition=filters)
@settings(max_examples=60)
def test_nothing_is_lost_that_was_nothing(condition):
    assert all(step.key[0] == 0 for step in sequence(condition, lambda _: 0.0, "overlap"))


def test_a_subscription_that_needs_a_disjoint_predicate_is_kept_out():
    assert not overlaps_by_predicates(A3, "title = 'Dune' AND price < 12")


def test_on_the_auctions_pruned_advertisements_overlap_as_much_as_was_published():
    # Published: 0.46 of the subscriptions at first, 0.50 with 0.37 of the predicates gone, 0.63 with all that can go: 0.72.
    workload = Auction(swap_signed_and_first_edition=True)
    subscriptions = workload.subscriptions(1_000, seed=1)["condition"].to_pylist()
    advertisements = workload.advertisements(200, seed=1)["condition"].to_pylist()
    sample = Sample(workload.events(1_000, seed=3).to_pylist())
    pruner = advertisement_pruner(subscriptions, sample.count, workload.schema)
    pruner.add_many(enumerate(advertisements))
    index = OverlapIndex(workload.schema)
    for number, each in enumerate(subscriptions):
        index.add(number, each)
    overlapping = []
    for goal in (0, 0.37, 1):
        pruner.prune(reduction=goal)
        found = [len(index.overlapping(pruner.expression(key))) for key in pruner]
        overlapping.append(sum(found) / len(advertisements) / len(subscriptions))
    assert overlapping == pytest.approx([0.46, 0.50, 0.63], abs=0.03)
    assert pruner.reduction == pytest.approx(0.72, abs=0.02)
